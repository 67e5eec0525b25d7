"""What logs and lists show of a transaction."""

from __future__ import annotations

import json

from tests.service.conftest import Serving

from acefraud.core.scope import Scope
from acefraud.core.transaction import FactValue
from acefraud.datasets import SchemaMapping
from acefraud.service.masking import FactMask

CARD = 4111111111111111.0
FACTS: dict[str, FactValue] = {
    "amount": 20.0,
    "vpn": True,
    "country": "FR",
    "email": "ann@example.org",
    "full_name": "Ann Lee",
    "contact": CARD,
    "note": "Ann Lee called from 192.0.2.7",
    "Segment": 3.0,
    "tier": "gold",
}
MAPPING = SchemaMapping(sensitive=("segment", "level"), rename={"level": "tier"})


def test_names_stay_and_personal_and_sensitive_values_go() -> None:
    shown = FactMask(MAPPING.sensitive_facts).masked_facts(FACTS)
    assert list(shown) == list(FACTS)
    assert {name: shown[name] for name in ("amount", "vpn", "country")} == {
        "amount": 20.0,
        "vpn": True,
        "country": "FR",
    }
    hidden = ("email", "full_name", "contact", "Segment", "tier")
    assert {name: shown[name] for name in hidden} == dict.fromkeys(hidden, "[masked]")
    assert shown["note"] == "[masked] called from [ip]"


def test_what_is_not_declared_sensitive_is_shown() -> None:
    shown = FactMask().masked_facts(FACTS)
    assert (shown["Segment"], shown["tier"]) == (3.0, "gold")


def test_a_text_is_shown_without_the_values_of_masked_facts() -> None:
    text = "Ann Lee (gold) pays $20 with 4111111111111111"
    assert FactMask(MAPPING.sensitive_facts).masked_text(text, FACTS) == "[masked] ([masked]) pays $20 with [card]"


def test_only_curators_see_the_people_in_rules(serving: Serving) -> None:
    curator, reader, decider = (serving.headers(each) for each in (Scope.CURATE, Scope.READ, Scope.DECIDE))
    client = serving.anonymous
    order = {"id": "t1", "facts": {"full_name": "Ann Lee", "amount": 900, "vpn": True}}
    rule = {"content": 'full_name is "Ann Lee" and vpn: decline', "reason": "Ann Lee is a known mule"}
    bullet = client.post("/v1/bullets", json=rule, headers=curator).json()["bullet"]["id"]

    def seen(headers: dict[str, str], *calls: tuple[str, str]) -> dict[str, str]:
        answers = {path: client.request(method, path, json=order, headers=headers) for method, path in calls}
        assert {each.status_code for each in answers.values()} == {200}
        return {path: answer.text for path, answer in answers.items()}

    decided = seen(decider, ("POST", "/v1/decisions"), ("POST", "/v1/score"), ("POST", "/v1/context"))
    decision = json.loads(decided["/v1/decisions"])["decision_id"]
    edit = {"content": 'full_name is "Bob Ray" and vpn: decline', "reason": "Ann Lee moved away, Bob Ray did not"}
    assert client.patch(f"/v1/bullets/{bullet}", json=edit, headers=curator).status_code == 200
    until = {"key": "full_name", "value": "Cy Fox", "until": "2036-01-31T00:00:00Z", "reason": "Cy Fox travels"}
    policy = client.post("/v1/bullets", json={"content": "Tor", "always": "decline"}, headers=curator).json()["bullet"]
    assert client.post(f"/v1/bullets/{policy['id']}:snooze", json=until, headers=curator).status_code == 200

    decided |= {"again": seen(decider, ("POST", "/v1/decisions"))["/v1/decisions"]}
    read = [f"/v1/decisions/{decision}", f"/v1/bullets/{bullet}", f"/v1/bullets/{bullet}/history"]
    read += ["/v1/playbook", "/v1/playbook/changes", f"/v1/bullets/{policy['id']}"]
    shown = decided | seen(reader, *(("GET", path) for path in read))
    assert bullet in decided["/v1/decisions"]
    for path, text in shown.items():
        assert "[masked]" in text, path
        assert not [name for name in ("Ann Lee", "Bob Ray", "Cy Fox") if name in text], path
    in_clear = serving.headers(Scope.ADMIN)
    assert all("Ann Lee" in text for text in seen(in_clear, *(("GET", path) for path in read[:3])).values())
    assert "Ann Lee" in seen(in_clear, ("POST", "/v1/decisions"))["/v1/decisions"]
