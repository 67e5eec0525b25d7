"""What callers send to change the playbook."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Status
from acefraud.core.outcome_feed import MOST_SILENCE_DAYS, FeedKind
from acefraud.core.policy import Snooze
from acefraud.core.review_rule import ReviewRule
from acefraud.core.transaction import Verdict
from acefraud.learning.rule_admission import PolicyOptions
from acefraud.service.bodies import Id, PrivateBody, RequiredWhy, StrictBody, Time, Why, storable
from acefraud.wire.answer import examples

Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT), AfterValidator(storable)]
"""The words of a rule."""


class PolicyFields(PrivateBody):
    """Whether a rule becomes a policy or a note, if its words do not say so."""

    always: Literal["decline", "approve", "review"] | None = Field(
        default=None, description="Make it a policy: it decides by itself, before anything is scored."
    )
    priority: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Of a policy. The highest decides. Approve has 300, decline 200, review 100.",
    )
    final: bool = Field(default=False, description="Of a policy that declines: nothing overrides it.")
    as_note: bool = Field(
        default=False, description="Keep words that are not understood as a note for people. It never scores."
    )

    def policy(self) -> PolicyOptions:
        """The policy that is asked for."""
        verdict = None if self.always is None else Verdict(self.always.upper())
        return PolicyOptions(always=verdict, priority=self.priority, final=self.final)

    @property
    def has_policy_fields(self) -> bool:
        """Whether anything is asked for that goes with words."""
        return bool(self.always or self.priority is not None or self.final or self.as_note)


class NewBulletBody(PolicyFields):
    """A rule to add."""

    model_config = examples(
        {"content": "Amount above 5,000 and an emulator: decline", "reason": "seen twice this week"}
    )

    content: Content = Field(description="The rule, in plain English or in the formal syntax.")
    node: Id = Field(default=DEFAULT_NODE, description="Which agent uses it.")
    reason: Why = Field(default="", description="Kept in the ledger beside the name of your key.")


class BulletChangeBody(PolicyFields):
    """Other words for a rule, another status, or both at once."""

    model_config = examples(
        {"content": "Amount above 6,000 and an emulator: decline", "reason": "5,000 was too low"},
        {"status": "pinned", "reason": "agreed in the weekly review"},
    )

    content: Content | None = Field(default=None, description="What it says from now on. A policy stays a policy.")
    status: Status | None = Field(default=None, description="`active` approves or revives it, `pinned` protects it.")
    reason: RequiredWhy


class SnoozeBody(PrivateBody):
    """Whom a policy is not to apply to, and until when."""

    model_config = examples(
        {"key": "card", "value": "card-17", "until": "2036-01-31T00:00:00Z", "reason": "travels until then"}
    )

    key: Id = Field(description="The entity or the fact, such as `card`.")
    value: Id
    until: Time = Field(description="Without a zone it is read as UTC.")
    reason: RequiredWhy

    def snooze(self) -> Snooze:
        """The snooze."""
        return Snooze(key=self.key, value=self.value, until=self.until)


class RollbackBody(StrictBody):
    """Which revision to go back to."""

    model_config = examples({"revision": 41, "reason": "too many false alarms since Monday"})

    revision: int = Field(ge=0, le=2**53, description="As `GET /v1/playbook/changes` tells it.")
    reason: Why = Field(default="", description="Needed, except for a preview.")
    preview: bool = Field(default=False, description="Only tell what would change.")


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
