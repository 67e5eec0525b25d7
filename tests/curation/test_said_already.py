"""Finding what is said already in a whole book gives what comparing with every bullet gives."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, NewBullet, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.events import BulletAdded
from acefraud.core.transaction import Verdict
from acefraud.curation.curator import Curator
from acefraud.storage.playbook import BulletPlaybook

NODE = "fraud_detection"
WORDS = [
    *("caller", "nervous", "asks", "for", "a", "refund", "twice", "ships", "to", "hotel", "uses", "odd", "spelling"),
    *("and", "hurry", "never", "answers", "mail", "from", "work", "address", "pays", "late", "with", "many", "small"),
    *("gift", "cards", "before", "midnight", "on", "another", "account", "behind", "the", "proxy", "of", "friend"),
    *("declined", "verification", "after", "changing", "phone", "number", "password", "delivery", "street", "hour"),
]


def varied(texts: Sequence[str], dice: random.Random) -> str:
    """Something new, or one of these with a few words changed."""
    if not texts or dice.random() < 0.5:
        return " ".join(dice.choices(WORDS, k=dice.randint(3, 40))).capitalize()
    words = dice.choice(texts).split()
    for _ in range(dice.randint(0, max(1, len(words) // 5))):
        words[dice.randrange(len(words))] = dice.choice(WORDS).upper()
    return " ".join(words)


def prose(count: int, seed: int) -> list[str]:
    dice, texts = random.Random(seed), list[str]()
    while len(texts) < count:
        texts.append(varied(texts, dice))
    return texts


def with_bullets(bullets: Sequence[Bullet]) -> BulletPlaybook:
    playbook = BulletPlaybook()
    playbook.record([BulletAdded(bullet=bullet) for bullet in bullets])
    return playbook


class PlainMatchers:
    """What `SequenceMatcher` says of a text and each of many, by nothing but its own bounds."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._matchers: list[SequenceMatcher[str]] = []
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        self._matchers.append(SequenceMatcher(None, "", text.lower()))

    def first_alike(self, text: str, threshold: float = 0.85) -> int | None:
        for index, matcher in enumerate(self._matchers):
            matcher.set_seq1(text.lower())
            if matcher.real_quick_ratio() <= threshold or matcher.quick_ratio() <= threshold:
                continue
            if matcher.ratio() > threshold:
                return index
        return None


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.85, 1.0])
def test_the_first_bullet_alike_is_found(threshold: float) -> None:
    texts = prose(160, seed=3)
    playbook = with_bullets([Bullet(id=f"b{index}", content=text) for index, text in enumerate(texts[:100])])
    matchers, curator = PlainMatchers(texts[:100]), Curator(threshold)
    found = [curator.said_already(NewBullet(text), NODE, playbook) for text in texts[100:]]
    expected = [matchers.first_alike(text, threshold) for text in texts[100:]]
    assert [bullet and bullet.id for bullet in found] == [None if e is None else f"b{e}" for e in expected]
    assert threshold == 1.0 or 5 < sum(each is not None for each in expected) < 60


@pytest.mark.long
def test_a_thousand_bullets_are_judged_as_by_sequence_matcher() -> None:
    texts, playbook, curator, matchers = prose(1000, seed=5), BulletPlaybook(), Curator(), PlainMatchers()
    kept = 0
    for text in texts:
        expected = matchers.first_alike(text)
        same = curator.said_already(NewBullet(text), NODE, playbook)
        assert (same and same.id) == (None if expected is None else f"b{expected}")
        if same is None:
            playbook.record([BulletAdded(bullet=Bullet(id=f"b{kept}", content=text))])
            matchers.add(text)
            kept += 1
    assert 250 < kept < 750


@pytest.mark.long
def test_a_large_book_is_searched_hundreds_of_times_faster_than_by_sequence_matcher() -> None:
    dice = random.Random(8)
    texts = [" ".join(dice.choices(WORDS, k=dice.randint(8, 25))) for _ in range(10_050)]
    playbook = with_bullets([Bullet(id=f"b{index}", content=text) for index, text in enumerate(texts[:10_000])])
    curator = Curator()
    curator.said_already(NewBullet(texts[0]), NODE, playbook)

    def search() -> None:
        for text in texts[10_000:]:
            curator.said_already(NewBullet(text), NODE, playbook)

    def search_a_fivehundredth() -> None:
        for text in texts[10_000:]:
            for other in texts[:20]:
                SequenceMatcher(None, text.lower(), other.lower()).ratio()

    assert 500 * least_seconds(search_a_fivehundredth) > 300 * least_seconds(search)


