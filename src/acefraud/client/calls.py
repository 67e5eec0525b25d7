"""The requests that the clients send, how they are made from what callers give, and how their answers are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from acefraud.core.bullet import Source, Status
from acefraud.core.outcome import Outcome
from acefraud.core.review_rule import ReviewRule, SaidReview
from acefraud.core.transaction import Transaction, Verdict, from_text
from acefraud.errors import InputError
from acefraud.support.arguments import check_choice, check_text, check_type
from acefraud.support.timestamps import in_utc
from acefraud.support.validation import first_fault
from acefraud.wire.answers import (
    AdmittedRule,
    BatchAnswer,
    BulletAnswer,
    ChangeAnswer,
    ContextAnswer,
    DecisionAnswer,
    ExplainedDecision,
    FactAnswer,
    ListAnswer,
    ListedDecision,
    ListValue,
    OutcomeFeedAnswer,
    Page,
    PreviewedRule,
    Receipt,
    ReceiptsAnswer,
    RollbackAnswer,
    RuleReading,
    ScoreAnswer,
    ThresholdAnswer,
    TraceAnswer,
    WholeBullet,
)

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
TransactionInput: TypeAlias = Transaction | Mapping[str, Any] | str
"""A transaction, a dict with its fields, or its text."""
OutcomeInput: TypeAlias = Outcome | Mapping[str, Any]
"""An outcome, or a dict with its fields."""

FRAUD, LEGITIMATE = "fraud", "legitimate"
LONGEST_NAME: Final = 1_000
LONGEST_KEY: Final = 200
_ROLLBACK: Final = "/v1/playbook:rollback"
_THRESHOLD: Final = "/v1/threshold"
_FEED: Final = "/v1/feed"


def transaction_json(given: TransactionInput, name: str = "transaction") -> dict[str, Any]:
    """A transaction for the wire. A text gets an id made from it, so the same text is the same transaction.

    >>> transaction_json({"id": 7, "facts": {"amount": 250, "vpn": None}})
    {'id': '7', 'facts': {'amount': 250.0}}
    """
    check_type(name, given, (Transaction, Mapping, str), "a Transaction, a dict or a text")
    if isinstance(given, str):
        transaction = from_text(given)
    else:
        transaction = given if isinstance(given, Transaction) else _checked(Transaction, given, name)
    content = transaction.model_dump(mode="json")
    return {field: value for field, value in content.items() if value not in (None, "", {})}


def transactions_json(given: Iterable[TransactionInput]) -> list[dict[str, Any]]:
    """Many transactions for the wire."""
    if isinstance(given, Transaction | Mapping | str) or not isinstance(given, Iterable):
        raise InputError("transactions: expected many; use `decide` for one")
    return [transaction_json(transaction, f"transactions[{index}]") for index, transaction in enumerate(given)]


def outcome_json(given: OutcomeInput, name: str = "outcome") -> dict[str, Any]:
    """An outcome for the wire. One without an id gets one from what it says and when; without a time, a new one.

    So a label can be revised back and forth.

    >>> outcome_json({"id": "cb-881", "transaction_id": "t1", "label": "fraud", "source": "chargeback"})
    {'id': 'cb-881', 'transaction_id': 't1', 'label': 'fraud', 'source': 'chargeback'}
    """
    check_type(name, given, (Outcome, Mapping), "an Outcome or a dict")
    outcome = given if isinstance(given, Outcome) else _checked(Outcome, _outcome_fields(given, name), name)
    content = {
        "id": outcome.key if outcome.id or outcome.at else uuid4().hex,
        "transaction_id": outcome.transaction_id,
        "label": FRAUD if outcome.is_fraud else LEGITIMATE,
        "source": str(outcome.source),
    }
    more = {"note": outcome.note, "author": outcome.author, "details": outcome.details}
    time = {} if outcome.at is None else {"time": outcome.at.isoformat()}
    return content | time | {name: value for name, value in more.items() if value}


def outcomes_json(given: OutcomeInput | Iterable[OutcomeInput]) -> list[dict[str, Any]]:
    """One outcome or many for the wire."""
    if isinstance(given, Outcome | Mapping):
        return [outcome_json(given)]
    check_type("outcomes", given, Iterable, "an Outcome, a dict, or many of them")
    return [outcome_json(outcome, f"outcomes[{index}]") for index, outcome in enumerate(given)]


def _outcome_fields(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The fields of an Outcome, also if they have the names of the wire: `label` and `time`."""
    fields = dict(given)
    if "label" in fields:
        label = fields.pop("label")
        if label not in (FRAUD, LEGITIMATE):
            raise InputError(f"{name}: label: expected {FRAUD} or {LEGITIMATE}")
        fields["is_fraud"] = label == FRAUD
    if "time" in fields:
        fields["at"] = fields.pop("time")
    return {field: value for field, value in fields.items() if value is not None}


