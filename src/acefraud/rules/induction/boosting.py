"""Searches of a labelled history, and several of them distilled into one set of rules.

Each round of a search adds the conditions that explain what the others still get wrong. One search sees a small history
through one sample and one order of rounds, so much of what it finds is chance. The average log-odds of several searches
is steadier, but cites every rule of all of them. So all their rules are fitted to that average instead of to the
labels: it has no noise, so a light penalty keeps the few rules that reproduce it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from acefraud.core.comparison import ORDERED
from acefraud.core.condition import Condition, Op
from acefraud.rules.induction.bins import BinnedTable, BinOptions
from acefraud.rules.induction.fitting import (
    FitCases,
    FitOptions,
    Fitted,
    calibrated,
    fit,
    levelled,
    loss_of,
    margins,
    probabilities,
    separation,
    signs_of,
    strongest,
)
from acefraud.rules.induction.out_of_time import SplitHistory
from acefraud.rules.induction.trees import TreeOptions, branches
from acefraud.support.arrays import BoolArray, FloatArray
from acefraud.support.exact_math import log
from acefraud.support.exact_sums import UNIT, MaskProducts, cut, unit_for

NOTHING = 1e-3
"""A weight below this counts as zero."""
SAME = 0.8
"""Two conditions whose cases have at least this Jaccard index are one lesson."""
_MOST_SEARCHED = 150
"""Conditions that a search works with, however few bullets are wanted in the end."""
_SHUFFLES = 12
"""How often labels are shuffled to see what chance would bring."""
_PROVEN, _MOST_BY_CHANCE = 0.001, 10.0
"""How many conditions one look at shuffled labels may bring that are worth as much as a proven one, or as the least."""
_FEWEST, _FEW_ROWS = 5, 50
"""In a short history a branch may hold fewer cases: one row in fifty, but at least five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InductionOptions:
    """How a history is searched for rules."""

    rounds: int = 60
    per_round: int = 8
    """Conditions that one round may add before all weights are fitted again."""
    subsample: float = 0.7
    """Share of the cases that each tree is grown on."""
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
    chance: float = 0.3
    """How many conditions one look at shuffled labels may bring, for one condition more than were found so far. From 1
    on chance is not looked at."""
    rising: tuple[str, ...] = ()
    """Facts whose higher values never lower the risk."""
    falling: tuple[str, ...] = ()
    """Facts whose higher values never raise the risk."""
    bins: BinOptions = field(default_factory=BinOptions)
    trees: TreeOptions = field(default_factory=TreeOptions)
    fit: FitOptions = field(default_factory=FitOptions)


