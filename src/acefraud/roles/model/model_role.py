"""What all roles on a language model have in common: how a model is asked, and what it may not see.

An unusable reply is repaired once, then it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, TypedDict, TypeVar

from pydantic import BaseModel

from acefraud.core.decision import CallUsage
from acefraud.display.redaction import Masker, cut
from acefraud.errors import ModelMalformed, ModelRefused
from acefraud.llm.call import Call, Caller, Message, Reply, ReplyFormat, Role
from acefraud.roles.model.prompts import Prompt, on_one_line, repair_prompt
from acefraud.roles.model.replies import read_reply
from acefraud.roles.protocols import Facts
from acefraud.rules.english import say_facts

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


class Shared(TypedDict, total=False):
    """What the roles of one client have in common."""

    base_url: str
    mask: Masker | None


class ModelRole:
    """A role that a model plays: which model, on which server, and what it may not see."""

    role: ClassVar[Role]

    def __init__(self, client: CachedCaller, model: str, *, base_url: str = "", mask: Masker | None = None) -> None:
        self.model = model
        self._client = client
        self._base_url = base_url
        self._mask = mask or Masker()
        # A schema if the model is known to accept one, else JSON, which most servers can enforce.
        knows_schemas = not base_url and model.startswith(_KNOW_SCHEMAS)
        self._format = ReplyFormat.SCHEMA if knows_schemas else ReplyFormat.JSON

    def presentable(self, text: str, facts: Facts) -> str:
        """A transaction in words that the model may see: its text, or its facts if it has none."""
        if text.strip():
            return self._mask.masked_text(on_one_line(text), facts)
        return say_facts({name: value for name, value in facts.items() if not self._mask.hides(name, value)})

    def _call(self, prompt: Prompt, *, max_tokens: int, top_logprobs: int = 0) -> Call:
        return Call(
            role=self.role,
            model=self.model,
            base_url=self._base_url,
            system=prompt.system,
            messages=(Message(content=prompt.user),),
            max_tokens=max_tokens,
            top_logprobs=top_logprobs,
        )

    async def ask(self, call: Call, shape: type[T], read: Callable[[T, bool], R]) -> tuple[R, list[Reply]]:
        """The answer as `read` returns it, and the replies that led to it.

        `read` gets the reply and whether this is the last attempt, and raises ValueError if the reply makes no sense.
        Raises ModelMalformed if the reply is unusable even after one repair.
        """
        sent: list[tuple[Call, Reply]] = []
        first, problem = call, ""
        for last in (False, True):
            call, reply = await self._send(call, shape)
            sent.append((call, reply))
            try:
                return read(read_reply(reply.text, shape), last), [reply for _, reply in sent]
            except ValueError as wrong:
                problem = cut(on_one_line(str(wrong)), MAX_PROBLEM)
                problem += "; the reply was cut off, be brief" if reply.cut_short else ""
            call = first.with_added(repair_prompt(reply.text, problem))
        self._forget(sent)
        raise ModelMalformed(f"{call.model} as {call.role}: two replies in a row could not be read: {problem}")

    def _forget(self, sent: Sequence[tuple[Call, Reply]]) -> None:
        """Drop unusable replies from the cache, so that another run gets another chance."""
        for call, _ in sent:
            self._client.forget(call)

    async def _send(self, call: Call, shape: type[T]) -> tuple[Call, Reply]:
        """Send in the strictest format that the server is known to accept, and step down if it refuses."""
        for step in _FORMATS[_FORMATS.index(self._format) :]:
            schema = shape.model_json_schema(mode="serialization") if step is ReplyFormat.SCHEMA else None
            formatted = call.model_copy(update={"format": step, "json_schema": schema})
            try:
                reply = await self._client.send(formatted)
            except ModelRefused as refused:
                if step is ReplyFormat.TEXT or not any(word in str(refused).lower() for word in _FORMAT_WORDS):
                    raise
                continue
            self._format = step
            return formatted, reply
        raise AssertionError("the last format is always tried")


def usage_of(replies: Sequence[Reply]) -> CallUsage:
    """The usage of several replies together."""
    costs = [reply.cost for reply in replies]
    return CallUsage(
        input_tokens=sum(reply.input_tokens for reply in replies),
        output_tokens=sum(reply.output_tokens for reply in replies),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        cached=all(reply.cached for reply in replies),
    )
