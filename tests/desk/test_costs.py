"""What a business says of its thresholds: costs and reviews a day, on every way in, and what becomes of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import shell, trained, trained_once  # noqa: F401
from tests.service.conftest import admin, serving, store  # noqa: F401

from acefraud import BulletPlaybook, Case, Learner, Transaction, Verdict, open_playbook
from acefraud.client.calls import set_threshold
from acefraud.core.events import ThresholdSet
from acefraud.core.review_rule import ReviewCosts, ReviewRule
from acefraud.errors import AcefraudError, InputError

pytestmark = pytest.mark.wide

if TYPE_CHECKING:
    from starlette.testclient import TestClient
    from tests.service.conftest import Serving

SAID = "false_decline=15,missed_fraud=200,review=5,per_day=50"
COSTS = {"false_decline": 15.0, "missed_fraud": 200.0, "fraud_loss": 0.0, "review": 5.0, "per_day": 50}
NODE = "fraud_detection"


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = datetime(2025, 5, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def case(number: int) -> Case:
    facts = {"amount": float(number), "vpn": number % 3 == 0}
    return Case(transaction=Transaction(id=f"c{number}", facts=facts), is_fraud=number % 3 == 0)


def told(rule: ReviewRule | None) -> Any:
    assert rule is not None
    return rule.model_dump()["costs"]


# --- one way to say it ---


def test_costs_are_said_alike_on_the_command_line_for_a_playbook_and_for_a_training(trained: Any) -> None:  # noqa: F811
    plain = trained.on_book("threshold", "show", "--json").json
    assert trained.on_book("threshold", "set", "--costs", SAID, "--json").json["review"]["costs"] == COSTS
    for option in ("--costs", "--threshold"):
        trained.on_book("threshold", "set", "--no-review")
        made = trained.on_book("train", "history.csv", option, SAID, "--json").json
        shown = trained.on_book("threshold", "show", "--json").json
        assert shown["review"]["costs"] == COSTS
        assert made["threshold"] == shown["threshold"] == pytest.approx(15 / 215)
        assert shown["threshold"] != plain["threshold"]
    found = trained.on_book("threshold", "preview", "--costs", "false_decline=1,missed_fraud=5000", "--json").json
    assert found["flips"] > 0


def test_costs_are_said_alike_in_python_over_http_and_by_the_client(serving: Serving, admin: TestClient) -> None:  # noqa: F811
    book = BulletPlaybook()
    for said in (SAID, ReviewCosts(**COSTS), ReviewRule(costs=ReviewCosts(**COSTS))):
        book.set_threshold(review=said)
        assert told(book.snapshot().reviews[NODE]) == COSTS
        assert set_threshold(review=said, reason="x").body["review"]["costs"] == COSTS
    studied = BulletPlaybook()
    Learner(studied).study([case(number) for number in range(60)], threshold=SAID)
    assert told(studied.snapshot().reviews[NODE]) == COSTS
    body = {"review": {"costs": {"false_decline": 15, "missed_fraud": 200, "review": 5, "per_day": 50}}, "reason": "x"}
    answer = admin.put("/v1/threshold", json=body).json()
    assert answer["review"]["costs"] == COSTS
    assert (answer["reviews_today"], answer["review_cut"]) == (0, 0.0)
    assert "0 of today's 50 reviews used" in answer["words"]
    assert told(serving.runtime.playbook.snapshot().reviews[NODE]) == COSTS


def test_a_missed_fraud_costs_a_sum_a_share_of_the_amount_or_both() -> None:
    for said, fixed, share in (("200", 200, 0), ("80%", 0, 0.8), ("80% + 25", 25, 0.8), ("25,fraud_loss=0.8", 25, 0.8)):
        costs = ReviewCosts.of(f"false_decline=15,missed_fraud={said}")
        assert (costs.missed_fraud, costs.fraud_loss) == (fixed, share)
        assert costs.expected(0.5, 100.0) == (0.5 * (fixed + 100 * share), 7.5)
    assert ReviewCosts.of("false_decline=15").fraud_loss == 1, "as it always was"


BAD = [
    ("false_decline=-1", "false_decline: expected a number of at least 0"),
    ("false_decline=15,missed_fraud=-200", "missed_fraud: expected a number of at least 0"),
    ("false_decline=15,missed_fraud=120%", "at most 100%"),
    ("false_decline=15,missed_fraud=80%+", "80%\\+25"),
    ("false_decline=15,missed_fraud=80%,fraud_loss=0.5", "without fraud_loss"),
    ("false_decline=15,fraud_loss=1.5", "at most 1"),
    ("false_decline=15,missed_fraud=0", "above 0"),
    ("false_decline=15,per_day=50", "the cost of a review too"),
    ("false_decline=15,review=5,per_day=-1", "per_day: expected a number of at least 0"),
    ("false_decline=15,review=inf", "review: expected a finite number"),
    ("false_decline=15,reviews=5", "reviews: there is no such field; did you mean review"),
    ("false_decline=15,false_decline=16", "there twice"),
    ("missed_fraud=200", "false_decline: this field is missing"),
]


@pytest.mark.parametrize(("said", "says"), BAD)
def test_costs_that_make_no_sense_are_refused_on_every_way_in(said: str, says: str) -> None:
    book = BulletPlaybook()
    cases = [case(number) for number in range(12)]
    ways: list[Callable[[], object]] = [
        lambda: book.set_threshold(review=said),
        lambda: set_threshold(review=said, reason="x"),
    ]
    if not said.startswith("missed"):  # which says that these are costs
        ways.append(lambda: Learner(book).study(cases, threshold=said))
    for way in ways:
        with pytest.raises(AcefraudError, match=says):
            way()
    assert book.seq == 0


def test_costs_that_make_no_sense_are_refused_over_http_with_their_field(admin: TestClient) -> None:  # noqa: F811
    for costs, field in (
        ({"false_decline": -1}, "review.costs.false_decline"),
        ({"false_decline": 15, "missed_fraud": "120%"}, "review.costs"),
        ({"false_decline": 15, "per_day": 5}, "review.costs"),
        ({"false_decline": 15, "fraud_loss": 1.5}, "review.costs"),
        ({"false_decline": 15, "reviews": 5}, "review.costs.reviews"),
    ):
        answer = admin.put("/v1/threshold", json={"review": {"costs": costs}, "reason": "x"})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


# --- what decides, and how that is told ---


def test_without_the_cost_of_a_review_the_cheaper_of_two_verdicts_is_chosen() -> None:
    book = BulletPlaybook()
    book.set_threshold(review="false_decline=15,missed_fraud=20")
    for facts in ({"amount": 5.0}, {"emulator": True}, {"vpn": True, "emulator": True}):
        decision = Learner(book).decide_sync({"id": "t", "facts": facts})
        dearer = decision.probability * 20 > (1 - decision.probability) * 15
        assert decision.verdict is (Verdict.DECLINE if dearer else Verdict.APPROVE)


def test_a_case_without_an_amount_says_what_decided_it(trained: Any) -> None:  # noqa: F811
    def explained(costs: str) -> Any:
        trained.on_book("threshold", "set", "--costs", costs)
        made = trained.on_book("decide", '{"id": "n1", "vpn": true}', "--json").json
        assert "not known" in made["reasons"][0]["text"]
        return trained.on_book("explain", made["decision_id"], "--json").json["decided_by"]

    assert explained("false_decline=15,missed_fraud=80%,review=5")["rule"] == "threshold"
    partly = explained("false_decline=15,missed_fraud=80%+25,review=5")
    assert (partly["rule"], partly["expected_costs"]["REVIEW"]) == ("costs", 5.0)
    assert "only the fixed part" in partly["words"]


def test_explain_names_the_costs_the_used_up_limit_the_band_and_the_policy(trained: Any) -> None:  # noqa: F811
    def explained(**facts: Any) -> tuple[Any, str]:
        made = trained.on_book("decide", json.dumps({"id": f"e{facts.pop('n')}", **facts}), "--json").json
        text = trained.on_book("explain", made["decision_id"], "--replay").out
        assert "the same decision" in text
        return trained.on_book("explain", made["decision_id"], "--json").json["decided_by"], text

    by_threshold, text = explained(n=1, amount=100)
    assert by_threshold["rule"] == "threshold"
    assert "Decided by threshold: a fraud probability of 0.5 or more is declined" in text
    trained.on_book("threshold", "set", "--costs", "false_decline=900,missed_fraud=100%,review=0.01,per_day=1")
    by_costs, text = explained(n=2, amount=200)
    assert by_costs["rule"] == "costs"
    assert by_costs["expected_costs"].keys() == {"APPROVE", "DECLINE", "REVIEW"}
    assert f"APPROVE {by_costs['expected_costs']['APPROVE']:.2f}" in text
    kept, text = explained(n=3, amount=150)
    assert kept["rule"] == "capacity"
    assert kept["saving"] > 0
    assert f"a review would have saved {kept['saving']:.2f}, but today's 1 reviews are used up" in text
    shown = trained.on_book("threshold", "show").out
    assert "1 of today's 1 reviews used, none is left" in shown
    trained.on_book("threshold", "set", "--review-between", "0", "1")
    assert explained(n=4, amount=100)[0]["rule"] == "band"
    trained.on_book("playbook", "add", "amount over 50", "--always", "decline")
    by_policy, text = explained(n=5, amount=100)
    assert by_policy["rule"] == "policy"
    assert "always decline" in text


def test_explain_over_http_has_the_costs_in_numbers(serving: Serving, admin: TestClient) -> None:  # noqa: F811
    serving.runtime.playbook.set_threshold(review=SAID)
    made = admin.post("/v1/decisions", json={"id": "o1", "facts": {"amount": 90}}).json()
    assert made["reasons"][0]["content"].startswith("expected costs: APPROVE")
    by = admin.get(f"/v1/decisions/{made['decision_id']}").json()["decided_by"]
    assert by["rule"] == "costs"
    assert by["expected_costs"]["APPROVE"] == pytest.approx(200 * made["probability"])
    assert by["saving"] == pytest.approx(min(200 * made["probability"], 15 * (1 - made["probability"])) - 5)


# --- a day's reviews ---


def traffic(clock: Clock, learner: Learner, amounts: Sequence[float], day: int) -> list[Any]:
    """Cases spread over the waking hours of a day, decided one after another."""
    made = []
    for index, amount in enumerate(amounts):
        clock.now = datetime(2025, 5, 5, 6, tzinfo=UTC) + timedelta(days=day, hours=16 * index / len(amounts))
        made.append(learner.decide_sync(Transaction(id=f"d{day}-{index}", facts={"amount": amount})))
    return made


def savings(costs: ReviewCosts, made: Sequence[Any]) -> list[float]:
    """What a review of each would save."""
    found = (costs.saving(each.probability, each.facts["amount"]) for each in made)
    return [0.0 if saving is None else saving for saving in found]


def test_reviews_go_to_the_cases_where_they_save_most_and_last_for_the_day() -> None:
    clock, dice = Clock(), random.Random(4)
    book = BulletPlaybook(clock=clock)
    book.set_threshold(review="false_decline=5000,missed_fraud=100%,review=5,per_day=10")
    costs, learner = book.snapshot().reviews[NODE].costs, Learner(book)
    assert costs is not None
    closed = []
    for day in range(5):
        made = traffic(clock, learner, [dice.lognormvariate(4, 1) for _ in range(150)], day)
        saved = savings(costs, made)
        by_cut = sum(saving for saving, each in zip(saved, made, strict=True) if each.verdict is Verdict.REVIEW)
        first_come, best = sum([each for each in saved if each > 0][:10]), sum(sorted(saved)[-10:])
        closed.append((by_cut - first_come) / (best - first_come))
        assert sum(each.verdict is Verdict.REVIEW for each in made) <= 10
    assert closed[0] > 0.3, "on the first day nothing but the pace so far says what is still to come"
    assert sum(closed[1:]) / len(closed[1:]) > 0.85, closed

    kept = next(each for each in made if learner.ruling(each).rule == "capacity")
    for one in (kept, next(each for each in made if each.verdict is Verdict.REVIEW)):
        recorded = book.ledger.decisions([one.id])[one.id]
        assert learner.replay_sync(recorded).same_as(one)
    assert "go to cases that save at least" in learner.ruling(kept).words


def test_files_that_are_decided_within_minutes_get_their_reviews() -> None:
    clock, dice = Clock(), random.Random(4)
    book = BulletPlaybook(clock=clock)
    book.set_threshold(review="false_decline=5000,missed_fraud=100%,review=5,per_day=20")
    learner, reviews = Learner(book), 0
    for file in range(4):
        clock.now = clock.now.replace(hour=14, minute=file)
        rows = [{"id": f"f{file}-{row}", "amount": dice.lognormvariate(4, 1)} for row in range(50)]
        reviews += sum(each.verdict is Verdict.REVIEW for each in learner.decide_all_sync(rows))
    assert 12 <= reviews <= 20


def test_of_a_file_with_a_whole_day_the_best_are_reviewed(shell: Any) -> None:  # noqa: F811
    dice = random.Random(2)
    amounts = {f"f{index}": dice.randrange(50, 5_000) for index in range(450)}
    shell.rows("today.jsonl", [{"id": name, "amount": amount} for name, amount in amounts.items()])
    shell.on_book("playbook", "add", "An emulator: decline")
    shell.on_book("threshold", "set", "--costs", "false_decline=9000,missed_fraud=100%,review=5,per_day=50")
    made = shell.on_book("decide", "today.jsonl", "--json").lines
    reviewed = {amounts[each["transaction_id"]] for each in made if each["verdict"] == "REVIEW"}
    assert sum(each["verdict"] == "REVIEW" for each in made) == 50
    assert min(reviewed) == sorted(amounts.values())[-50]


def test_of_the_file_of_every_day_the_best_are_reviewed_however_many_days_came_before() -> None:
    clock, dice = Clock(), random.Random(9)
    book = BulletPlaybook(clock=clock)
    book.set_threshold(review="false_decline=9000,missed_fraud=100%,review=5,per_day=20")
    learner = Learner(book)
    for day in range(4):
        clock.now = datetime(2025, 5, 5 + day, 2, dice.randrange(60), tzinfo=UTC)
        count = dice.randrange(180, 220)
        many = [Transaction(id=f"{day}-{n}", facts={"amount": dice.uniform(50, 5_000)}) for n in range(count)]
        made = learner.decide_all_sync(many)
        reviewed = [each.facts["amount"] for each in made if each.verdict is Verdict.REVIEW]
        best = sorted(each.facts["amount"] for each in made)[-20:]
        assert len(set(reviewed) & set(best)) >= 18, day


def test_the_worst_days_stay_within_the_limit() -> None:
    def reviewed(amounts: Sequence[float | None], per_day: int, *, batch: int) -> list[Any]:
        clock = Clock()
        book = BulletPlaybook(clock=clock)
        book.set_threshold(review=f"false_decline=900,missed_fraud=80%+25,review=1,per_day={per_day}")
        learner, made = Learner(book), []
        for start in range(0, len(amounts), batch):
            some = [
                Transaction(id=f"w{start + index}", facts={"vpn": True} if amount is None else {"amount": amount})
                for index, amount in enumerate(amounts[start : start + batch])
            ]
            made += list(learner.decide_all_sync(some))
            clock.now += timedelta(minutes=30 * batch / len(amounts))
        return [each for each in made if each.verdict is Verdict.REVIEW]

    assert len(reviewed([100.0] * 60, 20, batch=60)) == 20, "all equal, at once"
    assert len(reviewed([100.0] * 60, 20, batch=1)) == 20, "all equal, one after another"
    assert len(reviewed([None] * 40, 5, batch=40)) == 5, "no amounts"
    assert not reviewed([100.0, 900.0], 0, batch=1), "no reviews"
    dice = random.Random(3)
    burst = [dice.lognormvariate(4, 1) for _ in range(10_000)]
    found = reviewed(burst, 50, batch=250)
    assert len(found) <= 50
    assert sum(each.facts["amount"] for each in found) / len(found) > 2 * sum(burst) / len(burst)


def test_unused_reviews_go_to_lesser_cases_late_in_the_day() -> None:
    clock = Clock()
    book = BulletPlaybook(clock=clock)
    book.set_threshold(review="false_decline=5000,missed_fraud=100%,review=5,per_day=10")
    learner, dice = Learner(book), random.Random(6)
    traffic(clock, learner, [dice.lognormvariate(4, 1) for _ in range(200)], 0)
    cuts = []
    for hour in (1, 12, 21):
        clock.now = datetime(2025, 5, 6, hour, tzinfo=UTC)
        left = learner.reviews_left()
        assert left is not None
        cuts.append(left.cut)
    assert cuts == sorted(cuts, reverse=True)
    assert cuts[0] > cuts[-1]


def test_several_processes_share_a_day(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as first, open_playbook(tmp_path / "book.db") as second:
        clock = Clock()
        first.clock = second.clock = clock
        first.set_threshold(review="false_decline=900,missed_fraud=100%,review=1,per_day=6")
        learners = Learner(first), Learner(second)
        made = [
            learners[index % 2].decide_sync(Transaction(id=f"s{index}", facts={"amount": 100.0})) for index in range(40)
        ]
    assert sum(each.verdict is Verdict.REVIEW for each in made) == 6


# --- what was recorded before ---


def test_rules_of_old_ledgers_are_read_and_decide_as_they_did() -> None:
    kept = '{"kind": "threshold_set", "node": "n", "threshold": null, "review": {"between": null, "costs": %s}}'
    old = '{"fraud_loss": 1.5, "false_decline": 20.0, "review": 5.0, "per_day": 25}'
    rule = ThresholdSet.model_validate_json(kept % old).review
    assert rule is not None
    assert told(rule)["missed_fraud"] == 0
    for reviews, verdict in ((24.0, Verdict.REVIEW), (25.0, Verdict.APPROVE)):
        assert rule.verdict(0.1, 0.5, {"amount": 100.0, "reviews today": reviews}) is verdict
    assert rule.verdict(0.6, 0.5, {"reviews today": 0.0}) is Verdict.DECLINE, "by the threshold: there is no amount"
    with pytest.raises(InputError, match="at most 1"):
        BulletPlaybook().set_threshold(review=rule)
