"""Decisions: make, look up and explain them, hear what they turned out to be, and serve agents that callers keep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import AfterValidator

from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, Event, OutcomeHeard
from acefraud.core.ledger import DecisionFilter
from acefraud.core.outcome import Outcome
from acefraud.core.scope import Scope
from acefraud.core.transaction import Transaction
from acefraud.engine.own_agents import Context
from acefraud.errors import CannotExplain, InputError, OutcomeConflict
from acefraud.learning.credits import with_silence
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.learning.hearing import Traced
from acefraud.service.access import (
    Cursor,
    Limit,
    MayDecide,
    MayRead,
    Requester,
    Serving,
    charge,
    in_thread,
    lacks,
    read_cursor,
    requires,
    write_cursor,
)
from acefraud.service.answers import decision_answer, listed_decision, stage_answers, told
from acefraud.service.decision_requests import Answered, Result
from acefraud.service.masking import RuleWords
from acefraud.service.metrics import DECISIONS, OUTCOMES, UNFAMILIAR
from acefraud.service.problems import Refused
from acefraud.service.runtime import Runtime
from acefraud.storage.contents import decisions_citing
from acefraud.wire import answers as wire
from acefraud.wire import bodies

decision_routes = APIRouter(prefix="/v1", tags=["decisions"])


def _printable(key: str) -> str:
    if not all("!" <= char <= "~" for char in key):
        raise ValueError("expected printable ASCII characters without spaces")
    return key


IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        json_schema_extra={"pattern": r"^[\x21-\x7e]*$"},
        description="Names the request: a repeat with the same key and body gets the first answer.",
    ),
    AfterValidator(_printable),
]


def transaction_of(runtime: Runtime, body: bodies.TransactionBody, within: str = "") -> Transaction:
    """The transaction that a body describes, read as a line of a file would be."""
    try:
        return runtime.read(body.record())
    except InputError as problem:
        field = ".".join(part for part in (within, problem.field or "facts") if part)
        raise InputError(problem.message, field=field) from problem


@decision_routes.post("/decisions", summary="Decide a transaction", response_model=wire.DecisionAnswer)
async def decide(
    request: Request,
    body: bodies.TransactionBody,
    runtime: Serving,
    caller: MayDecide,
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Decide one transaction and record the decision.

    Once this answers, the decision is durable. The same transaction again gets the first answer; its id, or the same
    Idempotency-Key, with another body is a 409. With a new Idempotency-Key, a transaction is decided again with other
    facts.
    """
    asked = request_of(runtime, transaction_of(runtime, body), idempotency_key, caller)
    answer = await runtime.decide(asked)
    count(answer)
    request.scope["state"]["about"]["decision_id"] = answer.decision.id
    if answer.repeated:
        (shown,) = await runtime.threads.run(lambda: _shown(runtime, caller, [answer], [asked]))
    else:
        (shown,) = _shown(runtime, caller, [answer], [asked])
    return Response(shown.model_dump_json(), media_type="application/json")


@decision_routes.post("/decisions:batch", summary="Decide many transactions", response_model=wire.BatchAnswer)
async def decide_batch(
    body: bodies.BatchBody, runtime: Serving, caller: MayDecide, idempotency_key: IdempotencyKey = ""
) -> Response:
    """Decide up to 1,000 transactions and record the decisions. An error means that some may not have been decided.

    Each transaction is answered as by `POST /v1/decisions`, so the whole batch can be sent again after an error. For
    the rate limit it counts as many requests as it has transactions.
    """
    charge(runtime, caller, len(body.transactions))
    # So many bodies take a while to read and to write: other requests go on meanwhile.
    requests = await runtime.threads.run(lambda: _requests(runtime, body, caller, idempotency_key))
    answers = await runtime.decide_all(requests)
    content = await runtime.threads.run(lambda: _answered(runtime, caller, answers, requests))
    return Response(content, media_type="application/json")


