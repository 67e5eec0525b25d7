"""`python -m benchmarks quality`: how well the playbook ranks fraud, compared with other learners."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from acefraud.errors import ConfigurationError, InputError
from benchmarks.console import (
    JsonOption,
    err,
    json_file,
    line,
    names_in,
    note,
    note_bad_rows,
    out,
    print_json,
    progress,
    write_files,
)
from benchmarks.quality.contenders import chosen
from benchmarks.quality.dataset_folder import Source, data_folder, sources
from benchmarks.quality.measurement import STREAM_ROWS, DatasetFigures, measure
from benchmarks.quality.measures import CALIBRATION, FALSE_POSITIVES
from benchmarks.quality.pictures import pictures
from benchmarks.quality.results import Quality, described, ratio, remarks


def quality(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder of datasets: NAME/data.csv or NAME/data.parquet. Default: $ACEFRAUD_DATA."),
    ] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these datasets, separated by commas.")] = None,
    models: Annotated[str | None, typer.Option(help="Only these models, separated by commas.")] = None,
    mappings: Annotated[
        Path | None, typer.Option(help="Folder with a mapping NAME.toml for datasets that have none beside them.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seeds to run.")] = 1,
    last: Annotated[
        int | None, typer.Option("--rows", min=20, help="Only the most recent rows of each dataset, for a quick look.")
    ] = None,
    stream_rows: Annotated[
        int,
        typer.Option(
            min=100, help="Stream learners learn from and are measured on at most this many of the latest rows."
        ),
    ] = STREAM_ROWS,
    entity_disjoint: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Split by this entity: none of its values is both learnt from and tested on."
        ),
    ] = None,
    folder_out: Annotated[Path, typer.Option("--out", help="Folder for the figures and plots.")] = Path("out/quality"),
    json: JsonOption = False,
) -> None:
    """Measure how well the playbook ranks fraud, compared with **LightGBM** and other learners, on your own datasets.

    Everyone learns from the same rows and is tested on the last 30 % by time (without times: 30 % of each label at
    random). Nobody learns from labels that arrive after the test has begun. Stream learners decide each row before its
    label arrives. A dataset is read with NAME/mapping.toml, else with the one in `--mappings`, else with a guess, which
    is printed. Figures, a table and plots are written to `--out` after each dataset. If a learner fails or a dataset
    cannot be read, its row says so, the others go on, and the exit code is 1.

        python -m benchmarks quality data --mappings benchmarks/mappings
        python -m benchmarks quality data --datasets cards --models lightgbm,tree --rows 20000 --json
    """
    contenders = chosen(names_in(models))
    for factory in contenders.values():
        factory(0)  # so that a missing library is reported now, not after an hour
    found = sources(data_folder(folder), names=names_in(datasets), mappings=mappings)
    measured: list[DatasetFigures] = []
    not_measured: dict[str, str] = {}
    for source in found:
        try:
            data = source.load(last)
            note_guess(source, data.mapping.describe(), json=json)
            note_bad_rows(data)
            with progress(f"measuring on {source.name}") as done:
                figures = measure(
                    data,
                    contenders,
                    seeds=range(seeds),
                    stream_rows=stream_rows,
                    entity_disjoint=entity_disjoint,
                    progress=done,
                )
        except (InputError, ConfigurationError) as problem:
            if len(found) == 1:
                raise
            not_measured[source.name] = str(problem)
            note(f"{source.name} is not measured: {problem}")
            continue
        measured.append(figures)
        _write(Quality(measured, seeds, not_measured), figures, folder_out)
        if not json:
            _print_figures(figures)
    if not measured:
        first = next(iter(not_measured.items()))
        raise InputError(
            f"no dataset could be measured; the first is {': '.join(first)}", file=str(data_folder(folder))
        )
    result = Quality(measured, seeds, not_measured)
    _write(result, measured[-1], folder_out)  # once more, for datasets that could not be read after the last
    _print(result, folder_out, json=json)
    if result.failed:
        raise typer.Exit(1)


def _print_figures(figures: DatasetFigures) -> None:
    line(described(figures))
    out.print(figures_table(figures))
    for text in remarks(figures):
        line(text)


def _print(result: Quality, folder_out: Path, *, json: bool) -> None:
    """What all datasets together say, and what failed."""
    if json:
        print_json(result.as_json())
    else:
        if result.has_ratios:
            _print_ratios(result)
        for name, why in result.not_measured.items():
            line(f"{name}: not measured: {why}")
        line(f"Intervals: {result.method}.", "dim")
        line(f"Figures and plots: {folder_out}")
    for failure in result.failed:
        note(f"failed: {failure}")


def note_guess(source: Source, mapping: str, *, json: bool) -> None:
    """Print the mapping of a dataset that was read with a guess."""
    if source.mapping is not None:
        return
    note(f"{source.name} has no mapping; it was read with this guess:")
    (err if json else out).print(mapping, markup=False, highlight=False, soft_wrap=True)


def _write(result: Quality, latest: DatasetFigures, folder: Path) -> None:
    """Write after every dataset, so that an interrupted run keeps what it measured."""
    contents = {
        "quality.json": json_file(result.as_json()),
        "quality.md": result.as_markdown().encode(),
        **pictures(latest),
    }
    write_files(folder, contents)


def figures_table(figures: DatasetFigures) -> Table:
    """The main figures of all models on a dataset, narrow enough for a terminal; the files have the rest."""
    table = Table(padding=(0, 0, 0, 1), title=figures.name, box=SIMPLE_HEAD)
    for heading in (
        "model",
        "AP\n95 %",
        "AUC",
        "recall\n.5/1%",
        "ECE\nmass",
        "AP to\nLGBM",
        "size",
        "cited",
        "secs",
        "rows/s",
    ):
        table.add_column(heading, justify="left" if heading == "model" else "right", no_wrap=True)
    for name, model in figures.models.items():
        found = model.figures
        precision = found["average_precision"]
        table.add_row(
            name.replace("_", "_\n"),
            f"{short(precision.mean)}\n{short(precision.low)}–{short(precision.high)}",
            short(found["roc_auc"].mean),
            "\n".join(short(found[recall].mean) for recall in FALSE_POSITIVES),
            "\n".join(short(found[error].mean) for error in CALIBRATION),
            short(ratio(figures, name)),
            "" if model.size is None else f"{model.size:,.0f}",
            "" if model.cited_mean is None else f"{model.cited_mean:.1f}\n≤{model.cited_max}",
            f"{model.fit_seconds:,.1f}\n{model.predict_seconds:,.1f}",
            "" if model.rows_per_second is None else f"{model.rows_per_second:,.0f}",
        )
    for name in figures.failed:
        table.add_row(name, "failed")
    return table


def short(value: float | None) -> str:
    """Three digits without a leading zero.

    >>> short(0.1234), short(1.0), short(None)
    ('.123', '1.000', '')
    """
    return "" if value is None or math.isnan(value) else f"{value:.3f}".removeprefix("0")


def _print_ratios(result: Quality) -> None:
    line("Average precision as a share of LightGBM's", "bold")
    table = Table(padding=(0, 0, 0, 1))
    names = [*(data.name for data in result.datasets), "geometric_mean"]
    for heading in ("model", *names):
        table.add_column(heading.replace("_", " "), justify="left" if heading == "model" else "right")
    for model, ratios in result.ratios().items():
        table.add_row(model, *("" if (one := ratios[name]) is None else f"{one:.3f}" for name in names))
    out.print(table)
