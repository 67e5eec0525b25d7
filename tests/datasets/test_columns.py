"""What is read from a file, as columns and as the rows that they are."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from acefraud.core.transaction import Case
from acefraud.core.transactions import Cases
from acefraud.datasets import Dataset, SchemaMapping, load_dataset
from acefraud.datasets.columns import read_times
from acefraud.datasets.mapping import TimeParts
from acefraud.datasets.rows import read_transactions
from acefraud.errors import InputError
from acefraud.support.timestamps import UNKNOWN, time_of

MESSY = """id,when,Amount,vpn,country,score,note,is_fraud
a1,2025-01-03 10:00,"$1,200.50",yes,DE,1,none,fraud
a2,2025-01-01 10:00,12.5,no,FR,2.5,, legit
a3,2025-01-02 10:00,,,null,0x,x,0
a4,2025-01-02 10:00,7,1, DE ,3,None,1.0
a1,2025-01-02 11:00,8,0,DE,4,x,0
,2025-01-02 12:00,8,0,DE,4,x,0
a7,soon,9,no,IT,5,y,0
a8,2025-01-05 10:00,12,maybe,IT,5,y,0
a9,2025-01-05 10:00,12,no,IT,inf,y,0
b1,2025-01-05 10:00,12,no,IT,5,y,
b2,2025-01-05 10:00,12,no,IT,5,y,perhaps
b3,2025-01-06 10:00,,,,,,yes
b4,2025-01-06 10:00,12,no,IT,5
"""


def read(path: Path, mapping: SchemaMapping | None = None) -> Dataset:
    """Read a file and hold its columns against its rows: they are valid, and make the same columns again."""
    dataset = load_dataset(path, mapping=mapping)
    cases = dataset.train
    rows = list(cases)
    assert [Case.model_validate(row.model_dump()) for row in rows] == rows
    again = Cases.of(rows)
    assert again.facts.names == cases.facts.names
    for name in cases.facts.names:
        np.testing.assert_array_equal(again.facts.numbers(name), cases.facts.numbers(name))
        np.testing.assert_array_equal(again.facts.flags(name), cases.facts.flags(name))
        assert again.facts.categories(name)[1] == cases.facts.categories(name)[1]
        np.testing.assert_array_equal(again.facts.categories(name)[0], cases.facts.categories(name)[0])
    np.testing.assert_array_equal(again.transactions.times, cases.transactions.times)
    np.testing.assert_array_equal(again.known_at, cases.known_at)
    np.testing.assert_array_equal(again.labels, cases.labels)
    return dataset


def facts_of(dataset: Dataset) -> list[dict[str, object]]:
    return [dict(case.transaction.facts) for case in dataset]


def test_csv_with_all_kinds_of_bad_cells(tmp_path: Path) -> None:
    path = tmp_path / "messy.csv"
    path.write_text(MESSY)
    dataset = read(path, SchemaMapping(time="when", numbers=("score",), time_facts=()))
    assert dataset.train.transactions.ids.tolist() == ["a1", "a2", "a4"]
    assert [f"{case.transaction.time:%d %H}" for case in dataset] == ["03 10", "01 10", "02 10"]
    assert facts_of(dataset) == [
        {"amount": 1200.5, "vpn": True, "country": "DE", "score": 1.0, "note": "none"},
        {"amount": 12.5, "vpn": False, "country": "FR", "score": 2.5},
        {"amount": 7.0, "vpn": True, "country": "DE", "score": 3.0, "note": "None"},
    ]
    assert dataset.train.labels.tolist() == [True, False, True]
    assert [bad.row for bad in dataset.bad_rows] == [3, 5, 6, 7, 8, 9, 11, 12, 13]
    fields = ["score", "id", "id", "when", "vpn", "score", "is_fraud", None, None]
    assert [bad.field for bad in dataset.bad_rows] == fields
    assert dataset.unlabelled == 1


def test_kinds_are_found_by_column(tmp_path: Path) -> None:
    rows = ["n,flag,letter,word,mixed,label"]
    rows += [
        f"{at},{'yes' if at % 2 else 'no'},{'FT'[at % 2]},w{at % 3},{at if at % 30 else 'x'},{at % 4 == 0:d}"
        for at in range(60)
    ]
    path = tmp_path / "kinds.csv"
    path.write_text("\n".join(rows))
    dataset = read(path)
    columns = dataset.train.facts.columns
    assert list(columns.numbers) == ["n", "mixed"]
    assert list(columns.flags) == ["flag", "letter"]
    assert list(columns.categories) == ["word"]
    assert [bad.message for bad in dataset.bad_rows] == ["expected a number, got 'x'"] * 2


def test_a_kind_is_found_by_rows_not_by_distinct_cells(tmp_path: Path) -> None:
    path = tmp_path / "vpn.csv"
    often = "".join(f"{at},yes,0\n" for at in range(30))
    path.write_text(f"n,vpn,label\n{often}30,sometimes,1\n31,rarely,1\n")
    dataset = read(path)
    assert dataset.mapping.flags == ("vpn",)
    assert len(dataset.bad_rows) == 2


def test_facts_and_words_only_in_bad_rows_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,amount,shop,gone,label\n1,5,b,,0\n2,6,c,,1\n3,x,a,7,0\n")
    facts = read(path).train.facts
    assert facts.names == ["amount", "shop"]
    assert facts.categories("shop")[1] == ("b", "c")


def test_typed_columns(tmp_path: Path) -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    frame = pl.DataFrame(
        {
            "at": [start + timedelta(hours=(7 * at) % 30) for at in range(30)],
            "amount": [None if at == 3 else float("nan") if at == 5 else at / 7 for at in range(30)],
            "count": list(range(30)),
            "is_new": [None if at == 4 else at % 2 == 0 for at in range(30)],
            "kind": pl.Series(["a", "b", ""] * 10, dtype=pl.Categorical),
            "code": [float(at % 3) for at in range(30)],
            "day": [date(2025, 1, 1 + at) for at in range(30)],
            "is_fraud": [at % 5 == 0 for at in range(30)],
        }
    )
    path = tmp_path / "typed.parquet"
    frame.write_parquet(path)
    dataset = read(path, SchemaMapping(categories=("code",), ignore=("day",), time_facts=()))
    assert [f"{bad.field}: {bad.message}" for bad in dataset.bad_rows] == [
        "amount: expected a finite number or an empty cell, got 'nan'"
    ]
    assert dataset[1].transaction.facts == {"amount": 1 / 7, "count": 1.0, "is_new": False, "kind": "b", "code": "1"}
    assert dataset[3].transaction.facts == {"count": 3.0, "is_new": False, "kind": "a", "code": "0"}
    assert dataset[4].transaction.facts == {"amount": 4 / 7, "count": 4.0, "kind": "b", "code": "1"}
    assert dataset[4].transaction.time == start + timedelta(hours=28)


def test_seconds_between_two_times_of_a_row(tmp_path: Path) -> None:
    path = tmp_path / "signup.csv"
    path.write_text(
        "signup,when,paid,x,label\n2/3/15 10:00,2/3/15 10:01,2015-03-02T10:01:30Z,1,0\n,2/4/15 10:00,2015-03-03,2,1\n"
        "2/9/15 0:00,1/9/15 0:00,,3,0\nsoon,9/9/15 0:00,2015-09-09,4,0\n3/9/15 0:00,4/9/15 0:00,later,5,0\n"
    )
    elapsed = {"since_signup": ("signup", "when"), "until_paid": ("when", "paid")}
    mapping = SchemaMapping(
        time="when", time_format="%d/%m/%y %H:%M", ignore=("signup", "paid"), elapsed=elapsed, time_facts=()
    )
    dataset = read(path, mapping)
    assert facts_of(dataset) == [
        {"x": 1, "since_signup": 60, "until_paid": 30},
        {"x": 2, "until_paid": -30 * 86_400 - 36_000},
        {"x": 3, "since_signup": -86_400},
    ]
    assert [(bad.row, bad.field, bad.message) for bad in dataset.bad_rows] == [
        (4, "signup", "expected a time like '%d/%m/%y %H:%M', got 'soon'"),
        (5, "paid", "expected a time like 2025-01-31T14:05:00, got 'later'"),
    ]


def test_elapsed_time_of_typed_columns(tmp_path: Path) -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    frame = pl.DataFrame(
        {
            "opened": [date(2025, 1, 1), None, date(2024, 12, 31)],
            "time": [start + timedelta(hours=at, microseconds=7) for at in range(3)],
            "label": [0, 1, 0],
        }
    )
    path = tmp_path / "typed.parquet"
    frame.write_parquet(path)
    dataset = read(path, SchemaMapping(ignore=("opened",), elapsed={"age": ("opened", "time")}, text=""))
    assert dataset.train.facts.numbers("age").tolist() == [7e-6, 93_600.000007]
    assert len(dataset.bad_rows) == 1


@pytest.mark.parametrize("last", ["week", "day", None])
def test_a_time_made_of_parts(tmp_path: Path, last: str | None) -> None:
    path = tmp_path / "parts.csv"
    path.write_text(
        "Year,Month,n,x,label\n1995,Feb,5,1,0\n1994,12,1,2,1\n1994,september,2,3,0\n1994,Sept.,1,4,0\n"
        "1994,Octember,1,5,0\n94,1,1,6,0\n1996,2,0,7,0\n1996,13,1,8,1\n"
    )
    parts = {"year": "Year", "month": "Month"} | ({last: "n"} if last else {})
    dataset = read(path, SchemaMapping(time_parts=TimeParts(**parts), ignore=("Year",), categories=("Month",)))
    expected = {
        "week": ["02-28", "12-01", "09-08", "09-01"],
        "day": ["02-05", "12-01", "09-02", "09-01"],
        None: ["02-01", "12-01", "09-01", "09-01", "02-01"],
    }
    assert [f"{case.transaction.time:%m-%d}" for case in dataset] == expected[last]
    said = {bad.row: str(bad) for bad in dataset.bad_rows}
    assert said[5].endswith("field 'Month': expected a month as 1 to 12 or by its name, got 'Octember'")
    assert said[6].endswith("field 'Year': expected a year from 1900 to 2100, got '94'")
    assert (7 in said) == (last is not None)


def test_an_impossible_day_of_the_month_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "parts.csv"
    path.write_text("y,m,d,x,label\n1995,2,29,1,0\n1996,2,29,2,1\n1996,2,,3,0\n")
    dataset = read(path, SchemaMapping(time_parts=TimeParts(year="y", month="m", day="d")))
    assert dataset.train.transactions.times[1] == UNKNOWN
    assert not dataset.has_time
    assert [bad.message for bad in dataset.bad_rows] == ["expected a day of February 1995, got '29'"]


def test_a_single_row_is_read_as_the_file_was() -> None:
    mapping = SchemaMapping(
        time="when", time_format="%d/%m/%y", elapsed={"age": ("opened", "when")}, ignore=("opened",)
    )
    row = StringIO('{"when": "2/3/15", "opened": "1/3/15"}\n{"when": "3/3/15", "x": 1}\n')
    read = read_transactions(row, remembered=mapping, name="rows")
    assert [each.facts for each in read.rows] == [{"age": 86_400.0}, {"x": 1.0}]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_of_any_zone(tmp_path: Path, zone: str | None) -> None:
    naive = pl.Series([datetime(2025, 7, 1, 12), datetime(2025, 7, 1, 11)], dtype=pl.Datetime("ns"))
    times = naive if zone is None else naive.dt.replace_time_zone(zone)
    path = tmp_path / "zones.parquet"
    pl.DataFrame({"time": times, "x": [1.0, 2.0], "label": [0, 1]}).write_parquet(path)
    noon = datetime(2025, 7, 1, 10 if zone == "Europe/Berlin" else 12, tzinfo=UTC)
    assert [case.transaction.time for case in read(path)] == [noon, noon - timedelta(hours=1)]


@pytest.mark.parametrize("day", ["%m/%d/%y", "%d/%m/%Y", "%Y/%m/%d", "%d.%m.%y", "%d-%m-%Y", "%d %b %Y", "%B %d, %Y"])
@pytest.mark.parametrize("clock", ["", " %H:%M", " %I:%M:%S %p"])
def test_a_column_of_times_is_found_among_words(day: str, clock: str) -> None:
    time = datetime(2015, 2, 24, 22, 55)
    cells = ["no time", time.strftime(day + clock), time.strftime(day + clock).upper()]
    found = read_times(pl.Series(cells))
    expected = time if clock else time.replace(hour=0, minute=0)
    assert [time_of(value) for value in found.values] == [None, *[expected.replace(tzinfo=UTC)] * 2]


def test_dates_as_times(tmp_path: Path) -> None:
    path = tmp_path / "dates.parquet"
    pl.DataFrame({"date": [date(2025, 7, 2), None], "x": [1, 2], "label": [0, 1]}).write_parquet(path)
    first, second = read(path, SchemaMapping(time="date"))
    assert (first.transaction.time, second.transaction.time) == (datetime(2025, 7, 2, tzinfo=UTC), None)


def test_json_that_mixes_kinds(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "facts": {"amount": 5, "odd": "word"}, "text": "", "is_fraud": True},
        {"id": 2, "facts": {"amount": "6", "odd": True}, "text": " a text ", "is_fraud": False},
        {"id": 3, "facts": {"odd": 7}, "text": None, "is_fraud": False},
        {"id": 4, "facts": {}, "text": "only a text", "is_fraud": True},
        {"id": 5, "facts": {}, "text": " ", "is_fraud": True},
        {"id": 6, "facts": {"odd": [1]}, "text": "x", "is_fraud": True},
        {"id": 7, "facts": {"odd": "x"}, "text": 5, "is_fraud": True},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    dataset = read(path)
    assert [type(row.get("odd")) for row in facts_of(dataset)] == [str, bool, float, type(None)]
    assert [case.transaction.text for case in dataset] == ["", " a text ", "", "only a text"]
    assert len(dataset.bad_rows) == 3


def test_labels_that_came_later(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("time,known_at,x,label\n2025-01-01,2025-01-05,1,0\n2025-01-02,,2,1\n")
    dataset = read(path, SchemaMapping(time="time", known_at="known_at"))
    assert [case.known_at for case in dataset] == [datetime(2025, 1, 5, tzinfo=UTC), None]


def test_what_came_with_a_case_stays_with_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows: list[dict[str, object]] = [
        {"query": "a", "answer": "APPROVE"},
        {"query": "b", "answer": "maybe"},
        {"query": "c", "answer": "DECLINE", "difficulty": "hard", "metadata": {"kind": "x"}},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    first, last = read(path)
    assert (first["query"], first.difficulty, dict(first.metadata)) == ("a", "", {})
    assert (last["query"], last.difficulty, dict(last.metadata)) == ("c", "hard", {"kind": "x"})


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_ids_made_from_the_content_stay_what_they_are(tmp_path: Path, ending: str) -> None:
    """Decisions that were recorded refer to them."""
    path = tmp_path / f"rows.{ending}"
    contents = {
        "csv": "amount,shop,label\n5,web,0\n7.5,,1\n5,web,0\n5,web,0\n",
        "jsonl": '{"amount": 5, "label": 0}\n{"amount": 7.5, "label": 1}\n{"amount": 5, "label": 0}\n',
    }
    path.write_text(contents[ending])
    made = {
        "csv": ["tx-05e61f5722ee", "tx-9159145f3725", "tx-05e61f5722ee-2", "tx-05e61f5722ee-3"],
        "jsonl": ["tx-7c87952bd352", "tx-9159145f3725", "tx-7c87952bd352-2"],
    }
    assert read(path).train.transactions.ids.tolist() == made[ending]


@pytest.mark.parametrize("broken", [None, 20])
def test_a_file_with_a_broken_row_is_read_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: int | None
) -> None:
    monkeypatch.setattr("acefraud.datasets.files._BLOCK", 7)
    lines = [f'{row},"x{row % 3}, é",{row % 2}' for row in range(30)]
    if broken is not None:
        lines[broken] = "only one"
    path = tmp_path / "rows.csv"
    path.write_bytes(("\ufeffid,name,label\n" + "\r\n".join(lines) + "\r\n").encode())
    dataset = read(path)
    assert dataset[0].transaction.facts == {"name": "x0, é"}
    assert [bad.row for bad in dataset.bad_rows] == ([] if broken is None else [broken + 1])
    assert dataset.train.transactions.ids.tolist() == [str(row) for row in range(30) if row != broken]


@pytest.mark.parametrize(
    ("content", "said"),
    [("a,b\n1,2\n", "no column with a label"), ("a,label\n1,\n", "none of the 1 rows has a label")],
)
def test_files_without_usable_labels_are_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        load_dataset(path)