def request_of(
    runtime: Runtime, transaction: Transaction, key: str, caller: Requester, within: str = ""
) -> DecisionRequest:
    """A transaction that arrives now, to be decided for a caller. A strict service refuses what it does not know."""
    asked = DecisionRequest(transaction, key, caller.name, runtime.playbook.clock())
    if runtime.learner.options.strict:
        try:
            runtime.learner.check([asked.to_decide]).refuse()
        except InputError as problem:
            parts_of = {**dict.fromkeys(transaction.entities, "entities"), **dict.fromkeys(transaction.facts, "facts")}
            parts = (within, parts_of.get(problem.field or ""), problem.field)
            raise InputError(problem.message, field=".".join(part for part in parts if part)) from problem
    return asked


def count(answer: Answered) -> None:
    """Count a decision in the metrics, unless it was counted when it was made."""
    if not answer.repeated:
        DECISIONS.labels(str(answer.decision.verdict)).inc()
        if answer.decision.unfamiliar:
            UNFAMILIAR.inc()


def _requests(runtime: Runtime, body: bodies.BatchBody, caller: Requester, key: str) -> list[DecisionRequest]:
    read = [transaction_of(runtime, given, f"transactions.{index}") for index, given in enumerate(body.transactions)]
    return [
        request_of(runtime, transaction, f"{key}#{index}" if key else "", caller, f"transactions.{index}")
        for index, transaction in enumerate(read)
    ]


def _answered(runtime: Runtime, caller: Requester, answers: Sequence[Result], asked: Sequence[DecisionRequest]) -> str:
    """The answers as JSON, once they are counted. Raises InputError for the first that is wrong."""
    for index, result in enumerate(answers):
        if isinstance(result, InputError):
            raise type(result)(result.message, field=f"transactions.{index}")
    made = [answer for answer in answers if not isinstance(answer, InputError)]
    for answer in made:
        count(answer)
    return wire.BatchAnswer(decisions=_shown(runtime, caller, made, asked)).model_dump_json()


def _shown(
    runtime: Runtime, caller: Requester, answers: Sequence[Answered], asked: Sequence[DecisionRequest]
) -> list[wire.DecisionAnswer]:
    """Answers as a caller may see them. A repeated one may rest on rules that have other words by now."""
    ever = not caller.in_clear and any(answer.repeated for answer in answers)
    words = (RuleWords.ever if ever else RuleWords.now)(runtime.playbook, in_clear=caller.in_clear)
    return [
        decision_answer(answer.decision, answer.at, words, answer.checked or runtime.learner.check([request.to_decide]))
        for answer, request in zip(answers, asked, strict=True)
    ]


@decision_routes.post("/score", summary="Decide without recording")
async def score(body: bodies.TransactionBody, runtime: Serving, caller: MayDecide) -> wire.ScoreAnswer:
    """The decision that `POST /v1/decisions` would make now. Nothing is recorded."""
    arriving = request_of(runtime, transaction_of(runtime, body), "", caller).to_decide
    decision, checked = await runtime.score(arriving)
    words = RuleWords.now(runtime.playbook, in_clear=caller.in_clear)
    return wire.ScoreAnswer(**vars(decision_answer(decision, runtime.playbook.clock(), words, checked)))


@decision_routes.get("/decisions/{decision_id}", summary="Explain a decision")
async def explain(
    decision_id: Annotated[bodies.Id, Path()], runtime: Serving, caller: MayRead
) -> wire.ExplainedDecision:
    """A recorded decision with its stages, scores and reasons, and the outcome as far as it is known."""
    event = await runtime.threads.run(lambda: _recorded(runtime, decision_id))
    assert isinstance(event.payload, DecisionMade)
    decision, explained = event.payload.decision, True
    try:
        decision = await runtime.off_loop.finish(partial(runtime.learner.explain, decision))
    except CannotExplain:
        explained = False
    words = RuleWords.ever(runtime.playbook, in_clear=caller.in_clear)
    return await runtime.threads.run(lambda: _explained(runtime, decision, event.at, words, explained=explained))


def _recorded(runtime: Runtime, decision_id: str) -> Event:
    found = runtime.playbook.ledger.find_decisions(DecisionFilter(ids=[decision_id]), limit=1)
    if not found:
        raise Refused(404, "there is no decision with this id")
    return found[0]


