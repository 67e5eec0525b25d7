"""The threshold at or above which a transaction is declined, and the rules that choose it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from acefraud.core.review_rule import COSTS, ReviewCosts, ReviewRule
from acefraud.errors import ConfigurationError, InputError
from acefraud.roles.embedded.case_memory import KnownCases, LabelledFacts
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
            share = declined / (declined + approved) if costs else math.nan
            return cls(said, Aim.COST, _fitting(share, 0 < share < 1, words))
        figure = _number(said)
        return cls(said, Aim.NUMBER, _fitting(figure, 0 < figure < 1, words))

    @property
    def needs_cases(self) -> bool:
        """Whether the rule needs labelled cases."""
        return self.aim not in (Aim.NUMBER, Aim.COST)


def choose(rule: ThresholdRule, probabilities: FloatArray, labels: BoolArray) -> float:
    """The best threshold by a rule on labelled cases.

    Every threshold that splits the cases differently is tried. Of equally good ones, the highest is taken.

    >>> choose(ThresholdRule.parse("accuracy"), np.array([0.1, 0.2, 0.6]), np.array([False, False, True]))
    0.4
    """
    if not rule.needs_cases:
        return rule.figure
    values, place = np.unique(np.round(probabilities, _DIGITS), return_inverse=True)
    below, above = np.concatenate([[0.0], values]), np.concatenate([values, [1.0]])
    middle = below + (above - below) / 2
    thresholds = np.where(middle > below, middle, above)
    frauds, honest = (_from_each_on(place.reshape(-1), kind.astype(float), len(values)) for kind in (labels, ~labels))
    if frauds[0] <= 0 or honest[0] <= 0:
        raise InputError(f"choosing the threshold by {rule.words} takes both fraud and honest cases")
    scores = _scores(rule, frauds, honest)
    possible = (below < thresholds) & (thresholds < 1)
    return float(thresholds[possible & (scores >= scores[possible].max() - _NOISE)].max())


def _scores(rule: ThresholdRule, frauds: FloatArray, honest: FloatArray) -> FloatArray:
    """The score by a rule of each threshold, which declines so many frauds and others; higher is better."""
    all_frauds, all_honest = float(frauds[0]), float(honest[0])
    if rule.aim is Aim.ACCURACY:
        return (frauds + all_honest - honest) / (all_frauds + all_honest)
    if rule.aim is Aim.F1:
        return 2 * frauds / (frauds + honest + all_frauds)
    wrong = honest / all_honest
    return np.where(wrong <= rule.figure + _NOISE, frauds / all_frauds, -wrong)


def cases_for(rule: ThresholdRule, ordered: KnownCases, later_share: float) -> LabelledFacts:
    """The latest cases, on which a rule chooses; drawn by id if times are unknown."""
    first = round(len(ordered) * (1 - later_share)) if rule.needs_cases else len(ordered)
    cases = ordered.take(ordered.latest(len(ordered) - first))
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


def _fitting(figure: float, fits: bool, words: str) -> float:
    if not fits:
        raise ConfigurationError(f"the threshold must be {RULES}, with shares between 0 and 1; got {words!r}")
    return figure
