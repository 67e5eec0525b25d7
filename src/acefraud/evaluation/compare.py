"""Splits cases into what a mode may learn from and what it is tested on, and runs the modes and LightGBM on them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from acefraud import Cases, Dataset, Mode, ModelSettings, Roles, SchemaMapping, build_roles, known_by, load_dataset
from acefraud.errors import ConfigurationError, InputError, ModelError
from acefraud.evaluation.comparison import (
    LIGHTGBM,
    PAIRS,
    WITH_LIGHTGBM,
    Comparison,
    ModeFigures,
    ModelFigures,
    TierFigures,
)
from acefraud.evaluation.lightgbm_model import LightGbm, import_lightgbm
from acefraud.evaluation.metrics import Column, Flags, Interval, Scored, figures_of

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

SHIPPED = "complex_fraud_detection"
CURVE_POINTS = 40
BULLETS_SHOWN = 12
LIGHTGBM_ROWS = 200
"""LightGBM takes part from this many training rows on; with fewer, its leaves of at least 20 rows say nothing."""
THRESHOLD = 0.5
"""Where LightGBM declines: as the modes do, whose threshold is 0.5 unless a playbook says otherwise."""
SMALL, FOLDS = 500, 5
"""Below so many rows, data without times is cross-validated in so many folds."""

Progress = Callable[[float], None]
_GLANCE = 0.25
"""Seconds between two looks whether the run was interrupted."""


@dataclass(frozen=True, slots=True)
class Part:
    """One train and test pair of one seed."""

    seed: int
    train: Cases
    test: Cases
    rows: tuple[int, ...]
    """The position of each test case among all rows."""
    mapping: SchemaMapping | None = None
    """How the file was read. It may ask for a history of entities."""


def parts_of_worlds(make: Callable[[int], Dataset], seeds: Sequence[int]) -> Iterator[Part]:
    """One synthetic world for each seed, with its own split by time."""
    for seed in seeds:
        data = make(seed)
        yield Part(seed, data.train, data.test, tuple(range(len(data.test))))


def parts_of_data(
    data: Dataset, seeds: Sequence[int], *, folds: int | None = None, test_share: float = 0.3
) -> Iterator[Part]:
    """The parts of a dataset: split by time, or by chance without repeated rows; small ones in folds."""
    if data.test:
        yield from (Part(seed, data.train, data.test, tuple(range(len(data.test))), data.mapping) for seed in seeds)
        return
    if folds is None:
        folds = FOLDS if len(data) < SMALL and not data.has_time else 0
    yield from parts_of_file(
        data if data.has_time else data.without_duplicates(), seeds, folds=folds, test_share=test_share
    )


def parts_of_file(data: Dataset, seeds: Sequence[int], *, folds: int = 0, test_share: float = 0.3) -> Iterator[Part]:
    """Equal rows for every seed: the later part of the file is the test, or each fold in turn."""
    position = {name: row for row, name in enumerate((*data.train.transactions.ids, *data.test.transactions.ids))}
    for seed in seeds:
        if folds:
            pairs = data.folds(folds, seed)
        else:
            split = data.split(test_share, seed=0)
            pairs = [(split.train, split.test)]
        for train, test in pairs:
            yield Part(seed, train, test, tuple(position[name] for name in test.transactions.ids), data.mapping)


def limited(part: Part, most: int) -> Part:
    """A smaller part: the latest training cases whose label is known, and test cases from the whole test period.

    Test cases next to each other in time would all be decided before the first of their labels arrives, so nothing
    could be learnt on the way.
    """
    known, _ = known_by(part.train, part.test)
    places = np.unique(np.linspace(0, len(part.test) - 1, min(most, len(part.test))).astype(int))
    rows = tuple(part.rows[at] for at in places)
    return replace(part, train=known[-most:], test=part.test.take(places), rows=rows)


@dataclass(frozen=True, slots=True)
class _Run:
    """What a mode, or LightGBM, did on one part."""

    name: str
    seed: int
    rows: tuple[int, ...]
    scored: Scored
    decided: Flags
    """False for cases left to a person."""
    seconds: float
    without_label_facts: Column | None = None
    """The probabilities if the facts that depend on labels are unknown; None if there are none, or if a model decides.
    """
    bullets: int = 0
    cited: float = 0.0
    sample: tuple[str, ...] = ()
    fallbacks: int = 0
    settled: int = 0
    """Decisions of a first tier; `asked` are those it left to the model."""
    asked: int = 0


def compare(
    history: Dataset | str | Path | IntoFrame = SHIPPED,
    *,
    mapping: SchemaMapping | Path | None = None,
    seeds: int = 5,
    folds: int | None = None,
    test_share: float = 0.3,
    roles: Roles | None = None,
    processes: int = 1,
    progress: Progress = lambda _: None,
) -> Comparison:
    """The three modes, and LightGBM if it is installed, on the same labelled cases, as `acefraud compare` runs them.

    The history is the name of a shipped dataset, a file, a data frame or a `Dataset`. Cases with times are split by
    time, others at random or into `folds`. With more `processes`, a script needs ``if __name__ == "__main__":``.

    >>> from acefraud import load_dataset
    >>> from acefraud.datasets.world import WorldOptions
    >>> data = load_dataset("complex_fraud_detection", options=WorldOptions(transactions=60))
    >>> comparison = compare(data, seeds=1)
    >>> [str(mode) for mode in sorted(comparison)]
    ['offline_online', 'online_only', 'vanilla']
    """
    data = history if isinstance(history, Dataset) else load_dataset(history, mapping=mapping)
    independent = isinstance(history, str) and bool(data.test)
    if independent:
        shipped = data.name
        parts = list(parts_of_worlds(lambda seed: load_dataset(shipped, seed=seed), range(seeds)))
    else:
        parts = list(parts_of_data(data, range(seeds), folds=folds, test_share=test_share))
    return compare_parts(
        parts, name=data.name, independent=independent, roles=roles, processes=processes, progress=progress
    )


def compare_parts(
    parts: Sequence[Part],
    *,
    name: str,
    independent: bool,
    roles: Roles | None = None,
    processes: int | None = None,
    progress: Progress = lambda _: None,
) -> Comparison:
    """Run every mode on every part. `independent` says that each seed has rows of its own.

    If models play a role, everything runs in this process with one client for all, and the modes wait side by side.
    """
    for part in parts:
        _check(part, name)
    roles = build_roles(ModelSettings()) if roles is None else roles
    no_lightgbm = _why_not_lightgbm(parts)
    if roles.client is not None:
        baseline = [] if no_lightgbm else [_run_lightgbm(part) for part in parts]

        def summary(runs: Sequence[_Run]) -> Comparison:
            return _summary([*runs, *baseline], parts, name, independent)

        result = asyncio.run(_compare_on_models(parts, roles, summary, progress))
    else:
        # The longest runs come first, so that no worker waits for a straggler.
        modes = (Mode.OFFLINE_ONLINE, Mode.ONLINE_ONLY, Mode.VANILLA, *([] if no_lightgbm else [LIGHTGBM]))
        jobs = [(part, mode) for mode in modes for part in parts]
        runs: list[_Run] = []
        for run in _run_all(jobs, roles, processes):
            runs.append(run)
            progress(len(runs) / len(jobs))
        result = _summary(runs, parts, name, independent)
    return replace(result, no_lightgbm=no_lightgbm)


def _check(part: Part, name: str) -> None:
    if not part.test:
        raise InputError("there are no rows to test on", file=name)
    for cases, what in ((part.train, "train"), (part.test, "test")):
        if not 0 < cases.labels.sum() < len(cases):
            raise InputError(
                f"the {what} part has only one kind of label; expected both fraud and honest rows", file=name
            )


def _why_not_lightgbm(parts: Sequence[Part]) -> str:
    fewest = min(len(known_by(part.train, part.test)[0]) for part in parts)
    if fewest < LIGHTGBM_ROWS:
        return f"LightGBM is left out: {fewest:,} training rows, and it takes part from {LIGHTGBM_ROWS} on"
    try:
        import_lightgbm()
    except ConfigurationError as problem:
        return str(problem)
    return ""


def _run_all(jobs: Sequence[tuple[Part, str]], roles: Roles, processes: int | None) -> Iterator[_Run]:
    run = partial(_run, roles)
    workers = min(len(jobs), processes or os.cpu_count() or 1)
    if workers <= 1:
        yield from map(run, jobs)
        return
    others = set(active_children())
    # An interrupt goes to every process of a terminal: this one ends the others.
    context, ignoring = get_context("spawn"), (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(workers, context, initializer=signal.signal, initargs=ignoring) as pool:
        try:
            # Not `map`, which cancels what is left: a pool whose workers are gone trips over that and never ends.
            for future in [pool.submit(run, job) for job in jobs]:
                while not wait([future], timeout=_GLANCE).done:  # an interrupt may come to a thread that is not woken
                    pass
                yield future.result()
        except BaseException:  # leaving the block waits for the workers, so they have to end
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def _run(roles: Roles, job: tuple[Part, str]) -> _Run:
    part, name = job
    return _run_lightgbm(part) if name == LIGHTGBM else asyncio.run(_run_mode(roles, part, Mode(name)))


async def _run_mode(roles: Roles, part: Part, mode: Mode, progress: Progress = lambda _: None) -> _Run:
    mapping = part.mapping.describe() if part.mapping else ""
    run = await roles.pipeline(part.seed).run(mode, part.train, part.test, mapping=mapping, progress=progress)
    strongest = sorted(run.playbook.get_bullets_for_node("fraud_detection"), key=lambda b: -abs(b.weight or 0))
    return _Run(
        name=mode,
        seed=part.seed,
        rows=part.rows,
        scored=Scored(run.declined, run.probabilities, run.labels),
        decided=run.decided,
        seconds=run.seconds,
        without_label_facts=run.without_label_facts,
        bullets=run.bullets,
        cited=run.cited,
        sample=tuple(bullet.shown for bullet in strongest[:BULLETS_SHOWN]),
        fallbacks=run.fallbacks,
        settled=roles.tier.by_tier if roles.tier else 0,
        asked=roles.tier.by_model if roles.tier else 0,
    )


def _run_lightgbm(part: Part) -> _Run:
    """Fit once on the labels that were known when the test began, with the facts that the modes decide on."""
    started = time.perf_counter()
    history = part.mapping.history if part.mapping and part.mapping.entities else None
    data = Dataset("", part.train, part.test, mapping=part.mapping).with_history().with_read_facts()
    known, _ = known_by(data.train, data.test)
    if 0 < known.labels.sum() < len(known):
        model = LightGbm(part.seed, threads=1)  # other runs have the other cores
        model.fit(known.facts, known.labels)
        probabilities = model.score(data.test.facts)
        without = model.score(data.test.facts.without(history.label_facts)) if history else None
    else:  # with late labels, those of one kind may all be missing when the test begins
        probabilities = np.full(len(data.test), float(known.labels.any()))
        without = probabilities if history else None
    row = dict(zip(part.test.transactions.ids, part.rows, strict=True))
    return _Run(
        name=LIGHTGBM,
        seed=part.seed,
        rows=tuple(row[name] for name in data.test.transactions.ids),  # the history put them in the order of time
        scored=Scored(probabilities >= THRESHOLD, probabilities, data.test.labels),
        decided=np.ones(len(data.test), dtype=np.bool_),
        seconds=time.perf_counter() - started,
        without_label_facts=without,
    )


async def _compare_on_models(
    parts: Sequence[Part], roles: Roles, summary: Callable[[list[_Run]], Comparison], progress: Progress
) -> Comparison:
    """The comparison with models in the roles; with a first tier, beside the same without it."""
    assert roles.client is not None
    rounds = 2 if roles.tier else 1
    tiers: dict[Mode, TierFigures] = {}
    try:
        runs = await _run_on_models(parts, roles.without_tier(), lambda share: progress(share / rounds))
        result = summary(runs)
        if roles.tier:
            in_full = result
            runs = await _run_on_models(parts, roles, lambda share: progress((1 + share) / rounds))
            result = summary(runs)
            for mode in Mode:
                tiers[mode] = TierFigures(
                    settled=sum(run.settled for run in runs if run.name == mode),
                    asked=sum(run.asked for run in runs if run.name == mode),
                    accuracy=result.modes[mode].figures["accuracy"],
                    in_full=in_full.modes[mode].figures["accuracy"],
                )
    finally:
        await roles.close()
    figures = ModelFigures(
        usage=roles.client.usage.as_json(),
        undecided=sum(int((~run.decided).sum()) for run in runs),
        fallbacks=sum(run.fallbacks for run in runs),
        tiers=tiers,
    )
    return replace(result, on_models=figures)


async def _run_on_models(parts: Sequence[Part], roles: Roles, progress: Progress) -> list[_Run]:
    jobs = [(part, mode) for part in parts for mode in Mode]
    done = [0.0] * len(jobs)

    def report(place: int, share: float) -> None:
        done[place] = share
        progress(sum(done) / len(done))

    tasks = [
        asyncio.create_task(_run_mode(roles.with_new_counts(), part, mode, partial(report, index)))
        for index, (part, mode) in enumerate(jobs)
    ]
    try:
        return list(await asyncio.gather(*tasks))
    finally:  # after a failure, the others must not go on calling
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _summary(runs: Sequence[_Run], parts: Sequence[Part], name: str, independent: bool) -> Comparison:
    seeds = sorted({part.seed for part in parts})
    names = [name for name in (*Mode, LIGHTGBM) if any(run.name == name for run in runs)]
    by_seed = _scored_by_seed(runs, names, seeds, independent)
    rows = len(by_seed[Mode.VANILLA][0].labels)
    worlds = independent and len(seeds) > 1

    def figures(*of: str) -> dict[str, Interval]:
        return figures_of(list(zip(*(by_seed[mode] for mode in of), strict=True)), worlds=worlds)

    rescored = [
        replace(run, scored=Scored(found >= THRESHOLD, found, run.scored.labels))
        for run in runs
        if (found := run.without_label_facts) is not None
    ]
    without = _scored_by_seed(rescored, names, seeds, independent) if len(rescored) == len(runs) else {}
    modes = {}
    for mode in names:
        mine = [run for run in runs if run.name == mode]
        modes[mode] = ModeFigures(
            figures=figures(mode),
            bullets=float(np.mean([run.bullets for run in mine])),
            cited=float(np.mean([run.cited for run in mine])),
            seconds=float(np.sum([run.seconds for run in mine])),
            curve=_curve(by_seed[mode]),
            without_label_facts=figures_of([(scored,) for scored in without[mode]], worlds=worlds)
            if mode in without
            else None,
        )
    history = parts[0].mapping.history if parts[0].mapping else None
    return Comparison(
        dataset=name,
        rows=len(parts[0].train) + len(parts[0].test),
        test_rows=rows,
        seeds=len(seeds),
        method=f"Student's t over {len(seeds)} independent worlds" if worlds else f"bootstrap over {rows:,} test rows",
        modes=modes,
        differences={pair: figures(*pair) for pair in (*PAIRS, *([WITH_LIGHTGBM] if LIGHTGBM in names else []))},
        sample=next(run.sample for run in runs if run.name == Mode.OFFLINE_ONLINE),
        label_delay=history.label_delay if history and history.entities else "",
    )


def _scored_by_seed(
    runs: Sequence[_Run], names: Sequence[str], seeds: Sequence[int], independent: bool
) -> dict[str, list[Scored]]:
    """The decisions of each mode by seed, in the order of the rows.

    Rows that any mode left to a person are taken out: the modes are compared on the same cases.
    """
    by_seed: dict[str, list[Scored]] = {name: [] for name in names}
    masks: list[Flags] = []
    for seed in seeds:
        decided = []
        for name in names:
            mine = [run for run in runs if run.name == name and run.seed == seed]
            order = np.argsort(np.concatenate([run.rows for run in mine]), kind="stable")
            scored = Scored(
                np.concatenate([run.scored.declined for run in mine]),
                np.concatenate([run.scored.probabilities for run in mine]),
                np.concatenate([run.scored.labels for run in mine]),
            )
            by_seed[name].append(scored.take(order))
            decided.append(np.concatenate([run.decided for run in mine])[order])
        masks.append(np.logical_and.reduce(decided))
    if all(mask.all() for mask in masks):
        return by_seed
    if not independent:
        masks = [np.logical_and.reduce(masks)] * len(seeds)
    if not all(mask.any() for mask in masks):
        raise ModelError("no case was decided by all three modes; nothing can be compared")
    kept = [np.flatnonzero(mask) for mask in masks]
    return {
        name: [scored.take(rows) for scored, rows in zip(each, kept, strict=True)] for name, each in by_seed.items()
    }


def _curve(runs: Sequence[Scored]) -> tuple[float, ...]:
    """Accuracy in equal stretches of each stream, averaged over the seeds."""
    points = min(CURVE_POINTS, *(len(run.labels) for run in runs), CURVE_POINTS)
    stretches = [np.array_split(run.declined == run.labels, points) for run in runs]
    return tuple(float(np.mean([np.mean(run[point]) for run in stretches])) for point in range(points))
