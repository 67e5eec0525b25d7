"""The state of a playbook: credits that are added up equal credits applied one by one; what was reviewed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, Record, Status
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.events import (
    BulletAdded,
    BulletCredited,
    BulletEdited,
    Credit,
    DecisionMade,
    Event,
    EventPayload,
    OutcomeHeard,
    Recalibrated,
    Reread,
    Reviewed,
    StatusChanged,
    Trained,
)
from acefraud.core.outcome import Judgement, Outcome, Ruling
from acefraud.core.playbook import CaseCount, LearningState, PlaybookState
from acefraud.core.transaction import Transaction, Verdict

AT = datetime(2025, 1, 6, tzinfo=UTC)
NAMES = ("a", "b", "c")
NODE = "fraud_detection"

names = st.sampled_from(NAMES)
few = st.integers(-3, 3)
any_credit = st.builds(
    Credit, bullet_id=names, helpful=few, harmful=few, selected=few, fired=few, fired_frauds=few
)  # also what no learner writes, such as more frauds than cases
plain_credit = st.builds(
    Credit, bullet_id=names, helpful=st.integers(0, 1), selected=st.integers(0, 1), fired=st.integers(0, 1)
)
credits = plain_credit | plain_credit.map(Credit.reversed) | any_credit
added = st.builds(BulletAdded, bullet=st.builds(Bullet, id=names, content=st.just("VPN: decline")))
payloads = st.one_of(
    st.builds(
        OutcomeHeard,
        outcome=st.just(Outcome(transaction_id="t", is_fraud=True)),
        judgement=st.just(Judgement(ruling=Ruling.CORRECT)),
        credits=st.lists(credits, max_size=3).map(tuple),
    ),
    st.builds(BulletCredited, credit=credits),
    added,
    st.builds(StatusChanged, bullet_id=names, status=st.sampled_from(Status)),
    st.builds(
        BulletEdited,
        bullet_id=names,
        content=st.just("VPN or not: decline"),
        condition=st.sampled_from([None, Condition.parse("vpn is true")]),
    ),
    st.builds(
        Recalibrated,
        node=st.just(NODE),
        calibration=st.just(Calibration(intercept=-1.0)),
        weights=st.dictionaries(names, st.sampled_from([-1.0, 2.0]), max_size=2),
    ),
)
looks = st.sampled_from(["nothing", "nothing", "nothing", "snapshot", "branch", "checkpoint", "get"])


class OneByOne:
    """The counters alone, each credit written to its bullet at once."""

    def __init__(self) -> None:
        self.counters: dict[str, tuple[int, int, int, int, int]] = {}
        self.retired: set[str] = set()
        self.conditions: dict[str, Condition | None] = {}

    def follow(self, what: EventPayload) -> None:
        match what:
            case BulletAdded(bullet=bullet):
                self.counters[bullet.id] = (0, 0, 0, 0, 0)
                self.retired.discard(bullet.id)
                self.conditions[bullet.id] = bullet.condition
            case StatusChanged(bullet_id=one, status=status):
                if one in self.retired:
                    self._forget_record(one)
                (self.retired.add if status is Status.RETIRED else self.retired.discard)(one)
            case BulletEdited(bullet_id=one, condition=condition):
                if condition != self.conditions[one]:
                    self._forget_record(one)
                self.conditions[one] = condition
            case BulletCredited(credit=credit):
                self._credit(credit)
            case OutcomeHeard(credits=some):
                for credit in some:
                    self._credit(credit)

    def _forget_record(self, one: str) -> None:
        self.counters[one] = (*self.counters[one][:3], 0, 0)

    def _credit(self, credit: Credit) -> None:
        if credit.bullet_id in self.counters:
            helpful, harmful, selected, fired, frauds = self.counters[credit.bullet_id]
            support = max(0, fired + credit.fired)
            self.counters[credit.bullet_id] = (
                max(0, helpful + credit.helpful),
                max(0, harmful + credit.harmful),
                max(0, selected + credit.selected),
                support,
                min(support, max(0, frauds + credit.fired_frauds)),
            )


def counters(state: PlaybookState) -> dict[str, tuple[int, int, int, int, int]]:
    return {
        bullet.id: (
            bullet.helpful_count,
            bullet.harmful_count,
            bullet.times_selected,
            bullet.record.support,
            bullet.record.frauds,
        )
        for bullet in state.snapshot().bullets.values()
    }


def event(seq: int, what: EventPayload) -> Event:
    return Event(seq=seq, at=AT, who="ana", payload=what)


def about_nobody(what: EventPayload, there: set[str]) -> bool:
    """Whether it changes a bullet that was never added, which no playbook writes."""
    match what:
        case StatusChanged(bullet_id=one) | BulletEdited(bullet_id=one):
            return one not in there
        case Recalibrated(weights=weights):
            return not set(weights) <= there
    return False


def credit_of(one: str, fired: int, frauds: int = 0) -> BulletCredited:
    return BulletCredited(credit=Credit(bullet_id=one, helpful=1, fired=fired, fired_frauds=frauds))


@example([(credit_of("a", 1), "nothing"), (BulletAdded(bullet=Bullet(id="a", content="x")), "nothing")])
@example([(BulletAdded(bullet=Bullet(id="a", content="x")), "nothing"), (credit_of("a", 0, 1), "nothing")] * 2)
@given(st.lists(st.tuples(payloads, looks), max_size=40))
def test_credits_added_up_equal_credits_applied_one_by_one(said: list[tuple[EventPayload, str]]) -> None:
    state, expected, looked, there = PlaybookState(), OneByOne(), PlaybookState(), set[str]()
    for seq, (what, look) in enumerate(said, 1):
        if about_nobody(what, there):
            continue
        if isinstance(what, BulletAdded):
            there.add(what.bullet.id)
        state.apply(event(seq, what))
        looked.apply(event(seq, what))
        looked.snapshot()
        expected.follow(what)
        if look == "snapshot":
            assert counters(state) == expected.counters
        elif look == "branch":
            state = state.branch()
        elif look == "checkpoint":
            state = PlaybookState(state.checkpoint())
        elif look == "get":
            state.get("a")
    assert counters(state) == expected.counters
    assert state.checkpoint() == looked.checkpoint(), "looking at it after every event changes nothing"


def test_a_branch_changes_independently() -> None:
    state = PlaybookState()
    state.apply(event(1, BulletAdded(bullet=Bullet(id="a", content="x"))))
    state.apply(event(2, credit_of("a", 1)))
    branch = state.branch()
    branch.apply(event(3, credit_of("a", 1)))
    assert (counters(state)["a"][0], counters(branch)["a"][0]) == (1, 2)


def test_a_snapshot_keeps_the_counters_it_was_taken_with() -> None:
    state = PlaybookState()
    state.apply(event(1, BulletAdded(bullet=Bullet(id="a", content="x"))))
    state.apply(event(2, credit_of("a", 1)))
    before = state.snapshot()
    state.apply(event(3, credit_of("a", 1)))
    assert before.bullets["a"].record == Record(support=1, frauds=0)
    assert state.snapshot().bullets["a"].record == Record(support=2, frauds=0)


# --- how far learning has come -----------------------------------------------------------------------------------


def heard(is_fraud: bool, *, node: str = NODE, remembered: bool = True) -> OutcomeHeard:
    return OutcomeHeard(
        node=node,
        outcome=Outcome(transaction_id="t", is_fraud=is_fraud),
        judgement=Judgement(ruling=Ruling.CORRECT),
        remembered=remembered,
    )


def learning_after(*said: EventPayload, node: str = NODE) -> LearningState:
    state = PlaybookState()
    for seq, what in enumerate(said, 1):
        state.apply(event(seq, what))
    assert PlaybookState(state.checkpoint()).learning(node) == state.learning(node)
    assert state.branch().learning(node) == state.learning(node)
    return state.learning(node)


def reviewed(whole: bool = True) -> Reviewed:
    return Reviewed(node=NODE, whole=whole, cases=7, frauds=2)


def test_outcomes_wait_to_be_reviewed_and_watched() -> None:
    state = learning_after(heard(True), heard(False), heard(False))
    assert state == LearningState(unreviewed=CaseCount(cases=3, frauds=1), unwatched=3)


def test_only_remembered_cases_count_for_each_node() -> None:
    said = [heard(True, remembered=False), heard(True, node="another")]
    assert learning_after(*said) == LearningState()
    assert learning_after(*said, node="another").unreviewed == CaseCount(cases=1, frauds=1)


@pytest.mark.parametrize(
    ("what", "after"),
    [
        (reviewed(), LearningState(remembered=CaseCount(cases=7, frauds=2), reviews=1)),
        (reviewed(whole=False), LearningState(unreviewed=CaseCount(cases=1, frauds=1))),
        (
            Trained(node=NODE, dataset="d", rows=90, frauds=20, remembered=50, remembered_frauds=9),
            LearningState(remembered=CaseCount(cases=50, frauds=9)),
        ),
        (
            Reread(node=NODE, reader="2", cases=5, changed=1),
            LearningState(unreviewed=CaseCount(cases=1, frauds=1), unwatched=1, rereads=1),
        ),
    ],
)
def test_a_review_begins_a_new_count(what: EventPayload, after: LearningState) -> None:
    assert learning_after(heard(True), what) == after


def test_reviews_are_numbered() -> None:
    state = learning_after(reviewed(), heard(False), reviewed(whole=False), reviewed(), heard(True))
    assert (state.reviews, state.unreviewed, state.unwatched) == (2, CaseCount(cases=1, frauds=1), 1)


def test_decisions_may_be_skipped(sample_decision: DecisionMade) -> None:
    told, passed = PlaybookState(), PlaybookState()
    for state in (told, passed):
        state.apply(event(1, heard(True)))
    told.apply(event(2, sample_decision))
    passed.skip_to(2)
    assert told.checkpoint() == passed.checkpoint()
    passed.skip_to(1)
    assert passed.seq == 2, "it never goes back"


@pytest.fixture
def sample_decision() -> DecisionMade:
    decision = Decision(
        id="d",
        transaction=Transaction(id="t", facts={"amount": 5.0}),
        verdict=Verdict.APPROVE,
        probability=0.1,
        threshold=0.5,
        base=0.0,
        revision=0,
    )
    return DecisionMade(DecisionRecord.whole(decision))
