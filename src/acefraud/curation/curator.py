"""Merges new bullets into a playbook and turns duplicates away."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Unpack

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from acefraud.core.bullet import Bullet, BulletDetails, NewBullet, Policy, Source, Status
from acefraud.core.bullet_table import opposed, opposed_rows
from acefraud.core.calibration import Fit, MeasuredText
from acefraud.core.condition import Condition, Part, Test
from acefraud.core.events import THE_ENGINE, Recalibrated, StatusChanged
from acefraud.core.transaction import Verdict
from acefraud.rules.bullet_text import read_bullet_with
from acefraud.storage.changes import Change, plan_addition, plan_edit
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_share, check_type

ROUNDING = 1e-9
"""Slack for rounding errors in a bound."""
FIGURE_THAT_MATTERS = 0.05
"""Thresholds that differ by no more than this share count as the same threshold."""


class Curator:
    """Merges bullets into a playbook. Threads may share one.

    A bullet is a duplicate if its words are more alike than the threshold, or if its condition is equal. Bullets that
    argue for opposite verdicts, or whose conditions differ, are never duplicates. Of two that contradict each other,
    the newer one is added and names the older.

    >>> from acefraud import BulletPlaybook
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
        check_share("similarity_threshold", similarity_threshold, above_zero=True)
        self.similarity_threshold = similarity_threshold
        self._least_likeness = max(0.0, similarity_threshold - ROUNDING)

    def __repr__(self) -> str:
        return f"Curator(similarity_threshold={self.similarity_threshold:g})"

    def merge_bullet(
        self,
        content: str,
        node: str,
        playbook: BulletPlaybook,
        source: Source | str = Source.MANUAL,
        *,
        who: str = THE_ENGINE,
        why: str = "",
        **details: Unpack[BulletDetails],
    ) -> str | None:
        """Add the bullet and return its id, or None if it is a duplicate or a person retired it.

        A bullet that the engine itself retired is revived under its old id. If another process changes a bullet
        meanwhile, the merge starts again. Words from a reflector or a playbook carry what was measured of them; details
        given here take precedence: `condition`, `argues`, `evidence`, `weight`, `problem_types` and `status`.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> new = Curator().merge_bullet("VPN and a new device: decline", "fraud_detection", playbook, source="online")
        >>> str(playbook.get_bullet(new).condition), str(playbook.get_bullet(new).source)
        ('new_device is true and vpn is true', 'online')
        """
        check_type("playbook", playbook, BulletPlaybook, "a BulletPlaybook")
        return self._merge(NewBullet(content, source, why=why, **details), node, playbook, who)

    def _merge(self, new: NewBullet, node: str, playbook: BulletPlaybook, who: str) -> str | None:
        words = new.content
        if isinstance(words, MeasuredText):
            return playbook.run_unit_of_work(
                lambda: self._merge_measured(words, new, node, playbook, who), who=who, why=new.why
            )
        if new.condition is None or new.argues is None:
            reading = read_bullet_with(words, playbook.vocabulary())
            new = replace(new, condition=new.condition or reading.condition, argues=new.argues or reading.argues)
        return playbook.change(lambda: self._merged(new, node, playbook, who), who=who, why=new.why)

    def _merge_measured(
        self, words: MeasuredText, new: NewBullet, node: str, playbook: BulletPlaybook, who: str
    ) -> str | None:
        """Merge a bullet with what its words carry; with its weight only if that fits the other weights."""
        fit = words.fit if words.fit is not None and _fits_in(words.fit, node, playbook) else None
        measured = words.bullet
        whole = replace(
            new,
            content=str(words),
            condition=new.condition or measured.condition,
            argues=new.argues or measured.argues,
            evidence=new.evidence or measured.evidence,
            weight=measured.weight if new.weight is None and fit is not None else new.weight,
            problem_types=new.problem_types or measured.problem_types,
        )
        merged = self._merge(whole, node, playbook, who)
        if fit is not None:
            _use_fit(fit, node, playbook)
        return merged

    def _merged(self, new: NewBullet, node: str, playbook: BulletPlaybook, who: str) -> Change[str | None]:
        """The change on the current revision. It depends on every bullet, because any of them may be a duplicate."""
        same = self.said_already(new, node, playbook)
        if same is None:
            added = plan_addition(playbook, new, node, who=who)
            return Change(added.result, added.payloads)
        if same.status is not Status.RETIRED or same.status_by != THE_ENGINE:
            return Change(None)
        edited = plan_edit(playbook, same.id, new)
        why = f"revived: {new.why}" if new.why else "revived"
        back = StatusChanged(bullet_id=same.id, status=new.status, reason=why)
        return Change(same.id, (*edited.payloads, back))

    def merge_bullets(
        self, new: Sequence[NewBullet], node: str, playbook: BulletPlaybook, *, who: str = THE_ENGINE, why: str = ""
    ) -> list[str | None]:
        """Merge bullets one after another and write all changes together, or none. Returns what `merge_bullet` would.

        >>> from acefraud import BulletPlaybook
        >>> from acefraud.core.bullet import NewBullet
        >>> playbook = BulletPlaybook()
        >>> new = [NewBullet("amount > $1000 = DECLINE"), NewBullet("Amount > $1,000 = DECLINE")]
        >>> first, second = Curator().merge_bullets(new, "fraud_detection", playbook)
        >>> playbook.get_bullet(first).content, second
        ('amount > $1000 = DECLINE', None)
        """
        return playbook.run_unit_of_work(
            lambda: [self._merge(bullet, node, playbook, who) for bullet in new], who=who, why=why
        )

    def said_already(self, new: NewBullet | Bullet, node: str, playbook: BulletPlaybook) -> Bullet | None:
        """The bullet of a node that says the same: the first in use, or else the first retired one.

        The result is that of `duplicate_of`, but only likely bullets are compared closely.

        >>> from acefraud import Bullet, BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> known = playbook.add_bullet("amount > $1000 = DECLINE")
        >>> again = Bullet(id="new", content="Amount > $1,000 = DECLINE")
        >>> Curator().said_already(again, "fraud_detection", playbook).id == known
        True
        """
        likely = self._candidates(new, node, playbook)
        return self.duplicate_of(new, sorted(likely, key=lambda bullet: bullet.status is Status.RETIRED))

    def _candidates(self, new: NewBullet | Bullet, node: str, playbook: BulletPlaybook) -> list[Bullet]:
        """The bullets that may say the same, judged by condition or by words, in order."""
        table = playbook.snapshot().table
        number = table.node(node)
        if number is None:
            return []
        rows = np.flatnonzero((table.columns["node"] == number) & ~opposed_rows(table, new.argues)).tolist()
        facts, same_facts = table.wording.facts, []
        if new.condition is not None:
            mine = new.condition.facts
            same_facts = [row for row in rows if facts[row] == mine]
            rows = [row for row in rows if not facts[row]]
        texts = [table.wording.lower_case[row] for row in rows]
        # The Indel similarity is an upper bound of what `alike` compares.
        least, text = self._least_likeness, new.content.lower()
        bounds = cdist([text], texts, scorer=Indel.normalized_similarity, score_cutoff=least, workers=1)[0]
        alike = [row for row, bound in zip(rows, bounds.tolist(), strict=True) if bound > 0]
        return [table.bullets[row] for row in sorted(same_facts + alike)]

    def duplicate_of(self, new: NewBullet | Bullet, existing: Iterable[Bullet]) -> Bullet | None:
        """The first bullet that says the same, if any."""
        for bullet in existing:
            if opposed(bullet.argues, new.argues) or _ordered(bullet.policy) is not _ordered(new.policy):
                continue
            if new.condition is not None and bullet.condition is not None:
                if new.condition == bullet.condition:
                    return bullet
                if not nearly_equal(new.condition, bullet.condition):
                    continue
            if self.alike(new.content, bullet.content):
                return bullet
        return None

    def alike(self, one: str, other: str) -> bool:
        """Whether the case-insensitive `SequenceMatcher` ratio exceeds the threshold.

        Matching blocks form a common subsequence, so the Indel similarity is an upper bound of the ratio. It rules out
        most pairs at a fraction of the cost.

        >>> Curator().alike("New device and VPN: decline", "new device and a VPN: decline")
        True
        """
        a, b = one.lower(), other.lower()
        if Indel.normalized_similarity(a, b, score_cutoff=self._least_likeness) == 0:
            return False
        return SequenceMatcher(None, a, b).ratio() > self.similarity_threshold


