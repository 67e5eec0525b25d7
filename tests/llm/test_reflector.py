"""The reflector on a model: one heuristic in words, over existing facts that are not hidden."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from acefraud.core.bullet import Bullet
from acefraud.core.transaction import FactValue, Verdict
from acefraud.display.redaction import Masker
from acefraud.errors import ModelMalformed, ModelUnavailable
from acefraud.llm.client import ClientOptions, ModelClient
from acefraud.roles.model.prompts import as_data
from acefraud.roles.model.reflector import ModelReflector, parse_condition
from acefraud.roles.protocols import Example, FactSummary, Proposal

if TYPE_CHECKING:
    from tests.llm.conftest import Loopback
    from tests.llm.loopback import LoopbackServer

http = pytest.mark.enable_socket
FACTS = [
    FactSummary("amount", "number", "1 to 9,800, half of them below 120"),
    FactSummary("vpn", "flag", "true or false"),
    FactSummary("channel", "category", 'one of "online", "store"'),
]
EXAMPLES = [
    Example("Gift cards", {"amount": amount, "vpn": True}, Verdict.APPROVE, Verdict.DECLINE, "looked harmless")
    for amount in (2500.0, 2600.0, 3100.0)
]
KNOWN = [Bullet(id="b-11111111", content="Emulators are bad", argues=Verdict.DECLINE)]
WHOLE = {
    "new_bullet": "Large amounts over a VPN",
    "condition": "amount > 2000 and vpn is true",
    "argues": "DECLINE",
    "problem_types": ["device_risk"],
    "confidence": 0.7,
}


def propose(
    server: LoopbackServer,
    *,
    facts: list[FactSummary] = FACTS,
    examples: list[Example] = EXAMPLES,
    mask: Masker | None = None,
) -> Proposal | None:
    async def play() -> Proposal | None:
        async with ModelClient(ClientOptions(attempts=1)) as client:
            reflector = ModelReflector(client, "openai:mine", base_url=server.base_url, mask=mask)
            return await reflector.propose(examples, facts, KNOWN)

    return asyncio.run(play())


@http
def test_a_heuristic_with_its_condition(loopback: Loopback) -> None:
    server = loopback(planted=[WHOLE])
    proposal = propose(server)
    assert proposal is not None
    assert str(proposal.condition) == WHOLE["condition"]
    assert (proposal.content, proposal.argues) == (WHOLE["new_bullet"], Verdict.DECLINE)
    assert (proposal.problem_types, proposal.confidence) == (("device_risk",), 0.7)
    assert proposal.model == "openai:mine"
    (call,) = server.log
    body = json.loads(call.body)
    assert body["temperature"] == 0
    shown = body["messages"][-1]["content"]
    assert "- amount (number): 1 to 9,800, half of them below 120" in shown
    assert "b-11111111" in shown
    assert '"truth": "DECLINE"' in shown


@http
def test_what_the_loopback_model_finds(loopback: Loopback) -> None:
    proposal = propose(loopback())
    assert proposal is not None
    assert proposal.condition is not None
    assert proposal.condition.facts == {"amount", "vpn"}
    assert all(proposal.condition.holds(example.facts) for example in EXAMPLES)


@http
@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("merchant_mood > 3", "condition: there is no fact called merchant_mood"),
        ("amount >>> 3", "condition: "),
        ("amount > 1e999", "condition: "),
        (
            "amount > 1 and amount > 2 and amount > 3 and amount > 4 and vpn is true",
            "condition: a condition has 1 to 4",
        ),
    ],
)
def test_a_condition_that_makes_no_sense_is_asked_for_once_more(
    loopback: Loopback, condition: str, problem: str
) -> None:
    bad = {**WHOLE, "condition": condition}
    server = loopback(planted=[bad, WHOLE, bad, bad])
    proposal = propose(server)
    assert proposal is not None
    assert str(proposal.condition) == WHOLE["condition"]
    repair = json.loads(server.log[1].body)["messages"][-1]["content"]
    assert as_data(json.dumps(bad)) in repair.partition("<reply>")[2]
    assert problem in repair.partition("<problem>")[2]
    without = propose(server)
    assert without is not None
    assert without.condition is None or without.condition.facts <= {"amount", "vpn", "channel"}
    assert len(server.log) == 4


@http
@pytest.mark.parametrize("nothing", [{"new_bullet": None}, {"new_bullet": "  "}, {**WHOLE, "new_bullet": None}])
def test_nothing_new(loopback: Loopback, nothing: dict[str, Any]) -> None:
    server = loopback(planted=[nothing])
    assert propose(server) is None
    assert len(server.log) == 1


@http
def test_what_the_words_say_stands_in_for_what_is_missing(loopback: Loopback) -> None:
    spoken = "Amount above 2000 = 95% fraud"
    proposal = propose(loopback(planted=[{"new_bullet": spoken}]))
    assert proposal is not None
    assert (str(proposal.condition), proposal.argues) == ("amount > 2000", Verdict.DECLINE)
    other = propose(loopback(planted=[{"new_bullet": spoken}]), facts=FACTS[1:])
    assert other is not None
    assert other.condition is None


@http
def test_sensitive_facts_are_neither_listed_nor_shown(loopback: Loopback) -> None:
    hidden = [
        FactSummary("segment", "category", 'one of "gold-7731", "tin-1"'),
        FactSummary("email", "category", 'one of "ann@example.org"'),
        FactSummary("card_number", "number", "4,111,111,111,111,111 to 5,555,555,555,554,444"),
    ]
    told: dict[str, FactValue] = {
        "segment": "gold-7731",
        "email": "ann@example.org",
        "card_number": 4111111111111111.0,
        "amount": 2500.0,
    }
    example = Example("A gold-7731 client", told, Verdict.APPROVE, Verdict.DECLINE, "gold-7731 is fine")
    bad = {**WHOLE, "condition": 'segment is "gold-7731"'}
    server = loopback(planted=[WHOLE, bad, WHOLE])
    for _ in range(2):
        proposal = propose(server, facts=[*FACTS, *hidden], examples=[example], mask=Masker(sensitive=["segment"]))
        assert proposal is not None
        assert str(proposal.condition) == WHOLE["condition"]
    assert len(server.log) == 3
    for call in server.log[:2]:
        body = call.body.decode()
        for secret in ("gold-7731", "ann@example.org", "4111111111111111", "4,111,111"):
            assert secret not in body
        listed = json.loads(body)["messages"][-1]["content"].partition("Known bullets")[0]
        assert "- amount" in listed
        assert not any(f"- {fact.name}" in listed for fact in hidden)
    assert "there is no fact called segment" in json.loads(server.log[2].body)["messages"][-1]["content"]


@http
def test_failures_are_errors(loopback: Loopback) -> None:
    with pytest.raises(ModelUnavailable):
        propose(loopback(misbehave={"http_500": 1.0}))
    server = loopback(misbehave={"wrong_shape": 1.0})
    with pytest.raises(ModelMalformed, match="new_bullet: Field required"):
        propose(server)
    assert len(server.log) == 2


@pytest.mark.parametrize("words", [None, "", " none ", "NULL"])
def test_no_condition(words: str | None) -> None:
    assert parse_condition(words, {"amount"}) is None


def test_quotes_of_either_kind() -> None:
    plain = parse_condition('channel is "it\'s online"', {"channel"})
    assert str(plain) == 'channel is "it\'s online"'
    assert str(parse_condition("channel is 'online'", {"channel"})) == 'channel is "online"'
