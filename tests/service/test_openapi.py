"""The OpenAPI document: it describes every operation, with examples and with the problems it may answer with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from acefraud.service.app import build_app
from acefraud.service.options import ServiceOptions
from acefraud.service.problems import MEDIA_TYPE
from acefraud.service.runtime import Runtime

NEED_A_PAST = {
    "PATCH /v1/bullets/{bullet_id}",
    "POST /v1/bullets/{bullet_id}:snooze",
    "PUT /v1/lists/{name}",
    "PATCH /v1/lists/{name}",
    "POST /v1/rules:preview",
    "POST /v1/playbook:rollback",
    "PUT /v1/threshold",
}
"""Operations whose examples name a bullet, a list or a revision."""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    runtime = Runtime(ServiceOptions(store=tmp_path_factory.mktemp("described") / "book.db"))
    with TestClient(build_app(runtime)) as client:
        described: dict[str, Any] = client.get("/openapi.json").json()
    return described


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_every_operation_says_what_it_does(document: dict[str, Any]) -> None:
    silent = [name for name, each in _operations(document) if not (each.get("summary") and each.get("description"))]

    assert silent == []
    assert len(list(_operations(document))) >= 20


def test_every_body_has_an_example(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    def has_example(schema: dict[str, Any]) -> bool:
        if "$ref" in schema:
            return has_example(schemas[schema["$ref"].rpartition("/")[2]])
        return bool(schema.get("examples")) or any(has_example(each) for each in schema.get("oneOf", ()))

    bodies = {
        name: each["requestBody"]["content"]["application/json"]["schema"]
        for name, each in _operations(document)
        if "requestBody" in each
    }
    assert [name for name, schema in bodies.items() if not has_example(schema)] == []
    assert len(bodies) >= 8


def test_answers_are_described_as_they_are_sent(document: dict[str, Any]) -> None:
    decision = document["components"]["schemas"]["ExplainedDecision"]
    fields = decision["properties"]

    assert set(decision["required"]) == set(fields), "also those that clients do without"
    assert "additionalProperties" not in decision
    assert fields["correct"]["description"].endswith("null if it was not judged.")
    assert fields["decided_by"]["$ref"].endswith("/DecidingRule")
    assert not [name for name, field in fields.items() if "default" in field]


def test_every_operation_may_answer_with_problems(document: dict[str, Any]) -> None:
    for name, each in _operations(document):
        for status, answer in each["responses"].items():
            assert status.startswith("2") or list(answer["content"]) == [MEDIA_TYPE], (name, status)
        assert {"500", "503"} <= set(each["responses"]), name


def test_examples_are_accepted(admin: TestClient, document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    bodies = {name: each["requestBody"] for name, each in _operations(document) if "requestBody" in each}
    for name in sorted(set(bodies) - NEED_A_PAST):
        schema = bodies[name]["content"]["application/json"]["schema"]
        reference = schema.get("$ref") or schema["oneOf"][0]["$ref"]
        for example in schemas[reference.rpartition("/")[2]]["examples"]:
            answer = admin.request(*name.split(" "), json=example)
            assert answer.status_code in (200, 201, 202), (name, answer.text)
