"""Candidate conditions: the branches of a small tree grown on gradient and hessian."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from acefraud.rules.induction.bins import UNKNOWN, BinnedTable, Bins, price_of_list
from acefraud.support.arrays import BoolArray, FloatArray, IntArray

_FEW_FACTS = 6
"""Up to this many facts a tree may use all of them."""
_WORTH_MORE = 0.05
"""The share of its worth that a branch must lose without a test for the test to stay."""
_BLOCK = 4096
"""Rows whose masks are worked on together: they stay in the cache."""
_PULL = 5.0
"""Shrinks the risk of words with few cases when words are ordered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeOptions:
    """The shape of a tree and what a branch must hold."""

    leaves: int = 8
    depth: int = 3
    """Facts that a condition tests, at most."""
    least_support: int = 20
    penalty: float = 3.0
    """Lambda of the Newton gain G²/(H + lambda)."""
    facts_looked_at: float = 0.7
    """Share of the facts that each tree may use."""
    most_listed: int = 6
    """Words that one test may list."""
    price: float = 0.3
    """What a test costs, in nats for each nat that it takes to single it out among all tests."""
    plain: bool = False
    """Whether every condition must be short: at most two tests, and lists of at most three values."""


Tests = tuple[tuple[int, bytes], ...]
"""Which bins are inside, by the position of their facts."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A conjunction of bins, and its worth: the log-likelihood that it gains, less the price of its tests."""

    bins: Tests
    worth: float


@dataclass(frozen=True, slots=True)
class _Node:
    bins: Bins
    rows: IntArray
    facts: IntArray
    """The facts that it may be split by..."""
    sums: FloatArray
    """...and gradient, hessian and row count in each of their bins."""
    gain: float = 0.0
    """What the best split would add."""
    sides: tuple[tuple[int, bytes], ...] = ()


def branches(
    table: BinnedTable,
    gradient: FloatArray,
    hessian: FloatArray,
    rows: IntArray,
    *,
    options: TreeOptions,
    generator: np.random.Generator,
) -> list[Branch]:
    """The branches of one tree on these rows, the most worth first."""
    count = max(min(len(table.facts), _FEW_FACTS), round(len(table.facts) * options.facts_looked_at))
    facts = np.sort(generator.choice(len(table.facts), count, replace=False))
    grower = _Grower(table, gradient, hessian, facts, options)
    found = sorted({tuple(sorted(bins.items())) for bins in grower.grow(rows)})
    worths = grower.worths(found, rows)
    pruned = (_pruned(tests, worths) for tests in found)
    best = {
        branch.bins: branch
        for branch in pruned
        if table.readable(dict(branch.bins), options.most_listed, plain=options.plain)
    }
    return sorted(best.values(), key=lambda branch: (-branch.worth, branch.bins))


def _pruned(tests: Tests, worths: Mapping[Tests, float]) -> Branch:
    """A branch without the tests that are not worth their price."""
    branch = Branch(tests, worths[tests])
    shorter = [tests[:at] + tests[at + 1 :] for at in range(len(tests) if len(tests) > 1 else 0)]
    best = max(shorter, key=worths.__getitem__, default=None)
    if best is None or worths[best] < branch.worth - _WORTH_MORE * max(branch.worth, 0.0):
        return branch
    return _pruned(best, worths)


