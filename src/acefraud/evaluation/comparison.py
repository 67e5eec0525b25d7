"""The three modes side by side, over several seeds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from acefraud.core.transaction import Case
from acefraud.datasets import Dataset
from acefraud.errors import InputError
from acefraud.evaluation.metrics import METRICS, Interval, Scored, as_json, over_rows, over_worlds
from acefraud.learning.pipeline import Mode, TrainingPipeline

PAIRS = (
    (Mode.ONLINE_ONLY, Mode.VANILLA),
    (Mode.OFFLINE_ONLINE, Mode.VANILLA),
    (Mode.OFFLINE_ONLINE, Mode.ONLINE_ONLY),
)
CURVE_POINTS = 40


@dataclass(frozen=True, slots=True)
class Part:
    """One train and test pair of one seed; `rows` says which rows of the whole the test cases are."""

    seed: int
    train: tuple[Case, ...]
    test: tuple[Case, ...]
    rows: tuple[int, ...]
    mapping: str = ""
    """How the file was read, as text: it may ask for a history of entities."""


@dataclass(frozen=True, slots=True)
class ModeFigures:
    """What one mode reached."""

    figures: dict[str, Interval]
    bullets: float
    cited: float
    seconds: float
    curve: tuple[float, ...]
    """Accuracy along the stream, in equal stretches."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything the report shows."""

    dataset: str
    rows: int
    test_rows: int
    seeds: int
    method: str
    modes: dict[Mode, ModeFigures]
    differences: dict[str, dict[str, Interval]]
    sample: tuple[str, ...] = ()
    """Bullets that the pre-trained mode ended with, strongest first."""

    def as_json(self) -> dict[str, Any]:
        """For machines: without times of the clock, so that two runs with one seed print the same bytes."""
        return {
            "dataset": self.dataset,
            "rows": self.rows,
            "test_rows": self.test_rows,
            "seeds": self.seeds,
            "interval": self.method,
            "modes": {
                str(mode): {
                    **as_json(got.figures),
                    "bullets": round(got.bullets, 6),
                    "bullets_cited": round(got.cited, 6),
                    "curve": [round(point, 6) for point in got.curve],
                }
                for mode, got in self.modes.items()
            },
            "differences": {name: as_json(figures) for name, figures in self.differences.items()},
            "sample": list(self.sample),
        }


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came back from one part in one mode."""

    seed: int
    mode: Mode
    rows: tuple[int, ...]
    scored: Scored
    bullets: int
    cited: float
    seconds: float
    sample: tuple[str, ...]


def parts_of_worlds(make: Callable[[int], Dataset], seeds: Sequence[int]) -> Iterator[Part]:
    """One world for each seed, split by time as it comes."""
    for seed in seeds:
        data = make(seed)
        yield Part(seed, data.train, data.test, tuple(range(len(data.test))))


def parts_of_file(data: Dataset, seeds: Sequence[int], *, folds: int = 0, test_share: float = 0.3) -> Iterator[Part]:
    """The same rows for every seed: the later part of the file, or each fold in turn."""
    place = {case.transaction.id: row for row, case in enumerate((*data.train, *data.test))}
    for seed in seeds:
        if folds:
            pairs = data.folds(folds, seed)
        else:
            parted = data.split(test_share, seed=0)
            pairs = [(parted.train, parted.test)]
        for train, test in pairs:
            rows = tuple(place[case.transaction.id] for case in test)
            yield Part(seed, train, test, rows, data.mapping.describe())


def compare(
    parts: Sequence[Part],
    *,
    name: str,
    independent: bool,
    processes: int | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Comparison:
    """Run every mode on every part. `independent` says that each seed brought rows of its own."""
    for part in parts:
        _check(part, name)
    longest_first = (Mode.OFFLINE_ONLINE, Mode.ONLINE_ONLY, Mode.VANILLA)  # so that no worker waits for a straggler
    jobs = [(part, mode) for mode in longest_first for part in parts]
    outcomes: list[_Outcome] = []
    for outcome in _run_all(jobs, processes):
        outcomes.append(outcome)
        progress(len(outcomes) / len(jobs))
    return _summed_up(outcomes, parts, name, independent)


def _check(part: Part, name: str) -> None:
    if not part.test:
        raise InputError("there are no rows to test on", file=name)
    for cases, what in ((part.train, "train"), (part.test, "test")):
        if len({case.is_fraud for case in cases}) < 2:
            raise InputError(
                f"the {what} part has only one kind of label; expected both fraud and honest rows", file=name
            )


def _run_all(jobs: Sequence[tuple[Part, Mode]], processes: int | None) -> Iterator[_Outcome]:
    workers = min(len(jobs), processes or os.cpu_count() or 1)
    if workers <= 1:
        yield from map(_run, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_run, jobs)


def _run(job: tuple[Part, Mode]) -> _Outcome:
    part, mode = job
    run = asyncio.run(TrainingPipeline(seed=part.seed).run(mode, part.train, part.test, mapping=part.mapping))
    scored = Scored(run.declined, run.probabilities, run.labels)
    strongest = sorted(run.playbook.get_bullets_for_node("fraud_detection"), key=lambda b: -abs(b.weight or 0))
    sample = tuple(bullet.content for bullet in strongest[:12])
    return _Outcome(part.seed, mode, part.rows, scored, run.bullets, run.cited, run.seconds, sample)


def _summed_up(outcomes: Sequence[_Outcome], parts: Sequence[Part], name: str, independent: bool) -> Comparison:
    seeds = sorted({part.seed for part in parts})
    by_seed = {mode: [_whole(outcomes, mode, seed) for seed in seeds] for mode in Mode}
    rows = len(by_seed[Mode.VANILLA][0].labels)
    worlds = independent and len(seeds) > 1

    def figure(metric: str, mode: Mode, other: Mode | None = None) -> Interval:
        def value(scored: Scored, less: Scored | None) -> float:
            return METRICS[metric](scored) - (METRICS[metric](less) if less else 0.0)

        pairs = list(zip(by_seed[mode], by_seed[other] if other else [None] * len(seeds), strict=True))
        if worlds:
            return over_worlds([value(scored, less) for scored, less in pairs])
        return over_rows(
            lambda drawn: float(np.mean([value(s.taken(drawn), o.taken(drawn) if o else None) for s, o in pairs])), rows
        )

    modes = {}
    for mode in Mode:
        of_mode = [outcome for outcome in outcomes if outcome.mode is mode]
        modes[mode] = ModeFigures(
            figures={metric: figure(metric, mode) for metric in METRICS},
            bullets=float(np.mean([outcome.bullets for outcome in of_mode])),
            cited=float(np.mean([outcome.cited for outcome in of_mode])),
            seconds=float(np.sum([outcome.seconds for outcome in of_mode])),
            curve=_curve(by_seed[mode]),
        )
    differences = {f"{a}_vs_{b}": {metric: figure(metric, a, b) for metric in METRICS} for a, b in PAIRS}
    method = f"Student's t over {len(seeds)} independent worlds" if worlds else f"bootstrap over {rows:,} test rows"
    return Comparison(
        dataset=name,
        rows=len(parts[0].train) + len(parts[0].test),
        test_rows=rows,
        seeds=len(seeds),
        method=method,
        modes=modes,
        differences=differences,
        sample=next(o.sample for o in outcomes if o.mode is Mode.OFFLINE_ONLINE),
    )


def _whole(outcomes: Sequence[_Outcome], mode: Mode, seed: int) -> Scored:
    """All decisions of one mode and seed, in the order of the rows."""
    mine = [outcome for outcome in outcomes if outcome.mode is mode and outcome.seed == seed]
    order = np.argsort(np.concatenate([outcome.rows for outcome in mine]), kind="stable")
    joined = Scored(
        np.concatenate([outcome.scored.declined for outcome in mine]),
        np.concatenate([outcome.scored.probabilities for outcome in mine]),
        np.concatenate([outcome.scored.labels for outcome in mine]),
    )
    return joined.taken(order.astype(np.intp))


def _curve(runs: Sequence[Scored]) -> tuple[float, ...]:
    """Accuracy in equal stretches of each stream, averaged over the seeds."""
    points = min(CURVE_POINTS, *(len(run.labels) for run in runs), CURVE_POINTS)
    stretches = [np.array_split(run.declined == run.labels, points) for run in runs]
    return tuple(float(np.mean([np.mean(run[point]) for run in stretches])) for point in range(points))
