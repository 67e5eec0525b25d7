"""Models made ready to be called, and the connections to their servers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

from acefraud.errors import ConfigurationError
from acefraud.llm.translating import note_answer

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.embeddings import EmbeddingModel
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

_ADDRESS = ("base_url", "api_base", "azure_endpoint")
"""What the providers call the address of a server."""

_OWN_EXTRA = {
    "openai": "openai",
    "tiktoken": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "groq": "groq",
    "mistral": "mistral",
    "mistralai": "mistral",
    "cohere": "cohere",
}
"""The extra of acefraud that brings a package; the packages of other providers are asked of pydantic-ai."""


async def _until_closed(stack: AsyncExitStack) -> AsyncGenerator[None]:
    """An event loop that ends closes its generators first, and with this one what the stack holds."""
    try:
        yield
    finally:
        await stack.aclose()


@dataclass(slots=True)
class _Line:
    """What is open on one event loop."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    http: AsyncClient | None = None
    chats: dict[tuple[str, str], Model] = field(default_factory=dict)
    embeddings: dict[tuple[str, str], EmbeddingModel] = field(default_factory=dict)
    end: AsyncGenerator[None] = field(init=False)

    def __post_init__(self) -> None:
        self.end = _until_closed(self.stack)

    async def close(self) -> None:
        await self.end.aclose()


class Connections:
    """Models by name and address, opened when first asked for.

    Connections belong to the event loop that opened them: each loop has its own, and takes them along when it ends.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._lines: dict[asyncio.AbstractEventLoop, _Line] = {}

    async def chat(self, model: str, base_url: str) -> Model:
        """A model that talks."""
        line = await self._line()
        async with line.lock:
            if (model, base_url) not in line.chats:
                line.chats[model, base_url] = await self._open(line, model, base_url, _chat_model)
            return line.chats[model, base_url]

    async def embedding(self, model: str, base_url: str) -> EmbeddingModel:
        """A model that makes vectors."""
        line = await self._line()
        async with line.lock:
            if (model, base_url) not in line.embeddings:
                line.embeddings[model, base_url] = await self._open(line, model, base_url, _embedding_model)
            return line.embeddings[model, base_url]

    async def close(self) -> None:
        """Close what is open on this loop; what was open on loops that ended is closed already."""
        lines, self._lines = self._lines, {}
        for loop, line in lines.items():
            if loop is asyncio.get_running_loop():
                await line.close()
            elif loop.is_running():  # in another thread
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(line.close(), loop))

    async def _line(self) -> _Line:
        loop = asyncio.get_running_loop()
        if loop not in self._lines:
            self._lines = {each: line for each, line in self._lines.items() if not each.is_closed()}
            self._lines[loop] = _Line()
            await anext(self._lines[loop].end)
        return self._lines[loop]

    async def _open(self, line: _Line, model: str, base_url: str, make: Callable[..., Any]) -> Any:
        provider, colon, name = model.partition(":")
        if not (provider and colon and name):
            raise ConfigurationError(f"{model!r} names no provider; write provider:name, as in openai:gpt-4o-mini")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise ConfigurationError(f"{base_url!r} is no address of a server; write it as in http://localhost:8000/v1")
        try:
            opened, its_provider = make(provider, name, lambda kind: self._provider(line, kind, base_url))
        except ImportError as error:
            raise ConfigurationError(f"{model} needs a package that is missing: {_install(provider, error)}") from error
        await line.stack.enter_async_context(its_provider)
        return opened

    def _provider(self, line: _Line, kind: str, base_url: str) -> Provider[Any]:
        from pydantic_ai.exceptions import UserError  # noqa: PLC0415 - an optional package
        from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415

        try:
            made = infer_provider_class(kind)
        except ValueError as error:
            raise ConfigurationError(f"no provider is called {kind!r}; write it as in openai:gpt-4o-mini") from error
        takes = signature(made).parameters
        given: dict[str, Any] = {}
        if base_url:
            given |= {name: base_url for name in _ADDRESS if name in takes}
            if not given:
                raise ConfigurationError(f"{kind} takes no address of a server; use openai:… for one that speaks it")
        if "openai_client" in takes or "anthropic_client" in takes:
            given["http_client"] = self._http(line)
        try:
            provider = made(**given)
        except UserError as error:
            raise ConfigurationError(_missing(kind, str(error))) from error
        if hasattr(provider.client, "max_retries"):
            provider.client.max_retries = 0  # each attempt is to be seen by the meter
        return provider

    def _http(self, line: _Line) -> AsyncClient:
        import httpx2  # noqa: PLC0415 - an optional package

        if line.http is None:
            line.http = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self._timeout),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
                event_hooks={"response": [note_answer]},
                follow_redirects=True,
            )
            line.stack.push_async_callback(line.http.aclose)
        return line.http


def _chat_model(provider: str, name: str, make: Callable[[str], Provider[Any]]) -> tuple[Model, Provider[Any]]:
    from pydantic_ai.models import infer_model  # noqa: PLC0415 - an optional package

    # Compatible servers speak Chat Completions, seldom the newer protocol that "openai" stands for over there.
    kind = "openai-chat" if provider == "openai" else provider
    its_provider = make(kind)
    return infer_model(f"{kind}:{name}", lambda _: its_provider), its_provider


def _embedding_model(
    provider: str, name: str, make: Callable[[str], Provider[Any]]
) -> tuple[EmbeddingModel, Provider[Any]]:
    from pydantic_ai.embeddings import infer_embedding_model  # noqa: PLC0415 - an optional package
    from pydantic_ai.exceptions import UserError  # noqa: PLC0415

    its_provider = make(provider)
    try:
        return infer_embedding_model(f"{provider}:{name}", provider_factory=lambda _: its_provider), its_provider
    except UserError as error:
        raise ConfigurationError(f"{provider} makes no vectors here; use another provider for embeddings") from error


def _install(provider: str, error: ImportError) -> str:
    cause = error.__cause__
    missing = (cause.name if isinstance(cause, ImportError) else error.name) or ""
    package = missing.partition(".")[0]
    extra = _OWN_EXTRA.get(package)
    if extra is None and package == "pydantic_ai":
        extra = _OWN_EXTRA.get(provider, "openai")
    return f"pip install 'acefraud[{extra}]'" if extra else f"pip install 'pydantic-ai-slim[{provider}]'"


def _missing(provider: str, said: str) -> str:
    provider = provider.removesuffix("-chat")
    variables = re.findall(r"`([A-Z][A-Z0-9_]+)`", said)
    if not variables:
        return f"{provider} cannot be used: {said}"
    return f"{provider} cannot be used: set the environment variable {variables[0]}"
