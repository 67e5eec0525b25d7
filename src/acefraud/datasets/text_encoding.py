"""The encoding of a file of text: UTF-8, UTF-16 or Windows-1252, found by what the bytes hold."""

from __future__ import annotations

import codecs
import re

from acefraud.errors import InputError

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_NAMES = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "cp1252": "Windows-1252"}
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x81\x8d\x8f\x90\x9d]")
"""Control characters, and bytes that Windows-1252 leaves free."""
_FOREIGN_WORD = re.compile(r"[^\s;,|\"]*[^\x00-\x7f][^\s;,|\"]*")


def decode_text(data: bytes, file: str, *, header: bool, by_line: bool) -> tuple[str, str]:
    """The text of a file without its byte order mark, and what was assumed; "" if it is plain UTF-8.

    >>> decode_text("Händler;Betrag".encode("cp1252"), "export.csv", header=True, by_line=True)
    ('Händler;Betrag', "not UTF-8: read as Windows-1252, as in 'Händler'")
    """
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    encoding = _MARKS[mark] if mark else _unmarked(data[:4096])
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as problem:
        if encoding != "utf-8" or mark or not _is_windows_text(data):
            line = data.count(b"\n", 0, problem.start) + 1
            raise InputError(
                f"not valid {_NAMES.get(encoding, 'UTF-8')} at byte {problem.start} (line {line}); save it as UTF-8",
                file=file,
                row=line - header if by_line else None,
            ) from None
        encoding, text = "cp1252", data.decode("cp1252")
    if encoding == "utf-8":
        return text, ""
    example = _FOREIGN_WORD.search(text)
    return text, f"not UTF-8: read as {_NAMES[encoding]}" + (f", as in {example[0][:40]!r}" if example else "")


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
