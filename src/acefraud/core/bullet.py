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
from acefraud.core.html_tables import block, summary
from acefraud.core.policy import Policy, Snooze
from acefraud.core.short_repr import Plain, ReprArgs, ShortRepr, quoted, shown_items, shown_text
from acefraud.core.transaction import Verdict

DEFAULT_NODE = "fraud_detection"
MAX_CONTENT = 2_000


class Source(StrEnum):
    """Where a bullet came from."""

    OFFLINE = "offline"
    ONLINE = "online"
    MANUAL = "manual"


class Status(StrEnum):
    """Whether a bullet is in use. A candidate is not approved or verified yet; a retired one is never selected."""

    CANDIDATE = "candidate"
    ACTIVE = "active"
    PINNED = "pinned"
    RETIRED = "retired"


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
    content: str = Field(min_length=1, max_length=MAX_CONTENT)
    node: str = Field(default=DEFAULT_NODE, min_length=1)
    source: Source = Source.MANUAL
    status: Status = Status.ACTIVE
    status_by: str = ""
    """Who set the status. Learning never revives what a person retired."""
    argues: Verdict | None = None
    condition: Condition | None = None
    evidence: Evidence | None = None
    claim: Claim | None = None
    weight: float | None = None
    """Log-odds that the embedded engine adds where the condition holds; None before the first fit."""
    policy: Policy | None = None
    """What it decides by itself; None if it is evidence, which is weighed, or a note."""
    snoozes: tuple[Snooze, ...] = ()
    contradicts: tuple[str, ...] = ()
    problem_types: tuple[str, ...] = ()
    added_at: datetime | None = None

    helpful_count: int = Field(default=0, ge=0)
    harmful_count: int = Field(default=0, ge=0)
    times_selected: int = Field(default=0, ge=0)
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
        """The share of decisions it was used in that turned out right; 0.5 before the first."""
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
