"""The caller that reaches a provider over the network: its connections, one request for each call, and its errors.

This is the one place where errors of vendor packages become errors of acefraud.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from acefraud.display.redaction import cut
from acefraud.errors import (
    ConfigurationError,
    ModelError,
    ModelMalformed,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from acefraud.llm.call import Call, Reply, ReplyFormat, Role, TokenLogprobs
from acefraud.support.callers import blocked_loops

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response
    from pydantic_ai.embeddings import EmbeddingModel
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModelSettings
    from pydantic_ai.providers import Provider

_OPENAI = "api.openai.com"
_IMPOSSIBLE = -9999.0
"""The log-probability of an impossible token, as servers write it that cannot write minus infinity."""
_ADDRESS_PARAMETERS = ("base_url", "api_base", "azure_endpoint")
"""The names that provider classes give to the address of a server."""
_OWN_EXTRAS = {"tiktoken": "openai", "mistralai": "mistral"}
_OWN_EXTRAS |= {name: name for name in ("openai", "anthropic", "google", "groq", "mistral", "cohere")}
"""The extra of acefraud that installs a package; packages of other providers come with pydantic-ai's extras."""
_LONGEST = 300
_VENDORS = (("openai", "OpenAIError"), ("anthropic", "AnthropicError"))
_PARSE_ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError, AssertionError)
"""What a vendor package raises on a reply that lacks a field it takes for granted."""

_responses: ContextVar[list[Response] | None] = ContextVar("responses", default=None)


async def _until_closed(stack: AsyncExitStack) -> AsyncGenerator[None]:
    """Close the stack with the generator. An event loop that ends closes its generators first."""
    try:
        yield
    finally:
        await stack.aclose()


