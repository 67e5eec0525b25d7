"""The command line: parse the options, call the package, print the result. May import every other folder.

The module of a command is imported when the command runs, so `acefraud --help` and `--version` stay quick.
"""

from __future__ import annotations

import os
import sys
import warnings
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from acefraud import __version__
from acefraud.errors import AcefraudError, InputWarning

SUMMARIES = {
    "compare": "Compare **vanilla**, **online only** and **offline + online** on the same cases, beside **LightGBM**.",
    "train": "Learn bullets from labelled history and add them to a playbook.",
    "decide": "Decide transactions with a playbook and record the decisions.",
    "score": "Score files of many transactions with a playbook. Nothing is recorded.",
    "learn": "Take in outcomes that have arrived, and learn from them.",
    "judge": "Ask a model whether decisions without an outcome were right.",
    "explain": "Show the stages, scores and reasons of a decision.",
    "attest": "Print digests of a playbook, to tell whether two machines hold and compute the same.",
    "backtest": "Measure a condition, or every bullet of a playbook and its decisions, on labelled history.",
    "reread": "Read the texts of remembered cases again, with the reader of this version.",
    "doctor": "Show which model plays which role, where that was set, and whether it answers.",
    "ledger": "Show what is recorded and how much room it takes, and archive old decisions.",
    "backup": "Copy a playbook with everything in it but the API keys, while others go on using it.",
    "restore": "Make a playbook from a backup, with everything in it.",
    "playbook": "Read, write, approve, pin, snooze and retire rules.",
    "threshold": "Show, preview and set from which probability on to decline, and what goes to a person.",
    "feed": "Say how outcomes arrive, what silence means, and settle the level of fraud.",
    "facts": "List the facts that rules can be about.",
    "lists": "Keep lists of values that rules can refer to.",
    "serve": "Serve a playbook over HTTP: decisions, outcomes and rules.",
    "keys": "Create, list and revoke the API keys of the service.",
}
"""The first line of each command's help, so that the list of commands needs none of their modules."""
_MODULES = {
    "attest": "explain",
    "backtest": "compare",
    "backup": "ledger",
    "feed": "threshold",
    "judge": "learn",
    "keys": "serve",
    "lists": "facts",
    "reread": "facts",
    "restore": "ledger",
    "score": "decide",
}
"""Where a command is, unless a module has its name."""

REMEDIES = {
    "create a list": ". `acefraud lists create` makes one",
    "list the keys": "; `acefraud keys list` shows them",
    "replace the file": ", or replace it with --force",
    "start a playbook": ". `acefraud train`, `acefraud serve` and other commands that write start a playbook there",
}
"""How what would help against an error is done with this command."""

app = typer.Typer(
    name="acefraud",
    help="A fraud-decision engine that learns in plain English.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def group(name: str) -> typer.Typer:
    """A command that is a group of commands."""
    return typer.Typer(help=SUMMARIES[name], no_args_is_help=True, add_completion=False)


@cache
def load(name: str) -> Any:
    """A command, or group of commands: what has its name in its module."""
    module = import_module(f"acefraud.cli.{_MODULES.get(name, name)}")
    from acefraud.cli.workspace import complete  # noqa: PLC0415  # the list of commands opens no playbook

    loaded: Any = getattr(module, f"{name}_app", None)
    if loaded is None:
        loaded = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        loaded.command(name)(getattr(module, name))
    for command in loaded.registered_commands:
        command.callback = complete(command.callback)
    return typer.main.get_command(loaded)


class LazyCommand(TyperCommand):
    """A command, or group of commands, whose module is imported when it is called."""

    @property
    def loaded(self) -> Any:
        """The command itself."""
        return load(str(self.name))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments as the command itself does."""
        return self.loaded.make_context(info_name, args, parent, **extra)


for name, summary in SUMMARIES.items():
    app.command(name, cls=LazyCommand, help=summary)(lambda: None)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"acefraud {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001  # its callback acts
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A fraud-decision engine that learns in plain English."""
    warnings.simplefilter("ignore", InputWarning)  # the commands print what is unusual as notes


def main() -> None:
    """Run a command. An error that the user can fix is one line on standard error and exit code 2."""
    try:
        app(prog_name="acefraud")
    except AcefraudError as problem:
        print(f"acefraud: {problem}{REMEDIES.get(problem.remedy, '')}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as left:
        if isinstance(getattr(left.__context__, "__cause__", None), KeyboardInterrupt):  # typer ends without a word
            print("acefraud: stopped; what was not acknowledged was not written", file=sys.stderr)
        raise
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone, so there is nobody left to tell
        sys.exit(0)
    except OSError as problem:  # the output cannot be written, as on a full disk
        print(f"acefraud: {problem.filename or 'output'}: {problem.strerror or problem}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise exiting tries, and fails, again
        sys.exit(2)
