"""How a model's opinion is added to the embedded engine's log-odds, as labelled cases weigh the two.

log-odds of fraud = engine x those of the embedded engine + slope x those of the model + level. With few labelled cases
the usual weights count (`USUAL`). With more, several ways to weigh are fitted, each shrunk more and less, and averaged
by how well they foretell the cases that they were not fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from acefraud.core.calibration import OddsScale, log_odds
from acefraud.core.transaction import Verdict
from acefraud.support.arrays import BoolArray, FloatArray
from acefraud.support.exact_math import exp, sigmoid_of, softplus_of
from acefraud.support.exact_sums import solve

USUAL = OddsScale(level=0.0, slope=0.25, cases=0, engine=1.0)
"""The weights until enough labelled cases say otherwise."""
LEAST_CASES, LEAST_OF_EACH = 40, 8
"""Labelled cases, and those of each kind, from which on weights are fitted."""
MOST_SAID = 8.0
"""A model's log-odds count up to this size."""
_WAYS = {(1.0, 0.25): (True, True), (1.0, 0.0): (True, False), (0.0, 0.5): (False, True)}
"""Where the weights of engine and model are drawn to, and which of them are fitted; the other stays where it is."""
_STRENGTHS = (4.0, 32.0)
_FOLDS = 5
_PRICE = 1.0
"""What a fitted weight must gain in log-likelihood."""
_LEVEL_STRENGTH = 0.25


class Said(NamedTuple):
    """What was said of a case, as log-odds of fraud, and the truth."""

    odds: float
    """By the model."""
    engine: float | None
    """By the embedded engine; None if its view did not count."""
    is_fraud: bool


def said_by(odds: float) -> float:
    """A model's log-odds as they count."""
    return min(max(odds, -MOST_SAID), MOST_SAID)


def can_matter(engine: float, scale: OddsScale, verdict_at: Callable[[float], Verdict]) -> bool:
    """Whether some opinion of the model gives another verdict than the embedded engine's log-odds alone.

    >>> [can_matter(engine, USUAL, lambda odds: Verdict.of(odds >= 0)) for engine in (-6.0, -1.0, 3.0)]
    [False, True, False]
    """
    ends = (engine * scale.engine + scale.level + scale.slope * most for most in (-MOST_SAID, MOST_SAID))
    return len({verdict_at(engine), *map(verdict_at, ends)}) > 1


def fit_witness(said: Sequence[Said], base_rate: float | None = None) -> OddsScale | None:
    """The weights of engine and model, and the level; None if there are too few cases.

    With a `base_rate`, cases were drawn by their label, and this is the true share of fraud. The model's weight is 0
    where it foretells nothing that the engine does not.

    >>> cases = [Said(odds, 1.0 - 2 * (n % 4 < 2), n % 2 == 0) for n in range(40) for odds in [4.0 if n % 2 else -4.0]]
    >>> fit_witness(cases).slope
    0.0
    """
    x = np.array([(each.engine or 0.0, said_by(each.odds)) for each in said]).reshape(-1, 2)
    y = np.array([each.is_fraud for each in said], dtype=np.bool_)
    frauds = int(y.sum())
    if len(y) < LEAST_CASES or min(frauds, len(y) - frauds) < LEAST_OF_EACH:
        return None
    shift = 0.0 if base_rate is None else log_odds(frauds / len(y)) - log_odds(min(max(base_rate, 1e-6), 1 - 1e-6))
    found = [_Fitted.of(x, y, shift, *way) for way in product(_WAYS, _STRENGTHS)]
    found.append(_Fitted(np.array([0.0, 1.0, 0.0]), _loss(x[:, 0] + shift, y)))
    without = [each for each in found if each.weights[2] == 0.0]
    best = min(found, key=lambda each: each.loss)
    counted = found if best.weights[2] > 0 else without
    shares = np.array([exp(best.loss - each.loss) for each in counted])
    weights = np.array([each.weights for each in counted]) * (shares / shares.sum())[:, None]
    level, engine, slope = weights.sum(axis=0).round(6).tolist()
    return OddsScale(level=level, slope=slope, cases=len(y), engine=engine)


class _Fitted(NamedTuple):
    """Level and weights, and how badly such weights foretell cases that they were not fitted on."""

    weights: FloatArray
    loss: float

    @classmethod
    def of(cls, x: FloatArray, y: BoolArray, shift: float, centre: tuple[float, float], strength: float) -> _Fitted:
        fold = np.zeros(len(y), dtype=np.int64)
        for kind in (False, True):
            fold[y == kind] = np.arange(int((y == kind).sum())) % _FOLDS
        loss = _PRICE * sum(_WAYS[centre])
        for out in range(_FOLDS):
            level, *weights = _weights(x[fold != out], y[fold != out], shift, centre, strength)
            loss += _loss(level + (x[fold == out] * weights).sum(axis=1) + shift, y[fold == out])
        return cls(_weights(x, y, shift, centre, strength), loss)


def _loss(odds: FloatArray, y: BoolArray) -> float:
    return float(softplus_of(np.where(y, -odds, odds)).sum())


def _weights(x: FloatArray, y: BoolArray, shift: float, centre: tuple[float, float], strength: float) -> FloatArray:
    """Level and weights by Newton steps; weights are from 0 to 1, and drawn to the centre."""
    columns = np.column_stack([np.ones(len(x)), x])
    weights, free = np.array([0.0, *centre]), np.array([True, *_WAYS[centre]])
    middle, some = weights.copy(), columns[:, free]
    drawn = np.array([_LEVEL_STRENGTH, *(strength * np.maximum(x.var(axis=0), 1e-6))])
    for _ in range(50):
        p = sigmoid_of((columns * weights).sum(axis=1) + shift)
        slope = (some * (p - y)[:, None]).sum(axis=0) + (drawn * (weights - middle))[free]
        bend = (some[:, :, None] * some[:, None, :] * (p * (1 - p))[:, None, None]).sum(axis=0)
        step = solve(bend + np.diag(drawn[free]), slope)
        largest = float(np.abs(step).max())
        weights[free] -= step * min(1.0, 1.0 / max(largest, 1e-12))
        weights[1:] = np.clip(weights[1:], 0.0, 1.0)
        if largest < 1e-8:
            break
    return weights
