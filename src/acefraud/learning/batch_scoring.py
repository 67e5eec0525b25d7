"""The embedded engine over many transactions at once: the probabilities of `decide_all`, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.arrays import BoolArray
from acefraud.core.bullet import Bullet
from acefraud.core.bullet_table import BulletTable, RowSet
from acefraud.core.condition import Condition
from acefraud.core.condition_index import unpacked
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transactions import Transactions
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr
from acefraud.facts.extraction import facts_in
from acefraud.learning.additive_score import AdditiveScore
from acefraud.learning.options import LearnerOptions
from acefraud.roles.embedded.agent import weights_of
from acefraud.rules.induction.fitting import probabilities
from acefraud.rules.scorecard import GENERAL, score_in
from acefraud.selection.bullet_stats import key_for, stats_of
from acefraud.selection.hybrid import HybridSelector


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
