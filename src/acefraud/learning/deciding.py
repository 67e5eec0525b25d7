"""From transactions to decisions on one revision of the playbook. Nothing is recorded here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from acefraud.core.decision import Decision, SelectionTrace, decision_id
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Agent, Assessment
from acefraud.core.transaction import Transaction
from acefraud.core.trusted import trusted
from acefraud.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.embedded.facts import READER, KnownFacts, facts_of
from acefraud.embedded.scorecard import GENERAL
from acefraud.errors import ModelError
from acefraud.learning.odds import settled
from acefraud.learning.options import LearnerOptions
from acefraud.learning.standing_in import Fallback
from acefraud.selection.hybrid import HybridSelector, Selection

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
    selection_fallback: str = "",
) -> Decision:
    """What was thought of a transaction, as it is recorded."""
    stood_in = ("fallback", str(view.verdict)) if view.fallback else ()
    how = " ".join(part for part in (view.model, view.prompt, *stood_in) if part)
    return trusted(
        Decision,
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
        reader=READER,
        revision=trace.revision,
        selection=trace,
        model=view.model,
        probability_from=view.probability_from,
        odds=view.odds,
        prompt=view.prompt,
        usage=view.usage,
        fallback=view.fallback,
        selection_fallback=selection_fallback,
    )


class Decider:
    """Selects bullets for transactions and lets an agent decide with them."""

    def __init__(self, selector: HybridSelector, options: LearnerOptions) -> None:
        self._selector = selector
        self._options = options

    async def decide(self, transactions: Sequence[Transaction], snapshot: Snapshot, agent: Agent) -> list[Decision]:
        """All of them at once: those that wait for a model do not hold up the others."""
        waits = agent.waits or self._selector.embedder.fetches_ahead
        known = [facts_of(transaction) async for transaction in in_turns(transactions, waits)]
        selector, failure = await self._selector_for(transactions, known, snapshot)
        node = self._options.node
        calibration = snapshot.calibration(node)
        threshold = calibration.threshold if calibration else self._options.threshold

        def made(transaction: Transaction, facts: KnownFacts, view: Assessment, chosen: Selection) -> Decision:
            return decided(
                transaction, facts, view, chosen.trace, node=node, threshold=threshold, selection_fallback=failure
            )

        async def decide(transaction: Transaction, facts: KnownFacts) -> Decision:
            chosen = selector.select(transaction, facts.facts, snapshot, node=node, n_bullets=self._options.n_bullets)
            view = await agent.assess(transaction.text, facts.facts, chosen.bullets, calibration)
            return made(transaction, facts, settled(view, snapshot.scale(node, view.model), threshold), chosen)

        each = list(zip(transactions, known, strict=True))
        if waits:
            return await all_at_once(decide(*one) for one in each)
        chosen = selector.select_many(
            transactions,
            [one.facts for one in known],
            snapshot,
            node=node,
            n_bullets=self._options.n_bullets,
            proven_only=True,
        )
        frame = calibration or GENERAL.model_copy(update={"threshold": threshold})
        views = [  # nobody waits, so there is nothing to gain from tasks
            await agent.assess(transaction.text, facts.facts, picked.bullets, frame, proven=picked.proven)
            for (transaction, facts), picked in zip(each, chosen, strict=True)
        ]
        return [made(*one, view, picked) for one, view, picked in zip(each, views, chosen, strict=True)]

    async def _selector_for(
        self, transactions: Sequence[Transaction], known: Sequence[KnownFacts], snapshot: Snapshot
    ) -> tuple[HybridSelector, str]:
        """The selector with all vectors at hand; with an embedded embedder, and why, where the model's failed."""
        embedder = self._selector.embedder
        if not embedder.fetches_ahead:
            return self._selector, ""
        pairs = zip(transactions, known, strict=True)
        texts = [self._selector.texts_for(each, facts.facts, snapshot, self._options.node) for each, facts in pairs]
        try:
            await embedder.fetch([text for some in texts for text in some])
        except ModelError as failure:
            if self._options.fallback is Fallback.ERROR:
                raise
            return self._selector.with_embedder(DEFAULT_EMBEDDER), str(failure)
        return self._selector, ""
