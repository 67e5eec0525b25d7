"""How old the account, the card and the device are, and how often the customer has done what."""

from __future__ import annotations

from acefraud.core.transaction import FactValue

from .page import Page
from .rules import Found, Rule, count, count_or_none_at_all, days, read_all, rule

_DEALS = r"(?:transactions?|txns?|trxs?|tx)\b"
_ANY_DEALS = r"(?:transactions?|txns?|trxs?|orders?|purchases?|payments?|bookings?)\b"
_BEEN = r"(?: was| is| has been| had been| have been| being|,|:)?"
_NOT_OPENING = (
    r"\b(?:dormant|inactive|idle|merchant|payee|beneficiary|bank account added|last|nothing|happened|linked|tied"
    r"|used|activity|quiet|silent|on (?:the|this|his|her|their) account|to (?:the|this|his|her|their) account)\b"
    r"(?!.* and )"
)
_THE_ACCOUNT = r"(?:the |this |her |his |their )?(?:account|profile)"
_CARD = r"(?:credit |debit |bank |prepaid |virtual )?(?:card|payment method|payment instrument|instrument)"
_NOT_ACCOUNT = (
    r"\b(?:card|device|payee|beneficiary|recipient|merchant|shop|store|seller|site|website|domain|ticket|dispute"
    r"|case|payment method"
    r"|phone|handset|laptop|browser|address|password|e-?mail)\b"
)

