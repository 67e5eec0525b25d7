"""Exponentials and logarithms with the same bits on every processor.

Those of numpy and of the C library take other paths on other processors and differ in the last bit. These use only what
IEEE 754 defines: sums, products, quotients, in a fixed order. Numbers and arrays give the same bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt

from acefraud.support.arrays import FloatArray

LARGEST_EXPONENT = 700.0
"""Exponents are kept within this, so that no result is 0 or infinite."""

_TABLE_SIZE = 128
"""Powers of two between 1 and 2 in the table for `exp`, and pieces of an octave in the tables for `log`."""
_BLOCK = 8192
"""Numbers that are worked on together: what they need stays in the cache."""
_MANTISSA = 52


def _float_of(bits: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return found


def _bits_of(number: float) -> int:
    found: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return found


_LOWEST = _bits_of(math.sqrt(0.5))
"""The bits of the number with which an octave begins."""


def _middle(part: int) -> float:
    """A number in the middle of a piece of the octave, with so few digits that differences from it are exact.

    Around 1 it is 1, so that logarithms near 0 lose no digits.
    """
    low, high = (_float_of(_LOWEST + (at << _MANTISSA - 7)) for at in (part, part + 1))
    return 1.0 if abs((low + high) / 2 - 1) < 1 / 128 else round((low + high) * 256) / 512


with localcontext(prec=40):
    _LN2 = Decimal(2).ln()
    _POWERS = tuple(float(Decimal(2) ** (Decimal(part) / _TABLE_SIZE)) for part in range(_TABLE_SIZE))
    _MIDDLES = tuple(_middle(part) for part in range(_TABLE_SIZE))
    _LOGS = tuple(float(Decimal(middle).ln()) for middle in _MIDDLES)
    # The high parts have few digits: their products with whole numbers are exact.
    _LN2_HIGH, _STEP = math.floor(_LN2 * 2**40) / 2**40, math.floor(_LN2 / _TABLE_SIZE * 2**40) / 2**40
    _LN2_REST, _STEP_REST = float(_LN2 - Decimal(_LN2_HIGH)), float(_LN2 / _TABLE_SIZE - Decimal(_STEP))
    _PER_STEP = float(_TABLE_SIZE / _LN2)
_POWER_TABLE, _MIDDLE_TABLE, _LOG_TABLE = np.array(_POWERS), np.array(_MIDDLES), np.array(_LOGS)


def exp(exponent: float) -> float:
    """e to the power of a number.

    >>> exp(1.0) == float(exp_of(np.array([1.0]))[0])
    True
    """
    x = min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT)
    steps = round(x * _PER_STEP)
    r = (x - steps * _STEP) - steps * _STEP_REST
    power = _POWERS[steps & _TABLE_SIZE - 1]
    series = r * (r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120)))))
    return math.ldexp(power + power * (r + series), steps >> 7)


def log(number: float) -> float:
    """The natural logarithm of a positive number that is not denormal.

    >>> log(1.0), log(2.0) == float(log_of(np.array([2.0]))[0])
    (0.0, True)
    """
    if not number > 0:
        raise ValueError(f"expected a positive number, got {number}")
    bits = _bits_of(number)
    above = bits - _LOWEST
    octaves, part = above >> _MANTISSA, above >> _MANTISSA - 7 & _TABLE_SIZE - 1
    r = (_float_of(bits - (octaves << _MANTISSA)) - _MIDDLES[part]) / _MIDDLES[part]
    series = r * (r * (1 / 2 - r * (1 / 3 - r * (1 / 4 - r * (1 / 5 - r * (1 / 6 - r * (1 / 7)))))))
    return octaves * _LN2_HIGH + (_LOGS[part] + (octaves * _LN2_REST + (r - series)))


def sigmoid(log_odds: float) -> float:
    """The logistic function of a number.

    >>> sigmoid(0.0), 0 < sigmoid(-1000.0) < 1e-300
    (0.5, True)
    """
    e = exp(-abs(log_odds))
    return (1.0 if log_odds >= 0 else e) / (1 + e)


def exp_of(exponents: npt.ArrayLike) -> FloatArray:
    """e to the power of each number."""
    return _by_blocks(_exp, exponents)


def log_of(numbers: npt.ArrayLike) -> FloatArray:
    """The natural logarithm of each of some positive numbers that are not denormal."""
    return _by_blocks(_log, numbers)


def sigmoid_of(log_odds: npt.ArrayLike) -> FloatArray:
    """The logistic function of each number.

    >>> sigmoid_of([0.0, -1000.0]).tolist()[0]
    0.5
    """
    return _by_blocks(_sigmoid, log_odds)


def softplus_of(numbers: npt.ArrayLike) -> FloatArray:
    """The logarithm of 1 + e to the power of each number.

    >>> softplus_of([0.0, 800.0]).round(3).tolist()
    [0.693, 800.0]
    """
    return _by_blocks(_softplus, numbers)


def _by_blocks(function: Callable[[FloatArray], FloatArray], numbers: npt.ArrayLike) -> FloatArray:
    given = np.asarray(numbers, dtype=np.float64)
    flat = given.ravel()
    if len(flat) <= _BLOCK:
        return function(flat).reshape(given.shape)
    found = np.empty(len(flat))
    for start in range(0, len(flat), _BLOCK):
        found[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return found.reshape(given.shape)


def _exp(exponents: FloatArray) -> FloatArray:
    x = np.minimum(np.maximum(exponents, -LARGEST_EXPONENT), LARGEST_EXPONENT)
    steps = np.rint(x * _PER_STEP)
    x -= steps * _STEP
    r = x - steps * _STEP_REST
    whole = steps.astype(np.int64)
    power = _POWER_TABLE[whole & _TABLE_SIZE - 1]
    series = r * (1 / 120)
    for term in (1 / 24, 1 / 6, 1 / 2):
        series += term
        series *= r
    series *= r
    series += r
    series *= power
    series += power
    whole >>= 7
    whole <<= _MANTISSA
    bits = series.view(np.int64)
    bits += whole
    return series


def _log(numbers: FloatArray) -> FloatArray:
    bits = numbers.view(np.int64)
    above = bits - _LOWEST
    octaves = above >> _MANTISSA
    above >>= _MANTISSA - 7
    above &= _TABLE_SIZE - 1
    middle = _MIDDLE_TABLE[above]
    r = (bits - (octaves << _MANTISSA)).view(np.float64)
    r -= middle
    r /= middle
    series = r * (1 / 7)
    for term in (1 / 6, 1 / 5, 1 / 4, 1 / 3, 1 / 2):
        np.subtract(term, series, out=series)
        series *= r
    series *= r
    np.subtract(r, series, out=series)
    series += octaves * _LN2_REST
    series += _LOG_TABLE[above]
    series += octaves * _LN2_HIGH
    return series


def _sigmoid(log_odds: FloatArray) -> FloatArray:
    e = _exp(-np.abs(log_odds))
    return np.where(log_odds >= 0, 1.0, e) / (1 + e)


def _softplus(numbers: FloatArray) -> FloatArray:
    return np.maximum(numbers, 0.0) + _log(1 + _exp(-np.abs(numbers)))
