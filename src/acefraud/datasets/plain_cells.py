"""Cells in plain form: numbers as programs write them, a time of day with its date, marks as yes or no, lists as facts.

Files write ``1.222,52 €``, ``$1,222.52``, ``CHF 1'222.50``, ``(12.50)`` and ``12,5 %``. One column has one reading.
Which of comma and point is the decimal sign is decided by the cells of the column that can only be read one way, in
doubt by the other columns of the file; the mapping keeps it for later files and single rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from acefraud.core.fact_names import words_for
from acefraud.datasets.columns import (
    USUAL_WORDS,
    BadCells,
    distinct_values,
    is_null_word,
    plain_text,
    spread,
    unknown_words,
)
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import FACTS, Column, Remark, Table
from acefraud.datasets.times import read_times
from acefraud.facts.time_facts import DAY
from acefraud.support.timestamps import UNKNOWN

Sign = Literal[",", "."]

_SAMPLE = 2000
_MOSTLY = 0.95
# Two letters stand apart from the digits: "FR76" is the beginning of an IBAN.
_WORDS = [rf"{word}\b" if len(word) < 3 else word for word in USUAL_WORDS["numbers"]["currencies"]]
_CURRENCY = rf"(?i:[a-z]{{0,2}}\p{{Sc}}[a-z]{{0,2}}|(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})\.?)"
_IN_PARENTHESES = (r"^\((.*)\)$", "-$1")
_TIDY = (
    (r"\s+", " "),
    ("[−–]", "-"),
    ("[’‘´`ʼ]", "'"),
    _IN_PARENTHESES,
    (rf"^([-+]?) ?{_CURRENCY} ?([-+]?) ?([\d.,(].*)$", "$1$2$3"),
    (rf"^(.*\d[.,]?-{{0,2}}\)?) ?{_CURRENCY} ?([-+]?)$", "$1$2"),
    _IN_PARENTHESES,
    (" ?%$", ""),
    ("[.,]-{1,2}$", ""),  # no cents, as in "12,-"
    ("^([^-+].*?) ?([-+])$", "$2$1"),
    ("^([-+]) ", "$1"),
)
"""What is changed before a number is only digits, signs between them and a sign in front."""
_WHOLE = r"[1-9]\d{0,2}(?: \d{3})+|\d{1,3}(?:'\d{3})+|\d+"
_NUMBER: dict[Sign, str] = {
    ".": rf"^[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,2}}(?:,\d{{2}})+,\d{{3}}|{_WHOLE})?(?:\.\d*)?(?:[eE][-+]?\d+)?$",
    ",": rf"^[-+]?(?:\d{{1,3}}(?:\.\d{{3}})+|{_WHOLE})?(?:,\d*)?(?:[eE][-+]?\d+)?$",
}
# One, two or more than three digits follow only a decimal sign; three may follow a sign between thousands.
_SURE: dict[Sign, str] = {
    ",": r",(?:\d{1,2}|\d{4,})(?:[eE].*)?$|^[-+]?0?,\d+$|\.\d{3},\d|\.\d{3}\.\d{3}|[ ']\d{3},\d",
    ".": r"\.(?:\d{1,2}|\d{4,})(?:[eE].*)?$|^[-+]?0?\.\d+$|,\d{3}\.\d|,\d{2,3},\d{3}|[ ']\d{3}\.\d",
}
_UNSURE = r"^[-+]?[1-9]\d{0,2}[.,]\d{3}$"


@dataclass(frozen=True, slots=True)
class _Written:
    """What the cells of a column show of how its numbers are written."""

    looks_like_numbers: bool
    is_plain: bool
    """Every cell is a number as programs write it."""
    sure: Sign | None
    unsure: str | None
    """A cell that can be read both ways, where no cell decides."""
    currencies: tuple[str, ...]


def with_plain_numbers(table: Table, mapping: SchemaMapping) -> tuple[Table, SchemaMapping]:
    """The table with numbers as programs write them, and the mapping with the decimal sign that was found.

    Categories, and columns with another role, stay as they are written.

    >>> table = Table("a.csv", {"Betrag": pl.Series(["1.222,52 €", "3 €"])}, range(1, 3), typed=False)
    >>> plain, mapping = with_plain_numbers(table, SchemaMapping())
    >>> plain.columns["Betrag"].to_list(), mapping.decimal, str(plain.remarks[0]).split(";")[0]
    (['1222.52', '3'], ',', "`Betrag` is read as a number: '1.222,52 €' is 1222.52")
    """
    listed = {*mapping.numbers, mapping.amount}
    others = {column for role, column in mapping.roles() if role != "amount"} | {*mapping.categories, *mapping.entities}
    found = {
        name: _look_at(column, semicolons=table.semicolons)
        for name, column in table.columns.items()
        if isinstance(column, pl.Series) and column.dtype == pl.String and name not in others
    }
    found = {name: written for name, written in found.items() if written.looks_like_numbers or name in listed}
    signs: set[Sign] = {written.sure for written in found.values() if written.sure}
    shared = mapping.decimal or (next(iter(signs)) if len(signs) == 1 else None)
    columns, unfit, remarks, commas = dict(table.columns), dict(table.unfit), list(table.remarks), []
    for name, written in found.items():
        decided: Sign | None = "," if name in mapping.decimal_commas else written.sure or shared
        sign = decided or ("," if written.currencies and "." in (written.unsure or "") else ".")
        commas += [name] if sign == "," else []
        example = None
        if not written.is_plain or sign == ",":
            columns[name], bad, example = _plain(table.columns[name], sign)
            unfit |= {name: bad} if bad else {}
        remarks += _remarks(name, written, example, assumed="" if decided else sign)
    table = replace(table, columns=columns, unfit=unfit, remarks=tuple(remarks))
    if "." in signs and commas and mapping.decimal is None:
        return table, mapping.model_copy(update={"decimal_commas": tuple(commas)})
    return table, mapping.model_copy(update={"decimal": mapping.decimal or ("," if commas else None)})


def parse_numbers(text: pl.Series, sign: Sign = ".") -> pl.Series:
    """Texts as floats; null where a text is none.

    >>> parse_numbers(pl.Series(["(1 222,50) EUR", "CHF 5", "1.5"]), ",").to_list()
    [-1222.5, 5.0, None]
    """
    return _plain_texts(text, sign).cast(pl.Float64, strict=False)


def _plain_texts(text: pl.Series, sign: Sign) -> pl.Series:
    """Numbers in plain form, null where the text is none that is written with this decimal sign."""
    text = _tidied(text)
    text = text.set(~text.str.contains(_NUMBER[sign]).fill_null(False), None)
    return text.str.replace_all("[., ']".replace(sign, ""), "").str.replace(sign, ".", literal=True)


def _tidied(text: pl.Series) -> pl.Series:
    text = text.set(~text.str.contains(r"\d").fill_null(False), None).str.strip_chars()  # words cost nothing further
    for pattern, plain in _TIDY:
        text = text.str.replace_all(pattern, plain)
    return text.str.strip_chars()


def _look_at(column: pl.Series, *, semicolons: bool) -> _Written:
    """Beside semicolons, which stand where commas are in numbers, three digits after a comma are decimals too."""
    sample = column[:: max(1, len(column) // _SAMPLE)]
    cells = plain_text(sample.filter(~unknown_words(sample))).drop_nulls()
    is_plain = not cells.cast(pl.Float64, strict=False).has_nulls()
    tidy = cells if is_plain else _tidied(cells)
    fits: dict[Sign, pl.Series] = {sign: tidy.str.contains(pattern) for sign, pattern in _NUMBER.items()}
    counts: dict[Sign, int] = {sign: int((fits[sign] & tidy.str.contains(_SURE[sign])).sum()) for sign in _NUMBER}
    if semicolons and not any(counts.values()):
        counts[","] = int(tidy.str.contains(r"\d,\d").sum())
    unsure, whole = tidy.filter(tidy.str.contains(_UNSURE)), tidy.filter(tidy.str.contains(r"^[-+]?\d+$"))
    if len(unsure) >= 5 and not any(counts.values()) and len(whole) and not whole.str.contains(r"\d{4}").any():
        # No thousand is without the sign, and no decimals are fewer than three.
        counts["," if "." in unsure[0] else "."] = 1
    sure = max(counts, key=lambda sign: counts[sign])
    # Groups of digits in every cell are ids, such as the numbers of phones, unless something says that they are sums.
    is_id = bool(tidy.str.contains(r"^\d+( \d+)+$").all()) and bool((tidy == cells).all())
    found = cells.str.extract(rf"({_CURRENCY})").drop_nulls() if not is_plain else cells.clear()
    signs = found.str.strip_chars(" .").str.to_uppercase()
    currencies = {USUAL_WORDS["numbers"].get(sign, (sign,))[0] for sign in signs}
    return _Written(
        looks_like_numbers=int((fits[","] | fits["."]).sum()) >= _MOSTLY * len(cells) and not is_id,
        is_plain=is_plain,
        sure=sure if counts[sure] else None,
        unsure=None if counts[sure] or unsure.is_empty() else unsure[0],
        currencies=tuple(sorted(currencies)),
    )


def _plain(column: Any, sign: Sign) -> tuple[pl.Series, BadCells, tuple[str, str] | None]:
    """The column in plain form, the cells that do not fit, and the cell that changes most with what it is read as."""
    cells, places = distinct_values(column)
    plain = _plain_texts(cells, sign)
    percent = cells.str.contains("%").fill_null(False)
    if 2 * percent.filter(plain.is_not_null()).sum() not in (0, 2 * plain.is_not_null().sum()):
        plain = plain.set(percent != (2 * percent.sum() > len(percent)), None)
    texts = cells.to_list()
    changed = [(text, new) for text, new in zip(texts, plain, strict=True) if new is not None and text.strip() != new]
    example = max(changed, key=lambda pair: len(pair[0]) - len(pair[1]), default=None)
    like = f" like {example[0].strip()!r}" if example else ""
    wrong = [
        (place, f"expected a number{like}, got {text.strip()[:60]!r}")
        for place, (text, new) in enumerate(zip(texts, plain, strict=True))
        if new is None and text is not None and text.strip() and not is_null_word(text.strip())
    ]
    plain = plain.zip_with(plain.is_not_null(), cells)
    return plain.gather(places).alias(column.name), spread(wrong, places), example


def _remarks(name: str, written: _Written, example: tuple[str, str] | None, *, assumed: str) -> Iterator[Remark]:
    if example:
        told = f"{' '.join(example[0].split())!r} is {example[1]}"
        yield Remark(name, "is read as a number", told, f'categories = ["{name}"]')
    if written.unsure and assumed:
        told = f"{written.unsure!r} could be read both ways; {assumed!r} is taken as its decimal sign"
        yield Remark(name, "is read as a number", told, f'decimal = "{"," if assumed == "." else "."}"')
    if len(written.currencies) > 1:
        yield Remark(name, "is read as a number", f"the currencies are several: {', '.join(written.currencies[:5])}")


MARKS = ("x", "✓", "✔")
_CLOCK = r"(?i)^(?:[01]?\d|2[0-3])(?::| ?h ?)[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?: ?[ap]\.? ?m\.?)?$"


def holds_marks(column: Column) -> bool:
    """Whether a column holds one mark and empty cells, and nothing else.

    >>> holds_marks(pl.Series(["X", None, ""])), holds_marks(pl.Series(["x", "x"])), holds_marks(pl.Series(["x", "y"]))
    (True, False, False)
    """
    if not isinstance(column, pl.Series) or column.dtype != pl.String:
        return False
    words = plain_text(column).str.to_lowercase().unique()
    return len(words) == 2 and words.has_nulls() and words.is_in(MARKS).any()


def holds_clocks(column: Column) -> bool:
    """Whether nearly all cells are times of day."""
    if not isinstance(column, pl.Series) or column.dtype not in (pl.String, pl.Time):
        return False
    cells = plain_text(column).drop_nulls()
    return len(cells) > 0 and int(cells.str.contains(_CLOCK).sum()) >= 0.95 * len(cells)


def holds_days(column: Column) -> bool:
    """Whether no time in a column has a time of day."""
    times = read_times(column).values
    return not (times[times != UNKNOWN] % DAY).any()


def with_whole_cells(table: Table, mapping: SchemaMapping, *, done: SchemaMapping | None = None) -> Table:
    """The table with the time of day beside its date, and yes or no for marks; not what was ``done`` before.

    >>> table = Table("a.csv", {"Tag": pl.Series(["3.4.25"]), "Zeit": pl.Series(["9:05"])}, range(1, 2), typed=False)
    >>> with_whole_cells(table, SchemaMapping(time="Tag", clock="Zeit")).columns["Tag"].to_list()
    ['3.4.25 9:05']
    """
    done = done or SchemaMapping()
    columns, unfit, remarks = dict(table.columns), dict(table.unfit), list(table.remarks)
    for name in (marked for marked in mapping.marked if marked in columns and marked not in done.marked):
        cells = plain_text(columns[name])
        columns[name] = cells.str.replace(f"(?i)^(?:{'|'.join(MARKS)})$", "yes").fill_null("no")
        example = f"{cells.drop_nulls().first()!r} is yes, an empty cell is no"
        remarks.append(Remark(name, "is read as yes or no", example, f'categories = ["{name}"]'))
    if mapping.clock and mapping.time and not done.clock and {mapping.clock, mapping.time} <= columns.keys():
        clocks = (texts := plain_text(columns[mapping.clock])).set(unknown_words(texts), None)
        wrong = (~clocks.str.contains(_CLOCK)).fill_null(False).arg_true().to_list()
        unfit[mapping.clock] = [(row, f"expected a time of day like 14:05, got {clocks[row][:60]!r}") for row in wrong]
        days = plain_text(columns[mapping.time]).str.replace(r"[ T]00:00[:.0]*$", "")
        columns[mapping.time] = (days + " " + clocks).alias(mapping.time)
    return replace(table, columns=columns, unfit=unfit, remarks=tuple(remarks))


_LONGEST_LIST = 10
_LONGEST_WORD = 40
_MOST_WORDS = 20


def with_lists_as_facts(table: Table, mapping: SchemaMapping) -> Table:
    """The table with a length, and flags for words, in place of each column of lists.

    The words are those that the mapping names, so that a later file has the same facts; otherwise all words of the
    column if its lists are short. A column that the mapping names, or that is named like a known fact, stays.

    >>> table = Table("a.json", {"tags": [["gift", "new"], [], None]}, range(1, 4), typed=True)
    >>> {name: list(column) for name, column in with_lists_as_facts(table, SchemaMapping()).columns.items()}
    {'tags.length': [2, 0, None], 'tags.gift': [True, False, None], 'tags.new': [True, False, None]}
    """
    named = {column for _, column in mapping.named_columns()}
    columns: dict[str, Column] = {}
    for name, column in table.columns.items():
        if name in named or words_for(name.removeprefix(FACTS).lower()) or not _holds_lists(column):
            columns[name] = column
            continue
        columns[f"{name}.length"] = pl.Series([None if cell is None else len(cell) for cell in column], dtype=pl.Int64)
        held = [None if cell is None else {item.strip() for item in cell if isinstance(item, str)} for cell in column]
        named_words = [flag.removeprefix(f"{name}.") for flag in mapping.flags if flag.startswith(f"{name}.")]
        for word in named_words or _words_in(column):
            has_word = [None if words is None else word in words for words in held]
            columns[f"{name}.{word}"] = pl.Series(has_word, dtype=pl.Boolean)
    return replace(table, columns=columns)


def _holds_lists(column: Column) -> bool:
    if not isinstance(column, list):
        return False
    present = [cell for cell in column if cell is not None]
    return bool(present) and all(isinstance(cell, list) for cell in present)


def _words_in(column: Iterable[list[Any] | None]) -> list[str]:
    """The words of a column, or none if it holds anything else, long lists or too many words."""
    words: dict[str, None] = {}
    for cell in column:
        for item in cell or ():
            if not isinstance(item, str) or not 0 < len(item.strip()) <= _LONGEST_WORD:
                return []
            words[item.strip()] = None
        if len(cell or ()) > _LONGEST_LIST or len(words) > _MOST_WORDS:
            return []
    return sorted(words)
