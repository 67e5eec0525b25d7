"""Requests to decide that may come twice: a repeat gets the first answer, also from another process and after a crash.

A request is known by the key that its caller gave it, or else by the id of its transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade
from acefraud.core.ledger import DecisionFilter, KeptRequest
from acefraud.display.short_repr import quoted
from acefraud.engine.familiarity import CheckedInput
from acefraud.errors import AlreadyAnswered, CannotExplain, InputError, RequestReused, StoreConflict
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.learning.learner import Learner
from acefraud.llm.synchronous import run_sync

ATTEMPTS: Final = 10
"""How often requests are looked up again because others answered some of them meanwhile."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A decision on a request, and when it was made."""

    decision: Decision
    at: datetime
    repeated: bool = False
    checked: CheckedInput | None = None
    """What is unusual about the request; None if it was answered before."""


Result = Answered | InputError
"""What becomes of a request. One that is wrong does not keep the others from being answered."""


def decide_requests(learner: Learner, requests: Sequence[DecisionRequest]) -> list[Result]:
    """`answer_requests` for callers that do not await."""
    return run_sync(answer_requests(learner, requests), waits=learner.waits)


async def answer_requests(learner: Learner, requests: Sequence[DecisionRequest]) -> list[Result]:
    """An answer to each request. Once this returns, all of them are recorded.

    A repeated answer is the decision as it is recorded; `with_reasons` adds the reasons, which may take a while.

    >>> from acefraud import BulletPlaybook, Transaction
    >>> learner = Learner(BulletPlaybook())
    >>> order = DecisionRequest(Transaction(id="t1", facts={"amount": 12}))
    >>> first, again = decide_requests(learner, [order, order])
    >>> first.repeated, again.repeated, first.decision.id == again.decision.id
    (False, True, True)
    """
    results: dict[int, Result] = {}
    for _ in range(ATTEMPTS):
        with suppress(AlreadyAnswered):
            while waiting := {place: one for place, one in enumerate(requests) if place not in results}:
                results |= await _attempt(learner, waiting)
            return [results[place] for place in range(len(requests))]
    raise StoreConflict(f"others answered the same requests {ATTEMPTS} times in a row")


async def _attempt(learner: Learner, requests: dict[int, DecisionRequest]) -> dict[int, Result]:
    """The answers to repeats, and to new requests of which no two share a key or a transaction.

    Raises AlreadyAnswered if others answered one of them meanwhile.
    """
    learner.playbook.refresh()
    seen = learner.playbook.seq
    known = _known(learner, requests)
    fresh = _distinct({place: one for place, one in requests.items() if place not in known})
    return known | await _decided(learner, fresh, seen)


def _distinct(requests: dict[int, DecisionRequest]) -> dict[int, DecisionRequest]:
    """Those that no other before them shares a key or a transaction with."""
    seen: set[str] = set()
    chosen = {}
    for place, one in requests.items():
        names = {one.kept_key, f"transaction:{one.transaction.id}"}
        if not names & seen:
            chosen[place] = one
        seen |= names
    return chosen


def _known(learner: Learner, requests: dict[int, DecisionRequest]) -> dict[int, Result]:
    """The answers to requests that were answered before, and errors for keys with other content."""
    ledger = learner.playbook.ledger
    # Without a key of its own, a request is found by its transaction.
    by_key = ledger.requests({one.kept_key for one in requests.values() if one.key})
    by_transaction = ledger.requests_about({one.transaction.id for one in requests.values()})
    results: dict[int, Result] = {}
    repeats: dict[int, KeptRequest] = {}
    new_keys: dict[str, KeptRequest] = {}
    for place, one in requests.items():
        kept, about = by_key.get(one.kept_key), by_transaction.get(one.transaction.id)
        if kept is not None and kept.digest != one.digest:
            results[place] = _conflict(one, kept)
        elif kept is not None:
            repeats[place] = kept
        elif about is not None and about.digest == one.digest:
            repeats[place] = about
            if one.key:
                new_keys[one.kept_key] = one.kept(about.decision_id)
        elif about is not None and not one.key:
            results[place] = _conflict(one, about)
    if new_keys:
        learner.playbook.record([], requests=list(new_keys.values()))
    answers = _recorded_answers(learner, {kept.decision_id for kept in repeats.values()})
    # A decision that is archived at this moment takes its requests along: they are new ones from then on.
    told = {place: answers[kept.decision_id] for place, kept in repeats.items() if kept.decision_id in answers}
    return results | told


def _conflict(request: DecisionRequest, kept: KeptRequest) -> RequestReused:
    """The error for a request that was answered before and had other content then."""
    decided = quoted(kept.transaction_id)
    if kept.transaction_id != request.transaction.id:
        return RequestReused(f"key {quoted(request.key)} was used for transaction {decided}; send another key")
    return RequestReused(
        f"transaction {decided} was decided with other content; send what you sent before, or a new Idempotency-Key "
        f"(`idempotency_key` in Python) to decide it again with this content"
    )


def _recorded_answers(learner: Learner, decision_ids: Collection[str]) -> dict[str, Answered]:
    """The recorded decisions with these ids."""
    if not decision_ids:
        return {}
    found = learner.playbook.ledger.find_decisions(DecisionFilter(ids=decision_ids), limit=2 * len(decision_ids))
    made = [(event.payload, event.at) for event in found if isinstance(event.payload, DecisionMade)]
    return {one.record.id: Answered(one.decision, at, repeated=True) for one, at in made}


async def with_reasons(learner: Learner, results: Sequence[Result]) -> list[Result]:
    """The same answers, the repeated ones with their reasons, as they were first given.

    A decision whose reasons cannot be computed again stays as it is recorded.
    """
    repeated = {place: one for place, one in enumerate(results) if isinstance(one, Answered) and one.repeated}
    told = list(results)
    for place in sorted(repeated, key=lambda place: repeated[place].decision.revision):
        with suppress(CannotExplain):
            told[place] = replace(repeated[place], decision=await learner.explain(repeated[place].decision))
    return told


async def _decided(learner: Learner, fresh: dict[int, DecisionRequest], seen: int) -> dict[int, Result]:
    """The decisions on requests that were new at an event. If one cannot be decided, each is decided alone."""
    if not fresh:
        return {}
    try:
        made = await learner.decide_for(list(fresh.values()), since=seen)
    except InputError as problem:
        if len(fresh) == 1:
            return dict.fromkeys(fresh, problem)
        alone = [await _decided(learner, {place: one}, seen) for place, one in fresh.items()]
        return {place: result for results in alone for place, result in results.items()}
    before = _recorded_answers(learner, made.known)
    return {
        place: before.get(decision.id, Answered(decision, made.at, checked=checked))
        for place, decision, checked in zip(fresh, made.decisions, made.checked, strict=True)
    }
