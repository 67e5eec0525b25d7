"""Bins: what is counted in them is what the condition made from them says."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.condition import Op, Test
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.rules.induction.bins import (
    UNKNOWN,
    BinKind,
    BinnedFact,
    BinnedTable,
    BinOptions,
    cut_facts,
    rounded_cuts,
    roundest,
)

Rows = list[dict[str, FactValue]]
WORDS = ["toys", "food", "fuel", "arts", "a rare one", "another"]


def table_of(seed: int, count: int = 300) -> FactTable:
    """Ties, holes, few whole numbers, flags, and words of which some are rare."""
    dice = np.random.default_rng(seed)
    rows: Rows = []
    for _ in range(count):
        row: dict[str, FactValue] = {
            "amount_paid": float(dice.choice([1.0, 2.5, 2.5, 9.99, 1e6])) if dice.random() < 0.5 else dice.lognormal(3),
            "balance_left": float(np.round(dice.normal(0, 50), 1)),
            "tries_made": float(dice.integers(0, 5)),
            "chip_read": bool(dice.random() < 0.4),
            "shop_kind": WORDS[int(min(5, dice.exponential(1.2)))],
        }
        rows.append({name: value for name, value in row.items() if dice.random() > 0.15})
    return FactTable(rows)


@cache
def binned(seed: int) -> tuple[FactTable, BinnedTable]:
    table = table_of(seed)
    labels = np.random.default_rng(seed + 1).random(len(table)) < 0.2
    return table, BinnedTable.cut(table, labels, BinOptions())


def some_bins(fact: BinnedFact, dice: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Bins as a tree cuts them: a run of neighbours, a set of words, a flag, or the unknown ones."""
    inside = np.zeros(fact.bins, dtype=np.bool_)
    if dice.random() < 0.2:
        inside[UNKNOWN] = True
    elif fact.kind is BinKind.FLAG:
        inside[dice.integers(1, 3)] = True
    elif fact.kind is BinKind.WORD:
        inside[1:] = dice.random(fact.bins - 1) < 0.5
        inside[1:3] = [True, False]  # neither all of them nor none
    else:
        first, last = np.sort(dice.choice(np.arange(1, fact.bins), 2, replace=False))
        inside[first:] = True
        inside[last if first == 1 or dice.random() < 0.5 else fact.bins :] = False
    return inside


@given(st.integers(0, 7), st.integers(0, 10_000))
def test_a_condition_made_from_bins_holds_exactly_where_they_say(seed: int, draw: int) -> None:
    table, rows = binned(seed)
    dice = np.random.default_rng(draw)
    places = dice.choice(len(rows.facts), 2, replace=False)
    bins = {int(at): some_bins(rows.facts[at], dice).tobytes() for at in places}
    condition = rows.condition(bins)
    assert (rows.holds(bins) == condition.holds_in(table)).all()
    assert [condition.holds(table.row(index)) for index in range(20)] == rows.holds(bins)[:20].tolist()
    unseen = FactTable([*(table.row(index) for index in range(50)), {"shop_kind": "never seen", "tries_made": 9.0}])
    coded = BinnedTable(rows.facts, np.stack([fact.encode(unseen) for fact in rows.facts]))
    assert (coded.holds(bins) == condition.holds_in(unseen)).all()


def test_every_row_has_one_bin_of_each_fact_and_the_unknown_one_is_for_what_is_not_known() -> None:
    table, rows = binned(0)
    assert [fact.name for fact in rows.facts] == table.names
    for index, fact in enumerate(rows.facts):
        assert (rows.codes[index] < fact.bins).all()
        assert ((rows.codes[index] == UNKNOWN) == ~table.known(fact.name)).all()


