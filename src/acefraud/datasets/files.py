"""From a file, or a stream, to a table; what concerns the whole file is refused here."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from acefraud.datasets.csv_file import read_csv
from acefraud.datasets.json_file import read_json, read_json_lines
from acefraud.datasets.parquet_file import read_parquet
from acefraud.datasets.table import Table
from acefraud.errors import InputError

READERS: dict[str, Callable[[bytes, str], Table]] = {
    "json": read_json,
    "jsonl": read_json_lines,
    "ndjson": read_json_lines,
    "csv": lambda data, name: read_csv(data, name, ","),
    "tsv": lambda data, name: read_csv(data, name, "\t"),
    "parquet": read_parquet,
}
"""How each kind of file is read, by its ending."""


_BLANK = re.compile(rb"[\xef\xbb\xbf \t\r\n]*")


def read_table(source: Path | TextIO, *, name: str | None = None, format: str | None = None) -> Table:
    """Read a file by its ending, or a stream of JSON lines unless another format is said."""
    if isinstance(source, Path):
        label = name or str(source)
        if source.is_dir():
            raise InputError("this is a directory: expected a file", file=label)
        ending = format or source.suffix.lower().lstrip(".")
        _require_known(ending, label)
        data = _file_bytes(source, label)
    else:
        label = name or getattr(source, "name", None) or "input"
        ending = format or "jsonl"
        _require_known(ending, label)
        data = _stream_bytes(source)
    if _BLANK.fullmatch(data):
        raise InputError("the file is empty", file=label)
    if ending != "parquet":
        _require_utf8(data, label, header=ending in ("csv", "tsv"), by_line=ending != "json")
    return READERS[ending](data, label)


def _require_known(ending: str, label: str) -> None:
    if ending not in READERS:
        known = ", ".join(f".{one}" for one in READERS)
        raise InputError(f"unknown kind of file '.{ending}': expected one of {known}", file=label)


def _file_bytes(path: Path, label: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", file=label) from None
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", file=label) from problem


def _stream_bytes(stream: TextIO) -> bytes:
    raw = getattr(stream, "buffer", None)
    content = stream.read() if raw is None else raw.read()
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else bytes(content)


def _require_utf8(data: bytes, label: str, *, header: bool, by_line: bool) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise InputError(
            f"not valid UTF-8 at byte {problem.start} (line {line})",
            file=label,
            row=line - header if by_line else None,
        ) from None
