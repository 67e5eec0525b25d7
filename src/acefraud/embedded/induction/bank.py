"""Many tests at once: those that compare the same fact the same way are evaluated together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from acefraud.core.comparison import COMPARE, ORDERED, Op, Test
from acefraud.core.table import FactTable

Rows = npt.NDArray[np.float32]


class TestBank:
    """A list of tests, evaluated on whole tables.

    >>> bank = TestBank([Test("amount", Op.ABOVE, 5.0), Test("amount", Op.ABOVE, 9.0), Test("vpn", Op.IS, True)])
    >>> bank.evaluate(FactTable([{"amount": 7.0}, {"amount": 10.0, "vpn": True}])).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    def __init__(self, tests: Sequence[Test] = ()) -> None:
        self.tests = tuple(tests)
        places: dict[tuple[str, Op], list[int]] = defaultdict(list)
        self._others: list[int] = []
        for place, test in enumerate(self.tests):
            if test.op in ORDERED:
                places[test.fact, test.op].append(place)
            else:
                self._others.append(place)
        self._bounds = [
            (fact, op, np.array(at), np.array([self.tests[place].value for place in at], dtype=np.float64))
            for (fact, op), at in places.items()
        ]

    def __len__(self) -> int:
        return len(self.tests)

    def evaluate(self, table: FactTable) -> Rows:
        """1 where a test is true, 0 elsewhere: a row for each row of the table, a column for each test."""
        matrix = np.zeros((len(table), len(self.tests)), dtype=np.float32)
        for fact, op, places, thresholds in self._bounds:
            matrix[:, places] = COMPARE[op](table.numbers(fact)[:, None], thresholds[None, :])
        for place in self._others:
            matrix[:, place] = self.tests[place].in_table(table)[0]
        return matrix
