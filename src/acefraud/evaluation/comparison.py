"""The three modes side by side, over several seeds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud import Cases, Cast, Dataset, Mode, ModelSettings, ModeRun, cast, known_by
from acefraud.errors import InputError, ModelError
from acefraud.evaluation.metrics import METRICS, Interval, Scored, as_json, over_rows, over_worlds
from acefraud.evaluation.on_models import ModelFigures, TierFigures

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
    train: Cases
    test: Cases
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
    on_models: ModelFigures | None = None
    """What was asked of models, where they play a role."""

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
            **({"models": self.on_models.as_json()} if self.on_models else {}),
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
    decided: npt.NDArray[np.bool_]
    fallbacks: int
    settled: int
    """Decisions of a first tier, and those that it left to the model."""
    asked: int


def parts_of_worlds(make: Callable[[int], Dataset], seeds: Sequence[int]) -> Iterator[Part]:
    """One world for each seed, split by time as it comes."""
    for seed in seeds:
        data = make(seed)
        yield Part(seed, data.train, data.test, tuple(range(len(data.test))))


def parts_of_file(data: Dataset, seeds: Sequence[int], *, folds: int = 0, test_share: float = 0.3) -> Iterator[Part]:
    """The same rows for every seed: the later part of the file, or each fold in turn."""
    place = {one: row for row, one in enumerate((*data.train.transactions.ids, *data.test.transactions.ids))}
    for seed in seeds:
        if folds:
            pairs = data.folds(folds, seed)
        else:
            parted = data.split(test_share, seed=0)
            pairs = [(parted.train, parted.test)]
        for train, test in pairs:
            rows = tuple(place[one] for one in test.transactions.ids)
            yield Part(seed, train, test, rows, data.mapping.describe())


def limited(part: Part, most: int) -> Part:
    """At most so many of each: the latest training cases with a label, and test cases from the whole of the test.

    Neighbours in time would all be decided before the first of their labels arrives, and nothing could be learnt.
    """
    known, _ = known_by(part.train, part.test)
    places = np.unique(np.linspace(0, len(part.test) - 1, min(most, len(part.test))).astype(int))
    rows = tuple(part.rows[place] for place in places)
    return replace(part, train=known[-most:], test=part.test.take(places), rows=rows)


def compare(
    parts: Sequence[Part],
    *,
    name: str,
    independent: bool,
    players: Cast | None = None,
    processes: int | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Comparison:
    """Run every mode on every part. `independent` says that each seed brought rows of its own.

    Where models play a role, everything runs in this process, with one client for all; the modes wait side by side.
    """
    for part in parts:
        _check(part, name)
    players = cast(ModelSettings()) if players is None else players
    if players.client is not None:
        return asyncio.run(_on_models(parts, players, name, independent, progress))
    longest_first = (Mode.OFFLINE_ONLINE, Mode.ONLINE_ONLY, Mode.VANILLA)  # so that no worker waits for a straggler
    jobs = [(part, mode) for mode in longest_first for part in parts]
    outcomes: list[_Outcome] = []
    for outcome in _run_all(jobs, players, processes):
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


def _run_all(jobs: Sequence[tuple[Part, Mode]], players: Cast, processes: int | None) -> Iterator[_Outcome]:
    run = partial(_run, players)
    workers = min(len(jobs), processes or os.cpu_count() or 1)
    if workers <= 1:
        yield from map(run, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run, jobs)


def _run(players: Cast, job: tuple[Part, Mode]) -> _Outcome:
    part, mode = job
    pipeline = players.pipeline(part.seed)
    return _outcome(part, asyncio.run(pipeline.run(mode, part.train, part.test, mapping=part.mapping)), players)


def _outcome(part: Part, run: ModeRun, players: Cast) -> _Outcome:
    strongest = sorted(run.playbook.get_bullets_for_node("fraud_detection"), key=lambda b: -abs(b.weight or 0))
    return _Outcome(
        seed=part.seed,
        mode=run.mode,
        rows=part.rows,
        scored=Scored(run.declined, run.probabilities, run.labels),
        bullets=run.bullets,
        cited=run.cited,
        seconds=run.seconds,
        sample=tuple(bullet.shown for bullet in strongest[:12]),
        decided=run.decided,
        fallbacks=run.fallbacks,
        settled=players.tier.count.settled if players.tier else 0,
        asked=players.tier.count.asked if players.tier else 0,
    )


async def _on_models(
    parts: Sequence[Part], players: Cast, name: str, independent: bool, progress: Callable[[float], None]
) -> Comparison:
    """The comparison with models in the roles; with a first tier, beside the same without it."""
    assert players.client is not None
    runs = 2 if players.tier else 1
    try:
        full = await _run_on_models(parts, players.in_full(), lambda share: progress(share / runs))
        whole = _summed_up(full, parts, name, independent)
        tiered, tiers = full, tuple[TierFigures, ...]()
        if players.tier:
            tiered = await _run_on_models(parts, players, lambda share: progress((1 + share) / runs))
            part = _summed_up(tiered, parts, name, independent)
            tiers = tuple(_tier_figures(mode, tiered, part, whole) for mode in Mode)
            whole = part
    finally:
        await players.close()
    figures = ModelFigures(
        usage=players.client.usage.as_json(),
        undecided=sum(int((~outcome.decided).sum()) for outcome in tiered),
        fallbacks=sum(outcome.fallbacks for outcome in tiered),
        tiers=tiers,
    )
    return replace(whole, on_models=figures)


async def _run_on_models(parts: Sequence[Part], players: Cast, progress: Callable[[float], None]) -> list[_Outcome]:
    jobs = [(part, mode) for part in parts for mode in Mode]
    done = [0.0] * len(jobs)

    async def run(place: int, part: Part, mode: Mode) -> _Outcome:
        mine = players.anew()

        def told(share: float) -> None:
            done[place] = share
            progress(sum(done) / len(done))

        pipeline = mine.pipeline(part.seed)
        ran = await pipeline.run(mode, part.train, part.test, mapping=part.mapping, progress=told)
        return _outcome(part, ran, mine)

    tasks = [asyncio.create_task(run(place, part, mode)) for place, (part, mode) in enumerate(jobs)]
    try:
        return list(await asyncio.gather(*tasks))
    finally:  # where one failed, the others need not go on asking
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tier_figures(mode: Mode, tiered: Sequence[_Outcome], part: Comparison, whole: Comparison) -> TierFigures:
    of_mode = [outcome for outcome in tiered if outcome.mode is mode]
    return TierFigures(
        mode=mode,
        settled=sum(outcome.settled for outcome in of_mode),
        asked=sum(outcome.asked for outcome in of_mode),
        accuracy=part.modes[mode].figures["accuracy"],
        in_full=whole.modes[mode].figures["accuracy"],
    )


def _summed_up(outcomes: Sequence[_Outcome], parts: Sequence[Part], name: str, independent: bool) -> Comparison:
    seeds = sorted({part.seed for part in parts})
    by_seed = {mode: [_whole(outcomes, mode, seed) for seed in seeds] for mode in Mode}
    by_seed = _decided_by_all(by_seed, outcomes, seeds, independent)
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


def _decided_by_all(
    by_seed: dict[Mode, list[Scored]], outcomes: Sequence[_Outcome], seeds: Sequence[int], independent: bool
) -> dict[Mode, list[Scored]]:
    """Without the rows that any mode left to a person: the modes are compared on the same cases."""
    masks = [np.logical_and.reduce([_mask(outcomes, mode, seed) for mode in Mode]) for seed in seeds]
    if all(mask.all() for mask in masks):
        return by_seed
    if not independent:
        masks = [np.logical_and.reduce(masks)] * len(seeds)
    if not all(mask.any() for mask in masks):
        raise ModelError("no case was decided by all three modes; nothing can be compared")
    return {
        mode: [scored.taken(np.flatnonzero(mask)) for scored, mask in zip(runs, masks, strict=True)]
        for mode, runs in by_seed.items()
    }


def _mask(outcomes: Sequence[_Outcome], mode: Mode, seed: int) -> npt.NDArray[np.bool_]:
    """Which rows one mode decided, in the order of the rows."""
    mine = [outcome for outcome in outcomes if outcome.mode is mode and outcome.seed == seed]
    order = np.argsort(np.concatenate([outcome.rows for outcome in mine]), kind="stable")
    decided: npt.NDArray[np.bool_] = np.concatenate([outcome.decided for outcome in mine])[order]
    return decided


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
