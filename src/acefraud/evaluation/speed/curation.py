"""The duplicate check beside plain difflib, and what it costs to add to a book that is large already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import islice

from acefraud.core.bullet import Bullet
from acefraud.core.events import BulletAdded
from acefraud.curation.curator import Curator
from acefraud.evaluation.speed.figures import Figures, named
from acefraud.evaluation.speed.measuring import seconds_to_add, seconds_to_merge
from acefraud.evaluation.speed.rules import rule_bullets
from acefraud.evaluation.speed.sentences import said_otherwise, sentences
from acefraud.evaluation.speed.timing import Effort, interleaved, median, taken
from acefraud.evaluation.speed.workloads import NODE, prose_bullets
from acefraud.storage.playbook import BulletPlaybook

DIFFLIB_UP_TO = 10_000
COMPARED_BULLETS = 2_000
COMPARED_NEW = 200
CHECKED = 16
ADDED = 200
WARMING = 3
_AT_ONCE = 2_000
_ADDING = {
    "insert": "adding a bullet with a condition",
    "merge": "merging a bullet with a condition",
    "insert_prose": "adding a bullet in prose",
    "merge_prose": "merging a bullet in prose",
}


def filled(bullets: Iterable[Bullet], playbook: BulletPlaybook | None = None) -> BulletPlaybook:
    """A playbook with these bullets in it; in memory where none is given."""
    playbook = BulletPlaybook() if playbook is None else playbook
    left = iter(bullets)
    while some := list(islice(left, _AT_ONCE)):
        playbook.record([BulletAdded(bullet=bullet) for bullet in some])
    return playbook


# --- the duplicate check -----------------------------------------------------------------------------------------


def measure_dedupe(figures: Figures, size: int, seed: int, effort: Effort) -> None:
    """The check of a new bullet that nobody has said yet, so that nobody can stop early."""
    curator, playbook = Curator(), filled(prose_bullets(size, seed))
    fresh = list(islice(_fresh(curator, playbook, seed, size), CHECKED))
    works = [partial(curator.said_already, text, NODE, playbook) for text in fresh]
    ours = figures.time("dedupe", interleaved({"ours": works}, effort)["ours"], size)
    if size <= DIFFLIB_UP_TO:
        bullets = list(playbook.snapshot().bullets.values())
        plain = taken(lambda: plain_duplicate(curator, fresh[0], bullets))
        figures.time("difflib", plain, size)
        figures.faster(f"{named('dedupe', size)}.difflib", plain, ours, "difflib over all bullets, for one new bullet")


def _fresh(curator: Curator, playbook: BulletPlaybook, seed: int, size: int) -> Iterator[str]:
    """Sentences that the playbook does not say yet."""
    for text in sentences(100 * CHECKED, seed, first=size):
        if curator.said_already(text, NODE, playbook) is None:
            yield text


def plain_duplicate(curator: Curator, content: str, bullets: Sequence[Bullet]) -> Bullet | None:
    """The first bullet in prose whose words are the same, found by nothing but difflib."""
    for bullet in bullets:
        if SequenceMatcher(None, content.lower(), bullet.content.lower()).ratio() > curator.similarity_threshold:
            return bullet
    return None


def count_disagreements(figures: Figures, size: int, seed: int, new: int = COMPARED_NEW) -> None:
    """New bullets, half of them nearly what some bullet says: whether ours and difflib find the same bullet."""
    curator, count = Curator(), min(size, COMPARED_BULLETS)
    bullets = list(prose_bullets(count, seed))
    playbook = filled(bullets)
    others = list(sentences(new, seed, first=size))
    wanted = [
        text if place % 2 else said_otherwise(bullets[place * 7 % count].content, others[place:], place % 9)
        for place, text in enumerate(others)
    ]
    found = [curator.said_already(text, NODE, playbook) for text in wanted]
    plain = _plain_duplicates(curator, wanted, bullets)
    differing = sum((mine and mine.id) != theirs for mine, theirs in zip(found, plain, strict=True))
    figures.ratio(
        f"{named('dedupe', size)}.disagreements",
        differing,
        f"verdicts that differ from those of difflib, of {new:,} new bullets against {count:,}; "
        f"{sum(one is not None for one in plain):,} are duplicates",
    )


def _plain_duplicates(curator: Curator, contents: Sequence[str], bullets: Sequence[Bullet]) -> list[str | None]:
    """The first duplicate of each text. Bounds that difflib itself gives save most of the time."""
    found: list[str | None] = [None] * len(contents)
    lowered, least = [content.lower() for content in contents], curator.similarity_threshold
    for bullet in bullets:
        matcher = SequenceMatcher(None, "", bullet.content.lower())
        for place, content in enumerate(lowered):
            if found[place] is None:
                matcher.set_seq1(content)
                if matcher.real_quick_ratio() > least and matcher.quick_ratio() > least and matcher.ratio() > least:
                    found[place] = bullet.id
    return found


# --- adding ------------------------------------------------------------------------------------------------------


def measure_adding(figures: Figures, size: int, seed: int, added: int = ADDED) -> None:
    """The median cost of one more bullet, added as it is and by way of the curator.

    Once the bullets are conditions with evidence, as learning adds them, which are compared with all that might
    contradict them; once prose, of which most of the time goes into reading it.
    """
    for ending, bullets in (
        ("", rule_bullets(size + 2 * added, seed)),
        ("_prose", prose_bullets(size + 2 * added, seed)),
    ):
        playbook, curator = filled(islice(bullets, size)), Curator()
        added_now, merged = list(islice(bullets, added)), list(bullets)
        seconds_to_add(playbook, added_now[:WARMING])
        figures.time(f"insert{ending}", median(seconds_to_add(playbook, added_now[WARMING:])), size)
        seconds_to_merge(curator, playbook, merged[:WARMING])
        figures.time(f"merge{ending}", median(seconds_to_merge(curator, playbook, merged[WARMING:])), size)


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
