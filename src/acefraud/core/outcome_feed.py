"""How outcomes reach a playbook: of which decisions it would have heard by now."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field

from acefraud.core.timestamps import OptionalTimestamp

MOST_SILENCE_DAYS = 3_650


class FeedKind(StrEnum):
    """Which decisions get an outcome."""

    COMPLETE = "complete"
    """Every decision, sooner or later."""
    FRAUD_ONLY = "fraud_only"
    """Only those that turn out to be fraud, as from chargebacks. Nobody reports a legitimate transaction."""
    REVIEWED_ONLY = "reviewed_only"
    """Only those that a person looked at."""
    UNKNOWN = "unknown"
    """It cannot be told yet."""


class OutcomeFeed(BaseModel, frozen=True, extra="forbid"):
    """The feed of outcomes of one node.

    >>> OutcomeFeed(kind="fraud_only", silence_days=60, declared=True).words
    'only frauds are reported (declared); 60 days without a report count as legitimate'
    """

    kind: FeedKind = FeedKind.UNKNOWN
    declared: bool = False
    """Whether a person or a mapping said so; otherwise it was recognised by the outcomes."""
    silence_days: float | None = Field(default=None, gt=0, le=MOST_SILENCE_DAYS)
    """Days without a report after which a decision counts as legitimate; None if silence says nothing."""
    declines_pass: bool = False
    """Whether declined transactions go through all the same, as in a trial run. If not, their silence says nothing."""
    follow_level: bool = True
    """Whether the level of fraud follows the outcomes."""
    silent_until: OptionalTimestamp = None
    """Decisions made until then have counted as legitimate unless they were reported..."""
    silent_through: int = 0
    """...which are those up to this event."""

    @property
    def is_complete(self) -> bool:
        """Whether the outcomes are a fair sample of the decisions."""
        return self.kind is FeedKind.COMPLETE

    @property
    def defers(self) -> bool:
        """Whether a report counts only with the silence around it. Alone it does not tell how common fraud is."""
        return not self.is_complete and (self.silence_days is not None or self.kind is FeedKind.FRAUD_ONLY)

    @property
    def words(self) -> str:
        """The feed in words."""
        how = "" if self.kind is FeedKind.UNKNOWN else " (declared)" if self.declared else " (recognised)"
        silence = "silence says nothing" + (", so nothing is learnt from reports" if self.defers else "")
        if self.silence_days is not None:
            silence = f"{self.silence_days:g} days without a report count as legitimate"
            silence += ", also of declined transactions" if self.declines_pass else ""
        level = "" if self.follow_level else "; the level of fraud stays as it is"
        return f"{_WORDS[self.kind]}{how}; {silence}{level}"


_WORDS = {
    FeedKind.COMPLETE: "every decision gets an outcome",
    FeedKind.FRAUD_ONLY: "only frauds are reported",
    FeedKind.REVIEWED_ONLY: "only reviewed cases get an outcome",
    FeedKind.UNKNOWN: "it cannot be told yet which decisions get an outcome",
}
