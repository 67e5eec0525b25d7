"""Everyone on one dataset, and the figures that come of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from acefraud.core.table import Mask, Numbers
from acefraud.datasets.columns import LabelledColumns
from acefraud.evaluation.metrics import Interval
from acefraud.evaluation.quality.contenders import Factory
from acefraud.evaluation.quality.evidence import EvidenceHeld, together
from acefraud.evaluation.quality.measures import average_precision, bootstrap, pooled
from acefraud.evaluation.quality.protocol import Contender, Counts, Evidenced, StreamContender, Streaming
from acefraud.evaluation.quality.sampling import corrected, subsample
from acefraud.evaluation.quality.splits import Split, split_rows, taken
from acefraud.evaluation.quality.streaming import Stream, run_stream, stream_of

Progress = Callable[[float], None]

STREAM_ROWS = 15_000
"""Rows of a stream unless told otherwise: about two minutes for ten trees and sixty facts on two cores."""
_MESSAGE = 200
"""Characters of an error that are kept."""


def _untold(_: float) -> None:
    """For a caller who does not ask how far it is."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of one run of one model on its test rows."""

    scores: Numbers
    labels: Mask
    on_stream: Mask
    """Which of these rows the stream learners were measured on too."""
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
    """Average precision on the rows that the stream learners were measured on."""
    evidence_held: EvidenceHeld | None
    """Over the bullets of all seeds; None for who has no bullets to check."""
    first: Scored
    """The run of the first seed, for the pictures."""


@dataclass(frozen=True, slots=True)
class DatasetFigures:
    """A dataset, how it was parted, and what everyone reached on it."""

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
    """What went wrong with those who came to no figures."""


def measure(
    data: LabelledColumns,
    contenders: Mapping[str, Factory],
    *,
    seeds: Sequence[int] = (0,),
    stream_rows: int = STREAM_ROWS,
    entity_disjoint: str | None = None,
    progress: Progress = _untold,
) -> DatasetFigures:
    """Let every contender learn from the same rows and score the same rows, once for each seed."""
    splits = [split_rows(data, seed=seed, entity_disjoint=entity_disjoint) for seed in seeds]
    streams = [stream_of(data, split, stream_rows) for split in splits]
    result = _described(data, splits[0], streams[0])
    rounds = list(zip(seeds, splits, streams, strict=True))
    for at, (name, factory) in enumerate(contenders.items()):
        step = _part(progress, at / len(contenders), 1 / len(contenders))
        try:
            result.models[name] = _measured(factory, data, rounds, step)
        except Exception as problem:  # noqa: BLE001  # one failure must not cost the others' figures
            result.failed[name] = " ".join(f"{type(problem).__name__}: {problem}".split())[:_MESSAGE]
        step(1.0)
    return result


def _measured(
    factory: Factory, data: LabelledColumns, rounds: Sequence[tuple[int, Split, Stream]], progress: Progress
) -> ModelFigures:
    """One contender over all seeds."""
    runs, learnt_from = [], 0
    for nth, (seed, split, stream) in enumerate(rounds):
        contender = factory(seed)
        step = _part(progress, nth / len(rounds), 1 / len(rounds))
        if isinstance(contender, Streaming):
            scored, learnt_from = _along(contender, data, stream, step), len(stream.warm_up)
        else:
            scored, learnt_from = _once(contender, data, split, stream, seed)
        if scored.scores.shape != scored.labels.shape or not np.isfinite(scored.scores).all():
            raise ValueError("expected one finite score for each row")
        step(1.0)
        runs.append(scored)
    streamed = isinstance(contender, Streaming)
    return _summed(contender.settings, runs, [seed for seed, _, _ in rounds], learnt_from, streamed=streamed)


def _described(data: LabelledColumns, split: Split, stream: Stream) -> DatasetFigures:
    return DatasetFigures(
        name=data.name,
        rows=len(data),
        frauds=int(data.labels.sum()),
        train_rows=len(split.train),
        train_frauds=int(data.labels[split.train].sum()),
        test_rows=len(split.test),
        test_frauds=int(data.labels[split.test].sum()),
        late=len(split.late),
        split=split.how,
        stream_rows=len(stream.warm_up) + len(stream.measured),
        stream_measured=len(stream.measured),
        stream_capped=stream.capped,
        facts=data.facts.names,
        bad_rows=len(data.bad_rows),
        unlabelled=data.unlabelled,
    )


def _part(progress: Progress, start: float, share: float) -> Progress:
    return lambda done: progress(start + share * done)


def _once(contender: Contender, data: LabelledColumns, split: Split, stream: Stream, seed: int) -> tuple[Scored, int]:
    train, test = taken(data, split.train), taken(data, split.test)
    seen = subsample(train.labels, contender.rows_cap, seed)
    given = taken(train, seen)
    began = time.perf_counter()
    contender.fit(given)
    fitted = time.perf_counter()
    scores = contender.score(test)
    ended = time.perf_counter()
    scored = Scored(
        scores=corrected(scores, given.labels, train.labels),
        labels=test.labels,
        on_stream=np.isin(split.test, stream.measured),
        fit_seconds=fitted - began,
        predict_seconds=ended - fitted,
        size=contender.size,
        cited=contender.cited,
        evidence_held=contender.evidence_held(test) if isinstance(contender, Evidenced) else None,
    )
    return scored, len(given)


def _along(contender: StreamContender, data: LabelledColumns, stream: Stream, progress: Progress) -> Scored:
    streamed = run_stream(contender, data, stream, progress)
    return Scored(
        scores=streamed.scores,
        labels=data.labels[stream.measured],
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
