"""From labelled history to rules: boosted conditions, checked out of time and fitted together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from acefraud.core.arrays import BoolArray, FloatArray, IntArray
from acefraud.core.bullet import NewBullet, Source
from acefraud.core.calibration import Calibration
from acefraud.core.comparison import ORDERED
from acefraud.core.condition import Condition, Op
from acefraud.core.evidence import Evidence
from acefraud.core.table import FactTable
from acefraud.core.timestamps import time_of
from acefraud.core.transaction import Verdict
from acefraud.rules.english import sentence
from acefraud.rules.induction.bins import BinnedTable, BinOptions, cut_facts
from acefraud.rules.induction.fitting import (
    FitCases,
    FitOptions,
    Fitted,
    fit,
    loss_of,
    margins,
    probabilities,
    signs_of,
    strongest,
    threads_for,
)
from acefraud.rules.induction.out_of_time import Checked, check, spread_of, usual_share
from acefraud.rules.induction.platt_scaling import calibrated, levelled, slope_of
from acefraud.rules.induction.trees import Branch, TreeOptions, branches
from acefraud.rules.problem_types import problem_types

_NOTHING = 1e-3
"""A weight below this counts as zero."""
_FEWEST, _FEW_ROWS = 5, 50
"""In a short history a branch may hold fewer cases: one row in fifty, but at least five."""
_FINAL_FITS = 4
"""Fits at the end, each on the conditions that the fit before would have cited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InductionOptions:
    """How a history is searched for rules."""

    rounds: int = 60
    per_round: int = 8
    """Conditions that one round may add before all weights are fitted again."""
    subsample: float = 0.7
    later_share: float = 0.2
    runs: int = 2
    """Independent runs whose conditions are pooled before the last fit."""
    patience: int = 20
    """Rounds without a lower out-of-time loss after which a run stops."""
    most_bullets: int = 150
    most_cited: int = 10
    """Rules that count for one case, in fits as in decisions."""
    least_cases: int = 40
    least_frauds: int = 5
    most_rows: int = 60_000
    """Frauds, and other cases, above which a weighted sample is used."""
    steps: int = 20
    rising: tuple[str, ...] = ()
    """Facts whose higher values never lower the risk."""
    falling: tuple[str, ...] = ()
    """Facts whose higher values never raise the risk."""
    bins: BinOptions = field(default_factory=BinOptions)
    trees: TreeOptions = field(default_factory=TreeOptions)
    fit: FitOptions = field(default_factory=FitOptions)


