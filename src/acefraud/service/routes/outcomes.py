"""Outcomes: what transactions turned out to be, whenever that becomes known."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from acefraud.core.ledger import DecisionFilter
from acefraud.core.scope import Scope
from acefraud.errors import OutcomeConflict
from acefraud.service.access import (
    Cursor,
    Limit,
    MayRead,
    Requester,
    Serving,
    charge,
    in_thread,
    read_cursor,
    requires,
    write_cursor,
)
from acefraud.service.answers import listed_decision
from acefraud.service.metrics import OUTCOMES
from acefraud.wire.answers import ListedDecision, Page, Receipt, ReceiptsAnswer
from acefraud.wire.bodies import OneOrManyOutcomes, OutcomesBody, Time

router = APIRouter(prefix="/v1", tags=["outcomes"])


@router.post("/outcomes", summary="Report outcomes", status_code=202)
async def report(
    body: OneOrManyOutcomes,
    runtime: Serving,
    caller: Annotated[Requester, requires(Scope.OUTCOMES)],
) -> ReceiptsAnswer:
    """Report one outcome, or many at once.

    Once this answers, they are durable; they are judged and learnt from in the background, in the order in which they
    were received. An outcome may come before its decision, or months after. The same id again changes nothing, and with
    other content is a 409. A later outcome with another id revises an earlier one: every counter follows. For the rate
    limit each outcome counts as a request.
    """
    outcomes = [report.outcome() for report in (body.outcomes if isinstance(body, OutcomesBody) else [body])]
    charge(runtime, caller, len(outcomes))
    try:
        received = await runtime.receive(outcomes, caller.name)
    except OutcomeConflict as problem:
        if isinstance(body, OutcomesBody):
            problem.field = f"outcomes.{problem.place}.id"
        raise
    receipts = []
    for outcome, kept in zip(outcomes, received, strict=True):
        receipts.append(Receipt(id=outcome.id, status="known" if kept.already_known else "received"))
        if not kept.already_known:
            OUTCOMES.labels("fraud" if outcome.is_fraud else "legitimate").inc()
    feed = runtime.playbook.feed(runtime.learner.options.node)
    unheard = [feed.words] if feed.defers and feed.silence_days is None else []
    remarks = dict.fromkeys(kept.remark for kept in received if kept.remark)
    return ReceiptsAnswer(outcomes=receipts, warnings=[*remarks, *unheard])


@router.get("/outcomes/pending", summary="List decisions without an outcome")
@in_thread
def pending(
    runtime: Serving,
    _: MayRead,
    before: Annotated[Time | None, Query(description="Decided before this time.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ListedDecision]:
    """Decisions whose outcome is not known yet, the oldest first. Pending is not negative: nothing is counted."""
    wanted = DecisionFilter(until=before, without_outcome=True)
    after = read_cursor("pending", cursor) or 0
    found = runtime.playbook.ledger.find_decisions(wanted, after=after, limit=limit, newest_first=False)
    more = write_cursor("pending", found[-1].seq) if len(found) == limit else None
    return Page(items=[listed_decision(event) for event in found], next=more)
