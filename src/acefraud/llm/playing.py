"""The roles that language models play, put together from what was chosen."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.llm.agent import ModelAgent
from acefraud.llm.calling import Caller
from acefraud.llm.client import ClientOptions, ModelClient
from acefraud.llm.embedder import ModelEmbedder
from acefraud.llm.judge import ModelJudge
from acefraud.llm.masking import Mask
from acefraud.llm.pricing import Price
from acefraud.llm.prompting import Style
from acefraud.llm.reflector import ModelReflector
from acefraud.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Players:
    """Who plays what; None where the embedded engine does. All share one client, and so its limits and its cache."""

    client: ModelClient
    agent: ModelAgent | None = None
    judge: ModelJudge | None = None
    reflector: ModelReflector | None = None
    embedder: ModelEmbedder | None = None


def play(
    chosen: ModelSettings,
    *,
    mask: Mask | None = None,
    caller: Caller | None = None,
    client: ModelClient | None = None,
) -> Players:
    """The players for what was chosen, on a client of their own or on a given one. This reads no key, sends nothing.

    >>> players = play(ModelSettings(agent="openai:gpt-4o-mini", cache=None))
    >>> players.agent.model, players.judge is None
    ('openai:gpt-4o-mini', True)
    """
    hidden = mask or Mask()
    hidden = Mask(sensitive=(*hidden.sensitive, *chosen.sensitive))
    client = client or ModelClient(_options(chosen), caller=caller)
    roles = chosen.on_models
    url = chosen.server_of
    agent, judge, reflector, embedder = None, None, None, None
    if "agent" in roles:
        style = Style(chosen.style)
        agent = ModelAgent(client, chosen.agent, style=style, base_url=url("agent"), mask=hidden)
    if "judge" in roles:
        judge = ModelJudge(client, chosen.judge, base_url=url("judge"), mask=hidden)
    if "reflector" in roles:
        reflector = ModelReflector(client, chosen.reflector, base_url=url("reflector"), mask=hidden)
    if "embedding" in roles:
        embedder = ModelEmbedder(client, chosen.embedding, base_url=url("embedding"), mask=hidden)
    return Players(client, agent, judge, reflector, embedder)


def _options(chosen: ModelSettings) -> ClientOptions:
    return ClientOptions(
        concurrency=chosen.concurrency,
        timeout=chosen.timeout,
        attempts=chosen.attempts,
        max_usd=chosen.budget,
        max_calls=chosen.max_calls,
        cache=chosen.cache if chosen.uses_models else None,  # a file that nobody needs is not made
        prices={model: Price(input=dollars[0], output=dollars[1]) for model, dollars in chosen.prices.items()},
    )
