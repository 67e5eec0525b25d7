"""What the holder of an API key may do, and who changes something."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import TypedDict


class Scope(StrEnum):
    """What an API key allows. `admin` includes all others.

    >>> Scope("decide") is Scope.DECIDE, Scope.READ == "read"
    (True, True)
    """

    DECIDE = "decide"
    """Have transactions decided and scored."""
    OUTCOMES = "outcomes"
    """Report what transactions turned out to be."""
    READ = "read"
    """Read decisions, rules and lists."""
    CURATE = "curate"
    """Change rules and lists."""
    ADMIN = "admin"
    """Everything."""


def allows(scopes: Collection[Scope], wanted: Scope) -> bool:
    """Whether these scopes include another.

    >>> allows([Scope.READ], Scope.CURATE), allows([Scope.ADMIN], Scope.CURATE)
    (False, True)
    """
    return wanted in scopes or Scope.ADMIN in scopes


class Author(TypedDict):
    """Who changes something, and why."""

    who: str
    why: str
