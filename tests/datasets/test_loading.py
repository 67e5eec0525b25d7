"""The same rows are the same cases whatever file they come in; transactions and outcomes share the path."""

from __future__ import annotations

import io
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core.outcome import OutcomeSource
from acefraud.core.transaction import Case, Transaction
from acefraud.datasets import SchemaMapping, load_dataset
from acefraud.datasets.columns import FRAUD_WORDS, LEGIT_WORDS, LabelReader
from acefraud.datasets.rows import read_outcomes, read_transactions
from acefraud.datasets.world import WorldOptions
from acefraud.errors import ConfigurationError, InputError
from acefraud.facts.history import HistoryPlan

words = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=12)
categories = words.map(lambda word: f"k{word}".strip())
numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
rows = st.fixed_dictionaries(
    {
        "when": st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)),
        "amount": st.none() | numbers,
        "score": st.none() | numbers,
        "shop": st.none() | categories,
        "new": st.none() | st.booleans(),
        "text": words.map(lambda word: f't,"{word}\n'),
        "label": st.booleans(),
    }
)
MAPPING = SchemaMapping(time="when", numbers=("score",), categories=("shop",), flags=("new",), ignore=(), time_facts=())


def write_all(folder: Path, table: list[dict[str, Any]]) -> list[Path]:
    frame = pl.DataFrame(
        [{"id": f"t{n}", **row} for n, row in enumerate(table)],
        schema={"id": pl.String, "when": pl.Datetime, "amount": pl.Float64, "score": pl.Float64, "shop": pl.String,
                "new": pl.Boolean, "text": pl.String, "label": pl.Boolean},
    )  # fmt: skip
    iso = frame.with_columns(pl.col("when").dt.to_string("iso:strict"))
    iso.write_csv(folder / "a.csv")
    iso.write_csv(folder / "a.tsv", separator="\t")
    frame.write_parquet(folder / "a.parquet")
    lines = [json.dumps(row) for row in iso.to_dicts()]
    (folder / "a.jsonl").write_text("\n".join(lines))
    (folder / "a.json").write_text(json.dumps({"rows": iso.to_dicts()}))
    return [folder / f"a.{ending}" for ending in ("csv", "tsv", "parquet", "jsonl", "json")]


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(rows, min_size=1, max_size=8))
def test_a_table_is_the_same_in_every_format(table: list[dict[str, Any]]) -> None:
    expected = tuple(
        Case(
            transaction=Transaction(
                id=f"t{n}",
                time=row["when"].replace(tzinfo=UTC),
                facts={k: row[k] for k in ("amount", "score", "shop", "new") if row[k] is not None},
                text=row["text"],
            ),
            is_fraud=row["label"],
        )
        for n, row in enumerate(table)
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in write_all(Path(folder), table):
            dataset = load_dataset(path, mapping=MAPPING)
            assert dataset.bad_rows == ()
            assert dataset.train == expected
            assert [case.model_dump() for case in dataset] == [case.model_dump() for case in expected]


def test_the_shipped_world_is_split_by_time() -> None:
    options = WorldOptions(transactions=200)
    dataset = load_dataset("complex_fraud_detection", seed=3, options=options)
    assert len(dataset.train) + len(dataset.test) == 200
    times = [case.transaction.time for case in (*dataset.train, *dataset.test)]
    assert None not in times
    assert max(t for t in times[: len(dataset)] if t) <= min(t for t in times[len(dataset) :] if t)
    assert list(dataset) == list(dataset.train)
    assert load_dataset("complex_fraud_detection", seed=3, options=options).train == dataset.train
    assert dataset[0]["answer"] in ("APPROVE", "DECLINE")


def test_a_file_with_the_name_of_a_shipped_dataset_is_preferred(tmp_path: Path) -> None:
    path = tmp_path / "complex_fraud_detection.json"
    path.write_text('[{"query": "q", "answer": "DECLINE", "difficulty": "hard", "metadata": {"kind": "x"}}]')
    (case,) = load_dataset(path)
    assert (case["query"], case["answer"], case["difficulty"], case["metadata"]) == (
        "q",
        "DECLINE",
        "hard",
        {"kind": "x"},
    )
    assert case.transaction.id.startswith("tx-"), "made from the content"
    assert case.transaction.facts == {}


def test_options_and_mappings_where_they_make_no_sense(tmp_path: Path) -> None:
    path = tmp_path / "tx.csv"
    path.write_text("amount,label\n1,0\n")
    with pytest.raises(ConfigurationError, match="options shape a shipped dataset"):
        load_dataset(path, options=WorldOptions())
    with pytest.raises(ConfigurationError, match="takes no mapping"):
        load_dataset("complex_fraud_detection", mapping=SchemaMapping())


def test_labels_in_many_words() -> None:
    reader = LabelReader()
    assert all(reader(f" {word.upper()} ") is True for word in FRAUD_WORDS)
    assert all(reader(word.title()) is False for word in LEGIT_WORDS)
    assert [reader(odd) for odd in ("2", "", "unknown", "fraud?")] == [None] * 4
    assert LabelReader(legit=["true"])("true") is False


def test_only_listed_values_are_labels() -> None:
    reader = LabelReader(fraud=["A"], legit=["B"])
    assert [reader(value) for value in ("a", "B", "1", "0")] == [True, False, None, None]
    assert reader.expected("1") == "expected a fraud value (a) or a legit value (b), got '1'"


def test_times_in_usual_shapes(tmp_path: Path) -> None:
    expected = datetime(2019, 11, 12, 21, 47, tzinfo=UTC)
    for n, shape in enumerate(
        ["2019-11-12T21:47:00", "2019-11-12 21:47", "2019-11-12T22:47:00+01:00", "2019-11-12T21:47:00Z",
         "11/12/19 21:47", "11/12/2019 9:47 PM", "12.11.2019 21:47:00", "1573595220", "1573595220000",
         "12 Nov 2019 21:47"]
    ):  # fmt: skip
        path = tmp_path / f"{n}.csv"
        path.write_text(f"time,amount,label\n{shape},1,0\n")
        assert load_dataset(path)[0].transaction.time == expected, shape


def test_known_facts_keep_their_kind_in_a_single_row() -> None:
    loaded = read_transactions(io.StringIO('{"id": 7, "vpn": 1, "merchant_rating": "4.5", "amount": "$250"}\n'))
    assert loaded.rows == (Transaction(id="7", facts={"vpn": True, "merchant_rating": 4.5, "amount": 250}),)


def test_a_mapping_found_on_a_file_holds_for_a_single_row(tmp_path: Path) -> None:
    path = tmp_path / "tx.csv"
    path.write_text("id,claims,when,label\n1,none,2025-01-01,0\n2,1,2025-01-02,1\n")
    mapping = load_dataset(path, mapping=SchemaMapping(time="when")).mapping
    path.write_text("id,claims,when\n3,1,2025-01-03\n")
    assert read_transactions(path, mapping=mapping).rows[0].facts == {
        "claims": "1", "weekday": "Friday", "weekend": False,
    }  # fmt: skip
    stream = io.StringIO('{"id": "4", "claims": 1}')
    assert read_transactions(stream, mapping=mapping).rows[0].facts == {"claims": "1"}


def test_a_label_never_becomes_a_fact(tmp_path: Path) -> None:
    path = tmp_path / "tx.csv"
    path.write_text("id,is_fraud,fraud_type,amount\n1,1,ring,5\n2,maybe,,6\n")
    loaded = read_transactions(path)
    assert [row.facts for row in loaded.rows] == [{"amount": 5.0}, {"amount": 6.0}]
    assert loaded.bad_rows == ()


def test_a_stream_with_a_broken_line_goes_on() -> None:
    stream = io.StringIO('{"id": "1", "amount": 2}\nnonsense\n{"id": "2", "facts": {"crypto": true}}\n')
    loaded = read_transactions(stream, name="<stdin>")
    assert [row.id for row in loaded.rows] == ["1", "2"]
    assert [str(bad) for bad in loaded.bad_rows] == ["<stdin>, row 2: broken JSON at column 1: Expecting value"]
    with pytest.raises(InputError, match="<stdin>: the file is empty"):
        read_transactions(io.StringIO(""), name="<stdin>")


def test_exported_cases_come_back(tmp_path: Path) -> None:
    cases = load_dataset("complex_fraud_detection", options=WorldOptions(transactions=60)).train
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(case.model_dump_json() for case in cases))
    assert load_dataset(path).train == cases


