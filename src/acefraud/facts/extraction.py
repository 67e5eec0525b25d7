"""The facts of a transaction: those it brings, those its text states, and those derived from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from acefraud.core.table import Columns, FactTable
from acefraud.core.transaction import FactValue, Transaction
from acefraud.core.transactions import Transactions
from acefraud.display.short_repr import ShortRepr
from acefraud.facts.text import read_facts
from acefraud.facts.time_facts import are_night
from acefraud.support.arrays import FloatArray

READER = "2"
"""The version of the reader. Raise it whenever the reader would make other facts of the same transaction. Stored facts
stay as the reader of their time made them, until `acefraud reread`."""
_NEAR_A_TIE, _EXACT_TO = 1e-3, 1e9
_read = lru_cache(maxsize=4096)(read_facts)
_RATIOS = (("amount_to_usual", "usual_amount"), ("amount_to_usual_max", "usual_amount_max"))


@dataclass(frozen=True, slots=True, repr=False)
class KnownFacts(ShortRepr):
    """The facts of a transaction, and the parts of its text that were not understood."""

    facts: dict[str, FactValue]
    unread: tuple[str, ...] = ()


def facts_of(transaction: Transaction) -> KnownFacts:
    """Everything known of a transaction. The facts it brings outweigh what its text says.

    >>> known = facts_of(Transaction(id="t", facts={"amount": 300, "usual_amount": 60}))
    >>> known.facts["amount_to_usual"]
    5.0
    """
    if not transaction.text.strip():
        return KnownFacts(with_derived(transaction.facts))
    read = _read(transaction.text)
    return KnownFacts(with_derived({**read.facts, **transaction.facts}), read.unread)


def facts_in(transactions: Transactions) -> FactTable:
    """Everything known of many transactions, as columns. Each row equals `facts_of` of its transaction.

    >>> from acefraud.core.transactions import Transactions
    >>> rows = Transactions.of([Transaction(id="t", facts={"amount": 300, "usual_amount": 60})])
    >>> facts_in(rows).numbers("amount_to_usual").tolist()
    [5.0]
    """
    if transactions.texts is not None:
        return FactTable([facts_of(transaction).facts for transaction in transactions])
    return transactions.facts.beside(_derived_in(transactions.facts))


def _derived_in(table: FactTable) -> Columns:
    amount, known = table.numbers("amount"), set(table.names)
    ratios = {
        ratio: _rounded_ratios(amount, table.numbers(base)) for ratio, base in _RATIOS if {"amount", base} <= known
    }
    return Columns(ratios, {"night": are_night(table.numbers("hour"))} if "hour" in known else {})


def _rounded_ratios(amount: FloatArray, usual: FloatArray) -> FloatArray:
    """Ratios rounded to four decimals, exactly as `round` does it. `np.rint` is faster but wrong next to a tie."""
    ratios = np.full(len(amount), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        np.divide(amount, usual, out=ratios, where=usual > 0)
        ratios[np.isinf(ratios)] = np.nan
        scaled = ratios * 1e4
        unsure = (np.abs(scaled % 1 - 0.5) < _NEAR_A_TIE) | (np.abs(scaled) > _EXACT_TO)
    rounded: FloatArray = np.rint(scaled) / 1e4
    rounded[unsure] = [round(ratio, 4) for ratio in ratios[unsure].tolist()]
    return rounded


def with_derived(given: dict[str, FactValue]) -> dict[str, FactValue]:
    """The facts, with the ratios and the night flag that follow from them unless they are given."""
    facts = dict(given)
    amount, hour = facts.get("amount"), facts.get("hour")
    for ratio, base in _RATIOS:
        usual = facts.get(base)
        if ratio not in facts and isinstance(amount, float) and isinstance(usual, float) and usual > 0:
            times = amount / usual
            if math.isfinite(times):  # infinity cannot be stored
                facts[ratio] = round(times, 4)
    if "night" not in facts and isinstance(hour, float):
        facts["night"] = hour >= 23 or hour < 6
    return facts
