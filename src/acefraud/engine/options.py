"""The options of a learner."""

from __future__ import annotations

from dataclasses import dataclass

from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.calibration import Calibration
from acefraud.display.short_repr import ShortRepr, given
from acefraud.engine.agent_fallback import Fallback
from acefraud.errors import ConfigurationError
from acefraud.support.arguments import check_choice, check_share, check_text, check_whole

LONGEST_AHEAD = 100_000
"""Days; None is for no bound at all."""
MOST_BULLETS = 150
"""Learnt bullets that a node may have unless a limit was set."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LearnerOptions(ShortRepr):
    """When and how much a learner learns.

    >>> from acefraud import BulletPlaybook, Learner
    >>> learner = Learner(BulletPlaybook(), options=LearnerOptions(n_bullets=5, most_bullets=40))
    >>> learner.options.n_bullets, learner.options.threshold
    (5, 0.5)
    >>> LearnerOptions(review_share=2)
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: review_share: expected a number above 0 and up to 1, got the int 2
    """

    node: str = DEFAULT_NODE
    """The part of the playbook to decide with and to learn into."""
    n_bullets: int = 10
    """Bullets that one decision may cite."""
    seed: int = 0
    """Seed of the selector's draws and of the samples of learning."""
    review_least: int = 10
    """New cases of the rarer kind (usually frauds) that a review needs at least."""
    review_share: float = 0.05
    """A review needs this share of those remembered, if that is more than `review_least`."""
    review_at_last: int = 2_000
    """After this many outcomes a review is due in any case."""
    watch_every: int = 250
    """Outcomes between two looks at the recent record of each bullet. They are cheap and retire bad bullets early."""
    recent: int = 2_000
    """The latest outcomes on which each bullet is watched: all of them, and their later half."""
    reflect_every: int = 50
    """Outcomes after which a model that reflects is asked about all waiting failures."""
    threshold: float = 0.5
    """Probability of fraud at or above which a transaction is declined, until training chooses another."""
    fallback: Fallback = Fallback.ERROR
    """If a model fails to embed: an error, or bullets found by an embedded embedder and marked so."""
    most_bullets: int | None = None
    """Learnt bullets that a node may have; stronger ones replace the weakest. Those that people wrote or pinned do not
    count. None keeps the limit of the playbook, which is 150 if nobody set one."""
    plain: bool = False
    """Whether only short bullets are learnt, now and later: at most two tests, and lists of at most three values."""

    strict: bool = False
    """Whether transactions with facts that the playbook does not know, or with times out of bounds, are refused."""
    days_ahead: float | None = 1.0
    """How many days after now a transaction may be dated. One dated later is taken as one without a time, so that it
    counts in no history; so is one that is far later than all others of its batch. None: any time will do."""
    review_unfamiliar: bool = True
    """Whether a transaction of which nothing relevant is known goes to a person, if the playbook has a review rule."""

    def __post_init__(self) -> None:
        if self.days_ahead is not None and not 0 <= self.days_ahead <= LONGEST_AHEAD:
            expected = f"expected a number of days from 0 to {LONGEST_AHEAD:,}"
            raise ConfigurationError(f"days_ahead: {expected}, got {given(self.days_ahead)}")
        check_text("node", self.node, "the name of a node", ConfigurationError)
        for name in ("review_least", "review_at_last", "watch_every", "recent", "reflect_every", "most_bullets"):
            value = getattr(self, name)
            if value is not None:
                check_whole(name, value, least=1)
        check_whole("n_bullets", self.n_bullets, least=0)
        check_whole("seed", self.seed)
        check_share("review_share", self.review_share, above_zero=True)
        check_share("threshold", self.threshold)
        check_choice("fallback", self.fallback, Fallback, ConfigurationError)

    def is_plain(self, calibration: Calibration | None) -> bool:
        """Whether a node with this calibration learns short bullets only."""
        return self.plain or (calibration is not None and calibration.plain)

    def bullet_limit(self, calibration: Calibration | None) -> int:
        """How many learnt bullets a node with this calibration may have."""
        return self.most_bullets or (calibration and calibration.most_bullets) or MOST_BULLETS
