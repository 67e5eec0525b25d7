"""Lists in a record become facts: how long a list is, and which words are in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from acefraud.core.fact_names import words_for
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import FACTS, Column, Table

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
        columns[f"{name}.length"] = pl.Series([None if one is None else len(one) for one in column], dtype=pl.Int64)
        for word in _named_words(name, mapping) or _words_in(column):
            held = [None if one is None else any(_is_word(item, word) for item in one) for one in column]
            columns[f"{name}.{word}"] = pl.Series(held, dtype=pl.Boolean)
    return replace(table, columns=columns)


def _holds_lists(column: Column) -> bool:
    if not isinstance(column, list):
        return False
    present = [cell for cell in column if cell is not None]
    return bool(present) and all(isinstance(cell, list) for cell in present)


def _named_words(name: str, mapping: SchemaMapping) -> list[str]:
    start = f"{name}."
    return [flag.removeprefix(start) for flag in mapping.flags if flag.startswith(start)]


def _words_in(column: Iterable[list[Any] | None]) -> list[str]:
    """The words of a column, or none if it holds anything else, long lists or too many words."""
    words: dict[str, None] = {}
    for one in column:
        for item in one or ():
            if not isinstance(item, str) or not 0 < len(item.strip()) <= _LONGEST_WORD:
                return []
            words[item.strip()] = None
        if len(one or ()) > _LONGEST_LIST or len(words) > _MOST_WORDS:
            return []
    return sorted(words)


def _is_word(item: Any, word: str) -> bool:
    return isinstance(item, str) and item.strip() == word
