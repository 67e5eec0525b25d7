"""Asking a model for an answer of a given shape: one repair round on a reply that cannot be read, then an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from acefraud.core.decision import CallUsage
from acefraud.errors import ModelMalformed, ModelRefused
from acefraud.llm.calling import Call, Reply, ReplyFormat
from acefraud.llm.outside_text import cut, on_one_line
from acefraud.llm.prompting import repair_prompt
from acefraud.llm.replies import read_reply

T = TypeVar("T", bound=BaseModel)

MOST_SAID = 600
"""Characters of what is said to be wrong with a reply, to the model and in an error."""

_ABOUT_THE_FORMAT = ("response_format", "json_schema", "json_object", "json mode", "structured output")
_STEPS = (ReplyFormat.SCHEMA, ReplyFormat.JSON, ReplyFormat.TEXT)
_KNOW_SCHEMAS = ("openai:gpt-4o", "openai:gpt-4.1", "openai:gpt-5", "openai:gpt-6", "openai:o3", "openai:o4")


class Client(Protocol):
    """A caller that can be told that a reply it keeps is worth nothing."""

    async def send(self, call: Call) -> Reply:
        """The reply to a call."""
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...

    def forget(self, call: Call) -> None:
        """Do not answer this call from memory again."""
        ...


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """An answer of the shape that was asked for, and the replies that led to it."""

    value: T
    replies: tuple[Reply, ...]


class Asker:
    """Asks one client. It remembers which way of holding a server to JSON that server turned down."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._formats: dict[tuple[str, str], ReplyFormat] = {}

    async def ask(self, call: Call, shape: type[T], check: Callable[[T, bool], None] = lambda *_: None) -> Answer[T]:
        """The answer. Raises ModelMalformed after one repair.

        `check` raises ValueError where an answer cannot be meant; it is told whether this is the last chance.
        """
        asked: list[tuple[Call, Reply]] = []
        first, problem = call, ""
        for last in (False, True):
            call, reply = await self._send(call, shape)
            asked.append((call, reply))
            try:
                value = read_reply(reply.text, shape)
                check(value, last)
                return Answer(value, tuple(reply for _, reply in asked))
            except ValueError as wrong:
                problem = cut(on_one_line(str(wrong)), MOST_SAID)
                problem += "; the reply was cut off, be brief" if reply.cut_short else ""
            call = first.adding(repair_prompt(reply.text, problem))
        for made, _ in asked:  # another run should have another chance
            self._client.forget(made)
        raise ModelMalformed(f"{call.model} as {call.role}: its reply could not be read, nor its second one: {problem}")

    async def _send(self, call: Call, shape: type[T]) -> tuple[Call, Reply]:
        """Ask in the strictest format that the server is known to take, and step down where it does not."""
        server = (call.model, call.base_url)
        first = self._formats.get(server) or first_format(call.model, call.base_url)
        for step in _STEPS[_STEPS.index(first) :]:
            schema = shape.model_json_schema(mode="serialization") if step is ReplyFormat.SCHEMA else None
            asked = call.model_copy(update={"format": step, "json_schema": schema})
            try:
                reply = await self._client.send(asked)
            except ModelRefused as refused:
                if step is ReplyFormat.TEXT or not any(word in str(refused).lower() for word in _ABOUT_THE_FORMAT):
                    raise
                continue
            self._formats[server] = step
            return asked, reply
        raise AssertionError("the last format is always tried")


def first_format(model: str, base_url: str) -> ReplyFormat:
    """A schema where the model is known to take one, else any JSON: that is what most servers can be held to.

    >>> first_format("openai:gpt-4o-mini", "").value, first_format("openai:gpt-3.5-turbo", "").value
    ('schema', 'json')
    """
    return ReplyFormat.SCHEMA if not base_url and model.startswith(_KNOW_SCHEMAS) else ReplyFormat.JSON


def usage_of(replies: Sequence[Reply]) -> CallUsage:
    """What several replies took together."""
    costs = [reply.cost for reply in replies]
    return CallUsage(
        input_tokens=sum(reply.input_tokens for reply in replies),
        output_tokens=sum(reply.output_tokens for reply in replies),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        cached=all(reply.cached for reply in replies),
    )
