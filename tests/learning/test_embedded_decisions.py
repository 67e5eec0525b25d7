"""Decisions in columns: the same as one by one, recorded without their trace and explained on demand."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import mean

import pytest

from acefraud import Learner, LearnerOptions, Outcome, open_playbook
from acefraud.core.decision import Decision
from acefraud.core.transaction import Transaction
from acefraud.datasets import load_dataset
from acefraud.datasets.world import WorldOptions
from acefraud.engine import decider
from acefraud.engine.decider import EmbeddedDecisions
from acefraud.errors import CannotExplain
from acefraud.facts.extraction import facts_of
from acefraud.roles.embedded.agent import weigh
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook

WORLD = list(load_dataset("complex_fraud_detection", seed=3, options=WorldOptions(transactions=1_000)))
LEARNT, LATER = WORLD[:500], WORLD[500:560]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A playbook that has learnt, decided and heard, so that its decisions are on several revisions."""
    file = tmp_path_factory.mktemp("decided") / "book.db"
    with open_playbook(file) as book:
        learner = Learner(book)
        learner.study(LEARNT)
        for start in range(0, len(LATER), 10):
            some = LATER[start : start + 10]
            asyncio.run(learner.decide_all([case.transaction for case in some]))
            heard = [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in some]
            asyncio.run(learner.hear_all(heard))
    return file


@pytest.fixture
def book(path: Path) -> Iterator[BulletPlaybook]:
    with open_playbook(path, read_only=True) as opened:
        yield opened


def recorded(book: BulletPlaybook) -> list[Decision]:
    found = book.ledger.transaction_events([case.transaction.id for case in LATER])
    return [decision for each in found.values() for decision in each.decisions]


def test_what_is_explained_later_is_what_was_decided(book: BulletPlaybook) -> None:
    learner, decisions = Learner(book), recorded(book)
    assert len(decisions) == len(LATER)
    assert len({decision.revision for decision in decisions}) > 3
    for decision in decisions:
        explained = asyncio.run(learner.explain(decision))
        assert explained.same_as(decision)
        assert (explained.id, explained.transaction, explained.facts) == (
            decision.id,
            decision.transaction,
            decision.facts,
        )
        assert explained.has_trace
        assert sorted(explained.cited) == sorted(decision.cited)
        assert all(reason.text for reason in explained.reasons)


@pytest.mark.one_search
def test_reasons_and_trace_are_built_when_they_are_looked_at() -> None:
    learner = Learner(BulletPlaybook())
    learner.study(LEARNT)
    transactions = [case.transaction for case in LATER]
    made = asyncio.run(learner.decide_all(transactions))
    assert isinstance(made, EmbeddedDecisions)
    assert repr(made) == f"<60 decisions on revision {made[0].revision}>"
    alone = [asyncio.run(learner.decide_on(transaction, learner.playbook.snapshot())) for transaction in transactions]
    assert made == alone
    assert made[3:5] == alone[3:5]
    calibration = learner.playbook.snapshot().calibration("fraud_detection")
    for decision in made:
        bullets = [learner.playbook.get_bullet(score.bullet_id) for score in decision.selection.scores]
        view = weigh(decision.facts, [bullet for bullet in bullets if bullet is not None], calibration)
        assert (view.verdict, view.reasons) == (decision.verdict, decision.reasons)
        assert view.probability == decision.probability


