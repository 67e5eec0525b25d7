"""The loop over column tables: what it decides, what it remembers, and patterns that come, stop and come back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pytest

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Status
from acefraud.core.condition import Condition
from acefraud.core.events import StatusChanged
from acefraud.core.table import Columns, FactTable
from acefraud.core.transaction import Transaction, Verdict
from acefraud.embedded.agent import weigh
from acefraud.embedded.induction.boosting import InductionOptions
from acefraud.learning.columns import ColumnLearner, ColumnOptions, Moments, stacked
from acefraud.learning.options import LearnerOptions
from acefraud.storage.playbook import THE_ENGINE

Mask = npt.NDArray[np.bool_]
QUICK = ColumnOptions(induction=InductionOptions(rounds=12, runs=1), review_rounds=5)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Transactions in the order of time, their labels, and which of them are of the planted pattern."""

    rows: FactTable
    labels: Mask
    planted: Mask


def traffic(count: int, seed: int, *, share: float = 0.0, fraud: float = 0.97) -> Traffic:
    """Three numbers and two words, about 3 % fraud, and a planted share of many tries in the gift shop."""
    dice = np.random.default_rng(seed)
    amount, age = dice.lognormal(4, 1, count), np.round(dice.exponential(300, count))
    tries = dice.poisson(1.0, count).astype(np.float64)
    shop, channel = dice.integers(0, 6, count).astype(np.int32), dice.integers(0, 3, count).astype(np.int32)
    labels = dice.random(count) < np.where((amount > 150) & (channel == 2), 0.15, 0.02)
    planted = dice.random(count) < share
    tries[planted], shop[planted] = dice.integers(4, 8, planted.sum()), 4
    labels[planted] = dice.random(planted.sum()) < fraud
    columns = Columns(
        {"amount_paid": amount, "customer_age": age, "tries_made": tries},
        {},
        {
            "shop_kind": (shop, ("books", "food", "fuel", "games", "gifts", "toys")),
            "channel_used": (channel, ("app", "shop", "web")),
        },
    )
    return Traffic(FactTable.of_columns(columns, count), labels, planted)


def names_it(bullets: list[Bullet], seed: int) -> list[Bullet]:
    """The active bullets that describe the planted pattern, measured on fresh traffic."""
    fresh = traffic(10_000, seed + 5000, share=0.02)
    found = []
    for bullet in bullets:
        if bullet.status is Status.ACTIVE and bullet.argues is Verdict.DECLINE and bullet.condition is not None:
            mask = bullet.condition.holds_in(fresh.rows)
            speaks_of_it = bool(bullet.condition.facts & {"tries_made", "shop_kind"})
            if speaks_of_it and mask[fresh.planted].mean() >= 0.6 and fresh.labels[mask].mean() >= 0.5:
                found.append(bullet)
    return found


def hear(learner: ColumnLearner, part: Traffic, batch: int = 100) -> None:
    for start in range(0, len(part.labels), batch):
        rows = slice(start, start + batch)
        learner.hear(part.rows.take(rows), part.labels[rows])


def until(learner: ColumnLearner, part: Traffic, seed: int, *, named: bool) -> tuple[int, int] | None:
    """Outcomes, and planted cases among them, until a bullet names the pattern or none does any more."""
    for start in range(0, len(part.labels), 100):
        rows = slice(start, start + 100)
        learner.hear(part.rows.take(rows), part.labels[rows])
        if bool(names_it(learner.bullets, seed)) is named:
            return start + 100, int(part.planted[: start + 100].sum())
    return None


@pytest.fixture(scope="module")
def studied() -> ColumnLearner:
    learner = ColumnLearner(options=QUICK, seed=1)
    past = traffic(4000, 1, share=0.03)
    learner.study(past.rows, past.labels, np.arange(4000) * 1_000_000)
    return learner


# --- deciding -----------------------------------------------------------------------------------------------------


def test_studying_and_deciding_are_repeatable(studied: ColumnLearner) -> None:
    past, fresh = traffic(4000, 1, share=0.03), traffic(500, 2, share=0.03)
    again = ColumnLearner(options=QUICK, seed=1)
    again.study(past.rows, past.labels, np.arange(4000) * 1_000_000)
    assert [(b.id, b.weight) for b in again.bullets] == [(b.id, b.weight) for b in studied.bullets]
    one, other = studied.decide(fresh.rows), again.decide(fresh.rows)
    assert (one.probabilities == other.probabilities).all()
    assert (one.cited == other.cited).all()


