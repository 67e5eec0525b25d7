"""The options that several commands share, among them those that choose models."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from acefraud.settings import Settings

PlaybookOption = Annotated[
    Path | None,
    typer.Option("--playbook", help="The playbook file. Default: $ACEFRAUD_PLAYBOOK, else playbook.db."),
]
MappingOption = Annotated[
    Path | None,
    typer.Option("--mapping", help="TOML file that says which column is the id, time, label, amount and text."),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at the first row that cannot be read, instead of skipping it.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
WhoOption = Annotated[str | None, typer.Option("--who", help="Your name. Default: $ACEFRAUD_WHO, else your user name.")]
WhyOption = Annotated[str, typer.Option("--why", help="The reason, kept in the ledger.")]


def _model_option(kind: Any, name: str, help: str, metavar: str | None = None) -> Any:
    return Annotated[kind, typer.Option(name, help=help, metavar=metavar, rich_help_panel="Language models")]


MODEL_OPTIONS = {
    "models": _model_option(
        str | None, "--models", "Who plays all roles: openai or embedded. Default: embedded.", "WORD"
    ),
    "agent": _model_option(
        str | None, "--agent-model", "Who decides: embedded, or provider:name such as openai:gpt-4o-mini.", "MODEL"
    ),
    "judge": _model_option(
        str | None, "--judge-model", "Who judges decisions without an outcome; as --agent-model.", "MODEL"
    ),
    "reflector": _model_option(str | None, "--reflector-model", "Who writes new bullets; as --agent-model.", "MODEL"),
    "embedding": _model_option(
        str | None, "--embedding-model", "Who embeds texts: provider:name, wordllama or hashing.", "MODEL"
    ),
    "base_url": _model_option(
        str | None, "--base-url", "Your own OpenAI-compatible server, for roles on openai.", "URL"
    ),
    "style": _model_option(
        str | None, "--style", "How the agent answers: reasoned, or direct (one word). Default: reasoned.", "STYLE"
    ),
    "tier": _model_option(
        float | None, "--tier", "Skip the agent if the embedded engine is this certain, such as 0.95.", "SHARE"
    ),
    "fallback": _model_option(
        str | None, "--fallback", "If the agent fails: error, review or embedded. Default: error.", "WHAT"
    ),
    "concurrency": _model_option(int | None, "--concurrency", "How many calls run at the same time. Default: 8."),
    "timeout": _model_option(float | None, "--timeout", "Seconds to wait for one reply. Default: 60.", "SECONDS"),
    "budget": _model_option(float | None, "--budget", "The most to spend, in US dollars. Default: no limit.", "USD"),
    "max_calls": _model_option(int | None, "--max-calls", "The most calls to make. Default: no limit."),
    "cache": _model_option(
        Path | None,
        "--cache",
        "File that keeps replies. Default: $ACEFRAUD_CACHE, else in your cache folder.",
    ),
    "no_cache": _model_option(bool, "--no-cache", "Neither keep replies nor use those kept earlier."),
}
"""The options that choose models, by the field of ModelSettings that they set."""


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above, and pass it the resulting ModelSettings as `settings`.

    >>> from acefraud.settings import ModelSettings
    >>> @with_model_options
    ... def greet(name: str, *, settings: ModelSettings) -> None:
    ...     print(f"{name}, the agent is {settings.agent}")
    >>> list(inspect.signature(greet).parameters)[:3]
    ['name', 'models', 'agent']
    >>> greet("Ana", agent="openai:gpt-4o-mini")
    Ana, the agent is openai:gpt-4o-mini
    """

    @functools.wraps(command)
    def wrapped(*positional: Any, **given: Any) -> None:
        flags = {name: given.pop(name) for name in MODEL_OPTIONS if name in given}
        command(*positional, **given, settings=Settings.from_environment(flags=flags).models)

    signature = inspect.signature(command, eval_str=True)
    own = [one for name, one in signature.parameters.items() if name != "settings"]
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if name == "no_cache" else None, annotation=option
        )
        for name, option in MODEL_OPTIONS.items()
    ]
    wrapped.__annotations__ = {one.name: one.annotation for one in (*own, *added)} | {"return": None}
    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return wrapped
