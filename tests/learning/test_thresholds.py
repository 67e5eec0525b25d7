"""Thresholds: the rules against brute force, and that a chosen one stays."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acefraud.core.calibration import Calibration
from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.transaction import Case, Verdict
from acefraud.core.transactions import Cases, Transactions
from acefraud.engine.options import LearnerOptions
from acefraud.engine.score import score
from acefraud.engine.thresholds import Aim, ThresholdRule, cases_for, choose
from acefraud.errors import ConfigurationError, InputError
from acefraud.learning.learner import Learner
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import BoolArray, FloatArray

TINY, NEARLY_ONE = math.nextafter(0.0, 1.0), math.nextafter(1.0, 0.0)
edges = st.sampled_from([0.0, TINY, 0.2, 0.5, math.nextafter(0.5, 1.0), NEARLY_ONE, 1.0])
shares = st.one_of(edges, st.floats(0, 1)).map(lambda share: round(share, 9))  # what is behind counts as noise
cases = st.lists(st.tuples(shares, st.booleans(), st.integers(1, 5)), min_size=2, max_size=12)
rules = st.sampled_from(["accuracy", "f1", "fpr=0", "fpr=0.1", "fpr=0.34", "fpr=0.5"]).map(ThresholdRule.parse)


def columns(rows: list[tuple[float, bool, int]]) -> tuple[FloatArray, BoolArray]:
    said, fraud, count = zip(*rows, strict=True)
    return np.repeat(said, count), np.repeat(fraud, count)


def worth(rule: ThresholdRule, threshold: float, rows: list[tuple[float, bool, int]]) -> float:
    """What a threshold is worth by a rule, counted case by case."""
    caught = sum(n for said, fraud, n in rows if fraud and said >= threshold)
    disturbed = sum(n for said, fraud, n in rows if not fraud and said >= threshold)
    frauds, honest = (sum(n for _, fraud, n in rows if fraud is kind) for kind in (True, False))
    if rule.aim is Aim.ACCURACY:
        return (caught + honest - disturbed) / (frauds + honest)
    if rule.aim is Aim.F1:
        return 2 * caught / (caught + disturbed + frauds)
    return caught / frauds if disturbed <= rule.figure * honest else -disturbed / honest


def every_threshold(rows: list[tuple[float, bool, int]]) -> list[float]:
    """One threshold for each way to part the cases: at each probability, and just above it."""
    values = {said for said, _, _ in rows}
    tried = {*values, *(math.nextafter(said, 2.0) for said in values), 0.5}
    return [threshold for threshold in tried if 0 < threshold < 1]


def declined(threshold: float, rows: list[tuple[float, bool, int]]) -> int:
    return sum(n for said, _, n in rows if said >= threshold)


@given(rules, cases)
def test_no_threshold_is_better_and_of_equals_it_declines_the_fewest(
    rule: ThresholdRule, rows: list[tuple[float, bool, int]]
) -> None:
    assume(len({fraud for _, fraud, _ in rows}) == 2)
    chosen = choose(rule, *columns(rows))
    assert 0 < chosen < 1
    best = max(worth(rule, threshold, rows) for threshold in every_threshold(rows))
    assert worth(rule, chosen, rows) == pytest.approx(best, abs=1e-12)
    equals = [each for each in every_threshold(rows) if worth(rule, each, rows) > best - 1e-12]
    assert declined(chosen, rows) == min(declined(each, rows) for each in equals)


def test_probabilities_that_differ_by_the_order_of_summation_are_the_same() -> None:
    said = np.array([0.3, math.nextafter(0.3, 1.0), 0.6])
    for labels in ([False, True, True], [True, False, True]):
        chosen = choose(ThresholdRule.parse("accuracy"), said, np.array(labels))
        assert chosen == pytest.approx(0.45, abs=1e-9)


@given(st.lists(shares, min_size=1, max_size=12), st.floats(0.01, 1000), st.floats(0.01, 1000))
def test_costs_give_the_cheapest_threshold_where_probabilities_mean_what_they_say(
    said: list[float], declining: float, approving: float
) -> None:
    threshold = ThresholdRule.parse(f"cost={declining}:{approving}").figure

    def expected_cost(at: float) -> float:
        return math.fsum(declining * (1 - p) if p >= at else approving * p for p in said)

    cheapest = min(expected_cost(at) for at in (*said, 2.0))
    assert expected_cost(threshold) <= cheapest + 1e-9 * (declining + approving) * len(said)


@pytest.mark.parametrize(
    ("words", "aim", "figure"),
    [
        ("accuracy", Aim.ACCURACY, 0.5),
        (" F1 ", Aim.F1, 0.5),
        ("fpr=0", Aim.FALSE_POSITIVES, 0.0),
        ("fpr=0.01", Aim.FALSE_POSITIVES, 0.01),
        ("cost=1:3", Aim.COST, 0.25),
        ("cost=50:1", Aim.COST, 50 / 51),
        ("0.3", Aim.NUMBER, 0.3),
    ],
)
def test_rules_are_read_from_words(words: str, aim: Aim, figure: float) -> None:
    rule = ThresholdRule.parse(words)
    assert (rule.words, rule.aim, rule.figure) == (words.strip().lower(), aim, figure)
    assert rule.needs_cases == (aim in (Aim.ACCURACY, Aim.F1, Aim.FALSE_POSITIVES))


@pytest.mark.parametrize(
    "words",
    [
        *("", "best", "0", "1", "1.5", "-0.2", "nan", "inf", "accuracy=1", "f1=0.2"),
        *("fpr", "fpr=", "fpr=1", "fpr=-0.1", "fpr=nan", "fpr=1%"),
        *("cost", "cost=", "cost=5", "cost=5:", "cost=:5", "cost=0:5", "cost=5:0", "cost=-1:-1", "cost=1:2:3"),
        *("cost=inf:1", "cost=nan:1", "cost=1e-320:1e308", "cost=a:b"),
    ],
)
def test_nonsense_is_refused_with_what_would_do(words: str) -> None:
    with pytest.raises(ConfigurationError, match=r"accuracy, f1, fpr=0\.01, cost=5:100 or costs"):
        ThresholdRule.parse(words)


@pytest.mark.parametrize("fraud", [True, False])
def test_cases_of_one_kind_cannot_choose(fraud: bool) -> None:
    with pytest.raises(InputError, match="both fraud and honest"):
        choose(ThresholdRule.parse("f1"), np.array([0.2, 0.8]), np.array([fraud, fraud]))


def test_where_times_are_known_the_latest_cases_choose(toy: Any) -> None:
    made = LabelledFacts.of(Cases.of(toy.cases(50, delay=1)))
    assert cases_for(ThresholdRule.parse("f1"), made, 0.2).ids.tolist() == made.ids[40:].tolist()
    assert len(cases_for(ThresholdRule.parse("0.3"), made, 0.2)) == 0


def test_where_times_are_not_known_a_file_in_the_order_of_its_labels_does_no_harm(toy: Any) -> None:
    made = sorted(toy.cases(200), key=lambda case: bool(case.is_fraud))
    drawn = cases_for(ThresholdRule.parse("f1"), LabelledFacts.of(Cases.of(made)), 0.2)
    assert len(drawn) == 40
    assert 0 < drawn.frauds < 40


def test_latest_cases_of_one_kind_are_refused_before_anything_is_learnt(toy: Any) -> None:
    made = [case.model_copy(update={"is_fraud": n < 20}) for n, case in enumerate(toy.cases(100, delay=1))]
    learner = Learner(BulletPlaybook())
    with pytest.raises(InputError, match="0 of the latest 20 are fraud"):
        learner.study(made, threshold=ThresholdRule.parse("accuracy"))
    assert learner.playbook.snapshot().calibration("fraud_detection") is None


def frame_of(learner: Learner) -> Calibration:
    frame = learner.playbook.snapshot().calibration("fraud_detection")
    assert frame is not None
    return frame


def studied(toy: Any, words: str | None, *, count: int = 120, **options: Any) -> tuple[Learner, list[Case]]:
    made = toy.cases(count, delay=1)
    learner = Learner(BulletPlaybook(), options=LearnerOptions(**options))
    learner.study(made, threshold=ThresholdRule.parse(words) if words else None)
    return learner, made


def test_the_threshold_is_what_the_rule_asks_for_on_the_latest_cases_as_they_are_decided(toy: Any) -> None:
    learner, made = studied(toy, "fpr=0.05", count=300)
    latest, frame, snapshot = made[240:], frame_of(learner), learner.playbook.snapshot()
    rows = Transactions.of([case.transaction for case in latest])
    said = score(rows, snapshot, learner.selector.without_draws(), learner.options).probabilities
    decisions = [asyncio.run(learner.decide_on(case.transaction, snapshot)) for case in latest]
    assert [made.probability for made in decisions] == pytest.approx(said.tolist(), abs=1e-8)
    assert frame.threshold == choose(
        ThresholdRule.parse("fpr=0.05"), said, np.array([case.is_fraud for case in latest], dtype=np.bool_)
    )
    wrong = [made.verdict is Verdict.DECLINE for made, case in zip(decisions, latest, strict=True) if not case.is_fraud]
    assert sum(wrong) <= 0.05 * len(wrong)
    assert any(made.verdict is Verdict.DECLINE for made in decisions)


def test_the_threshold_stays_when_weights_are_fitted_anew_and_until_another_is_asked_for(toy: Any) -> None:
    learner, made = studied(toy, "cost=1:9")
    assert frame_of(learner).threshold == 0.1
    learner.refit()
    assert frame_of(learner).threshold == 0.1
    transaction = toy.transaction("new", hour=400)
    asyncio.run(learner.decide(transaction))
    asyncio.run(learner.hear(Outcome(transaction_id="new", is_fraud=False, source=OutcomeSource.ANALYST)))
    assert frame_of(learner).threshold == 0.1
    learner.study(made)
    assert frame_of(learner).threshold == 0.1
    learner.study(made, threshold=ThresholdRule.parse("0.5"))
    assert frame_of(learner).threshold == 0.5


def test_without_a_rule_a_new_playbook_takes_the_threshold_of_the_options(toy: Any) -> None:
    assert frame_of(studied(toy, None)[0]).threshold == 0.5
    assert frame_of(studied(toy, None, threshold=0.7)[0]).threshold == 0.7


def test_a_threshold_holds_even_where_there_are_too_few_cases_to_learn_from(toy: Any) -> None:
    learner = Learner(BulletPlaybook())
    learner.study(toy.cases(6), threshold=ThresholdRule.parse("0.9"))
    decision = asyncio.run(learner.decide(toy.transaction("t")))
    assert decision.threshold == frame_of(learner).threshold == 0.9
