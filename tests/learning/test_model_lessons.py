"""Asking a reflector on a model: few calls, failures that teach nothing, budgets that end the asking alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import pytest
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import Bullet, Status
from acefraud.core.condition import Condition
from acefraud.core.events import Reviewed, StatusChanged
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, FactValue, Transaction, Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.errors import BudgetExceeded, ModelMalformed, ModelTimeout, StoreConflict
from acefraud.learning import review as apply_review
from acefraud.learning.learner import Learner
from acefraud.learning.model_lessons import ModelLessons, ReflectionPolicy
from acefraud.learning.review import ZERO_WEIGHT
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.embedded.reflector import EmbeddedReflector
from acefraud.roles.proposals import KNOWN_SHOWN, Proposals
from acefraud.roles.protocols import Assessment, Example, FactSummary, Proposal, Question
from acefraud.roles.reflector import Reflector
from acefraud.storage.playbook import BulletPlaybook

T = TypeVar("T")
Answer = Proposal | Exception | None


FIVES = ReflectionPolicy(together=5, contrast=3, most_share=0.3)


def run(steps: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(steps)


def proposal(condition: str, argues: Verdict = Verdict.DECLINE) -> Proposal:
    return Proposal(content=f"{condition} = 70% fraud", argues=argues, condition=Condition.parse(condition), model="m")


TRUE = proposal("vpn is true and amount > 500")
FALSE = proposal("amount < 10")


class Scripted:
    """A reflector that keeps what it was shown, and answers by a rule."""

    model = "scripted"

    def __init__(self, answer: Callable[[int], Answer] = lambda _: None) -> None:
        self.answer = answer
        self.shown: list[tuple[Example, ...]] = []
        self.facts: list[tuple[str, ...]] = []
        self.known: list[tuple[Bullet, ...]] = []

    async def propose(
        self, examples: Sequence[Example], facts: Sequence[FactSummary], known: Sequence[Bullet]
    ) -> Proposal | None:
        self.shown.append(tuple(examples))
        self.facts.append(tuple(fact.name for fact in facts))
        self.known.append(tuple(known))
        answer = self.answer(len(self.shown))
        if isinstance(answer, Exception):
            raise answer
        return answer


def world(count: int = 300, seed: int = 1, prefix: str = "c") -> list[Case]:
    """Large amounts through a VPN are fraud, mostly; small ones are not."""
    chance, made = random.Random(seed), []
    for n in range(count):
        bad = chance.random() < 0.25
        small = not bad and chance.random() < 0.3
        amount = chance.uniform(501, 3000) if bad else chance.uniform(1, 9) if small else chance.uniform(10, 3000)
        fraud = chance.random() < (0.93 if bad else 0.03)
        facts = {"amount": amount, "vpn": bad or chance.random() < 0.1, "days": chance.uniform(0, 900)}
        made.append(Case(transaction=Transaction(id=f"{prefix}{n}", facts=facts), is_fraud=fraud))
    return made


def learner_on(proposer: Scripted, policy: ReflectionPolicy | None = None, seed: int = 0, **more: Any) -> Learner:
    reflector = Reflector(model=proposer, seed=seed)
    return Learner(BulletPlaybook(), reflector=reflector, policy=policy or FIVES, **more)


def asked(learner: Learner) -> dict[str, int]:
    assert learner.proposed is not None
    return {what: count for what, count in learner.proposed.counts.items() if count}


async def live(learner: Learner, cases: Sequence[Case]) -> None:
    for case in cases:
        await learner.decide(case.transaction)
        await learner.hear(Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud))


# --- a whole history ---------------------------------------------------------------------------------------------


def by_number(*numbers: int, answer: Answer = TRUE) -> Callable[[int], Answer]:
    return lambda number: answer if number in numbers else None


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_calls_stay_within_their_share_of_the_cases(share: float) -> None:
    conditions = [f"amount > {500 + 7 * n} and vpn is true" for n in range(200)]
    proposer = Scripted(lambda number: proposal(conditions[number % 200]))
    policy = ReflectionPolicy(together=1, success_share=1.0, most_share=share)
    learner = learner_on(proposer, policy)
    run(learner.train(world(300)))
    assert len(proposer.shown) == asked(learner)["asked"] <= share * 300
    assert len(proposer.shown) > share * 300 / 4, "the share was asked for"


def test_the_usual_policy_takes_few_calls() -> None:
    proposer = Scripted(by_number(1))
    policy = ReflectionPolicy()
    run(learner_on(proposer, policy).train(world(300)))
    assert 2 <= len(proposer.shown) <= 60
    assert all(len(shown) <= policy.together + policy.contrast for shown in proposer.shown)
    assert set(proposer.facts) == {("amount", "days", "vpn")}


def test_the_plain_flow_is_one_call_a_case() -> None:
    proposer = Scripted()
    learner = learner_on(proposer, ReflectionPolicy.plain())
    run(learner.train(world(60)))
    assert [len(shown) for shown in proposer.shown] == [1] * 60
    assert asked(learner) == {"asked": 60, "nothing new": 60}


def days(shown: Sequence[Example]) -> list[FactValue]:
    """What tells the cases apart."""
    return [example.facts["days"] for example in shown]


def test_what_taught_nothing_is_not_shown_again() -> None:
    proposer = Scripted(by_number(1))
    learner = learner_on(proposer, ReflectionPolicy(near_miss=0.0, success_share=0.0, contrast=0))
    run(learner.train(world(300)))
    assert len(learner.playbook) == 1
    assert len({len(known) for known in proposer.known}) == 2, "a second round, in which the bullet was known"
    fruitless = [day for shown in proposer.shown[1:] for day in days(shown)]
    assert len(fruitless) == len(set(fruitless)) > 10
    assert all(example.missed for shown in proposer.shown for example in shown)


def test_successes_are_shown_in_the_first_round_alone() -> None:
    proposer = Scripted(lambda _: TRUE)
    policy = ReflectionPolicy(near_miss=0.0, success_share=1.0, contrast=0, most_share=3.0)
    run(learner_on(proposer, policy).train(world(300)))
    first = [shown for shown, known in zip(proposer.shown, proposer.known, strict=True) if not known]
    assert sum(len(shown) for shown in first) == 300
    later = [example for shown in proposer.shown[len(first) :] for example in shown]
    assert later
    assert all(example.missed for example in later)


def test_failed_calls_are_counted_and_teach_nothing() -> None:
    failures = [ModelTimeout("too slow"), ModelMalformed("no JSON")]
    proposer = Scripted(lambda number: failures[number % 2])
    learner = learner_on(proposer)
    added = run(learner.train(world(300)))
    assert added == []
    assert len(learner.playbook) == 0
    assert asked(learner) == {"asked": len(proposer.shown), "failed": len(proposer.shown)}
    assert len(proposer.shown) > 1


def test_a_failed_call_does_not_stand_in_the_way_of_another() -> None:
    proposer = Scripted(lambda number: TRUE if number == 2 else ModelTimeout("too slow"))
    learner = learner_on(proposer)
    assert len(run(learner.train(world(300)))) == 1
    assert asked(learner)["measured"] == 1


def test_an_error_of_ours_is_not_taken_for_a_failed_call() -> None:
    learner = learner_on(Scripted(lambda _: ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        run(learner.train(world(300)))
    assert learner.playbook.ledger.last_seq() == 0, "nothing was written"


def test_a_budget_that_is_used_up_ends_the_asking_and_keeps_what_was_learnt() -> None:
    proposer = Scripted(lambda number: (None, TRUE, FALSE)[number] if number < 3 else BudgetExceeded("1.00 is spent"))
    learner = learner_on(proposer)
    added = run(learner.train(world(300)))
    assert len(added) == 1
    assert learner.proposed is not None
    assert learner.proposed.stopped == "1.00 is spent"
    assert len(proposer.shown) == 3, "no call after the one that was turned down"
    assert asked(learner) == {"asked": 2, "measured": 1, "refused": 1}, "nothing was sent the third time"
    assert learner.playbook.snapshot().calibration("fraud_detection") is not None, "the run goes on"
    run(live(learner, world(60, seed=2, prefix="d")))
    assert len(proposer.shown) == 3
    assert learner.playbook.outcomes == 60


def test_nothing_is_said_twice() -> None:
    again = Proposal(content="Other words", argues=Verdict.DECLINE, condition=TRUE.condition, model="m")
    proposer = Scripted(lambda number: (again, TRUE)[number % 2])
    learner = learner_on(proposer)
    added = run(learner.train(world(300)))
    assert len(added) == len(learner.playbook) == 1
    assert asked(learner)["said already"] == len(proposer.shown) - 1
    run(learner.train(world(300, seed=5, prefix="e")))
    assert len(learner.playbook) == 1


def test_every_draft_has_an_id_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are handed out by id: two drafts of one id would share theirs."""
    fitted: list[list[str]] = []
    refit = EmbeddedReflector.refit

    def watched(self: EmbeddedReflector, bullets: Sequence[Bullet], *cases: LabelledFacts) -> Any:
        fitted.append([bullet.id for bullet in bullets])
        return refit(self, bullets, *cases)

    monkeypatch.setattr(EmbeddedReflector, "refit", watched)
    proposer = Scripted(lambda number: proposal(f"amount > {500 * 1.07**number:.0f} and vpn is true"))
    run(learner_on(proposer, ReflectionPolicy(together=4, contrast=3, rounds=4, most_share=0.3)).train(world(300)))
    assert len(fitted) > 2
    assert max(len(ids) for ids in fitted) >= 3
    for ids in fitted:
        assert len(ids) == len(set(ids))