def test_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text("transaction_id,label,source,id,at\n1,1,Chargeback,o1,2025-01-01\n1,0,,,\n3,1,bank,,\n4,,,,\n")
    loaded = read_outcomes(path)
    first, second, third = (row.outcome for row in loaded.rows)
    assert (first.transaction_id, first.is_fraud, first.source, first.id) == ("1", True, OutcomeSource.CHARGEBACK, "o1")
    assert first.at == datetime(2025, 1, 1, tzinfo=UTC)
    assert (second.transaction_id, second.is_fraud, second.source, second.id) == ("1", False, OutcomeSource.LABEL, "")
    assert [row.transaction for row in loaded.rows] == [None, None, None]
    assert loaded.unlabelled == 1
    assert (third.source, third.author) == (OutcomeSource.ANALYST, "bank")
    assert loaded.report.remarks == (
        "row 3, field 'source': 'bank' is none of label, chargeback, analyst, judge; it is taken as the author, "
        "an analyst",
    )


def test_outcomes_come_with_their_transaction_if_the_row_describes_it() -> None:
    stream = io.StringIO(
        '{"transaction_id": "1", "label": "fraud", "amount": 5}\n{"transaction_id": "2", "label": 0}\n'
    )
    first, second = read_outcomes(stream).rows
    assert first.transaction == Transaction(id="1", facts={"amount": 5})
    assert second.transaction is None
    with pytest.raises(InputError, match="no column with a transaction_id; the columns are: label, amount"):
        read_outcomes(io.StringIO('{"label": 1, "amount": 5}'))


