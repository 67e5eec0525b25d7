"""The facts of a transaction: those it brings, those its text states, and those that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from acefraud.core.transaction import FactValue, Transaction
from acefraud.embedded.text import TextFacts, read_facts


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """What is known of a transaction, and the parts of its text that were not understood."""

    facts: dict[str, FactValue]
    unread: tuple[str, ...] = ()


def facts_of(transaction: Transaction) -> KnownFacts:
    """Everything known of a transaction. What it brings as facts outweighs what its text says.

    >>> known = facts_of(Transaction(id="t", facts={"amount": 300, "usual_amount": 60}))
    >>> known.facts["amount_to_usual"]
    5.0
    """
    if not transaction.text.strip():
        return KnownFacts(with_derived(transaction.facts))
    read = _read(transaction.text)
    return KnownFacts(with_derived({**read.facts, **transaction.facts}), read.unread)


@lru_cache(maxsize=4096)
def _read(text: str) -> TextFacts:
    return read_facts(text)


def with_derived(given: dict[str, FactValue]) -> dict[str, FactValue]:
    """The facts with the ratios and the night that follow from them, where they are not stated already."""
    facts = dict(given)
    amount, hour = facts.get("amount"), facts.get("hour")
    for ratio, base in (("amount_to_usual", "usual_amount"), ("amount_to_usual_max", "usual_amount_max")):
        usual = facts.get(base)
        if ratio not in facts and isinstance(amount, float) and isinstance(usual, float) and usual > 0:
            facts[ratio] = round(amount / usual, 4)
    if "night" not in facts and isinstance(hour, float):
        facts["night"] = hour >= 23 or hour < 6
    return facts
