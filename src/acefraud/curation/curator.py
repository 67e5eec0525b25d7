"""The curator: decides whether a new bullet says anything new."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from rapidfuzz.distance import Indel

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition import Condition, Test
from acefraud.core.contradiction import opposed
from acefraud.core.evidence import Evidence
from acefraud.core.reading import read_bullet
from acefraud.core.transaction import Verdict
from acefraud.errors import ConfigurationError
from acefraud.storage.playbook import THE_ENGINE, BulletPlaybook

FIGURE_THAT_MATTERS = 0.05
"""Thresholds that differ by no more than this share are the same threshold, said differently."""


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
        existing = playbook.get_bullets_for_node(node)
        if self.duplicate_of(content, existing, condition=condition, argues=argues) is not None:
            return None
        retired = [b for b in playbook.snapshot().bullets.values() if b.status is Status.RETIRED and b.node == node]
        again = self.duplicate_of(content, retired, condition=condition, argues=argues)
        if again is not None:
            if again.status_by != THE_ENGINE:
                return None
            playbook.edit_bullet(
                again.id,
                content,
                condition=condition,
                argues=argues,
                evidence=evidence,
                problem_types=problem_types,
                who=who,
                why=why,
            )
            playbook.set_status(again.id, status, who=who, why=f"revived: {why}" if why else "revived")
            return again.id
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
        if Indel.normalized_similarity(a, b) <= self.similarity_threshold:
            return False
        return SequenceMatcher(None, a, b).ratio() > self.similarity_threshold


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
