"""The options that several commands share, among them those that choose models."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from acefraud.settings import Settings
from acefraud.support.package_data import read_package_toml

T = TypeVar("T")
PlaybookOption = Annotated[
    Path | None,
    typer.Option("--playbook", help="The playbook file. Default: $ACEFRAUD_PLAYBOOK, else playbook.db."),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="ADDRESS",
        help="A PostgreSQL database in place of the file, as postgresql://user@host/name. Default: $ACEFRAUD_DATABASE.",
    ),
]
MappingOption = Annotated[
    Path | None,
    typer.Option("--mapping", help="TOML file that says which column is the id, time, label, amount and text."),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at the first row that cannot be read, instead of skipping it.")
]
DaysAheadOption = Annotated[
    float,
    typer.Option(
        "--days-ahead", min=0, help="How far after now a transaction may be dated; a later time counts in no history."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
WhoOption = Annotated[str | None, typer.Option("--who", help="Your name. Default: $ACEFRAUD_WHO, else your user name.")]
WhyOption = Annotated[str, typer.Option("--why", help="The reason, kept in the ledger.")]


_KINDS: dict[str, Any] = {
    "text": str | None,
    "number": float | None,
    "whole": int | None,
    "path": Path | None,
    "flag": bool,
}


def _model_option(name: str, help: str, kind: str = "text", metavar: str | None = None) -> Any:
    option = typer.Option(name, help=help, metavar=metavar, rich_help_panel="Language models")
    return Annotated[_KINDS[kind], option]


MODEL_OPTIONS = {
    field: _model_option(**option)
    for field, option in read_package_toml("acefraud.cli", "model_options.toml", dict[str, dict[str, str]]).items()
}
"""The options of ``model_options.toml``, by the field of ModelSettings that they set."""


def with_model_options(command: Callable[..., T], *, without: Collection[str] = ()) -> Callable[..., T]:
    """Give a command the options above, `without` some, and pass it the resulting ModelSettings as `settings`.

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
    def wrapped(*positional: Any, **given: Any) -> T:
        flags = {name: given.pop(name) for name in MODEL_OPTIONS if name in given}
        return command(*positional, **given, settings=Settings.from_environment(flags=flags).models)

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "settings"]
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if name == "no_cache" else None, annotation=option
        )
        for name, option in MODEL_OPTIONS.items()
        if name not in without
    ]
    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return wrapped
