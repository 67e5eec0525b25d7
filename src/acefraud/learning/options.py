"""What a learner is told beforehand."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.core.bullet import DEFAULT_NODE
from acefraud.errors import ConfigurationError
from acefraud.learning.standing_in import Fallback


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerOptions:
    """When and how much is learnt."""

    node: str = DEFAULT_NODE
    n_bullets: int = 10
    """Bullets that one decision may cite."""
    seed: int = 0
    """What the draws of the selector and the samples of learning start from."""
    review_least: int = 10
    """New cases of the rarer kind (mostly frauds) without which nothing is reviewed..."""
    review_share: float = 0.05
    """...or this share of those remembered, where that is more..."""
    review_at_last: int = 2_000
    """...but never later than after this many outcomes."""
    watch_every: int = 250
    """Outcomes after which the recent record of each bullet is looked at: it costs little, and bad bullets go early."""
    recent: int = 2_000
    """The latest outcomes, on which the record of each bullet is watched: on all of them, and on their later half."""
    reflect_every: int = 50
    """Where a model reflects: outcomes after which it is asked about failures that wait for others of their kind."""
    threshold: float = 0.5
    """Probability of fraud from which a transaction is declined, until training chooses another."""
    fallback: Fallback = Fallback.ERROR
    """What happens where a model fails to embed: an error, or bullets found by an embedded embedder, marked so."""
    most_bullets: int = 150
    """Learnt bullets that a node may have: stronger ones take the place of the weakest. What people wrote or pinned
    does not count."""

    def __post_init__(self) -> None:
        for name in ("review_least", "review_at_last", "watch_every", "recent", "reflect_every", "most_bullets"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.review_share <= 1:
            raise ConfigurationError(f"review_share must lie in (0, 1], got {self.review_share}")
