"""What a model is to answer, and reading it. A reply is read or it is an error: nothing in it is guessed."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from acefraud.core.transaction import Verdict
from acefraud.core.visible_text import visible

MOST_WORDS = 1_000
"""Characters that are kept of what a model says in prose."""

_PERCENT = re.compile(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*")


def _verdict(value: Any) -> Any:
    """The word in any letter case; a sentence around it is not a verdict."""
    said = value.strip().strip(".").upper() if isinstance(value, str) else value
    if said not in (Verdict.APPROVE, Verdict.DECLINE):
        raise ValueError(f"expected APPROVE or DECLINE, got {str(value)[:60]!r}")
    return Verdict(said)


def _share(value: Any) -> Any:
    """A share between 0 and 1, also where it is written as a percentage."""
    if isinstance(value, bool):
        raise ValueError("expected a number between 0 and 1, got a flag")
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return float(percent[1]) / 100 if percent else value


def _words(value: Any) -> Any:
    return visible(value[:MOST_WORDS]) if isinstance(value, str) else value


StatedVerdict = Annotated[
    Verdict,
    BeforeValidator(_verdict),
    WithJsonSchema({"type": "string", "enum": [Verdict.APPROVE.value, Verdict.DECLINE.value]}),
]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_share)]
Words = Annotated[str, BeforeValidator(_words)]


class AgentReply(BaseModel):
    """What the agent answers. The sentence stands before the verdict, so that the verdict can rest on it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reasoning: Words
    bullets: tuple[Words, ...] = ()
    probability: Share
    verdict: StatedVerdict


class JudgeReply(BaseModel):
    """What the judge answers."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    is_correct: bool
    confidence: Share
    reasoning: Words


class ReflectorReply(BaseModel):
    """What the reflector answers; no bullet where the cases teach nothing new."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    new_bullet: Words | None
    condition: Words | None = None
    """In text form; whether it can be read is looked at where the facts are known."""
    argues: StatedVerdict | None = None
    problem_types: tuple[Words, ...] = ()
    confidence: Share = 0.5


T = TypeVar("T", bound=BaseModel)


def read_reply(text: str, shape: type[T]) -> T:
    """The reply as a value. Raises ValueError saying what is wrong, in words that can be sent back.

    >>> read_reply('{"is_correct": true, "confidence": 0.9, "reasoning": "a match"}', JudgeReply).is_correct
    True
    >>> read_reply("I would decline this.", JudgeReply)
    Traceback (most recent call last):
    ValueError: the reply is not a JSON object
    """
    try:
        content = json.loads(_object_in(text))
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, too many brackets
        raise ValueError("the reply is not a JSON object") from None
    try:
        return shape.model_validate(content)
    except ValidationError as problem:
        raise ValueError("; ".join(_in_words(error) for error in problem.errors())) from None


def _object_in(text: str) -> str:
    """The JSON object, without a fence or words around it."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else ""


def _in_words(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {str(error['msg']).removeprefix('Value error, ')}" if place else str(error["msg"])
