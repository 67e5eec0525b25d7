"""Everything that can happen, as values. The ledger keeps them in order; nothing else is ever written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Bullet, Claim, Status
from acefraud.core.condition import Condition
from acefraud.core.decision import Decision
from acefraud.core.evidence import Evidence
from acefraud.core.outcome import Judgement, Outcome
from acefraud.core.scoring import Calibration, OddsScale
from acefraud.core.transaction import Verdict


class _Happening(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BulletAdded(_Happening):
    """A bullet entered the playbook."""

    kind: Literal["bullet_added"] = "bullet_added"
    bullet: Bullet
    reason: str = ""

    @property
    def subject(self) -> str:
        return self.bullet.id


class BulletEdited(_Happening):
    """A bullet says something else now. Its uses stay counted; its own record was that of the old condition."""

    kind: Literal["bullet_edited"] = "bullet_edited"
    bullet_id: str
    content: str = Field(min_length=1, max_length=MAX_CONTENT)
    condition: Condition | None = None
    argues: Verdict | None = None
    evidence: Evidence | None = None
    claim: Claim | None = None
    contradicts: tuple[str, ...] = ()
    problem_types: tuple[str, ...] = ()
    reason: str = ""

    @property
    def subject(self) -> str:
        return self.bullet_id


class StatusChanged(_Happening):
    """A bullet was approved, pinned, retired or revived."""

    kind: Literal["status_changed"] = "status_changed"
    bullet_id: str
    status: Status
    reason: str = ""

    @property
    def subject(self) -> str:
        return self.bullet_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What one outcome adds to (or, when it is revised, takes from) the counters of one bullet.

    Every outcome brings some of them, so it is a plain value, which costs a fraction of a model.
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
        """The counters in the order of the fields."""
        return self.helpful, self.harmful, self.selected, self.fired, self.fired_frauds

    def reversed(self) -> Credit:
        """The credit that takes this one back."""
        return Credit(
            bullet_id=self.bullet_id,
            helpful=-self.helpful,
            harmful=-self.harmful,
            selected=-self.selected,
            fired=-self.fired,
            fired_frauds=-self.fired_frauds,
        )


class BulletCredited(_Happening):
    """Somebody counted a use of a bullet by hand (`update_stats`)."""

    kind: Literal["bullet_credited"] = "bullet_credited"
    credit: Credit

    @property
    def subject(self) -> str:
        return self.credit.bullet_id


class Recalibrated(_Happening):
    """The weights of bullets and the frame they are summed in were fitted anew."""

    kind: Literal["recalibrated"] = "recalibrated"
    node: str
    calibration: Calibration
    weights: dict[str, float] = Field(default_factory=dict)

    @property
    def subject(self) -> str:
        return self.node


class OddsScaled(_Happening):
    """What a model's verdict tokens mean was fitted on labelled cases."""

    kind: Literal["odds_scaled"] = "odds_scaled"
    node: str
    model: str
    scale: OddsScale

    @property
    def subject(self) -> str:
        return self.node


class Trained(_Happening):
    """A labelled history was studied. What is learnt from it follows as events of its own."""

    kind: Literal["trained"] = "trained"
    node: str
    dataset: str
    rows: int
    frauds: int
    mapping: str = ""
    """How the columns of the file were read, so that what is decided later is read the same way."""
    remembered: int = 0
    """How many labelled cases are remembered since, at most."""
    remembered_frauds: int = 0

    @property
    def subject(self) -> str:
        return self.node


class DecisionMade(_Happening):
    """A transaction was decided."""

    kind: Literal["decision_made"] = "decision_made"
    decision: Decision

    @property
    def subject(self) -> str:
        return self.decision.transaction.id


class OutcomeHeard(_Happening):
    """The truth of a transaction arrived, for the first time or revised."""

    kind: Literal["outcome_heard", "outcome_revised"] = "outcome_heard"
    node: str = DEFAULT_NODE
    outcome: Outcome
    decision_id: str | None = None
    judgement: Judgement
    credits: tuple[Credit, ...] = ()
    remembered: bool = False
    """Whether the case is kept to learn from."""

    @property
    def subject(self) -> str:
        return self.outcome.transaction_id


class Reviewed(_Happening):
    """What is remembered was looked at. The changes that came of it are events of their own."""

    kind: Literal["reviewed"] = "reviewed"
    node: str
    whole: bool
    """A review searches and fits; without it, only the recent record of each bullet was watched."""
    cases: int
    frauds: int
    added: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    questioned: tuple[str, ...] = ()
    """Bullets that became candidates again."""
    revived: tuple[str, ...] = ()
    declined: str = ""
    """Why nothing could be learnt, where nothing could."""

    @property
    def subject(self) -> str:
        return self.node


class Reread(_Happening):
    """The texts of remembered cases were read again, by another version of the reader."""

    kind: Literal["reread"] = "reread"
    node: str
    reader: str
    cases: int
    changed: int

    @property
    def subject(self) -> str:
        return self.node


Happening = Annotated[
    BulletAdded
    | BulletEdited
    | StatusChanged
    | BulletCredited
    | Recalibrated
    | OddsScaled
    | Trained
    | DecisionMade
    | OutcomeHeard
    | Reviewed
    | Reread,
    Field(discriminator="kind"),
]


KINDS: tuple[str, ...] = tuple(
    kind
    for one in (
        BulletAdded,
        BulletEdited,
        StatusChanged,
        BulletCredited,
        Recalibrated,
        OddsScaled,
        Trained,
        DecisionMade,
        OutcomeHeard,
        Reviewed,
        Reread,
    )
    for kind in get_args(one.model_fields["kind"].annotation)
)
BULLET_KINDS = frozenset({"bullet_added", "bullet_edited", "status_changed"})
"""Events that say something else of a bullet than its counters and its weight."""
OUTCOME_KINDS = frozenset({"outcome_heard", "outcome_revised"})
COUNTED_KINDS = OUTCOME_KINDS | {"decision_made", "bullet_credited"}
"""Events that only add to counters, or to nothing: what they say is true whatever was written meanwhile."""


class Event(BaseModel):
    """A happening with its place in the ledger, when it happened, who caused it and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int
    at: datetime
    who: str
    why: str = ""
    what: Happening
