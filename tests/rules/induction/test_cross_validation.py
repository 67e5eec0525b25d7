"""The cross-validation of rules found in small histories."""

from __future__ import annotations

import numpy as np

from acefraud.rules.induction.fitting import FitCases, FitOptions, Fitted, fit, improving

OPTIONS = FitOptions(certainty=0.0)


def fitted_to(masks: np.ndarray, cases: FitCases) -> Fitted:
    return fit(masks, cases, OPTIONS)


def test_a_rule_that_holds_everywhere_is_kept_and_chance_is_not() -> None:
    generator = np.random.default_rng(1)
    labels = generator.random(200) < 0.4
    telling = np.where(generator.random(200) < 0.9, labels, ~labels)
    chance = generator.random((200, 20)) < 0.1
    masks = np.column_stack([telling, chance]).astype(np.bool_)
    cases = FitCases(labels)
    kept = improving(masks, cases, fitted_to(masks, cases), OPTIONS)
    assert kept[0]
    assert kept[1:].sum() <= 1


def test_what_general_knowledge_knows_already_teaches_nothing() -> None:
    generator = np.random.default_rng(2)
    known = generator.random(300) < 0.5
    labels = generator.random(300) < np.where(known, 0.9, 0.1)
    masks = known[:, None]
    taught = FitCases(labels)
    assert improving(masks, taught, fitted_to(masks, taught), OPTIONS).all()
    told = FitCases(labels, knowledge=np.where(known, 2.2 + 1.0, -2.2 + 1.0))
    assert not improving(masks, told, Fitted(np.array([1.0]), fitted_to(masks, told).calibration), OPTIONS).any()
