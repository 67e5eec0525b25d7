"""Every error that acefraud raises on purpose.

AcefraudError
├── InputError            invalid input, with its file, row and field and what was expected
├── ConfigurationError    an invalid option, mapping or environment variable
├── ModelError            a model call failed; this is never a verdict
│   ├── ModelTimeout      no reply in time
│   ├── ModelRateLimited  too many calls; may say how long to wait
│   ├── ModelUnavailable  the server failed, dropped the connection or could not be reached
│   ├── ModelRefused      the request was rejected and would be again: wrong key, unknown model, content
│   └── ModelMalformed    the reply could not be parsed, even after a retry
├── CannotExplain         a recorded decision cannot be computed again, so its trace is not known
├── BudgetExceeded        the next call might exceed the budget; it was not sent
└── StoreError            the playbook file cannot be read or written
    ├── StoreConflict     another writer changed what this write depends on
    └── StoreSchema       the file is not a playbook, or has a newer schema
"""

from __future__ import annotations

from datetime import datetime


class AcefraudError(Exception):
    """The base class of all errors. Catch this at the outermost layer, and nothing broader.

    >>> from acefraud import load_dataset
    >>> try:
    ...     load_dataset("orders.csv")
    ... except AcefraudError as problem:
    ...     print(problem)
    orders.csv: there is no such file, and the shipped datasets are: complex_fraud_detection
    """


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
    """The playbook file cannot be read or written.

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


class StoreSchema(StoreError):
    """The file is not a playbook, or a newer version wrote it.

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
