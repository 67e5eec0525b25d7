"""The events of the ledger. Class names are ours; `kind` strings and field names are the file format.

An `Event` is a payload (what happened) with its place in the ledger, its time, its author and a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Bullet, Claim, Evidence, Policy, Snooze, Status
from acefraud.core.calibration import Calibration, HeldLevel, OddsScale, RecentLevel
from acefraud.core.condition import Condition
from acefraud.core.context_facts import Feed, ListItem
from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.outcome import FeedKind, Judgement, Outcome, OutcomeFeed
from acefraud.core.review_rule import ReviewRule
from acefraud.core.transaction import Transaction, Verdict
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted
from acefraud.support.timestamps import Timestamp

DECISION_MADE = "decision_made"
THE_ENGINE = "the engine"
"""The author of automatic changes. No person can use this name."""


class _Payload(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    about: ClassVar[str]
    """The field that names its subject."""
    kind: str

    @property
    def subject(self) -> str:
        """The id of what it is about: a bullet, a transaction or a node."""
        return str(attrgetter(self.about)(self))


class _BulletPayload(_Payload):
    bullet_id: str

    about: ClassVar[str] = "bullet_id"


class _NodePayload(_Payload):
    node: str

    about: ClassVar[str] = "node"


class BulletAdded(_Payload):
    """A bullet was added."""

    kind: Literal["bullet_added"] = "bullet_added"
    bullet: Bullet
    reason: str = ""

    about: ClassVar[str] = "bullet.id"


class BulletEdited(_BulletPayload):
    """A bullet was rewritten. Its counters stay; its record starts again if the condition changed."""

    kind: Literal["bullet_edited"] = "bullet_edited"
    content: str = Field(min_length=1, max_length=MAX_CONTENT)
    condition: Condition | None = None
    argues: Verdict | None = None
    evidence: Evidence | None = None
    claim: Claim | None = None
    policy: Policy | None = None
    contradicts: tuple[str, ...] = ()
    problem_types: tuple[str, ...] = ()
    reason: str = ""


class PolicySnoozed(_BulletPayload):
    """A policy was told not to apply to one entity until a date. The same key and value again replace the date."""

    kind: Literal["policy_snoozed"] = "policy_snoozed"
    snooze: Snooze
    reason: str = ""


class StatusChanged(_BulletPayload):
    """A bullet was approved, pinned, retired or revived."""

    kind: Literal["status_changed"] = "status_changed"
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Credit:
    """What one outcome adds to the counters of one bullet, or takes away when it is revised.

    A dataclass, since every outcome brings some and a pydantic model would cost several times as much.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    bullet_id: str
    helpful: int = 0
    harmful: int = 0
    selected: int = 0
    fired: int = 0
    fired_frauds: int = 0

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """The counts in the order of the fields."""
        return self.helpful, self.harmful, self.selected, self.fired, self.fired_frauds

    def reversed(self) -> Credit:
        """The credit that undoes this one."""
        return Credit(self.bullet_id, *(-count for count in self.counts))


class BulletCredited(_Payload):
    """A use of a bullet was counted by `update_stats`."""

    kind: Literal["bullet_credited"] = "bullet_credited"
    credit: Credit

    about: ClassVar[str] = "credit.bullet_id"


class Recalibrated(_NodePayload):
    """The weights of the bullets and the calibration of a node were fitted again."""

    kind: Literal["recalibrated"] = "recalibrated"
    calibration: Calibration
    weights: dict[str, float] = Field(default_factory=dict)


class LevelMoved(_NodePayload):
    """The latest outcomes moved the level of a node's calibration. The next calibration starts without it."""

    kind: Literal["level_moved"] = "level_moved"
    recent: RecentLevel | None
    """None if the calibration is right again as it is."""
    anchors: bool = False
    """Whether later steps are measured from here, as after a person agreed to it."""
    declines: tuple[float, float] | None = None
    """The share of the latest decisions that were declined before, and that would be from now on."""


class LevelHeld(_NodePayload):
    """A step of the level that would change many verdicts, or its end. It waits until a person agrees."""

    kind: Literal["level_held"] = "level_held"
    held: HeldLevel | None
    """None if the outcomes no longer ask for it."""


class PatternsChanged(_NodePayload):
    """The latest outcomes show that fraud looks different. From then on only they and later ones teach."""

    kind: Literal["patterns_changed"] = "patterns_changed"
    cases: int
    """The outcomes since the change."""
    frauds: int
    fact: str = ""
    """The fact that tells more, less or the opposite since then; empty if it is the playbook as a whole."""

    @property
    def in_words(self) -> str:
        """What was noticed."""
        what = quoted(self.fact) if self.fact else "the playbook"
        latest = f"in the latest {self.cases:,} outcomes, {self.frauds:,} of them fraud"
        return f"{latest}, {what} no longer tells fraud as it did"


