"""One call to a language model and its reply, as plain values, and the protocol that carries them."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

MESSAGE_OVERHEAD = 16
"""Tokens that a server may add to each message for its role and delimiters."""


class Role(StrEnum):
    """The roles that a language model can play."""

    AGENT = "agent"
    JUDGE = "judge"
    REFLECTOR = "reflector"
    EMBEDDING = "embedding"


class ReplyFormat(StrEnum):
    """What the server enforces on the reply: a JSON schema, any JSON object, or nothing."""

    SCHEMA = "schema"
    JSON = "json"
    TEXT = "text"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Message(_Value):
    """One turn of the conversation."""

    role: Literal["user"] = "user"
    content: str


class Call(_Value):
    """Everything that one call sends. The cache key is derived from the fields, so renaming one empties all caches."""

    role: Role
    model: str
    """`provider:name`, such as `openai:gpt-4o-mini`."""
    base_url: str = ""
    """The address of a self-hosted server that speaks the provider's protocol; "" for the provider's own."""
    system: str = ""
    messages: tuple[Message, ...] = ()
    texts: tuple[str, ...] = ()
    """The texts to embed, for the embedding role."""
    format: ReplyFormat = ReplyFormat.TEXT
    json_schema: dict[str, Any] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    top_logprobs: int = 0

    @property
    def key(self) -> str:
        """The cache key: equal for equal content, whichever role sends it.

        >>> call = Call(role=Role.JUDGE, model="openai:gpt-4o-mini", system="Judge.")
        >>> call.key == call.model_copy(update={"role": Role.AGENT}).key
        True
        """
        return hashlib.sha256(self.model_dump_json(exclude={"role"}).encode()).hexdigest()

    def with_added(self, text: str) -> Call:
        """The call with a text appended to its last message.

        A reply is never sent back as an assistant turn: it may quote data that tries to instruct the model.
        """
        *before, last = self.messages
        longer = last.model_copy(update={"content": f"{last.content}\n\n{text}"})
        return self.model_copy(update={"messages": (*before, longer)})

    @property
    def most_input_tokens(self) -> int:
        """An upper bound on the input tokens: no token is shorter than a byte."""
        parts = [self.system, *(message.content for message in self.messages), *self.texts]
        schema = str(self.json_schema) if self.json_schema else ""
        return sum(len(part.encode()) + MESSAGE_OVERHEAD for part in (*parts, schema) if part)


class TokenLogprobs(_Value):
    """One token of a reply with its log-probability, and those of the most likely alternatives."""

    token: str
    logprob: float
    others: dict[str, float] = {}


class Reply(_Value):
    """The reply to a successful call. Cached replies are stored with these field names."""

    text: str = ""
    vectors: tuple[tuple[float, ...], ...] = ()
    logprobs: tuple[TokenLogprobs, ...] = ()
    """Empty if the server does not report them."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None if no price is known."""
    cut_short: bool = False
    """Whether the reply ended because it reached max_tokens."""
    cached: bool = False
    """Whether an earlier call paid for it."""

    def paid_before(self) -> Reply:
        """The reply, marked as cached and free."""
        return self.model_copy(update={"cached": True, "cost": 0.0})


class Caller(Protocol):
    """Carries a call to a model and returns the reply."""

    async def send(self, call: Call) -> Reply:
        """The reply. Raises a ModelError if the call fails, and BudgetExceeded if it may not be sent."""
        ...

    async def close(self) -> None:
        """Close connections and files. Closing twice is harmless."""
        ...
