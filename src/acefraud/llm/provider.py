"""The caller that reaches a provider over the network: one request for each call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from acefraud.errors import ModelMalformed, ModelRefused, ModelTimeout
from acefraud.llm.call import Call, Reply, ReplyFormat, Role, TokenLogprobs
from acefraud.llm.connections import Connections
from acefraud.llm.vendor_errors import translated

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModelSettings

_OPENAI = "api.openai.com"
_IMPOSSIBLE = -9999.0
"""The log-probability of an impossible token, as servers write it that cannot write minus infinity."""


class ProviderCaller:
    """Sends each call once. Keys and addresses come from each provider's usual environment variables."""

    def __init__(self, timeout: float = 60.0) -> None:
        self._timeout = timeout
        """Seconds from the first byte sent to the last byte received."""
        self._connections = Connections(timeout)

    async def send(self, call: Call) -> Reply:
        """The reply, without its cost."""
        request = self._embed if call.role is Role.EMBEDDING else self._chat
        try:
            return await request(call)
        except TimeoutError as error:
            raise ModelTimeout(f"{call.model} did not answer within {self._timeout:g} s") from error

    async def _chat(self, call: Call) -> Reply:
        model = await self._connections.chat(call.model, call.base_url)
        messages, settings, parameters = _messages(call), _settings(call, model), _parameters(call, model)
        with translated(call.model):
            async with asyncio.timeout(self._timeout):
                response = await model.request(messages, settings, parameters)
        return _reply(call, response)

    async def _embed(self, call: Call) -> Reply:
        model = await self._connections.embedding(call.model, call.base_url)
        with translated(call.model):
            async with asyncio.timeout(self._timeout):
                result = await model.embed(list(call.texts), input_type="document")
        tokens = result.usage.input_tokens
        problem = _problem(result.embeddings, len(call.texts))
        if problem:
            raise ModelMalformed(f"{call.model}: {problem}", tokens=(tokens, 0))
        return Reply(vectors=tuple(tuple(vector) for vector in result.embeddings), input_tokens=tokens)

    async def close(self) -> None:
        """Close the connections. Closing twice is harmless, and a later call opens new ones."""
        await self._connections.close()


def _problem(vectors: Sequence[Sequence[float]], texts: int) -> str:
    if len(vectors) != texts:
        return f"expected {texts} vectors, got {len(vectors)}"
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1 or 0 in lengths:
        return "the vectors differ in length or are empty"
    return "" if all(isfinite(sum(vector)) for vector in vectors) else "a vector contains NaN or infinity"


def _messages(call: Call) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart  # noqa: PLC0415 - optional

    messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(call.system)])] if call.system else []
    return messages + [ModelRequest(parts=[UserPromptPart(message.content)]) for message in call.messages]


def _settings(call: Call, model: Model) -> OpenAIChatModelSettings:
    settings: OpenAIChatModelSettings = {"max_tokens": call.max_tokens}
    address = getattr(model, "base_url", None)
    if call.model.startswith("openai") and address and _OPENAI not in str(address):
        settings["extra_body"] = {"max_tokens": call.max_tokens}  # older servers do not know max_completion_tokens
    if _accepts_sampling(model):
        settings["temperature"] = call.temperature
        if call.top_logprobs > 0:  # other protocols ignore the settings of this one
            settings["openai_logprobs"] = True
            settings["openai_top_logprobs"] = call.top_logprobs
    return settings


def _accepts_sampling(model: Model) -> bool:
    """Whether the model accepts sampling parameters; reasoning models reject them."""
    profile: dict[str, Any] = {**model.profile}
    if not profile.get("openai_supports_reasoning", False):
        return True
    return bool(profile.get("openai_supports_reasoning_effort_none")) and not profile.get("thinking_enabled_by_default")


def _parameters(call: Call, model: Model) -> ModelRequestParameters:
    """The strictest output format that this model supports. Nothing is added to the prompt."""
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415 - an optional package
    from pydantic_ai.output import OutputObjectDefinition  # noqa: PLC0415

    if call.format is ReplyFormat.SCHEMA and call.json_schema and model.profile.get("supports_json_schema_output"):
        schema = OutputObjectDefinition(json_schema=call.json_schema, name="reply", strict=True)
        return ModelRequestParameters(output_mode="native", output_object=schema, prompted_output_template=False)
    if call.format is not ReplyFormat.TEXT and model.profile.get("supports_json_object_output"):
        return ModelRequestParameters(output_mode="prompted", prompted_output_template=False)
    return ModelRequestParameters()


def _reply(call: Call, response: ModelResponse) -> Reply:
    details = response.provider_details or {}
    text = response.text or ""
    tokens = read, written = response.usage.input_tokens, response.usage.output_tokens
    if response.finish_reason == "content_filter":
        reason = details.get("refusal") or "its content filter stopped the reply"
        raise ModelRefused(f"{call.model}: {reason}", tokens=tokens)
    cut_short = response.finish_reason == "length"
    if not text.strip():
        why = f"; it used up all of its {call.max_tokens} tokens" if cut_short else ""
        raise ModelMalformed(f"{call.model}: the reply is empty{why}", tokens=tokens)
    return Reply(
        text=_encodable(text),
        logprobs=tuple(_logprobs(each) for each in details.get("logprobs") or ()),
        input_tokens=read,
        output_tokens=written,
        cut_short=cut_short,
    )


def _logprobs(token: dict[str, Any]) -> TokenLogprobs:
    listed = (*token["top_logprobs"], token)
    logprobs = {_encodable(each["token"]): max(_IMPOSSIBLE, each["logprob"]) for each in listed}
    text = _encodable(token["token"])
    return TokenLogprobs(token=text, logprob=logprobs.pop(text), others=logprobs)


def _encodable(text: str) -> str:
    """The text with lone surrogates, which JSON can spell but UTF-8 cannot, replaced by question marks."""
    return text.encode(errors="replace").decode()
