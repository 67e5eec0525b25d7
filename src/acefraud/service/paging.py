"""Cursors: opaque to callers, and good for the list that gave them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeVar

from fastapi import Query

from acefraud.service.problems import Refused

T = TypeVar("T")
MOST: Final = 500
Limit = Annotated[int, Query(ge=1, le=MOST, description="How many at most.")]
Cursor = Annotated[str | None, Query(max_length=100, description="`next` of the page before.")]


def write_cursor(place: int) -> str:
    """The cursor for a place in a list.

    >>> read_cursor(write_cursor(120))
    120
    """
    return base64.urlsafe_b64encode(f"ace:{place}".encode()).decode().rstrip("=")


def read_cursor(cursor: str | None) -> int | None:
    """The place that a cursor stands for; None for the start. Raises Refused if it is no cursor of ours."""
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        mark, _, place = text.partition(":")
        if mark == "ace" and place.isdigit() and len(place) < 19:
            return int(place)
    except (ValueError, binascii.Error):
        pass
    raise Refused(422, "expected a cursor that an earlier page gave as `next`", field="cursor")


def page_of(
    rows: Sequence[T], start: int, limit: int, wanted: Callable[[T], bool] = lambda _: True
) -> tuple[list[T], str | None]:
    """Up to `limit` of the wanted rows from a place on, and the cursor for those after them.

    >>> page_of("abcde", 1, 2, lambda letter: letter != "c")
    (['b', 'd'], 'YWNlOjQ')
    >>> page_of("abcde", read_cursor("YWNlOjQ"), 2)
    (['e'], None)
    """
    found: list[T] = []
    for place in range(start, len(rows)):
        if not wanted(rows[place]):
            continue
        if len(found) == limit:
            return found, write_cursor(place)
        found.append(rows[place])
    return found, None
