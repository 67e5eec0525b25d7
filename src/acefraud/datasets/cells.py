"""Columns of a table become facts: put into plain form, found to hold numbers, flags or categories, and read whole.

Files write ``1.222,52 €``, ``$1,222.52``, ``CHF 1'222.50``, ``(12.50)`` and ``12,5 %``. One column has one reading.
Which of comma and point is the decimal sign is decided by the cells of the column that can only be read one way, in
doubt by the other columns of the file; the mapping keeps it for later files and single rows.

Whether ``12,5x`` is a category or a typing error depends on its neighbours. So the kind is settled per column, and a
cell that does not fit the kind of its column is an error with a place, never a silent category.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from acefraud.core.fact_names import Kind, words_for
from acefraud.core.table import Categories, Columns, coded, columns_of
from acefraud.core.transaction import MAX_TEXT, MAX_WORD, FactValue
from acefraud.datasets.columns import (
    UNKNOWN_WORDS,
    USUAL_WORDS,
    BadCells,
    distinct_cells,
    distinct_values,
    folded,
    is_null_word,
    plain_text,
    spread,
    thinned,
    unknown_words,
)
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import FACTS, Column, Remark, Table

NO_CONTENT = "expected at least one fact or a text"
MAX_ID = 200
_FEW = 20
"""With fewer rows than this, the name of a column decides its kind rather than its cells."""
_MOSTLY = 0.95
"""Share of the non-empty cells that settles what a column holds."""
_WORDED_FLAGS = {folded(word): key == "yes" for key in ("yes", "no") for word in USUAL_WORDS["flags"][key]}
_LETTERS = USUAL_WORDS["flags"]["letters"]
FLAGS = {pair[0]: True for pair in _LETTERS} | {pair[1]: False for pair in _LETTERS} | _WORDED_FLAGS
FLAGS |= {"1": True, "0": False, "1.0": True, "0.0": False}
_SURELY_UNKNOWN = UNKNOWN_WORDS - {"none"}
"""Words that are no answer; "none" is more often one ("past claims: none"), but "None" is Python's empty cell."""
_NUMBER = "expected a number"
_FINITE = "expected a finite number or an empty cell"
_FLAG = "expected a flag (true/false, yes/no or 1/0)"
_Cells = tuple[list[FactValue | None], BadCells]
"""A column read as facts, None where a fact is not known, and the cells that do not fit."""
Sign = Literal[",", "."]
# Two letters stand apart from the digits: "FR76" is the beginning of an IBAN.
_CURRENCY_WORDS = [rf"{word}\b" if len(word) < 3 else word for word in USUAL_WORDS["numbers"]["currencies"]]
_CURRENCY = rf"(?i:[a-z]{{0,2}}\p{{Sc}}[a-z]{{0,2}}|(?:{'|'.join(sorted(_CURRENCY_WORDS, key=len, reverse=True))})\.?)"
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
_WRITTEN: dict[Sign, str] = {
    ".": rf"^[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,2}}(?:,\d{{2}})+,\d{{3}}|{_WHOLE})?(?:\.\d*)?(?:[eE][-+]?\d+)?$",
    ",": rf"^[-+]?(?:\d{{1,3}}(?:\.\d{{3}})+|{_WHOLE})?(?:,\d*)?(?:[eE][-+]?\d+)?$",
}
# One, two or more than three digits follow only a decimal sign; three may follow a sign between thousands.
_SURELY_WRITTEN: dict[Sign, str] = {
    ",": r",(?:\d{1,2}|\d{4,})(?:[eE].*)?$|^[-+]?0?,\d+$|\.\d{3},\d|\.\d{3}\.\d{3}|[ ']\d{3},\d",
    ".": r"\.(?:\d{1,2}|\d{4,})(?:[eE].*)?$|^[-+]?0?\.\d+$|,\d{3}\.\d|,\d{2,3},\d{3}|[ ']\d{3}\.\d",
}
_UNSURE = r"^[-+]?[1-9]\d{0,2}[.,]\d{3}$"
MARKS = ("x", "✓", "✔")
_CLOCK = r"(?i)^(?:[01]?\d|2[0-3])(?::| ?h ?)[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?: ?[ap]\.? ?m\.?)?$"
_LONGEST_LIST = 10
_LONGEST_WORD = 40
_MOST_WORDS = 20


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
            columns[name], bad, example = _plain_column(table.columns[name], sign)
            unfit |= {name: bad} if bad else {}
        remarks += _number_remarks(name, written, example, assumed="" if decided else sign)
    table = replace(table, columns=columns, unfit=unfit, remarks=tuple(remarks))
    if "." in signs and commas and mapping.decimal is None:
        return table, mapping.model_copy(update={"decimal_commas": tuple(commas)})
    return table, mapping.model_copy(update={"decimal": mapping.decimal or ("," if commas else None)})


