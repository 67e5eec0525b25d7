"""What a transaction turned out to be, and whether its decision was right."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from acefraud.core.transaction import Verdict
from acefraud.display.short_repr import ShortRepr
from acefraud.support.timestamps import IdText, OptionalTimestamp, PlainFlag

MAX_NOTE, MAX_AUTHOR = 2_000, 200
MAX_DETAILS, MAX_DETAIL = 50, 500
"""How many details an outcome may have, and how long the name and the text of each may be."""
DetailText = Annotated[str, Field(max_length=MAX_DETAIL)]


class OutcomeSource(StrEnum):
    """Where an outcome comes from."""

    LABEL = "label"
    CHARGEBACK = "chargeback"
    ANALYST = "analyst"
    JUDGE = "judge"
    SILENCE = "silence"
    """Nobody reported anything for long enough. Only the engine says so, never a report."""


class Outcome(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """Whether a transaction turned out to be fraud. Reporting one twice changes nothing.

    >>> outcome = Outcome(transaction_id="t1", is_fraud=True, source="chargeback")
    >>> str(outcome.truth), outcome.key
    ('DECLINE', 't1:chargeback:DECLINE:')
    """

    transaction_id: IdText
    """The transaction it is about."""
    is_fraud: PlainFlag
    """The truth."""
    source: OutcomeSource = OutcomeSource.LABEL
    """Who says so: `label`, `chargeback`, `analyst` or `judge`."""
    id: IdText = ""
    """Yours, if outcomes have ids: two with the same id are one."""
    at: OptionalTimestamp = None
    """When it became known."""
    note: str = Field(default="", max_length=MAX_NOTE)
    """What they noted about it."""
    author: str = Field(default="", max_length=MAX_AUTHOR)
    """The person or system that found out."""
    details: dict[DetailText, DetailText] = Field(default_factory=dict, max_length=MAX_DETAILS)
    """What else the report says, by column. These are never facts."""

    @property
    def key(self) -> str:
        """Two outcomes with the same key are the same outcome."""
        return self.id or f"{self.transaction_id}:{self.source}:{self.truth}:{self.at.isoformat() if self.at else ''}"

    @property
    def words(self) -> tuple[str, str, dict[str, str]]:
        """What was said about it: nothing is counted by these, and none is lost."""
        return self.author, self.note, self.details

    @property
    def is_opinion(self) -> bool:
        """Whether it comes from a judge who does not know the truth. Nothing is measured by it or learnt from it."""
        return self.source is OutcomeSource.JUDGE

    @property
    def truth(self) -> Verdict:
        """The verdict that would have been right."""
        return Verdict.of(self.is_fraud)


def is_known(outcome: Outcome, before: Sequence[Outcome]) -> bool:
    """Whether an outcome was reported before; without id and time, whether the latest of its transaction says the same.

    One without an id that brings another author, note or details is not known, so that these are kept.

    >>> fraud, legitimate = (Outcome(transaction_id="t1", is_fraud=truth) for truth in (True, False))
    >>> is_known(fraud, [legitimate, fraud]), is_known(fraud, [fraud, legitimate])
    (True, False)
    """
    if not before:
        return False
    if outcome.id:
        return any(one.key == outcome.key for one in before)
    if outcome.at:
        same = [one for one in before if one.key == outcome.key]
    elif (before[-1].is_fraud, before[-1].source) == (outcome.is_fraud, outcome.source):
        same = [one for one in before if (one.is_fraud, one.source) == (outcome.is_fraud, outcome.source)]
    else:
        return False
    return bool(same) and (not any(outcome.words) or any(one.words == outcome.words for one in same))


class Ruling(StrEnum):
    """Whether a decision was right. UNJUDGED includes a judge that failed."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    UNJUDGED = "unjudged"


class Judgement(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A ruling with its confidence and reason.

    >>> Judgement(ruling="incorrect", reason="decided APPROVE, truth is DECLINE").is_correct
    False
    >>> Judgement(ruling="unjudged", confidence=0.0).is_correct is None
    True
    """

    ruling: Ruling
    """`correct`, `incorrect` or `unjudged`."""
    confidence: float = Field(default=1.0, ge=0, le=1)
    """How sure the judge is; 0 if it did not judge."""
    reason: str = ""
    """Why, in words."""

    @property
    def is_correct(self) -> bool | None:
        """True, False, or None if it was not judged."""
        return None if self.ruling is Ruling.UNJUDGED else self.ruling is Ruling.CORRECT


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
