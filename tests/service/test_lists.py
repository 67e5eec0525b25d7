"""Lists of values over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import Serving, all_pages

from acefraud.core.scope import Scope


@pytest.fixture
def cards(admin: TestClient) -> TestClient:
    """A client of a service that has a list."""
    admin.put("/v1/lists/blocked_cards", json={"about": "reported stolen", "reason": "asked for"})
    return admin


def test_a_list_is_made_and_filled(serving: Serving, cards: TestClient) -> None:
    add = [{"value": f"c-{n}"} for n in range(5)] + [{"value": "c-9", "until": "2090-01-01", "reason": "called"}]
    body = cards.patch("/v1/lists/blocked_cards", json={"add": add, "reason": "the bank"}).json()

    assert body == {"name": "blocked_cards", "about": "reported stolen", "feed": None, "count": 6}
    assert cards.get("/v1/lists").json() == {"items": [body], "next": None}
    items = all_pages(cards, "/v1/lists/blocked_cards?limit=2")
    assert [item["value"] for item in items] == [each["value"] for each in add]
    assert items[0] == {
        "value": "c-0",
        "reason": "the bank",
        "who": "key for admin",
        "until": None,
        "transaction_id": None,
    }
    assert (items[-1]["reason"], items[-1]["until"]) == ("called", "2090-01-01T00:00:00Z")
    change = all_pages(cards, "/v1/playbook/changes")[0]
    assert (change["who"], change["reason"], change["subject"]) == ("key for admin", "the bank", "blocked_cards")


def test_values_are_taken_off_all_or_none(serving: Serving, cards: TestClient) -> None:
    cards.patch("/v1/lists/blocked_cards", json={"add": [{"value": "c-1"}, {"value": "c-2"}], "reason": "x"})
    wrong = cards.patch("/v1/lists/blocked_cards", json={"remove": ["c-1", "c-7"], "reason": "x"})

    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "remove.1")
    assert "c-7" not in wrong.text
    assert sorted(serving.runtime.playbook.get_list("blocked_cards").items) == ["c-1", "c-2"]
    assert cards.patch("/v1/lists/blocked_cards", json={"remove": ["c-1"], "reason": "x"}).json()["count"] == 1


def test_a_rule_may_refer_to_a_list(cards: TestClient) -> None:
    cards.patch("/v1/lists/blocked_cards", json={"add": [{"value": "c-1"}], "reason": "x"})
    cards.post("/v1/bullets", json={"content": "card in list blocked_cards", "always": "decline"})

    def verdict(card: str) -> Any:
        return cards.post("/v1/score", json={"id": "t", "facts": {"card": card, "amount": 5}}).json()["verdict"]

    assert (verdict("c-1"), verdict("c-2")) == ("DECLINE", "APPROVE")


def test_a_list_may_be_fed_by_outcomes(serving: Serving, admin: TestClient) -> None:
    feed = {"key": "card", "days": 90}
    made = admin.put("/v1/lists/burnt", json={"feed": feed, "reason": "x"}).json()

    assert made["feed"] == feed
    assert serving.runtime.playbook.get_list("burnt").feed is not None


def test_readers_see_personal_values_masked(serving: Serving, cards: TestClient) -> None:
    cards.patch("/v1/lists/blocked_cards", json={"add": [{"value": "4111111111111111"}], "reason": "x"})
    read, clear = (serving.anonymous.get("/v1/lists/blocked_cards", headers=serving.headers(each)) for each in _SCOPES)

    assert [each.json()["items"][0]["value"] for each in (read, clear)] == ["[card]", "4111111111111111"]


_SCOPES = (Scope.READ, Scope.ADMIN)


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("nothing", {"add": [{"value": "c"}], "reason": "x"}, 404, "name"),
        ("Blocked", {"add": [{"value": "c"}], "reason": "x"}, 422, "name"),
        ("blocked_cards", {"reason": "x"}, 422, "add"),
        ("blocked_cards", {"add": [{"value": "c"}]}, 422, "reason"),
        ("blocked_cards", {"add": [{"value": ""}], "reason": "x"}, 422, "add.0.value"),
        ("blocked_cards", {"add": [{"value": "c", "until": "2020-01-01"}], "reason": "x"}, 422, "add.0.until"),
    ],
)
def test_a_change_that_cannot_be_names_the_field(
    cards: TestClient, path: str, body: dict[str, Any], status: int, field: str
) -> None:
    answer = cards.patch(f"/v1/lists/{path}", json=body)

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (status, field)
