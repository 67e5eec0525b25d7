"""The embedded engine over many transactions at once: the probabilities of `decide_all`, as columns.

`log_odds_from` in `roles/embedded/agent.py` is the sum that every score and every decision comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Evidence
from acefraud.core.bullet_table import BulletTable, RowSet, unpacked
from acefraud.core.calibration import Calibration
from acefraud.core.comparison import sql_float
from acefraud.core.condition import Condition, Part
from acefraud.core.decision import ReasonKind
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transactions import Cases, Transactions
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr
from acefraud.engine.entity_memory import memory_for
from acefraud.engine.options import LearnerOptions
from acefraud.facts.extraction import facts_in
from acefraud.roles.embedded.agent import addable, knowledge_of, log_odds_from
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.induction.out_of_time import record_of
from acefraud.rules.scorecard import GENERAL
from acefraud.selection.bullet_stats import key_for, stats_of
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.exact_math import sigmoid_of

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


@dataclass(frozen=True, eq=False)
class AdditiveScore:
    """Log-odds of fraud = level + the weight of every term whose condition holds.

    Nothing is drawn, so the score of a row depends on its facts alone.
    """

    calibration: Calibration
    table: BulletTable
    rows: IntArray
    """The rows of the bullets that may count: those of a node that are in use and have a condition."""
    weights: FloatArray
    """Of these bullets."""

    @classmethod
    def of(cls, snapshot: Snapshot, node: str) -> AdditiveScore:
        """The score that a snapshot of a playbook stands for."""
        table, calibration = snapshot.table, snapshot.calibration(node) or GENERAL
        rows = np.flatnonzero(table.in_use(table.node(node)).mask & table.columns["conditioned"])
        return cls(calibration, table, rows, stats_of(table, calibration.base_rate).weights[rows])

    @cached_property
    def bullets(self) -> list[Bullet]:
        """The bullets that may count."""
        return [self.table.bullets[row] for row in self.rows]

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All that moves a score: first bullets, then lines of general knowledge."""
        pairs = zip(self.bullets, self.weights.tolist(), strict=True)
        bullets = (
            Term(bullet.condition, weight, ReasonKind.BULLET, bullet.shown, bullet)
            for bullet, weight in pairs
            if weight and bullet.condition is not None
        )
        knowledge = (
            Term(point.condition, weight, ReasonKind.KNOWLEDGE, point.words)
            for point, weight in knowledge_of(self.calibration)
            if weight
        )
        return (*bullets, *knowledge)

    @property
    def facts(self) -> frozenset[str]:
        """The names of the facts that it looks at."""
        return frozenset().union(*(term.condition.facts for term in self.terms))

    def fired(self, facts: FactTable) -> BoolArray:
        """Where the condition of each bullet holds: a row for each transaction, a column for each bullet."""
        if len(facts) < len(self.rows):  # then it is faster to look at one row after another
            _, holds = self.table.wording.conditions.match_all(facts.rows())
            return unpacked(holds, len(self.table))[:, self.rows]
        fired = np.zeros((len(facts), len(self.rows)), dtype=np.bool_)
        for index, bullet in enumerate(self.bullets):
            if bullet.condition is not None:
                fired[:, index] = bullet.condition.holds_in(facts)
        return fired

    def scores(self, facts: FactTable, cited: BoolArray | None = None) -> Scores:
        """The scores of rows with these facts, if all bullets that fire count, or only those that are `cited`."""
        log_odds, counts = np.empty(len(facts)), np.zeros(len(facts), dtype=np.int64)
        for start in range(0, len(facts), _BLOCK):
            block = slice(start, start + _BLOCK)
            amounts = self._amounts(facts.take(block), None if cited is None else cited[block], counts[block])
            log_odds[block] = log_odds_from(amounts, self.calibration)
        return Scores(sigmoid_of(log_odds), counts, log_odds)

    def _amounts(
        self, facts: FactTable, cited: BoolArray | None, counts: npt.NDArray[np.int64]
    ) -> Iterator[FloatArray]:
        """What is added to the log-odds of each row. Bullets are counted in passing."""
        terms = self.terms
        if cited is not None:
            terms = tuple(term for term in terms if term.bullet is None)
            for weight, mask in zip(self.weights.tolist(), cited.T, strict=True):
                if weight:
                    counts += mask
                    yield np.where(mask, addable(weight), 0.0)
        for term, mask in self.holding(facts, terms):
            if term.bullet is not None:
                counts += mask
            yield np.where(mask, addable(term.weight), 0.0)
        if self.calibration.recent is not None:
            yield np.full(len(facts), addable(self.calibration.recent.shift))

    def holding(self, facts: FactTable, terms: Iterable[Term] | None = None) -> Iterator[tuple[Term, BoolArray]]:
        """Each term, or only some of them, with the rows in which its condition holds."""
        masks: dict[Part, BoolArray] = {}  # bullets share tests
        for term in self.terms if terms is None else terms:
            for part in term.condition.parts:
                if part not in masks:
                    masks[part] = part.in_table(facts)
            yield term, reduce(np.logical_and, [masks[part] for part in term.condition.parts])

    def to_sql(self) -> str:
        """The log-odds as an SQL expression over columns named like the facts, NULL where a fact is unknown."""
        parts = [f"CASE WHEN {term.condition.to_sql()} THEN {sql_float(term.weight)} ELSE 0 END" for term in self.terms]
        sums = [" +\n    ".join(parts[at : at + _SUMMED]) for at in range(0, len(parts), _SUMMED)]
        return "\n  + ".join([sql_float(self.calibration.level), *(f"({part})" for part in sums)])


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
    additive = AdditiveScore.of(snapshot, options.node)
    if selector is None:
        return additive.scores(facts)
    fitted = snapshot.calibration(options.node)
    base_rate = fitted.base_rate if fitted else 0.5  # as in a selection
    ids, revision = rows.ids.tolist(), snapshot.revision
    fired = additive.fired(facts)
    cited = cited_in(selector, additive.bullets, fired, base_rate, options.n_bullets, ids=ids, revision=revision)
    return additive.scores(facts, cited)


