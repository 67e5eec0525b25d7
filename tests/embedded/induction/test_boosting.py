"""From labelled history to bullets: planted rules are found, noise is not, and every count is exact."""

from __future__ import annotations

import random

import numpy as np
import pytest

from acefraud.core.condition import Condition, Op
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Verdict
from acefraud.embedded.induction.boosting import Induced, InductionOptions, induce

Rows = list[dict[str, FactValue]]


def planted(count: int, seed: int, *, signal: bool = True) -> tuple[Rows, list[bool]]:
    """Amounts up to 1,000 and scores up to 10; fraud is common where amount > 700 and score < 3, else rare."""
    dice = random.Random(seed)
    rows: Rows = []
    labels = []
    for _ in range(count):
        row: dict[str, FactValue] = {
            "amount_paid": dice.uniform(0, 1000),
            "risk_score": dice.uniform(0, 10),
            "some_noise": dice.gauss(0, 1),
            "shop_kind": dice.choice(["toys", "food", "fuel"]),
        }
        if dice.random() < 0.1:
            del row["some_noise"]
        inside = float(row["amount_paid"]) > 700 and float(row["risk_score"]) < 3
        rows.append(row)
        labels.append(dice.random() < ((0.85 if inside else 0.03) if signal else 0.1))
    return rows, labels


def learn(rows: Rows, labels: list[bool], options: InductionOptions | None = None) -> Induced | None:
    return induce(FactTable(rows), np.array(labels), options or InductionOptions(), np.random.default_rng(0))


@pytest.fixture(scope="module")
def history() -> tuple[Rows, list[bool]]:
    return planted(2000, seed=1)


@pytest.fixture(scope="module")
def learnt(history: tuple[Rows, list[bool]]) -> Induced:
    found = learn(*history)
    assert found is not None
    return found


def bound(condition: Condition, fact: str, ops: tuple[Op, ...]) -> float | None:
    for test in condition.tests:
        if test.fact == fact and test.op in ops and isinstance(test.value, float):
            return test.value
    return None


def test_a_planted_rule_is_found_with_its_thresholds(learnt: Induced) -> None:
    near = [
        lesson
        for lesson in learnt.lessons
        if lesson.argues is Verdict.DECLINE
        and abs((bound(lesson.condition, "amount_paid", (Op.ABOVE, Op.AT_LEAST)) or 0) - 700) <= 50
        and abs((bound(lesson.condition, "risk_score", (Op.BELOW, Op.AT_MOST)) or 0) - 3) <= 0.5
    ]
    assert near
    strongest = max(near, key=lambda lesson: lesson.weight)
    assert strongest.weight > 0.5
    assert (strongest.evidence.learnt.precision or 0) > 0.6


def test_the_evidence_is_what_plain_counting_gives(learnt: Induced, history: tuple[Rows, list[bool]]) -> None:
    rows, labels = history
    cut = round(len(rows) * 0.75)
    for lesson in learnt.lessons:
        held = [lesson.condition.holds(row) for row in rows]
        for record, start, end in ((lesson.evidence.learnt, 0, cut), (lesson.evidence.later, cut, len(rows))):
            assert record is not None
            assert record.support == sum(held[start:end])
            assert record.frauds == sum(h and y for h, y in zip(held[start:end], labels[start:end], strict=True))
        assert lesson.evidence.base_rate == pytest.approx(sum(labels[:cut]) / cut)


def test_a_lesson_argues_the_way_of_its_weight_and_of_its_lift(learnt: Induced) -> None:
    assert len({lesson.condition for lesson in learnt.lessons}) == len(learnt.lessons)
    for lesson in learnt.lessons:
        assert lesson.argues is Verdict.of(lesson.weight > 0)
        assert lesson.evidence.lift is not None
        assert (lesson.evidence.lift > 1) is (lesson.weight > 0)


def test_what_was_learnt_ranks_later_cases_well(learnt: Induced) -> None:
    rows, labels = planted(2000, seed=2)
    margin = np.array([sum(les.weight for les in learnt.lessons if les.condition.holds(row)) for row in rows])
    frauds = np.array(labels)
    above = (margin[frauds][:, None] > margin[~frauds][None, :]).mean()
    ties = (margin[frauds][:, None] == margin[~frauds][None, :]).mean()
    # The planted rule itself reaches 0.78; seeds are fixed, and chance is 0.5.
    assert above + ties / 2 > 0.7


def test_the_same_seed_teaches_the_same(history: tuple[Rows, list[bool]], learnt: Induced) -> None:
    assert learn(*history) == learnt


@pytest.mark.parametrize("seed", range(4))
def test_pure_noise_teaches_next_to_nothing(seed: int) -> None:
    found = learn(*planted(1500, seed=100 + seed, signal=False))
    if found is not None:
        assert len(found.lessons) <= 8
        assert sum(abs(lesson.weight) for lesson in found.lessons) < 3


@pytest.mark.parametrize(("count", "frauds"), [(0, 0), (39, 10), (200, 0), (200, 4)])
def test_too_few_cases_or_frauds_teach_nothing(count: int, frauds: int) -> None:
    rows, _ = planted(count, seed=0)
    labels = [place < frauds for place in range(count)]
    assert learn(rows, labels) is None


def test_fraud_throughout_teaches_nothing() -> None:
    rows, _ = planted(100, seed=0)
    assert learn(rows, [True] * 100) is None


def test_facts_that_tell_nothing_apart_teach_nothing() -> None:
    assert learn([{"amount": 5.0}] * 80, [place % 4 == 0 for place in range(80)]) is None


def test_no_more_bullets_than_asked_for(history: tuple[Rows, list[bool]]) -> None:
    found = learn(*history, InductionOptions(most_bullets=2, rounds=30))
    assert found is not None
    assert 1 <= len(found.lessons) <= 2


def test_progress_goes_from_nothing_to_all(history: tuple[Rows, list[bool]]) -> None:
    told: list[float] = []
    rows, labels = history
    induce(FactTable(rows), np.array(labels), InductionOptions(rounds=5), np.random.default_rng(0), told.append)
    assert told[0] == 0.0
    assert told[-1] == 1.0
    assert told == sorted(told)


@pytest.mark.parametrize("seed", [5, 6])
def test_a_condition_the_later_part_contradicts_is_not_kept(seed: int) -> None:
    # Toys are risky at first and safe later, while the planted rule stays: boosting goes on and grows both.
    rows, labels = planted(2000, seed=seed)
    for place, row in enumerate(rows):
        if row["shop_kind"] == "toys":
            labels[place] = place % 4 == 0 if place < 1500 else labels[place] and place % 2 == 0
    found = learn(rows, labels)
    assert found is not None
    base_after = sum(labels[1500:]) / 500
    for lesson in found.lessons:
        later = lesson.evidence.later
        assert later is not None
        if lesson.evidence.learnt.precision is not None and later.precision is not None:
            was_risky = lesson.evidence.learnt.precision > lesson.evidence.base_rate
            assert was_risky is (later.precision > base_after)
