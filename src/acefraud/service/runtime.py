"""What a worker process serves with: the playbook, the learner, the keys and the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from threading import Lock
from typing import Self, TypeVar

from starlette.concurrency import run_in_threadpool

from acefraud.core.decision import Decision
from acefraud.core.events import OUTCOME_RECEIVED
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import FactValue, Transaction
from acefraud.learning.build_roles import Roles, build_roles
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.learning.decision_requests import Answer, Result, answer_requests, decide_requests
from acefraud.learning.entity_memory import mapping_of
from acefraud.learning.learner import Learner
from acefraud.learning.received_outcomes import Received
from acefraud.learning.selected_context import Context
from acefraud.learning.transaction_inputs import RememberedMapping, as_transaction
from acefraud.service.follower import Follower
from acefraud.service.key_ring import KeyRing
from acefraud.service.masking import masked_facts, masked_text
from acefraud.service.micro_batches import MicroBatches
from acefraud.service.off_loop import InThreads, OffLoop, OnAnotherLoop
from acefraud.service.options import ServiceOptions
from acefraud.service.rate_limit import RateLimit
from acefraud.service.reports import Report, receive_reports
from acefraud.storage import BulletPlaybook, open_playbook
from acefraud.storage.api_keys import ApiKey, KeyStore
from acefraud.storage.sql_ledger import SqlLedger

T = TypeVar("T")
_ORDINARY = {"id": "an ordinary order", "facts": {"amount": 20}, "text": "$20 purchase"}
MOST_IN_BATCH = 64
"""Requests that are decided together at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Runtime:
    """One worker's share of the service."""

    options: ServiceOptions
    playbook: BulletPlaybook
    learner: Learner
    roles: Roles
    keys: KeyRing
    rates: RateLimit | None
    decisions: MicroBatches[DecisionRequest, Answer]
    outcomes: MicroBatches[Report, Sequence[Received]]
    follower: Follower
    off_loop: OffLoop
    key_threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="keys"))
    curating: Lock = field(default_factory=Lock)
    """Held while a rule is admitted or edited: that takes a while, and others would make it start again."""

    @classmethod
    def open(cls, options: ServiceOptions) -> Self:
        """Open the store and get ready to decide."""
        playbook = open_playbook(options.store, durability=options.durability)
        roles, learner = learner_for(options, playbook)
        if not learner.waits:
            learner.score_sync(_ORDINARY)  # the first decision loads the embedder and the readers

        assert isinstance(playbook.ledger, SqlLedger)
        waiting, follower = options.most_waiting, Follower(playbook)
        follower.start()
        return cls(
            options,
            playbook,
            learner,
            roles,
            KeyRing(KeyStore(playbook.ledger)),
            RateLimit(options.rate, options.burst or max(1.0, 2 * options.rate)) if options.rate else None,
            MicroBatches(partial(decide_requests, learner), most=MOST_IN_BATCH, most_waiting=waiting),
            MicroBatches(partial(receive_reports, learner), most=MOST_IN_BATCH, most_waiting=waiting),
            follower,
            OnAnotherLoop() if learner.waits else InThreads(),
        )

    async def look_up_key(self, secret: str) -> ApiKey | None:
        """The key with this secret. Threads of their own look it up, so that no other work keeps requests waiting."""
        return await asyncio.get_running_loop().run_in_executor(self.key_threads, self.keys.find, secret)

    async def decide(self, request: DecisionRequest) -> Answer:
        """The answer to one request."""
        if not self.learner.waits:
            return await self.decisions.submit(request)
        (result,) = await self.decide_all([request])
        if isinstance(result, Exception):
            raise result
        return result

    async def decide_all(self, requests: Sequence[DecisionRequest]) -> list[Result]:
        """The answers to many requests that came together."""
        return await self.off_loop.run(lambda: answer_requests(self.learner, requests))

    async def score(self, transaction: Transaction) -> Decision:
        """The decision that would be made now. Nothing is recorded."""
        return await self.off_loop.run(lambda: self.learner.score(transaction))

    async def explain(self, decision: Decision) -> Decision:
        """A recorded decision with its stages and reasons. Raises CannotExplain if they cannot be computed again."""
        return await self.off_loop.run(lambda: self.learner.explain(decision))

    async def context(self, transaction: Transaction, n_bullets: int | None) -> Context:
        """The bullets that would be selected for a transaction now."""
        return await self.off_loop.run(lambda: self.learner.context(transaction, n_bullets))

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What a function returns that waits for the store, while the event loop goes on."""
        return await run_in_threadpool(work)

    def masked(self, facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
        """Facts that may be shown: the values of personal and sensitive ones are masked."""
        return masked_facts(facts, self._sensitive)

    def masked_text(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A text about a transaction that may be shown: without personal data and without the values masked above."""
        return masked_text(text, facts, self._sensitive)

    @property
    def _sensitive(self) -> Sequence[str]:
        mapping = mapping_of(self.playbook.snapshot().mapping)
        return mapping.sensitive_facts if mapping else ()

    def read(self, record: Mapping[str, object]) -> Transaction:
        """A record as the transaction that would be decided, read with the mapping of the playbook."""
        return as_transaction(record, _reader_of(self.playbook.snapshot().mapping))

    async def receive(self, outcomes: Sequence[Outcome], who: str) -> Sequence[Received]:
        """Keep outcomes that somebody reports. They are durable once this returns, and judged later."""
        return await self.outcomes.submit(Report(outcomes, who))

    def outcomes_waiting(self) -> int:
        """How many outcomes were received and not judged yet; counted up to 1,000."""
        self.playbook.refresh()
        after = self.playbook.taken_in(self.learner.options.node)
        return len(self.playbook.ledger.find_events([OUTCOME_RECEIVED], after=after, limit=1_000))

    async def close(self) -> None:
        """Finish what was accepted, and close the store."""
        self.follower.close()
        self.key_threads.shutdown()
        self.decisions.close()
        self.outcomes.close()
        await self.off_loop.run(self.roles.close)
        await self.off_loop.close()
        self.playbook.close()


@lru_cache(maxsize=4)
def _reader_of(mapping: str) -> RememberedMapping:
    return RememberedMapping(mapping)


def learner_for(options: ServiceOptions, playbook: BulletPlaybook) -> tuple[Roles, Learner]:
    """Who plays which role, and a learner with them. Models never see the facts that the mapping names as sensitive."""
    mapping = mapping_of(playbook.snapshot().mapping)
    roles = build_roles(options.models, sensitive=mapping.sensitive_facts if mapping else ())
    return roles, roles.learner(playbook)
