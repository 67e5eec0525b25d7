"""Thousands of requests, valid and not, made from the OpenAPI document: none breaks the server or the document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy
from tests.service.conftest import NOW
from tests.service.on_server import running

from acefraud.core.bullet import Policy
from acefraud.core.context_facts import ListItem
from acefraud.core.scope import Scope
from acefraud.core.transaction import Verdict
from acefraud.learning.learner import Learner
from acefraud.storage import open_playbook
from acefraud.storage.service_tables import KeyStore
from acefraud.storage.sqlite import SqliteLedger

schemathesis = pytest.importorskip("schemathesis")
pytestmark = [pytest.mark.long, pytest.mark.enable_socket]

LEAST_REQUESTS = 5_000
EXAMPLES = 110
"""Requests of each kind, at most, for every operation."""


@dataclass
class Told:
    """What a server answered."""

    sent: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)
    """The first answer of each kind that breaks the document, or shows that the server broke."""


def test_no_request_breaks_the_server_or_the_document(tmp_path: Path) -> None:
    book, told = tmp_path / "book.db", Told()
    secret, known = _prepared(book)
    with running(["--playbook", str(book)], tmp_path / "server.log", more=["--rate", "0"]) as server:
        document = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        document.config.generation.update(with_security_parameters=False)
        operations = [each.ok() for each in document.get_all_operations()]
        for operation in operations:
            for cases in _cases(operation, known):
                with suppress(Unsatisfiable):  # an operation that takes nothing has no invalid requests
                    _sending(cases, {"Authorization": f"Bearer {secret}"}, told)()

    assert told.broken == {}
    assert {status for status in told.statuses if status >= 500} == set()
    assert {status for status in told.statuses if status < 300} == {200, 201, 202}
    assert set(told.sent) == {operation.label for operation in operations}
    assert told.sent.total() >= LEAST_REQUESTS


def _cases(operation: Any, known: Mapping[str, str]) -> Iterator[SearchStrategy[Any]]:
    """Valid and invalid requests; those that name something also with what there is."""
    for mode in schemathesis.GenerationMode:
        yield operation.as_strategy(generation_mode=mode)
    named = {parameter.name: known[parameter.name] for parameter in operation.path_parameters}
    if named:
        yield operation.as_strategy(path_parameters=named)


def _sending(cases: SearchStrategy[Any], headers: dict[str, str], told: Told) -> Callable[[], None]:
    from schemathesis.checks import load_all_checks, not_a_server_error
    from schemathesis.core.failures import FailureGroup
    from schemathesis.specs.openapi import checks

    load_all_checks()
    wanted = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def send(case: Any) -> None:
        answer = case.call(headers=headers, timeout=60)
        told.sent[case.operation.label] += 1
        told.statuses[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=wanted, headers=headers)
        except FailureGroup as failed:
            what = f"{case.operation.label} {answer.status_code}"
            told.broken.setdefault(what, f"{failed.exceptions} {case.as_curl_command()} {answer.text}")

    return send


def _prepared(book: Path) -> tuple[str, dict[str, str]]:
    """A playbook with something of every kind in it: the secret of a key for everything, and the names of things."""
    with open_playbook(book) as playbook:
        policy = playbook.add_bullet("An emulator", policy=Policy(verdict=Verdict.DECLINE), who="ana")
        playbook.create_list("blocked_cards", who="ana")
        playbook.change_list("blocked_cards", added=[ListItem(value=f"card-{n}") for n in range(5)], who="ana")
        decision = Learner(playbook).decide_sync({"id": "t1", "facts": {"amount": 900, "vpn": True}})
        assert isinstance(playbook.ledger, SqliteLedger)
        _, secret = KeyStore(playbook.ledger).create("schemathesis", [Scope.ADMIN], who="ana", now=NOW)
    return secret, {"bullet_id": policy, "name": "blocked_cards", "decision_id": decision.id}
