"""Several searches distilled into one set of rules that decides as their average does.

One search sees a small history through one sample and one order of rounds, so much of what it finds is chance. The
average log-odds of several searches is steadier, but cites every rule of all of them. Here all their rules are fitted
to that average instead of to the labels: it has no noise, so a light penalty keeps the few rules that reproduce it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from acefraud.core.condition import Condition
from acefraud.rules.induction.boosting import NOTHING, InductionOptions, are_in, distinct, nearly_same
from acefraud.rules.induction.fitting import FitCases, Fitted, fit, margins, probabilities, strongest
from acefraud.rules.induction.history import SplitHistory, sample
from acefraud.rules.induction.platt_scaling import levelled
from acefraud.support.arrays import BoolArray, FloatArray

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
    places, counts = sample(split.history.labels, options.search_rows, generator)
    cases, rows = split.cases(places, counts), split.history.rows(places)
    masks = np.zeros((len(places), len(conditions)), dtype=np.bool_)
    for place, condition in enumerate(conditions):
        masks[:, place] = condition.holds_in(rows)
    average = _average(searches, conditions, masks, cases, options.most_cited)
    alike = nearly_same(masks, cases.weights)
    own = distinct(alike, conditions, always)
    again = _found_again(searches, conditions, alike)[own]
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
    for one in searches:
        weighted = np.abs(one.fitted.weights) > NOTHING
        found |= dict.fromkeys(c for c, has in zip(one.conditions, weighted, strict=True) if has or c in always)
    return tuple(found)


def _found_again(searches: Sequence[FittedRules], conditions: Sequence[Condition], alike: BoolArray) -> FloatArray:
    """The share of the searches that found each condition, or one that holds on nearly the same cases."""
    by_search = [alike @ are_in(conditions, frozenset(with_weight([search]))) for search in searches]
    share: FloatArray = np.mean(by_search, axis=0)
    return np.maximum(share, 1 / len(searches))


def _average(
    searches: Sequence[FittedRules], conditions: Sequence[Condition], masks: BoolArray, cases: FitCases, cited: int
) -> FloatArray:
    """The mean log-odds of the searches, each with as many rules per case as a decision may cite."""
    place = {condition: position for position, condition in enumerate(conditions)}
    total = np.zeros(len(masks))
    for one in searches:
        there = np.array([condition in place for condition in one.conditions], dtype=np.bool_)
        fitted = one.fitted.only(there)
        chosen = [place[condition] for condition in one.conditions if condition in place]
        total += margins(strongest(masks[:, chosen], fitted.weights, cited), cases, fitted)
    mean: FloatArray = total / len(searches)
    return mean


class _Student:
    """Fits rules to the average, with a penalty as light as the limit on bullets allows and the average rewards.

    The `prices` are factors on the penalty of each rule.
    """

    def __init__(
        self, masks: BoolArray, cases: FitCases, average: FloatArray, prices: FloatArray, options: InductionOptions
    ) -> None:
        self._masks, self._cases, self._average, self._options = masks, cases, average, options
        self._prices = prices
        p = probabilities(average)
        self._counted = cases.weights * p * (1 - p)

    def fit(self, always: BoolArray) -> Fitted:
        """The rules of the strictest penalty that explains nearly as much as lighter ones."""
        penalty = self._strict_enough(always)
        path = self._fitted(self._masks, self._no_rules(), penalty, self._prices)
        fits = [self._relaxed(path, always, penalty)]
        while penalty > _LIGHTEST:
            penalty /= 2
            path = self._fitted(self._masks, path, penalty, self._prices)
            if self._count(path, always) > self._options.most_bullets:
                break
            fits.append(self._relaxed(path, always, penalty))
        explained = [self._explained(fitted) for fitted in fits]
        enough = max(explained) - _WORTH_MORE
        return next(fitted for fitted, share in zip(fits, explained, strict=True) if share >= enough)

    def _strict_enough(self, always: BoolArray) -> float:
        """The usual penalty or, if it leaves too many rules, about the lightest that does not."""
        low, high = 0.0, _USUAL
        while self._too_many(high, always):
            low, high = high, 2 * high
        for _ in range(_HALVINGS if low else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if self._too_many(middle, always) else (low, middle)
        return high

    def _too_many(self, penalty: float, always: BoolArray) -> bool:
        path = self._fitted(self._masks, self._no_rules(), penalty, self._prices)
        return self._count(path, always) > self._options.most_bullets

    def _no_rules(self) -> Fitted:
        empty = fit(self._masks[:, :0], self._cases, self._options.fit)
        return replace(empty, weights=np.zeros(self._masks.shape[1]))

    def _count(self, fitted: Fitted, always: BoolArray) -> int:
        return int(((np.abs(fitted.weights) > NOTHING) & ~always).sum())

    def _relaxed(self, path: Fitted, always: BoolArray, penalty: float) -> Fitted:
        """The rules that a penalty left, fitted again with less of it, so that their weights are not shrunk."""
        kept = (np.abs(path.weights) > NOTHING) | always
        part = self._fitted(self._masks[:, kept], path.only(kept), penalty * _RELAXED, self._prices[kept])
        weights = np.zeros(len(kept))
        weights[kept] = part.weights
        return replace(part, weights=weights)

    def _fitted(self, masks: BoolArray, start: Fitted, penalty: float, prices: FloatArray) -> Fitted:
        options = replace(self._options.fit, certainty=penalty)
        fitted = fit(masks, self._cases, options, start, prices=prices)
        spoken = strongest(masks, fitted.weights, self._options.most_cited)
        return fit(spoken, self._cases, options, fitted, _STEPS, prices=prices)

    def _explained(self, fitted: Fitted) -> float:
        """The share of the average's variance that the rules reproduce, where decisions are uncertain."""
        spoken = strongest(self._masks, fitted.weights, self._options.most_cited)
        missed = self._average - margins(spoken, self._cases, fitted)
        return 1.0 - self._variance(missed) / max(self._variance(self._average), 1e-12)

    def _variance(self, values: FloatArray) -> float:
        total = float(self._counted.sum())
        mean = float(self._counted @ values) / total
        return float(self._counted @ np.square(values - mean)) / total
