"""Transactions as the history sees them, one by one or as columns; their amounts and places.

The batch and the streaming computation share these measures, so that they agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud.core.table import Codes, Flags
from acefraud.errors import InputError
from acefraud.support.arrays import FloatArray, IntArray
from acefraud.support.timestamps import UNKNOWN

UNITS = 10_000
"""Amounts are summed as whole ten-thousandths, so that a sum is the same in any order."""
MOST = 1e11
"""Larger amounts count as unknown: their sums would not fit into 64 bits."""

_DIAMETER_KM = 2 * 6371.0088


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One transaction: when, how much, and which entities took part. Unknown values are absent or None."""

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

    Rows with the same code have the same value; -1 is unknown. Labels are 1 for fraud, 0 for none, -1 for unlabelled.
    """

    time: IntArray
    entities: Mapping[str, Codes]
    """Codes by column."""
    ids: npt.NDArray[Any] | None = None
    """None if every row is a transaction of its own."""
    amount: FloatArray | None = None
    """None if the data has no amounts at all."""
    category: Codes | None = None
    latitude: FloatArray | None = None
    longitude: FloatArray | None = None
    label: Flags | None = None
    known_at: IntArray | None = None
    """None, or unknown in a row, if the label comes with the usual delay."""

    def __post_init__(self) -> None:
        columns = [*self.entities.values(), self.ids, self.amount, self.category]
        columns += [self.latitude, self.longitude, self.label, self.known_at]
        if any(column is not None and len(column) != len(self) for column in columns):
            raise InputError(f"the columns of a history must all have {len(self):,} rows, like its times")

    def __len__(self) -> int:
        return len(self.time)


def amount_units(amount: float | None) -> int | None:
    """An amount in whole units, rounded to four decimals; None if it is unknown.

    >>> amount_units(12.34567), amount_units(float("nan"))
    (123457, None)
    """
    if amount is None or not abs(amount) <= MOST:
        return None
    return round(amount * UNITS)


def amounts_units(amounts: FloatArray) -> IntArray:
    """A column of amounts in whole units, `UNKNOWN` where one is unknown."""
    known = np.abs(amounts) <= MOST
    units = np.full(len(amounts), UNKNOWN, dtype=np.int64)
    units[known] = np.rint(amounts[known] * UNITS).astype(np.int64)
    return units


Place = tuple[float, float]
"""Latitude and longitude in degrees."""


def place(latitude: float | None, longitude: float | None) -> Place | None:
    """A place on earth, or None if it is unknown.

    >>> place(48.1, 11.6), place(91.0, 0.0), place(None, 0.0)
    ((48.1, 11.6), None, None)
    """
    if latitude is None or longitude is None or not (abs(latitude) <= 90 and abs(longitude) <= 180):
        return None
    return latitude, longitude


def distance_km(one: Place, other: Place) -> float:
    """The great-circle distance between two places.

    >>> round(distance_km((48.137, 11.575), (52.52, 13.405)))
    504
    """
    chord = math.dist(_unit_vector(one), _unit_vector(other))
    return _DIAMETER_KM * math.asin(min(1.0, chord / 2))


def _unit_vector(where: Place) -> tuple[float, float, float]:
    latitude, longitude = math.radians(where[0]), math.radians(where[1])
    flat = math.cos(latitude)
    return flat * math.cos(longitude), flat * math.sin(longitude), math.sin(latitude)
