"""The threshold at or above which a transaction is declined, and the rules that choose it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from acefraud.core.review_rule import COSTS, ReviewCosts, ReviewRule
from acefraud.errors import ConfigurationError, InputError
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.support.arrays import BoolArray, FloatArray, IntArray

RULES = f"a number such as 0.3, accuracy, f1, fpr=0.01, cost=5:100 or costs such as {COSTS}"
_DIGITS = 9
"""Decimals to which probabilities are compared; further ones depend on the order of summation."""
_NOISE = 1e-9
"""Scores that differ by less are equal."""


class Aim(StrEnum):
    """What a threshold is chosen for."""

    NUMBER = "number"
    ACCURACY = "accuracy"
    F1 = "f1"
    FALSE_POSITIVES = "fpr"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """How the threshold is chosen.

    >>> ThresholdRule.parse("fpr=0.01").figure
    0.01
    >>> round(ThresholdRule.parse("cost=5:100").figure, 4)
    0.0476
    """

    words: str
    aim: Aim
    figure: float = 0.5
    """The false-positive rate that is allowed; for a number or a cost, the threshold itself."""
    review: ReviewRule | None = None
    """What each verdict costs, if that was said. It decides, and the threshold where it does not."""

    @classmethod
    def parse(cls, words: str) -> ThresholdRule:
        """A rule from text."""
        if words.partition("=")[0].strip() in ReviewCosts.model_fields:
            rule = ReviewRule.of(words)
            return cls(rule.words, Aim.COST, (rule.costs and rule.costs.threshold) or 0.5, rule)
        said = words.strip().lower()
        name, _, rest = said.partition("=")
        if said in (Aim.ACCURACY, Aim.F1):
            return cls(said, Aim(said))
        if name == Aim.FALSE_POSITIVES:
            budget = _number(rest)
            return cls(said, Aim.FALSE_POSITIVES, _fitting(budget, 0 <= budget < 1, words))
        if name == Aim.COST:
            declined, approved = (_number(part) for part in (*rest.split(":"), "")[:2])
            costs = rest.count(":") == 1 and declined > 0 and approved > 0
            return cls(said, Aim.COST, _inside(declined / (declined + approved) if costs else math.nan, words))
        return cls(said, Aim.NUMBER, _inside(_number(said), words))

    @property
    def needs_cases(self) -> bool:
        """Whether the rule needs labelled cases."""
        return self.aim not in (Aim.NUMBER, Aim.COST)


def choose(
    rule: ThresholdRule, probabilities: FloatArray, labels: BoolArray, counts: FloatArray | None = None
) -> float:
    """The best threshold by a rule on labelled cases; `counts` says how many cases each row stands for.

    Every threshold that splits the cases differently is tried. Of equally good ones, the highest is taken.

    >>> choose(ThresholdRule.parse("accuracy"), np.array([0.1, 0.2, 0.6]), np.array([False, False, True]))
    0.4
    """
    if not rule.needs_cases:
        return rule.figure
    cuts = _Cuts.of(np.round(probabilities, _DIGITS), labels, np.ones(len(labels)) if counts is None else counts)
    if cuts.frauds <= 0 or cuts.honest <= 0:
        raise InputError(f"choosing the threshold by {rule.words} takes both fraud and honest cases")
    scores = cuts.scores(rule)
    return float(cuts.thresholds[scores >= scores.max() - _NOISE].max())


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Every threshold that splits the cases differently, and what it declines."""

    thresholds: FloatArray
    frauds_declined: FloatArray
    honest_declined: FloatArray
    frauds: float
    honest: float

    @classmethod
    def of(cls, probabilities: FloatArray, labels: BoolArray, counts: FloatArray) -> _Cuts:
        values, place = np.unique(probabilities, return_inverse=True)
        below, above = np.concatenate([[0.0], values]), np.concatenate([values, [1.0]])
        middle = below + (above - below) / 2
        thresholds = np.where(middle > below, middle, above)
        possible = (below < thresholds) & (thresholds < 1)
        frauds, honest = (_from_each_on(place.reshape(-1), counts * kind, len(values)) for kind in (labels, ~labels))
        return cls(thresholds[possible], frauds[possible], honest[possible], frauds[0], honest[0])

    def scores(self, rule: ThresholdRule) -> FloatArray:
        """The score of each threshold by a rule; higher is better."""
        if rule.aim is Aim.ACCURACY:
            return (self.frauds_declined + self.honest - self.honest_declined) / (self.frauds + self.honest)
        if rule.aim is Aim.F1:
            return 2 * self.frauds_declined / (self.frauds_declined + self.honest_declined + self.frauds)
        wrong = self.honest_declined / self.honest
        return np.where(wrong <= rule.figure + _NOISE, self.frauds_declined / self.frauds, -wrong)


def cases_for(rule: ThresholdRule, ordered: LabelledFacts, later_share: float) -> LabelledFacts:
    """The latest cases, on which a rule chooses; drawn at random if times are unknown."""
    first = round(len(ordered) * (1 - later_share)) if rule.needs_cases else len(ordered)
    order = np.arange(len(ordered))
    if not ordered.timed:  # the order of a file says nothing
        order = np.random.default_rng(0).permutation(len(ordered))
    cases = ordered.take(order[first:])
    if rule.needs_cases and not 0 < cases.frauds < len(cases):
        raise InputError(
            f"choosing the threshold by {rule.words} takes both fraud and honest ones among the latest cases; "
            f"{cases.frauds:,} of the latest {len(cases):,} are fraud. Give a number or costs instead"
        )
    return cases


def _from_each_on(place: IntArray, counts: FloatArray, places: int) -> FloatArray:
    """The total at each position and after it, with a zero at the end."""
    there = np.bincount(place, counts, places)
    return np.concatenate([np.cumsum(there[::-1])[::-1], [0.0]])


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def _inside(threshold: float, words: str) -> float:
    return _fitting(threshold, 0 < threshold < 1, words)


def _fitting(figure: float, fits: bool, words: str) -> float:
    if not fits:
        raise ConfigurationError(f"the threshold must be {RULES}, with shares between 0 and 1; got {words!r}")
    return figure