def test_a_decision_of_another_engine_or_selector_is_not_made_up(
    book: BulletPlaybook, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision = recorded(book)[0]
    for other in (HybridSelector(seed=1), HybridSelector(quality_threshold=0.4), HybridSelector(explore=False)):
        with pytest.raises(CannotExplain, match="another selector"):
            asyncio.run(Learner(book, selector=other).explain(decision))
    with pytest.raises(CannotExplain, match="another selector"):
        asyncio.run(Learner(book, options=LearnerOptions(n_bullets=3)).explain(decision))
    changed = decision.model_copy(update={"digest": "0" * 16})
    with pytest.raises(CannotExplain, match="gives another trace"):
        asyncio.run(Learner(book).explain(changed))
    earlier = decision.model_copy(update={"engine": "1"})
    assert asyncio.run(Learner(book).explain(earlier)).reasons, "version 1 is computed again where notes do not matter"
    elsewhere = decision.model_copy(
        update={"engine": "2", "digest": "0" * 16, "probability": decision.probability * (1 + 1e-12)}
    )
    explained = asyncio.run(Learner(book).explain(elsewhere))
    assert explained.has_trace, "the last bits of version 2 depended on the processor"
    assert explained.same_as(elsewhere)
    for recorded_otherwise in ({"probability": 0.9 * decision.probability}, {"reasons": decision.reasons[1:]}):
        with pytest.raises(CannotExplain, match="gives another trace"):
            asyncio.run(Learner(book).explain(elsewhere.model_copy(update=recorded_otherwise)))
    monkeypatch.setattr("acefraud.learning.deciding.COMPATIBLE", frozenset({"9"}))
    with pytest.raises(CannotExplain, match="version 3 of the engine, and this is 3"):
        asyncio.run(Learner(book).explain(decision))
    assert decider.ENGINE == "3"


def test_a_record_is_small_and_can_be_inspected(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT *, length(CAST(body AS BLOB)) AS size FROM decisions").fetchall()
        (common,) = connection.execute("SELECT count(*) FROM common WHERE body LIKE '%engine%'").fetchone()
    texts = {case.transaction.id: len(case.transaction.text.encode()) for case in LATER}
    assert mean(row[-1] - texts[row[2]] for row in rows) < 1_100
    assert common == 1
    assert {"values", "picks", "digest"} <= json.loads(rows[0][11]).keys()


def test_facts_are_recorded_and_not_read_again(book: BulletPlaybook, monkeypatch: pytest.MonkeyPatch) -> None:
    decision = recorded(book)[0]

    def refuse(_: Transaction) -> None:
        raise AssertionError("the text was read again")

    monkeypatch.setattr("acefraud.engine.models.facts_of", refuse)
    assert asyncio.run(Learner(book).explain(decision)).facts == decision.facts


def test_deciding_the_same_again_records_nothing_new(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        learner = Learner(book)
        learner.study(LEARNT[:100])
        transaction = Transaction(id="t", facts=facts_of(LATER[0].transaction).facts)
        first = asyncio.run(learner.decide_all([transaction, transaction]))
        before = book.ledger.last_seq()
        again = asyncio.run(learner.decide(transaction))
        assert again == first[0] == first[1]
        assert book.ledger.last_seq() == before
        assert len(book.ledger.transaction_events([transaction.id])[transaction.id].decisions) == 1


@pytest.mark.long
def test_a_thousand_decisions_of_earlier_revisions_are_explained_as_they_were_decided(tmp_path: Path) -> None:
    cases = [case for seed in (11, 12) for case in load_dataset("complex_fraud_detection", seed=seed)]
    with open_playbook(tmp_path / "book.db") as book:
        learner = Learner(book)
        learner.study(cases[:800])
        decided: list[Decision] = []
        for start in range(800, 1_800, 25):
            some = [
                case.model_copy(update={"transaction": case.transaction.model_copy(update={"id": f"t{start + index}"})})
                for index, case in enumerate(cases[start : start + 25])
            ]
            decided += asyncio.run(learner.decide_all([case.transaction for case in some]))
            heard = [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in some]
            asyncio.run(learner.hear_all(heard))
    with open_playbook(tmp_path / "book.db", read_only=True) as book:
        learner, recorded = Learner(book), book.ledger.decisions([decision.id for decision in decided])
        explained = [asyncio.run(learner.explain(recorded[decision.id])) for decision in decided]
    assert len({decision.revision for decision in decided}) >= 20
    assert [each.digest for each in explained] == [each.digest for each in decided]
    assert explained == decided
