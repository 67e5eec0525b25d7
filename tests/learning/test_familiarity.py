"""What a playbook relies on, what it knows by name, and how the facts of a day differ."""

from __future__ import annotations

import pytest

from acefraud import (
    BulletPlaybook,
    Case,
    Condition,
    InputWarning,
    Learner,
    LearnerOptions,
    Policy,
    Transaction,
    Verdict,
)
from acefraud.core.bullet import DEFAULT_NODE
from acefraud.engine.familiarity import FactChanges, ReliedOn
from acefraud.errors import ConfigurationError


def history(count: int = 200) -> list[Case]:
    """Frauds are large."""
    return [
        Case(
            transaction=Transaction(id=f"h{n}", facts={"amount": 10.0 + n % 50, "channel": "app" if n % 2 else "web"}),
            is_fraud=n % 50 > 40,
        )
        for n in range(count)
    ]


def test_a_rule_is_shared_equally_by_the_facts_it_tests() -> None:
    book = BulletPlaybook()
    book.add_bullet("a", condition=Condition.parse("x > 1 and y > 1"), argues=Verdict.DECLINE, weight=2.0)
    book.add_bullet("b", condition=Condition.parse("z > 1"), policy=Policy(verdict=Verdict.DECLINE))
    relied = ReliedOn.of(book.snapshot(), DEFAULT_NODE)
    assert (relied.carried["x"], relied.carried["y"], relied.carried["z"]) == (1.0, 1.0, 1.0)
    total = sum(relied.carried.values())  # of general knowledge too, which counts before the first training
    assert relied.share(["x", "unheard of"]) == pytest.approx(1 / total)


def test_what_is_relied_on_is_worked_out_once_and_again_after_a_change() -> None:
    book = BulletPlaybook()
    book.add_bullet("VPN: decline")
    before = ReliedOn.of(book.snapshot(), DEFAULT_NODE)
    assert ReliedOn.of(book.snapshot(), DEFAULT_NODE) is before
    book.add_bullet("An emulator: decline")
    assert ReliedOn.of(book.snapshot(), DEFAULT_NODE) is not before


def test_before_the_first_case_only_names_like_a_known_one_are_pointed_out() -> None:
    checked = Learner(BulletPlaybook()).check([{"amout": 5.0, "flange_width": 7.0}])
    assert [(fact.name, fact.nearest) for fact in checked.unfamiliar_facts] == [("amout", "amount")]


def test_after_learning_every_unknown_name_is() -> None:
    learner = Learner(BulletPlaybook())
    learner.study(history())
    checked = learner.check([{"amount": 5.0, "channel": "web", "flange_width": 7.0, "Chan nel": "app"}])
    assert [(fact.name, fact.nearest) for fact in checked.unfamiliar_facts] == [
        ("Chan nel", "channel"),
        ("flange_width", None),
    ]


def test_a_text_misses_nothing() -> None:
    learner = Learner(BulletPlaybook())
    learner.study(history())
    assert learner.check(["a payment of $20"]).remarks == ()


def test_there_may_be_no_bound_of_time_and_a_wrong_one_is_refused() -> None:
    assert LearnerOptions(days_ahead=None).days_ahead is None
    with pytest.raises(ConfigurationError, match="days_ahead: expected a number of days"):
        LearnerOptions(days_ahead=-1)


def test_too_few_decisions_are_not_compared() -> None:
    learner = Learner(BulletPlaybook())
    learner.study(history())
    learner.decide_sync({"amount": 5.0, "channel": "web"})
    assert learner.fact_changes() == FactChanges(cases=200, decisions=1)


def test_the_facts_of_a_day_are_compared_with_those_learnt_from() -> None:
    learner = Learner(BulletPlaybook())
    learner.study(history())
    orders = [{"id": f"d{n}", "amount": 1000.0 + 100 * n, "channel": "Netz", "added": n % 2 == 0} for n in range(30)]
    with pytest.warns(InputWarning, match="`added`"):
        learner.decide_all_sync(orders)
    changes = {change.name: (change.change, change.words) for change in learner.fact_changes().changes}
    assert set(changes) == {"amount", "channel", "added"}
    assert changes["amount"][0] == "shifted"
    assert "perhaps another unit" in changes["amount"][1]
    assert changes["channel"] == ("shifted", "1 of 1 words are new, among them Netz")
    assert changes["added"][0] == "new"
