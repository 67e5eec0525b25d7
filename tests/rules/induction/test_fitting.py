"""Fitting the weights: the optimum of the stated objective, and signs that can be read."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize
from tests.rules.induction.histories import numbered_history

from acefraud.core.table import FactTable
from acefraud.rules.induction.fitting import FitCases, FitOptions, fit, loss_of, margins, probabilities, strongest
from acefraud.rules.induction.out_of_time import SplitHistory
from acefraud.rules.scorecard import GENERAL

Column = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def small_problem(seed: int, rows: int = 200, columns: int = 5) -> tuple[Mask, FitCases]:
    generator = np.random.default_rng(seed)
    masks = generator.random((rows, columns)) < 0.3
    knowledge = generator.normal(0, 1, rows)
    margin = -1.5 + masks @ generator.normal(0, 1.5, columns) + 0.5 * knowledge
    return masks, FitCases(generator.random(rows) < 1 / (1 + np.exp(-margin)), knowledge)


def objective(parameters: Column, masks: Mask, cases: FitCases, options: FitOptions) -> float:
    """Log-loss, what holds the frame, L2, and L1 in standard errors as they are where the fit starts."""
    assert cases.knowledge is not None
    intercept, scale, weights = parameters[0], parameters[1], parameters[2:]
    margin = intercept + scale * cases.knowledge + masks @ weights
    loss = float(np.sum(np.logaddexp(0, margin) - cases.labels * margin))
    held = 0.5 * (0.01 * (intercept - GENERAL.intercept) ** 2 + options.trust_in_knowledge * (scale - 1) ** 2)
    p = probabilities(GENERAL.intercept + GENERAL.knowledge_scale * cases.knowledge)
    errors = np.sqrt((p * (1 - p)) @ masks + 1e-3)
    shrunk = 0.5 * options.shrinkage * float(weights @ weights) + options.certainty * float(errors @ np.abs(weights))
    return loss + float(held) + shrunk


def optimum(masks: Mask, cases: FitCases, options: FitOptions) -> float:
    """The least value scipy finds, each weight bounded to the side of its condition's own lift."""
    sides = [(0, None) if cases.labels[held].mean() > cases.labels.mean() else (None, 0) for held in masks.T]
    start = np.concatenate([[-1.0, 1.0], [0.01 if low == 0 else -0.01 for low, _ in sides]])
    found = minimize(
        objective,
        start,
        args=(masks, cases, options),
        method="L-BFGS-B",
        bounds=[(None, None), (0, None), *sides],
        options={"maxiter": 5000, "ftol": 1e-13, "gtol": 1e-9},
    )
    return float(found.fun)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [FitOptions(), FitOptions(certainty=0.0, shrinkage=0.1), FitOptions(certainty=5.0)])
