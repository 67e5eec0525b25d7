"""Time and memory of one fit on 1.2 million rows: the playbook beside LightGBM.

The rows are a seeded synthetic stream, or with `--data` the card payments of the Fraud Detection Handbook with the
recent past of customer and terminal. Each learner is given the same saved columns in a process of its own. Memory is
the peak of that process, and how far it lies above the peak of merely loading the columns.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from acefraud.core.table import Codes, Columns, FactTable, Mask, Numbers
from acefraud.datasets.columns import LabelledColumns, load_columns
from acefraud.errors import AcefraudError, InputError
from acefraud.evaluation.quality.contenders import OURS, REFERENCE, chosen
from acefraud.evaluation.quality.folder import sources

ROWS = 1_200_000
MAPPINGS = Path(__file__).parent / "mappings"
WANTED = {"fit_seconds": 10.0, "memory": 3.0, "memory_above_loading": 3.0}
"""The playbook should take no more than so many times what LightGBM takes."""

_NUMBERS, _WORDS = 40, (4, 12, 40, 200)
_FRAUD = 0.008
_RULES = 12
_DAY = 86_400_000_000
_STEP = 1_000_000


def synthetic(rows: int, seed: int) -> LabelledColumns:
    """A stream in which a few planted rules of two tests make fraud likely, and everything else a little."""
    generator = np.random.default_rng(seed)
    numbers = {f"number_{at:02d}": _number(generator, rows, at) for at in range(_NUMBERS)}
    words = {f"word_{at}": _word(generator, rows, count) for at, count in enumerate(_WORDS)}
    return LabelledColumns(
        name="synthetic",
        facts=FactTable.of_columns(Columns(numbers, {}, words), rows),
        labels=_planted(generator, numbers, words),
        ids=np.empty(0, dtype=object),
        times=np.arange(rows, dtype=np.int64) * _STEP,
    )


def _number(generator: np.random.Generator, rows: int, at: int) -> Numbers:
    """Amounts, counts and measures by turns; each fifth is often unknown."""
    column = (generator.gamma(2.0, 50.0, rows), generator.poisson(3.0, rows), generator.normal(0.0, 1.0, rows))[at % 3]
    values = column.round(2).astype(np.float64)
    if at % 5 == 4:
        values[generator.random(rows) < 0.1] = np.nan
    return values


def _word(generator: np.random.Generator, rows: int, count: int) -> tuple[Codes, tuple[str, ...]]:
    shares = 1 / np.arange(1, count + 1)
    codes = generator.choice(count, rows, p=shares / shares.sum()).astype(np.int32)
    return codes, tuple(f"w{at:03d}" for at in range(count))


def _planted(
    generator: np.random.Generator, numbers: dict[str, Numbers], words: dict[str, tuple[Codes, tuple[str, ...]]]
) -> Mask:
    """Frauds: one in five of what a rule covers, until there are enough; and a tenth of them anywhere."""
    names, rows = list(numbers), len(next(iter(numbers.values())))
    chance = np.full(rows, 0.1 * _FRAUD)
    for rule in range(_RULES):
        codes, known = words[f"word_{rule % len(words)}"]
        first, second = generator.choice(len(names), 2, replace=False)
        covered = (codes == rule % len(known)) & _high(numbers[names[first]], 0.9) & _high(numbers[names[second]], 0.5)
        chance[covered] += 0.2
    return np.asarray(generator.random(rows) < chance * _FRAUD / chance.mean(), dtype=np.bool_)


def _high(values: Numbers, quantile: float) -> Mask:
    return np.asarray(values > np.nanquantile(values[:100_000], quantile), dtype=np.bool_)


def handbook(folder: Path, rows: int) -> LabelledColumns:
    """The first rows of the handbook; where it has too few, it comes again, later."""
    source = sources(folder, names=["card_handbook"], mappings=MAPPINGS)[0]
    data = load_columns(source.file, mapping=source.mapping)
    if data.times is None:
        raise InputError("expected a time in every row", file=str(source.file))
    places, turns = np.arange(rows) % len(data), np.arange(rows) // len(data)
    length = int(data.times[-1] - data.times[0]) + _DAY
    taken = replace(data, known_at=None, entities={}).take(places if turns.any() else slice(0, rows))
    assert taken.times is not None
    return replace(taken, times=taken.times + turns * length, ids=np.empty(0, dtype=object))


def save(folder: Path | None, rows: int, seed: int, file: Path) -> dict[str, Any]:
    """Make the columns, for the learners to load."""
    data = synthetic(rows, seed) if folder is None else handbook(folder, rows)
    file.write_bytes(pickle.dumps(data, protocol=5))
    return {"rows": len(data), "frauds": int(data.labels.sum()), "facts": len(data.facts.names)}


def fit(name: str, file: Path, seed: int) -> dict[str, Any]:
    """Let a learner fit, and say what it took."""
    contender: Any = chosen([name])[name](seed)
    with file.open("rb") as stream:
        data = pickle.load(stream)
    loaded, busy, began = _peak(), time.process_time(), time.perf_counter()
    contender.fit(data)
    seconds, cpu = time.perf_counter() - began, time.process_time() - busy
    peak = _peak()
    return {
        "fit_seconds": seconds,
        "cpu_seconds": cpu,
        "memory": peak,
        "memory_above_loading": peak - loaded,
        "size": contender.size,
    }


def _peak() -> float:
    """The most memory this process has held, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _apart(*arguments: object) -> dict[str, Any]:
    """A step in a process of its own. This one stays small, because a child's peak begins with its parent's."""
    run = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)], check=False, stdout=subprocess.PIPE, text=True
    )
    if run.returncode:
        sys.exit(run.returncode)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def measure(folder: Path | None, rows: int, seed: int) -> dict[str, Any]:
    """Both learners one after the other on the same columns, and the ratios."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "columns.pickle"
        given = ["--rows", rows, "--seed", seed, "--file", file]
        about = _apart("--step", "save", *given, *(["--data", folder] if folder else []))
        models = {name: _apart("--step", name, *given) for name in (REFERENCE, OURS)}
    ratios = {name: models[OURS][name] / max(models[REFERENCE][name], 1e-9) for name in ("cpu_seconds", *WANTED)}
    load = os.getloadavg()[0]
    return {"about": {**about, "cores": os.cpu_count(), "load": load}, "models": models, "ratios": ratios}


def _table(found: dict[str, Any]) -> str:
    about = found["about"]
    lines = [
        f"{about['rows']:,} rows, {about['frauds']:,} frauds, {about['facts']} facts; {about['cores']} cores, load "
        f"{about['load']:.1f} at the end",
        f"{'':>10} {'fit s':>9} {'CPU s':>9} {'peak MB':>9} {'above loading MB':>17} {'size':>7}",
    ]
    for name, one in found["models"].items():
        lines.append(
            f"{name:>10} {one['fit_seconds']:9.1f} {one['cpu_seconds']:9.1f} {one['memory']:9,.0f} "
            f"{one['memory_above_loading']:17,.0f} {one['size']:7,}"
        )
    ratios = found["ratios"]
    lines.append(
        f"{'ratio':>10} {ratios['fit_seconds']:9.2f} {ratios['cpu_seconds']:9.2f} {ratios['memory']:9.2f} "
        f"{ratios['memory_above_loading']:17.2f}"
    )
    missed = [f"{name} {ratios[name]:.2f} (wanted: {most:g})" for name, most in WANTED.items() if ratios[name] > most]
    return "\n".join([*lines, *(f"above what is wanted: {one}" for one in missed)])


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of datasets that has card_handbook")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=["save", REFERENCE, OURS], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    steps: dict[str | None, Callable[[], dict[str, Any]]] = {
        None: lambda: measure(options.data, options.rows, options.seed),
        "save": lambda: save(options.data, options.rows, options.seed, options.file),
        **{name: lambda: fit(options.step, options.file, options.seed) for name in (REFERENCE, OURS)},
    }
    try:
        found = steps[options.step]()
    except AcefraudError as problem:
        sys.exit(str(problem))
    print(json.dumps(found) if options.json or options.step else _table(found))


if __name__ == "__main__":
    main()
