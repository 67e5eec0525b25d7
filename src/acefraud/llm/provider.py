"""Calls carried to the provider of a model, one request for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from acefraud.errors import ConfigurationError, ModelMalformed, ModelRefused, ModelTimeout
from acefraud.llm.calling import Call, Reply, ReplyFormat, Role, TokenChances
from acefraud.llm.connecting import Connections
from acefraud.llm.metering import with_tokens
from acefraud.llm.translating import translated

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModelSettings

_OPENAI = "api.openai.com"
_NEVER = -9999.0
"""The log-probability of what cannot be, as servers write it that do not write minus infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOptions:
    """How long to wait for a reply, in seconds, from the first byte out to the last byte in."""

    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise ConfigurationError(f"timeout is {self.timeout}; give the seconds to wait for a reply")


class ProviderCaller:
    """Sends each call once. Keys and addresses come from the environment, as each provider has it."""

    def __init__(self, options: ProviderOptions | None = None) -> None:
        self._options = options or ProviderOptions()
        self._connections = Connections(self._options.timeout)

    async def send(self, call: Call) -> Reply:
        """The reply, without its cost."""
        carry = self._embed if call.role is Role.EMBEDDING else self._ask
        try:
            return await carry(call)
        except TimeoutError as error:
            raise ModelTimeout(f"{call.model} did not answer within {self._options.timeout:g} s") from error

    async def _ask(self, call: Call) -> Reply:
        model = await self._connections.chat(call.model, call.base_url)
        messages, settings, parameters = _messages(call), _settings(call, model), _parameters(call, model)
        with translated(call.model):
            async with asyncio.timeout(self._options.timeout):
                response = await model.request(messages, settings, parameters)
        return _reply(call, response)

    async def _embed(self, call: Call) -> Reply:
        model = await self._connections.embedding(call.model, call.base_url)
        with translated(call.model):
            async with asyncio.timeout(self._options.timeout):
                result = await model.embed(list(call.texts), input_type="document")
        tokens = result.usage.input_tokens
        wrong = _wrong_with(result.embeddings, len(call.texts))
        if wrong:
            raise with_tokens(ModelMalformed(f"{call.model}: {wrong}"), tokens, 0)
        return Reply(vectors=tuple(tuple(vector) for vector in result.embeddings), input_tokens=tokens)

    async def close(self) -> None:
        """Close the connections. Closing twice is harmless, and a later call opens new ones."""
        await self._connections.close()


def _wrong_with(vectors: Sequence[Sequence[float]], texts: int) -> str:
    if len(vectors) != texts:
        return f"{texts} texts were sent and {len(vectors)} vectors came"
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1 or 0 in lengths:
        return "the vectors are not of one length"
    return "" if all(isfinite(sum(vector)) for vector in vectors) else "a vector holds what is no number"


def _messages(call: Call) -> list[ModelMessage]:
    from pydantic_ai.messages import (  # noqa: PLC0415 - an optional package
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    said: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(call.system)])] if call.system else []
    for message in call.messages:
        if message.role == "user":
            said.append(ModelRequest(parts=[UserPromptPart(message.content)]))
        else:
            said.append(ModelResponse(parts=[TextPart(message.content)]))
    return said


def _settings(call: Call, model: Model) -> OpenAIChatModelSettings:
    settings: OpenAIChatModelSettings = {"max_tokens": call.max_tokens}
    address = getattr(model, "base_url", None)
    if call.model.startswith("openai") and address and _OPENAI not in str(address):
        settings["extra_body"] = {"max_tokens": call.max_tokens}  # older servers do not know the newer name for it
    if _draws(model):
        settings["temperature"] = call.temperature
        if call.top_logprobs > 0:  # other protocols pass over what is named for this one
            settings["openai_logprobs"] = True
            settings["openai_top_logprobs"] = call.top_logprobs
    return settings


def _draws(model: Model) -> bool:
    """Whether one may say how tokens are drawn; models that reason before they answer do not let one."""
    profile: dict[str, Any] = {**model.profile}
    if not profile.get("openai_supports_reasoning", False):
        return True
    return bool(profile.get("openai_supports_reasoning_effort_none")) and not profile.get("thinking_enabled_by_default")


def _parameters(call: Call, model: Model) -> ModelRequestParameters:
    """The strictest form that this model can be held to. Nothing is added to the prompt."""
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415 - an optional package
    from pydantic_ai.output import OutputObjectDefinition  # noqa: PLC0415

    if call.format is ReplyFormat.SCHEMA and call.json_schema and model.profile.get("supports_json_schema_output"):
        schema = OutputObjectDefinition(json_schema=call.json_schema, name="reply", strict=True)
        return ModelRequestParameters(output_mode="native", output_object=schema, prompted_output_template=False)
    if call.format is not ReplyFormat.TEXT and model.profile.get("supports_json_object_output"):
        return ModelRequestParameters(output_mode="prompted", prompted_output_template=False)
    return ModelRequestParameters()


def _reply(call: Call, response: ModelResponse) -> Reply:
    from pydantic_ai.messages import TextPart  # noqa: PLC0415 - an optional package

    details = response.provider_details or {}
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    read, written = response.usage.input_tokens, response.usage.output_tokens
    if response.finish_reason == "content_filter":
        said = details.get("refusal") or "its content filter stopped the reply"
        raise with_tokens(ModelRefused(f"{call.model}: {said}"), read, written)
    cut_short = response.finish_reason == "length"
    if not text.strip():
        why = f", and all of its {call.max_tokens} tokens are used up" if cut_short else ""
        raise with_tokens(ModelMalformed(f"{call.model}: the reply is empty{why}"), read, written)
    return Reply(
        text=_writable(text),
        logprobs=tuple(_chances(each) for each in details.get("logprobs") or ()),
        input_tokens=read,
        output_tokens=written,
        cut_short=cut_short,
    )


def _chances(said: dict[str, Any]) -> TokenChances:
    chances = {_writable(each["token"]): max(_NEVER, each["logprob"]) for each in (*said["top_logprobs"], said)}
    token = _writable(said["token"])
    return TokenChances(token=token, logprob=chances.pop(token), others=chances)


def _writable(text: str) -> str:
    """Half a character, which JSON can spell and no file can hold, becomes a question mark."""
    return text.encode(errors="replace").decode()
