"""Histories whose cases are named by their number."""

from __future__ import annotations

from acefraud.core.table import FactTable
from acefraud.rules.induction.out_of_time import FactsInMemory, History
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.hashes import hashes_of


def numbered_history(
    table: FactTable, labels: BoolArray, *, times: IntArray | None = None, offset: FloatArray | None = None
) -> History:
    hashes = hashes_of(f"t{number}" for number in range(len(labels)))
    return History(FactsInMemory(table), labels, hashes, times=times, offset=offset)