def test_rare_words_and_words_never_seen_share_a_bin() -> None:
    table = FactTable([{"shop_kind": "toys"}] * 20 + [{"shop_kind": "food"}] * 20 + [{"shop_kind": "once"}])
    (fact,) = cut_facts(table, np.zeros(41, dtype=np.bool_), BinOptions())
    assert set(fact.words) == {"toys", "food"}
    codes = fact.encode(FactTable([{"shop_kind": "once"}, {"shop_kind": "new"}, {}, {"shop_kind": "toys"}]))
    assert codes[0] == codes[1] == fact.bins - 1
    assert (codes[2], codes[3]) == (UNKNOWN, fact.words.index("toys") + 1)


def test_no_more_words_than_asked_for_and_the_most_common_ones() -> None:
    rows: Rows = [{"shop_kind": f"shop {i}"} for i in range(30) for _ in range(10 + i)]
    (fact,) = cut_facts(FactTable(rows), np.zeros(len(rows), dtype=np.bool_), BinOptions(most_words=5))
    assert set(fact.words) == {f"shop {i}" for i in range(25, 30)}


def test_few_whole_numbers_are_cut_at_each_of_them() -> None:
    table = FactTable([{"tries_made": float(i % 4)} for i in range(40)])
    (fact,) = cut_facts(table, np.zeros(40, dtype=np.bool_), BinOptions())
    assert (fact.kind, fact.cuts.tolist()) == (BinKind.STEP, [1.0, 2.0, 3.0])
    inside = np.array([False, False, False, True, True])
    assert fact.tests(inside) == (Test("tries_made", Op.AT_LEAST, 2.0),)


@pytest.mark.parametrize("seed", range(3))
def test_rounding_moves_no_threshold_past_the_middle_between_it_and_its_neighbours(seed: int) -> None:
    # A rounded cut stays nearer to its own quantile than to the next: so there is one for each, in the same order,
    # and no row lands more than one quantile away from where it would have been.
    generator = np.random.default_rng(seed)
    values = generator.lognormal(3, 1.5, 4000)
    table = FactTable([{"amount_paid": float(value)} for value in values])
    options = BinOptions(fraud_cuts=0)
    (fact,) = cut_facts(table, np.zeros(4000, dtype=np.bool_), options)
    exact = np.quantile(values, np.arange(1, options.cuts + 1) / (options.cuts + 1))
    assert len(fact.cuts) == len(exact)
    assert (np.diff(fact.cuts) > 0).all()
    edges = np.concatenate([[values.min()], exact, [values.max()]])
    middles = (edges[:-1] + edges[1:]) / 2
    assert ((middles[:-1] <= fact.cuts) & (fact.cuts <= middles[1:])).all()
    moved = np.searchsorted(fact.cuts, values) - np.searchsorted(exact, values)
    assert np.abs(moved).max() <= 1


def test_rare_frauds_get_cuts_of_their_own() -> None:
    generator = np.random.default_rng(0)
    values = [*generator.uniform(0, 1000, 2000), *generator.uniform(990.0, 991.0, 20)]
    table = FactTable([{"amount_paid": float(value)} for value in values])

    def within(labels: list[bool]) -> int:
        (fact,) = cut_facts(table, np.array(labels), BinOptions())
        return int(((fact.cuts >= 989.5) & (fact.cuts <= 991.5)).sum())

    assert within([False] * 2000 + [True] * 20) >= 3
    assert within([False] * 2020) == 0


def test_a_column_may_be_missing_and_what_a_text_is_read_for_may_not() -> None:
    rows: Rows = [{"vpn": i % 2 == 0, "chip_read": i % 2 == 0} if i < 20 else {} for i in range(40)]
    facts = cut_facts(FactTable(rows), np.zeros(40, dtype=np.bool_), BinOptions())
    assert {fact.name: fact.may_be_missing for fact in facts} == {"vpn": False, "chip_read": True}


