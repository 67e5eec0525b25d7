"""What is wrong with a file or a row is said with its place, and the rest is still used."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from acefraud.core.transaction import MAX_TEXT
from acefraud.datasets import load_dataset
from acefraud.errors import InputError

SOUND = "10,20.5,0\n11,7,1\n"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ('1,"12,5x",0', "amount", "expected a number, got '12,5x'"),
        ('1,"1,23",0', "amount", "expected a number, got '1,23'"),
        ("1,nan,0", "amount", "expected a finite number or an empty cell, got 'nan'"),
        ("1,-inf,0", "amount", "expected a finite number or an empty cell, got '-inf'"),
        ("1,1e999,0", "amount", "expected a finite number or an empty cell, got '1e999'"),
        (
            "1,5,maybe",
            "label",
            "expected a label such as 0/1, yes/no, fraud/legit or APPROVE/DECLINE, got 'maybe'",
        ),
        ("10,5,0", "id", "duplicate id '10', first at row 1"),
        (",5,0", "id", "expected an id, got an empty cell"),
        (f"{'9' * 201},5,0", "id", "expected an id of at most 200 characters, got 201"),
        ("1,,0", None, "expected at least one fact or a text"),
        ("1,5", None, "expected 3 fields, got 2"),
        ("1,5,0,7", None, "expected 3 fields, got 4"),
    ],
)
def test_a_bad_row_is_left_out_with_its_place(tmp_path: Path, row: str, field: str | None, message: str) -> None:
    path = write(tmp_path, "tx.csv", f"id,amount,label\n{SOUND}{row}\n12,3,0\n")
    dataset = load_dataset(path)
    assert [case.transaction.id for case in dataset] == ["10", "11", "12"]
    (bad,) = dataset.bad_rows
    assert (bad.file, bad.row, bad.field, bad.message) == (str(path), 3, field, message)
    with pytest.raises(InputError) as stopped:
        load_dataset(path, strict=True)
    assert str(stopped.value) == str(bad)


def test_money_and_empty_cells_are_no_errors(tmp_path: Path) -> None:
    rows = 'a,"1,234.50",0,x\nb,"$1,234.50",1,x\nc,,0,x\nd,null,0,x\ne,-3e2,0,x\n'
    dataset = load_dataset(write(tmp_path, "tx.csv", f"id,amount,label,shop\n{rows}"))
    assert [case.transaction.facts.get("amount") for case in dataset] == [1234.5, 1234.5, None, None, -300.0]


def test_a_row_without_a_label_is_pending_not_bad(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, "tx.csv", f"id,amount,label\n{SOUND}12,5,\n13,6,  \n"))
    assert (len(dataset), dataset.unlabelled, dataset.bad_rows) == (2, 2, ())


def test_a_slip_in_a_numeric_column_is_bad_and_a_category_is_not(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n},{'none' if n % 2 else n},0\n" for n in range(40))
    dataset = load_dataset(write(tmp_path, "tx.csv", f"id,score,claims,label\n{rows}40,4O,1,1\n"))
    assert [str(bad).split(": ")[1] for bad in dataset.bad_rows] == ["expected a number, got '4O'"]
    assert dataset[1].transaction.facts == {"score": 1.0, "claims": "none"}


def test_invalid_times_are_bad_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "tx.csv", "id,time,amount,label\n1,2/24/15 22:55,1,0\n2,soon,1,0\n3,12/31/15 1:00,2,1\n")
    dataset = load_dataset(path)
    assert str(dataset.bad_rows[0]) == f"{path}, row 2, field 'time': expected a time like '%m/%d/%y %H:%M', got 'soon'"
    assert [str(case.transaction.time) for case in dataset] == [
        "2015-02-24 22:55:00+00:00",
        "2015-12-31 01:00:00+00:00",
    ]


def test_a_text_beyond_the_limit(tmp_path: Path) -> None:
    path = write(tmp_path, "tx.csv", f"id,text,label\n1,{'x' * 5_000_000},1\n2,{'x' * MAX_TEXT},0\n")
    dataset = load_dataset(path)
    assert [bad.message for bad in dataset.bad_rows] == ["expected a text of at most 100,000 characters, got 5,000,000"]
    assert [case.transaction.id for case in dataset] == ["2"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "the file is empty"),
        ("a.json", " \n", "the file is empty"),
        ("a.csv", "id,label\n", "there are no rows"),
        ("a.json", "[]", "there are no rows"),
        (
            "a.csv",
            "id,amount\n1,2\n",
            'no column with a label; the columns are: id, amount; name it by `label = "..."` in a mapping (--mapping)',
        ),
        ("a.csv", "id,x,x,label\n1,2,3,0\n", "the column 'x' appears twice in the header"),
        ("a.json", '[{"id": 1},\n {"id" 2}]', "broken JSON at line 2, column 8: Expecting ':' delimiter"),
        ("a.json", "[" * 100_000, "broken JSON: nested too deeply"),
        ("a.json", f'[{{"id": {"9" * 5000}}}]', "broken JSON: a number with too many digits"),
        ("a.json", "3", "expected a list of objects, got a number"),
        (
            "a.json",
            '{"a": [{"x": 1}], "b": [{"x": 1}]}',
            "expected a list of objects, or an object that holds one list; this holds several",
        ),
        (
            "a.doc",
            "x",
            "unknown kind of file '.doc': expected one of .json, .jsonl, .ndjson, .csv, .tsv, .txt, .parquet, .xlsx, "
            ".xlsm, .xls",
        ),
        ("a.csv", "id,amount,label\n1,2,\n", "none of the 1 rows has a label"),
        (
            "a.csv",
            "id,amount,label\n1,x,0\n2,y,1\n",
            "no usable rows: 2 bad; the first bad one is row 1, field 'amount': expected a number, got 'x'",
        ),
    ],
)
def test_unusable_files_are_refused_with_the_reason(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(InputError) as raised:
        load_dataset(path)
    assert str(raised.value) == f"{path}: {message}"


def test_invalid_utf8_names_byte_and_row(tmp_path: Path) -> None:
    path = write(tmp_path, "tx.csv", "id,amount,label\n1,éé,0\n".encode() + b"2,\xff,1\n")
    with pytest.raises(InputError) as raised:
        load_dataset(path)
    assert str(raised.value) == f"{path}, row 2: not valid UTF-8 at byte 27 (line 3); save it as UTF-8"


def test_an_open_quote(tmp_path: Path) -> None:
    path = write(tmp_path, "tx.csv", 'id,amount,label\n1,2,0\n2,"3,1\n')
    with pytest.raises(InputError) as raised:
        load_dataset(path)
    assert str(raised.value) == f"{path}, row 2: not readable as CSV: a quote is opened and never closed"


def test_unreadable_parquet_missing_files_and_directories(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not readable as Parquet: "):
        load_dataset(write(tmp_path, "a.parquet", b"PAR1 nothing PAR1"))
    with pytest.raises(InputError) as raised:
        load_dataset(tmp_path)
    assert str(raised.value) == f"{tmp_path}: this is a directory: expected a file"
    with pytest.raises(InputError) as raised:
        load_dataset("nowhere.csv")
    assert (
        str(raised.value) == "nowhere.csv: there is no such file, and the shipped datasets are: complex_fraud_detection"
    )


def test_json_rows_that_do_not_fit(tmp_path: Path) -> None:
    lines = [
        '{"id": "1", "amount": 5, "label": 0}',
        "",
        '{"id": "2", "amount": ',
        '{"id": "3", "amount": NaN, "label": 1}',
        '{"id": "4", "amount": {"value": 3}, "label": 1}',
        "[1]",
        '{"id": "5", "amount": 5, "label": 0, "metadata": 3}',
        '{"id": "6", "amount": 5, "label": 0, "note": "\\ud800"}',
        f'{{"id": "7", "amount": {"9" * 400}, "label": 1}}',
        '{"id": "8", "amount": "$1,200", "label": 1, "metadata": {"x": [1]}}',
        '{"id": "9", "amount": 5, "label": 0, "extra": ["a"]}',
        '{"id": "10", "amount": [5], "label": 0}',
    ]
    dataset = load_dataset(write(tmp_path, "tx.jsonl", "\n".join(lines)))
    assert [(case.transaction.id, case.transaction.facts, case["metadata"]) for case in dataset] == [
        ("1", {"amount": 5.0}, {}),
        ("8", {"amount": 1200.0}, {"x": [1]}),
        ("9", {"amount": 5.0, "extra.a": True, "extra.length": 1.0}, {}),
    ]
    assert [(bad.row, bad.field, bad.message) for bad in dataset.bad_rows] == [
        (3, None, "broken JSON at column 23: Expecting value"),
        (4, "amount", "expected a finite number or an empty cell, got 'nan'"),
        (5, "amount", "expected a number, a flag or text, got an object"),
        (6, None, "expected an object, got a list"),
        (7, "metadata", "expected an object, got a number"),
        (8, None, "expected text that is valid Unicode, got half of a two-part character"),
        (9, "amount", f"expected a finite number or an empty cell, got '{'9' * 60}'"),
        (12, "amount", "expected a number, a flag or text, got a list"),
    ]


def test_parquet_cells_that_do_not_fit(tmp_path: Path) -> None:
    columns = {"id": [1, 2, 3], "label": [0, 1, 0], "photo": [None, b"x", None], "n": [float("inf"), 1.5, 2.5]}
    pl.DataFrame(columns).write_parquet(tmp_path / "tx.parquet")
    assert [(bad.row, bad.field, bad.message) for bad in load_dataset(tmp_path / "tx.parquet").bad_rows] == [
        (1, "n", "expected a finite number or an empty cell, got 'inf'"),
        (2, "photo", "expected a number, a flag or text, got bytes"),
    ]
