"""The hour of this transaction, and whether it is night."""

from __future__ import annotations

from .document import Document
from .fact_patterns import FactPattern, middle, read_all, states
from .patterns import search_pattern

# A clock time in such a piece belongs to another event or to a habit.
_OTHER_EVENT = (
    r"\b(?:reset|changed|change|log(?:ged|in)|sign(?:ed)?[- ]?in|added|registered|opened|created|called|reported"
    r"|usual(?:ly)?|typical(?:ly)?"
    r"|normal(?:ly)?|mostly|previous|prior|earlier|last|between|until|(?<!the )till|hours are|business hours|opening"
    r" hours|by(?=(?: about| around)? $)"
    r"|phoned|contacted"
    r"|complained|emailed|filed|updated|swap(?:ped)?|habit(?:ually)?|regular(?:ly)?|never|always)\b"
)
_NIGHT: tuple[FactPattern, ...] = (
    states(r"not between {clock} and {clock}", night=False),
    states(
        r"between {clock} and {clock}",
        unless=r"\b(?:usual(?:ly)?|typical(?:ly)?|normal(?:ly)?|mostly|open|active)\b",
        night=lambda found: [f.low for f in found.figures("clock")] == [23.0, 6.0] or None,
    ),
    states(
        r"not (?:at night\b|during the night\b|(?:in )?the middle of the night\b|a night|night-?time|overnight)",
        unless=_OTHER_EVENT,
        night=False,
    ),
    states(
        r"(?:at |during )?(?:a )?(?:normal|ordinary) (?:hours?|time of day)\b(?! of)"
        r"|(?:hour|time) (?:of day )?(?:is|was) (?:a )?(?:normal|ordinary)\b",
        unless=r"\b(?:outside|not (?:in|at|within|during|a)|his|her|their|mostly|usually|business|office)\b|'s ",
        night=False,
    ),
    states(
        r"(?:(?:hour|time|payment|it) (?:is|was) |at )?an? night hour\b",
        unless=_OTHER_EVENT + r"|\bnot\b",
        night=True,
    ),
    states(
        r"(?:in|during) the (?:middle of the |dead of )?night\b|overnight|at night\b|night-?time|(?:in|during) the"
        r" (?:small|early|wee) hours"
        r"|in the dead of night",
        unless=_OTHER_EVENT + r"|\bnot (?=at|during|in|overnight|a )",
        night=True,
    ),
    states(
        r"(?:during|in|within) (?:normal |regular |usual )?(?:business|office|daytime|working) hours|in the"
        r" (?:afternoon|daytime)"
        r"|during the day\b|mid-?(?:morning|afternoon)",
        unless=r"\b(?:mostly|usually|typically|normally|mainly|previous|not|outside)\b",
        night=False,
    ),
)
_HOUR: tuple[FactPattern, ...] = (
    states(
        r"(?:transaction |txn |purchase |payment |local )?time(?:stamp)?(?: of (?:the )?(?:transaction|purchase"
        r"|payment))?(?: is| was)?[:=]? ?{clock}",
        unless=r"\b(?:login|reset|last|usual|previous)\b",
        hour=middle("clock"),
    ),
    states(
        r"(?:attempt|purchase|payment|transfer|transaction|order|withdrawal|charge|txn|wire)\w*(?: [a-z'-]+){0,6}?"
        r" (?:at|@) (?:around |about |exactly )?{clock}(?! ?(?:-|to|and) ?{clock})",
        unless=_OTHER_EVENT,
        hour=middle("clock"),
    ),
)


_ELSEWHERE = search_pattern(_OTHER_EVENT)
# Two clock times in a row are opening hours or a habit.
_SPAN_AHEAD, _SPAN_BEHIND = search_pattern(r" ?(?:-|to|and) ?{clock}"), search_pattern(r"{clock} ?(?:-|to|and) ?$")


def is_night(hour: float) -> bool:
    """Whether an hour is between 11 PM and 6 AM."""
    return hour >= 23 or hour < 6


def read_clock(document: Document) -> None:
    """The hour: said of the transaction, or the only clock times that no other pattern took."""
    read_all((*_NIGHT, *_HOUR), document)
    for index, figure in enumerate(document.figures):
        if figure.kind != "clock" or document.taken[index]:
            continue
        place = document.places[index]
        before, after = document.plain[max(0, place - 6) : place], document.plain[place + 1 : place + 6]
        part_of_span = _SPAN_AHEAD.regex.match(after) or _SPAN_BEHIND.regex.search(before)
        if not part_of_span and not _ELSEWHERE.regex.search(document.plain, document.segment_start(place), place):
            document.add("hour", figure.low, place, place + 1, tier=1)
