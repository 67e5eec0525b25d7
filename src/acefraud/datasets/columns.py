"""What the readers of columns share: cells as plain text, labels, and names, with the usual words for them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from acefraud.core.table import Flags
from acefraud.datasets.table import FACTS, Column
from acefraud.support.arrays import IntArray
from acefraud.support.package_data import read_package_toml

BadCells = list[tuple[int, str]]
"""Rows with what is wrong in them."""

T = TypeVar("T")

UNKNOWN_WORDS = frozenset({"na", "n/a", "n.a.", "#n/a", "#nv", "null", "-", "--", "–", "—", "?", "none"}) | frozenset(
    # of German, Spanish, French and Italian exports
    {"k.a.", "k. a.", "n.v.", "n. v.", "s/d", "n/d", "n.d.", "n. d.", "nc"}
)
"""What people and programs write, in any case, where there is no value."""


def folded(text: str) -> str:
    """A text without case and accents, so that ``SÍ`` and ``si`` are the same word.

    >>> folded("Rückbuchung"), folded("Não"), folded("Straße")
    ('ruckbuchung', 'nao', 'strasse')
    """
    if text.isascii():
        return text.lower()
    return "".join(one for one in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(one))


def plain_texts(column: Column) -> list[str | None]:
    """The cells of `plain_text` as a list.

    >>> plain_texts([7, " x ", None, True, ""])
    ['7', 'x', None, 'true', None]
    """
    return plain_text(column).to_list()


def plain_text(column: Column) -> pl.Series:
    """Cells as trimmed text, null where empty: the form in which ids, labels and times are read."""
    if isinstance(column, list) or column.dtype.is_nested() or column.dtype == pl.Object:
        cells = column if isinstance(column, list) else column.to_list()
        return pl.Series([plain_cell(value) for value in cells], dtype=pl.String)
    is_float = column.dtype.is_float()
    text = (column.fill_nan(None) if is_float else column).cast(pl.String, strict=False)
    if is_float:
        text = text.str.replace(r"\.0$", "")
    text = text.str.strip_chars()
    return text.set(text == "", None)


def plain_cell(value: Any) -> str | None:
    """One cell as `plain_text` gives it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def json_column(name: str, values: list[Any]) -> Column:
    """A series if one type fits all, so that it can be read column-wise; else the cells as they are."""
    types = {type(value) for value in values} - {type(None)}
    if len(types) != 1:
        return values
    (only,) = types
    if only is int and any(value is not None and abs(value) >= 2**53 for value in values):
        return values
    dtype = {str: pl.String, bool: pl.Boolean, int: pl.Int64, float: pl.Float64}.get(only)
    return values if dtype is None else pl.Series(name, values, dtype=dtype)


def is_null_word(text: str | None) -> bool:
    """Whether a text only says that there is none."""
    return text is None or text.casefold() in UNKNOWN_WORDS


def unknown_words(column: Column) -> pl.Series:
    """Whether each cell holds a word that only says that there is no value. An empty cell holds none.

    >>> unknown_words(pl.Series(["5", " N/A ", "", None])).to_list()
    [False, True, False, False]
    """
    if isinstance(column, pl.Series) and column.dtype != pl.String:
        return pl.repeat(False, len(column), eager=True)
    texts = [cell if isinstance(cell, str) else None for cell in column] if isinstance(column, list) else column
    words = pl.Series(texts, dtype=pl.String).str.strip_chars().str.to_lowercase()
    return words.is_in(UNKNOWN_WORDS).fill_null(False)


def distinct_cells(column: Column) -> tuple[Column, IntArray]:
    """The cells that have to be read, and for each row the place of its own among them.

    Mixed, nested and fractional cells come as they are: they are unhashable, or equal without being written alike.

    >>> cells, places = distinct_cells(pl.Series(["web", None, "web"]))
    >>> cells.to_list(), places.tolist()
    (['web', None], [0, 1, 0])
    """
    if isinstance(column, list):
        return column, np.arange(len(column))
    dtype = column.dtype
    if dtype in (pl.String, pl.Boolean) or dtype.is_integer() or dtype.is_temporal():
        return distinct_values(column)
    return column, np.arange(len(column))


