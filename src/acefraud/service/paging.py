"""Cursors: opaque to callers, and good only for the list that gave them."""

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
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before.")]


def write_cursor(of: str, place: int) -> str:
    """The cursor for a place in a list, which `of` names.

    >>> read_cursor("decisions", write_cursor("decisions", 120))
    120
    """
    return base64.urlsafe_b64encode(f"{of}:{place}".encode()).decode().rstrip("=")


def read_cursor(of: str, cursor: str | None) -> int | None:
    """The place that a cursor of a list stands for; None for the start. Raises Refused if it is none of that list."""
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        named, _, place = text.rpartition(":")
        if named == of and place.isdigit() and len(place) < 19:
            return int(place)
    except (ValueError, binascii.Error):
        pass
    raise Refused(422, "expected a cursor that an earlier page of this list gave as `next`", field="cursor")


def page_of(
    of: str, rows: Sequence[T], start: int, limit: int, wanted: Callable[[T], bool] = lambda _: True
) -> tuple[list[T], str | None]:
    """Up to `limit` of the wanted rows of a list from a place on, and the cursor for those after them.

    >>> page_of("letters", "abcde", 1, 2, lambda letter: letter != "c")
    (['b', 'd'], 'bGV0dGVyczo0')
    >>> page_of("letters", "abcde", read_cursor("letters", "bGV0dGVyczo0"), 2)
    (['e'], None)
    """
    items: list[T] = []
    for index in range(start, len(rows)):
        if not wanted(rows[index]):
            continue
        if len(items) == limit:
            return items, write_cursor(of, index)
        items.append(rows[index])
    return items, None
