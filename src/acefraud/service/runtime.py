"""What a worker process serves with: the playbook, the learner, the keys and the limits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby, islice
from operator import attrgetter

from acefraud.core.decision import Decision
from acefraud.core.events import OUTCOME_RECEIVED
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Transaction
from acefraud.engine.entity_memory import sensitive_facts_of
from acefraud.engine.familiarity import CheckedInput
from acefraud.engine.inputs import RememberedMapping, as_transaction
from acefraud.engine.own_agents import Context
from acefraud.errors import InputError, InputWarning
from acefraud.learning.build_roles import Roles, build_roles
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.learning.learner import Learner
from acefraud.learning.outcomes import Received, receive
from acefraud.service.admission import Capacity, KeyRing, RateLimit
from acefraud.service.decision_requests import Answered, Result, answer_requests, decide_requests, with_reasons
from acefraud.service.masking import FactMask
from acefraud.service.metrics import LEVEL, LEVEL_HELD, WAITING
from acefraud.service.options import ServiceOptions
from acefraud.service.threads import Follower, MicroBatches, OnAnotherLoop, Threads
from acefraud.storage import BulletPlaybook, open_playbook
from acefraud.storage.service_tables import KeyStore, RequestPruner
from acefraud.storage.sql_ledger import SqlLedger

_ORDINARY = {"id": "an ordinary order", "facts": {"amount": 20}, "text": "$20 purchase"}
_reader_of = lru_cache(maxsize=4)(RememberedMapping)
MOST_IN_BATCH = 64
"""Requests that are decided together at most."""
FAILURES_PER_SECOND = 1.0
FAILURES_AT_ONCE = 60
"""How many requests without a valid key an address may send to a worker before it has to wait."""


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes of one request, kept all or none."""

    outcomes: Sequence[Outcome]
    who: str


Kept = Sequence[Received] | Exception
"""What became of a report."""


def receive_reports(learner: Learner, reports: Sequence[Report]) -> list[Kept]:
    """Keep reports in order. One that is wrong does not keep the others from being accepted."""
    kept: list[Kept] = []
    for who, some in groupby(reports, key=attrgetter("who")):
        kept += _received(learner, list(some), who)
    return kept


def _received(learner: Learner, reports: Sequence[Report], who: str) -> list[Kept]:
    try:
        outcomes, node = [outcome for report in reports for outcome in report.outcomes], learner.options.node
        received = iter(receive(learner.playbook, outcomes, [None] * len(outcomes), node=node, who=who))
    except InputError as problem:
        if len(reports) == 1:
            return [problem]
        return [kept for report in reports for kept in _received(learner, [report], who)]
    return [list(islice(received, len(report.outcomes))) for report in reports]


