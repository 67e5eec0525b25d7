"""For teams that keep an agent of their own: the bullets for its prompt, and what it decided with them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request

from acefraud.core.ledger import DecisionFilter
from acefraud.core.outcome import Outcome
from acefraud.core.scope import Scope
from acefraud.core.transaction import Transaction
from acefraud.engine.selected_context import Context
from acefraud.errors import InputError
from acefraud.learning.learner import Traced
from acefraud.service.access import MayDecide, Requester, Serving, lacks
from acefraud.service.answers import decision_answer, stage_answers
from acefraud.service.masking import RuleWords
from acefraud.service.metrics import DECISIONS, OUTCOMES
from acefraud.service.problems import Refused
from acefraud.service.routes.decisions import transaction_of
from acefraud.service.runtime import Runtime
from acefraud.wire.bodies import TraceBody, TransactionBody
from acefraud.wire.decisions import ContextAnswer, ContextBullet, DecisionAnswer, TraceAnswer

router = APIRouter(prefix="/v1", tags=["agents"])


@router.post("/context", summary="Select bullets for your own agent")
async def context(
    body: TransactionBody,
    runtime: Serving,
    caller: MayDecide,
    n_bullets: Annotated[int | None, Query(ge=1, le=100, description="Default: as many as a decision cites.")] = None,
) -> ContextAnswer:
    """The bullets that matter for a transaction or a text, and a prompt with them. Nothing is decided or recorded."""
    transaction = transaction_of(runtime, body)
    selected = await runtime.context(transaction, n_bullets)
    return _context_answer(selected, RuleWords.now(runtime.playbook, in_clear=caller.in_clear))


def _context_answer(context: Context, words: RuleWords) -> ContextAnswer:
    return ContextAnswer(
        transaction_id=context.transaction_id,
        bullets=[
            ContextBullet(
                bullet_id=bullet.bullet_id,
                content=words.shown(bullet.content, bullet.bullet_id),
                argues=bullet.argues,
                weight=bullet.weight,
                evidence=bullet.evidence,
                claim=words.shown(bullet.claim, bullet.bullet_id),
                applies=bullet.applies,
            )
            for bullet in context.bullets
        ],
        policy=context.policy,
        prompt=context.prompt,
        stages=stage_answers(context.trace),
        playbook_revision=context.revision,
    )


@router.post("/traces", summary="Record what your own agent decided", status_code=201)
async def trace(request: Request, body: TraceBody, runtime: Serving, caller: MayDecide) -> TraceAnswer:
    """Record the decision of an agent of yours, so that the bullets it used are counted when the truth comes.

    The truth may come along, or later as an outcome. It is judged, reflected on and learnt from in the background, as
    that of every decision. A label needs the scope `outcomes` too. The same trace again changes nothing.
    """
    if body.label is not None and not caller.may(Scope.OUTCOMES):
        raise Refused(403, f"a label needs another scope: {lacks(caller.name, Scope.OUTCOMES)}", field="label")
    transaction = transaction_of(runtime, body.transaction, "transaction")
    traced = await runtime.in_thread(lambda: _traced(runtime, transaction, body, caller))
    if not traced.already_known:
        DECISIONS.labels(str(traced.decision.verdict)).inc()
    outcome: Literal["received", "known"] | None = None
    if body.label is not None:
        truth = Outcome(transaction_id=transaction.id, is_fraud=body.label == "fraud", id=f"trace:{traced.decision.id}")
        (received,) = await runtime.receive([truth], caller.name)
        outcome = "known" if received.already_known else "received"
        if not received.already_known:
            OUTCOMES.labels(body.label).inc()
    request.scope["state"]["about"]["decision_id"] = traced.decision.id
    wanted = DecisionFilter(ids=[traced.decision.id])
    words = RuleWords.ever(runtime.playbook, in_clear=caller.in_clear)

    def told() -> DecisionAnswer:
        (event,) = runtime.playbook.ledger.find_decisions(wanted, limit=1)
        return decision_answer(traced.decision, event.at, words)

    decision = await runtime.in_thread(told)
    return TraceAnswer(decision=decision, status="known" if traced.already_known else "recorded", outcome=outcome)


def _traced(runtime: Runtime, transaction: Transaction, body: TraceBody, caller: Requester) -> Traced:
    try:
        return runtime.learner.record_trace_sync(
            transaction,
            body.verdict,
            probability=body.probability,
            cited=body.bullet_ids,
            agent=body.agent,
            reasons=body.reasoning,
            who=caller.name,
        )
    except InputError as problem:
        if problem.field == "cited":
            problem.field = "bullet_ids"
        raise
