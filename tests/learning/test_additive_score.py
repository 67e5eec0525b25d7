"""A playbook as one sum."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from acefraud import BulletPlaybook, Condition, FactTable, Learner, SchemaMapping, Verdict, load_dataset
from acefraud.core import bullet_table
from acefraud.datasets.world import WorldOptions
from acefraud.errors import ConfigurationError

DATA = load_dataset("complex_fraud_detection", options=WorldOptions(transactions=600))


@pytest.fixture(scope="module")
def learner() -> Learner:
    made = Learner(BulletPlaybook())
    made.study(DATA)
    return made


def test_it_does_not_matter_in_which_blocks_rows_are_summed(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = learner.facts_of(DATA.test.transactions)
    whole = learner.score_facts(facts)
    monkeypatch.setattr(bullet_table, "_WORDS_AT_ONCE", 9)
    monkeypatch.setattr(bullet_table, "_CELLS_AT_ONCE", 90)
    parts = learner.score_facts(facts)
    assert parts.log_odds.tolist() == whole.log_odds.tolist()
    assert parts.cited.tolist() == whole.cited.tolist()


def test_it_is_the_sum_of_its_terms(learner: Learner) -> None:
    facts = learner.facts_of(DATA.test.transactions)
    score = learner.additive_score()
    total = np.full(len(facts), score.calibration.level)
    for term, mask in score.holding(facts):
        assert mask.tolist() == term.condition.holds_in(facts).tolist()
        total += term.weight * mask
    np.testing.assert_allclose(learner.score_facts(facts).log_odds, total, rtol=0, atol=1e-10)


@pytest.mark.wide
def test_many_terms_are_not_too_deep_for_a_database() -> None:
    playbook = BulletPlaybook()
    for number in range(2_500):
        condition = Condition.parse(f"amount > {number + 1}")
        playbook.add_bullet(f"Rule {number}", condition=condition, argues=Verdict.DECLINE, weight=0.001)
    learner = Learner(playbook)
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE facts ("amount")')
    connection.execute("INSERT INTO facts VALUES (1000.5)")
    score = learner.additive_score()
    bullets = [term for term in score.terms if term.bullet is not None]
    assert len(bullets) == 2_500
    columns = sorted(score.facts - {"amount"})
    for column in columns:
        connection.execute(f'ALTER TABLE facts ADD COLUMN "{column}"')
    ((found,),) = connection.execute(f"SELECT {score.to_sql()} FROM facts").fetchall()
    connection.close()
    assert found == pytest.approx(learner.score_facts(FactTable([{"amount": 1000.5}])).log_odds[0], abs=1e-9)


def test_the_learner_tells_its_threshold_and_mapping(learner: Learner) -> None:
    assert learner.threshold == 0.5
    assert learner.mapping == DATA.mapping
    assert learner.too_little() == ""
    fresh = Learner(BulletPlaybook())
    assert fresh.mapping is None
    assert fresh.too_little() == "0 labelled cases, 40 are needed"


def test_a_mapping_is_set_before_anything_is_learnt(learner: Learner) -> None:
    with pytest.raises(ConfigurationError, match="before the first outcome or training"):
        learner.use_mapping(SchemaMapping())
    fresh = Learner(BulletPlaybook())
    fresh.use_mapping(SchemaMapping(amount="sum"))
    (row,) = fresh.read([{"sum": 5}])
    assert row.facts == {"amount": 5.0}
