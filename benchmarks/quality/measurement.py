"""Runs every learner on one dataset and collects the figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acefraud import Cases, Dataset
from acefraud.evaluation.metrics import Interval
from benchmarks.arrays import Counts, Mask, Numbers
from benchmarks.quality.contender import Contender, Evidenced, SharesFit, StreamContender, Streaming
from benchmarks.quality.contenders import Factory
from benchmarks.quality.evidence import EvidenceHeld, together
from benchmarks.quality.measures import average_precision, bootstrap, pooled
from benchmarks.quality.samples import corrected, subsample
from benchmarks.quality.splits import Split, split_rows, taken
from benchmarks.quality.streams import Stream, run_stream, stream_of

Progress = Callable[[float], None]

STREAM_ROWS = 15_000
"""Default length of a stream: about two minutes for ten trees and sixty facts on two cores."""
_MESSAGE = 200
"""Characters that are kept of an error message."""


def _no_progress(_: float) -> None:
    """Progress for callers that show none."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of one run of one model on its test rows."""

    scores: Numbers
    labels: Mask
    on_stream: Mask
    """Which of these rows the stream learners are measured on too."""
    fit_seconds: float
    predict_seconds: float
    size: int | None = None
    cited: Counts | None = None
    rows_per_second: float | None = None
    evidence_held: EvidenceHeld | None = None


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """What a model reached on a dataset, over all seeds."""

    settings: str
    streamed: bool
    figures: Mapping[str, Interval]
    fit_seconds: float
    predict_seconds: float
    size: float | None
    cited_mean: float | None
    cited_max: int | None
    rows_per_second: float | None
    learnt_from: int
    on_stream_rows: float
    """Average precision on the rows that the stream learners are measured on."""
    evidence_held: EvidenceHeld | None
    """Over the bullets of all seeds; None for learners without bullets."""
    first: Scored
    """The run of the first seed, for the plots."""


