"""The measures that both ways of deriving facts share, so that they agree to the last bit."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from acefraud.core.timestamps import UNKNOWN

UNITS = 10_000
"""Amounts are added up as whole ten-thousandths: a sum is the same in any order."""

MOST = 1e11
"""Amounts beyond this are taken for unknown: whole numbers could not add them up."""

_DIAMETER_KM = 2 * 6371.0088


def amount_units(amount: float | None) -> int | None:
    """An amount in whole units, rounded to four decimals; None where it is not known.

    >>> amount_units(12.34567), amount_units(float("nan"))
    (123457, None)
    """
    if amount is None or not abs(amount) <= MOST:
        return None
    return round(amount * UNITS)


def amounts_units(amounts: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """A column of amounts in whole units, `UNKNOWN` where one is not known."""
    known = np.abs(amounts) <= MOST
    units = np.full(len(amounts), UNKNOWN, dtype=np.int64)
    units[known] = np.rint(amounts[known] * UNITS).astype(np.int64)
    return units


Place = tuple[float, float]
"""Latitude and longitude in degrees."""


def place(latitude: float | None, longitude: float | None) -> Place | None:
    """A place on earth, or None where it is not known.

    >>> place(48.1, 11.6), place(91.0, 0.0), place(None, 0.0)
    ((48.1, 11.6), None, None)
    """
    if latitude is None or longitude is None or not (abs(latitude) <= 90 and abs(longitude) <= 180):
        return None
    return latitude, longitude


def distance_km(one: Place, other: Place) -> float:
    """The way between two places over the earth.

    >>> round(distance_km((48.137, 11.575), (52.52, 13.405)))
    504
    """
    chord = math.dist(_unit_vector(one), _unit_vector(other))
    return _DIAMETER_KM * math.asin(min(1.0, chord / 2))


def _unit_vector(where: Place) -> tuple[float, float, float]:
    latitude, longitude = math.radians(where[0]), math.radians(where[1])
    flat = math.cos(latitude)
    return flat * math.cos(longitude), flat * math.sin(longitude), math.sin(latitude)
