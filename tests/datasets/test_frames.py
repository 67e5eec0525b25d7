"""Data frames are read as files with the same content are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from acefraud import BulletPlaybook, Dataset, Learner, SchemaMapping, load_dataset, load_transactions
from acefraud.datasets.files import frame_table
from acefraud.datasets.records import RecordReader
from acefraud.errors import ConfigurationError, InputError

pytestmark = pytest.mark.wide

ROWS = 240
COLUMNS: dict[str, list[Any]] = {
    "TX_ID": [f"t{n}" for n in range(ROWS)],
    "TX_DATETIME": [f"2025-03-{1 + n // 10:02} {n % 10 + 8:02}:15:00" for n in range(ROWS)],
    "CUSTOMER_ID": [f"c{n % 17}" for n in range(ROWS)],
    "TX_AMOUNT": [round(5 + (n * 37 % 400) / 3, 2) for n in range(ROWS)],
    "items": [n % 7 if n % 11 else None for n in range(ROWS)],
    "kind": [[3, 9, 14, 27][n * n % 4] for n in range(ROWS)],
    "vpn": ["yes" if n % 5 == 0 else "no" for n in range(ROWS)],
    "browser": [["IE", "Opera", "none"][n % 3] if n % 13 else None for n in range(ROWS)],
    "is_fraud": [int(n % 9 == 0) for n in range(ROWS)],
}
POLARS = pl.DataFrame(COLUMNS)
MAKERS: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: POLARS,
    "lazy polars": POLARS.lazy,
    "pyarrow": POLARS.to_arrow,
    "duckdb": lambda: duckdb.from_arrow(POLARS.to_arrow()),
}

ANY_LOAD: Any = load_dataset
ANY_LOAD_TRANSACTIONS: Any = load_transactions


def same(one: Dataset, other: Dataset) -> bool:
    """Whether two datasets hold the same cases, read by the same mapping."""
    return list(one) == list(other) and one.mapping == other.mapping


@pytest.mark.parametrize("library", MAKERS)
def test_a_frame_is_read_as_the_file_with_its_rows(library: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    POLARS.write_csv(file)
    assert same(load_dataset(MAKERS[library]()), load_dataset(file))


def test_a_mapping_holds_for_frames_too(tmp_path: Path) -> None:
    mapping = SchemaMapping(label="is_fraud", known=("TX_AMOUNT", "vpn"), id="TX_ID")
    found = load_dataset(POLARS, mapping=mapping)
    assert found.train.facts.names == ["TX_AMOUNT", "vpn"]
    path = tmp_path / "mapping.toml"
    path.write_text(mapping.describe(), "utf-8")
    assert same(load_dataset(POLARS, mapping=path), found)
    assert same(load_dataset(POLARS, mapping=str(path)), found)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([1.5, None]), [1.5, None]),
        (pd.Series([1, None]), [1.0, None]),
        (pd.Series([1, None], dtype="Int64"), [1.0, None]),
        (pd.Series([1, 2], dtype="int8"), [1.0, 2.0]),
        (pd.Series([True, None], dtype="boolean"), [True, None]),
        (pd.Series([True, None], dtype=object), [True, None]),
        (pd.Series(["a", None]), ["a", None]),
        (pd.Series(["a", None], dtype="category"), ["a", None]),
        (pd.Series(["a", None], dtype=object), ["a", None]),
        (pd.Series([np.int64(3), None], dtype=object), [3.0, None]),
        (pd.Series([Decimal("2.5"), None], dtype=object), [2.5, None]),
        (pd.Series([1, "x"], dtype=object), [1.0, "x"]),
        (pd.Series([np.float32(0.5), np.float32("nan")]), [0.5, None]),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
@pytest.mark.parametrize("has_pyarrow", [True, False])
def test_columns_of_pandas_keep_what_they_hold(
    column: pd.Series, expected: list[Any], has_pyarrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_pyarrow:
        monkeypatch.setattr("narwhals.Series.to_polars", missing_pyarrow)
    frame = pd.DataFrame({"figure": column, "place": [0.5, 1.5]})
    rows = load_transactions(frame, mapping=SchemaMapping(id="", time="", amount="", text=""))
    assert [row.facts.get("figure") for row in rows] == expected


def missing_pyarrow(_: Any) -> pl.Series:
    raise ModuleNotFoundError("pa.Table requires 'pyarrow' module to be installed")


def test_times_of_pandas_are_times() -> None:
    moments = pd.to_datetime(["2025-03-01 12:00", "2025-03-02 13:30"])
    for column in (moments, moments.tz_localize("UTC"), moments.tz_localize("UTC").tz_convert("Asia/Tokyo")):
        rows = load_transactions(pd.DataFrame({"time": column, "amount": [5.0, 7.0]}))
        assert rows[1].time == datetime(2025, 3, 2, 13, 30, tzinfo=UTC)


def test_numbers_are_shared_with_the_frame() -> None:
    frame = pd.DataFrame({"amount": np.arange(1_000, dtype=np.float64)})
    series = frame_table(frame).columns["amount"]
    assert isinstance(series, pl.Series)
    assert np.shares_memory(series.to_numpy(), frame["amount"].to_numpy())


def test_rows_without_an_id_get_one_from_their_content() -> None:
    frame = pl.DataFrame({"amount": [5.0, 7.0, 5.0], "country": ["FR", None, "FR"], "card": [2**60, 2**60 + 1, 2**60]})
    ids = load_transactions(frame).ids.tolist()
    assert len(set(ids)) == 3
    assert ids[2] == f"{ids[0]}-2"
    assert load_transactions(frame.to_pandas()).ids.tolist() == ids
    assert load_transactions(frame[1:2]).ids.tolist() == ids[1:2]
    assert load_transactions(frame, ids=False).ids.tolist() == ["", "", ""]


def test_ids_from_the_content_are_those_of_a_file_of_a_record_and_of_rows_without_a_label(tmp_path: Path) -> None:
    frame = pl.DataFrame(COLUMNS).drop("TX_ID").with_columns(pl.col("items").cast(pl.Float64))
    frame.write_csv(tmp_path / "rows.csv")
    frame.write_parquet(tmp_path / "rows.parquet")
    data = load_dataset(tmp_path / "rows.csv")
    ids = data.train.transactions.ids.tolist()
    assert data.mapping.entities
    assert len(set(ids)) == ROWS
    for source in (tmp_path / "rows.parquet", frame, frame.to_pandas(), frame[:, ::-1]):
        assert load_dataset(source, mapping=data.mapping).train.transactions.ids.tolist() == ids
    unlabelled = frame.drop(data.mapping.label or "")
    assert load_transactions(unlabelled, remembered=data.mapping).ids.tolist() == ids
    reader = RecordReader(remembered=data.mapping)
    assert [reader.transaction(row).id for row in unlabelled.to_dicts()] == ids


def test_rows_with_the_same_content_are_numbered_by_their_labels_in_any_order() -> None:
    frame = pl.DataFrame(
        {"amount": [5.0] * 4, "is_fraud": [1, None, 0, 1], "known_at": ["2025-03-02"] * 3 + ["2025-03-01"]}
    )
    data = load_dataset(frame, mapping={"id": "", "known_at": "known_at"})
    fraud, legit, first_fraud = data.train.transactions.ids.tolist()
    assert [fraud, first_fraud] == [f"{legit}-3", f"{legit}-2"]
    again = load_dataset(frame[::-1], mapping=data.mapping)
    assert again.train.transactions.ids.tolist() == [first_fraud, legit, fraud]


def test_a_struct_column_is_opened() -> None:
    frame = pl.DataFrame({"id": ["t1"], "facts": [{"amount": 5.0, "vpn": True}], "metadata": [{"note": "x"}]})
    assert load_transactions(frame)[0].facts == {"amount": 5.0, "vpn": True}


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: load_dataset(pl.DataFrame({"amount": [1.0]})), "frame: no column with a label; .* amount"),
        (lambda: load_dataset(POLARS.head(0)), "frame: there are no rows"),
        (lambda: load_dataset(POLARS, strict=True, weights=[1.0]), "weights: expected a number for each of 240 rows"),
        (lambda: load_dataset(POLARS, weights=[-1.0] * ROWS), "weights: expected finite numbers of at least 0"),
        (lambda: load_dataset(pa.table([[1], [2]], names=["a", "a"])), "frame: a column appears twice"),
        (lambda: ANY_LOAD([1, 2]), "source: expected the path of a file, .* or a data frame"),
        (lambda: ANY_LOAD_TRANSACTIONS(5), "source: expected the path of a file, or a data frame"),
        (
            lambda: load_transactions(pl.DataFrame({"amount": [1.0, np.inf]}), name="today"),
            "today, row 2, field 'amount': expected a finite number",
        ),
    ],
)
def test_what_is_wrong_with_a_frame_is_said(attempt: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        attempt()


def test_options_of_other_sources_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="weights belong to the rows of a data frame"):
        load_dataset("complex_fraud_detection", weights=[1.0])


def test_a_guessed_delay_of_labels_is_said() -> None:
    with pytest.warns(UserWarning, match='label_delay = "56h" is a guess'):
        Learner(BulletPlaybook()).study(POLARS)


@pytest.mark.filterwarnings("ignore:label_delay", "ignore:unfamiliar")
@pytest.mark.parametrize("library", MAKERS)
def test_the_learner_takes_frames(library: str) -> None:
    frame = MAKERS[library]()
    learner, other = Learner(BulletPlaybook()), Learner(BulletPlaybook())
    assert learner.study(frame) == other.study(load_dataset(POLARS))
    assert learner.mapping == load_dataset(POLARS).mapping
    decisions = learner.decide_all_sync(frame)
    expected = other.decide_all_sync(load_transactions(POLARS, remembered=other.mapping))
    assert [decision.probability for decision in decisions] == [each.probability for each in expected]
    outcomes = pl.DataFrame({"transaction_id": COLUMNS["TX_ID"][:30], "label": COLUMNS["is_fraud"][:30]})
    heard = learner.hear_all_sync(outcomes.to_pandas() if library == "pandas" else outcomes)
    assert len(heard) == 30
    assert learner.playbook.outcomes == 30
    assert len(learner.score_all(frame).probabilities) == ROWS


def test_a_dataset_brings_its_mapping_and_what_waits_for_a_label() -> None:
    waiting = POLARS.with_columns(pl.when(pl.int_range(pl.len()) < 200).then("is_fraud").alias("is_fraud"))
    learner = Learner(BulletPlaybook())
    data = load_dataset(waiting)
    assert data.unlabelled == 40
    learner.study(data)
    memory = learner.memory()
    assert memory is not None
    assert memory.names == ("customer",)


def test_weights_of_rows_reach_the_cases() -> None:
    weights = np.linspace(0, 1, ROWS)
    data = load_dataset(POLARS, weights=weights)
    assert data.train.weights is not None
    assert data.train.weights.tolist() == weights.tolist()
    assert data.split(0.3).train.weights is not None


def test_a_frame_that_the_playbook_knows_nothing_of_is_refused(tmp_path: Path) -> None:
    learner = Learner(BulletPlaybook())
    file = tmp_path / "rows.csv"
    POLARS.write_csv(file)
    learner.study(file, mapping=SchemaMapping(history={"entities": ["CUSTOMER_ID"], "label_delay": "2d"}))
    with pytest.raises(InputError, match="transactions: none of its columns is one that the playbook was trained with"):
        learner.decide_all_sync(pl.DataFrame({"tx_amt": [5.0]}))
    assert len(learner.decide_all_sync(POLARS.head(0))) == 0


def test_intervals_and_periods_are_words() -> None:
    frame = pd.DataFrame({"amount": [1.0, 20.0, 300.0]})
    frame["band"] = pd.cut(frame["amount"], [0, 10, 100])
    frame["month"] = pd.period_range("2025-01", periods=3, freq="M")
    rows = load_transactions(frame, mapping={"time": ""})
    bands = [row.facts.get("band") for row in rows]
    assert bands[2] is None
    assert str(bands[0]).startswith("(0")
    assert bands[0] != bands[1]
    assert rows[0].facts["month"] == "2025-01"
