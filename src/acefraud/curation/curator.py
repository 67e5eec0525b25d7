"""The curator: decides whether a new bullet says anything new."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from weakref import WeakKeyDictionary

import numpy as np
from rapidfuzz.distance import Indel

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition import Condition, Test
from acefraud.core.contradiction import opposed, opposed_rows
from acefraud.core.evidence import Evidence
from acefraud.core.page import Mask, Page
from acefraud.core.reading import read_bullet
from acefraud.core.transaction import Verdict
from acefraud.curation.words import A_LITTLE, BookWords
from acefraud.errors import ConfigurationError
from acefraud.storage.playbook import THE_ENGINE, BulletPlaybook

FIGURE_THAT_MATTERS = 0.05
"""Thresholds that differ by no more than this share are the same threshold, said differently."""


@dataclass(frozen=True, slots=True)
class NewBullet:
    """What is to be merged into a playbook. What is not given is read from its words, where it can be."""

    content: str
    source: Source | str = Source.MANUAL
    condition: Condition | None = None
    argues: Verdict | None = None
    evidence: Evidence | None = None
    weight: float | None = None
    problem_types: Sequence[str] = ()
    status: Status = Status.ACTIVE
    why: str = ""


class Curator:
    """Merges bullets into a playbook.

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

        A bullet that the engine itself retired is revived under its old id.
        """
        if condition is None or argues is None:
            reading = read_bullet(content)
            condition, argues = condition or reading.condition, argues or reading.argues
        same = self.said_already(content, node, playbook, condition=condition, argues=argues)
        if same is None:
            return playbook.add_bullet(
                content,
                node,
                source,
                condition=condition,
                argues=argues,
                evidence=evidence,
                weight=weight,
                problem_types=problem_types,
                status=status,
                who=who,
                why=why,
            )
        if same.status is not Status.RETIRED or same.status_by != THE_ENGINE:
            return None
        playbook.edit_bullet(
            same.id,
            content,
            condition=condition,
            argues=argues,
            evidence=evidence,
            problem_types=problem_types,
            who=who,
            why=why,
        )
        playbook.set_status(same.id, status, who=who, why=f"revived: {why}" if why else "revived")
        return same.id

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
        with playbook.one_step(who=who, why=why):
            return [
                self.merge_bullet(
                    one.content,
                    node,
                    playbook,
                    one.source,
                    condition=one.condition,
                    argues=one.argues,
                    evidence=one.evidence,
                    weight=one.weight,
                    problem_types=one.problem_types,
                    status=one.status,
                    who=who,
                    why=one.why,
                )
                for one in new
            ]

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
        for row in self._candidates(content, node, playbook, condition, argues):
            bullet = book.at(row)
            if retired is not None and bullet.status is Status.RETIRED:
                continue
            if self.duplicate_of(content, [bullet], condition=condition, argues=argues) is not None:
                if bullet.status is not Status.RETIRED:
                    return bullet
                retired = bullet
        return retired

    def _candidates(
        self, content: str, node: str, playbook: BulletPlaybook, condition: Condition | None, argues: Verdict | None
    ) -> list[int]:
        """The rows of the book that could say the same, in order: by their words, or by their condition."""
        book = playbook.snapshot().book
        number = book.node(node)
        if number is None or not book.pages:
            return []
        words = self._words.setdefault(playbook, BookWords())
        words.keep_up_with(book)
        beside = np.concatenate([_beside(page, number, argues) for page in book.pages])
        rows = words.candidates(content, self.similarity_threshold, beside, conditioned=condition is None)
        if condition is None:
            return rows
        near = playbook.conditions().near(condition, FIGURE_THAT_MATTERS)
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