def test_the_fit_reaches_the_optimum_of_its_objective(seed: int, options: FitOptions) -> None:
    masks, cases = small_problem(seed)
    fitted = fit(masks, cases, options)
    frame = fitted.calibration
    parameters = np.array([frame.intercept, frame.knowledge_scale, *fitted.weights])
    assert objective(parameters, masks, cases, options) == pytest.approx(optimum(masks, cases, options), rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_a_weight_never_argues_against_its_conditions_own_lift(seed: int) -> None:
    masks, cases = small_problem(seed)
    masks = np.column_stack([masks, masks[:, 0] & masks[:, 1], masks[:, 0] | masks[:, 2]])
    fitted = fit(masks, cases, FitOptions(certainty=0.0, shrinkage=0.01))
    for held, weight in zip(masks.T, fitted.weights, strict=True):
        assert weight * (cases.labels[held].mean() - cases.labels.mean()) >= 0


def test_lift_is_measured_against_the_share_that_was_usual_at_the_time() -> None:
    # Half of all is fraud at first and one in twenty later. It holds early on, where 30 % is little.
    generator = np.random.default_rng(0)
    early = np.arange(4000) < 2000
    usual = np.where(early, 0.5, 0.05)
    held = early & (generator.random(4000) < 0.3)
    labels = generator.random(4000) < np.where(held, 0.3, usual)
    offset = np.log(usual / (1 - usual))
    timeless = fit(held[:, None], FitCases(labels, offset=offset), FitOptions(certainty=0.0))
    timely = fit(held[:, None], FitCases(labels, offset=offset, usual=usual), FitOptions(certainty=0.0))
    assert labels[held].mean() > labels.mean()
    assert timeless.weights[0] >= 0
    assert timely.weights[0] < -0.5


def test_enough_certainty_asked_for_leaves_no_weight_and_the_frame_alone() -> None:
    masks, cases = small_problem(1)
    fitted = fit(masks, cases, FitOptions(certainty=100.0))
    assert not fitted.weights.any()
    assert probabilities(margins(masks, cases, fitted)).mean() == pytest.approx(cases.labels.mean(), abs=0.01)


def test_the_frame_says_what_it_was_fitted_on() -> None:
    masks, cases = small_problem(2)
    frame = fit(masks, cases, FitOptions()).calibration
    assert frame.cases == len(cases.labels)
    assert frame.base_rate == pytest.approx(cases.labels.mean())


def test_without_conditions_only_the_frame_is_fitted() -> None:
    masks, cases = small_problem(3)
    assert fit(masks[:, :0], cases, FitOptions()).weights.shape == (0,)
    frame = fit(masks[:, :0], FitCases(cases.labels), FitOptions()).calibration
    assert probabilities(np.array([frame.intercept]))[0] == pytest.approx(cases.labels.mean(), abs=0.01)
    assert frame.knowledge_scale == 0


def test_knowledge_that_points_the_wrong_way_is_scaled_to_nothing_not_turned_round() -> None:
    generator = np.random.default_rng(0)
    knowledge = generator.normal(0, 2, 2000)
    cases = FitCases(generator.random(2000) < 1 / (1 + np.exp(knowledge)), knowledge)
    assert fit(np.zeros((2000, 0), dtype=np.bool_), cases, FitOptions()).calibration.knowledge_scale == 0.0


def test_a_sample_that_stands_for_all_gives_nearly_the_same_weights() -> None:
    generator = np.random.default_rng(1)
    masks = generator.random((40_000, 3)) < 0.2
    labels = generator.random(40_000) < probabilities(-3.5 + masks @ np.array([1.5, -0.8, 1.0]))
    split = SplitHistory.of(numbered_history(FactTable([{}] * 40_000), labels), 0.2)
    places, counts = split.sample(8000, generator)
    assert len(places) < 12_000
    assert counts.sum() == pytest.approx(40_000)
    assert (np.diff(places) > 0).all()
    whole = fit(masks, FitCases(labels), FitOptions())
    part = fit(masks[places], FitCases(labels[places], counts=counts), FitOptions())
    assert part.weights == pytest.approx(whole.weights, abs=0.1)  # about three standard errors
    assert part.calibration.intercept == pytest.approx(whole.calibration.intercept, abs=0.1)
    assert part.calibration.base_rate == pytest.approx(whole.calibration.base_rate)
    assert part.calibration.cases == 40_000


def test_counts_are_the_same_as_rows_so_many_times() -> None:
    masks, cases = small_problem(4)
    counts = np.random.default_rng(0).integers(1, 4, len(cases.labels))
    again = np.repeat(np.arange(len(counts)), counts)
    assert cases.knowledge is not None
    counted = FitCases(cases.labels, cases.knowledge, counts=counts.astype(np.float64))
    repeated = FitCases(cases.labels[again], cases.knowledge[again])
    one, other = fit(masks, counted, FitOptions()), fit(masks[again], repeated, FitOptions())
    assert one.weights == pytest.approx(other.weights, abs=1e-3)
    assert loss_of(one, masks, counted) == pytest.approx(loss_of(one, masks[again], repeated))


def test_an_offset_is_left_as_it_is() -> None:
    masks, cases = small_problem(5, rows=1000)
    fitted = fit(masks, cases, FitOptions(certainty=0.0))
    said = masks[:, 0] * fitted.weights[0]
    rest = fit(masks[:, 1:], FitCases(cases.labels, cases.knowledge, offset=said), FitOptions(certainty=0.0))
    assert rest.weights == pytest.approx(fitted.weights[1:], abs=0.02)


def test_the_strongest_speak_where_only_some_may() -> None:
    generator = np.random.default_rng(3)
    masks, weights = generator.random((200, 12)) < 0.5, generator.normal(0, 1, 12)
    spoken = strongest(masks, weights, 4)
    for fires, speaks in zip(masks, spoken, strict=True):
        ranked = sorted(np.flatnonzero(fires), key=lambda place: -abs(weights[place]))
        assert set(np.flatnonzero(speaks)) == set(ranked[:4])
    assert strongest(masks, weights, 12) is masks


def test_probabilities_are_the_logistic_function_at_both_ends() -> None:
    margin = np.array([-1000.0, -2.0, 0.0, 2.0, 1000.0])
    assert probabilities(margin).tolist() == pytest.approx([0, 1 / (1 + math.e**2), 0.5, 1 / (1 + math.e**-2), 1])


@pytest.mark.parametrize("share", [0.02, 0.05, 0.3])
def test_a_condition_that_holds_on_all_frauds_does_not_throw_the_fit_off(share: float) -> None:
    """Next to it the level falls far below its start, where the curvature was another."""
    labels = np.arange(2_000) < round(share * 2_000)
    behind = np.arange(2_000) < round(2 * share * 2_000)
    masks = np.stack([behind, ~behind, behind & (np.arange(2_000) % 3 > 0)], axis=1)
    fitted = fit(masks, FitCases(labels), FitOptions())
    p = probabilities(margins(masks, FitCases(labels), fitted))
    assert p[behind].mean() == pytest.approx(0.5, abs=0.15)
    assert p[~behind].mean() < 0.05
    assert fitted.weights[0] > 0 > fitted.weights[1]