def _plain_texts(text: pl.Series, sign: Sign) -> pl.Series:
    """Numbers in plain form, null where the text is none that is written with this decimal sign.

    >>> _plain_texts(pl.Series(["(1 222,50) EUR", "CHF 5", "1.5"]), ",").to_list()
    ['-1222.50', '5', None]
    """
    text = _tidied(text)
    text = text.set(~text.str.contains(_WRITTEN[sign]).fill_null(False), None)
    return text.str.replace_all("[., ']".replace(sign, ""), "").str.replace(sign, ".", literal=True)


def _tidied(text: pl.Series) -> pl.Series:
    text = text.set(~text.str.contains(r"\d").fill_null(False), None).str.strip_chars()  # words cost nothing further
    for pattern, plain in _TIDY:
        text = text.str.replace_all(pattern, plain)
    return text.str.strip_chars()


def _look_at(column: pl.Series, *, semicolons: bool) -> _Written:
    """Beside semicolons, which stand where commas are in numbers, three digits after a comma are decimals too."""
    sample = pl.Series(thinned(column))
    cells = plain_text(sample.filter(~unknown_words(sample))).drop_nulls()
    is_plain = not cells.cast(pl.Float64, strict=False).has_nulls()
    tidy = cells if is_plain else _tidied(cells)
    fits: dict[Sign, pl.Series] = {sign: tidy.str.contains(pattern) for sign, pattern in _WRITTEN.items()}
    counts: dict[Sign, int] = {
        sign: int((fits[sign] & tidy.str.contains(_SURELY_WRITTEN[sign])).sum()) for sign in _WRITTEN
    }
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


def _plain_column(column: Any, sign: Sign) -> tuple[pl.Series, BadCells, tuple[str, str] | None]:
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
        (at, f"expected a number{like}, got {text.strip()[:60]!r}")
        for at, (text, new) in enumerate(zip(texts, plain, strict=True))
        if new is None and text is not None and text.strip() and not is_null_word(text.strip())
    ]
    plain = plain.zip_with(plain.is_not_null(), cells)
    return plain.gather(places).alias(column.name), spread(wrong, places), example


def _number_remarks(name: str, written: _Written, example: tuple[str, str] | None, *, assumed: str) -> Iterator[Remark]:
    if example:
        told = f"{' '.join(example[0].split())!r} is {example[1]}"
        yield Remark(name, "is read as a number", told, f'categories = ["{name}"]')
    if written.unsure and assumed:
        told = f"{written.unsure!r} could be read both ways; {assumed!r} is taken as its decimal sign"
        yield Remark(name, "is read as a number", told, f'decimal = "{"," if assumed == "." else "."}"')
    if len(written.currencies) > 1:
        yield Remark(name, "is read as a number", f"the currencies are several: {', '.join(written.currencies[:5])}")


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
        present = [cell for cell in column if cell is not None] if isinstance(column, list) else []
        holds_lists = present and all(isinstance(cell, list) for cell in present)
        if name in named or words_for(name.removeprefix(FACTS).lower()) or not holds_lists:
            columns[name] = column
            continue
        columns[f"{name}.length"] = pl.Series([None if cell is None else len(cell) for cell in column], dtype=pl.Int64)
        held = [None if cell is None else {item.strip() for item in cell if isinstance(item, str)} for cell in column]
        named_words = [flag.removeprefix(f"{name}.") for flag in mapping.flags if flag.startswith(f"{name}.")]
        for word in named_words or _words_in(column):
            has_word = [None if words is None else word in words for words in held]
            columns[f"{name}.{word}"] = pl.Series(has_word, dtype=pl.Boolean)
    return replace(table, columns=columns)


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


