"""Bullets: add rules, look at them, change them; and rules that somebody is writing, of which nothing is stored."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, TypedDict

from fastapi import APIRouter, Path

from acefraud.core.bullet import Bullet
from acefraud.core.events import BULLET_HISTORY_KINDS
from acefraud.core.fact_names import FactProfile
from acefraud.core.transaction import FactValue, Verdict
from acefraud.errors import InputError, RuleNotUnderstood
from acefraud.learning.rule_admission import (
    TAKEN_AS_POLICY,
    Admitted,
    PolicyOptions,
    Previewed,
    admit_rule,
    advise_on,
    edit_rule,
    preview_edit,
    preview_rule,
    preview_status,
    read_rule,
    reading_as_json,
)
from acefraud.rules.reader.advice import NO_ADVICE
from acefraud.service.access import (
    Cursor,
    Limit,
    MayCurate,
    MayRead,
    Requester,
    Serving,
    in_thread,
    page_of,
    read_cursor,
    write_cursor,
)
from acefraud.service.answers import (
    BOUNDS,
    admitted_rule,
    bullet_answer,
    change_answer,
    listed_decision,
    preview_answer,
)
from acefraud.service.masking import RuleWords
from acefraud.service.problems import Refused, naming
from acefraud.service.runtime import Runtime
from acefraud.storage.change_log import change_of
from acefraud.storage.contents import last_firings
from acefraud.storage.playbook_reading import facts_at_hand
from acefraud.wire import answers as wire
from acefraud.wire.bodies import BulletChangeBody, NewBulletBody, PolicyFields, PreviewRequestBody, ReadBody, SnoozeBody

bullet_routes = APIRouter(prefix="/v1", tags=["playbook"])
BulletId = Annotated[str, Path(max_length=100, description="Id of the bullet, as `GET /v1/playbook` tells it.")]
MOST_HISTORY: Final = 100
MOST_FIRINGS: Final = 20


def bullet_or_404(runtime: Runtime, bullet_id: str) -> Bullet:
    """The bullet as it is now."""
    runtime.playbook.refresh()
    bullet = runtime.playbook.get_bullet(bullet_id)
    if bullet is None:
        raise Refused(404, "there is no bullet with this id", field="bullet_id")
    return bullet


class RuleOptions(TypedDict):
    """What becomes of words, if they do not say so."""

    policy: PolicyOptions
    as_note: bool


def options_of(body: PolicyFields) -> RuleOptions:
    """What a body asks for beside its words."""
    verdict = None if body.always is None else Verdict(body.always.upper())
    policy = PolicyOptions(always=verdict, priority=body.priority, final=body.final, as_evidence=body.as_evidence)
    return RuleOptions(policy=policy, as_note=body.as_note)


def check_still_to_come(runtime: Runtime, until: datetime | None, field: str) -> None:
    """Raise InputError if a time is past."""
    if until is not None and until <= runtime.playbook.clock():
        raise InputError("expected a time that is still to come", field=field)


@bullet_routes.post(
    "/bullets",
    summary="Add a rule",
    status_code=201,
    description="Add a rule, once it was read, previewed and measured on all cases that the playbook remembers.\n\n"
    f"The answer tells how it was understood and what it would have done to the past. {BOUNDS} A rule of which a part "
    "is not understood is a 422 that names the words, unless it may be kept as a note; one that the playbook already "
    "says is a 409 with the `bullet_id`.",
)
async def add(body: NewBulletBody, runtime: Serving, caller: MayCurate) -> wire.AdmittedRule:
    """Add a rule."""

    def admitted() -> Admitted:
        with naming("content"):
            by = caller.by(body.reason)
            return admit_rule(runtime.learner, body.content, node=body.node, **options_of(body), **by)

    return admitted_rule(await runtime.curating.run(admitted))


@bullet_routes.get("/bullets/{bullet_id}", summary="Look at a bullet")
@in_thread
def look_at(bullet_id: BulletId, runtime: Serving, caller: MayRead) -> wire.WholeBullet:
    """A bullet, retired or not, with its evidence, its counters, what happened to it and where it fired last."""
    bullet = bullet_or_404(runtime, bullet_id)
    history = _history(runtime, bullet_id, caller, None, MOST_HISTORY)
    fired = last_firings(runtime.playbook.ledger, bullet_id, MOST_FIRINGS).events
    return wire.WholeBullet(
        **vars(bullet_answer(bullet, in_clear=caller.in_clear)),
        history=history.items,
        history_next=history.next,
        last_firings=[listed_decision(event) for event in fired],
    )


@bullet_routes.get("/bullets/{bullet_id}/history", summary="List what happened to a bullet")
@in_thread
def list_history(
    bullet_id: BulletId, runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None
) -> wire.Page[wire.ChangeAnswer]:
    """What happened to a bullet, newest first: by whom, why, and the revision after it."""
    before = read_cursor(f"history {bullet_id}", cursor)
    bullet_or_404(runtime, bullet_id)
    return _history(runtime, bullet_id, caller, before, limit)


def _history(
    runtime: Runtime, bullet_id: str, caller: Requester, before: int | None, limit: int
) -> wire.Page[wire.ChangeAnswer]:
    events = runtime.playbook.ledger.find_events(
        BULLET_HISTORY_KINDS, subject=bullet_id, before=before, limit=limit + 1, newest_first=True
    )
    shown = events[:limit]
    more = write_cursor(f"history {bullet_id}", shown[-1].seq) if len(events) > limit else None
    words = RuleWords.ever(runtime.playbook, in_clear=caller.in_clear)
    return wire.Page(items=[change_answer(change_of(event), words) for event in shown], next=more)


@bullet_routes.patch("/bullets/{bullet_id}", summary="Edit, pin, retire or revive a bullet")
async def change(bullet_id: BulletId, body: BulletChangeBody, runtime: Serving, caller: MayCurate) -> wire.AdmittedRule:
    """Change the words of a bullet, its status, or both in one step, with a reason.

    Words are read, previewed and measured as those of a new rule are; the counters stay.
    """
    if body.content is None and body.status is None:
        raise Refused(422, "expected other words or another status", field="content")
    if body.content is None and body.has_policy_fields:
        raise Refused(422, "always, priority, final, as_evidence and as_note go with other words", field="content")
    return await runtime.curating.run(lambda: _changed(runtime, bullet_id, body, caller))


def _changed(runtime: Runtime, bullet_id: str, body: BulletChangeBody, caller: Requester) -> wire.AdmittedRule:
    bullet_or_404(runtime, bullet_id)
    playbook, by = runtime.playbook, caller.by(body.reason)

    def work() -> Admitted | None:
        edited = None
        if body.content is not None:
            edited = edit_rule(runtime.learner, bullet_id, body.content, **options_of(body), **by)
        if body.status is not None:
            playbook.set_status(bullet_id, body.status, **by)
        return edited

    with naming("content"):
        edited = playbook.run_unit_of_work(work, **by)
    bullet = bullet_answer(bullet_or_404(runtime, bullet_id), in_clear=True)
    if edited is None:
        return wire.AdmittedRule(bullet=bullet, remarks=(), preview=None)
    return admitted_rule(edited).model_copy(update={"bullet": bullet})


@bullet_routes.post("/bullets/{bullet_id}:snooze", summary="Snooze a policy")
@in_thread
def snooze(bullet_id: BulletId, body: SnoozeBody, runtime: Serving, caller: MayCurate) -> wire.BulletAnswer:
    """Let a policy not apply to one customer, card or other entity until a time. The same one again gets the new time.

    A bullet that is no policy is a 422: it is weighed with others, and decides nothing by itself.
    """
    check_still_to_come(runtime, body.until, "until")
    bullet_or_404(runtime, bullet_id)
    with naming("bullet_id"):
        runtime.playbook.snooze(bullet_id, body.snooze(), **caller.by(body.reason))
    return bullet_answer(bullet_or_404(runtime, bullet_id), in_clear=True)


rule_routes = APIRouter(prefix="/v1", tags=["rules"])


@rule_routes.get("/facts", summary="List the facts that rules can be about")
@in_thread
def list_facts(runtime: Serving, _: MayRead, limit: Limit = 50, cursor: Cursor = None) -> wire.Page[wire.FactAnswer]:
    """The facts of the latest cases that the playbook remembers, with type, range, examples and coverage.

    There are none before the first training or outcome: rules are then read with the facts that the engine knows by
    name.
    """
    start = read_cursor("facts", cursor) or 0
    found, more = page_of("facts", list(facts_at_hand(runtime.playbook.ledger).values()), start, limit)
    return wire.Page(items=[_fact_answer(runtime, fact) for fact in found], next=more)


def _fact_answer(runtime: Runtime, fact: FactProfile) -> wire.FactAnswer:
    hidden = {"low": None, "middle": None, "high": None, "examples": ()} if _is_masked(runtime, fact) else {}
    return wire.FactAnswer.model_validate(fact.as_json() | hidden)


def _is_masked(runtime: Runtime, fact: FactProfile) -> bool:
    """Whether a value of a fact would be masked in a decision."""
    known: list[FactValue] = [*fact.examples, *(end for end in (fact.low, fact.high) if end is not None)]
    return any(runtime.mask.masked_facts({fact.name: value}) != {fact.name: value} for value in known)


@rule_routes.post("/rules:read", summary="Read a rule")
@in_thread
def read(body: ReadBody, runtime: Serving, _: MayRead) -> wire.RuleReading:
    """How words are understood in terms of the facts that the playbook has seen. Nothing is stored.

    Words that are not understood are no error: the answer names them, and the facts nearest to them.
    """
    return _read(runtime, body.content)


def _read(runtime: Runtime, content: str) -> wire.RuleReading:
    runtime.playbook.refresh()
    with naming("content"):
        reading = read_rule(runtime.playbook, content)
        advice = NO_ADVICE if reading.condition is not None else advise_on(runtime.learner, content)
    return wire.RuleReading(
        **reading_as_json(reading, advice),
        understood=reading.condition is not None,
        problem=reading.rule.problem,
        remarks=[TAKEN_AS_POLICY] if reading.rule.orders is not reading.rule.always else [],
    )


@rule_routes.post(
    "/rules:preview",
    summary="Preview a change",
    description="What a new rule, other words or another status would do to the past. Nothing is stored.\n\n"
    f"{BOUNDS} Words that are not understood are no error: the answer names them, and has no preview.",
)
async def preview(body: PreviewRequestBody, runtime: Serving, caller: MayRead) -> wire.PreviewedRule:
    """Preview a change."""
    if body.content is None and body.bullet_id is None:
        raise Refused(422, "expected the words of a rule, or the id of a bullet", field="content")
    if body.status is not None and (body.bullet_id is None or body.content is not None):
        raise Refused(422, "a status goes with the id of a bullet, and without other words", field="status")
    if body.content is None and body.has_policy_fields:
        raise Refused(422, "always, priority, final, as_evidence and as_note go with words", field="content")
    return await runtime.previewing.run(lambda: _answer(runtime, body, caller))


def _answer(runtime: Runtime, body: PreviewRequestBody, caller: Requester) -> wire.PreviewedRule:
    reading = None if body.content is None else _read(runtime, body.content)
    try:
        with naming("content"):
            previewed = _previewed(runtime, body, caller.name)
    except RuleNotUnderstood:
        return wire.PreviewedRule(reading=reading, bullet=None, preview=None)
    return wire.PreviewedRule(
        reading=reading,
        bullet=bullet_answer(previewed.bullet, in_clear=caller.in_clear),
        preview=preview_answer(previewed.preview),
    )


def _previewed(runtime: Runtime, body: PreviewRequestBody, who: str) -> Previewed:
    learner, options = runtime.learner, options_of(body)
    if body.bullet_id is not None:
        bullet_or_404(runtime, body.bullet_id)
        if body.content is None:
            return preview_status(learner, body.bullet_id, body.status)
        return preview_edit(learner, body.bullet_id, body.content, **options)
    assert body.content is not None, "checked before"
    return preview_rule(learner, body.content, node=body.node, **options, who=who)
