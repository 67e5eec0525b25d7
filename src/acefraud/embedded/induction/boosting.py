"""From labelled history to a set of bullets: boosted conditions, refitted, checked later in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt

from acefraud.core.condition import Condition
from acefraud.core.evidence import Evidence, Record
from acefraud.core.scoring import Calibration
from acefraud.core.table import FactTable
from acefraud.core.transaction import Verdict
from acefraud.embedded.induction.bank import TestBank
from acefraud.embedded.induction.candidates import CandidateOptions, candidate_tests
from acefraud.embedded.induction.fitting import FitOptions, fit, probabilities
from acefraud.embedded.induction.growing import GrowthOptions, Residual, condition_of, grow
from acefraud.embedded.scorecard import score_in

Labels = npt.NDArray[np.bool_]
Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class InductionOptions:
    """How history is turned into bullets."""

    rounds: int = 120
    step: float = 0.3
    subsample: float = 0.7
    later_share: float = 0.25
    patience: int = 20
    most_bullets: int = 60
    least_cases: int = 40
    candidates: CandidateOptions = field(default_factory=CandidateOptions)
    growth: GrowthOptions = field(default_factory=GrowthOptions)
    fit: FitOptions = field(default_factory=FitOptions)


@dataclass(frozen=True, slots=True)
class History:
    """Labelled cases in the order of time, and which of them belong to the earlier part."""

    rows: FactTable
    labels: Labels
    knowledge: Column
    earlier: npt.NDArray[np.bool_]
    times: Sequence[datetime | None]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One bullet to be: its condition, what it argues for, what was measured of it, and its weight."""

    condition: Condition
    argues: Verdict
    evidence: Evidence
    weight: float


@dataclass(frozen=True, slots=True)
class Induced:
    """What history taught."""

    lessons: tuple[Lesson, ...]
    calibration: Calibration


def record_of(mask: npt.NDArray[np.bool_], labels: Labels) -> Record:
    """How often a condition held, and how often that was fraud."""
    return Record(support=int(mask.sum()), frauds=int((mask & labels).sum()))


def seen(mask: npt.NDArray[np.bool_], times: Sequence[datetime | None]) -> tuple[datetime | None, datetime | None]:
    """The first and the last time a condition held, where times are known."""
    held = [time for holds, time in zip(mask, times, strict=True) if holds and time is not None]
    return min(held, default=None), max(held, default=None)


def induce(
    rows: FactTable,
    labels: Labels,
    options: InductionOptions,
    generator: np.random.Generator,
    progress: Callable[[float], None] = lambda _: None,
    *,
    times: Sequence[datetime | None] = (),
) -> Induced | None:
    """Learn from cases in the order of time. None where there is too little to say anything.

    Conditions are grown on the earlier part and must hold up on the later one; the weights are then fitted on all.
    """
    count = len(labels)
    if count < options.least_cases or not options.candidates.least_support <= labels.sum() < count:
        return None
    earlier = np.arange(count) < round(count * (1 - options.later_share))
    knowledge = score_in(rows)
    history = History(rows, labels, knowledge, earlier, times or [None] * count)
    conditions = _boost(history, options, generator, progress)
    if not conditions:
        return None
    masks = np.column_stack([condition.holds_in(rows) for condition in conditions])
    kept = [j for j in range(len(conditions)) if _holds_up(masks[:, j], labels, earlier)]
    fitted = fit(masks[:, kept].astype(np.float64), knowledge, labels, options.fit)
    strength = np.abs(fitted.weights) * np.sqrt(masks[:, kept].sum(0))
    ranked = [place for place in np.argsort(-strength, kind="stable") if strength[place] > 0][: options.most_bullets]
    chosen = [kept[place] for place in ranked]
    fitted = fit(masks[:, chosen].astype(np.float64), knowledge, labels, options.fit)
    lessons = tuple(
        _lesson(conditions[j], masks[:, j], history, float(weight))
        for j, weight in zip(chosen, fitted.weights, strict=True)
        if weight != 0
    )
    return Induced(lessons, fitted.calibration)


def _boost(
    history: History,
    options: InductionOptions,
    generator: np.random.Generator,
    progress: Callable[[float], None],
) -> list[Condition]:
    """Conditions in the order in which they explain the residual, until the later part stops improving."""
    earlier = history.earlier
    tests = candidate_tests(history.rows, history.labels & earlier, options.candidates)
    if not tests:
        return []
    matrix = TestBank(tests).evaluate(history.rows)
    y = history.labels.astype(np.float64)
    start = fit(np.zeros((int(earlier.sum()), 0)), history.knowledge[earlier], history.labels[earlier], options.fit)
    margin = start.calibration.intercept + start.calibration.knowledge_scale * history.knowledge
    best_loss, best_count, found = _log_loss(margin[~earlier], y[~earlier]), 0, list[Condition]()
    for turn in range(options.rounds):
        progress(turn / options.rounds)
        p = probabilities(margin)
        sample = earlier & (generator.random(len(y)) < options.subsample)
        grown = grow(matrix[sample], Residual.of(y[sample], p[sample]), options.growth)
        if grown is None:
            break
        inside = np.all(matrix[:, grown.places] > 0, axis=1)
        margin = margin + options.step * grown.step * inside
        found.append(condition_of(tests, grown.places))
        loss = _log_loss(margin[~earlier], y[~earlier])
        if loss < best_loss - 1e-5:
            best_loss, best_count = loss, len(found)
        elif len(found) - best_count >= options.patience:
            break
    progress(1.0)
    return list(dict.fromkeys(found[:best_count]))


def _log_loss(margin: Column, y: Column) -> float:
    return float(np.mean(np.logaddexp(0.0, margin) - y * margin)) if len(y) else np.inf


def _holds_up(mask: npt.NDArray[np.bool_], labels: Labels, earlier: npt.NDArray[np.bool_]) -> bool:
    """Whether the later part agrees with the earlier about the side of the base rate."""
    learnt, later = record_of(mask & earlier, labels), record_of(mask & ~earlier, labels)
    if learnt.precision is None or later.precision is None:
        return learnt.precision is not None
    base_before, base_after = float(labels[earlier].mean()), float(labels[~earlier].mean())
    return (learnt.precision > base_before) == (later.precision > base_after)


def _lesson(condition: Condition, mask: npt.NDArray[np.bool_], history: History, weight: float) -> Lesson:
    labels, earlier = history.labels, history.earlier
    first, last = seen(mask, history.times)
    evidence = Evidence(
        learnt=record_of(mask & earlier, labels),
        base_rate=float(labels[earlier].mean()),
        later=record_of(mask & ~earlier, labels),
        first_seen=first,
        last_seen=last,
    )
    return Lesson(condition, Verdict.of(weight > 0), evidence, weight)
