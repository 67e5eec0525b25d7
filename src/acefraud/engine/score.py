"""The embedded engine over many transactions at once: the probabilities of `decide_all`, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet
from acefraud.core.bullet_table import BulletTable, RowSet, unpacked
from acefraud.core.calibration import Calibration
from acefraud.core.comparison import sql_float
from acefraud.core.condition import Condition, Part
from acefraud.core.decision import ReasonKind
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transactions import Transactions
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr
from acefraud.engine.options import LearnerOptions
from acefraud.facts.extraction import facts_in
from acefraud.roles.embedded.agent import weights_of
from acefraud.rules.induction.fitting import probabilities
from acefraud.rules.scorecard import GENERAL, score_in, scorecard
from acefraud.selection.bullet_stats import stats_of
from acefraud.selection.draws import key_for
from acefraud.selection.hybrid import HybridSelector
from acefraud.support.arrays import BoolArray, FloatArray

_BLOCK = 16_384
"""Rows that are summed at once: their columns then stay in the processor's cache."""

_SUMMED = 50
"""Terms in one sum in SQL. Databases limit how deep an expression may be nested, and each sign nests it."""


@dataclass(frozen=True, slots=True)
class Term:
    """What is added to the log-odds of fraud where a condition holds."""

    condition: Condition
    weight: float
    kind: ReasonKind
    words: str
    bullet: Bullet | None = None
    """None for a line of general knowledge."""


@dataclass(frozen=True)
class AdditiveScore:
    """Log-odds of fraud = level + the weight of every term whose condition holds.

    Nothing is drawn, so the score of a row depends on its facts alone.
    """

    calibration: Calibration
    terms: tuple[Term, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, node: str) -> AdditiveScore:
        """The score that a snapshot of a playbook stands for."""
        calibration = snapshot.calibration(node) or GENERAL
        bullets = [bullet for bullet in snapshot.for_node(node) if bullet.condition is not None]
        weights = weights_of(bullets, calibration.base_rate).tolist()
        return cls(calibration, (*_bullet_terms(bullets, weights), *_knowledge_terms(calibration)))

    @property
    def facts(self) -> frozenset[str]:
        """The names of the facts that it looks at."""
        return frozenset().union(*(term.condition.facts for term in self.terms))

    def sums(self, facts: FactTable) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """The log-odds of each row, and how many bullets count for it. Every row is summed in the same order."""
        margin = np.full(len(facts), self.calibration.level)
        cited = np.zeros(len(facts), dtype=np.int64)
        for start in range(0, len(facts), _BLOCK):
            block = slice(start, start + _BLOCK)
            sums, counts = margin[block], cited[block]
            for term, mask in self.holding(facts.take(block)):
                np.add(sums, term.weight, out=sums, where=mask)
                if term.bullet is not None:
                    counts += mask
        return margin, cited

    def holding(self, facts: FactTable) -> Iterator[tuple[Term, BoolArray]]:
        """Each term, with the rows in which its condition holds."""
        distinct, places = self._parts
        masks = [part.in_table(facts) for part in distinct]
        for term, (first, *others) in zip(self.terms, places, strict=True):
            mask = masks[first]
            for other in others:
                mask = mask & masks[other]
            yield term, mask

    @cached_property
    def _parts(self) -> tuple[list[Part], list[list[int]]]:
        """The distinct parts of all conditions, and for each term the places of its own: bullets share tests."""
        place: dict[Part, int] = {}
        for term in self.terms:
            for part in term.condition.parts:
                place.setdefault(part, len(place))
        return list(place), [[place[part] for part in term.condition.parts] for term in self.terms]

    def to_sql(self) -> str:
        """The log-odds as an SQL expression over columns named like the facts, NULL where a fact is unknown."""
        parts = [f"CASE WHEN {term.condition.to_sql()} THEN {sql_float(term.weight)} ELSE 0 END" for term in self.terms]
        sums = [" +\n    ".join(parts[at : at + _SUMMED]) for at in range(0, len(parts), _SUMMED)]
        return "\n  + ".join([sql_float(self.calibration.level), *(f"({one})" for one in sums)])


def _bullet_terms(bullets: Sequence[Bullet], weights: Sequence[float]) -> Iterator[Term]:
    for bullet, weight in zip(bullets, weights, strict=True):
        if weight and bullet.condition is not None:
            yield Term(bullet.condition, weight, ReasonKind.BULLET, bullet.shown, bullet)


def _knowledge_terms(calibration: Calibration) -> Iterator[Term]:
    scale, fitted = calibration.knowledge_scale, calibration.points
    for point in scorecard() if scale > 0 else ():
        weight = scale * fitted.get(point.line, point.points)
        if weight:
            yield Term(point.condition, weight, ReasonKind.KNOWLEDGE, point.words)


