"""JSON and JSON lines: one object per row, whose values keep their types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import polars as pl

from acefraud.datasets.table import FACTS, BadRow, Column, Table
from acefraud.errors import InputError

Row = dict[str, Any]
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a two-part character; alone it is no Unicode text, and nothing further on could store it."""


def read_json(data: bytes, name: str) -> Table:
    """A list of objects, an object that holds one such list, or one object alone."""
    text = data.decode("utf-8-sig")
    try:
        content = json.loads(text)
    except json.JSONDecodeError as broken:
        place = f"line {broken.lineno}, column {broken.colno}"
        raise InputError(f"broken JSON at {place}: {broken.msg}", file=name) from None
    except (ValueError, RecursionError) as broken:
        raise InputError(f"broken JSON: {_plain(broken)}", file=name) from None
    return _as_table(enumerate(_records(content, name), start=1), name, check=_HALF_CHARACTER.search(text) is not None)


def read_json_lines(data: bytes, name: str) -> Table:
    """One object per line; a line that is broken costs that line only, and empty lines are passed over."""
    bad: list[BadRow] = []
    rows: list[tuple[int, object]] = []
    text = data.decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append((number, json.loads(line)))
        except json.JSONDecodeError as broken:
            bad.append(BadRow(name, number, None, f"broken JSON at column {broken.colno}: {broken.msg}"))
        except (ValueError, RecursionError) as broken:
            bad.append(BadRow(name, number, None, f"broken JSON: {_plain(broken)}"))
    return _as_table(rows, name, bad, check=_HALF_CHARACTER.search(text) is not None)


def _plain(broken: Exception) -> str:
    return "nested too deeply" if isinstance(broken, RecursionError) else "a number with too many digits"


def _records(content: object, name: str) -> list[Any]:
    if isinstance(content, list):
        return content
    if not isinstance(content, dict):
        raise InputError(f"expected a list of objects, got {_shape(content)}", file=name)
    lists = [value for value in content.values() if isinstance(value, list)]
    if len(lists) == 1 and (len(content) == 1 or _all_objects(lists[0])):
        return lists[0]
    if any(_all_objects(value) for value in lists):
        raise InputError("expected a list of objects, or an object that holds one list; this holds several", file=name)
    return [content]


def _all_objects(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, dict) for value in values)


def _as_table(
    rows: Iterable[tuple[int, object]], name: str, bad: Iterable[BadRow] = (), *, check: bool = False
) -> Table:
    numbers: list[int] = []
    records: list[Row] = []
    metadata: list[Row] = []
    bad = list(bad)
    for number, row in rows:
        try:
            record, extra = _flattened(row, check=check)
        except InputError as problem:
            bad.append(BadRow(name, number, problem.field, problem.message))
            continue
        numbers.append(number)
        records.append(record)
        metadata.append(extra)
    names = dict.fromkeys(key for record in records for key in record)
    columns = {key: _column(key, [record.get(key) for record in records]) for key in names}
    return Table(name, columns, numbers, typed=True, bad=tuple(bad), metadata=metadata, open_ended=True)


def _flattened(row: object, *, check: bool) -> tuple[Row, Row]:
    """One flat record: a nested ``transaction`` is opened, ``facts`` become columns, ``metadata`` is kept apart."""
    if not isinstance(row, dict):
        raise InputError(f"expected an object, got {_shape(row)}")
    if check and not _is_unicode(row):
        raise InputError("expected text that is valid Unicode, got half of a two-part character")
    record = dict(row)
    whole = record.pop("transaction", None) if isinstance(record.get("transaction"), dict) else {}
    inner = {"transaction_id" if key == "id" else key: value for key, value in whole.items()}
    record = inner | record
    metadata = record.pop("metadata", None)
    facts = record.pop("facts", None)
    for field, value in (("metadata", metadata), ("facts", facts)):
        if value is not None and not isinstance(value, dict):
            raise InputError(f"expected an object, got {_shape(value)}", field=field)
    record |= {FACTS + key: value for key, value in (facts or {}).items()}
    return record, metadata or {}


def _is_unicode(row: Row) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(name: str, values: list[Any]) -> Column:
    """A series where one type fits all, so that the reading is done column-wise; else the cells as they are."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {str}:
        return pl.Series(name, values, dtype=pl.String)
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds == {int} and all(value is None or abs(value) < 2**53 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds == {float}:
        return pl.Series(name, values, dtype=pl.Float64)
    return values


def _shape(value: object) -> str:
    return {dict: "an object", list: "a list", str: "text", bool: "a flag", type(None): "null"}.get(
        type(value), "a number"
    )
