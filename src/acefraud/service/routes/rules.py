"""Rules that somebody is writing: how they are understood, and what they would do. Nothing is written."""

from __future__ import annotations

from fastapi import APIRouter

from acefraud.core.fact_names import FactProfile
from acefraud.core.transaction import FactValue
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
from acefraud.service.access import MayRead, Requester, Serving, in_thread
from acefraud.service.answers import BOUNDS, bullet_answer, preview_answer
from acefraud.service.paging import Cursor, Limit, page_of, read_cursor
from acefraud.service.problems import Refused, naming
from acefraud.service.routes.bullets import bullet_or_404, policy_of
from acefraud.service.runtime import Runtime
from acefraud.storage.facts_at_hand import facts_at_hand
from acefraud.wire.answer import Page
from acefraud.wire.bodies import PreviewRequestBody, ReadBody
from acefraud.wire.playbook import FactAnswer, PreviewedRule, RuleReading

router = APIRouter(prefix="/v1", tags=["rules"])


@router.get("/facts", summary="List the facts that rules can be about")
@in_thread
def list_facts(runtime: Serving, _: MayRead, limit: Limit = 50, cursor: Cursor = None) -> Page[FactAnswer]:
    """The facts of the latest cases that the playbook remembers, with type, range, examples and coverage.

    There are none before the first training or outcome: rules are then read with the facts that the engine knows by
    name.
    """
    start = read_cursor("facts", cursor) or 0
    found, more = page_of("facts", list(facts_at_hand(runtime.playbook).values()), start, limit)
    return Page(items=[_fact_answer(runtime, fact) for fact in found], next=more)


def _fact_answer(runtime: Runtime, fact: FactProfile) -> FactAnswer:
    hidden = {"low": None, "middle": None, "high": None, "examples": ()} if _is_masked(runtime, fact) else {}
    return FactAnswer.model_validate(fact.as_json() | hidden)


def _is_masked(runtime: Runtime, fact: FactProfile) -> bool:
    """Whether a value of a fact would be masked in a decision."""
    known: list[FactValue] = [*fact.examples, *(end for end in (fact.low, fact.high) if end is not None)]
    return any(runtime.mask.masked_facts({fact.name: value}) != {fact.name: value} for value in known)


@router.post("/rules:read", summary="Read a rule")
@in_thread
def read(body: ReadBody, runtime: Serving, _: MayRead) -> RuleReading:
    """How words are understood in terms of the facts that the playbook has seen. Nothing is stored.

    Words that are not understood are no error: the answer names them, and the facts nearest to them.
    """
    return _read(runtime, body.content)


def _read(runtime: Runtime, content: str) -> RuleReading:
    runtime.playbook.refresh()
    with naming("content"):
        reading = read_rule(runtime.playbook, content)
    return RuleReading(
        **reading_as_json(reading),
        understood=reading.condition is not None,
        problem=reading.rule.problem,
        remarks=[ASKS_FOR_REVIEW] if reading.rule.asks_for_review else [],
    )


@router.post(
    "/rules:preview",
    summary="Preview a change",
    description="What a new rule, other words or another status would do to the past. Nothing is stored.\n\n"
    f"{BOUNDS} Words that are not understood are no error: the answer names them, and has no preview.",
)
async def preview(body: PreviewRequestBody, runtime: Serving, caller: MayRead) -> PreviewedRule:
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


def _answer(runtime: Runtime, body: PreviewRequestBody, caller: Requester) -> PreviewedRule:
    reading = None if body.content is None else _read(runtime, body.content)
    try:
        with naming("content"):
            previewed = _previewed(runtime, body, caller.name)
    except RuleNotUnderstood:
        return PreviewedRule(reading=reading, bullet=None, preview=None)
    return PreviewedRule(
        reading=reading,
        bullet=bullet_answer(previewed.bullet, in_clear=caller.in_clear),
        preview=preview_answer(previewed.preview),
    )


def _previewed(runtime: Runtime, body: PreviewRequestBody, who: str) -> Previewed:
    learner, policy = runtime.learner, policy_of(body)
    if body.bullet_id is not None:
        bullet_or_404(runtime, body.bullet_id)
        if body.content is None:
            return preview_status(learner, body.bullet_id, body.status)
        return preview_edit(learner, body.bullet_id, body.content, policy=policy, as_note=body.as_note)
    assert body.content is not None, "checked before"
    return preview_rule(learner, body.content, node=body.node, policy=policy, as_note=body.as_note, who=who)
