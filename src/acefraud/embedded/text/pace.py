"""Pace: failed and declined tries, and how many transactions came in how short a time."""

from __future__ import annotations

from acefraud.core.transaction import FactValue

from .page import Page
from .rules import Found, Rule, count, count_or_none_at_all, days, read_all, rule

_DEALS = (
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


def _burst(found: Found) -> FactValue | None:
    return count(found) if _is_short(found) else None


def _burst_minutes(found: Found) -> FactValue | None:
    span = days(found)
    return round(span * 1_440, 2) if _is_short(found) and isinstance(span, float) else None


def _is_short(found: Found) -> bool:
    span = days(found)
    return isinstance(span, float) and 0 < span <= _LONGEST_BURST_DAYS


_RULES: tuple[Rule, ...] = (
    rule(
        rf"(?:{{number}}|no|zero) (?:[a-z]+ )?declined (?:[a-z]+ ){{0,2}}?{_TRIES}{{window}}",
        failed_attempts=count_or_none_at_all,
        declined_before=count_or_none_at_all,
    ),
    rule(
        rf"(?:{{number}}|no|zero|without any) (?:[a-z]+ )?{_WRONG} (?:[a-z0-9]+ ){{0,2}}?(?:{_TRIES}"
        rf"|{_DEALS}\b){{window}}",
        failed_attempts=count_or_none_at_all,
    ),
    rule(rf"{{number}} (?:[a-z]+ )?{_TRIES} (?:that )?(?:had )?failed{{window}}", failed_attempts=count),
    rule(
        r"(?:failed|mistyped|got it wrong|wrong pin|wrong password|wrong cvv) {number} times{window}",
        failed_attempts=count,
    ),
    rule(rf"{_WRONG} (?:[a-z]+ ){{0,2}}?{_TRIES} ?[:=] ?(?:{{number}}|none)", failed_attempts=count_or_none_at_all),
    rule(r"{number} (?:[a-z]+ ){0,2}?failures{window}", failed_attempts=count),
    rule(
        rf"(?:{{number}}|no|zero|without any) (?:(?:prior|previous|earlier|recent|past|preceding|further)"
        rf" )?(?:declines?\b(?! (?:reason|code|rule|rate))"
        rf"|(?:declined|refused|rejected|blocked) {_DEALS}){{window}}",
        declined_before=count_or_none_at_all,
    ),
    rule(r"(?:declined|refused|rejected) {number} times{window}", declined_before=count),
    rule(
        rf"(?:{{number}}|no|zero|none of the) (?:[a-z]+ )?{_DEALS} (?:were |was |have been |has been |had been |got )?"
        rf"(?:declined|refused|rejected|turned down|blocked)\b{{window}}",
        declined_before=count_or_none_at_all,
    ),
    rule(
        rf"(?:turned down|declined|refused|rejected|blocked) (?:{{number}}|no) (?:[a-z]+ )?{_DEALS}\b{{window}}",
        declined_before=count_or_none_at_all,
    ),
    rule(r"declines?[:=] ?(?:{number}|none)", declined_before=count_or_none_at_all),
    rule(
        rf"{{number}} (?:[a-z-]+ ){{0,2}}?{_DEALS} (?:[a-z]+ ){{0,2}}?(?:in|within|over|during|inside)"
        rf"(?: (?:the|a|just|only|under|less|than|span|of|space|last|past|single|course))* {{about}}{{duration}}",
        unless=r"\bchargebacks?\b",
        recent_transactions=_burst,
        recent_window_minutes=_burst_minutes,
    ),
    rule(
        rf"in (?:the )?(?:last |past |just |under ){{0,2}}{{duration}},? (?:[a-z]+ ){{0,3}}?{{number}}"
        rf" (?:[a-z-]+ ){{0,2}}?{_DEALS}\b",
        recent_transactions=_burst,
        recent_window_minutes=_burst_minutes,
    ),
    rule(
        r"{number} in (?:the )?(?:last|past) {duration}",
        unless=r"report|complaint|chargeback|over|above",
        recent_transactions=_burst,
        recent_window_minutes=_burst_minutes,
    ),
    rule(
        rf"{{number}} (?:[a-z-]+ ){{0,2}}?{_DEALS} (?:in|within) (?:a few |a couple of |a matter of )?(?:minutes"
        rf"|seconds)\b",
        recent_transactions=count,
        velocity=True,
    ),
    rule(
        rf"(?:burst|flurry|run|series|string|barrage|rush|spree) of {{about}}{{number}} (?:[a-z-]+ )?{_DEALS}\b",
        unless=r"\b(?:not?|never|without)\b",
        recent_transactions=count,
        velocity=True,
    ),
    rule(
        rf"{{number}} (?:[a-z-]+ ){{0,2}}?{_DEALS} (?:[a-z]+ ){{0,2}}?in (?:one|a|a single|{{count}}) (?:burst|go"
        rf"|rush|flurry)\b",
        unless=r"\b(?:not?|never|without)\b",
        recent_transactions=count,
        velocity=True,
    ),
    rule(
        rf"{{number}} (?:[a-z-]+ ){{0,2}}?{_DEALS} (?:[a-z]+ ){{0,2}}?(?:in (?:(?:quick|rapid|close|fast) succession"
        rf"|short order)|back[- ]to[- ]back"
        rf"|one after (?:another|the other))",
        unless=r"\b(?:not?|never|without)\b",
        recent_transactions=count,
        velocity=True,
    ),
)


def read_pace(page: Page) -> None:
    """Failures, declines and bursts."""
    read_all(_RULES, page)
