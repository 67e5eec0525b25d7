"""Reading a bullet that arrives as text: its condition, the verdict it argues for, and what it claims.

A bullet of which a part is not understood gets no condition: it is a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from acefraud.core.bullet import Claim
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.rules.reader import ReadRule, Vocabulary, read_rule

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
_EXAMPLES = re.compile(r"\((?:[A-Z][\w ]+(?:, )?)+\)")
"""Names in parentheses are examples of the words before them: "high-risk countries (Nigeria, Romania)"."""
_VERDICTS = re.compile(rf"(?P<not>{_NOT})?\b(?:(?P<declines>{_DECLINE})|(?P<approves>{_APPROVE}))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was understood of the words of a bullet."""

    rule: ReadRule
    argues: Verdict | None
    claim: Claim | None

    @property
    def condition(self) -> Condition | None:
        """When it applies; None if that was not understood."""
        return self.rule.condition


@lru_cache(maxsize=1024)
def read_bullet(content: str) -> Reading:
    """What a bullet says in terms of the facts that the engine knows by name.

    >>> reading = read_bullet("VPN from high-risk countries (Nigeria, Romania) + crypto merchant = 95% fraud")
    >>> str(reading.condition)
    'crypto is true and high_risk_country is true and vpn is true'
    >>> reading.argues, reading.claim.fraud_share
    (<Verdict.DECLINE: 'DECLINE'>, 0.95)
    >>> read_bullet("Be careful with customers who sound nervous").condition is None
    True
    """
    return read_bullet_with(content, Vocabulary.general())


def read_bullet_with(content: str, vocabulary: Vocabulary) -> Reading:
    """What a bullet says in terms of the facts at hand: its condition, its verdict, and the fraud share it claims."""
    claim, base_rate = _read_claim(content)
    measured = _measured(content)
    rule = read_rule(_EXAMPLES.sub(" ", content if measured is None else content[: measured.start()]), vocabulary)
    understood = claim is None and rule.condition is not None
    return Reading(rule, rule.argues if understood else _read_verdict(content, claim, base_rate), claim)


def read_claim(content: str) -> Claim | None:
    """The fraud share that a bullet claims."""
    claim, _ = _read_claim(content)
    return claim


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
