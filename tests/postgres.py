"""A PostgreSQL server for tests: each gets a schema of its own, which is dropped afterwards."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

import psycopg
import pytest

STANDARD = "postgresql://postgres@127.0.0.1:5432/test"
"""Where a server is looked for if ACEFRAUD_TEST_POSTGRES names none."""

_made: set[str] = set()


@cache
def _why_not() -> str:
    """Why there is no server; "" if there is one."""
    try:
        psycopg.connect(_server(), connect_timeout=3).close()
    except psycopg.Error as problem:
        return str(problem)
    return ""


def _server() -> str:
    return os.environ.get("ACEFRAUD_TEST_POSTGRES") or STANDARD


def database_for(folder: Path, name: str = "") -> str:
    """The address of a schema that belongs to a folder. Skips the test if there is no server."""
    if _why_not():
        pytest.skip(f"there is no PostgreSQL server at {_server()}: {_why_not()}")
    schema = f"test_{hashlib.blake2b(f'{folder}/{name}'.encode(), digest_size=8).hexdigest()}_{os.getpid()}"
    _made.add(schema)
    return f"{_server()}{'&' if '?' in _server() else '?'}options=-csearch_path%3D{schema}"


def drop_schemas() -> None:
    """Drop the schemas that were made since the last time."""
    if not _made:
        return
    with psycopg.connect(_server(), autocommit=True) as connection:
        while _made:
            connection.execute(f'DROP SCHEMA IF EXISTS "{_made.pop()}" CASCADE')
