"""The hour of this transaction, and whether it is night."""

from __future__ import annotations

import re

from .page import Page
from .rules import Rule, expand, middle, read_all, rule

# A clock time in such a piece belongs to another event or to a habit.
_ELSEWHERE = re.compile(
    r"\b(?:reset|changed|change|log(?:ged|in)|sign(?:ed)?[- ]?in|added|registered|opened|created|called|reported"
    r"|usual(?:ly)?|typical(?:ly)?"
    r"|normal(?:ly)?|mostly|previous|prior|earlier|last|between|until|(?<!the )till|hours are|business hours|opening"
    r" hours|by(?=(?: about| around)? $)"
    r"|phoned|contacted"
    r"|complained|emailed|filed|updated|swap(?:ped)?|habit(?:ually)?|regular(?:ly)?|never|always)\b"
)
_NIGHT: tuple[Rule, ...] = (
    rule(r"not between {clock} and {clock}", night=False),
    rule(
        r"between {clock} and {clock}",
        unless=r"\b(?:usual(?:ly)?|typical(?:ly)?|normal(?:ly)?|mostly|open|active)\b",
        night=lambda found: [f.low for f in found.figures("clock")] == [23.0, 6.0] or None,
    ),
    rule(
        r"not (?:at night\b|during the night\b|(?:in )?the middle of the night\b|a night|night-?time|overnight)",
        unless=_ELSEWHERE.pattern,
        night=False,
    ),
    rule(
        r"(?:at |during )?(?:a )?(?:normal|ordinary) (?:hours?|time of day)\b(?! of)"
        r"|(?:hour|time) (?:of day )?(?:is|was) (?:a )?(?:normal|ordinary)\b",
        unless=r"\b(?:outside|not (?:in|at|within|during|a)|his|her|their|mostly|usually|business|office)\b|'s ",
        night=False,
    ),
    rule(
        r"(?:(?:hour|time|payment|it) (?:is|was) |at )?an? night hour\b",
        unless=_ELSEWHERE.pattern + r"|\bnot\b",
        night=True,
    ),
    rule(
        r"(?:in|during) the (?:middle of the |dead of )?night\b|overnight|at night\b|night-?time|(?:in|during) the"
        r" (?:small|early|wee) hours"
        r"|in the dead of night",
        unless=_ELSEWHERE.pattern + r"|\bnot (?=at|during|in|overnight|a )",
        night=True,
    ),
    rule(
        r"(?:during|in|within) (?:normal |regular |usual )?(?:business|office|daytime|working) hours|in the"
        r" (?:afternoon|daytime)"
        r"|during the day\b|mid-?(?:morning|afternoon)",
        unless=r"\b(?:mostly|usually|typically|normally|mainly|previous|not|outside)\b",
        night=False,
    ),
)
_HOUR: tuple[Rule, ...] = (
    rule(
        r"(?:transaction |txn |purchase |payment |local )?time(?:stamp)?(?: of (?:the )?(?:transaction|purchase"
        r"|payment))?(?: is| was)?[:=]? ?{clock}",
        unless=r"\b(?:login|reset|last|usual|previous)\b",
        hour=middle("clock"),
    ),
    rule(
        expand(
            r"(?:attempt|purchase|payment|transfer|transaction|order|withdrawal|charge|txn"
            r"|wire)\w*(?: [a-z'-]+){0,6}? (?:at|@) (?:around |about |exactly )?{clock}"
            r"(?! ?(?:-|to|and) ?{clock})"
        ),
        unless=_ELSEWHERE.pattern,
        hour=middle("clock"),
    ),
)


def is_night(hour: float) -> bool:
    """Night is from eleven in the evening to six in the morning."""
    return hour >= 23 or hour < 6


def read_clock(page: Page) -> None:
    """The hour: said of the transaction, or the only clock times of the text that nothing else lays claim to."""
    read_all(_NIGHT, page)
    read_all(_HOUR, page)
    for index, figure in enumerate(page.figures):
        if figure.kind != "clock" or page.taken[index]:
            continue
        place = page.places[index]
        start = page.segment_start(place)
        around = page.plain[place + 1 : place + 6]
        # two clock times in a row are opening hours or a habit
        part_of_span = re.match(expand(r" ?(?:-|to|and) ?{clock}"), around) or re.search(
            expand(r"{clock} ?(?:-|to|and) ?$"), page.plain[max(0, place - 6) : place]
        )
        if not part_of_span and not _ELSEWHERE.search(page.plain, start, place):
            page.claim("hour", figure.low, place, place + 1, tier=1)
