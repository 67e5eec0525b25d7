"""What the rules of `phrasings/*.toml` mean, told plainly: three-valued predicates over the facts of one row.

It shares no code with the reader or with conditions. A comparison with an unknown fact is None, and so is its negation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, bool | float | str]
Truth = bool | None
Multiple = tuple[float, str]


def truth_of(means: str, row: Row) -> Truth:
    """The truth of an expression such as ``AND(gt('amount', 500), flag('vpn'))`` of a row."""
    result: Truth = eval(means, {"__builtins__": {}}, _language(row))  # our own table
    return result


def _and(*parts: Truth) -> Truth:
    return False if False in parts else None if None in parts else True


def _or(*parts: Truth) -> Truth:
    return True if True in parts else None if None in parts else False


def _not(part: Truth) -> Truth:
    return None if part is None else not part


def _language(row: Row) -> dict[str, Any]:
    def number(name: str) -> float | None:
        value = row.get(name)
        return value if type(value) is float else None

    def word(name: str) -> str | None:
        value = row.get(name)
        return value if type(value) is str else None

    def flag(name: str) -> Truth:
        value = row.get(name)
        return value if type(value) is bool else None

    def limit(value: float | Multiple) -> float | None:
        if not isinstance(value, tuple):
            return float(value)
        other = number(value[1])
        return None if other is None else value[0] * other

    def compare(how: Callable[[float, float], bool]) -> Callable[[str, float | Multiple], Truth]:
        def test(name: str, value: float | Multiple) -> Truth:
            mine, other = number(name), limit(value)
            return None if mine is None or other is None else how(mine, other)

        return test

    def hours(start: float, end: float) -> Truth:
        hour = number("hour")
        if hour is None:
            return None
        return start <= hour < end if start < end else hour >= start or hour < end

    def is_in(name: str, values: list[str]) -> Truth:
        mine = word(name)
        return None if mine is None else mine in values

    return {
        "gt": compare(lambda one, other: one > other),
        "ge": compare(lambda one, other: one >= other),
        "lt": compare(lambda one, other: one < other),
        "le": compare(lambda one, other: one <= other),
        "eq": compare(lambda one, other: one == other),
        "ne": compare(lambda one, other: one != other),
        "between": lambda name, low, high: _and(
            compare(lambda one, other: one >= other)(name, low), compare(lambda one, other: one <= other)(name, high)
        ),
        "hours": hours,
        "is_": lambda name, value: is_in(name, [value]),
        "isnot": lambda name, value: _not(is_in(name, [value])),
        "isin": is_in,
        "notin": lambda name, values: _not(is_in(name, values)),
        "flag": flag,
        "noflag": lambda name: _not(flag(name)),
        "missing": lambda name: name not in row,
        "known": lambda name: name in row,
        "times": lambda factor, name: (float(factor), name),
        "fact": lambda name: (1.0, name),
        "AND": _and,
        "OR": _or,
        "NOT": _not,
    }
