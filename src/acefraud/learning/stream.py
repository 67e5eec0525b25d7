"""Running a learner over cases as production would: decide, wait for the label, learn."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from datetime import datetime

from acefraud.core.decision import Decision
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case
from acefraud.learning.learner import Learner

MOST_TOGETHER = 64
"""Cases that are decided at once where no label comes in between."""


async def stream(
    learner: Learner,
    cases: Sequence[Case],
    *,
    learns: bool = True,
    pending: Sequence[Case] = (),
    progress: Callable[[float], None] = lambda _: None,
) -> list[Decision]:
    """Decide each case in turn. Its label is heard only once it has arrived, and never before it was decided.

    `pending` are earlier cases, not to be decided here, whose labels were still to come. Where times are not known, a
    label arrives right after its decision.
    """
    late = [case for case in pending if case.known_at is not None]
    waiting = [(case.known_at, -place, case) for place, case in enumerate(late, 1) if case.known_at is not None]
    heapq.heapify(waiting)
    decisions: list[Decision] = []
    while len(decisions) < len(cases):
        now = cases[len(decisions)].transaction.time
        while now is not None and waiting and waiting[0][0] <= now:
            await _hear(learner, heapq.heappop(waiting)[2])
        batch = _until_a_label(cases[len(decisions) : len(decisions) + MOST_TOGETHER], waiting, learns)
        for place, case in enumerate(batch, len(decisions)):
            moment = case.transaction.time
            if learns and moment is not None:
                heapq.heappush(waiting, (max(moment, case.known_at or moment), place, case))
        decisions.extend(await learner.decide_all([case.transaction for case in batch]))
        if learns and now is None:
            await _hear(learner, batch[0])
        progress(len(decisions) / len(cases))
    return decisions


def _until_a_label(
    cases: Sequence[Case], waiting: Sequence[tuple[datetime, int, Case]], learns: bool
) -> Sequence[Case]:
    """The first cases, up to the one before which a label arrives: nothing is learnt in between."""
    due = waiting[0][0] if waiting else None
    for place, case in enumerate(cases):
        now = case.transaction.time
        if place and now is not None and due is not None and due <= now:
            return cases[:place]
        if learns and now is None:  # its label comes right after it
            return cases[: max(place, 1)]
        if learns and now is not None:
            known = max(now, case.known_at or now)
            due = known if due is None else min(due, known)
    return cases


async def _hear(learner: Learner, case: Case) -> None:
    outcome = Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud, at=case.known_at)
    await learner.hear(outcome, case.transaction)
