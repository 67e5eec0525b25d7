"""The odds of the two verdicts, from the log-probabilities of the tokens that begin them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from acefraud.core.transaction import Verdict
from acefraud.llm.call import TokenLogprobs

_ONE_WORD = re.compile(r"[\W_]*+([^\W\d_]++)[\W_]*+")


def verdict_in(text: str) -> Verdict | None:
    """The verdict that a one-word reply states; None for any other text.

    >>> verdict_in(" **decline**.").value, verdict_in("Decline or approve?") is None
    ('DECLINE', True)
    """
    word = _word(text)
    return Verdict(word) if word in (Verdict.APPROVE, Verdict.DECLINE) else None


def odds_of(tokens: Sequence[TokenLogprobs]) -> float | None:
    """Log-odds of DECLINE against APPROVE at the token where the verdict begins; None if they are unknown.

    If only one of the two is listed, the other is taken to be as likely as the least likely listed token.

    >>> token = TokenLogprobs(token="DE", logprob=-0.1, others={"APP": -2.4, "The": -9.0})
    >>> round(odds_of([token]), 1)
    2.3
    """
    for token in tokens:
        if not (_begins(token.token, Verdict.DECLINE) or _begins(token.token, Verdict.APPROVE)):
            continue  # a quote or a space before the verdict
        if not token.others:
            return None
        listed = {**token.others, token.token: min(token.logprob, 0.0)}
        least = min(listed.values())
        return _logprob(Verdict.DECLINE, listed, least) - _logprob(Verdict.APPROVE, listed, least)
    return None


def _logprob(verdict: Verdict, listed: Mapping[str, float], default: float) -> float:
    """Log-probability that a token begins the verdict, over all spellings."""
    total = sum(math.exp(min(logprob, 0.0)) for token, logprob in listed.items() if _begins(token, verdict))
    return math.log(total) if total > 0 else default


def _begins(token: str, verdict: Verdict) -> bool:
    letters = _word(token)
    return bool(letters) and verdict.value.startswith(letters)


def _word(text: str) -> str:
    """The single word in a text, in capitals and without punctuation; "" if it is not a single word."""
    word = _ONE_WORD.fullmatch(text)
    return word[1].upper() if word else ""
