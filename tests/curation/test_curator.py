"""What counts as said already, what contradicts, and what comes back."""

from __future__ import annotations

import random
from difflib import SequenceMatcher

import pytest

from acefraud.core.bullet import Status
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.curation.curator import Curator, nearly_equal
from acefraud.errors import ConfigurationError
from acefraud.storage.playbook import BulletPlaybook

NODE = "fraud_detection"
VOCABULARY = [
    *("caller", "nervous", "asks", "for", "a", "refund", "twice", "ships", "to", "hotel", "uses", "odd", "spelling"),
    *("and", "hurry", "never", "answers", "mail", "from", "work", "address", "pays", "late", "with", "many", "small"),
]


def prose_bullets(count: int, seed: int) -> list[str]:
    """Prose of which about half is a slight change of one before, so that likeness lies on both sides of 0.85."""
    dice = random.Random(seed)
    texts: list[str] = []
    while len(texts) < count:
        words = [dice.choice(VOCABULARY) for _ in range(dice.randint(3, 40))]
        if texts and dice.random() < 0.6:
            words = dice.choice(texts).split()
            for _ in range(dice.randint(1, max(1, len(words) // 4))):
                place = dice.randrange(len(words))
                words[place] = dice.choice([*VOCABULARY, words[place].upper()])
            if dice.random() < 0.3:
                words[: len(words) // 2] = reversed(words[: len(words) // 2])
        texts.append(" ".join(words))
    return texts


def test_alike_is_what_sequence_matcher_says() -> None:
    dice, texts, curator = random.Random(1), prose_bullets(1500, seed=0), Curator()
    pairs = [(dice.choice(texts), dice.choice(texts)) for _ in range(400)]
    by_end: dict[str, list[str]] = {}
    for text in texts:
        by_end.setdefault(" ".join(text.lower().split()[-2:]), []).append(text)
    akin = [(each, other) for group in by_end.values() for each in group[:6] for other in group[:6] if each != other]
    pairs += dice.sample(akin, 1600)
    expected = [SequenceMatcher(None, each.lower(), other.lower()).ratio() > 0.85 for each, other in pairs]
    assert [curator.alike(each, other) for each, other in pairs] == expected
    assert 300 < sum(expected) < len(pairs) - 300
    assert sum(len(other) >= 200 for _, other in pairs) > 100  # from where on it leaves out frequent characters


@pytest.mark.parametrize("threshold", [0.5, 0.75, 1.0])
def test_the_threshold_is_strict_and_can_be_set(threshold: float) -> None:
    curator = Curator(threshold)
    for each, other in (("abcd", "abcd"), ("abcd", "abcx"), ("abcd", "abxx"), ("abcd", "xxxx")):
        assert curator.alike(each, other) is (SequenceMatcher(None, each, other).ratio() > threshold)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1, float("nan")])
def test_a_threshold_that_makes_no_sense_is_refused(threshold: float) -> None:
    with pytest.raises(ConfigurationError, match="similarity_threshold"):
        Curator(threshold)


def test_opposite_verdicts_are_never_duplicates_however_alike_the_words() -> None:
    playbook, curator = BulletPlaybook(), Curator()
    for words in (
        "Amount above 1,000 through a VPN or proxy on a new device",
        "Callers who sound nervous on the phone",
    ):
        reject, accept = f"{words}: reject", f"{words}: accept"
        assert curator.alike(reject, accept)
        assert curator.merge_bullet(reject, NODE, playbook) is not None
        assert curator.merge_bullet(accept, NODE, playbook) is not None
    assert curator.merge_bullet("amount > $1000 = DECLINE", NODE, playbook) is not None
    assert curator.merge_bullet("amount > $9000 = APPROVE", NODE, playbook) is not None
    assert len(playbook) == 6


@pytest.mark.parametrize(
    ("one", "other", "duplicate"),
    [
        ("amount > $1000 = DECLINE", "amount > $9000 = DECLINE", False),
        ("amount > $1000 = DECLINE", "amount > $1100 = DECLINE", False),
        ("amount > $1000 = DECLINE", "amount > $1040 = DECLINE", True),  # four per cent apart, and alike in words
        ("amount > $1000 = DECLINE", "amount < $1000 = DECLINE", False),
        ("amount > $1000 = DECLINE", "amount > $1000 and a VPN = DECLINE", False),
        ("amount > $1000 = DECLINE", "Reject payments over 1k", True),  # other words, equal condition
        ("VPN and a new device: decline", "a new device, through a proxy = fraud", True),
        ("Nervous callers: decline", "nervous callers: DECLINE", True),
        ("Nervous callers: decline", "Refunds asked for twice: decline", False),
    ],
)
def test_what_is_said_already(one: str, other: str, duplicate: bool) -> None:
    playbook, curator = BulletPlaybook(), Curator()
    assert curator.merge_bullet(one, NODE, playbook) is not None
    assert (curator.merge_bullet(other, NODE, playbook) is None) is duplicate
    assert len(playbook) == (1 if duplicate else 2)


def test_another_node_may_say_the_same() -> None:
    playbook, curator = BulletPlaybook(), Curator()
    assert curator.merge_bullet("VPN: decline", "one", playbook)
    assert curator.merge_bullet("VPN: decline", "two", playbook)


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("amount > 1000", "amount > 1050", True),
        ("amount > 1000", "amount > 1060", False),
        ("amount > 1000", "amount >= 1000", False),
        ("amount > 1000", "hour > 1000", False),
        ("amount > 0", "amount > 0.01", False),
        ('channel is "a"', 'channel is "b"', False),
        ("amount > 1000 and vpn is true", "amount > 1010 and vpn is true", True),
        ("amount > 1000 and vpn is true", "amount > 1010 and vpn is false", False),
    ],
)
def test_figures_that_differ_by_more_than_a_twentieth_matter(one: str, other: str, near: bool) -> None:
    assert nearly_equal(Condition.parse(one), Condition.parse(other)) is near
    assert nearly_equal(Condition.parse(other), Condition.parse(one)) is near