def find_kind(column: Column, fact: str, *, typed: bool) -> Kind | None:
    """What a column holds; None if a JSON column mixes types and each cell keeps its own.

    A fact that the engine knows by name keeps its kind if at least half of the cells can be read so: ``1`` for a VPN
    is a flag.

    >>> find_kind(pl.Series(["1", "0"]), "vpn", typed=False), find_kind(pl.Series(["1", "0"]), "V1", typed=False)
    ('flag', 'number')
    """
    words = words_for(fact)
    few = len(column) < _FEW and words is not None and words.kind != "category"
    if words is not None and (few or suits(column, words.kind)):
        return words.kind
    if isinstance(column, list):
        return _kind_of_mixed(column)
    if column.dtype.is_nested():
        return None
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return "flag" if column.dtype == pl.Boolean else "number"
    if not typed:
        return _kind_of_texts(column)
    texts = column.cast(pl.String).drop_nulls()
    return "flag" if texts.n_unique() > 1 and holds_flags(texts) else "category"  # one word alone says little


def suits(column: Column, kind: Kind) -> bool:
    """Whether at least half of the non-empty cells can be read as this kind."""
    if kind == "category":
        return isinstance(column, pl.Series) and not column.dtype.is_nested()
    if kind == "number" and isinstance(column, pl.Series) and column.dtype.is_numeric():
        return column.null_count() < len(column)
    distinct, places = distinct_cells(column)
    values, bad = _read_cells(distinct, kind, typed=False)
    rows = np.bincount(places, minlength=len(distinct))
    present = int(rows[[value is not None for value in values]].sum())
    return present > 0 and present >= 0.5 * (present + int(rows[[cell for cell, _ in bad]].sum()))


def _kind_of_texts(column: pl.Series) -> Kind:
    text = column.cast(pl.String).str.strip_chars()
    unknown = text.str.to_lowercase().is_in(["", *_SURELY_UNKNOWN]) | (text == "None")
    cells = text.filter(text.is_not_null() & ~unknown)
    if cells.is_empty():
        return "category"
    if holds_flags(cells):
        return "flag"
    numbers = cells.cast(pl.Float64, strict=False)  # `with_plain_numbers` has made them plain
    if numbers.is_finite().sum() and numbers.is_not_null().sum() >= _MOSTLY * len(cells):
        return "number"
    return "category"


def holds_flags(cells: pl.Series) -> bool:
    """Whether cells say yes and no in one of the languages that are known."""
    words = set(map(folded, cells.head(10_000).unique().to_list()))
    if len(words) > 1 and any(words <= set(pair) for pair in _LETTERS):  # a lone "F" is as likely a sex as a flag
        return True
    flags = [word for word in cells.unique() if folded(word) in _WORDED_FLAGS] if words & _WORDED_FLAGS.keys() else []
    return bool(flags) and int(cells.is_in(flags).sum()) >= _MOSTLY * len(cells)


def _kind_of_mixed(column: list[Any]) -> Kind | None:
    nothing = (None, "", *_SURELY_UNKNOWN)
    present = [cell for cell in column if (cell.strip().lower() if isinstance(cell, str) else cell) not in nothing]
    flags = sum(isinstance(value, bool) for value in present)
    numbers = sum(isinstance(value, int | float) for value in present) - flags
    if present and numbers >= _MOSTLY * len(present):
        return "number"
    return "flag" if present and flags >= _MOSTLY * len(present) else None


