"""A client of the decision service to await."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import datetime
from random import Random
from types import TracebackType
from typing import Self, TypeVar

import httpx

from acefraud.client import calls, playbook_calls
from acefraud.client.answers import (
    ContextAnswer,
    DecisionAnswer,
    ExplainedDecision,
    ListedDecision,
    Page,
    Receipt,
    ScoreAnswer,
    TraceAnswer,
)
from acefraud.client.exchange import Attempts, Exchange, Retries
from acefraud.client.inputs import OutcomeInput, TransactionInput
from acefraud.client.playbook_answers import (
    AdmittedRule,
    BulletAnswer,
    ChangeAnswer,
    FactAnswer,
    ListAnswer,
    ListValue,
    PreviewedRule,
    RollbackAnswer,
    RuleReading,
    ThresholdAnswer,
    WholeBullet,
)
from acefraud.client.playbook_calls import RuleOptions
from acefraud.core.bullet import Source, Status
from acefraud.core.review_rule import ReviewRule
from acefraud.core.transaction import Verdict

T = TypeVar("T")


class AsyncClient:
    """A decision service over HTTP, to be awaited. It has the methods of Client.

    Those that fetch page by page are asynchronous iterators: ``async for decision in client.decisions()``.

    >>> AsyncClient("https://fraud.example.com", api_key="ace_1f_secret")
    AsyncClient('https://fraud.example.com', with a key)
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
        verify: ssl.SSLContext | bool = True,
        proxy: str | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._exchange = Exchange.with_service(url, api_key, retries, random, clock)
        self._http = httpx.AsyncClient(**self._exchange.options(timeout, verify, proxy))
        self._sleep = sleep

    def __repr__(self) -> str:
        key = "with a key" if self._exchange.api_key else "without a key"
        return f"AsyncClient({self._exchange.url!r}, {key})"

    async def close(self) -> None:
        """Close the connections. Closing twice is harmless."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def decide(self, transaction: TransactionInput, *, idempotency_key: str | None = None) -> DecisionAnswer:
        """Decide a transaction and record the decision.

        The same transaction again gets the first answer. The same id with other facts is a ServiceConflict, unless you
        give an ``idempotency_key`` of its own: then the transaction is decided again.
        """
        return await self._send(calls.decide(transaction, idempotency_key))

    async def decide_batch(self, transactions: Iterable[TransactionInput]) -> tuple[DecisionAnswer, ...]:
        """Decide up to 1,000 transactions in one request, in their order.

        One with the id of an earlier transaction and other facts is a ServiceConflict.
        """
        return await self._send(calls.decide_batch(transactions))

    async def score(self, transaction: TransactionInput) -> ScoreAnswer:
        """How a transaction would be decided. Records nothing."""
        return await self._send(calls.score(transaction))

    async def decision(self, decision_id: str) -> ExplainedDecision:
        """A recorded decision with its stages, scores and reasons, and its outcome as far as it is known."""
        return await self._send(calls.decision(decision_id))

    def decisions(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        verdict: Verdict | str | None = None,
        bullet: str | None = None,
        transaction_id: str | None = None,
        least_probability: float | None = None,
        most_probability: float | None = None,
    ) -> AsyncIterator[ListedDecision]:
        """The recorded decisions that pass the filters, the latest first, fetched page by page.

        ``bullet`` is the id of one that they rest on.
        """
        return self._pages(
            calls.decisions(
                since=since,
                until=until,
                verdict=verdict,
                bullet=bullet,
                transaction_id=transaction_id,
                least_probability=least_probability,
                most_probability=most_probability,
            )
        )

    async def report(self, outcomes: OutcomeInput | Iterable[OutcomeInput]) -> tuple[Receipt, ...]:
        """Report what one or up to 5,000 transactions turned out to be. Reporting the same id twice changes nothing.

        An outcome without an id gets one made from its content, or a new one in every call if it has no time. The same
        id with other content is a ServiceConflict; another id revises what was reported before.
        """
        return await self._send(calls.report(outcomes))

    def pending(self, *, before: datetime | None = None) -> AsyncIterator[ListedDecision]:
        """The decisions without an outcome, the oldest first, fetched page by page."""
        return self._pages(calls.pending(before))

    def playbook(
        self,
        *,
        source: Source | str | None = None,
        status: Status | str | None = None,
        node: str | None = None,
        retired: bool = False,
    ) -> AsyncIterator[BulletAnswer]:
        """The bullets of the playbook, fetched page by page. Retired ones only if you ask for them."""
        return self._pages(playbook_calls.playbook(source=source, status=status, node=node, retired=retired))

    async def bullet(self, bullet_id: str) -> WholeBullet:
        """One bullet with its evidence, its counters and the latest of its history."""
        return await self._send(playbook_calls.bullet(bullet_id))

    def history(self, bullet_id: str) -> AsyncIterator[ChangeAnswer]:
        """What happened to a bullet, the latest first, fetched page by page."""
        return self._pages(playbook_calls.history(bullet_id))

    async def add_rule(
        self,
        text: str,
        *,
        reason: str = "",
        node: str | None = None,
        always: Verdict | str | None = None,
        priority: int | None = None,
        final: bool = False,
        as_note: bool = False,
    ) -> AdmittedRule:
        """Add a rule in plain English or in the formal syntax.

        With ``always`` it is a policy, which decides by itself; the highest ``priority`` decides, and nothing overrides
        one that is ``final``. Words that are not understood are refused, or kept as a note with ``as_note``. A rule
        that the playbook already says is a ServiceConflict.
        """
        options = RuleOptions(always=always, priority=priority, final=final, as_note=as_note)
        return await self._send(playbook_calls.add_rule(text, reason=reason, node=node, options=options))

    async def edit_rule(
        self,
        bullet_id: str,
        text: str,
        *,
        reason: str,
        always: Verdict | str | None = None,
        priority: int | None = None,
        final: bool = False,
        as_note: bool = False,
    ) -> AdmittedRule:
        """Rewrite a rule. Its counters stay, and a policy stays a policy."""
        options = RuleOptions(always=always, priority=priority, final=final, as_note=as_note)
        return await self._send(playbook_calls.edit_rule(bullet_id, text, reason=reason, options=options))

    async def set_status(self, bullet_id: str, status: Status | str, *, reason: str) -> AdmittedRule:
        """Approve, pin, retire or revive a rule."""
        return await self._send(playbook_calls.set_status(bullet_id, status, reason))

    async def pin(self, bullet_id: str, *, reason: str) -> AdmittedRule:
        """Pin a rule: learning does not retire it."""
        return await self.set_status(bullet_id, Status.PINNED, reason=reason)

    async def retire(self, bullet_id: str, *, reason: str) -> AdmittedRule:
        """Retire a rule: it is never selected again, unless somebody revives it."""
        return await self.set_status(bullet_id, Status.RETIRED, reason=reason)

    async def snooze(self, bullet_id: str, *, key: str, value: str, until: datetime, reason: str) -> BulletAnswer:
        """Let a policy not apply to one customer, card or other entity until a time.

        ``key`` names the entity or the fact, such as ``card``.
        """
        return await self._send(playbook_calls.snooze(bullet_id, key, value, until, reason))

    def facts(self) -> AsyncIterator[FactAnswer]:
        """The facts that rules can be about, with type, range, examples and coverage, fetched page by page."""
        return self._pages(playbook_calls.facts())

    async def read_rule(self, text: str) -> RuleReading:
        """How a rule is understood. Stores nothing."""
        return await self._send(playbook_calls.read_rule(text))

    async def preview_rule(
        self,
        text: str | None = None,
        *,
        bullet_id: str | None = None,
        status: Status | str | None = None,
        always: Verdict | str | None = None,
        priority: int | None = None,
        final: bool = False,
        as_note: bool = False,
    ) -> PreviewedRule:
        """What a rule would do to past decisions and labelled cases. Stores nothing.

        With ``bullet_id`` it is what other words, or another status, would do to that rule.
        """
        options = RuleOptions(always=always, priority=priority, final=final, as_note=as_note)
        return await self._send(playbook_calls.preview_rule(text, bullet_id=bullet_id, status=status, options=options))

    def lists(self) -> AsyncIterator[ListAnswer]:
        """The lists that rules can refer to, fetched page by page."""
        return self._pages(playbook_calls.lists())

    def list_values(self, name: str) -> AsyncIterator[ListValue]:
        """The values of a list in the order in which they were added, fetched page by page."""
        return self._pages(playbook_calls.list_values(name))

    async def put_list(
        self, name: str, *, about: str = "", frauds_of: str | None = None, days: float | None = None, reason: str
    ) -> ListAnswer:
        """Create a list, or change what it is for and what feeds it. Its values stay.

        With ``frauds_of`` outcomes feed it: the value of that fact or entity of every fraud, for so many ``days``.
        """
        return await self._send(
            playbook_calls.put_list(name, about=about, frauds_of=frauds_of, days=days, reason=reason)
        )

    async def change_list(
        self,
        name: str,
        *,
        add: Iterable[str] = (),
        remove: Iterable[str] = (),
        until: datetime | None = None,
        reason: str,
    ) -> ListAnswer:
        """Put values on a list, perhaps until a date, and take others off it, all or none."""
        return await self._send(playbook_calls.change_list(name, add, remove, until, reason))

    def changes(self) -> AsyncIterator[ChangeAnswer]:
        """What changed in the playbook, the latest first, fetched page by page."""
        return self._pages(playbook_calls.changes())

    async def rollback(self, revision: int, *, reason: str) -> RollbackAnswer:
        """Bring the playbook back to an earlier revision. Nothing is deleted, so this can be undone as well."""
        return await self._send(playbook_calls.rollback(revision, reason))

    async def preview_rollback(self, revision: int) -> RollbackAnswer:
        """What going back to an earlier revision would change. Stores nothing."""
        return await self._send(playbook_calls.preview_rollback(revision))

    async def threshold(self) -> ThresholdAnswer:
        """From which probability of fraud on transactions are declined, and which go to a person."""
        return await self._send(playbook_calls.threshold())

    async def set_threshold(
        self, threshold: float | None = None, *, review: ReviewRule | None = None, no_review: bool = False, reason: str
    ) -> ThresholdAnswer:
        """Set from which probability of fraud on transactions are declined, and which go to a person.

        What is not given stays as it is. With ``no_review`` nothing goes to a person any more, except by policies.
        """
        return await self._send(playbook_calls.set_threshold(threshold, review, no_review=no_review, reason=reason))

    async def context(self, transaction: TransactionInput, *, n_bullets: int | None = None) -> ContextAnswer:
        """The bullets that matter for a transaction, for an agent of your own. Records nothing."""
        return await self._send(calls.context(transaction, n_bullets))

    async def trace(
        self,
        transaction: TransactionInput,
        verdict: Verdict | str,
        *,
        probability: float | None = None,
        bullet_ids: Iterable[str] = (),
        agent: str = "",
        reasoning: str = "",
        is_fraud: bool | None = None,
    ) -> TraceAnswer:
        """Record what an agent of your own decided and, if it is known, the truth: the playbook learns from it.

        ``bullet_ids`` are those that it used. The same trace again changes nothing.
        """
        return await self._send(
            calls.trace(
                transaction,
                verdict,
                probability=probability,
                bullet_ids=bullet_ids,
                agent=agent,
                reasoning=reasoning,
                is_fraud=is_fraud,
            )
        )

    async def _pages(self, call: calls.Call[Page[T]]) -> AsyncIterator[T]:
        wanted: calls.Call[Page[T]] | None = call
        while wanted is not None:
            page = await self._send(wanted)
            for item in page.items:
                yield item
            wanted = calls.next_page(call, page)

    async def _send(self, call: calls.Call[T]) -> T:
        """Send a call until there is an answer, and read it."""
        request, attempts = self._exchange.request(call), Attempts(self._exchange, call)
        while True:
            try:
                response = await self._http.request(**request)
            except httpx.RequestError as error:
                pause: float | None = attempts.after_failure(error)
            else:
                pause = attempts.after_answer(response)
            if pause is None:
                return self._exchange.read(call, response)
            await self._sleep(pause)
