"""The five stages one by one, each against a plain reading of what it promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.bullet_table import BulletTable
from acefraud.core.condition import Condition
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import FactValue, Transaction
from acefraud.roles.protocols import EmbedsInProcess, Vectors
from acefraud.selection import stages
from acefraud.selection.bullet_stats import BulletStats
from acefraud.selection.hybrid import HybridSelector
from acefraud.selection.stages import (
    Candidates,
    Directions,
    Likeness,
    Passed,
    Pick,
    Picks,
    Ranking,
    Request,
    Weights,
    add_picks,
    hybrid,
)
from acefraud.support.arrays import IntArray

NODE = "fraud_detection"
HOLDS = Condition.parse("amount > 100")


class ByText(EmbedsInProcess):
    """An embedder that was told the direction of each text."""

    name = "by-text"
    threshold = 0.5

    def __init__(self, directions: Mapping[str, tuple[float, ...]]) -> None:
        self._directions = directions

    def embed(self, texts: Sequence[str]) -> Vectors:
        return vectors(*(self._directions[text] for text in texts))


WANTED = 5


def bullet(name: str, **more: object) -> Bullet:
    return Bullet(id=name, content=f"bullet {name}").model_copy(update=more)


def vectors(*rows: tuple[float, ...]) -> Vectors:
    array = np.array(rows, dtype=np.float32)
    unit: Vectors = array / np.linalg.norm(array, axis=1, keepdims=True)
    return unit


def kept_of(
    bullets: Sequence[Bullet],
    facts: Mapping[str, FactValue] | None = None,
    *,
    threshold: float = 0.0,
    wanted: int = 100,
    node: str = NODE,
    source: Source | None = None,
) -> tuple[BulletTable, Passed]:
    """What stages 1 and 2 leave of a table, where fraud is as common as honesty."""
    table = BulletTable.of(bullets)
    request = Request(table, table.node(node), source, 0.5, wanted)
    return table, stages.quality(request, stages.contextual(request, facts or {}), threshold)


def names(table: BulletTable, rows: Sequence[int] | IntArray) -> list[str]:
    return [table.bullets[row].id for row in rows]


def left(table: BulletTable, good: Passed) -> tuple[list[str], list[str]]:
    """Those that are proven to apply, and those that may be relevant by resemblance."""
    return names(table, good.proven), names(table, good.prose)


def known(count: int) -> BulletStats:
    """Bullets of which nothing is known."""
    return BulletStats(np.zeros(count, np.uint64), np.zeros((count, 2)), np.zeros(count), np.zeros(count))


def picked(
    scores: Sequence[float], rows: Vectors, wanted: int, weight: float, before: Vectors | None = None
) -> list[Pick]:
    """Stages 4 and 5 where only relevance counts. The rows of the candidates come first, then those picked before."""
    earlier = np.zeros((0, rows.shape[1]), dtype=np.float32) if before is None else before
    matrix = np.concatenate([rows, earlier])
    picks = Picks.none(1, len(earlier) + wanted)
    picks.rows[0, : len(earlier)] = len(rows) + np.arange(len(earlier))
    ranking = Ranking(known(len(matrix)), lambda _: Likeness(Directions.of(matrix)), Weights(0.0, 1.0, 0.0), weight)
    add_picks(picks, [Candidates(np.arange(len(rows)), np.array(scores))], [None], ranking)
    return picks[0][len(earlier) :]


# --- stage 1 -----------------------------------------------------------------------------------------------------


def test_a_condition_that_is_false_is_out_one_left_open_stays_and_what_is_proven_is_told_apart() -> None:
    table, kept = kept_of(
        [
            bullet("false", condition=Condition.parse("amount > 5000")),
            bullet("open", condition=Condition.parse("amount > 100 and vpn is true")),
            bullet("true", condition=HOLDS),
            bullet("prose"),
        ],
        {"amount": 300.0},
    )
    assert left(table, kept) == (["true"], ["open", "prose"])
    assert (kept.in_context, kept.good) == (3, 3)


@given(
    st.lists(st.sampled_from(["", "amount > 100", "amount < 100", "vpn is true", "amount > 100 and vpn is true"])),
    st.sampled_from([50.0, 300.0, None]),
    st.sampled_from([True, False, None]),
)
def test_standing_is_what_each_condition_says_by_itself(
    conditions: list[str], amount: float | None, vpn: bool | None
) -> None:
    facts: dict[str, FactValue] = {
        name: value for name, value in (("amount", amount), ("vpn", vpn)) if value is not None
    }
    bullets = [
        bullet(f"b{n}", condition=Condition.parse(words) if words else None) for n, words in enumerate(conditions)
    ]
    table, kept = kept_of(bullets, facts)
    truths = {each.id: each.condition.truth(facts) if each.condition else None for each in bullets}
    assert left(table, kept) == (
        [name for name, truth in truths.items() if truth is True],
        [name for name, truth in truths.items() if truth is None],
    )


def test_only_this_node_and_source_and_never_a_retired_bullet() -> None:
    bullets = [
        bullet("here", source=Source.ONLINE),
        bullet("elsewhere", node="other", source=Source.ONLINE),
        bullet("retired", status=Status.RETIRED, source=Source.ONLINE),
        bullet("offline", source=Source.OFFLINE),
    ]
    for source, node, expected in [
        (None, NODE, ["here", "offline"]),
        (Source.ONLINE, NODE, ["here"]),
        (None, "other", ["elsewhere"]),
        (Source.OFFLINE, "other", []),
        (None, "nobody wrote for this one", []),
    ]:
        table, kept = kept_of(bullets, source=source, node=node)
        assert left(table, kept) == ([], expected)
        assert kept.in_context == len(expected)


def test_prose_is_looked_at_only_where_too_few_are_proven_to_apply() -> None:
    bullets = [bullet("prose"), bullet("one", condition=HOLDS), bullet("two", condition=HOLDS)]
    for wanted, expected in ((3, ["prose"]), (2, []), (1, [])):
        table, kept = kept_of(bullets, {"amount": 300.0}, wanted=wanted)
        assert left(table, kept) == (["one", "two"], expected)
        assert (kept.in_context, kept.good) == (3, 3)


def test_of_an_empty_book_nothing_is_left() -> None:
    table, kept = kept_of([])
    assert (left(table, kept), kept.in_context, kept.good) == (([], []), 0, 0)


# --- stage 2 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (1, ["good"]),
        (2, ["good", "nearly"]),  # 0.25 is at least 0.8 x 0.3, and only asked for when too few are left
        (9, ["good", "nearly"]),  # never the whole book again
    ],
)
@pytest.mark.parametrize("proven", [False, True])
def test_quality_is_relaxed_once_and_only_where_too_few_are_left(
    wanted: int, expected: list[str], proven: bool
) -> None:
    record = {"good": (3, 7), "nearly": (1, 3), "bad": (23, 77)}
    bullets = [
        bullet(name, helpful_count=helpful, harmful_count=harmful, condition=HOLDS if proven else None)
        for name, (helpful, harmful) in record.items()
    ]
    table, kept = kept_of(bullets, {"amount": 300.0}, threshold=0.3, wanted=wanted)
    assert left(table, kept) == ((expected, []) if proven else ([], expected))
    assert (kept.in_context, kept.good) == (3, len(expected))


def test_the_proven_and_those_in_prose_count_together_for_whether_too_few_are_left() -> None:
    bullets = [
        bullet("proven", condition=HOLDS),
        bullet("prose"),
        bullet("nearly", helpful_count=1, harmful_count=3),
        bullet("out", condition=Condition.parse("amount < 100")),
    ]
    for wanted, expected in ((2, ["prose"]), (3, ["prose", "nearly"])):
        assert left(*kept_of(bullets, {"amount": 300.0}, threshold=0.3, wanted=wanted)) == (["proven"], expected)


def test_quality_counts_a_bullet_without_a_record_as_one_half() -> None:
    assert left(*kept_of([bullet("fresh")], threshold=0.5, wanted=1)) == ([], ["fresh"])
    assert left(*kept_of([bullet("fresh")], threshold=0.7, wanted=1)) == ([], [])


def test_what_an_analyst_pinned_stays_whatever_its_record() -> None:
    pinned = bullet("pinned", status=Status.PINNED, harmful_count=50)
    assert left(*kept_of([pinned], threshold=0.3, wanted=1)) == ([], ["pinned"])


# --- stage 3 -----------------------------------------------------------------------------------------------------


def test_proof_is_relevance_by_contribution_and_prose_is_relevant_by_resemblance() -> None:
    weights = {"weak": 0.5, "strong": -2.0, "none": 0.0, "alike": 9.0, "unlike": 9.0}
    bullets = [
        bullet(name, weight=weight, condition=HOLDS if abs(weight) < 9 else None) for name, weight in weights.items()
    ]
    embedder = ByText(
        {"query": (1, 0), "bullet alike": (3, 4), "bullet unlike": (-1, 0)}
        | {f"bullet {name}": (0, 1) for name in ("weak", "strong", "none")}
    )
    selector = HybridSelector(embedding_model=embedder, explore=False)
    chosen = selector.select_many(
        [Transaction(id="t", text="query")], [{"amount": 300.0}], Snapshot(1, {each.id: each for each in bullets})
    )[0]
    found = {score.bullet_id: score.semantic for score in chosen.scores}
    # What merely resembles does not set the scale.
    assert found == pytest.approx({"weak": 0.625, "strong": 1.0, "none": 0.5, "alike": 0.6}, abs=1e-3)


def test_where_no_bullet_moves_the_decision_all_that_are_proven_are_equally_relevant() -> None:
    assert stages.semantic_by_proof(np.arange(2), np.zeros(2), 0.3).relevance.tolist() == [1.0, 1.0]
    assert stages.semantic_by_proof(np.arange(0), np.zeros(2), 0.3).relevance.tolist() == []


@given(st.lists(st.floats(0, 6), min_size=1, max_size=8), st.floats(0, 1))
def test_the_larger_the_contribution_the_more_relevant_and_never_below_the_threshold(
    weights: list[float], threshold: float
) -> None:
    strength = np.array(weights)
    relevance = stages.semantic_by_proof(np.arange(len(strength)), strength, threshold).relevance
    assert (np.diff(relevance[np.argsort(strength)]) >= 0).all()
    assert relevance.min() >= threshold - 1e-12
    assert relevance.max() == pytest.approx(1.0)


def test_prose_is_relevant_from_the_threshold_on() -> None:
    given, asked = vectors((5, 1), (1, 5), (-1, 0), (1, 0)), vectors((1, 0))
    matrix, query = Directions.of(given), Directions.of(asked).take(0)
    found = stages.semantic_by_cosine(np.array([0, 1, 2]), matrix, query, 0.5)
    assert found.rows.tolist() == [0]
    assert found.relevance.tolist() == pytest.approx([5 / 26**0.5], abs=1e-4)
    everything = stages.semantic_by_cosine(np.arange(4), matrix, query, -1.0)
    assert everything.rows.tolist() == [0, 1, 2, 3]
    assert everything.relevance.tolist() == pytest.approx((given @ asked[0]).tolist(), abs=1e-4)


@pytest.mark.parametrize("companions", [0, 1, 700])
def test_whether_prose_reaches_the_threshold_does_not_depend_on_what_is_looked_at_beside_it(companions: int) -> None:
    dice = np.random.default_rng(11)
    matrix = Directions.of(vectors(*(tuple(dice.normal(size=64)) for _ in range(60 + companions))))
    query = Directions.of(vectors(tuple(dice.normal(size=64)))).take(0)
    rows = np.arange(60 + companions)
    for row in range(60):
        at_the_border = float(matrix.take(row).cosines(query))
        above = float(np.nextafter(np.float32(at_the_border), np.float32(2)))
        assert row in stages.semantic_by_cosine(rows, matrix, query, at_the_border).rows
        assert row not in stages.semantic_by_cosine(rows, matrix, query, above).rows


# --- stage 4 -----------------------------------------------------------------------------------------------------


def test_the_hybrid_score_is_the_weighted_sum() -> None:
    score = hybrid(np.array([0.5]), np.array([0.25]), np.array([0.75]), Weights(0.2, 0.4, 0.6))
    assert score.tolist() == pytest.approx([0.2 * 0.5 + 0.4 * 0.25 + 0.6 * 0.75])


# --- stage 5 -----------------------------------------------------------------------------------------------------


def test_diversity_is_weighed_as_picks_are_made() -> None:
    # A and B say the same. Ranked by score alone the order is A, B, C; a bonus added to that order afterwards
    # leaves B second (0.99 + 0). Weighed place by place, C (0.90 + 0.15) takes the second place from B.
    picks = picked([1.00, 0.99, 0.90], vectors((1, 0), (1, 0), (0, 1)), 3, 0.15)
    assert [pick.row for pick in picks] == [0, 2, 1]
    assert [pick.diversity for pick in picks] == pytest.approx([0.0, 0.15, 0.075])
    assert [pick.combined for pick in picks] == [1.00, 0.90, 0.99]


def test_the_first_pick_has_no_bonus_and_without_weight_nobody_has() -> None:
    picks = picked([0.2, 0.9, 0.5], vectors((1, 0), (0, 1), (1, 1)), 2, 0.0)
    assert [(pick.row, pick.diversity) for pick in picks] == [(1, 0.0), (2, 0.0)]


def test_those_picked_before_count_as_picked() -> None:
    picks = picked([0.9, 0.8], vectors((1, 0), (0, 1)), 2, 0.5, vectors((1, 0)))
    assert [pick.row for pick in picks] == [1, 0]
    assert [pick.diversity for pick in picks] == pytest.approx([0.5, 0.25])


def test_the_first_of_equals_wins() -> None:
    picks = picked([0.5, 0.7, 0.7, 0.7], vectors(*[(1, 0)] * 4), 3, 0.15)
    assert [pick.row for pick in picks] == [1, 2, 3]


def test_nobody_is_picked_where_nobody_is_wanted_or_there_is_nobody() -> None:
    assert picked([0.5], vectors((1, 0)), 0, 0.15) == []
    assert picked([], np.zeros((0, 2), dtype=np.float32), 5, 0.15) == []


def test_what_merely_resembles_never_takes_the_place_of_what_is_proven() -> None:
    bad, good = {"harmful_count": 2, "helpful_count": 1}, {"helpful_count": 90}
    bullets = [bullet("p1", **good), bullet("c1", condition=HOLDS, **bad), bullet("p2", **good)]
    bullets.append(bullet("c2", condition=HOLDS, weight=9.0, **bad))
    embedder = ByText({"query": (1, 0)} | {each.content: (1, 0) for each in bullets})
    for explore in (False, True):
        selector = HybridSelector(embedding_model=embedder, explore=explore, weights={"semantic": 2.0})
        chosen = selector.select_many(
            [Transaction(id="t", text="query")],
            [{"amount": 300.0}],
            Snapshot(1, {each.id: each for each in bullets}),
            n_bullets=3,
        )[0]
        assert [each.id for each in chosen.bullets][:2] == ["c2", "c1"]
        assert chosen.bullets[2].id in {"p1", "p2"}


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=8),
    st.integers(0, 10),
    st.floats(0, 1),
    st.integers(0, 2**32 - 1),
)
def test_every_place_goes_to_the_best_sum_of_those_left_and_first_to_those_of_the_first_field(
    entrants: list[tuple[float, bool]], wanted: int, weight: float, seed: int
) -> None:
    scores = [score for score, _ in entrants]
    rows = np.random.default_rng(seed).normal(size=(len(scores), 3)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    places: list[int] = []
    bonuses: list[float] = []
    for first in (True, False):
        field = [index for index, (_, own) in enumerate(entrants) if own is first]
        some = [scores[at] for at in field]
        for pick in picked(some, rows[field], wanted - len(places), weight, rows[places]):
            places.append(field[pick.row])
            bonuses.append(pick.diversity)
    assert len(set(places)) == len(places) == min(wanted, len(scores))
    for turn, (place, bonus) in enumerate(zip(places, bonuses, strict=True)):
        before = places[:turn]

        def total(of: int, before: list[int] = before) -> float:
            likeness = [sum(float(a) * float(b) for a, b in zip(rows[of], rows[p], strict=True)) for p in before]
            return scores[of] + (weight * (1 - sum(likeness) / len(before)) if before else 0.0)

        rivals = [i for i in range(len(scores)) if i not in before and entrants[i][1] == entrants[place][1]]
        assert scores[place] + bonus == pytest.approx(total(place), abs=1e-3)
        assert all(total(place) >= total(i) - 1e-3 for i in rivals)


# --- many at once ------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=12), st.booleans())
def test_many_together_get_what_each_gets_alone(sizes: list[tuple[int, int]], explore: bool) -> None:
    dice = np.random.default_rng(len(sizes))
    matrix = dice.normal(size=(50, 8)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    stats = BulletStats(
        dice.integers(0, 2**63, 50).astype(np.uint64),
        dice.integers(0, 9, (50, 2)).astype(float),
        dice.random(50),
        dice.random(50),
    )
    candidates = [Candidates(np.sort(dice.permutation(45)[:size]), dice.random(size)) for size, _ in sizes]
    keys = [np.uint64(index) if explore else None for index in range(len(sizes))]
    ranking = Ranking(stats, lambda _: Likeness(Directions.of(matrix)), Weights(), 0.15)

    def picks_for(places: list[int]) -> list[list[Pick]]:
        """The picks of some of them together, each with as many picked before as its second number says."""
        picks = Picks.none(len(places), WANTED)
        for row, place in enumerate(places):
            picks.rows[row, : sizes[place][1]] = 45 + np.arange(sizes[place][1])
        add_picks(picks, [candidates[at] for at in places], [keys[at] for at in places], ranking)
        return [picks[row] for row in range(len(picks))]

    alone = [picks_for([index])[0] for index in range(len(sizes))]
    assert picks_for(list(range(len(sizes)))) == alone
    assert [len(picks) for picks in alone] == [before + min(size, WANTED - before) for size, before in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acefraud.selection.stages.TABLE_CELLS", 50)
        assert picks_for(list(range(len(sizes)))) == alone


def test_a_single_pick_needs_no_vectors() -> None:
    def refuse(_: IntArray) -> Likeness:
        raise AssertionError("nothing to differ from")

    picks = Picks.none(1, 1)
    add_picks(
        picks, [Candidates(np.arange(3), np.array([0.1, 0.9, 0.5]))], [None], Ranking(known(3), refuse, Weights(), 0.15)
    )
    assert [(pick.row, pick.diversity) for pick in picks[0]] == [(1, 0.0)]
