"""Bullets as clients send and get them, with examples."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Bullet, Source, Status
from acefraud.core.evidence import Evidence
from acefraud.core.policy import Snooze
from acefraud.core.transaction import Verdict
from acefraud.learning.rule_admission import Admitted, PolicyOptions
from acefraud.rules.english import say
from acefraud.service.bodies import Id, ListedDecisionBody, Page, RequiredWhy, Share, Time, Why, storable
from acefraud.service.change_bodies import ChangeBody
from acefraud.service.masking import hidden_in, rule_text
from acefraud.service.preview_bodies import PreviewBody
from acefraud.service.strict_bodies import PrivateBody, examples

Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT), AfterValidator(storable)]
"""The words of a rule."""
BULLET: dict[str, Any] = {
    "id": "b-cd2445bf",
    "content": "VPN: decline",
    "condition": "vpn is true",
    "english": "VPN",
    "status": "active",
    "source": "manual",
    "node": DEFAULT_NODE,
    "argues": "DECLINE",
    "weight": 1.3,
    "policy": None,
    "evidence": {
        "support": 50,
        "frauds": 47,
        "precision": 0.94,
        "low": 0.84,
        "high": 0.98,
        "base_rate": 0.2,
        "words": "47 of 50 past cases were fraud (94%, 84-98%)",
    },
    "claim": None,
    "counters": {"helpful": 12, "harmful": 1, "selected": 13, "fired": 13, "fired_frauds": 12},
    "snoozes": [],
    "contradicts": [],
    "added_at": "2026-03-01T02:14:00Z",
}


class EvidenceBody(BaseModel):
    """What was measured of a rule on labelled cases."""

    support: int = Field(description="Cases on which it held.")
    frauds: int
    precision: float | None = Field(description="The share of fraud among them; null if it never held.")
    low: Share = Field(description="Where the share of fraud in as many future cases lies with 95 % probability.")
    high: Share
    base_rate: float = Field(description="The share of fraud among all cases of that time.")
    words: str

    @classmethod
    def of(cls, evidence: Evidence) -> EvidenceBody:
        """The evidence of a bullet."""
        record, (low, high) = evidence.shown, evidence.interval
        return cls(
            support=record.support,
            frauds=record.frauds,
            precision=record.precision,
            low=low,
            high=high,
            base_rate=evidence.base_rate,
            words=evidence.in_words(),
        )


class ClaimBody(BaseModel):
    """A figure in the words of a rule that nobody measured."""

    fraud_share: float
    words: str
    measured: Literal[False] = False


class CountersBody(BaseModel):
    """How often a bullet was used, and how that turned out."""

    helpful: int = Field(description="Right decisions that used it.")
    harmful: int = Field(description="Wrong decisions that used it.")
    selected: int = Field(description="Judged decisions that used it.")
    fired: int = Field(description="Outcomes since it was added where its condition held.")
    fired_frauds: int

    @classmethod
    def of(cls, bullet: Bullet) -> CountersBody:
        """The counters of a bullet."""
        return cls(
            helpful=bullet.helpful_count,
            harmful=bullet.harmful_count,
            selected=bullet.times_selected,
            fired=bullet.record.support,
            fired_frauds=bullet.record.frauds,
        )


class SnoozedBody(BaseModel):
    """Whom a policy does not apply to for now."""

    key: str
    value: str
    until: datetime


class BulletBody(BaseModel):
    """A bullet: a rule or a note. Personal data is masked for callers who may not change it."""

    model_config = examples(BULLET)

    id: str
    content: str
    condition: str | None = Field(description="In the formal syntax; null for a note, which never moves a decision.")
    english: str | None = Field(description="The condition, said in English.")
    status: Status
    source: Source
    node: str
    argues: Verdict | None
    weight: float | None = Field(description="Log-odds that it adds where it fires; null before the first fit.")
    policy: str | None = Field(description="What it decides by itself, in words; null if it is weighed with others.")
    evidence: EvidenceBody | None
    claim: ClaimBody | None
    counters: CountersBody
    snoozes: list[SnoozedBody]
    contradicts: list[str] = Field(description="Older bullets that argue for the opposite.")
    added_at: datetime | None

    @classmethod
    def of(cls, bullet: Bullet, *, in_clear: bool) -> BulletBody:
        """A bullet, with personal data if it may be shown in clear."""
        hidden, condition, claim = hidden_in(bullet), bullet.condition, bullet.claim

        def shown(text: str) -> str:
            return rule_text(text, hidden, in_clear=in_clear)

        return cls(
            id=bullet.id,
            content=shown(bullet.content),
            condition=None if condition is None else shown(str(condition)),
            english=None if condition is None else shown(say(condition)),
            status=bullet.status,
            source=bullet.source,
            node=bullet.node,
            argues=bullet.argues,
            weight=bullet.weight,
            policy=None if bullet.policy is None else bullet.policy.words,
            evidence=None if bullet.evidence is None else EvidenceBody.of(bullet.evidence),
            claim=None if claim is None else ClaimBody(fraud_share=claim.fraud_share, words=shown(claim.words)),
            counters=CountersBody.of(bullet),
            snoozes=[SnoozedBody(key=one.key, value=shown(one.value), until=one.until) for one in bullet.snoozes],
            contradicts=list(bullet.contradicts),
            added_at=bullet.added_at,
        )


class WholeBulletBody(BulletBody):
    """A bullet with its history."""

    model_config = examples({**BULLET, "history": [], "history_next": None, "last_firings": []})

    history: list[ChangeBody] = Field(description="What happened to it, newest first; the latest 100 events.")
    history_next: str | None = Field(
        description="Pass it as `cursor` to `GET /v1/bullets/{bullet_id}/history` for what happened before these; null "
        "if that is all."
    )
    last_firings: list[ListedDecisionBody] = Field(
        description="The latest decisions that rest on it, among the latest 10,000; `GET /v1/decisions` has more."
    )

    @classmethod
    def with_history(
        cls, bullet: Bullet, history: Page[ChangeBody], firings: list[ListedDecisionBody], *, in_clear: bool
    ) -> WholeBulletBody:
        """A bullet, what happened to it, and where it fired last."""
        told = vars(BulletBody.of(bullet, in_clear=in_clear))
        return cls(**told, history=history.items, history_next=history.next, last_firings=firings)


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


class AdmittedBody(BaseModel):
    """A bullet as it is now, and what its author should know."""

    bullet: BulletBody
    remarks: list[str]
    preview: PreviewBody | None = Field(description="What its words do to the past; null if they have not changed.")

    @classmethod
    def of(cls, admitted: Admitted) -> AdmittedBody:
        """A rule that was added or edited, for its author."""
        return cls(
            bullet=BulletBody.of(admitted.bullet, in_clear=True),
            remarks=list(admitted.remarks),
            preview=None if admitted.preview is None else PreviewBody.of(admitted.preview),
        )
