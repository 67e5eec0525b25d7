"""The tests that a condition can be grown from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from acefraud.core.condition import Op, Test
from acefraud.core.lexicon import words_for
from acefraud.core.table import FactTable

Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateOptions:
    """How many tests to choose from."""

    quantiles: int = 16
    fraud_quantiles: int = 8
    few_values: int = 12
    """A whole number with no more distinct values than this is cut at each of them."""
    most_categories: int = 30
    least_support: int = 5


def candidate_tests(table: FactTable, labels: Labels, options: CandidateOptions) -> list[Test]:
    """Thresholds at quantiles of all rows and of the fraud rows, categories, flags, and missing values.

    Without the second kind of quantile, rare frauds hide inside one bin.
    """
    tests: list[Test] = []
    for name in table.names:
        tests.extend(_numeric_tests(name, table.numbers(name), labels, options))
        tests.extend(_flag_tests(name, table.flags(name)))
        tests.extend(_category_tests(name, *table.categories(name), options))
        tests.extend(_missing_tests(name, table, options))
    return tests


def _numeric_tests(
    name: str, numbers: npt.NDArray[np.float64], labels: Labels, options: CandidateOptions
) -> Iterator[Test]:
    known = ~np.isnan(numbers)
    values = numbers[known]
    distinct = np.unique(values)
    if len(distinct) < 2:
        return
    if len(distinct) <= options.few_values and bool(np.all(distinct == np.floor(distinct))):
        for value in distinct[1:]:
            yield Test(name, Op.AT_LEAST, float(value))
            yield Test(name, Op.BELOW, float(value))
        return
    frauds = numbers[known & labels]
    cuts = _quantiles(values, options.quantiles)
    if len(frauds) >= options.least_support:
        cuts = np.concatenate([cuts, _quantiles(frauds, options.fraud_quantiles)])
    for threshold in rounded_cuts(np.unique(cuts), float(distinct[0]), float(distinct[-1])):
        yield Test(name, Op.ABOVE, threshold)
        yield Test(name, Op.BELOW, threshold)


def _quantiles(values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    return np.quantile(values, np.arange(1, count + 1) / (count + 1))


def rounded_cuts(cuts: npt.NDArray[np.float64], least: float, most: float) -> list[float]:
    """Each cut as the roundest figure nearer to it than to its neighbours."""
    edges = np.concatenate([[least], cuts, [most]])
    middles = (edges[:-1] + edges[1:]) / 2
    found = {roundest(float(low), float(high)) for low, high in pairwise(middles) if high > low}
    return sorted(found)


def roundest(low: float, high: float) -> float:
    """The figure in [low, high] that a person would say.

    >>> roundest(1870.0, 2130.0), roundest(0.231, 0.274), roundest(3.4, 4.4)
    (2000.0, 0.25, 4.0)
    """
    if low <= 0 <= high:
        return 0.0
    exponent = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for digits in range(17):
        for fraction in (1.0, 0.5, 0.25):
            step = fraction * 10.0 ** (exponent - digits)
            figure = round(math.ceil(low / step) * step, max(0, digits - exponent + 2))
            if low <= figure <= high:
                return figure
    return low


def _missing_tests(name: str, table: FactTable, options: CandidateOptions) -> Iterator[Test]:
    """Whether a column is empty says something of a record. That a text does not mention a thing says little of it,
    so the facts that texts are read for are passed over."""
    if words_for(name) is None:
        known = int(table.known(name).sum())
        if options.least_support <= known <= len(table) - options.least_support:
            yield Test(name, Op.MISSING)


def _flag_tests(name: str, flags: npt.NDArray[np.int8]) -> Iterator[Test]:
    for value in (True, False):
        if bool(np.any(flags == int(value))):
            yield Test(name, Op.IS, value)


def _category_tests(
    name: str, codes: npt.NDArray[np.int32], words: tuple[str, ...], options: CandidateOptions
) -> Iterator[Test]:
    if not words:
        return
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    for place in np.argsort(-counts, kind="stable")[: options.most_categories]:
        if counts[place] >= options.least_support:
            yield Test(name, Op.IS, words[int(place)])
