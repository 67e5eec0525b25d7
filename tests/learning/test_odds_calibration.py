"""What the odds of verdict tokens mean: fitted on labelled cases, kept in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.replaying import matches_replay

from acefraud.core.calibration import OddsScale, log_odds
from acefraud.core.decision import ProbabilityFrom
from acefraud.core.events import OddsScaled
from acefraud.core.outcome import Outcome
from acefraud.core.playbook import PlaybookState
from acefraud.core.transaction import Verdict
from acefraud.engine.models import LEAST_OF_EACH, calibrated, fit_scale
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.roles.protocols import Assessment, Question
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.exact_math import sigmoid

T = TypeVar("T")


def run(steps: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(steps)


def simulated(level: float, slope: float, count: int, seed: int = 0) -> tuple[list[float], list[bool]]:
    chance = np.random.default_rng(seed)
    odds = chance.normal(-4, 3, count)
    labels = chance.random(count) < 1 / (1 + np.exp(-(level + slope * odds)))
    return odds.tolist(), labels.tolist()


# --- fitting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "slope"), [(2.0, 0.5), (4.0, 1.0), (0.5, 0.2), (-1.0, 0.05)])
def test_level_and_slope_are_found_again(level: float, slope: float) -> None:
    """With 20,000 cases the standard errors are below 0.05 and 0.015."""
    scale = fit_scale(*simulated(level, slope, 20_000))
    assert scale is not None
    assert scale.level == pytest.approx(level, abs=0.15)
    assert scale.slope == pytest.approx(slope, abs=0.05)
    assert scale.cases == 20_000


def test_few_cases_are_held_near_the_usual_slope() -> None:
    odds, labels = [-3.0, 3.0] * 10, [False, True] * 10
    scale = fit_scale(odds, labels)
    assert scale is not None
    assert 0.5 < scale.slope < 2.0, "they are parted without error, and yet"
    assert scale.probability(3.0) > 0.8


def test_a_probability_is_near_its_share_of_fraud() -> None:
    odds, labels = simulated(2.0, 0.5, 4_000, seed=1)
    scale = fit_scale(odds, labels)
    assert scale is not None
    said = np.array([scale.probability(odd) for odd in odds])
    assert said.mean() == pytest.approx(np.mean(labels), abs=0.01)
    for low in (0.2, 0.4, 0.6):
        band = (said >= low) & (said < low + 0.2)
        assert np.mean(np.array(labels)[band]) == pytest.approx(said[band].mean(), abs=0.06)


@given(
    pairs=st.lists(st.tuples(st.floats(-40, 40), st.booleans()), min_size=16, max_size=60),
    base_rate=st.one_of(st.none(), st.floats(0, 1)),
)
def test_a_scale_never_falls_and_is_always_a_number(pairs: list[tuple[float, bool]], base_rate: float | None) -> None:
    scale = fit_scale([odds for odds, _ in pairs], [truth for _, truth in pairs], base_rate)
    frauds = sum(truth for _, truth in pairs)
    assert (scale is None) is (min(frauds, len(pairs) - frauds) < LEAST_OF_EACH)
    if scale is not None:
        assert np.isfinite([scale.level, scale.slope]).all()
        assert scale.slope >= 0
        said = [scale.probability(odds) for odds in np.linspace(-50, 50, 21)]
        assert all(0 <= each <= 1 for each in said)
        assert said == sorted(said)


def test_odds_that_say_the_contrary_say_nothing() -> None:
    """The level alone is left, however lopsided the odds lie around their middle."""
    odds = [0.0] * 20 + [1.0] * 5 + [-9.0] * 10
    labels = [False] * 20 + [False] * 5 + [True] * 10
    scale = fit_scale(odds, labels)
    assert scale is not None
    assert scale.slope == 0
    for each in (-9.0, 0.0, 9.0):
        assert scale.probability(each) == pytest.approx(10 / 35, abs=1e-6)
    assert fit_scale(odds, labels, 0.01) == OddsScale(level=round(log_odds(0.01), 6), slope=0.0, cases=35)


@pytest.mark.parametrize("base_rate", [0.01, 0.2, 0.9])
def test_the_level_is_that_of_the_base_rate(base_rate: float) -> None:
    odds, labels = simulated(2.0, 0.5, 2_000)
    as_drawn, as_it_is = fit_scale(odds, labels), fit_scale(odds, labels, base_rate)
    assert as_drawn is not None
    assert as_it_is is not None
    assert as_it_is.slope == as_drawn.slope
    shift = log_odds(base_rate) - log_odds(float(np.mean(labels)))
    assert as_it_is.level == pytest.approx(as_drawn.level + shift, abs=1e-5)


def test_a_sample_drawn_by_label_gives_the_probabilities_of_the_whole() -> None:
    """Half fraud in the sample, 5 % outside. Margin: two standard errors of a level fitted on 2,000 cases."""
    odds, labels = simulated(-1.8, 0.6, 60_000, seed=2)
    x, y = np.array(odds), np.array(labels)
    frauds, honest = np.flatnonzero(y)[:1000], np.flatnonzero(~y)[:1000]
    assert len(frauds) == 1000
    taken = np.concatenate([frauds, honest])
    scale = fit_scale(x[taken].tolist(), y[taken].tolist(), float(y.mean()))
    assert scale is not None
    assert scale.level == pytest.approx(-1.8, abs=0.25)
    assert scale.slope == pytest.approx(0.6, abs=0.08)


@pytest.mark.parametrize(("frauds", "honest"), [(7, 100), (100, 7), (0, 0), (0, 50)])
def test_too_few_of_a_kind_give_none(frauds: int, honest: int) -> None:
    assert fit_scale([1.0] * frauds + [-1.0] * honest, [True] * frauds + [False] * honest) is None


def test_eight_of_each_kind_are_enough() -> None:
    assert fit_scale([1.0, -1.0] * 8, [True, False] * 8) is not None


def test_equal_odds_leave_the_share() -> None:
    scale = fit_scale([3.0] * 40, ([True] + [False] * 3) * 10)
    assert scale is not None
    assert scale.probability(3.0) == pytest.approx(0.25, abs=1e-4)


# --- settling ----------------------------------------------------------------------------------------------------

VIEW = Assessment(
    verdict=Verdict.APPROVE,
    probability=sigmoid(-2.0),
    base=-2.0,
    reasons=(),
    model="scripted",
    probability_from=ProbabilityFrom.ODDS,
    odds=-2.0,
)
SCALE = OddsScale(level=2.0, slope=0.5, cases=60)


@pytest.mark.parametrize(("threshold", "verdict"), [(0.5, Verdict.DECLINE), (0.73, Verdict.DECLINE), (0.74, "APPROVE")])
def test_the_verdict_follows_from_the_fitted_probability(threshold: float, verdict: str) -> None:
    view = calibrated(VIEW, SCALE, threshold)
    assert view.verdict == verdict
    assert view.probability == pytest.approx(0.7311, abs=1e-4)
    assert view.probability_from is ProbabilityFrom.CALIBRATED
    assert sigmoid(view.base) == pytest.approx(view.probability), "the base is what the probability comes from"
    assert (view.odds, view.model) == (-2.0, "scripted")


def test_without_odds_or_a_scale_nothing_changes() -> None:
    assert calibrated(VIEW, None, 0.01) is VIEW
    stated = Assessment(verdict=Verdict.APPROVE, probability=0.4, base=0.0, reasons=())
    assert calibrated(stated, SCALE, 0.01) is stated


# --- the ledger --------------------------------------------------------------------------------------------------


class Direct:
    """An agent whose odds are those of a model that sees too little fraud: all too low, but in the right order."""

    model = "scripted:direct"
    waits = True
    adds_up = False

    @property
    def without_tier(self) -> Direct:
        return self

    async def assess(self, question: Question) -> Assessment:
        odds = -6.0 + 2.0 * bool(question.facts["vpn"]) + float(question.facts["amount"]) / 1000
        return Assessment(
            verdict=Verdict.of(odds > 0),
            probability=sigmoid(odds),
            base=odds,
            reasons=(),
            model=self.model,
            probability_from=ProbabilityFrom.ODDS,
            odds=odds,
        )


def test_odds_that_were_fitted_decide_better(toy: Any) -> None:
    learner = Learner(BulletPlaybook(), agent=Direct())
    before = [run(learner.decide(case.transaction)) for case in toy.cases(100, seed=5, prefix="d")]
    assert {decision.verdict for decision in before} == {Verdict.APPROVE}
    run(learner.scale_odds(toy.cases(200)))
    after = [run(learner.decide(case.transaction)) for case in toy.cases(100, seed=5, prefix="d")]
    truths = [case.is_fraud for case in toy.cases(100, seed=5, prefix="d")]
    right = sum((decision.verdict is Verdict.DECLINE) == truth for decision, truth in zip(after, truths, strict=True))
    assert right >= 80
    assert {decision.probability_from for decision in after} == {ProbabilityFrom.CALIBRATED}
    assert run(learner.replay(before[0])).same_as(before[0]), "an old decision is replayed without the scale"
    assert run(learner.replay(after[0])).same_as(after[0])


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_odds_heard_in_a_batch_count_once(toy: Any, batch: int) -> None:
    never = 10**9
    options = LearnerOptions(review_least=never, review_at_last=never, watch_every=never, reflect_every=50)
    learner, cases = Learner(BulletPlaybook(), agent=Direct(), options=options), toy.cases(100)
    run(learner.decide_all([case.transaction for case in cases]))
    outcomes = [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in cases]
    for start in range(0, 100, batch):
        run(learner.hear_all(outcomes[start : start + batch]))
    scaled = [event.payload.scale for event in learner.playbook.ledger.read() if isinstance(event.payload, OddsScaled)]
    assert [scale.cases for scale in scaled] == {1: [50, 100], 7: [56, 100], 100: [100]}[batch]


def test_too_few_cases_fit_no_scale(toy: Any) -> None:
    learner = Learner(BulletPlaybook(), agent=Direct())
    run(learner.scale_odds(toy.cases(10)))
    assert learner.playbook.ledger.last_seq() == 0


def test_a_scale_survives_replay_and_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "playbook.db"
    with open_playbook(path) as playbook:
        playbook.add_bullet("VPN: decline")
        revision = playbook.snapshot().revision
        playbook.record([OddsScaled(node="fraud_detection", model="one", scale=SCALE)])
        other = SCALE.model_copy(update={"level": 1.0})
        playbook.record([OddsScaled(node="fraud_detection", model="two", scale=other)])
        newest = playbook.snapshot()
        assert newest.revision > revision
        assert (newest.scale("fraud_detection", "one"), newest.scale("fraud_detection", "two")) == (SCALE, other)
        assert newest.scale("elsewhere", "one") is newest.scale("fraud_detection", "three") is None
        assert playbook.snapshot_at(revision).scales == {}
        assert playbook.snapshot_at(newest.revision) == newest
        assert matches_replay(playbook)
        state = PlaybookState()
        for event in playbook.ledger.read():
            state.apply(event)
        checkpoint = state.checkpoint()
        assert type(checkpoint.header).model_validate_json(checkpoint.header.model_dump_json()) == checkpoint.header
        playbook.ledger.save_checkpoint(checkpoint)
    with open_playbook(path) as again:
        assert again.snapshot() == newest
        assert again.ledger.checkpoint() is not None
        assert matches_replay(again)
        again.record([OddsScaled(node="fraud_detection", model="one", scale=other)])
        assert again.snapshot().scale("fraud_detection", "one") == other
        assert again.snapshot_at(newest.revision).scale("fraud_detection", "one") == SCALE
