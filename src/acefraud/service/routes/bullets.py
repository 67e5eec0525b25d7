"""Bullets: add rules, look at them, change them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Path

from acefraud.core.bullet import Bullet
from acefraud.core.events import BULLET_HISTORY_KINDS
from acefraud.core.transaction import Verdict
from acefraud.errors import InputError
from acefraud.learning.rule_admission import Admitted, PolicyOptions, admit_rule, edit_rule
from acefraud.service.access import (
    Cursor,
    Limit,
    MayCurate,
    MayRead,
    Requester,
    Serving,
    in_thread,
    read_cursor,
    write_cursor,
)
from acefraud.service.answers import BOUNDS, admitted_rule, bullet_answer, change_answer, listed_decision
from acefraud.service.masking import RuleWords
from acefraud.service.problems import Refused, naming
from acefraud.service.runtime import Runtime
from acefraud.storage.change_log import change_of
from acefraud.storage.citing_decisions import last_firings
from acefraud.wire.answers import AdmittedRule, BulletAnswer, ChangeAnswer, Page, WholeBullet
from acefraud.wire.bodies import BulletChangeBody, NewBulletBody, PolicyFields, SnoozeBody

router = APIRouter(prefix="/v1", tags=["playbook"])
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


def policy_of(body: PolicyFields) -> PolicyOptions:
    """The policy that a body asks for."""
    verdict = None if body.always is None else Verdict(body.always.upper())
    return PolicyOptions(always=verdict, priority=body.priority, final=body.final)


def check_still_to_come(runtime: Runtime, until: datetime | None, field: str) -> None:
    """Raise InputError if a time is past."""
    if until is not None and until <= runtime.playbook.clock():
        raise InputError("expected a time that is still to come", field=field)


@router.post(
    "/bullets",
    summary="Add a rule",
    status_code=201,
    description="Add a rule, once it was read, previewed and measured on all cases that the playbook remembers.\n\n"
    f"The answer tells how it was understood and what it would have done to the past. {BOUNDS} A rule of which a part "
    "is not understood is a 422 that names the words, unless it may be kept as a note; one that the playbook already "
    "says is a 409 with the `bullet_id`.",
)
async def add(body: NewBulletBody, runtime: Serving, caller: MayCurate) -> AdmittedRule:
    """Add a rule."""

    def admitted() -> Admitted:
        with naming("content"):
            return admit_rule(
                runtime.learner,
                body.content,
                node=body.node,
                policy=policy_of(body),
                as_note=body.as_note,
                who=caller.name,
                why=body.reason,
            )

    return admitted_rule(await runtime.curating.run(admitted))


@router.get("/bullets/{bullet_id}", summary="Look at a bullet")
@in_thread
def look_at(bullet_id: BulletId, runtime: Serving, caller: MayRead) -> WholeBullet:
    """A bullet, retired or not, with its evidence, its counters, what happened to it and where it fired last."""
    bullet = bullet_or_404(runtime, bullet_id)
    history = _history(runtime, bullet_id, caller, None, MOST_HISTORY)
    fired = last_firings(runtime.playbook.ledger, bullet_id, MOST_FIRINGS).events
    return WholeBullet(
        **vars(bullet_answer(bullet, in_clear=caller.in_clear)),
        history=history.items,
        history_next=history.next,
        last_firings=[listed_decision(event) for event in fired],
    )


@router.get("/bullets/{bullet_id}/history", summary="List what happened to a bullet")
@in_thread
def list_history(
    bullet_id: BulletId, runtime: Serving, caller: MayRead, limit: Limit = 50, cursor: Cursor = None
) -> Page[ChangeAnswer]:
    """What happened to a bullet, newest first: by whom, why, and the revision after it."""
    before = read_cursor(f"history {bullet_id}", cursor)
    bullet_or_404(runtime, bullet_id)
    return _history(runtime, bullet_id, caller, before, limit)


def _history(runtime: Runtime, bullet_id: str, caller: Requester, before: int | None, limit: int) -> Page[ChangeAnswer]:
    events = runtime.playbook.ledger.find_events(
        BULLET_HISTORY_KINDS, subject=bullet_id, before=before, limit=limit + 1, newest_first=True
    )
    shown = events[:limit]
    more = write_cursor(f"history {bullet_id}", shown[-1].seq) if len(events) > limit else None
    words = RuleWords.ever(runtime.playbook, in_clear=caller.in_clear)
    return Page(items=[change_answer(change_of(event), words) for event in shown], next=more)


@router.patch("/bullets/{bullet_id}", summary="Edit, pin, retire or revive a bullet")
async def change(bullet_id: BulletId, body: BulletChangeBody, runtime: Serving, caller: MayCurate) -> AdmittedRule:
    """Change the words of a bullet, its status, or both in one step, with a reason.

    Words are read, previewed and measured as those of a new rule are; the counters stay.
    """
    _check_change(body)
    return await runtime.curating.run(lambda: _changed(runtime, bullet_id, body, caller))


def _check_change(body: BulletChangeBody) -> None:
    if body.content is None and body.status is None:
        raise Refused(422, "expected other words or another status", field="content")
    if body.content is None and body.has_policy_fields:
        raise Refused(422, "always, priority, final and as_note go with other words", field="content")


def _changed(runtime: Runtime, bullet_id: str, body: BulletChangeBody, caller: Requester) -> AdmittedRule:
    bullet_or_404(runtime, bullet_id)
    playbook = runtime.playbook

    def work() -> Admitted | None:
        edited = None
        if body.content is not None:
            edited = edit_rule(
                runtime.learner,
                bullet_id,
                body.content,
                policy=policy_of(body),
                as_note=body.as_note,
                who=caller.name,
                why=body.reason,
            )
        if body.status is not None:
            playbook.set_status(bullet_id, body.status, who=caller.name, why=body.reason)
        return edited

    with naming("content"):
        edited = playbook.run_unit_of_work(work, who=caller.name, why=body.reason)
    bullet = bullet_answer(bullet_or_404(runtime, bullet_id), in_clear=True)
    if edited is None:
        return AdmittedRule(bullet=bullet, remarks=(), preview=None)
    return admitted_rule(edited).model_copy(update={"bullet": bullet})


@router.post("/bullets/{bullet_id}:snooze", summary="Snooze a policy")
@in_thread
def snooze(bullet_id: BulletId, body: SnoozeBody, runtime: Serving, caller: MayCurate) -> BulletAnswer:
    """Let a policy not apply to one customer, card or other entity until a time. The same one again gets the new time.

    A bullet that is no policy is a 422: it is weighed with others, and decides nothing by itself.
    """
    check_still_to_come(runtime, body.until, "until")
    bullet_or_404(runtime, bullet_id)
    with naming("bullet_id"):
        runtime.playbook.snooze(bullet_id, body.snooze(), who=caller.name, why=body.reason)
    return bullet_answer(bullet_or_404(runtime, bullet_id), in_clear=True)
