"""The playbook over HTTP: what is in it, what changed it, how to go back, and the threshold."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient
from tests.service.conftest import Serving, all_pages

from acefraud.core.bullet import Source, Status
from acefraud.core.scope import Scope
from acefraud.core.transaction import Case, Transaction


def test_bullets_are_listed_in_pages_with_what_decides(serving: Serving, admin: TestClient) -> None:
    book = serving.runtime.playbook
    ids = [book.add_bullet(f"Amount above {n},000: decline", source=Source.OFFLINE) for n in range(1, 8)]
    page = admin.get("/v1/playbook?limit=3").json()

    assert page["playbook_revision"] == book.snapshot().revision
    assert page["calibration"]["threshold"] == 0.5
    assert page["calibration"]["base_rate"] is None
    assert [each["id"] for each in all_pages(admin, "/v1/playbook?source=offline&limit=3")] == ids
    first = all_pages(admin, "/v1/playbook?source=manual")[0]
    assert (first["content"], first["condition"]) == (
        "VPN and a new device: decline",
        "new_device is true and vpn is true",
    )
    assert (first["status"], first["argues"], first["weight"], first["policy"]) == ("active", "DECLINE", None, None)


def test_retired_bullets_are_listed_only_if_asked_for(serving: Serving, admin: TestClient) -> None:
    book = serving.runtime.playbook
    gone = book.add_bullet("An emulator: decline", "another_node")
    book.set_status(gone, Status.RETIRED, who="ana")

    def ids(query: str) -> list[str]:
        return [page["id"] for page in all_pages(admin, f"/v1/playbook?{query}")]

    assert gone not in ids("")
    assert gone in ids("retired=true")
    assert ids("status=retired") == ids("retired=true&node=another_node") == [gone]


def test_a_claim_is_marked_as_a_claim_beside_the_evidence(serving: Serving, admin: TestClient) -> None:
    _study(serving)
    added = admin.post("/v1/bullets", json={"content": "Amount above 50: 95% fraud"})
    bullet = added.json()["bullet"]

    assert bullet["claim"] == {"fraud_share": 0.95, "words": "95% fraud", "measured": False}
    assert (bullet["evidence"]["support"], bullet["evidence"]["frauds"]) == (9, 3)
    assert bullet["evidence"]["low"] < bullet["evidence"]["precision"] < bullet["evidence"]["high"]
    assert bullet["evidence"]["words"].startswith("3 of 9 past cases were fraud")


def test_changes_are_listed_with_author_and_reason(serving: Serving, admin: TestClient) -> None:
    bullet = serving.runtime.playbook[0]
    admin.patch(f"/v1/bullets/{bullet.id}", json={"status": "pinned", "reason": "agreed on Monday"})
    changes = all_pages(admin, "/v1/playbook/changes?limit=1")

    assert [change["what"] for change in changes] == ["now pinned", "added"]
    assert (changes[0]["who"], changes[0]["reason"]) == ("key for admin", "agreed on Monday")
    assert (changes[0]["subject"], changes[0]["revision"]) == (bullet.id, serving.runtime.playbook.seq)


def test_a_rollback_can_be_previewed_and_done(serving: Serving, admin: TestClient) -> None:
    book = serving.runtime.playbook
    then = book.snapshot().revision
    added = book.add_bullet("An emulator: decline")
    admin.post("/v1/decisions", json={"id": "t1", "facts": {"emulator": True}})
    planned = admin.post("/v1/playbook:rollback", json={"revision": then, "preview": True}).json()

    assert (planned["retired"], planned["preview"]["decisions"]) == ([added], 1)
    assert book[added].status is Status.ACTIVE
    done = admin.post("/v1/playbook:rollback", json={"revision": then, "reason": "false alarms"}).json()
    assert {**done, "preview": planned["preview"]} == planned
    assert book[added].status is Status.RETIRED
    assert all_pages(admin, "/v1/playbook/changes")[0]["reason"] == "false alarms"


def test_a_rollback_needs_a_reason_and_a_revision_that_was(admin: TestClient) -> None:
    for body, field in (({"revision": 1}, "reason"), ({"revision": 99, "reason": "x"}, "revision")):
        answer = admin.post("/v1/playbook:rollback", json=body)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_the_threshold_is_set_once_something_was_learnt(serving: Serving, admin: TestClient) -> None:
    wanted = {"threshold": 0.6, "review": {"between": [0.4, 0.7]}, "reason": "reviewers have time"}
    early = admin.put("/v1/threshold", json=wanted)
    assert (early.status_code, early.json()["errors"][0]["field"]) == (422, "threshold")

    _study(serving)
    answer = admin.put("/v1/threshold", json=wanted).json()
    assert (answer["threshold"], answer["review"]["between"]) == (0.6, [0.4, 0.7])
    assert answer == admin.get("/v1/threshold").json()
    assert answer["words"] == (
        "declines from a fraud probability of 0.6; review from a fraud probability of 0.4 up to 0.7"
    )


def test_what_is_not_given_of_the_threshold_stays(serving: Serving, admin: TestClient) -> None:
    _study(serving)

    def put(**body: Any) -> Any:
        return admin.put("/v1/threshold", json={**body, "reason": "holidays"}).json()

    put(threshold=0.6, review={"between": [0.4, 0.7]})
    kept = put(threshold=0.5)
    assert (kept["threshold"], kept["review"]["between"]) == (0.5, [0.4, 0.7])
    assert put(threshold=0.8)["errors"][0]["field"] == "threshold", "the band that stays has to hold it"
    assert put()["status"] == 422
    assert (put(review=None)["threshold"], put(review=None)["review"]) == (0.5, None)
    assert put(review={"between": [0.3, 0.7]})["threshold"] == 0.5


def test_a_band_that_cannot_be_is_refused(serving: Serving, admin: TestClient) -> None:
    _study(serving)
    cases: list[tuple[Any, str]] = [
        ({"between": [0.7, 0.4]}, "review"),
        ({}, "review"),
        ({"between": [0.1, 0.2]}, "review.between"),
    ]
    for review, field in cases:
        answer = admin.put("/v1/threshold", json={"threshold": 0.5, "review": review, "reason": "x"})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_readers_see_rules_without_personal_data(serving: Serving) -> None:
    serving.runtime.playbook.add_bullet('email is "ann@example.org" and full_name is "Ann Lee": decline')
    reader, curator = (serving.headers(each) for each in (Scope.READ, Scope.ADMIN))

    for path in ("/v1/playbook", "/v1/playbook/changes"):
        assert "ann@example.org" not in serving.anonymous.get(path, headers=reader).text
        assert "ann@example.org" in serving.anonymous.get(path, headers=curator).text
    assert "Ann Lee" not in serving.anonymous.get("/v1/playbook", headers=reader).text


def _study(serving: Serving) -> None:
    orders = [Transaction(id=f"t{n}", facts={"vpn": n % 3 == 0, "amount": float(n)}) for n in range(60)]
    serving.runtime.learner.study([Case(transaction=order, is_fraud=bool(order.facts["vpn"])) for order in orders])
