"""Fitting the weights: the optimum of the stated objective, and signs that can be read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from acefraud.embedded.induction.fitting import FitOptions, fit, probabilities
from acefraud.embedded.scorecard import GENERAL

Column = npt.NDArray[np.float64]


def small_problem(seed: int, rows: int = 200, columns: int = 5) -> tuple[Column, Column, npt.NDArray[np.bool_]]:
    generator = np.random.default_rng(seed)
    masks = (generator.random((rows, columns)) < 0.3).astype(np.float64)
    knowledge = generator.normal(0, 1, rows)
    margin = -1.5 + masks @ generator.normal(0, 1.5, columns) + 0.5 * knowledge
    return masks, knowledge, generator.random(rows) < 1 / (1 + np.exp(-margin))


def objective(
    parameters: Column, masks: Column, knowledge: Column, labels: npt.NDArray[np.bool_], options: FitOptions
) -> float:
    intercept, scale, weights = parameters[0], parameters[1], parameters[2:]
    margin = intercept + scale * knowledge + masks @ weights
    loss = float(np.sum(np.logaddexp(0, margin) - labels * margin))
    held = 0.5 * (0.01 * (intercept - GENERAL.intercept) ** 2 + options.trust_in_knowledge * (scale - 1) ** 2)
    shrunk = 0.5 * options.shrinkage * float(weights @ weights) + options.sparsity * float(np.abs(weights).sum())
    return loss + float(held) + shrunk


def optimum(masks: Column, knowledge: Column, labels: npt.NDArray[np.bool_], options: FitOptions) -> float:
    """The least value scipy finds, each weight bounded to the side of its condition's own lift."""
    base = labels.mean()
    sides = []
    for column in masks.T:
        precision = labels[column > 0].mean()
        sides.append((0, None) if precision > base else (None, 0))
    start = np.concatenate([[-1.0, 1.0], [0.01 if low == 0 else -0.01 for low, _ in sides]])
    found = minimize(
        objective,
        start,
        args=(masks, knowledge, labels, options),
        method="L-BFGS-B",
        bounds=[(None, None), (0, None), *sides],
        options={"maxiter": 5000, "ftol": 1e-13, "gtol": 1e-9},
    )
    return float(found.fun)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("options", [FitOptions(), FitOptions(sparsity=0.0, shrinkage=0.1), FitOptions(sparsity=8.0)])
def test_the_fit_reaches_the_optimum_of_its_objective(seed: int, options: FitOptions) -> None:
    masks, knowledge, labels = small_problem(seed)
    fitted = fit(masks, knowledge, labels, options)
    frame = fitted.calibration
    reached = objective(
        np.array([frame.intercept, frame.knowledge_scale, *fitted.weights]), masks, knowledge, labels, options
    )
    assert reached == pytest.approx(optimum(masks, knowledge, labels, options), rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_a_weight_never_argues_against_its_conditions_own_lift(seed: int) -> None:
    masks, knowledge, labels = small_problem(seed)
    masks = np.column_stack([masks, masks[:, 0] * masks[:, 1], np.maximum(masks[:, 0], masks[:, 2])])
    fitted = fit(masks, knowledge, labels, FitOptions(sparsity=0.0, shrinkage=0.01))
    for column, weight in zip(masks.T, fitted.weights, strict=True):
        lift = labels[column > 0].mean() - labels.mean()
        assert weight * lift >= 0


def test_enough_sparsity_leaves_no_weight_and_the_frame_alone() -> None:
    masks, knowledge, labels = small_problem(1)
    fitted = fit(masks, knowledge, labels, FitOptions(sparsity=1000.0))
    assert not fitted.weights.any()
    expected = probabilities(fitted.calibration.intercept + fitted.calibration.knowledge_scale * knowledge)
    assert expected.mean() == pytest.approx(labels.mean(), abs=0.01)


def test_the_frame_says_what_it_was_fitted_on() -> None:
    masks, knowledge, labels = small_problem(2)
    frame = fit(masks, knowledge, labels, FitOptions()).calibration
    assert frame.cases == len(labels)
    assert frame.base_rate == pytest.approx(labels.mean())


def test_without_conditions_only_the_frame_is_fitted() -> None:
    _, knowledge, labels = small_problem(3)
    fitted = fit(np.zeros((len(labels), 0)), knowledge, labels, FitOptions())
    assert fitted.weights.shape == (0,)


def test_knowledge_that_points_the_wrong_way_is_scaled_to_nothing_not_turned_round() -> None:
    generator = np.random.default_rng(0)
    knowledge = generator.normal(0, 2, 2000)
    labels = generator.random(2000) < 1 / (1 + np.exp(knowledge))
    assert fit(np.zeros((2000, 0)), knowledge, labels, FitOptions()).calibration.knowledge_scale == 0.0


def test_probabilities_are_the_logistic_function_at_both_ends() -> None:
    margin = np.array([-1000.0, -2.0, 0.0, 2.0, 1000.0])
    assert probabilities(margin).tolist() == pytest.approx([0, 1 / (1 + np.e**2), 0.5, 1 / (1 + np.e**-2), 1])
