"""Several searches become one set of rules that decides as their average does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from tests.rules.induction.histories import numbered_history

from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.table import Columns, FactTable
from acefraud.rules.induction.boosting import FittedRules, InductionOptions, _Student, distilled
from acefraud.rules.induction.fitting import FitCases, FitOptions, Fitted, fit, probabilities, strongest
from acefraud.rules.induction.out_of_time import SplitHistory

FACTS = 12


@pytest.fixture(scope="module")
def split() -> SplitHistory:
    dice = np.random.default_rng(0)
    numbers = {f"fact_{i}": dice.random(4_000) for i in range(FACTS)}
    log_odds = -2.5 + 1.5 * np.sum([numbers[f"fact_{i}"] > 0.9 for i in range(6)], axis=0)
    labels = dice.random(4_000) < probabilities(log_odds)
    return SplitHistory.of(numbered_history(FactTable.of_columns(Columns(numbers), 4_000), labels), 0.2)


def search(seed: int, *, noise: float = 0.6) -> FittedRules:
    """The true rules with thresholds and weights that are off by chance, and a few that mean nothing."""
    dice = np.random.default_rng(seed)
    cuts = dice.choice([0.88, 0.9, 0.92], 6)
    rules = [Condition.parse(f"fact_{i} > {cut}") for i, cut in enumerate(cuts)]
    rules += [Condition.parse(f"fact_{i} > {dice.choice([0.6, 0.7, 0.8])}") for i in range(6, FACTS)]
    weights = np.concatenate([1.5 + dice.normal(0, noise, 6), dice.normal(0, 0.1, 6)])
    return FittedRules(tuple(rules), Fitted(weights, Calibration(intercept=-2.5, knowledge_scale=0.0, base_rate=0.15)))


def log_odds_of(rules: FittedRules, split: SplitHistory, most: int = 10) -> npt.NDArray[np.float64]:
    masks = np.column_stack(
        [condition.holds_in(split.history.facts.take(np.arange(len(split.history)))) for condition in rules.conditions]
    )
    weights = rules.fitted.weights
    return np.asarray(strongest(masks, weights, most) @ weights + rules.fitted.calibration.intercept)


def distil(searches: list[FittedRules], split: SplitHistory, most: int = 150, *written: Condition) -> FittedRules:
    options = InductionOptions(most_bullets=most)
    return distilled(searches, split, options, np.random.default_rng(0), frozenset(written))


def test_the_distilled_rules_rank_cases_as_the_average_does_with_fewer_rules(split: SplitHistory) -> None:
    searches = [search(seed) for seed in range(6)]
    average = np.mean([log_odds_of(each, split) for each in searches], axis=0)
    rules = distil(searches, split)
    kept = int((np.abs(rules.fitted.weights) > 1e-3).sum())
    assert kept < len({condition for each in searches for condition in each.conditions})
    assert np.corrcoef(log_odds_of(rules, split), average)[0, 1] > 0.97


def test_no_more_rules_than_wanted_and_the_strongest_stay(split: SplitHistory) -> None:
    rules = distil([search(seed) for seed in range(6)], split, 6)
    kept = [c for c, w in zip(rules.conditions, rules.fitted.weights, strict=True) if abs(w) > 1e-3]
    assert 4 <= len(kept) <= 6
    assert all(int(condition.tests[0].fact.removeprefix("fact_")) < 6 for condition in kept)


def test_what_people_wrote_always_stays(split: SplitHistory) -> None:
    written = Condition.parse("fact_11 > 0.99")
    searches = []
    for each in (search(seed) for seed in range(3)):
        fitted = Fitted(np.append(each.fitted.weights, 0.0), each.fitted.calibration)
        searches.append(FittedRules((*each.conditions, written), fitted))
    assert written in distil(searches, split, 3, written).conditions


def test_the_level_is_that_of_the_latest_cases(split: SplitHistory) -> None:
    rules = distil([search(seed) for seed in range(6)], split)
    later = probabilities(log_odds_of(rules, split))[split.cut :]
    assert later.mean() == pytest.approx(split.history.labels[split.cut :].mean(), abs=1e-3)


@pytest.mark.parametrize("penalty", [2.0, 0.5, 0.1])
def test_rules_taken_in_one_after_the_other_are_fitted_as_all_at_once(penalty: float) -> None:
    dice = np.random.default_rng(3)
    masks = dice.random((3_000, 40)) < dice.uniform(0.02, 0.3, 40)
    average = -2.0 + masks[:, :12] @ dice.normal(0, 1, 12) + dice.normal(0, 0.2, len(masks))
    cases = FitCases(dice.random(len(masks)) < probabilities(average), targets=probabilities(average))
    options = InductionOptions(most_cited=40)
    few = _Student(masks, cases, average, np.ones(40), options)._first_fit(penalty)
    none = replace(fit(masks[:, :0], cases, options.fit), weights=np.zeros(40))
    every = fit(masks, cases, FitOptions(certainty=penalty), none)
    assert np.abs(few.weights - every.weights).max() < 0.1
    assert 0 < (few.weights != 0).sum() < 40