@dataclass(frozen=True, slots=True)
class History:
    """Labelled cases in order of time."""

    rows: FactTable
    labels: BoolArray
    knowledge: FloatArray | None = None
    """The scorecard's sum for each case; None if general knowledge is not used."""
    offset: FloatArray | None = None
    """Log-odds of each case from rules that keep their weight."""
    times: IntArray | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class _Parted:
    """A history split in time: the cases from the cut on are the out-of-time part."""

    history: History
    cut: int
    usual: FloatArray
    """The share of fraud at the time of each case."""

    @classmethod
    def of(cls, history: History, later_share: float) -> _Parted:
        cut = round(len(history.labels) * (1 - later_share))
        return cls(history, cut, usual_share(history.labels, cut))

    def cases(self, places: IntArray, counts: FloatArray) -> FitCases:
        """Some of the cases, to fit weights on."""
        history = self.history
        knowledge = None if history.knowledge is None else history.knowledge[places]
        offset = None if history.offset is None else history.offset[places]
        return FitCases(history.labels[places], knowledge, offset, counts=counts, usual=self.usual[places])

    def check(self, condition: Condition) -> Checked:
        """Whether a condition holds out of time."""
        return check(condition.holds_in(self.history.rows), self.history.labels, self.usual, self.cut)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A rule found in labelled cases: its condition and verdict, its measured record and its fitted weight."""

    condition: Condition
    argues: Verdict
    evidence: Evidence
    weight: float

    def new_bullet(self, source: Source) -> NewBullet:
        """The rule as a bullet in English."""
        return NewBullet(
            content=sentence(self.condition, self.evidence),
            source=source,
            condition=self.condition,
            argues=self.argues,
            evidence=self.evidence,
            weight=self.weight,
            problem_types=problem_types(self.condition),
        )


@dataclass(frozen=True, slots=True)
class Induced:
    """The result of a search."""

    lessons: tuple[Lesson, ...]
    calibration: Calibration
    weights: Mapping[Condition, float] = field(default_factory=dict)
    """The fitted weight of each `written` condition, whether it became a lesson or not."""


def induce(
    history: History,
    options: InductionOptions,
    generator: np.random.Generator,
    progress: Callable[[float], None] = lambda _: None,
    *,
    known: Sequence[Condition] = (),
    written: Sequence[Condition] = (),
) -> Induced | None:
    """Search a history for rules. None if it has too few cases or nothing is found.

    Conditions are grown on the earlier part and must hold on the out-of-time part; weights are then fitted on all
    cases. `known` conditions take part from the start. So do those `written` by people, which are never dropped and do
    not count against `most_bullets`.
    """
    if too_little(history.labels, options):
        return None
    progress(0.0)
    parted = _Parted.of(history, options.later_share)
    if not history.labels[: parted.cut].any():
        return None
    always = frozenset(written)
    with threads_for(min(len(history), 2 * options.most_rows) * options.most_bullets):
        conditions = _grown(parted, options, generator, progress, known=[*written, *known], always=always)
        checked = [parted.check(condition) for condition in conditions]
        fitted = _fit_all(parted, conditions, checked, options, generator, always=always)
    progress(1.0)
    spread = spread_of(checked)
    lessons = tuple(
        _lesson(condition, one, history, weight, spread)
        for condition, one, weight in zip(conditions, checked, fitted.weights, strict=True)
        if abs(weight) > _NOTHING and one.holds_up
    )
    weights = dict(zip(conditions, fitted.weights.tolist(), strict=True))
    by_hand = {condition: weights[condition] for condition in always if condition in weights}
    return Induced(lessons, fitted.calibration, by_hand) if lessons or known or by_hand else None


def too_little(labels: BoolArray, options: InductionOptions) -> str:
    """Why labelled cases are too few to learn from; empty if they are enough.

    >>> too_little(np.array([True, False]), InductionOptions())
    '2 labelled cases, 40 are needed'
    """
    frauds = int(labels.sum())
    if len(labels) < options.least_cases:
        return f"{len(labels)} labelled cases, {options.least_cases} are needed"
    if frauds < options.least_frauds:
        return f"{frauds} frauds among {len(labels):,} labelled cases, {options.least_frauds} are needed"
    return "all labelled cases are fraud" if frauds == len(labels) else ""


def _grown(
    parted: _Parted,
    options: InductionOptions,
    generator: np.random.Generator,
    progress: Callable[[float], None],
    *,
    known: Sequence[Condition],
    always: frozenset[Condition],
) -> list[Condition]:
    """The distinct conditions of several runs: what one run misses by chance, another finds."""
    found: dict[Condition, None] = {}
    for turn in range(options.runs):

        def told(share: float, done: int = turn) -> None:
            progress((done + share) / options.runs)

        found |= dict.fromkeys(_Boosting(parted, options, generator, known, always).run(told))
    return list(found)


class _Boosting:
    """One boosting run: each round grows a tree on the gradient of the conditions so far and fits all weights again."""

    def __init__(
        self,
        parted: _Parted,
        options: InductionOptions,
        generator: np.random.Generator,
        known: Sequence[Condition],
        always: frozenset[Condition],
    ) -> None:
        self._options, self._generator, self._always = options, generator, always
        history, cut = parted.history, parted.cut
        earlier, counts = sample(history.labels[:cut], options.most_rows, generator)
        later, later_counts = sample(history.labels[cut:], options.most_rows, generator)
        if options.rounds <= options.patience:  # it cannot stop early, so the out-of-time loss is not needed
            later, later_counts = later[:0], later_counts[:0]
        self._cases = parted.cases(earlier, counts)
        self._later_cases = parted.cases(later + cut, later_counts)
        self._rows, self._later_rows = history.rows.take(earlier), history.rows.take(later + cut)
        self._table = BinnedTable.of(cut_facts(self._rows, self._cases.labels, options.bins), self._rows)
        fewest = min(options.trees.least_support, max(_FEWEST, len(self._rows) // _FEW_ROWS))
        self._trees = replace(options.trees, least_support=fewest)
        self._conditions: list[Condition] = []
        self._masks = np.zeros((len(earlier), 0), dtype=np.bool_)
        self._later_masks = np.zeros((len(later), 0), dtype=np.bool_)
        self._fitted = fit(self._masks, self._cases, options.fit)
        self._add([(condition, condition.holds_in(self._rows)) for condition in dict.fromkeys(known)])

    def run(self, progress: Callable[[float], None]) -> list[Condition]:
        """The conditions found when the out-of-time loss stops improving."""
        best_loss, waited = self._later_loss(), 0
        for turn in range(self._options.rounds if self._table.facts else 0):
            progress(turn / self._options.rounds)
            self._round()
            loss = self._later_loss()
            waited = 0 if loss < best_loss else waited + 1
            best_loss = min(loss, best_loss)
            if waited >= self._options.patience:
                break
        return self._conditions

    def _round(self) -> None:
        options, cases = self._options, self._cases
        spoken = strongest(self._masks, self._fitted.weights, options.most_cited)
        p = probabilities(margins(spoken, cases, self._fitted))
        gradient, hessian = cases.weights * (cases.labels - p), cases.weights * p * (1 - p)
        rows = np.flatnonzero(self._generator.random(len(p)) < options.subsample)
        found = branches(self._table, gradient, hessian, rows, options=self._trees, generator=self._generator)
        fresh = list(islice(self._unknown(found), options.per_round))
        if fresh:
            columns = np.column_stack([mask for _, mask in fresh])
            signs = signs_of(columns, cases)
            agrees = signs * (gradient @ columns) > 0
            judged = zip(fresh, agrees, signs, strict=True)
            self._add([one for one, fine, sign in judged if fine and self._allowed(one[0], sign)])

    def _unknown(self, found: Sequence[Branch]) -> Iterator[tuple[Condition, BoolArray]]:
        """The conditions that are new, and where they hold."""
        there = set(self._conditions)
        for branch in found:
            condition = self._table.condition(dict(branch.bins))
            if condition not in there:
                there.add(condition)
                yield condition, self._table.holds(dict(branch.bins))

    def _add(self, fresh: Sequence[tuple[Condition, BoolArray]]) -> None:
        """Fit new conditions together with the others, and keep those with a weight."""
        if not fresh:
            return
        options = self._options
        self._conditions += [condition for condition, _ in fresh]
        self._masks = np.column_stack([self._masks, *(mask for _, mask in fresh)])
        later = [condition.holds_in(self._later_rows) for condition, _ in fresh]
        self._later_masks = np.column_stack([self._later_masks, *later])
        weights = np.concatenate([self._fitted.weights, np.zeros(len(fresh))])
        spoken = strongest(self._masks, weights, options.most_cited).copy()
        spoken[:, -len(fresh) :] = self._masks[:, -len(fresh) :]
        start = Fitted(weights, self._fitted.calibration)
        self._fitted = fit(spoken, self._cases, options.fit, start, options.steps)
        always = _are_in(self._conditions, self._always)
        self._keep(worth_keeping(self._fitted.weights, self._masks, self._cases, options.most_bullets, always))

    def _keep(self, kept: BoolArray) -> None:
        self._conditions = [one for one, stays in zip(self._conditions, kept, strict=True) if stays]
        self._masks, self._later_masks = self._masks[:, kept], self._later_masks[:, kept]
        self._fitted = self._fitted.only(kept)

    def _later_loss(self) -> float:
        """The out-of-time log-loss after calibration: how well the rules separate frauds."""
        if not self._later_cases.labels.any():
            return 0.0
        spoken = strongest(self._later_masks, self._fitted.weights, self._options.most_cited)
        return loss_of(calibrated(self._fitted, spoken, self._later_cases), spoken, self._later_cases)

    def _allowed(self, condition: Condition, sign: float) -> bool:
        """Whether a condition that argues this way respects the declared directions of facts."""
        options = self._options
        for test in condition.tests:
            direction = sign * ((test.fact in options.rising) - (test.fact in options.falling))
            upward = test.op in (Op.ABOVE, Op.AT_LEAST)
            if direction and (test.op not in ORDERED or upward != (direction > 0)):
                return False
        return True


def worth_keeping(weights: FloatArray, masks: BoolArray, cases: FitCases, most: int, always: BoolArray) -> BoolArray:
    """The conditions with a weight; if too many, the strongest. Some stay `always`."""
    kept: BoolArray = (np.abs(weights) > _NOTHING) & ~always
    if kept.sum() > most:
        strength = np.where(kept, np.abs(weights) * np.sqrt(cases.weights @ masks), 0.0)
        kept[np.argsort(-strength, kind="stable")[most:]] = False
    return kept | always


def _are_in(conditions: Sequence[Condition], some: frozenset[Condition]) -> BoolArray:
    return np.array([condition in some for condition in conditions], dtype=np.bool_)


def sample(labels: BoolArray, most: int, generator: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Positions of at most `most` frauds and `most` others, in order, and how many cases each stands for."""
    chosen, counts = [], []
    for kind in (True, False):
        places = np.flatnonzero(labels == kind)
        drawn = places if len(places) <= most else generator.choice(places, most, replace=False)
        chosen.append(drawn)
        counts.append(np.full(len(drawn), len(places) / max(1, len(drawn))))
    together = np.concatenate(chosen)
    order = np.argsort(together, kind="stable")
    return together[order], np.concatenate(counts)[order]