def test_a_contradiction_is_kept_and_names_the_older_bullet() -> None:
    playbook, curator = BulletPlaybook(), Curator()
    wide = curator.merge_bullet("amount > $1000 = DECLINE", NODE, playbook)
    other = curator.merge_bullet("a VPN: decline", NODE, playbook)
    narrow = curator.merge_bullet("amount > $9000 and VIP = APPROVE", NODE, playbook)
    assert wide is not None
    assert other is not None
    assert narrow is not None
    newer = playbook.get_bullet(narrow)
    assert newer is not None
    assert newer.contradicts == (wide,)


def test_without_a_condition_or_a_verdict_nothing_is_contradicted() -> None:
    condition, playbook = Condition.parse("amount > 1000"), BulletPlaybook()
    older = playbook.add_bullet("large amounts", condition=condition, argues=Verdict.DECLINE)
    for new, against in (
        (playbook.add_bullet("be kind", argues=Verdict.APPROVE), ()),
        (playbook.add_bullet("sums of note", condition=condition), ()),
        (playbook.add_bullet("much money", condition=condition, argues=Verdict.DECLINE), ()),
        (playbook.add_bullet("who pays much is rich", condition=condition, argues=Verdict.APPROVE), (older,)),
    ):
        found = playbook.get_bullet(new)
        assert found is not None
        assert set(against) <= set(found.contradicts)
        assert bool(found.contradicts) == bool(against)


def retired_by(who: str, content: str) -> tuple[BulletPlaybook, str]:
    playbook = BulletPlaybook()
    bullet_id = Curator().merge_bullet(content, NODE, playbook)
    assert bullet_id is not None
    playbook.set_status(bullet_id, Status.RETIRED, who=who)
    return playbook, bullet_id


def test_what_a_person_retired_is_not_brought_back_by_learning() -> None:
    playbook, _ = retired_by("ann", "amount > $1000 = DECLINE")
    assert Curator().merge_bullet("Payments over 1k: reject", NODE, playbook, "online") is None
    assert playbook.get_bullets_for_node(NODE) == []


def test_what_the_engine_retired_is_revived_under_its_old_id() -> None:
    playbook, bullet_id = retired_by("the engine", "amount > $1000 = DECLINE")
    assert Curator().merge_bullet("Payments over 1k: reject", NODE, playbook, "online", why="again") == bullet_id
    assert [bullet.id for bullet in playbook.get_bullets_for_node(NODE)] == [bullet_id]
    assert "again" in list(playbook.ledger.read())[-1].why


def test_reviving_never_brings_back_the_opposite_verdict() -> None:
    playbook, _ = retired_by("the engine", "amount > $1000 = DECLINE")
    merged = Curator().merge_bullet("amount > $1000 = APPROVE", NODE, playbook, "online")
    bullet = playbook.get_bullet(merged or "")
    assert bullet is None or bullet.argues is Verdict.APPROVE


def test_prose_that_a_person_retired_is_not_brought_back_either() -> None:
    playbook, _ = retired_by("ann", "Callers who sound nervous: decline")
    assert Curator().merge_bullet("Callers who sound nervous: decline", NODE, playbook, "online") is None
