"""Log lines: ``amt=1250.00 acct_age=3d vpn=Y``. Keys are known under a few names each, and under their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acefraud.core.lexicon import LEXICON
from acefraud.core.transaction import FactValue

from .figures import MARKERS, Figure
from .page import Page

_FIGURES = f"[{MARKERS['money']}-{MARKERS['identifier']}]"
_PAIR = re.compile(
    rf"(?<![\w.])([a-z][a-z0-9_-]{{0,40}}(?: [a-z][a-z0-9_-]{{0,20}}){{0,3}})[\"']? ?[=:] ?[\"']?({_FIGURES}"
    rf"|[a-z][a-z_-]{{0,20}})"
)
_RELATIVE = re.compile(r"(?:[\w-]+ )*?(?:ratio|multiple|factor|times|to|against|versus|vs)\b")
"""A key that sets one thing against another names no sum or count of its own."""
_NOT_OF_A_KEY = re.compile(r"[^a-z0-9_\"' -]")
_LONGEST_KEY, _LONGEST_VALUE = 110, 25
"""Bounds on how far a pair can reach to either side of its separator."""
_YES = frozenset(["y", "yes", "true", "t", "on", "detected", "active", "present"])
_NO = frozenset(["n", "no", "false", "f", "off", "none", "absent", "negative"])
_PASSED = frozenset(
    ["y", "yes", "true", "pass", "passed", "ok", "complete", "completed", "done", "success", "verified", "approved"]
)
_FAILED = frozenset(["n", "no", "false", "fail", "failed", "incomplete", "missing", "pending", "none", "expired"])

_NUMBERS: dict[str, str] = {
    "amt": "amount", "txn amount": "amount", "transaction amount": "amount", "total": "amount", "value": "amount",
    "acct age": "account_age_days", "account age": "account_age_days", "age": "account_age_days",
    "tenure": "account_age_days", "card age": "payment_method_age_days",
    "payment method age": "payment_method_age_days",
    "pm age": "payment_method_age_days", "device age": "device_age_days", "dev age": "device_age_days",
    "txns": "account_transactions", "txn count": "account_transactions", "tx count": "account_transactions",
    "prior txns": "account_transactions", "total txns": "account_transactions",
    "txns per month": "transactions_per_month",
    "avg": "usual_amount", "avg amt": "usual_amount", "avg amount": "usual_amount", "avg ticket": "usual_amount",
    "max amt": "usual_amount_max", "max amount": "usual_amount_max", "rating": "merchant_rating",
    "mrating": "merchant_rating", "reports": "fraud_reports", "fails": "failed_attempts",
    "failed": "failed_attempts", "failed logins": "failed_attempts", "declines": "declined_before",
    "dist": "distance_km", "distance": "distance_km", "cb": "chargebacks", "last active": "days_since_last",
    "dormant": "days_since_last", "time": "hour", "hr": "hour", "hod": "hour",
}  # fmt: skip
_FLAGS: dict[str, str] = {
    "proxy": "vpn", "tor": "vpn", "new dev": "new_device", "newdevice": "new_device", "pwd reset": "password_reset",
    "pw reset": "password_reset", "sim swap": "contact_changed", "email changed": "contact_changed",
    "phone changed": "contact_changed", "rat": "remote_access", "prepaid": "prepaid_card", "giftcard": "gift_cards",
    "gift card": "gift_cards", "payee new": "new_payee", "addr mismatch": "address_mismatch", "biz": "business_account",
    "business": "business_account", "first time": "first_time_merchant", "geo change": "location_change",
    "disputes": "disputes_before", "emu": "emulator", "travel notice": "travel", "sanctions": "sanctioned",
}  # fmt: skip
# key -> flag, and what the flag is when the check was passed
_CHECKS: dict[str, tuple[str, bool]] = {
    "kyc": ("kyc_missing", False), "kyc status": ("kyc_missing", False), "2fa": ("strong_authentication", True),
    "mfa": ("strong_authentication", True), "otp": ("strong_authentication", True), "sca": ("strong_authentication",
    True),
    "3ds": ("strong_authentication", True), "avs": ("address_mismatch", False), "id verified": ("verified", True),
}  # fmt: skip
for _name, _words in LEXICON.items():
    {"number": _NUMBERS, "flag": _FLAGS}.get(_words.kind, {}).setdefault(_name.replace("_", " "), _name)
_UNIT = re.compile(r" (?:in )?(days?|d|hours?|h|months?|mo|years?|y|minutes?|min|km|usd|eur|gbp)$")
_PER_UNIT = {"h": 1 / 24, "d": 1.0, "m": 30.0, "y": 365.0}


def _known(key: str) -> tuple[str, str]:
    """The longest end of a key that is known, and the unit it names, if any."""
    words = re.sub(r"[_-]+", " ", key).split()
    for start in range(len(words)):
        name = " ".join(words[start:])
        if name in _NUMBERS or name in _FLAGS or name in _CHECKS:
            return name, ""
        unit = _UNIT.search(name)
        if unit and name[: unit.start()] in _NUMBERS:
            return name[: unit.start()], unit[1]
    return "", ""


# which kinds of figure may stand for a number; any other number takes a count
_ACCEPTS: dict[str, tuple[str, ...]] = {
    "recent_window_minutes": ("duration", "count"),
    "hour": ("clock", "count"),
    "distance_km": ("distance", "count"),
    "merchant_rating": ("rating", "count"),
    "days_since_last": ("duration", "count"),
    **dict.fromkeys(("amount", "usual_amount", "usual_amount_max"), ("money", "count")),
}
_BELOW = {"hour": 24.0, "merchant_rating": 5.01}


def _number(fact: str, unit: str, figure: Figure) -> FactValue | None:
    """A figure as the number that a fact needs, or None where it is of another kind."""
    value = figure.middle
    if fact.endswith("_days"):  # a bare count is an age only where the key names the unit
        per = 1 / 1_440 if unit.startswith("min") else _PER_UNIT.get(unit[:1], 0.0)
        value = value * per if figure.kind == "count" else value
        accepted = figure.kind == "duration" or (figure.kind == "count" and per > 0)
        return round(value, 6) if accepted else None
    if figure.kind not in _ACCEPTS.get(fact, ("count", "count_range")) or value >= _BELOW.get(fact, float("inf")):
        return None
    in_days = fact == "recent_window_minutes" and figure.kind == "duration"
    return round(value * 1_440, 2) if in_days else round(value, 6)


def _flag(name: str, value: str, figure: Figure | None) -> tuple[str, bool] | None:
    """A flag from a key and a word, or from 1 and 0."""
    if figure is not None:
        value = {0.0: "no", 1.0: "yes"}.get(figure.low, "") if figure.kind == "count" else ""
    if name in _CHECKS:
        fact, when_passed = _CHECKS[name]
        if value in _PASSED or value in _FAILED:
            return fact, when_passed == (value in _PASSED)
        return None
    if value in _YES or value in _NO:
        return _FLAGS[name], value in _YES
    return None


def _pairs(text: str) -> Iterator[re.Match[str]]:
    """The pairs of a text from left to right. Each has one separator, so only what stands around those is tried."""
    free = 0
    for sign in _NOT_OF_A_KEY.finditer(text):
        at = sign.start()
        match = sign[0] in "=:" and _PAIR.search(text, max(free, at - _LONGEST_KEY), at + _LONGEST_VALUE)
        if match and match.start() < at:
            free = match.end()
            yield match
        free = max(free, at + 1)


def read_log_lines(page: Page) -> None:
    """Facts given as key and value."""
    for match in _pairs(page.plain):
        name, unit = _known(match[1])
        if not name:
            continue
        inside = page.figures_in(*match.span(2))
        figure = page.figures[inside[0]] if len(inside) else None
        start, end = match.span()
        if name in _NUMBERS:
            if _RELATIVE.match(match[1]):
                continue
            value = _number(_NUMBERS[name], unit, figure) if figure else None
            if figure and value is not None and not page.taken[inside[0]]:
                page.claim(_NUMBERS[name], value, match.start(2), end, currency=figure.currency)
            continue
        said = _flag(name, match[2], figure)
        if said:
            page.claim_flag(*said, start, end)
            page.take(*match.span(2))
