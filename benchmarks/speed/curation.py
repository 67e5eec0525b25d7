"""Merging beside plain difflib, and what it costs to add to a book that is large already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import islice
from typing import TypeVar

from acefraud import Bullet, BulletPlaybook, Curator
from benchmarks.speed.conditions import ConditionBullet, condition_book, condition_bullets
from benchmarks.speed.figures import Figures, named
from benchmarks.speed.prose import NODE, prose_book
from benchmarks.speed.sentences import said_otherwise, sentences
from benchmarks.speed.timing import Effort, interleaved, median, taken

COMPARED_BULLETS = 2_000
COMPARED_NEW = 200
CHECKED = 16
ADDED = 200
WARMING = 3
_ADDING = {
    "insert": "adding a bullet with a condition",
    "merge": "merging a bullet with a condition",
    "insert_prose": "adding a bullet in prose",
    "merge_prose": "merging a bullet in prose",
}

New = TypeVar("New")


# --- the duplicate check -----------------------------------------------------------------------------------------


def measure_dedupe(figures: Figures, playbook: BulletPlaybook, seed: int, effort: Effort) -> None:
    """The merge of what the last bullets of a book say already: nothing is added, and nobody can stop early."""
    curator, bullets = Curator(), playbook.get_bullets_for_node(NODE)
    others, size = list(sentences(1, seed, first=len(bullets))), len(bullets)
    near = [said_otherwise(bullet.content, others, 1) for bullet in bullets[-4 * CHECKED :]]
    texts = [text for text in near if curator.merge_bullet(text, NODE, playbook) is None][-CHECKED:]
    works = [partial(curator.merge_bullet, text, NODE, playbook) for text in texts]
    ours = figures.time("dedupe", interleaved({"ours": works}, effort)["ours"], size)
    plain = taken(lambda: plain_duplicate(curator, texts[-1], bullets))
    figures.time("difflib", plain, size)
    figures.faster(
        f"{named('dedupe', size)}.difflib", plain, ours, "difflib over all bullets, for one that is there already"
    )


def plain_duplicate(curator: Curator, content: str, bullets: Sequence[Bullet]) -> Bullet | None:
    """The first bullet in prose whose words are the same, found by nothing but difflib."""
    for bullet in bullets:
        if SequenceMatcher(None, content.lower(), bullet.content.lower()).ratio() > curator.similarity_threshold:
            return bullet
    return None


def count_disagreements(figures: Figures, size: int, seed: int, new: int = COMPARED_NEW) -> None:
    """Merge new bullets, half of them nearly what some bullet says: whether ours and difflib turn away the same."""
    curator, count = Curator(), min(size, COMPARED_BULLETS)
    playbook = prose_book(count, seed)
    bullets = playbook.get_bullets_for_node(NODE)
    others = list(sentences(new, seed, first=size))
    wanted = [
        text if index % 2 else said_otherwise(bullets[index * 7 % count].content, others[index:], index % 9)
        for index, text in enumerate(others)
    ]
    known = [_matcher(bullet.content) for bullet in bullets]
    differing = duplicates = 0
    for text in wanted:
        plain = _is_known(text, known, curator.similarity_threshold)
        added = curator.merge_bullet(text, NODE, playbook) is not None
        differing, duplicates = differing + (added == plain), duplicates + plain
        if added:
            known.append(_matcher(text))
    figures.ratio(
        f"{named('dedupe', size)}.disagreements",
        differing,
        f"merges that differ from what difflib says, of {new:,} new bullets into {count:,}; {duplicates:,} are there "
        "already",
    )


def _matcher(content: str) -> SequenceMatcher[str]:
    return SequenceMatcher(None, "", content.lower())


def _is_known(content: str, known: Sequence[SequenceMatcher[str]], least: float) -> bool:
    """Whether any text is alike. Bounds that difflib itself gives save most of the time."""
    lowered = content.lower()
    for matcher in known:
        matcher.set_seq1(lowered)
        if matcher.real_quick_ratio() > least and matcher.quick_ratio() > least and matcher.ratio() > least:
            return True
    return False


# --- adding ------------------------------------------------------------------------------------------------------


def measure_adding_prose(figures: Figures, playbook: BulletPlaybook, seed: int, added: int = ADDED) -> None:
    """The median cost of one more bullet in prose, most of which goes into reading it."""
    size = len(playbook.get_bullets_for_node(NODE))
    new = list(sentences(2 * added, seed, first=2 * size))
    curator = Curator()
    added_alone = _median(playbook, lambda text: playbook.add_bullet(text, NODE), new[:added])
    merged = _median(playbook, lambda text: curator.merge_bullet(text, NODE, playbook), new[added:])
    figures.time("insert_prose", added_alone, size)
    figures.time("merge_prose", merged, size)


def measure_adding_conditions(figures: Figures, size: int, seed: int, added: int = ADDED) -> None:
    """The same for bullets with conditions and evidence, which are compared with all that might contradict them."""
    bullets = condition_bullets(size + 2 * added, seed)
    playbook, curator = condition_book(islice(bullets, size)), Curator()

    def add(bullet: ConditionBullet) -> object:
        return playbook.add_bullet(bullet.content, NODE, **bullet.given)

    def merge(bullet: ConditionBullet) -> object:
        return curator.merge_bullet(bullet.content, NODE, playbook, **bullet.given)

    figures.time("insert", _median(playbook, add, list(islice(bullets, added))), size)
    figures.time("merge", _median(playbook, merge, list(bullets)), size)


def _median(playbook: BulletPlaybook, work: Callable[[New], object], new: Sequence[New]) -> float:
    """The median over the new ones, each up to a snapshot that shows it."""

    def one(bullet: New) -> None:
        work(bullet)
        playbook.snapshot()

    return median([taken(partial(one, bullet)) for bullet in new][WARMING:])


def note_growth(figures: Figures) -> None:
    """What one more costs in the largest book, beside the smallest."""
    for name, words in _ADDING.items():
        by_size = figures.seconds.get(name, {})
        if len(by_size) > 1:
            small, large = min(by_size), max(by_size)
            figures.ratio(
                f"{named(name, large)}.{named(name, small)}",
                by_size[large] / by_size[small],
                f"how many times as much {words} costs in a book of {large:,} as in one of {small:,}",
            )
