"""Every error acefraud raises on purpose.

AcefraudError
├── InputError            what the user gave cannot be read: file, row, field and what was expected
├── ConfigurationError    an option, a mapping or the environment asks for something impossible
├── ModelError            a model that plays a role failed; never a verdict
│   ├── ModelTimeout      no reply within the time allowed
│   ├── ModelRateLimited  too many calls; may say how long to wait
│   ├── ModelUnavailable  the server failed, cut the connection or is not reached
│   ├── ModelRefused      the request was turned down, and would be again: key, name of the model, content
│   └── ModelMalformed    a reply that cannot be read, even after it was asked for again
├── BudgetExceeded        the next call might cost more than was allowed; nothing was sent
└── StoreError            the playbook file
    ├── StoreConflict     somebody else changed what this edit was based on
    └── StoreSchema       the file is not a playbook, or of a newer schema
"""

from __future__ import annotations

from datetime import datetime


class AcefraudError(Exception):
    """Root of the tree: catch this at the outermost layer, and nothing broader."""


class InputError(AcefraudError):
    """Input that cannot be read, with the place where it stands.

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
    """An option, a mapping or the environment asks for something impossible."""


class ModelError(AcefraudError):
    """A model that plays a role failed. What it was asked stays unjudged or undecided."""


class ModelTimeout(ModelError):
    """No reply came within the time allowed."""


class ModelRateLimited(ModelError):
    """The server wants fewer calls; `retry_after` are the seconds it asked to wait, where it said so."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class ModelUnavailable(ModelError):
    """The server failed, cut the connection, or could not be reached."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class ModelRefused(ModelError):
    """The request was turned down and would be again: a wrong key, an unknown model, content it does not answer."""


class ModelMalformed(ModelError):
    """A reply that cannot be read as what was asked for."""


class BudgetExceeded(AcefraudError):
    """The next call might cost more than was allowed. Nothing was sent, and what was learnt before is kept."""


class StoreError(AcefraudError):
    """The playbook file cannot be read or written."""


class StoreConflict(StoreError):
    """Somebody else changed what this edit was based on, and nothing of it was written.

    `who` did it and `at` what time, where that is known.
    """

    def __init__(self, message: str, *, who: str = "", at: datetime | None = None) -> None:
        self.who = who
        self.at = at
        super().__init__(message)


class StoreSchema(StoreError):
    """The file is not a playbook, or it was written by a newer version."""