@dataclass(slots=True)
class _LoopConnections:
    """What is open on one event loop."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    http: AsyncClient | None = None
    models: dict[tuple[str, str, bool], Model | EmbeddingModel] = field(default_factory=dict)
    closing: AsyncGenerator[None] = field(init=False)

    def __post_init__(self) -> None:
        self.closing = _until_closed(self.stack)

    async def close(self) -> None:
        await self.closing.aclose()


class ProviderCaller:
    """Sends each call once. Keys and addresses come from each provider's usual environment variables.

    Vendor models are opened on first use. A connection belongs to the event loop that opened it: each loop has its own,
    and closes them when it ends.
    """

    def __init__(self, timeout: float = 60.0) -> None:
        self._timeout = timeout
        """Seconds from the first byte sent to the last byte received."""
        self._loops: dict[asyncio.AbstractEventLoop, _LoopConnections] = {}
        self._looking_up = Lock()
        """Held while `_loops` is read or changed: loops of several threads may call at the same time."""

    async def send(self, call: Call) -> Reply:
        """The reply, without its cost."""
        request = self._embed if call.role is Role.EMBEDDING else self._chat
        try:
            return await request(call)
        except TimeoutError as error:
            raise ModelTimeout(f"{call.model} did not answer within {self._timeout:g} s") from error

    async def _chat(self, call: Call) -> Reply:
        model = cast("Model", await self.opened(call.model, call.base_url, chat=True))
        messages, settings, parameters = _messages(call), _settings(call, model), _parameters(call, model)
        with translated(call.model):
            async with asyncio.timeout(self._timeout):
                response = await model.request(messages, settings, parameters)
        return _reply(call, response)

    async def _embed(self, call: Call) -> Reply:
        model = cast("EmbeddingModel", await self.opened(call.model, call.base_url, chat=False))
        with translated(call.model):
            async with asyncio.timeout(self._timeout):
                result = await model.embed(list(call.texts), input_type="document")
        tokens = result.usage.input_tokens
        problem = _problem(result.embeddings, len(call.texts))
        if problem:
            raise ModelMalformed(f"{call.model}: {problem}", tokens=(tokens, 0))
        return Reply(vectors=tuple(tuple(vector) for vector in result.embeddings), input_tokens=tokens)

    async def close(self) -> None:
        """Close what is open on running loops; loops that ended have closed theirs. A later call opens new ones.

        Closing twice is harmless. A loop that is blocked until this is done closes its own as soon as it runs again.
        """
        with self._looking_up:
            loops, self._loops = self._loops, {}
        for loop, its in loops.items():
            if loop is asyncio.get_running_loop():
                await its.close()
            elif loop in blocked_loops():
                asyncio.run_coroutine_threadsafe(its.close(), loop)
            elif loop.is_running():  # in another thread
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(its.close(), loop))

    async def opened(self, model: str, base_url: str, *, chat: bool) -> Model | EmbeddingModel:
        """A vendor's chat model or embedding model. Raises ConfigurationError if it cannot be called."""
        loop, key = asyncio.get_running_loop(), (model, base_url, chat)
        with self._looking_up:
            new = loop not in self._loops
            if new:
                self._loops = {each: opened for each, opened in self._loops.items() if not each.is_closed()}
                self._loops[loop] = _LoopConnections()
            its = self._loops[loop]
        if new:
            await anext(its.closing)
        async with its.lock:
            if key not in its.models:
                its.models[key] = await self._open(its, model, base_url, chat=chat)
            return its.models[key]

    async def _open(self, its: _LoopConnections, model: str, base_url: str, *, chat: bool) -> Model | EmbeddingModel:
        vendor, colon, name = model.partition(":")
        if not (vendor and colon and name):
            raise ConfigurationError(f"{model!r} names no provider; write provider:name, such as openai:gpt-4o-mini")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"{base_url!r} is not a server address; expected one like http://localhost:8000/v1"
            )
        # Compatible servers speak Chat Completions, but rarely the newer protocol that pydantic-ai means by "openai".
        kind = "openai-chat" if chat and vendor == "openai" else vendor
        try:
            infer = _chat_model if chat else _embedding_model  # a missing package is named before a missing key
            opened, provider = infer(kind, name, lambda: self._provider(its, kind, base_url))
        except ImportError as error:
            raise ConfigurationError(f"{model} needs a package that is missing: {_install(vendor, error)}") from error
        await its.stack.enter_async_context(provider)
        return opened

    def _provider(self, its: _LoopConnections, kind: str, base_url: str) -> Provider[Any]:
        from pydantic_ai.exceptions import UserError  # noqa: PLC0415 - an optional package
        from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415

        try:
            made = infer_provider_class(kind)
        except ValueError as error:
            raise ConfigurationError(f"no provider is called {kind!r}; write one as in openai:gpt-4o-mini") from error
        takes = signature(made).parameters
        given: dict[str, Any] = {}
        if base_url:
            given |= {name: base_url for name in _ADDRESS_PARAMETERS if name in takes}
            if not given:
                raise ConfigurationError(f"{kind} takes no address; use openai:… for a server that speaks its protocol")
        if "openai_client" in takes or "anthropic_client" in takes:
            given["http_client"] = self._http(its)
        try:
            provider = made(**given)
        except UserError as error:
            raise ConfigurationError(_missing_key(kind, str(error))) from error
        if hasattr(provider.client, "max_retries"):
            provider.client.max_retries = 0  # the usage meter must see every attempt
        return provider

    def _http(self, its: _LoopConnections) -> AsyncClient:
        import httpx2  # noqa: PLC0415 - an optional package

        if its.http is None:
            its.http = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self._timeout),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
                event_hooks={"response": [_note_response]},
                follow_redirects=True,
            )
            its.stack.push_async_callback(its.http.aclose)
        return its.http


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


def _chat_model(kind: str, name: str, make: Callable[[], Provider[Any]]) -> tuple[Model, Provider[Any]]:
    from pydantic_ai.models import infer_model  # noqa: PLC0415 - an optional package

    provider = make()
    return infer_model(f"{kind}:{name}", lambda _: provider), provider


def _embedding_model(kind: str, name: str, make: Callable[[], Provider[Any]]) -> tuple[EmbeddingModel, Provider[Any]]:
    from pydantic_ai.embeddings import infer_embedding_model  # noqa: PLC0415 - an optional package
    from pydantic_ai.exceptions import UserError  # noqa: PLC0415

    provider = make()
    try:
        return infer_embedding_model(f"{kind}:{name}", provider_factory=lambda _: provider), provider
    except UserError as error:
        raise ConfigurationError(f"{kind} has no embeddings here; use another provider for them") from error


