"""Probabilities that mean what they say, without changing who is riskier than whom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from acefraud.core.calibration import Calibration
from acefraud.rules.induction.fitting import (
    GENTLEST,
    STEEPEST,
    FitCases,
    Fitted,
    calibrated,
    levelled,
    margins,
    probabilities,
    slope_of,
)

WEIGHTS = np.array([1.5, -1.0, 0.8, 2.0])


def world(seed: int = 0, count: int = 20_000) -> tuple[npt.NDArray[np.bool_], FitCases, Fitted]:
    """Cases that follow the weights, and the frame that is right for them."""
    generator = np.random.default_rng(seed)
    masks = generator.random((count, 4)) < 0.25
    right = Fitted(WEIGHTS, Calibration(intercept=-2.5, knowledge_scale=0.0, base_rate=0.2))
    p = probabilities(margins(masks, FitCases(np.zeros(count, dtype=np.bool_)), right))
    return masks, FitCases(generator.random(count) < p), right


@pytest.mark.parametrize(("slope", "level"), [(1.6, 0.0), (0.7, 1.5), (1.0, -2.0), (1.0, 4.0), (1.9, -4.0)])
def test_distorted_probabilities_are_restored(slope: float, level: float) -> None:
    masks, cases, _ = world()
    distorted = Fitted(WEIGHTS * slope, Calibration(intercept=-2.5 + level, knowledge_scale=0.0, base_rate=0.5))
    restored = calibrated(distorted, masks, cases)
    assert restored.weights == pytest.approx(WEIGHTS, abs=0.15)
    assert restored.calibration.intercept == pytest.approx(-2.5, abs=0.1)
    assert restored.calibration.base_rate == pytest.approx(cases.labels.mean())
    before, after = margins(masks, cases, distorted), margins(masks, cases, restored)
    order = np.argsort(before)
    assert (np.diff(after[order]) >= -1e-5).all(), "nobody overtakes anybody"


def test_the_level_makes_the_mean_probability_the_share_of_fraud() -> None:
    masks, cases, right = world()
    set_to = levelled(right, 0.5, masks, cases)
    assert probabilities(margins(masks, cases, set_to)).mean() == pytest.approx(cases.labels.mean(), abs=1e-4)


def test_the_scale_of_general_knowledge_moves_with_the_weights() -> None:
    masks, cases, _ = world()
    knowledge = np.random.default_rng(1).normal(0, 1, len(masks))
    frame = Calibration(intercept=-2.5, knowledge_scale=0.4, base_rate=0.2)
    moved = levelled(Fitted(WEIGHTS, frame), 0.5, masks, FitCases(cases.labels, knowledge))
    assert moved.calibration.knowledge_scale == pytest.approx(0.2)


def test_too_few_frauds_leave_the_frame_as_it_is() -> None:
    masks, _, right = world(count=500)
    few = FitCases(np.arange(500) < 19)
    assert calibrated(right, masks, few) is right
    assert slope_of(right, masks, few) == 1.0


def test_the_slope_has_bounds() -> None:
    masks, cases, right = world()
    turned = FitCases(~cases.labels)
    assert slope_of(right, masks, turned) == GENTLEST
    assert slope_of(Fitted(WEIGHTS / 10, right.calibration), masks, cases) == STEEPEST


def test_rows_that_stand_for_many_count_for_many() -> None:
    masks, cases, right = world()
    places = np.concatenate([np.flatnonzero(cases.labels), np.flatnonzero(~cases.labels)[::4]])
    counts = np.where(cases.labels[places], 1.0, 4.0)
    part = FitCases(cases.labels[places], counts=counts)
    sampled, whole = calibrated(right, masks[places], part), calibrated(right, masks, cases)
    assert sampled.calibration.intercept == pytest.approx(whole.calibration.intercept, abs=0.1)
