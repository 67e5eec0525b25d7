"""One heuristic of the playbook."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from pydantic import BaseModel, Field

from acefraud.core.arguments import check_choice, check_text
from acefraud.core.condition import Condition
from acefraud.core.evidence import Evidence, Record
from acefraud.core.policy import Policy, Snooze
from acefraud.core.transaction import Verdict
from acefraud.display.html_tables import block, summary
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted, shown_items, shown_text

DEFAULT_NODE = "fraud_detection"
MAX_CONTENT = 2_000


class Source(StrEnum):
    """Where a bullet came from: a labelled history, outcomes as they arrived, or a person.

    >>> Source("online") is Source.ONLINE, Source.MANUAL == "manual"
    (True, True)
    """

    OFFLINE = "offline"
    """Learnt from a labelled history."""
    ONLINE = "online"
    """Learnt from outcomes as they arrived."""
    MANUAL = "manual"
    """Written by a person."""


class Status(StrEnum):
    """Whether a bullet is in use. A candidate is not approved or verified yet; a retired one is never selected.

    >>> from acefraud import BulletPlaybook
    >>> playbook = BulletPlaybook()
    >>> bullet_id = playbook.add_bullet("VPN and a new device: decline")
    >>> playbook.set_status(bullet_id, Status.RETIRED, who="ana", why="too many false alarms")
    >>> playbook.get_bullets_for_node("fraud_detection")
    []
    """

    CANDIDATE = "candidate"
    """Not approved or verified yet."""
    ACTIVE = "active"
    """In use."""
    PINNED = "pinned"
    """In use, and never retired by learning."""
    RETIRED = "retired"
    """Kept for the record, and never selected."""


class Claim(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """A figure that somebody stated and nobody measured. It is always shown as a claim, never as evidence."""

    fraud_share: float = Field(ge=0, le=1)
    words: str


class Bullet(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A heuristic in English, with its condition and its measured evidence if there are any.

    >>> bullet = Bullet(id="b1", content="VPN and a new device: decline", helpful_count=3, harmful_count=1)
    >>> bullet.get_success_rate()
    0.75
    >>> Bullet(id="b2", content="never used").get_success_rate()
    0.5
    """

    id: str
    """Made from the node and the content by `BulletPlaybook.add_bullet`."""
    content: str = Field(min_length=1, max_length=MAX_CONTENT)
    """The heuristic in English."""
    node: str = Field(default=DEFAULT_NODE, min_length=1)
    """The decision that it is for."""
    source: Source = Source.MANUAL
    """Where it came from."""
    status: Status = Status.ACTIVE
    """Whether it is in use."""
    status_by: str = ""
    """Who set the status. Learning never revives what a person retired."""
    argues: Verdict | None = None
    """The verdict that it speaks for, if it says so."""
    condition: Condition | None = None
    """Where it applies; None for a note."""
    evidence: Evidence | None = None
    """What was measured of its condition on labelled cases."""
    claim: Claim | None = None
    """A figure in its words that nobody measured."""
    weight: float | None = None
    """Log-odds that the embedded engine adds where the condition holds; None before the first fit."""
    policy: Policy | None = None
    """What it decides by itself; None if it is evidence, which is weighed, or a note."""
    snoozes: tuple[Snooze, ...] = ()
    """The entities that a policy does not apply to for now."""
    contradicts: tuple[str, ...] = ()
    """The ids of older bullets that argue for the opposite."""
    problem_types: tuple[str, ...] = ()
    """Kinds of fraud that it is about."""
    added_at: datetime | None = None
    """When it entered the playbook."""

    helpful_count: int = Field(default=0, ge=0)
    """Right decisions that used it."""
    harmful_count: int = Field(default=0, ge=0)
    """Wrong decisions that used it."""
    times_selected: int = Field(default=0, ge=0)
    """Judged decisions that used it."""
    record: Record = Record(support=0, frauds=0)
    """The outcomes heard since it was added where it fired, and how many of them were fraud."""

    def __repr_args__(self) -> ReprArgs:
        yield "id", Plain(quoted(self.id))
        yield "content", Plain(repr(self.shown_content(80)))
        if self.claim is not None:
            yield None, Plain("a claim")
        yield "status", Plain(self.status)
        if self.weight is not None:
            yield "weight", Plain(f"{self.weight:+.2f}")
        if self.evidence is not None:
            yield "evidence", Plain(_record(self.evidence.shown))
        if self.times_selected:
            yield "times_selected", self.times_selected

    def shown_content(self, most: int) -> str:
        """The content on one line, without personal data, cut to `most` characters."""
        return shown_text(self.content, most, hidden=self.condition.hidden_values if self.condition else ())

    def _repr_html_(self) -> str:
        """What it says and what is known of it, for a notebook."""
        weight = "" if self.weight is None else f"{self.weight:+.2f} log-odds"
        entries = {
            "says": self.shown_content(600),
            "condition": self.condition.shown(600) if self.condition else "",
            "argues for": str(self.argues or ""),
            "decides": self.policy.words if self.policy else "",
            "status": str(self.status),
            "source": str(self.source),
            "node": shown_text(self.node),
            "weight": weight,
            "evidence": self.evidence.in_words() if self.evidence is not None and self.verified else "not measured",
            "claim": shown_text(self.claim.words, 300) if self.claim else "",
            "uses": self.uses,
            "contradicts": shown_items(self.contradicts).strip("[]") if self.contradicts else "",
        }
        return block(f"Bullet {shown_text(self.id)}", summary(entries))

    @property
    def uses(self) -> str:
        """How often it was selected, and how that turned out, in words.

        >>> Bullet(id="b", content="x", times_selected=5, helpful_count=3, harmful_count=1).uses
        '5 (3 helpful, 1 harmful)'
        """
        if not self.times_selected:
            return "0"
        return f"{self.times_selected:,} ({self.helpful_count:,} helpful, {self.harmful_count:,} harmful)"

    def get_success_rate(self) -> float:
        """The share of decisions it was used in that turned out right; 0.5 before the first.

        >>> Bullet(id="b1", content="VPN: decline", helpful_count=9, harmful_count=1).get_success_rate()
        0.9
        """
        used = self.helpful_count + self.harmful_count
        return self.helpful_count / used if used else 0.5

    @property
    def success_rate(self) -> float:
        """`get_success_rate` as a property."""
        return self.get_success_rate()

    @property
    def is_note(self) -> bool:
        """Whether it is prose for people, and for a language model: it never moves an embedded decision."""
        return self.condition is None

    @property
    def verified(self) -> bool:
        """Whether it has measured evidence."""
        return self.evidence is not None and self.evidence.shown.support > 0

    @property
    def remark(self) -> str:
        """A note to show after the content, so that nobody takes a claim for a measurement.

        >>> from acefraud.core.bullet import Claim
        >>> Bullet(id="b", content="VPN = 95% fraud", claim=Claim(fraud_share=0.95, words="95% fraud")).remark
        '[claim, not measured]'
        """
        if self.claim is None:
            return "" if self.verified else "[unverified]"
        if self.evidence is None or not self.verified:
            return "[claim, not measured]"
        return f"[its figure is a claim; measured: {self.evidence.in_words()}]"

    @property
    def shown(self) -> str:
        """The content, with the remark if there is one."""
        return f"{self.content} {self.remark}".rstrip()


