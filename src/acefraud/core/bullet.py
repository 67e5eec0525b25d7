"""One heuristic of the playbook."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, TypedDict, TypeVar

import numpy.typing as npt
from pydantic import BaseModel, Field, model_validator

from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.display.html_tables import block, summary
from acefraud.display.redaction import MASKED
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted, shown_items, shown_text
from acefraud.support.arguments import check_choice, check_text
from acefraud.support.timestamps import Timestamp

PRIORITIES = {Verdict.APPROVE: 300, Verdict.DECLINE: 200, Verdict.REVIEW: 100}
"""The priority of a policy unless it has its own: what allows comes before what blocks, and that before reviews."""


class Policy(BaseModel, frozen=True, extra="forbid"):
    """What a rule decides wherever its condition holds, before anything is scored.

    >>> from acefraud import BulletPlaybook, Learner
    >>> playbook = BulletPlaybook()
    >>> _ = playbook.add_bullet("An emulator and amount above 500", policy=Policy(verdict=Verdict.DECLINE))
    >>> str(Learner(playbook).decide_sync({"emulator": True, "amount": 900}).verdict)
    'DECLINE'
    >>> Policy(verdict=Verdict.APPROVE).rank > Policy(verdict=Verdict.DECLINE).rank
    True
    >>> Policy(verdict=Verdict.DECLINE, final=True).rank > Policy(verdict=Verdict.APPROVE, priority=900).rank
    True
    """

    verdict: Verdict
    priority: int | None = Field(default=None, ge=0, le=1_000_000)
    """The highest one decides. None means the usual one of its verdict."""
    final: bool = False
    """Whether nothing overrides it. Only a block can be final."""

    @model_validator(mode="after")
    def _check_final(self) -> Policy:
        if self.final and self.verdict is not Verdict.DECLINE:
            raise ValueError("only a policy that declines can be final")
        return self

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Of two policies that apply, the one with the higher rank decides; of equal ones, the older."""
        usual = PRIORITIES[self.verdict]
        return self.final, usual if self.priority is None else self.priority, usual

    @property
    def words(self) -> str:
        """The policy in words, such as "always decline"."""
        priority = "" if self.priority is None else f", priority {self.priority}"
        return f"always {self.verdict.lower()}{priority}{', never overridden' if self.final else ''}"


