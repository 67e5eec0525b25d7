"""Decisions: make them, look them up, explain them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, Event
from acefraud.core.ledger import DecisionFilter
from acefraud.core.scope import Scope
from acefraud.core.transaction import Transaction, Verdict
from acefraud.errors import CannotExplain, InputError
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.service.access import Caller, requires, runtime_of
from acefraud.service.bodies import (
    BatchAnswerBody,
    BatchBody,
    DecisionBody,
    ExplainedDecisionBody,
    Id,
    ListedDecisionBody,
    Page,
    ReasonBody,
    StageBody,
    Time,
    TransactionBody,
)
from acefraud.service.masking import rule_text
from acefraud.service.metrics import DECISIONS
from acefraud.service.paging import Cursor, Limit, read_cursor, write_cursor
from acefraud.service.problems import Refused
from acefraud.service.runtime import Runtime
from acefraud.storage.citing_decisions import decisions_citing

router = APIRouter(prefix="/v1", tags=["decisions"])
Serving = Annotated[Runtime, Depends(runtime_of)]
IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        pattern=r"^[\x21-\x7e]*$",
        description="Names the request: a repeat with the same key and body gets the first answer.",
    ),
]


def transaction_of(runtime: Runtime, body: TransactionBody, place: str = "") -> Transaction:
    """The transaction that a body describes, read as a line of a file would be."""
    try:
        return runtime.read(body.record())
    except InputError as problem:
        field = ".".join(part for part in (place, problem.field or "") if part)
        raise InputError(problem.message, field=field or None) from problem


@router.post("/decisions", summary="Decide a transaction", response_model=DecisionBody)
async def decide(
    request: Request,
    body: TransactionBody,
    runtime: Serving,
    caller: Annotated[Caller, requires(Scope.DECIDE)],
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Decide one transaction and record the decision.

    Once this answers, the decision is durable. The same transaction again gets the first answer; its id, or the same
    Idempotency-Key, with another body is a 409. A new Idempotency-Key allows to decide a transaction again.
    """
    transaction = transaction_of(runtime, body)
    answer = await runtime.decide(DecisionRequest(transaction, idempotency_key, caller.name))
    if not answer.repeated:
        DECISIONS.labels(str(answer.decision.verdict)).inc()
    request.scope["state"]["about"]["decision_id"] = answer.decision.id
    content = DecisionBody.answer(answer).model_dump_json()
    return Response(content, media_type="application/json")


@router.post("/decisions:batch", summary="Decide many transactions")
async def decide_batch(
    body: BatchBody,
    runtime: Serving,
    caller: Annotated[Caller, requires(Scope.DECIDE)],
    idempotency_key: IdempotencyKey = "",
) -> BatchAnswerBody:
    """Decide up to 1,000 transactions and record the decisions. An error means that some may not have been decided.

    Each transaction is answered as by `POST /v1/decisions`, so the whole batch can be sent again after an error.
    """
    requests = [
        DecisionRequest(
            transaction_of(runtime, one, f"transactions.{place}"),
            f"{idempotency_key}#{place}" if idempotency_key else "",
            caller.name,
        )
        for place, one in enumerate(body.transactions)
    ]
    answers = await runtime.decide_all(requests)
    for place, result in enumerate(answers):
        if isinstance(result, InputError):
            raise type(result)(result.message, field=f"transactions.{place}")
    made = [one for one in answers if not isinstance(one, InputError)]
    for answer in made:
        if not answer.repeated:
            DECISIONS.labels(str(answer.decision.verdict)).inc()
    return BatchAnswerBody(decisions=[DecisionBody.answer(one) for one in made])


@router.post("/score", summary="Decide without recording")
async def score(body: TransactionBody, runtime: Serving, _: Annotated[Caller, requires(Scope.DECIDE)]) -> DecisionBody:
    """The decision that `POST /v1/decisions` would make now. Nothing is recorded."""
    decision = await runtime.score(transaction_of(runtime, body))
    return DecisionBody.of(decision, runtime.playbook.clock())


