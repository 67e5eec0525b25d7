"""Columns hold what the rows of `load_dataset` hold."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from acefraud.core.table import FactTable
from acefraud.datasets import SchemaMapping, load_dataset, read_transactions
from acefraud.datasets.columns import LabelledColumns, load_columns
from acefraud.datasets.time_parts import TimeParts
from acefraud.errors import InputError
from acefraud.history.plan import HistoryPlan

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


def same(path: Path, mapping: SchemaMapping | None = None) -> LabelledColumns:
    """Read a file both ways and compare everything that both know."""
    dataset, columns = load_dataset(path, mapping=mapping), load_columns(path, mapping=mapping)
    cases = list(dataset.train)
    if dataset.has_time:
        cases.sort(key=lambda case: case.transaction.time or datetime.min)
        micros = [round(case.transaction.time.timestamp() * 1e6) for case in cases if case.transaction.time]
        assert columns.times is not None
        assert columns.times.tolist() == micros
    else:
        assert columns.times is None
    assert [columns.facts.row(at) for at in range(len(columns))] == [case.transaction.facts for case in cases]
    assert columns.facts.names == FactTable([case.transaction.facts for case in cases]).names
    assert columns.labels.tolist() == [case.is_fraud for case in cases]
    assert columns.bad_rows == dataset.bad_rows
    assert columns.unlabelled == dataset.unlabelled
    assert columns.mapping == dataset.mapping
    if columns.mapping.id:
        assert columns.ids.tolist() == [case.transaction.id for case in cases]
    return columns


def test_text_with_all_kinds_of_slips(tmp_path: Path) -> None:
    path = tmp_path / "messy.csv"
    path.write_text(MESSY)
    columns = same(path, SchemaMapping(time="when", numbers=("score",)))
    assert columns.ids.tolist() == ["a2", "a4", "a1"]
    assert len(columns.bad_rows) == 9
    assert columns.unlabelled == 1


def test_kinds_are_found_as_for_rows(tmp_path: Path) -> None:
    rows = ["n,flag,letter,word,mixed,label"]
    rows += [
        f"{at},{'yes' if at % 2 else 'no'},{'FT'[at % 2]},w{at % 3},{at if at % 30 else 'x'},{at % 4 == 0:d}"
        for at in range(60)
    ]
    path = tmp_path / "kinds.csv"
    path.write_text("\n".join(rows))
    columns = same(path).facts.columns
    assert list(columns.flags) == ["flag", "letter"]
    assert list(columns.categories) == ["word"]


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
    columns = same(path, SchemaMapping(categories=("code",), ignore=("day",)))
    assert columns.times is not None
    assert (np.diff(columns.times) >= 0).all()


def test_seconds_between_two_times_of_a_row(tmp_path: Path) -> None:
    path = tmp_path / "signup.csv"
    path.write_text(
        "signup,when,paid,x,label\n2/3/15 10:00,2/3/15 10:01,2015-03-02T10:01:30Z,1,0\n,2/4/15 10:00,2015-03-03,2,1\n"
        "2/9/15 0:00,1/9/15 0:00,,3,0\nsoon,9/9/15 0:00,2015-09-09,4,0\n3/9/15 0:00,4/9/15 0:00,later,5,0\n"
    )
    elapsed = {"since_signup": ("signup", "when"), "until_paid": ("when", "paid")}
    mapping = SchemaMapping(time="when", time_format="%d/%m/%y %H:%M", ignore=("signup", "paid"), elapsed=elapsed)
    columns = same(path, mapping)
    assert [columns.facts.row(at) for at in range(len(columns))] == [
        {"x": 1, "since_signup": 60, "until_paid": 30},
        {"x": 2, "until_paid": -30 * 86_400 - 36_000},
        {"x": 3, "since_signup": -86_400},
    ]
    assert [(bad.row, bad.field, bad.message) for bad in columns.bad_rows] == [
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
    columns = same(path, SchemaMapping(ignore=("opened",), elapsed={"age": ("opened", "time")}, text=""))
    assert columns.facts.numbers("age").tolist() == [7e-6, 93_600.000007]
    assert len(columns.bad_rows) == 1


@pytest.mark.parametrize("last", ["week", "day", None])
def test_a_time_made_of_parts(tmp_path: Path, last: str | None) -> None:
    path = tmp_path / "parts.csv"
    path.write_text(
        "Year,Month,n,x,label\n1995,Feb,5,1,0\n1994,12,1,2,1\n1994,september,2,3,0\n1994,Sept.,1,4,0\n"
        "1994,Okt,1,5,0\n94,1,1,6,0\n1996,2,0,7,0\n1996,13,1,8,1\n"
    )
    parts = {"year": "Year", "month": "Month"} | ({last: "n"} if last else {})
    columns = same(path, SchemaMapping(time_parts=TimeParts(**parts), ignore=("Year",), categories=("Month",)))
    made = [] if columns.times is None else [f"{datetime.fromtimestamp(at / 1e6, UTC):%m-%d}" for at in columns.times]
    expected = {
        "week": ["09-01", "09-08", "12-01", "02-28"],
        "day": ["09-01", "09-02", "12-01", "02-05"],
        None: ["09-01", "09-01", "12-01", "02-01", "02-01"],
    }
    assert made == expected[last]
    said = {bad.row: str(bad) for bad in columns.bad_rows}
    assert said[5].endswith("field 'Month': expected a month as 1 to 12 or by its English name, got 'Okt'")
    assert said[6].endswith("field 'Year': expected a year from 1900 to 2100, got '94'")
    assert (7 in said) == (last is not None)


def test_a_day_that_its_month_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "parts.csv"
    path.write_text("y,m,d,x,label\n1995,2,29,1,0\n1996,2,29,2,1\n1996,2,,3,0\n")
    columns = same(path, SchemaMapping(time_parts=TimeParts(year="y", month="m", day="d")))
    assert columns.times is None
    assert [bad.message for bad in columns.bad_rows] == ["expected a day of February 1995, got '29'"]


def test_a_single_row_is_read_as_the_file_was() -> None:
    mapping = SchemaMapping(
        time="when", time_format="%d/%m/%y", elapsed={"age": ("opened", "when")}, ignore=("opened",)
    )
    row = StringIO('{"when": "2/3/15", "opened": "1/3/15"}\n{"when": "3/3/15", "x": 1}\n')
    read = read_transactions(row, remembered=mapping, name="rows", format="jsonl")
    assert [one.facts for one in read.rows] == [{"age": 86_400.0}, {"x": 1.0}]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_of_any_zone(tmp_path: Path, zone: str | None) -> None:
    naive = pl.Series([datetime(2025, 7, 1, 12), datetime(2025, 7, 1, 11)], dtype=pl.Datetime("ns"))
    times = naive if zone is None else naive.dt.replace_time_zone(zone)
    path = tmp_path / "zones.parquet"
    pl.DataFrame({"time": times, "x": [1.0, 2.0], "label": [0, 1]}).write_parquet(path)
    same(path)


def test_dates_as_times(tmp_path: Path) -> None:
    path = tmp_path / "dates.parquet"
    pl.DataFrame({"date": [date(2025, 7, 2), date(2025, 7, 1)], "x": [1, 2], "label": [0, 1]}).write_parquet(path)
    assert same(path, SchemaMapping(time="date")).times is not None


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
    columns = same(path)
    assert columns.facts.row(1)["odd"] is True
    assert len(columns.bad_rows) == 3


def test_labels_that_came_later(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("time,known_at,x,label\n2025-01-01,2025-01-05,1,0\n2025-01-02,,2,1\n")
    columns = load_columns(path, mapping=SchemaMapping(time="time", known_at="known_at"))
    assert columns.times is not None
    assert columns.known_at is not None
    assert ((columns.known_at - columns.times) // 86_400_000_000).tolist() == [4, 0]


def test_some_rows_can_be_taken(tmp_path: Path) -> None:
    path = tmp_path / "messy.csv"
    path.write_text(MESSY)
    columns = load_columns(path, mapping=SchemaMapping(time="when", numbers=("score",)))
    part = columns.take(np.array([2, 0]))
    assert part.ids.tolist() == ["a1", "a2"]
    assert part.facts.row(0) == columns.facts.row(2)
    assert len(columns.take(slice(1, None))) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [("a,b\n1,2\n", "no column with a label"), ("a,label\n1,\n", "none of the 1 rows has a label")],
)
def test_what_cannot_be_learnt_from_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        load_columns(path)


def test_the_past_of_an_entity_becomes_facts(tmp_path: Path) -> None:
    path = tmp_path / "cards.csv"
    path.write_text(
        "time,card,amount,label\n"
        "2025-01-04 00:00,c1,30,0\n2025-01-01 00:00,c1,10,1\n2025-01-01 12:00,c2,5,\n2025-01-02 00:00,c1,20,0\n"
    )
    plan = HistoryPlan(entities=("card",), windows=("7d",), label_delay="2d")
    columns = load_columns(path, mapping=SchemaMapping(time="time", history=plan))
    assert columns.facts.numbers("amount").tolist() == [10, 20, 30]
    assert columns.facts.numbers("card_count_7d").tolist() == [0, 1, 2]
    assert columns.facts.numbers("card_known_frauds_7d").tolist() == [0, 0, 1]
    assert "card" not in columns.facts.names
    assert columns.entities["card"].tolist() == [0, 0, 0]
    assert columns.times is not None
    assert columns.known_at is not None
    assert ((columns.known_at - columns.times) // 86_400_000_000).tolist() == [2, 2, 2]
