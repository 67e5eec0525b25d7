"""Decisions of another agent are recorded once, and the bullets it used are counted when the truth comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acefraud import BulletPlaybook, Judgement, Learner, Outcome, Transaction, Verdict, open_playbook
from acefraud.core.bullet import Bullet
from acefraud.core.decision import ProbabilityFrom, ReasonKind
from acefraud.core.events import BulletAdded, DecisionMade
from acefraud.core.ledger import DecisionFilter
from acefraud.errors import InputError
from acefraud.storage.contents import last_firings

ORDER = Transaction(id="t1", facts={"vpn": True, "amount": 2500})


@pytest.fixture
def learner(toy: Any) -> Learner:
    """Three bullets by hand, two of which fire on the order."""
    learner: Learner = toy.with_bullets()
    return learner


def ids(learner: Learner) -> list[str]:
    return [bullet.id for bullet in learner.playbook]


def counts(learner: Learner) -> list[tuple[int, int, int]]:
    return [(each.helpful_count, each.harmful_count, each.times_selected) for each in learner.playbook]


@pytest.mark.parametrize(
    ("verdict", "is_fraud", "expected"),
    [
        ("DECLINE", True, (1, 0, 1)),
        ("DECLINE", False, (0, 1, 1)),
        ("APPROVE", False, (1, 0, 1)),
        ("APPROVE", True, (0, 1, 1)),
        ("REVIEW", True, (0, 0, 0)),
    ],
)
def test_the_cited_bullets_are_counted_and_no_other(
    learner: Learner, verdict: str, is_fraud: bool, expected: tuple[int, int, int]
) -> None:
    first, _, third = ids(learner)
    traced = learner.record_trace_sync(ORDER, verdict, cited=[first, third], agent="theirs", who="ana")
    assert traced.heard is None
    assert counts(learner) == [(0, 0, 0)] * 3
    learner.hear_sync(Outcome(transaction_id="t1", is_fraud=is_fraud))
    assert counts(learner) == [expected, (0, 0, 0), expected]


def test_a_truth_that_comes_along_is_heard(learner: Learner) -> None:
    _, vpn, _ = ids(learner)
    traced = learner.record_trace_sync(ORDER, Verdict.APPROVE, cited=[vpn], truth=True, who="ana")
    assert traced.heard is not None
    assert traced.heard.judgement.is_correct is False
    assert counts(learner) == [(0, 0, 0), (0, 1, 1), (0, 0, 0)]
    assert [bullet.record.support for bullet in learner.playbook] == [1, 1, 0], "the truth measures all that fire"
    assert len(learner.remembered()) == 1, "and the case is learnt from"


def test_the_truth_may_be_an_outcome_that_is_revised_later(learner: Learner) -> None:
    _, vpn, _ = ids(learner)
    chargeback = Outcome(transaction_id="t1", is_fraud=True, source="chargeback", id="o1")
    learner.record_trace_sync(ORDER, "DECLINE", cited=[vpn], truth=chargeback, who="ana")
    assert counts(learner)[1] == (1, 0, 1)
    learner.hear_sync(Outcome(transaction_id="t1", is_fraud=False, source="analyst", id="o2"))
    assert counts(learner)[1] == (0, 1, 1)
    with pytest.raises(InputError, match="the truth is of 'other'"):
        learner.record_trace_sync(ORDER, "DECLINE", truth=Outcome(transaction_id="other", is_fraud=True), who="ana")


def test_what_is_recorded(learner: Learner) -> None:
    _, vpn, _ = ids(learner)
    traced = learner.record_trace_sync(
        ORDER, "DECLINE", probability=0.8, cited=[vpn, vpn], agent="theirs", reasons="a VPN", who="ana"
    )
    (event,) = learner.playbook.ledger.find_decisions(DecisionFilter(), limit=9)
    assert isinstance(event.payload, DecisionMade)
    assert event.payload.decision == traced.decision
    assert event.who == "ana"
    made = traced.decision
    assert (made.verdict, made.probability, made.model) == (Verdict.DECLINE, 0.8, "theirs")
    assert made.probability_from is ProbabilityFrom.STATED
    assert made.cited == (vpn,)
    assert [(reason.kind, reason.text) for reason in made.reasons] == [
        (ReasonKind.MODEL, "a VPN"),
        (ReasonKind.BULLET, "VPN: decline [unverified]"),
    ]
    assert made.revision == learner.playbook.snapshot().revision
    assert learner.explain_sync(made) == made
    assert [each.payload.subject for each in last_firings(learner.playbook.ledger, vpn, 5).events] == ["t1"]


def test_without_a_probability_it_is_the_engines_and_without_a_name_it_is_external(learner: Learner) -> None:
    made = learner.record_trace_sync(ORDER, "APPROVE", who="ana").decision
    (expected,) = learner.score_all([ORDER], every_bullet=True).probabilities.tolist()
    assert (made.probability, made.probability_from) == (expected, ProbabilityFrom.FITTED)
    assert (made.model, made.cited, made.reasons) == ("external agent", (), ())


def test_the_same_trace_again_records_nothing_even_on_a_later_revision(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as playbook:
        vpn, learner = playbook.add_bullet("VPN: decline"), Learner(playbook)
        first = learner.record_trace_sync(ORDER, "DECLINE", cited=[vpn], truth=True, who="ana")
        playbook.add_bullet("amount above 100: decline")
        before = playbook.seq
        again = learner.record_trace_sync(ORDER, "DECLINE", cited=[vpn], truth=True, who="ana")
        assert (first.already_known, again.already_known) == (False, True)
        assert again.decision == first.decision
        assert again.heard is not None
        assert again.heard.already_known
        assert playbook.seq == before
        assert playbook[vpn].helpful_count == 1


@pytest.mark.parametrize(
    "other", [{"verdict": "APPROVE"}, {"probability": 0.3}, {"agent": "another"}, {"reasons": "so"}, {"cited": ()}]
)
def test_another_trace_of_the_same_transaction_is_recorded(learner: Learner, other: dict[str, Any]) -> None:
    said: dict[str, Any] = {"verdict": "DECLINE", "cited": ids(learner)[:1], "who": "ana"}
    learner.record_trace_sync(ORDER, **said)
    assert not learner.record_trace_sync(ORDER, **(said | other)).already_known
    assert len(learner.playbook.ledger.find_decisions(DecisionFilter(), limit=9)) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cited": ["b-none"]}, "there is no bullet 'b-none'"),
        ({"cited": "b-none"}, "a list of ids"),
        ({"verdict": "perhaps"}, "verdict: expected"),
        ({"probability": 1.5}, "from 0 to 1"),
        ({"agent": "embedded"}, "the engine's own name"),
        ({"who": " "}, "who: expected"),
        ({"truth": "fraud"}, "truth: expected True"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_recorded(
    learner: Learner, wrong: dict[str, Any], message: str
) -> None:
    before = learner.playbook.seq
    with pytest.raises(InputError, match=message):
        learner.record_trace_sync(ORDER, **({"verdict": "DECLINE", "who": "ana"} | wrong))
    assert learner.playbook.seq == before


def test_a_bullet_may_be_cited_by_the_id_of_the_prompt() -> None:
    playbook = BulletPlaybook()
    playbook.record([BulletAdded(bullet=Bullet(id="from outside", content="VPN: decline"))])
    playbook.edit_bullet("from outside", "VPN: decline")
    learner = Learner(playbook)
    (found,) = learner.context_sync(ORDER).bullets
    assert found.shown_id != "from outside"
    made = learner.record_trace_sync(ORDER, "DECLINE", cited=[found.shown_id], who="ana").decision
    assert made.cited == ("from outside",)


def test_the_judge_may_be_asked_later(toy: Any) -> None:
    class Sure:
        """A judge who finds everything right."""

        def presentable(self, text: str, facts: Any) -> str:
            return text or str(facts)

        async def rule(self, *_: Any) -> Judgement:
            return Judgement(ruling="correct", confidence=0.9)

    learner: Learner = toy.with_bullets(judge=Sure())
    _, vpn, _ = ids(learner)
    traced = learner.record_trace_sync(ORDER, "DECLINE", cited=[vpn], who="ana")
    assert learner.judge_pending_sync(traced.decision).is_correct
    assert counts(learner) == [(0, 0, 0), (1, 0, 1), (0, 0, 0)]
