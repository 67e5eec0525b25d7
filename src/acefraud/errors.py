"""Every error that acefraud raises on purpose.

AcefraudError
├── InputError            invalid input, with its file, row and field and what was expected
│   ├── RequestReused     the key of a request that was answered came back with other content
│   ├── OutcomeConflict   an outcome has the id of another one
│   ├── RuleNotUnderstood a part of a rule is not understood, with the words and what may be meant
│   └── DuplicateRule     the playbook already says what a new rule says
├── ConfigurationError    an invalid option, mapping or environment variable
├── ModelError            a model call failed; this is never a verdict
│   ├── ModelTimeout      no reply in time
│   ├── ModelRateLimited  too many calls; may say how long to wait
│   ├── ModelUnavailable  the server failed, dropped the connection or could not be reached
│   ├── ModelRefused      the request was rejected and would be again: wrong key, unknown model, content
│   └── ModelMalformed    the reply could not be parsed, even after a retry
├── CannotExplain         a recorded decision cannot be computed again, so its trace is not known
├── BudgetExceeded        the next call might exceed the budget; it was not sent
├── StoreError            the playbook cannot be read or written
│   ├── StoreConflict     another writer changed what this write depends on
│   ├── AlreadyAnswered   somebody else has answered this request meanwhile
│   ├── StoreSchema       the file or database is not a playbook, or has a newer schema
│   └── StoreUnavailable  the database cannot be reached or is locked; trying again later may help
└── ServiceError          a decision service refused a request, or its answer cannot be read
    ├── ServiceConflict   the request contradicts an earlier one
    └── ServiceUnavailable  the service could not be reached, or asked to come back later

InputWarning is no error: something in the input is unusual, and was taken all the same.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Self


class AcefraudError(Exception):
    """The base class of all errors. Catch this at the outermost layer, and nothing broader.

    >>> from acefraud import load_dataset
    >>> try:
    ...     load_dataset("orders.csv")
    ... except AcefraudError as problem:
    ...     print(problem)
    orders.csv: there is no such file, and the shipped datasets are: complex_fraud_detection
    """

    remedy: str = ""
    """What would help, if the message does not say it: whoever shows the error says how that is done there."""

    def helped_by(self, remedy: str) -> Self:
        """The error itself, with what would help."""
        self.remedy = remedy
        return self


class InputWarning(UserWarning):
    """Something in the input is unusual; it was taken all the same.

    >>> import warnings
    >>> from acefraud import BulletPlaybook, Learner
    >>> learner = Learner(BulletPlaybook())
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     decision = learner.decide_sync({"amout": 900, "vpn": True})
    >>> print(told[0].message)
    `amout` is not a fact this playbook knows; did you mean `amount`?
    """


def point_out(*remarks: object) -> None:
    """Warn of something unusual in the input, at the line outside acefraud that it comes from."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("acefraud."):
        level, frame = level + 1, frame.f_back
    for remark in remarks:
        warnings.warn(str(remark), InputWarning, stacklevel=level)


