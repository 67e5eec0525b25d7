"""The shapes of replies, and their parser. A reply that does not fit its shape is an error: nothing is guessed."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from acefraud.core.transaction import Verdict
from acefraud.display.visible_text import visible

MAX_TEXT = 1_000
"""The most characters that are kept of a text in a reply."""

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


class AgentReply(BaseModel):
    """The agent's reply. The reasoning comes before the verdict, so that the verdict can build on it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reasoning: Text
    bullets: tuple[Text, ...] = ()
    probability: Share
    verdict: StatedVerdict


class JudgeReply(BaseModel):
    """The judge's reply."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    is_correct: bool
    confidence: Share
    reasoning: Text


class ReflectorReply(BaseModel):
    """The reflector's reply; new_bullet is None if the cases teach nothing new."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    new_bullet: Text | None
    condition: Text | None = None
    """In text form; the reflector parses it, since it knows the facts."""
    argues: StatedVerdict | None = None
    problem_types: tuple[Text, ...] = ()
    confidence: Share = 0.5


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
        content = json.loads(_object_in(text))
    except (ValueError, RecursionError):  # no JSON, a number with thousands of digits, nesting too deep
        raise ValueError("the reply is not a JSON object") from None
    try:
        return shape.model_validate(content)
    except ValidationError as problem:
        raise ValueError("; ".join(_describe(error) for error in problem.errors())) from None


def _object_in(text: str) -> str:
    """The JSON object, without a code fence or text around it."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else ""


def _describe(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {str(error['msg']).removeprefix('Value error, ')}" if place else str(error["msg"])
