"""Many conditions compiled together, so that one look at each fact answers all of them.

A value of a fact makes some tests false and leaves others open. Which rows of conditions that concerns is known
beforehand, as bit sets: for a number by the interval it falls into, for a flag by its two values, for a word by the
word. A transaction is then answered by one lookup and one "or" for each of its facts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acefraud.core.condition import Condition
from acefraud.core.fact_rules import FactRules, Marks, NumberRules, Placed
from acefraud.core.table import FactTable, Mask
from acefraud.core.transaction import FactValue

MOST_BREAKS = 256
"""Places at which the values of one fact are told apart, unless asked for otherwise."""

_MOST_PLANS = 1024

_Shape = tuple[object, ...]
"""The names of some facts, then the types of their values."""


class Rules:
    """The conditions of many rows, compiled together. A row may have none. Never changed once made.

    The rows it answers with are bit sets, bit ``i`` for row ``i``.

    >>> rules = Rules.of([Condition.parse("amount > 5"), None, Condition.parse("vpn is true")])
    >>> [f"{rows:03b}" for rows in rules.standing({"amount": 7.0})]
    ['111', '001']
    >>> [f"{rows:03b}" for rows in rules.standing({"amount": 3.0, "vpn": True})]
    ['110', '100']
    """

    def __init__(
        self,
        conditions: tuple[Condition | None, ...],
        facts: Mapping[str, FactRules],
        conditioned: int,
        most_breaks: int,
    ) -> None:
        """From parts that fit each other; `Rules.of` makes them."""
        self._conditions = conditions
        self._facts = facts
        self._conditioned = conditioned
        self._all = (1 << len(conditions)) - 1
        self._most_breaks = most_breaks
        self._plans: dict[_Shape, _Plan] = {}

    @classmethod
    def of(cls, conditions: Sequence[Condition | None], most_breaks: int = MOST_BREAKS) -> Rules:
        """Compile conditions.

        Where the tests of a fact tell its numbers apart at more than ``most_breaks`` places, only so many of them
        are compiled. That saves memory and costs time for values close to the others; the answers are the same.
        """
        if most_breaks < 1:
            raise ValueError(f"most_breaks must be at least 1, got {most_breaks}")
        return cls((), {}, 0, most_breaks).extended(conditions)

    def extended(self, conditions: Sequence[Condition | None]) -> Rules:
        """These rows and more at the end. Only the facts that the new rows speak of are compiled again.

        >>> one = Rules.of([Condition.parse("amount > 5")])
        >>> len(one.extended([None])), len(one)
        (2, 1)
        """
        conditioned = self._conditioned
        added: dict[str, list[Placed]] = {}
        for row, condition in enumerate(conditions, start=len(self)):
            if condition is None:
                continue
            conditioned |= 1 << row
            for test in condition.tests:
                added.setdefault(test.fact, []).append((row, test))
        facts = dict(self._facts)
        for name, tests in added.items():
            fact = FactRules.of(name, tuple(tests), self._most_breaks)
            facts[name] = facts[name].joined(fact, self._most_breaks) if name in facts else fact
        return Rules((*self._conditions, *conditions), facts, conditioned, self._most_breaks)

    def __len__(self) -> int:
        return len(self._conditions)

    @property
    def conditioned(self) -> int:
        """The rows with a condition, as a bit set."""
        return self._conditioned

    @property
    def any(self) -> bool:
        """Whether any row has a condition."""
        return self._conditioned != 0

    @property
    def footprint(self) -> int:
        """About how many bytes the compiled form takes, without the conditions themselves."""
        return sum(fact.footprint for fact in self._facts.values())

    def standing(self, facts: Mapping[str, FactValue]) -> tuple[int, int]:
        """The rows that are possible and the rows that are proven, as bit sets.

        Possible is a row whose condition is not false, or that has none; proven is one whose condition is true.
        """
        shape = (*facts, *map(type, facts.values()))
        plan = self._plans.get(shape) or self._planned(shape, facts)
        fails = plan.fails
        for name, cuts, by_cell in plan.numbers:
            fails |= by_cell[bisect_right(cuts, facts[name])]
        for name, by_value, otherwise in plan.others:
            fails |= by_value.get(facts[name], otherwise)
        possible = self._all ^ fails
        proven = possible & plan.closed
        if plan.coarse or plan.unsure:
            return self._settled(facts, possible, proven, possible & plan.unsure_about(facts))
        return possible, proven

    def standing_in(self, table: FactTable) -> tuple[Mask, Mask]:
        """The same for a whole table: two arrays, with a row for each row of the table and a column for each of these.

        >>> rules = Rules.of([Condition.parse("amount > 5"), None])
        >>> possible, proven = rules.standing_in(FactTable([{"amount": 7.0}, {"amount": 3.0}, {}]))
        >>> possible.tolist()
        [[True, True], [False, True], [True, True]]
        >>> proven.tolist()
        [[True, False], [False, False], [False, False]]
        """
        names = set(table.names)
        marks = Marks(len(table), len(self), *self._for_want_of(self._facts.keys() - names))
        for name in self._facts.keys() & names:
            self._facts[name].mark(table, marks)
        possible = ~marks.fails
        proven = possible & ~marks.opens & marks.packed([self._conditioned])
        return marks.unpacked(possible), marks.unpacked(proven)

    def _for_want_of(self, names: Iterable[str]) -> tuple[int, int]:
        """The rows that fail and the rows that are left open where these facts are not known."""
        fails = opens = 0
        for name in names:
            fails |= self._facts[name].known
            opens |= self._facts[name].valued
        return fails, opens

    def _planned(self, shape: _Shape, facts: Mapping[str, FactValue]) -> _Plan:
        """The plan for such facts, kept because the transactions of a stream mostly bring the same ones."""
        kinds = {name: type(value) for name, value in facts.items() if name in self._facts and value is not None}
        fails, opens = self._for_want_of(self._facts.keys() - kinds)
        plan = _Plan.of([(self._facts[name], kind) for name, kind in kinds.items()], fails, opens, self._conditioned)
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        self._plans[shape] = plan
        return plan

    def _settled(self, facts: Mapping[str, FactValue], possible: int, proven: int, unsure: int) -> tuple[int, int]:
        """Ask the conditions of the unsure rows themselves."""
        for row in places_in(unsure):
            condition = self._conditions[row]
            truth = None if condition is None else condition.truth(facts)
            if truth is False:
                possible ^= 1 << row
            if truth is not True:
                proven &= ~(1 << row)
        return possible, proven


def places_in(rows: int) -> list[int]:
    """The rows of a bit set, in order.

    >>> places_in(0b10110)
    [1, 2, 4]
    """
    places = []
    while rows:
        lowest = rows & -rows
        places.append(lowest.bit_length() - 1)
        rows ^= lowest
    return places


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to look up for facts of one shape."""

    fails: int
    """Rows that fail whatever the values are."""
    closed: int
    """Rows with a condition that nothing leaves open."""
    unsure: int
    """Rows to ask whatever the values are."""
    numbers: list[tuple[str, list[float], list[int]]]
    """Facts with the cuts of their numbers and the rows that fail in each cell."""
    others: list[tuple[str, dict[Any, int], int]]
    """Facts with the rows that fail for each flag or word, and for a word that no test names."""
    coarse: list[NumberRules]
    """Those numbers with cuts left out."""

    @classmethod
    def of(cls, facts: Sequence[tuple[FactRules, type]], fails: int, opens: int, conditioned: int) -> _Plan:
        """For these facts with values of these types; ``fails`` and ``opens`` come of those that are not there."""
        unsure = 0
        numbers: list[NumberRules] = []
        others: list[tuple[str, dict[Any, int], int]] = []
        for fact, kind in facts:
            fails |= fact.missing
            if kind is float:
                opens |= fact.flags.rows | fact.words.rows
                numbers += [fact.numbers] if fact.numbers.rows else []
            elif kind is bool:
                opens |= fact.numbers.rows | fact.words.rows
                others += [(fact.flags.name, fact.flags.fails, 0)] if fact.flags.rows else []
            elif kind is str:
                opens |= fact.numbers.rows | fact.flags.rows
                others += [(fact.words.name, fact.words.fails, fact.words.others)] if fact.words.rows else []
            else:
                unsure |= fact.valued  # such as a subclass of str, of which some tests can say something
        return cls(
            fails=fails,
            closed=conditioned & ~opens,
            unsure=unsure,
            numbers=[(each.name, each.cuts, each.fails) for each in numbers],
            others=others,
            coarse=[each for each in numbers if each.unsure],
        )

    def unsure_about(self, facts: Mapping[str, FactValue]) -> int:
        """The rows for which the values lie too close to a place that is not compiled."""
        unsure = self.unsure
        for each in self.coarse:
            unsure |= each.unsure[bisect_right(each.cuts, facts[each.name])]
        return unsure
