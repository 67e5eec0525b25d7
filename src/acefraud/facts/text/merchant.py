"""The merchant: its rating, the fraud reports on it and what it sells; the channel and the payment method.

The words for categories, channels and payment methods are in ``vocabulary/categories.toml``.
"""

from __future__ import annotations

import re

from acefraud.core.package_data import read_package_toml
from acefraud.core.transaction import FactValue

from .document import Document
from .fact_patterns import FactPattern, Found, count_or_zero, days, middle, read_all, states
from .flags import stance
from .patterns import PatternText, TextPattern, search_pattern, text_pattern

_REPORTS = r"(?:fraud|scam|fraud-related) (?:reports?|complaints?|alerts?|flags?|cases?)"
_AGAINST = (
    r"(?:reports?|complaints?) (?:of fraud|against|about|on) ?(?:the |this |it)?(?: ?(?:merchant|seller|shop"
    r"|store|retailer))?"
)
_WHEN = (
    r"(?:,? \(?(?:[a-z]+ ){0,5}?(?:in|within|over|during|from) (?:the )?(?:last |past |previous |preceding"
    r" )?{duration}(?! ago)"
    r"|,? {about}{duration} ago|,? (?:last|past) {duration})?"
)


def _window(found: Found) -> FactValue | None:
    return days(found) if count_or_zero(found) else None


def _five_at_most(found: Found) -> FactValue | None:
    """A bare figure is a rating out of five only where it can be one."""
    figures = found.figures("count")
    return figures[0].low if figures and figures[0].low <= 5 else None


_OTHER_SCORES = (
    r"\b(?:user|buyer|customer|client|credit|risk|trust|fraud)(?:'s)? (?:rating|score|rated|is rated|has a rating"
    r"|with a rating)"
    r"|risk|confidence"
)
_RULES: tuple[FactPattern, ...] = (
    states(
        rf"(?:over|in|within|during) (?:the )?(?:last |past |previous )?{{duration}},? (?:[a-z]+"
        rf" ){{0,5}}?(?:{{number}}|no|zero)"
        rf" (?:new |separate )?(?:{_REPORTS}|{_AGAINST})",
        fraud_reports=count_or_zero,
        fraud_report_window_days=_window,
    ),
    states(
        rf"(?:{{number}}|no|zero|without|free of|never any) (?:(?!attempts|and |no |with )[a-z]+ ){{0,2}}?(?:{_REPORTS}"
        rf"|{_AGAINST}){_WHEN}",
        fraud_reports=count_or_zero,
        fraud_report_window_days=_window,
    ),
    states(
        rf"(?:{_REPORTS}|{_AGAINST})(?: on file| on record)? ?(?:[:=]|is|are|count) ?(?:{{number}}|none"
        rf"|no\b)(?: \({{duration}}\)|{_WHEN})",
        fraud_reports=count_or_zero,
        fraud_report_window_days=_window,
    ),
    states(
        rf"reported (?:for fraud )?{{number}} times(?: for fraud)?{_WHEN}",
        fraud_reports=count_or_zero,
        fraud_report_window_days=_window,
    ),
    states(r"never (?:been )?reported for fraud", fraud_reports=0.0),
    states(
        r"(?:rated|rating|stars?|score)?(?: is| of| was|:|=){0,2} ?{rating}",
        unless=_OTHER_SCORES,
        merchant_rating=middle("rating"),
    ),
    states(r"(?:an?|its) {count} rating\b", unless=_OTHER_SCORES, merchant_rating=_five_at_most),
    states(
        r"(?:merchant|seller|shop|store|vendor|retailer)?(?:'s)? ?(?:rated|rating)(?: is| of| was|:"
        r"|=){0,2} ?(?:a )?{count}(?! ?(?:/ ?{number}(?! [a-z])|out of|of|%)|\w| (?!and |but |with |by |while |/)\w)",
        unless=_OTHER_SCORES,
        merchant_rating=_five_at_most,
    ),
)

_TABLES = read_package_toml("acefraud.facts.text", "vocabulary/categories.toml", dict[str, dict[str, PatternText]])
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
_HABIT = search_pattern(
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
    return _HABIT.regex.search(document.plain, first, last) is not None


def read_merchant(document: Document) -> None:
    """Rating and fraud reports."""
    read_all(_RULES, document)


def read_categories(document: Document) -> None:
    """What is sold, the channel and the payment method, each from words about this transaction only."""
    habit = document.may_hold(_HABIT)
    for fact, (pattern, values) in _CATEGORIES.items():
        for match in document.matches(pattern):
            start, end = match.span()
            if (habit and _is_habit(document, start, end)) or not stance(document, start, end):
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
