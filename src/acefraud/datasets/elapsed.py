"""Facts that say how long it was from one time of a row to another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from acefraud.core.table import Numbers
from acefraud.core.timestamps import UNKNOWN, Micros
from acefraud.datasets.distinct import BadCells
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import Table
from acefraud.datasets.times import Times, read_times, shared_format

_SECOND = 1_000_000


def read_elapsed(table: Table, mapping: SchemaMapping) -> Iterator[tuple[str, Numbers, list[tuple[str, BadCells]]]]:
    """Each such fact with its values in seconds, NaN where a time is missing, and the cells that are no times."""
    read: dict[str, Times] = {}
    for fact, pair in mapping.elapsed.items():
        if not all(column in table.columns for column in pair):
            continue
        for name in pair:
            if name not in read:
                column = table.columns[name]
                read[name] = read_times(column, shared_format(column, mapping.time_format))
        start, end = (read[name] for name in pair)
        yield fact, _seconds(start.values, end.values), [(name, read[name].bad) for name in pair]


def _seconds(start: Micros, end: Micros) -> Numbers:
    return np.where((start == UNKNOWN) | (end == UNKNOWN), np.nan, (end - start) / _SECOND)
