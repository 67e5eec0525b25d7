"""What the ledger keeps of a decision."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.decision import Common, Decision, DecisionRecord, compact_record
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.errors import StoreError

SETUP = Common.of(
    {"format": 1, "engine": "1", "reader": "2", "node": "n", "seed": 4, "embedder": "hashing", "settings": "n=10"}
)
RESULT = {"picks": [("b1", 0.75), ("b2", 0.0), ("b3", -1.5)], "threshold": 0.4, "base": -2.25, "digest": "0a1b"}

names = st.text(min_size=1, max_size=6)
values: st.SearchStrategy[FactValue] = st.one_of(
    st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=9)
)


def kept(transaction: Transaction, facts: dict[str, FactValue], **more: Any) -> DecisionRecord:
    given: dict[str, Any] = {"setup": SETUP, "revision": 7, "verdict": Verdict.DECLINE, "probability": 0.625}
    return compact_record(transaction, facts, ("half a word",), **{**given, "result": RESULT, **more})


@given(
    st.dictionaries(names, values, min_size=1, max_size=5),
    st.dictionaries(names, values, max_size=3),
    st.text(max_size=20),
    st.dictionaries(names, names, max_size=2),
    st.none() | st.datetimes(timezones=st.just(UTC)),
)
def test_a_compact_record_gives_back_all_that_it_keeps(
    given_facts: dict[str, FactValue],
    read: dict[str, FactValue],
    text: str,
    entities: dict[str, str],
    time: datetime | None,
) -> None:
    transaction = Transaction(id="t1", time=time, facts=given_facts, text=text, entities=entities)
    facts = {**read, **given_facts}
    decision = kept(transaction, facts).decision
    assert (decision.transaction, decision.facts, decision.unread) == (transaction, facts, ("half a word",))
    assert [type(value) for value in decision.facts.values()] == [type(facts[name]) for name in decision.facts]
    assert (decision.verdict, decision.probability, decision.threshold, decision.base) == ("DECLINE", 0.625, 0.4, -2.25)
    assert (decision.revision, decision.node, decision.reader) == (7, "n", "2")
    assert [(reason.bullet_id, reason.contribution) for reason in decision.reasons] == [("b1", 0.75), ("b3", -1.5)]
    assert (decision.engine, decision.digest, decision.has_trace) == ("1", "0a1b", False)
    assert (decision.selection.seed, decision.selection.embedder, decision.selection.settings) == (4, "hashing", "n=10")


def test_the_id_follows_from_the_content() -> None:
    transaction = Transaction(id="t1", facts={"amount": 5.0})
    first = kept(transaction, transaction.facts)
    assert kept(transaction, transaction.facts) == first
    others = [
        kept(transaction.model_copy(update={"id": "t2"}), transaction.facts),
        kept(transaction, transaction.facts, revision=8),
        kept(transaction, transaction.facts, setup=Common.of({"engine": "2"})),
        kept(transaction, {"amount": 5.0, "night": True}),
        kept(Transaction(id="t1", facts={"amount": 5.5}), {"amount": 5.5}),
    ]
    assert len({first.id, *(other.id for other in others)}) == 6


def test_names_and_setup_are_kept_once_and_values_have_no_names() -> None:
    first, second = (kept(Transaction(id=name, facts={"amount": 5.0}), {"amount": 5.0}) for name in ("t1", "t2"))
    assert first.names is second.names
    assert json.loads(first.body)["values"] == [5.0]
    assert "amount" not in first.body
    assert first.names is not None
    assert json.loads(first.names.body) == {"given": ["amount"], "more": [], "entities": []}


def test_a_decision_that_is_kept_whole_comes_back_as_it_was() -> None:
    decision = Decision(
        id="d",
        transaction=Transaction(id="t", text="$20"),
        verdict=Verdict.APPROVE,
        probability=0.1,
        threshold=0.5,
        base=0.0,
        revision=3,
        model="openai:gpt",
        odds=1.5,
    )
    record = DecisionRecord.whole(decision)
    assert record.decision == decision
    assert (record.setup, record.names, record.verdict, record.probability) == (None, None, "APPROVE", 0.1)
    with pytest.raises(StoreError, match="decision d on t cannot be kept, nothing was written: base"):
        DecisionRecord.whole(decision.model_copy(update={"base": float("inf")}))
