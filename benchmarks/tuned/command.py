"""`python -m benchmarks tuned`: the playbook beside LightGBM and CatBoost with settings from a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from acefraud import Dataset
from benchmarks.console import (
    JsonOption,
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
from benchmarks.quality.command import note_guess
from benchmarks.quality.contenders import OURS, REFERENCE, Factory, chosen
from benchmarks.quality.dataset_folder import data_folder, sources
from benchmarks.quality.measurement import Progress, measure
from benchmarks.quality.peers import needed
from benchmarks.quality.splits import split_rows
from benchmarks.tuned.boosters import EXTRA, Booster, CatBoostBooster, LightGbmBooster
from benchmarks.tuned.results import HEADINGS, Comparison, Measured
from benchmarks.tuned.search import Found, Limits, Tuned, search, search_parts

BOOSTERS: Mapping[str, type[Booster]] = {"tuned_lightgbm": LightGbmBooster, "tuned_catboost": CatBoostBooster}


def tuned(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder of datasets: NAME/data.csv or NAME/data.parquet. Default: $ACEFRAUD_DATA."),
    ] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these datasets, separated by commas.")] = None,
    mappings: Annotated[
        Path | None, typer.Option(help="Folder with a mapping NAME.toml for datasets that have none beside them.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seeds to run after the search.")] = 3,
    trials: Annotated[int, typer.Option(min=1, help="The most trials of a search.")] = 50,
    minutes: Annotated[float, typer.Option(min=0.01, help="The longest time of a search.")] = 15.0,
    folder_out: Annotated[Path, typer.Option("--out", help="Folder for the figures.")] = Path("out/tuned"),
    json: JsonOption = False,
) -> None:
    """Measure the playbook beside **tuned** LightGBM and CatBoost, on your own datasets.

    For each of them, Optuna searches for the settings with the best average precision on the latest 25 % of the
    training rows (without times: 25 % of each label), with at most 100,000 rows. With the best settings, they learn
    from all training rows. Ours has the shipped defaults. The test rows are those of `benchmarks quality`; no search
    sees them. Figures are written to `--out` after each dataset.

        python -m benchmarks tuned data --mappings benchmarks/mappings
        python -m benchmarks tuned data --datasets cards --trials 10 --minutes 2 --json
    """
    for module in ("optuna", "catboost", "lightgbm"):
        needed(module, EXTRA)
    limits = Limits(trials, 60 * minutes)
    measured: list[Measured] = []
    for source in sources(data_folder(folder), names=names_in(datasets), mappings=mappings):
        data = source.load()
        note_guess(source, data.mapping.describe(), json=json)
        note_bad_rows(data)
        with progress(f"searching on {source.name}") as done:
            found = searched(data, range(seeds), limits, done)
        with progress(f"measuring on {source.name}") as done:
            figures = measure(data, contenders(found), seeds=range(seeds), progress=done)
        measured.append(Measured(figures, {name: tuple(by_seed.values()) for name, by_seed in found.items()}))
        result = Comparison(measured, seeds)
        contents = {"tuned.json": json_file(result.as_json()), "tuned.md": result.as_markdown().encode()}
        write_files(folder_out, contents)
    if json:
        print_json(result.as_json())
    else:
        out.print(_table(result))
        line(f"Figures: {folder_out}")
    for failure in result.failed:
        note(f"failed: {failure}")
    if result.failed:
        raise typer.Exit(1)


def searched(
    data: Dataset, seeds: Sequence[int], limits: Limits, done: Progress = lambda _: None
) -> dict[str, dict[int, Found]]:
    """What each search found, by booster and seed.

    With times there is one search, because the training rows of all seeds are the same. Otherwise each seed has its
    own, so that none sees the test rows of another.
    """
    wanted = [(name, seed) for name in BOOSTERS for seed in (seeds[:1] if data.train.transactions.timed else seeds)]
    found: dict[str, dict[int, Found]] = {name: {} for name in BOOSTERS}
    for nth, (name, seed) in enumerate(wanted):
        split = split_rows(data.train, name=data.name, seed=seed)
        train, validation = search_parts(data.train, split, name=data.name, seed=seed)
        step = partial(_step, done, nth, len(wanted))
        found[name][seed] = search(BOOSTERS[name], train, validation, limits=limits, seed=seed, progress=step)
    return found


def _step(done: Progress, nth: int, count: int, share: float) -> None:
    done((nth + share) / count)


def contenders(found: Mapping[str, Mapping[int, Found]]) -> dict[str, Factory]:
    """Ours, LightGBM with ordinary settings, and the boosters with what was found for them."""
    return chosen([OURS, REFERENCE]) | {name: partial(_tuned, name, by_seed) for name, by_seed in found.items()}


def _tuned(name: str, by_seed: Mapping[int, Found], seed: int) -> Tuned:
    only = next(iter(by_seed.values()))
    return Tuned(BOOSTERS[name], by_seed.get(seed, only), seed)


def _table(result: Comparison) -> Table:
    shown = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for heading in HEADINGS:
        shown.add_column(heading.replace(" ", "\n"), justify="left" if heading == "dataset" else "right")
    for cells in result.rows():
        shown.add_row(*cells)
    return shown
