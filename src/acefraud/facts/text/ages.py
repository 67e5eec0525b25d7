"""How old the account, the payment method and the device are."""

from __future__ import annotations

from .document import Document
from .fact_patterns import FactPattern, days, read_all, states

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

_AGES: tuple[FactPattern, ...] = (
    # cards and devices first: "age" alone means the account
    states(rf"{_CARD} age{_BEEN}[:=]? ?{{about}}{{duration}}", payment_method_age_days=days),
    states(
        rf"{_CARD}{_BEEN} (?:first )?{{about}}(?:added|linked|registered|tokeni[sz]ed|enrolled|saved|attached|put on"
        rf" file|stored)"
        rf"(?: (?:to|on|in) (?:the |this |her |his |their )?(?:account|file|wallet|profile))? {{about}}{{ago}}",
        payment_method_age_days=days,
    ),
    states(
        rf"(?:added|linked|registered|enrolled|saved) (?:a |the |this |their |his |her )?(?:new |second "
        rf"|different )?{_CARD} {{about}}{{ago}}",
        payment_method_age_days=days,
    ),
    states(
        rf"{_CARD}{_BEEN} (?:(?:successfully |already |in |on |actively )?(?:used|on file|in use|use|file|linked"
        rf"|known|registered|active|held|(?:on|to|with) {_THE_ACCOUNT}))"
        rf"(?: successfully| (?:to|on|with) {_THE_ACCOUNT})? (?:for |since ){{about}}{{duration}}",
        payment_method_age_days=days,
    ),
    states(rf"{_CARD}(?: has been| is)? on file {{about}}{{duration}}(?! ago)", payment_method_age_days=days),
    states(rf"{{duration}}[- ]old {_CARD}", payment_method_age_days=days),
    states(
        rf"{_CARD}(?: on (?:the )?(?:file|record|account)| in use| used)?{_BEEN} (?:now )?{{about}}{{duration}}[- ]old",
        payment_method_age_days=days,
    ),
    states(
        rf"(?:used|had|held|known|kept) (?:this|the|that|his|her|their|the same) {_CARD} (?:on file )?"
        rf"(?:for|since) {{about}}{{duration}}",
        payment_method_age_days=days,
    ),
    states(rf"device(?: fingerprint| id)? age{_BEEN}[:=]? ?{{about}}{{duration}}", device_age_days=days),
    states(
        rf"(?:device|phone|handset|laptop|browser|fingerprint){_BEEN} (?:first |initially |{{about}})?(?:seen"
        rf"|registered|enrolled|added|bound"
        rf"|linked|paired|recogni[sz]ed|used|observed)(?: on (?:the |this )?account)? {{about}}{{ago}}",
        device_age_days=days,
    ),
    states(
        rf"(?:device|phone|handset|laptop|browser|fingerprint){_BEEN} (?:already )?(?:known|registered|enrolled"
        rf"|trusted|bound|linked|used|in use"
        rf"|on file)(?: (?:to|with|by|on) (?:us|{_THE_ACCOUNT}))? (?:for |since ){{about}}{{duration}}",
        device_age_days=days,
    ),
    states(
        r"(?:known|used|had|owned|seen|recogni[sz]ed|trusted) (?:this|the|that|his|her|their|the same) (?:same )?"
        r"(?:device|phone|handset|laptop|browser) (?:for|since) {about}{duration}",
        device_age_days=days,
    ),
    states(r"{duration}[- ]old (?:device|handset|fingerprint)", device_age_days=days),
    states(rf"(?:device|fingerprint)(?: in use| used)?{_BEEN} {{about}}{{duration}}[- ]old", device_age_days=days),
    states(
        rf"(?:(?:account|acct|profile|user|membership)(?:'s)?[ _])?(?:age|tenure)\b{_BEEN}[:=]? ?{{about}}{{duration}}",
        unless=r"\b(?:card|device|domain|site|merchant|customer|cardholder|client|person)(?:'s)? age",
        account_age_days=days,
    ),
    states(r"{duration}[- ]old (?:[a-z]+ ){0,2}(?:account|acct|profile|membership|wallet)\b", account_age_days=days),
    states(
        rf"(?:account|acct|profile|membership|relationship){_BEEN} (?:still )?{{about}}(?:opened|created|registered"
        rf"|established|set up|open"
        rf"|active|activated|started|made|held|dates|existed|around|in existence)? ?(?:online )?(?:for |back"
        rf" )?{{about}}"
        rf"(?:{{ago}}|{{duration}}[- ]old|(?<=for ){{duration}})",
        unless=_NOT_OPENING,
        account_age_days=days,
    ),
    states(
        rf"(?:account|acct|profile|membership|relationship)(?:'s history)?(?:{_BEEN}| has| had) (?:still )?(?:open"
        rf"|opened|active"
        rf"|existed|in existence|goes back|going back|reaches back|dates back|stretches back|spans|on (?:our|the) books"
        rf"|with us)(?: for| by| over)? {{about}}{{duration}}",
        unless=_NOT_OPENING,
        account_age_days=days,
    ),
    states(
        r"(?:held|had|kept|owned|run|maintained|operated) (?:this|the|an|his|her|their) account (?:for|since)"
        r" {about}{duration}",
        account_age_days=days,
    ),
    states(
        r"(?:opened|created|registered|signed[- ]up|joined|onboarded|enrolled)(?: (?:the |an |this "
        r"|their )?account)? {about}{ago}",
        unless=_NOT_ACCOUNT,
        account_age_days=days,
    ),
    states(
        r"(?:customer|client|member|cardholder|user|with us|on (?:our|the) books|account ?holder|with the bank|banks"
        r" with us)(?: with"
        r" us)? (?:of|for) "
        r"{about}{duration}",
        account_age_days=days,
    ),
    states(r"(?:customer|client|member|account) \({about}{duration}\)", account_age_days=days),
    states(
        r"{duration}[- ](?:long )?(?:customer|client|relationship|tenure|member|account holder|account history"
        r"|account)\b",
        account_age_days=days,
    ),
)


def read_ages(document: Document) -> None:
    """Ages of account, payment method and device."""
    read_all(_AGES, document)
