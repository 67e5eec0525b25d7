"""Checks of what callers pass, with errors that name the argument, what was given and what is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from acefraud.core.short_repr import given, shown_text
from acefraud.errors import AcefraudError, InputError


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


def check_rows(name: str, rows: Sequence[Any], kind: type[Any], expected: str) -> None:
    """Raise InputError for the first of some rows that is of another kind."""
    for place, row in enumerate(rows):
        if not isinstance(row, kind):
            raise InputError(f"{name}: expected {expected}, got {given(row)} at position {place}")


def nearest(wanted: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the names most like it, if there are any.

    >>> nearest("b-cd24", ["b-cd2445bf", "b-11111111"])
    '; did you mean b-cd2445bf?'
    """
    alike = get_close_matches(wanted, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(shown_text(one) for one in alike)}?" if alike else ""


def first_fault(error: ValidationError, *, of: str = "") -> InputError:
    """What is wrong with the first field that a model refuses, without what was given."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in fault["loc"]) or of
    message = fault["msg"].removeprefix("Value error, ")
    return InputError(f"{shown_text(place)}: {shown_text(message, 300)}" if place else shown_text(message, 300))
