"""Decisions, scores, levels and fits come from one sum: what a decision counts, the others count, bit by bit."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest

from acefraud.core.bullet import Bullet, Evidence, Record
from acefraud.core.calibration import Calibration, RecentLevel
from acefraud.core.condition import Condition
from acefraud.core.events import Recalibrated
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.core.transactions import Transactions
from acefraud.engine.options import LearnerOptions
from acefraud.engine.score import AdditiveScore, score
from acefraud.learning.learner import Learner
from acefraud.learning.level import log_odds_in
from acefraud.roles.embedded.agent import weigh, weight_of
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.embedded.reflector import EmbeddedReflector
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.exact_math import sigmoid

NODE = "fraud_detection"
MOVED = RecentLevel(shift=0.7, cases=100, frauds=38, expected=4.2)
FRAME = Calibration(intercept=-1.1, knowledge_scale=0.9, base_rate=0.2, points={"vpn is true": 0.37}, recent=MOVED)


def bullet(number: int, weight: float | None, text: str) -> Bullet:
    return Bullet(
        id=f"b{number}",
        content=text,
        condition=Condition.parse(text),
        argues=Verdict.DECLINE,
        weight=weight,
        evidence=Evidence(learnt=Record(support=40, frauds=30), base_rate=0.2) if weight is None else None,
    )


BULLETS = [bullet(number, 0.1 * number - 0.33, f"amount > {70 * number}") for number in range(9)]
BULLETS += [
    bullet(9, None, "vpn is true and amount > 10"),
    bullet(10, 0.0, "amount > 1"),
    bullet(11, 0.3, "night is true"),
]


def snapshot(frame: Calibration | None = FRAME) -> Snapshot:
    bullets = {each.id: each for each in BULLETS}
    return Snapshot(1, bullets, {} if frame is None else {NODE: frame})


def rows() -> list[dict[str, FactValue]]:
    dice = random.Random(5)
    made: list[dict[str, FactValue]] = [{}]
    for _ in range(60):
        facts: dict[str, FactValue] = {"amount": dice.uniform(0, 700), "account_age_days": dice.uniform(0, 60)}
        facts |= {name: dice.random() < 0.5 for name in ("vpn", "night", "new_device") if dice.random() < 0.8}
        made.append(facts)
    return made


@pytest.mark.parametrize("frame", [FRAME, FRAME.model_copy(update={"recent": None}), None])
def test_a_column_has_the_sums_of_its_rows_bit_by_bit(frame: Calibration | None) -> None:
    known = rows()
    scored = AdditiveScore.of(snapshot(frame), NODE).scores(FactTable(known))
    for facts, total, cited in zip(known, scored.log_odds.tolist(), scored.cited.tolist(), strict=True):
        view = weigh(facts, BULLETS, frame)
        assert view.probability == sigmoid(total)
        assert cited == sum(reason.bullet_id is not None for reason in view.reasons)


def test_all_ways_to_score_add_up_the_same() -> None:
    known, options = rows(), LearnerOptions(n_bullets=len(BULLETS))
    facts, book = FactTable(known), snapshot()
    every = AdditiveScore.of(book, NODE).scores(facts).log_odds
    given = Transactions.of([Transaction(id=str(n), facts=each or {"x": 1.0}) for n, each in enumerate(known)])
    learner = Learner(BulletPlaybook(), options=options)
    picked = score(given, book, learner.selector.without_draws(), options, known=facts).log_odds
    assert picked.tolist() == every.tolist()
    cases = LabelledFacts(given.ids, facts, np.zeros(len(known), dtype=np.bool_), given.times)
    unmoved = snapshot(FRAME.model_copy(update={"recent": None}))
    expected = AdditiveScore.of(unmoved, NODE).scores(facts).log_odds
    apart_from_level = log_odds_in(cases, book, options)
    assert apart_from_level is not None
    assert apart_from_level.tolist() == expected.tolist(), "general knowledge counts for records too if it has a scale"


def test_a_decision_is_what_weighing_its_picks_comes_to() -> None:
    playbook = BulletPlaybook()
    learner = Learner(playbook)
    for each in BULLETS[:9]:
        playbook.add_bullet(each.content, condition=each.condition, argues=each.argues, weight=each.weight)
    playbook.record([Recalibrated(node=NODE, calibration=FRAME)])
    for number, facts in enumerate(rows()[1:]):
        decision = asyncio.run(learner.score(Transaction(id=str(number), facts=facts)))
        picks = [playbook.get_bullet(each.bullet_id) for each in decision.selection.scores]
        view = weigh(decision.facts, [each for each in picks if each is not None], FRAME)
        assert (view.probability, view.reasons) == (decision.probability, decision.reasons)


def test_a_refit_counts_bullets_and_cases_as_decisions_and_reviews_do() -> None:
    dice = np.random.default_rng(3)
    amount, vpn = dice.uniform(0, 100, 600), dice.random(600) < 0.01
    labels = dice.random(600) < np.where(amount > 60, 0.6, 0.1)
    facts = FactTable([{"amount": float(a), "vpn": bool(v)} for a, v in zip(amount, vpn, strict=True)])
    ids, times = np.array([str(n) for n in range(600)], dtype=object), np.arange(600)
    cases = LabelledFacts(ids, facts, labels, times)
    learnt = bullet(1, 1.0, "amount > 60")
    rare = bullet(2, None, "vpn is true").model_copy(
        update={"evidence": None}
    )  # too rare to be fitted, and not weighed
    fitted = {rare.id: rare.model_copy(update={"weight": weight_of(rare, float(labels.mean()))})}
    engine = EmbeddedReflector()
    assert weight_of(rare, float(labels.mean())) > 0
    assert engine.refit([learnt, rare], cases) == engine.refit([learnt, fitted[rare.id]], cases)
    counts = np.where(labels, 3.0, 1.0)
    weighted = engine.refit([learnt], LabelledFacts(ids, facts, labels, times, weights=counts))
    assert weighted is not None
    assert weighted.calibration.base_rate == pytest.approx(float(counts @ labels / counts.sum()))
