"""What the clients send, and what they make of the answers."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.client.loopback_service import BULLET, KEY, TIME, Failure, LoopbackService

from acefraud import AsyncClient, Client, Outcome, Status, Transaction, Verdict
from acefraud.client import Receipt
from acefraud.core.review_rule import ReviewRule
from acefraud.errors import ConfigurationError, InputError, ServiceConflict, ServiceError

pytestmark = pytest.mark.enable_socket
PAYMENT = {"id": "t1", "facts": {"amount": 900, "vpn": True}}
START = datetime.fromisoformat(TIME)


# --- decisions and outcomes ---------------------------------------------------------------------------------------


def test_a_decision(client: Any, service: LoopbackService) -> None:
    decision = client.decide(PAYMENT)
    assert (decision.decision_id, decision.transaction_id, decision.verdict) == ("d-1", "t1", Verdict.DECLINE)
    assert (decision.probability, decision.playbook_revision, decision.time) == (0.75, 3, START)
    (reason,) = decision.reasons
    assert (reason.bullet_id, reason.content, reason.weight) == ("b-1", "VPN: decline", 1.5)
    (request,) = service.received
    assert (request.method, request.path, request.body) == ("POST", "/v1/decisions", PAYMENT)
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"id": 7, "facts": {"amount": 5, "age": None}}, {"id": "7", "facts": {"amount": 5.0}}),
        (
            Transaction(id="t1", time=START, facts={"vpn": True}, text="$5", entities={"card": "c1"}),
            {
                "id": "t1",
                "time": "2025-01-06T09:30:00Z",
                "facts": {"vpn": True},
                "text": "$5",
                "entities": {"card": "c1"},
            },
        ),
        ("$7 purchase", {"id": "tx-4a24fdf7b296", "text": "$7 purchase"}),
    ],
    ids=["dict", "Transaction", "text"],
)
def test_what_a_transaction_can_be(client: Any, service: LoopbackService, given: Any, sent: Any) -> None:
    client.score(given)
    assert service.received[0].body == sent


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (5, "transaction: expected a Transaction, a dict or a text, got the int 5"),
        ("  ", "expected a transaction, got an empty text"),
        ({"facts": {"vpn": True}}, "transaction: id: this field is missing$"),
        ({"id": "t1"}, "^transaction: a transaction needs facts or text$"),
        ({"id": "t1", "text": "$5", "fact": 1}, "^transaction: fact: there is no such field; did you mean facts[?]$"),
        ({"id": "t1", "facts": {"card_number": [4111111111111111]}}, "expected a number, a flag or text"),
        ({"id": "t1", "text": "\ud800"}, "transaction: text: "),
    ],
)
def test_what_is_no_transaction_is_not_sent(client: Any, service: LoopbackService, given: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        client.decide(given)
    assert "4111" not in str(caught.value)
    assert not service.received


def test_many_decisions_in_one_request(client: Any, service: LoopbackService) -> None:
    made = client.decide_batch([{**PAYMENT, "id": name} for name in "abc"])
    assert [each.transaction_id for each in made] == ["a", "b", "c"]
    assert len(service.received) == 1
    with pytest.raises(InputError, match="use `decide` for one"):
        client.decide_batch(PAYMENT)
    with pytest.raises(InputError, match=r"transactions\[1\]"):
        client.decide_batch([PAYMENT, 5])


def test_a_score_has_no_decision(client: Any, service: LoopbackService) -> None:
    scored = client.score(PAYMENT)
    assert (scored.verdict, scored.probability, scored.time) == ("DECLINE", 0.75, START)
    assert not service.decided


def test_a_recorded_decision_is_explained(client: Any) -> None:
    explained = client.decision(client.decide(PAYMENT).decision_id)
    assert (explained.threshold, explained.stages[0].stage, explained.stages[0].left) == (0.5, "quality", 3)


def test_decisions_are_fetched_page_by_page(client: Any, service: LoopbackService) -> None:
    client.decide_batch([{**PAYMENT, "id": f"t{n}"} for n in range(5)])
    found = client.decisions(since=START, verdict="decline", bullet="b-1", least_probability=0.0, most_probability=0.9)
    assert [each.transaction_id for each in found] == ["t0", "t1", "t2", "t3", "t4"]
    filters = {
        "since": TIME,
        "verdict": "DECLINE",
        "bullet": "b-1",
        "least_probability": "0.0",
        "most_probability": "0.9",
    }
    pages = [request.params for request in service.received if request.method == "GET"]
    assert pages == [filters, {**filters, "cursor": "2"}, {**filters, "cursor": "4"}]


def test_no_more_pages_are_fetched_than_are_looked_at(service: LoopbackService) -> None:
    with Client(service.url, api_key=KEY) as client:
        client.decide_batch([{**PAYMENT, "id": f"t{n}"} for n in range(5)])
        assert next(client.decisions()).transaction_id == "t0"
    assert len([request for request in service.received if request.method == "GET"]) == 1


def test_outcomes_are_reported_once(client: Any, service: LoopbackService) -> None:
    fraud = Outcome(transaction_id="t1", is_fraud=True, source="chargeback", at=START)
    (receipt,) = client.report(fraud)
    assert (receipt.id, receipt.status) == (fraud.key, "received")
    again, other = client.report([fraud, {"id": "o-2", "transaction_id": "t2", "label": "legitimate"}])
    assert (again.status, other.id, other.status) == ("known", "o-2", "received")
    assert service.received[1].body["outcomes"] == [
        {"id": fraud.key, "transaction_id": "t1", "label": "fraud", "source": "chargeback", "time": TIME},
        {"id": "o-2", "transaction_id": "t2", "label": "legitimate", "source": "label"},
    ]


def test_receipts_carry_the_warnings_of_the_report(client: Any, service: LoopbackService) -> None:
    fraud, receipt = {"id": "o-1", "transaction_id": "t1", "label": "fraud"}, {"id": "o-1", "status": "received"}
    assert client.report(fraud).warnings == (), "an older service sends none"
    service.answer = {"outcomes": [receipt], "warnings": ["its time is before the transaction"]}
    receipts = client.report(fraud)
    assert receipts.warnings == ("its time is before the transaction",)
    assert receipts == (Receipt(id="o-1", status="received"),)
    assert pickle.loads(pickle.dumps(receipts)).warnings == receipts.warnings


def test_an_id_is_made_from_what_an_outcome_says(client: Any, service: LoopbackService) -> None:
    one = {"transaction_id": "t1", "label": "fraud", "time": TIME}
    client.report([one, one, {**one, "label": "legitimate"}, {**one, "transaction_id": "t2"}])
    ids = [sent["id"] for sent in service.received[0].body["outcomes"]]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_a_label_can_be_revised_back(client: Any) -> None:
    labels = ("fraud", "legitimate", "fraud")
    receipts = [client.report({"transaction_id": "t1", "label": label})[0] for label in labels]
    assert [receipt.status for receipt in receipts] == ["received"] * 3


def test_labels_that_there_are_not(client: Any, service: LoopbackService) -> None:
    for label in ("yes", True, None):
        with pytest.raises(InputError, match=r"outcomes\[0\]: label: expected fraud or legitimate"):
            client.report([{"transaction_id": "t1", "label": label}])
    with pytest.raises(InputError, match="outcome: is_fraud"):
        client.report({"transaction_id": "t1"})
    assert not service.received


def test_pending_decisions(client: Any) -> None:
    client.decide_batch([{**PAYMENT, "id": f"t{n}"} for n in range(3)])
    assert [(each.transaction_id, each.decision_id) for each in client.pending()] == [
        ("t0", "d-1"),
        ("t1", "d-2"),
        ("t2", "d-3"),
    ]


# --- rules and lists ----------------------------------------------------------------------------------------------


def test_a_rule_is_added_edited_pinned_and_retired(client: Any, service: LoopbackService) -> None:
    added = client.add_rule("VPN: decline", reason="seen often", always=Verdict.DECLINE, priority=0, final=True).bullet
    assert service.received[-1].body == {
        "content": "VPN: decline",
        "reason": "seen often",
        "always": "decline",
        "priority": 0,
        "final": True,
    }
    edited = client.edit_rule(added.id, "VPN and emulator: decline", reason="too broad").bullet
    assert (edited.id, edited.content) == (added.id, "VPN and emulator: decline")
    assert service.received[-1].body == {"content": "VPN and emulator: decline", "reason": "too broad"}
    assert client.pin(added.id, reason="law").bullet.status == Status.PINNED
    assert client.retire(added.id, reason="it faded").bullet.status == Status.RETIRED
    assert client.set_status(added.id, "active", reason="it is back").bullet.status == Status.ACTIVE
    assert service.received[-1].body == {"status": "active", "reason": "it is back"}
    shown = client.bullet(added.id)  # whose id has a blank and a slash in it
    assert ([each.kind for each in shown.history], shown.history_next) == (["bullet_added"], None)
    assert [(each.subject, each.revision) for each in client.history(added.id)] == [(added.id, n) for n in range(3)]
    client.add_rule("b")
    client.add_rule("c")
    assert service.received[-1].body == {"content": "c"}
    assert [each.content for each in client.playbook()] == ["VPN and emulator: decline", "b", "c"]


def test_changes_and_rollback(client: Any, service: LoopbackService) -> None:
    assert [change.revision for change in client.changes()] == [0, 1, 2, 3, 4]
    assert client.rollback(2, reason="a mistake").revision == 2
    assert service.received[-1].body == {"revision": 2, "reason": "a mistake"}


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (
            lambda client: client.preview_rule("VPN: decline", bullet_id="b-1", status="retired"),
            ("POST", "/v1/rules:preview", {"content": "VPN: decline", "bullet_id": "b-1", "status": "retired"}),
        ),
        (
            lambda client: client.snooze("b-1", key="card", value="c-1", until=START, reason="w"),
            ("POST", "/v1/bullets/b-1:snooze", {"key": "card", "value": "c-1", "until": TIME, "reason": "w"}),
        ),
        (
            lambda client: client.put_list("watched", about="a", frauds_of="card", days=90, reason="w"),
            ("PUT", "/v1/lists/watched", {"about": "a", "feed": {"key": "card", "days": 90}, "reason": "w"}),
        ),
        (
            lambda client: client.change_list("watched", add=["A"], remove=["B"], until=START, reason="w"),
            ("PATCH", "/v1/lists/watched", {"add": [{"value": "A", "until": TIME}], "remove": ["B"], "reason": "w"}),
        ),
        (
            lambda client: client.set_threshold(0.6, review=ReviewRule(between=(0.4, 0.7)), reason="w"),
            ("PUT", "/v1/threshold", {"threshold": 0.6, "review": {"between": [0.4, 0.7]}, "reason": "w"}),
        ),
        (
            lambda client: client.set_threshold(0.6, reason="w"),
            ("PUT", "/v1/threshold", {"threshold": 0.6, "reason": "w"}),
        ),
        (
            lambda client: client.set_threshold(no_review=True, reason="w"),
            ("PUT", "/v1/threshold", {"review": None, "reason": "w"}),
        ),
        (
            lambda client: client.trace(PAYMENT, "APPROVE", is_fraud=False, reasoning="r", bullet_ids=["b-1"]),
            (
                "POST",
                "/v1/traces",
                {
                    "transaction": PAYMENT,
                    "verdict": "APPROVE",
                    "label": "legitimate",
                    "reasoning": "r",
                    "bullet_ids": ["b-1"],
                },
            ),
        ),
    ],
    ids=["preview", "snooze", "put_list", "change_list", "threshold", "only threshold", "no review", "trace"],
)
def test_what_other_methods_send(client: Any, service: LoopbackService, call: Any, sent: Any) -> None:
    """`test_against_the_service` has what a real service makes of it."""
    service.answer = []
    with pytest.raises(ServiceError, match="cannot be read"):
        call(client)
    (request,) = service.received
    assert (request.method, request.path, request.body) == sent


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.set_status("b-1", "gone", reason="w"),
        lambda client: client.add_rule("VPN", always="sometimes"),
        lambda client: client.decisions(verdict="MAYBE"),
        lambda client: client.decisions(bullet="\ud800"),
        lambda client: client.read_rule("\ud800"),
        lambda client: client.trace(PAYMENT, "MAYBE"),
        lambda client: client.preview_rule(),
        lambda client: client.preview_rule("VPN", status="gone"),
        lambda client: client.playbook(status="gone"),
        lambda client: client.playbook(source="hearsay"),
        lambda client: client.change_list("watched", add="ACME", reason="w"),
        lambda client: client.put_list("watched", days=5, reason="w"),
        lambda client: client.bullet(""),
        lambda client: client.bullet("x" * 2_000),
        lambda client: client.decision("\ud800"),
        lambda client: client.decide(PAYMENT, idempotency_key="two\nlines"),
        lambda client: client.decide(PAYMENT, idempotency_key="two words"),
        lambda client: client.decide(PAYMENT, idempotency_key="k" * 201),
        lambda client: client.decide(PAYMENT, idempotency_key=""),
        lambda client: client.decide(PAYMENT, idempotency_key="ключ"),
    ],
)
def test_what_cannot_be_meant_is_not_sent(client: Any, service: LoopbackService, call: Any) -> None:
    with pytest.raises(InputError):
        list(call(client))
    assert not service.received


def test_an_id_never_leads_to_another_route(client: Any, service: LoopbackService) -> None:
    service.answer = {**BULLET, "history": []}
    for name, path in (("..", "%2E%2E"), ("a/../b", "a%2F..%2Fb"), ("a?b#c", "a%3Fb%23c"), ("%2e", "%252e")):
        client.bullet(name)
        assert service.received[-1].path == f"/v1/bullets/{path}"


# --- errors -------------------------------------------------------------------------------------------------------


def test_an_error_says_what_the_service_said(client: Any) -> None:
    with pytest.raises(ServiceError) as caught:
        client.decide_batch([{"id": "t1", "facts": {"amount": -5}}])
    assert str(caught.value) == (
        "HTTP 422, Unprocessable Content: the transaction cannot be read: facts.amount: expected a positive number"
    )
    assert caught.value.status == 422
    assert caught.value.problem["errors"][0]["field"] == "facts.amount"


@pytest.mark.parametrize("detail", ["Field required", "content: Field required", "field 'content': Field required"])
def test_an_error_says_nothing_twice(client: Any, service: LoopbackService, detail: str) -> None:
    problem = {"title": "Unprocessable Entity", "detail": detail}
    faults = [{"field": "content", "message": "Field required"}, {"field": "why", "message": "too long"}]
    service.failures = [Failure(422, body=json.dumps({**problem, "errors": faults}).encode())]
    with pytest.raises(ServiceError) as caught:
        client.read_rule("VPN: decline")
    assert str(caught.value) == "HTTP 422, Unprocessable Entity: content: Field required; why: too long"


def test_the_same_key_with_another_transaction_is_a_conflict(client: Any) -> None:
    first = client.decide(PAYMENT, idempotency_key="k1")
    assert client.decide(PAYMENT, idempotency_key="k1") == first
    with pytest.raises(ServiceConflict, match="this key came with another transaction") as caught:
        client.decide({**PAYMENT, "id": "t2"}, idempotency_key="k1")
    assert caught.value.status == 409


def test_a_key_is_sent_if_it_is_given(client: Any, service: LoopbackService) -> None:
    client.decide(PAYMENT)
    client.decide(PAYMENT, idempotency_key="k1")
    assert [request.headers.get("Idempotency-Key") for request in service.received] == [None, "k1"]


@pytest.mark.parametrize("answer", [[], "yes", 5, {"verdict": "MAYBE"}, {"decision_id": None}])
def test_an_answer_that_is_none(client: Any, service: LoopbackService, answer: Any) -> None:
    service.answer = answer
    for call in (client.decide, lambda one: client.decide_batch([one])):
        with pytest.raises(ServiceError, match=r"cannot be read.*; is http://127.0.0.1:.* a decision service"):
            call(PAYMENT)


def test_the_key_is_in_no_repr_and_no_error(connect: Callable[..., Any]) -> None:
    wrong = "ace_ffffffffffff_" + "s" * 43
    client = connect(api_key=wrong)
    with pytest.raises(ServiceError, match="no such key: Bearer") as caught:  # a server that says the key back
        client.decide(PAYMENT)
    said = f"{caught.value!s} {caught.value!r} {caught.value.problem} {caught.value.__cause__!r} {client!r}"
    assert wrong not in said
    with pytest.raises(ConfigurationError) as refused:
        connect(api_key=f"{wrong}\n")
    assert wrong not in str(refused.value)


def test_reprs_name_the_service() -> None:
    assert repr(Client("https://a.example/fraud/", api_key=KEY)) == "Client('https://a.example/fraud', with a key)"
    assert repr(AsyncClient("http://a.example", api_key="")) == "AsyncClient('http://a.example', without a key)"


# --- the address and the key --------------------------------------------------------------------------------------


def test_the_key_of_the_environment_is_used_if_none_is_given(
    connect: Callable[..., Any], service: LoopbackService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACEFRAUD_API_KEY", KEY)
    connect(api_key=None).decide(PAYMENT)
    with pytest.raises(ServiceError, match="401"):
        connect(api_key="").decide(PAYMENT)
    assert "Authorization" not in service.received[-1].headers
    monkeypatch.delenv("ACEFRAUD_API_KEY")
    with pytest.raises(ServiceError, match="401"):
        connect(api_key=None).decide(PAYMENT)


def test_nothing_goes_to_a_proxy_that_only_the_environment_names(
    connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackService() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        connect().decide(PAYMENT)
        assert not proxy.received


def test_a_redirect_is_not_followed(client: Any, service: LoopbackService) -> None:
    with LoopbackService() as other:
        service.failures = [Failure(307, {"Location": f"{other.url}/v1/decisions"})]
        with pytest.raises(ServiceError, match="HTTP 307, Temporary Redirect"):
            client.decide(PAYMENT)
        assert not other.received


@pytest.mark.parametrize(
    "url",
    [
        "",
        "fraud.example.com",
        "ftp://a.example",
        "http://",
        "http://u:p@a.example",
        "http://a.example?x=1",
        "http://a.example:port",
        5,
    ],
)
def test_addresses_that_are_none(url: Any) -> None:
    with pytest.raises(ConfigurationError, match="url: "):
        Client(url)
    with pytest.raises(ConfigurationError, match="url: "):
        AsyncClient(url)


def test_a_service_can_stand_below_a_path(connect: Callable[..., Any], service: LoopbackService) -> None:
    client = connect(url=f"{service.url}/fraud/")
    with pytest.raises(ServiceError, match="there is no route POST /fraud/v1/score"):
        client.score(PAYMENT)


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, tuple[Any, Any]]:
        found = {name: var for name, var in vars(kind).items() if inspect.isfunction(var) and not name.startswith("_")}
        return {name: (inspect.signature(each).parameters, inspect.getdoc(each)) for name, each in found.items()}

    assert methods(Client) == methods(AsyncClient)
    assert {"decide", "decisions", "report", "trace", "close"} <= methods(Client).keys()


def test_a_subclass_of_a_client_keeps_the_methods_it_overrides() -> None:
    class Careful(Client):
        def pin(self, bullet_id: str, *, reason: str) -> Any:
            return f"{bullet_id} stays: {reason}"

    client = Careful("https://fraud.example.com", api_key="")
    assert client.pin("b-1", reason="test") == "b-1 stays: test"
    assert Careful.retire is Client.retire


def test_a_time_without_a_zone_is_read_as_utc(client: Any, service: LoopbackService) -> None:
    with pytest.warns(UserWarning, match="read as UTC"):
        list(client.decisions(since=datetime(2025, 1, 6), until=datetime(2025, 1, 7, tzinfo=UTC)))
    assert service.received[0].params == {"since": "2025-01-06T00:00:00+00:00", "until": "2025-01-07T00:00:00+00:00"}