def _checked(model: type[M], given: Mapping[str, Any], name: str) -> M:
    try:
        return model.model_validate(dict(given))
    except ValidationError as problem:
        raise InputError(f"{name}: {first_fault(problem, model)}") from None


def time_text(time: datetime | None) -> str | None:
    """A time for the wire. One without a zone is read as UTC."""
    return None if time is None else in_utc(time).isoformat()


def verdict_text(verdict: Verdict | str) -> str:
    """A verdict for the wire, given in any case.

    >>> verdict_text("decline")
    'DECLINE'
    """
    check_type("verdict", verdict, str, "a verdict")
    check_choice("verdict", verdict.upper(), Verdict)
    return verdict.upper()


def checked_key(key: str) -> str:
    """An idempotency key. Raises InputError if it cannot stand in a header."""
    if not (0 < len(key) <= LONGEST_KEY and all("!" <= char <= "~" for char in key)):
        raise InputError(f"idempotency_key: expected 1 to {LONGEST_KEY} printable ASCII characters without spaces")
    return key


def segment(name: str, value: str) -> str:
    """A name as one part of a path.

    >>> segment("bullet_id", "a/b c"), segment("bullet_id", "..")
    ('a%2Fb%20c', '%2E%2E')
    """
    check_text(name, value)
    if len(value) > LONGEST_NAME:
        raise InputError(f"{name}: expected at most {LONGEST_NAME:,} characters, got {len(value):,}")
    try:
        quoted = quote(value, safe="")
    except UnicodeEncodeError:
        raise InputError(f"{name}: expected valid UTF-8") from None
    # A path leaves out parts that are only dots.
    return quoted.replace(".", "%2E") if value in (".", "..") else quoted


def without_nothing(**fields: Any) -> dict[str, Any]:
    """The fields that say something: neither None nor False nor empty. A zero does.

    >>> without_nothing(priority=0, final=False, reason="")
    {'priority': 0}
    """
    return {name: value for name, value in fields.items() if value or (value == 0 and value is not False)}


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
    return ServiceCall(
        method="POST",
        path="/v1/decisions:batch",
        read=lambda content: BatchAnswer.model_validate(content).decisions,
        body={"transactions": transactions_json(transactions)},
    )


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


def _kind_of_rule(always: Verdict | str | None = None, **more: int | bool | None) -> dict[str, Any]:
    """Whether a rule becomes a policy or a note, if its words do not say so, for the wire.

    >>> _kind_of_rule("DECLINE", final=True)
    {'always': 'decline', 'final': True}
    """
    if always is not None:
        check_choice("always", str(always).upper(), Verdict)
    return without_nothing(always=always and str(always).lower(), **more)


def _changing(method: str, path: str, kind: type[M], body: Any) -> ServiceCall[M]:
    """A change is not sent again once it may have arrived: it would be made, or refused, twice."""
    return ServiceCall(method=method, path=path, read=kind.model_validate, body=body, repeatable=False)


def playbook(
    *,
    source: Source | str | None = None,
    status: Status | str | None = None,
    node: str | None = None,
    retired: bool = False,
) -> ServiceCall[Page[BulletAnswer]]:
    """The bullets of the playbook, fetched page by page. Retired ones only if you ask for them."""
    if source is not None:
        check_choice("source", source, Source)
    return getting(
        "/v1/playbook",
        Page[BulletAnswer],
        source=source and str(source),
        status=_status(status),
        node=node,
        retired=retired,
    )


def _status(status: Status | str | None) -> str | None:
    if status is None:
        return None
    check_choice("status", status, Status)
    return str(status)


def bullet(bullet_id: str) -> ServiceCall[WholeBullet]:
    """One bullet with its evidence, its counters and the latest of its history."""
    return getting(_bullet(bullet_id), WholeBullet)


