"""What every row store promises, buffered changes included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from acefraud.core.ledger import BufferedRows, MemoryRows, RowStore
from acefraud.storage.driver import SqlRows
from acefraud.storage.sqlite import SqliteLedger

MANY = {f"k{n}": str(n).encode() for n in range(1_100)}


@pytest.fixture(params=["memory", "buffered", "sqlite"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RowStore]:
    if request.param == "sqlite":
        with SqliteLedger.open(tmp_path / "book.db") as ledger, ledger.writing() as driver:
            yield SqlRows(driver)
    else:
        kept = MemoryRows()
        yield BufferedRows(kept) if request.param == "buffered" else kept


def test_rows_are_kept_replaced_and_forgotten(rows: RowStore) -> None:
    rows.put_many({})
    rows.forget_many([])
    assert rows.get_many([]) == {}
    rows.put_many(MANY)
    rows.put_many({"k1": b"new", "": b""})
    rows.forget_many(["k2", "never"])
    assert rows.get_many(["k1", "k2", "k3", "", "never"]) == {"k1": b"new", "k3": b"3", "": b""}
    assert len(rows.get_many(MANY)) == 1_099
    assert rows.get_all() == rows.get_many([*MANY, ""])
    rows.forget_many(MANY)
    assert rows.get_many([*MANY, ""]) == {"": b""}
    rows.clear()
    assert rows.get_many([""]) == {}
    rows.put_many({"a": b"1"})
    assert rows.get_many(["a"]) == {"a": b"1"}


@pytest.mark.parametrize("cleared", [False, True])
def test_buffered_changes_reach_the_store_only_when_written(cleared: bool) -> None:
    kept = MemoryRows()
    kept.put_many({"a": b"1", "b": b"2", "c": b"3"})
    buffer = BufferedRows(kept)
    if cleared:
        buffer.clear()
    buffer.put_many({"a": b"9"})
    buffer.forget_many(["b"])
    after = {"a": b"9"} if cleared else {"a": b"9", "c": b"3"}
    assert buffer.get_many("abc") == after
    assert kept.get_many("abc") == {"a": b"1", "b": b"2", "c": b"3"}
    buffer.write_to(kept)
    assert kept.get_many("abc") == after