class FeedSet(_NodePayload):
    """How outcomes arrive was declared by a person or a mapping, or recognised."""

    kind: Literal["feed_set"] = "feed_set"
    feed: FeedKind
    declared: bool
    silence_days: float | None = None
    declines_pass: bool = False
    follow_level: bool = True
    reports: int = 0
    """What a recognised kind rests on: the latest outcomes..."""
    frauds: int = 0
    covered: float | None = None
    """...and the share of older decisions that have one."""

    def applied_to(self, feed: OutcomeFeed) -> OutcomeFeed:
        """The feed as it is once this was said of it."""
        said = {name: value for name, value in self if name in OutcomeFeed.model_fields}
        return feed.model_copy(update={**said, "kind": self.feed})


class SilenceMatured(_NodePayload):
    """Decisions had no report for so long that they count as legitimate, and reports on others of their time count."""

    kind: Literal["silence_matured"] = "silence_matured"
    until: Timestamp
    """They were made before this time..."""
    through: int
    """...and up to this event, after those of the event before."""
    silent: int
    """How many had no report."""
    frauds: int
    """How many had been reported as fraud."""
    cases: int
    """How many of all are kept to learn from."""
    credits: tuple[Credit, ...] = ()
    """What they add to the counters of bullets, in all."""
    unclear: tuple[str, ...] = ()
    """Transactions that count as nothing, because a report with nearly the same id may be about them."""


class ThresholdSet(_NodePayload):
    """A person set from which probability on transactions are declined, and which go to a person."""

    kind: Literal["threshold_set"] = "threshold_set"
    threshold: float | None = Field(default=None, gt=0, lt=1)
    """None leaves it as it is."""
    review: ReviewRule | None = None
    """None sends nothing to a person, except what policies do."""


class OddsScaled(_NodePayload):
    """The scale of a model's verdict odds was fitted on labelled cases."""

    kind: Literal["odds_scaled"] = "odds_scaled"
    model: str
    scale: OddsScale


class Trained(_NodePayload):
    """The learner studied a labelled history. What it learnt follows as further events."""

    kind: Literal["trained"] = "trained"
    dataset: str
    rows: int
    frauds: int
    mapping: str = ""
    """The schema mapping of the training file, so that later files are read the same way."""
    remembered: int = 0
    """How many of the labelled cases are kept to learn from."""
    remembered_frauds: int = 0


@dataclass(frozen=True, slots=True)
class DecisionMade:
    """A transaction was decided. Stores keep these apart from other events, in a form of their own."""

    kind: ClassVar[str] = DECISION_MADE

    record: DecisionRecord

    @property
    def subject(self) -> str:
        """The id of the transaction."""
        return self.record.transaction_id

    @property
    def decision(self) -> Decision:
        """The decision, as far as it is recorded."""
        return self.record.decision


class OutcomeHeard(_Payload):
    """An outcome of a transaction arrived, for the first time or revised."""

    kind: Literal["outcome_heard", "outcome_revised"] = "outcome_heard"
    node: str = DEFAULT_NODE
    outcome: Outcome
    decision_id: str | None = None
    judgement: Judgement
    credits: tuple[Credit, ...] = ()
    remembered: bool = False
    """Whether the case is kept to learn from."""
    deferred: bool = False
    """Whether it counts only with the silence around it (`SilenceMatured`)."""

    about: ClassVar[str] = "outcome.transaction_id"


class OutcomeReceived(_Payload):
    """An outcome was accepted. It is judged and learnt from later, in the order of these events."""

    kind: Literal["outcome_received"] = "outcome_received"
    node: str = DEFAULT_NODE
    outcome: Outcome
    transaction: Transaction | None = None
    """The transaction, if it came with the outcome."""

    about: ClassVar[str] = "outcome.transaction_id"


class OutcomesTakenIn(_NodePayload):
    """All outcomes received up to an event were judged. It is written together with what they became."""

    kind: Literal["outcomes_taken_in"] = "outcomes_taken_in"
    until: int
    """The number of the last event of an outcome that was taken in."""
    count: int


class Reviewed(_NodePayload):
    """The remembered cases were reviewed. The changes this led to are further events."""

    kind: Literal["reviewed"] = "reviewed"
    whole: bool
    """True if rules were searched and fitted, False if only the recent record of each bullet was checked."""
    cases: int
    frauds: int
    added: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    questioned: tuple[str, ...] = ()
    """Bullets that became candidates again."""
    revived: tuple[str, ...] = ()
    declined: str = ""
    """Why nothing was learnt, if nothing was."""


