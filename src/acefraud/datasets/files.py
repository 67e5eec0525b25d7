"""Files and streams as tables: CSV, Excel, JSON, JSON lines, Parquet. Problems with the whole file are raised here."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from acefraud.datasets.columns import json_column
from acefraud.datasets.frames import read_excel, read_parquet
from acefraud.datasets.table import FACTS, BadRow, Column, Table
from acefraud.errors import InputError
from acefraud.support.arguments import nearest_file

_BLANK = re.compile(rb"[\xef\xbb\xbf \t\r\n]*")
_EXCEL = b"PK\x03\x04"
"""How a workbook begins, also one that was named ``.csv``."""
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
_MOST_ABOVE = 8
"""Lines above a header, which are looked for only in files of at least twice as many lines."""
_BLOCK = 50_000
"""Rows of a CSV file that are held as Python objects at once."""
_DEEPEST = 10
"""Objects inside objects that are opened."""
_Field = tuple[str, list[Any]]
"""A field by its dotted name, with its cells."""
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair. Alone it is not valid Unicode, and nothing further on could store it."""

_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_ENCODINGS = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "cp1252": "Windows-1252"}
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x81\x8d\x8f\x90\x9d]")
"""Control characters, and bytes that Windows-1252 leaves free."""
_FOREIGN_WORD = re.compile(r"[^\s;,|\"]*[^\x00-\x7f][^\s;,|\"]*")
_TWICE = "the field '{}' is there twice: under this name, and inside an object"


def read_table(source: Path | TextIO, *, name: str | None = None) -> Table:
    """The table in a file, by its ending, or in a stream of JSON lines."""
    if isinstance(source, Path):
        label = name or str(source)
        ending = source.suffix.lower().lstrip(".")
        if source.is_dir():
            raise InputError("this is a directory: expected a file", file=label)
    else:
        label = name or getattr(source, "name", None) or "input"
        ending = "jsonl"
    if ending not in _READERS and ending not in _BINARY:
        known = ", ".join(f".{one}" for one in (*_READERS, *_BINARY))
        raise InputError(f"unknown kind of file '.{ending}': expected one of {known}", file=label)
    data = _file_bytes(source, label) if isinstance(source, Path) else _stream_bytes(source)
    if _BLANK.fullmatch(data):
        raise InputError("the file is empty", file=label)
    if ending in _BINARY or data.startswith(_EXCEL):
        return _BINARY.get(ending, read_excel)(data, label)
    text, assumed = decode_text(data, label, header="json" not in ending, by_line=ending != "json")
    table = _READERS[ending](text, label)
    return replace(table, remarks=(assumed, *table.remarks)) if assumed else table


