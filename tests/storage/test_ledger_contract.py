"""What every ledger promises. A new store is one more entry in STORES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acefraud.core.book import Book
from acefraud.core.bullet import Bullet, Claim, Source, Status
from acefraud.core.condition import Condition, Op, Test
from acefraud.core.decision import BulletScore, Decision, Reason, ReasonKind, SelectionTrace, StageCount
from acefraud.core.events import (
    BulletAdded,
    BulletCredited,
    BulletEdited,
    Credit,
    DecisionMade,
    Happening,
    OutcomeHeard,
    Recalibrated,
    StatusChanged,
)
from acefraud.core.evidence import Evidence, Record
from acefraud.core.ledger import Ledger, RowStore
from acefraud.core.outcome import Judgement, Outcome, OutcomeSource, Ruling
from acefraud.core.page import KeptPage
from acefraud.core.playbook import Checkpoint, Frame, PlaybookState
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.errors import StoreConflict
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.sqlite import SqliteLedger

STORES: dict[str, Callable[[Path], Ledger]] = {
    "memory": lambda _: MemoryLedger(),
    "sqlite": lambda directory: SqliteLedger.open(directory / "playbook.db"),
}
OUTLIVING = ("sqlite",)
"""Those whose contents outlive the process."""

AT = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture(params=STORES)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()


def test_a_new_ledger_is_empty(ledger: Ledger) -> None:
    assert ledger.last_seq() == 0
    assert list(ledger.read()) == []
    assert ledger.cases() == []
    assert ledger.checkpoint() is None
    assert ledger.decision("d1") is None
    assert ledger.decisions_of("t1") == []
    assert ledger.outcomes_of("t1") == []
    assert ledger.history("b1") == []


def test_events_keep_the_order_they_were_appended_in(ledger: Ledger, sample: Any) -> None:
    first = ledger.append([sample.bullet("b1"), sample.decision("d1")], at=AT, who="ana", why="a start")
    second = ledger.append([sample.outcome("t1")], at=AT + timedelta(days=1), who="bank")

    assert [event.seq for event in first + second] == [1, 2, 3]
    assert list(ledger.read()) == first + second
    assert (first[0].who, first[0].why, first[0].at) == ("ana", "a start", AT)
    assert ledger.last_seq() == 3


def test_appending_nothing_writes_nothing(ledger: Ledger) -> None:
    assert ledger.append([], at=AT, who="ana") == []
    assert ledger.last_seq() == 0


@pytest.mark.parametrize("expected", [0, 2])
def test_an_edit_based_on_another_state_is_refused_whole(ledger: Ledger, sample: Any, expected: int) -> None:
    ledger.append([sample.bullet("b1")], at=AT, who="ana")

    with pytest.raises(StoreConflict, match=f"event 1, .* event {expected}"):
        ledger.append([sample.bullet("b2")], at=AT, who="ben", expected=expected, cases=[sample.case("t1")])

    assert ledger.last_seq() == 1
    assert ledger.cases() == []


def test_an_edit_based_on_the_present_state_is_taken(ledger: Ledger, sample: Any) -> None:
    ledger.append([sample.bullet("b1")], at=AT, who="ana", expected=0)
    assert ledger.append([sample.bullet("b2")], at=AT, who="ana", expected=1)[0].seq == 2


def test_a_batch_that_fails_leaves_nothing(ledger: Ledger, sample: Any) -> None:
    def failing() -> Iterator[Happening]:
        yield sample.bullet("b1")
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        ledger.append(list(failing()), at=AT, who="ana", cases=[sample.case("t1")])
    with pytest.raises(ValueError, match="who"):
        ledger.append([sample.bullet("b1")], at=AT, who=None, cases=[sample.case("t1")])  # type: ignore[arg-type]

    assert ledger.last_seq() == 0
    assert ledger.cases() == []


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
def test_reads_a_stretch(ledger: Ledger, sample: Any, after: int, until: int | None, seqs: list[int]) -> None:
    ledger.append([sample.bullet(f"b{n}") for n in range(4)], at=AT, who="ana")
    assert [event.seq for event in ledger.read(after, until)] == seqs


def test_reading_ends_where_the_ledger_stood(ledger: Ledger, sample: Any) -> None:
    ledger.append([sample.bullet("b1"), sample.bullet("b2")], at=AT, who="ana")
    seen = []
    for event in ledger.read():
        seen.append(event.seq)
        ledger.append([sample.bullet(f"b{event.seq + 2}")], at=AT, who="ana")
    assert seen == [1, 2]


def test_reads_more_than_fits_a_page(ledger: Ledger, sample: Any) -> None:
    ledger.append([sample.bullet(f"b{n}") for n in range(2_001)], at=AT, who="ana")
    assert [event.seq for event in ledger.read()] == list(range(1, 2_002))


def test_cases_replace_and_move_to_the_end(ledger: Ledger, sample: Any) -> None:
    ledger.append([], at=AT, who="ana", cases=[sample.case("t1"), sample.case("t2"), sample.case("t3")])
    ledger.append([], at=AT, who="ana", cases=[sample.case("t1", is_fraud=True)])
    ledger.append([], at=AT, who="ana", cases=[sample.case("t4"), sample.case("t2"), sample.case("t4", is_fraud=True)])

    assert ledger.cases() == [
        sample.case("t3"),
        sample.case("t1", is_fraud=True),
        sample.case("t2"),
        sample.case("t4", is_fraud=True),
    ]


@pytest.mark.parametrize(("limit", "left"), [(None, 3), (5, 3), (3, 3), (2, 2), (0, 0)])
def test_cases_are_limited_to_the_latest(ledger: Ledger, sample: Any, limit: int | None, left: int) -> None:
    cases = [sample.case(f"t{n}") for n in range(3)]
    ledger.append([], at=AT, who="ana", cases=cases)
    assert ledger.cases(limit) == cases[3 - left :]


def test_finds_decisions_and_outcomes(ledger: Ledger, sample: Any) -> None:
    first, second, other = sample.decision("d1"), sample.decision("d2"), sample.decision("d3", "t2")
    heard, revised = sample.outcome("t1"), sample.outcome("t1", is_fraud=False, revised=True)
    ledger.append([first, other, heard, sample.outcome("t2")], at=AT, who="ana")
    ledger.append([second, revised], at=AT, who="ana")

    assert ledger.decision("d2") == second.decision
    assert ledger.decision("t1") is None
    assert ledger.decisions_of("t1") == [first, second]
    assert ledger.outcomes_of("t1") == [heard, revised]


def test_a_decision_recorded_again_is_the_later_one(ledger: Ledger, sample: Any) -> None:
    again = sample.decision("d1", probability=0.7)
    ledger.append([sample.decision("d1"), again], at=AT, who="ana")
    assert ledger.decision("d1") == again.decision


def test_history_is_what_happened_to_one_bullet(ledger: Ledger, sample: Any) -> None:
    happenings: list[Happening] = [
        sample.bullet("t1"),
        sample.bullet("b2"),
        sample.decision("d1", "t1"),
        StatusChanged(bullet_id="t1", status=Status.PINNED),
        BulletEdited(bullet_id="t1", content="another text"),
        Recalibrated(node="t1", calibration=Calibration(intercept=-2.5)),
        BulletCredited(credit=Credit(bullet_id="t1", helpful=1)),
        sample.outcome("t1"),
    ]
    ledger.append(happenings, at=AT, who="ana")
    assert [event.seq for event in ledger.history("t1")] == [1, 4, 5, 7]


def test_rows_are_changed_together_with_the_events(ledger: Ledger, sample: Any) -> None:
    def count(rows: RowStore) -> None:
        before = int(rows.get_many(["count"]).get("count", b"0"))
        rows.put_many({"count": str(before + 1).encode(), "gone": b"x"})
        rows.forget_many(["gone"])

    for n in range(3):
        ledger.append([sample.bullet(f"b{n}")], at=AT, who="ana", rows=count)
    with ledger.rows() as rows:
        assert rows.get_many(["count", "gone", "never"]) == {"count": b"3"}


def test_what_fails_or_is_refused_changes_no_rows(ledger: Ledger, sample: Any) -> None:
    def failing(rows: RowStore) -> None:
        rows.clear()
        rows.put_many({"b": b"2"})
        raise RuntimeError("the change broke")

    ledger.append([sample.bullet("b1")], at=AT, who="ana", rows=lambda rows: rows.put_many({"a": b"1"}))
    with pytest.raises(RuntimeError, match="the change broke"):
        ledger.append([sample.bullet("b2")], at=AT, who="ana", cases=[sample.case("t1")], rows=failing)
    with pytest.raises(StoreConflict):
        ledger.append([sample.bullet("b2")], at=AT, who="ana", expected=0, rows=failing)

    assert ledger.last_seq() == 1
    assert ledger.cases() == []
    with ledger.rows() as rows:
        assert rows.get_many(["a", "b"]) == {"a": b"1"}


def page_of(*contents: str) -> KeptPage:
    bullets = [Bullet(id=f"b{place}", content=content) for place, content in enumerate(contents)]
    return Book.of(bullets).pages[0].kept()


def checkpoint_at(seq: int, pages: dict[int, KeptPage]) -> Checkpoint:
    return Checkpoint(Frame(seq=seq, revision=seq - 1, nodes=("fraud_detection",)), pages)


def test_the_latest_checkpoint_comes_back(ledger: Ledger, sample: Any) -> None:
    assert ledger.save_checkpoint(Checkpoint(Frame(seq=3, revision=2)))
    assert ledger.checkpoint() == Checkpoint(Frame(seq=3, revision=2))
    frame = Frame(
        seq=7,
        settled=6,
        revision=6,
        outcomes=2,
        nodes=("fraud_detection", 'a "node"'),
        calibrations={"fraud_detection": Calibration(intercept=-2.5, cases=9)},
        mapping="how the columns were read",
    )
    latest = Checkpoint(
        frame, {0: Book.of([sample.bullet("b1").bullet, sample.bullet("é\n", 'a "line"\n').bullet]).pages[0].kept()}
    )
    assert ledger.save_checkpoint(latest)
    assert ledger.checkpoint() == latest


def test_a_whole_checkpoint_takes_the_place_of_all_pages(ledger: Ledger) -> None:
    ledger.save_checkpoint(checkpoint_at(3, {0: page_of("one"), 1: page_of("two")}))
    smaller = checkpoint_at(5, {0: page_of("three")})
    assert ledger.save_checkpoint(smaller)
    assert ledger.checkpoint() == smaller


def test_pages_are_kept_on_top_of_those_of_the_checkpoint_before(ledger: Ledger) -> None:
    first, second, third = page_of("one"), page_of("two"), page_of("three")
    ledger.save_checkpoint(checkpoint_at(3, {0: first, 1: second}))
    assert ledger.save_checkpoint(checkpoint_at(7, {1: third, 2: first}), on_top_of=3)
    assert ledger.checkpoint() == checkpoint_at(7, {0: first, 1: third, 2: first})
    assert ledger.save_checkpoint(checkpoint_at(9, {}), on_top_of=7)
    assert ledger.checkpoint() == checkpoint_at(9, {0: first, 1: third, 2: first})


@pytest.mark.parametrize("on_top_of", [0, 2, 4, 7])
def test_nothing_is_kept_on_top_of_another_checkpoint_than_the_one_that_is_kept(ledger: Ledger, on_top_of: int) -> None:
    kept = checkpoint_at(3, {0: page_of("one")})
    ledger.save_checkpoint(kept)
    assert not ledger.save_checkpoint(checkpoint_at(7, {0: page_of("two")}), on_top_of=on_top_of)
    assert ledger.checkpoint() == kept


@pytest.mark.parametrize("on_top_of", [0, 3])
def test_nothing_is_kept_on_top_of_a_checkpoint_that_is_not_there(ledger: Ledger, on_top_of: int) -> None:
    assert not ledger.save_checkpoint(checkpoint_at(7, {0: page_of("two")}), on_top_of=on_top_of)
    assert ledger.checkpoint() is None


@pytest.mark.parametrize("on_top_of", [None, 7])
def test_a_checkpoint_that_is_older_than_the_one_that_is_kept_is_not_written(
    ledger: Ledger, on_top_of: int | None
) -> None:
    kept = checkpoint_at(7, {0: page_of("one")})
    ledger.save_checkpoint(kept)
    assert not ledger.save_checkpoint(checkpoint_at(6, {0: page_of("two")}), on_top_of=on_top_of)
    assert ledger.checkpoint() == kept


def test_a_checkpoint_of_another_fold_gives_way_to_one_of_the_same_place(ledger: Ledger) -> None:
    other = checkpoint_at(7, {0: page_of("one"), 1: page_of("two")})
    ledger.save_checkpoint(Checkpoint(other.frame.model_copy(update={"fold": 1}), other.pages))
    ours = checkpoint_at(7, {0: page_of("three")})
    assert ledger.save_checkpoint(ours)
    assert ledger.checkpoint() == ours


def test_a_checkpoint_that_comes_back_is_as_good_as_the_events(ledger: Ledger, sample: Any) -> None:
    ledger.append([sample.bullet(f"b{n}", f"line {n}\n") for n in range(5)], at=AT, who="ana")
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


@pytest.mark.parametrize("store", OUTLIVING)
def test_everything_is_there_after_reopening(store: str, tmp_path: Path, sample: Any) -> None:
    ledger = STORES[store](tmp_path)
    happenings = [sample.bullet("b1"), sample.decision("d1"), sample.outcome("t1")]
    written = ledger.append(
        happenings,
        at=AT,
        who="ana",
        why="a start",
        cases=[sample.case("t1")],
        rows=lambda rows: rows.put_many({"e:card:c1": b"\x00\xff"}),
    )
    checkpoint = checkpoint_at(3, {0: page_of("one", "two"), 1: page_of("three")})
    ledger.save_checkpoint(checkpoint)
    ledger.close()

    again = STORES[store](tmp_path)
    assert list(again.read()) == written
    assert again.cases() == [sample.case("t1")]
    assert again.checkpoint() == checkpoint
    with again.rows() as rows:
        assert rows.get_many(["e:card:c1"]) == {"e:card:c1": b"\x00\xff"}
    assert again.append([sample.bullet("b2")], at=AT, who="ana", expected=3)[0].seq == 4
    again.close()


# --- whatever can be said comes back as it was -------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(0, 1)
names = st.text(min_size=1, max_size=20)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(timezones=zones) | st.datetimes()
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
    revision=st.integers(0, 2**53),
    selection=traces,
)
outcomes = st.builds(
    Outcome,
    transaction_id=names,
    is_fraud=st.booleans(),
    source=st.sampled_from(OutcomeSource),
    id=st.text(max_size=9),
    at=st.none() | times,
)
happenings = st.one_of(
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
    st.builds(DecisionMade, decision=decisions),
    st.builds(
        OutcomeHeard,
        kind=st.sampled_from(["outcome_heard", "outcome_revised"]),
        outcome=outcomes,
        judgement=st.builds(Judgement, ruling=st.sampled_from(Ruling), confidence=shares, reason=names),
        credits=st.lists(credits, max_size=2).map(tuple),
    ),
)
cases = st.builds(
    Case, transaction=transactions, is_fraud=st.booleans(), known_at=st.none() | times, metadata=st.just({"fold": 1})
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(happenings, min_size=1, max_size=3), at=times, who=st.text(max_size=9), why=st.text(), case=cases)
def test_any_event_comes_back_as_it_was(
    ledger: Ledger, *, said: list[Happening], at: datetime, who: str, why: str, case: Case
) -> None:
    before = ledger.last_seq()
    written = ledger.append(said, at=at, who=who, why=why, cases=[case])

    assert [event.what for event in written] == said
    assert list(ledger.read(after=before)) == written
    assert ledger.cases(1) == [case]
    for event in written:
        if isinstance(event.what, DecisionMade):
            assert event.what in ledger.decisions_of(event.what.subject)
        elif isinstance(event.what, OutcomeHeard):
            assert event.what in ledger.outcomes_of(event.what.subject)
