"""Columns of free text, recognised by what they hold."""

from __future__ import annotations

import polars as pl

from acefraud.datasets.columns import plain_text
from acefraud.datasets.table import Column
from acefraud.facts.text import read_facts

_CELLS, _READ = 2000, 300
"""How many cells are looked at for sentences, and how many of them are read for facts."""
_FEWEST, _DISTINCT, _WORDS = 20, 0.1, 4
_TELLING = 0.02
"""Share of the cells that must state a fact the engine knows: a text without any would teach nothing."""


def holds_sentences(column: Column) -> bool:
    """Whether most cells are several words long and few of them are alike.

    >>> holds_sentences(pl.Series([f"paid {n} dollars with a new card" for n in range(30)]))
    True
    >>> holds_sentences(pl.Series(["Visa", "Mastercard"] * 20))
    False
    """
    if not isinstance(column, pl.Series) or column.dtype != pl.String:
        return False
    cells = plain_text(column[:: max(1, len(column) // _CELLS)]).drop_nulls()
    if len(cells) < _FEWEST or cells.n_unique() < max(_FEWEST, _DISTINCT * len(cells)):
        return False
    return 2 * int((cells.str.count_matches(r"\pL{2,}") >= _WORDS).sum()) > len(cells)


def states_facts(column: Column) -> bool:
    """Whether a column holds sentences, and they state facts that the engine knows.

    >>> states_facts(pl.Series([f"order {n} came here through a VPN" for n in range(30)]))
    True
    """
    if not holds_sentences(column):
        return False
    cells = plain_text(column).drop_nulls()
    cells = cells[:: max(1, len(cells) // _READ)]
    return sum(bool(read_facts(cell).facts) for cell in cells) >= _TELLING * len(cells) > 0
