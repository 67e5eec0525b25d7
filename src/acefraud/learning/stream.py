"""Running a learner over cases as production would: decide, wait for the label, learn."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from acefraud.core.decision import Decision
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case
from acefraud.learning.learner import Learner


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
    decisions = []
    for place, case in enumerate(cases):
        now = case.transaction.time
        while now is not None and waiting and waiting[0][0] <= now:
            await _hear(learner, heapq.heappop(waiting)[2])
        decisions.append(await learner.decide(case.transaction))
        if learns and now is None:
            await _hear(learner, case)
        elif learns and now is not None:
            heapq.heappush(waiting, (max(now, case.known_at or now), place, case))
        progress((place + 1) / len(cases))
    return decisions


async def _hear(learner: Learner, case: Case) -> None:
    outcome = Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud, at=case.known_at)
    await learner.hear(outcome, case.transaction)
