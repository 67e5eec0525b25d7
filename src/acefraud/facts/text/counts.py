"""How often the customer has done what: purchases, chargebacks, failed and declined attempts, bursts, inactivity."""

from __future__ import annotations

from acefraud.core.transaction import FactValue

from .document import Document
from .fact_patterns import FactPattern, Found, count, count_or_zero, days, read_all, states

_DEALS = r"(?:transactions?|txns?|trxs?|tx)\b"
_ANY_DEALS = r"(?:transactions?|txns?|trxs?|orders?|purchases?|payments?|bookings?)\b"
_MOVES = (
    r"(?:transactions?|txns?|trxs?|purchases?|payments?|attempts?|charges?|orders?|transfers?|withdrawals?"
    r"|authori[sz]ations?|auths?)"
)
_TRIES = (
    r"(?:attempts?|tries|try|logins?|log-ins?|sign-ins?|pins?|passwords?|cvvs?|cvcs?|otps?|entries|entry"
    r"|authentications?|codes?)\b"
)
_WRONG = r"(?:failed|unsuccessful|wrong|incorrect|invalid|mistyped|bad)"
_LONGEST_BURST_DAYS = 1.0
"""A count over more than a day is a habit, not a burst."""


def _per_month(found: Found) -> FactValue | None:
    """The pace per month. A week is 7 of the month's 30 days."""
    figures = found.figures("count", "count_range")
    if not figures:
        return None
    weekly = "week" in found.match[0]
    return round(figures[0].middle * 30 / 7, 2) if weekly else figures[0].middle


def _nth_less_one(found: Found) -> FactValue | None:
    """The eighth purchase somewhere has seven before it."""
    figures = found.figures("ordinal")
    return max(0.0, figures[0].low - 1) if figures else None


def _burst(found: Found) -> FactValue | None:
    return count(found) if _is_short(found) else None


def _burst_minutes(found: Found) -> FactValue | None:
    span = days(found)
    return round(span * 1_440, 2) if _is_short(found) and isinstance(span, float) else None


def _is_short(found: Found) -> bool:
    span = days(found)
    return isinstance(span, float) and 0 < span <= _LONGEST_BURST_DAYS


_HERE = (
    r"(?:from|at|with|in|on|to) (?:this|the same|same|that very|this same|that|the) (?!account|customer|user|card"
    r"|last|past)(?:[a-z]+ )?"
    r"(?:merchant|store|shop|restaurant|pharmacy|seller|retailer|site|website|vendor|supplier|dealer|market|station"
    r"|hotel|cafe|grocer)"
)
_HERE_TOO = rf"(?:here\b|{_HERE}|(?:at|with|from) (?:merchant|seller|store|shop|vendor)\b)"