def test_of_a_fact_of_two_kinds_it_is_not_asked_whether_it_is_missing() -> None:
    # Its bins know the flags only; to the condition "is missing" a row with a word would be known.
    rows: Rows = [{"chip_read": i % 2 == 0} if i < 20 else {"chip_read": "broken"} for i in range(40)]
    (fact,) = cut_facts(FactTable(rows), np.zeros(40, dtype=np.bool_), BinOptions())
    assert not fact.may_be_missing


def test_a_fact_that_tells_nothing_apart_has_no_bins() -> None:
    rows: Rows = [{"amount_paid": 5.0, "chip_read": True, "shop_kind": "toys"}] * 20
    assert cut_facts(FactTable(rows), np.zeros(20, dtype=np.bool_), BinOptions()) == ()


def test_a_number_of_one_value_has_no_bins_even_where_it_is_not_always_known() -> None:
    # There is nothing to cut between, and trees part known rows from unknown ones only beside a cut.
    rows: Rows = [{"amount_paid": 5.0}, {}] * 20
    assert cut_facts(FactTable(rows), np.zeros(40, dtype=np.bool_), BinOptions()) == ()


# --- figures that a person would say ------------------------------------------------------------------------------

magnitudes = st.floats(1e-5, 1e9)
intervals = st.tuples(magnitudes, st.floats(1e-4, 1.0), st.sampled_from([1, -1])).map(
    lambda drawn: (drawn[0], drawn[0] * (1 + drawn[1])) if drawn[2] > 0 else (-drawn[0] * (1 + drawn[1]), -drawn[0])
)


def digits_of(figure: float) -> int:
    """Significant digits in the shortest decimal that is this number."""
    return len(Decimal(repr(figure)).normalize().as_tuple().digits)


def fewest_digits(low: float, high: float) -> int:
    """Significant digits of the shortest decimal in the interval, found by trying 1, 2, 3, ..."""
    exponent = math.floor(math.log10(max(abs(low), abs(high))))
    for digits in range(1, 18):
        step = Decimal(10) ** (exponent - digits + 1)
        if (Decimal(low) / step).to_integral_value(rounding="ROUND_CEILING") * step <= Decimal(high):
            return digits
    return 18


def said(low: float, high: float) -> float:
    return float(roundest(np.array([low]), np.array([high]))[0])


@given(intervals)
def test_the_roundest_figure_lies_in_the_interval(interval: tuple[float, float]) -> None:
    low, high = interval
    assert low <= said(low, high) <= high


@given(intervals)
def test_the_roundest_figure_is_no_longer_than_halves_and_quarters_allow(interval: tuple[float, float]) -> None:
    # 2.5 and 0.25 are as easily said as 3 and 0.3, and cost one digit more than the shortest decimal.
    assert digits_of(said(*interval)) <= fewest_digits(*interval) + 1


@given(intervals, st.sampled_from([Decimal("1"), Decimal("0.5")]))
def test_a_power_of_ten_or_half_of_one_is_said_where_only_one_fits(
    interval: tuple[float, float], fraction: Decimal
) -> None:
    low, high = interval
    exponent = math.floor(math.log10(max(abs(low), abs(high))))
    wanted = fraction * Decimal(10) ** exponent * (1 if high > 0 else -1)
    if Decimal(low) <= wanted <= Decimal(high):
        assert digits_of(said(low, high)) <= 2


@pytest.mark.parametrize(
    ("low", "high", "figure"),
    [
        (1870.0, 2130.0, 2000.0),
        (0.231, 0.274, 0.25),
        (3.4, 4.4, 4.0),
        (-1.0, 2.0, 0.0),
        (0.0, 5.0, 0.0),
        (-530.0, -480.0, -500.0),
        (7.0, 7.0, 7.0),
        (0.123456, 0.123457, 0.123456),
        (29.5, 30.5, 30.0),
    ],
)
def test_the_roundest_figure_by_example(low: float, high: float, figure: float) -> None:
    assert said(low, high) == figure