def distinct_values(column: pl.Series) -> tuple[pl.Series, IntArray]:
    """The distinct values of a column whose cells can be compared, and for each row the place of its own."""
    values = column.unique(maintain_order=True)
    places = pl.DataFrame({"cell": values, "place": np.arange(len(values))})
    joined = pl.DataFrame({"cell": column}).join(places, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return values, joined["place"].to_numpy()


def read_distinct(
    column: Column, read: Callable[[str | None], T | None], expected: Callable[[str], str]
) -> tuple[list[T | None], IntArray, BadCells]:
    """What ``read`` makes of each distinct text, for each row the place of its own, and the cells it cannot read."""
    texts, places = distinct_values(plain_text(column))
    found = [read(text) for text in texts]
    bad = [
        (place, expected(text))
        for place, (text, value) in enumerate(zip(texts, found, strict=True))
        if value is None and not is_null_word(text)
    ]
    return found, places, spread(bad, places)


def spread(bad: Sequence[tuple[int, str]], places: IntArray) -> BadCells:
    """The bad rows: what is wrong with a distinct cell is wrong with every row that holds it.

    >>> spread([(1, "expected a number, got 'x'")], np.array([0, 1, 1]))
    [(1, "expected a number, got 'x'"), (2, "expected a number, got 'x'")]
    """
    if not bad:
        return []
    messages: dict[int, str] = {}
    for cell, message in bad:
        messages.setdefault(cell, message)
    rows = np.flatnonzero(np.isin(places, list(messages)))
    return [(int(row), messages[int(places[row])]) for row in rows]


USUAL_WORDS = read_package_toml("acefraud.datasets", "usual_words.toml", dict[str, dict[str, tuple[str, ...]]])
USUAL = "expected a label such as 0/1, yes/no, fraud/legit or APPROVE/DECLINE"


def label_word(value: object) -> str:
    """A label in the form in which labels are compared.

    >>> label_word(" Charged-Back "), label_word(1.0), label_word(True)
    ('charged back', '1', 'true')
    """
    text = folded(str(value).strip())
    word = re.sub(r"[\s_-]+", " ", text).strip() or text
    return word[:-2] if re.fullmatch(r"\d+\.0", word) else word


FRAUD_WORDS, LEGIT_WORDS = (frozenset(map(label_word, USUAL_WORDS["labels"][side])) for side in ("fraud", "legit"))


class LabelReader:
    """Reads labels by the usual words, or by what a mapping says counts as fraud and what as not.

    If only one side is listed, the usual words stand for the other. A value on neither side is never guessed. An empty
    cell, or one that says that there is none, is no label yet, unless it is listed: ``legit=[""]``.

    >>> LabelReader()("DECLINE"), LabelReader()("genuine"), LabelReader()("maybe")
    (True, False, None)
    >>> LabelReader(fraud=["2", "3"])("3"), LabelReader(fraud=["2", "3"])("0"), LabelReader(fraud=["2", "3"])("1")
    (True, False, None)
    """

    def __init__(self, fraud: Sequence[str] = (), legit: Sequence[str] = ()) -> None:
        self.is_given = bool(fraud or legit)
        asked_fraud, asked_legit = {label_word(v) for v in fraud}, {label_word(v) for v in legit}
        self._fraud = asked_fraud or (FRAUD_WORDS - asked_legit)
        self._legit = asked_legit or (LEGIT_WORDS - asked_fraud)

    def __call__(self, value: object) -> bool | None:
        word = "" if value is None else label_word(value)
        if word in self._fraud:
            return True
        return False if word in self._legit else None

    def expected(self, value: object) -> str:
        """The message for a label that is neither."""
        wanted = USUAL
        if self.is_given:
            wanted = f"expected a fraud value ({_some(self._fraud)}) or a legit value ({_some(self._legit)})"
        return f"{wanted}, got {str(value)[:60]!r}"


def _some(words: frozenset[str] | set[str]) -> str:
    shown = sorted(words)
    return ", ".join(word or '""' for word in shown[:5]) + (", ..." if len(shown) > 5 else "")


def read_labels(column: Column, reader: LabelReader) -> tuple[Flags, BadCells]:
    """1 for fraud, 0 for legitimate, -1 where there is no label yet; and the cells that cannot be read.

    >>> labels, bad = read_labels(["fraud", None, "0", "maybe"], LabelReader(["fraud"], ["0"]))
    >>> labels.tolist(), bad
    ([1, -1, 0, -1], [(3, "expected a fraud value (fraud) or a legit value (0), got 'maybe'")])
    """
    words = {text and label_word(text) for text in plain_text(column).unique()}
    if words == {"f", None} and not reader.is_given:  # "fraud" as likely as "false"
        reader = LabelReader(legit=sorted(LEGIT_WORDS - {"f"}))
    found, places, bad = read_distinct(column, reader, reader.expected)
    return np.array([-1 if is_fraud is None else is_fraud for is_fraud in found], dtype=np.int8)[places], bad


_ENTITY = re.compile(
    r"(?:^|_)(?:id|uuid|guid|iban|e_?mail|ip|ip_address)$"
    r"|(?:^|_)(?:card|cc|account|acct|policy|phone|iban|passport|ssn)_?(?:number|num|no|nr|hash)$"
)
_ENTITIES, _NUMBERS, _IDS = (
    frozenset(map(folded, USUAL_WORDS["entities"][key])) for key in ("words", "numbers", "ids")
)
_COMPOUND = re.compile(rf"(\w{{3,}})(?:{'|'.join(map(folded, USUAL_WORDS['entities']['endings']))})")

_ASKING, _ANSWERED = frozenset({"is", "has", "was"}), frozenset({"flag", "indicator", "yn", "bool"})
_NUMBERED = re.compile(r"\w{3,}(?:nummer|nr|id|kennung)")


def plain_name(column: str) -> str:
    """A name without case, accents and punctuation, so that ``isFraud`` and ``is_fraud`` are the same.

    >>> plain_name("TX_Fraud"), plain_name("FraudFound_P"), plain_name("Rückbuchung?")
    ('txfraud', 'fraudfoundp', 'ruckbuchung')
    """
    return re.sub(r"[^0-9a-z]+", "", folded(column))


def name_parts(column: str) -> list[str]:
    """The words that a name is made of.

    >>> name_parts("customer.ageOfAccount_days"), name_parts("Geräte-ID")
    (['customer', 'age', 'of', 'account', 'days'], ['gerate', 'id'])
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.removeprefix(FACTS))
    return [part for part in re.split(r"[^0-9a-z]+", folded(snake)) if part]


def names_an_id(column: str) -> bool:
    """Whether the name of a column says that it holds ids.

    >>> names_an_id("customer_id"), names_an_id("CustomerID"), names_an_id("Kundennummer"), names_an_id("paid")
    (True, True, True, False)
    """
    parts = name_parts(column)
    if _ENTITY.search("_".join(parts)) is not None:
        return not names_a_flag(column)
    return names_an_entity(column) and bool(_NUMBERS & set(parts) or any(map(_COMPOUND.fullmatch, parts)))


def names_a_flag(column: str) -> bool:
    """Whether a name asks a question that has the answer yes or no.

    >>> names_a_flag("is_overnight"), names_a_flag("has_ip"), names_a_flag("issuer_flag"), names_a_flag("items")
    (True, True, True, False)
    """
    parts = name_parts(column) or [""]
    return parts[0] in _ASKING or parts[-1] in _ANSWERED


def names_a_transaction(column: str) -> bool:
    """Whether a name says that a column holds ids, and not those of an entity.

    >>> [names_a_transaction(name) for name in ("Zahlungs-Nr", "Auftragsnummer", "ref_pago", "Kundennummer", "Betrag")]
    [True, True, True, False, False]
    """
    parts = name_parts(column)
    return not names_an_entity(column) and any(part in _IDS or _NUMBERED.fullmatch(part) for part in parts)


def names_an_entity(column: str) -> bool:
    """Whether a name consists of words for an entity, such as a customer, a card or a device, in a known language.

    >>> [names_an_entity(name) for name in ("Customer", "Kartennummer", "número de tarjeta", "N° client", "Card type")]
    [True, True, True, True, False]
    """
    parts = [part for part in name_parts(column) if part not in _NUMBERS]
    whole = [
        compound[1] if part not in _ENTITIES and (compound := _COMPOUND.fullmatch(part)) else part for part in parts
    ]
    return bool(whole) and all(part in _ENTITIES for part in whole)