class Snooze(ShortRepr, BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A policy does not apply to one customer, card or other entity until a date."""

    key: str = Field(min_length=1)
    """The entity or the fact."""
    value: str = Field(min_length=1)
    until: Timestamp

    def __repr_args__(self) -> ReprArgs:
        return [(name, Plain(MASKED) if name == "value" else value) for name, value in super().__repr_args__()]

    def covers(self, value: str | None, at: datetime) -> bool:
        """Whether it covers this value of its key at this time."""
        return value == self.value and at < self.until


def in_order(policies: Iterable[Bullet]) -> list[Bullet]:
    """Policies in the order in which they are checked."""
    return sorted(policies, key=lambda one: one.policy.rank if one.policy else (False, 0, 0), reverse=True)


Counts = TypeVar("Counts", float, npt.NDArray[Any])

Z95 = 1.959963984540054
ENOUGH_TO_SHOW = 10
"""How many later cases a condition must hold on before their record is shown instead of the learnt one."""


def wilson(successes: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """Wilson score interval of a proportion.

    >>> [round(x, 3) for x in wilson(47, 50)]
    [0.838, 0.979]
    >>> wilson(0, 0)
    (0.0, 1.0)
    """
    if trials <= 0:
        return 0.0, 1.0
    p = successes / trials
    denominator = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / denominator
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / denominator
    return max(0.0, centre - half), min(1.0, centre + half)


def percent(share: float, decimals: int = 0) -> str:
    """A share in percent, with two significant digits below 10 %, and with ``decimals`` above.

    >>> percent(0.4), percent(0.0083), percent(0.00045), percent(0.4123, 1)
    ('40%', '0.83%', '0.045%', '41.2%')
    """
    return f"{100 * share:.{decimals}f}%" if share >= 0.1 else f"{100 * share:.2g}%"


def _decimals(shares: Iterable[float], fewest: int) -> int:
    """How many decimals tell these shares from each other, up to four."""
    distinct = {round(share, 7) for share in shares}
    enough = (n for n in range(fewest, 4) if len({f"{100 * share:.{n}f}" for share in distinct}) == len(distinct))
    return next(enough, 4)


class Record(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """How often a condition held, and how many of those cases were fraud.

    >>> record = Record(support=50, frauds=47)
    >>> record.precision, [round(bound, 2) for bound in record.interval]
    (0.94, [0.84, 0.98])
    """

    support: int
    """Cases on which the condition held."""
    frauds: int
    """Those of them that were fraud."""

    @model_validator(mode="after")
    def _counts_fit(self) -> Record:
        if not 0 <= self.frauds <= self.support:
            raise ValueError(f"frauds must lie between 0 and support, got {self.frauds} of {self.support}")
        return self

    @property
    def precision(self) -> float | None:
        """The share of fraud where the condition held; None if it never did."""
        return self.frauds / self.support if self.support else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share of fraud."""
        return wilson(self.frauds, self.support)

    @property
    def figures(self) -> dict[str, float | None]:
        """The counts, the share and its interval for scripts."""
        low, high = self.interval
        return {**self.model_dump(), "precision": self.precision, "low": low, "high": high}


def balanced_precision(frauds: Counts, support: Counts, base_rate: float) -> Counts:
    """What the share of fraud would be if half of all cases were fraud; 0.5 means no evidence. Accepts columns too.

    Shrunk towards the base rate by as many cases as hold one of the rarer class, so that a few cases say little.

    >>> round(balanced_precision(20, 100, 0.008), 2), round(balanced_precision(8, 1000, 0.008), 2)
    (0.93, 0.5)
    """
    base = min(max(base_rate, 1e-6), 1 - 1e-6)
    added = 1 / min(base, 1 - base)
    share = (frauds + added * base) / (support + added)
    odds = share / (1 - share) * (1 - base) / base
    return odds / (1 + odds)


class Evidence(ShortRepr, BaseModel, frozen=True, extra="forbid"):
    """The measured record of a condition beside the base rate: on the cases it was learnt from, and on later ones.

    The best of thousands of candidates looks better than it is on the cases it was picked on. So the record on
    other cases (later ones, if times are known) is shown as soon as there are enough of them.

    >>> evidence = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.2)
    >>> evidence.in_words()
    '47 of 50 past cases were fraud (94%, 84-98%)'
    >>> round(evidence.lift, 2)
    4.7
    """

    learnt: Record
    """On the cases it was learnt from."""
    base_rate: float
    """The share of fraud among all cases of that period."""
    later: Record | None = None
    """On other cases, where possible later ones."""
    cases: int = 0
    """How many cases the shown record was measured on, whether the condition held or not; 0 if unknown."""
    spread: float = 1.0
    """Widens the interval beyond chance, for the bias of searching and for drift."""
    found_again: float | None = None
    """The share of several searches, each on cases of its own draw, that found it or a condition that holds on nearly
    the same cases; None if there was one search."""
    first_seen: datetime | None = None
    """The time of the first case on which it held."""
    last_seen: datetime | None = None
    """The time of the last one."""

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share of fraud in as many future cases is expected to lie, with 95 % probability."""
        return wilson(self.shown.frauds, self.shown.support, Z95 * self.spread)

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(self.in_words())
        yield "base_rate", Plain(percent(self.base_rate))

    @property
    def lift(self) -> float | None:
        """The share of fraud where it held, as a multiple of the base rate."""
        if self.shown.precision is None or not self.base_rate:
            return None
        return self.shown.precision / self.base_rate

    @property
    def shown(self) -> Record:
        """The record on later cases if there are enough of them, else the learnt one."""
        return self.later if self.later is not None and self.later.support >= ENOUGH_TO_SHOW else self.learnt

    def in_words(self) -> str:
        """The shown record as text, as bullets quote it.

        >>> Evidence(learnt=Record(support=0, frauds=0), base_rate=0.2).in_words()
        'no past case'
        """
        return record_in_words(self.shown, self.spread, self.base_rate)

    def against_base_rate(self) -> str:
        """The shown record and the share of fraud among all cases, with enough digits to tell them apart.

        >>> Evidence(learnt=Record(support=27_628, frauds=10), base_rate=0.00045).against_base_rate()
        '10 of 27,628 past cases were fraud (0.036%, 0.020-0.067%), against 0.045% of all'
        """
        decimals = _decimals((self.shown.precision or 0.0, self.base_rate), 0)
        return f"{self.in_words()}, against {percent(self.base_rate, decimals)} of all"


def record_in_words(record: Record, spread: float = 1.0, *beside: float) -> str:
    """A record as text, with its interval, in digits that tell its figures from each other and from those ``beside``.

    >>> record_in_words(Record(support=400, frauds=3))
    '3 of 400 past cases were fraud (0.8%, 0.3-2.2%)'
    """
    if record.precision is None:
        return "no past case"
    low, high = wilson(record.frauds, record.support, Z95 * spread)
    digits = _decimals((low, record.precision, high, *beside), 1 if record.precision < 0.1 else 0)
    return (
        f"{record.frauds:,} of {record.support:,} past cases were fraud "
        f"({100 * record.precision:.{digits}f}%, {100 * low:.{digits}f}-{100 * high:.{digits}f}%)"
    )


@dataclass(frozen=True, slots=True)
class Firings:
    """The labelled cases on which a rule fired, for people: how many, how many of them were fraud, and in money.

    >>> fired = Firings(Record(support=64, frauds=7), base_rate=0.032, money=12_300.0, fraud_money=1_950.0)
    >>> fired.in_words().partition("; ")[0]
    'fired on 64 labelled cases, 7 of them fraud (11%, 95% interval 5.4% to 21%), against 3.2% of all'
    >>> fired.in_words(short=True)
    'fired on 64 labelled cases, 7 of them fraud (11%, against 3.2% of all); 12,300 in money, 1,950 of it fraud'
    """

    record: Record
    base_rate: float | None = None
    """The share of fraud among all labelled cases; None if it is not known."""
    money: float | None = None
    """The amounts of the cases on which it fired; None if none is known."""
    fraud_money: float | None = None

    def in_words(self, *, short: bool = False) -> str:
        """The figures in words; without their interval in `short`."""
        support, share = self.record.support, self.record.precision
        if share is None:
            return "has not fired yet"
        base = share if self.base_rate is None else self.base_rate
        decimals, (low, high) = _decimals((share, base), 0), self.record.interval
        against = "" if self.base_rate is None else f", against {percent(base, decimals)} of all"
        beside = f"{against})" if short else f", 95% interval {percent(low)} to {percent(high)}){against}"
        fired = f"fired on {support:,} labelled case{'' if support == 1 else 's'}, {self.record.frauds:,} of them fraud"
        money = "" if self.money is None else f"; {self.money:,.0f} in money, {self.fraud_money or 0:,.0f} of it fraud"
        return f"{fired} ({percent(share, decimals)}{beside}{money}"

    def as_json(self) -> dict[str, Any]:
        """The figures for scripts."""
        money = {"money": self.money, "fraud_money": self.fraud_money}
        return {**self.record.figures, "base_rate": self.base_rate, **money}


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

    WITHOUT_VERDICT: ClassVar = "neither way; it weighs as its measured share of fraud says, and not before it has one"
    """What a rule argues for whose words name no verdict."""

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
            shown = self.evidence.shown
            yield "evidence", Plain(f"{shown.frauds:,} of {shown.support:,}")
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
            "fired": "" if self.is_note else Firings(self.record).in_words(),
            "contradicts": shown_items(self.contradicts).strip("[]") if self.contradicts else "",
        }
        return block(f"Bullet {shown_text(self.id)}", summary(entries))

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


def bullet_id(node: str, content: str, attempt: int = 0) -> str:
    """A short id made from the content, so that runs can be compared.

    >>> bullet_id("fraud_detection", "VPN: decline")
    'b-cd2445bf'
    """
    text = f"{node}\x00{content}\x00{attempt}" if attempt else f"{node}\x00{content}"
    return "b-" + hashlib.sha256(text.encode()).hexdigest()[:8]
