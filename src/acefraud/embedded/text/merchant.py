"""The merchant: its rating, the fraud reports on it, what it sells; and the way and the means of payment."""

from __future__ import annotations

import re

from acefraud.core.transaction import FactValue

from .flags import stance
from .page import Page
from .phrases import phrase, words
from .rules import Found, Rule, count_or_none_at_all, days, middle, read_all, rule

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
    return days(found) if count_or_none_at_all(found) else None


def _five_at_most(found: Found) -> FactValue | None:
    """A bare figure is a rating out of five only where it can be one."""
    figures = found.figures("count")
    return figures[0].low if figures and figures[0].low <= 5 else None


_OTHER_SCORES = (
    r"\b(?:user|buyer|customer|client|credit|risk|trust|fraud)(?:'s)? (?:rating|score|rated|is rated|has a rating"
    r"|with a rating)"
    r"|risk|confidence"
)
_RULES: tuple[Rule, ...] = (
    rule(
        rf"(?:over|in|within|during) (?:the )?(?:last |past |previous )?{{duration}},? (?:[a-z]+"
        rf" ){{0,5}}?(?:{{number}}|no|zero)"
        rf" (?:new |separate )?(?:{_REPORTS}|{_AGAINST})",
        fraud_reports=count_or_none_at_all,
        fraud_report_window_days=_window,
    ),
    rule(
        rf"(?:{{number}}|no|zero|without|free of|never any) (?:(?!attempts|and |no |with )[a-z]+ ){{0,2}}?(?:{_REPORTS}"
        rf"|{_AGAINST}){_WHEN}",
        fraud_reports=count_or_none_at_all,
        fraud_report_window_days=_window,
    ),
    rule(
        rf"(?:{_REPORTS}|{_AGAINST})(?: on file| on record)? ?(?:[:=]|is|are|count) ?(?:{{number}}|none"
        rf"|no\b)(?: \({{duration}}\)|{_WHEN})",
        fraud_reports=count_or_none_at_all,
        fraud_report_window_days=_window,
    ),
    rule(
        rf"reported (?:for fraud )?{{number}} times(?: for fraud)?{_WHEN}",
        fraud_reports=count_or_none_at_all,
        fraud_report_window_days=_window,
    ),
    rule(r"never (?:been )?reported for fraud", fraud_reports=0.0),
    rule(
        r"(?:rated|rating|stars?|score)?(?: is| of| was|:|=){0,2} ?{rating}",
        unless=_OTHER_SCORES,
        merchant_rating=middle("rating"),
    ),
    rule(r"(?:an?|its) {count} rating\b", unless=_OTHER_SCORES, merchant_rating=_five_at_most),
    rule(
        r"(?:merchant|seller|shop|store|vendor|retailer)?(?:'s)? ?(?:rated|rating)(?: is| of| was|:"
        r"|=){0,2} ?(?:a )?{count}(?! ?(?:/ ?{number}(?! [a-z])|out of|of|%)|\w| (?!and |but |with |by |while |/)\w)",
        unless=_OTHER_SCORES,
        merchant_rating=_five_at_most,
    ),
)


_CATEGORIES: tuple[tuple[str, str], ...] = (
    ("gift cards", r"gift cards?|gift vouchers?"),
    ("crypto exchange", r"crypto(?:currency)?(?: exchange)?|bitcoin|coinbase|binance|kraken|coin exchange"),
    (
        "electronics",
        r"electronics?|computers?|laptops?|smartphones?|consoles?|gadgets?|camera shop|best buy|apple"
        r" store|phone shop|televisions?",
    ),
    (
        "groceries",
        r"grocer(?:y|ies|s)|supermarket|food market|walmart|tesco|whole foods|convenience store|corner"
        r" shop|butcher",
    ),
    (
        "jewellery",
        r"jewell?e?r(?:y|s)?(?: (?:boutique|shop|store))?|jewellery(?: (?:boutique|shop|store))?|watches|watch"
        r" (?:store|shop|dealer|boutique)|diamonds?|goldsmith",
    ),
    (
        "travel",
        r"airlines?|hotels?|travel (?:agency|agent|site|booking|merchant|company|service|operator|provider|portal)"
        r"|flight tickets?|airbnb|expedia|booking\.com"
        r"|car rental|cruise|plane tickets?",
    ),
    ("furniture", r"furniture|ikea|sofas?|mattress(?:es)?|home furnishings?"),
    (
        "restaurant",
        r"restaurant(?! suppl)|coffee(?: shop| house)?|caf[eé]s?|pizzeria|diner|bistro|bakery|starbucks"
        r"|mcdonald'?s|takeaway|food delivery|bar and grill",
    ),
    ("pharmacy", r"pharmac(?:y|ies)|drug ?store|chemist|cvs|walgreens|apothecary"),
    ("fashion", r"fashion|clothing|clothes|boutique|apparel|shoes?|sneakers|handbags?|zara|h&m"),
    ("gaming", r"gaming|video games?|game (?:store|credits|top-?up)|in-game|playstation|xbox|roblox"),
    ("fuel", r"gas station|petrol(?: station)?|fuel|filling station|service station"),
    ("marketplace", r"marketplace|amazon|ebay|etsy|aliexpress|mercado ?libre"),
    ("money transfer", r"money transfer|western union|moneygram|remittances?|remitly"),
    (
        "office supplies",
        r"office (?:supply|supplies|depot|equipment)|business equipment|stationery|staples|printer"
        r" (?:ink|paper)",
    ),
)
_CHANNELS: tuple[tuple[str, str], ...] = (
    ("cash machine", r"atm|cash ?machine|cashpoint|cash withdrawal"),
    ("phone order", r"(?:tele)?phone order|(?:by|over the|via) (?:tele)?phone|moto|mail order"),
    (
        "in store",
        r"in-store|in store|in person|in-person|chip and pin|chip-and-pin|chip & pin|point of sale|pos"
        r" terminal|card[- ]present|contactless|over the counter",
    ),
    (
        "transfer",
        r"wire(?: transfer)?|bank transfer|wire|ach|sepa|zelle|pix|faster payment|instant transfer"
        r"|(?:credit|account) transfer|(?<!money )(?<!file )(?<!data )transfer(?! (?:service|provider|firm|agent))",
    ),
    (
        "online",
        r"online|website|web (?:store|shop|checkout|order)|web|e-?commerce|in-app|card[- ]not[- ]present|cnp"
        r"|internet",
    ),
)
_METHODS: tuple[tuple[str, str], ...] = (
    ("prepaid card", r"pre-?paid(?: (?:debit |visa |mastercard )?card)?"),
    ("bank transfer", r"bank transfer|wire(?: transfer)?|ach|sepa|faster payment|pix|credit transfer|direct debit"),
    (
        "wallet",
        r"apple pay|google pay|samsung pay|paypal|(?:digital|mobile|e-?)[ -]?wallet"
        r"|(?:by|from|via|with|is|method:|method) (?:a )?wallet|wallet (?:payment|is being used)",
    ),
    (
        "card",
        r"(?:credit|debit|virtual|corporate|visa|mastercard|amex|saved|stolen|new|same|known|chip) card|visa"
        r"|mastercard|amex"
        r"|(?:by|with|via|on|method is|method:|method) (?:a |the |his |her |their )?card"
        r"|(?<!gift )(?<!sim )(?<!id )card (?:payment|added|on file|ending|number|present|not present"
        r"|purchase|transaction|was|is|issued|used)"
        r"|card-not-present|card-present",
    ),
)
_TABLES = tuple(
    (
        fact,
        phrase("|".join(f"(?P<k{n}>{p})" for n, (_, p) in enumerate(table)), not_after=r"[\w-]", not_before=r"\w"),
        table,
    )
    for fact, table in (("merchant_category", _CATEGORIES), ("channel", _CHANNELS), ("payment_method", _METHODS))
)
# A habit or an earlier event says nothing about this transaction.
_HABIT = words(
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


def _is_habit(page: Page, start: int, end: int) -> bool:
    """Whether a habit or the past is spoken of around a phrase, as far as the next statement on either side."""
    first, last = page.segment(start)
    following = page.plain.find(" and ", end, last)
    last = following if following >= 0 else last
    before = page.plain.rfind(" and ", first, start)
    # "... and a card is being used" stands on its own, "... groceries and fuel" does not
    if before >= 0 and _OWN_VERB.search(page.plain, before, last):
        first = before
    return _HABIT.regex.search(page.plain, first, last) is not None


def read_merchant(page: Page) -> None:
    """Rating and fraud reports."""
    read_all(_RULES, page)


def read_categories(page: Page) -> None:
    """What is sold, the channel and the means of payment, each from the words of this transaction only."""
    habit = page.may_hold(_HABIT)
    for fact, said, table in _TABLES:
        for match in page.matches(said):
            start, end = match.span()
            if (habit and _is_habit(page, start, end)) or not stance(page, start, end):
                continue
            index = int((match.lastgroup or "k0")[1:])
            page.claim(fact, table[index][0], start, end, tier=_tier(page, fact, index, match.span()))


def _tier(page: Page, fact: str, index: int, span: tuple[int, int]) -> int:
    """Which of several mentions counts: the merchant's name over other goods, the narrower word over the wider."""
    start, end = span
    if fact == "merchant_category":
        named = _MERCHANT_KIND.match(page.plain, end) or _MERCHANT_CUE.search(page.plain[max(0, start - 60) : start])
        return 0 if named else 1
    if fact == "channel":  # a transfer or a withdrawal may also be called "online"
        return 1 if index == len(_CHANNELS) - 1 else 0
    return 0 if index == 0 else 1
