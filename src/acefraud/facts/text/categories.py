"""What the merchant sells, the channel and the payment method. The words are in ``vocabulary/categories.toml``."""

from __future__ import annotations

import re

from .document import Document
from .flags import stance
from .patterns import TextPattern, text_pattern
from .vocabulary import PatternText, read_vocabulary

_TABLES = read_vocabulary("categories", dict[str, dict[str, PatternText]])
_CATEGORIES: dict[str, tuple[TextPattern, list[str]]] = {
    fact: (
        text_pattern(
            "|".join(f"(?P<k{place}>{pattern})" for place, pattern in enumerate(table.values())),
            not_after=r"[\w-]",
            not_before=r"\w",
        ),
        list(table),
    )
    for fact, table in _TABLES.items()
}
# A habit or an earlier event says nothing about this transaction.
_HABIT = text_pattern(
    r"\b(?:usual(?:ly)?|typical(?:ly)?|normal(?:ly)?|mostly|previous(?:ly)?|prior|earlier|past"
    r"|history|used to|regularly|never|online banking)\b"
)
_OWN_VERB = re.compile(r"\b(?:is|was|pays|paid|payment)\b")
_MERCHANT_CUE = re.compile(
    r"(?:\b(?:from|at|with|via|merchant|mcc|store|shop|category)(?: is|:|=)? ?[\"']?"
    r"|[\"'])[^\"'.,;\n]{0,40}$"
    r"|[,(] ?an? (?:[a-z]+ ){0,2}(?:of )?$"
)
_MERCHANT_KIND = re.compile(
    r" (?:seller|store|shop|retailer|merchant|boutique|vendor|dealer|platform|chain|agency|provider)\b"
)


def _is_habit(document: Document, start: int, end: int) -> bool:
    """Whether the words around a phrase speak of a habit or the past, as far as the next "and" on either side."""
    first, last = document.segment(start)
    following = document.plain.find(" and ", end, last)
    last = following if following >= 0 else last
    before = document.plain.rfind(" and ", first, start)
    # "... and a card is being used" stands on its own, "... groceries and fuel" does not
    if before >= 0 and _OWN_VERB.search(document.plain, before, last):
        first = before
    return document.may_begin(_HABIT, first, last) and _HABIT.regex.search(document.plain, first, last) is not None


def read_categories(document: Document) -> None:
    """What is sold, the channel and the payment method, each from words about this transaction only."""
    for fact, (pattern, values) in _CATEGORIES.items():
        for match in document.matches(pattern):
            start, end = match.span()
            if _is_habit(document, start, end) or not stance(document, start, end):
                continue
            index = int((match.lastgroup or "k0")[1:])
            document.add(fact, values[index], start, end, tier=_tier(document, fact, index, match.span()))


def _tier(document: Document, fact: str, index: int, span: tuple[int, int]) -> int:
    """How explicit a mention is: a merchant's name more than other goods, the narrower word more than the wider."""
    start, end = span
    if fact == "merchant_category":
        named = _MERCHANT_KIND.match(document.plain, end) or _MERCHANT_CUE.search(
            document.plain[max(0, start - 60) : start]
        )
        return 0 if named else 1
    if fact == "channel":  # a transfer or a withdrawal may also be called "online"
        return 1 if index == len(_TABLES[fact]) - 1 else 0
    return 0 if index == 0 else 1
