"""Rules that chance could explain, that argue against their evidence, or that nobody would read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tests.rules.induction.histories import numbered_history

from acefraud import AceFraudClassifier
from acefraud.core.condition import Condition
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.rules.induction.boosting import InductionOptions, WorthByChance
from acefraud.rules.induction.induce import Lesson, induce
from acefraud.rules.induction.trees import TreeOptions
from acefraud.support.arrays import BoolArray

WORDS = ("toys", "food", "fuel", "games", "books", "gifts", "travel", "phones")
OPTIONS = InductionOptions(searches=3)


def noise(seed: int, count: int = 1_500, facts: int = 10) -> FactTable:
    generator = np.random.default_rng(seed)
    columns = generator.normal(size=(count, facts)).tolist()
    kinds = generator.choice(WORDS, count).tolist()
    rows: list[dict[str, FactValue]] = [
        {**{f"x{fact}": value for fact, value in enumerate(row)}, "shop_kind": kind}
        for row, kind in zip(columns, kinds, strict=True)
    ]
    return FactTable(rows)


def risky_labels(table: FactTable, seed: int) -> BoolArray:
    """Fraud depends on two numbers at once, on two of eight kinds of shop, and a little on a third number."""
    codes, words = table.categories("shop_kind")
    kinds = np.isin(codes, [words.index(word) for word in WORDS[:2]])
    odds = -4.0 + 2.5 * ((table.numbers("x0") > 0.5) & (table.numbers("x1") > 0)) + 1.5 * kinds
    odds = odds + 1.0 * (table.numbers("x2") > 1)
    labels: BoolArray = np.random.default_rng(seed).random(len(table)) < 1 / (1 + np.exp(-odds))
    return labels


def lessons(table: FactTable, labels: BoolArray, options: InductionOptions = OPTIONS) -> tuple[Lesson, ...]:
    induced = induce(numbered_history(table, labels), options, np.random.default_rng(0))
    return induced.lessons if induced else ()


@pytest.fixture(scope="module")
def learnt() -> tuple[Lesson, ...]:
    table = noise(20, 6_000)
    found = lessons(table, risky_labels(table, 21))
    assert len(found) >= 4
    return found


def test_noise_gives_no_rules() -> None:
    counts = [
        len(lessons(noise(seed), np.random.default_rng(seed).random(1_500) < share))
        for seed, share in enumerate((0.03, 0.05, 0.1, 0.25, 0.4))
    ]
    assert sorted(counts)[:-1] == [0, 0, 0, 0]
    assert max(counts) <= 3


def test_shuffled_labels_give_no_rules_where_the_true_ones_do() -> None:
    table = noise(5)
    labels = risky_labels(table, 6)
    assert lessons(table, labels)
    assert not lessons(table, np.random.default_rng(7).permutation(labels))


def test_without_a_look_at_chance_noise_is_learnt() -> None:
    """What the tests above would miss if they could not fail."""
    free = replace(OPTIONS, chance=1.0, trees=TreeOptions(price=0.0))
    assert any(lessons(noise(seed), np.random.default_rng(seed).random(1_500) < 0.2, free) for seed in range(3))


def test_chance_is_a_gumbel_distribution() -> None:
    drawn = np.random.default_rng(0).gumbel(2.0, 0.5, 100_000)
    by_chance = WorthByChance.of(drawn.tolist())
    assert (by_chance.middle, by_chance.scale) == pytest.approx((2.0, 0.5), abs=0.01)
    assert float((drawn > by_chance.exceeded_by(0.01)).mean()) == pytest.approx(0.01, abs=0.002)


@pytest.mark.filterwarnings("ignore:no bullet was learnt")
def test_an_empty_playbook_predicts_the_share_of_fraud() -> None:
    generator = np.random.default_rng(3)
    labels = generator.random(1_500) < 0.052
    model = AceFraudClassifier().fit(generator.normal(size=(1_500, 6)), labels)
    assert not len(model.rules_)
    p, share = model.predict_proba(generator.normal(size=(200, 6)))[:, 1], labels.mean()
    loss, constant = (-np.mean(labels * np.log(q) + ~labels * np.log(1 - q)) for q in (p[0], share))
    assert len(set(p.tolist())) == 1
    assert loss <= 1.01 * constant


def turning(count: int = 4_000) -> Iterator[tuple[dict[str, FactValue], bool]]:
    """One in two is fraud at first, one in fifty later. Some patterns have more fraud than usual at one time only."""
    generator = np.random.default_rng(9)
    for index in range(count):
        early, a, b = index < 0.7 * count, generator.random() < 0.2, generator.random() < 0.3
        odds = (0.5 if early else 0.02) + (0.2 if a and not early else -0.1 if a else 0.0) + (0.1 if b else 0.0)
        yield {"a": bool(a), "b": bool(b), "x": float(generator.normal())}, bool(generator.random() < odds)


def argues_against_evidence(lesson: Lesson) -> bool:
    return lesson.weight * ((lesson.evidence.lift or 1.0) - 1) <= 0


def test_no_rule_argues_against_its_evidence(learnt: tuple[Lesson, ...]) -> None:
    rows, labels = zip(*turning(), strict=True)
    for each in (learnt, lessons(FactTable(list(rows)), np.array(labels))):
        assert not any(map(argues_against_evidence, each))
        assert all(abs((lesson.evidence.lift or 1.0) - 1) > 0.04 for lesson in each), "it says something"


def test_every_rule_says_how_often_it_was_found(learnt: tuple[Lesson, ...]) -> None:
    shares = [lesson.evidence.found_again for lesson in learnt]
    assert all(share is not None and 0 < share <= 1 for share in shares)
    heaviest = max(learnt, key=lambda lesson: abs(lesson.weight))
    assert heaviest.evidence.found_again is not None
    assert heaviest.evidence.found_again > 0.5


def is_short(condition: Condition) -> bool:
    listed = (len(test.value) for test in condition.tests if isinstance(test.value, tuple))
    return len(condition.tests) <= 2 and max(listed, default=1) <= 3


def test_most_rules_are_short_and_all_if_asked_for(learnt: tuple[Lesson, ...]) -> None:
    assert np.mean([is_short(lesson.condition) for lesson in learnt]) > 0.5
    table = noise(20, 6_000)
    plain = lessons(table, risky_labels(table, 21), replace(OPTIONS, trees=TreeOptions(plain=True)))
    assert plain
    assert all(is_short(lesson.condition) for lesson in plain)
