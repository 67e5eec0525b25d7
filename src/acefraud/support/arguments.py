"""Checks of what callers pass, with errors that name the argument, what was given and what is accepted."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

from acefraud.display.short_repr import given, shown_text
from acefraud.errors import AcefraudError, ConfigurationError, InputError

R = TypeVar("R")


def check_type(
    name: str,
    value: object,
    kind: type[Any] | tuple[type[Any], ...],
    expected: str,
    error: type[AcefraudError] = InputError,
) -> None:
    """Raise the error if an argument is of another kind than expected.

    >>> check_type("playbook", 5, dict, "a BulletPlaybook")
    Traceback (most recent call last):
    acefraud.errors.InputError: playbook: expected a BulletPlaybook, got the int 5
    """
    if not isinstance(value, kind):
        raise error(f"{name}: expected {expected}, got {given(value)}")


def check_text(name: str, value: object, expected: str = "text", error: type[AcefraudError] = InputError) -> None:
    """Raise the error if an argument is no text, or an empty one."""
    check_type(name, value, str, expected, error)
    if isinstance(value, str) and not value.strip():
        raise error(f"{name}: expected {expected}, got an empty one")


def check_whole(name: str, value: object, *, least: int | None = None) -> None:
    """Raise ConfigurationError if an option is no whole number, or one below the least.

    >>> check_whole("n_bullets", -1, least=0)
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: n_bullets: expected a whole number of at least 0, got the int -1
    """
    wanted = "a whole number" if least is None else f"a whole number of at least {least}"
    if not isinstance(value, Integral) or isinstance(value, bool) or (least is not None and value < least):
        raise ConfigurationError(f"{name}: expected {wanted}, got {given(value)}")


def check_share(name: str, value: object, *, above_zero: bool = False) -> None:
    """Raise ConfigurationError if an option is no number from 0 to 1."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0 <= value <= 1 and (value > 0 or not above_zero)):  # type: ignore[operator]
        start = "above 0 and up" if above_zero else "from 0"
        raise ConfigurationError(f"{name}: expected a number {start} to 1, got {given(value)}")


def check_choice(name: str, value: object, choices: type[StrEnum], error: type[AcefraudError] = InputError) -> None:
    """Raise the error if an argument is none of the choices.

    >>> check_choice("source", "web", StrEnum("Source", ["offline", "online"]))
    Traceback (most recent call last):
    acefraud.errors.InputError: source: expected offline or online, got the str 'web'
    """
    names = [choice.value for choice in choices]
    if value not in names:
        raise error(f"{name}: expected {', '.join(names[:-1])} or {names[-1]}, got {given(value)}")


def check_has(name: str, value: object, expected: str, *methods: str) -> None:
    """Raise ConfigurationError if an argument has none of these methods, of which its role needs one.

    >>> check_has("agent", 5, "an agent", "assess", "analyze")
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: agent: expected an agent, with a method assess or analyze, got the int 5
    """
    if not any(callable(getattr(value, method, None)) for method in methods):
        expected += f", with a method {' or '.join(methods)}"
        raise ConfigurationError(f"{name}: expected {expected}, got {given(value)}")


def rows_of(name: str, rows: Iterable[Any], kind: type[R], expected: str) -> list[R]:
    """The rows as a list. Raises InputError if they are no collection, or for the first that is of another kind.

    >>> rows_of("names", [5], str, "texts")
    Traceback (most recent call last):
    acefraud.errors.InputError: names: expected texts, got the int 5 at position 0
    """
    if isinstance(rows, str | kind) or not isinstance(rows, Iterable):
        raise InputError(f"{name}: expected {expected}, got {given(rows)}")
    found = list(rows)
    for index, row in enumerate(found):
        if not isinstance(row, kind):
            raise InputError(f"{name}: expected {expected}, got {given(row)} at position {index}")
    return found


def nearest_file(path: Path) -> str:
    """The end of a message about a file that is not there: the one of its folder with a name like it, if any."""
    names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    alike = get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"; did you mean {path.with_name(alike[0])}?" if alike else ""


def nearest(wanted: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the names most like it, if there are any.

    >>> nearest("b-cd24", ["b-cd2445bf", "b-11111111"])
    '; did you mean b-cd2445bf?'
    """
    alike = get_close_matches(wanted, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(shown_text(each) for each in alike)}?" if alike else ""
