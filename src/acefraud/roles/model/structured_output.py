"""Typed answers from a model: an unusable reply is repaired once, then it is an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from acefraud.core.decision import CallUsage
from acefraud.errors import ModelMalformed, ModelRefused
from acefraud.llm.call import Call, Caller, Reply, ReplyFormat
from acefraud.roles.model.prompt_text import cut, on_one_line
from acefraud.roles.model.prompts import repair_prompt
from acefraud.roles.model.replies import read_reply

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

MAX_PROBLEM = 600
"""Characters of the description of what is wrong with a reply, for the model and in an error."""

_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "json mode", "structured output")
"""Words in a refusal that blame the reply format."""
_FORMATS = (ReplyFormat.SCHEMA, ReplyFormat.JSON, ReplyFormat.TEXT)
_KNOW_SCHEMAS = ("openai:gpt-4o", "openai:gpt-4.1", "openai:gpt-5", "openai:gpt-6", "openai:o3", "openai:o4")


class CachedCaller(Caller, Protocol):
    """A caller that can drop a cached reply."""

    def forget(self, call: Call) -> None:
        """Drop the cached reply to this call."""
        ...


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[R]):
    """A typed answer, and the replies that led to it."""

    value: R
    replies: tuple[Reply, ...]


class Asker:
    """Asks one client, and remembers the strictest reply format that each server accepts."""

    def __init__(self, client: CachedCaller) -> None:
        self._client = client
        self._formats: dict[tuple[str, str], ReplyFormat] = {}

    async def ask(self, call: Call, shape: type[T], read: Callable[[T, bool], R]) -> ModelAnswer[R]:
        """The answer as `read` returns it. Raises ModelMalformed if the reply is unusable even after one repair.

        `read` gets the reply and whether this is the last attempt, and raises ValueError if the reply makes no sense.
        """
        sent: list[tuple[Call, Reply]] = []
        first, problem = call, ""
        for last in (False, True):
            call, reply = await self._send(call, shape)
            sent.append((call, reply))
            try:
                value = read(read_reply(reply.text, shape), last)
                return ModelAnswer(value, tuple(reply for _, reply in sent))
            except ValueError as wrong:
                problem = cut(on_one_line(str(wrong)), MAX_PROBLEM)
                problem += "; the reply was cut off, be brief" if reply.cut_short else ""
            call = first.with_added(repair_prompt(reply.text, problem))
        for made, _ in sent:  # so that another run gets another chance
            self._client.forget(made)
        raise ModelMalformed(f"{call.model} as {call.role}: two replies in a row could not be read: {problem}")

    async def _send(self, call: Call, shape: type[T]) -> tuple[Call, Reply]:
        """Send in the strictest format that the server is known to accept, and step down if it refuses."""
        server = (call.model, call.base_url)
        first = self._formats.get(server) or first_format(call.model, call.base_url)
        for step in _FORMATS[_FORMATS.index(first) :]:
            schema = shape.model_json_schema(mode="serialization") if step is ReplyFormat.SCHEMA else None
            formatted = call.model_copy(update={"format": step, "json_schema": schema})
            try:
                reply = await self._client.send(formatted)
            except ModelRefused as refused:
                if step is ReplyFormat.TEXT or not any(word in str(refused).lower() for word in _FORMAT_WORDS):
                    raise
                continue
            self._formats[server] = step
            return formatted, reply
        raise AssertionError("the last format is always tried")


def first_format(model: str, base_url: str) -> ReplyFormat:
    """A schema if the model is known to accept one, else JSON, which most servers can enforce.

    >>> first_format("openai:gpt-4o-mini", "").value, first_format("openai:gpt-3.5-turbo", "").value
    ('schema', 'json')
    """
    return ReplyFormat.SCHEMA if not base_url and model.startswith(_KNOW_SCHEMAS) else ReplyFormat.JSON


def usage_of(replies: Sequence[Reply]) -> CallUsage:
    """The usage of several replies together."""
    costs = [reply.cost for reply in replies]
    return CallUsage(
        input_tokens=sum(reply.input_tokens for reply in replies),
        output_tokens=sum(reply.output_tokens for reply in replies),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        cached=all(reply.cached for reply in replies),
    )
