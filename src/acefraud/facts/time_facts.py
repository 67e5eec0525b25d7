"""Facts from the time of a transaction: the hour, the night, the day of the week and the weekend, all in UTC."""

from __future__ import annotations

from calendar import day_name
from collections.abc import Collection

import numpy as np

from acefraud.core.fact_names import NIGHT
from acefraud.core.table import Categories, Columns, FactTable, Flags
from acefraud.core.transaction import Transaction
from acefraud.core.transactions import Transactions
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.timestamps import UNKNOWN, micros_of

CLOCK_FACTS = ("hour", "night")
DAY_FACTS = ("weekday", "weekend")

DAY = 86_400_000_000
"""A day in microseconds."""
_MINUTE = 60_000_000
_THURSDAY = 3
"""The day of the week of 1 January 1970, counted from Monday."""
_SATURDAY = 5


def are_night(hours: FloatArray) -> Flags:
    """Whether each hour is between 11 PM and 6 AM; unknown where the hour is."""
    return np.where(np.isnan(hours), -1, (hours >= NIGHT[0]) | (hours < NIGHT[1])).astype(np.int8)


def time_facts(times: IntArray, names: Collection[str]) -> Columns:
    """Those of the `CLOCK_FACTS` and `DAY_FACTS` that are asked for, unknown where a time is.

    >>> facts = time_facts(np.array([0, 2 * DAY + 1260 * _MINUTE]), (*CLOCK_FACTS, *DAY_FACTS))
    >>> facts.numbers["hour"].tolist(), facts.flags["night"].tolist(), facts.flags["weekend"].tolist()
    ([0.0, 21.0], [1, 0], [0, 1])
    >>> [facts.categories["weekday"][1][code] for code in facts.categories["weekday"][0]]
    ['Thursday', 'Saturday']
    """
    known = times != UNKNOWN
    hour = np.where(known, np.round(times % DAY // _MINUTE / 60, 2), np.nan)
    weekday = (times // DAY + _THURSDAY) % 7
    flags = {"night": are_night(hour), "weekend": np.where(known, weekday >= _SATURDAY, -1).astype(np.int8)}
    return Columns(
        {"hour": hour} if "hour" in names else {},
        {name: column for name, column in flags.items() if name in names},
        {"weekday": _day_names(weekday, known)} if "weekday" in names else {},
    )


def _day_names(weekday: IntArray, known: BoolArray) -> Categories:
    days = np.unique(weekday[known]).tolist()
    words = tuple(sorted(day_name[day] for day in days))
    codes = np.full(7, -1, dtype=np.int32)
    codes[days] = [words.index(day_name[day]) for day in days]
    return np.where(known, codes[weekday], -1).astype(np.int32), words


def with_time_facts(rows: Transactions, names: Collection[str], *, without_text: Collection[str] = ()) -> Transactions:
    """The transactions with the facts of their time. What a transaction says itself stays.

    Some facts may be for those `without_text` only.
    """
    told = rows.times if rows.texts is None else np.where(np.array(rows.texts) == "", rows.times, UNKNOWN)
    for wanted, times in ((names, rows.times), (without_text, told)):
        if wanted and (times != UNKNOWN).any():
            rows = rows.with_facts(rows.facts.beside(time_facts(times, wanted)))
    return rows


def with_own_time_facts(row: Transaction, names: Collection[str]) -> Transaction:
    """The transaction with the facts of its time. What it says itself stays."""
    missing = [name for name in names if name not in row.facts]
    if row.time is None or not missing:
        return row
    found = FactTable.of_columns(time_facts(np.array([micros_of(row.time)]), missing), 1).row(0)
    return row.model_copy(update={"facts": {**row.facts, **found}})
