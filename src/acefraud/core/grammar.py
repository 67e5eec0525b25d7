"""The text form of conditions, read back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from acefraud.core.comparison import MEMBERSHIP, ORDERED, PRESENCE, Op, Test, TestValue

_TOKEN = re.compile(
    r"\s*(?:(?P<name>`[^`]+`)|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<symbol>>=|<=|>|<|\(|\)|,)|(?P<word>[A-Za-z_][A-Za-z0-9_]*))"
)
_FOLLOWING = {
    ("is", "not"): Op.IS_NOT,
    ("is", "missing"): Op.MISSING,
    ("is", "known"): Op.KNOWN,
    ("not", "in"): Op.NOT_IN,
}


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ValueError(f"cannot read condition at {text[position : position + 20]!r}")
        tokens.append((match.lastgroup, match.group(match.lastgroup)))
        position = match.end()
    return tokens


def parse_tests(text: str) -> Iterator[Test]:
    """The tests of a condition in its text form. ValueError where it stops making sense."""
    tokens = _tokens(text)
    if not tokens:
        raise ValueError("an empty condition")
    position = 0
    while True:
        test, position = _parse_test(tokens, position, text)
        yield test
        if position == len(tokens):
            return
        if tokens[position] != ("word", "and"):
            raise ValueError(f"expected 'and' before {tokens[position][1]!r} in {text!r}")
        position += 1


def _parse_test(tokens: list[tuple[str, str]], position: int, text: str) -> tuple[Test, int]:
    def at(index: int) -> tuple[str, str]:
        if index >= len(tokens):
            raise ValueError(f"{text!r} ends too early")
        return tokens[index]

    kind, name = at(position)
    if kind not in ("name", "word"):
        raise ValueError(f"expected a fact, got {name!r} in {text!r}")
    fact = name.strip("`") if kind == "name" else name
    first = at(position + 1)[1]
    second = tokens[position + 2][1] if position + 2 < len(tokens) and tokens[position + 2][0] == "word" else ""
    if (first, second) in _FOLLOWING:
        op, position = _FOLLOWING[first, second], position + 3
    elif first in ("is", "in") or first in ORDERED:
        op, position = Op(first), position + 2
    else:
        raise ValueError(f"expected a comparison after '{fact}', got {first!r} in {text!r}")
    if op in PRESENCE:
        return Test(fact, op), position
    if op in MEMBERSHIP:
        values, position = _parse_list(tokens, position, text)
        return Test(fact, op, values), position
    return Test(fact, op, _parse_literal(*at(position), text)), position + 1


def _parse_list(tokens: list[tuple[str, str]], position: int, text: str) -> tuple[tuple[str, ...], int]:
    close = next((i for i in range(position, len(tokens)) if tokens[i][1] == ")"), None)
    if close is None or tokens[position][1] != "(":
        raise ValueError(f"expected a list in parentheses in {text!r}")
    items = tokens[position + 1 : close]
    if any(value != "," for _, value in items[1::2]) or any(kind != "string" for kind, _ in items[::2]):
        raise ValueError(f"expected quoted words between commas in {text!r}")
    return tuple(json.loads(value) for _, value in items[::2]), close + 1


def _parse_literal(kind: str, token: str, text: str) -> TestValue:
    if kind == "number":
        return float(token)
    if kind == "string":
        return str(json.loads(token))
    if token in ("true", "false"):
        return token == "true"
    raise ValueError(f"expected a number, a quoted word, true or false, got {token!r} in {text!r}")
