"""The requests about decisions and outcomes, and how their answers are read. `playbook_calls` has the others.

Each function is a method of both clients, which take its name, its parameters and its docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel

from acefraud.client.inputs import (
    FRAUD,
    LEGITIMATE,
    OutcomeInput,
    TransactionInput,
    checked_key,
    outcomes_json,
    segment,
    time_text,
    transaction_json,
    transactions_json,
    verdict_text,
    without_nothing,
)
from acefraud.core.transaction import Verdict
from acefraud.wire.answer import Page
from acefraud.wire.decisions import (
    BatchAnswer,
    ContextAnswer,
    DecisionAnswer,
    ExplainedDecision,
    ListedDecision,
    Receipt,
    ReceiptsAnswer,
    ScoreAnswer,
    TraceAnswer,
)

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class ServiceCall(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    """The answer from the JSON of the response. Raises a ValidationError if it is something else."""
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    """Whether sending it twice is the same as sending it once."""


class Receipts(tuple[Receipt, ...]):
    """A `Receipt` for each reported outcome, in the same order, with the warnings of the report.

    >>> receipts = Receipts([Receipt(id="cb-881", status="received")], ["nothing was decided on t1"])
    >>> len(receipts), receipts[0].status, receipts.warnings
    (1, 'received', ('nothing was decided on t1',))
    """

    warnings: tuple[str, ...]
    """What is odd about the outcomes, in words; they are kept all the same."""

    def __new__(cls, receipts: Iterable[Receipt] = (), warnings: Iterable[str] = ()) -> Self:
        """Receipts with the warnings of the same report."""
        made = super().__new__(cls, receipts)
        made.warnings = tuple(warnings)
        return made


def next_page(call: ServiceCall[Page[T]], page: Page[T]) -> ServiceCall[Page[T]] | None:
    """The request for the page after this one; None after the last."""
    return None if page.next is None else replace(call, params={**call.params, "cursor": page.next})


def getting(path: str, kind: type[M], **params: Any) -> ServiceCall[M]:
    """A request that reads something."""
    return ServiceCall(method="GET", path=path, read=kind.model_validate, params=without_nothing(**params))


def posting(path: str, kind: type[M], body: Any) -> ServiceCall[M]:
    """A request that may be sent again."""
    return ServiceCall(method="POST", path=path, read=kind.model_validate, body=body)


def decide(transaction: TransactionInput, *, idempotency_key: str | None = None) -> ServiceCall[DecisionAnswer]:
    """Decide a transaction and record the decision.

    The same transaction again gets the first answer. The same id with other facts is a ServiceConflict, unless you
    give an ``idempotency_key`` of its own: then the transaction is decided again.
    """
    call = posting("/v1/decisions", DecisionAnswer, transaction_json(transaction))
    if idempotency_key is None:  # the id of the transaction makes it repeatable
        return call
    return replace(call, headers={"Idempotency-Key": checked_key(idempotency_key)})


def decide_batch(transactions: Iterable[TransactionInput]) -> ServiceCall[tuple[DecisionAnswer, ...]]:
    """Decide up to 1,000 transactions in one request, in their order.

    One with the id of an earlier transaction and other facts is a ServiceConflict.
    """
    body = {"transactions": transactions_json(transactions)}
    return ServiceCall(method="POST", path="/v1/decisions:batch", read=_decisions, body=body)


def _decisions(content: Any) -> tuple[DecisionAnswer, ...]:
    return BatchAnswer.model_validate(content).decisions


def score(transaction: TransactionInput) -> ServiceCall[ScoreAnswer]:
    """How a transaction would be decided. Records nothing."""
    return posting("/v1/score", ScoreAnswer, transaction_json(transaction))


def decision(decision_id: str) -> ServiceCall[ExplainedDecision]:
    """A recorded decision with its stages, scores and reasons, and its outcome as far as it is known."""
    return getting(f"/v1/decisions/{segment('decision_id', decision_id)}", ExplainedDecision)


def decisions(
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    verdict: Verdict | str | None = None,
    bullet: str | None = None,
    transaction_id: str | None = None,
    least_probability: float | None = None,
    most_probability: float | None = None,
) -> ServiceCall[Page[ListedDecision]]:
    """The recorded decisions that pass the filters, the latest first, fetched page by page.

    ``bullet`` is the id of one that they rest on.
    """
    return getting(
        "/v1/decisions",
        Page[ListedDecision],
        since=time_text(since),
        until=time_text(until),
        verdict=None if verdict is None else verdict_text(verdict),
        bullet=bullet,
        transaction_id=transaction_id,
        least_probability=least_probability,
        most_probability=most_probability,
    )


def report(outcomes: OutcomeInput | Iterable[OutcomeInput]) -> ServiceCall[Receipts]:
    """Report what one or up to 5,000 transactions turned out to be. Reporting the same id twice changes nothing.

    An outcome without an id gets one made from its content, or a new one in every call if it has no time. The same
    id with other content is a ServiceConflict; another id revises what was reported before. The receipts are a tuple;
    its ``warnings`` say what is odd about the outcomes.
    """
    body = {"outcomes": outcomes_json(outcomes)}
    return ServiceCall(method="POST", path="/v1/outcomes", read=_receipts, body=body)


def _receipts(content: Any) -> Receipts:
    answer = ReceiptsAnswer.model_validate(content)
    return Receipts(answer.outcomes, answer.warnings)


def pending(*, before: datetime | None = None) -> ServiceCall[Page[ListedDecision]]:
    """The decisions without an outcome, the oldest first, fetched page by page."""
    return getting("/v1/outcomes/pending", Page[ListedDecision], before=time_text(before))


def context(transaction: TransactionInput, *, n_bullets: int | None = None) -> ServiceCall[ContextAnswer]:
    """The bullets that matter for a transaction, for an agent of your own. Records nothing."""
    call = posting("/v1/context", ContextAnswer, transaction_json(transaction))
    return replace(call, params=without_nothing(n_bullets=n_bullets))


def trace(
    transaction: TransactionInput,
    verdict: Verdict | str,
    *,
    probability: float | None = None,
    bullet_ids: Iterable[str] = (),
    agent: str = "",
    reasoning: str = "",
    is_fraud: bool | None = None,
) -> ServiceCall[TraceAnswer]:
    """Record what an agent of your own decided and, if it is known, the truth: the playbook learns from it.

    ``bullet_ids`` are those that it used. The same trace again changes nothing.
    """
    label = None if is_fraud is None else FRAUD if is_fraud else LEGITIMATE
    more = without_nothing(
        probability=probability, bullet_ids=list(bullet_ids), agent=agent, reasoning=reasoning, label=label
    )
    return posting(
        "/v1/traces",
        TraceAnswer,
        {"transaction": transaction_json(transaction), "verdict": verdict_text(verdict), **more},
    )