def cited_in(
    selector: HybridSelector,
    bullets: Sequence[Bullet],
    fired: BoolArray,
    base_rate: float,
    wanted: int,
    *,
    ids: Sequence[str],
    revision: int,
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
    if selector.explore:  # a draw of its own for each row
        packed = np.column_stack([packed, np.arange(len(rows), dtype=np.uint64).view(np.uint8).reshape(-1, 8)])
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    distinct = rows[first]
    keys = [key_for(selector.seed, ids[row], revision) if selector.explore else None for row in distinct]
    chosen = selector.pick_fired(table, [RowSet(fired[row]).bits for row in distinct], base_rate, wanted, keys)
    picked = np.zeros((len(distinct), len(bullets)), dtype=np.bool_)
    picked[np.nonzero(chosen >= 0)[0], chosen[chosen >= 0]] = True
    cited[rows] = picked[which.reshape(-1)]
    return cited


@dataclass(frozen=True, slots=True)
class BulletOnHistory:
    """A bullet, and what was measured of it on labelled history."""

    bullet: Bullet
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class BacktestScores:
    """The scores of a playbook on labelled history. Nothing is learnt from it and nothing is recorded."""

    facts: FactTable
    """What each case would have been decided on."""
    labels: npt.NDArray[np.bool_]
    scores: Scores
    threshold: float
    bullets: tuple[BulletOnHistory, ...]
    without_label_facts: npt.NDArray[np.float64] | None = None
    """The probabilities if the facts that depend on labels are unknown; None if there is no history."""
    label_delay: str = ""
    """How long labels take to arrive, by the mapping; empty if there is no history."""


def backtest_scores(
    book: BulletPlaybook, cases: Cases, waiting: Transactions, selector: HybridSelector | None, options: LearnerOptions
) -> BacktestScores:
    """Score labelled cases as they would have been decided; without a selector, every bullet that fires counts.

    Their history continues what the playbook remembers.
    """
    snapshot = book.snapshot()
    memory = memory_for(snapshot.mapping)
    if memory is not None:
        cases = memory.backtested(cases, waiting, book.ledger)
    known = LabelledFacts.of(cases)

    def scored(facts: FactTable) -> Scores:
        return score(cases.transactions, snapshot, selector, options, known=facts)

    measured = [
        BulletOnHistory(bullet, measured_on(bullet.condition, known))
        for bullet in book.get_bullets_for_node(options.node)
        if bullet.condition is not None
    ]
    return BacktestScores(
        known.facts,
        known.labels,
        scored(known.facts),
        (snapshot.calibration(options.node) or GENERAL).threshold,
        tuple(measured),
        None if memory is None else scored(known.facts.without(memory.plan.label_facts)).probabilities,
        "" if memory is None else memory.plan.label_delay,
    )


def measured_on(condition: Condition, known: LabelledFacts) -> Evidence:
    """What labelled cases say of a condition."""
    record = record_of(condition.holds_in(known.facts), known.labels)
    return Evidence(learnt=record, base_rate=float(known.labels.mean()))
