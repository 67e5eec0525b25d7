"""Outcomes: what transactions turned out to be, whenever that becomes known."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from acefraud.core.ledger import DecisionFilter
from acefraud.core.scope import Scope
from acefraud.errors import OutcomeConflict
from acefraud.service.access import Caller, MayRead, charge, requires
from acefraud.service.answers import listed_decision
from acefraud.service.bodies import OneOrManyOutcomes, OutcomesBody, Time
from acefraud.service.metrics import OUTCOMES
from acefraud.service.paging import Cursor, Limit, read_cursor, write_cursor
from acefraud.service.routes.decisions import Serving
from acefraud.wire.answer import Page
from acefraud.wire.decisions import ListedDecision, Receipt, ReceiptsAnswer

router = APIRouter(prefix="/v1", tags=["outcomes"])


@router.post("/outcomes", summary="Report outcomes", status_code=202)
async def report(
    body: OneOrManyOutcomes,
    runtime: Serving,
    caller: Annotated[Caller, requires(Scope.OUTCOMES)],
) -> ReceiptsAnswer:
    """Report one outcome, or many at once.

    Once this answers, they are durable; they are judged and learnt from in the background, in the order in which they
    were received. An outcome may come before its decision, or months after. The same id again changes nothing, and with
    other content is a 409. A later outcome with another id revises an earlier one: every counter follows. For the rate
    limit each outcome counts as a request.
    """
    outcomes = [one.outcome() for one in (body.outcomes if isinstance(body, OutcomesBody) else [body])]
    charge(runtime, caller, len(outcomes))
    try:
        received = await runtime.receive(outcomes, caller.name)
    except OutcomeConflict as problem:
        if isinstance(body, OutcomesBody):
            problem.field = f"outcomes.{problem.place}.id"
        raise
    for outcome, one in zip(outcomes, received, strict=True):
        if not one.already_known:
            OUTCOMES.labels("fraud" if outcome.is_fraud else "legitimate").inc()
    feed = runtime.playbook.feed(runtime.learner.options.node)
    unheard = [feed.words] if feed.defers and feed.silence_days is None else []
    return ReceiptsAnswer(
        outcomes=[
            Receipt(id=outcome.id, status="known" if one.already_known else "received")
            for outcome, one in zip(outcomes, received, strict=True)
        ],
        warnings=[*dict.fromkeys(one.remark for one in received if one.remark), *unheard],
    )


@router.get("/outcomes/pending", summary="List decisions without an outcome")
async def pending(
    runtime: Serving,
    _: MayRead,
    before: Annotated[Time | None, Query(description="Decided before this time.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ListedDecision]:
    """Decisions whose outcome is not known yet, the oldest first. Pending is not negative: nothing is counted."""
    wanted = DecisionFilter(until=before, without_outcome=True)
    after = read_cursor("pending", cursor) or 0
    found = await runtime.in_thread(
        lambda: runtime.playbook.ledger.find_decisions(wanted, after=after, limit=limit, newest_first=False)
    )
    more = write_cursor("pending", found[-1].seq) if len(found) == limit else None
    return Page(items=[listed_decision(event) for event in found], next=more)