def test_every_cut_separates_some_rows_from_others() -> None:
    generator = np.random.default_rng(1)
    values = generator.lognormal(3, 2, 500)
    table = FactTable([{"amount_paid": float(value)} for value in values])
    (fact,) = cut_facts(table, generator.random(500) < 0.1, BinOptions())
    assert len(fact.cuts) >= 20
    assert all(0 < int((values > cut).sum()) < 500 for cut in fact.cuts)


def test_a_cut_is_the_roundest_figure_nearer_to_it_than_to_its_neighbours() -> None:
    edges = [np.array([0.0, 19.7, 31.2, 103.0, 1000.0]), np.array([5.0, 5.0, 5.0]), np.array([1.0, 2.2, 3.0])]
    assert [cuts.tolist() for cuts in rounded_cuts(edges)] == [[25.0, 50.0, 500.0], [], [2.5]]
    assert rounded_cuts([]) == []


def many_shops(seed: int = 3, count: int = 3_000) -> tuple[FactTable, npt.NDArray[np.bool_]]:
    """A hundred shops, of which the first ten have most frauds; some are seen once, and some rows name none."""
    dice = np.random.default_rng(seed)
    places = np.minimum(dice.exponential(30, count).astype(int), 99)
    labels = dice.random(count) < np.where(places < 10, 0.4, 0.05)
    rows: Rows = [{"shop_name": f"shop {at}"} if dice.random() < 0.95 else {} for at in places]
    return FactTable(rows), labels


def test_a_category_with_many_values_is_cut_into_groups_with_a_similar_share_of_fraud() -> None:
    table, labels = many_shops()
    (fact,) = cut_facts(table, labels, BinOptions())
    assert fact.kind is BinKind.GROUP
    listed = [word for group in fact.groups for word in group]
    assert len(listed) == len(set(listed)) > 40
    place = {word: number for number, group in enumerate(fact.groups) for word in group}
    risky = [place[f"shop {i}"] for i in range(10)]
    assert min(risky) > fact.others - 1 >= np.median([place[word] for word in listed])
    codes = fact.encode(FactTable([{"shop_name": "never seen"}, {}]))
    assert codes.tolist() == [fact.others, UNKNOWN]


def test_conditions_on_groups_hold_where_their_bins_say_and_on_new_values_too() -> None:
    table, labels = many_shops()
    (fact,) = cut_facts(table, labels, BinOptions())
    unseen = FactTable([*(table.row(index) for index in range(200)), {"shop_name": "never seen"}, {}])
    for cut in range(2, fact.bins):
        inside = np.arange(fact.bins) >= cut
        for wanted in (inside, ~inside & (np.arange(fact.bins) != UNKNOWN)):
            (test,) = fact.tests(wanted)
            assert (test.in_table(unseen) == wanted[fact.encode(unseen)]).all()


def test_a_value_does_not_look_telling_because_of_its_own_label() -> None:
    dice = np.random.default_rng(5)
    labels = dice.random(2_000) < 0.2
    rows: Rows = [{"shop_name": f"shop {index // 8}"} for index in range(2_000)]
    binned_rows = BinnedTable.cut(FactTable(rows), labels, BinOptions())
    shares = [labels[binned_rows.codes[0] == code].mean() for code in np.unique(binned_rows.codes[0])]
    (fact,) = binned_rows.facts
    seen = fact.encode(FactTable(rows))
    leaking = [labels[seen == code].mean() for code in np.unique(seen)]
    assert max(shares) < 0.3 < max(leaking)  # 250 shops without any signal, eight cases each


def test_largest_members_of_a_group_come_first() -> None:
    table, labels = many_shops()
    (fact,) = cut_facts(table, labels, BinOptions())
    codes, words = table.categories("shop_name")
    counts = dict(zip(words, np.bincount(codes[codes >= 0], minlength=len(words)), strict=True))
    for group in fact.groups:
        assert [counts[word] for word in group] == sorted((counts[word] for word in group), reverse=True)