class _Grower:
    def __init__(
        self, table: BinnedTable, gradient: FloatArray, hessian: FloatArray, facts: IntArray, options: TreeOptions
    ) -> None:
        self._table, self._gradient, self._hessian = table, gradient, hessian
        self._facts, self._options = facts, options
        self._bins = np.array([fact.bins for fact in table.facts])
        self._width = int(self._bins[facts].max())
        self._words = np.array([bool(fact.words) for fact in table.facts])

    def grow(self, rows: IntArray) -> Iterator[Bins]:
        """Grow best-first until there are enough leaves."""
        live, leaves = self._split([_Node({}, rows, self._facts, self._sums(self._facts, rows))]), 1
        while live and leaves < self._options.leaves:
            node = live.pop(max(range(len(live)), key=lambda place: live[place].gain))
            leaves += len(node.sides) - 1
            children = [{**node.bins, at: _both(node.bins.get(at), inside)} for at, inside in node.sides]
            yield from children
            if leaves < self._options.leaves:
                live += self._split(self._children(node, children))

    def _children(self, node: _Node, children: Sequence[Bins]) -> list[_Node]:
        """The sides of a node that can be split again. All but the largest are counted, and that has what is left."""
        at = node.sides[0][0]
        codes = self._table.codes[at][node.rows]
        held = [node.rows[np.frombuffer(inside, dtype=np.bool_)[codes]] for _, inside in node.sides]
        if sum(map(len, held)) < len(node.rows):  # rows without the fact, which are on no side
            held.append(node.rows[codes == UNKNOWN])
        deep = len(children[0]) >= self._options.depth
        facts = np.intersect1d(node.facts, list(children[0])) if deep else node.facts
        largest = max(range(len(held)), key=lambda side: len(held[side]))
        sums = [self._sums(facts, rows if side != largest else rows[:0]) for side, rows in enumerate(held)]
        # Exact, because all are multiples of one unit.
        sums[largest] = node.sums[:, np.searchsorted(node.facts, facts)] - sum(sums)
        most, plain = self._options.most_listed, self._options.plain
        return [
            _Node(bins, held[side], facts, sums[side])
            for side, bins in enumerate(children)
            if self._table.readable(bins, most, plain=plain)
        ]

    def worths(self, found: Sequence[Tests], rows: IntArray) -> dict[Tests, float]:
        """What each branch and all its parts gain in log-likelihood, less the price of their tests."""
        parts = sorted(
            {part for tests in found for size in range(len(tests)) for part in combinations(tests, size + 1)}
        )
        place = {part: at for at, part in enumerate(parts)}
        sums = np.zeros((len(parts), 2))
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            masks = np.empty((len(parts), len(block)), dtype=np.bool_)
            for at, part in enumerate(parts):
                last, inside = part[-1]
                if len(part) == 1:
                    masks[at] = np.frombuffer(inside, dtype=np.bool_)[self._table.codes[last][block]]
            for at, part in enumerate(parts):  # in order, so that what a part begins with was there before it
                if len(part) > 1:
                    np.logical_and(masks[place[part[:-1]]], masks[place[part[-1:]]], out=masks[at])
            # Gradients and hessians are cut to units, so that no order of adding them rounds.
            sums += masks.astype(np.float64) @ np.stack([self._gradient[block], self._hessian[block]], axis=1)
        gained = np.square(sums[:, 0]) / (sums[:, 1] + self._options.penalty) / 2
        prices = np.array([self._table.price(dict(part)) for part in parts])
        return dict(zip(parts, (gained - self._options.price * prices).tolist(), strict=True))

    def _split(self, nodes: Sequence[_Node]) -> list[_Node]:
        """Nodes that may be split by equally many facts, each with its best split."""
        if not nodes:
            return []
        facts, sums = (
            np.concatenate([node.facts for node in nodes]),
            np.concatenate([node.sums for node in nodes], axis=1),
        )
        order = _Order.of(sums, self._words[facts], self._bins[facts], self._options.penalty)
        gains, cuts = self._best_cuts(sums, order)
        gradient, hessian = sums[:2].sum(axis=2)
        gains -= gradient * gradient / (hessian + self._options.penalty)
        found = []
        for node, first in zip(nodes, range(0, len(facts), len(facts) // len(nodes)), strict=True):
            at = first + int(np.argmax(gains[first : first + len(node.facts)]))
            if gains[at] > 0:
                inside = self._inside(int(facts[at]), int(cuts[at]), order.listed(at))
                sides = self._sides(int(facts[at]), inside, int(sums[2, at, UNKNOWN]))
                found.append(replace(node, gain=float(gains[at]), sides=sides))
        return found

    def _sums(self, facts: IntArray, rows: IntArray) -> FloatArray:
        """Gradient, hessian and row count in each bin of each fact, padded to the widest."""
        sums = np.zeros((3, len(facts), self._width))
        if len(rows):
            numbers = self._gradient[rows], self._hessian[rows], None
            for at, fact in enumerate(facts.tolist()):
                codes = self._table.codes[fact].take(rows).astype(np.intp)  # once, and not in each of the counts
                for of_kind, weights in zip(sums, numbers, strict=True):
                    of_kind[at] = np.bincount(codes, weights, self._width)
        return sums

    def _best_cuts(self, sums: FloatArray, order: _Order) -> tuple[FloatArray, IntArray]:
        """The best cut of each fact, and its gain."""
        options = self._options
        known = sums[:, :, 1:].copy()
        known[:, order.words] = order.ordered(sums)
        left = np.cumsum(known, axis=2)
        left, right = left[:, :, :-1], left[:, :, -1:] - left[:, :, :-1]
        gains = np.square(left[0]) / (left[1] + options.penalty) + np.square(right[0]) / (right[1] + options.penalty)
        forbidden = np.minimum(left[2], right[2]) < options.least_support
        too_many, prices = order.lists(gains.shape[1], options.most_listed)
        forbidden[order.words] |= too_many
        gains[order.words] -= 2 * options.price * prices
        gains[forbidden] = -np.inf
        if not gains.shape[1]:
            return np.full(len(gains), -np.inf), np.zeros(len(gains), dtype=np.int64)
        cuts = np.argmax(gains, axis=1)
        apart = np.square(sums[0, :, UNKNOWN]) / (sums[1, :, UNKNOWN] + options.penalty)
        return gains[np.arange(len(gains)), cuts] + apart, cuts

    def _inside(self, place: int, cut: int, order: IntArray | None) -> BoolArray:
        """The bins on one side of a cut; for words, the side that lists fewer."""
        inside = np.zeros(self._bins[place], dtype=np.bool_)
        if order is None:
            inside[1 : cut + 2] = True
        else:
            inside[order[cut + 1 :] if cut + 1 > len(order) - cut - 1 else order[: cut + 1]] = True
        return inside

    def _sides(self, place: int, inside: BoolArray, missing: int) -> tuple[tuple[int, bytes], ...]:
        """Both sides of a cut, and the rows with a missing value if there are enough."""
        outside = ~inside
        outside[UNKNOWN] = False
        sides = [inside, outside]
        if missing >= self._options.least_support and self._table.facts[place].may_be_missing:
            sides.append(np.arange(len(inside)) == UNKNOWN)
        return tuple((place, side.tobytes()) for side in sides)


@dataclass(frozen=True, slots=True)
class _Order:
    """The bins of categorical facts in order of risk, so that one cut splits them."""

    words: IntArray
    """Which of the facts are words."""
    places: IntArray
    """For each of them its bins in order."""
    counts: IntArray
    """How many of these have cases. The last bin holds all rare words and is never listed."""

    @classmethod
    def of(cls, sums: FloatArray, are_words: BoolArray, bins: IntArray, penalty: float) -> _Order:
        words = np.flatnonzero(are_words)
        gradient, curvature, cases = sums[:, words]
        listed = (cases > 0) & (np.arange(sums.shape[2]) < bins[words][:, None] - 1)
        listed[:, UNKNOWN] = False
        risk = np.where(listed, gradient / (curvature + penalty + _PULL), np.inf)
        return cls(words, np.argsort(risk, axis=1, kind="stable"), listed.sum(axis=1))

    def listed(self, at: int) -> IntArray | None:
        """The bins of one fact in order; None if it is not categorical."""
        row = int(np.searchsorted(self.words, at))
        is_word = row < len(self.words) and self.words[row] == at
        return self.places[row, : self.counts[row]] if is_word else None

    def ordered(self, sums: FloatArray) -> FloatArray:
        """The sums of the facts that are words, in order; nothing for bins that are not listed."""
        taken = np.take_along_axis(sums[:, self.words], self.places[None], axis=2)
        there: BoolArray = np.arange(sums.shape[2]) < self.counts[:, None]
        return (taken * there)[:, :, :-1]

    def lists(self, cuts: int, most: int) -> tuple[BoolArray, FloatArray]:
        """At which cuts the shorter side would list more than `most` words, and the price of its list at each."""
        left, words = np.arange(1, cuts + 1), self.counts[:, None]
        shorter = np.clip(np.minimum(left, words - left), 0, None)
        return shorter > most, price_of_list(shorter, words)


def _both(one: bytes | None, other: bytes) -> bytes:
    if one is None:
        return other
    return (np.frombuffer(one, dtype=np.bool_) & np.frombuffer(other, dtype=np.bool_)).tobytes()