@router.get("/decisions/{decision_id}", summary="Explain a decision")
async def explain(
    decision_id: Annotated[Id, Path()],
    runtime: Serving,
    caller: Annotated[Caller, requires(Scope.READ)],
) -> ExplainedDecisionBody:
    """A recorded decision with its stages, scores and reasons, and the outcome as far as it is known."""
    event = await runtime.in_thread(lambda: _recorded(runtime, decision_id))
    assert isinstance(event.payload, DecisionMade)
    decision, explained = event.payload.decision, True
    try:
        decision = await runtime.explain(decision)
    except CannotExplain:
        explained = False
    outcome = await runtime.in_thread(lambda: _outcome(runtime, decision.transaction.id))
    body = _explained(runtime, decision, event.at, explained=explained, outcome=outcome)
    if not caller.may(Scope.CURATE):
        for reason in body.reasons:
            reason.content = rule_text(reason.content, in_clear=False)
    return body


def _recorded(runtime: Runtime, decision_id: str) -> Event:
    found = runtime.playbook.ledger.find_decisions(DecisionFilter(ids=[decision_id]), limit=1)
    if not found:
        raise Refused(404, "there is no decision with this id")
    return found[0]


def _outcome(runtime: Runtime, transaction_id: str) -> Any:
    heard = runtime.playbook.ledger.transaction_events([transaction_id])[transaction_id].outcomes
    if not heard:
        return None
    return "fraud" if heard[-1].outcome.is_fraud else "legitimate"


def _explained(
    runtime: Runtime, decision: Decision, at: datetime, *, explained: bool, outcome: Any
) -> ExplainedDecisionBody:
    return ExplainedDecisionBody(
        decision_id=decision.id,
        transaction_id=decision.transaction.id,
        verdict=decision.verdict,
        probability=decision.probability,
        reasons=[ReasonBody.of(reason) for reason in decision.reasons],
        playbook_revision=decision.revision,
        time=at,
        threshold=decision.threshold,
        base=decision.base,
        facts=runtime.masked(decision.facts),
        unread=[runtime.masked_text(text, decision.facts) for text in decision.unread],
        stages=[StageBody(stage=one.stage, left=one.left) for one in decision.selection.stages],
        scores=[one.model_dump(mode="json") for one in decision.selection.scores],
        model=decision.model,
        probability_from=decision.probability_from,
        fallback=decision.fallback,
        explained=explained,
        outcome=outcome,
    )


@router.get("/decisions", summary="List decisions")
async def list_decisions(
    runtime: Serving,
    _: Annotated[Caller, requires(Scope.READ)],
    since: Annotated[Time | None, Query(description="Made at this time or later.")] = None,
    until: Annotated[Time | None, Query(description="Made before this time.")] = None,
    verdict: Verdict | None = None,
    bullet: Annotated[str | None, Query(max_length=100, description="Rests on this bullet.")] = None,
    transaction_id: Annotated[Id | None, Query()] = None,
    least_probability: Annotated[float | None, Query(ge=0, le=1)] = None,
    most_probability: Annotated[float | None, Query(ge=0, le=1)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ListedDecisionBody]:
    """Recorded decisions, the latest first.

    With `bullet` a page looks at up to 10,000 decisions, so it may hold fewer than `limit` although `next` goes on.
    """
    wanted = DecisionFilter(
        transaction_ids=None if transaction_id is None else [transaction_id],
        since=since,
        until=until,
        verdict=verdict,
        least_probability=least_probability,
        most_probability=most_probability,
    )
    before = read_cursor(cursor)
    return await runtime.in_thread(lambda: _listed(runtime, wanted, bullet, before, limit))


def _listed(
    runtime: Runtime, wanted: DecisionFilter, bullet: str | None, before: int | None, limit: int
) -> Page[ListedDecisionBody]:
    ledger = runtime.playbook.ledger
    if bullet is None:
        found: Sequence[Event] = ledger.find_decisions(wanted, before=before, limit=limit)
        more = found[-1].seq if len(found) == limit else None
    else:
        page = decisions_citing(ledger, wanted, bullet, before=before, limit=limit)
        found, more = page.events, page.next_before
    items = [ListedDecisionBody.of(event) for event in found]
    return Page(items=items, next=None if more is None else write_cursor(more))