class Runtime:
    """One worker's share of the service."""

    def __init__(self, options: ServiceOptions) -> None:
        """Open the store and get ready to decide."""
        warnings.simplefilter("ignore", InputWarning)  # answers carry what is unusual about a request
        self.options = options
        self.playbook = playbook = open_playbook(options.store, durability=options.durability)
        self.roles, self.learner = _, learner = learner_for(options, playbook)
        if not learner.waits:
            learner.score_sync(_ORDINARY)  # the first decision loads the embedder and the readers

        assert isinstance(playbook.ledger, SqlLedger)

        def keep_up() -> None:
            _measure(learner)
            learner.check([])  # reads what was learnt meanwhile, so that no request has to

        self.follower = Follower(playbook, keep_up)
        self.follower.start()
        self.keys = KeyRing(KeyStore(playbook.ledger))
        burst = options.burst or max(1.0, 2 * options.rate)
        self.rates = RateLimit(options.rate, burst) if options.rate else None
        self.failures = RateLimit(FAILURES_PER_SECOND, FAILURES_AT_ONCE)
        """Requests without a valid key, by the address that they come from."""
        self.decisions = MicroBatches(partial(decide_requests, learner), most=MOST_IN_BATCH)
        self.outcomes = MicroBatches(partial(receive_reports, learner), most=MOST_IN_BATCH)
        self.deciding, self.reporting = Capacity(options.most_waiting), Capacity(options.most_waiting)
        self.off_loop = OnAnotherLoop() if learner.waits else Threads("decisions", 16)
        """For coroutines of the learner."""
        self.threads = Threads("requests", 16)
        """For what takes a moment."""
        self.key_threads = Threads("keys", 2)
        """Look up keys, so that no other work keeps requests waiting."""
        self.probing = Threads("probes", 1)
        self.previewing = Threads("previews", 2)
        """For what decides thousands of past cases again."""
        self.curating = Threads("curating", 1)
        """One thread admits and edits rules: that takes a while, and another change would make it start again."""

    async def decide(self, request: DecisionRequest) -> Answered:
        """The answer to one request."""
        if not self.learner.waits:
            with self.deciding.admit():
                answer = await self.decisions.submit(request)
            if not answer.repeated:
                return answer
            # An earlier revision of the playbook may have to be replayed: those who are new do not wait for that.
            (result,) = await self.off_loop.finish(lambda: with_reasons(self.learner, [answer]))
        else:
            (result,) = await self.decide_all([request])
        if isinstance(result, Exception):
            raise result
        return result

    async def decide_all(self, requests: Sequence[DecisionRequest]) -> list[Result]:
        """The answers to many requests that came together."""

        async def answered() -> list[Result]:
            return await with_reasons(self.learner, await answer_requests(self.learner, requests))

        with self.deciding.admit(len(requests)):
            return await self.off_loop.finish(answered)

    async def score(self, transaction: Transaction) -> tuple[Decision, CheckedInput]:
        """The decision that would be made now, and what is unusual about the transaction. Nothing is recorded."""

        async def scored() -> tuple[Decision, CheckedInput]:
            checked = self.learner.check([transaction])
            return await self.learner.score(transaction), checked

        with self.deciding.admit():
            return await self.off_loop.finish(scored)

    async def context(self, transaction: Transaction, n_bullets: int | None) -> Context:
        """The bullets that would be selected for a transaction now."""
        with self.deciding.admit():
            return await self.off_loop.finish(lambda: self.learner.context(transaction, n_bullets))

    @property
    def mask(self) -> FactMask:
        """Masks personal facts, and those that the mapping of the playbook calls sensitive."""
        return FactMask(sensitive_facts_of(self.playbook.mapping))

    def read(self, record: Mapping[str, object]) -> Transaction:
        """A record as the transaction that would be decided, read with the mapping of the playbook."""
        return as_transaction(record, _reader_of(self.playbook.mapping))

    async def receive(self, outcomes: Sequence[Outcome], who: str) -> Sequence[Received]:
        """Keep outcomes that somebody reports. They are durable once this returns, and judged later."""
        with self.reporting.admit():
            return await self.outcomes.submit(Report(outcomes, who))

    def check_store(self) -> None:
        """Raise a StoreError if the store cannot be read and written."""
        assert isinstance(self.playbook.ledger, SqlLedger)
        self.playbook.ledger.check_writable()

    async def close(self) -> None:
        """Finish what was accepted, and close the store."""
        self.follower.stop()
        self.decisions.close()
        self.outcomes.close()
        await self.off_loop.finish(self.roles.close)
        for threads in (self.off_loop, self.threads, self.key_threads, self.probing, self.previewing, self.curating):
            threads.close()
        self.playbook.close()
        self.follower.join()


def learner_for(options: ServiceOptions, playbook: BulletPlaybook) -> tuple[Roles, Learner]:
    """Who plays which role, and a learner with them.

    Models never see the facts that the mapping of the playbook, at its newest revision, names as sensitive.
    """
    roles = build_roles(options.models, sensitive_now=lambda: sensitive_facts_of(playbook.mapping))
    return roles, roles.learner(playbook, strict=options.strict, days_ahead=options.days_ahead)


def upkeep_for(options: ServiceOptions, playbook: BulletPlaybook) -> Callable[[], object]:
    """What the process that learns does besides: it forgets idempotency keys that have expired."""
    assert isinstance(playbook.ledger, SqlLedger)
    days = options.idempotency_days
    return RequestPruner(playbook.ledger, days, clock=playbook.clock).step if days else lambda: None


def _measure(learner: Learner) -> None:
    """Show the metrics of the playbook as it is now."""
    playbook, node = learner.playbook, learner.options.node
    WAITING.set(playbook.ledger.count_events([OUTCOME_RECEIVED], after=playbook.taken_in(node), limit=1_000))
    calibration = playbook.last_snapshot.calibration(node)
    LEVEL.set(calibration.recent.shift if calibration and calibration.recent else 0.0)
    LEVEL_HELD.set(bool(calibration and calibration.held))
