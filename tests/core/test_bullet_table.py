"""A table holds what was put into it, never changes, and shares its wording with the next one where it can."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, Claim, Evidence, Record, Source, Status
from acefraud.core.bullet_table import SOURCES, STATUSES, VERDICTS, BulletTable, RowSet, key_of
from acefraud.core.condition import Condition
from acefraud.core.events import BulletAdded, Event
from acefraud.core.playbook import Checkpoint, CheckpointHeader, PlaybookState
from acefraud.core.transaction import Verdict

HOLDS = Condition.parse("amount > 100")
AT = datetime(2024, 5, 1, tzinfo=UTC)
AWKWARD = ['"', "\\", '\\"', 'a"b', "a\\", "é", "日本", "\n", "\x00", "\u2028", "🙂", "", " ", "}", '{"id":"', "a,b"]
"""Ids that need care in JSON."""
IDS = [*(f"b{index}" for index in range(8)), *AWKWARD]


def tiny(place: int, **more: object) -> Bullet:
    return Bullet(id=f"b{place}", content="x").model_copy(update=more)


def state_of(bullets: list[Bullet]) -> PlaybookState:
    state = PlaybookState()
    for seq, bullet in enumerate(bullets, 1):
        state.apply(Event(seq=seq, at=AT, who="ann", payload=BulletAdded(bullet=bullet)))
    return state


def check(table: BulletTable, model: dict[str, Bullet]) -> None:
    """The table says what a plain dict says."""
    assert len(table) == len(model)
    assert {name for name in IDS if name in table} == model.keys() & set(IDS)
    assert list(table) == list(model)
    assert list(table.values()) == list(table.bullets) == list(model.values())
    assert table == model
    assert [table.row(name) for name in model] == list(range(len(model)))
    columns, bullets = table.columns, table.bullets
    assert len(columns) == len(table) == len(bullets)
    assert columns["key"].tolist() == [key_of(bullet.id) for bullet in bullets]
    assert columns["node"].tolist() == [table.node(bullet.node) for bullet in bullets]
    assert [SOURCES[number] for number in columns["source"]] == [bullet.source for bullet in bullets]
    assert [STATUSES[number] for number in columns["status"]] == [bullet.status for bullet in bullets]
    assert [VERDICTS[number] for number in columns["argues"]] == [bullet.argues for bullet in bullets]
    assert columns["conditioned"].tolist() == [bullet.condition is not None for bullet in bullets]
    assert columns["claimed"].tolist() == [bullet.claim is not None for bullet in bullets]
    assert columns["helpful"].tolist() == [bullet.helpful_count for bullet in bullets]
    assert columns["harmful"].tolist() == [bullet.harmful_count for bullet in bullets]
    assert columns["support"].tolist() == [bullet.record.support for bullet in bullets]
    assert columns["frauds"].tolist() == [bullet.record.frauds for bullet in bullets]
    weights = [None if np.isnan(weight) else weight for weight in columns["weight"].tolist()]
    assert weights == [bullet.weight for bullet in bullets]
    for row, bullet in zip(columns, bullets, strict=True):
        if bullet.evidence is None:
            assert (row["shown_support"], row["shown_frauds"]) == (0, 0)
            assert np.isnan(row["shown_base"])
        else:
            shown = bullet.evidence.shown
            assert (row["shown_support"], row["shown_frauds"]) == (shown.support, shown.frauds)
            assert row["shown_base"] == bullet.evidence.base_rate


# --- against a plain dict ----------------------------------------------------------------------------------------

records = st.tuples(st.integers(0, 90), st.integers(0, 90)).map(lambda two: Record(support=max(two), frauds=min(two)))
bullets = st.builds(
    Bullet,
    id=st.sampled_from(IDS),
    content=st.sampled_from(["one", "two", 'a "third"\nline', "日本"]),
    node=st.sampled_from(["fraud_detection", "other", 'a "node"']),
    source=st.sampled_from(Source),
    status=st.sampled_from(Status),
    status_by=st.sampled_from(["", "ann"]),
    argues=st.none() | st.sampled_from(Verdict),
    condition=st.sampled_from([None, HOLDS, Condition.parse('channel is "x" and vpn is true')]),
    evidence=st.none() | st.builds(Evidence, learnt=records, base_rate=st.floats(0, 1), later=st.none() | records),
    claim=st.none() | st.builds(Claim, fraud_share=st.floats(0, 1), words=st.just('"9 in 10"')),
    weight=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    contradicts=st.sampled_from([(), ("b1", '"')]),
    added_at=st.none() | st.just(AT),
    helpful_count=st.integers(0, 9),
    harmful_count=st.integers(0, 9),
    times_selected=st.integers(0, 9),
    record=records,
)


@given(st.lists(st.lists(bullets, max_size=6), max_size=6))
def test_every_revision_says_what_a_dict_said_then(steps: list[list[Bullet]]) -> None:
    table, model = BulletTable.of([]), dict[str, Bullet]()
    taken = [(table, dict(model))]
    for step in steps:
        table = table.updated(step)
        model |= {bullet.id: bullet for bullet in step}
        taken.append((table, dict(model)))
    for earlier, then in taken:
        check(earlier, then)


def test_a_table_is_a_mapping_like_any_other() -> None:
    one, two = tiny(1), tiny(2)
    table = BulletTable.of([two, one])
    assert list(table) == list(table.keys()) == ["b2", "b1"]
    assert dict(table) == table == {"b1": one, "b2": two}
    assert table != {"b1": one}
    assert table != {"b1": one, "b2": one}
    assert table == BulletTable.of([one, two])  # a mapping does not ask for the order
    others: list[object] = ["b3", 7, None]
    assert "b1" in table
    assert not any(other in table for other in others)
    assert (table.get("b1"), table.get("b3"), table.get("b3", one)) == (one, None, one)
    assert (one in table.values(), tiny(3) in table.values(), ("b1", one) in table.items()) == (True, False, True)
    assert (len(table.values()), bool(table), bool(BulletTable.of([]))) == (2, True, False)
    with pytest.raises(KeyError, match="b3"):
        table["b3"]


def test_an_empty_table() -> None:
    table = BulletTable.of([])
    assert (len(table), list(table), table.bullets, table.node("fraud_detection")) == (0, [], (), None)
    assert table == {}
    assert table.in_use(None).bits == 0


def test_of_two_bullets_with_one_id_the_later_stands_in_the_row_of_the_first() -> None:
    table = BulletTable.of([tiny(1), tiny(2), tiny(1, content="y")])
    assert [(each.id, each.content) for each in table.values()] == [("b1", "y"), ("b2", "x")]


def test_two_tables_made_from_one_do_not_see_each_other() -> None:
    base = BulletTable.of(tiny(index) for index in range(3))
    one, two = (base.updated([tiny(0, content=name), Bullet(id=name, content="x")]) for name in ("one", "two"))
    assert (one["b0"].content, two["b0"].content, base["b0"].content) == ("one", "two", "x")
    assert ("two" in one, "one" in two, len(base)) == (False, False, 3)
    assert one.columns["helpful"] is not base.columns["helpful"]


def test_a_node_keeps_its_number_and_an_unknown_one_has_none() -> None:
    first = BulletTable.of([tiny(1, node="one")])
    second = first.updated([tiny(2, node="two")])
    assert [second.node(name) for name in ("one", "two", "three")] == [0, 1, None]
    assert (first.node("one"), first.node("two"), first.in_use(first.node("two")).bits) == (0, None, 0)


@given(st.lists(bullets, max_size=12), st.sampled_from([None, *Source]))
def test_rows_in_use_are_those_of_a_node_and_source_that_are_not_retired(
    some: list[Bullet], source: Source | None
) -> None:
    table = BulletTable.of(some)
    for node in ("fraud_detection", "other", "nowhere"):
        found = table.in_use(table.node(node), source)
        expected = [
            each.node == node and each.status is not Status.RETIRED and source in (None, each.source)
            for each in table.bullets
        ]
        assert found.mask.tolist() == expected
        assert found.bits.bit_count() == sum(expected)
        assert found.bits == sum(1 << index for index, kept in enumerate(expected) if kept)
    assert table.not_retired().mask.tolist() == [each.status is not Status.RETIRED for each in table.bullets]


@given(st.lists(st.booleans(), min_size=1, max_size=100))
def test_a_mask_and_its_bits_say_the_same(mask: list[bool]) -> None:
    rows = RowSet(np.array(mask))
    assert rows.bits == sum(1 << index for index, each in enumerate(mask) if each)
    assert rows.bits.bit_count() == sum(mask)


def test_the_key_of_a_bullet_depends_on_its_id_alone() -> None:
    first, second = BulletTable.of([tiny(1), tiny(2)]), BulletTable.of([tiny(2, content="y", node="other")])
    assert first.columns["key"][1] == second.columns["key"][0] == key_of("b2")
    assert len({key_of(name) for name in [*AWKWARD, *(f"b{index}" for index in range(2_000))]}) == 2_000 + len(AWKWARD)


# --- wording -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"helpful_count": 4, "times_selected": 4, "record": Record(support=4, frauds=1)},
        {"status": Status.RETIRED, "status_by": "ann"},
        {"weight": 1.5, "argues": Verdict.DECLINE},
    ],
)
def test_counters_status_and_weights_leave_the_wording_alone(more: dict[str, object]) -> None:
    before = BulletTable.of(tiny(index, condition=HOLDS) for index in range(3))
    after = before.updated([tiny(1, condition=HOLDS, **more)])
    assert after.wording is before.wording
    assert after.wording.conditions is before.wording.conditions


@pytest.mark.parametrize("more", [{"content": "Y"}, {"condition": None}, {"condition": Condition.parse("vpn is true")}])
def test_other_words_or_conditions_make_another_wording(more: dict[str, object]) -> None:
    before = BulletTable.of(tiny(index, condition=HOLDS) for index in range(3))
    after = before.updated([tiny(1, **{"condition": HOLDS, **more})])
    assert after.wording is not before.wording
    assert before.wording.facts == [{"amount"}] * 3
    assert after.wording.facts[1] == (after["b1"].condition.facts if after["b1"].condition else set())
    assert after.wording.lower_case == [each.content.lower() for each in after.bullets]
    for facts in ({"amount": 200.0}, {"amount": 50.0}, {"vpn": True}):
        proven = after.wording.conditions.match(facts)[1]
        assert [bool(proven >> row & 1) for row in range(3)] == [
            each.condition is not None and each.condition.holds(facts) for each in after.bullets
        ]


# --- checkpoints -------------------------------------------------------------------------------------------------


@given(st.lists(bullets, max_size=8))
def test_a_checkpoint_brings_back_every_bullet(some: list[Bullet]) -> None:
    state = state_of(some)
    assert PlaybookState(state.checkpoint()).snapshot() == state.snapshot()
    assert PlaybookState(state.checkpoint()).checkpoint() == state.checkpoint()


def bad_json(page: bytes) -> bytes:
    return b"{" + page


def no_bullet(page: bytes) -> bytes:
    return b"\n" + page


def another_field(page: bytes) -> bytes:
    return page.replace(b'"content"', b'"colour":"red","content"', 1)


def bullet_missing(page: bytes) -> bytes:
    return page.partition(b"\n")[0]


def bullet_twice(page: bytes) -> bytes:
    first = page.partition(b"\n")[0]
    return first + b"\n" + first


@pytest.mark.parametrize("damage", [bad_json, no_bullet, another_field, bullet_missing, bullet_twice])
def test_a_damaged_checkpoint_is_not_taken_and_the_events_are_applied_again(
    damage: Callable[[bytes], bytes],
) -> None:
    whole = state_of([tiny(1), tiny(2)])
    checkpoint = whole.checkpoint()
    assert PlaybookState(checkpoint).snapshot() == whole.snapshot()
    state = PlaybookState(Checkpoint(checkpoint.header, damage(checkpoint.bullets)))
    assert (state.seq, state.revision, len(state)) == (0, 0, 0)
    for seq, bullet in enumerate(whole.table.bullets, 1):
        state.apply(Event(seq=seq, at=AT, who="ann", payload=BulletAdded(bullet=bullet)))
    assert state.snapshot() == whole.snapshot()
    assert state.checkpoint() == checkpoint


def test_a_checkpoint_of_another_fold_is_not_taken() -> None:
    kept = state_of([tiny(1), tiny(2)]).checkpoint()
    assert PlaybookState(kept).seq == 2
    for fold in (1, kept.header.fold + 1):
        state = PlaybookState(Checkpoint(kept.header.model_copy(update={"fold": fold}), kept.bullets))
        assert (state.seq, len(state)) == (0, 0)


def test_checkpoints_are_equal_where_they_say_the_same() -> None:
    first, second = (
        Checkpoint(CheckpointHeader(seq=2), state_of([tiny(1), tiny(2)]).checkpoint().bullets) for _ in range(2)
    )
    assert first == second
    assert first != Checkpoint(CheckpointHeader(seq=3), first.bullets)
    assert first != Checkpoint(first.header, state_of([tiny(1)]).checkpoint().bullets)
