"""The embedded engine over many transactions at once: the probabilities of `decide_all`, as columns.

`log_odds_from` in `roles/embedded/agent.py` is the sum that every score and every decision comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Evidence
from acefraud.core.bullet_table import BulletTable, Words, counts_of, packed_flags, sums_of
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
from acefraud.rules.scorecard import GENERAL, line_sets
from acefraud.selection.bullet_stats import stats_of
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import BoolArray, FloatArray
from acefraud.support.exact_math import sigmoid_of

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
    weights: FloatArray
    """Of all bullets; 0 for those that do not count: of other nodes, retired, policies or without a condition."""

    @classmethod
    def of(cls, snapshot: Snapshot, node: str) -> AdditiveScore:
        """The score that a snapshot of a playbook stands for."""
        table, calibration = snapshot.table, snapshot.calibration(node) or GENERAL
        weights = stats_of(table, calibration.base_rate).weights
        return cls(calibration, table, np.where(table.in_use(table.node(node)).mask, weights, 0.0))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All that moves a score: first bullets, then lines of general knowledge."""
        pairs = zip(self.table.bullets, self.weights.tolist(), strict=True)
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

    def fired(self, facts: FactTable) -> Words:
        """The bullets of all nodes whose condition holds, as a bit set for each transaction."""
        return self.table.wording.conditions.proven_in(facts)

    def scores(self, facts: FactTable, cited: Words | None = None) -> Scores:
        """The scores of rows with these facts, if all bullets that fire count, or only those in bit sets."""
        counted = (self.fired(facts) if cited is None else cited) & packed_flags(self.weights[None] != 0)
        amounts: list[FloatArray] = [sums_of(counted, addable(self.weights))]
        if knowledge := knowledge_of(self.calibration):
            amounts.append(sums_of(line_sets(facts), addable(np.array([weight for _, weight in knowledge]))))
        if self.calibration.recent is not None:
            amounts.append(np.full(len(facts), addable(self.calibration.recent.shift)))
        log_odds = np.asarray(log_odds_from(amounts, self.calibration))
        return Scores(sigmoid_of(log_odds), counts_of(counted), log_odds)

    def holding(self, facts: FactTable) -> Iterator[tuple[Term, BoolArray]]:
        """Each term with the rows in which its condition holds."""
        masks: dict[Part, BoolArray] = {}  # bullets share tests
        for term in self.terms:
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
    cited = additive.fired(facts)
    if selector is not None:
        cited = selector.cite(cited, rows.ids.tolist(), snapshot, node=options.node, n_bullets=options.n_bullets)
    return additive.scores(facts, cited)


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
