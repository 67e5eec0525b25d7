"""The shapes of replies, and their parser. A reply that does not fit its shape is an error: nothing is guessed.

The odds of a one-word verdict come from the log-probabilities of the tokens that begin it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema

from acefraud.core.transaction import Verdict
from acefraud.display.redaction import visible
from acefraud.llm.call import TokenLogprobs
from acefraud.support.exact_math import LARGEST_EXPONENT, exp, log

MAX_TEXT = 1_000
"""The most characters that are kept of a text in a reply."""

_ONE_WORD = re.compile(r"[\W_]*+([^\W\d_]++)[\W_]*+")
_PERCENT = re.compile(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*")


def _verdict(value: Any) -> Any:
    """The verdict in any letter case; a sentence that contains it is not accepted."""
    word = value.strip().strip(".").upper() if isinstance(value, str) else value
    if word not in (Verdict.APPROVE, Verdict.DECLINE):
        raise ValueError(f"expected APPROVE or DECLINE, got {str(value)[:60]!r}")
    return Verdict(word)


def _share(value: Any) -> Any:
    """A share between 0 and 1, or a percentage."""
    if isinstance(value, bool):
        raise ValueError("expected a number between 0 and 1, got a flag")
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return float(percent[1]) / 100 if percent else value


def _text(value: Any) -> Any:
    return visible(value[:MAX_TEXT]) if isinstance(value, str) else value


StatedVerdict = Annotated[
    Verdict,
    BeforeValidator(_verdict),
    WithJsonSchema({"type": "string", "enum": [Verdict.APPROVE.value, Verdict.DECLINE.value]}),
]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_share)]
Text = Annotated[str, BeforeValidator(_text)]


class AgentReply(BaseModel, frozen=True, extra="ignore"):
    """The agent's reply. The reasoning comes before the verdict, so that the verdict can build on it."""

    reasoning: Text
    bullets: tuple[Text, ...] = ()
    probability: Share
    verdict: StatedVerdict


class JudgeReply(BaseModel, frozen=True, extra="ignore", strict=True):
    """The judge's reply."""

    is_correct: bool
    confidence: Share
    reasoning: Text


class ReflectorReply(BaseModel, frozen=True, extra="ignore"):
    """The reflector's reply; new_bullet is None if the cases teach nothing new."""

    new_bullet: Text | None
    condition: Text | None = None
    """In text form; the reflector parses it, since it knows the facts."""
    argues: StatedVerdict | None = None
    problem_types: tuple[Text, ...] = ()
    confidence: Share = 0.5


class RewordingReply(BaseModel, frozen=True, extra="ignore"):
    """A rule in other words, the best first; none if the facts cannot say it."""

    rules: tuple[Text, ...] = Field(max_length=3)


T = TypeVar("T", bound=BaseModel)


def read_reply(text: str, shape: type[T]) -> T:
    """The reply as a value. Raises ValueError with a message that can be sent back to the model.

    >>> read_reply('{"is_correct": true, "confidence": 0.9, "reasoning": "a match"}', JudgeReply).is_correct
    True
    >>> read_reply("I would decline this.", JudgeReply)
    Traceback (most recent call last):
    ValueError: the reply is not a JSON object
    """
    try:
        # The JSON object, without a code fence or text around it.
        content = json.loads(text[text.find("{") : text.rfind("}") + 1] if "{" in text else "")
    except (ValueError, RecursionError):  # no JSON, a number with thousands of digits, nesting too deep
        raise ValueError("the reply is not a JSON object") from None
    try:
        return shape.model_validate(content)
    except ValidationError as problem:
        raise ValueError("; ".join(_describe(error) for error in problem.errors())) from None


def _describe(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {str(error['msg']).removeprefix('Value error, ')}" if place else str(error["msg"])


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
    said = (logprob for token, logprob in listed.items() if _begins(token, verdict))
    total = sum(exp(min(logprob, 0.0)) for logprob in said if logprob > -LARGEST_EXPONENT)
    return log(total) if total > 0 else default


def _begins(token: str, verdict: Verdict) -> bool:
    letters = _word(token)
    return bool(letters) and verdict.value.startswith(letters)


def _word(text: str) -> str:
    """The single word in a text, in capitals and without punctuation; "" if it is not a single word."""
    word = _ONE_WORD.fullmatch(text)
    return word[1].upper() if word else ""
