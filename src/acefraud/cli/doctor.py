"""`acefraud doctor`: which model plays which role, and whether it answers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from rich.table import Table
from typer import Option

from acefraud.cli.console import Said
from acefraud.cli.options import PlaybookOption
from acefraud.cli.workspace import existing_playbook, is_there, place_of
from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.transaction import Transaction, Verdict
from acefraud.display.short_repr import shown_text
from acefraud.engine.familiarity import FactChanges, fact_changes
from acefraud.errors import AcefraudError
from acefraud.facts.extraction import facts_of
from acefraud.llm.usage_meter import Usage
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER, embedder_named
from acefraud.roles.judge import SimpleJudge
from acefraud.roles.protocols import Example, FactSummary, Question
from acefraud.roles.reflector import Reflector
from acefraud.settings import EMBEDDED, EMBEDDERS, ROLES, ModelSettings

KEY_VARIABLES = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "cohere": ("CO_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "huggingface": ("HF_TOKEN",),
}
"""The variables in which each provider's own package looks for its key."""
DECIDING = ("agent", "embedding")
"""The roles that take part in every decision."""
TEXT = (
    "User (account age: 3 days) attempts $2,500 purchase of gift cards at 3:15 AM through a VPN from a new device. "
    "The usual amount is $80."
)
"""An invented transaction: none of the user's data is sent to find out whether a model answers."""


@dataclass(slots=True, kw_only=True)
class Trial:
    """The result of asking one role once."""

    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    logprobs: bool | None = None
    """Whether log-probabilities came back; None if they were not asked for."""
    error: str | None = None
    cost: float | None = 0.0
    """US dollars; None if no price is known or the server does not count tokens."""

    @property
    def cost_per_thousand(self) -> float | None:
        """US dollars for a thousand decisions like this one; None if that is not known."""
        return None if self.cost is None or self.error else round(1_000 * self.cost, 6)


def doctor(
    playbook: PlaybookOption = None,
    offline: Annotated[bool, Option(help="Show the settings only; call nothing.")] = False,
    *,
    settings: ModelSettings,
) -> Said:
    """Show which model plays which role, where that was set, and whether it answers.

    Each role is asked one question about an invented transaction: none of your data is sent. Of an API key, only
    whether its usual variable is set is shown. The exit code is 1 if a role fails.

    If there is a playbook, the facts of its latest day of decisions are compared with those it learnt from: which are
    missing, which are new, and which have shifted (another unit, other words, another share).

        acefraud doctor                         # what is in force, each role tried once
        acefraud doctor --playbook book.db      # and whether the facts are still those it learnt from
        acefraud doctor --models openai         # would it work?
        acefraud doctor --offline               # nothing is sent
    """
    trials = {} if offline else asyncio.run(try_roles(settings))
    rows = [_row(role, settings, trials.get(role)) for role in ROLES]
    costs = {role: trials[role].cost_per_thousand for role in DECIDING} if trials else None
    facts = None
    if playbook is not None or is_there(place_of(playbook)):
        with existing_playbook(playbook, read_only=True) as book:
            facts = fact_changes(book, DEFAULT_NODE)
    content = {"roles": rows, "usd_per_thousand_decisions": costs, "facts": facts and asdict(facts)}
    lines = [*_in_force(rows, settings, costs), *(_changes(facts) if facts else ())]
    return content, lines, int(any(row["answered"] is False for row in rows))


def _changes(facts: FactChanges) -> Iterator[str | tuple[str, str]]:
    differ = f"{len(facts.changes):,} differ" if facts.are_known else "too few to compare"
    yield f"Facts of {facts.decisions:,} decisions of the latest day, beside {facts.cases:,} cases: {differ}"
    for change in facts.changes:
        yield f"  {change.change}: {shown_text(change.name)}: {change.words}", "yellow"


async def try_roles(settings: ModelSettings) -> dict[str, Trial]:
    """Ask each role one question: without cache, retries, a first tier or a fallback."""
    if not settings.uses_models:
        return {role: await try_role(role, settings, None) for role in ROLES}
    from acefraud.display.redaction import Masker  # noqa: PLC0415  # only needed if a model plays a role
    from acefraud.roles.model.build import build_model_roles  # noqa: PLC0415

    roles = build_model_roles(replace(settings, cache=None, attempts=1, tier=None, fallback="error"), mask=Masker())
    try:
        return {role: await try_role(role, settings, roles) for role in ROLES}
    finally:
        await roles.client.close()


