"""Labelled cases and their facts, as a reflector on a model is shown them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from acefraud.core.comparison import Op, Test, plain_number
from acefraud.core.english import quoted
from acefraud.core.roles import Example, FactSummary
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, FactValue, Verdict
from acefraud.embedded.facts import facts_of

Column = npt.NDArray[np.float64]
WORDS_SHOWN = 8
"""Words of a category that a reflector is told of."""


def example_of(case: Case, predicted: Verdict, reasoning: str = "") -> Example:
    """A labelled case as a reflector is shown it."""
    facts: Mapping[str, FactValue] = facts_of(case.transaction).facts
    return Example(case.transaction.text, facts, predicted, case.answer, reasoning)


def summaries(table: FactTable) -> list[FactSummary]:
    """What each fact of a history looks like, for whoever is to write a condition over it.

    >>> summaries(FactTable([{"amount": 5.0, "vpn": True}, {"amount": 20.0, "vpn": False}, {"amount": 7.0}]))[0].values
    '5 to 20, half of them up to 7'
    """
    columns = table.columns
    found = []
    for name in columns.names:
        if not name or "`" in name:  # no condition can speak of it
            continue
        if name in columns.numbers and not np.isnan(columns.numbers[name]).all():
            found.append(_of_numbers(name, columns.numbers[name]))
        elif name in columns.flags and (columns.flags[name] >= 0).any():
            share = float(np.mean(columns.flags[name][columns.flags[name] >= 0]))
            said = f"true in {100 * share:.0f}% of the cases that say so"
            found.append(FactSummary(name, "flag", said, str(Test(name, Op.IS, True))))
        elif name in columns.categories and (columns.categories[name][0] >= 0).any():
            codes, words = columns.categories[name]
            common = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(words)), kind="stable")
            shown = tuple(words[code] for code in common[:WORDS_SHOWN])
            more = ", ..." if len(words) > WORDS_SHOWN else ""
            listed = "one of " + ", ".join(map(quoted, shown)) + more
            found.append(FactSummary(name, "category", listed, str(Test(name, Op.IN, shown[:2]))))
    return found


def _of_numbers(name: str, values: Column) -> FactSummary:
    known = values[~np.isnan(values)]
    low, middle, high = (float(f"{value:.4g}") for value in np.quantile(known, [0, 0.5, 1], method="lower"))
    said = f"{plain_number(low)} to {plain_number(high)}, half of them up to {plain_number(middle)}"
    return FactSummary(name, "number", said, str(Test(name, Op.ABOVE, middle)))
