"""Proposals of a model are measured: false ones are refused, true ones carry their own figures, others wait."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import Bullet, Evidence, Record, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.events import BulletAdded, StatusChanged
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.roles.embedded.agent import weight_of
from acefraud.roles.embedded.reflector import EmbeddedReflector
from acefraud.roles.proposals import Admission, AdmissionStatus, judge_proposal
from acefraud.roles.protocols import Example, FactSummary, Proposal
from acefraud.roles.reflector import Reflector
from acefraud.storage.playbook import BulletPlaybook

T = TypeVar("T")
START = datetime(2024, 3, 1, tzinfo=UTC)


def run(steps: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(steps)


def claim(content: str, condition: str | None, argues: Verdict | None = Verdict.DECLINE) -> Proposal:
    parsed = None if condition is None else Condition.parse(condition)
    return Proposal(content=content, argues=argues, condition=parsed, model="scripted:one")


FALSE = claim("amount below 10 = 99% fraud", "amount < 10")
TRUE = claim("vpn and amount above 500 = 70% fraud", "vpn is true and amount > 500")
EXAGGERATED = claim("a new device = 95% fraud", "new_device is true")
PROSE = claim("Customers who sound nervous on the phone = 88% fraud", None)
OPINION = claim("Customers who sound nervous on the phone should be declined", None)


class Says:
    """A reflector that says what it was told to, one thing at each call, and then nothing."""

    model = "scripted:one"

    def __init__(self, *proposals: Proposal) -> None:
        self.left = list(proposals)

    async def propose(
        self,
        examples: Sequence[Example],
        facts: Sequence[FactSummary],  # noqa: ARG002
        known: Sequence[Bullet],  # noqa: ARG002
    ) -> Proposal | None:
        assert examples
        return self.left.pop(0) if self.left else None


def world(count: int = 500, seed: int = 1, prefix: str = "c") -> list[Case]:
    """One in five is fraud, nearly all of it through a VPN above 500. New devices are twice as bad as the rest."""
    chance = random.Random(seed)
    made = []
    for n in range(count):
        kind = chance.random()
        if kind < 0.2:
            amount, vpn, fraud = chance.uniform(501, 3000), True, chance.random() < 0.94
        elif kind < 0.4:
            amount, vpn, fraud = chance.uniform(1, 9.9), chance.random() < 0.5, chance.random() < 0.02
        else:
            amount, vpn, fraud = chance.uniform(10, 3000), False, chance.random() < 0.04
        new_device = chance.random() < (0.6 if fraud else 0.215)
        facts = {"amount": amount, "vpn": vpn, "new_device": new_device}
        time = START + timedelta(hours=n)
        made.append(Case(transaction=Transaction(id=f"{prefix}{n}", time=time, facts=facts), is_fraud=fraud))
    return made


def learner_with(*proposals: Proposal, **options: Any) -> Learner:
    reflector = Reflector(model=Says(*proposals))
    return Learner(BulletPlaybook(), reflector=reflector, options=LearnerOptions(**options))


def trained(*proposals: Proposal, cases: Sequence[Case] | None = None) -> Learner:
    learner = learner_with(*proposals)
    run(learner.train(world() if cases is None else cases))
    assert not says(learner).left, "everything was said"
    return learner


def says(learner: Learner) -> Says:
    assert learner.reflector.proposals is not None
    assert isinstance(learner.reflector.proposals.proposer, Says)
    return learner.reflector.proposals.proposer


async def live(learner: Learner, cases: Sequence[Case]) -> None:
    for case in cases:
        await learner.decide(case.transaction)
        await learner.hear(Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud))


def bullets(learner: Learner) -> list[Bullet]:
    return list(learner.playbook.snapshot().bullets.values())


def refusals(learner: Learner) -> list[Admission]:
    assert learner.proposed is not None
    return learner.proposed.refused


def latest(cases: Sequence[Case], share: float = 0.2) -> list[Case]:
    return list(cases[round(len(cases) * (1 - share)) :])


def counted(cases: Sequence[Case], condition: Condition) -> Record:
    held = [case for case in cases if condition.holds(case.transaction.facts)]
    return Record(support=len(held), frauds=sum(case.is_fraud for case in held))


# --- the world is what it is said to be --------------------------------------------------------------------------


def test_the_world_has_what_the_claims_are_about() -> None:
    cases = world()
    assert sum(case.is_fraud for case in cases) / len(cases) == pytest.approx(0.2, abs=0.04)
    for proposal, low, high in ((FALSE, 0.0, 0.08), (TRUE, 0.88, 0.98), (EXAGGERATED, 0.33, 0.5)):
        assert proposal.condition is not None
        precision = counted(cases, proposal.condition).precision
        assert precision is not None
        assert low <= precision <= high


# --- a labelled history ------------------------------------------------------------------------------------------


def test_a_false_claim_never_enters_the_playbook() -> None:
    learner = trained(FALSE)
    assert bullets(learner) == []
    assert not any(event.payload.kind == "bullet_added" for event in learner.playbook.ledger.read())
    (refused,) = refusals(learner)
    assert refused.reason.startswith("argues for DECLINE, but ")
    assert "of 500" not in refused.reason
    assert "against 2" in refused.reason


def test_a_true_claim_enters_with_what_was_measured_and_nothing_of_what_was_stated() -> None:
    learner = trained(TRUE)
    (bullet,) = bullets(learner)
    cases = world()
    assert TRUE.condition is not None
    later = counted(latest(cases), TRUE.condition)
    assert bullet.evidence is not None
    assert bullet.evidence.shown == later
    assert bullet.evidence.learnt == counted(cases[:400], TRUE.condition)
    assert bullet.evidence.cases == 100
    low, high = bullet.evidence.interval
    assert later.precision is not None
    assert 0 < low < later.precision < high <= 1
    figures = f"{later.frauds} of {later.support} past cases were fraud ({100 * later.precision:.0f}%"
    assert figures in bullet.content
    assert f"{100 * low:.0f}-{100 * high:.0f}%" in bullet.content
    for words in (bullet.content, bullet.shown, bullet.evidence.in_words()):
        assert "70" not in words
    assert bullet.claim is None
    assert bullet.remark == ""
    assert (bullet.status, bullet.argues, bullet.source) == (Status.ACTIVE, Verdict.DECLINE, Source.OFFLINE)
    assert matches_replay(learner.playbook)


def test_the_words_of_the_model_are_kept_as_the_reason() -> None:
    ruling = judge_proposal(TRUE, Evidence(learnt=Record(support=50, frauds=47), base_rate=0.2), 500)
    why = ruling.new_bullet(Source.OFFLINE).why
    assert why.startswith("proposed by scripted:one: 'vpn and amount above 500 = 70% fraud'; measured: 47 of 50")


def test_the_ledger_names_the_words_of_the_model() -> None:
    learner = trained(TRUE)
    (added,) = [event for event in learner.playbook.ledger.read() if event.payload.kind == "bullet_added"]
    assert isinstance(added.payload, BulletAdded)
    assert TRUE.content in added.payload.reason


def test_an_exaggeration_is_admitted_at_its_true_size() -> None:
    learner = trained(EXAGGERATED)
    (bullet,) = bullets(learner)
    assert bullet.evidence is not None
    assert EXAGGERATED.condition is not None
    assert bullet.evidence.shown == counted(latest(world()), EXAGGERATED.condition)
    assert bullet.evidence.learnt.precision == pytest.approx(0.41, abs=0.06)
    assert "95%" not in bullet.shown
    assert bullet.claim is None
    whole = judge_proposal(EXAGGERATED, Evidence(learnt=Record(support=100, frauds=41), base_rate=0.2), 500)
    assert whole.status is AdmissionStatus.MEASURED
    assert (
        "41 of 100 past cases were fraud (41%, 32-51%), against 20% of all" in whole.new_bullet(Source.OFFLINE).content
    )


def test_what_argues_the_other_way_is_refused() -> None:
    learner = trained(claim("vpn and amount above 500: approve", "vpn is true and amount > 500", Verdict.APPROVE))
    assert bullets(learner) == []
    assert refusals(learner)[0].reason.startswith("argues for APPROVE, but ")


def test_a_proposal_without_a_side_takes_the_one_that_was_measured() -> None:
    learner = trained(claim("small amounts", "amount < 10", None))
    (bullet,) = bullets(learner)
    assert bullet.argues is Verdict.APPROVE


def test_what_is_no_better_than_chance_is_refused() -> None:
    evidence = Evidence(learnt=Record(support=40, frauds=9), base_rate=0.2)
    ruling = judge_proposal(TRUE, evidence, 500)
    assert (ruling.status, ruling.reason.split(":")[0]) == (AdmissionStatus.REFUSED, "says nothing")


def test_what_hardly_ever_holds_is_refused_where_the_history_is_long() -> None:
    learner = trained(claim("amount above 2990 = 90% fraud", "amount > 2990"))
    assert bullets(learner) == []
    assert "of 500 labelled cases, too few to measure" in refusals(learner)[0].reason


def test_what_hardly_ever_holds_waits_where_the_history_is_short() -> None:
    learner = trained(claim("vpn and amount above 1500 = 90% fraud", "vpn is true and amount > 1500"), cases=world(60))
    (bullet,) = bullets(learner)
    assert (bullet.status, bullet.verified, bullet.evidence) == (Status.CANDIDATE, False, None)
    assert bullet.remark == "[claim, not measured]"


def test_a_longer_history_measures_what_waited() -> None:
    waits = claim("vpn and amount above 1500 = 90% fraud", "vpn is true and amount > 1500")
    learner = trained(waits, cases=world(60))
    run(learner.train(world(prefix="later ")))
    (bullet,) = bullets(learner)
    assert (bullet.status, bullet.verified, bullet.claim) == (Status.ACTIVE, True, None)


@pytest.mark.parametrize(("support", "status"), [(9, AdmissionStatus.REFUSED), (10, AdmissionStatus.MEASURED)])
def test_ten_cases_are_enough_to_measure(support: int, status: AdmissionStatus) -> None:
    evidence = Evidence(learnt=Record(support=support, frauds=support), base_rate=0.2)
    assert judge_proposal(TRUE, evidence, 100).status is status


@pytest.mark.parametrize(("cases", "status"), [(99, AdmissionStatus.UNVERIFIED), (100, AdmissionStatus.REFUSED)])
def test_a_short_history_gives_the_benefit_of_the_doubt(cases: int, status: AdmissionStatus) -> None:
    evidence = Evidence(learnt=Record(support=9, frauds=9), base_rate=0.2)
    assert judge_proposal(TRUE, evidence, cases).status is status
    assert judge_proposal(TRUE, None, cases).status is status


@pytest.mark.parametrize(
    ("proposal", "remark"), [(PROSE, "[claim, not measured]"), (OPINION, "[unverified]")], ids=["figure", "opinion"]
)
def test_prose_waits_and_weighs_nothing(proposal: Proposal, remark: str) -> None:
    learner = trained(TRUE, proposal)
    _, prose = bullets(learner)
    assert (prose.status, prose.condition, prose.evidence, prose.verified) == (Status.CANDIDATE, None, None, False)
    assert prose.content == proposal.content
    assert prose.shown == f"{proposal.content} {remark}"
    frame = learner.playbook.snapshot().calibration("fraud_detection")
    assert frame is not None
    assert weight_of(prose, frame.base_rate) == 0


def test_a_made_up_record_is_shown_as_a_claim() -> None:
    learner = trained(claim("Nervous voices: 47 of 50 past cases were fraud (94%, 84-98%)", None))
    (bullet,) = bullets(learner)
    assert (bullet.status, bullet.evidence, bullet.remark) == (Status.CANDIDATE, None, "[claim, not measured]")


def test_words_that_state_a_condition_are_measured_without_one_beside_them() -> None:
    learner = trained(claim("amount below 10 = 99% fraud", None), claim("vpn + amount above $500 = 70% fraud", None))
    (bullet,) = bullets(learner)
    assert bullet.condition == TRUE.condition
    assert bullet.verified
    assert [refusal.proposal.content for refusal in refusals(learner)] == ["amount below 10 = 99% fraud"]


def test_words_on_facts_that_nobody_knows_stay_prose() -> None:
    learner = learner_with(claim("merchant rating below 2 = 99% fraud", None))
    run(learner.train(world()))
    assert refusals(learner) == []
    assert [bullet.evidence for bullet in bullets(learner)] == [None]


# --- a condition has to hold on other cases ----------------------------------------------------------------------


def faded(early: float, later: float) -> list[Case]:
    """A fact that goes with fraud in one measure at first and in another at the end."""
    chance, made = random.Random(4), []
    for n in range(600):
        odd = chance.random() < 0.3
        fraud = chance.random() < ((early if n < 450 else later) if odd else 0.2)
        facts = {"odd": odd, "amount": chance.uniform(1, 900)}
        transaction = Transaction(id=f"f{n}", time=START + timedelta(hours=n), facts=facts)
        made.append(Case(transaction=transaction, is_fraud=fraud))
    return made


ODD = claim("odd = 80% fraud", "odd is true")


@pytest.mark.parametrize(("later", "stays"), [(0.8, True), (0.2, False), (0.35, False)])
def test_a_condition_that_held_early_and_not_later_is_refused(later: float, stays: bool) -> None:
    learner = trained(ODD, cases=faded(0.8, later))
    assert len(bullets(learner)) == int(stays)
    if not stays:
        assert refusals(learner)[0].reason.startswith("did not hold up on other cases: ")


def test_the_reason_of_a_refusal_names_the_record_that_was_ruled_on() -> None:
    evidence = Evidence(learnt=Record(support=60, frauds=3), later=Record(support=20, frauds=18), base_rate=0.2)
    reason = judge_proposal(TRUE, evidence, 500).reason
    assert reason == "argues for DECLINE, but 3 of 60 past cases were fraud (5.0%, 1.7-13.7%), against 20% of all"


def verified(cases: Sequence[Case], condition: str) -> Evidence:
    reflector = EmbeddedReflector()
    reflector.remember(cases)
    evidence = reflector.memory.cases.measure(Condition.parse(condition), apart=True)
    assert evidence is not None
    return evidence


def test_the_latest_cases_are_counted_apart_and_the_rest_is_all_there() -> None:
    cases = world()
    condition = Condition.parse("vpn is true")
    evidence = verified(random.Random(3).sample(cases, len(cases)), "vpn is true")
    assert evidence.learnt == counted(cases[:400], condition)
    assert evidence.later == counted(cases[400:], condition)


def test_without_times_a_part_drawn_by_id_is_counted_apart() -> None:
    cases = [
        case.model_copy(update={"transaction": case.transaction.model_copy(update={"time": None})}) for case in world()
    ]
    whole = counted(cases, Condition.parse("vpn is true"))
    evidence = verified(cases, "vpn is true")
    assert evidence.later is not None
    assert 0.1 < evidence.later.support / whole.support < 0.3
    assert evidence.learnt.support + evidence.later.support == whole.support
    assert evidence == verified(cases[::-1], "vpn is true"), "whatever the order"


def test_a_pattern_that_is_too_young_for_two_counts_is_counted_as_one() -> None:
    """Five frauds at first and five honest ones at the end are five of ten, not five of five."""
    cases = world(300)
    for n, case in enumerate(cases):
        rare = n in (*range(100, 105), *range(290, 295))
        facts = {**case.transaction.facts, "rare": rare}
        transaction = case.transaction.model_copy(update={"facts": facts})
        cases[n] = case.model_copy(
            update={"transaction": transaction, "is_fraud": n < 200 if rare else case.is_fraud},
        )
    evidence = verified(cases, "rare is true")
    assert (evidence.shown, evidence.later, evidence.cases) == (Record(support=10, frauds=5), None, 300)


def test_a_pattern_that_has_just_begun_can_be_measured() -> None:
    cases = world(300)
    for n, case in enumerate(cases):
        facts = {**case.transaction.facts, "fresh": n >= 280}
        transaction = case.transaction.model_copy(update={"facts": facts})
        cases[n] = case.model_copy(update={"transaction": transaction, "is_fraud": n >= 280 or case.is_fraud})
    learner = trained(claim("fresh = 60% fraud", "fresh is true"), cases=cases)
    (bullet,) = bullets(learner)
    assert bullet.evidence is not None
    assert bullet.evidence.shown == Record(support=20, frauds=20)


# --- one outcome after another -----------------------------------------------------------------------------------


def online(*proposals: Proposal, heard: int = 60) -> Learner:
    """Trained on a history that taught nothing; then outcomes, of which the model makes what it was told to."""
    learner = learner_with()
    run(learner.train(world()))
    says(learner).left.extend(proposals)
    run(live(learner, world(heard, seed=2, prefix="d")))
    assert not says(learner).left
    return learner


def test_a_false_claim_never_enters_online() -> None:
    learner = online(FALSE)
    assert bullets(learner) == []
    assert refusals(learner)[0].reason.startswith("argues for DECLINE, but ")


def test_a_true_claim_enters_online_with_what_was_measured() -> None:
    learner = online(TRUE, PROSE)
    first, prose = bullets(learner)
    assert (first.status, first.source, first.argues) == (Status.ACTIVE, Source.ONLINE, Verdict.DECLINE)
    assert first.evidence is not None
    assert first.evidence.shown.precision == pytest.approx(0.93, abs=0.07)
    assert first.evidence.in_words() in first.content
    assert "70" not in first.shown
    assert first.claim is None
    assert (prose.status, prose.remark) == (Status.CANDIDATE, "[claim, not measured]")
    assert matches_replay(learner.playbook)


def test_too_rare_and_contrary_claims_are_refused_online() -> None:
    rare = claim("amount above 2995 = 90% fraud", "amount > 2995")
    contrary = claim("vpn and amount above 500: approve", "vpn is true and amount > 500", Verdict.APPROVE)
    learner = online(rare, contrary, heard=120)
    assert bullets(learner) == []
    assert [refusal.proposal.content for refusal in refusals(learner)] == [rare.content, contrary.content]


@pytest.mark.parametrize(("proposal", "status"), [(TRUE, Status.ACTIVE), (FALSE, Status.RETIRED)])
def test_what_came_too_early_is_looked_at_again(proposal: Proposal, status: Status) -> None:
    learner = learner_with(reflect_every=25)
    says(learner).left.append(proposal)
    cases = iter(world(300))
    while says(learner).left:
        run(live(learner, [next(cases)]))
    (early,) = bullets(learner)
    assert (early.status, early.verified, early.content) == (Status.CANDIDATE, False, proposal.content)
    assert early.remark == "[claim, not measured]"
    run(live(learner, list(cases)))
    (late,) = bullets(learner)
    assert late.status is status
    if status is Status.ACTIVE:
        assert late.evidence is not None
        assert late.evidence.in_words() in late.content
        assert late.claim is None
        assert "70" not in late.content
    else:
        assert late.evidence is None
        reasons = [e.payload.reason for e in learner.playbook.ledger.read() if isinstance(e.payload, StatusChanged)]
        assert reasons[0].startswith(("argues for DECLINE, but ", "says nothing: "))
    assert matches_replay(learner.playbook)


def test_the_words_of_a_person_are_left_alone() -> None:
    learner = learner_with(reflect_every=20)
    by_hand = learner.playbook.add_bullet("amount below 10 = 99% fraud", status=Status.CANDIDATE, who="anna")
    run(live(learner, world(120)))
    bullet = learner.playbook.get_bullet(by_hand)
    assert bullet is not None
    assert (bullet.content, bullet.status, bullet.evidence) == ("amount below 10 = 99% fraud", Status.CANDIDATE, None)