def _outcome(runtime: Runtime, transaction_id: str) -> OutcomeHeard | None:
    playbook, node = runtime.playbook, runtime.learner.options.node
    heard = playbook.ledger.transaction_events([transaction_id])[transaction_id].outcomes
    outcomes = with_silence(playbook, {transaction_id: heard}, node)[transaction_id]
    return next((known for known in reversed(outcomes) if not known.outcome.is_opinion), None)


def _explained(
    runtime: Runtime, decision: Decision, at: datetime, words: RuleWords, *, explained: bool
) -> wire.ExplainedDecision:
    mask, heard = runtime.mask, _outcome(runtime, decision.transaction.id)
    outcome = None if heard is None else heard.outcome
    judgement = heard.judgement if heard is not None and heard.decision_id == decision.id else None
    answer = decision_answer(decision, at, words, runtime.learner.check([decision.transaction]))
    return told(
        wire.ExplainedDecision,
        decision,
        **{**vars(answer), "warnings": [mask.masked_text(warning, decision.facts) for warning in answer.warnings]},
        facts=mask.masked_facts(decision.facts),
        unread=[mask.masked_text(text, decision.facts) for text in decision.unread],
        stages=stage_answers(decision.selection),
        scores=[score.model_dump() for score in decision.selection.scores],
        explained=explained,
        outcome=None if outcome is None else "fraud" if outcome.is_fraud else "legitimate",
        outcome_source=None if outcome is None else outcome.source,
        outcome_time=None if outcome is None else outcome.at,
        outcome_author="" if outcome is None else mask.masked_text(outcome.author, decision.facts),
        outcome_note="" if outcome is None else mask.masked_text(outcome.note, decision.facts),
        outcome_details={} if outcome is None else mask.masked_details(outcome.details),
        correct=None if judgement is None else judgement.is_correct,
        decided_by=runtime.learner.ruling(decision),
    )


