"""Labels in the many words that files use for them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from acefraud.core.package_data import read_package_toml
from acefraud.core.table import Flags
from acefraud.datasets.columns import BadCells, folded, plain_text, read_distinct
from acefraud.datasets.table import Column

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
