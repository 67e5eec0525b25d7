"""Calibrates the odds of a model's verdict tokens on labelled cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import RLock

import numpy as np

from acefraud.core.calibration import OddsScale, log_odds
from acefraud.core.decision import Decision, ProbabilityFrom
from acefraud.core.events import DecisionMade, OddsScaled, OutcomeHeard
from acefraud.core.ledger import Ledger
from acefraud.core.transaction import Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.roles.model.agent import reasons_for
from acefraud.roles.protocols import Assessment
from acefraud.rules.induction.fitting import probabilities
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import BoolArray, FloatArray

ODDS_KEPT = 500
"""The latest outcomes that a model's odds are calibrated on."""
LEAST_OF_EACH = 8
"""The least number of frauds, and of honest cases, to fit level and slope."""
SLOPE_PRIOR = 1.0
"""The strength of the prior on the slope: models are overconfident, so it is kept near 0.5 while cases are few."""
USUAL_SLOPE = 0.5


def fit_scale(odds: Sequence[float], labels: Sequence[bool], base_rate: float | None = None) -> OddsScale | None:
    """Level and slope by logistic regression (Platt scaling); None if there are too few cases of a kind.

    With a `base_rate`, the level is corrected to that share of fraud, whatever the share among these cases.

    >>> fit_scale([-6.0, -5.0, -3.0, -2.5] * 8, [False, False, True, True] * 8).probability(-3.0) > 0.7
    True
    """
    x, y = np.asarray(odds, dtype=np.float64), np.asarray(labels, dtype=np.bool_)
    if min(int(y.sum()), int((~y).sum())) < LEAST_OF_EACH:
        return None
    centre = float(np.median(x))
    level, slope = log_odds(float(y.mean())), USUAL_SLOPE
    for _ in range(100):
        step = _newton(x - centre, y, level, slope)
        level, slope = level - step[0], max(0.0, slope - step[1])
        if max(abs(step)) < 1e-9:
            break
    share = float(y.mean())
    if slope == 0.0:  # uninformative or reversed odds: only the level is left
        level = log_odds(share)
    shift = log_odds(min(max(base_rate, 1e-6), 1 - 1e-6)) - log_odds(share) if base_rate is not None else 0.0
    return OddsScale(level=round(level + shift - slope * centre, 6), slope=round(slope, 6), cases=len(x))


def _newton(x: FloatArray, y: BoolArray, level: float, slope: float) -> FloatArray:
    """One Newton step, shortened so that neither level nor slope moves by more than 1."""
    p = probabilities(level + slope * x)
    error, curvature = p - y, p * (1 - p)
    cross = float(curvature @ x)
    gradient = np.array([error.sum(), error @ x + SLOPE_PRIOR * (slope - USUAL_SLOPE)])
    hessian = np.array([[curvature.sum() + 1e-9, cross], [cross, curvature @ x**2 + SLOPE_PRIOR]])
    step: FloatArray = np.linalg.solve(hessian, gradient)
    return step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))


def calibrated(view: Assessment, scale: OddsScale | None, threshold: float) -> Assessment:
    """The view with a calibrated probability, and the verdict and reasons that follow from it."""
    if view.odds is None or scale is None:
        return view
    probability = scale.probability(view.odds)
    verdict = Verdict.of(probability >= threshold)
    return replace(
        view,
        verdict=verdict,
        reasons=reasons_for(verdict, view.shown),
        probability=probability,
        base=scale.level + scale.slope * view.odds,
        probability_from=ProbabilityFrom.CALIBRATED,
    )


def heard_odds(ledger: Ledger, node: str, model: str) -> list[tuple[float, bool]]:
    """The odds and the truth of a model's decisions with an outcome, in the order of the outcomes."""
    made: dict[str, float] = {}
    truth: dict[str, bool] = {}
    for event in ledger.read():
        match event.payload:
            case DecisionMade(decision=decision) if decision.odds is not None and decision.model == model:
                if decision.node == node:
                    made[decision.id] = decision.odds
            case OutcomeHeard(decision_id=str() as heard, outcome=outcome) if heard in made:
                if not outcome.is_opinion:
                    truth[heard] = outcome.is_fraud
    return [(made[heard], is_fraud) for heard, is_fraud in truth.items()]


class FittedOdds:
    """Keeps the calibration of each model's odds up to date with its outcomes."""

    def __init__(self, playbook: BulletPlaybook, options: LearnerOptions) -> None:
        self._playbook = playbook
        self._options = options
        self._heard: dict[str, list[tuple[float, bool]]] = {}
        self._hearing = RLock()

    def hear(self, outcomes: Sequence[tuple[Decision | None, bool]]) -> None:
        """Take in decisions and whether they were fraud, and refit from time to time."""
        new: dict[str, list[tuple[float, bool]]] = {}
        for decision, is_fraud in outcomes:
            if decision is not None and decision.odds is not None:
                new.setdefault(decision.model, []).append((decision.odds, is_fraud))
        with self._hearing:
            for model, pairs in new.items():
                if model in self._heard:
                    self._heard[model].extend(pairs)
                else:  # the ledger already contains these outcomes
                    self._heard[model] = heard_odds(self._playbook.ledger, self._options.node, model)
                count, every = len(self._heard[model]), self._options.reflect_every
                if count // every > (count - len(pairs)) // every:
                    self.fit(model, self._heard[model][-ODDS_KEPT:])

    def fit(self, model: str, pairs: Sequence[tuple[float, bool]], base_rate: float | None = None) -> None:
        """Calibrate a model on labelled odds and record the result, if there are enough of them."""
        scale = fit_scale([odds for odds, _ in pairs], [truth for _, truth in pairs], base_rate)
        if scale is not None:
            self._playbook.record([OddsScaled(node=self._options.node, model=model, scale=scale)])
