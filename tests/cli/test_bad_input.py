"""Bad input gets a message that names the place and what was expected, exit code 2, and nothing half-written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acefraud.storage.schema import NEWEST

GOOD = "id,amount,vpn,label\n" + "".join(f"g{n},{n * 37 % 900},{n % 2},{int(n % 4 == 0)}\n" for n in range(60))


def bad_files() -> list[Any]:
    """Name, content and what is said of it; the reading commands all say the same."""
    return [
        pytest.param("empty.csv", "", "the file is empty", id="empty"),
        pytest.param("header.csv", "id,amount,label\n", "there are no rows", id="no rows"),
        pytest.param("x.csv", "id,amount\n1,2\n", "no column with a label; the columns are: id, amount", id="no label"),
        pytest.param("x.csv", b"id,label\n1,\xc3\xa9\xc3\xa9\n2,\xff\n", "not valid UTF-8 at byte 18", id="utf-8"),
        pytest.param("x.json", '[{"id": 1},\n {"id" 2}]', "broken JSON at line 2, column 8", id="broken json"),
        pytest.param("x.doc", "hello", "unknown kind of file '.doc'", id="unknown kind"),
    ]


@pytest.mark.parametrize(("name", "content", "message"), bad_files())
def test_a_file_that_cannot_be_used(trained: Any, name: str, content: str | bytes, message: str) -> None:
    path = trained.write(name, content)
    state = trained.state()
    for command in ("train", "learn", "backtest"):
        refused = trained.on_book(command, path, code=2)
        assert f"{path}" in refused.err
        assert message in refused.err
    assert message in trained("compare", path, "--json", code=2).err
    if "label" not in message:
        assert message in trained.on_book("decide", path, code=2).err
    assert trained.state() == state
    trained("train", path, "--playbook", trained.folder / "new.db", code=2)
    assert not (trained.folder / "new.db").exists()


BAD_ROWS = [
    pytest.param('x,"12,5x",1,0', "amount", "expected a number, got '12,5x'", id="no number"),
    pytest.param("x,NaN,1,0", "amount", "expected a finite number or an empty cell, got 'NaN'", id="nan"),
    pytest.param("x,5,1,perhaps", "label", "expected a label such as 0/1", id="label"),
    pytest.param("g3,5,1,0", "id", "duplicate id 'g3', first at row 4", id="duplicate"),
]


@pytest.mark.parametrize(("row", "field", "message"), BAD_ROWS)
def test_one_bad_row_is_reported_and_counted_and_strict_stops(shell: Any, row: str, field: str, message: str) -> None:
    path = shell.write("x.csv", GOOD + row + "\n")
    told = f"{path}, row 61, field '{field}': {message}"
    refused = shell.on_book("train", path, "--strict", code=2)
    assert f"acefraud: {told}" in refused.err
    assert not shell.book.exists()
    ran = shell.on_book("train", path, "--json")
    assert f"skipped: {told}" in ran.err
    assert (ran.json["rows"], ran.json["bad_rows"]) == (60, 1)
    if field == "label":
        return
    state = shell.state()
    shell.on_book("decide", path, "--strict", code=2)
    assert shell.state() == state
    ran = shell.on_book("decide", path, "--json")
    assert f"skipped: {told}" in ran.err
    assert len(ran.lines) == 60


def test_a_text_of_five_megabytes(shell: Any) -> None:
    shell.on_book("playbook", "add", "VPN: decline")
    rows = [{"id": "a", "text": "x" * 5_000_000}, {"id": "b", "text": "$20 purchase"}]
    path = shell.rows("x.jsonl", rows)
    told = "row 1, field 'text': expected a text of at most 100,000 characters, got 5,000,000"
    assert told in shell.on_book("decide", path, "--strict", code=2).err
    ran = shell.on_book("decide", path, "--json")
    assert told in ran.err
    assert [line["transaction_id"] for line in ran.lines] == ["b"]
    state = shell.state()
    refused = shell.on_book("decide", "x " * 2_500_000, code=2)
    assert "5,000,000 characters, expected at most 100,000" in refused.err
    assert shell.state() == state


def test_a_long_text_beside_the_columns_that_a_playbook_was_trained_with(trained: Any) -> None:
    path = trained.rows("x.jsonl", [{"id": "a", "amount": 5, "text": "x" * 200_000}])
    assert "row 1, field 'text'" in trained.on_book("decide", path, "--strict", code=2).err


def test_many_bad_rows_are_counted_and_the_first_shown(shell: Any) -> None:
    path = shell.write("x.csv", GOOD + "".join(f"x{n},oops,1,0\n" for n in range(5)))
    mapping = shell.write("map.toml", 'numbers = ["amount"]\n')
    ran = shell.on_book("train", path, "--mapping", mapping, "--json")
    assert ran.json["bad_rows"] == 5
    assert ran.err.count("skipped: ") == 5
    path = shell.write("x.csv", GOOD + "".join(f"x{n},oops,1,0\n" for n in range(9)))
    ran = shell.on_book("train", path, "--mapping", mapping, "--json")
    assert "9 rows in all could not be read" in ran.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('label = "is_fraud"\n', "'label' names the column 'is_fraud', which"),
        ('ignore = ["city"]\n', "'ignore' names the column 'city', which"),
        ('lable = "label"\n', "unknown key 'lable'; the keys are: id, time"),
        ("label = \n", "not valid TOML"),
        (b'label = "\xff"\n', "the mapping is not valid UTF-8 at byte 9"),
    ],
)
def test_a_mapping_that_does_not_fit(shell: Any, content: str | bytes, message: str) -> None:
    path, mapping = shell.write("x.csv", GOOD), shell.write("map.toml", content)
    refused = shell.on_book("train", path, "--mapping", mapping, code=2)
    assert f"{mapping}: {message}" in refused.err
    assert not shell.book.exists()


def test_a_mapping_and_files_that_are_not_there(trained: Any) -> None:
    state = trained.state()
    assert "cannot be read" in trained.on_book("train", "history.csv", "--mapping", "no.toml", code=2).err
    for command in ("train", "decide", "learn", "backtest"):
        assert "nowhere.csv: " in trained.on_book(command, "nowhere.csv", code=2).err
    assert trained.state() == state


def test_labels_all_the_same_teach_nothing(shell: Any) -> None:
    path = shell.write("x.csv", "id,amount,label\n1,2,0\n2,3,0\n")
    assert f"{path}: all rows have the same label" in shell.on_book("train", path, code=2).err
    assert not shell.book.exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('{"id": "x", ', "not valid JSON"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "too many digits"),
        ('{"facts": {"amount": NaN}}', "field 'facts.amount': expected a finite number or an empty cell"),
        ('{"facts": {"amount": [1]}}', "field 'facts.amount': expected a number"),
        ('{"id": "x", "amount": "12,5x"}', "field 'amount': expected a number"),
        ('{"id": "x", "vpn": "maybe"}', "field 'vpn': expected a flag"),
        ("{}", "expected at least one fact or a text"),
        ("a caf\udcff paid", "expected valid UTF-8"),
        (" ", "got an empty text"),
    ],
)
def test_an_argument_that_is_no_transaction(trained: Any, given: str, message: str) -> None:
    state = trained.state()
    assert message in trained.on_book("decide", given, code=2).err
    assert trained.state() == state


# --- the playbook file -------------------------------------------------------------------------------------------


def commands_on_a_playbook() -> list[list[str]]:
    return [
        ["train", "history.csv"],
        ["decide", '{"amount": 5}'],
        ["learn", "history.csv"],
        ["explain", "t1"],
        ["attest"],
        ["backtest", "history.csv"],
        ["playbook", "list"],
        ["playbook", "add", "VPN: decline"],
        ["playbook", "retire", "b-1"],
        ["playbook", "export"],
    ]


@pytest.mark.parametrize("arguments", commands_on_a_playbook(), ids=lambda arguments: " ".join(arguments[:2]))
def test_files_that_are_no_playbook_or_a_newer_one_are_left_alone(trained: Any, arguments: list[str]) -> None:
    newer = trained.book
    with closing(sqlite3.connect(newer)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9041'")
    for path, message in (
        (trained.write("notes.txt", "dear diary, " * 100), "is not an acefraud playbook; it was left untouched"),
        (newer, f"has schema 9041, the newest this version of acefraud knows is {NEWEST}"),
    ):
        before = path.read_bytes()
        refused = trained(*arguments, "--playbook", path, code=2)
        assert str(path) in refused.err
        if not (path is newer and "needs" in refused.err):
            assert message in refused.err
        assert path.read_bytes() == before


@pytest.mark.parametrize("arguments", commands_on_a_playbook()[1:6], ids=lambda arguments: " ".join(arguments[:2]))
def test_a_mistyped_playbook_starts_no_empty_one(shell: Any, arguments: list[str]) -> None:
    refused = shell(*arguments, "--playbook", "bok.db", code=2)
    assert "there is no playbook at bok.db" in refused.err
    assert not Path("bok.db").exists()


def test_a_folder_or_a_missing_folder_is_no_place_for_a_playbook(shell: Any) -> None:
    for at in (shell.folder, shell.folder / "nowhere" / "book.db"):
        assert str(at) in shell("train", "history.csv", "--playbook", at, code=2).err


def test_an_unknown_decision(trained: Any) -> None:
    assert "there is no decision 'd-nobody'" in trained.on_book("explain", "d-nobody", code=2).err


def test_an_embedder_that_nobody_knows(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACEFRAUD_EMBEDDER", "word2vec")
    assert "word2vec" in trained.on_book("decide", '{"amount": 5}', code=2).err