def test_what_was_studied_tells_frauds_apart(studied: ColumnLearner) -> None:
    fresh = traffic(4000, 3, share=0.03)
    p = studied.decide(fresh.rows).probabilities
    assert p[fresh.planted].min() > np.quantile(p[~fresh.planted], 0.9)
    assert p.mean() == pytest.approx(fresh.labels.mean(), abs=0.02)
    assert names_it(studied.bullets, 1)


def test_no_more_are_cited_than_asked_for(studied: ColumnLearner) -> None:
    fresh = traffic(1000, 4, share=0.03)
    every = studied.decide(fresh.rows, every_bullet=True)
    assert studied.decide(fresh.rows).cited.max() <= 10
    learner = ColumnLearner(studied.playbook, ColumnOptions(learner=LearnerOptions(n_bullets=2)))
    assert learner.decide(fresh.rows).cited.max() == 2
    assert every.cited.max() > 2


def test_a_table_is_decided_as_its_rows_would_be_one_by_one(studied: ColumnLearner) -> None:
    fresh = traffic(40, 5, share=0.2)
    decided = studied.decide(fresh.rows)
    snapshot = studied.playbook.snapshot()
    for place in range(40):
        facts = fresh.rows.row(place)
        picked = studied.selector.select(
            Transaction(id=str(place), facts=facts), facts, snapshot, node=DEFAULT_NODE, n_bullets=10
        )
        assessment = weigh(facts, picked.bullets, snapshot.calibration(DEFAULT_NODE))
        assert decided.probabilities[place] == pytest.approx(assessment.probability, abs=1e-9)
        assert decided.cited[place] == len(picked.bullets)


def test_an_empty_playbook_decides_nothing_either_way() -> None:
    decided = ColumnLearner().decide(traffic(5, 0).rows)
    assert decided.probabilities.tolist() == [0.5] * 5
    assert decided.cited.tolist() == [0] * 5


def test_bullets_learnt_from_a_history_say_when_they_were_seen(studied: ColumnLearner) -> None:
    moments = Moments(np.array([0, 1_500_000]))
    assert [*moments] == [datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)]
    for bullet in studied.bullets:
        assert bullet.evidence is not None
        assert bullet.evidence.first_seen is not None


# --- hearing and remembering --------------------------------------------------------------------------------------


def test_outcomes_may_come_in_batches_of_any_size() -> None:
    past = traffic(1500, 6, share=0.05)
    books = []
    for batch in (50, 250):
        learner = ColumnLearner(options=QUICK, seed=1)
        hear(learner, past, batch)
        books.append([(bullet.id, bullet.weight) for bullet in learner.bullets])
    assert books[0] == books[1]
    assert books[0]


def test_no_more_is_remembered_than_asked_for() -> None:
    options = ColumnOptions(induction=InductionOptions(runs=1), memory=800, review_rounds=1)
    learner = ColumnLearner(options=options)
    past = traffic(2500, 7, share=0.03)
    for start in range(0, 2500, 100):
        learner.hear(past.rows.take(slice(start, start + 100)), past.labels[start : start + 100])
        assert learner.remembered <= 800 + options.review_every
    learner.review()
    assert learner.remembered == 800


def test_a_studied_playbook_is_not_lost_to_the_first_few_outcomes(studied: ColumnLearner) -> None:
    learner = ColumnLearner(options=QUICK, seed=2)
    past = traffic(4000, 8, share=0.03)
    learner.study(past.rows, past.labels, np.arange(4000))
    assert learner.remembered == 4000
    hear(learner, traffic(500, 9, share=0.03))
    assert names_it(learner.bullets, 8)
    fresh = traffic(2000, 10, share=0.03)
    p = learner.decide(fresh.rows).probabilities
    assert p[fresh.planted].mean() > 0.5


