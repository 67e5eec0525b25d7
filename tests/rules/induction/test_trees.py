"""The branches of a small tree: short, sorted by gain, without idle tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from acefraud.core.condition import MAX_TESTS, Condition, Op, Test
from acefraud.core.table import Columns, FactTable
from acefraud.rules.induction.bins import BinnedTable, BinOptions
from acefraud.rules.induction.trees import Branch, TreeOptions, _Grower, _Node, branches
from acefraud.support.exact_sums import cut

Column = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
EVERY_FACT = TreeOptions(facts_looked_at=1.0)
SHOPS = tuple(f"shop {index:02}" for index in range(30))


def traffic(seed: int, count: int = 3000) -> FactTable:
    dice = np.random.default_rng(seed)
    noise = dice.normal(0, 1, count)
    noise[dice.random(count) < 0.2] = np.nan
    numbers = {"amount_paid": dice.uniform(0, 1000, count), "risk_score": dice.uniform(0, 10, count), "noise": noise}
    shops = dice.integers(0, len(SHOPS), count).astype(np.int32)
    return FactTable.of_columns(Columns(numbers, {}, {"shop_kind": (shops, SHOPS)}), count)


def grown(table: FactTable, labels: Mask, options: TreeOptions = EVERY_FACT) -> tuple[BinnedTable, list[Branch]]:
    rows = BinnedTable.cut(table, labels, BinOptions())
    p = labels.mean()
    gradient, hessian = labels - p, np.full(len(labels), p * (1 - p))
    every = np.arange(len(labels))
    return rows, branches(rows, gradient, hessian, every, options=options, generator=np.random.default_rng(0))


def conditions(table: FactTable, labels: Mask, options: TreeOptions = EVERY_FACT) -> list[Condition]:
    rows, found = grown(table, labels, options)
    return [rows.condition(dict(branch.bins)) for branch in found]


@pytest.mark.parametrize("seed", range(4))
def test_branches_are_short_and_sorted_by_gain(seed: int) -> None:
    table = traffic(seed)
    risky = np.random.default_rng(seed).random(30) < 0.5
    shops, _ = table.categories("shop_kind")
    hot = risky[shops] & (table.numbers("amount_paid") > 400)
    labels = np.random.default_rng(seed + 1).random(len(table)) < np.where(hot, 0.4, 0.05)
    rows, found = grown(table, labels, TreeOptions(facts_looked_at=1.0, leaves=30, depth=4))
    assert found
    assert [branch.worth for branch in found] == sorted((branch.worth for branch in found), reverse=True)
    for branch in found:
        condition = rows.condition(dict(branch.bins))
        assert 1 <= len(condition.tests) <= MAX_TESTS
        for test in condition.tests:
            assert not isinstance(test.value, tuple) or len(test.value) <= EVERY_FACT.most_listed, str(test)
        mask = condition.holds_in(table)
        g, p = float((labels - labels.mean())[mask].sum()), float(labels.mean())
        gained = g * g / (mask.sum() * p * (1 - p) + EVERY_FACT.penalty) / 2
        assert branch.worth == pytest.approx(gained - EVERY_FACT.price * rows.price(dict(branch.bins)))
        assert mask.sum() >= EVERY_FACT.least_support


def test_a_set_of_words_is_found() -> None:
    table = traffic(1)
    shops, _ = table.categories("shop_kind")
    risky = np.isin(shops, [3, 11, 20, 27])
    labels = np.random.default_rng(0).random(len(table)) < np.where(risky, 0.5, 0.02)
    wanted = Condition.of(Test("shop_kind", Op.IN, (SHOPS[3], SHOPS[11], SHOPS[20], SHOPS[27])))
    assert conditions(table, labels)[0] == wanted


def test_a_test_that_adds_nothing_is_left_out() -> None:
    # The amount decides alone; the first cut of the tree may fall elsewhere, but no branch keeps an idle test.
    table = traffic(2)
    labels = table.numbers("amount_paid") > 900
    for condition in conditions(table, labels):
        assert condition.facts == {"amount_paid"}


def test_rows_that_do_not_know_a_fact_are_a_branch_of_their_own() -> None:
    table = traffic(3)
    labels = np.random.default_rng(0).random(len(table)) < np.where(table.known("noise"), 0.02, 0.4)
    assert Condition.of(Test("noise", Op.MISSING)) in conditions(table, labels)


def test_what_a_text_does_not_mention_is_no_branch() -> None:
    count = 2000
    dice = np.random.default_rng(0)
    ages = dice.uniform(0, 500, count)
    ages[dice.random(count) < 0.3] = np.nan
    table = FactTable.of_columns(Columns({"account_age_days": ages}), count)
    labels = dice.random(count) < np.where(np.isnan(ages), 0.4, 0.02)
    assert all(test.op is not Op.MISSING for condition in conditions(table, labels) for test in condition.tests)


def test_no_branch_holds_on_fewer_cases_than_asked_for() -> None:
    table = traffic(4)
    labels = np.zeros(len(table), dtype=np.bool_)
    labels[np.argsort(table.numbers("amount_paid"))[-10:]] = True
    for condition in conditions(table, labels, TreeOptions(facts_looked_at=1.0, least_support=50)):
        assert condition.holds_in(table).sum() >= 50


def test_a_tree_looks_at_some_of_the_facts_only() -> None:
    generator = np.random.default_rng(0)
    table = FactTable(
        [{f"x{fact}": value for fact, value in enumerate(row)} for row in generator.random((500, 24)).tolist()]
    )
    grown = conditions(table, generator.random(500) < 0.2, TreeOptions(facts_looked_at=0.25, leaves=60, price=0.0))
    assert 1 < len({fact for condition in grown for fact in condition.facts}) <= 6


def test_what_is_left_for_the_largest_side_is_what_its_rows_add_up_to() -> None:
    table = traffic(0)
    hot = (table.numbers("amount_paid") > 500) & (table.numbers("risk_score") > 5) & (table.numbers("noise") > 0)
    p = np.random.default_rng(1).random(len(table))
    rows, facts, every = BinnedTable.cut(table, hot, BinOptions()), np.arange(4), np.arange(len(table))
    grower = _Grower(rows, cut(hot - hot.mean()), cut(p * (1 - p)), facts, EVERY_FACT)
    live = grower._split([_Node({}, every, facts, grower._sums(facts, every))])
    depths = []
    while live:
        node = live.pop()
        depths.append(len(node.bins))
        children = [{**node.bins, at: inside} for at, inside in node.sides]
        for child in (found := grower._children(node, children)):
            np.testing.assert_array_equal(child.sums, grower._sums(child.facts, child.rows))
        live += grower._split(found)
    assert max(depths) >= 2
