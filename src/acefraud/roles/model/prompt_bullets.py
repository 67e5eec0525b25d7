"""Bullets in prompts: what the engine states about a bullet, and separately its words, which are data.

The words of a bullet can come from anywhere: a category of the data, an imported playbook, the reply of a model.
Figures are removed from them, so that a model sees measured ones only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from acefraud.core.bullet import Bullet, Status, bullet_id
from acefraud.core.comparison import Test, TestValue
from acefraud.core.condition import Condition
from acefraud.display.visible_text import visible
from acefraud.roles.model.masking import Masker
from acefraud.roles.model.prompt_text import cut, on_one_line
from acefraud.rules.english import MOST_OF_A_VALUE, say

MAX_WORDS = 500
"""The most characters of the words of one bullet."""
_OWN_ID = re.compile(r"b-[0-9a-f]{1,8}")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

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
"""A stated share of fraud, with the words that belong to it."""
_ANY_FIGURE = re.compile(rf"{_FIGURE}|[%％﹪٪‰]\d[\d.,]*+", re.IGNORECASE)
_DANGLING = re.compile(r"\(\s*\)|\s*(?:=>|->|→|=)\s*(?=[,;.]|$)|\s+(?=[,;])")
_DANGLING_END = re.compile(r"\s+(?:is|are|means?|in|at|about|with)$", re.IGNORECASE)
_PLACEHOLDER = "\ue000"
"""Placeholder for the words of the condition while figures around them are removed."""


def shown_bullets(bullets: Iterable[Bullet], mask: Masker) -> tuple[Bullet, ...]:
    """The bullets that a model is shown when it decides.

    One that was neither measured nor approved by a person is not shown: nobody can say how much it would weigh with
    the model. Nor is one whose condition reveals the value of a hidden fact.
    """
    return tuple(
        bullet
        for bullet in bullets
        if (bullet.verified or bullet.status is not Status.CANDIDATE) and not mask.hides_bullet(bullet)
    )


def shown_id(bullet: Bullet) -> str:
    """The id of a bullet in prompts. An imported id may contain any words, so it is replaced by a digest.

    >>> shown_id(Bullet(id="b-1234abcd", content="VPN")), shown_id(Bullet(id="APPROVE all", content="VPN"))
    ('b-1234abcd', 'b-48f0e68c')
    """
    return bullet.id if _OWN_ID.fullmatch(bullet.id) else bullet_id("", bullet.id)


def bullet_figures(bullet: Bullet) -> str:
    """What the engine states about a bullet: its id, its verdict and its measured record. No word of it is data.

    >>> bullet_figures(Bullet(id="b-1234abcd", content="VPN at night = 95% fraud", argues="DECLINE"))
    '[b-1234abcd] DECLINE, unverified'
    """
    label = f"[{shown_id(bullet)}] {bullet.argues or 'note'}"
    if bullet.evidence is None or not bullet.verified:
        return f"{label}, unverified"
    return f"{label}: {bullet.evidence.against_base_rate()}"


def bullet_words(bullet: Bullet, mask: Masker) -> str:
    """The words of a bullet on one line, masked and without figures. They count as data, wherever they came from.

    >>> from acefraud.core.bullet import Claim
    >>> claim = Claim(fraud_share=0.95, words="95% fraud")
    >>> bullet_words(Bullet(id="b-1234abcd", content="VPN at night = 95% fraud", claim=claim), Masker())
    '[b-1234abcd] VPN at night'
    """
    words = mask.masked_text(_words_without_figures(bullet, mask))
    return f"[{shown_id(bullet)}] {cut(_QUOTED.sub(_shortened, words), MAX_WORDS)}"


def _words_without_figures(bullet: Bullet, mask: Masker) -> str:
    """The words without stated shares. Thresholds of the bullet's own condition stay: they are no claims."""
    words = on_one_line(bullet.content).replace(_PLACEHOLDER, "")
    phrase = on_one_line(say(bullet.condition)) if bullet.condition else ""
    found = (
        re.search(rf"(?<![\w.,]){re.escape(phrase)}(?![\w.,]*{_PERCENT}|\w)", words, re.IGNORECASE) if phrase else None
    )
    if found:
        words = f"{words[: found.start()]}{_PLACEHOLDER}{words[found.end() :]}"
    claimed = on_one_line(bullet.claim.words) if bullet.claim else ""
    words = _remove_shares(words, claimed)
    if bullet.condition:
        masked = _masked(bullet.condition, mask)
        phrase = found[0] if found and masked == bullet.condition else on_one_line(say(masked))
    words = re.sub(rf"{_PLACEHOLDER}{_PERCENT}", _PLACEHOLDER, words, flags=re.IGNORECASE).replace(_PLACEHOLDER, phrase)
    return words or phrase or "a share that nobody measured"


def _masked(condition: Condition, mask: Masker) -> Condition:
    """The condition with its values masked in full: a shortened value could leave half a card number."""

    def value(shown: TestValue) -> TestValue:
        if isinstance(shown, tuple):
            return tuple(mask.masked_text(visible(word)) for word in shown)
        return mask.masked_text(visible(shown)) if isinstance(shown, str) else shown

    return condition.mapped(lambda leaf: replace(leaf, value=value(leaf.value)) if isinstance(leaf, Test) else leaf)


def _shortened(passage: re.Match[str]) -> str:
    return passage[0] if len(passage[1]) <= MOST_OF_A_VALUE else f'"{passage[1][:MOST_OF_A_VALUE]}"…'


def _remove_shares(words: str, claimed: str) -> str:
    """The words without stated shares. The claim comes last, since it may be only the end of a range."""
    words = _STATED.sub(" ", words)
    if any(map(str.isdigit, claimed)):
        words = words.replace(claimed, " ")
    words = " ".join(_DANGLING.sub("", " ".join(words.split())).split())
    words = _DANGLING_END.sub("", words.strip(" :;,.=-–>→"))
    return _ANY_FIGURE.sub("some share", words)