def test_the_same_seed_gives_the_same_bullets() -> None:
    conditions = [f"amount > {400 + 100 * n} and vpn is true" for n in range(9)]

    def once(seed: int) -> tuple[list[tuple[str, str, float | None]], list[tuple[Example, ...]]]:
        proposer = Scripted(lambda number: proposal(conditions[number % 9]))
        learner = learner_on(proposer, ReflectionPolicy(success_share=0.3), seed)
        run(learner.train(world(300)))
        run(live(learner, world(60, seed=2, prefix="d")))
        bullets = learner.playbook.snapshot().bullets.values()
        return [(bullet.id, bullet.content, bullet.weight) for bullet in bullets], proposer.shown

    first = once(3)
    assert first[0]
    assert once(3) == first
    assert once(4)[1] != first[1], "which successes are shown is drawn by the seed"


def test_an_empty_history_asks_nothing() -> None:
    proposer = Scripted()
    assert run(learner_on(proposer).train([], both_labels=False)) == []
    assert proposer.shown == []


def test_a_few_of_the_weightiest_bullets_are_told_of() -> None:
    reflector, proposer = EmbeddedReflector(), Scripted()
    reflector.remember(world(50))
    lessons = ModelLessons(Proposals(proposer, reflector), policy=ReflectionPolicy(together=1))
    known = [Bullet(id=f"b{n}", content=f"bullet {n}", weight=(-1) ** n * n / 10) for n in range(20)]
    lessons.keep(example(), "a", 0.1, 0.5)
    run(lessons.lessons(known))
    assert [bullet.id for bullet in proposer.known[0]] == [f"b{n}" for n in range(19, 19 - KNOWN_SHOWN, -1)]


