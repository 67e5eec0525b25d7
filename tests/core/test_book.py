"""A book holds what was put into it, at every revision, and shares with the one before what did not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core import book as book_module
from acefraud.core.book import Book, Draft
from acefraud.core.bullet import Bullet, Claim, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.events import BulletAdded, Event
from acefraud.core.evidence import Evidence, Record
from acefraud.core.page import (
    PAGE,
    REMEMBERED_CHANGES,
    SOURCES,
    STATUSES,
    VERDICTS,
    KeptPage,
    Page,
    Rows,
    Wording,
    key_of,
    mask_of,
)
from acefraud.core.playbook import Checkpoint, Frame, PlaybookState
from acefraud.core.transaction import Verdict

HOLDS = Condition.parse("amount > 100")
AT = datetime(2024, 5, 1, tzinfo=UTC)
AWKWARD = ['"', "\\", '\\"', 'a"b', "a\\", "é", "日本", "\n", "\x00", "\u2028", "🙂", "", " ", "}", '{"id":"', "a,b"]
"""Ids that need care in JSON."""
IDS = [*(f"b{place}" for place in range(8)), *AWKWARD]


def tiny(place: int, **more: object) -> Bullet:
    return Bullet(id=f"b{place}", content="x").model_copy(update=more)


def of_tiny(count: int) -> Draft:
    draft = Draft()
    for place in range(count):
        draft.put(tiny(place))
    return draft


def check(found: Book | Draft, model: dict[str, Bullet]) -> None:
    """The book says what a plain dict says."""
    assert len(found) == len(model)
    assert {name for name in IDS if name in found} == model.keys() & set(IDS)
    if isinstance(found, Draft):
        assert list(found) == list(model.values())
        assert all(found.get(name) == bullet for name, bullet in model.items())
        return
    assert list(found) == list(model)
    assert list(found.values()) == list(model.values())
    assert list(found.items()) == list(model.items())
    assert found == model
    for place, (name, bullet) in enumerate(model.items()):
        assert (found.row(name), found[name], found.at(place)) == (place, bullet, bullet)
    for number, page in enumerate(found.pages):
        own = list(model.values())[number * PAGE : (number + 1) * PAGE]
        assert list(page.bullets()) == own
        assert list(page.ids) == [bullet.id for bullet in own]
        check_columns(found, page, own)


def check_columns(book: Book, page: Page, bullets: Sequence[Bullet]) -> None:
    table = page.table
    assert len(table) == len(page) == len(bullets)
    assert table["key"].tolist() == [key_of(bullet.id) for bullet in bullets]
    assert table["node"].tolist() == [book.node(bullet.node) for bullet in bullets]
    assert [SOURCES[number] for number in table["source"]] == [bullet.source for bullet in bullets]
    assert [STATUSES[number] for number in table["status"]] == [bullet.status for bullet in bullets]
    assert [VERDICTS[number] for number in table["argues"]] == [bullet.argues for bullet in bullets]
    assert table["conditioned"].tolist() == [bullet.condition is not None for bullet in bullets]
    assert table["claimed"].tolist() == [bullet.claim is not None for bullet in bullets]
    assert table["helpful"].tolist() == [bullet.helpful_count for bullet in bullets]
    assert table["harmful"].tolist() == [bullet.harmful_count for bullet in bullets]
    assert table["support"].tolist() == [bullet.record.support for bullet in bullets]
    assert table["frauds"].tolist() == [bullet.record.frauds for bullet in bullets]
    weights = [None if np.isnan(weight) else weight for weight in table["weight"].tolist()]
    assert weights == [bullet.weight for bullet in bullets]
    for row, bullet in zip(table, bullets, strict=True):
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
moves = st.lists(st.tuples(st.sampled_from(["put"] * 6 + ["take", "branch", "back", "keep"]), bullets), max_size=30)


@pytest.mark.parametrize("live", [0, 1, 32])
@settings(max_examples=60, deadline=None)
@given(given_moves=moves)
def test_a_draft_and_all_books_taken_from_it_say_what_a_dict_says(
    live: int, given_moves: list[tuple[str, Bullet]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book_module, "LIVE_PAGES", live)
        written: list[tuple[Draft, dict[str, Bullet]]] = [(Draft(), {})]
        taken: list[tuple[Book, dict[str, Bullet]]] = []
        for move, bullet in given_moves:
            draft, model = written[-1]
            match move:
                case "put":
                    assert (bullet.id in draft) == (bullet.id in model)
                    draft.put(bullet)
                    model[bullet.id] = bullet
                case "take":
                    taken.append((draft.book(), dict(model)))
                case "branch":
                    written.append((draft.branched(), dict(model)))
                case "back" if len(written) > 1:
                    taken.append((draft.book(), dict(model)))
                    written.pop()
                case "keep":
                    kept = [page.kept() for page in draft.book().pages]
                    written[-1] = (Draft.of_kept(kept, draft.nodes), model)
        for draft, model in written:
            check(draft, model)
            check(draft.book(), model)
        for book, model in taken:
            check(book, model)


@pytest.mark.parametrize("live", [0, 1, 32])
def test_books_of_several_pages_say_what_a_dict_says_at_every_revision(
    live: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book_module, "LIVE_PAGES", live)
    draft, model = Draft(), dict[str, Bullet]()
    taken: list[tuple[Book, dict[str, Bullet]]] = []

    def put(bullet: Bullet) -> None:
        draft.put(bullet)
        model[bullet.id] = bullet

    for count in (1_023, 1_024, 1_025, 2_047, 2_049):
        for place in range(len(model), count):
            put(tiny(place, node="other" if place % 3 else "fraud_detection", helpful_count=place % 7))
        taken.append((draft.book(), dict(model)))
        for place in (0, count // 2, count - 1):
            put(tiny(place, content=f"said at {count}", harmful_count=count, weight=count / 7))
        taken.append((draft.book(), dict(model)))
    for book, then in taken:
        check(book, then)
    check(Draft.of_kept([page.kept() for page in draft.book().pages], draft.nodes).book(), model)


def test_branches_that_cross_the_border_of_a_page_do_not_see_each_other() -> None:
    draft = of_tiny(PAGE - 1)
    before = draft.book()
    branches = [draft.branched() for _ in range(2)]
    for number, branch in enumerate(branches):
        for place in range(3):
            branch.put(Bullet(id=f"own {place}", content=f"of {number}"))
        branch.put(tiny(0, content=f"of {number}"))
        branch.put(Bullet(id=f"only {number}", content="x"))
    draft.put(Bullet(id="own 2", content="of the draft"))
    draft.put(Bullet(id="of the draft", content="x"))
    for number, branch in enumerate(branches):
        book = branch.book()
        assert len(book) == len(branch) == PAGE + 3
        assert [book[f"own {place}"].content for place in range(3)] == [f"of {number}"] * 3
        assert (book["b0"].content, book.row("own 2"), book.row(f"only {number}")) == (
            f"of {number}",
            PAGE + 1,
            PAGE + 2,
        )
        assert f"only {1 - number}" not in book
        assert f"only {1 - number}" not in branch
        assert "of the draft" not in book
        assert "of the draft" not in branch
    assert (len(draft), draft.book().row("own 2"), draft.book()["b0"].content) == (PAGE + 1, PAGE - 1, "x")
    assert (len(before), "own 2" in before, "own 0" in draft) == (PAGE - 1, False, False)


# --- a mapping ---------------------------------------------------------------------------------------------------


def test_a_book_is_a_mapping_like_any_other() -> None:
    one, two = tiny(1), tiny(2)
    book = Book.of([two, one])
    assert list(book) == list(book.keys()) == ["b2", "b1"]
    assert dict(book) == book == {"b1": one, "b2": two}
    assert book != {"b1": one}
    assert book != {"b1": one, "b2": one}
    assert book == Book.of([one, two])  # a mapping does not ask for the order
    others: list[object] = ["b3", 7, None]
    assert "b1" in book
    assert not any(other in book for other in others)
    assert (book.get("b1"), book.get("b3"), book.get("b3", one)) == (one, None, one)
    assert (one in book.values(), tiny(3) in book.values(), ("b1", one) in book.items()) == (True, False, True)
    assert (len(book.values()), len(book.items()), bool(book), bool(Book.of([]))) == (2, 2, True, False)
    with pytest.raises(KeyError, match="b3"):
        book["b3"]


def test_an_empty_book_has_no_pages() -> None:
    book = Book.of([])
    assert (len(book), list(book), list(book.values()), book.pages, book.node("fraud_detection")) == (
        0,
        [],
        [],
        (),
        None,
    )
    assert book == {}


def test_of_two_bullets_of_one_id_the_later_stands_in_the_row_of_the_first() -> None:
    book = Book.of([tiny(1), tiny(2), tiny(1, content="y")])
    assert [(each.id, each.content) for each in book.values()] == [("b1", "y"), ("b2", "x")]


def test_rows_never_move() -> None:
    draft = of_tiny(PAGE + 5)
    rows = {name: draft.book().row(name) for name in draft.book()}
    draft.put(tiny(3, status=Status.RETIRED))
    draft.put(tiny(PAGE + 2, content="y"))
    draft.put(tiny(9_999))
    later = draft.branched()
    later.put(tiny(10_000))
    for book in (draft.book(), later.book()):
        assert {name: book.row(name) for name in rows} == rows


def test_a_node_keeps_its_number_and_none_has_one_that_nobody_wrote_for() -> None:
    draft = Draft()
    draft.put(tiny(1, node="one"))
    first = draft.book()
    draft.put(tiny(2, node="two"))
    branch = draft.branched()
    branch.put(tiny(3, node="three"))
    assert (draft.nodes, branch.nodes) == (("one", "two"), ("one", "two", "three"))
    assert [branch.book().node(name) for name in ("one", "two", "three", "four")] == [0, 1, 2, None]
    assert draft.book().node("three") is None
    assert first.node("one") == 0
    assert [page.in_use(first.node("two")).count for page in first.pages] == [0]


@settings(max_examples=50, deadline=None)
@given(st.lists(bullets, max_size=12), st.sampled_from([None, *Source]))
def test_rows_in_use_are_those_of_a_node_and_source_that_are_not_retired(
    some: list[Bullet], source: Source | None
) -> None:
    book = Book.of(some)
    for page in book.pages:
        for node in ("fraud_detection", "other", "nowhere"):
            found = page.in_use(book.node(node), source)
            expected = [
                each.node == node and each.status is not Status.RETIRED and source in (None, each.source)
                for each in page.bullets()
            ]
            assert found.mask.tolist() == expected
            assert found.count == sum(expected)
            assert found.bits == sum(1 << place for place, kept in enumerate(expected) if kept)
        assert page.not_retired().mask.tolist() == [each.status is not Status.RETIRED for each in page.bullets()]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=PAGE))
def test_a_mask_and_its_bits_say_the_same(mask: list[bool]) -> None:
    rows = Rows(np.array(mask))
    assert mask_of(rows.bits, len(mask)).tolist() == mask
    assert rows.count == rows.bits.bit_count() == sum(mask)


def test_the_key_of_a_bullet_depends_on_its_id_alone() -> None:
    first, second = Book.of([tiny(1), tiny(2)]), Book.of([tiny(2, content="y", node="other")])
    assert first.pages[0].table["key"][1] == second.pages[0].table["key"][0] == key_of("b2")
    assert len({key_of(name) for name in [*AWKWARD, *(f"b{place}" for place in range(2_000))]}) == 2_000 + len(AWKWARD)


# --- what revisions share ----------------------------------------------------------------------------------------


def test_a_revision_shares_the_pages_that_stay_as_they_are() -> None:
    draft = of_tiny(2 * PAGE + 1)
    before = draft.book()
    assert draft.book().pages == before.pages
    draft.put(tiny(PAGE, helpful_count=1))
    after = draft.book()
    assert [one is other for one, other in zip(before.pages, after.pages, strict=True)] == [True, False, True]
    branch = draft.branched()
    branch.put(tiny(0, content="y"))
    assert [one is other for one, other in zip(after.pages, branch.book().pages, strict=True)] == [False, True, True]
    assert [one is other for one, other in zip(after.pages, draft.book().pages, strict=True)] == [True, True, True]


def changed(**more: object) -> tuple[Page, Page]:
    """A page whose rules somebody has asked for, and the page after one of its bullets was written over."""
    draft = Draft()
    for place in range(3):
        draft.put(tiny(place, condition=HOLDS))
    before = draft.book().pages[0]
    assert len(before.rules) == 3
    draft.put(tiny(1, **{"condition": HOLDS, **more}))
    return before, draft.book().pages[0]


@pytest.mark.parametrize(
    "more",
    [
        {"helpful_count": 4, "times_selected": 4, "record": Record(support=4, frauds=1)},
        {"status": Status.RETIRED, "status_by": "ann"},
        {"weight": 1.5, "argues": Verdict.DECLINE},
    ],
)
def test_pages_that_differ_in_counters_only_share_words_and_rules(more: dict[str, object]) -> None:
    before, after = changed(**more)
    assert after is not before
    assert after.wording is before.wording
    assert after.rules is before.rules


def test_other_words_are_another_wording_and_the_same_rules() -> None:
    before, after = changed(content="y")
    assert after.wording is not before.wording
    assert list(after.wording.origins()) == [(before.wording, frozenset({1}))]
    assert after.rules is before.rules


def test_another_condition_has_other_rules() -> None:
    before, after = changed(condition=Condition.parse("amount < 100"))
    assert before.rules.standing({"amount": 300.0}) == (0b111, 0b111)
    assert after.rules.standing({"amount": 300.0}) == (0b101, 0b101)
    assert before.rules.standing({"amount": 300.0}) == (0b111, 0b111)
    _, without = changed(condition=None)
    assert without.rules.standing({"amount": 300.0}) == (0b111, 0b101)


def test_rules_are_gone_on_with_where_bullets_are_added() -> None:
    draft = Draft()
    draft.put(tiny(0, condition=HOLDS))
    first = draft.book().pages[0]
    assert first.compiled is None
    assert first.rules.standing({"amount": 50.0}) == (0, 0)
    draft.put(tiny(1))
    draft.put(tiny(2, condition=Condition.parse("amount < 100")))
    second = draft.book().pages[0]
    assert second.compiled is not None
    assert second.rules.standing({"amount": 50.0}) == (0b110, 0b100)
    assert second.rules.standing({}) == (0b111, 0)
    assert len(first.rules) == 1


conditions = st.sampled_from(["", "amount > 100", "amount < 100", "vpn is true", 'channel is "x" and amount > 100'])


@pytest.mark.parametrize("live", [0, 32])
@settings(max_examples=40, deadline=None)
@given(
    written=st.lists(st.tuples(st.integers(0, 7), conditions, st.booleans(), st.booleans()), max_size=25),
    facts=st.fixed_dictionaries(
        {}, optional={"amount": st.sampled_from([50.0, 300.0]), "vpn": st.booleans(), "channel": st.sampled_from("xy")}
    ),
)
def test_the_rules_of_a_page_are_those_of_its_bullets_whatever_was_written_before(
    live: int, written: list[tuple[int, str, bool, bool]], facts: dict[str, float | bool | str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book_module, "LIVE_PAGES", live)
        draft, taken = Draft(), list[Book]()
        for place, words, take, ask in written:
            draft.put(tiny(place, condition=Condition.parse(words) if words else None))
            if take:
                taken.append(draft.book())
                if ask:
                    taken[-1].pages[0].rules.standing(facts)
        for book in [*taken, draft.book()]:
            for page in book.pages:
                truths = [each.condition.truth(facts) if each.condition else None for each in page.bullets()]
                possible, proven = page.rules.standing(facts)
                assert mask_of(possible, len(page)).tolist() == [truth is not False for truth in truths]
                assert mask_of(proven, len(page)).tolist() == [truth is True for truth in truths]


def test_a_wording_tells_what_is_said_anew_since_each_one_before_it() -> None:
    draft, wordings = Draft(), list[Wording]()
    for place, words in ((0, "x"), (1, "x"), (0, "y"), (2, "x")):
        draft.put(tiny(place, content=words))
        wordings.append(draft.book().pages[0].wording)
    first, second, third, last = wordings
    assert [(one, set(anew)) for one, anew in last.origins()] == [(third, {2}), (second, {0, 2}), (first, {0, 1, 2})]
    assert last.in_use
    assert not second.in_use
    assert [(one, set(anew)) for one, anew in third.origins()] == [(second, {0}), (first, {0, 1})]


def test_a_wording_remembers_so_many_changes_and_no_more() -> None:
    draft = of_tiny(1)
    draft.book()
    for turn in range(3 * REMEMBERED_CHANGES):
        draft.put(tiny(0, content=f"said in turn {turn}"))
        assert len(list(draft.book().pages[0].wording.origins())) <= REMEMBERED_CHANGES


# --- pages as they are kept --------------------------------------------------------------------------------------


@pytest.mark.parametrize("live", [0, 1, 32])
@settings(max_examples=40, deadline=None)
@given(some=st.lists(bullets, max_size=12))
def test_a_page_that_was_kept_comes_back_as_it_was(live: int, some: list[Bullet]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book_module, "LIVE_PAGES", live)
        draft = Draft()
        for each in some:
            draft.put(each)
        kept = [page.kept() for page in draft.book().pages]
        again = Draft.of_kept(kept, draft.nodes)
        check(again.book(), dict(draft.book()))
        assert again.nodes == draft.nodes
        assert [page.kept() for page in again.book().pages] == kept
        for page in kept:
            assert not any(b"\n" in entry for entry in page.bullets)


@pytest.mark.parametrize("live", [0, 32])
@pytest.mark.parametrize("name", AWKWARD)
def test_an_id_that_needs_care_in_json_is_found_again(name: str, live: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "LIVE_PAGES", live)
    draft = Draft()
    draft.put(Bullet(id=name, content="x"))
    draft.put(Bullet(id=f"{name} too", content="x"))
    again = Draft.of_kept([page.kept() for page in draft.book().pages], draft.nodes)
    assert list(again.book()) == [name, f"{name} too"]
    again.put(Bullet(id=name, content="y"))
    assert again.book()[name].content == "y"
    assert len(again) == 2


def test_what_is_added_beyond_the_live_pages_is_kept_packed_and_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "LIVE_PAGES", 1)
    book = of_tiny(PAGE + 2).book()
    assert book.at(0) == tiny(0)
    assert book.at(PAGE + 1) == tiny(PAGE + 1)
    assert book.at(PAGE + 1) is not book.at(PAGE + 1)  # read anew each time
    assert book.pages[1].kept().bullets == tuple(
        tiny(place).model_dump_json(exclude_defaults=True).encode() for place in (PAGE, PAGE + 1)
    )


def bad_json(page: KeptPage) -> KeptPage:
    return KeptPage(page.table, (b"{", *page.bullets[1:]))


def no_bullet(page: KeptPage) -> KeptPage:
    return KeptPage(page.table, (b"", *page.bullets[1:]))


def another_field(page: KeptPage) -> KeptPage:
    return KeptPage(page.table, (b'{"id":"b0","content":"x","colour":"red"}', *page.bullets[1:]))


def row_missing(page: KeptPage) -> KeptPage:
    return KeptPage(page.table[: len(page.table) // 2], page.bullets)


def row_cut(page: KeptPage) -> KeptPage:
    return KeptPage(page.table[:-1], page.bullets)


def bullet_missing(page: KeptPage) -> KeptPage:
    return KeptPage(page.table, page.bullets[:1])


DAMAGES = [bad_json, no_bullet, another_field, row_missing, row_cut, bullet_missing]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_page_is_not_taken_and_the_fold_starts_from_the_events(
    damage: Callable[[KeptPage], KeptPage],
) -> None:
    events = [Event(seq=seq, at=AT, who="ann", what=BulletAdded(bullet=tiny(seq))) for seq in (1, 2)]
    whole = PlaybookState()
    for event in events:
        whole.apply(event)
    checkpoint = whole.checkpoint()
    assert PlaybookState(checkpoint).snapshot() == whole.snapshot()
    damaged = Checkpoint(checkpoint.frame, {0: damage(checkpoint.pages[0])})
    with pytest.raises(ValueError, match=r"."):
        Draft.of_kept(damaged.pages.values(), damaged.frame.nodes)
    state = PlaybookState(damaged)
    assert (state.seq, state.revision, len(state)) == (0, 0, 0)
    for event in events:
        state.apply(event)
    assert state.snapshot() == whole.snapshot()
    assert state.checkpoint() == checkpoint


@pytest.mark.parametrize("damage", [no_bullet, row_missing, row_cut, bullet_missing])
def test_so_is_one_whose_bullets_are_not_read(
    damage: Callable[[KeptPage], KeptPage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book_module, "LIVE_PAGES", 0)
    state = of_tiny(2)
    page = damage(state.book().pages[0].kept())
    assert PlaybookState(Checkpoint(Frame(seq=2, nodes=state.nodes), {0: page})).seq == 0


@pytest.mark.parametrize("lost", [0, 1])
def test_a_checkpoint_that_has_lost_a_page_is_not_taken(lost: int) -> None:
    draft = of_tiny(2 * PAGE + 3)
    pages = {number: page.kept() for number, page in enumerate(draft.book().pages) if number != lost}
    assert PlaybookState(Checkpoint(Frame(seq=9, nodes=draft.nodes), pages)).seq == 0


def test_a_checkpoint_of_another_fold_is_not_taken() -> None:
    draft = of_tiny(2)
    pages = {number: page.kept() for number, page in enumerate(draft.book().pages)}
    frame = Frame(seq=9, bullets=2, nodes=draft.nodes)
    assert PlaybookState(Checkpoint(frame, pages)).seq == 9
    for fold in (1, frame.fold + 1):
        state = PlaybookState(Checkpoint(frame.model_copy(update={"fold": fold}), pages))
        assert (state.seq, len(state)) == (0, 0)


def test_checkpoints_are_equal_where_they_say_the_same() -> None:
    first, second = (Checkpoint(Frame(seq=2), {0: of_tiny(2).book().pages[0].kept()}) for _ in range(2))
    assert first == second
    assert first != Checkpoint(Frame(seq=3), first.pages)
    assert first != Checkpoint(first.frame, {1: first.pages[0]})
    assert first != Checkpoint(first.frame, {0: of_tiny(3).book().pages[0].kept()})