class Reread(_NodePayload):
    """Another version of the fact reader read the texts of remembered cases again."""

    kind: Literal["reread"] = "reread"
    reader: str
    cases: int
    changed: int


class RolledBack(_Payload):
    """The playbook went back to an earlier revision. Changes of bullets are events of their own, written with it."""

    kind: Literal["rolled_back"] = "rolled_back"
    to: int
    """The revision."""
    retired: tuple[str, ...] = ()
    """Bullets that were not there then."""
    edited: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    """Bullets that got their former status back."""
    weights: dict[str, float | None] = Field(default_factory=dict)
    """Those that changed; None where a bullet had none."""
    calibrations: dict[str, Calibration] = Field(default_factory=dict)
    """All of them, by node, with their thresholds. What is not among them is dropped, here and below."""
    reviews: dict[str, ReviewRule] = Field(default_factory=dict)
    scales: dict[str, OddsScale] = Field(default_factory=dict)
    mapping: str = ""
    also: tuple[str, ...] = ()
    """What changed beside bullets, in words: the calibration, the review rule, the scale of odds, the mapping."""

    @property
    def subject(self) -> str:
        """It is about the whole playbook."""
        return "the playbook"

    @property
    def changes_nothing(self) -> bool:
        """Whether the playbook was as it had been. Then no event was written."""
        return not (self.retired or self.edited or self.moved or self.weights or self.also)


class ListCreated(_Payload):
    """A list of values was created, or what is said of it was changed."""

    kind: Literal["list_created"] = "list_created"
    name: str
    text: str = ""
    feed: Feed | None = None
    reason: str = ""

    about: ClassVar[str] = "name"


class ListChanged(_Payload):
    """Values were put on a list or taken off it."""

    kind: Literal["list_changed"] = "list_changed"
    name: str
    added: tuple[ListItem, ...] = ()
    removed: tuple[str, ...] = ()
    reason: str = ""

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(quoted(self.name))
        yield None, Plain(f"{len(self.added):,} added, {len(self.removed):,} removed")

    about: ClassVar[str] = "name"


class DecisionsArchived(_Payload):
    """Decisions were written to a file of their own, and are deleted from the ledger from then on."""

    kind: Literal["decisions_archived"] = "decisions_archived"
    before: Timestamp
    """They were made before this time."""
    count: int
    file: str

    about: ClassVar[str] = "file"


_Written = (
    BulletAdded
    | BulletEdited
    | PolicySnoozed
    | StatusChanged
    | BulletCredited
    | Recalibrated
    | LevelMoved
    | LevelHeld
    | PatternsChanged
    | FeedSet
    | SilenceMatured
    | ThresholdSet
    | OddsScaled
    | Trained
    | OutcomeHeard
    | OutcomeReceived
    | OutcomesTakenIn
    | Reviewed
    | Reread
    | RolledBack
    | ListCreated
    | ListChanged
    | DecisionsArchived
)
WrittenPayload = Annotated[_Written, Field(discriminator="kind")]
"""What an event other than a decision says: one of the classes above, told apart by `kind`."""
EventPayload = _Written | DecisionMade
"""What an event says."""

KINDS = {
    DECISION_MADE,
    *(kind for payload in get_args(_Written) for kind in get_args(payload.model_fields["kind"].annotation)),
}
BULLET_KINDS = frozenset({"bullet_added", "bullet_edited", "policy_snoozed", "status_changed"})
"""Changes of bullets other than of their counters and weights."""
BULLET_HISTORY_KINDS = BULLET_KINDS | {"bullet_credited"}
"""Events whose subject is a bullet."""
OUTCOME_KINDS = frozenset({"outcome_heard", "outcome_revised"})
LIST_KINDS = frozenset({"list_created", "list_changed"})
OUTCOME_RECEIVED, OUTCOMES_TAKEN_IN, SILENCE_MATURED = "outcome_received", "outcomes_taken_in", "silence_matured"
FEED_KINDS = frozenset({"level_moved", "level_held", "patterns_changed", "feed_set", SILENCE_MATURED})
"""What outcomes, or their absence, have shown."""
EDIT_KINDS = frozenset(
    KINDS
    - OUTCOME_KINDS
    - LIST_KINDS
    - FEED_KINDS
    - {DECISION_MADE, OUTCOME_RECEIVED, OUTCOMES_TAKEN_IN, "decisions_archived", "bullet_credited"}
)
"""Changes of the playbook. The others only add to counters, or to nothing, so they stay true whatever comes before. A
level that moved is forgotten by the next calibration, so no learning depends on it."""


@dataclass(frozen=True, slots=True, repr=False)
class Event(ShortRepr):
    """A payload with its place in the ledger, when it was written, by whom and why."""

    seq: int
    at: datetime
    who: str
    payload: EventPayload
    why: str = ""
