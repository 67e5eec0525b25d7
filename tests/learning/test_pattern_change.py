"""When fraud looks different all at once, only outcomes since then teach; quiet streams are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from tests.storage.replaying import matches_replay

from acefraud.core.events import PatternsChanged
from acefraud.core.outcome import Outcome
from acefraud.core.table import FactTable
from acefraud.core.transaction import Transaction
from acefraud.learning.learner import Learner
from acefraud.learning.reviewer import pattern_change
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import BoolArray, FloatArray

BATCH, LATE = 50, 200
FACTS = ("amount", "distance", "age", "attempts")


def orders(*parts: tuple[int, tuple[str, str]], seed: int = 0) -> tuple[list[Transaction], BoolArray]:
    """Orders in stretches of so many, a tenth of them fraud, of which two facts tell."""
    generator, rows, labels = np.random.default_rng(seed), list[dict[str, float]](), list[bool]()
    for count, telling in parts:
        truth = generator.random(count) < 0.1
        drawn = {name: generator.normal(2.0 * truth if name in telling else 0.0, 1.0, count) for name in FACTS}
        rows += [{name: float(column[index]) for name, column in drawn.items()} for index in range(count)]
        labels += truth.tolist()
    return [Transaction(id=f"t{index}", facts=row) for index, row in enumerate(rows)], np.array(labels)


def scores_of(book: BulletPlaybook, orders: list[Transaction], labels: BoolArray) -> tuple[FloatArray, list[str]]:
    """The scores of orders whose labels come late, and what was announced."""
    learner, scores, announced = Learner(book), list[float](), list[str]()
    for start in range(0, len(orders), BATCH):
        scores += learner.score_all(orders[start : start + BATCH]).probabilities.tolist()
        known = range(max(0, start - LATE), start + BATCH - LATE)
        outcomes = [Outcome(transaction_id=orders[at].id, is_fraud=bool(labels[at])) for at in known]
        if outcomes:
            heard = learner.hear_all_sync(outcomes, [orders[at] for at in known])
            announced += [words for each in heard for words in each.announced]
    return np.array(scores), announced


def changes_in(book: BulletPlaybook) -> list[PatternsChanged]:
    return [event.payload for event in book.ledger.read() if isinstance(event.payload, PatternsChanged)]


CHANGE = (1_000, ("amount", "age")), (700, ("distance", "attempts"))


def test_after_an_abrupt_change_it_learns_what_fraud_looks_like_now() -> None:
    book = BulletPlaybook()
    book.assume_complete_feed()
    transactions, labels = orders(*CHANGE, seed=1)
    scores, announced = scores_of(book, transactions, labels)
    assert average_precision_score(labels[1_400:], scores[1_400:]) > 0.6, "0.3 if all remembered cases teach"
    (change,) = changes_in(book)
    assert 50 <= change.cases <= 300
    assert any("fraud looks different: in the latest" in words for words in announced)
    since = book.learning("fraud_detection").since_change
    assert since is not None
    assert since <= 500
    assert matches_replay(book)


@pytest.mark.parametrize("seed", range(2))
def test_a_quiet_stream_raises_no_alarm(seed: int) -> None:
    book = BulletPlaybook()
    book.assume_complete_feed()
    scores_of(book, *orders((1_500, ("amount", "age")), seed=seed))
    assert not changes_in(book)


def test_outcomes_that_are_no_fair_sample_raise_no_alarm() -> None:
    book = BulletPlaybook()
    book.set_feed("reviewed_only")
    scores_of(book, *orders((800, CHANGE[0][1]), (500, CHANGE[1][1])))
    assert not changes_in(book)


def test_a_fact_that_begins_to_tell_shows_a_change_while_the_playbook_still_holds() -> None:
    generator = np.random.default_rng(0)
    known, new = generator.normal(size=(2, 1_500))
    labels = generator.random(1_500) < 1 / (1 + np.exp(3 - 1.5 * known - 2 * new * (np.arange(1_500) >= 1_000)))
    found = pattern_change(1.5 * known - 3, labels, FactTable([{"new": float(each)} for each in new]))
    assert found is not None
    assert found.fact == "new"
    assert 400 <= found.cases <= 600


def test_a_jump_of_the_fraud_rate_is_no_change_of_patterns() -> None:
    for seed in range(10):
        generator = np.random.default_rng(seed)
        telling = generator.normal(size=1_500)
        level = np.where(np.arange(1_500) < 1_300, -4.0, -1.0)
        labels = generator.random(1_500) < 1 / (1 + np.exp(-level - 1.5 * telling))
        facts = FactTable([{"telling": float(each), "row": float(row)} for row, each in enumerate(telling)])
        assert pattern_change(1.5 * telling - 4, labels, facts) is None
