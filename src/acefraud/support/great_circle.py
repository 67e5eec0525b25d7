"""Distances on earth with the same bits on every processor: only sums, products, quotients and square roots."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import sqrt

_DIAMETER_KM = 2 * 6371.0088
_PI = Decimal("3.14159265358979323846264338327950288419717")


def _whole_degrees() -> tuple[tuple[float, float], ...]:
    """Sine and cosine of 0 to 359 degrees, each the one before it turned by one degree."""
    with localcontext(prec=40):
        x = _PI / 180
        y, sine, cosine = x * x, Decimal(0), Decimal(1)
        turn = x * (1 - y / 6 * (1 - y / 20 * (1 - y / 42 * (1 - y / 72 * (1 - y / 110)))))
        keep = (1 - turn * turn).sqrt()
        found = []
        for _ in range(360):
            found.append((float(sine), float(cosine)))
            sine, cosine = sine * keep + cosine * turn, cosine * keep - sine * turn
    return tuple(found)


_WHOLE_DEGREES = _whole_degrees()
_RADIANS = float(_PI / 180)
_RIGHT_ANGLE = float(_PI / 2)


def great_circle_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The distance between two places, each a latitude and a longitude in degrees.

    All terms are positive, so that no digits are lost, however near the places are to each other or to antipodes.

    >>> round(great_circle_km((48.137, 11.575), (52.52, 13.405)), 3), round(great_circle_km((0, 0), (0, 180)), 3)
    (504.339, 20015.114)
    """
    up, up_rest = _squares((other[0] - one[0]) / 2)
    along, along_rest = _squares((other[1] - one[1]) / 2)
    middle, middle_rest = _squares((other[0] + one[0]) / 2)
    near = sqrt(up * along_rest + middle_rest * along)
    far = sqrt(up_rest * along_rest + middle * along)
    return _DIAMETER_KM * (_arctangent(near / far) if near <= far else _RIGHT_ANGLE - _arctangent(far / near))


def _squares(degrees: float) -> tuple[float, float]:
    """The squares of sine and cosine of an angle."""
    whole = round(degrees)
    sine, cosine = _WHOLE_DEGREES[whole % 360]
    x = (degrees - whole) * _RADIANS
    y = x * x  # at most 0.00008: three terms are enough
    turn, keep = x - x * (y * (1 / 6 - y / 120)), 1 - y * (1 / 2 - y * (1 / 24 - y / 720))
    sine, cosine = sine * keep + cosine * turn, cosine * keep - sine * turn
    return sine * sine, cosine * cosine


def _arctangent(ratio: float) -> float:
    """The angle of a tangent between 0 and 1, by a series for a sixteenth of it."""
    for _ in range(4):
        ratio = ratio / (1 + sqrt(1 + ratio * ratio))
    y = ratio * ratio
    series = y * (1 / 3 - y * (1 / 5 - y * (1 / 7 - y * (1 / 9 - y / 11))))
    return 16 * (ratio - ratio * series)
