"""What a label says, in the many words that files use for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from acefraud.core.table import Flags
from acefraud.datasets.distinct import BadCells, distinct_values, spread
from acefraud.datasets.table import Column

FRAUD_WORDS = frozenset(
    {"1", "true", "t", "yes", "y", "fraud", "fraudulent", "confirmed fraud", "scam"}
    | {"decline", "declined", "deny", "denied", "reject", "rejected", "chargeback", "charged back"}
)
LEGIT_WORDS = frozenset(
    {"0", "false", "f", "no", "n", "legit", "legitimate", "genuine", "honest", "normal", "ok", "good"}
    | {"approve", "approved", "accept", "accepted", "not fraud", "no fraud", "non fraud", "nonfraud"}
)
USUAL = "expected a label such as 0/1, yes/no, fraud/legit or APPROVE/DECLINE"


def label_word(value: object) -> str:
    """The form in which labels are compared.

    >>> label_word(" Charged-Back "), label_word(1.0), label_word(True)
    ('charged back', '1', 'true')
    """
    word = re.sub(r"[\s_-]+", " ", str(value).strip().casefold()).strip()
    return word[:-2] if re.fullmatch(r"\d+\.0", word) else word


class LabelReader:
    """Reads labels by the usual words, or by what a mapping says counts as fraud and what as not.

    Where only one side is listed, the usual words stand for the other: what is in neither is never guessed.

    >>> LabelReader()("DECLINE"), LabelReader()("genuine"), LabelReader()("maybe")
    (True, False, None)
    >>> LabelReader(fraud=["2", "3"])("3"), LabelReader(fraud=["2", "3"])("0"), LabelReader(fraud=["2", "3"])("1")
    (True, False, None)
    """

    def __init__(self, fraud: Sequence[str] = (), legit: Sequence[str] = ()) -> None:
        self._given = bool(fraud or legit)
        asked_fraud, asked_legit = {label_word(v) for v in fraud}, {label_word(v) for v in legit}
        self._fraud = asked_fraud or (FRAUD_WORDS - asked_legit)
        self._legit = asked_legit or (LEGIT_WORDS - asked_fraud)

    def __call__(self, value: object) -> bool | None:
        word = label_word(value)
        if word in self._fraud:
            return True
        return False if word in self._legit else None

    def expected(self, value: object) -> str:
        """What to say of a label that is neither."""
        wanted = USUAL
        if self._given:
            wanted = f"expected a fraud value ({_some(self._fraud)}) or a legit value ({_some(self._legit)})"
        return f"{wanted}, got {str(value)[:60]!r}"


def _some(words: frozenset[str] | set[str]) -> str:
    shown = sorted(words)
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")


def plain_texts(column: Column) -> list[str | None]:
    """The same as a list.

    >>> plain_texts([7, " x ", None, True, ""])
    ['7', 'x', None, 'true', None]
    """
    return plain_text(column).to_list()


def plain_text(column: Column) -> pl.Series:
    """Cells as trimmed text, null where empty: the form in which ids, labels and times are looked at."""
    if isinstance(column, list) or column.dtype.is_nested() or column.dtype == pl.Object:
        cells = column if isinstance(column, list) else column.to_list()
        return pl.Series([_plain_text(value) for value in cells], dtype=pl.String)
    text = column.cast(pl.String, strict=False)
    if column.dtype.is_float():
        text = text.str.replace(r"\.0$", "")
    text = text.str.strip_chars()
    return text.set(text == "", None)


def _plain_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def read_labels(column: Column, reader: LabelReader) -> tuple[Flags, BadCells]:
    """1 for fraud, 0 for none, -1 where there is no label yet; and the cells that are neither fraud nor not.

    >>> labels, bad = read_labels(["fraud", None, "0", "maybe"], LabelReader(["fraud"], ["0"]))
    >>> labels.tolist(), bad
    ([1, -1, 0, -1], [(3, "expected a fraud value (fraud) or a legit value (0), got 'maybe'")])
    """
    words, places = distinct_values(plain_text(column))
    meant = [None if _is_empty(word) else reader(word) for word in words]
    bad = [
        (place, reader.expected(word))
        for place, (word, meaning) in enumerate(zip(words, meant, strict=True))
        if meaning is None and not _is_empty(word)
    ]
    labels = np.array([-1 if meaning is None else meaning for meaning in meant], dtype=np.int8)
    return labels[places], spread(bad, places)


def _is_empty(text: str | None) -> bool:
    return text is None or text.casefold() in ("null", "none")
