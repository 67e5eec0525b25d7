"""The roles on language models, created from settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from acefraud.display.redaction import Masker
from acefraud.llm.call import Caller
from acefraud.llm.client import ClientOptions, ModelClient
from acefraud.llm.provider import ProviderCaller
from acefraud.roles.model.agent import ModelAgent, ModelJudge
from acefraud.roles.model.embedder import ModelEmbedder
from acefraud.roles.model.prompts import Style
from acefraud.roles.model.reflector import ModelReflector
from acefraud.settings import ModelSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelRoles:
    """The roles that models play; None for embedded ones. All share one client with its limits and cache."""

    client: ModelClient
    agent: ModelAgent | None = None
    judge: ModelJudge | None = None
    reflector: ModelReflector | None = None
    embedder: ModelEmbedder | None = None


def build_model_roles(
    chosen: ModelSettings,
    *,
    mask: Masker | None = None,
    caller: Caller | None = None,
    client: ModelClient | None = None,
) -> ModelRoles:
    """The roles on the chosen models, with a client of their own or a given one. Reads no key and sends nothing.

    >>> roles = build_model_roles(ModelSettings(agent="openai:gpt-4o-mini", cache=None))
    >>> roles.agent.model, roles.judge is None
    ('openai:gpt-4o-mini', True)
    """
    mask = mask or Masker()
    hidden = replace(mask, sensitive=(*mask.sensitive, *chosen.sensitive))
    client = client or ModelClient(_options(chosen), caller=caller)

    def on_model(role: str, kind: Callable[..., T], **options: Any) -> T | None:
        if role not in chosen.on_models:
            return None
        return kind(client, getattr(chosen, role), base_url=chosen.server_of(role), mask=hidden, **options)

    return ModelRoles(
        client,
        agent=on_model("agent", ModelAgent, style=Style(chosen.style)),
        judge=on_model("judge", ModelJudge),
        reflector=on_model("reflector", ModelReflector),
        embedder=on_model("embedding", ModelEmbedder),
    )


async def check_models(chosen: ModelSettings) -> None:
    """Raise ConfigurationError if a model cannot be called: an unknown provider, no package, no key. Sends nothing."""
    provider = ProviderCaller(chosen.timeout)
    for role in chosen.on_models:
        await provider.opened(getattr(chosen, role), chosen.server_of(role), chat=role != "embedding")
    await provider.close()


def _options(chosen: ModelSettings) -> ClientOptions:
    return ClientOptions(
        concurrency=chosen.concurrency,
        timeout=chosen.timeout,
        attempts=chosen.attempts,
        max_usd=chosen.budget,
        max_calls=chosen.max_calls,
        cache=chosen.cache if chosen.uses_models else None,  # do not create a file that nobody needs
        prices=chosen.prices,
    )
