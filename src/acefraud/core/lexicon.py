"""The words for facts: how a named fact is spoken of in English, and how it is recognised there.

A fact that stands here is *known to the house*: the text reader looks for it, the scorecard may use it, and a
condition over it reads as a person would say it. Facts that are derived from the history of an entity are named after
a pattern (`HISTORY`) and spoken of after one. Any other column is a fact too; it is spoken of by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

Kind = Literal["number", "flag", "category"]


@dataclass(frozen=True, slots=True)
class FactWords:
    """How one fact is spoken of. Number templates hold ``{v}`` where the figure stands."""

    name: str
    kind: Kind
    noun: str
    unit: str = ""
    above: str = ""
    below: str = ""
    at_least: str = ""
    at_most: str = ""
    true: str = ""
    false: str = ""
    also: tuple[str, ...] = field(default=())
    """Further regular expressions by which a flag that holds is recognised in English."""
    share: bool = False
    """Whether a number is a share, which is spoken of in percent."""


def _number(name: str, noun: str, unit: str = "") -> FactWords:
    return FactWords(name, "number", noun, unit)


def _age(name: str, noun: str) -> FactWords:
    return FactWords(
        name,
        "number",
        f"age of the {noun}",
        "days",
        above=f"{noun} older than {{v}} days",
        below=f"{noun} younger than {{v}} days",
        at_least=f"{noun} at least {{v}} days old",
        at_most=f"{noun} at most {{v}} days old",
    )


def _times(name: str, noun: str, of: str) -> FactWords:
    return FactWords(
        name,
        "number",
        f"{noun} against {of}",
        "times",
        above=f"{noun} above {{v}} times {of}",
        below=f"{noun} below {{v}} times {of}",
        at_least=f"{noun} at least {{v}} times {of}",
        at_most=f"{noun} at most {{v}} times {of}",
    )


def _flag(name: str, true: str, false: str, *also: str) -> FactWords:
    return FactWords(name, "flag", name.replace("_", " "), true=true, false=false, also=also)


def _category(name: str, noun: str) -> FactWords:
    return FactWords(name, "category", noun)


LEXICON: dict[str, FactWords] = {
    words.name: words
    for words in (
        # the payment itself
        _number("amount", "amount"),
        _number("hour", "hour of day"),
        _flag("night", "between 11 PM and 6 AM", "not between 11 PM and 6 AM"),
        _category("merchant_category", "merchant category"),
        _category("channel", "channel"),
        _category("payment_method", "payment method"),
        # the account and its habits
        _age("account_age_days", "account"),
        _number("account_transactions", "transactions on the account"),
        _number("transactions_per_month", "transactions per month"),
        _number("usual_amount", "usual amount"),
        _number("usual_amount_max", "upper end of the usual amounts"),
        _times("amount_to_usual", "amount", "the usual"),
        _times("amount_to_usual_max", "amount", "the largest usual amount"),
        _number("larger_purchases", "earlier purchases of this size"),
        _number("purchases_at_merchant", "earlier purchases at this merchant"),
        _number("days_since_last", "days since the last activity"),
        _number("chargebacks", "earlier chargebacks"),
        _age("payment_method_age_days", "payment method"),
        _age("device_age_days", "device"),
        # the merchant
        _number("merchant_rating", "merchant rating"),
        _number("fraud_reports", "fraud reports on the merchant"),
        _number("fraud_report_window_days", "window of the fraud reports", "days"),
        # pace
        _number("failed_attempts", "failed attempts"),
        _number("recent_transactions", "transactions in the recent burst"),
        _number("recent_window_minutes", "length of the recent burst", "minutes"),
        _number("declined_before", "declined payments before this one"),
        _flag("velocity", "a burst of transactions", "no burst of transactions", r"velocity", r"rapid[- ]fire"),
        _flag(
            "escalating_amounts",
            "amounts that climb step by step",
            "no climbing amounts",
            r"testing pattern",
            r"(?:increasing|escalating) amounts",
        ),
        # the place
        _flag("location_change", "a place away from the usual ones", "in a usual place", r"unusual (?:location|place)"),
        _flag(
            "high_risk_country",
            "a high-risk country",
            "no high-risk country",
            r"high[- ]risk (?:places?|regions?|countr(?:y|ies))",
        ),
        _flag(
            "sanctioned",
            "a sanctioned place",
            "no sanctioned place",
            r"sanctioned (?:places?|regions?|countr(?:y|ies))",
        ),
        _flag("impossible_travel", "travel faster than possible", "no impossible travel", r"impossible travel"),
        _number("distance_km", "distance from the usual place", "km"),
        _flag("travel", "known travel", "no known travel", r"travel notice"),
        # the device and the way in
        _flag("vpn", "a VPN or proxy", "no VPN or proxy", r"\bvpn\b", r"\bproxy\b", r"\btor\b"),
        _flag("emulator", "an emulator", "no emulator", r"\bemulat(?:or|ed)\b"),
        _flag(
            "new_device", "a new device", "a known device", r"(?:new|unknown|unrecogni[sz]ed|never[- ]seen) devices?"
        ),
        _flag(
            "password_reset",
            "a recent password reset",
            "no recent password reset",
            r"password (?:was )?(?:reset|changed)",
        ),
        _flag(
            "contact_changed",
            "changed contact details",
            "unchanged contact details",
            r"(?:e-?mail|phone)[^.]{0,20} changed",
        ),
        _flag(
            "remote_access", "remote access software", "no remote access software", r"remote (?:access|desktop|control)"
        ),
        # who it is
        _flag(
            "kyc_missing",
            "identity checks missing",
            "identity checks complete",
            r"\bkyc\b[^.]{0,20}(?:missing|incomplete|pending|failed)",
        ),
        _flag("verified", "a verified history", "no verified history", r"verified (?:identity|customer|account|user)"),
        _flag(
            "strong_authentication",
            "strong authentication passed",
            "no strong authentication",
            r"\b3-?d ?s(?:ecure)?\b",
            r"biometric",
        ),
        _flag("vip", "a VIP customer", "not a VIP customer", r"\bvip\b"),
        _flag("business_account", "a business account", "not a business account", r"business account"),
        # the goods and where the money goes
        _flag("address_mismatch", "addresses that do not match", "addresses that match", r"address mismatch"),
        _flag("new_payee", "a new payee", "a known payee", r"(?:new|first-time) (?:payee|beneficiary|recipient)"),
        _flag(
            "funds_forwarded",
            "funds moved on at once",
            "funds not moved on",
            r"(?:forward|mov|pass)(?:ed|es|ing) (?:the )?(?:funds|money) on",
        ),
        _flag("crypto", "a crypto merchant", "no crypto merchant", r"\bcrypto(?:currency)?\b", r"\bbitcoin\b"),
        _flag("gift_cards", "gift cards", "no gift cards", r"gift cards?"),
        _flag("prepaid_card", "a prepaid card", "no prepaid card", r"prepaid"),
        _flag(
            "first_time_merchant",
            "a first purchase at this merchant",
            "a known merchant",
            r"first[- ]time (?:at )?(?:this )?merchant",
        ),
        _flag(
            "disputes_before",
            "disputes on the account before",
            "no disputes before",
            r"(?:prior|previous|earlier) disputes?",
        ),
    )
}


HISTORY: tuple[FactWords, ...] = (
    _number("{e}_count_{w}", "transactions of the {e} in {w}"),
    _number("{e}_sum_{w}", "total amount of the {e} in {w}"),
    _number("{e}_mean_{w}", "mean amount of the {e} in {w}"),
    _number("{e}_max_{w}", "highest amount of the {e} in {w}"),
    _times("{e}_amount_to_usual", "amount", "the {e}'s usual"),
    _times("{e}_amount_to_usual_in_category", "amount", "the {e}'s usual in this category"),
    _number("{e}_hours_since_last", "hours since the {e}'s last transaction"),
    _number("{e}_km_from_last", "distance from the {e}'s last place", "km"),
    _number("{e}_kmh_from_last", "speed from the {e}'s last place", "km/h"),
    _number("{e}_distinct_{o}_{w}", "different {os} of the {e} in {w}"),
    FactWords(
        "{e}_new_{o}",
        "flag",
        "whether this {o} is new to the {e}",
        true="this {o} is new to the {e}",
        false="this {o} is not new to the {e}",
    ),
    _number("{e}_known_frauds_{w}", "known frauds of the {e} in {w}"),
    FactWords("{e}_known_fraud_share_{w}", "number", "share of the {e}'s labels in {w} that were fraud", share=True),
)
"""Facts from the history of an entity ``{e}``, perhaps together with another ``{o}``, over a window ``{w}``."""

_PARTS = {"e": r"(?P<e>(?!(?:is|has|was)_)\w+?)", "o": r"(?P<o>\w+?)", "w": r"(?P<w>[1-9]\d*[hd])"}
_HISTORY_NAMES = tuple((re.compile(words.name.format_map(_PARTS)), words) for words in HISTORY)


def words_for(name: str) -> FactWords | None:
    """The words for a fact of the house, or None for a column that is only known by its name.

    >>> words_for("terminal_known_frauds_7d").noun
    'known frauds of the terminal in the last 7 days'
    """
    return LEXICON.get(name) or _history_words(name)


@lru_cache(maxsize=4096)
def _history_words(name: str) -> FactWords | None:
    for pattern, words in _HISTORY_NAMES:
        if match := pattern.fullmatch(name):
            return _filled(name, words, match.groupdict())
    return None


def _filled(name: str, words: FactWords, parts: dict[str, str]) -> FactWords:
    spoken = {part: text.replace("_", " ") for part, text in parts.items()}
    spoken |= {"v": "{v}", "w": _window(parts.get("w", "1h")), "os": _several(spoken.get("o", ""))}
    templates = ("noun", "above", "below", "at_least", "at_most", "true", "false")
    return replace(words, name=name, **{key: getattr(words, key).format_map(spoken) for key in templates})


def history_name(name: str, spoken: Mapping[str, str | None]) -> str:
    """The name of a fact after its pattern and the parts as they were spoken; any other name stays.

    >>> history_name("{e}_distinct_{o}_{w}", {"entity": "ip address", "others": "cards", "window": "7 days"})
    'ip_address_distinct_card_7d'
    """
    if "{" not in name:
        return name
    others = spoken.get("others") or ""
    single = others.removesuffix(" values")
    other = spoken.get("other") or (single if single.endswith("s") and single != others else others[:-1])
    number, _, unit = (spoken.get("window") or "").rpartition(" ")
    parts = {"e": spoken.get("entity") or "", "o": other, "w": f"{number or 1}{unit[:1].lower()}"}
    return name.format_map({part: text.replace(" ", "_") for part, text in parts.items()})


def _several(noun: str) -> str:
    """A noun in the plural, such that the noun can be told from it.

    >>> _several("terminal"), _several("ip address")
    ('terminals', 'ip address values')
    """
    return f"{noun} values" if noun.endswith("s") else f"{noun}s"


def _window(length: str) -> str:
    """A window in words.

    >>> _window("1h"), _window("7d")
    ('the last hour', 'the last 7 days')
    """
    unit = "hour" if length[-1] == "h" else "day"
    return f"the last {unit}" if length[:-1] == "1" else f"the last {length[:-1]} {unit}s"
