"""Which cases say the same as an earlier one."""

from __future__ import annotations

import numpy as np
import polars as pl

from acefraud.core.transactions import Cases
from acefraud.datasets.distinct import Places


def first_alike(cases: Cases) -> Places:
    """For each row the first one with the same facts and text.

    >>> from acefraud.core.transaction import Case, Transaction
    >>> rows = [Transaction(id=one, facts={"amount": amount}) for one, amount in [("a", 5.0), ("b", 7.0), ("c", 5.0)]]
    >>> first_alike(Cases.of([Case(transaction=row, is_fraud=False) for row in rows])).tolist()
    [0, 1, 0]
    """
    said = _said(cases)
    rows = np.arange(len(cases))
    if not said:
        return np.zeros_like(rows)
    frame = pl.DataFrame([*said, pl.Series("row", rows)])
    return frame.select(pl.col("row").min().over([one.name for one in said]))["row"].to_numpy()


def _said(cases: Cases) -> list[pl.Series]:
    """Everything that rows may have in common, in columns whose cells can be compared."""
    columns, texts = cases.facts.columns, cases.transactions.texts
    numbers = dict(columns.numbers)
    for name, flags in columns.flags.items():  # True is 1 where one row has a flag and another a number
        numbers[name] = np.where(flags >= 0, flags, numbers[name]) if name in numbers else flags.astype(np.float64)
    said = [pl.Series(f"number {name}", column) for name, column in numbers.items()]
    said += [pl.Series(f"word {name}", codes) for name, (codes, _) in columns.categories.items()]
    return said if texts is None else [*said, pl.Series("text", texts, dtype=pl.String)]
