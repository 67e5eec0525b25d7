"""For teams that keep an agent of their own: the bullets for its prompt, and what it decided with them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from acefraud.core.ledger import DecisionFilter
from acefraud.core.outcome import Outcome
from acefraud.core.scope import Scope
from acefraud.core.transaction import Transaction, Verdict
from acefraud.errors import InputError
from acefraud.learning.learner import Traced
from acefraud.learning.selected_context import Context
from acefraud.service.access import Caller, MayDecide, lacks
from acefraud.service.bodies import ORDER, AnyCaseVerdict, DecisionBody, StageBody, TransactionBody
from acefraud.service.masking import RuleWords
from acefraud.service.metrics import DECISIONS, OUTCOMES
from acefraud.service.problems import Refused
from acefraud.service.routes.decisions import Serving, transaction_of
from acefraud.service.runtime import Runtime
from acefraud.service.strict_bodies import PrivateBody, examples

router = APIRouter(prefix="/v1", tags=["agents"])


class ContextBulletBody(BaseModel):
    """A bullet that matters for a transaction."""

    bullet_id: str
    content: str
    argues: Verdict | None
    weight: float | None = Field(description="Log-odds that it adds where it applies; null before the first fit.")
    evidence: str = Field(description="What was measured of it, in words; empty if nothing was.")
    claim: str = Field(description="A figure in its words that nobody measured; empty if there is none.")
    applies: bool = Field(description="Whether its condition holds, or only its words are like the transaction's.")


class ContextBody(BaseModel):
    """The bullets that would be selected for a transaction now, best first."""

    transaction_id: str
    bullets: list[ContextBulletBody]
    policy: str | None = Field(description="The policy that would decide it whatever the bullets say; null if none.")
    prompt: str = Field(description="A text for the prompt of your agent. Words of bullets stand in it as data.")
    stages: list[StageBody]
    playbook_revision: int

    @classmethod
    def of(cls, context: Context, words: RuleWords) -> ContextBody:
        """A selected context as a caller may see it."""
        bullets = [ContextBulletBody.model_validate(bullet, from_attributes=True) for bullet in context.bullets]
        for bullet in bullets:
            bullet.content = words.shown(bullet.content, bullet.bullet_id)
            bullet.claim = words.shown(bullet.claim, bullet.bullet_id)
        return cls(
            transaction_id=context.transaction_id,
            bullets=bullets,
            policy=context.policy,
            prompt=context.prompt,
            stages=[StageBody(stage=one.stage, left=one.left) for one in context.trace.stages],
            playbook_revision=context.revision,
        )


class TraceBody(PrivateBody):
    """What an agent decided and, if known, the truth."""

    model_config = examples(
        {
            "transaction": ORDER,
            "verdict": "DECLINE",
            "probability": 0.8,
            "bullet_ids": [],
            "agent": "our-agent",
            "reasoning": "a VPN and a young account",
            "label": "fraud",
        }
    )

    transaction: TransactionBody
    verdict: AnyCaseVerdict
    probability: float | None = Field(default=None, ge=0, le=1, description="Of fraud, if the agent says so.")
    bullet_ids: list[str] = Field(default_factory=list, max_length=100, description="The bullets that it used.")
    agent: str = Field(default="", max_length=100, description="Its name.")
    reasoning: str = Field(default="", max_length=10_000, description="Its reasons in its own words.")
    label: Literal["fraud", "legitimate"] | None = Field(default=None, description="The truth, if it is known.")


class TracedBody(BaseModel):
    """The trace as it was recorded."""

    decision: DecisionBody
    status: Literal["recorded", "known"] = Field(description="`known` if the same trace was recorded before.")
    outcome: Literal["received", "known"] | None = Field(description="What became of the truth, if it was given.")


@router.post("/context", summary="Select bullets for your own agent")
async def context(
    body: TransactionBody,
    runtime: Serving,
    caller: MayDecide,
    n_bullets: Annotated[int | None, Query(ge=1, le=100, description="Default: as many as a decision cites.")] = None,
) -> ContextBody:
    """The bullets that matter for a transaction or a text, and a prompt with them. Nothing is decided or recorded."""
    transaction = transaction_of(runtime, body)
    selected = await runtime.context(transaction, n_bullets)
    return ContextBody.of(selected, RuleWords.now(runtime.playbook, in_clear=caller.may(Scope.CURATE)))


@router.post("/traces", summary="Record what your own agent decided", status_code=201)
async def trace(request: Request, body: TraceBody, runtime: Serving, caller: MayDecide) -> TracedBody:
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
    words = RuleWords.ever(runtime.playbook, in_clear=caller.may(Scope.CURATE))

    def told() -> DecisionBody:
        (event,) = runtime.playbook.ledger.find_decisions(wanted, limit=1)
        return DecisionBody.of(traced.decision, event.at, words)

    decision = await runtime.in_thread(told)
    return TracedBody(decision=decision, status="known" if traced.already_known else "recorded", outcome=outcome)


def _traced(runtime: Runtime, transaction: Transaction, body: TraceBody, caller: Caller) -> Traced:
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