def _ordered(policy: Policy | None) -> Verdict | None:
    """What a policy decides. Evidence never says the same as a policy."""
    return None if policy is None else policy.verdict


def nearly_equal(one: Condition, other: Condition) -> bool:
    """Whether two conditions make the same tests with nearly the same figures."""
    if len(one.parts) != len(other.parts):
        return False
    return all(_nearly_same(mine, theirs) for mine, theirs in zip(one.parts, other.parts, strict=True))


def _nearly_same(mine: Part, theirs: Part) -> bool:
    if mine == theirs or not isinstance(mine, Test) or not isinstance(theirs, Test):
        return mine == theirs
    if not isinstance(mine.value, float) or not isinstance(theirs.value, float):
        return False
    same_test = (mine.fact, mine.op) == (theirs.fact, theirs.op)
    return same_test and math.isclose(mine.value, theirs.value, rel_tol=FIGURE_THAT_MATTERS)


def _fits_in(fit: Fit, node: str, playbook: BulletPlaybook) -> bool:
    """Whether a fit covers all weighted bullets of a node and is no older: weights of two fits cannot be mixed."""
    snapshot = playbook.snapshot()
    current = snapshot.calibration(node)
    if current is not None and current.cases > fit.calibration.cases:
        return False
    return all(bullet.weight is None or bullet.condition in fit.weights for bullet in snapshot.for_node(node))


def _use_fit(fit: Fit, node: str, playbook: BulletPlaybook) -> None:
    """Set the weights and the calibration of a node from a fit. The decision threshold stays."""
    snapshot = playbook.snapshot()
    current = snapshot.calibration(node)
    new = fit.calibration.model_copy(update={"threshold": current.threshold}) if current else fit.calibration
    fitted = [bullet for bullet in snapshot.for_node(node) if bullet.condition in fit.weights]
    weights = {bullet.id: fit.weights[bullet.condition] for bullet in fitted if bullet.condition is not None}
    if new != current or any(bullet.weight != weights[bullet.id] for bullet in fitted):
        playbook.record([Recalibrated(node=node, calibration=new, weights=weights)])