@dataclass(frozen=True, slots=True)
class DatasetFigures:
    """A dataset, how it was split, and what every learner reached on it."""

    name: str
    rows: int
    frauds: int
    train_rows: int
    train_frauds: int
    test_rows: int
    test_frauds: int
    late: int
    split: str
    stream_rows: int
    stream_measured: int
    stream_capped: bool
    facts: Sequence[str]
    bad_rows: int
    unlabelled: int
    models: dict[str, ModelFigures] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Error messages of the learners that failed."""


@dataclass(frozen=True, slots=True)
class Round:
    """One seed: which rows are learnt from, decided and streamed."""

    seed: int
    split: Split
    stream: Stream


class Fits:
    """Fits learners; those that learn the same are fitted only once."""

    def __init__(self, mapping: str) -> None:
        self._mapping = mapping
        self._done: dict[tuple[str, int], tuple[Any, float]] = {}

    def seconds_of(self, contender: Contender, train: Cases, seed: int) -> float:
        """Fit a learner, or give it what another has learnt. Returns the seconds that learning took."""
        if not isinstance(contender, SharesFit):
            return self._fit(contender, train)
        key = contender.fitted_as, seed
        if key not in self._done:
            seconds = self._fit(contender, train)
            self._done[key] = contender.learnt, seconds
        contender.learnt, seconds = self._done[key]
        return seconds

    def _fit(self, contender: Contender, train: Cases) -> float:
        began = time.perf_counter()
        contender.fit(train, self._mapping)
        return time.perf_counter() - began


def measure(
    data: Dataset,
    contenders: Mapping[str, Factory],
    *,
    seeds: Sequence[int] = (0,),
    stream_rows: int = STREAM_ROWS,
    entity_disjoint: str | None = None,
    progress: Progress = _no_progress,
) -> DatasetFigures:
    """Let every learner learn from the same rows and score the same rows, once for each seed.

    The facts already include the history (`Dataset.with_history`).
    """
    cases = data.train
    splits = [split_rows(cases, name=data.name, seed=seed, entity_disjoint=entity_disjoint) for seed in seeds]
    rounds = [
        Round(seed, split, stream_of(cases, split, stream_rows)) for seed, split in zip(seeds, splits, strict=True)
    ]
    result = _described(data, rounds[0])
    fits = Fits(data.mapping.describe())
    for at, (name, factory) in enumerate(contenders.items()):
        step = _part(progress, at / len(contenders), 1 / len(contenders))
        try:
            result.models[name] = _measured(factory, cases, rounds, fits, step)
        except Exception as problem:  # noqa: BLE001  # one failure must not cost the others' figures
            result.failed[name] = " ".join(f"{type(problem).__name__}: {problem}".split())[:_MESSAGE]
        step(1.0)
    return result


def _measured(factory: Factory, cases: Cases, rounds: Sequence[Round], fits: Fits, progress: Progress) -> ModelFigures:
    """One learner over all seeds."""
    runs, learnt_from = [], 0
    for nth, one in enumerate(rounds):
        contender = factory(one.seed)
        step = _part(progress, nth / len(rounds), 1 / len(rounds))
        if isinstance(contender, Streaming):
            scored, learnt_from = _along(contender, cases, one.stream, step), len(one.stream.warm_up)
        else:
            scored, learnt_from = _once(contender, cases, one, fits)
        if scored.scores.shape != scored.labels.shape or not np.isfinite(scored.scores).all():
            raise ValueError("expected one finite score for each row")
        step(1.0)
        runs.append(scored)
    streamed = isinstance(contender, Streaming)
    return _summed(contender.settings, runs, [each.seed for each in rounds], learnt_from, streamed=streamed)


def _described(data: Dataset, first: Round) -> DatasetFigures:
    cases, split, stream = data.train, first.split, first.stream
    return DatasetFigures(
        name=data.name,
        rows=len(cases),
        frauds=int(cases.labels.sum()),
        train_rows=len(split.train),
        train_frauds=int(cases.labels[split.train].sum()),
        test_rows=len(split.test),
        test_frauds=int(cases.labels[split.test].sum()),
        late=len(split.late),
        split=split.how,
        stream_rows=len(stream.warm_up) + len(stream.measured),
        stream_measured=len(stream.measured),
        stream_capped=stream.capped,
        facts=cases.facts.names,
        bad_rows=len(data.bad_rows),
        unlabelled=data.unlabelled,
    )


def _part(progress: Progress, start: float, share: float) -> Progress:
    return lambda done: progress(start + share * done)


def _once(contender: Contender, cases: Cases, one: Round, fits: Fits) -> tuple[Scored, int]:
    train, test = taken(cases, one.split.train), taken(cases, one.split.test)
    given = taken(train, subsample(train.labels, contender.rows_cap, one.seed))
    fit_seconds = fits.seconds_of(contender, given, one.seed)
    began = time.perf_counter()
    scores = contender.score(test)
    predict_seconds = time.perf_counter() - began
    scored = Scored(
        scores=corrected(scores, given.labels, train.labels),
        labels=test.labels,
        on_stream=np.isin(one.split.test, one.stream.measured),
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        size=contender.size,
        cited=contender.cited,
        evidence_held=contender.evidence_held(test) if isinstance(contender, Evidenced) else None,
    )
    return scored, len(given)


def _along(contender: StreamContender, cases: Cases, stream: Stream, progress: Progress) -> Scored:
    streamed = run_stream(contender, cases, stream, progress)
    return Scored(
        scores=streamed.scores,
        labels=cases.labels[stream.measured],
        on_stream=np.ones(len(stream.measured), dtype=np.bool_),
        fit_seconds=streamed.learn_seconds,
        predict_seconds=streamed.predict_seconds,
        size=contender.size,
        cited=contender.cited,
        rows_per_second=streamed.rows_per_second,
    )


def _summed(
    settings: str, runs: Sequence[Scored], seeds: Sequence[int], learnt_from: int, *, streamed: bool
) -> ModelFigures:
    cited = [run.cited for run in runs if run.cited is not None and len(run.cited)]
    return ModelFigures(
        settings=settings,
        streamed=streamed,
        figures=pooled([bootstrap(run.scores, run.labels, seed=seed) for run, seed in zip(runs, seeds, strict=True)]),
        fit_seconds=_mean(run.fit_seconds for run in runs) or 0.0,
        predict_seconds=_mean(run.predict_seconds for run in runs) or 0.0,
        size=_mean(run.size for run in runs if run.size is not None),
        cited_mean=float(np.mean(np.concatenate(cited))) if cited else None,
        cited_max=int(np.max(np.concatenate(cited))) if cited else None,
        rows_per_second=_mean(run.rows_per_second for run in runs if run.rows_per_second is not None),
        learnt_from=learnt_from,
        on_stream_rows=float(
            np.mean([average_precision(run.scores[run.on_stream], run.labels[run.on_stream]) for run in runs])
        ),
        evidence_held=together(run.evidence_held for run in runs),
        first=runs[0],
    )


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return float(np.mean(known)) if known else None
