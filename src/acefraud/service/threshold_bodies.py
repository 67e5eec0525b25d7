"""From which probability on to decline, and which cases go to a person, as clients send and get it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from acefraud.core.outcome_feed import MOST_SILENCE_DAYS, FeedKind
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewRule, in_words
from acefraud.learning.learner import Learner
from acefraud.rules.scorecard import GENERAL
from acefraud.service.bodies import RequiredWhy
from acefraud.service.strict_bodies import StrictBody, examples
from acefraud.storage.playbook import BulletPlaybook


class CalibrationBody(BaseModel):
    """How probabilities become verdicts at present."""

    threshold: float = Field(description="Transactions are declined from this probability of fraud on.")
    base_rate: float | None = Field(description="The share of fraud that was learnt from; null before anything was.")
    cases: int = Field(description="Labelled cases that it rests on; 0 for general knowledge alone.")
    review: ReviewRule | None = Field(description="A band or costs; null if nothing goes to a person but by policies.")
    reviews_today: int | None = Field(description="Cases sent to people today (UTC); null unless a day has a limit.")
    review_cut: float | None = Field(description="What a review has to save now; null unless a day has a limit.")
    words: str

    @classmethod
    def of(cls, snapshot: Snapshot, node: str, learner: Learner) -> CalibrationBody:
        """The calibration of a node."""
        learnt, review = snapshot.calibration(node), snapshot.reviews.get(node)
        threshold = (learnt or GENERAL).threshold
        left = learner.reviews_left() if node == learner.options.node else None
        return cls(
            threshold=threshold,
            base_rate=None if learnt is None else learnt.base_rate,
            cases=0 if learnt is None else learnt.cases,
            review=review,
            reviews_today=None if left is None else left.used,
            review_cut=None if left is None else left.cut,
            words=in_words(threshold, review) + (f"; {left.words}" if left else ""),
        )


class OutcomeFeedBody(BaseModel):
    """How outcomes arrive, what silence means, and where the level of fraud is."""

    kind: FeedKind
    declared: bool = Field(description="Whether somebody said so; otherwise it was recognised.")
    silence_days: float | None = Field(description="Days without a report that count as legitimate; null for never.")
    declines_pass: bool = Field(description="Whether declined transactions go through all the same.")
    follow_level: bool = Field(description="Whether the level of fraud follows the outcomes.")
    silent_until: datetime | None = Field(description="Silence counts for decisions made until then.")
    level: float = Field(description="What the latest outcomes add to the log-odds of fraud.")
    held: str | None = Field(description="A step of the level that waits for a person, in words.")
    words: str

    @classmethod
    def of(cls, playbook: BulletPlaybook, node: str) -> OutcomeFeedBody:
        """The feed of a node."""
        feed, calibration = playbook.feed(node), playbook.snapshot().calibration(node)
        recent, held = (calibration.recent, calibration.held) if calibration else (None, None)
        return cls(
            **feed.model_dump(exclude={"silent_through"}),
            level=recent.shift if recent else 0.0,
            held=held.in_words if held else None,
            words=feed.words,
        )


class FeedChangeBody(StrictBody):
    """How outcomes arrive from now on. What is not given stays as it is."""

    model_config = examples({"kind": "fraud_only", "silence_days": 60, "reason": "chargebacks come within 60 days"})

    kind: FeedKind | None = None
    silence_days: float | None = Field(
        default=None, ge=0, le=MOST_SILENCE_DAYS, description="0 lets silence say nothing."
    )
    declines_pass: bool | None = None
    follow_level: bool | None = None
    level: Literal["accept", "reset"] | None = Field(
        default=None, description="Agree to a held step of the level, or put the level back to what was calibrated."
    )
    reason: RequiredWhy


class ThresholdBody(StrictBody):
    """The threshold and the review rule to have from now on. What is not given stays as it is."""

    model_config = examples(
        {"threshold": 0.6, "review": {"between": [0.4, 0.7]}, "reason": "reviewers have time again"},
        {"review": {"costs": {"false_decline": 15, "missed_fraud": 200}}, "reason": "agreed with the desk"},
    )

    threshold: float | None = Field(default=None, gt=0, lt=1, description="Stays as it is if it is not given, or null.")
    review: ReviewRule | None = Field(
        default=None,
        description="Stays as it is if it is not given; null sends nothing to a person, except by policies.",
    )
    reason: RequiredWhy

    @property
    def no_review(self) -> bool:
        """Whether nothing is to go to a person any more: the caller gave null."""
        return self.review is None and "review" in self.model_fields_set
