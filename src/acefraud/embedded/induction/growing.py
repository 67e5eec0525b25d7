"""Growing one condition: the conjunction with the largest Newton gain on the present residual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.condition import Condition, Test
from acefraud.embedded.induction.threads import threads_for

Rows = npt.NDArray[np.float32]
Column = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthOptions:
    """The shape of a condition and what it must be worth."""

    depth: int = 3
    beam: int = 4
    least_support: int = 8
    penalty: float = 1.0
    """Lambda of the Newton gain G²/(H + lambda)."""
    improvement: float = 1.1
    """A further test must raise the gain at least by this factor: short conditions are easier to read."""


@dataclass(frozen=True, slots=True)
class Grown:
    """Tests by their place among the candidates, with the gain and the Newton step of their conjunction."""

    places: tuple[int, ...]
    gain: float
    step: float


@dataclass(frozen=True, slots=True)
class Residual:
    """What the playbook still gets wrong: first and second derivative of the log-loss, row by row."""

    gradient: Column
    hessian: Column
    rows: Mask
    """The rows that count; the others are kept aside to check what is found."""

    @classmethod
    def of(cls, y: Column, p: Column, rows: Mask | None = None) -> Residual:
        """The residual of probabilities p where y turned out."""
        return cls(y - p, p * (1 - p), np.ones(len(y), dtype=np.bool_) if rows is None else rows)


def grow(
    matrix: Rows, residual: Residual, options: GrowthOptions, *, allowed: Mask | None = None, sign: int = 0
) -> Grown | None:
    """The best conjunction of candidate columns, by beam search.

    `sign` asks for conjunctions that argue for fraud (1) or against it (-1) only.
    """
    with threads_for(matrix.size):
        return _search(matrix, residual, options, allowed, sign)


def _search(matrix: Rows, residual: Residual, options: GrowthOptions, allowed: Mask | None, sign: int) -> Grown | None:
    beam = [Grown((), 0.0, 0.0)]
    best: Grown | None = None
    fit = np.ones(matrix.shape[1], dtype=np.bool_) if allowed is None else allowed
    for _ in range(options.depth):
        found: dict[frozenset[int], Grown] = {}
        for child in _children(matrix, residual, beam, options, fit=fit, sign=sign):
            found.setdefault(frozenset(child.places), child)
        if not found:
            break
        beam = sorted(found.values(), key=lambda grown: (-grown.gain, grown.places))[: options.beam]
        if best is None or beam[0].gain > best.gain * options.improvement:
            best = beam[0]
    return None if best is None else _pruned(matrix, residual, best, options)


def _pruned(matrix: Rows, residual: Residual, grown: Grown, options: GrowthOptions) -> Grown:
    """Without the tests that later ones have made idle: each must raise the gain by itself."""
    for place in grown.places:
        rest = tuple(other for other in grown.places if other != place)
        if rest:
            inside = _inside(matrix, rest) & residual.rows
            g, h = float(residual.gradient[inside].sum()), float(residual.hessian[inside].sum())
            gain = g * g / (h + options.penalty)
            if gain * options.improvement >= grown.gain and g * grown.step > 0:
                return _pruned(matrix, residual, Grown(rest, gain, g / (h + options.penalty)), options)
    return grown


def _children(
    matrix: Rows, residual: Residual, parents: Sequence[Grown], options: GrowthOptions, *, fit: Mask, sign: int
) -> Iterator[Grown]:
    """The best further tests of each parent. All sums of all parents come from one matrix product."""
    inside = [_inside(matrix, parent.places) & residual.rows for parent in parents]
    weights = np.concatenate([np.stack([residual.gradient * rows, residual.hessian * rows, rows]) for rows in inside])
    sums = (weights.astype(np.float32) @ matrix).astype(np.float64)
    for place, parent in enumerate(parents):
        g, h, support = sums[3 * place : 3 * place + 3]
        gains = g * g / (h + options.penalty)
        good = fit & (support >= options.least_support) & (gains > parent.gain)
        if parent.places:
            good &= support < inside[place].sum()  # a test that everything here passes adds nothing but words
        if sign:
            good &= np.sign(g) == sign
        ranked = np.argsort(np.where(good, -gains, np.inf), kind="stable")[: options.beam]
        for test in ranked[good[ranked]]:
            step = float(g[test] / (h[test] + options.penalty))
            yield Grown((*parent.places, int(test)), float(gains[test]), step)


def _inside(matrix: Rows, places: Sequence[int]) -> Mask:
    if not places:
        return np.ones(len(matrix), dtype=np.bool_)
    inside: Mask = np.all(matrix[:, list(places)] > 0, axis=1)
    return inside


def condition_of(tests: Sequence[Test], places: Sequence[int]) -> Condition:
    """The condition that these candidates make, without tests that others imply.

    >>> from acefraud.core.condition import Op
    >>> str(condition_of([Test("amount", Op.ABOVE, 50.0), Test("amount", Op.ABOVE, 80.0)], [0, 1]))
    'amount > 80'
    """
    chosen = [tests[place] for place in places]
    kept = [test for test in chosen if not any(other != test and other.implies(test) for other in chosen)]
    return Condition(tuple(kept))
