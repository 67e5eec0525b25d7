"""The facts of a transaction: the same one by one and as columns, and the same until the reader has a new version."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.facts.text.test_text_facts import CASES
from tests.facts.text.test_text_facts_phrasings import CASES as MORE_CASES

from acefraud.core.transaction import FactValue, Transaction
from acefraud.core.transactions import Transactions
from acefraud.datasets.world import WorldOptions, generate
from acefraud.facts.extraction import READER, facts_in, facts_of

FACTS = ("amount", "usual_amount", "usual_amount_max", "amount_to_usual", "amount_to_usual_max", "hour", "night", "vpn")
numbers = st.one_of(
    st.sampled_from([0.0, -1.0, 5.5, 6.0, 22.99, 23.0, 59.99, 60.0, 1e15, 5e-324]),
    st.integers(-5, 1_000_000).map(lambda cents: cents / 100),
    st.floats(-1e12, 1e12),
)
rows = st.dictionaries(st.sampled_from(FACTS), st.booleans() | numbers | st.sampled_from(["web", ""]), min_size=1)
texts = st.sampled_from(["", "", "   ", "User attempts $300 purchase at 2am, usual spend is $60", "with a VPN", "blah"])


@example([({"amount": 0.5, "usual_amount": 4000.0}, "")])  # 0.000125: a tie that is none in decimals
@example([({"amount": 2.67545, "usual_amount": 1.0}, ""), ({"amount": 1.00005, "usual_amount": 1.0}, "")])
@example([({"amount": 1e300, "usual_amount": 1e-5}, "")])
@example([({"amount": -0.00001, "usual_amount": 1.0}, "")])
@given(st.lists(st.tuples(rows, texts), max_size=8))
def test_columns_know_what_each_transaction_knows(given_rows: list[tuple[dict[str, FactValue], str]]) -> None:
    transactions = [Transaction(id=str(n), facts=facts, text=text) for n, (facts, text) in enumerate(given_rows)]
    table = facts_in(Transactions.of(transactions))
    assert len(table) == len(transactions)
    assert [table.row(index) for index in range(len(table))] == [
        facts_of(transaction).facts for transaction in transactions
    ]


def test_ratios_are_rounded_the_same_way_in_columns() -> None:
    dice = np.random.default_rng(0)
    cents, usual = dice.integers(1, 2_000_000, 20_000), dice.choice([1.0, 3.0, 8.0, 40.0, 2000.0, 20_000.0], 20_000)
    rows = [
        Transaction(id=str(n), facts={"amount": amount / 100, "usual_amount": base})
        for n, (amount, base) in enumerate(zip(cents.tolist(), usual.tolist(), strict=True))
    ]
    column = facts_in(Transactions.of(rows)).numbers("amount_to_usual")
    assert column.tolist() == [facts_of(row).facts["amount_to_usual"] for row in rows]


@pytest.mark.parametrize("facts", [{"amount": 300.0, "usual_amount": 60.0, "amount_to_usual": 2.0}])
def test_given_facts_outweigh_derived_ones(facts: dict[str, FactValue]) -> None:
    assert facts_of(Transaction(id="t", facts=facts)).facts == facts
    assert facts_in(Transactions.of([Transaction(id="t", facts=facts)])).row(0) == facts


def test_reading_columns_leaves_them_as_they_are() -> None:
    given = Transactions.of(
        [Transaction(id="t", time=datetime(2025, 1, 6, tzinfo=UTC), facts={"hour": 2, "vpn": True})]
    )
    assert facts_in(given).row(0) == {"hour": 2.0, "vpn": True, "night": True}
    assert given.facts.row(0) == {"hour": 2.0, "vpn": True}


# --- the reader is pinned ----------------------------------------------------------------------------------------

TEXTS_PINNED = "626fccd716e93c17"
READ_PINNED = "2-ffaf827b4ca96380"


def digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def test_the_reader_reads_as_its_version_says() -> None:
    """Stored facts carry the version of the reader that made them, so a reader that reads otherwise needs a new one."""
    worlds = [case.transaction.text for seed in (0, 1) for case in generate(WorldOptions(transactions=200), seed)]
    texts = [*worlds, *(text for text, _ in (*CASES, *MORE_CASES))]
    bare: list[dict[str, FactValue]] = [{"amount": 300.0, "usual_amount": 70.0, "usual_amount_max": 9.0, "hour": 23.0}]
    transactions = [Transaction(id="t", text=text) for text in texts] + [
        Transaction(id="t", facts=each) for each in bare
    ]
    read = f"{READER}-{digest([facts_of(transaction).facts for transaction in transactions])}"
    assert digest(texts) == TEXTS_PINNED, f"there are other texts: update both digests ({digest(texts)!r}, {read!r})"
    assert read == READ_PINNED, (
        f"the reader makes other facts of the same texts: raise READER and update the digest ({read!r})"
    )