_AGES: tuple[Rule, ...] = (
    # cards and devices first: "age" alone means the account
    rule(rf"{_CARD} age{_BEEN}[:=]? ?{{about}}{{duration}}", payment_method_age_days=days),
    rule(
        rf"{_CARD}{_BEEN} (?:first )?{{about}}(?:added|linked|registered|tokeni[sz]ed|enrolled|saved|attached|put on"
        rf" file|stored)"
        rf"(?: (?:to|on|in) (?:the |this |her |his |their )?(?:account|file|wallet|profile))? {{about}}{{ago}}",
        payment_method_age_days=days,
    ),
    rule(
        rf"(?:added|linked|registered|enrolled|saved) (?:a |the |this |their |his |her )?(?:new |second "
        rf"|different )?{_CARD} {{about}}{{ago}}",
        payment_method_age_days=days,
    ),
    rule(
        rf"{_CARD}{_BEEN} (?:(?:successfully |already |in |on |actively )?(?:used|on file|in use|use|file|linked"
        rf"|known|registered|active|held|(?:on|to|with) {_THE_ACCOUNT}))"
        rf"(?: successfully| (?:to|on|with) {_THE_ACCOUNT})? (?:for |since ){{about}}{{duration}}",
        payment_method_age_days=days,
    ),
    rule(rf"{_CARD}(?: has been| is)? on file {{about}}{{duration}}(?! ago)", payment_method_age_days=days),
    rule(rf"{{duration}}[- ]old {_CARD}", payment_method_age_days=days),
    rule(
        rf"{_CARD}(?: on (?:the )?(?:file|record|account)| in use| used)?{_BEEN} (?:now )?{{about}}{{duration}}[- ]old",
        payment_method_age_days=days,
    ),
    rule(
        rf"(?:used|had|held|known|kept) (?:this|the|that|his|her|their|the same) {_CARD} (?:on file )?"
        rf"(?:for|since) {{about}}{{duration}}",
        payment_method_age_days=days,
    ),
    rule(rf"device(?: fingerprint| id)? age{_BEEN}[:=]? ?{{about}}{{duration}}", device_age_days=days),
    rule(
        rf"(?:device|phone|handset|laptop|browser|fingerprint){_BEEN} (?:first |initially |{{about}})?(?:seen"
        rf"|registered|enrolled|added|bound"
        rf"|linked|paired|recogni[sz]ed|used|observed)(?: on (?:the |this )?account)? {{about}}{{ago}}",
        device_age_days=days,
    ),
    rule(
        rf"(?:device|phone|handset|laptop|browser|fingerprint){_BEEN} (?:already )?(?:known|registered|enrolled"
        rf"|trusted|bound|linked|used|in use"
        rf"|on file)(?: (?:to|with|by|on) (?:us|{_THE_ACCOUNT}))? (?:for |since ){{about}}{{duration}}",
        device_age_days=days,
    ),
    rule(
        r"(?:known|used|had|owned|seen|recogni[sz]ed|trusted) (?:this|the|that|his|her|their|the same) (?:same )?"
        r"(?:device|phone|handset|laptop|browser) (?:for|since) {about}{duration}",
        device_age_days=days,
    ),
    rule(r"{duration}[- ]old (?:device|handset|fingerprint)", device_age_days=days),
    rule(rf"(?:device|fingerprint)(?: in use| used)?{_BEEN} {{about}}{{duration}}[- ]old", device_age_days=days),
    rule(
        rf"(?:(?:account|acct|profile|user|membership)(?:'s)?[ _])?(?:age|tenure)\b{_BEEN}[:=]? ?{{about}}{{duration}}",
        unless=r"\b(?:card|device|domain|site|merchant|customer|cardholder|client|person)(?:'s)? age",
        account_age_days=days,
    ),
    rule(r"{duration}[- ]old (?:[a-z]+ ){0,2}(?:account|acct|profile|membership|wallet)\b", account_age_days=days),
    rule(
        rf"(?:account|acct|profile|membership|relationship){_BEEN} (?:still )?{{about}}(?:opened|created|registered"
        rf"|established|set up|open"
        rf"|active|activated|started|made|held|dates|existed|around|in existence)? ?(?:online )?(?:for |back"
        rf" )?{{about}}"
        rf"(?:{{ago}}|{{duration}}[- ]old|(?<=for ){{duration}})",
        unless=_NOT_OPENING,
        account_age_days=days,
    ),
    rule(
        rf"(?:account|acct|profile|membership|relationship)(?:'s history)?(?:{_BEEN}| has| had) (?:still )?(?:open"
        rf"|opened|active"
        rf"|existed|in existence|goes back|going back|reaches back|dates back|stretches back|spans|on (?:our|the) books"
        rf"|with us)(?: for| by| over)? {{about}}{{duration}}",
        unless=_NOT_OPENING,
        account_age_days=days,
    ),
    rule(
        r"(?:held|had|kept|owned|run|maintained|operated) (?:this|the|an|his|her|their) account (?:for|since)"
        r" {about}{duration}",
        account_age_days=days,
    ),
    rule(
        r"(?:opened|created|registered|signed[- ]up|joined|onboarded|enrolled)(?: (?:the |an |this "
        r"|their )?account)? {about}{ago}",
        unless=_NOT_ACCOUNT,
        account_age_days=days,
    ),
    rule(
        r"(?:customer|client|member|cardholder|user|with us|on (?:our|the) books|account ?holder|with the bank|banks"
        r" with us)(?: with"
        r" us)? (?:of|for) "
        r"{about}{duration}",
        account_age_days=days,
    ),
    rule(r"(?:customer|client|member|account) \({about}{duration}\)", account_age_days=days),
    rule(
        r"{duration}[- ](?:long )?(?:customer|client|relationship|tenure|member|account holder|account history"
        r"|account)\b",
        account_age_days=days,
    ),
)


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


_HERE = (
    r"(?:from|at|with|in|on|to) (?:this|the same|same|that very|this same|that|the) (?!account|customer|user|card"
    r"|last|past)(?:[a-z]+ )?"
    r"(?:merchant|store|shop|restaurant|pharmacy|seller|retailer|site|website|vendor|supplier|dealer|market|station"
    r"|hotel|cafe|grocer)"
)
_HERE_TOO = rf"(?:here\b|{_HERE}|(?:at|with|from) (?:merchant|seller|store|shop|vendor)\b)"

