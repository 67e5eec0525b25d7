"""A service in this process, with a client for every scope."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute
from starlette.testclient import TestClient

from acefraud.core.scope import Scope
from acefraud.service.app import build_app
from acefraud.service.options import ServiceOptions
from acefraud.service.runtime import Runtime
from acefraud.storage import open_playbook
from acefraud.storage.service_tables import KeyStore
from acefraud.storage.sqlite import SqliteLedger

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Serving:
    """A service, and how to call it with and without a key."""

    runtime: Runtime
    anonymous: TestClient
    secrets: dict[Scope, str]

    def headers(self, *scopes: Scope) -> dict[str, str]:
        """The headers of a caller whose key has one of these scopes."""
        return {"Authorization": f"Bearer {self.secrets[scopes[0]]}"}


@pytest.fixture(scope="session", autouse=True)
def _routes_prepared_once() -> Iterator[None]:
    """Share the routes of all applications: FastAPI prepares them for each anew, which takes longer than most tests."""
    include, included = FastAPI.include_router, dict[int, list[BaseRoute]]()

    def include_once(app: FastAPI, router: APIRouter, **options: Any) -> None:
        if id(router) in included:
            app.router.routes.extend(included[id(router)])
        else:
            there = len(app.router.routes)
            include(app, router, **options)
            included[id(router)] = app.router.routes[there:]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastAPI, "include_router", include_once)
        yield


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "book.db"


@pytest.fixture
def serving(store: Path) -> Iterator[Serving]:
    secrets = {}
    with open_playbook(store) as book:
        book.add_bullet("VPN and a new device: decline", who="ana")
        assert isinstance(book.ledger, SqliteLedger)
        keys = KeyStore(book.ledger)
        for scope in Scope:
            _, secrets[scope] = keys.create(f"key for {scope}", [scope], who="ana", now=NOW)
    runtime = Runtime(ServiceOptions(store=store))
    with TestClient(build_app(runtime), raise_server_exceptions=False) as client:
        yield Serving(runtime, client, secrets)


@pytest.fixture
def admin(serving: Serving) -> TestClient:
    """A client that may do everything."""
    serving.anonymous.headers.update(serving.headers(Scope.ADMIN))
    return serving.anonymous


def all_pages(client: TestClient, path: str) -> list[dict[str, Any]]:
    """The items of all pages of a list."""
    items: list[dict[str, Any]] = []
    query = ""
    while True:
        page = client.get(f"{path}{query}").json()
        items += page["items"]
        if page["next"] is None:
            return items
        query = f"{'&' if '?' in path else '?'}cursor={page['next']}"
