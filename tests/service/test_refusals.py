"""What a refused request is told: the field that is wrong, and what was expected, in plain words."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient
from tests.service.conftest import Serving

from acefraud.core.scope import Scope

ORDER: dict[str, Any] = {"id": "t1", "facts": {"amount": 900, "vpn": True}}
OUTCOME: dict[str, Any] = {"id": "o1", "transaction_id": "t1", "label": "fraud"}
LABEL = 'expected "fraud" or "legitimate"'
FINITE = "expected a finite number; leave out what is unknown"
FACT = "expected a number, a text or true/false"
TIME = "expected a time such as 2026-03-01T02:14:00Z"
ONE_OR_MANY = 'expected a JSON object: an outcome, or `{"outcomes": [...]}` with many'


def faults(answer: Any, status: int = 422) -> dict[str, str]:
    """What is wrong by field. The detail names the first."""
    problem = answer.json()
    assert answer.status_code == status, problem
    told = {each["field"]: each["message"] for each in problem["errors"]}
    assert len(told) == len(problem["errors"])
    assert problem["detail"] == ": ".join(next(iter(told.items())))
    return told


BAD_REPORTS: list[tuple[Any, dict[str, str]]] = [
    ({"outcomes": [{**OUTCOME, "label": "legit"}]}, {"outcomes.0.label": LABEL}),
    ({**OUTCOME, "label": "legit"}, {"label": LABEL}),
    ({**OUTCOME, "source": "rumour"}, {"source": 'expected "label", "chargeback" or "analyst"'}),
    ({"outcomes": []}, {"outcomes": "expected at least one"}),
    ({"outcomes": [OUTCOME] * 5_001}, {"outcomes": "expected at most 5,000 of them"}),
    ({"outcomes": OUTCOME}, {"outcomes": "expected a list"}),
    ({"outcomes": [5]}, {"outcomes.0": "expected a JSON object"}),
    ([OUTCOME], {"body": ONE_OR_MANY}),
    ("fraud", {"body": ONE_OR_MANY}),
    ({**OUTCOME, "lable": 1}, {"lable": "there is no such field; did you mean label?"}),
    ({"outcomes": [OUTCOME], "who": 1}, {"who": "there is no such field; there are outcomes"}),
]
BAD_FIELDS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"facts": {"amount": [1]}}, {"facts.amount": FACT}),
    ({"facts": {"amount": {"value": 1}}}, {"facts.amount": FACT}),
    ({"facts": {"amount": 10**400}}, {"facts.amount": FINITE}),
    ({"facts": [5]}, {"facts": "expected a JSON object"}),
    ({"facts": {}}, {"facts": "expected at least one fact or a text"}),
    ({"fact": {}}, {"fact": "there is no such field; did you mean facts?"}),
    ({"qqq": 1}, {"qqq": "there is no such field; there are id, time, facts, text, entities"}),
    ({"id": ""}, {"id": "expected a text that is not empty"}),
    ({"id": "x" * 201}, {"id": "expected at most 200 characters"}),
    ({"id": 5, "time": "soon"}, {"id": "expected a text", "time": TIME}),
    ({"id": "\x00"}, {"id": "expected text without control characters"}),
    ({"entities": {"card": 5}}, {"entities.card": "expected a text"}),
]


def test_a_bad_report_is_told_its_own_faults_alone(admin: TestClient) -> None:
    for body, told in BAD_REPORTS:
        assert faults(admin.post("/v1/outcomes", json=body)) == told


def test_a_bad_transaction_is_told_in_plain_words(admin: TestClient) -> None:
    for change, told in BAD_FIELDS:
        assert faults(admin.post("/v1/score", json=ORDER | change)) == told
        batch = admin.post("/v1/decisions:batch", json={"transactions": [ORDER, ORDER | change]})
        assert faults(batch) == {f"transactions.1.{field}": message for field, message in told.items()}


def test_a_missing_field_is_named(admin: TestClient) -> None:
    assert faults(admin.post("/v1/score", json={"text": "$5"})) == {"id": "this field is missing"}
    assert faults(admin.post("/v1/score")) == {"body": "expected a JSON object"}


def test_numbers_flags_and_names_are_told_in_plain_words(admin: TestClient) -> None:
    listed = admin.get("/v1/decisions?limit=0&least_probability=2&verdict=no")
    assert faults(listed) == {
        "verdict": 'expected "APPROVE", "DECLINE" or "REVIEW"',
        "least_probability": "expected a number of at most 1",
        "limit": "expected a number of at least 1",
    }
    assert faults(admin.post("/v1/playbook:rollback", json={"revision": 1.5, "preview": "no way"})) == {
        "revision": "expected a whole number",
        "preview": "expected true or false",
    }
    name = "expected up to 64 lower-case letters, digits and `_`, starting with a letter"
    assert faults(admin.get("/v1/lists/Cards")) == {"name": name}
    keyed = admin.post("/v1/decisions", json=ORDER, headers={"Idempotency-Key": "two words"})
    assert faults(keyed) == {"Idempotency-Key": "expected printable ASCII characters without spaces"}


def test_broken_json_is_told_by_line_and_column(admin: TestClient) -> None:
    places = {'{"id": "t1",\n "facts": }': "line 2, column 11", '{"id":': "line 1, column 7"}
    for body, at in places.items():
        answer = admin.post("/v1/score", content=body, headers={"Content-Type": "application/json"})
        assert faults(answer, 400) == {"body": f"expected valid JSON, but it goes wrong at {at}"}


def test_a_body_that_is_not_said_to_be_json_is_a_415(admin: TestClient) -> None:
    headers: list[dict[str, str]] = [{}, {"Content-Type": "application/x-www-form-urlencoded"}]
    for header in headers:
        answer = admin.post("/v1/score", content=b'{"id": "t1"}', headers=header)
        assert answer.status_code == 415
        assert "Content-Type: application/json" in answer.json()["detail"]


def test_a_number_that_no_float_holds_is_told_without_cells(admin: TestClient) -> None:
    for number in ("1e400", "NaN", "-Infinity"):
        body = f'{{"id": "t1", "facts": {{"amount": {number}}}}}'
        answer = admin.post("/v1/score", content=body, headers={"Content-Type": "application/json"})
        assert faults(answer) == {"facts.amount": FINITE}


def test_other_content_is_told_how_to_decide_again(admin: TestClient) -> None:
    other = {**ORDER, "facts": {"amount": 1}}
    admin.post("/v1/decisions", json=ORDER)
    admin.post("/v1/decisions", json={**ORDER, "id": "t2"}, headers={"Idempotency-Key": "t2"})
    ways_out = [
        admin.post("/v1/decisions", json=other),
        admin.post("/v1/decisions", json={**other, "id": "t2"}, headers={"Idempotency-Key": "t2"}),
    ]
    for answer, each in zip(ways_out, ("t1", "t2"), strict=True):
        assert (answer.status_code, answer.json()["detail"]) == (
            409,
            f"transaction '{each}' was decided with other content; send what you sent before, or a new Idempotency-Key "
            "(`idempotency_key` in Python) to decide it again with this content",
        )
    assert admin.post("/v1/decisions", json=other, headers={"Idempotency-Key": "again"}).status_code == 200
    clash = admin.post("/v1/decisions", json={**ORDER, "id": "t3"}, headers={"Idempotency-Key": "t2"})
    assert clash.json()["detail"] == "key 't2' was used for transaction 't2'; send another key"


def test_a_trace_with_an_unknown_bullet_names_the_field_that_was_sent(admin: TestClient) -> None:
    trace = {"transaction": ORDER, "verdict": "DECLINE", "bullet_ids": ["b-0"]}
    assert faults(admin.post("/v1/traces", json=trace)) == {"bullet_ids": "there is no bullet 'b-0' in this playbook"}
    empty = {"transaction": {"id": "t1"}, "verdict": "DECLINE"}
    told = {"transaction.facts": "expected at least one fact or a text"}
    assert faults(admin.post("/v1/traces", json=empty)) == told


def test_outcomes_that_contradict_each_other_in_one_request_are_told_by_place(admin: TestClient) -> None:
    twice = {"outcomes": [OUTCOME, {**OUTCOME, "label": "legitimate"}]}
    own_id = "give a revised outcome an id of its own"
    told = {"outcomes.1.id": f"the outcome 'o1' is given twice and says two things; {own_id}"}
    assert faults(admin.post("/v1/outcomes", json=twice), 409) == told

    admin.post("/v1/outcomes", json=OUTCOME)
    again = {"outcomes": [{**OUTCOME, "id": "o2"}, {**OUTCOME, "label": "legitimate"}]}
    told = {"outcomes.1.id": f"the outcome 'o1' was received before and said something else; {own_id}"}
    assert faults(admin.post("/v1/outcomes", json=again), 409) == told


def test_unknown_parameters_are_refused_with_the_nearest_one(admin: TestClient) -> None:
    misspelt = admin.get("/v1/decisions?verdit=DECLINE")
    assert misspelt.status_code == 422
    assert misspelt.json()["errors"] == [
        {"field": "verdit", "message": "there is no parameter 'verdit'; did you mean verdict?"}
    ]
    assert admin.get("/v1/lists?q=1").json()["detail"] == "there is no parameter 'q'; there are limit, cursor"
    assert admin.get("/v1/threshold?q=1").json()["detail"] == "there is no parameter 'q'; this route takes none"
    assert admin.post("/v1/decisions?dry_run=true", json=ORDER).status_code == 422
    assert admin.get("/v1/decisions").json()["items"] == []
    for path in ("/healthz", "/readyz", "/metrics"):
        assert admin.get(f"{path}?at=17").status_code == 200


def test_a_cursor_of_another_list_is_refused(admin: TestClient) -> None:
    for n in range(3):
        admin.post("/v1/decisions", json={**ORDER, "id": f"t{n}"})
        admin.post("/v1/bullets", json={"content": f"Amount above {n + 7}00: decline"})
        values = {"add": [{"value": "a"}, {"value": "b"}], "reason": "seen"}
        admin.put(f"/v1/lists/cards_{n}", json={"reason": "asked for"})
        admin.patch(f"/v1/lists/cards_{n}", json=values)
    paged = [
        "/v1/decisions",
        "/v1/outcomes/pending",
        "/v1/playbook",
        "/v1/playbook/changes",
        "/v1/lists",
        "/v1/lists/cards_0",
        "/v1/lists/cards_1",
    ]
    cursors = {path: admin.get(f"{path}?limit=1").json()["next"] for path in paged}
    for path in paged:
        for given, cursor in cursors.items():
            answer = admin.get(f"{path}?limit=1&cursor={cursor}")
            assert answer.status_code == (200 if given == path else 422), (path, given)


def test_a_verdict_may_be_written_in_lower_case(admin: TestClient) -> None:
    trace = {"transaction": ORDER, "verdict": "decline"}
    assert admin.post("/v1/traces", json=trace).json()["decision"]["verdict"] == "DECLINE"
    assert len(admin.get("/v1/decisions?verdict=decline").json()["items"]) == 1
    assert admin.get("/v1/decisions?verdict=approve").json()["items"] == []


def test_a_path_without_a_route_says_where_the_routes_are(admin: TestClient) -> None:
    unknown, twice = admin.get("/v1/decision"), admin.get("/v1/v1/decisions")
    assert unknown.json()["detail"] == "there is no such route; /docs and /openapi.json list all of them"
    assert "the path has /v1 twice" in twice.json()["detail"]


def test_a_wrong_method_is_told_all_that_there_are(admin: TestClient) -> None:
    allowed = {
        "/v1/decisions": "GET, POST",
        "/v1/decisions/d-1": "GET",
        "/v1/bullets/b-1": "GET, PATCH",
        "/v1/lists/cards": "GET, PUT, PATCH",
        "/healthz": "GET, HEAD",
    }
    for path, methods in allowed.items():
        answer = admin.delete(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)
        assert answer.json()["detail"] == f"this route takes {methods}"


def test_a_load_balancer_may_ask_for_the_headers_alone(serving: Serving) -> None:
    for path in ("/healthz", "/readyz"):
        assert serving.anonymous.head(path).status_code == 200


def test_a_key_without_the_scope_is_told_how_to_get_one(serving: Serving) -> None:
    asked = serving.anonymous.post("/v1/decisions", json=ORDER, headers=serving.headers(Scope.READ))
    makes_one = "`acefraud keys create NAME --scope decide` makes one that has it"
    assert asked.json()["detail"] == f"the key 'key for read' lacks the scope 'decide'; {makes_one}"
    trace = {"transaction": ORDER, "verdict": "DECLINE", "label": "fraud"}
    labelled = serving.anonymous.post("/v1/traces", json=trace, headers=serving.headers(Scope.DECIDE))
    assert labelled.status_code == 403
    assert "a label needs another scope" in labelled.json()["detail"]
    assert "--scope outcomes" in labelled.json()["detail"]


def test_a_rule_that_is_not_understood_is_told_what_to_do(admin: TestClient) -> None:
    answer = admin.post("/v1/bullets", json={"content": "decline flurbs"})
    assert answer.json()["detail"] == (
        "not understood: 'flurbs'. `GET /v1/facts` lists what a rule can be about; `as_note` keeps it as a note."
    )
    assert "vpn" in admin.post("/v1/rules:read", json={"content": "vpm: decline"}).json()["did_you_mean"]
