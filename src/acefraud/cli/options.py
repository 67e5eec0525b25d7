"""The options that several commands share, among them those that choose models."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

from acefraud.settings import Settings
from acefraud.support.package_data import read_package_toml

PlaybookOption = Annotated[
    Path | None,
    typer.Option("--playbook", help="The playbook file. Default: $ACEFRAUD_PLAYBOOK, else playbook.db."),
]
_DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="ADDRESS",
        help="A PostgreSQL database in place of the file, as postgresql://user@host/name. Default: $ACEFRAUD_DATABASE.",
    ),
]
_DATABASE: ContextVar[str | None] = ContextVar("database", default=None)
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


def given_database() -> str | None:
    """The address that the command was given with --database, if any."""
    return _DATABASE.get()


def add_database_option(app: typer.Typer) -> None:
    """Give every command that has --playbook the option --database too. `workspace.place_of` reads both."""
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_database_option(group.typer_instance)
    for command in app.registered_commands:
        if command.callback is not None:
            command.callback = _with_database(command.callback)


def _with_database(command: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(command, eval_str=True)
    if "playbook" not in signature.parameters or "database" in signature.parameters:
        return command

    @functools.wraps(command)
    def wrapped(*positional: Any, database: str | None = None, **given: Any) -> Any:
        _DATABASE.set(database)
        return command(*positional, **given)

    own = list(signature.parameters.values())
    place = list(signature.parameters).index("playbook") + 1
    added = inspect.Parameter("database", own[place - 1].kind, default=None, annotation=_DatabaseOption)
    parameters = [*own[:place], added, *own[place:]]
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapped


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


def with_model_options(command: Callable[..., None], *, without: Collection[str] = ()) -> Callable[..., None]:
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
        if name not in without
    ]
    wrapped.__annotations__ = {one.name: one.annotation for one in (*own, *added)} | {"return": None}
    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return wrapped
