"""The classifier beside LightGBM's on a data frame of a million rows: time to fit and to score, and memory.

Each library runs in a process of its own that makes the same frame, so that neither shares the other's memory. Memory
is the peak of the process while it works, above what it held with the frame in it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from benchmarks.console import JsonOption, line, print_json

COLUMNS = 30
_NUMBERS, _COUNTS = 22, 4
_COUNTRIES, _CHANNELS = [f"C{number}" for number in range(30)], ["web", "app", "pos", "atm"]
_WARM = 3
"""Scorings, of which the fastest counts."""


def make_frame(rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Payments with 30 columns: numbers, counts, categories and gaps; about 1 % of them fraud."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"f{number}": random.normal(size=rows) for number in range(_NUMBERS)}
    columns |= {f"k{number}": random.integers(0, 40, rows).astype(float) for number in range(_COUNTS)}
    columns["country"] = pd.Categorical.from_codes(random.integers(0, len(_COUNTRIES), rows), _COUNTRIES)
    columns["channel"] = pd.Categorical.from_codes(random.integers(0, len(_CHANNELS), rows), _CHANNELS)
    columns["amount"] = np.exp(random.normal(4, 1.2, rows)).round(2)
    columns["reputation"] = np.where(random.random(rows) < 0.1, np.nan, random.random(rows))
    frame = pd.DataFrame(columns)
    risk = (
        -6.2
        + 1.5 * (frame["f0"] > 1)
        + 2.0 * (frame["amount"] > 300) * (frame["f1"] > 0)
        + 0.8 * frame["f2"]
        + 1.5 * (frame["channel"] == "web") * (frame["f3"] > 0.5)
        + 1.0 * (frame["k0"] > 30)
        + 1.5 * frame["reputation"].isna() * (frame["f4"] < 0)
    )
    return frame, (random.random(rows) < 1 / (1 + np.exp(-risk))).to_numpy(dtype=np.int64)


def estimator(
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of the frame.")] = 1_000_000,
    json: JsonOption = False,
) -> None:
    """Fit and score a data frame with AceFraudClassifier and with LightGBM, each in a process of its own."""
    ours, theirs = (_in_own_process(name, rows) for name in ("acefraud", "lightgbm"))
    if json:
        print_json({"rows": rows, "columns": COLUMNS, "acefraud": ours, "lightgbm": theirs})
        return
    line(f"{rows:,} rows, {COLUMNS} columns, a frame of {ours['frame_mb']:,.0f} MB")
    line(f"{'':>22}{'acefraud':>12}{'LightGBM':>12}{'ratio':>9}")
    measured = {"fit_seconds": "fit, s", "score_seconds": "predict_proba, s", "peak_mb": "peak above, MB"}
    for name, words in measured.items():
        line(f"{words:>22}{ours[name]:>12,.2f}{theirs[name]:>12,.2f}{ours[name] / theirs[name]:>9.2f}")
    peaks = (each["peak_mb"] / each["frame_mb"] for each in (ours, theirs))
    line(f"{'peak over the frame':>22}" + "".join(f"{peak:>12.2f}" for peak in peaks))
    line(f"{'AP on other rows':>22}{ours['average_precision']:>12.3f}{theirs['average_precision']:>12.3f}")


def _in_own_process(name: str, rows: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.estimator", name, str(rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = loads(done.stdout.splitlines()[-1])
    return figures


def measure(name: str, rows: int) -> dict[str, float]:
    """What one library takes on the frame."""
    from sklearn.metrics import average_precision_score  # noqa: PLC0415

    model = _MODELS[name]()
    frame, labels = make_frame(rows, seed=0)
    with _peak_memory() as peak:
        started = time.perf_counter()
        model.fit(frame, labels)
        fitting = time.perf_counter() - started
        scoring = min(_seconds(lambda: model.predict_proba(frame)) for _ in range(_WARM))
    other, truth = make_frame(max(1_000, rows // 5), seed=1)
    return {
        "frame_mb": float(frame.memory_usage(deep=True).sum()) / 1e6,
        "fit_seconds": fitting,
        "score_seconds": scoring,
        "peak_mb": peak[0],
        "average_precision": float(average_precision_score(truth, model.predict_proba(other)[:, 1])),
    }


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@contextmanager
def _peak_memory() -> Iterator[list[float]]:
    """The peak of this process above what it holds now, in megabytes; filled in at the end."""
    before, found, done = _resident_mb(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            found[0] = max(found[0], _resident_mb() - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096 / 1e6


def _acefraud() -> Any:
    from acefraud import AceFraudClassifier  # noqa: PLC0415

    return AceFraudClassifier()


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier  # noqa: PLC0415

    return LGBMClassifier(verbose=-1)


_MODELS: dict[str, Callable[[], Any]] = {"acefraud": _acefraud, "lightgbm": _lightgbm}


if __name__ == "__main__":
    print(dumps(measure(sys.argv[1], int(sys.argv[2]))))