_COUNTS: tuple[FactPattern, ...] = (
    states(
        rf"(?:{{number}}|no|zero) (?:[a-z]+ ){{0,2}}?(?:{_ANY_DEALS}|visits?|times) {_HERE_TOO}{{window}}",
        purchases_at_merchant=count_or_zero,
    ),
    states(
        rf"(?:bought|shopped|ordered|paid|purchased|been) (?:[a-z]+ )?(?:here|there|(?:from|with) them|{_HERE})"
        rf" (?:already"
        rf" )?{{about}}{{number}} times?"
        rf"\b{{window}}",
        purchases_at_merchant=count,
    ),
    states(
        r"(?:merchant|store|shop|seller|retailer|vendor) (?:has |had )?(?:served|sold to|delivered to|shipped to)"
        r" (?:the |this )?"
        r"(?:customer|client|user|cardholder|account holder|buyer|her|him|them) (?:already )?{about}{number}"
        r" times?\b{window}",
        purchases_at_merchant=count,
    ),
    states(
        rf"{{ordinal}} (?:purchase|order|payment|transaction|visit|booking) (?:{_HERE}|here)",
        purchases_at_merchant=_nth_less_one,
    ),
    states(
        rf"{{number}} (?:[a-z]+ )?(?:{_ANY_DEALS}|times)? ?(?:/|per |a |each |every )(?:month|mo\b|week|wk\b)",
        transactions_per_month=_per_month,
    ),
    states(rf"{{number}} (?:[a-z]+ )?{_ANY_DEALS} (?:monthly|weekly)", transactions_per_month=_per_month),
    states(rf"{{number}} (?:monthly|weekly) {_ANY_DEALS}", transactions_per_month=_per_month),
    states(
        rf"monthly (?:{_ANY_DEALS}|volume|activity|pace|rate|frequency|(?:transaction|order) (?:count|volume))[:=]? ?"
        rf"(?:is |are |of |runs at )?{{about}}{{number}}(?! ?%)(?: {_ANY_DEALS})?",
        transactions_per_month=_per_month,
    ),
    states(
        rf"(?:normal|typical|average|usual|ordinary|regular) (?:month|week) (?:brings|sees|has|shows|counts|holds"
        rf"|means|is)"
        rf" {{about}}{{number}} (?:[a-z]+ )?{_ANY_DEALS}",
        transactions_per_month=_per_month,
    ),
    states(
        rf"(?:{_ANY_DEALS}) (?:per|a) (?:month|week)[:=]? ?(?:is |are )?{{about}}{{number}}",
        transactions_per_month=_per_month,
    ),
    states(
        r"(?:no|without)(?: account| card| customer)? activity (?:for|in|within|over)(?: the)?(?: last|"
        r" past)? {about}{duration}",
        days_since_last=days,
    ),
    states(
        r"nothing (?:has |had |was |is )?(?:happened|moved|seen|done|booked|recorded|posted)(?: (?:on|in|with)"
        r" (?:the|this)"
        r" (?:account|card|profile))? (?:for|in|over)(?: the)?(?: last| past)? {about}{duration}",
        days_since_last=days,
    ),
    states(
        r"last (?:used|touched|accessed|logged in(?:to)?|paid (?:from|with)|transacted on)(?: (?:the|this|his|her"
        r"|their)"
        r" (?:account|card|profile))? {about}{ago}",
        days_since_last=days,
    ),
    states(
        r"(?:dormant|inactive|idle|quiet|unused|not (?:been )?used|silent|asleep)(?: for| since| the last|"
        r" over)? {about}{duration}",
        days_since_last=days,
    ),
    states(
        r"(?:last|latest|most recent|previous) (?:transaction|purchase|activity|login|payment|order|use|used|active"
        r"|seen|txn)"
        r"(?: was| on (?:the|this) account|:)?(?: was| is| dates (?:from|back)| happened| took place| occurred| came"
        r"| seen|:)?"
        r" {about}{ago}",
        days_since_last=days,
    ),
    states(
        r"after {about}{duration} (?:of )?(?:inactivity|dormancy|silence|no activity|without (?:any )?activity)",
        days_since_last=days,
    ),
    states(
        r"first (?:activity|transaction|purchase|payment|use|login) (?:in|for|after) {about}{duration}",
        days_since_last=days,
    ),
    states(
        r"(?:{number}|no|zero) (?:(?:prior|previous|earlier|past|recent|known|recorded|historical"
        r"|lifetime) ){0,2}chargebacks?\b{window}",
        unless=r"\bmerchant\b",
        chargebacks=count_or_zero,
    ),
    states(
        r"chargebacks?(?: (?:history|count|record|cases|so far|on file))?(?:[:=]| is| are| shows) ?(?:{number}"
        r"|(?:none|no|zero)\b)"
        r"(?: (?:cases?|chargebacks?|entries))?",
        unless=r"\bmerchant\b",
        chargebacks=count_or_zero,
    ),
    states(r"(?:a|one) (?:prior|previous|earlier|past) chargeback\b", chargebacks=1.0),
    states(r"never (?:had|filed|raised|made) (?:a |any )?chargebacks?\b", chargebacks=0.0),
)

_KINDS_OF_PAST = (
    r"(?:total|prior|previous|past|lifetime|completed|successful|earlier|historical|historic|clean"
    r"|settled|recorded|approved)"
)
_HISTORY: tuple[FactPattern, ...] = (
    # a sample of the history, not its length
    states(rf"(?:last|latest|most recent|first|next) {{number}} {_ANY_DEALS}"),
    states(
        rf"(?:{{number}}|no|zero) (?:[a-z]+ )?{_KINDS_OF_PAST} (?:[a-z]+ )?{_ANY_DEALS}(?! (?:over|above|under"
        r"|between|at|from|to|with|of|this|that|so|as|here)\b)",
        unless=r"\b(?:last|declined|failed|suspicious|flagged)\b",
        account_transactions=count_or_zero,
    ),
    states(
        rf"{{number}} {_ANY_DEALS} (?:on (?:the |this )?(?:account|file|record|profile)|to date|so far|in"
        rf" (?:the )?(?:account )?history|in total|overall)",
        account_transactions=count,
    ),
    states(
        rf"(?:history of|made|completed|with|has|record of) {{about}}{{number}} {_DEALS}(?! (?:over|above|in|within"
        rf"|under|between|today|per|a ))",
        account_transactions=count,
        tier=1,
    ),
    states(
        rf"(?:transaction|txn|order|purchase) (?:count|history)[:=]? ?(?:is |of )?{{number}}(?: {_ANY_DEALS})?",
        account_transactions=count,
    ),
    states(
        r"no (?:transaction|purchase|order|payment) history|(?:very )?first (?:ever )?(?:transaction|payment"
        r"|purchase|order)"
        r" (?:ever|on (?:the|this) account)",
        account_transactions=0.0,
    ),
    states(
        rf"{{number}} {_DEALS}(?! (?:over|above|in|within|under|between|from|at|to|today|tonight|per|a |each|were"
        rf"|was|failed|declined|{{day_word}}))(?! ?/)",
        tier=1,
        unless=r"\b(?:last|latest|past|recent|same|other|next|first)\b",
        account_transactions=count,
    ),
)