def test_tables_are_stacked_whatever_columns_and_words_they_have() -> None:
    one = FactTable([{"amount": 5.0, "shop": "toys", "vpn": True}, {"shop": "food"}])
    other = FactTable([{"shop": "fuel", "tries": 2.0}, {"shop": "toys"}, {}])
    both = stacked([one, other])
    rows = [one.row(0), one.row(1), other.row(0), other.row(1), other.row(2)]
    assert [both.row(place) for place in range(5)] == rows
    for text in ('shop is "toys"', "amount > 1", "vpn is true", "tries is missing"):
        condition = Condition.parse(text)
        assert condition.holds_in(both).tolist() == [condition.holds(row) for row in rows]
    assert stacked([one]) is one


# --- patterns that come, stop and come back -----------------------------------------------------------------------


def silent_about(learner: ColumnLearner, seed: int) -> list[str]:
    """Why the bullets that once named the pattern no longer do, from the ledger."""
    every = learner.playbook.snapshot().bullets.values()
    active = [bullet.model_copy(update={"status": Status.ACTIVE}) for bullet in every]
    once = {bullet.id for bullet in names_it(active, seed)}
    changes = [event.what for event in learner.playbook.ledger.read() if isinstance(event.what, StatusChanged)]
    return [change.reason for change in changes if change.bullet_id in once and change.status is not Status.ACTIVE]


def test_a_pattern_is_named_ends_and_comes_back() -> None:
    learner = ColumnLearner(options=QUICK, seed=1)
    hear(learner, traffic(1000, 11), 250)
    begun = until(learner, traffic(2000, 12, share=0.04), 1, named=True)
    assert begun is not None
    assert begun[1] <= 200
    hear(learner, traffic(1500, 13, share=0.04), 250)
    ended = until(learner, traffic(2000, 14), 1, named=False)
    assert ended is not None
    assert any("would be usual" in reason for reason in silent_about(learner, 1))
    hear(learner, traffic(500, 15), 250)
    again = until(learner, traffic(2000, 16, share=0.04), 1, named=True)
    assert again is not None
    assert again[1] <= 200
    for bullet in names_it(learner.bullets, 1):
        assert bullet.status_by == THE_ENGINE


def test_what_a_person_retired_stays_retired() -> None:
    learner = ColumnLearner(options=QUICK, seed=1)
    past = traffic(2000, 17, share=0.04)
    hear(learner, past, 500)
    (named, *_) = names_it(learner.bullets, 1)
    learner.playbook.set_status(named.id, Status.RETIRED, who="ana", why="a partner's test cards")
    hear(learner, traffic(1000, 18, share=0.04), 500)
    found = learner.playbook.get_bullet(named.id)
    assert found is not None
    assert (found.status, found.status_by) == (Status.RETIRED, "ana")


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_new_pattern_is_named_within_two_hundred_of_its_cases(seed: int) -> None:
    learner = ColumnLearner(seed=seed)
    hear(learner, traffic(6000, seed))
    begun = until(learner, traffic(6000, seed + 100, share=0.02), seed, named=True)
    assert begun is not None
    assert begun[1] <= 200


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("still_occurs", [False, True])
@pytest.mark.parametrize(("before", "during"), [(3000, 5000), (15_000, 8000)], ids=["young", "full memory"])
def test_a_pattern_that_stops_is_no_longer_named(seed: int, still_occurs: bool, before: int, during: int) -> None:
    learner = ColumnLearner(seed=seed)
    hear(learner, traffic(before, seed), 500)
    hear(learner, traffic(during, seed + 100, share=0.02), 500)
    assert names_it(learner.bullets, seed)
    now = traffic(4000, seed + 200, share=0.02, fraud=0.02) if still_occurs else traffic(4000, seed + 200)
    ended = until(learner, now, seed, named=False)
    assert ended is not None
    assert ended[0] <= 2000
    assert any("outcomes" in reason for reason in silent_about(learner, seed))
    rest = slice(ended[0], None)
    hear(learner, Traffic(now.rows.take(rest), now.labels[rest], now.planted[rest]), 500)
    assert not names_it(learner.bullets, seed), "it is not learnt again from what is remembered of it"


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_pattern_that_comes_back_is_named_again(seed: int) -> None:
    learner = ColumnLearner(seed=seed)
    for place, share in enumerate((0.0, 0.02, 0.0)):
        hear(learner, traffic(3000, seed + 100 * place, share=share), 500)
    assert not names_it(learner.bullets, seed)
    again = until(learner, traffic(4000, seed + 300, share=0.02), seed, named=True)
    assert again is not None
    assert again[1] <= 200
