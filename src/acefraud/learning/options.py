"""What a learner is told beforehand."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.core.bullet import DEFAULT_NODE
from acefraud.learning.standing_in import Fallback


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerOptions:
    """When and how much is learnt."""

    node: str = DEFAULT_NODE
    n_bullets: int = 10
    reflect_every: int = 10
    """Reflect on every failure, and on every so-manieth outcome whatever it was."""
    review_every: int = 50
    """After so many outcomes, look at all remembered cases together and fit all weights anew."""
    threshold: float = 0.5
    """Probability of fraud from which a transaction is declined, until training chooses another."""
    recent: int = 2_000
    """The latest outcomes, on which the record of each bullet is watched."""
    fallback: Fallback = Fallback.ERROR
    """What happens where a model fails to embed: an error, or bullets found by an embedded embedder, marked so."""
    most_bullets: int = 150
    """No further bullets are proposed while the node has so many that are not retired."""