@dataclass(frozen=True, slots=True)
class WorthByChance:
    """What the best condition is worth if labels are shuffled: the two parameters of a Gumbel distribution."""

    middle: float
    scale: float

    @classmethod
    def of(cls, best: Sequence[float]) -> WorthByChance:
        """The distribution with the mean and the deviation of some worths."""
        scale = float(np.std(best)) * math.sqrt(6) / math.pi
        return cls(float(np.mean(best)) - scale * np.euler_gamma, scale)

    def exceeded_by(self, expected: float) -> float:
        """The worth that so many conditions are expected to exceed in one look at shuffled labels."""
        return self.middle - self.scale * log(expected)


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of one search."""

    conditions: tuple[Condition, ...]
    proven: tuple[Condition, ...]
    """Those that shuffled labels hardly ever bring."""
    separation: float
    """How far apart they put later frauds and other cases, in standard errors under chance."""
    by_chance: WorthByChance


class Boosting:
    """One search: each round grows a tree on the gradient of the conditions so far and fits all weights again."""

    def __init__(
        self,
        split: SplitHistory,
        options: InductionOptions,
        generator: np.random.Generator,
        known: Sequence[Condition],
        *,
        always: frozenset[Condition],
        by_chance: WorthByChance | None = None,
    ) -> None:
        self._options, self._generator, self._always = options, generator, always
        history, cut = split.history, split.cut
        earlier, counts = split.sample(options.search_rows, generator, end=cut)
        later, later_counts = split.sample(options.search_rows, generator, start=cut)
        if options.rounds <= options.patience:  # it cannot stop early, so the out-of-time loss is not needed
            later, later_counts = later[:0], later_counts[:0]
        self._cases = split.cases(earlier, counts)
        self._later_cases = split.cases(later, later_counts)
        self._rows, self._later_rows = history.facts.take(earlier), history.facts.take(later)
        self._table = BinnedTable.cut(self._rows, self._cases.labels, options.bins)
        fewest = min(options.trees.least_support, max(_FEWEST, len(self._rows) // _FEW_ROWS))
        self._trees = replace(options.trees, least_support=fewest)
        self._conditions: list[Condition] = []
        self._masks = np.zeros((len(earlier), 0), dtype=np.bool_)
        self._later_masks = np.zeros((len(later), 0), dtype=np.bool_)
        self._fitted = fit(self._masks, self._cases, options.fit)
        self._proven = set(known)
        self._by_chance = self._shuffled() if by_chance is None else by_chance
        self._add([(condition, condition.holds_in(self._rows)) for condition in dict.fromkeys(known)])

    def run(self, progress: Callable[[float], None]) -> Searched:
        """What is found when the out-of-time loss stops improving."""
        best_loss, waited = self._later_loss(), 0
        for turn in range(self._options.rounds if self._table.facts else 0):
            progress(turn / self._options.rounds)
            self._round()
            loss = self._later_loss()
            waited = 0 if loss < best_loss else waited + 1
            best_loss = min(loss, best_loss)
            if waited >= self._options.patience:
                break
        proven = [condition for condition in self._conditions if condition in self._proven]
        return Searched(tuple(self._conditions), tuple(proven), self._separation(), self._by_chance)

    def _round(self) -> None:
        gradient, hessian = self._gradients()
        fresh = list(islice(self._unknown(gradient, hessian), self._options.per_round))
        if fresh:
            columns = np.column_stack([mask for _, mask in fresh])
            signs = signs_of(columns, self._cases)
            agrees = signs * (gradient @ columns) > 0
            judged = zip(fresh, agrees, signs, strict=True)
            self._add([rule for rule, fine, sign in judged if fine and self._allowed(rule[0], sign)])

    def _gradients(self) -> tuple[FloatArray, FloatArray]:
        """Gradient and hessian of the log-likelihood of each row."""
        cases = self._cases
        spoken = strongest(self._masks, self._fitted.weights, self._options.most_cited)
        p = probabilities(margins(spoken, cases, self._fitted))
        return cut(cases.weights * (cases.labels - p)), np.maximum(cut(cases.weights * p * (1 - p)), UNIT)

    def _candidates(self, gradient: FloatArray, hessian: FloatArray) -> Iterator[tuple[float, Condition, BoolArray]]:
        """The branches of a tree grown on some of the rows: the worth of each on all of them, and where it holds."""
        # Rows that stand for several cases, or weigh more, have a larger gradient than their hessian tells.
        gradient = cut(gradient / math.sqrt(float(np.square(gradient).sum()) / float(hessian.sum()) or 1.0))
        rows = np.flatnonzero(self._generator.random(len(gradient)) < self._options.subsample)
        for branch in branches(self._table, gradient, hessian, rows, options=self._trees, generator=self._generator):
            bins = dict(branch.bins)
            mask = self._table.holds(bins)
            whole = float(gradient @ mask)
            gained = whole * whole / (float(hessian @ mask) + self._trees.penalty) / 2
            yield gained - self._trees.price * self._table.price(bins), self._table.condition(bins), mask

    def _shuffled(self) -> WorthByChance:
        """What the best branch is worth if labels are shuffled."""
        if self._options.chance >= 1 or not self._table.facts:
            return WorthByChance(-math.inf, 0.0)
        gradient, hessian = self._gradients()
        best = []
        for _ in range(_SHUFFLES):
            order = self._generator.permutation(len(gradient))
            best.append(max((worth for worth, *_ in self._candidates(gradient[order], hessian[order])), default=0.0))
        return WorthByChance.of(best)

    def _unknown(self, gradient: FloatArray, hessian: FloatArray) -> Iterator[tuple[Condition, BoolArray]]:
        """The conditions that are new and that chance does not explain, and where they hold."""
        there = set(self._conditions)
        expected = min(_MOST_BY_CHANCE, self._options.chance * (1 + len(there)))
        least, proven = (self._by_chance.exceeded_by(count) for count in (expected, _PROVEN))
        for worth, condition, mask in self._candidates(gradient, hessian):
            if condition not in there and worth > least:
                there.add(condition)
                yield condition, mask
            if worth > proven:
                self._proven.add(condition)

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
        self._conditions = [condition for condition, stays in zip(self._conditions, kept, strict=True) if stays]
        self._masks, self._later_masks = self._masks[:, kept], self._later_masks[:, kept]
        self._fitted = self._fitted.only(kept)

    def _later_loss(self) -> float:
        """The out-of-time log-loss after calibration: how well the rules separate frauds."""
        if not self._later_cases.labels.any():
            return 0.0
        spoken = strongest(self._later_masks, self._fitted.weights, self._options.most_cited)
        return loss_of(calibrated(self._fitted, spoken, self._later_cases), spoken, self._later_cases)

    def _separation(self) -> float:
        """How far apart the rules put later frauds and other cases, in standard errors under chance.

        It is infinite if chance is not looked at.
        """
        spoken = strongest(self._later_masks, self._fitted.weights, self._options.most_cited)
        return math.inf if self._options.chance >= 1 else separation(self._fitted, spoken, self._later_cases)

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
        strength = np.where(kept, np.abs(weights) * np.sqrt(cut(cases.weights) @ masks), 0.0)
        kept[np.argsort(-strength, kind="stable")[most:]] = False
    return kept | always


def nearly_same(masks: BoolArray, counts: FloatArray) -> BoolArray:
    """Which conditions hold on nearly the same cases, by pairs.

    >>> nearly_same(np.array([[True, True], [True, True], [False, True]]), np.ones(3)).tolist()
    [[True, False], [False, True]]
    """
    columns = masks.astype(np.float32)
    # Counts with so few digits that float32 holds every sum of them.
    counted = cut(counts, unit_for(float(counts.sum()), 23)).astype(np.float32)
    both = columns.T @ (columns * counted[:, None])
    alone = np.diag(both)
    same: BoolArray = both >= SAME * (alone[:, None] + alone[None, :] - both)
    return same


def distinct(alike: BoolArray, conditions: Sequence[Condition], always: Set[Condition]) -> BoolArray:
    """The conditions that do not hold on nearly the same cases as one that comes before them.

    Those that stay `always` come first, then those that are easier to read, then those that were found earlier.
    """
    order = sorted(range(len(conditions)), key=lambda i: (conditions[i] not in always, conditions[i].effort))
    kept = np.zeros(len(conditions), dtype=np.bool_)
    for at in order:
        kept[at] = conditions[at] in always or not (alike[at] & kept).any()
    return kept


def are_in(conditions: Sequence[Condition], some: frozenset[Condition]) -> BoolArray:
    return np.array([condition in some for condition in conditions], dtype=np.bool_)


_USUAL, _LIGHTEST = 2.0, 1 / 32
"""The first penalty that is tried and the last, in the unit of `FitOptions.certainty`. Each is half of the one before.
If the first leaves too many rules, it is doubled until it does not."""
_WORTH_MORE = 0.01
"""The share of the average that a lighter penalty must explain in addition to be worth its rules."""
_EFFORT = 0.6
"""How much dearer a condition is for each step that it takes to read. It is also dearer if few searches found it."""
_RELAXED = 1 / 8
"""The share of a penalty with which the rules that it left are fitted again."""
_STEPS = 60
_TAKEN_IN, _WORTH_TAKING_IN = 5, 1.1
"""How many rules a fit takes in at once, at least (else as many as it has), and how many times its price each gains."""
_HALVINGS = 4
"""How often the gap between a penalty that leaves too many rules and one that does not is halved."""


@dataclass(frozen=True, slots=True)
class FittedRules:
    """Conditions and their fitted weights."""

    conditions: tuple[Condition, ...]
    fitted: Fitted
    found_again: Mapping[Condition, float] = field(default_factory=dict)
    """The share of several searches that found each condition, or one that holds on nearly the same cases."""


def distilled(
    searches: Sequence[FittedRules],
    split: SplitHistory,
    options: InductionOptions,
    generator: np.random.Generator,
    always: frozenset[Condition],
) -> FittedRules:
    """The rules that reproduce the average log-odds of several searches, at most `most_bullets` of them."""
    conditions = with_weight(searches, always)
    places, counts = split.sample(options.search_rows, generator)
    cases, rows = split.cases(places, counts), split.history.facts.take(places)
    masks = np.zeros((len(places), len(conditions)), dtype=np.bool_)
    for index, condition in enumerate(conditions):
        masks[:, index] = condition.holds_in(rows)
    average = _average(searches, conditions, masks, cases, options.most_cited)
    alike = nearly_same(masks, cases.weights)
    own = distinct(alike, conditions, always)
    by_search = [alike @ are_in(conditions, frozenset(with_weight([search]))) for search in searches]
    again = np.maximum(np.mean(by_search, axis=0), 1 / len(searches))[own]
    conditions, masks = tuple(c for c, kept in zip(conditions, own, strict=True) if kept), masks[:, own]
    prices = (1 + _EFFORT * np.array([condition.effort for condition in conditions])) / np.sqrt(again)
    student = _Student(masks, replace(cases, targets=probabilities(average)), average, prices, options)
    fitted = student.fit(are_in(conditions, always))
    later = places >= split.cut
    spoken = strongest(masks[later], fitted.weights, options.most_cited)
    return FittedRules(
        conditions, levelled(fitted, 1.0, spoken, cases.take(later)), dict(zip(conditions, again.tolist(), strict=True))
    )


def with_weight(searches: Sequence[FittedRules], always: Set[Condition] = frozenset()) -> tuple[Condition, ...]:
    """The distinct conditions that some search gave a weight, and those that stay `always`."""
    found: dict[Condition, None] = {}
    for search in searches:
        weighted = np.abs(search.fitted.weights) > NOTHING
        found |= dict.fromkeys(c for c, has in zip(search.conditions, weighted, strict=True) if has or c in always)
    return tuple(found)


def _average(
    searches: Sequence[FittedRules], conditions: Sequence[Condition], masks: BoolArray, cases: FitCases, cited: int
) -> FloatArray:
    """The mean log-odds of the searches, each with as many rules per case as a decision may cite."""
    place = {condition: position for position, condition in enumerate(conditions)}
    total = np.zeros(len(masks))
    for search in searches:
        fitted = search.fitted.only(are_in(search.conditions, frozenset(place)))
        chosen = [place[condition] for condition in search.conditions if condition in place]
        total += margins(strongest(masks[:, chosen], fitted.weights, cited), cases, fitted)
    return total / len(searches)


class _Student:
    """Fits rules to the average, with a penalty as light as the limit on bullets allows and the average rewards.

    The `prices` are factors on the penalty of each rule.
    """

    def __init__(
        self, masks: BoolArray, cases: FitCases, average: FloatArray, prices: FloatArray, options: InductionOptions
    ) -> None:
        self._masks, self._cases, self._average, self._options = masks, cases, average, options
        self._prices, self._signs, self._products = prices, signs_of(masks, cases), MaskProducts(masks)
        self._counted = self._counts(average)

    def fit(self, always: BoolArray) -> Fitted:
        """The rules of the strictest penalty that explains nearly as much as lighter ones."""
        penalty = self._strict_enough(always)
        path = self._first_fit(penalty)
        fits = [self._relaxed(path, always, penalty)]
        while penalty > _LIGHTEST:
            penalty /= 2
            path = self._next_fit(path, penalty)
            if self._too_many(path, always):
                break
            fits.append(self._relaxed(path, always, penalty))
        explained = [self._explained(fitted) for fitted in fits]
        enough = max(explained) - _WORTH_MORE
        return next(fitted for fitted, share in zip(fits, explained, strict=True) if share >= enough)

    def _strict_enough(self, always: BoolArray) -> float:
        """The usual penalty or, if it leaves too many rules, about the lightest that does not."""
        low, high = 0.0, _USUAL
        while self._too_many(self._first_fit(high), always):
            low, high = high, 2 * high
        for _ in range(_HALVINGS if low else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if self._too_many(self._first_fit(middle), always) else (low, middle)
        return high

    def _too_many(self, path: Fitted, always: BoolArray) -> bool:
        return int(((np.abs(path.weights) > NOTHING) & ~always).sum()) > self._options.most_bullets

    def _first_fit(self, penalty: float) -> Fitted:
        """All rules, fitted from no rules on."""
        empty = fit(self._masks[:, :0], self._cases, self._options.fit)
        return self._next_fit(replace(empty, weights=np.zeros(self._masks.shape[1])), penalty)

    def _next_fit(self, start: Fitted, penalty: float) -> Fitted:
        """All rules, fitted from other weights on.

        Most penalties leave few rules. So the fit takes in rules until none that is left out could gain more than its
        price, those that gain most first: on a few rules most rows are alike, and a fit takes a fraction of the time.
        """
        options = replace(self._options.fit, certainty=penalty)
        dues = penalty * self._prices * np.sqrt(self._products.by_column(self._counts(self._log_odds(start))) + 1e-3)
        part, fitted = start.weights != 0, start
        while True:
            missed = self._cases.expected - probabilities(self._log_odds(fitted))
            gains = np.where(part, 0.0, self._signs * self._products.by_column(self._cases.weights * missed) / dues)
            most = np.argsort(-gains, kind="stable")[: max(_TAKEN_IN, int(part.sum()))]
            taken = most[gains[most] > _WORTH_TAKING_IN]
            if not len(taken) and fitted is not start:
                return self._fit_some(fitted.weights != 0, fitted, options, as_cited=True)
            part[taken] = True
            fitted = self._fit_some(part, start, options)

    def _relaxed(self, path: Fitted, always: BoolArray, penalty: float) -> Fitted:
        """The rules that a penalty left, fitted again with less of it, so that their weights are not shrunk."""
        part = (np.abs(path.weights) > NOTHING) | always
        options = replace(self._options.fit, certainty=penalty * _RELAXED)
        return self._fit_some(part, self._fit_some(part, path, options), options, as_cited=True)

    def _fit_some(self, part: BoolArray, start: Fitted, options: FitOptions, *, as_cited: bool = False) -> Fitted:
        """Some of the rules fitted, and no weight for the others."""
        masks, steps = self._masks[:, part], options.steps
        if as_cited:
            masks, steps = strongest(masks, start.weights[part], self._options.most_cited), _STEPS
        fitted = fit(masks, self._cases, options, start.only(part), steps, prices=self._prices[part])
        weights = np.zeros(len(part))
        weights[part] = fitted.weights
        return replace(fitted, weights=weights)

    def _explained(self, fitted: Fitted) -> float:
        """The share of the average's variance that the rules reproduce, where decisions are uncertain."""
        spoken = strongest(self._masks, fitted.weights, self._options.most_cited)
        missed = self._average - margins(spoken, self._cases, fitted)
        return 1.0 - self._variance(missed) / max(self._variance(self._average), 1e-12)

    def _log_odds(self, fitted: Fitted) -> FloatArray:
        used = fitted.weights != 0
        return margins(self._masks[:, used], self._cases, fitted.only(used))

    def _counts(self, log_odds: FloatArray) -> FloatArray:
        """How much each case counts: the more, the less certain its decision is."""
        p = probabilities(log_odds)
        return self._cases.weights * p * (1 - p)

    def _variance(self, values: FloatArray) -> float:
        total = float(self._counted.sum())
        mean = float((self._counted * values).sum()) / total
        return float((self._counted * np.square(values - mean)).sum()) / total
