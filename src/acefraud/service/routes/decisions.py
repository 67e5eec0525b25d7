"""Decisions: make them, look them up, explain them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import AfterValidator

from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, Event, OutcomeHeard
from acefraud.core.ledger import DecisionFilter
from acefraud.core.transaction import Transaction
from acefraud.errors import CannotExplain, InputError
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.learning.outcome_feeds import with_silence
from acefraud.service.access import MayDecide, MayRead, Requester, Serving, charge, in_thread
from acefraud.service.answers import decision_answer, listed_decision, stage_answers
from acefraud.service.decision_requests import Answered, Result
from acefraud.service.masking import RuleWords
from acefraud.service.metrics import DECISIONS, UNFAMILIAR
from acefraud.service.paging import Cursor, Limit, read_cursor, write_cursor
from acefraud.service.problems import Refused
from acefraud.service.runtime import Runtime
from acefraud.storage.citing_decisions import decisions_citing
from acefraud.wire.answer import Page
from acefraud.wire.bodies import AnyCaseVerdict, BatchBody, Id, Time, TransactionBody
from acefraud.wire.decisions import BatchAnswer, DecisionAnswer, ExplainedDecision, ListedDecision, ScoreAnswer

router = APIRouter(prefix="/v1", tags=["decisions"])


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


def transaction_of(runtime: Runtime, body: TransactionBody, within: str = "") -> Transaction:
    """The transaction that a body describes, read as a line of a file would be."""
    try:
        return runtime.read(body.record())
    except InputError as problem:
        field = ".".join(part for part in (within, problem.field or "facts") if part)
        raise InputError(problem.message, field=field) from problem


@router.post("/decisions", summary="Decide a transaction", response_model=DecisionAnswer)
async def decide(
    request: Request, body: TransactionBody, runtime: Serving, caller: MayDecide, idempotency_key: IdempotencyKey = ""
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
        (told,) = await runtime.in_thread(lambda: _told(runtime, caller, [answer], [asked]))
    else:
        (told,) = _told(runtime, caller, [answer], [asked])
    return Response(told.model_dump_json(), media_type="application/json")


@router.post("/decisions:batch", summary="Decide many transactions", response_model=BatchAnswer)
async def decide_batch(
    body: BatchBody, runtime: Serving, caller: MayDecide, idempotency_key: IdempotencyKey = ""
) -> Response:
    """Decide up to 1,000 transactions and record the decisions. An error means that some may not have been decided.

    Each transaction is answered as by `POST /v1/decisions`, so the whole batch can be sent again after an error. For
    the rate limit it counts as many requests as it has transactions.
    """
    charge(runtime, caller, len(body.transactions))
    # So many bodies take a while to read and to write: other requests go on meanwhile.
    requests = await runtime.in_thread(lambda: _requests(runtime, body, caller, idempotency_key))
    answers = await runtime.decide_all(requests)
    told = await runtime.in_thread(lambda: _answered(runtime, caller, answers, requests))
    return Response(told, media_type="application/json")


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


def _requests(runtime: Runtime, body: BatchBody, caller: Requester, key: str) -> list[DecisionRequest]:
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
    return BatchAnswer(decisions=_told(runtime, caller, made, asked)).model_dump_json()


def _told(
    runtime: Runtime, caller: Requester, answers: Sequence[Answered], asked: Sequence[DecisionRequest]
) -> list[DecisionAnswer]:
    """Answers as a caller may see them. A repeated one may rest on rules that have other words by now."""
    ever = not caller.in_clear and any(answer.repeated for answer in answers)
    words = (RuleWords.ever if ever else RuleWords.now)(runtime.playbook, in_clear=caller.in_clear)
    return [
        decision_answer(answer.decision, answer.at, words, answer.checked or runtime.learner.check([request.to_decide]))
        for answer, request in zip(answers, asked, strict=True)
    ]


@router.post("/score", summary="Decide without recording")
async def score(body: TransactionBody, runtime: Serving, caller: MayDecide) -> ScoreAnswer:
    """The decision that `POST /v1/decisions` would make now. Nothing is recorded."""
    arriving = request_of(runtime, transaction_of(runtime, body), "", caller).to_decide
    decision, checked = await runtime.score(arriving)
    words = RuleWords.now(runtime.playbook, in_clear=caller.in_clear)
    return ScoreAnswer(**vars(decision_answer(decision, runtime.playbook.clock(), words, checked)))


@router.get("/decisions/{decision_id}", summary="Explain a decision")
async def explain(
    decision_id: Annotated[Id, Path()],
    runtime: Serving,
    caller: MayRead,
) -> ExplainedDecision:
    """A recorded decision with its stages, scores and reasons, and the outcome as far as it is known."""
    event = await runtime.in_thread(lambda: _recorded(runtime, decision_id))
    assert isinstance(event.payload, DecisionMade)
    decision, explained = event.payload.decision, True
    try:
        decision = await runtime.off_loop.run(partial(runtime.learner.explain, decision))
    except CannotExplain:
        explained = False
    words = RuleWords.ever(runtime.playbook, in_clear=caller.in_clear)
    return await runtime.in_thread(lambda: _explained(runtime, decision, event.at, words, explained=explained))


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
) -> ExplainedDecision:
    mask, heard = runtime.mask, _outcome(runtime, decision.transaction.id)
    outcome = None if heard is None else heard.outcome
    judgement = heard.judgement if heard is not None and heard.decision_id == decision.id else None
    told = decision_answer(decision, at, words, runtime.learner.check([decision.transaction]))
    return ExplainedDecision(
        **{**vars(told), "warnings": [mask.masked_text(warning, decision.facts) for warning in told.warnings]},
        threshold=decision.threshold,
        base=decision.base,
        facts=mask.masked_facts(decision.facts),
        unread=[mask.masked_text(text, decision.facts) for text in decision.unread],
        stages=stage_answers(decision.selection),
        scores=[score.model_dump() for score in decision.selection.scores],
        model=decision.model,
        probability_from=decision.probability_from,
        fallback=decision.fallback,
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


@router.get("/decisions", summary="List decisions")
@in_thread
def list_decisions(
    runtime: Serving,
    _: MayRead,
    since: Annotated[Time | None, Query(description="Made at this time or later.")] = None,
    until: Annotated[Time | None, Query(description="Made before this time.")] = None,
    verdict: AnyCaseVerdict | None = None,
    bullet: Annotated[str | None, Query(max_length=100, description="Rests on this bullet.")] = None,
    transaction_id: Annotated[Id | None, Query()] = None,
    least_probability: Annotated[float | None, Query(ge=0, le=1)] = None,
    most_probability: Annotated[float | None, Query(ge=0, le=1)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ListedDecision]:
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
    return Page(items=items, next=None if more is None else write_cursor("decisions", more))