@dataclass(frozen=True, slots=True, repr=False)
class Scores(ShortRepr):
    """The scores of many transactions."""

    probabilities: npt.NDArray[np.float64]
    """Of fraud."""
    cited: npt.NDArray[np.int64]
    """How many bullets count for each."""
    log_odds: npt.NDArray[np.float64]
    """Of fraud: what the probabilities are made from."""

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(f"{len(self):,} transaction{'' if len(self) == 1 else 's'}")
        if len(self):
            low, mean, high = self.probabilities.min(), self.probabilities.mean(), self.probabilities.max()
            yield "probabilities", Plain(f"{low:.3f} to {high:.3f} (mean {mean:.3f})")
            yield "cited", Plain(f"{self.cited.mean():.1f} on average")


def score(
    rows: Transactions,
    snapshot: Snapshot,
    selector: HybridSelector | None,
    options: LearnerOptions,
    *,
    known: FactTable | None = None,
) -> Scores:
    """Score transactions with the bullets that the selector picks for each; without a selector, with all that fire.

    ``known`` are their facts, if these have been read already.
    """
    facts = facts_in(rows) if known is None else known
    if selector is None:
        margin, cited = AdditiveScore.of(snapshot, options.node).sums(facts)
        return Scores(probabilities(margin), cited, margin)
    bullets = [bullet for bullet in snapshot.for_node(options.node) if bullet.condition is not None]
    fitted = snapshot.calibration(options.node)
    calibration = fitted or GENERAL
    if len(facts) < len(bullets):  # then it is faster to look at one row after another
        _, holds = snapshot.table.wording.conditions.match_all(facts.rows())
        fired = unpacked(holds, len(snapshot.table))[:, [snapshot.table.row(bullet.id) for bullet in bullets]]
    else:
        fired = fired_in([bullet.condition for bullet in bullets if bullet.condition is not None], facts)
    base_rate = fitted.base_rate if fitted else 0.5  # as in a selection
    ids = rows.ids.tolist()
    fired = cited_in(selector, bullets, fired, base_rate, options.n_bullets, ids=ids, revision=snapshot.revision)
    weights = weights_of(bullets, calibration.base_rate)
    margin = calibration.level + fired @ weights
    if calibration.knowledge_scale > 0:
        margin += calibration.knowledge_scale * score_in(facts, calibration.points)
    return Scores(probabilities(margin), (fired & (weights != 0)).sum(axis=1), margin)


def fired_in(conditions: Sequence[Condition], rows: FactTable) -> npt.NDArray[np.bool_]:
    """Where each condition holds: a row for each transaction, a column for each condition."""
    fired = np.zeros((len(rows), len(conditions)), dtype=np.bool_)
    for place, condition in enumerate(conditions):
        fired[:, place] = condition.holds_in(rows)
    return fired


def cited_in(
    selector: HybridSelector,
    bullets: Sequence[Bullet],
    fired: BoolArray,
    base_rate: float,
    wanted: int,
    *,
    ids: Sequence[str] | None = None,
    revision: int = 0,
) -> BoolArray:
    """Which of the bullets of a node that fire (a column for each) the selector picks for each row.

    Without exploration the choice depends only on which bullets fire, so it is made once for each set of them.
    """
    cited = fired.copy()
    table = BulletTable.of(bullets)
    doubtful = stats_of(table, base_rate).success < selector.quality_threshold
    # The other rows cite all that fire.
    rows = np.flatnonzero((fired.sum(axis=1) > wanted) | fired[:, doubtful].any(axis=1))
    if not len(rows):
        return cited
    packed = np.packbits(fired[rows], axis=1)
    sets = np.column_stack([packed, _row_numbers(len(rows))]) if selector.explore else packed
    _, first, which = np.unique(sets, axis=0, return_index=True, return_inverse=True)
    distinct = rows[first]
    keys = [
        key_for(selector.seed, str(row) if ids is None else ids[row], revision) if selector.explore else None
        for row in distinct
    ]
    chosen = selector.pick_fired(table, [RowSet(fired[row]).bits for row in distinct], base_rate, wanted, keys)
    picked = np.zeros((len(distinct), len(bullets)), dtype=np.bool_)
    picked[np.nonzero(chosen >= 0)[0], chosen[chosen >= 0]] = True
    cited[rows] = picked[which.reshape(-1)]
    return cited


def _row_numbers(count: int) -> npt.NDArray[np.uint8]:
    """A different row of bytes for each number."""
    return np.arange(count, dtype=np.uint64).view(np.uint8).reshape(count, 8)