class BulletDetails(TypedDict, total=False):
    """What may be said of a bullet beside its content when it is added: fields of `NewBullet`."""

    condition: Condition | None
    argues: Verdict | None
    evidence: Evidence | None
    weight: float | None
    problem_types: Sequence[str]
    status: Status
    policy: Policy | None


@dataclass(frozen=True, slots=True, repr=False)
class NewBullet(ShortRepr):
    """A bullet to add. A condition or verdict that is not given is read from its content, if it states one."""

    content: str
    source: Source | str = Source.MANUAL
    condition: Condition | None = None
    argues: Verdict | None = None
    evidence: Evidence | None = None
    weight: float | None = None
    problem_types: Sequence[str] = ()
    status: Status = Status.ACTIVE
    policy: Policy | None = None
    why: str = ""

    def __post_init__(self) -> None:
        check_text("content", self.content, "a rule in words")
        check_choice("source", self.source, Source)
        check_choice("status", self.status, Status)
        if self.argues is not None:
            check_choice("argues", self.argues, Verdict)


def _record(record: Record) -> str:
    return f"{record.frauds:,} of {record.support:,}"


def bullet_id(node: str, content: str, attempt: int = 0) -> str:
    """A short id made from the content, so that runs can be compared.

    >>> bullet_id("fraud_detection", "VPN: decline")
    'b-cd2445bf'
    """
    text = f"{node}\x00{content}\x00{attempt}" if attempt else f"{node}\x00{content}"
    return "b-" + hashlib.sha256(text.encode()).hexdigest()[:8]
