"""Noticing that fraud looks different: the playbook, or a fact, tells fraud otherwise than it did.

The level is how common fraud is. This is about which cases are fraud. If honest and fraudulent cases all at once look
different, what was learnt from older ones stands in the way, and a review would fit the old patterns for thousands of
outcomes. So the outcomes since the change are found, and only they teach from then on.

Two tests compare the latest outcomes with those before them, for each stretch of outcomes up to the last one. Both let
the level of fraud move as it likes.
"""

from __future__ import annotations

import math

import numpy as np

from acefraud.core.arrays import BoolArray, FloatArray
from acefraud.core.events import PatternsChanged
from acefraud.core.table import FactTable
from acefraud.learning.level import level_at, level_of_all
from acefraud.rules.induction.fitting import probabilities

LOOK_EVERY = 50
"""Outcomes after which it is tested whether fraud looks different..."""
LOOK_BACK = 1_500
"""...and those that are looked at."""
LEAST_LEARNT = 500
"""Cases that the playbook must have learnt from: one of fewer may have been wrong all along."""
CERTAIN = 10.0
"""The logarithm of how many times likelier a change must make the outcomes."""
USUAL = (1.0, 0.8)
"""Slopes of the playbook's log-odds while it holds. On new cases they are a little too far from zero..."""
CHANGED = (0.4, 0.0, -0.5)
"""...and slopes after a change: half as telling, telling nothing, telling the opposite."""
LEAST_FRAUDS, LEAST_CASES = 8, 20
"""What a stretch must have, and what comes before it, before a fact can be said to tell otherwise."""
COMMON = 0.05
"""The share of cases that must have a word, at least."""


def pattern_change(
    expected: FloatArray, labels: BoolArray, facts: FactTable, node: str = "fraud_detection"
) -> PatternsChanged | None:
    """The change since which the latest outcomes cannot be explained as those before; None if there was none.

    `expected` are the log-odds that the playbook gives the cases, apart from recent levels.

    >>> expected, labels = np.tile([-4.0, -4.0, -4.0, 1.0], 100), np.tile([False, False, False, True], 100)
    >>> pattern_change(expected, labels, FactTable([{}] * 400)) is None
    True
    >>> labels[-60:] = np.tile([True, False, False, False], 15)
    >>> pattern_change(expected, labels, FactTable([{}] * 400)).in_words
    'in the latest 60 outcomes, 15 of them fraud, the playbook no longer tells fraud as it did'
    """
    columns, margin = _columns(facts), expected + level_of_all(expected, labels)
    if max(_by_slope(expected, labels), _by_fact(margin, labels, columns))[0] < CERTAIN:
        return None
    level = level_at(margin, labels)  # costs more, so it comes last
    gain, cases, fact = max(_by_slope(expected, labels, level), _by_fact(margin + level, labels, columns))
    frauds = int(labels[len(labels) - cases :].sum())
    return None if gain < CERTAIN else PatternsChanged(node=node, cases=cases, frauds=frauds, fact=fact)


def _by_slope(expected: FloatArray, labels: BoolArray, level: FloatArray | float = 0.0) -> tuple[float, int, str]:
    """By how much a stretch is likelier if the log-odds have another slope there, at most, and how long it is."""
    likely = {}
    for slope in (*USUAL, *CHANGED):
        margin = slope * expected + level
        margin = margin + level_of_all(margin, labels)
        likely[slope] = np.cumsum(-np.logaddexp(0.0, np.where(labels, -margin, margin))[::-1])
    usual = np.max([likely[slope] for slope in USUAL], axis=0)
    gains = np.max([likely[slope] for slope in CHANGED], axis=0) - usual - math.log(len(CHANGED))
    return float(gains.max()), int(gains.argmax()) + 1, ""


def _by_fact(margin: FloatArray, labels: BoolArray, columns: dict[str, FloatArray]) -> tuple[float, int, str]:
    """How unlikely it is that a fact tells as much about the outcomes of a stretch, beyond the playbook, as before."""
    frauds = np.cumsum(labels[::-1])
    stretches = np.flatnonzero(np.minimum(frauds, frauds[-1] - frauds) >= LEAST_FRAUDS)
    stretches = stretches[(stretches >= LEAST_CASES) & (stretches < len(labels) - LEAST_CASES)]
    if not columns or not len(stretches):
        return 0.0, 0, ""
    x, p = np.column_stack(list(columns.values()))[::-1], probabilities(margin)[::-1, None]
    error, variance = labels[::-1, None] - p, p * (1 - p)
    sums = [np.cumsum(each, axis=0) for w in (error, variance, error**2) for each in (w + 0 * x, w * x, w * x**2)]
    effect, spread = _effect([one[stretches] for one in sums])
    before, spread_before = _effect([one[-1] - one[stretches] for one in sums])
    gains = (effect - before) ** 2 / (spread + spread_before) / 2 - math.log(len(columns))
    row, column = np.unravel_index(gains.argmax(), gains.shape)
    return float(gains[row, column]), int(stretches[row]) + 1, list(columns)[column].partition("=")[0]


def _effect(sums: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """What facts add to the log-odds, by one Newton step that leaves the level free, and its squared standard error."""
    error, error_x, _, variance, variance_x, variance_xx, square, square_x, square_xx = sums
    centre = variance_x / np.maximum(variance, 1e-9)  # 0 where the playbook is certain of every case
    information = np.maximum(variance_xx - variance_x * centre, 1e-9)
    seen = square_xx - 2 * centre * square_x + centre**2 * square  # larger if the playbook is too sure
    return (error_x - error * centre) / information, np.maximum(seen, information) / information**2


def _columns(facts: FactTable) -> dict[str, FloatArray]:
    """Facts as numbers around zero: ranks, flags, and whether a case has each common word."""
    columns = {name: flags.astype(np.float64) - 0.5 for name, flags in facts.columns.flags.items()}
    for name, x in facts.columns.numbers.items():
        columns[name] = np.searchsorted(np.sort(x), x) / len(x) - 0.5
    for name, (codes, words) in facts.columns.categories.items():
        shares = np.bincount(codes[codes >= 0], minlength=len(words)) / len(codes)
        columns |= {f"{name}={code}": (codes == code) - 0.5 for code in np.flatnonzero(shares >= COMMON).tolist()}
    return columns
