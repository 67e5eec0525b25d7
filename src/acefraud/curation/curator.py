"""The curator: decides whether a new bullet says anything new."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from threading import RLock
from weakref import WeakKeyDictionary

import numpy as np
from rapidfuzz.distance import Indel

from acefraud.core.book import Book
from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition import Condition, Test
from acefraud.core.contradiction import opposed, opposed_rows
from acefraud.core.events import StatusChanged
from acefraud.core.evidence import Evidence
from acefraud.core.measured_text import MeasuredText
from acefraud.core.page import Mask, Page
from acefraud.core.reading import read_bullet
from acefraud.core.transaction import Verdict
from acefraud.curation.shared_fit import fits_in, use_fit
from acefraud.curation.words import A_LITTLE, BookWords
from acefraud.errors import ConfigurationError
from acefraud.storage.changes import Change, NewBullet, edition
from acefraud.storage.playbook import THE_ENGINE, BulletPlaybook

__all__ = ["FIGURE_THAT_MATTERS", "Curator", "NewBullet", "nearly_equal"]

FIGURE_THAT_MATTERS = 0.05
"""Thresholds that differ by no more than this share are the same threshold, said differently."""


class Curator:
    """Merges bullets into a playbook. Threads may share one.

    Words alike above the threshold are a duplicate, and so are equal conditions in other words. Bullets that argue
    for opposite verdicts, or whose conditions differ, are not, however alike they sound; of two that contradict
    each other the newer one is kept and names the older.

    >>> playbook = BulletPlaybook()
    >>> curator = Curator()
    >>> first = curator.merge_bullet("amount > $1000 = DECLINE", "fraud_detection", playbook)
    >>> curator.merge_bullet("Amount > $1,000 = DECLINE", "fraud_detection", playbook) is None
    True
    >>> other = curator.merge_bullet("amount > $9000 = APPROVE", "fraud_detection", playbook)
    >>> playbook.get_bullet(other).contradicts == (first,)
    True
    """

    def __init__(self, similarity_threshold: float = 0.85) -> None:
        if not 0 < similarity_threshold <= 1:
            raise ConfigurationError(f"similarity_threshold must lie in (0, 1], got {similarity_threshold}")
        self.similarity_threshold = similarity_threshold
        self._words: WeakKeyDictionary[BulletPlaybook, BookWords] = WeakKeyDictionary()
        self._looking_up = RLock()

    def merge_bullet(
        self,
        content: str,
        node: str,
        playbook: BulletPlaybook,
        source: Source | str = Source.MANUAL,
        *,
        condition: Condition | None = None,
        argues: Verdict | None = None,
        evidence: Evidence | None = None,
        weight: float | None = None,
        problem_types: Sequence[str] = (),
        status: Status = Status.ACTIVE,
        who: str = THE_ENGINE,
        why: str = "",
    ) -> str | None:
        """Add the bullet and return its id, or None where the playbook says it already or a person retired it.

        A bullet that the engine itself retired is revived under its old id. Where somebody else changes a bullet
        meanwhile it is merged anew, into what is there then. Words that a reflector or a playbook handed out bring
        along what was measured of them; what is given here comes before it.
        """
        new = NewBullet(content, source, condition, argues, evidence, weight, problem_types, status, why)
        return self._merge(new, node, playbook, who)

    def _merge(self, new: NewBullet, node: str, playbook: BulletPlaybook, who: str) -> str | None:
        words = new.content
        if isinstance(words, MeasuredText):
            return playbook.run_step(
                lambda: self._merge_measured(words, new, node, playbook, who), who=who, why=new.why
            )
        if new.condition is None or new.argues is None:
            reading = read_bullet(words)
            new = replace(new, condition=new.condition or reading.condition, argues=new.argues or reading.argues)
        return playbook.change(lambda: self._merged(new, node, playbook, who), who=who, why=new.why)

    def _merge_measured(
        self, words: MeasuredText, new: NewBullet, node: str, playbook: BulletPlaybook, who: str
    ) -> str | None:
        """Merge a bullet with what its words bring along, its weight among them where it fits the others."""
        fit = words.fit if words.fit is not None and fits_in(words.fit, node, playbook) else None
        whole = replace(
            new,
            content=str(words),
            condition=new.condition or words.condition,
            argues=new.argues or words.argues,
            evidence=new.evidence or words.evidence,
            weight=words.weight if new.weight is None and fit is not None else new.weight,
            problem_types=new.problem_types or words.problem_types,
        )
        merged = self._merge(whole, node, playbook, who)
        if fit is not None:
            use_fit(fit, node, playbook)
        return merged

    def _merged(self, new: NewBullet, node: str, playbook: BulletPlaybook, who: str) -> Change[str | None]:
        """What comes of it as the playbook stands. That rests on all bullets: any could say the same by now."""
        same = self.said_already(new.content, node, playbook, condition=new.condition, argues=new.argues)
        if same is None:
            added = playbook.addition(new, node, who=who)
            return Change(added.result, added.happenings)
        if same.status is not Status.RETIRED or same.status_by != THE_ENGINE:
            return Change(None)
        edited = edition(playbook, same.id, new)
        why = f"revived: {new.why}" if new.why else "revived"
        back = StatusChanged(bullet_id=same.id, status=new.status, reason=why)
        return Change(same.id, (*edited.happenings, back))

    def merge_bullets(
        self, new: Sequence[NewBullet], node: str, playbook: BulletPlaybook, *, who: str = THE_ENGINE, why: str = ""
    ) -> list[str | None]:
        """Merge them one after the other, and write what comes of it in one step: all of it, or nothing.

        >>> playbook = BulletPlaybook()
        >>> new = [NewBullet("amount > $1000 = DECLINE"), NewBullet("Amount > $1,000 = DECLINE")]
        >>> first, second = Curator().merge_bullets(new, "fraud_detection", playbook)
        >>> playbook.get_bullet(first).content, second
        ('amount > $1000 = DECLINE', None)
        """
        return playbook.run_step(lambda: [self._merge(one, node, playbook, who) for one in new], who=who, why=why)

    def said_already(
        self,
        content: str,
        node: str,
        playbook: BulletPlaybook,
        *,
        condition: Condition | None = None,
        argues: Verdict | None = None,
    ) -> Bullet | None:
        """The bullet of a node that says the same already: the first that is in use, or else the first retired.

        It is the one that `duplicate_of` finds, though only those are looked at that it could be.
        """
        book = playbook.snapshot().book
        retired: Bullet | None = None
        for row in self._candidates(content, node, playbook, book, condition=condition, argues=argues):
            bullet = book.at(row)
            if retired is not None and bullet.status is Status.RETIRED:
                continue
            if self.duplicate_of(content, [bullet], condition=condition, argues=argues) is not None:
                if bullet.status is not Status.RETIRED:
                    return bullet
                retired = bullet
        return retired

    def _candidates(
        self,
        content: str,
        node: str,
        playbook: BulletPlaybook,
        book: Book,
        *,
        condition: Condition | None,
        argues: Verdict | None,
    ) -> list[int]:
        """The rows of the book that could say the same, in order: by their words, or by their condition."""
        number = book.node(node)
        if number is None or not book.pages:
            return []
        beside = np.concatenate([_beside(page, number, argues) for page in book.pages])
        with self._looking_up:
            words = self._words.setdefault(playbook, BookWords())
            words.keep_up_with(book)
            rows = words.candidates(content, self.similarity_threshold, beside, conditioned=condition is None)
        if condition is None:
            return rows
        with playbook.conditions_of(book) as encoded:
            near = encoded.near(condition, FIGURE_THAT_MATTERS)
        return sorted([*rows, *near[beside[near]].tolist()])

    def duplicate_of(
        self,
        content: str,
        existing: Iterable[Bullet],
        *,
        condition: Condition | None = None,
        argues: Verdict | None = None,
    ) -> Bullet | None:
        """The bullet that says the same already, if there is one."""
        for bullet in existing:
            if opposed(bullet.argues, argues):
                continue
            if condition is not None and bullet.condition is not None:
                if condition == bullet.condition:
                    return bullet
                if not nearly_equal(condition, bullet.condition):
                    continue
            if self.alike(content, bullet.content):
                return bullet
        return None

    def alike(self, one: str, other: str) -> bool:
        """Whether `SequenceMatcher`, letter case aside, finds the two more alike than the threshold.

        Its matching blocks form a common subsequence, so the Indel similarity bounds its ratio from above and
        rules out most pairs at a fraction of the cost.
        """
        a, b = one.lower(), other.lower()
        if Indel.normalized_similarity(a, b, score_cutoff=max(0.0, self.similarity_threshold - A_LITTLE)) == 0:
            return False
        return SequenceMatcher(None, a, b).ratio() > self.similarity_threshold


def _beside(page: Page, node: int, argues: Verdict | None) -> Mask:
    """The rows of a node, retired or not, that do not argue for another verdict."""

    def work_out() -> Mask:
        beside: Mask = (page.table["node"] == node) & ~opposed_rows(page, argues)
        return beside

    return page.once((_beside, node, argues), work_out)


def nearly_equal(one: Condition, other: Condition) -> bool:
    """Whether two conditions make the same tests, their figures apart by too little to matter."""
    if len(one.tests) != len(other.tests):
        return False
    return all(_nearly_same(mine, theirs) for mine, theirs in zip(one.tests, other.tests, strict=True))


def _nearly_same(mine: Test, theirs: Test) -> bool:
    if mine == theirs:
        return True
    if (mine.fact, mine.op) != (theirs.fact, theirs.op):
        return False
    if not isinstance(mine.value, float) or not isinstance(theirs.value, float):
        return False
    return math.isclose(mine.value, theirs.value, rel_tol=FIGURE_THAT_MATTERS)
