"""The odds of the two verdict words, from the log-probabilities of the tokens that begin them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from acefraud.core.transaction import Verdict
from acefraud.llm.calling import TokenChances

_ONE_WORD = re.compile(r"[\W_]*+([^\W\d_]++)[\W_]*+")


def said_verdict(text: str) -> Verdict | None:
    """The verdict that a one-word reply is; None where it is none.

    >>> said_verdict(" **decline**.").value, said_verdict("Decline or approve?") is None
    ('DECLINE', True)
    """
    said = _word(text)
    return Verdict(said) if said in (Verdict.APPROVE, Verdict.DECLINE) else None


def odds_of(tokens: Sequence[TokenChances]) -> float | None:
    """Log-odds of DECLINE against APPROVE at the token where the verdict begins; None where that cannot be told.

    Where only one of the two is among the tokens listed, the other is no likelier than the least likely of them.

    >>> chances = TokenChances(token="DE", logprob=-0.1, others={"APP": -2.4, "The": -9.0})
    >>> round(odds_of([chances]), 1)
    2.3
    """
    for chances in tokens:
        if not any(_is_beginning(chances.token, verdict) for verdict in (Verdict.DECLINE, Verdict.APPROVE)):
            continue  # a quote or a space before the verdict
        listed = {**chances.others, chances.token: min(chances.logprob, 0.0)}
        if not chances.others:
            return None
        for_each = {verdict: _begins(verdict, listed) for verdict in (Verdict.DECLINE, Verdict.APPROVE)}
        least = min(listed.values())
        declines, approves = (least if chance is None else chance for chance in for_each.values())
        return declines - approves
    return None


def _begins(verdict: Verdict, listed: Mapping[str, float]) -> float | None:
    """Log-probability that a token is the beginning of a verdict, all spellings together."""
    chances = [math.exp(min(logprob, 0.0)) for token, logprob in listed.items() if _is_beginning(token, verdict)]
    total = sum(chances)
    return math.log(total) if total > 0 else None


def _is_beginning(token: str, verdict: Verdict) -> bool:
    letters = _word(token)
    return bool(letters) and verdict.value.startswith(letters)


def _word(text: str) -> str:
    """The one word that a text is, in capitals and without the signs around it; "" where it is not one word."""
    word = _ONE_WORD.fullmatch(text)
    return word[1].upper() if word else ""