def read_fact(
    fact: str, column: Column, kind: Kind | None, *, typed: bool, nan_is_unknown: bool = False
) -> tuple[Columns, BadCells]:
    """One fact in the kind of its column, and the cells that do not fit.

    >>> facts, bad = read_fact("amount", pl.Series(["5", "", "5", "x"]), "number", typed=False)
    >>> facts.numbers["amount"].tolist(), bad
    ([5.0, nan, 5.0, nan], [(3, "expected a number, got 'x'")])
    """
    if kind == "number" and isinstance(column, pl.Series) and column.dtype.is_numeric():
        numbers, bad = _finite(column.cast(pl.Float64), column, nan_is_unknown=nan_is_unknown)
        return Columns({fact: numbers.fill_null(np.nan).to_numpy()}), bad
    distinct, places = distinct_cells(column)
    values, bad = _read_cells(distinct, kind, typed=typed)
    return columns_of([(fact, values)]).take(places), spread([*bad, *_too_long(values)], places)


def read_words(column: Column) -> tuple[Categories, BadCells]:
    """A column of plain words, such as who took part, and the cells that are too long for one."""
    distinct, places = distinct_values(plain_text(column))
    texts = distinct.to_list()
    codes, words = coded(texts)
    return (codes[places], words), spread(_too_long(texts), places)


def _too_long(values: Sequence[FactValue | None]) -> BadCells:
    return [(at, problem) for at, value in enumerate(values) if (problem := too_long(value))]


def too_long(value: FactValue | None) -> str | None:
    """What is wrong with a word that is too long; None if it is not."""
    if not isinstance(value, str) or len(value) <= MAX_WORD:
        return None
    return f"expected at most {MAX_WORD:,} characters, got {len(value):,}"


def _read_cells(column: Column, kind: Kind | None, *, typed: bool) -> _Cells:
    if isinstance(column, list) or column.dtype.is_nested() or column.dtype == pl.Binary:
        return _read_mixed(list(column), kind)
    if kind == "number":
        return _read_numbers(column)
    return _read_flags(column) if kind == "flag" else (_read_categories(column, typed=typed), [])


def _as_floats(text: pl.Series) -> pl.Series:
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count():
        return numbers
    return numbers.zip_with(numbers.is_not_null(), _plain_texts(text, ".").cast(pl.Float64, strict=False))


def _finite(numbers: pl.Series, column: pl.Series, *, nan_is_unknown: bool = False) -> tuple[pl.Series, BadCells]:
    """The numbers that are finite, and the cells of ``column`` that are not. NaN may stand for an empty cell."""
    wrong = numbers.is_infinite() if nan_is_unknown else numbers.is_finite().not_()
    wrong = wrong.fill_null(False)
    bad = [(row, f"{_FINITE}, got {str(column[row]).strip()[:60]!r}") for row in wrong.arg_true().to_list()]
    return (numbers.set(wrong, None) if bad else numbers), bad


def _read_numbers(column: pl.Series) -> _Cells:
    text = column.cast(pl.String).str.strip_chars()
    text = text.set(text.str.to_lowercase().is_in(["", *UNKNOWN_WORDS]).fill_null(False), None)
    parsed = _as_floats(text)
    numbers, bad = _finite(parsed, column)
    wrong = (parsed.is_null() & text.is_not_null()).arg_true().to_list()
    return numbers.to_list(), sorted([*bad, *((row, f"{_NUMBER}, got {text[row][:60]!r}") for row in wrong)])


def _read_flags(column: pl.Series) -> _Cells:
    if column.dtype != pl.Boolean:
        column = (column.fill_nan(None) if column.dtype.is_float() else column).cast(pl.String)
    return _read_mixed(column.to_list(), "flag")


def _read_categories(column: pl.Series, *, typed: bool) -> list[FactValue | None]:
    """``none`` is a category like another ("past claims: none"), ``null`` in a file of text is an empty cell."""
    text = plain_text(column)
    return (text if typed else text.set((text.str.to_lowercase() == "null").fill_null(False), None)).to_list()


