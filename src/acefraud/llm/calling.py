"""The seam to a language model: one call out, one reply back, both plain values.

Caching, limits, retries, the circuit breaker and the meter are callers that stand before another caller.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

TOKENS_AROUND_A_MESSAGE = 16
"""What a server may add to each message: its role and the marks around it."""


class Role(StrEnum):
    """The parts that a language model can play."""

    AGENT = "agent"
    JUDGE = "judge"
    REFLECTOR = "reflector"
    EMBEDDING = "embedding"


class ReplyFormat(StrEnum):
    """What a server is asked to hold the reply to: a JSON schema, any JSON, or nothing at all."""

    SCHEMA = "schema"
    JSON = "json"
    TEXT = "text"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Message(_Value):
    """One turn of the conversation."""

    role: Literal["user", "assistant"]
    content: str


class Call(_Value):
    """Everything that one call sends. Equal content has an equal key, whoever asks."""

    role: Role
    model: str
    """`provider:name`, as in `openai:gpt-4o-mini`."""
    base_url: str = ""
    """A server of one's own that speaks the provider's protocol; "" for the provider's usual one."""
    system: str = ""
    messages: tuple[Message, ...] = ()
    texts: tuple[str, ...] = ()
    """What is to be embedded, where the role is the embedding."""
    format: ReplyFormat = ReplyFormat.TEXT
    json_schema: dict[str, Any] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    top_logprobs: int = 0

    @property
    def key(self) -> str:
        """What the reply is filed under.

        >>> one = Call(role=Role.JUDGE, model="openai:gpt-4o-mini", system="Judge.")
        >>> one.key == one.model_copy(update={"role": Role.AGENT}).key
        True
        """
        return hashlib.sha256(self.model_dump_json(exclude={"role"}).encode()).hexdigest()

    def adding(self, words: str) -> Call:
        """The same call with these words after its last message.

        A reply is not sent back as a turn of the model: what it says may come from the data that the model was shown.
        """
        *before, last = self.messages
        longer = last.model_copy(update={"content": f"{last.content}\n\n{words}"})
        return self.model_copy(update={"messages": (*before, longer)})

    @property
    def most_input_tokens(self) -> int:
        """More tokens than what it sends can have: no token is shorter than a byte."""
        parts = [self.system, *(message.content for message in self.messages), *self.texts]
        schema = str(self.json_schema) if self.json_schema else ""
        return sum(len(part.encode()) + TOKENS_AROUND_A_MESSAGE for part in (*parts, schema) if part)


class TokenChances(_Value):
    """One token of a reply, its log-probability, and those of the tokens that might have stood there instead."""

    token: str
    logprob: float
    others: dict[str, float] = {}


class Reply(_Value):
    """What came back from one call that succeeded."""

    text: str = ""
    vectors: tuple[tuple[float, ...], ...] = ()
    logprobs: tuple[TokenChances, ...] = ()
    """Empty where the server does not say."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None where no price is known."""
    cut_short: bool = False
    """Whether it ends because max_tokens was reached."""
    cached: bool = False
    """Whether it was paid for by an earlier call."""


class Caller(Protocol):
    """Anything that carries a call to a model and brings back the reply."""

    async def send(self, call: Call) -> Reply:
        """The reply. Raises a ModelError where there is none, and BudgetExceeded where none may be asked for."""
        ...

    async def close(self) -> None:
        """Let go of connections and files. Closing twice is harmless."""
        ...
