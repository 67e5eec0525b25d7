"""`acefraud doctor`: who plays which role, and whether they answer."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.table import Table

from acefraud.cli.console import JsonOption, line, out, print_json
from acefraud.cli.models import with_model_options
from acefraud.cli.trying import Trial, embedder_in_force, try_roles
from acefraud.settings import EMBEDDED, ROLES, ModelSettings

KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "cohere": ("CO_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "huggingface": ("HF_TOKEN",),
}
"""The variables that each provider's own package looks for its key in."""
DECIDING = ("agent", "embedding")
"""The roles that take part in each decision."""
THOUSAND = 1_000


@with_model_options
def doctor(
    offline: Annotated[bool, typer.Option("--offline", help="Say what is in force and try nothing.")] = False,
    json: JsonOption = False,
    *,
    chosen: ModelSettings,
) -> None:
    """Say which model plays which role, who chose it, and whether it answers.

    Each role is asked one thing about an invented transaction: none of your data is sent. Of a key it is said only
    whether its usual variable is set. The exit code is 1 where a role fails.

        acefraud doctor                         # what is in force, each role tried once
        acefraud doctor --models openai         # would it work?
        acefraud doctor --offline               # nothing is sent
    """
    trials = {} if offline else asyncio.run(try_roles(chosen))
    rows = [_row(role, chosen, trials.get(role)) for role in ROLES]
    costs = {role: _per_thousand(trials[role]) for role in DECIDING} if trials else None
    if json:
        print_json({"roles": rows, "usd_per_thousand_decisions": costs})
    else:
        out.print(_in_force(rows))
        if trials:
            out.print(_tried(rows))
        _tell_more(chosen, costs)
    if any(row["answered"] is False for row in rows):
        raise typer.Exit(1)


def _row(role: str, chosen: ModelSettings, trial: Trial | None) -> dict[str, Any]:
    on_model = role in chosen.on_models
    model = embedder_in_force(chosen) if role == "embedding" and not on_model else getattr(chosen, role)
    found: dict[str, Any] = {
        "role": role,
        "model": model,
        "played_by": "model" if on_model else EMBEDDED,
        "chosen_by": chosen.said_by.get(role, "default"),
        "base_url": _without_password(chosen.server_of(role)),
        "key": _key(model) if on_model else None,
        "answered": None if trial is None else trial.answered,
    }
    if trial is not None:
        found |= {
            "seconds": round(trial.seconds, 3),
            "input_tokens": trial.input_tokens,
            "output_tokens": trial.output_tokens,
            "logprobs": trial.logprobs,
            "error": trial.error or None,
        }
    return found


def _key(model: str) -> dict[str, Any] | None:
    """The name of the variable and whether it is set, never what is in it; None where the name is not known."""
    provider = model.partition(":")[0].removesuffix("-chat").removesuffix("-responses")
    names = KEYS.get(provider)
    if names is None:
        return None
    present = next((name for name in names if os.environ.get(name)), None)
    return {"variable": present or names[0], "set": present is not None}


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _per_thousand(trial: Trial) -> float | None:
    """What a thousand decisions like the trial cost; None where that is not known."""
    if trial.cost is None or not trial.answered:
        return None
    return round(THOUSAND * trial.cost, 6)


def _in_force(rows: list[dict[str, Any]]) -> Table:
    table = Table("role", "model", "chosen by", "server", "key", padding=(0, 0, 0, 1), title="In force")
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        server, key = row["base_url"] or "the provider's", row["key"]
        told = "not known" if key is None else f"{key['variable']} {'set' if key['set'] else 'not set'}"
        sent = (server, told) if row["played_by"] != EMBEDDED else ("-", "-")
        table.add_row(row["role"], row["model"], row["chosen_by"], *sent)
    return table


def _tried(rows: list[dict[str, Any]]) -> Table:
    table = Table("role", "answered", "secs", "tokens", "log-probs", padding=(0, 0, 0, 1), title="Tried once")
    for row in rows:
        embedded = row["played_by"] == EMBEDDED
        tokens = "-" if embedded else f"{row['input_tokens']:,} in, {row['output_tokens']:,} out"
        odds = {True: "yes", False: "no", None: "-" if embedded else "not asked for"}[row["logprobs"]]
        answered = "yes" if row["answered"] else f"no: {row['error']}"
        table.add_row(row["role"], answered, f"{row['seconds']:.2f}", tokens, odds)
    return table


def _tell_more(chosen: ModelSettings, costs: dict[str, float | None] | None) -> None:
    if chosen.base_url and not any(chosen.server_of(role) for role in ROLES):
        line(f"{_without_password(chosen.base_url)} is not used: no role is on openai", "yellow")
    if costs is None:
        return
    each = ", ".join(f"{role} {'no price known' if usd is None else f'${usd:.4g}'}" for role, usd in costs.items())
    line(f"A thousand decisions like this one: {each}")
