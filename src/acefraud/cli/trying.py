"""One trial of each role: whether it answers, how fast, and what it took."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from acefraud.core.roles import Example, FactSummary
from acefraud.core.transaction import Transaction, Verdict
from acefraud.embedded.embedder import DEFAULT_EMBEDDER, embedder_named
from acefraud.embedded.facts import facts_of
from acefraud.embedded.judge import SimpleJudge
from acefraud.errors import AcefraudError
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.reflector import Reflector
from acefraud.settings import EMBEDDERS, ROLES, ModelSettings

TEXT = (
    "User (account age: 3 days) attempts $2,500 purchase of gift cards at 3:15 AM through a VPN from a new device. "
    "The usual amount is $80."
)
"""An invented transaction: no data of the user's is sent to find out whether a model answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of asking one role once."""

    seconds: float
    error: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """US dollars; None where no price is known, or the server does not count tokens."""
    logprobs: bool | None = None
    """Whether log-probabilities came back; None where none were asked for."""

    @property
    def answered(self) -> bool:
        """Whether there was an answer that could be read."""
        return not self.error


async def try_roles(chosen: ModelSettings) -> dict[str, Trial]:
    """Each role is asked one thing, anew: nothing comes from the cache, is asked twice, or is answered by another."""
    if not chosen.uses_models:
        return {role: await try_role(role, chosen, None) for role in ROLES}
    from acefraud.llm.masking import Mask  # noqa: PLC0415  # only needed where a model plays a role
    from acefraud.llm.playing import play  # noqa: PLC0415

    players = play(replace(chosen, cache=None, attempts=1, tier=None, fallback="error"), mask=Mask())
    try:
        return {role: await try_role(role, chosen, players) for role in ROLES}
    finally:
        await players.client.close()


async def try_role(role: str, chosen: ModelSettings, players: Any) -> Trial:
    """Ask one role, played by a model or embedded. `players` is what `acefraud.llm.playing.play` made."""
    on_model = role in chosen.on_models
    error, logprobs = "", None
    begun = time.perf_counter()
    try:
        if on_model:
            logprobs = await _ask_model(role, chosen, players)
        else:
            await _ask_embedded(role, chosen)
    except AcefraudError as failure:
        error = str(failure) or type(failure).__name__
    seconds = time.perf_counter() - begun
    used = players.client.usage.by_role.get(role) if on_model else None
    if used is None:
        return Trial(seconds=seconds, error=error, cost=None if on_model else 0.0, logprobs=logprobs)
    return Trial(
        seconds=seconds,
        error=error,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost=None if used.unpriced else used.cost,
        logprobs=logprobs,
    )


async def _ask_model(role: str, chosen: ModelSettings, players: Any) -> bool | None:
    """Whether log-probabilities came back; None where none were asked for."""
    facts = facts_of(Transaction(id="trial", text=TEXT)).facts
    if role == "agent":
        view = await players.agent.assess(TEXT, facts, (), None)
        return view.odds is not None if chosen.style == "direct" else None
    if role == "judge":
        await players.judge.assess_output(TEXT, Verdict.DECLINE)
    elif role == "reflector":
        missed = Example(text=TEXT, facts=facts, predicted=Verdict.APPROVE, correct=Verdict.DECLINE)
        amount = FactSummary(name="amount", kind="number", values="1 to 9,800, half of them below 120")
        vpn = FactSummary(name="vpn", kind="flag", values="true or false")
        await players.reflector.propose([missed], [amount, vpn], [])
    else:
        await players.embedder.fetch([TEXT])
    return None


async def _ask_embedded(role: str, chosen: ModelSettings) -> None:
    if role == "agent":
        SimpleFraudAgent().explain(TEXT)
    elif role == "judge":
        await SimpleJudge().rule(TEXT, Verdict.DECLINE, Verdict.DECLINE)
    elif role == "reflector":
        await Reflector().reflect(TEXT, Verdict.APPROVE, Verdict.DECLINE)
    else:
        embedder_named(embedder_in_force(chosen)).embed([TEXT])


def embedder_in_force(chosen: ModelSettings) -> str:
    """The embedded embedder that texts are embedded with, where no model does it."""
    return chosen.embedding if chosen.embedding in EMBEDDERS else DEFAULT_EMBEDDER