# --- one outcome after another -----------------------------------------------------------------------------------


def example(missed: bool = True, correct: Verdict = Verdict.DECLINE) -> Example:
    other = Verdict.APPROVE if correct is Verdict.DECLINE else Verdict.DECLINE
    return Example("", {"amount": 5.0}, other if missed else correct, correct)


def waiting_on(policy: ReflectionPolicy | None = None) -> tuple[ModelLessons, Scripted]:
    proposer = Scripted()
    return ModelLessons(Proposals(proposer, EmbeddedReflector()), policy=policy or FIVES), proposer


def test_failures_wait_until_enough_of_one_truth_have_come() -> None:
    lessons, proposer = waiting_on()
    for n in range(4):
        lessons.keep(example(), f"a{n}", 0.1, 0.5)
        lessons.keep(example(correct=Verdict.APPROVE), f"b{n}", 0.9, 0.5)
        run(lessons.lessons(()))
        assert proposer.shown == []
    lessons.keep(example(), "a4", 0.1, 0.5)
    run(lessons.lessons(()))
    assert [[each.correct for each in shown] for shown in proposer.shown] == [[Verdict.DECLINE] * 5]
    run(lessons.lessons(()))
    assert len(proposer.shown) == 1, "what was asked about is done with"
    run(lessons.lessons((), all_waiting=True))
    assert [[each.correct for each in shown] for shown in proposer.shown[1:]] == [[Verdict.APPROVE] * 4]


