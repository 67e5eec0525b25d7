"""Errors of PostgreSQL, translated into ours with advice on what to do, and without passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from acefraud.errors import AcefraudError, InputError, StoreError, StoreUnavailable

_UNAVAILABLE: Final[Mapping[str, str]] = {
    "08": "the connection broke; try again",
    "40": "others were writing the same; try again",
    "53300": "the server has no connection to spare; try again later, or raise its max_connections",
    "55P03": "others have held the write lock for too long; try again when they are done",
    "57": "the server is stopping or starting; try again when it is up",
}
"""By the beginning of the SQLSTATE."""
_ADVICE: Final[Mapping[str, str]] = {
    "25006": "it may only be read; open it without read-only access, on a server that is not a standby",
    "42501": "access was denied; ask for the rights to read and write the tables of this schema",
    "42P01": "a table is missing; restore the playbook from a copy",
    "53100": "the disk of the server is full and nothing was written; free some space and try again",
    "28": "the server does not let this user in; check the name, the password and the database",
    "3D": "there is no such database; create it first",
    "3F": "there is no such schema; create it first",
}
_INPUT: Final[Mapping[str, str]] = {
    "22": "PostgreSQL cannot hold this text",
    "54000": "an id is too long for PostgreSQL; expected at most 2,000 bytes",
}
_NO_DATABASE: Final = re.compile(r'database ".*" does not exist')
_REFUSED: Final = re.compile(r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|invalid")
"""Connections that would fail again. The driver does not hand over the SQLSTATE of these two."""


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise StoreError for errors of PostgreSQL, and InputError for what it cannot hold."""
    try:
        yield
    except DBAPIError as error:
        raise _explained(place, error.orig or error) from error
    except psycopg.Error as error:
        raise _explained(place, error) from error
    except PoolTimeout as error:
        raise StoreUnavailable(f"playbook {place}: all connections are in use; try again later") from error
    except UnicodeEncodeError as error:
        raise InputError(f"PostgreSQL cannot hold this text: {error.reason}") from error


def _explained(place: str, error: BaseException) -> AcefraudError:
    state = getattr(error, "sqlstate", None)
    said = str(error).strip().partition("\n")[0]
    if isinstance(error, psycopg.DataError) or _found(_INPUT, state):
        return InputError(f"{_found(_INPUT, state) or _INPUT['22']} ({said})")
    if advice := _found(_UNAVAILABLE, state):
        return StoreUnavailable(f"playbook {place}: {advice} ({said})")
    if advice := _found(_ADVICE, state):
        return StoreError(f"playbook {place}: {advice} ({said})")
    if isinstance(error, psycopg.OperationalError) and state is None:
        if _REFUSED.search(said):
            advice = _ADVICE["3D" if _NO_DATABASE.search(said) else "28"]
            return StoreError(f"playbook {place}: {advice} ({said})")
        return StoreUnavailable(f"playbook {place}: the server cannot be reached; try again when it is up ({said})")
    return StoreError(f"playbook {place}: PostgreSQL refused ({said})")


def _found(advice: Mapping[str, str], state: str | None) -> str | None:
    return next((said for begins, said in advice.items() if state is not None and state.startswith(begins)), None)
