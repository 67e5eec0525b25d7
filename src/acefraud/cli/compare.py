"""`acefraud compare`: the three modes side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from acefraud.cli.console import (
    JsonOption,
    MappingOption,
    StrictOption,
    cast_for,
    line,
    note,
    out,
    print_json,
    progress,
    tell_bad_rows,
    tell_usage,
)
from acefraud.cli.models import with_model_options
from acefraud.cli.train import tell_mapping
from acefraud.datasets import SHIPPED, Dataset, load_dataset
from acefraud.evaluation import comparison as evaluation
from acefraud.evaluation.comparison import Comparison, Part
from acefraud.evaluation.curves import NAMES
from acefraud.evaluation.metrics import METRICS, Interval, in_percent
from acefraud.evaluation.on_models import ModelFigures
from acefraud.evaluation.report import write_report
from acefraud.settings import ModelSettings

SMALL = 500
"""A file with fewer rows and no times is compared by cross-validation unless told otherwise."""
FOLDS = 5


@with_model_options
def compare(
    source: Annotated[
        str, typer.Argument(metavar="[FILE]", help="Labelled transactions, or the name of the shipped synthetic world.")
    ] = SHIPPED[0],
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seeds to run.")] = 5,
    folds: Annotated[
        int | None,
        typer.Option(min=0, help="Cross-validate with so many folds; 0 splits once. Default: 5 for small files."),
    ] = None,
    test_share: Annotated[float, typer.Option(min=0.05, max=0.95, help="Share of a file to test on.")] = 0.3,
    report: Annotated[
        Path | None, typer.Option("--report", help="Folder for the report. Default: acefraud-report; none with --json.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=20, help="Use at most so many cases to learn from, and so many to test on.")
    ] = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
    *,
    chosen: ModelSettings,
) -> None:
    """Compare **vanilla**, **online only** and **offline + online** on the same cases.

    Vanilla decides by a fixed scorecard of general fraud knowledge. Online only starts with an empty playbook and
    learns from each outcome as it arrives. Offline + online studies the training part first, then goes on learning.
    Every case is decided before its label is heard.

    With no FILE, each seed makes its own synthetic world, split by time. A file is split by time where it has times
    (the last 30 % is the test), else at random with each label shared out evenly; small files without times are
    cross-validated.

        acefraud compare                       # the shipped world, five seeds, report in acefraud-report/
        acefraud compare tx.csv --json         # your own labelled history, for a script
    """
    data = load_dataset(source, mapping=mapping, strict=strict)
    if mapping is None and source not in SHIPPED:
        tell_mapping(data)
    independent = bool(data.test)
    parts = _worlds(source, seeds) if independent else _parts_of_file(data, seeds, folds, test_share)
    if limit is not None:
        parts = [evaluation.limited(part, limit) for part in parts]
    players = cast_for(chosen, data.mapping)
    try:
        with progress("comparing the modes") as done:
            result = evaluation.compare(parts, name=data.name, independent=independent, players=players, progress=done)
    finally:
        tell_usage(players.client)
    folder = report or (None if json else Path("acefraud-report"))
    page = write_report(result, folder) if folder else None
    if json:
        print_json(result.as_json())
        return
    out.print(modes_table(result))
    out.print(differences_table(result))
    if result.on_models and result.on_models.tiers:
        out.print(tiers_table(result.on_models))
    if result.on_models and result.on_models.fallbacks:
        failed, left = result.on_models.fallbacks, result.on_models.undecided
        line(f"In {failed:,} decisions the model failed; {left:,} were left to a person and out of all figures.")
    line(f"Intervals: {result.method}. {result.test_rows:,} cases decided per seed.", "dim")
    if page is not None:
        line(f"Report: {page}")


def _worlds(source: str, seeds: int) -> list[Part]:
    return list(evaluation.parts_of_worlds(lambda seed: load_dataset(source, seed=seed), range(seeds)))


def _parts_of_file(data: Dataset, seeds: int, folds: int | None, test_share: float) -> list[Part]:
    tell_bad_rows(data.bad_rows, data.unlabelled)
    if folds is None:
        folds = FOLDS if len(data) < SMALL and not data.has_time else 0
    if not data.has_time:
        data = data.without_duplicates()
        if data.dropped:
            note(f"{data.dropped:,} rows that repeat an earlier one were left out")
    return list(evaluation.parts_of_file(data, range(seeds), folds=folds, test_share=test_share))


def modes_table(result: Comparison) -> Table:
    """The figures of the modes."""
    table = Table(
        padding=(0, 0, 0, 1),
        title=f"{result.dataset}: three modes, {result.seeds} seed{'s' if result.seeds > 1 else ''}",
    )
    headings = ("mode", "accuracy", "fraud caught", "false declines", "PR-AUC", "bullets", "cited", "secs")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "mode" else "right")
    for mode, got in result.modes.items():
        table.add_row(
            NAMES[mode],
            *(_cell(got.figures[metric]) for metric in METRICS),
            f"{got.bullets:.0f}",
            f"{got.cited:.1f}",
            f"{got.seconds:.1f}",
        )
    return table


def differences_table(result: Comparison) -> Table:
    """The paired differences, in points."""
    table = Table(padding=(0, 0, 0, 1), title="Paired differences, in points")
    for heading in ("", "accuracy", "fraud caught", "false declines", "PR-AUC"):
        table.add_column(heading, justify="right" if heading else "left")
    for (better, worse), figures in zip(evaluation.PAIRS, result.differences.values(), strict=True):
        label = f"{NAMES[better]}\nless {NAMES[worse].lower()}"
        table.add_row(label, *(_cell(figures[metric], signed=True) for metric in METRICS))
    return table


def tiers_table(figures: ModelFigures) -> Table:
    """What the first tier saved, and what that cost in accuracy."""
    table = Table(padding=(0, 0, 0, 1), title="The clear cases without a call, beside all cases with one")
    for heading in ("mode", "calls saved", "of", "accuracy", "in full"):
        table.add_column(heading, justify="left" if heading == "mode" else "right")
    for one in figures.tiers:
        decisions = one.settled + one.asked
        table.add_row(NAMES[one.mode], f"{one.settled:,}", f"{decisions:,}", _cell(one.accuracy), _cell(one.in_full))
    return table


def _cell(interval: Interval, *, signed: bool = False) -> str:
    """The interval below the mean, so that the table stays narrow."""
    text = in_percent(interval, signed=signed).replace(" (", "\n").replace(")", "")
    return text.replace(" to ", "–").replace("100.0", "100")
