"""Reading a bullet that arrives as plain English: its condition, the verdict it argues for, and what it claims.

A bullet of which a part is not understood gets no condition and is kept as prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from acefraud.core.bullet import Claim
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.rules.parse_english import read_condition

_MEASURED = re.compile(
    r":\s*[\d,]+ of [\d,]+ past cases were fraud \((?P<share>[\d.]+)%[^)]*\)(?:, against (?P<base>[\d.]+)% of all)?"
)
_IN_QUOTES = re.compile(r"\"(?:[^\"\\]|\\.)*\"|`[^`]*`")
_SHARE = re.compile(
    r"(?P<share>\d{1,3}(?:\.\d+)?)\s?%\s*(?:are |is |were |was |of (?:them |cases )?(?:are |were )?)?"
    r"(?:confirmed |likely |chance of )?(?P<what>fraud|legit|genuine|safe|approved?)",
    re.IGNORECASE,
)
_FOR_DECLINING = r"declin\w*|reject\w*|block\w*|deny|denied|fraud\w*(?!\s+reports?)|suspicious|risky|scam"
_FOR_APPROVING = r"approv\w*|accept\w*|allow\w*|legit\w*|genuine|safe"
_PLACE = r"(?!\s+(?:countr|place|region))"
_DECLINE = rf"(?:{_FOR_DECLINING}|high[- ]risk{_PLACE})"
_APPROVE = rf"(?:{_FOR_APPROVING}|low[- ]risk)\b"
_NOT = r"\b(?:not|no|never|rarely|isn't|aren't|don't|doesn't)(?: to| be| always)? "
_VERDICTS = re.compile(rf"(?P<not>{_NOT})?\b(?:(?P<declines>{_DECLINE})|(?P<approves>{_APPROVE}))", re.IGNORECASE)
_CONCLUSION = re.compile(
    r"\s*(?:=>|->|→|=|:|,?\s*\bthen\b|\b(?:is|are|means?|indicates?|suggests?|signals?|should be)\b)\s*"
    r"(?:(?:almost|nearly|very|most|usually|often|likely|probably|always|about|a|strongly|to|not|never|do not) )*"
    r"(?:\d{1,3}(?:\.\d+)?\s?% (?:of the time )?)?"
    rf"(?:{_DECLINE}|{_APPROVE})(?: (?:risk|cases?|rate))?",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^\s*(?:always |usually |never |do not |don't )?(?:decline|reject|block|deny|approve|accept|allow|flag)\b"
    r"(?:\s+as fraud)?\s*(?:when|if|where|:)?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was understood of the words of a bullet."""

    condition: Condition | None
    argues: Verdict | None
    claim: Claim | None


@lru_cache(maxsize=1024)
def read_bullet(content: str) -> Reading:
    """What a bullet in English says: its condition, the verdict it argues for, and the fraud share it claims.

    >>> reading = read_bullet("VPN from high-risk countries (Nigeria, Romania) + crypto merchant = 95% fraud")
    >>> str(reading.condition)
    'crypto is true and high_risk_country is true and vpn is true'
    >>> reading.argues, reading.claim.fraud_share
    (<Verdict.DECLINE: 'DECLINE'>, 0.95)
    >>> read_bullet("Be careful with customers who sound nervous").condition is None
    True
    """
    claim, base_rate = _read_claim(content)
    return Reading(read_condition(_conditional_part(content)), _read_verdict(content, claim, base_rate), claim)


def _measured(content: str) -> re.Match[str] | None:
    """Where the measured record is. One between quotes is part of a category that only looks like a record."""
    return _MEASURED.search(_IN_QUOTES.sub(lambda quote: " " * len(quote[0]), content))


def _read_claim(content: str) -> tuple[Claim | None, float | None]:
    measured = _measured(content)
    if measured:
        base = measured["base"]
        share = float(measured["share"]) / 100
        return Claim(fraud_share=share, words=measured[0].lstrip(": ")), float(base) / 100 if base else None
    stated = _SHARE.search(content)
    if stated is None:
        return None, None
    share = min(1.0, float(stated["share"]) / 100)
    if not stated["what"].lower().startswith("fraud"):
        share = 1 - share
    return Claim(fraud_share=share, words=stated[0]), None


def _read_verdict(content: str, claim: Claim | None, base_rate: float | None) -> Verdict | None:
    if claim is not None:
        return Verdict.of(claim.fraud_share >= (0.5 if base_rate is None else base_rate))
    found = {bool(verdict["declines"]) != bool(verdict["not"]) for verdict in _VERDICTS.finditer(content)}
    return Verdict.of(found.pop()) if len(found) == 1 else None


def _conditional_part(content: str) -> str:
    measured = _measured(content)
    if measured:
        return content[: measured.start()]
    return _OPENING.sub("", _CONCLUSION.sub(" ; ", content)).strip(" ;.")
