"""Keys are looked up once in a few seconds, and a revoked one stops working."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acefraud.core.scope import Scope
from acefraud.service.admission import KeyRing
from acefraud.storage.driver import Driver
from acefraud.storage.service_tables import KeyStore
from acefraud.storage.sqlite import SqliteLedger

NOW = datetime(2025, 1, 6, tzinfo=UTC)


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Counted(SqliteLedger):
    """A ledger that counts how often it is read."""

    reads = 0

    @contextmanager
    def reading(self) -> Iterator[Driver]:
        self.reads += 1
        with super().reading() as driver:
            yield driver


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    with Counted.open(tmp_path / "book.db") as ledger:
        ledger.reads = 0
        yield ledger


@pytest.fixture
def store(counted: Counted) -> KeyStore:
    return KeyStore(counted)


def test_a_key_is_read_once_in_the_seconds(counted: Counted, store: KeyStore) -> None:
    key, secret = store.create("checkout", ["decide"], who="ana", now=NOW)
    clock = Clock()
    ring = KeyRing(store, 5, clock=clock)
    assert [ring.find(secret) for _ in range(3)] == [key] * 3
    assert counted.reads == 1
    clock.now = 5.0
    assert ring.find(secret) == key
    assert counted.reads == 2


def test_a_revoked_key_stops_working_within_the_seconds(store: KeyStore) -> None:
    _, secret = store.create("checkout", ["decide"], who="ana", now=NOW)
    clock = Clock()
    rings = [KeyRing(store, 5, clock=clock), KeyRing(store, 5, clock=clock)]
    assert all(ring.find(secret) for ring in rings)
    store.revoke("checkout", who="ana", now=NOW)
    clock.now = 4.9
    assert all(ring.find(secret) for ring in rings)
    clock.now = 5.0
    assert [ring.find(secret) for ring in rings] == [None, None]


def test_what_is_no_key_is_remembered_for_the_seconds_too(counted: Counted, store: KeyStore) -> None:
    wrong = f"ace_{'0' * 12}_{'a' * 43}"
    clock = Clock()
    ring = KeyRing(store, 5, clock=clock)
    assert [ring.find(wrong) for _ in range(3)] == [None] * 3
    assert counted.reads == 1
    clock.now = 5.0
    assert ring.find(wrong) is None
    assert counted.reads == 2


def test_a_flood_of_wrong_keys_does_not_push_out_the_right_one(counted: Counted, store: KeyStore) -> None:
    key, secret = store.create("checkout", ["decide"], who="ana", now=NOW)
    ring = KeyRing(store, 5, most=10, clock=Clock())
    ring.find(secret)
    wrong = [f"ace_{n:012x}_{'a' * 43}" for n in range(50)]
    assert not any(map(ring.find, wrong))
    counted.reads = 0
    assert ring.find(secret) == key
    assert counted.reads == 0
    ring.find(wrong[-1])
    assert counted.reads == 0
    ring.find(wrong[0])  # long forgotten: only ten are remembered
    assert counted.reads == 1


def test_it_knows_which_secrets_have_worked_also_after_it_forgot_the_keys(store: KeyStore) -> None:
    _, secret = store.create("checkout", [Scope.DECIDE], who="ana", now=NOW)
    clock = Clock()
    ring = KeyRing(store, 5, clock=clock)
    ring.find("ace_wrong")
    assert not ring.has_worked(secret)
    ring.find(secret)
    clock.now = 60.0
    assert (ring.remembered(secret), ring.has_worked(secret), ring.has_worked("ace_wrong")) == (None, True, False)