def _file_bytes(path: Path, label: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no such file{nearest_file(path)}", file=label) from None
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", file=label) from problem


def _stream_bytes(stream: TextIO) -> bytes:
    content = getattr(stream, "buffer", stream).read()
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else bytes(content)


def _read_csv(text: str, name: str, separators: str) -> Table:
    """Every cell as text: with polars if the file is regular, row by row if it is not.

    Of the possible separators, the one counts that gives the header most fields; the first of them if there is a tie.
    A first line such as ``sep=;`` says it outright, and lines above the header, such as the title of a statement, are
    passed over.

    Polars fills a short row with nulls, which would turn a cut-off line into a row without a label. So the lengths of
    all rows are checked first.
    """
    if told := _SEPARATOR_LINE.match(text):
        separators, text = told[1], text[told.end() :]
    remarks: tuple[str, ...] = ()
    with _long_cells_allowed():
        if len(separators) > 1 and (title := _title_lines(text, separators)):
            remarks = (f"lines above the header that are passed over: {title}",)
            text = text.split("\n", title)[title]
        data = text.encode()
        separator = max(separators, key=lambda one: len(next(_csv_rows(data, name, one, strict=False), [])))
        header = _csv_header(data, name, separator)
        widths = [len(row) for row in _csv_rows(data, name, separator)]
        regular = set(widths) == {len(header)}
        frame = _regular_csv(data, header, len(widths) - 1, separator) if regular else None
        if frame is None:
            table = _irregular_csv(data, name, header, separator)
        else:
            table = Table(name, dict(frame.to_dict()), range(1, frame.height + 1), typed=False)
    return replace(table, semicolons=separator == ";", remarks=remarks)


def _title_lines(text: str, separators: str) -> int:
    """How many lines stand above the header: those before the first line with names for as many fields as rows have."""
    lines = [line.replace("\r", "") for line in text.split("\n", 60)[:60]]
    cells = {one: [next(csv.reader([line], delimiter=one), []) for line in lines] for one in separators}
    widths = {one: sorted(map(len, rows))[len(lines) // 2] for one, rows in cells.items()}
    separator = max(separators, key=lambda one: widths[one])
    first = next((at for at, row in enumerate(cells[separator]) if len(row) == widths[separator]), 0)
    names = [cell.strip() for cell in cells[separator][first]]
    are_names = all(name and not name[0].isdigit() for name in names) and len(set(names)) == len(names)
    return first if are_names and widths[separator] > 2 and first <= _MOST_ABOVE <= len(lines) // 2 else 0


def _csv_header(data: bytes, name: str, separator: str) -> list[str]:
    first = next(_csv_rows(data, name, separator), [])
    header = [cell.strip() or f"column_{number}" for number, cell in enumerate(first, start=1)]
    if not header:
        raise InputError("the file is empty: expected a header and rows", file=name)
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        raise InputError(f"the column '{twice}' appears twice in the header", file=name)
    return header


def _regular_csv(data: bytes, header: list[str], height: int, separator: str) -> pl.DataFrame | None:
    """None if polars and the CSV reader disagree about what a row is, as with a stray quote inside a cell."""
    try:
        frame = pl.read_csv(data, separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if frame.shape != (height, len(header)):
        return None
    return frame.rename(dict(zip(frame.columns, header, strict=True)))


def _irregular_csv(data: bytes, name: str, header: list[str], separator: str) -> Table:
    numbers: list[int] = []
    bad: list[BadRow] = []

    def sound_rows() -> Iterator[list[str | None]]:
        for number, row in enumerate(islice(_csv_rows(data, name, separator), 1, None), start=1):
            if len(row) == len(header):
                numbers.append(number)
                yield [cell or None for cell in row]
            elif row:  # an empty line is no row, but it counts, so that the numbers match what an editor shows
                bad.append(BadRow(name, number, None, f"expected {len(header)} fields, got {len(row)}"))

    schema = dict.fromkeys(header, pl.String)
    rows = sound_rows()
    frame = pl.DataFrame(schema=schema)
    while block := list(islice(rows, _BLOCK)):
        frame.vstack(pl.DataFrame(block, schema=schema, orient="row"), in_place=True)
    return Table(name, dict[str, Column](frame.rechunk().to_dict()), numbers, typed=False, bad=tuple(bad))


def _csv_rows(data: bytes, name: str, separator: str, *, strict: bool = True) -> Iterator[list[str]]:
    lines = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    number = 0
    try:
        for row in csv.reader(lines, delimiter=separator, strict=strict):
            yield row
            number += 1
    except csv.Error as problem:
        reason = "a quote is opened and never closed" if "unexpected end" in str(problem) else problem
        raise InputError(f"not readable as CSV: {reason}", file=name, row=max(number, 1)) from problem


@contextmanager
def _long_cells_allowed() -> Iterator[None]:
    """Lift the limit of the CSV reader, which would refuse the whole file; a long cell becomes a bad row later."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_json(text: str, name: str) -> Table:
    """A list of objects, an object that holds one such list, or one object alone."""
    return _json_table(enumerate(_json_records(_parse_json(text, name), name), start=1), name, text, [])


def _read_json_lines(text: str, name: str) -> Table:
    """One object per line. A broken line is a bad row, and empty lines are skipped."""
    bad: list[BadRow] = []
    rows: list[tuple[int, object]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append((number, _parse_json(line)))
        except InputError as broken:
            bad.append(BadRow(name, number, None, broken.message))
    return _json_table(rows, name, text, bad)


def read_record(line: str) -> dict[str, Any]:
    """The fields of one JSON object by the names that its columns would have in a file.

    >>> read_record('{"id": "t1", "card": {"age": 3}, "facts": {"vpn": true}}')
    {'id': 't1', 'card.age': 3, 'facts.vpn': True}
    """
    return fields_of(_parse_json(line), check_unicode=_HALF_CHARACTER.search(line) is not None)


def fields_of(content: object, *, check_unicode: bool = True) -> dict[str, Any]:
    """The fields of a parsed JSON object by the names that its columns would have in a file."""
    record, _ = _flat_record(content, check_unicode=check_unicode)
    fields: dict[str, Any] = {}
    for key, (value,) in _opened_objects([record]):
        if key in fields:
            raise InputError(_TWICE.format(key))
        fields[key] = value
    return fields


def _parse_json(text: str, file: str | None = None) -> object:
    """What a whole file holds, or a single line if there is no file to name."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as broken:
        line = f"line {broken.lineno}, " if file else ""
        problem = f"broken JSON at {line}column {broken.colno}: {broken.msg}"
    except RecursionError:
        problem = "broken JSON: nested too deeply"
    except ValueError:
        problem = "broken JSON: a number with too many digits"
    raise InputError(problem, file=file)


def _json_records(content: object, name: str) -> list[Any]:
    if isinstance(content, list):
        return content
    if not isinstance(content, dict):
        raise InputError(f"expected a list of objects, got {_json_type(content)}", file=name)
    lists = [value for value in content.values() if isinstance(value, list)]
    of_objects = [value for value in lists if value and all(isinstance(one, dict) for one in value)]
    if len(lists) == 1 and (len(content) == 1 or of_objects):
        return lists[0]
    if of_objects:
        raise InputError("expected a list of objects, or an object that holds one list; this holds several", file=name)
    return [content]


def _json_table(rows: Iterable[tuple[int, object]], name: str, text: str, bad: list[BadRow]) -> Table:
    check_unicode = _HALF_CHARACTER.search(text) is not None
    numbers: list[int] = []
    records: list[dict[str, Any]] = []
    metadata: list[dict[str, Any]] = []
    for number, row in rows:
        try:
            record, extra = _flat_record(row, check_unicode=check_unicode)
        except InputError as problem:
            bad.append(BadRow(name, number, problem.field, problem.message))
            continue
        numbers.append(number)
        records.append(record)
        metadata.append(extra)
    columns: dict[str, Column] = {}
    for key, values in _opened_objects(records):
        if key in columns:
            raise InputError(_TWICE.format(key), file=name)
        columns[key] = json_column(key, values)
    return Table(name, columns, numbers, typed=True, bad=tuple(bad), metadata=metadata, open_ended=True)


def _opened_objects(values: Sequence[dict[str, Any] | None], path: tuple[str, ...] = ()) -> Iterator[_Field]:
    """The fields of objects, and the fields of objects inside them under dotted names.

    An object stays, and makes a bad row, if it is too deep or if another row holds something else in its place.
    """
    for key in dict.fromkeys(key for value in values if value for key in value):
        inner = [None if value is None else value.get(key) for value in values]
        present = [cell for cell in inner if cell is not None]
        if present and len(path) < _DEEPEST and all(isinstance(cell, dict) for cell in present):
            yield from _opened_objects(inner, (*path, key))
        else:
            yield ".".join((*path, key)), inner


def _flat_record(row: object, *, check_unicode: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """One flat record and its metadata: ``transaction`` is opened, and ``facts`` become columns."""
    if not isinstance(row, dict):
        raise InputError(f"expected an object, got {_json_type(row)}")
    if check_unicode and not _is_unicode(row):
        raise InputError("expected text that is valid Unicode, got half of a two-part character")
    record = dict(row)
    whole = record.pop("transaction", None) if isinstance(record.get("transaction"), dict) else {}
    inner = {"transaction_id" if key == "id" else key: value for key, value in whole.items()}
    record = inner | record
    metadata = record.pop("metadata", None)
    facts = record.pop("facts", None)
    for field, value in (("metadata", metadata), ("facts", facts)):
        if value is not None and not isinstance(value, dict):
            raise InputError(f"expected an object, got {_json_type(value)}", field=field)
    record |= {FACTS + key: value for key, value in (facts or {}).items()}
    return record, metadata or {}


def _is_unicode(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _json_type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a flag", type(None): "null"}
    return names.get(type(value), "a number")


def decode_text(data: bytes, file: str, *, header: bool, by_line: bool) -> tuple[str, str]:
    """The text of a file without its byte order mark, and what was assumed; "" if it is plain UTF-8.

    >>> decode_text("Händler;Betrag".encode("cp1252"), "export.csv", header=True, by_line=True)
    ('Händler;Betrag', "not UTF-8: read as Windows-1252, as in 'Händler'")
    """
    mark = next((mark for mark in _BYTE_ORDER_MARKS if data.startswith(mark)), b"")
    encoding = _BYTE_ORDER_MARKS[mark] if mark else _unmarked(data[:4096])
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as problem:
        if encoding != "utf-8" or mark or not _is_windows_text(data):
            line = data.count(b"\n", 0, problem.start) + 1
            where = f"at byte {problem.start} (line {line})"
            told = f"not valid {_ENCODINGS.get(encoding, 'UTF-8')} {where}; save it as UTF-8"
            raise InputError(told, file=file, row=line - header if by_line else None) from None
        encoding, text = "cp1252", data.decode("cp1252")
    if encoding == "utf-8":
        return text, ""
    example = _FOREIGN_WORD.search(text)
    return text, f"not UTF-8: read as {_ENCODINGS[encoding]}" + (f", as in {example[0][:40]!r}" if example else "")


def _unmarked(head: bytes) -> str:
    """UTF-16 without its mark has a zero in every other byte where the text is European."""
    zeros = head[0::2].count(0), head[1::2].count(0)
    if max(zeros) > 0.3 * len(head) and min(zeros) == 0:
        return "utf-16-be" if zeros[0] else "utf-16-le"
    return "utf-8"


def _is_windows_text(data: bytes) -> bool:
    """Whether bytes that are not UTF-8 are Windows-1252. UTF-8 with a few broken characters is not, nor is an image."""
    if _NO_TEXT.search(data):
        return False
    readable = len(re.findall(r"[^\x00-\x7f]", data.decode("utf-8", "ignore")))
    return readable <= data.decode("utf-8", "replace").count("\ufffd")


_READERS: dict[str, Callable[[str, str], Table]] = {
    "json": _read_json,
    "jsonl": _read_json_lines,
    "ndjson": _read_json_lines,
    "csv": partial(_read_csv, separators=",;\t|"),
    "tsv": partial(_read_csv, separators="\t"),
    "txt": partial(_read_csv, separators=",;\t|"),
}
"""How each kind of text is read, by the ending of its file."""
_BINARY = {"parquet": read_parquet, "xlsx": read_excel, "xlsm": read_excel, "xls": read_excel}
"""How other files are read."""
