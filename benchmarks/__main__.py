"""`python -m benchmarks`: run from the root of the repository."""

from __future__ import annotations

import sys

import typer

from acefraud.errors import AcefraudError
from benchmarks.book_size import bullets
from benchmarks.change import change
from benchmarks.entities import entities
from benchmarks.estimator import estimator
from benchmarks.feeds import feeds
from benchmarks.fits import fits
from benchmarks.footprint import footprint
from benchmarks.growth import growth
from benchmarks.hearing import hearing
from benchmarks.ledger import ledger
from benchmarks.lessons import lessons
from benchmarks.odd_inputs import odd_inputs
from benchmarks.parts import parts
from benchmarks.preview import preview
from benchmarks.quality.command import quality
from benchmarks.reviews import reviews
from benchmarks.service.command import service
from benchmarks.small import small
from benchmarks.speed.command import speed
from benchmarks.stream import stream
from benchmarks.train import train
from benchmarks.tuned.command import tuned
from benchmarks.witness import witness
from benchmarks.writers import writers

app = typer.Typer(
    name="benchmarks",
    help="Benchmarks that anybody can repeat.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(quality)
app.command()(tuned)
app.command()(lessons)
app.command()(change)
app.command()(feeds)
app.command()(speed)
app.command()(train)
app.command()(parts)
app.command()(hearing)
app.command()(stream)
app.command()(entities)
app.command()(ledger)
app.command()(writers)
app.command()(witness)
app.command()(growth)
app.command()(preview)
app.command("odd-inputs")(odd_inputs)
app.command()(estimator)
app.command()(fits)
app.command()(service)
app.command()(footprint)
app.command()(bullets)
app.command()(small)
app.command()(reviews)


def main() -> None:
    """Run a benchmark. An error that the user can fix is one line on standard error and exit code 2."""
    try:
        app()
    except AcefraudError as problem:
        print(f"benchmarks: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
