"""Facts that say how long it was from one time of a row to another."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from acefraud.core.transaction import FactValue
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import Table
from acefraud.datasets.times import Times, read_times, shared_format

BadColumn = tuple[str, list[tuple[int, str]]]


def read_elapsed(table: Table, mapping: SchemaMapping) -> Iterator[tuple[str, list[FactValue | None], list[BadColumn]]]:
    """Each such fact with its values in seconds, None where a time is missing, and the cells that are no times."""
    read: dict[str, Times] = {}
    for fact, pair in mapping.elapsed.items():
        if not all(column in table.columns for column in pair):
            continue
        for name in pair:
            if name not in read:
                column = table.columns[name]
                read[name] = read_times(column, shared_format(column, mapping.time_format))
        start, end = (read[name] for name in pair)
        pairs = zip(start.values, end.values, strict=True)
        yield fact, [_seconds(one, other) for one, other in pairs], [(name, read[name].bad) for name in pair]


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()