def history(bullet_id: str) -> ServiceCall[Page[ChangeAnswer]]:
    """What happened to a bullet, the latest first, fetched page by page."""
    return getting(f"{_bullet(bullet_id)}/history", Page[ChangeAnswer])


def _bullet(bullet_id: str) -> str:
    return f"/v1/bullets/{segment('bullet_id', bullet_id)}"


def add_rule(
    text: str,
    *,
    reason: str = "",
    node: str | None = None,
    always: Verdict | str | None = None,
    priority: int | None = None,
    final: bool = False,
    as_evidence: bool = False,
    as_note: bool = False,
) -> ServiceCall[AdmittedRule]:
    """Add a rule in plain English or in the formal syntax.

    With ``always`` it is a policy, which decides by itself; the highest ``priority`` decides, and nothing overrides
    one that is ``final``. So is one that begins with an order ("block ..."), unless it is taken ``as_evidence``. Words
    that are not understood are refused, or kept as a note with ``as_note``. A rule that the playbook already says is a
    ServiceConflict.
    """
    kind = _kind_of_rule(always, priority=priority, final=final, as_evidence=as_evidence, as_note=as_note)
    body = {"content": text, **without_nothing(reason=reason, node=node), **kind}
    return _changing("POST", "/v1/bullets", AdmittedRule, body)


def edit_rule(
    bullet_id: str,
    text: str,
    *,
    reason: str,
    always: Verdict | str | None = None,
    priority: int | None = None,
    final: bool = False,
    as_evidence: bool = False,
    as_note: bool = False,
) -> ServiceCall[AdmittedRule]:
    """Rewrite a rule. Its counters stay, and a policy stays a policy."""
    kind = _kind_of_rule(always, priority=priority, final=final, as_evidence=as_evidence, as_note=as_note)
    return _changing("PATCH", _bullet(bullet_id), AdmittedRule, {"content": text, "reason": reason, **kind})


def set_status(bullet_id: str, status: Status | str, *, reason: str) -> ServiceCall[AdmittedRule]:
    """Approve, pin, retire or revive a rule."""
    return _changing("PATCH", _bullet(bullet_id), AdmittedRule, {"status": _status(status), "reason": reason})


def pin(bullet_id: str, *, reason: str) -> ServiceCall[AdmittedRule]:
    """Pin a rule: learning does not retire it."""
    return set_status(bullet_id, Status.PINNED, reason=reason)


def retire(bullet_id: str, *, reason: str) -> ServiceCall[AdmittedRule]:
    """Retire a rule: it is never selected again, unless somebody revives it."""
    return set_status(bullet_id, Status.RETIRED, reason=reason)


def snooze(bullet_id: str, *, key: str, value: str, until: datetime, reason: str) -> ServiceCall[BulletAnswer]:
    """Let a policy not apply to one customer, card or other entity until a time.

    ``key`` names the entity or the fact, such as ``card``.
    """
    body = {"key": key, "value": value, "until": time_text(until), "reason": reason}
    return _changing("POST", f"{_bullet(bullet_id)}:snooze", BulletAnswer, body)


def facts() -> ServiceCall[Page[FactAnswer]]:
    """The facts that rules can be about, with type, range, examples and coverage, fetched page by page."""
    return getting("/v1/facts", Page[FactAnswer])


def read_rule(text: str) -> ServiceCall[RuleReading]:
    """How a rule is understood. Stores nothing."""
    return posting("/v1/rules:read", RuleReading, {"content": text})


def preview_rule(
    text: str | None = None,
    *,
    bullet_id: str | None = None,
    status: Status | str | None = None,
    always: Verdict | str | None = None,
    priority: int | None = None,
    final: bool = False,
    as_evidence: bool = False,
    as_note: bool = False,
) -> ServiceCall[PreviewedRule]:
    """What a rule would do to past decisions and labelled cases. Stores nothing.

    With ``bullet_id`` it is what other words, or another status, would do to that rule.
    """
    if text is None and bullet_id is None:
        raise InputError("expected the text of a rule, the id of one, or both")
    kind = _kind_of_rule(always, priority=priority, final=final, as_evidence=as_evidence, as_note=as_note)
    body = {**without_nothing(content=text, bullet_id=bullet_id, status=_status(status)), **kind}
    return posting("/v1/rules:preview", PreviewedRule, body)


def lists() -> ServiceCall[Page[ListAnswer]]:
    """The lists that rules can refer to, fetched page by page."""
    return getting("/v1/lists", Page[ListAnswer])