_PACE: tuple[FactPattern, ...] = (
    states(
        rf"(?:{{number}}|no|zero) (?:[a-z]+ )?declined (?:[a-z]+ ){{0,2}}?{_TRIES}{{window}}",
        failed_attempts=count_or_zero,
        declined_before=count_or_zero,
    ),
    states(
        rf"(?:{{number}}|no|zero|without any) (?:[a-z]+ )?{_WRONG} (?:[a-z0-9]+ ){{0,2}}?(?:{_TRIES}"
        rf"|{_MOVES}\b){{window}}",
        failed_attempts=count_or_zero,
    ),
    states(rf"{{number}} (?:[a-z]+ )?{_TRIES} (?:that )?(?:had )?failed{{window}}", failed_attempts=count),
    states(
        r"(?:failed|mistyped|got it wrong|wrong pin|wrong password|wrong cvv) {number} times{window}",
        failed_attempts=count,
    ),
    states(rf"{_WRONG} (?:[a-z]+ ){{0,2}}?{_TRIES} ?[:=] ?(?:{{number}}|none)", failed_attempts=count_or_zero),
    states(r"{number} (?:[a-z]+ ){0,2}?failures{window}", failed_attempts=count),
    states(
        rf"(?:{{number}}|no|zero|without any) (?:(?:prior|previous|earlier|recent|past|preceding|further)"
        rf" )?(?:declines?\b(?! (?:reason|code|rule|rate))"
        rf"|(?:declined|refused|rejected|blocked) {_MOVES}){{window}}",
        declined_before=count_or_zero,
    ),
    states(r"(?:declined|refused|rejected) {number} times{window}", declined_before=count),
    states(
        rf"(?:{{number}}|no|zero|none of the) (?:[a-z]+ )?{_MOVES} (?:were |was |have been |has been |had been |got )?"
        rf"(?:declined|refused|rejected|turned down|blocked)\b{{window}}",
        declined_before=count_or_zero,
    ),
    states(
        rf"(?:turned down|declined|refused|rejected|blocked) (?:{{number}}|no) (?:[a-z]+ )?{_MOVES}\b{{window}}",
        declined_before=count_or_zero,
    ),
    states(r"declines?[:=] ?(?:{number}|none)", declined_before=count_or_zero),
    states(
        rf"{{number}} (?:[a-z-]+ ){{0,2}}?{_MOVES} (?:[a-z]+ ){{0,2}}?(?:in|within|over|during|inside)"
        rf"(?: (?:the|a|just|only|under|less|than|span|of|space|last|past|single|course))* {{about}}{{duration}}",
        unless=r"\bchargebacks?\b",
        recent_transactions=_burst,
        recent_window_minutes=_burst_minutes,
    ),
    states(
        rf"in (?:the )?(?:last |past |just |under ){{0,2}}{{duration}},? (?:[a-z]+ ){{0,3}}?{{number}}"
        rf" (?:[a-z-]+ ){{0,2}}?{_MOVES}\b",
        recent_transactions=_burst,
        recent_window_minutes=_burst_minutes,
    ),
    states(
        r"{number} in (?:the )?(?:last|past) {duration}",
        unless=r"report|complaint|chargeback|over|above",
        recent_transactions=_burst,
        recent_window_minutes=_burst_minutes,
    ),
    states(
        rf"{{number}} (?:[a-z-]+ ){{0,2}}?{_MOVES} (?:in|within) (?:a few |a couple of |a matter of )?(?:minutes"
        rf"|seconds)\b",
        recent_transactions=count,
        velocity=True,
    ),
    states(
        rf"(?:burst|flurry|run|series|string|barrage|rush|spree) of {{about}}{{number}} (?:[a-z-]+ )?{_MOVES}\b",
        unless=r"\b(?:not?|never|without)\b",
        recent_transactions=count,
        velocity=True,
    ),
    states(
        rf"{{number}} (?:[a-z-]+ ){{0,2}}?{_MOVES} (?:[a-z]+ ){{0,2}}?in (?:one|a|a single|{{count}}) (?:burst|go"
        rf"|rush|flurry)\b",
        unless=r"\b(?:not?|never|without)\b",
        recent_transactions=count,
        velocity=True,
    ),
    states(
        rf"{{number}} (?:[a-z-]+ ){{0,2}}?{_MOVES} (?:[a-z]+ ){{0,2}}?(?:in (?:(?:quick|rapid|close|fast) succession"
        rf"|short order)|back[- ]to[- ]back"
        rf"|one after (?:another|the other))",
        unless=r"\b(?:not?|never|without)\b",
        recent_transactions=count,
        velocity=True,
    ),
)


def read_counts(document: Document) -> None:
    """Counts at the merchant, per month and of chargebacks; the time since the last activity; failures and bursts."""
    read_all((*_COUNTS, *_PACE), document)


def read_history(document: Document) -> None:
    """How many transactions the account has. Read after all other counts, since its wording is the least specific."""
    read_all(_HISTORY, document)