def least_seconds(work: Callable[[], None]) -> float:
    """Processor time of the quickest of three turns: what other processes cost is not counted."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


LETTERS = st.text(st.sampled_from("abAB İßŉ1é漢\U0001f600"), min_size=1, max_size=12)
LONG = st.integers(250, 600).flatmap(lambda count: st.sampled_from(["a" * count, "ab" * (count // 2), "b" * count]))


@given(st.lists(LETTERS | LONG, min_size=1, max_size=8), LETTERS | LONG, st.sampled_from([0.3, 0.6, 0.85, 0.95]))
def test_no_bullet_alike_is_passed_over_whatever_the_characters(texts: list[str], new: str, threshold: float) -> None:
    playbook = with_bullets([Bullet(id=f"b{index}", content=text) for index, text in enumerate(texts)])
    found = Curator(threshold).said_already(NewBullet(new), NODE, playbook)
    ratios = [SequenceMatcher(None, new.lower(), text.lower()).ratio() for text in texts]
    assert (found and found.id) == next((f"b{row}" for row, ratio in enumerate(ratios) if ratio > threshold), None)


CONTENTS = [
    *("Nervous callers: decline", "nervous callers: DECLINE", "Nervous caller: decline", "nervous callers: approve"),
    *("Refunds asked for twice", "refunds asked for twice!", "Amount above 1,000", "amount above 1,020"),
    "Something else altogether",
]
CONDITIONS = [None, *map(Condition.parse, ("amount > 1000", "amount > 1020", "amount > 2000", "vpn is true"))]
BULLETS = st.builds(
    Bullet,
    id=st.just("b"),
    content=st.sampled_from(CONTENTS),
    node=st.sampled_from([NODE, "another"]),
    status=st.sampled_from(Status),
    argues=st.sampled_from([None, Verdict.APPROVE, Verdict.DECLINE]),
    condition=st.sampled_from(CONDITIONS),
)


def numbered(bullets: Sequence[Bullet]) -> Iterator[Bullet]:
    return (bullet.model_copy(update={"id": f"b{index}"}) for index, bullet in enumerate(bullets))


@given(st.lists(BULLETS, max_size=12), BULLETS)
def test_the_same_as_by_looking_at_every_bullet(bullets: list[Bullet], new: Bullet) -> None:
    existing = [bullet for bullet in numbered(bullets) if bullet.node == new.node]
    playbook, curator = with_bullets(list(numbered(bullets))), Curator()

    def first(retired: bool) -> Bullet | None:
        among = [bullet for bullet in existing if (bullet.status is Status.RETIRED) is retired]
        return curator.duplicate_of(new, among)

    found = curator.said_already(new, new.node, playbook)
    assert found == (first(retired=False) or first(retired=True))


NEW = st.builds(
    NewBullet,
    content=st.sampled_from(CONTENTS),
    source=st.sampled_from(Source),
    condition=st.sampled_from(CONDITIONS),
    argues=st.sampled_from([None, Verdict.APPROVE, Verdict.DECLINE]),
    weight=st.none() | st.floats(-1, 1),
    status=st.sampled_from([Status.ACTIVE, Status.CANDIDATE]),
    why=st.sampled_from(["", "because"]),
)


def one_after_the_other(curator: Curator, new: Sequence[NewBullet], playbook: BulletPlaybook) -> list[str | None]:
    return [
        curator.merge_bullet(
            each.content,
            NODE,
            playbook,
            each.source,
            condition=each.condition,
            argues=each.argues,
            weight=each.weight,
            status=each.status,
            why=each.why,
        )
        for each in new
    ]


def as_it_stands(playbook: BulletPlaybook) -> list[Bullet]:
    return [bullet.model_copy(update={"added_at": None}) for bullet in playbook.snapshot().table.values()]


@given(st.lists(BULLETS, max_size=5), st.lists(NEW, max_size=8))
def test_many_at_once_are_merged_as_one_after_the_other(bullets: list[Bullet], new: list[NewBullet]) -> None:
    one, many = (with_bullets(list(numbered(bullets))) for _ in range(2))
    steps = len(list(many.ledger.read()))
    assert Curator().merge_bullets(new, NODE, many, why="a course") == one_after_the_other(Curator(), new, one)
    assert as_it_stands(many) == as_it_stands(one)
    assert {event.why for event in list(many.ledger.read())[steps:]} <= {"a course"}


def test_many_at_once_are_part_of_the_step_they_are_merged_in() -> None:
    playbook, curator = BulletPlaybook(), Curator()
    with pytest.raises(RuntimeError), playbook.unit_of_work():  # noqa: PT012
        assert curator.merge_bullets([NewBullet("Nervous callers"), NewBullet("Refunds")], NODE, playbook)
        assert len(playbook) == 2
        raise RuntimeError
    assert len(playbook) == 0
    assert curator.said_already(NewBullet("Nervous callers"), NODE, playbook) is None
    with playbook.unit_of_work(why="a course"):
        curator.merge_bullets([NewBullet("Refunds"), NewBullet("Nervous callers")], NODE, playbook)
        assert list(playbook.ledger.read()) == []
    assert [bullet.content for bullet in playbook.get_bullets_for_node(NODE)] == ["Refunds", "Nervous callers"]


def test_a_large_book_is_searched_as_it_stands_after_each_edit() -> None:
    dice, texts, curator = random.Random(2), prose(1300, seed=9), Curator()
    playbook = with_bullets([Bullet(id=f"b{index}", content=text) for index, text in enumerate(texts[:1100])])
    for text in texts[1100:1160]:
        edited = f"b{dice.randrange(1100)}"
        playbook.edit_bullet(edited, dice.choice([text, varied(texts, dice)]))
        playbook.set_status(f"b{dice.randrange(1100)}", Status.RETIRED)
        playbook.update_stats(f"b{dice.randrange(1100)}", is_helpful=True)
        again = Curator().said_already(NewBullet(text), NODE, playbook)  # sees the book for the first time
        assert curator.said_already(NewBullet(text), NODE, playbook) == again
