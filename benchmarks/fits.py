"""`python -m benchmarks fits`: a fit of the classifier with its defaults beside LightGBM's, on small sets.

Both get the same data frame, in one process and in turns, after one fit each that loads what is loaded once. The least
of the turns counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from acefraud import AceFraudClassifier, Cases, FactTable
from acefraud.evaluation.lightgbm_model import LightGbm
from benchmarks.console import JsonOption, line, names_in, print_json, progress
from benchmarks.quality.dataset_folder import data_folder, sources


def fits(
    folder: Annotated[Path | None, typer.Argument(help="Folder of datasets; $ACEFRAUD_DATA if not given.")] = None,
    *,
    only: Annotated[str | None, typer.Option(help="Datasets, separated by commas; all if not given.")] = None,
    mappings: Annotated[Path | None, typer.Option(help="Folder of mappings for datasets without one.")] = None,
    rows: Annotated[int, typer.Option(min=1_000, help="The most recent rows of each dataset, at most.")] = 40_000,
    turns: Annotated[int, typer.Option(min=1, help="Fits of each, of which the fastest counts.")] = 2,
    json: JsonOption = False,
) -> None:
    """Measure a **fit on a small set**, `AceFraudClassifier` with its defaults beside LightGBM with 300 trees.

    python -m benchmarks fits ../shared/data --mappings benchmarks/mappings
    """
    found: dict[str, dict[str, float]] = {}
    wanted = sources(data_folder(folder), names=names_in(only), mappings=mappings)
    with progress("fitting") as done:
        for at, source in enumerate(wanted):
            found[source.name] = measure(source.load(rows).train, turns)
            done((at + 1) / len(wanted))
    middle = {name: geometric_mean(each[name] for each in found.values()) for name in ("ratio", "processor_ratio")}
    if json:
        print_json({"datasets": found, "geometric_mean": middle})
        return
    line(f"{'':>22}{'rows':>9}{'acefraud, s':>13}{'LightGBM, s':>13}{'ratio':>8}{'processor':>11}")
    for name, each in found.items():
        seconds = f"{each['acefraud_seconds']:>13.2f}{each['lightgbm_seconds']:>13.2f}"
        line(f"{name:>22}{each['rows']:>9,}{seconds}{each['ratio']:>8.1f}{each['processor_ratio']:>11.1f}")
    line(f"{'geometric mean':>22}{'':>35}{middle['ratio']:>8.1f}{middle['processor_ratio']:>11.1f}")


def measure(cases: Cases, turns: int) -> dict[str, float]:
    """Seconds on the clock and of the processor that each takes, and the ratios."""
    frame, labels = frame_of(cases.facts), cases.labels.astype(np.int64)
    warm = slice(-1_000, None)
    works: dict[str, Callable[[slice], Any]] = {
        "acefraud": lambda part: AceFraudClassifier().fit(frame[part], labels[part]),
        "lightgbm": lambda part: LightGbm().fit(cases[part].facts, labels[part].astype(np.bool_)),
    }
    for work in works.values():
        work(warm)
    seconds = dict.fromkeys(works, (np.inf, np.inf))
    for _ in range(turns):
        for name, work in works.items():
            seconds[name] = tuple(np.minimum(seconds[name], _seconds(partial(work, slice(None)))).tolist())
    (ours, our_processor), (theirs, their_processor) = seconds["acefraud"], seconds["lightgbm"]
    return {
        "rows": len(frame),
        "frauds": int(labels.sum()),
        "acefraud_seconds": ours,
        "lightgbm_seconds": theirs,
        "ratio": ours / theirs,
        "processor_ratio": our_processor / their_processor,
    }


def frame_of(facts: FactTable) -> pd.DataFrame:
    """Facts as a user of pandas has them: a column each, categories as such."""
    columns = facts.columns
    frame = {name: facts.numbers(name) for name in columns.numbers}
    frame |= {name: np.where(facts.flags(name) < 0, np.nan, facts.flags(name)) for name in columns.flags}
    words = {name: pd.Categorical.from_codes(codes, kept) for name, (codes, kept) in columns.categories.items()}
    return pd.DataFrame(frame | words)


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor
