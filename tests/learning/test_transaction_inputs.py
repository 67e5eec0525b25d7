"""Transactions and outcomes as callers give them: objects, dicts and texts."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from acefraud import BulletPlaybook, Case, Cases, Learner, Outcome, Transaction, Transactions, open_playbook
from acefraud.cli import app
from acefraud.datasets.records import RecordReader
from acefraud.engine.inputs import (
    OutcomeInput,
    RememberedMapping,
    TransactionInput,
    as_outcome,
    as_transaction,
    as_transactions,
)
from acefraud.errors import InputError

pd: Any = pytest.importorskip("pandas")
TEXT = "User (account age: 3 days) attempts $2,500 purchase at 3:15 AM through a VPN"
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
MAPPED = 'id = "nr"\ntime = "when"\namount = "sum"\nlabel = "bad"\ncategories = ["code"]\n'


def read(given: Any, mapping: str = "") -> Transaction:
    return as_transaction(given, RememberedMapping(mapping))


@pytest.fixture
def learner() -> Learner:
    return Learner(BulletPlaybook())


# --- one transaction ---


def test_a_transaction_is_taken_as_it_is() -> None:
    given = Transaction(id="t1", text=TEXT)
    assert read(given) is given


def test_a_text_gets_the_id_that_the_command_line_gives_it(tmp_path: Path) -> None:
    open_playbook(tmp_path / "book.db").close()
    ran = CliRunner().invoke(app, ["decide", TEXT, "--json", "--playbook", str(tmp_path / "book.db")])
    assert read(TEXT) == Transaction(id=json.loads(ran.stdout)["transaction_id"], text=TEXT)


RECORDS: list[dict[str, Any]] = [
    {"amount": 250, "country": "FR"},
    {"transaction_id": "t1", "facts": {"amount": 5, "vpn": 1}},
    {"id": "t1", "time": "2024-03-01T12:00:00Z", "facts": {"amount": 5.0}, "text": TEXT},
    {"id": 7, "amount": 5, "is_fraud": True},
    {"transaction": {"id": "t2", "text": TEXT}, "label": "fraud"},
    {"amount": 7, "device": {"is_new": True}, "tags": ["gift"]},
    {"nr": 5, "when": "2024-03-01T12:00:00Z", "sum": 5, "code": 7, "bad": 1},
]


@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")  # some have no id
@pytest.mark.parametrize("mapping", ["", MAPPED], ids=["no mapping", "mapping"])
@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_a_dict_is_read_as_the_same_line_of_json(record: dict[str, Any], mapping: str) -> None:
    remembered = RememberedMapping(mapping).schema
    assert read(record, mapping) == RecordReader(remembered=remembered).transaction(json.dumps(record))


def test_the_fields_of_a_transaction_give_that_transaction() -> None:
    given = Transaction(id="t1", time=NOON, facts={"amount": 5, "vpn": True}, text=TEXT, entities={"card": "c1"})
    assert read(given.model_dump()) == given
    assert read({**given.model_dump(), "entities": {"card": 7}}).entities == {"card": "7"}


def test_entities_are_part_of_an_id_that_is_made_from_the_content() -> None:
    one, same, other = (read({"facts": {"amount": 5}, "entities": {"card": card}}) for card in ("c1", "c1", "c2"))
    assert one.id == same.id != other.id
    assert one.id.startswith("tx-")


def test_a_dict_without_an_id_gets_one_from_its_content() -> None:
    one, same, other = (read({"amount": amount, "country": "FR"}).id for amount in (5, 5, 6))
    assert one == same != other


def test_values_of_other_libraries_are_plain_ones() -> None:
    given = {
        "id": np.int64(7),
        "time": pd.Timestamp("2024-03-01T12:00:00Z"),
        "amount": np.float32(2.5),
        "vpn": np.bool_(True),
        "country": np.str_("FR"),
        "fee": Decimal("1.5"),
        "x": math.nan,
        "y": None,
        "z": pd.NaT,
        "w": pd.NA,
        "v": np.datetime64("NaT"),
        "signup": date(2024, 2, 29),
        "tags": np.array(["gift"]),
    }
    made = read(given)
    assert (made.id, made.time) == ("7", NOON)
    facts = {name: value for name, value in made.facts.items() if name not in ("hour", "night", "weekday", "weekend")}
    assert facts == {
        "amount": 2.5,
        "country": "FR",
        "days_since_signup": 1.5,
        "fee": 1.5,
        "tags.gift": True,
        "tags.length": 1.0,
        "vpn": True,
    }
    assert read({"id": UUID(int=1), "amount": 5}).id == str(UUID(int=1))
    assert read({"id": "t", "time": np.datetime64("2024-03-01T12:00"), "amount": 5}).time == NOON


@pytest.mark.parametrize("signup", [datetime(2024, 2, 29, tzinfo=UTC), pd.Timestamp("2024-02-29T00:00Z")])
def test_a_time_among_the_facts_becomes_the_days_since_then(signup: Any) -> None:
    assert read({"id": "t1", "time": NOON, "facts": {"signup": signup}}).facts == {"days_since_signup": 1.5}
    with pytest.raises(InputError, match="transaction, field 'facts': fact 'signup' is a time: expected a number"):
        read({"id": "t1", "facts": {"signup": signup, "amount": 5}})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "transaction: expected a Transaction, a dict or a text, got int"),
        (None, "transaction: expected a Transaction, a dict or a text, got None"),
        (b"text", "transaction: expected a Transaction, a dict or a text, got bytes; use `decide_all` for many"),
        ([TEXT], "transaction: expected a Transaction, a dict or a text, got list; use `decide_all` for many"),
        (pd.DataFrame({"a": [1]}), "got DataFrame; use `decide_all` for many"),
        (pl.DataFrame({"a": [1]}), "got DataFrame; use `decide_all` for many"),
        (pl.LazyFrame({"a": [1]}), "got LazyFrame; use `decide_all` for many"),
        (pd.Series({"amount": 1}), "got Series; pass its `to_dict\\(\\)`"),
        (Case(transaction=Transaction(id="t", text="x"), is_fraud=True), "got Case; pass its `transaction`"),
        (Transactions.of([]), "got Transactions; use `decide_all` for many"),
        (" ", "transaction: expected a transaction, got an empty text"),
        ("x" * 100_001, "transaction: the text has 100,001 characters, expected at most 100,000"),
        ("\ud83d", "transaction: expected valid UTF-8"),
        ({}, "transaction: expected at least one fact or a text"),
        ({"amount": "much"}, "transaction, field 'amount': expected a number"),
        ({"amount": math.inf}, "transaction, field 'amount': expected a finite number"),
        ({"amount": 5, "x": object()}, "transaction, field 'x': expected a number, a flag, a text or a time, got obj"),
        ({"amount": 5, "x": {"y": {1}}}, "transaction, field 'x.y': expected .*, got set"),
        ({1: 5}, "transaction: expected names of fields that are text, got int"),
        ({"amount": 5, "country": "\ud83d"}, "transaction: expected text that is valid Unicode"),
        ({"facts": 5}, "transaction, field 'facts': expected an object"),
        ({"id": "t", "text": "x", "entities": {"card": ""}}, "transaction, field 'entities': entity 'card' must have"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_anything_else_is_refused_in_words(learner: Learner, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        learner.decide_sync(given)
    assert len(str(refused.value)) < 250
    assert learner.playbook.seq == 0


def test_a_dict_that_holds_itself_is_refused() -> None:
    given: dict[str, Any] = {"amount": 5}
    given["x"] = given
    with pytest.raises(InputError, match="nested too deeply"):
        read(given)


# --- many ---


def test_columns_and_transactions_pass_unchanged() -> None:
    one = Transaction(id="t1", text=TEXT)
    columns = Transactions.of([one])
    assert as_transactions(columns, RememberedMapping()) is columns
    assert as_transactions((each for each in [one]), RememberedMapping())[0] is one


def test_kinds_can_be_mixed_everywhere(learner: Learner) -> None:
    mixed: list[TransactionInput] = [Transaction(id="t1", text=TEXT), {"id": "t2", "amount": 5}, TEXT]
    expected = ["t1", "t2", read(TEXT).id]
    scored = learner.score_sync(mixed)
    assert [each.transaction.id for each in scored] == expected
    assert learner.playbook.seq == 0
    assert learner.score_all(mixed).probabilities.tolist() == [each.probability for each in scored]
    assert [each.transaction.id for each in learner.decide_all_sync(iter(mixed))] == expected
    snapshot = learner.playbook.snapshot()
    for given, name in zip(mixed, expected, strict=True):
        assert learner.score_sync(given).transaction.id == name
        assert learner.decide_on_sync(given, snapshot).transaction.id == name
        assert learner.decide_sync(given).transaction.id == name


@pytest.mark.parametrize(
    "given", [pd.Series([TEXT, "$5"]), np.array([TEXT, "$5"]), (TEXT, "$5"), {TEXT: 1, "$5": 2}.keys()]
)
def test_any_iterable_of_texts_will_do(learner: Learner, given: Any) -> None:
    assert [each.transaction.text for each in learner.decide_all_sync(given)] == [TEXT, "$5"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (TEXT, "transactions: expected many transactions, .*, got one str; use `decide` for one"),
        ({"amount": 5}, "transactions: expected many transactions, .*, got one dict; use `decide` for one"),
        (Transaction(id="t", text="x"), "got one Transaction; use `decide` for one"),
        (
            5,
            "transactions: expected many transactions, .* or a data frame of them, got int$",
        ),
        (None, "transactions: expected many .* got None$"),
        (Case(transaction=Transaction(id="t", text="x"), is_fraud=True), "got one Case; pass its `transaction`"),
        (Cases.of([]), "got Cases; pass its `transactions`"),
        ([TEXT, 5], r"transactions\[1\]: expected a Transaction, a dict or a text, got int"),
        ([TEXT, [TEXT]], r"transactions\[1\]: expected a Transaction, a dict or a text, got list$"),
        ([TEXT, {"amount": "much"}], r"transactions\[1\], field 'amount': expected a number"),
        ([TEXT, ""], r"transactions\[1\]: expected a transaction, got an empty text"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_many_transactions_is_refused(learner: Learner, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        learner.decide_all_sync(given)
    assert learner.playbook.seq == 0


def test_scores_of_one_name_the_method_for_one(learner: Learner) -> None:
    with pytest.raises(InputError, match="use `score` for one"):
        learner.score_all(TEXT)
    with pytest.raises(InputError, match="transactions: expected at least one fact or a text"):
        learner.score_sync({})


@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")
def test_records_are_read_with_the_mapping_of_the_latest_training(learner: Learner, toy: Any) -> None:
    record = {"nr": 5, "when": "2024-03-01T12:00:00Z", "sum": 5, "code": 7, "bad": 1}
    assert learner.score_sync(record).transaction.id != "5"
    learner.study(toy.cases(60), mapping=MAPPED)
    found = learner.score_sync(record).transaction
    assert (found.id, found.time, found.facts["amount"], found.facts["code"]) == ("5", NOON, 5.0, "7")
    assert "bad" not in found.facts, "a label is no fact"


# --- outcomes ---


def test_an_outcome_may_be_a_dict(learner: Learner) -> None:
    decided = learner.decide_sync(TEXT)
    given = {"transaction_id": decided.transaction.id, "is_fraud": np.bool_(True), "at": pd.NaT, "source": "analyst"}
    assert not learner.hear_sync(given).already_known
    assert learner.hear_sync({"transaction_id": decided.transaction.id, "is_fraud": True}).already_known
    assert as_outcome({**given, "at": NOON}, RememberedMapping())[0] == Outcome(
        transaction_id=decided.transaction.id, is_fraud=True, at=NOON, source="analyst"
    )


def test_an_outcome_that_describes_its_transaction_is_learnt_from(learner: Learner) -> None:
    learner.hear_sync({"transaction_id": "t1", "label": "fraud", "amount": 2500, "vpn": True})
    learner.hear_sync({"transaction_id": "t2", "is_fraud": False}, {"transaction_id": "t2", "amount": 5})
    assert len(learner.remembered()) == 2


def test_many_outcomes_and_transactions_may_be_of_any_kind(learner: Learner) -> None:
    text = read(TEXT)
    outcomes: list[OutcomeInput] = [
        Outcome(transaction_id="t1", is_fraud=True),
        {"transaction_id": "t2", "label": "legit", "amount": 7},
        {"transaction_id": text.id, "is_fraud": True},
    ]
    heard = learner.hear_all_sync(outcomes, [{"id": "t1", "amount": 5}, None, TEXT])
    assert len(heard) == len(learner.remembered()) == 3
    columns = Transactions.of([Transaction(id="t4", text=TEXT)])
    learner.hear_all_sync([{"transaction_id": "t4", "is_fraud": True}], columns)
    assert len(learner.remembered()) == 4


@pytest.mark.parametrize(
    ("outcome", "transaction", "message"),
    [
        (5, None, "outcome: expected an Outcome or a dict, got int$"),
        ([], None, "outcome: expected an Outcome or a dict, got list; use `hear_all` for many"),
        ({"transaction_id": "t1"}, None, "outcome: expected a label"),
        ({"transaction_id": "t1", "is_fraud": "perhaps"}, None, "outcome, field 'is_fraud': expected true or false"),
        (
            {"transaction_id": "t1", "is_fraud": True},
            5,
            "transaction: expected a Transaction, a dict or a text, got int",
        ),
        ({"transaction_id": "t1", "is_fraud": True}, [TEXT], "got list; use `hear_all` for many"),
        ({"transaction_id": "t1", "is_fraud": True}, TEXT, "the outcome is of 't1', the transaction is 'tx-"),
    ],
    ids=str,
)
def test_what_is_no_outcome_is_refused(learner: Learner, outcome: Any, transaction: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        learner.hear_sync(outcome, transaction)
    assert learner.playbook.seq == 0


@pytest.mark.parametrize(
    ("outcomes", "transactions", "message"),
    [
        (
            Outcome(transaction_id="t", is_fraud=True),
            None,
            "outcomes: expected many .*, got one Outcome; use `hear` for",
        ),
        ({"transaction_id": "t", "is_fraud": True}, None, "got one dict; use `hear` for one"),
        (5, None, "outcomes: expected many outcomes, each an Outcome or a dict, got int"),
        ([5], None, r"outcomes\[0\]: expected an Outcome or a dict, got int"),
        ([], TEXT, "transactions: expected many transactions, .*, got one str; use `hear` for one"),
        ([{"transaction_id": "t", "is_fraud": True}], [5], r"transactions\[0\]: expected a Transaction"),
        ([], pd.DataFrame({"a": [1]}), "."),
        ([], [None], "0 outcomes and 1 transactions: expected one for each, or none"),
    ],
    ids=str,
)
def test_what_are_no_outcomes_is_refused(learner: Learner, outcomes: Any, transactions: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        learner.hear_all_sync(outcomes, transactions)
    assert learner.playbook.seq == 0
