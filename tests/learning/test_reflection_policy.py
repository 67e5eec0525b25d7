"""Which cases are worth a call: failures, near misses and a few successes, together with their like."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.table import Columns, FactTable
from acefraud.core.transaction import Case, FactValue, Transaction, Verdict
from acefraud.errors import ConfigurationError
from acefraud.learning.model_lessons import Group, ReflectionPolicy, groups_of
from acefraud.roles.proposals import WORDS_SHOWN, example_of, summaries

POLICY = ReflectionPolicy()
RARELY = 0.99
"""A draw that belongs to a case which is not sampled."""


# --- what is worth it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probability", "missed", "draw", "worth"),
    [
        (0.01, True, RARELY, True),
        (0.99, True, RARELY, True),
        (0.45, False, RARELY, True),
        (0.55, False, RARELY, True),
        (0.3, False, RARELY, False),
        (0.7, False, RARELY, False),
        (0.3, False, 0.04, True),
        (0.3, False, 0.06, False),
    ],
)
def test_what_is_worth_a_call(probability: float, missed: bool, draw: float, worth: bool) -> None:
    assert POLICY.worth(probability, 0.5, missed, draw) is worth


def test_a_near_miss_is_near_the_threshold_and_not_near_a_half() -> None:
    assert POLICY.worth(0.15, 0.1, False, RARELY)
    assert not POLICY.worth(0.45, 0.1, False, RARELY)


@given(probability=st.floats(0, 1), missed=st.booleans(), draw=st.floats(0, 1))
def test_the_plain_flow_looks_at_everything(probability: float, missed: bool, draw: float) -> None:
    assert ReflectionPolicy.plain().worth(probability, 0.5, missed, draw)


def test_no_successes_at_all_can_be_asked_for() -> None:
    only_failures = ReflectionPolicy(near_miss=0.0, success_share=0.0)
    assert not only_failures.worth(0.4, 0.5, False, 0.0)
    assert only_failures.worth(0.4, 0.5, True, 0.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"near_miss": -0.1},
        {"success_share": 1.1},
        {"most_share": 0.0},
        {"together": 0},
        {"contrast": -1},
        {"rounds": 0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_impossible_policies_are_turned_down(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ReflectionPolicy(**wrong)


# --- groups ------------------------------------------------------------------------------------------------------


def scene(
    count: int, seed: int = 0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], FactTable, np.ndarray[Any, Any]]:
    chance = random.Random(seed)
    said = np.array([chance.random() for _ in range(count)])
    labels = np.array([chance.random() < 0.3 for _ in range(count)], dtype=np.bool_)
    rows: list[dict[str, FactValue]] = [
        {"amount": chance.uniform(1, 900), "vpn": chance.random() < 0.4} for _ in range(count)
    ]
    return said, labels, FactTable(rows), np.array([chance.random() for _ in range(count)])


def made(count: int, policy: ReflectionPolicy, seed: int = 0, without: frozenset[int] = frozenset()) -> list[Group]:
    said, labels, table, draws = scene(count, seed)
    return groups_of(said, labels, 0.5, table, draws=draws, policy=policy, without=without)


@given(
    count=st.integers(0, 120),
    seed=st.integers(0, 50),
    policy=st.builds(
        ReflectionPolicy,
        together=st.integers(1, 8),
        contrast=st.integers(0, 5),
        rounds=st.integers(1, 4),
        most_share=st.floats(0.01, 1.0),
    ),
    without=st.frozensets(st.integers(0, 119), max_size=40),
)
def test_groups_keep_their_promises(count: int, seed: int, policy: ReflectionPolicy, without: frozenset[int]) -> None:
    groups = made(count, policy, seed, without)
    said, labels, _, draws = scene(count, seed)
    missed = (said >= 0.5) != labels
    assert len(groups) <= max(1, int(policy.most_share * count / policy.rounds))
    shown = [row for group in groups for row in group.rows]
    assert len(shown) == len(set(shown)), "no case twice"
    assert not without.intersection(shown)
    for group in groups:
        truths = {bool(labels[row]) for row in group.rows}
        assert len(truths) == 1
        assert 1 <= len(group.rows) <= policy.together
        assert {bool(labels[at]) for at in group.contrast} <= {not truths.pop()}
        assert len(group.contrast) <= policy.contrast
        for place in group.rows:
            assert policy.worth(said[place], 0.5, bool(missed[place]), draws[place])
    wrong = [sum(bool(missed[row]) for row in group.rows) for group in groups]
    assert wrong == sorted(wrong, reverse=True), "the most missed first"
    assert made(count, policy, seed, without) == groups


def test_every_failure_is_shown_where_calls_allow_it() -> None:
    said, labels, _, _ = scene(200)
    groups = made(200, ReflectionPolicy(contrast=3, rounds=1, most_share=1.0, success_share=0.0, near_miss=0.0))
    assert {row for group in groups for row in group.rows} == set(np.flatnonzero((said >= 0.5) != labels))
    assert all(len(group.contrast) == 3 for group in groups)


def test_most_share_caps_the_calls() -> None:
    free = made(300, ReflectionPolicy(together=1, rounds=1, most_share=1.0))
    assert len(free) > 100
    assert len(made(300, ReflectionPolicy(together=1, rounds=1, most_share=0.1))) == 30
    assert len(made(300, ReflectionPolicy(together=1, rounds=3, most_share=0.1))) == 10
    said, labels, _, _ = scene(300)
    few = made(300, ReflectionPolicy(together=1, rounds=3, most_share=0.1))
    assert all((said[group.rows[0]] >= 0.5) != labels[group.rows[0]] for group in few), "failures go first"


def test_the_plain_flow_is_one_call_a_case() -> None:
    groups = made(150, ReflectionPolicy.plain())
    assert sorted(group.rows[0] for group in groups) == list(range(150))
    assert {(len(group.rows), len(group.contrast)) for group in groups} == {(1, 0)}


def test_contrasts_are_the_most_alike_of_the_other_truth() -> None:
    table = FactTable([{"amount": float(amount)} for amount in (10, 11, 12, 500, 510, 520)])
    labels = np.array([True, True, False, False, False, True])
    said = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.9])
    policy = ReflectionPolicy(rounds=1, most_share=1.0, contrast=1, near_miss=0.0, success_share=0.0)
    assert groups_of(said, labels, 0.5, table, draws=np.ones(6), policy=policy) == [Group((0, 1), (2,))]


def test_a_history_of_one_truth_has_nothing_to_contrast_with() -> None:
    table = FactTable([{"amount": 1.0}, {"amount": 2.0}])
    policy = ReflectionPolicy(rounds=1, most_share=1.0)
    groups = groups_of(np.zeros(2), np.ones(2, dtype=np.bool_), 0.5, table, draws=np.ones(2), policy=policy)
    assert groups == [Group((0, 1), ())]


def test_an_example_says_what_was_decided_and_what_was_true() -> None:
    case = Case(transaction=Transaction(id="a", text="$900 through a VPN", facts={"days": 3.0}), is_fraud=True)
    example = example_of(case, Verdict.APPROVE, "an old customer")
    assert (example.predicted, example.correct, example.missed) == (Verdict.APPROVE, Verdict.DECLINE, True)
    assert (example.facts["days"], example.facts["vpn"], example.facts["amount"]) == (3.0, True, 900.0)
    assert (example.text, example.reasoning) == ("$900 through a VPN", "an old customer")
    assert not example_of(case, Verdict.DECLINE).missed


# --- what facts look like ----------------------------------------------------------------------------------------


def test_numbers_flags_and_words_are_summed_up() -> None:
    rows: list[dict[str, FactValue]] = [
        {"amount": 1.0, "vpn": True, "kind": "crypto"},
        {"amount": 120.0, "vpn": False, "kind": "food"},
        {"amount": 9800.0, "vpn": False, "kind": "crypto"},
        {"vpn": False},
    ]
    amount, kind, vpn = summaries(FactTable(rows))
    assert (amount.name, amount.kind, amount.values) == ("amount", "number", "1 to 9800, half of them up to 120")
    assert (kind.name, kind.kind, kind.values) == ("kind", "category", 'one of "crypto", "food"')
    assert (vpn.name, vpn.kind, vpn.values) == ("vpn", "flag", "true in 25% of the cases that say so")


def test_one_value_is_enough_for_a_summary() -> None:
    only: list[dict[str, FactValue]] = [{"amount": 7.0, "vpn": True, "kind": "food"}, {}]
    said = [fact.values for fact in summaries(FactTable(only))]
    assert said == ["7 to 7, half of them up to 7", 'one of "food"', "true in 100% of the cases that say so"]


def test_of_many_words_the_commonest_are_told() -> None:
    words = [f"word {index}" for index in range(12) for _ in range(20 - index)]
    (kind,) = summaries(FactTable([{"kind": word} for word in reversed(words)]))
    assert kind.values == "one of " + ", ".join(f'"word {n}"' for n in range(WORDS_SHOWN)) + ", ..."


def test_what_nobody_knows_is_not_told_of() -> None:
    columns = Columns(
        {"amount": np.full(3, np.nan), "days": np.array([np.nan, 2.0, np.nan])},
        {"vpn": np.full(3, -1, dtype=np.int8)},
        {"kind": (np.full(3, -1, dtype=np.int32), ("food",)), "city": (np.full(3, -1, dtype=np.int32), ())},
    )
    assert [fact.name for fact in summaries(FactTable.of_columns(columns, 3))] == ["days"]
    assert summaries(FactTable([])) == []


@given(
    rows=st.lists(
        st.dictionaries(
            st.sampled_from("abc"), st.one_of(st.floats(-1e12, 1e12), st.booleans(), st.text(max_size=4)), max_size=3
        ),
        max_size=15,
    )
)
def test_every_fact_that_any_case_knows_is_summed_up_once(rows: list[dict[str, FactValue]]) -> None:
    assert [fact.name for fact in summaries(FactTable(rows))] == sorted({name for row in rows for name in row})