def list_values(name: str) -> ServiceCall[Page[ListValue]]:
    """The values of a list in the order in which they were added, fetched page by page."""
    return getting(_list(name), Page[ListValue])


def _list(name: str) -> str:
    return f"/v1/lists/{segment('name', name)}"


def put_list(
    name: str, *, about: str = "", frauds_of: str | None = None, days: float | None = None, reason: str
) -> ServiceCall[ListAnswer]:
    """Create a list, or change what it is for and what feeds it. Its values stay.

    With ``frauds_of`` outcomes feed it: the value of that fact or entity of every fraud, for so many ``days``.
    """
    if days is not None and frauds_of is None:
        raise InputError("days: goes with frauds_of")
    feed = None if frauds_of is None else without_nothing(key=frauds_of, days=days)
    return _changing("PUT", _list(name), ListAnswer, {"reason": reason, **without_nothing(about=about, feed=feed)})


def change_list(
    name: str, *, add: Iterable[str] = (), remove: Iterable[str] = (), until: datetime | None = None, reason: str
) -> ServiceCall[ListAnswer]:
    """Put values on a list, perhaps until a date, and take others off it, all or none."""
    for argument, values in (("add", add), ("remove", remove)):
        if isinstance(values, str):
            raise InputError(f"{argument}: expected many values, got one text")
    limited = without_nothing(until=time_text(until))
    body = {"add": [{"value": value, **limited} for value in add], "remove": list(remove), "reason": reason}
    return _changing("PATCH", _list(name), ListAnswer, body)


def changes() -> ServiceCall[Page[ChangeAnswer]]:
    """What changed in the playbook, the latest first, fetched page by page."""
    return getting("/v1/playbook/changes", Page[ChangeAnswer])


def rollback(revision: int, *, reason: str) -> ServiceCall[RollbackAnswer]:
    """Bring the playbook back to an earlier revision. Nothing is deleted, so this can be undone as well."""
    return _changing("POST", _ROLLBACK, RollbackAnswer, {"revision": revision, "reason": reason})


def preview_rollback(revision: int) -> ServiceCall[RollbackAnswer]:
    """What going back to an earlier revision would change. Stores nothing."""
    return posting(_ROLLBACK, RollbackAnswer, {"revision": revision, "preview": True})


def threshold() -> ServiceCall[ThresholdAnswer]:
    """From which probability of fraud on transactions are declined, and which go to a person."""
    return getting(_THRESHOLD, ThresholdAnswer)


def set_threshold(
    threshold: float | None = None, *, review: SaidReview | None = None, no_review: bool = False, reason: str
) -> ServiceCall[ThresholdAnswer]:
    """Set from which probability of fraud on transactions are declined, and which go to a person.

    ``review`` may be costs as text: "false_decline=15,missed_fraud=200,review=5,per_day=50". What is not
    given stays as it is. With ``no_review`` nothing goes to a person any more, except by policies.
    """
    if no_review and review is not None:
        raise InputError("some cases are to go to a person, and none: choose one")
    rule = None if review is None else ReviewRule.of(review).model_dump(mode="json", exclude_none=True)
    given = {"review": None} if no_review else without_nothing(review=rule)
    body = {**without_nothing(threshold=threshold), **given, "reason": reason}
    return _changing("PUT", _THRESHOLD, ThresholdAnswer, body)


def feed() -> ServiceCall[OutcomeFeedAnswer]:
    """Which decisions get an outcome, what silence means, and where the level of fraud is."""
    return getting(_FEED, OutcomeFeedAnswer)


def set_feed(
    kind: str | None = None,
    *,
    silence_days: float | None = None,
    declines_pass: bool | None = None,
    follow_level: bool | None = None,
    level: Literal["accept", "reset"] | None = None,
    reason: str,
) -> ServiceCall[OutcomeFeedAnswer]:
    """Say how outcomes arrive. What is not given stays as it is; ``silence_days=0`` lets silence say nothing.

    ``level="accept"`` agrees to a step of the level of fraud that is held, "reset" puts the level back to what was
    calibrated.
    """
    given = {"kind": kind, "silence_days": silence_days, "declines_pass": declines_pass, "follow_level": follow_level}
    said = {name: value for name, value in {**given, "level": level}.items() if value is not None}
    return _changing("PUT", _FEED, OutcomeFeedAnswer, {**said, "reason": reason})
