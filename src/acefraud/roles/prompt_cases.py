"""Labelled cases and their facts in the form that a reflector on a model is shown."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from acefraud.core.comparison import Op, Test, plain_number
from acefraud.core.context_facts import is_context_fact
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, FactValue, Verdict
from acefraud.facts.extraction import facts_of
from acefraud.roles.protocols import Example, FactSummary
from acefraud.rules.english import quoted
from acefraud.support.arrays import FloatArray

WORDS_SHOWN = 8
"""The most words of a category that a reflector is shown."""


def example_of(case: Case, predicted: Verdict, reasoning: str = "") -> Example:
    """A labelled case in the form that a reflector is shown."""
    facts: Mapping[str, FactValue] = facts_of(case.transaction).facts
    return Example(case.transaction.text, facts, predicted, case.answer, reasoning)


def summaries(table: FactTable) -> list[FactSummary]:
    """The values that each fact of a history takes, as a basis for writing conditions.

    >>> summaries(FactTable([{"amount": 5.0, "vpn": True}, {"amount": 20.0, "vpn": False}, {"amount": 7.0}]))[0].values
    '5 to 20, half of them up to 7'
    """
    columns = table.columns
    found = []
    for name in (one for one in columns.names if not is_context_fact(one)):
        if not name or "`" in name:  # a condition cannot name it
            continue
        if name in columns.numbers and not np.isnan(columns.numbers[name]).all():
            found.append(_of_numbers(name, columns.numbers[name]))
        elif name in columns.flags and (columns.flags[name] >= 0).any():
            share = float(np.mean(columns.flags[name][columns.flags[name] >= 0]))
            values = f"true in {100 * share:.0f}% of the cases that say so"
            found.append(FactSummary(name, "flag", values, str(Test(name, Op.IS, True))))
        elif name in columns.categories and (columns.categories[name][0] >= 0).any():
            codes, words = columns.categories[name]
            common = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(words)), kind="stable")
            shown = tuple(words[code] for code in common[:WORDS_SHOWN])
            more = ", ..." if len(words) > WORDS_SHOWN else ""
            listed = "one of " + ", ".join(map(quoted, shown)) + more
            found.append(FactSummary(name, "category", listed, str(Test(name, Op.IN, shown[:2]))))
    return found


def _of_numbers(name: str, values: FloatArray) -> FactSummary:
    known = values[~np.isnan(values)]
    low, middle, high = (float(f"{value:.4g}") for value in np.quantile(known, [0, 0.5, 1], method="lower"))
    summary = f"{plain_number(low)} to {plain_number(high)}, half of them up to {plain_number(middle)}"
    return FactSummary(name, "number", summary, str(Test(name, Op.ABOVE, middle)))
