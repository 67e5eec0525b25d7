"""Addresses of databases, which may hold passwords, and how they are shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_PREFIXES: Final = ("postgresql://", "postgres://")
_USER: Final = re.compile(r"^(postgres(?:ql)?://)(?:([^:@/?#]*)(:.*)?@)?(.*)$", re.DOTALL)
_SECRET: Final = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)


def is_database(place: object) -> bool:
    """Whether this is the address of a PostgreSQL database, and not the path of a file.

    >>> is_database("postgresql://ana@db.example/fraud"), is_database("team.db")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(_PREFIXES)


def without_password(address: str) -> str:
    """An address as it may be shown: without what stands between the user's name and the last `@`.

    >>> without_password("postgresql://ana:pass@word@db.example:5432/fraud?options=-csearch_path%3Dteam")
    'postgresql://ana:***@db.example:5432/fraud?options=-csearch_path%3Dteam'
    >>> without_password("postgresql://db.example/fraud?user=ana&password=secret")
    'postgresql://db.example/fraud?user=ana&password=***'
    """
    found = _USER.match(address)
    if found is None:
        return "the database"
    prefix, user, password, rest = found.groups()
    shown = f"{prefix}{rest}" if user is None else f"{prefix}{user}{':***' if password else ''}@{rest}"
    return _SECRET.sub(r"\1***", shown)


def has_bare_signs(address: str) -> bool:
    """Whether a password has signs that end it, so that the driver would take its rest for a host or a port.

    >>> has_bare_signs("postgresql://ana:pass/word@db.example/fraud"), has_bare_signs("postgresql://ana:pw@db/fraud")
    (True, False)
    """
    found = _USER.match(address)
    password = found and found.group(3)
    return bool(password and re.search("[/?#]", password) and not re.match(r":\d+[/?]", password))


def shown_place(place: str | Path) -> str:
    """The path of a file, or the address of a database without its password."""
    return without_password(place) if isinstance(place, str) and is_database(place) else str(place)
