"""Bullets as a model is shown them: with the figures that were measured, and no others."""

from __future__ import annotations

import re

from acefraud.core.bullet import Bullet
from acefraud.core.english import say
from acefraud.llm.outside_text import cut, on_one_line

_PERCENT = r"\s*(?:[%％﹪٪‰]|per\s?cent\b|pct\b)"
_FIGURE = rf"(?<!\d)\d[\d.,]*+(?:\s*(?:-|–|—|to)\s*\d[\d.,]*+)?{_PERCENT}"
_FRAUD = r"(?:fraud\w*|legit\w*|genuine|honest|safe)"
_WERE = rf"(?:were|was|are|is)\s+(?:\w+\s+){{0,2}}?{_FRAUD}"
_STATED = re.compile(
    rf":?\s*(?<!\d)\d[\d,]*+\s+(?:out\s+of|of|in)\s+\d[\d,]*+(?:\s+\w+){{0,3}}?\s+{_WERE}(?:\s*\([^()]*\))?"
    rf"(?:,?\s+against\s+{_FIGURE}\s+of\s+all)?"
    rf"|{_FIGURE}\s*(?:{_WERE}|(?:of\s+)?(?:(?:confirmed|likely|chance|probability)\s+(?:of\s+)?)?{_FRAUD}"
    r"(?:\s+(?:risk|cases?|rate|share))?)",
    re.IGNORECASE,
)
"""A share of fraud that somebody stated, with the words that belong to it."""
_ANY_FIGURE = re.compile(rf"{_FIGURE}|[%％﹪٪‰]\d[\d.,]*+", re.IGNORECASE)
_HANGING = re.compile(r"\(\s*\)|\s*(?:=>|->|→|=)\s*(?=[,;.]|$)|\s+(?=[,;])")
_HANGING_LAST = re.compile(r"\s+(?:is|are|means?|in|at|about|with)$", re.IGNORECASE)
_SAID = "\ue000"
"""Stands for the words of the condition while figures are cut out around them."""


def bullet_line(bullet: Bullet) -> str:
    """One line for a bullet: its id, what it argues for, its words, and what was measured of it.

    >>> from acefraud.core.bullet import Claim
    >>> claim = Claim(fraud_share=0.95, words="95% fraud")
    >>> bullet_line(Bullet(id="b-1234abcd", content="VPN at night = 95% fraud", argues="DECLINE", claim=claim))
    '[b-1234abcd] DECLINE, unverified: VPN at night'
    """
    label = str(bullet.argues) if bullet.argues else "note"
    words = _without_figures(bullet)
    if bullet.evidence is not None and bullet.verified:
        base = percent(bullet.evidence.base_rate)
        measured = f"{bullet.evidence.in_words()}, against {base} of all"
        return f"[{on_one_line(bullet.id)}] {label}: {words}: {measured}"
    return f"[{on_one_line(bullet.id)}] {label}, unverified: {words}"


def percent(share: float) -> str:
    """A share in percent, with as many digits as say something.

    >>> percent(0.4), percent(0.0081)
    ('40%', '0.81%')
    """
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"


def _without_figures(bullet: Bullet) -> str:
    """Its words without any share that is stated in them. Thresholds of its own condition stay: they are no claims."""
    words = on_one_line(bullet.content).replace(_SAID, "")
    said = on_one_line(say(bullet.condition)) if bullet.condition else ""
    found = re.search(rf"(?<![\w.,]){re.escape(said)}(?![\w.,]*{_PERCENT}|\w)", words, re.IGNORECASE) if said else None
    if found:
        words = f"{words[: found.start()]}{_SAID}{words[found.end() :]}"
    claimed = on_one_line(bullet.claim.words) if bullet.claim else ""
    words = _uncounted(words, claimed)
    if found:
        words = re.sub(rf"{_SAID}{_PERCENT}", _SAID, words, flags=re.IGNORECASE).replace(_SAID, found[0])
    return cut(words or said or "a share that nobody measured")


def _uncounted(words: str, claimed: str) -> str:
    """The words without stated shares; the claim is looked for last, as it may be but the end of a range."""
    words = _STATED.sub(" ", words)
    if any(map(str.isdigit, claimed)):
        words = words.replace(claimed, " ")
    words = " ".join(_HANGING.sub("", " ".join(words.split())).split())
    words = _HANGING_LAST.sub("", words.strip(" :;,.=-–>→"))
    return _ANY_FIGURE.sub("some share", words)
