"""What an agent thought of a transaction, as a decision that can be checked and made again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, TypeVar

from acefraud.core.decision import Decision, SelectionTrace, decision_id
from acefraud.core.roles import Assessment
from acefraud.core.transaction import Transaction
from acefraud.embedded.facts import KnownFacts

T = TypeVar("T")
IN_ONE_TURN = 4
"""Decisions that are begun before others on the event loop get their turn."""


async def in_turns(things: Iterable[T], waits: bool) -> AsyncIterator[T]:
    """One after another. Where there is an event loop to think of, others get their turn now and then."""
    for place, thing in enumerate(things, 1):
        yield thing
        if waits and place % IN_ONE_TURN == 0:
            await asyncio.sleep(0)


async def all_at_once(deciding: Iterable[Coroutine[Any, Any, Decision]]) -> list[Decision]:
    """Every decision, in order. Where one fails, the others are ended before that is said."""
    tasks: list[asyncio.Task[Decision]] = []
    try:
        for each in deciding:
            tasks.append(asyncio.create_task(each))
            if len(tasks) % IN_ONE_TURN == 0:
                await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def decided(
    transaction: Transaction,
    known: KnownFacts,
    view: Assessment,
    trace: SelectionTrace,
    *,
    node: str,
    threshold: float,
) -> Decision:
    """What was thought of a transaction, as it is recorded."""
    stood_in = ("fallback", str(view.verdict)) if view.fallback else ()
    how = " ".join(part for part in (view.model, view.prompt, *stood_in) if part)
    return Decision.model_construct(  # of parts that were checked when they were made
        id=decision_id(transaction, node, how, trace),
        transaction=transaction,
        node=node,
        verdict=view.verdict,
        probability=view.probability,
        threshold=threshold,
        base=view.base,
        reasons=view.reasons,
        facts=known.facts,
        unread=known.unread,
        revision=trace.revision,
        selection=trace,
        model=view.model,
        probability_from=view.probability_from,
        odds=view.odds,
        prompt=view.prompt,
        usage=view.usage,
        fallback=view.fallback,
    )