_COUNTS: tuple[Rule, ...] = (
    rule(
        rf"(?:{{number}}|no|zero) (?:[a-z]+ ){{0,2}}?(?:{_ANY_DEALS}|visits?|times) {_HERE_TOO}{{window}}",
        purchases_at_merchant=count_or_none_at_all,
    ),
    rule(
        rf"(?:bought|shopped|ordered|paid|purchased|been) (?:[a-z]+ )?(?:here|there|(?:from|with) them|{_HERE})"
        rf" (?:already"
        rf" )?{{about}}{{number}} times?"
        rf"\b{{window}}",
        purchases_at_merchant=count,
    ),
    rule(
        r"(?:merchant|store|shop|seller|retailer|vendor) (?:has |had )?(?:served|sold to|delivered to|shipped to)"
        r" (?:the |this )?"
        r"(?:customer|client|user|cardholder|account holder|buyer|her|him|them) (?:already )?{about}{number}"
        r" times?\b{window}",
        purchases_at_merchant=count,
    ),
    rule(
        rf"{{ordinal}} (?:purchase|order|payment|transaction|visit|booking) (?:{_HERE}|here)",
        purchases_at_merchant=_nth_less_one,
    ),
    rule(
        rf"{{number}} (?:[a-z]+ )?(?:{_ANY_DEALS}|times)? ?(?:/|per |a |each |every )(?:month|mo\b|week|wk\b)",
        transactions_per_month=_per_month,
    ),
    rule(rf"{{number}} (?:[a-z]+ )?{_ANY_DEALS} (?:monthly|weekly)", transactions_per_month=_per_month),
    rule(rf"{{number}} (?:monthly|weekly) {_ANY_DEALS}", transactions_per_month=_per_month),
    rule(
        rf"monthly (?:{_ANY_DEALS}|volume|activity|pace|rate|frequency|(?:transaction|order) (?:count|volume))[:=]? ?"
        rf"(?:is |are |of |runs at )?{{about}}{{number}}(?! ?%)(?: {_ANY_DEALS})?",
        transactions_per_month=_per_month,
    ),
    rule(
        rf"(?:normal|typical|average|usual|ordinary|regular) (?:month|week) (?:brings|sees|has|shows|counts|holds"
        rf"|means|is)"
        rf" {{about}}{{number}} (?:[a-z]+ )?{_ANY_DEALS}",
        transactions_per_month=_per_month,
    ),
    rule(
        rf"(?:{_ANY_DEALS}) (?:per|a) (?:month|week)[:=]? ?(?:is |are )?{{about}}{{number}}",
        transactions_per_month=_per_month,
    ),
    rule(
        r"(?:no|without)(?: account| card| customer)? activity (?:for|in|within|over)(?: the)?(?: last|"
        r" past)? {about}{duration}",
        days_since_last=days,
    ),
    rule(
        r"nothing (?:has |had |was |is )?(?:happened|moved|seen|done|booked|recorded|posted)(?: (?:on|in|with)"
        r" (?:the|this)"
        r" (?:account|card|profile))? (?:for|in|over)(?: the)?(?: last| past)? {about}{duration}",
        days_since_last=days,
    ),
    rule(
        r"last (?:used|touched|accessed|logged in(?:to)?|paid (?:from|with)|transacted on)(?: (?:the|this|his|her"
        r"|their)"
        r" (?:account|card|profile))? {about}{ago}",
        days_since_last=days,
    ),
    rule(
        r"(?:dormant|inactive|idle|quiet|unused|not (?:been )?used|silent|asleep)(?: for| since| the last|"
        r" over)? {about}{duration}",
        days_since_last=days,
    ),
    rule(
        r"(?:last|latest|most recent|previous) (?:transaction|purchase|activity|login|payment|order|use|used|active"
        r"|seen|txn)"
        r"(?: was| on (?:the|this) account|:)?(?: was| is| dates (?:from|back)| happened| took place| occurred| came"
        r"| seen|:)?"
        r" {about}{ago}",
        days_since_last=days,
    ),
    rule(
        r"after {about}{duration} (?:of )?(?:inactivity|dormancy|silence|no activity|without (?:any )?activity)",
        days_since_last=days,
    ),
    rule(
        r"first (?:activity|transaction|purchase|payment|use|login) (?:in|for|after) {about}{duration}",
        days_since_last=days,
    ),
    rule(
        r"(?:{number}|no|zero) (?:(?:prior|previous|earlier|past|recent|known|recorded|historical"
        r"|lifetime) ){0,2}chargebacks?\b{window}",
        unless=r"\bmerchant\b",
        chargebacks=count_or_none_at_all,
    ),
    rule(
        r"chargebacks?(?: (?:history|count|record|cases|so far|on file))?(?:[:=]| is| are| shows) ?(?:{number}"
        r"|(?:none|no|zero)\b)"
        r"(?: (?:cases?|chargebacks?|entries))?",
        unless=r"\bmerchant\b",
        chargebacks=count_or_none_at_all,
    ),
    rule(r"(?:a|one) (?:prior|previous|earlier|past) chargeback\b", chargebacks=1.0),
    rule(r"never (?:had|filed|raised|made) (?:a |any )?chargebacks?\b", chargebacks=0.0),
)

