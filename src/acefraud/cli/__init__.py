"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from acefraud import __version__
from acefraud.cli import backtest, compare, decide, doctor, explain, judge, learn, playbook, reread, train
from acefraud.errors import AcefraudError

app = typer.Typer(
    name="acefraud",
    help="A fraud-decision engine that learns in plain English.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(compare.compare)
app.command()(train.train)
app.command()(decide.decide)
app.command()(learn.learn)
app.command()(judge.judge)
app.command()(explain.explain)
app.command()(backtest.backtest)
app.command()(reread.reread)
app.command()(doctor.doctor)
app.add_typer(playbook.app, name="playbook")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"acefraud {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A fraud-decision engine that learns in plain English."""


def main() -> None:
    """Run a command. What the user can mend is one line on standard error and exit code 2."""
    try:
        app()
    except AcefraudError as problem:
        print(f"acefraud: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("acefraud: interrupted; what was not acknowledged was not written", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; nothing more can be told to anybody
        sys.exit(0)
    except OSError as problem:  # the output cannot be written, as on a full disk
        print(f"acefraud: {problem.filename or 'output'}: {problem.strerror or problem}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or leaving would try, and fail, once more
        sys.exit(2)