@decision_routes.get("/decisions", summary="List decisions")
@in_thread
def list_decisions(
    runtime: Serving,
    _: MayRead,
    since: Annotated[bodies.Time | None, Query(description="Made at this time or later.")] = None,
    until: Annotated[bodies.Time | None, Query(description="Made before this time.")] = None,
    verdict: bodies.AnyCaseVerdict | None = None,
    bullet: Annotated[str | None, Query(max_length=100, description="Rests on this bullet.")] = None,
    transaction_id: Annotated[bodies.Id | None, Query()] = None,
    least_probability: Annotated[float | None, Query(ge=0, le=1)] = None,
    most_probability: Annotated[float | None, Query(ge=0, le=1)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> wire.Page[wire.ListedDecision]:
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
    before, ledger = read_cursor("decisions", cursor), runtime.playbook.ledger
    if bullet is None:
        found: Sequence[Event] = ledger.find_decisions(wanted, before=before, limit=limit)
        more = found[-1].seq if len(found) == limit else None
    else:
        page = decisions_citing(ledger, wanted, bullet, before=before, limit=limit)
        found, more = page.events, page.next_before
    items = [listed_decision(event) for event in found]
    return wire.Page(items=items, next=None if more is None else write_cursor("decisions", more))


outcome_routes = APIRouter(prefix="/v1", tags=["outcomes"])


@outcome_routes.post("/outcomes", summary="Report outcomes", status_code=202)
async def report(
    body: bodies.OneOrManyOutcomes, runtime: Serving, caller: Annotated[Requester, requires(Scope.OUTCOMES)]
) -> wire.ReceiptsAnswer:
    """Report one outcome, or many at once.

    Once this answers, they are durable; they are judged and learnt from in the background, in the order in which they
    were received. An outcome may come before its decision, or months after. The same id again changes nothing, and with
    other content is a 409. A later outcome with another id revises an earlier one: every counter follows. For the rate
    limit each outcome counts as a request.
    """
    outcomes = [report.outcome() for report in (body.outcomes if isinstance(body, bodies.OutcomesBody) else [body])]
    charge(runtime, caller, len(outcomes))
    try:
        received = await runtime.receive(outcomes, caller.name)
    except OutcomeConflict as problem:
        if isinstance(body, bodies.OutcomesBody):
            problem.field = f"outcomes.{problem.place}.id"
        raise
    receipts = []
    for outcome, kept in zip(outcomes, received, strict=True):
        receipts.append(wire.Receipt(id=outcome.id, status="known" if kept.already_known else "received"))
        if not kept.already_known:
            OUTCOMES.labels("fraud" if outcome.is_fraud else "legitimate").inc()
    feed = runtime.playbook.feed(runtime.learner.options.node)
    unheard = [feed.words] if feed.defers and feed.silence_days is None else []
    remarks = dict.fromkeys(kept.remark for kept in received if kept.remark)
    return wire.ReceiptsAnswer(outcomes=receipts, warnings=[*remarks, *unheard])


@outcome_routes.get("/outcomes/pending", summary="List decisions without an outcome")
@in_thread
def pending(
    runtime: Serving,
    _: MayRead,
    before: Annotated[bodies.Time | None, Query(description="Decided before this time.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> wire.Page[wire.ListedDecision]:
    """Decisions whose outcome is not known yet, the oldest first. Pending is not negative: nothing is counted."""
    wanted = DecisionFilter(until=before, without_outcome=True)
    after = read_cursor("pending", cursor) or 0
    found = runtime.playbook.ledger.find_decisions(wanted, after=after, limit=limit, newest_first=False)
    more = write_cursor("pending", found[-1].seq) if len(found) == limit else None
    return wire.Page(items=[listed_decision(event) for event in found], next=more)


agent_routes = APIRouter(prefix="/v1", tags=["agents"])


@agent_routes.post("/context", summary="Select bullets for your own agent")
async def context(
    body: bodies.TransactionBody,
    runtime: Serving,
    caller: MayDecide,
    n_bullets: Annotated[int | None, Query(ge=1, le=100, description="Default: as many as a decision cites.")] = None,
) -> wire.ContextAnswer:
    """The bullets that matter for a transaction or a text, and a prompt with them. Nothing is decided or recorded."""
    transaction = transaction_of(runtime, body)
    selected = await runtime.context(transaction, n_bullets)
    return _context_answer(selected, RuleWords.now(runtime.playbook, in_clear=caller.in_clear))


def _context_answer(context: Context, words: RuleWords) -> wire.ContextAnswer:
    shown = [
        told(
            wire.ContextBullet,
            bullet,
            content=words.shown(bullet.content, bullet.bullet_id),
            claim=words.shown(bullet.claim, bullet.bullet_id),
        )
        for bullet in context.bullets
    ]
    stages, revision = stage_answers(context.trace), context.revision
    return told(wire.ContextAnswer, context, bullets=shown, stages=stages, playbook_revision=revision)


@agent_routes.post("/traces", summary="Record what your own agent decided", status_code=201)
async def trace(request: Request, body: bodies.TraceBody, runtime: Serving, caller: MayDecide) -> wire.TraceAnswer:
    """Record the decision of an agent of yours, so that the bullets it used are counted when the truth comes.

    The truth may come along, or later as an outcome. It is judged, reflected on and learnt from in the background, as
    that of every decision. A label needs the scope `outcomes` too. The same trace again changes nothing.
    """
    if body.label is not None and not caller.may(Scope.OUTCOMES):
        raise Refused(403, f"a label needs another scope: {lacks(caller.name, Scope.OUTCOMES)}", field="label")
    transaction = transaction_of(runtime, body.transaction, "transaction")
    traced = await runtime.threads.run(lambda: _traced(runtime, transaction, body, caller))
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

    def recorded() -> wire.DecisionAnswer:
        (event,) = runtime.playbook.ledger.find_decisions(wanted, limit=1)
        return decision_answer(traced.decision, event.at, words)

    decision = await runtime.threads.run(recorded)
    return wire.TraceAnswer(decision=decision, status="known" if traced.already_known else "recorded", outcome=outcome)


def _traced(runtime: Runtime, transaction: Transaction, body: bodies.TraceBody, caller: Requester) -> Traced:
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
