"""Vendor models that are ready to be called, and the connections to their servers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from inspect import signature
from threading import Lock
from typing import TYPE_CHECKING, Any

from acefraud.errors import ConfigurationError
from acefraud.llm.vendor_errors import note_response
from acefraud.support.callers import blocked_loops

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.embeddings import EmbeddingModel
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

_ADDRESS_PARAMETERS = ("base_url", "api_base", "azure_endpoint")
"""The names that provider classes give to the address of a server."""
_OWN_EXTRAS = {"tiktoken": "openai", "mistralai": "mistral"}
_OWN_EXTRAS |= {name: name for name in ("openai", "anthropic", "google", "groq", "mistral", "cohere")}
"""The extra of acefraud that installs a package; packages of other providers come with pydantic-ai's extras."""


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
    models: dict[tuple[Callable[..., Any], str, str], Any] = field(default_factory=dict)
    closing: AsyncGenerator[None] = field(init=False)

    def __post_init__(self) -> None:
        self.closing = _until_closed(self.stack)

    async def close(self) -> None:
        await self.closing.aclose()


class Connections:
    """Vendor models by name and address, opened on first use.

    A connection belongs to the event loop that opened it: each loop has its own, and closes them when it ends.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._loops: dict[asyncio.AbstractEventLoop, _LoopConnections] = {}
        self._looking_up = Lock()
        """Held while `_loops` is read or changed: loops of several threads may call at the same time."""

    async def chat(self, model: str, base_url: str) -> Model:
        """A chat model."""
        opened: Model = await self._opened(_chat_model, model, base_url)
        return opened

    async def embedding(self, model: str, base_url: str) -> EmbeddingModel:
        """An embedding model."""
        opened: EmbeddingModel = await self._opened(_embedding_model, model, base_url)
        return opened

    async def close(self) -> None:
        """Close what is open on running loops; loops that ended have closed theirs.

        A loop that is blocked until this is done closes its own as soon as it runs again.
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

    async def _opened(self, make: Callable[..., Any], model: str, base_url: str) -> Any:
        loop = asyncio.get_running_loop()
        with self._looking_up:
            its = self._loops.get(loop)
            new = its is None
            if its is None:
                self._loops = {each: opened for each, opened in self._loops.items() if not each.is_closed()}
                its = self._loops[loop] = _LoopConnections()
        if new:
            await anext(its.closing)
        async with its.lock:
            if (make, model, base_url) not in its.models:
                its.models[make, model, base_url] = await self._open(its, make, model, base_url)
            return its.models[make, model, base_url]

    async def _open(self, its: _LoopConnections, make: Callable[..., Any], model: str, base_url: str) -> Any:
        vendor, colon, name = model.partition(":")
        if not (vendor and colon and name):
            raise ConfigurationError(f"{model!r} names no provider; write provider:name, such as openai:gpt-4o-mini")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"{base_url!r} is not a server address; expected one like http://localhost:8000/v1"
            )
        try:
            opened, provider = make(vendor, name, lambda kind: self._provider(its, kind, base_url))
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
                event_hooks={"response": [note_response]},
                follow_redirects=True,
            )
            its.stack.push_async_callback(its.http.aclose)
        return its.http


def _chat_model(vendor: str, name: str, make: Callable[[str], Provider[Any]]) -> tuple[Model, Provider[Any]]:
    from pydantic_ai.models import infer_model  # noqa: PLC0415 - an optional package

    # Compatible servers speak Chat Completions, but rarely the newer protocol that pydantic-ai means by "openai".
    kind = "openai-chat" if vendor == "openai" else vendor
    provider = make(kind)
    return infer_model(f"{kind}:{name}", lambda _: provider), provider


def _embedding_model(
    vendor: str, name: str, make: Callable[[str], Provider[Any]]
) -> tuple[EmbeddingModel, Provider[Any]]:
    from pydantic_ai.embeddings import infer_embedding_model  # noqa: PLC0415 - an optional package
    from pydantic_ai.exceptions import UserError  # noqa: PLC0415

    provider = make(vendor)
    try:
        return infer_embedding_model(f"{vendor}:{name}", provider_factory=lambda _: provider), provider
    except UserError as error:
        raise ConfigurationError(f"{vendor} has no embeddings here; use another provider for them") from error


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