# --- who and what took part --------------------------------------------------------------------------------------

PAID = """tx_id,time,customer_id,terminal_id,amount,kind,label
t1,2024-01-01T10:00:00Z,7,s1,5,a,0
t2,2024-01-01T11:00:00Z,7,,6,b,1
t3,2024-01-02T10:00:00Z,8,s1,7,a,
t4,2024-01-02T11:00:00Z,9,s2,8,a,1
"""


def test_entities_are_read_beside_the_facts_and_rows_without_a_label_are_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "paid.csv"
    path.write_text(PAID)
    data = load_dataset(path)
    assert data.mapping.entities == ("customer_id", "terminal_id")
    first, second, _ = (case.transaction for case in data)
    assert first == Transaction(
        id="t1",
        time=datetime(2024, 1, 1, 10, tzinfo=UTC),
        facts={"amount": 5, "kind": "a", "hour": 10, "night": False, "weekday": "Monday", "weekend": False},
        entities={"customer_id": "7", "terminal_id": "s1"},
    )
    assert second.entities == {"customer_id": "7"}
    assert [transaction.id for transaction in data.waiting] == ["t3"]
    (row,) = read_transactions(
        io.StringIO('{"tx_id": "n1", "customer_id": 7, "amount": 5}'), remembered=data.mapping
    ).rows
    assert row.entities == {"customer_id": "7"}


def test_a_place_that_is_no_fact_comes_along_with_the_entities(tmp_path: Path) -> None:
    path = tmp_path / "paid.csv"
    path.write_text(PAID)
    plan = HistoryPlan(entities=("customer_id",), category="kind")
    left_out = SchemaMapping(history=plan, ignore=("kind", "terminal_id"))
    assert load_dataset(path, mapping=left_out)[0].transaction.entities == {"customer_id": "7", "kind": "a"}
    assert load_dataset(path, mapping=SchemaMapping(history=plan))[0].transaction.entities == {"customer_id": "7"}


def test_a_file_read_as_another_one_gets_no_history_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "paid.csv"
    path.write_text(PAID)
    without = SchemaMapping(
        id="tx_id", time="time", label="label", amount="amount", ignore=("customer_id", "terminal_id")
    )
    data = load_dataset(path, remembered=without)
    assert data.mapping.history is None
    assert not data.waiting
    assert not any(case.transaction.entities for case in data)
    plan = HistoryPlan(entities=("terminal_id",))
    given = load_dataset(path, mapping=without, remembered=without.model_copy(update={"history": plan}))
    assert given[0].transaction.entities == {"terminal_id": "s1"}


def test_an_entity_that_is_a_whole_text_makes_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "paid.csv"
    path.write_text(PAID.replace(",8,s1,7,a,", f",{'8' * 1001},s1,7,a,1"))
    (bad,) = load_dataset(path, mapping=SchemaMapping(history=HistoryPlan(entities=("customer_id",)))).bad_rows
    assert (bad.row, bad.field, bad.message) == (3, "customer_id", "expected at most 1,000 characters, got 1,001")