def test_successes_alone_are_worth_a_call_only_when_there_are_many() -> None:
    lessons, proposer = waiting_on()
    for n in range(9):
        lessons.keep(example(missed=False), f"a{n}", 0.55, 0.5)
    run(lessons.lessons((), all_waiting=True))
    assert proposer.shown == []
    lessons.keep(example(missed=False), "a9", 0.55, 0.5)
    run(lessons.lessons(()))
    assert [len(shown) for shown in proposer.shown] == [10]


def test_clear_successes_are_not_kept() -> None:
    lessons, proposer = waiting_on(ReflectionPolicy(success_share=0.0))
    for n in range(100):
        lessons.keep(example(missed=False), f"a{n}", 0.95, 0.5)
    run(lessons.lessons((), all_waiting=True))
    assert proposer.shown == []


def test_successes_are_sampled_by_their_key() -> None:
    def kept(seed: int) -> int:
        proposer = Scripted()
        lessons = ModelLessons(Proposals(proposer, EmbeddedReflector()), policy=ReflectionPolicy(together=1), seed=seed)

        async def all_of_them() -> None:
            for n in range(2000):
                lessons.keep(example(missed=False), f"a{n}", 0.95, 0.5)
                await lessons.lessons(())

        run(all_of_them())
        return sum(len(shown) for shown in proposer.shown)

    assert kept(0) == kept(0)
    assert 60 <= kept(0) <= 140, "one in twenty of 2,000"


def test_what_nobody_fetches_does_not_pile_up() -> None:
    lessons, proposer = waiting_on()
    for n in range(500):
        lessons.keep(example(), f"a{n}", 0.1, 0.5)
    run(lessons.lessons(()))
    assert [len(shown) for shown in proposer.shown] == [10]


def test_the_plain_flow_asks_about_every_outcome() -> None:
    proposer = Scripted()
    learner = learner_on(proposer, ReflectionPolicy.plain())
    run(live(learner, world(30)))
    assert [len(shown) for shown in proposer.shown] == [1] * 30


class Approves:
    """An agent that approves everything, or leaves it to a person."""

    model = "approves"
    waits = True
    adds_up = False

    @property
    def without_tier(self) -> Approves:
        return self

    def __init__(self, verdict: Verdict = Verdict.APPROVE) -> None:
        self.verdict = verdict

    async def assess(self, question: Question) -> Assessment:  # noqa: ARG002
        return Assessment(verdict=self.verdict, probability=0.01, base=0.0, reasons=())


def frauds(count: int) -> list[Case]:
    return [case for case in world(600) if case.is_fraud][:count]


def test_online_no_call_is_made_for_the_first_failures() -> None:
    proposer = Scripted()
    learner = learner_on(proposer, ReflectionPolicy(together=5, success_share=0.0), agent=Approves())
    run(live(learner, frauds(4)))
    assert proposer.shown == []
    run(live(learner, frauds(5)[4:]))
    assert [len(shown) for shown in proposer.shown] == [5]
    run(live(learner, frauds(20)[5:]))
    assert [len(shown) for shown in proposer.shown] == [5, 5, 5, 5]


def test_what_was_left_to_a_person_is_not_reflected_on() -> None:
    proposer = Scripted()
    options = LearnerOptions(reflect_every=5)
    learner = learner_on(proposer, ReflectionPolicy.plain(), agent=Approves(Verdict.REVIEW), options=options)
    run(live(learner, frauds(20)))
    assert proposer.shown == []
    assert len(learner.remembered()) == 20, "but remembered"


def test_an_outcome_that_was_never_decided_is_not_reflected_on() -> None:
    proposer = Scripted()
    learner = learner_on(proposer, ReflectionPolicy.plain())
    for case in frauds(10):
        run(learner.hear(Outcome(transaction_id=case.transaction.id, is_fraud=True), case.transaction))
    assert proposer.shown == []


