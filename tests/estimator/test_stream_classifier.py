"""The stream classifier keeps river's promises and the learner's."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import checks, compose, evaluate, metrics, stream
from sklearn.metrics import roc_auc_score
from tests.estimator.payments import payments

from acefraud import SchemaMapping, StreamClassifier
from acefraud.errors import InputError

pytestmark = pytest.mark.wide

X, Y = payments(600)
BATCHES_DIFFER = {"check_learn_many_matches_learn_one"}
"""A batch is heard at once and reviewed once, so that it may learn other bullets than its rows one by one."""


def river_checks() -> Iterator[Any]:
    """Those that learn come once for labels that are numbers and again for labels of numpy, which is long but once."""
    seen = {"check_bounded_memory_growth"}  # ten times as many rows
    for check in checks.yield_checks(StreamClassifier()):
        if check.__name__ not in BATCHES_DIFFER:
            again = check.__name__ in seen and check.__name__ != "check_learn_one"
            seen.add(check.__name__)
            yield pytest.param(check, marks=pytest.mark.long if again else ())


def rows() -> Iterator[tuple[dict[Any, Any], bool]]:
    for row, truth in zip(X.to_dict("records"), Y, strict=True):
        yield {str(name): value for name, value in row.items()}, bool(truth)


@pytest.mark.parametrize("check", list(river_checks()), ids=lambda one: one.__name__)
def test_river_finds_nothing_wrong(check: Any) -> None:
    check(StreamClassifier())


@pytest.mark.parametrize("delay", [None, 100])
def test_it_learns_along_the_stream(delay: int | None) -> None:
    model = StreamClassifier()
    found = evaluate.progressive_val_score(rows(), model, metrics.LogLoss(), delay=delay)  # type: ignore[no-untyped-call]
    always_the_same = -np.mean(np.where(Y == 1, np.log(Y.mean()), np.log(1 - Y.mean())))
    assert found.get() < 2 * always_the_same  # general knowledge decides until something is learnt
    assert model.playbook.outcomes == len(Y)
    (more, labels), (later, truth) = payments(seed=10), payments(4_000, seed=11)
    model.learn_many(more, labels)
    assert roc_auc_score(truth, model.predict_proba_many(later).to_numpy()[:, 1]) > 0.7


def test_it_works_behind_a_transformer() -> None:
    model = compose.Select("amount", "vpn", "country") | StreamClassifier()
    for row, truth in rows():
        model.learn_one(row, truth)
    assert 0 < model.predict_proba_one({"amount": 900.0, "vpn": True, "country": "NG"})[True] < 1


def test_batches_are_frames() -> None:
    model = StreamClassifier()
    model.learn_many(X[:500], pd.Series(Y[:500]).astype(bool))
    found = model.predict_proba_many(X[500:])
    assert found.index.tolist() == X[500:].index.tolist()
    alone = [model.predict_proba_one(row)[True] for row in X[500:505].to_dict("records")]
    assert found[True].tolist()[:5] == alone
    with pytest.raises(InputError, match="y: expected a label for each of 3 rows, got 2"):
        model.learn_many(X[:3], [True, False])


def test_labels_come_back_as_they_were_written() -> None:
    model = StreamClassifier()
    for row, truth in rows():
        model.learn_one(row, "fraud" if truth else "legit")
    assert set(model.predict_proba_one({"amount": 5.0})) == {"fraud", "legit"}
    with pytest.raises(InputError, match="y: expected a label such as 0/1"):
        model.learn_one({"amount": 5.0}, "perhaps")


def test_a_mapping_gives_the_stream_a_history() -> None:
    plan: dict[str, Any] = {"time": "at", "amount": "sum", "history": {"entities": ["card_id"], "label_delay": "1h"}}
    model = StreamClassifier(mapping=SchemaMapping(**plan))
    start = datetime(2025, 1, 1, tzinfo=UTC)
    for number in range(400):
        row = {"at": start + timedelta(hours=number), "sum": 20.0 + number % 7, "card_id": f"c{number % 20}"}
        model.learn_one(row, number % 20 == 3 and number > 40)
    later = {"at": start + timedelta(days=30), "sum": 22.0}
    facts = model.learner.facts_of([{**later, "card_id": "c3"}])
    assert any(name.startswith("card_") for name in facts.names)
    risky, usual = ({**later, "card_id": card} for card in ("c3", "c4"))
    assert model.predict_proba_one(risky)[True] > model.predict_proba_one(usual)[True]


def test_it_pickles_and_goes_on() -> None:
    model = StreamClassifier(seed=3)
    for row, truth in list(rows())[:600]:
        model.learn_one(row, truth)
    again = pickle.loads(pickle.dumps(model))
    row = {"amount": 300.0, "vpn": True}
    assert again.predict_proba_one(row) == model.predict_proba_one(row)
    again.learn_one(row, True)
    assert again.playbook.outcomes == model.playbook.outcomes + 1


def test_rows_without_a_value_are_scored_and_teach_nothing() -> None:
    model = StreamClassifier()
    model.learn_one({"amount": None}, True)
    assert model.playbook.outcomes == 0
    assert 0 < model.predict_proba_one({})[True] < 1


def test_river_reads_frames_row_by_row() -> None:
    model = StreamClassifier()
    for row, truth in stream.iter_frame(X[:50], pd.Series(Y[:50])):
        model.learn_one(row, truth)
    assert model.playbook.outcomes == 50
