"""One search of a labelled history: each round adds the conditions that explain what the others still get wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from acefraud.core.arrays import BoolArray, FloatArray
from acefraud.core.comparison import ORDERED
from acefraud.core.condition import Condition, Op
from acefraud.rules.induction.bins import BinnedTable, BinOptions
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
)
from acefraud.rules.induction.history import SplitHistory, sample
from acefraud.rules.induction.platt_scaling import calibrated
from acefraud.rules.induction.trees import Branch, TreeOptions, branches

NOTHING = 1e-3
"""A weight below this counts as zero."""
SAME = 0.8
"""Two conditions whose cases have at least this Jaccard index are one lesson."""
_MOST_SEARCHED = 150
"""Conditions that a search works with, however few bullets are wanted in the end."""
_FEWEST, _FEW_ROWS = 5, 50
"""In a short history a branch may hold fewer cases: one row in fifty, but at least five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InductionOptions:
    """How a history is searched for rules."""

    rounds: int = 60
    per_round: int = 8
    """Conditions that one round may add before all weights are fitted again."""
    subsample: float = 0.7
    later_share: float = 0.2
    searches: int = 6
    """Independent searches whose average is distilled into one set of rules."""
    patience: int = 10
    """Rounds without a lower out-of-time loss after which a search stops."""
    most_bullets: int = 150
    most_cited: int = 10
    """Rules that count for one case, in fits as in decisions."""
    least_cases: int = 40
    least_frauds: int = 5
    small: int = 500
    """Cases up to which a rule must also improve on general knowledge, where that is used, on cases that its weight was
    not fitted on."""
    most_rows: int = 60_000
    """Frauds, and other cases, above which weights are fitted on a weighted sample."""
    search_rows: int = 20_000
    """Frauds, and other cases, that each search draws at most. Several searches see more between them."""
    steps: int = 20
    rising: tuple[str, ...] = ()
    """Facts whose higher values never lower the risk."""
    falling: tuple[str, ...] = ()
    """Facts whose higher values never raise the risk."""
    bins: BinOptions = field(default_factory=BinOptions)
    trees: TreeOptions = field(default_factory=TreeOptions)
    fit: FitOptions = field(default_factory=FitOptions)


class Boosting:
    """One search: each round grows a tree on the gradient of the conditions so far and fits all weights again."""

    def __init__(
        self,
        split: SplitHistory,
        options: InductionOptions,
        generator: np.random.Generator,
        known: Sequence[Condition],
        always: frozenset[Condition],
    ) -> None:
        self._options, self._generator, self._always = options, generator, always
        history, cut = split.history, split.cut
        earlier, counts = sample(history.labels[:cut], options.search_rows, generator)
        later, later_counts = sample(history.labels[cut:], options.search_rows, generator)
        if options.rounds <= options.patience:  # it cannot stop early, so the out-of-time loss is not needed
            later, later_counts = later[:0], later_counts[:0]
        self._cases = split.cases(earlier, counts)
        self._later_cases = split.cases(later + cut, later_counts)
        self._rows, self._later_rows = history.rows(earlier), history.rows(later + cut)
        self._table = BinnedTable.cut(self._rows, self._cases.labels, options.bins)
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
        always = are_in(self._conditions, self._always)
        most = max(options.most_bullets, _MOST_SEARCHED)
        self._keep(worth_keeping(self._fitted.weights, self._masks, self._cases, most, always))

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
    kept: BoolArray = (np.abs(weights) > NOTHING) & ~always
    if kept.sum() > most:
        strength = np.where(kept, np.abs(weights) * np.sqrt(cases.weights @ masks), 0.0)
        kept[np.argsort(-strength, kind="stable")[most:]] = False
    return kept | always


def distinct(
    masks: BoolArray, counts: FloatArray, conditions: Sequence[Condition], always: Set[Condition]
) -> BoolArray:
    """The conditions that do not hold on nearly the same cases as one that comes before them.

    Those that stay `always` come first, then those with fewer tests, then those that were found earlier.
    """
    columns = masks.astype(np.float32)
    both = columns.T @ (columns * counts.astype(np.float32)[:, None])
    alone = np.diag(both)
    nearly_same = both >= SAME * (alone[:, None] + alone[None, :] - both)
    order = sorted(range(len(conditions)), key=lambda i: (conditions[i] not in always, len(conditions[i].leaves)))
    kept = np.zeros(len(conditions), dtype=np.bool_)
    for place in order:
        kept[place] = conditions[place] in always or not (nearly_same[place] & kept).any()
    return kept


def nearly_same(one: BoolArray, other: BoolArray) -> bool:
    """Whether two conditions hold on nearly the same cases.

    >>> nearly_same(np.array([True, True, False]), np.array([True, True, True]))
    False
    """
    return bool((one & other).sum() >= SAME * (one | other).sum() > 0)


def are_in(conditions: Sequence[Condition], some: frozenset[Condition]) -> BoolArray:
    return np.array([condition in some for condition in conditions], dtype=np.bool_)