async def try_role(role: str, settings: ModelSettings, roles: Any) -> Trial:
    """Ask one role, played by a model or embedded. `roles` comes from `build_model_roles`."""
    trial, on_model, started = Trial(), role in settings.on_models, time.perf_counter()
    try:
        if on_model:
            trial.logprobs = await _ask_model(role, settings, roles)
        else:
            await _ask_embedded(role, settings)
    except AcefraudError as failure:
        trial.error = str(failure) or type(failure).__name__
    trial.seconds = round(time.perf_counter() - started, 3)
    if on_model:
        used = roles.client.usage.by_role.get(role, Usage(unpriced=1))
        trial.cost = None if used.unpriced else used.cost
        trial.input_tokens, trial.output_tokens = used.input_tokens, used.output_tokens
    return trial


async def _ask_model(role: str, settings: ModelSettings, roles: Any) -> bool | None:
    """Whether log-probabilities came back; None if they were not asked for."""
    facts = facts_of(Transaction(id="trial", text=TEXT)).facts
    if role == "agent":
        view = await roles.agent.assess(Question(TEXT, facts))
        return view.odds is not None if settings.style == "direct" else None
    if role == "judge":
        await roles.judge.assess_output(TEXT, Verdict.DECLINE)
    elif role == "reflector":
        missed = Example(text=TEXT, facts=facts, predicted=Verdict.APPROVE, correct=Verdict.DECLINE)
        amount = FactSummary(name="amount", kind="number", values="1 to 9,800, half of them below 120")
        vpn = FactSummary(name="vpn", kind="flag", values="true or false")
        await roles.reflector.propose([missed], [amount, vpn], [])
    else:
        await roles.embedder.fetch([TEXT])
    return None


async def _ask_embedded(role: str, settings: ModelSettings) -> None:
    if role == "agent":
        SimpleFraudAgent().explain(TEXT)
    elif role == "judge":
        await SimpleJudge().rule(TEXT, Verdict.DECLINE, Verdict.DECLINE)
    elif role == "reflector":
        await Reflector().reflect(TEXT, Verdict.APPROVE, Verdict.DECLINE)
    else:
        embedder_named(_embedder(settings)).embed([TEXT])


def _embedder(settings: ModelSettings) -> str:
    """The embedded embedder in force."""
    return settings.embedding if settings.embedding in EMBEDDERS else DEFAULT_EMBEDDER


def _row(role: str, settings: ModelSettings, trial: Trial | None) -> dict[str, Any]:
    on_model = role in settings.on_models
    model = _embedder(settings) if role == "embedding" and not on_model else getattr(settings, role)
    tried = {} if trial is None else asdict(trial)
    tried.pop("cost", None)
    return {
        "role": role,
        "model": model,
        "played_by": "model" if on_model else EMBEDDED,
        "chosen_by": settings.chosen_by.get(role, "default"),
        "base_url": _without_password(settings.server_of(role)),
        "key": _key(model) if on_model else None,
        "answered": None if trial is None else not trial.error,
        **tried,
    }


def _key(model: str) -> dict[str, Any] | None:
    """The name of the variable and whether it is set, never its value; None if the name is not known."""
    provider = model.partition(":")[0].removesuffix("-chat").removesuffix("-responses")
    names = KEY_VARIABLES.get(provider)
    if names is None:
        return None
    present = next((name for name in names if os.environ.get(name)), None)
    return {"variable": present or names[0], "set": present is not None}


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _in_force(
    rows: list[dict[str, Any]], settings: ModelSettings, costs: dict[str, float | None] | None
) -> Iterator[str | tuple[str, str] | Table]:
    in_force = Table("role", "model", "chosen by", "server", "key", padding=(0, 0, 0, 1), title="In force")
    tried = Table("role", "answered", "secs", "tokens", "log-probs", padding=(0, 0, 0, 1), title="Tried once")
    for column in in_force.columns:
        column.overflow = "fold"
    for row in rows:
        embedded, key = row["played_by"] == EMBEDDED, row["key"]
        server = "-" if embedded else row["base_url"] or "the provider's"
        variable = "not known" if key is None else f"{key['variable']} {'set' if key['set'] else 'not set'}"
        in_force.add_row(row["role"], row["model"], row["chosen_by"], server, "-" if embedded else variable)
        if costs is not None:
            tokens = "-" if embedded else f"{row['input_tokens']:,} in, {row['output_tokens']:,} out"
            logprobs = {True: "yes", False: "no", None: "-" if embedded else "not asked for"}[row["logprobs"]]
            answered = "yes" if row["answered"] else f"no: {row['error']}"
            tried.add_row(row["role"], answered, f"{row['seconds']:.2f}", tokens, logprobs)
    yield in_force
    if costs is not None:
        yield tried
    if settings.base_url and not any(settings.server_of(role) for role in ROLES):
        yield f"{_without_password(settings.base_url)} is not used: no role is on openai", "yellow"
    if costs is not None:
        each = ", ".join(f"{role} {'no price known' if usd is None else f'${usd:.4g}'}" for role, usd in costs.items())
        yield f"A thousand decisions like this one: {each}"
