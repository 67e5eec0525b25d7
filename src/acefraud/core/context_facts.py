"""Flags that whoever decides adds to the facts of a transaction, because rules ask for them.

They say whether a value is on a list of the playbook, whether a policy is snoozed, what is left of the day's reviews,
and that nothing relevant is known. They are recorded with the other facts, so a decision can be made again when the
list has changed. The learner never proposes rules about them.
"""

from __future__ import annotations

from collections.abc import Iterable

REVIEWS_TODAY = "reviews today"
"""How many reviews a day had before a decision, if they are limited."""
REVIEW_CUT = "review cut"
"""What a review had to save at least when a case was decided, if reviews are limited."""
UNFAMILIAR = "unfamiliar: left to a person"
"""Only where nothing relevant is known of a transaction: whether it goes to a person for that reason."""
_IN_LIST = " in list "
_SNOOZED = "snooze of "


def list_fact(key: str, name: str) -> str:
    """The flag that says whether the value of a fact or an entity is on a list.

    >>> list_fact("merchant", "watched"), list_of("merchant in list watched"), list_of("amount")
    ('merchant in list watched', ('merchant', 'watched'), None)
    """
    return f"{key}{_IN_LIST}{name}"


def list_of(fact: str) -> tuple[str, str] | None:
    """The key and the list that a flag is about; None for any other fact."""
    key, found, name = fact.partition(_IN_LIST)
    return (key, name) if found and key and name else None


def snooze_fact(bullet_id: str) -> str:
    """The flag that says that a policy is snoozed for a transaction.

    >>> is_context_fact(snooze_fact("b-1")), is_context_fact("amount")
    (True, False)
    """
    return f"{_SNOOZED}{bullet_id}"


def snoozed_in(names: Iterable[str]) -> list[str]:
    """The policies that some facts say are snoozed.

    >>> snoozed_in(["amount", snooze_fact("b-1")])
    ['b-1']
    """
    return [name.removeprefix(_SNOOZED) for name in names if name.startswith(_SNOOZED)]


def is_context_fact(name: str) -> bool:
    """Whether a fact is one of these."""
    return name in (REVIEWS_TODAY, REVIEW_CUT, UNFAMILIAR) or name.startswith(_SNOOZED) or list_of(name) is not None
