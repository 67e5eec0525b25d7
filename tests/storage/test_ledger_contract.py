"""What every ledger promises. A new store is one more entry in STORES."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.postgres import database_for
from tests.storage.replaying import cases_of

from acefraud.core.bullet import Bullet, Claim, Evidence, Record, Snooze, Source, Status
from acefraud.core.calibration import Calibration, OddsScale
from acefraud.core.condition import Condition, Op, Test
from acefraud.core.context_facts import ListItem
from acefraud.core.decision import BulletScore, Decision, DecisionRecord, Reason, ReasonKind, SelectionTrace, StageCount
from acefraud.core.events import (
    EDIT_KINDS,
    KINDS,
    BulletAdded,
    BulletCredited,
    BulletEdited,
    Credit,
    DecisionMade,
    DecisionsArchived,
    EventPayload,
    FeedSet,
    LevelHeld,
    LevelMoved,
    ListChanged,
    ListCreated,
    OddsScaled,
    OutcomeHeard,
    OutcomeReceived,
    OutcomesTakenIn,
    PatternsChanged,
    PolicySnoozed,
    Recalibrated,
    Reread,
    Reviewed,
    RolledBack,
    SilenceMatured,
    StatusChanged,
    ThresholdSet,
    Trained,
)
from acefraud.core.ledger import (
    DecisionFilter,
    Entry,
    KeptRequest,
    KnownCase,
    Ledger,
    Precondition,
    RowStore,
    TransactionEvents,
)
from acefraud.core.outcome import FeedKind, Judgement, Outcome, OutcomeSource, Ruling
from acefraud.core.playbook import CaseCount, Checkpoint, CheckpointHeader, LearningState, PlaybookState
from acefraud.core.transaction import Case, FactValue, Transaction, Verdict
from acefraud.errors import AlreadyAnswered, InputError, StoreConflict, StoreError
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.postgres import PostgresLedger
from acefraud.storage.sqlite import SqliteLedger
from acefraud.support.timestamps import UNKNOWN, micros_of

STORES: dict[str, Callable[[Path], Ledger]] = {
    "memory": lambda _: MemoryLedger(),
    "sqlite": lambda directory: SqliteLedger.open(directory / "playbook.db"),
    "postgresql": lambda directory: PostgresLedger.open(database_for(directory)),
}
OUTLIVING = ("sqlite", "postgresql")
"""The stores whose contents outlive the process."""

AT = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.wide)])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()


def test_a_new_ledger_is_empty(ledger: Ledger) -> None:
    assert ledger.last_seq() == 0
    assert list(ledger.read()) == []
    assert cases_of(ledger) == []
    assert ledger.checkpoint() is None
    assert ledger.decisions(["d1"]) == {}
    assert ledger.transaction_events(["t1"]) == {"t1": TransactionEvents()}
    assert ledger.history("b1") == []


def test_events_keep_the_order_they_were_appended_in(ledger: Ledger, sample: Any) -> None:
    first = ledger.append(Entry([sample.bullet("b1"), sample.decision("d1")], at=AT, who="ana", why="a start"))
    second = ledger.append(Entry([sample.outcome("t1")], at=AT + timedelta(days=1), who="bank"))

    assert [event.seq for event in first + second] == [1, 2, 3]
    assert list(ledger.read()) == first + second
    assert (first[0].who, first[0].why, first[0].at) == ("ana", "a start", AT)
    assert ledger.last_seq() == 3


def test_appending_nothing_writes_nothing(ledger: Ledger) -> None:
    assert ledger.append(Entry([], at=AT, who="ana")) == []
    assert ledger.last_seq() == 0


# --- what was not to happen meanwhile ----------------------------------------------------------------------------


def that_edit(sample: Any) -> list[EventPayload]:
    """One of each kind that changes the book, or what is known of how it was learnt."""
    return [
        sample.bullet("b2"),
        BulletEdited(bullet_id="b1", content="another text"),
        StatusChanged(bullet_id="b1", status=Status.PINNED),
        PolicySnoozed(bullet_id="b1", snooze=Snooze(key="card", value="4111", until=AT)),
        Recalibrated(node="fraud_detection", calibration=Calibration(intercept=-2.5)),
        ThresholdSet(node="fraud_detection", threshold=0.4),
        OddsScaled(node="fraud_detection", model="m", scale=OddsScale(level=0.5, slope=1.0, cases=9)),
        Trained(node="fraud_detection", dataset="d", rows=9, frauds=1),
        Reviewed(node="fraud_detection", whole=True, cases=9, frauds=1),
        Reread(node="fraud_detection", reader="1", cases=9, changed=1),
        RolledBack(to=0, retired=("b1",)),
    ]


def that_count(sample: Any) -> list[EventPayload]:
    """One of each kind that only adds to counters, or to nothing."""
    return [
        sample.decision("d1"),
        sample.outcome("t1"),
        sample.outcome("t1", is_fraud=False, revised=True),
        BulletCredited(credit=Credit(bullet_id="b1", helpful=1)),
        LevelMoved(node="fraud_detection", recent=None),
        LevelHeld(node="fraud_detection", held=None),
        PatternsChanged(node="fraud_detection", cases=60, frauds=6),
        FeedSet(node="fraud_detection", feed=FeedKind.COMPLETE, declared=False),
        SilenceMatured(node="fraud_detection", until=AT, through=1, silent=1, frauds=0, cases=1),
        ListCreated(name="watched"),
        ListChanged(name="watched", added=(ListItem(value="ACME"),)),
        DecisionsArchived(before=AT, count=9, file="decisions.parquet"),
        OutcomeReceived(outcome=Outcome(transaction_id="t1", is_fraud=True)),
        OutcomesTakenIn(node="fraud_detection", until=1, count=1),
    ]


def test_every_kind_of_event_either_edits_or_counts(sample: Any) -> None:
    assert {each.kind for each in that_edit(sample)} == EDIT_KINDS
    assert {each.kind for each in that_count(sample)} == KINDS - EDIT_KINDS


def refused(ledger: Ledger, sample: Any, precondition: Precondition) -> bool:
    """Whether a write is refused. Then none of it may be there, else all of it."""
    before, cases = list(ledger.read()), cases_of(ledger)
    step: list[EventPayload] = [sample.bullet("mine"), sample.decision("d-mine", "t-mine"), sample.outcome("t-mine")]
    try:
        written = ledger.append(
            Entry(
                step,
                at=AT,
                who="ben",
                preconditions=[precondition],
                cases=[sample.known("t-mine")],
                rows=lambda rows: rows.put_many({"mine": b"1"}),
            )
        )
    except StoreConflict:
        assert list(ledger.read()) == before
        assert cases_of(ledger) == cases
        assert ledger.transaction_events(["t-mine"]) == {"t-mine": TransactionEvents()}
        assert ledger.decisions(["d-mine"]) == {}
        with ledger.rows() as rows:
            assert rows.get_many(["mine"]) == {}
        return True
    assert list(ledger.read()) == [*before, *written]
    assert cases_of(ledger) == [*cases, sample.case("t-mine")]
    return False


@pytest.mark.parametrize("place", range(8))
def test_a_write_that_depends_on_the_book_is_refused_after_an_edit(ledger: Ledger, sample: Any, place: int) -> None:
    ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
    ledger.append(Entry([*that_count(sample), that_edit(sample)[place], *that_count(sample)], at=AT, who="ana"))
    assert refused(ledger, sample, Precondition.no_edits_since(0))
    edit = 2 + len(that_count(sample))
    assert refused(ledger, sample, Precondition.no_edits_since(edit - 1))
    assert not refused(ledger, sample, Precondition.no_edits_since(edit))


def test_outcomes_decisions_and_credits_do_not_conflict(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
    ledger.append(Entry(that_count(sample), at=AT, who="ana"))
    assert not refused(ledger, sample, Precondition.no_edits_since(1))


@pytest.mark.parametrize("revised", [False, True])
def test_an_outcome_is_refused_after_another_one_of_its_transaction(ledger: Ledger, sample: Any, revised: bool) -> None:
    ledger.append(Entry([sample.bullet("b1"), sample.outcome("t1", revised=revised)], at=AT, who="ana"))
    assert refused(ledger, sample, Precondition.no_outcomes_since(1, ["t1"]))
    assert refused(ledger, sample, Precondition.no_outcomes_since(1, {"t2", "t1"}))
    assert not refused(ledger, sample, Precondition.no_outcomes_since(2, ["t1"]))


def test_an_outcome_conflicts_only_with_outcomes_of_its_transactions(ledger: Ledger, sample: Any) -> None:
    others = [*that_edit(sample), sample.bullet("t1"), sample.decision("d1", "t1"), sample.outcome("t2")]
    ledger.append(Entry([*others, BulletCredited(credit=Credit(bullet_id="t1", helpful=1))], at=AT, who="ana"))
    assert not refused(ledger, sample, Precondition.no_outcomes_since(0, ["t1", "t3"]))


def test_a_precondition_covers_many_transactions(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.outcome("t1999")], at=AT, who="ana"))
    assert refused(ledger, sample, Precondition.no_outcomes_since(0, [f"t{n}" for n in range(2_000)]))
    assert not refused(ledger, sample, Precondition.no_outcomes_since(0, [f"t{n}" for n in range(1_999)]))


def test_a_conflict_names_the_other_writer_and_event(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.decision("d1"), sample.bullet("b1"), sample.bullet("b2")], at=AT, who="ana"))
    with pytest.raises(StoreConflict, match=r"ana wrote event 2 meanwhile \(bullet_added of b1\)"):
        ledger.append(Entry([sample.bullet("b3")], at=AT, who="ben", preconditions=[Precondition.no_edits_since(0)]))


def test_a_batch_that_fails_leaves_nothing(ledger: Ledger, sample: Any) -> None:
    def failing(rows: RowStore) -> None:
        rows.put_many({"a": b"1"})
        raise RuntimeError("the change broke")

    step = [sample.bullet("b1"), sample.decision("d1"), sample.outcome("t1")]
    with pytest.raises(RuntimeError):
        ledger.append(Entry(step, at=AT, who="ana", cases=[sample.known("t1")], rows=failing))

    assert ledger.last_seq() == 0
    assert (cases_of(ledger), ledger.remembered(9)) == ([], [])
    assert (ledger.decisions(["d1"]), ledger.transaction_events(["t1"])) == ({}, {"t1": TransactionEvents()})


# --- reading -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "until", "seqs"),
    [
        (0, None, [1, 2, 3, 4]),
        (2, None, [3, 4]),
        (0, 2, [1, 2]),
        (1, 3, [2, 3]),
        (4, None, []),
        (9, 12, []),
        (3, 2, []),
    ],
)
def test_reads_a_range_of_events(ledger: Ledger, sample: Any, after: int, until: int | None, seqs: list[int]) -> None:
    ledger.append(Entry([sample.bullet(f"b{n}") for n in range(4)], at=AT, who="ana"))
    assert [event.seq for event in ledger.read(after, until)] == seqs


def test_reading_ends_at_the_event_that_was_last_when_it_began(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.bullet("b1"), sample.bullet("b2")], at=AT, who="ana"))
    seen = []
    for event in ledger.read():
        seen.append(event.seq)
        ledger.append(Entry([sample.bullet(f"b{event.seq + 2}")], at=AT, who="ana"))
    assert seen == [1, 2]


def test_reads_more_than_one_query_returns(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.bullet(f"b{n}") for n in range(2_001)], at=AT, who="ana"))
    assert [event.seq for event in ledger.read()] == list(range(1, 2_002))


def test_reads_without_decisions_if_asked(ledger: Ledger, sample: Any) -> None:
    written = ledger.append(
        Entry(
            [
                sample.decision("d1"),
                sample.bullet("b1"),
                sample.decision("d2"),
                sample.outcome("t1"),
                sample.decision("d3"),
            ],
            at=AT,
            who="ana",
        )
    )
    assert list(ledger.read(decisions=False)) == [written[1], written[3]]
    assert list(ledger.read(2, 4, decisions=False)) == [written[3]]
    assert list(ledger.read(4, decisions=False)) == []


def test_reads_past_more_decisions_than_one_query_returns(ledger: Ledger, sample: Any) -> None:
    decisions = [sample.decision(f"d{n}") for n in range(1_100)]
    ledger.append(Entry([sample.bullet("b1"), *decisions, sample.bullet("b2")], at=AT, who="ana"))
    assert [event.seq for event in ledger.read(decisions=False)] == [1, 1_102]


# --- remembered cases --------------------------------------------------------------------------------------------


def known(case: Case, reader: str = "1", **more: FactValue) -> KnownCase:
    return KnownCase(case, {**case.transaction.facts, **more}, reader)


def test_cases_replace_and_move_to_the_end(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([], at=AT, who="ana", cases=[sample.known("t1"), sample.known("t2"), sample.known("t3")]))
    ledger.append(Entry([], at=AT, who="ana", cases=[sample.known("t1", is_fraud=True)]))
    again = [sample.known("t4"), sample.known("t2"), sample.known("t4", is_fraud=True)]
    ledger.append(Entry([], at=AT, who="ana", cases=again))

    assert cases_of(ledger) == [
        sample.case("t3"),
        sample.case("t1", is_fraud=True),
        sample.case("t2"),
        sample.case("t4", is_fraud=True),
    ]
    remembered = ledger.remembered(9)
    assert [(each.id, each.is_fraud) for each in remembered] == [
        ("t3", False),
        ("t1", True),
        ("t2", False),
        ("t4", True),
    ]
    places = [each.seq for each in remembered]
    assert places == sorted(set(places))


@pytest.mark.parametrize(("limit", "left"), [(5, 3), (3, 3), (2, 2), (0, 0)])
def test_cases_are_limited_to_the_latest(ledger: Ledger, sample: Any, limit: int, left: int) -> None:
    ledger.append(Entry([], at=AT, who="ana", cases=[sample.known(f"t{n}") for n in range(3)]))
    assert cases_of(ledger, limit) == [sample.case(f"t{n}") for n in range(3)][3 - left :]
    assert [each.id for each in ledger.remembered(limit)] == [f"t{n}" for n in range(3)][3 - left :]


def test_cases_after_a_position(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([], at=AT, who="ana", cases=[sample.known(name) for name in "abcd"]))
    place = {each.id: each.seq for each in ledger.remembered(9)}
    assert [each.id for each in ledger.remembered(9, after=place["b"])] == ["c", "d"]
    assert [each.id for each in ledger.remembered(1, after=place["b"])] == ["d"], "the latest, not the next"
    assert ledger.remembered(9, after=place["d"]) == []
    ledger.append(Entry([], at=AT, who="ana", cases=[sample.known("a", is_fraud=True), sample.known("e")]))
    assert [(each.id, each.is_fraud) for each in ledger.remembered(9, after=place["d"])] == [("a", True), ("e", False)]


def test_a_case_is_remembered_with_its_facts_and_their_reader(ledger: Ledger, sample: Any) -> None:
    told = sample.told("t1", is_fraud=True)
    ledger.append(
        Entry([], at=AT, who="ana", cases=[known(told, "7", vpn=True, country="FR"), known(sample.case("t2"))])
    )
    first, second = ledger.remembered(9)
    assert (first.id, first.is_fraud, first.has_text, first.reader) == ("t1", True, True, "7")
    assert first.facts == {"amount": 20.0, "vpn": True, "country": "FR"}
    assert first.time == micros_of(sample.at)
    assert (second.has_text, second.time, second.facts) == (False, UNKNOWN, sample.case("t2").transaction.facts)


def test_facts_are_kept_once(ledger: Ledger, sample: Any) -> None:
    """Beside a text stand the facts that were read from it; without a text, the transaction brings all of them."""
    told, given = sample.told("t1"), sample.case("t2")
    ledger.append(Entry([], at=AT, who="ana", cases=[known(told, vpn=True), known(given, night=False)]))
    assert cases_of(ledger) == [told, known(given, night=False).kept]
    assert cases_of(ledger)[1].transaction.facts == {**given.transaction.facts, "night": False}
    assert [each.facts for each in ledger.remembered(9)] == [
        {"amount": 20.0, "vpn": True},
        {**given.transaction.facts, "night": False},
    ]


def test_replacing_facts_changes_nothing_else(ledger: Ledger, sample: Any) -> None:
    before = [known(sample.told("t1", is_fraud=True), "0", vpn=False), known(sample.case("t2"), ""), sample.known("t3")]
    ledger.append(Entry([], at=AT, who="ana", cases=before))
    first, second, third = ledger.remembered(9)
    cases = cases_of(ledger)

    ledger.replace_facts({"t1": {"amount": 9.5, "vpn": True}, "t2": {"hour": 3.0}, "never": {"amount": 1.0}}, "2")
    assert ledger.remembered(9) == [
        replace(first, facts={"amount": 9.5, "vpn": True}, reader="2"),
        replace(second, facts={"hour": 3.0}, reader="2"),
        third,
    ]
    assert cases_of(ledger) == cases, "the case itself stays as it was told"
    ledger.replace_facts({}, "3")
    assert ledger.remembered(9)[2] == third


def test_a_case_that_arrives_again_brings_its_own_facts(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([], at=AT, who="ana", cases=[known(sample.told("t1"), vpn=True)]))
    ledger.replace_facts({"t1": {"amount": 9.5}}, "2")
    ledger.append(Entry([], at=AT, who="ana", cases=[known(sample.case("t1"), "3")]))
    (only,) = ledger.remembered(9)
    assert (only.facts, only.reader, only.has_text) == (sample.case("t1").transaction.facts, "3", False)


# --- decisions and outcomes --------------------------------------------------------------------------------------


def test_finds_decisions_and_outcomes(ledger: Ledger, sample: Any) -> None:
    first, second, other = sample.decision("d1"), sample.decision("d2"), sample.decision("d3", "t2")
    heard, revised = sample.outcome("t1"), sample.outcome("t1", is_fraud=False, revised=True)
    ledger.append(Entry([first, other, heard, sample.outcome("t2")], at=AT, who="ana"))
    ledger.append(Entry([second, revised], at=AT, who="ana"))

    assert ledger.decisions(["d2", "t1"]) == {"d2": second.decision}
    found = TransactionEvents([first.record, second.record], [heard, revised])
    assert ledger.transaction_events(["t1"]) == {"t1": found}


def test_the_events_of_many_transactions_are_those_of_each(ledger: Ledger, sample: Any) -> None:
    payloads: list[EventPayload] = [sample.bullet("t1")]
    for n in range(1_200):
        payloads += [sample.decision(f"d{n}", f"t{n}"), sample.outcome(f"t{n}")][: n % 3]
    ledger.append(
        Entry([*payloads, sample.decision("again", "t2"), sample.outcome("t2", revised=True)], at=AT, who="ana")
    )

    ids = [*(f"t{n}" for n in range(1_200)), "never"]
    found = ledger.transaction_events(ids)
    assert list(found) == ids
    assert {id_ for id_ in ids if found[id_] != TransactionEvents()} == {f"t{n}" for n in range(1_200) if n % 3}
    for one in ids[:60]:
        assert ledger.transaction_events([one]) == {one: found[one]}
    assert [len(found["t2"].decisions), len(found["t2"].outcomes)] == [2, 2]
    assert ledger.transaction_events([]) == {}


def test_changing_an_answer_does_not_change_the_ledger(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.decision("d1"), sample.outcome("t1")], at=AT, who="ana"))
    found = ledger.transaction_events(["t1"])["t1"]
    found.outcomes.clear()
    found.decisions.clear()
    again = ledger.transaction_events(["t1"])["t1"]
    assert [len(again.outcomes), len(again.decisions)] == [1, 1]


def test_finds_many_decisions_by_id(ledger: Ledger, sample: Any) -> None:
    made = [sample.decision(f"d{n}", f"t{n}") for n in range(1_200)]
    ledger.append(Entry([*made, sample.decision("d7", "t7", probability=0.1), sample.outcome("t1")], at=AT, who="ana"))
    found = ledger.decisions([f"d{n}" for n in range(0, 2_400, 2)])
    assert set(found) == {f"d{n}" for n in range(0, 1_200, 2)}
    assert found["d4"] == made[4].decision
    assert ledger.decisions(["d7"])["d7"].probability == 0.1, "the later one"
    assert ledger.decisions(["t1", "t1:label:DECLINE:"]) == {}


def test_a_decision_recorded_again_is_the_later_one(ledger: Ledger, sample: Any) -> None:
    again = sample.decision("d1", probability=0.7)
    ledger.append(Entry([sample.decision("d1"), again], at=AT, who="ana"))
    assert ledger.decisions(["d1"]).get("d1") == again.decision


def test_history_is_the_events_of_one_bullet(ledger: Ledger, sample: Any) -> None:
    payloads: list[EventPayload] = [
        sample.bullet("t1"),
        sample.bullet("b2"),
        sample.decision("d1", "t1"),
        StatusChanged(bullet_id="t1", status=Status.PINNED),
        BulletEdited(bullet_id="t1", content="another text"),
        Recalibrated(node="t1", calibration=Calibration(intercept=-2.5)),
        BulletCredited(credit=Credit(bullet_id="t1", helpful=1)),
        sample.outcome("t1"),
    ]
    ledger.append(Entry(payloads, at=AT, who="ana"))
    assert [event.seq for event in ledger.history("t1")] == [1, 4, 5, 7]


# --- what a service looks for ------------------------------------------------------------------------------------


def received(transaction: str, name: str, is_fraud: bool = True) -> OutcomeReceived:
    return OutcomeReceived(outcome=Outcome(transaction_id=transaction, is_fraud=is_fraud, id=name))


@pytest.fixture
def decided(ledger: Ledger, sample: Any) -> Ledger:
    """Four decisions, an hour apart, with outcomes between them."""
    for n, probability in enumerate((0.1, 0.4, 0.7, 0.9)):
        entry = [sample.decision(f"d{n}", f"t{n}", probability), sample.bullet(f"b{n}")]
        ledger.append(Entry(entry, at=AT + timedelta(hours=n), who="ana"))
    ledger.append(Entry([sample.outcome("t0"), received("t3", "o3")], at=AT, who="bank"))
    return ledger


@pytest.mark.parametrize("is_fraud", [True, False])
def test_an_opinion_is_not_an_outcome(ledger: Ledger, sample: Any, is_fraud: bool) -> None:
    thought = Outcome(transaction_id="t1", is_fraud=is_fraud, source=OutcomeSource.JUDGE)
    told = Transaction(id="t2", facts={"source": "judge"}, text='"source":"judge"')
    truth = Outcome(transaction_id="t2", is_fraud=is_fraud)
    opinions = [sample.outcome("t1").model_copy(update={"outcome": thought}), OutcomeReceived(outcome=thought)]
    decided = [sample.decision("d1", "t1"), sample.decision("d2", "t2")]
    ledger.append(Entry([*decided, *opinions, OutcomeReceived(outcome=truth, transaction=told)], at=AT, who="ana"))
    (found,) = ledger.find_decisions(DecisionFilter(without_outcome=True), limit=9)
    assert found.payload.subject == "t1"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, "3210"),
        ({"ids": ["d2", "d0", "never"]}, "20"),
        ({"ids": []}, ""),
        ({"transaction_ids": {"t1"}}, "1"),
        ({"transaction_ids": ()}, ""),
        ({"since": AT + timedelta(hours=2)}, "32"),
        ({"until": AT + timedelta(hours=2)}, "10"),
        ({"least_probability": 0.4, "most_probability": 0.7}, "21"),
        ({"verdict": Verdict.DECLINE, "least_probability": 0.9}, "3"),
        ({"verdict": Verdict.REVIEW}, ""),
        ({"without_outcome": True}, "21"),
    ],
)
def test_finds_the_decisions_that_are_wanted(decided: Ledger, wanted: dict[str, Any], found: str) -> None:
    events = decided.find_decisions(DecisionFilter(**wanted), limit=9)
    assert [event.payload.record.id for event in events if isinstance(event.payload, DecisionMade)] == [
        f"d{n}" for n in found
    ]
    by_seq = {event.seq: event for event in decided.read()}
    assert events == [by_seq[event.seq] for event in events]
    assert decided.find_decisions(DecisionFilter(**wanted), limit=9, newest_first=False) == events[::-1]


def test_finds_decisions_page_by_page(decided: Ledger) -> None:
    def seqs(**where: Any) -> list[int]:
        return [event.seq for event in decided.find_decisions(DecisionFilter(), **where)]

    assert seqs(limit=2) == [7, 5]
    assert seqs(limit=2, before=5) == [3, 1]
    assert seqs(limit=2, after=1, newest_first=False) == [3, 5]
    assert seqs(limit=9, after=1, before=7) == [5, 3]
    assert seqs(limit=0) == []


@pytest.mark.parametrize("name", ["ids", "transaction_ids"])
def test_finds_decisions_among_any_number_of_ids(decided: Ledger, name: str) -> None:
    letter = "d" if name == "ids" else "t"
    others = [f"other {n}" for n in range(70_000)]
    many = [f"{letter}3", *others[:20_000], f"{letter}0", *others[20_000:], f"{letter}1", f"{letter}3"]
    wanted = DecisionFilter(ids=many) if name == "ids" else DecisionFilter(transaction_ids=many)

    def seqs(**where: Any) -> list[int]:
        return [event.seq for event in decided.find_decisions(wanted, **where)]

    assert seqs(limit=9) == [7, 3, 1]
    assert seqs(limit=2) == [7, 3]
    assert seqs(limit=2, newest_first=False) == [1, 3]
    assert seqs(limit=9, after=1, before=7) == [3]


def test_finds_events_by_kind_and_subject(decided: Ledger) -> None:
    def seqs(kinds: set[str], **where: Any) -> list[int]:
        return [event.seq for event in decided.find_events(kinds, **{"limit": 9, **where})]

    assert seqs({"bullet_added"}) == [2, 4, 6, 8]
    assert seqs({"bullet_added", "outcome_received"}, newest_first=True) == [10, 8, 6, 4, 2]
    assert seqs({"bullet_added"}, subject="b2") == [6]
    assert seqs({"bullet_added"}, after=2, before=8) == [4, 6]
    assert seqs({"bullet_added"}, limit=1, newest_first=True) == [8]
    assert seqs({"bullet_added"}, limit=0) == seqs(set()) == []
    assert decided.find_events({"outcome_heard"}, limit=9) == [event for event in decided.read() if event.seq == 9]


def test_counts_events_by_kind(decided: Ledger) -> None:
    assert decided.count_events({"bullet_added"}, limit=9) == 4
    assert decided.count_events({"bullet_added", "outcome_received"}, after=4, limit=9) == 3
    assert decided.count_events({"bullet_added"}, limit=3) == 3
    assert decided.count_events({"bullet_added"}, after=8, limit=9) == decided.count_events(set(), limit=9) == 0


def test_outcomes_received_or_heard_are_found_by_key_the_first_of_each(ledger: Ledger, sample: Any) -> None:
    first, again, other = received("t1", "o1"), received("t1", "o1"), received("t2", "o2", is_fraud=False)
    events = ledger.append(Entry([first, other, sample.outcome("t3"), again], at=AT, who="bank"))
    keys = [first.outcome.key, other.outcome.key, sample.outcome("t3").outcome.key, "never"]
    assert ledger.received_outcomes(keys) == {keys[0]: events[0], keys[1]: events[1], keys[2]: events[2]}
    assert ledger.received_outcomes([]) == {}


def test_outcomes_received_or_heard_are_found_by_transaction(ledger: Ledger, sample: Any) -> None:
    entry = Entry(
        [received("t1", "o1"), sample.outcome("t2"), sample.decision("d1", "t3"), sample.outcome("t1")], AT, "x"
    )
    events = ledger.append(entry)
    assert ledger.outcome_events(["t1", "t2", "t3"]) == {"t1": [events[0], events[3]], "t2": [events[1]]}
    assert ledger.outcome_events([]) == {}


def test_an_outcome_with_the_key_of_another_is_noticed_whatever_it_is_about(ledger: Ledger) -> None:
    ledger.append(Entry([received("t1", "o1")], AT, "bank"))
    unchanged = Precondition.no_reports_with_keys_since(0, {"o1"})
    with pytest.raises(StoreConflict):
        ledger.append(Entry([received("t2", "o1")], AT, "bank", preconditions=[unchanged]))
    ledger.append(Entry([received("t3", "o3")], AT, "bank", preconditions=[replace(unchanged, keys={"o3"})]))
    assert ledger.last_seq() == 2


def request(key: str, transaction: str = "t1", decision: str = "d1") -> KeptRequest:
    return KeptRequest(key, transaction, f"digest of {key}", decision)


def test_requests_are_found_by_key_and_by_transaction(ledger: Ledger, sample: Any) -> None:
    first, second, third = request("k1"), request("k2", decision="d2"), request("k3", "t3", "d3")
    ledger.append(Entry([sample.decision("d1")], at=AT, who="ana", requests=[first]))
    ledger.append(Entry([sample.decision("d2"), sample.decision("d3", "t3")], AT, "ana", requests=[second, third]))
    assert ledger.requests(["k1", "k3", "never"]) == {"k1": first, "k3": third}
    assert ledger.requests_about(["t1", "t3", "never"]) == {"t1": first, "t3": third}
    assert ledger.requests([]) == ledger.requests_about([]) == {}


def test_a_request_is_answered_once(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.decision("d1")], at=AT, who="ana", requests=[request("k1")]))
    again = Entry([sample.decision("d2")], at=AT, who="ana", requests=[request("k0", "t0"), request("k1", "t2", "d2")])
    with pytest.raises(AlreadyAnswered):
        ledger.append(again)
    assert ledger.requests(["k0", "k1"]) == {"k1": request("k1")}
    assert ledger.recorded(["d1", "d2"]) == {"d1"}
    assert ledger.last_seq() == 1


def test_threads_that_answer_one_request_at_once_write_one_answer(ledger: Ledger, sample: Any) -> None:
    def answer(n: int) -> bool:
        try:
            ledger.append(Entry([sample.decision(f"d{n}")], AT, "ana", requests=[request("k", decision=f"d{n}")]))
        except AlreadyAnswered:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        written = [n for n, done in enumerate(pool.map(answer, range(32))) if done]
    assert len(written) == 1
    assert ledger.recorded([f"d{n}" for n in range(32)]) == {f"d{written[0]}"}
    assert ledger.requests(["k"])["k"].decision_id == f"d{written[0]}"


def test_threads_that_append_under_a_precondition_see_what_is_written_together_with_it(
    ledger: Ledger, sample: Any
) -> None:
    def add(n: int) -> bool:
        try:
            ledger.append(Entry([sample.bullet(f"b{n}")], AT, "ana", preconditions=[Precondition.no_edits_since(0)]))
        except StoreConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(32))) == 1
    assert ledger.last_seq() == 1


def test_waiting_ends_with_an_event_other_than_a_decision(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.bullet("b1"), sample.decision("d1")], at=AT, who="ana"))
    assert ledger.wait_for_events(0, 60)
    assert not ledger.wait_for_events(1, 0)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(ledger.wait_for_events, 1, 60) for _ in range(2)]
        ledger.append(Entry([sample.decision("d2")], at=AT, who="ana"))
        assert not ledger.wait_for_events(1, 0.3), "a decision ends no waiting"
        assert not any(each.done() for each in waiting)
        ledger.append(Entry([sample.decision("d3"), sample.outcome("t1")], at=AT, who="ana"))
        assert [each.result(60) for each in waiting] == [True, True]
    assert not ledger.wait_for_events(5, 0)


@pytest.mark.parametrize("store", OUTLIVING)
def test_waiting_ends_with_an_event_that_another_process_might_have_written(
    store: str, tmp_path: Path, sample: Any
) -> None:
    one, other = STORES[store](tmp_path), STORES[store](tmp_path)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.wait_for_events, 0, 60)
        assert not one.wait_for_events(0, 0.1)
        other.append(Entry([sample.bullet("b1")], at=AT, who="ana"))
        assert waiting.result(60)
    one.close()
    other.close()


@pytest.mark.parametrize("store", OUTLIVING)
def test_waiting_ends_when_the_store_is_closed(store: str, tmp_path: Path) -> None:
    ledger = STORES[store](tmp_path)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ledger.wait_for_events, 0, 60)
        assert not ledger.wait_for_events(0, 0.1)
        ledger.close()
        with pytest.raises(StoreError, match="was closed"):
            waiting.result(10)


@pytest.mark.parametrize("place", ["id", "who"])
def test_a_text_with_a_null_character_comes_back_or_is_refused_with_nothing_written(
    ledger: Ledger, sample: Any, place: str
) -> None:
    entry = Entry([sample.bullet("b\0" if place == "id" else "b")], AT, "a\0" if place == "who" else "a")
    try:
        written = ledger.append(entry)
    except InputError:
        written = []
    assert list(ledger.read()) == written
    assert ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana"))[0].seq == len(written) + 1


def test_rows_are_changed_together_with_the_events(ledger: Ledger, sample: Any) -> None:
    def count(rows: RowStore) -> None:
        before = int(rows.get_many(["count"]).get("count", b"0"))
        rows.put_many({"count": str(before + 1).encode(), "gone": b"x"})
        rows.forget_many(["gone"])

    for n in range(3):
        ledger.append(Entry([sample.bullet(f"b{n}")], at=AT, who="ana", rows=count))
    with ledger.rows() as rows:
        assert rows.get_many(["count", "gone", "never"]) == {"count": b"3"}


def test_a_failed_write_changes_no_rows(ledger: Ledger, sample: Any) -> None:
    def failing(rows: RowStore) -> None:
        rows.clear()
        rows.put_many({"b": b"2"})
        raise RuntimeError("the change broke")

    ledger.append(Entry([sample.bullet("b1")], at=AT, who="ana", rows=lambda rows: rows.put_many({"a": b"1"})))
    with pytest.raises(RuntimeError, match="the change broke"):
        ledger.append(Entry([sample.bullet("b2")], at=AT, who="ana", cases=[sample.known("t1")], rows=failing))
    with pytest.raises(StoreConflict):
        ledger.append(
            Entry([sample.bullet("b2")], at=AT, who="ana", preconditions=[Precondition.no_edits_since(0)], rows=failing)
        )

    assert ledger.last_seq() == 1
    assert cases_of(ledger) == []
    with ledger.rows() as rows:
        assert rows.get_many(["a", "b"]) == {"a": b"1"}


def lines_of(bullets: Sequence[Bullet]) -> bytes:
    return b"\n".join(bullet.model_dump_json(exclude_defaults=True).encode() for bullet in bullets)


def checkpoint_at(seq: int, *contents: str) -> Checkpoint:
    bullets = [Bullet(id=f"b{index}", content=content) for index, content in enumerate(contents)]
    return Checkpoint(CheckpointHeader(seq=seq, revision=seq - 1), lines_of(bullets))


def test_the_latest_checkpoint_comes_back(ledger: Ledger, sample: Any) -> None:
    ledger.save_checkpoint(Checkpoint(CheckpointHeader(seq=3, revision=2)))
    assert ledger.checkpoint() == Checkpoint(CheckpointHeader(seq=3, revision=2))
    frame = CheckpointHeader(
        seq=7,
        revision=6,
        outcomes=2,
        calibrations={"fraud_detection": Calibration(intercept=-2.5, cases=9)},
        mapping="how the columns were read",
        learning={"fraud_detection": LearningState(unreviewed=CaseCount(cases=3, frauds=1), unwatched=3, reviews=2)},
    )
    latest = Checkpoint(frame, lines_of([sample.bullet("b1").bullet, sample.bullet("é\n", 'a "line"\n').bullet]))
    ledger.save_checkpoint(latest)
    assert ledger.checkpoint() == latest


def test_a_checkpoint_takes_the_place_of_the_one_before(ledger: Ledger) -> None:
    ledger.save_checkpoint(checkpoint_at(3, "one", "two"))
    ledger.save_checkpoint(checkpoint_at(5, "three"))
    assert ledger.checkpoint() == checkpoint_at(5, "three")


def test_a_checkpoint_that_is_older_than_the_one_that_is_kept_is_not_written(ledger: Ledger) -> None:
    kept = checkpoint_at(7, "one")
    ledger.save_checkpoint(kept)
    ledger.save_checkpoint(checkpoint_at(6, "two"))
    assert ledger.checkpoint() == kept


def test_only_one_at_a_time_may_claim_some_work(ledger: Ledger) -> None:
    with ledger.claim("learning") as first:
        with ledger.claim("learning") as second, ledger.claim("tidying") as other:
            assert (first, second, other) == (True, False, True)
        with ledger.claim("learning") as third:
            assert not third, "who did not get it does not end it"
    with pytest.raises(ZeroDivisionError), ledger.claim("learning"):
        raise ZeroDivisionError
    with ledger.claim("learning") as after_a_failure:
        assert after_a_failure


def test_a_checkpoint_of_another_fold_gives_way_to_one_of_the_same_place(ledger: Ledger) -> None:
    other = checkpoint_at(7, "one", "two")
    ledger.save_checkpoint(Checkpoint(other.header.model_copy(update={"fold": 1}), other.bullets))
    ours = checkpoint_at(7, "three")
    ledger.save_checkpoint(ours)
    assert ledger.checkpoint() == ours


def test_a_checkpoint_that_comes_back_is_as_good_as_the_events(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([sample.bullet(f"b{n}", f"line {n}\n") for n in range(5)], at=AT, who="ana"))
    state = PlaybookState()
    for event in ledger.read():
        state.apply(event)
    ledger.save_checkpoint(state.checkpoint())
    again = PlaybookState(ledger.checkpoint())
    assert again.snapshot() == state.snapshot()
    assert again.checkpoint() == state.checkpoint()


def test_closing_twice_is_harmless(ledger: Ledger) -> None:
    ledger.close()
    ledger.close()


def events_of_t1(sample: Any) -> dict[str, TransactionEvents]:
    return {"t1": TransactionEvents([sample.decision("d1").record], [sample.outcome("t1")])}


@pytest.mark.parametrize("store", OUTLIVING)
def test_everything_is_there_after_reopening(store: str, tmp_path: Path, sample: Any) -> None:
    ledger = STORES[store](tmp_path)
    payloads = [sample.bullet("b1"), sample.decision("d1"), sample.outcome("t1")]
    written = ledger.append(
        Entry(
            payloads,
            at=AT,
            who="ana",
            why="a start",
            cases=[sample.known("t1"), known(sample.told("t2"), "5", vpn=True)],
            rows=lambda rows: rows.put_many({"e:card:c1": b"\x00\xff"}),
        )
    )
    checkpoint = checkpoint_at(3, "one", "two", "three")
    ledger.save_checkpoint(checkpoint)
    remembered = ledger.remembered(9)
    ledger.close()

    again = STORES[store](tmp_path)
    assert list(again.read()) == written
    assert cases_of(again) == [sample.case("t1"), sample.told("t2")]
    assert again.remembered(9) == remembered
    assert again.transaction_events(["t1"]) == events_of_t1(sample)
    assert again.checkpoint() == checkpoint
    with again.rows() as rows:
        assert rows.get_many(["e:card:c1"]) == {"e:card:c1": b"\x00\xff"}
    assert (
        again.append(Entry([sample.bullet("b2")], at=AT, who="ana", preconditions=[Precondition.no_edits_since(3)]))[
            0
        ].seq
        == 4
    )
    again.close()


# --- whatever can be said comes back as it was -------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(0, 1)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
"""Not every store can keep the null character in a name."""
names = texts.filter(bool)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(timezones=zones)
facts = st.dictionaries(names, st.booleans() | numbers | st.text(max_size=20), max_size=4)
transactions = st.builds(
    Transaction,
    id=names,
    time=st.none() | times,
    facts=facts,
    text=names.map("x{}".format),
    entities=st.dictionaries(names, names, max_size=2),
)
fact_names = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
tests = st.one_of(
    st.builds(Test, fact_names, st.sampled_from([Op.ABOVE, Op.AT_LEAST, Op.BELOW, Op.AT_MOST]), numbers),
    st.builds(Test, fact_names, st.just(Op.IS), st.booleans()),
    st.builds(Test, fact_names, st.just(Op.IN), st.lists(names, min_size=1, max_size=3).map(tuple)),
    st.builds(Test, fact_names, st.just(Op.MISSING)),
)
conditions = st.lists(tests, min_size=1, max_size=4).map(lambda some: Condition.of(*some))
counts = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))
records = counts.map(lambda pair: Record(support=max(pair), frauds=min(pair)))
evidence = st.builds(
    Evidence, learnt=records, base_rate=shares, later=st.none() | records, first_seen=st.none() | times
)
bullets = st.builds(
    Bullet,
    id=names,
    content=names,
    node=names,
    source=st.sampled_from(Source),
    status=st.sampled_from(Status),
    argues=st.none() | st.sampled_from(Verdict),
    condition=st.none() | conditions,
    evidence=st.none() | evidence,
    claim=st.none() | st.builds(Claim, fraud_share=shares, words=names),
    weight=st.none() | numbers,
    added_at=st.none() | times,
    record=records,
)
credits = st.builds(Credit, bullet_id=names, helpful=st.integers(-9, 9), harmful=st.integers(-9, 9))
scores = st.builds(
    BulletScore,
    bullet_id=names,
    quality=numbers,
    semantic=numbers,
    thompson=numbers,
    combined=numbers,
    diversity=numbers,
    total=numbers,
)
traces = st.builds(
    SelectionTrace,
    stages=st.lists(st.builds(StageCount, stage=names, left=st.integers(0, 99)), max_size=2).map(tuple),
    scores=st.lists(scores, max_size=2).map(tuple),
    seed=st.integers(0, 2**63),
)
reasons = st.builds(Reason, kind=st.sampled_from(ReasonKind), text=st.text(max_size=30), contribution=numbers)
decisions = st.builds(
    Decision,
    id=names,
    transaction=transactions,
    node=names,
    verdict=st.sampled_from(Verdict),
    probability=shares,
    threshold=shares,
    base=numbers,
    reasons=st.lists(reasons, max_size=3).map(tuple),
    facts=facts,
    reader=st.text(max_size=3),
    revision=st.integers(0, 2**53),
    selection=traces,
)
outcomes = st.builds(
    Outcome,
    transaction_id=names,
    is_fraud=st.booleans(),
    source=st.sampled_from(OutcomeSource),
    id=texts,
    at=st.none() | times,
)
payloads = st.one_of(
    st.builds(BulletAdded, bullet=bullets),
    st.builds(BulletEdited, bullet_id=names, content=names, condition=st.none() | conditions),
    st.builds(StatusChanged, bullet_id=names, status=st.sampled_from(Status)),
    st.builds(BulletCredited, credit=credits),
    st.builds(
        Recalibrated,
        node=names,
        calibration=st.builds(Calibration, intercept=numbers, base_rate=shares),
        weights=st.dictionaries(names, numbers, max_size=3),
    ),
    decisions.map(DecisionRecord.whole).map(DecisionMade),
    st.builds(
        OutcomeHeard,
        kind=st.sampled_from(["outcome_heard", "outcome_revised"]),
        outcome=outcomes,
        judgement=st.builds(Judgement, ruling=st.sampled_from(Ruling), confidence=shares, reason=names),
        credits=st.lists(credits, max_size=2).map(tuple),
        remembered=st.booleans(),
    ),
    st.builds(
        Trained,
        node=names,
        dataset=names,
        rows=st.integers(0, 99),
        frauds=st.integers(0, 9),
        remembered=st.integers(0, 99),
        remembered_frauds=st.integers(0, 9),
    ),
    st.builds(
        Reviewed,
        node=names,
        whole=st.booleans(),
        cases=st.integers(0, 99),
        frauds=st.integers(0, 9),
        added=st.lists(names, max_size=2).map(tuple),
        questioned=st.lists(names, max_size=2).map(tuple),
        declined=st.text(max_size=20),
    ),
    st.builds(Reread, node=names, reader=names, cases=st.integers(0, 99), changed=st.integers(0, 99)),
)
cases = st.builds(
    Case, transaction=transactions, is_fraud=st.booleans(), known_at=st.none() | times, metadata=st.just({"fold": 1})
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.lists(payloads, min_size=1, max_size=3),
    at=times,
    who=texts,
    why=texts,
    about=st.tuples(cases, facts),
)
def test_any_event_comes_back_as_it_was(
    ledger: Ledger,
    *,
    said: list[EventPayload],
    at: datetime,
    who: str,
    why: str,
    about: tuple[Case, dict[str, FactValue]],
) -> None:
    (case, more), before = about, ledger.last_seq()
    written = ledger.append(
        Entry(said, at=at, who=who, why=why, cases=[KnownCase(case, {**case.transaction.facts, **more}, who)])
    )

    assert [event.payload for event in written] == said
    assert list(ledger.read(after=before)) == written
    assert cases_of(ledger, 1) == [case]
    (kept,) = ledger.remembered(1)
    assert (kept.id, kept.facts, kept.reader) == (case.transaction.id, {**case.transaction.facts, **more}, who)
    assert kept.time == micros_of(case.transaction.time)
    for event in written:
        found = ledger.transaction_events([event.payload.subject])[event.payload.subject]
        if isinstance(event.payload, DecisionMade):
            assert event.payload.decision in found.decisions
        elif isinstance(event.payload, OutcomeHeard):
            assert event.payload in found.outcomes


# --- outcomes that were reported ---------------------------------------------------------------------------------


def test_outcomes_are_found_by_key_and_by_transaction_whether_received_or_heard(ledger: Ledger, sample: Any) -> None:
    reported = OutcomeReceived(outcome=Outcome(id="o1", transaction_id="t1", is_fraud=True))
    first = ledger.append(Entry([sample.bullet("t1"), reported, sample.outcome("t2")], at=AT, who="ana"))
    second = ledger.append(Entry([sample.decision("d1", "t1"), sample.outcome("t1"), reported], at=AT, who="ana"))

    heard = sample.outcome("t2").outcome.key
    assert ledger.received_outcomes(["o1", heard, "o2"]) == {"o1": first[1], heard: first[2]}
    assert ledger.received_outcomes([]) == {}
    assert ledger.outcome_events(["t1", "t2", "t3"]) == {"t1": [first[1], *second[1:]], "t2": [first[2]]}
    assert ledger.outcome_events([]) == {}


def test_a_report_is_refused_after_another_one_of_its_transaction(ledger: Ledger, sample: Any) -> None:
    reported = OutcomeReceived(outcome=Outcome(transaction_id="t1", is_fraud=True))
    ledger.append(Entry([sample.outcome("t2"), reported, sample.decision("d3", "t3")], at=AT, who="ana"))
    assert refused(ledger, sample, Precondition.no_reports_since(0, ["t2", "t3"]))
    assert refused(ledger, sample, Precondition.no_reports_since(1, ["t1"]))
    assert not refused(ledger, sample, Precondition.no_reports_since(1, ["t2", "t3"]))


def test_what_was_taken_in_at_one_node_is_no_conflict_at_another(ledger: Ledger, sample: Any) -> None:
    ledger.append(Entry([OutcomesTakenIn(node="payouts", until=0, count=0)], at=AT, who="ana"))
    assert refused(ledger, sample, Precondition.nothing_taken_in_since(0, "payouts"))
    assert not refused(ledger, sample, Precondition.nothing_taken_in_since(0, "fraud_detection"))
