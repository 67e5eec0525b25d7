"""Who may do what: over all routes of the application, so that a new one cannot be forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route
from starlette.testclient import TestClient
from tests.service.conftest import Serving
from tests.service.test_key_ring import Clock

from acefraud.core.scope import Scope, allows
from acefraud.service.access import SCOPE_OF
from acefraud.service.admission import RateLimit
from acefraud.service.app import build_app
from acefraud.service.options import ServiceOptions
from acefraud.service.runtime import FAILURES_AT_ONCE, FAILURES_PER_SECOND, Runtime
from acefraud.storage.service_tables import KeyStore
from acefraud.storage.sqlite import SqliteLedger

PUBLIC = {
    "/healthz",
    "/readyz",
    "/metrics",
    "/docs",
    "/docs/swagger-ui-bundle.js",
    "/docs/swagger-ui.css",
    "/openapi.json",
}
PROBLEM = "application/problem+json"
HERE = "http://127.0.0.1:8000"


class Guarded(NamedTuple):
    """A route, and the scope that it asks for."""

    method: str
    path: str
    scope: Scope


def guarded(client: TestClient) -> list[Guarded]:
    """All routes but the public ones. Fails if a route asks for no scope."""
    app = client.app
    assert isinstance(app, FastAPI)
    found = []
    for route in _routes(app.routes):
        if route.path in PUBLIC:
            continue
        assert isinstance(route, APIRoute)
        scopes = list(_scopes(route.dependant))
        assert len(scopes) == 1, f"{route.path} has to ask for one scope"
        path = route.path.replace("{", "").replace("}", "")
        found += [Guarded(method, path, scopes[0]) for method in route.methods or ()]
    return found


def _routes(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    for route in routes:
        router = getattr(route, "original_router", None)  # newer versions of FastAPI keep included routers whole
        if router is None:
            assert isinstance(route, Route)
            yield route
        else:
            yield from _routes(router.routes)


def _scopes(dependant: Dependant) -> Iterator[Scope]:
    scope = getattr(dependant.call, SCOPE_OF, None)
    if scope is not None:
        yield scope
    for dependency in dependant.dependencies:
        yield from _scopes(dependency)


def test_every_route_of_the_document_is_guarded_or_public(serving: Serving) -> None:
    routes = guarded(serving.anonymous)
    document = serving.anonymous.get("/openapi.json").json()
    listed = {
        (method.upper(), path.replace("{", "").replace("}", ""))
        for path, methods in document["paths"].items()
        for method in methods
        if path not in PUBLIC
    }

    assert {(route.method, route.path) for route in routes} == listed
    assert {route.scope for route in routes} == {Scope.DECIDE, Scope.OUTCOMES, Scope.READ, Scope.CURATE}


def test_what_changes_rules_asks_for_the_scope_to_curate(serving: Serving) -> None:
    writes = {each for each in guarded(serving.anonymous) if each.method not in ("GET", "HEAD")}
    reads = {"/v1/rules:read", "/v1/rules:preview"}

    assert {write.path for write in writes if write.scope is Scope.READ} == reads
    assert {write.path for write in writes if write.scope is Scope.DECIDE} >= {"/v1/decisions", "/v1/decisions:batch"}
    assert all(each.scope is Scope.READ for each in guarded(serving.anonymous) if each.method == "GET")


def test_without_a_key_every_route_is_a_401(serving: Serving) -> None:
    for each in guarded(serving.anonymous):
        answer = serving.anonymous.request(each.method, each.path, json={})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), each
        assert answer.headers["content-type"] == PROBLEM


def test_a_key_without_the_scope_gets_a_403_on_every_route_it_lacks(serving: Serving) -> None:
    for each in guarded(serving.anonymous):
        for scope in Scope:
            answer = serving.anonymous.request(each.method, each.path, json={}, headers=serving.headers(scope))
            if allows([scope], each.scope):
                assert answer.status_code not in (401, 403, 405, 500), (each, scope, answer.text)
            else:
                assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM), (each, scope)


def test_public_routes_need_no_key(serving: Serving) -> None:
    for path in PUBLIC:
        assert serving.anonymous.get(path).status_code == 200, path


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic YWRtaW46YWRtaW4=", "Bearer a b", "Bearer ace_0", "bearer \xff", "Bearer  "],
)
def test_a_malformed_header_is_a_401(serving: Serving, header: str) -> None:
    answer = serving.anonymous.get("/v1/playbook", headers={b"Authorization": header.encode("latin-1")})

    assert (answer.status_code, answer.headers["content-type"]) == (401, PROBLEM)


def test_a_secret_with_one_character_changed_is_a_401(serving: Serving) -> None:
    secret = serving.secrets[Scope.ADMIN]
    other = secret[:-1] + ("A" if secret[-1] != "A" else "B")

    assert serving.anonymous.get("/v1/playbook", headers={"Authorization": f"Bearer {other}"}).status_code == 401


def test_a_revoked_key_is_a_401(serving: Serving) -> None:
    ledger = serving.runtime.playbook.ledger
    assert isinstance(ledger, SqliteLedger)
    KeyStore(ledger).revoke("key for read", who="ana", now=datetime.now(UTC))
    answer = serving.anonymous.get("/v1/playbook", headers=serving.headers(Scope.READ))

    assert (answer.status_code, answer.json()["detail"]) == (401, "the key is unknown or was revoked")


def test_with_insecure_local_nobody_needs_a_key(store: Path, serving: Serving) -> None:
    runtime = Runtime(ServiceOptions(store=store, insecure_local=True))
    with TestClient(build_app(runtime), HERE, raise_server_exceptions=False) as client:
        for each in guarded(client):
            assert client.request(each.method, each.path, json={}).status_code not in (401, 403, 500), each
        added = client.post("/v1/bullets", json={"content": "An emulator: decline"}).json()["bullet"]["id"]
        wrong = client.get("/v1/playbook", headers={"Authorization": "Bearer ace_wrong"})

        assert runtime.playbook.ledger.history(added)[0].who == "anonymous"
        assert wrong.status_code == 401


def test_without_keys_only_this_machine_is_answered(store: Path, serving: Serving) -> None:
    rule = {"content": "An emulator: decline"}
    local = ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8000"]
    foreign = ["evil.example", "evil.example:8000", "localhost.evil.example", "10.0.0.1", "0.0.0.0", "[::", ""]
    runtime = Runtime(ServiceOptions(store=store, insecure_local=True))
    with TestClient(build_app(runtime), HERE, raise_server_exceptions=False) as client:
        for host in local:
            assert client.get("/v1/playbook", headers={"Host": host}).status_code == 200, host
            own_page = {"Origin": f"http://{host}"}
            assert client.get("/v1/playbook", headers=own_page).status_code == 200, host
        for host in foreign:
            answer = client.post("/v1/bullets", json=rule, headers={"Host": host})
            assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM), host
            assert "localhost" in answer.json()["detail"]
        for origin in [*(f"https://{host}" for host in foreign), "null"]:
            answer = client.post("/v1/bullets", json=rule, headers={"Origin": origin})
            assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM), origin
            assert "other sites" in answer.json()["detail"]
    with_key = {**serving.headers(Scope.READ), "Host": "fraud.example", "Origin": "https://console.example"}
    assert serving.anonymous.get("/v1/playbook", headers=with_key).status_code == 200


def test_too_many_requests_are_a_429_that_says_when_to_come_back(store: Path, serving: Serving) -> None:
    runtime = Runtime(ServiceOptions(store=store, rate=0.5, burst=2))
    with TestClient(build_app(runtime), raise_server_exceptions=False) as client:
        reader, curator = (serving.headers(each) for each in (Scope.READ, Scope.ADMIN))
        answers = [client.get("/v1/threshold", headers=reader) for _ in range(4)]

        assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 4
        assert answers[-1].headers["content-type"] == PROBLEM
        assert client.get("/v1/threshold", headers=curator).status_code == 200


def _guess(client: TestClient, number: int) -> int:
    headers = {"Authorization": f"Bearer ace_{number:012x}_{'x' * 43}"}
    return client.get("/v1/threshold", headers=headers).status_code


@pytest.fixture
def guessed_at(store: Path, serving: Serving) -> Iterator[TestClient]:
    """A client of a service whose clock for failures stands still."""
    runtime = Runtime(ServiceOptions(store=store))
    runtime.failures = RateLimit(FAILURES_PER_SECOND, FAILURES_AT_ONCE, clock=Clock())
    with TestClient(build_app(runtime), raise_server_exceptions=False) as client:
        yield client


def test_guessing_keys_is_slowed_down_by_address(serving: Serving, guessed_at: TestClient) -> None:
    reader, admin = (serving.headers(each) for each in (Scope.READ, Scope.ADMIN))
    assert guessed_at.get("/v1/threshold", headers=reader).status_code == 200
    answers = [_guess(guessed_at, number) for number in range(FAILURES_AT_ONCE + 5)]

    assert answers == [401] * FAILURES_AT_ONCE + [429] * 5
    refused = guessed_at.get("/v1/threshold")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.headers["content-type"] == PROBLEM
    assert guessed_at.get("/v1/threshold", headers=reader).status_code == 200, "a key that has worked goes on working"
    assert guessed_at.get("/v1/threshold", headers=admin).status_code == 429, "a right guess is not told apart"
    elsewhere = TestClient(guessed_at.app, client=("192.0.2.1", 1))
    assert elsewhere.get("/v1/threshold", headers=admin).status_code == 200


def test_one_ipv6_network_is_one_address(guessed_at: TestClient) -> None:
    def guess_from(host: str, number: int) -> int:
        return _guess(TestClient(guessed_at.app, client=(host, 1)), number)

    answers = [guess_from(f"2001:db8:0:1::{number:x}", number) for number in range(FAILURES_AT_ONCE + 1)]
    assert answers == [401] * FAILURES_AT_ONCE + [429]
    assert guess_from("2001:db8:0:2::1", 1) == 401


def test_requests_beyond_the_scopes_of_a_key_count_as_its_requests(store: Path, serving: Serving) -> None:
    runtime = Runtime(ServiceOptions(store=store, rate=0.5, burst=2))
    with TestClient(build_app(runtime), raise_server_exceptions=False) as client:
        headers = serving.headers(Scope.DECIDE)
        answers = [client.get("/v1/threshold", headers=headers).status_code for _ in range(3)]

    assert answers == [403, 403, 429]


def test_a_batch_counts_as_many_requests_as_it_has_items(store: Path, serving: Serving) -> None:
    runtime = Runtime(ServiceOptions(store=store, rate=0.5, burst=10))
    with TestClient(build_app(runtime), raise_server_exceptions=False) as client:
        headers = serving.headers(Scope.DECIDE)

        def decide(count: int) -> tuple[int, int]:
            orders = [{"id": f"t{n}", "facts": {"amount": n}} for n in range(count)]
            answer = client.post("/v1/decisions:batch", json={"transactions": orders}, headers=headers)
            return answer.status_code, int(answer.headers.get("retry-after", 0))

        assert decide(8) == (200, 0)
        status, wait = decide(8)
        assert status == 429
        assert 6 <= wait <= 12, "two of the ten are left, and one more comes every two seconds"
        assert decide(2) == (200, 0)

        def report(count: int) -> int:
            truths = [{"id": f"o{n}", "transaction_id": f"t{n}", "label": "fraud"} for n in range(count)]
            return client.post(
                "/v1/outcomes", json={"outcomes": truths}, headers=serving.headers(Scope.OUTCOMES)
            ).status_code

        assert [report(50), report(1)] == [202, 429], "more than a burst takes all of it"


def test_the_log_names_the_caller_of_requests_that_are_refused(
    store: Path, serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "acefraud.requests")
    runtime = Runtime(ServiceOptions(store=store, rate=0.5, burst=2))
    with TestClient(build_app(runtime), raise_server_exceptions=False) as client:
        reader = serving.headers(Scope.READ)
        client.get("/v1/threshold", headers=reader)
        client.post("/v1/score", json={"id": "t1"}, headers=reader)
        client.get("/v1/threshold", headers=reader)

    said = [
        (vars(record)["status"], vars(record).get("caller")) for record in caplog.records if record.message == "request"
    ]
    assert said == [(status, "key for read") for status in (200, 403, 429)]


def _chunks(size: int) -> Iterator[bytes]:
    yield b'{"id": "'
    for _ in range(size // 1_000):
        yield b"x" * 1_000
    yield b'"}'


@pytest.mark.parametrize("told", [True, False], ids=["with content-length", "in chunks"])
def test_a_body_over_the_limit_is_a_413(store: Path, serving: Serving, told: bool) -> None:
    runtime = Runtime(ServiceOptions(store=store, most_bytes=5_000))
    with TestClient(build_app(runtime), raise_server_exceptions=False) as client:
        body: Any = b"".join(_chunks(20_000)) if told else _chunks(20_000)
        headers = {**serving.headers(Scope.DECIDE), "Content-Type": "application/json"}
        answer = client.post("/v1/decisions", content=body, headers=headers)

        assert (answer.status_code, answer.headers["content-type"]) == (413, PROBLEM)
        assert answer.json()["detail"] == "the body is larger than 5,000 bytes"
        small = client.post("/v1/decisions", json={"id": "t1", "facts": {"amount": 5}}, headers=headers)
        assert small.status_code == 200


def test_unknown_routes_and_wrong_methods_are_problems(admin: TestClient) -> None:
    for answer, status in ((admin.get("/v1/nothing"), 404), (admin.delete("/v1/playbook"), 405)):
        assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
        assert answer.json()["status"] == status
    assert admin.delete("/v1/playbook").headers["allow"] == "GET"