_KINDS_OF_PAST = (
    r"(?:total|prior|previous|past|lifetime|completed|successful|earlier|historical|historic|clean"
    r"|settled|recorded|approved)"
)
_HISTORY: tuple[Rule, ...] = (
    # a sample of the history, not its length
    rule(rf"(?:last|latest|most recent|first|next) {{number}} {_ANY_DEALS}"),
    rule(
        rf"(?:{{number}}|no|zero) (?:[a-z]+ )?{_KINDS_OF_PAST} (?:[a-z]+ )?{_ANY_DEALS}(?! (?:over|above|under"
        r"|between|at|from|to|with|of|this|that|so|as|here)\b)",
        unless=r"\b(?:last|declined|failed|suspicious|flagged)\b",
        account_transactions=count_or_none_at_all,
    ),
    rule(
        rf"{{number}} {_ANY_DEALS} (?:on (?:the |this )?(?:account|file|record|profile)|to date|so far|in"
        rf" (?:the )?(?:account )?history|in total|overall)",
        account_transactions=count,
    ),
    rule(
        rf"(?:history of|made|completed|with|has|record of) {{about}}{{number}} {_DEALS}(?! (?:over|above|in|within"
        rf"|under|between|today|per|a ))",
        account_transactions=count,
        tier=1,
    ),
    rule(
        rf"(?:transaction|txn|order|purchase) (?:count|history)[:=]? ?(?:is |of )?{{number}}(?: {_ANY_DEALS})?",
        account_transactions=count,
    ),
    rule(
        r"no (?:transaction|purchase|order|payment) history|(?:very )?first (?:ever )?(?:transaction|payment"
        r"|purchase|order)"
        r" (?:ever|on (?:the|this) account)",
        account_transactions=0.0,
    ),
    rule(
        rf"{{number}} {_DEALS}(?! (?:over|above|in|within|under|between|from|at|to|today|tonight|per|a |each|were"
        rf"|was|failed|declined|{{day_word}}))(?! ?/)",
        tier=1,
        unless=r"\b(?:last|latest|past|recent|same|other|next|first)\b",
        account_transactions=count,
    ),
)


def read_ages(page: Page) -> None:
    """Ages of account, payment method and device."""
    read_all(_AGES, page)


def read_counts(page: Page) -> None:
    """Counts at the merchant, per month, of chargebacks, and the time since the last activity."""
    read_all(_COUNTS, page)


def read_history(page: Page) -> None:
    """How many transactions the account has. Last of the counts, since its wording is the least special."""
    read_all(_HISTORY, page)
