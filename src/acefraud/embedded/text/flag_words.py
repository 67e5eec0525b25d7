"""The words by which each flag is said to hold or to fail. The lexicon's own words are added to these.

``holds`` and ``fails`` are turned round by a negation before or after them, so "no VPN" needs no entry of its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlagWords:
    """Patterns for one flag; ``fails`` is tried first where both could match."""

    name: str
    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    unless: str = ""
    """Words in the same comma-separated piece that make it speak of something else."""
