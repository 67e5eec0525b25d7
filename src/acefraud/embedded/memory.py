"""The labelled cases a reflector looks back on: bounded, and read column by column without reading twice."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from datetime import datetime

import numpy as np
import numpy.typing as npt

from acefraud.core.condition import Condition, Test
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, FactValue
from acefraud.embedded.facts import facts_of
from acefraud.embedded.induction.bank import TestBank
from acefraud.embedded.induction.candidates import CandidateOptions, candidate_tests
from acefraud.embedded.scorecard import points_for, score_in

Mask = npt.NDArray[np.bool_]

_GROWTH = 1.3
"""Candidate tests are chosen anew when the memory has grown by this factor."""
_FEW = 16
"""Up to so many rows, one after another is faster than column by column."""
_ENOUGH_TO_KEEP_SOME_ASIDE = 150
_FORGET = 0.2
"""Share of the oldest cases that goes when the memory is full."""


class CaseMemory:
    """Cases in the order they became known. A revised case replaces the one before."""

    def __init__(self, capacity: int, options: CandidateOptions) -> None:
        self.capacity = capacity
        self._options = options
        self._cases: dict[str, tuple[dict[str, FactValue], bool, datetime | None]] = {}
        self._rows: list[dict[str, FactValue]] = []
        self._labels: list[bool] = []
        self._aside: list[bool] = []
        self._masks: dict[Condition, Mask] = {}
        self._knowledge = np.zeros(0)
        self._table = FactTable([])
        self._bank = TestBank()
        self._matrix = np.zeros((0, 0), dtype=np.float32)
        self._bank_from = self._evaluated = 0

    def __len__(self) -> int:
        return len(self._cases)

    def remember(self, cases: Iterable[Case]) -> None:
        """Take in cases; the oldest make room where there is none."""
        for case in cases:
            key = case.transaction.id
            known = (facts_of(case.transaction).facts, case.is_fraud, case.transaction.time)
            if key in self._cases:
                if self._cases[key] == known:
                    continue
                del self._cases[key]
                self._forget_columns()
            self._cases[key] = known
        if len(self._cases) > self.capacity:
            surplus = len(self._cases) - round(self.capacity * (1 - _FORGET))
            self._cases = dict(list(self._cases.items())[surplus:])
            self._forget_columns()

    @property
    def labels(self) -> Mask:
        """Whether each case was fraud."""
        self._catch_up()
        return np.array(self._labels, dtype=np.bool_)

    @property
    def times(self) -> list[datetime | None]:
        """When each case happened."""
        return [time for _, _, time in self._cases.values()]

    @property
    def table(self) -> FactTable:
        """All cases as a column table."""
        self._catch_up()
        if len(self._table) < len(self._rows):
            self._table = FactTable(self._rows)
        return self._table

    def found_in(self) -> Mask:
        """The cases that conditions may be sought in. Three in ten are kept aside, to check what was found."""
        self._catch_up()
        if len(self._rows) < _ENOUGH_TO_KEEP_SOME_ASIDE:
            return np.ones(len(self._rows), dtype=np.bool_)
        return ~np.array(self._aside, dtype=np.bool_)

    def mask(self, condition: Condition) -> Mask:
        """Where a condition held among the cases."""
        self._catch_up()
        known = self._masks.get(condition)
        if known is None or len(known) < len(self._rows):
            if known is None:
                known = condition.holds_in(self.table)
            else:
                known = np.concatenate([known, _where(condition, self._rows[len(known) :])])
            self._masks[condition] = known
        return known

    def knowledge(self) -> npt.NDArray[np.float64]:
        """The scorecard's sum for each case."""
        self._catch_up()
        start = len(self._knowledge)
        if start < len(self._rows):
            self._knowledge = np.concatenate([self._knowledge, _scores(self._rows[start:])])
        return self._knowledge

    def candidates(self) -> tuple[tuple[Test, ...], npt.NDArray[np.float32]]:
        """Tests to grow conditions from, and where each was true."""
        self._catch_up()
        count = len(self._rows)
        if count >= self._bank_from * _GROWTH or not len(self._bank):
            table = self.table
            self._bank = TestBank(candidate_tests(table, np.array(self._labels, dtype=np.bool_), self._options))
            self._matrix = np.zeros((math.ceil(count * _GROWTH), len(self._bank)), dtype=np.float32)
            self._matrix[:count] = self._bank.evaluate(table)
            self._bank_from = self._evaluated = count
        elif self._evaluated < count:
            self._matrix[self._evaluated : count] = self._bank.evaluate(FactTable(self._rows[self._evaluated :]))
            self._evaluated = count
        return self._bank.tests, self._matrix[:count]

    def _forget_columns(self) -> None:
        self._rows, self._labels, self._aside, self._masks = [], [], [], {}
        self._knowledge = np.zeros(0)
        self._table = FactTable([])
        self._bank = TestBank()

    def _catch_up(self) -> None:
        if len(self._rows) < len(self._cases):
            for key, (facts, is_fraud, _) in list(self._cases.items())[len(self._rows) :]:
                self._rows.append(facts)
                self._labels.append(is_fraud)
                self._aside.append(zlib.crc32(key.encode()) % 10 < 3)


def _where(condition: Condition, rows: list[dict[str, FactValue]]) -> Mask:
    if len(rows) > _FEW:
        return condition.holds_in(FactTable(rows))
    return np.fromiter((condition.holds(row) for row in rows), np.bool_, len(rows))


def _scores(rows: list[dict[str, FactValue]]) -> npt.NDArray[np.float64]:
    if len(rows) > _FEW:
        return score_in(FactTable(rows))
    return np.fromiter((sum(point.points for point in points_for(row)) for row in rows), np.float64, len(rows))
