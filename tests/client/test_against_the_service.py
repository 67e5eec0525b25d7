"""Every method of both clients against a real server, with keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Awaited
from tests.service.on_server import running

from acefraud import AsyncClient, Client, Source, Status, Transaction, Verdict
from acefraud.core.review_rule import ReviewRule
from acefraud.core.scope import Scope
from acefraud.errors import InputError, ServiceConflict, ServiceError
from acefraud.storage import open_playbook
from acefraud.storage.service_tables import KeyStore
from acefraud.storage.sql_ledger import SqlLedger

pytestmark = [pytest.mark.wide, pytest.mark.enable_socket]
RULE = "VPN and a new device: decline"
KEYS = {"console": [Scope.ADMIN], "checkout": [Scope.DECIDE, Scope.OUTCOMES], "board": [Scope.READ]}
LATER = datetime.now(UTC) + timedelta(days=30)


@dataclass(frozen=True)
class Service:
    """Where a server listens, and the secrets of its keys."""

    url: str
    secrets: dict[str, str]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    store = folder / "book.db"
    with open_playbook(store) as book:
        book.add_bullet(RULE, who="ana")
        assert isinstance(book.ledger, SqlLedger)
        keys, now = KeyStore(book.ledger), datetime.now(UTC)
        secrets = {name: keys.create(name, scopes, who="ana", now=now)[1] for name, scopes in KEYS.items()}
    with running(["--playbook", str(store)], folder / "server.log", more=()) as server:
        yield Service(server.url, secrets)


@pytest.fixture(params=["blocks", "awaited"])
def as_key(request: pytest.FixtureRequest, real: Service) -> Iterator[Callable[[str], Any]]:
    """Makes clients of either kind with the key of a name."""
    with asyncio.Runner() as runner:
        made: list[Any] = []

        def connected(name: str) -> Any:
            options: dict[str, Any] = {"api_key": real.secrets.get(name, name), "timeout": 60}
            if request.param == "blocks":
                made.append(Client(real.url, **options))
            else:
                made.append(Awaited(AsyncClient(real.url, **options), runner))
            return made[-1]

        yield connected
        for client in made:
            client.close()


@pytest.fixture
def console(as_key: Callable[[str], Any]) -> Any:
    """A client that may do everything."""
    return as_key("console")


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """Which client it is, so that each has transactions and rules of its own on the server that both use."""
    return str(request.node.callspec.params["as_key"])


def payment(name: str, **facts: Any) -> dict[str, Any]:
    return {"id": name, "facts": {"amount": 900, "vpn": True, "new_device": True, **facts}}


def wait_until(done: Callable[[], bool]) -> None:
    """Wait for what the process that learns does in the background."""
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "not within a minute"
        time.sleep(0.05)


# --- decisions and outcomes ---------------------------------------------------------------------------------------


def test_a_decision_is_made_once_and_explained(console: Any, kind: str) -> None:
    made = console.decide(payment(f"{kind}-once"))
    assert console.decide(payment(f"{kind}-once")) == made
    explained = console.decision(made.decision_id)

    assert made.transaction_id == f"{kind}-once"
    assert any(reason.bullet_id and RULE in reason.content for reason in made.reasons)
    assert (explained.reasons, explained.time) == (made.reasons, made.time)
    assert (explained.verdict, explained.probability) == (made.verdict, pytest.approx(made.probability))
    assert (explained.explained, explained.model, explained.outcome) == (True, "embedded", None)
    assert explained.facts == {"amount": 900.0, "vpn": True, "new_device": True}
    assert len(explained.stages) == 5
    assert {score.bullet_id for score in explained.scores} == {
        each.bullet_id for each in made.reasons if each.bullet_id
    }
    assert 0 < explained.threshold < 1


def test_a_score_records_nothing(console: Any, kind: str) -> None:
    scored = console.score(payment(f"{kind}-scored"))
    decided = console.decide(payment(f"{kind}-scored-{kind}"))

    assert (scored.transaction_id, scored.verdict) == (f"{kind}-scored", decided.verdict)
    assert list(console.decisions(transaction_id=f"{kind}-scored")) == []


def test_a_transaction_may_be_an_object_or_a_text(console: Any, kind: str) -> None:
    order = Transaction(id=f"{kind}-object", time=LATER, facts={"amount": 5.0}, entities={"card": "c-1"})
    assert console.decide(order).transaction_id == f"{kind}-object"
    assert console.score("$2,500 purchase through a VPN").verdict in set(Verdict)


def test_many_decisions_and_filters_over_several_pages(console: Any, kind: str) -> None:
    batch = [payment(f"{kind}-{n}", amount=n, vpn=n % 2 == 0) for n in range(120)]
    made = console.decide_batch(batch)
    assert [each.transaction_id for each in made] == [each["id"] for each in batch]
    assert console.decide_batch(batch[:3]) == made[:3]

    mine = {each.decision_id for each in made}
    (bullet,) = (each for each in console.playbook() if each.content == RULE)
    listed = [decision for decision in console.decisions(since=made[0].time) if decision.decision_id in mine]
    assert [each.transaction_id for each in listed] == [each.transaction_id for each in reversed(made)]
    assert not mine & {decision.decision_id for decision in console.decisions(until=made[0].time)}
    for verdict in Verdict:
        found = {decision.decision_id for decision in console.decisions(verdict=verdict)} & mine
        assert found == {each.decision_id for each in made if each.verdict == verdict}
    citing = {each.decision_id for each in made if bullet.id in {reason.bullet_id for reason in each.reasons}}
    assert {decision.decision_id for decision in console.decisions(bullet=bullet.id)} & mine == citing
    assert 0 < len(citing) < 120
    likely = sorted(each.probability for each in made)[60]
    above = {decision.decision_id for decision in console.decisions(least_probability=likely)} & mine
    assert above == {each.decision_id for each in made if each.probability >= likely}
    below = {decision.decision_id for decision in console.decisions(most_probability=likely)} & mine
    assert below == {each.decision_id for each in made if each.probability <= likely}


def test_the_learner_takes_outcomes_in(console: Any, kind: str) -> None:
    rule = f"Amount above {70_000 if kind == 'blocks' else 80_000}: decline"
    added = console.add_rule(rule, always="decline").bullet
    names = [f"{kind}-rich-{n}" for n in range(3)]
    for name in names:
        assert console.decide(payment(name, amount=99_000)).verdict == Verdict.DECLINE
    pending = {each.transaction_id for each in console.pending()}
    assert set(names) <= pending
    assert not set(names) & {each.transaction_id for each in console.pending(before=datetime(2026, 1, 1, tzinfo=UTC))}

    (receipt,) = console.report({"id": f"o-{names[0]}", "transaction_id": names[0], "label": "fraud"})
    assert (receipt.id, receipt.status) == (f"o-{names[0]}", "received")
    again, other, last = console.report(
        [{"id": f"o-{name}", "transaction_id": name, "label": "fraud"} for name in names]
    )
    assert (again.status, other.status, last.status) == ("known", "received", "received")
    wait_until(lambda: console.bullet(added.id).counters.fired == 3)
    assert console.bullet(added.id).counters.fired_frauds == 3
    assert not set(names) & {each.transaction_id for each in console.pending()}

    early = {
        "id": f"revised-{names[0]}",
        "transaction_id": names[0],
        "label": "legitimate",
        "time": "2020-01-01T00:00:00Z",
    }
    (warning,) = console.report(early).warnings
    assert "is before the transaction" in warning
    wait_until(lambda: console.bullet(added.id).counters.fired_frauds == 2)
    (decided,) = console.decisions(transaction_id=names[0])
    assert console.decision(decided.decision_id).outcome == "legitimate"
    assert {firing.transaction_id for firing in console.bullet(added.id).last_firings} == set(names)
    amount = next(fact for fact in console.facts() if fact.name == "amount")
    assert (amount.type, amount.high, amount.examples) == ("number", 99_000, ())
    console.retire(added.id, reason="the other client goes on")


def test_what_contradicts_an_earlier_request_is_a_conflict(console: Any, kind: str) -> None:
    key = f"key-{kind}"
    console.decide(payment(f"{kind}-conflict"), idempotency_key=key)
    with pytest.raises(ServiceConflict, match="HTTP 409"):
        console.decide(payment(f"{kind}-conflict", amount=5), idempotency_key=key)
    with pytest.raises(ServiceConflict, match="with other content"):
        console.decide_batch([payment(f"{kind}-conflict", amount=5)])
    console.report({"id": f"o-{kind}", "transaction_id": f"{kind}-conflict", "label": "fraud"})
    with pytest.raises(ServiceConflict):
        console.report({"id": f"o-{kind}", "transaction_id": f"{kind}-conflict", "label": "legitimate"})
    with pytest.raises(ServiceConflict) as caught:
        console.add_rule(RULE)
    assert console.bullet(caught.value.problem["bullet_id"]).content == RULE


# --- access -------------------------------------------------------------------------------------------------------


def test_a_key_without_the_scope_is_refused(as_key: Callable[[str], Any], kind: str) -> None:
    refused: dict[str, list[Callable[[Any], Any]]] = {
        "checkout": [
            lambda client: client.add_rule("Amount above 7,000: decline"),
            lambda client: list(client.playbook()),
            lambda client: list(client.changes()),
        ],
        "board": [
            lambda client: client.decide(payment(f"{kind}-board")),
            lambda client: client.report({"transaction_id": "t1", "label": "fraud"}),
            lambda client: client.rollback(1, reason="a try"),
        ],
    }
    for name, attempts in refused.items():
        for attempt in attempts:
            with pytest.raises(ServiceError, match="HTTP 403") as caught:
                attempt(as_key(name))
            assert caught.value.status == 403
    with pytest.raises(ServiceError) as caught:
        as_key("ace_000000000000_none").threshold()
    assert caught.value.status == 401


# --- the playbook -------------------------------------------------------------------------------------------------


def test_a_rule_is_read_previewed_added_edited_pinned_and_retired(console: Any, kind: str) -> None:
    words = f"Amount above {7_300 if kind == 'blocks' else 7_350} and a new device"
    console.decide(payment(f"{kind}-large", amount=7_400))
    reading = console.read_rule(f"{words}: decline")
    assert (reading.understood, reading.argues, reading.action) == (True, Verdict.DECLINE, "evidence")
    seen = console.preview_rule(words, always="review")
    assert seen.bullet.policy == "always review"
    assert min(seen.preview.fires_on_decisions, seen.preview.flips) >= 1
    assert {each.after for each in seen.preview.sample} == {Verdict.REVIEW}

    added = console.add_rule(f"{words}: decline", reason="seen twice")
    assert (added.bullet.status, added.bullet.source, added.bullet.policy) == (Status.ACTIVE, Source.MANUAL, None)
    assert added.preview.fires_on_decisions == seen.preview.fires_on_decisions
    edited = console.edit_rule(added.bullet.id, f"{words} and a VPN: decline", reason="too broad")
    assert edited.bullet.condition == f"{added.bullet.condition} and vpn is true"
    assert console.preview_rule(bullet_id=added.bullet.id, status="retired").bullet.status == Status.RETIRED
    assert console.pin(added.bullet.id, reason="agreed").bullet.status == Status.PINNED
    assert added.bullet.id in {each.id for each in console.playbook(status="pinned", source=Source.MANUAL)}
    assert console.retire(added.bullet.id, reason="it faded").preview is None
    assert added.bullet.id not in {each.id for each in console.playbook()}
    assert added.bullet.id in {each.id for each in console.playbook(retired=True)}

    whole = console.bullet(added.bullet.id)
    assert whole.status == Status.RETIRED
    assert [(each.reason, each.who) for each in whole.history] == [
        (reason, "console") for reason in ("it faded", "agreed", "too broad", "seen twice")
    ]


def test_a_rule_that_is_not_understood_names_the_words(console: Any) -> None:
    words = "decline amnts over 900"
    with pytest.raises(ServiceError, match="not understood: 'amnts'") as caught:
        console.add_rule(words)
    assert caught.value.status == 422
    assert {each["field"] for each in caught.value.problem["errors"]} == {"content"}
    reading = console.read_rule(words)
    assert (reading.understood, reading.not_understood) == (False, ("amnts",))
    assert "amount" in reading.did_you_mean
    previewed = console.preview_rule(words)
    assert (previewed.reading, previewed.bullet, previewed.preview) == (reading, None, None)


def test_a_policy_is_snoozed_for_one_card(console: Any, kind: str) -> None:
    order = payment(f"{kind}-snoozed", merchant=kind, card="c-9")
    console.decide(order)
    console.report({"transaction_id": order["id"], "label": "fraud"})
    rule = f'merchant is "{kind}"'
    wait_until(lambda: console.read_rule(rule).understood)  # once a labelled case has this fact
    policy = console.add_rule(rule, always=Verdict.DECLINE, priority=500, final=True).bullet
    assert policy.policy is not None
    assert console.score(order).verdict == Verdict.DECLINE
    snoozed = console.snooze(policy.id, key="card", value="c-9", until=LATER, reason="a customer we know")
    assert [(snooze.key, snooze.value, snooze.until) for snooze in snoozed.snoozes] == [("card", "c-9", LATER)]
    assert policy.id not in {reason.bullet_id for reason in console.score(order).reasons}
    console.retire(policy.id, reason="done")


def test_lists_and_their_values(console: Any, as_key: Callable[[str], Any], kind: str) -> None:
    name = f"watched_{kind}"
    made = console.put_list(name, about="shops to look at", frauds_of="shop", days=90, reason="asked for")
    assert (made.name, made.about, made.feed.key, made.feed.days, made.count) == (
        name,
        "shops to look at",
        "shop",
        90,
        0,
    )
    values = [f"shop {n}" for n in range(60)]
    assert console.change_list(name, add=values, until=LATER, reason="a hint").count == 60
    assert console.change_list(name, add=["last"], remove=values[:1], reason="a call").count == 60
    found = list(console.list_values(name))
    assert [each.value for each in found] == [*values[1:], "last"]
    assert (found[0].who, found[0].reason, found[0].until) == ("console", "a hint", LATER)
    assert found[-1].until is None
    assert name in {each.name for each in as_key("board").lists()}
    with pytest.raises(ServiceError, match="this value is not on the list") as caught:
        console.change_list(name, remove=["nobody"], reason="a try")
    assert caught.value.status == 422


def test_changes_and_going_back(console: Any, kind: str) -> None:
    before = next(console.changes()).revision
    added = console.add_rule(f"Amount above {5_000 if kind == 'blocks' else 6_000}: decline", reason="a try").bullet
    latest = next(console.changes())
    assert (latest.subject, latest.who, latest.reason) == (added.id, "console", "a try")
    assert latest.revision > before
    assert len({change.revision for change in console.changes()}) > 1

    planned = console.preview_rollback(before)
    assert (planned.revision, planned.retired, planned.changes_nothing) == (before, (added.id,), False)
    assert planned.preview is not None
    assert console.bullet(added.id).status == Status.ACTIVE
    done = console.rollback(before, reason="no good")
    assert (done.retired, done.preview) == ((added.id,), None)
    assert console.bullet(added.id).status == Status.RETIRED
    assert [each.kind for each in console.history(added.id)] == ["status_changed", "bullet_added"]


def test_the_feed(console: Any) -> None:
    assert console.feed().silence_days is None
    declared = console.set_feed("fraud_only", silence_days=60, declines_pass=False, reason="chargebacks only")
    assert (declared.kind, declared.declared, declared.silence_days) == ("fraud_only", True, 60)
    with pytest.raises(ServiceError, match="no step of the level is held"):
        console.set_feed(level="accept", reason="a try")
    assert console.set_feed("unknown", silence_days=0, reason="a try is over").silence_days is None


def test_the_threshold(console: Any) -> None:
    known = console.threshold()
    assert (known.cases, known.review) == (0, None)
    with pytest.raises(ServiceError, match="HTTP 422") as caught:  # nothing was learnt that it could be set on
        console.set_threshold(0.6, reason="a try")
    assert caught.value.problem["errors"][0]["field"] == "threshold"
    banded = console.set_threshold(review=ReviewRule(between=(0.4, 0.7)), reason="reviewers have time")
    assert (banded.threshold, banded.review) == (known.threshold, ReviewRule(between=(0.4, 0.7)))
    assert console.set_threshold(no_review=True, reason="they have none").review is None
    with pytest.raises(InputError, match="choose one"):
        console.set_threshold(review=ReviewRule(between=(0.4, 0.7)), no_review=True, reason="a try")


# --- an agent of their own ----------------------------------------------------------------------------------------


def test_a_context_and_what_an_agent_decided_with_it(console: Any, kind: str) -> None:
    order = payment(f"{kind}-agent")
    context = console.context(order, n_bullets=1)
    (bullet,) = context.bullets
    assert (context.transaction_id, bullet.content, bullet.applies) == (f"{kind}-agent", RULE, True)
    assert (bullet.argues, len(context.stages)) == (Verdict.DECLINE, 5)
    assert RULE in context.prompt

    helpful = console.bullet(bullet.bullet_id).counters.helpful
    options = {"probability": 0.8, "bullet_ids": [bullet.bullet_id], "agent": "ours", "reasoning": "a VPN"}
    traced = console.trace(order, "DECLINE", **options, is_fraud=True)
    assert (traced.status, traced.outcome) == ("recorded", "received")
    assert (traced.decision.verdict, traced.decision.probability) == (Verdict.DECLINE, 0.8)
    again = console.trace(order, "DECLINE", **options, is_fraud=True)
    assert (again.decision.decision_id, again.status, again.outcome) == (traced.decision.decision_id, "known", "known")
    wait_until(lambda: console.bullet(bullet.bullet_id).counters.helpful == helpful + 1)
    explained = console.decision(traced.decision.decision_id)
    assert (explained.model, explained.outcome) == ("ours", "fraud")


def test_every_method_is_tried_here() -> None:
    source = Path(__file__).read_text("utf-8")
    methods = {name for name in vars(Client) if not name.startswith("_")} - {"close", "set_status"}
    assert len(methods) >= 25
    assert not {name for name in methods if f".{name}(" not in source}
