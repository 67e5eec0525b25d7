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
    """The base class of all errors. Catch this at the outermost layer, and nothing broader."""


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
    """An option, a mapping or an environment variable is invalid."""


class CannotExplain(AcefraudError):
    """A recorded decision cannot be computed again, so that only what was recorded of it can be shown."""


class ModelError(AcefraudError):
    """A call to a model failed. The case stays unjudged or undecided.

    `retry_after` is the wait in seconds that the server asked for, if it did. `tokens` are the input and output tokens
    of an unusable reply, which is charged all the same.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, tokens: tuple[int, int] = (0, 0)) -> None:
        self.retry_after = retry_after
        self.tokens = tokens
        super().__init__(message)


class ModelTimeout(ModelError):
    """The model did not reply in time."""


class ModelRateLimited(ModelError):
    """The server wants fewer calls."""


class ModelUnavailable(ModelError):
    """The server failed, dropped the connection or could not be reached."""


class ModelRefused(ModelError):
    """The request was rejected and would be again: a wrong key, an unknown model, or content the model refuses."""


class ModelMalformed(ModelError):
    """The reply could not be parsed."""


class BudgetExceeded(AcefraudError):
    """The next call might exceed the budget, so it was not sent. What was learnt before is kept."""


class StoreError(AcefraudError):
    """The playbook file cannot be read or written."""


class StoreConflict(StoreError):
    """Another writer changed what this write depends on. Nothing was written.

    `who` and `at` name the other writer and the time, if they are known.
    """

    def __init__(self, message: str, *, who: str = "", at: datetime | None = None) -> None:
        self.who = who
        self.at = at
        super().__init__(message)


class StoreSchema(StoreError):
    """The file is not a playbook, or a newer version wrote it."""
