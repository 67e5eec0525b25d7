"""The hour of this transaction, and whether it is night."""

from __future__ import annotations

from .document import Document
from .fact_patterns import part, read_theme
from .patterns import search_pattern

_ELSEWHERE = search_pattern(part("other_event"))
# Two clock times in a row are opening hours or a habit.
_SPAN_AHEAD, _SPAN_BEHIND = search_pattern(r" ?(?:-|to|and) ?{clock}"), search_pattern(r"{clock} ?(?:-|to|and) ?$")


def is_night(hour: float) -> bool:
    """Whether an hour is between 11 PM and 6 AM."""
    return hour >= 23 or hour < 6


def read_clock(document: Document) -> None:
    """The hour: said of the transaction, or the only clock times that no other pattern took."""
    read_theme("clock", document)
    for index, figure in enumerate(document.figures):
        if figure.kind != "clock" or document.taken[index]:
            continue
        place = document.places[index]
        before, after = document.plain[max(0, place - 6) : place], document.plain[place + 1 : place + 6]
        part_of_span = _SPAN_AHEAD.regex.match(after) or _SPAN_BEHIND.regex.search(before)
        if not part_of_span and not _ELSEWHERE.regex.search(document.plain, document.segment_start(place), place):
            document.add("hour", figure.low, place, place + 1, tier=1)
