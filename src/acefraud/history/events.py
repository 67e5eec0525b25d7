"""Transactions as the history sees them: one by one, or as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from acefraud.core.table import Codes, Flags, Numbers
from acefraud.core.timestamps import Micros
from acefraud.errors import InputError


@dataclass(frozen=True, slots=True)
class Event:
    """One transaction: when, how much, and who and what took part. What is not known is absent or None."""

    id: str
    time_us: int | None
    amount: float | None = None
    entities: Mapping[str, str] = field(default_factory=dict)
    """The values of the entity columns, by column."""
    category: str | None = None
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class HistoryEvents:
    """Transactions as columns, in the order in which they arrived.

    Codes say which rows have the same value; -1 is unknown. Labels are 1 for fraud, 0 for none, -1 for not labelled.
    """

    time: Micros
    entities: Mapping[str, Codes]
    """Codes by column."""
    ids: npt.NDArray[Any] | None = None
    """None where every row is a transaction of its own."""
    amount: Numbers | None = None
    """None where the data has no amounts at all."""
    category: Codes | None = None
    latitude: Numbers | None = None
    longitude: Numbers | None = None
    label: Flags | None = None
    known_at: Micros | None = None
    """None, or unknown in a row, where the label comes with the usual delay."""

    def __post_init__(self) -> None:
        columns = [*self.entities.values(), self.ids, self.amount, self.category]
        columns += [self.latitude, self.longitude, self.label, self.known_at]
        if any(column is not None and len(column) != len(self) for column in columns):
            raise InputError(f"the columns of a history must all have {len(self):,} rows, like its times")

    def __len__(self) -> int:
        return len(self.time)
