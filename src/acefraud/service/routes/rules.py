"""Rules that somebody is writing: how they are understood, and what they would do. Nothing is written."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from acefraud.core.bullet import DEFAULT_NODE, Status
from acefraud.core.fact_catalog import FactKind, FactProfile
from acefraud.core.scope import Scope
from acefraud.core.transaction import FactValue, Verdict
from acefraud.errors import RuleNotUnderstood
from acefraud.learning.rule_admission import (
    ASKS_FOR_REVIEW,
    Previewed,
    preview_edit,
    preview_rule,
    preview_status,
    read_rule,
    reading_as_json,
)
from acefraud.rules.bullet_text import Reading
from acefraud.service.access import Caller, MayRead
from acefraud.service.bodies import Id, Page
from acefraud.service.bullet_bodies import BulletBody, Content, PolicyFields
from acefraud.service.paging import Cursor, Limit, page_of, read_cursor
from acefraud.service.preview_bodies import BOUNDS, PreviewBody
from acefraud.service.problems import Refused, naming
from acefraud.service.routes.bullets import bullet_or_404
from acefraud.service.routes.decisions import Serving
from acefraud.service.runtime import Runtime
from acefraud.service.strict_bodies import PrivateBody, examples
from acefraud.storage.facts_at_hand import facts_at_hand

router = APIRouter(prefix="/v1", tags=["rules"])


class ReadBody(PrivateBody):
    """Words to read."""

    model_config = examples({"content": "Decline gift cards over $300 unless the customer is a VIP"})

    content: Content


class ReadingBody(BaseModel):
    """How words are understood."""

    understood: bool
    condition: str | None = Field(description="In the formal syntax; null if a part is not understood.")
    english: str | None
    argues: Verdict | None
    action: Literal["note", "evidence", "always decline", "always approve", "always review"]
    not_understood: list[str]
    did_you_mean: list[str] = Field(description="The facts nearest to the words that are not understood.")
    readings: list[str] = Field(description="The conditions that the words may mean, if there are several.")
    problem: str = Field(description="Why no condition was read, in words; empty if one was.")
    remarks: list[str]

    @classmethod
    def of(cls, reading: Reading) -> ReadingBody:
        """A reading."""
        return cls(
            **reading_as_json(reading),
            understood=reading.condition is not None,
            problem=reading.rule.problem,
            remarks=[ASKS_FOR_REVIEW] if reading.rule.asks_for_review else [],
        )


class KnownFactBody(BaseModel):
    """A fact that rules can be about. Personal and sensitive values are left out."""

    model_config = examples(
        {
            "name": "amount",
            "english": "amount",
            "type": "number",
            "low": 1.5,
            "middle": 60,
            "high": 9800,
            "true_share": None,
            "examples": [],
            "values": None,
            "coverage": 1,
        }
    )

    name: str
    english: str
    type: FactKind
    low: float | None = Field(default=None, description="Of a number: the least value.")
    middle: float | None = Field(default=None, description="Of a number: half of the values are below it.")
    high: float | None = Field(default=None, description="Of a number: the greatest value.")
    true_share: float | None = Field(default=None, description="Of a flag: how often it is true.")
    examples: list[str] = Field(default_factory=list, description="Of a category: the most frequent values.")
    values: int | None = Field(default=None, description="Of a category: how many different values there are.")
    coverage: float = Field(description="The share of the cases that know it.")

    @classmethod
    def of(cls, fact: FactProfile, *, hide_values: bool) -> KnownFactBody:
        """A fact, without its values if they have to be hidden."""
        content = fact.as_json()
        if hide_values:
            content |= {"low": None, "middle": None, "high": None, "examples": []}
        return cls(**content)


class PreviewRequestBody(PolicyFields):
    """A change to preview: a new rule, or other words or another status for a bullet."""

    model_config = examples(
        {"content": "Amount above 5,000 and an emulator", "always": "decline"},
        {"bullet_id": "b-cd2445bf", "content": "VPN at night: decline"},
        {"bullet_id": "b-cd2445bf", "status": "retired"},
    )

    content: Content | None = None
    bullet_id: Id | None = Field(default=None, description="The bullet to change; without one, the rule is new.")
    status: Status | None = Field(
        default=None, description="Without words and status: `retired` for a bullet in use, else `active`."
    )
    node: Id = Field(default=DEFAULT_NODE, description="Which agent uses a new rule.")


class PreviewedBody(BaseModel):
    """What a change would do. Nothing was written."""

    reading: ReadingBody | None = Field(description="How the words are understood; null if none were sent.")
    bullet: BulletBody | None = Field(description="As it would be; null if a part of the words is not understood.")
    preview: PreviewBody | None = Field(description="null if a part of the words is not understood.")


@router.get("/facts", summary="List the facts that rules can be about")
async def list_facts(runtime: Serving, _: MayRead, limit: Limit = 50, cursor: Cursor = None) -> Page[KnownFactBody]:
    """The facts of the latest cases that the playbook remembers, with type, range, examples and coverage.

    There are none before the first training or outcome: rules are then read with the facts that the engine knows by
    name.
    """
    start = read_cursor("facts", cursor) or 0

    def listed() -> Page[KnownFactBody]:
        found, more = page_of("facts", list(facts_at_hand(runtime.playbook).values()), start, limit)
        return Page(items=[KnownFactBody.of(one, hide_values=_is_masked(runtime, one)) for one in found], next=more)

    return await runtime.in_thread(listed)


def _is_masked(runtime: Runtime, fact: FactProfile) -> bool:
    """Whether a value of a fact would be masked in a decision."""
    known: list[FactValue] = [*fact.examples, *(one for one in (fact.low, fact.high) if one is not None)]
    return any(runtime.masked({fact.name: value}) != {fact.name: value} for value in known)


@router.post("/rules:read", summary="Read a rule")
async def read(body: ReadBody, runtime: Serving, _: MayRead) -> ReadingBody:
    """How words are understood in terms of the facts that the playbook has seen. Nothing is stored.

    Words that are not understood are no error: the answer names them, and the facts nearest to them.
    """
    return await runtime.in_thread(lambda: _read(runtime, body.content))


def _read(runtime: Runtime, content: str) -> ReadingBody:
    runtime.playbook.refresh()
    with naming("content"):
        return ReadingBody.of(read_rule(runtime.playbook, content))


@router.post(
    "/rules:preview",
    summary="Preview a change",
    description="What a new rule, other words or another status would do to the past. Nothing is stored.\n\n"
    f"{BOUNDS} Words that are not understood are no error: the answer names them, and has no preview.",
)
async def preview(body: PreviewRequestBody, runtime: Serving, caller: MayRead) -> PreviewedBody:
    """Preview a change."""
    _check(body)
    return await runtime.previewing.run(lambda: _answer(runtime, body, caller))


def _check(body: PreviewRequestBody) -> None:
    if body.content is None and body.bullet_id is None:
        raise Refused(422, "expected the words of a rule, or the id of a bullet", field="content")
    if body.status is not None and (body.bullet_id is None or body.content is not None):
        raise Refused(422, "a status goes with the id of a bullet, and without other words", field="status")
    if body.content is None and body.has_policy_fields:
        raise Refused(422, "always, priority, final and as_note go with words", field="content")


def _answer(runtime: Runtime, body: PreviewRequestBody, caller: Caller) -> PreviewedBody:
    reading = None if body.content is None else _read(runtime, body.content)
    try:
        with naming("content"):
            previewed = _previewed(runtime, body, caller.name)
    except RuleNotUnderstood:
        return PreviewedBody(reading=reading, bullet=None, preview=None)
    return PreviewedBody(
        reading=reading,
        bullet=BulletBody.of(previewed.bullet, in_clear=caller.may(Scope.CURATE)),
        preview=PreviewBody.of(previewed.preview),
    )


def _previewed(runtime: Runtime, body: PreviewRequestBody, who: str) -> Previewed:
    learner, policy = runtime.learner, body.policy()
    if body.bullet_id is not None:
        bullet_or_404(runtime, body.bullet_id)
        if body.content is None:
            return preview_status(learner, body.bullet_id, body.status)
        return preview_edit(learner, body.bullet_id, body.content, policy=policy, as_note=body.as_note)
    assert body.content is not None, "checked before"
    return preview_rule(learner, body.content, node=body.node, policy=policy, as_note=body.as_note, who=who)