def _read_mixed(column: list[Any], kind: Kind | None) -> _Cells:
    values: list[FactValue | None] = []
    bad: BadCells = []
    for row, value in enumerate(column):
        try:
            values.append(read_cell(value, kind))
        except ValueError as unfit:
            values.append(None)
            bad.append((row, str(unfit)))
    return values, bad


def kind_of_cell(value: Any, fact: str) -> Kind | None:
    """What `find_kind` finds for a typed column with this one cell; None if the cell keeps its own kind."""
    words = words_for(fact)
    if words is None or (words.kind == "category" and not isinstance(value, str | bool | int | float)):
        return None
    return words.kind


def read_cell(value: Any, kind: Kind | None) -> FactValue | None:
    """One cell of a column of mixed types. Without a kind, it keeps its own."""
    text = str(value).strip()
    if value is None or text == "":
        return None
    if not isinstance(value, str | bool | int | float):
        shape = {"dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)
        raise ValueError(f"expected a number, a flag or text, got {shape}")
    if kind == "number" or (kind is None and not isinstance(value, str | bool)):
        return _read_number(value, text)
    if kind == "flag":
        if isinstance(value, str) and is_null_word(text):
            return None
        if folded(text) not in FLAGS:
            raise ValueError(f"{_FLAG}, got {text[:60]!r}")
        return FLAGS[folded(text)]
    if kind == "category":
        return text.lower() if isinstance(value, bool) else re.sub(r"\.0$", "", text)
    return text if isinstance(value, str) else bool(value)


def _read_number(value: str | bool | float, text: str) -> float | None:
    if isinstance(value, str) and is_null_word(text):
        return None
    try:
        parsed = _as_floats(pl.Series([text]))[0] if isinstance(value, str) else float(value)
    except OverflowError:  # a whole number beyond what a float can hold
        parsed = math.inf
    if parsed is None or isinstance(value, bool):
        written = text.lower() if isinstance(value, bool) else text  # a flag as files write it
        raise ValueError(f"{_NUMBER}, got {written[:60]!r}")
    if not math.isfinite(parsed):
        raise ValueError(f"{_FINITE}, got {text[:60]!r}")
    return parsed


def compact(columns: Columns) -> Columns:
    """The columns without facts that no row knows and words that no row uses.

    >>> compact(Columns({"amount": np.array([np.nan])}, {}, {"kind": (np.array([1]), ("a", "b"))})).categories
    {'kind': (array([0], dtype=int32), ('b',))}
    """
    numbers = {name: column for name, column in columns.numbers.items() if not np.isnan(column).all()}
    flags = {name: column for name, column in columns.flags.items() if (column >= 0).any()}
    words = {
        name: _used(coded_words) for name, coded_words in columns.categories.items() if (coded_words[0] >= 0).any()
    }
    return Columns(numbers, flags, words)


def _used(found: Categories) -> Categories:
    codes, words = found
    used = np.bincount(codes[codes >= 0], minlength=len(words)) > 0
    if used.all():
        return found
    new = np.full(len(words) + 1, -1, dtype=np.int32)  # the last one is where -1 leads
    new[:-1][used] = np.arange(used.sum(), dtype=np.int32)
    return new[codes], tuple(words[code] for code in np.flatnonzero(used))


def wrong_id(text: str | None) -> str | None:
    """What is wrong with an id by itself; None if it is one."""
    if text is None:
        return "expected an id, got an empty cell"
    return None if len(text) <= MAX_ID else f"expected an id of at most {MAX_ID} characters, got {len(text):,}"


def wrong_text(cell: object) -> str | None:
    """What is wrong with the text of a row; None if it is one, or empty."""
    if cell is None:
        return None
    if not isinstance(cell, str):
        return "expected text"
    return None if len(cell) <= MAX_TEXT else f"expected a text of at most {MAX_TEXT:,} characters, got {len(cell):,}"