class InputError(AcefraudError, ValueError):
    """Invalid input, with where it was found.

    >>> print(InputError("expected a number, got '12,5x'", file="tx.csv", row=7, field="amount"))
    tx.csv, row 7, field 'amount': expected a number, got '12,5x'
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        row: int | None = None,
        field: str | None = None,
    ) -> None:
        self.message = message
        self.file = file
        self.row = row
        self.field = field
        place = [part for part in (file, row and f"row {row}", field and f"field '{field}'") if part]
        super().__init__(f"{', '.join(place)}: {message}" if place else message)


class RequestReused(InputError):
    """The key of a request that was answered came back with other content.

    >>> from acefraud.learning.decision_recorder import DecisionRequest
    >>> from acefraud.service.decision_requests import decide_requests
    >>> from acefraud import BulletPlaybook, Learner, Transaction
    >>> first, second = (Transaction(id="t1", facts={"amount": amount}) for amount in (5, 9))
    >>> learner = Learner(BulletPlaybook())
    >>> _ = decide_requests(learner, [DecisionRequest(first)])
    >>> print(decide_requests(learner, [DecisionRequest(second)])[0])
    transaction 't1' was decided with other content; send what you sent before, or a new Idempotency-Key
    (`idempotency_key` in Python) to decide it again with this content
    """


class OutcomeConflict(InputError):
    """An outcome has the id of another one. Nothing of the call was recorded.

    `place` says which one of the call it is, counted from 0.

    >>> from acefraud import BulletPlaybook, Learner, Outcome
    >>> learner = Learner(BulletPlaybook())
    >>> _ = learner.receive([Outcome(id="o1", transaction_id="t1", is_fraud=True)], who="the bank")
    >>> try:
    ...     learner.receive([Outcome(id="o1", transaction_id="t2", is_fraud=True)], who="the bank")
    ... except OutcomeConflict as problem:
    ...     print(problem)
    field 'id': the outcome 'o1' was received before and said something else; give a revised outcome an id of its own
    """

    def __init__(self, message: str, *, field: str | None = None, place: int = 0) -> None:
        self.place = place
        super().__init__(message, field=field)


class RuleNotUnderstood(InputError):
    """A part of a rule is not understood, so the rule is refused.

    `not_understood` are the words, `did_you_mean` the facts they may have been meant to be, and `advice` tells what was
    read, what was not, and what can be said instead.

    >>> problem = RuleNotUnderstood("not understood: 'amnts'", not_understood=["amnts"], did_you_mean=["amount"])
    >>> problem.not_understood, problem.did_you_mean
    (('amnts',), ('amount',))
    """

    def __init__(
        self,
        message: str,
        *,
        not_understood: Iterable[str] = (),
        did_you_mean: Iterable[str] = (),
        advice: Iterable[str] = (),
    ) -> None:
        self.not_understood = tuple(not_understood)
        self.did_you_mean = tuple(did_you_mean)
        self.advice = tuple(advice)
        super().__init__(message)


class DuplicateRule(InputError):
    """The playbook already says what a new rule says. `bullet_id` is the bullet that does.

    >>> DuplicateRule("the playbook already says this in b-1f2e3d4c", bullet_id="b-1f2e3d4c").bullet_id
    'b-1f2e3d4c'
    """

    def __init__(self, message: str, *, bullet_id: str) -> None:
        self.bullet_id = bullet_id
        super().__init__(message)


class ConfigurationError(AcefraudError):
    """An option, a mapping or an environment variable is invalid.

    >>> from acefraud import Curator
    >>> Curator(similarity_threshold=2)
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: similarity_threshold: expected a number above 0 and up to 1, got the int 2
    """


class CannotExplain(AcefraudError):
    """A recorded decision cannot be computed again, so that only what was recorded of it can be shown.

    >>> import asyncio
    >>> from acefraud import BulletPlaybook, HybridSelector, Learner, Transaction
    >>> playbook = BulletPlaybook()
    >>> decision = asyncio.run(Learner(playbook).decide(Transaction(id="t1", facts={"vpn": True})))
    >>> recorded = playbook.ledger.decisions([decision.id])[decision.id]
    >>> other = Learner(playbook, selector=HybridSelector(quality_threshold=0.4))
    >>> try:
    ...     asyncio.run(other.explain(recorded))
    ... except CannotExplain as problem:
    ...     print(str(problem).partition(" (")[0])
    it was made with another selector
    """


class ModelError(AcefraudError):
    """A call to a model failed. The case stays unjudged or undecided.

    `retry_after` is the wait in seconds that the server asked for, if it did. `tokens` are the input and output tokens
    of an unusable reply, which is charged all the same.

    >>> error = ModelRateLimited("too many requests", retry_after=2.5)
    >>> isinstance(error, ModelError), error.retry_after
    (True, 2.5)
    """

    def __init__(self, message: str, *, retry_after: float | None = None, tokens: tuple[int, int] = (0, 0)) -> None:
        self.retry_after = retry_after
        self.tokens = tokens
        super().__init__(message)


class ModelTimeout(ModelError):
    """The model did not reply in time.

    >>> str(ModelTimeout("no reply within 60 s"))
    'no reply within 60 s'
    """


class ModelRateLimited(ModelError):
    """The server wants fewer calls.

    >>> ModelRateLimited("too many requests", retry_after=2.5).retry_after
    2.5
    """


class ModelUnavailable(ModelError):
    """The server failed, dropped the connection or could not be reached.

    >>> isinstance(ModelUnavailable("HTTP status 503"), ModelError)
    True
    """


class ModelRefused(ModelError):
    """The request was rejected and would be again: a wrong key, an unknown model, or content the model refuses.

    >>> isinstance(ModelRefused("HTTP status 401"), ModelError)
    True
    """


class ModelMalformed(ModelError):
    """The reply could not be parsed.

    >>> ModelMalformed("no verdict in the reply", tokens=(900, 12)).tokens
    (900, 12)
    """


class BudgetExceeded(AcefraudError):
    """The next call might exceed the budget, so it was not sent. What was learnt before is kept.

    >>> issubclass(BudgetExceeded, AcefraudError), issubclass(BudgetExceeded, ModelError)
    (True, False)
    """


class StoreError(AcefraudError):
    """The playbook cannot be read or written.

    >>> from acefraud import open_playbook
    >>> try:
    ...     open_playbook("archive/team.db", create=False)
    ... except StoreError as problem:
    ...     print(problem)
    there is no playbook at archive/team.db; check the path, or create one there first
    """


class StoreConflict(StoreError):
    """Another writer changed what this write depends on. Nothing was written.

    `who` and `at` name the other writer and the time, if they are known.

    >>> from acefraud import BulletPlaybook
    >>> playbook = BulletPlaybook()
    >>> _ = playbook.add_bullet("VPN: decline", who="ana")
    >>> try:
    ...     with playbook.unit_of_work(since=0):
    ...         _ = playbook.add_bullet("VPN and a new device: decline")
    ... except StoreConflict as problem:
    ...     print(problem.who)
    ana
    """

    def __init__(self, message: str, *, who: str = "", at: datetime | None = None) -> None:
        self.who = who
        self.at = at
        super().__init__(message)


class AlreadyAnswered(StoreError):
    """Somebody else has answered a request with the same key meanwhile. Nothing was written.

    >>> issubclass(AlreadyAnswered, StoreError), issubclass(AlreadyAnswered, StoreConflict)
    (True, False)
    """


class StoreSchema(StoreError):
    """The file or database is not a playbook, or a newer version wrote it.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from acefraud import open_playbook
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "notes.db")
    ...     _ = file.write_text("call the bank", "utf-8")
    ...     try:
    ...         open_playbook(file)
    ...     except StoreSchema as problem:
    ...         print(problem.args[0].replace(str(file), file.name))
    notes.db is not an acefraud playbook; it was left untouched, give another path
    """


class StoreUnavailable(StoreError):
    """The database cannot be reached, is restarting, or is locked by others. Try again later.

    A write that was under way may have been written: look before you write it again, or let a precondition or the key
    of a request do so.

    >>> isinstance(StoreUnavailable("the server is starting up"), StoreError)
    True
    """


class ServiceError(AcefraudError):
    """A decision service refused a request, or its answer cannot be read.

    `status` is the HTTP status, None if there was no answer. `problem` is what the service said about it, by the names
    of RFC 9457: `title`, `detail`, and `errors` with the fields that are wrong.

    >>> error = ServiceError("HTTP 403, Forbidden: the key lacks the scope curate", status=403)
    >>> error.status, dict(error.problem)
    (403, {})
    """

    def __init__(self, message: str, *, status: int | None = None, problem: Mapping[str, Any] | None = None) -> None:
        self.status = status
        self.problem: Mapping[str, Any] = problem or {}
        super().__init__(message)


class ServiceConflict(ServiceError):
    """The request contradicts an earlier one, such as the same idempotency key with another transaction.

    >>> ServiceConflict("HTTP 409, Conflict", status=409).status
    409
    """


class ServiceUnavailable(ServiceError):
    """The service could not be reached, or asked to come back later, also after the last attempt.

    `retry_after` is the wait in seconds that the service asked for, if it did.

    >>> ServiceUnavailable("HTTP 503, Service Unavailable", status=503, retry_after=2.0).retry_after
    2.0
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        problem: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.retry_after = retry_after
        super().__init__(message, status=status, problem=problem)
