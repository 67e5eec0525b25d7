"""Cities to live in and to pay in, with the distances between them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class City:
    """A city as an analyst writes it."""

    name: str
    region: str
    latitude: float
    longitude: float

    def __str__(self) -> str:
        return f"{self.name}, {self.region}"


HOME = (
    City("Boston", "MA", 42.36, -71.06), City("Chicago", "IL", 41.88, -87.63), City("Denver", "CO", 39.74, -104.99),
    City("Seattle", "WA", 47.61, -122.33), City("Austin", "TX", 30.27, -97.74), City("Atlanta", "GA", 33.75, -84.39),
    City("Phoenix", "AZ", 33.45, -112.07), City("Portland", "OR", 45.52, -122.68), City("Tampa", "FL", 27.95, -82.46),
    City("Cleveland", "OH", 41.50, -81.69), City("St. Louis", "MO", 38.63, -90.20), City("Boise", "ID", 43.62, -116.20),
    City("Raleigh", "NC", 35.78, -78.64), City("Omaha", "NE", 41.26, -95.93), City("San Diego", "CA", 32.72, -117.16),
    City("Buffalo", "NY", 42.89, -78.88), City("Tucson", "AZ", 32.22, -110.97), City("Richmond", "VA", 37.54, -77.44),
)  # fmt: skip

ABROAD = (
    City("Lisbon", "Portugal", 38.72, -9.14), City("Toronto", "Canada", 43.65, -79.38),
    City("London", "United Kingdom", 51.51, -0.13), City("Berlin", "Germany", 52.52, 13.40),
    City("Madrid", "Spain", 40.42, -3.70), City("Rome", "Italy", 41.90, 12.50), City("Tokyo", "Japan", 35.68, 139.69),
    City("Singapore", "Singapore", 1.35, 103.82), City("Sydney", "Australia", -33.87, 151.21),
    City("Warsaw", "Poland", 52.23, 21.01), City("Bangkok", "Thailand", 13.76, 100.50),
    City("Istanbul", "Turkey", 41.01, 28.98), City("Mexico City", "Mexico", 19.43, -99.13),
    City("Dublin", "Ireland", 53.35, -6.26), City("Vienna", "Austria", 48.21, 16.37),
    City("Lima", "Peru", -12.05, -77.04), City("Nairobi", "Kenya", -1.29, 36.82),
)  # fmt: skip

HIGH_RISK = (
    City("Yangon", "Myanmar", 16.87, 96.20), City("Caracas", "Venezuela", 10.48, -66.90),
    City("Port-au-Prince", "Haiti", 18.54, -72.34), City("Sanaa", "Yemen", 15.37, 44.19),
    City("Kinshasa", "DR Congo", -4.44, 15.27),
)  # fmt: skip

SANCTIONED = (City("Pyongyang", "North Korea", 39.04, 125.76), City("Tehran", "Iran", 35.69, 51.39))


def distance_km(one: City, other: City) -> float:
    """Great-circle distance, rounded as a person would quote it.

    >>> distance_km(HOME[0], HOME[1])
    1370.0
    """
    a, b = math.radians(one.latitude), math.radians(other.latitude)
    turn = math.radians(other.longitude - one.longitude)
    cosine = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(turn)
    return float(round(6371 * math.acos(min(1.0, cosine)), -1))
