"""A column table of facts: the same facts as in transactions, many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from acefraud.core.transaction import FactValue

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.int8]
Codes = npt.NDArray[np.int32]


class FactTable:
    """Facts of many transactions, as columns built when first asked for.

    A fact may be a number in one row and a word in another; each view shows the values of its own type and calls
    the rest unknown, which is how a test on a single transaction sees them too.

    >>> table = FactTable([{"amount": 5.0}, {"amount": 7.0, "vpn": True}])
    >>> table.numbers("amount").tolist(), table.flags("vpn").tolist()
    ([5.0, 7.0], [-1, 1])
    """

    def __init__(self, rows: Sequence[Mapping[str, FactValue]]) -> None:
        self._rows = rows
        self._numbers: dict[str, Numbers] = {}
        self._flags: dict[str, Flags] = {}
        self._categories: dict[str, tuple[Codes, tuple[str, ...]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> list[str]:
        """All facts that any row knows, in alphabetical order."""
        return sorted({name for row in self._rows for name in row})

    def numbers(self, name: str) -> Numbers:
        """The numeric values, NaN where there is none."""
        column = self._numbers.get(name)
        if column is None:
            values = (row.get(name) for row in self._rows)
            column = np.fromiter((v if type(v) is float else np.nan for v in values), np.float64, len(self._rows))
            self._numbers[name] = column
        return column

    def flags(self, name: str) -> Flags:
        """1 for true, 0 for false, -1 where there is no flag."""
        column = self._flags.get(name)
        if column is None:
            values = (row.get(name) for row in self._rows)
            column = np.fromiter((int(v) if type(v) is bool else -1 for v in values), np.int8, len(self._rows))
            self._flags[name] = column
        return column

    def categories(self, name: str) -> tuple[Codes, tuple[str, ...]]:
        """A code for each row (-1 where there is no word), and the words the codes stand for."""
        column = self._categories.get(name)
        if column is None:
            words = tuple(sorted({v for row in self._rows if type(v := row.get(name)) is str}))
            code = {word: position for position, word in enumerate(words)}
            values = (row.get(name) for row in self._rows)
            codes = np.fromiter((code[v] if type(v) is str else -1 for v in values), np.int32, len(self._rows))
            column = (codes, words)
            self._categories[name] = column
        return column

    def known(self, name: str) -> npt.NDArray[np.bool_]:
        """Whether each row knows the fact at all."""
        return np.fromiter((name in row for row in self._rows), np.bool_, len(self._rows))
