"""Sources as tables: CSV, Excel, JSON, JSON lines, Parquet, and data frames of any library that narwhals reads.

Problems with the whole file are raised here.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import narwhals as nw
import numpy as np
import polars as pl

from acefraud.datasets.columns import json_column
from acefraud.datasets.records import HALF_CHARACTER, flat_record, json_type, opened_records, parse_json
from acefraud.datasets.table import FACTS, BadRow, Column, Table
from acefraud.errors import InputError
from acefraud.support.arguments import nearest_file

FRAME = "frame"
"""What a frame is called in messages, since it has no file name."""
_NUMPY_KINDS = "bifuMm"
"""Kinds of NumPy columns that polars reads without a copy of every cell."""
_BLANK = re.compile(rb"[\xef\xbb\xbf \t\r\n]*")
_EXCEL = b"PK\x03\x04"
"""How a workbook begins, also one that was named ``.csv``."""
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
_MOST_ABOVE = 8
"""Lines above a header, which are looked for only in files of at least twice as many lines."""
_BLOCK = 50_000
"""Rows of a CSV file that are held as Python objects at once."""
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_ENCODINGS = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "cp1252": "Windows-1252"}
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x81\x8d\x8f\x90\x9d]")
"""Control characters, and bytes that Windows-1252 leaves free."""
_FOREIGN_WORD = re.compile(r"[^\s;,|\"]*[^\x00-\x7f][^\s;,|\"]*")


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
        known = ", ".join(f".{kind}" for kind in (*_READERS, *_BINARY))
        raise InputError(f"unknown kind of file '.{ending}': expected one of {known}", file=label)
    data = _bytes_of(source, label)
    if _BLANK.fullmatch(data):
        raise InputError("the file is empty", file=label)
    if ending in _BINARY or data.startswith(_EXCEL):
        return _BINARY.get(ending, read_excel)(data, label)
    text, assumed = decode_text(data, label, header="json" not in ending, by_line=ending != "json")
    table = _READERS[ending](text, label)
    return replace(table, remarks=(assumed, *table.remarks)) if assumed else table


def _bytes_of(source: Path | TextIO, label: str) -> bytes:
    if not isinstance(source, Path):
        content = getattr(source, "buffer", source).read()
        return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else bytes(content)
    try:
        return source.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no such file{nearest_file(source)}", file=label) from None
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", file=label) from problem


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
        separator = max(separators, key=lambda sign: len(next(_csv_rows(data, name, sign, strict=False), [])))
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
    cells = {sign: [next(csv.reader([line], delimiter=sign), []) for line in lines] for sign in separators}
    widths = {sign: sorted(map(len, rows))[len(lines) // 2] for sign, rows in cells.items()}
    separator = max(separators, key=lambda sign: widths[sign])
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
    return _json_table(enumerate(_json_records(parse_json(text, name), name), start=1), name, text, [])


def _read_json_lines(text: str, name: str) -> Table:
    """One object per line. A broken line is a bad row, and empty lines are skipped."""
    bad: list[BadRow] = []
    rows: list[tuple[int, object]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append((number, parse_json(line)))
        except InputError as broken:
            bad.append(BadRow(name, number, None, broken.message))
    return _json_table(rows, name, text, bad)


def _json_records(content: object, name: str) -> list[Any]:
    if isinstance(content, list):
        return content
    if not isinstance(content, dict):
        raise InputError(f"expected a list of objects, got {json_type(content)}", file=name)
    lists = [value for value in content.values() if isinstance(value, list)]
    of_objects = [value for value in lists if value and all(isinstance(row, dict) for row in value)]
    if len(lists) == 1 and (len(content) == 1 or of_objects):
        return lists[0]
    if of_objects:
        raise InputError("expected a list of objects, or an object that holds one list; this holds several", file=name)
    return [content]


def _json_table(rows: Iterable[tuple[int, object]], name: str, text: str, bad: list[BadRow]) -> Table:
    check_unicode = HALF_CHARACTER.search(text) is not None
    numbers: list[int] = []
    records: list[dict[str, Any]] = []
    metadata: list[dict[str, Any]] = []
    for number, row in rows:
        try:
            record, extra = flat_record(row, check_unicode=check_unicode)
        except InputError as problem:
            bad.append(BadRow(name, number, problem.field, problem.message))
            continue
        numbers.append(number)
        records.append(record)
        metadata.append(extra)
    columns = {key: json_column(key, cells) for key, cells in opened_records(records, name).items()}
    return Table(name, columns, numbers, typed=True, bad=tuple(bad), metadata=metadata, open_ended=True)


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


def frame_table(frame: Any, name: str = FRAME) -> Table:
    """The columns of a data frame. Numbers are shared with it, not copied, where their type allows it.

    A lazy frame is collected. Texts are read as in a CSV file, and NaN is an unknown number, as it is to pandas.

    >>> table = frame_table(pl.DataFrame({"amount": [5.0, None], "country": ["FR", "DE"]}))
    >>> list(table.columns), table.height
    (['amount', 'country'], 2)
    """
    try:
        lazy_or_eager = nw.from_native(frame)
        given = lazy_or_eager.collect("polars") if isinstance(lazy_or_eager, nw.LazyFrame) else lazy_or_eager
        names = [str(column) for column in given.columns]
    except nw.exceptions.DuplicateError:
        raise InputError("a column appears twice: expected names that differ", file=name) from None
    columns, metadata = _typed_columns(dict(zip(names, _frame_columns(given), strict=True)))
    rows = range(1, len(given) + 1)
    return Table(name, columns, rows, typed=False, metadata=metadata, is_frame=True)


def _frame_columns(frame: nw.DataFrame[Any]) -> Iterator[Column]:
    for column in frame.iter_columns():
        native = column.to_native()
        if not nw.dependencies.is_pandas_like_series(native):
            yield column.to_polars()
        elif isinstance(native.dtype, np.dtype) and native.dtype.kind in _NUMPY_KINDS:
            yield _from_numpy(native.to_numpy())
        elif native.dtype == object:
            yield _from_objects(column.name, native)
        else:
            yield _from_extension(column)


def _from_numpy(cells: Any) -> pl.Series:
    kind = cells.dtype.kind
    series = pl.Series(cells.astype(f"{kind}8[us]") if kind in "Mm" else cells)
    return _whole_numbers(series) if kind == "f" and series.is_nan().any() else series


def _from_extension(column: nw.Series[Any]) -> Column:
    """Texts, categories, masked numbers, times with a zone. Without pyarrow they are read cell by cell."""
    native = column.to_native()
    categories = getattr(native.dtype, "categories", native)  # of which `pd.cut` makes intervals
    if str(getattr(categories, "dtype", "")).startswith(("interval", "period")):
        return pl.Series([None if missing else str(cell) for cell, missing in zip(native, native.isna(), strict=True)])
    try:
        return column.to_polars()
    except ImportError:
        return _from_objects(column.name, native)


def _from_objects(name: str, series: Any) -> Column:
    objects = series.astype(object).where(series.notna(), None).to_list()
    cells = [cell.tolist() if isinstance(cell, np.generic | np.ndarray) else cell for cell in objects]
    kinds = {type(cell) for cell in cells} - {type(None)}
    if len(kinds) == 1 and issubclass(kinds.pop(), date | Decimal):
        return pl.Series(cells)
    return json_column(name, cells)


def read_parquet(data: bytes, name: str) -> Table:
    """The table in a Parquet file."""
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise InputError(f"not readable as Parquet: {str(problem).splitlines()[0]}", file=name) from problem
    columns, metadata = _typed_columns(frame.to_dict())
    return Table(name, columns, range(1, frame.height + 1), typed=True, metadata=metadata)


def read_excel(data: bytes, name: str) -> Table:
    """The first sheet of a workbook. Its texts are read as those of a CSV file."""
    try:
        import fastexcel  # noqa: PLC0415  # an extra
    except ImportError:
        how = "pip install 'acefraud[xlsx]', or save it as CSV (UTF-8)"
        raise InputError(f"a workbook of Excel needs fastexcel: {how}", file=name) from None
    try:
        book = fastexcel.read_excel(data)
        frame = book.load_sheet(0, schema_sample_rows=None).to_polars()
    except fastexcel.FastExcelError as problem:
        raise InputError(f"not readable as a workbook of Excel: {str(problem).splitlines()[0]}", file=name) from problem
    used, *others = book.sheet_names
    remarks = (f"only the first sheet is read, {used!r}; the others are: {', '.join(others)}",) if others else ()
    columns, _ = _typed_columns({column.strip(): _whole_numbers(cells) for column, cells in frame.to_dict().items()})
    return Table(name, columns, range(1, frame.height + 1), typed=False, remarks=remarks)


def _whole_numbers(series: pl.Series) -> pl.Series:
    """A column of floats as whole numbers where all are: Excel knows no others, and pandas none with empty cells."""
    if not series.dtype.is_float():
        return series
    known = series.fill_nan(None)
    is_whole = bool((known == known.round()).all()) and float(known.abs().max() or 0) < 2**53  # type: ignore[arg-type]
    return known.cast(pl.Int64) if is_whole else series


def _typed_columns(given: Mapping[str, Column]) -> tuple[dict[str, Column], list[dict[str, Any]]]:
    """Columns that keep their types, and the metadata of each row.

    A ``facts`` struct becomes columns and a ``metadata`` struct is kept apart. Other structs are opened.
    """
    columns: dict[str, Column] = {}
    metadata: list[dict[str, Any]] = []
    for name, column in given.items():
        if isinstance(column, list):
            columns[name] = column
        elif name == "metadata" and column.dtype == pl.Struct:
            metadata = [cell or {} for cell in column.to_list()]
        elif name == "facts" and column.dtype == pl.Struct:
            facts = column.struct.unnest()
            columns |= {FACTS + fact: _simple_type(facts[fact]) for fact in facts.columns}
        else:
            columns |= _opened_struct(name, _simple_type(column))
    return columns, metadata


def _opened_struct(name: str, series: pl.Series) -> dict[str, Column]:
    """A column, or the fields of a struct under dotted names; lists as Python objects."""
    if series.dtype != pl.Struct:
        return {name: series.to_list() if series.dtype.is_nested() or series.dtype == pl.Object else series}
    opened: dict[str, Column] = {}
    for field in series.struct.fields:
        opened |= _opened_struct(f"{name}.{field}", _simple_type(series.struct.field(field)))
    return opened


def _simple_type(series: pl.Series) -> pl.Series:
    """Categories as text, and durations as seconds."""
    if series.dtype in (pl.Categorical, pl.Enum, pl.Null):
        return series.cast(pl.String)
    return series.dt.total_seconds() if series.dtype == pl.Duration else series


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
