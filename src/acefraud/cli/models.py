"""The options that choose models, the same for every command that can use them."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from acefraud.settings import ModelFlags, ModelSettings, read_file, resolve

PANEL = "Language models"


def _option(*names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=PANEL)


OPTIONS: dict[str, Any] = {
    "models": Annotated[
        str | None,
        _option("--models", metavar="WORD", help="Who plays all roles: openai or embedded. Default: embedded."),
    ],
    "agent": Annotated[
        str | None,
        _option("--agent-model", metavar="MODEL", help="Who decides: provider:name, as openai:gpt-4o-mini; embedded."),
    ],
    "judge": Annotated[
        str | None,
        _option("--judge-model", metavar="MODEL", help="Who judges where the truth is not known; as --agent-model."),
    ],
    "reflector": Annotated[
        str | None,
        _option("--reflector-model", metavar="MODEL", help="Who puts new bullets into words; as --agent-model."),
    ],
    "embedding": Annotated[
        str | None,
        _option("--embedding-model", metavar="MODEL", help="Who embeds texts: provider:name, wordllama or hashing."),
    ],
    "base_url": Annotated[
        str | None,
        _option("--base-url", metavar="URL", help="A server of your own, for roles on openai: any compatible one."),
    ],
    "style": Annotated[
        str | None,
        _option(
            "--style", metavar="STYLE", help="How the agent answers: reasoned, or direct (one word). Default: reasoned."
        ),
    ],
    "tier": Annotated[
        float | None,
        _option("--tier", metavar="SHARE", help="Ask no agent where the embedded engine is this certain, as 0.95."),
    ],
    "fallback": Annotated[
        str | None,
        _option("--fallback", metavar="WHAT", help="Where the agent fails: error, review or embedded. Default: error."),
    ],
    "concurrency": Annotated[int | None, _option("--concurrency", help="Calls under way at a time. Default: 8.")],
    "timeout": Annotated[
        float | None, _option("--timeout", metavar="SECONDS", help="Seconds to wait for one reply. Default: 60.")
    ],
    "budget": Annotated[
        float | None, _option("--budget", metavar="USD", help="The most to spend, in US dollars. Default: no limit.")
    ],
    "max_calls": Annotated[int | None, _option("--max-calls", help="The most calls to make. Default: no limit.")],
    "cache": Annotated[
        Path | None,
        _option(
            "--cache",
            help="File that keeps replies; vectors lie beside it. Default: $ACEFRAUD_CACHE, else in your cache folder.",
        ),
    ],
    "no_cache": Annotated[
        bool, _option("--no-cache", help="Keep no replies and no vectors, and use none that were kept.")
    ],
}
"""An option for each field of ModelFlags."""


def model_settings(flags: ModelFlags | None = None) -> ModelSettings:
    """What is in force, given the flags, the environment and acefraud.toml."""
    return resolve(flags or ModelFlags(), os.environ, read_file(os.environ))


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above, and what they come to as its one parameter of type ModelSettings.

    >>> @with_model_options
    ... def greet(name: str, *, chosen: ModelSettings) -> None:
    ...     print(f"{name}, the agent is {chosen.agent}")
    >>> list(inspect.signature(greet).parameters)[:3]
    ['name', 'models', 'agent']
    >>> greet("Ana", agent="openai:gpt-4o-mini")
    Ana, the agent is openai:gpt-4o-mini
    """
    signature = inspect.signature(command, eval_str=True)
    (chosen,) = (name for name, one in signature.parameters.items() if one.annotation is ModelSettings)

    @functools.wraps(command)
    def wrapped(*positional: Any, **given: Any) -> None:
        flags = ModelFlags(**{name: given.pop(name) for name in OPTIONS if name in given})
        command(*positional, **given, **{chosen: model_settings(flags)})

    own = [one for name, one in signature.parameters.items() if name != chosen]
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if name == "no_cache" else None, annotation=option
        )
        for name, option in OPTIONS.items()
    ]
    wrapped.__annotations__ = {one.name: one.annotation for one in (*own, *added)} | {"return": None}
    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return wrapped