def test_a_full_playbook_stays_within_its_limit_and_keeps_what_people_wrote() -> None:
    conditions = [f"amount > {500 + 20 * n} and vpn is true" for n in range(200)]
    proposer = Scripted(lambda number: proposal(conditions[number % 200]))
    options = LearnerOptions(most_bullets=2, reflect_every=10)
    learner = learner_on(proposer, ReflectionPolicy(together=4), agent=Approves(), options=options)
    by_hand = learner.playbook.add_bullet("Nervous voices are suspicious")
    run(learner.train(world(300)))
    for case in world(150, seed=5, prefix="e"):
        run(live(learner, [case]))
        learnt = [b for b in learner.playbook.get_bullets_for_node("fraud_detection") if b.id != by_hand]
        assert len(learnt) <= 2
    assert learner.playbook.get_bullet(by_hand) in learner.playbook.get_bullets_for_node("fraud_detection")
    reasons = [
        event.payload.reason for event in learner.playbook.ledger.read() if isinstance(event.payload, StatusChanged)
    ]
    assert any("at most 2 learnt bullets" in reason for reason in reasons)


def test_a_review_names_every_bullet_that_it_retires() -> None:
    proposer = Scripted(lambda number: proposal(f"amount > {500 + 20 * (number % 200)} and vpn is true"))
    options = LearnerOptions(most_bullets=2, reflect_every=10)
    learner = learner_on(proposer, ReflectionPolicy(together=4), agent=Approves(), options=options)
    run(learner.train(world(300)))
    start = learner.playbook.seq
    run(live(learner, world(150, seed=5, prefix="e")))
    retired, reasons = list[str](), set[str]()
    for payload in (event.payload for event in learner.playbook.ledger.read(start)):
        if isinstance(payload, StatusChanged) and payload.status is Status.RETIRED:
            retired.append(payload.bullet_id)
            reasons.add(payload.reason)
        elif isinstance(payload, Reviewed):
            assert sorted(payload.retired) == sorted(retired)
            retired.clear()
    assert ZERO_WEIGHT in reasons


def test_online_failures_and_budgets_do_not_stop_the_hearing() -> None:
    proposer = Scripted(lambda number: ModelTimeout("too slow") if number < 3 else BudgetExceeded("1.00 is spent"))
    learner = learner_on(proposer, agent=Approves())
    run(live(learner, frauds(40)))
    assert asked(learner) == {"asked": 2, "failed": 2}
    assert len(proposer.shown) == 3
    assert learner.playbook.outcomes == 40
    assert len(learner.playbook) == 0


# --- where somebody else is faster -------------------------------------------------------------------------------


def overtaken_once(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let somebody else be faster the first time that something is written."""
    tried: list[bool] = []

    def overtaken(*given: Any, **more: Any) -> Any:
        tried.append(True)
        if len(tried) == 1:
            raise StoreConflict("somebody else was faster")
        return apply_review.apply(*given, **more)

    monkeypatch.setattr("acefraud.learning.reviewer.apply", overtaken)
    return tried


def test_what_a_model_said_of_a_history_is_written_at_the_second_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    calm, busy = Scripted(by_number(1)), Scripted(by_number(1))
    run(learner_on(calm).train(world(300)))
    tried = overtaken_once(monkeypatch)
    learner = learner_on(busy)
    assert len(run(learner.train(world(300)))) == 1
    assert len(tried) == 2
    assert busy.shown == calm.shown, "nobody is asked again"
    assert matches_replay(learner.playbook)


def test_what_a_model_said_of_failures_is_written_at_the_second_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    proposer = Scripted(lambda _: TRUE)
    learner = learner_on(proposer, ReflectionPolicy(together=5, success_share=0.0), agent=Approves())
    tried = overtaken_once(monkeypatch)
    run(live(learner, frauds(5)))
    assert (len(tried), len(proposer.shown)) == (2, 1)
    assert [bullet.condition for bullet in learner.playbook.snapshot().bullets.values()] == [TRUE.condition]
    assert matches_replay(learner.playbook)


def test_a_review_asks_nobody() -> None:
    proposer = Scripted()
    learner = learner_on(proposer, agent=Approves())
    run(live(learner, frauds(4)))
    assert learner.review().cases == 4
    assert proposer.shown == []
    assert run(learner.finish_lessons()) == []
    assert [len(shown) for shown in proposer.shown] == [4]