def _install(vendor: str, error: ImportError) -> str:
    cause = error.__cause__
    missing = (cause.name if isinstance(cause, ImportError) else error.name) or ""
    package = missing.partition(".")[0]
    extra = _OWN_EXTRAS.get(package)
    if package == "pydantic_ai":
        extra = _OWN_EXTRAS.get(vendor, "openai")
    return f"pip install 'acefraud[{extra}]'" if extra else f"pip install 'pydantic-ai-slim[{vendor}]'"


def _missing_key(vendor: str, message: str) -> str:
    variables = re.findall(r"`([A-Z][A-Z0-9_]+)`", message)
    what = f"set the environment variable {variables[0]}" if variables else message
    return f"{vendor.removesuffix('-chat')} cannot be used: {what}"


async def _note_response(response: Response) -> None:
    """Keep a response until its call ends: an unusable one still reports the tokens it is charged for."""
    kept = _responses.get()
    if kept is not None:
        kept.append(response)


@contextmanager
def translated(model: str) -> Iterator[None]:
    """Raise a ModelError in place of any error of a vendor package during a call to this model."""
    import httpx2  # noqa: PLC0415 - optional packages
    from pydantic_ai.exceptions import AgentRunError, UserError  # noqa: PLC0415

    http = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
    vendor_errors: tuple[type[Exception], ...] = (AgentRunError, UserError, *http, *_vendor_errors(), *_PARSE_ERRORS)
    responses: list[Response] = []
    token = _responses.set(responses)
    try:
        yield
    except ModelError:
        raise
    except vendor_errors as error:
        raise _translate(model, error, _reported_tokens(responses)) from error
    finally:
        _responses.reset(token)


def _vendor_errors() -> Iterator[type[Exception]]:
    for package, name in _VENDORS:
        try:
            yield getattr(import_module(package), name)
        except ModuleNotFoundError:
            continue


def _translate(model: str, error: Exception, tokens: tuple[int, int] | None) -> ModelError:
    from pydantic_ai import exceptions as theirs  # noqa: PLC0415 - an optional package

    status: int = getattr(error, "status_code", 0)
    rejected = theirs.ModelQuotaExceededError | theirs.ModelRequestRejectedError | theirs.ContentFilterError
    if isinstance(error, theirs.ModelTimeoutError | theirs.ModelRequestTimeout) or status == 408:
        kind: type[ModelError] = ModelTimeout
    elif isinstance(error, theirs.ModelRateLimitError):
        kind = ModelRateLimited
    elif isinstance(error, rejected | theirs.UserError) or (400 <= status < 500 and status not in (409, 425)):
        kind = ModelRefused
    elif isinstance(error, theirs.ModelAPIError):
        kind = ModelUnavailable
    elif tokens is None:  # no model was involved: a proxy's error page, a truncated response
        return ModelUnavailable(f"{model}: the response cannot be read ({_message(error)})")
    else:
        return ModelMalformed(f"{model}: the reply cannot be read ({_message(error)})", tokens=tokens)
    retry_after = getattr(error, "retry_after", None)
    return kind(f"{model}: {_message(error)}", retry_after=retry_after, tokens=tokens or (0, 0))


def _message(error: Exception) -> str:
    """The server's message on one line of limited length."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    text = str(message or (body if isinstance(body, str) else None) or error) or type(error).__name__
    line = cut(" ".join(text.split()), _LONGEST)
    return f"status {status}, {line}" if status is not None else line


def _reported_tokens(responses: list[Response]) -> tuple[int, int] | None:
    """The input and output tokens that a response reports; None if none does."""
    import httpx2  # noqa: PLC0415 - an optional package

    for response in responses:
        try:
            usage: dict[str, Any] = json.loads(response.content)["usage"]
            read = int(usage["prompt_tokens"] if "prompt_tokens" in usage else usage["input_tokens"])
            return read, int(usage.get("completion_tokens") or usage.get("output_tokens") or 0)
        except (httpx2.StreamError, ValueError, KeyError, TypeError):
            continue
    return None