def _fit_all(
    parted: _Parted,
    conditions: Sequence[Condition],
    checked: Sequence[Checked],
    options: InductionOptions,
    generator: np.random.Generator,
    *,
    always: frozenset[Condition],
) -> Fitted:
    """All weights fitted on all cases, calibrated on the out-of-time part.

    A pattern that stopped still explains the cases of its time, so it takes part in the fit but becomes no lesson.
    """
    places, counts = sample(parted.history.labels, options.most_rows, generator)
    cases, rows = parted.cases(places, counts), parted.history.rows.take(places)
    taking_part = np.array([one.holds_up or one.stopped for one in checked], dtype=np.bool_)
    masks = np.zeros((len(places), len(conditions)), dtype=np.bool_)
    for place in np.flatnonzero(taking_part).tolist():
        masks[:, place] = conditions[place].holds_in(rows)
    fitted = fit(masks, cases, options.fit)
    for _ in range(_FINAL_FITS - 1):
        spoken = strongest(masks, fitted.weights, options.most_cited)
        fitted = fit(spoken, cases, options.fit, fitted, options.steps * 3)
    kept = np.array([one.holds_up for one in checked], dtype=np.bool_)
    fitted = replace(fitted, weights=np.where(kept, fitted.weights, 0.0))
    kept = worth_keeping(fitted.weights, masks, cases, options.most_bullets, _are_in(conditions, always))
    fitted = replace(fitted, weights=fitted.weights * kept)
    return _set_to_later(fitted, masks & (fitted.weights != 0), cases, places < parted.cut, options)


def _set_to_later(
    fitted: Fitted, masks: BoolArray, cases: FitCases, earlier: BoolArray, options: InductionOptions
) -> Fitted:
    """Calibrate on the out-of-time part. The slope corrects how far weights fitted before it overshoot there."""
    then, now = cases.take(earlier), cases.take(~earlier)
    before = fit(strongest(masks[earlier], fitted.weights, options.most_cited), then, options.fit, fitted)
    slope = slope_of(before, strongest(masks[~earlier], before.weights, options.most_cited), now)
    return levelled(fitted, slope, strongest(masks[~earlier], fitted.weights, options.most_cited), now)


def _lesson(condition: Condition, checked: Checked, history: History, weight: float, spread: float) -> Lesson:
    first, last = None, None
    if history.times is not None and checked.span:
        first, last = (time_of(int(history.times[place])) for place in checked.span)
    evidence = Evidence(
        learnt=checked.learnt,
        base_rate=checked.base_rate,
        later=checked.later,
        spread=round(spread, 3),
        cases=checked.cases,
        first_seen=first,
        last_seen=last,
    )
    return Lesson(condition, Verdict.of(weight > 0), evidence, float(weight))
