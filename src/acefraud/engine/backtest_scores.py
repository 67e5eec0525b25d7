"""A playbook on labelled history: what it would have decided, and what each bullet would have shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Evidence
from acefraud.core.condition import Condition
from acefraud.core.table import FactTable
from acefraud.core.transactions import Cases, Transactions
from acefraud.engine.entity_memory import memory_for
from acefraud.engine.options import LearnerOptions
from acefraud.engine.score import Scores, score
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.induction.out_of_time import record_of
from acefraud.rules.scorecard import GENERAL
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook


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
