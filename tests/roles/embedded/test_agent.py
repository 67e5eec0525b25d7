"""The embedded agent: every decision is the sum of its reasons, and a claim weighs little."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, Claim, Evidence, Record, Status
from acefraud.core.calibration import Calibration, log_odds
from acefraud.core.condition import Condition
from acefraud.core.decision import ReasonKind
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.roles.agent import SimpleFraudAgent
from acefraud.roles.embedded.agent import CLAIMED, MEASURED_FROM, weigh, weight_of
from acefraud.roles.protocols import Question

VPN = Condition.parse("vpn is true")
facts_given = st.fixed_dictionaries(
    {},
    optional={
        "amount": st.floats(0, 1e5),
        "account_age_days": st.floats(0, 4000),
        "merchant_rating": st.floats(1, 5),
        "vpn": st.booleans(),
        "night": st.booleans(),
        "vip": st.booleans(),
    },
)
records = st.integers(0, 500).flatmap(
    lambda support: st.builds(Record, support=st.just(support), frauds=st.integers(0, support))
)
bullets_given = st.lists(
    st.builds(
        Bullet,
        id=st.uuids().map(str),
        content=st.just("some bullet"),
        status=st.sampled_from([Status.ACTIVE, Status.CANDIDATE, Status.PINNED]),
        argues=st.none() | st.sampled_from(list(Verdict)),
        condition=st.none()
        | st.sampled_from([VPN, Condition.parse("amount > 500"), Condition.parse("night is false")]),
        evidence=st.none() | st.builds(Evidence, learnt=records, base_rate=st.floats(0, 1)),
        claim=st.none() | st.builds(Claim, fraud_share=st.floats(0, 1), words=st.just("so they say")),
        weight=st.none() | st.floats(-3, 3),
        record=records,
    ),
    max_size=5,
)
calibrations = st.none() | st.builds(
    Calibration,
    intercept=st.floats(-6, 2),
    knowledge_scale=st.just(0.0) | st.floats(0.001, 2),
    threshold=st.floats(0.05, 0.95),
    base_rate=st.floats(0, 1),
)


def bullet(**more: object) -> Bullet:
    return Bullet(id="b", content="a VPN: decline", condition=VPN).model_copy(update=more)


@given(facts_given, bullets_given, calibrations)
def test_base_and_reasons_add_up_to_the_log_odds_of_the_probability(
    facts: dict[str, FactValue], bullets: list[Bullet], calibration: Calibration | None
) -> None:
    assessed = weigh(facts, bullets, calibration)
    total = assessed.base + math.fsum(reason.contribution or 0.0 for reason in assessed.reasons)
    assert log_odds(assessed.probability) == pytest.approx(total, abs=1e-6)
    threshold = calibration.threshold if calibration else 0.5
    assert assessed.verdict is Verdict.of(assessed.probability >= threshold)
    sizes = [abs(reason.contribution or 0.0) for reason in assessed.reasons]
    assert sizes == sorted(sizes, reverse=True)
    assert all(sizes)


@given(facts_given, bullets_given)
def test_only_bullets_whose_condition_holds_are_cited(facts: dict[str, FactValue], bullets: list[Bullet]) -> None:
    cited = {r.bullet_id for r in weigh(facts, bullets, None).reasons if r.kind is ReasonKind.BULLET}
    speaking = {b.id for b in bullets if b.condition is not None and b.condition.holds(facts)}
    assert cited <= speaking


@given(st.floats(0, 1), st.sampled_from(list(Verdict)), st.booleans())
def test_a_claim_moves_a_decision_by_no_more_than_the_documented_amount(
    share: float, argues: Verdict, with_condition: bool
) -> None:
    claimed = bullet(
        claim=Claim(fraud_share=share, words="so they say"), argues=argues, condition=VPN if with_condition else None
    )
    with_it, without = weigh({"vpn": True}, [claimed], None), weigh({"vpn": True}, [], None)
    moved = log_odds(with_it.probability) - log_odds(without.probability)
    assert moved == pytest.approx((CLAIMED if with_condition else 0.0) * (1 if argues == "DECLINE" else -1))


def test_a_bare_opinion_moves_half_of_what_a_claim_may_and_no_opinion_nothing() -> None:
    assert weight_of(bullet(argues=Verdict.DECLINE), 0.1) == CLAIMED / 2
    assert weight_of(bullet(argues=Verdict.APPROVE), 0.1) == -CLAIMED / 2
    assert weight_of(bullet(), 0.1) == 0.0


def test_a_fitted_weight_comes_before_evidence_and_evidence_before_its_own_record() -> None:
    evidence = Evidence(learnt=Record(support=100, frauds=90), base_rate=0.1)
    record = Record(support=100, frauds=1)
    everything = bullet(weight=0.3, evidence=evidence, record=record, argues=Verdict.DECLINE)
    assert weight_of(everything, 0.1) == 0.3
    # (90 + 10 x 0.1) / 110 drawn to the base rate, against it, counted for half
    share = 91 / 110
    assert weight_of(everything.model_copy(update={"weight": None}), 0.1) == pytest.approx(
        0.5 * (math.log(share / (1 - share)) - math.log(0.1 / 0.9))
    )
    assert weight_of(bullet(record=record, argues=Verdict.DECLINE), 0.1) < 0


def test_its_own_record_counts_from_enough_outcomes_on() -> None:
    few, enough = Record(support=MEASURED_FROM - 1, frauds=0), Record(support=MEASURED_FROM, frauds=0)
    assert weight_of(bullet(record=few, argues=Verdict.DECLINE), 0.2) == CLAIMED / 2
    assert weight_of(bullet(record=enough, argues=Verdict.DECLINE), 0.2) < 0


@given(bullets_given.filter(bool), st.floats(0, 1))
def test_a_candidate_that_was_never_fitted_weighs_half(bullets: list[Bullet], base_rate: float) -> None:
    for each in (one.model_copy(update={"weight": None}) for one in bullets):
        active, candidate = (each.model_copy(update={"status": s}) for s in (Status.ACTIVE, Status.CANDIDATE))
        assert weight_of(candidate, base_rate) == pytest.approx(weight_of(active, base_rate) / 2)


def test_neither_a_condition_left_open_nor_a_note_speaks() -> None:
    note = Bullet(id="note", content="sounds nervous: decline", argues=Verdict.DECLINE)
    assert weigh({}, [bullet(argues=Verdict.DECLINE), note], None) == weigh({}, [], None)


def test_bullets_may_be_given_as_plain_english() -> None:
    agent = SimpleFraudAgent(bullets=["A VPN = 97% fraud", "Amount above 50,000: decline"])
    cited = [r.bullet_id for r in agent.explain(Transaction(id="t", facts={"vpn": True, "amount": 60})).reasons]
    assert "given-1" in cited
    assert "given-2" not in cited


def test_both_ways_to_ask_give_the_same_answer() -> None:
    facts: dict[str, FactValue] = {"vpn": True, "account_age_days": 2.0}
    given_bullets = [bullet(weight=1.0)]
    agent = SimpleFraudAgent(bullets=given_bullets)
    assessed = asyncio.run(agent.assess(Question("", facts, given_bullets, None)))
    assert assessed == agent.explain(Transaction(id="t", facts=facts))
    assert agent.analyze(Transaction(id="t", facts=facts)) is assessed.verdict


def test_a_frame_that_gives_general_knowledge_no_weight_leaves_it_out_of_the_reasons() -> None:
    assessed = weigh({"vpn": True}, [], Calibration(intercept=-2.0, knowledge_scale=0.0))
    assert assessed.reasons == ()
    assert log_odds(assessed.probability) == pytest.approx(-2.0)
