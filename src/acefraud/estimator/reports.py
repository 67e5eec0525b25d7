"""What a person reads of a fitted classifier: its rules, the reasons of its scores, and the score in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud import FactTable, Learner, SchemaMapping

LEVEL = "level"
"""The kind of the first reason of every row: the log-odds before any bullet fires."""


def reason_columns(learner: Learner, facts: FactTable) -> dict[str, Any]:
    """One row for each reason of each score. The contributions of a row add up to its log-odds of fraud."""
    score = learner.additive_score()
    rows, terms = [np.arange(len(facts))], [np.zeros(len(facts), dtype=np.int64)]
    weights, words, kinds, ids = [score.calibration.level], ["before any bullet fires"], [LEVEL], [""]
    for place, (term, mask) in enumerate(score.holding(facts), start=1):
        fired = np.flatnonzero(mask)
        rows.append(fired)
        terms.append(np.full(len(fired), place))
        weights.append(term.weight)
        words.append(term.words)
        kinds.append(str(term.kind))
        ids.append("" if term.bullet is None else term.bullet.id)
    row, reason = np.concatenate(rows), np.concatenate(terms)
    strength = np.abs(np.array(weights))
    strength[0] = np.inf  # the level stands first
    order = np.lexsort((reason, -strength[reason], row))
    row, reason = row[order], reason[order]
    return {
        "row": row,
        "kind": np.array(kinds, dtype=object)[reason].tolist(),
        "bullet": np.array(ids, dtype=object)[reason].tolist(),
        "reason": np.array(words, dtype=object)[reason].tolist(),
        "contribution": np.array(weights)[reason],
    }


def fact_contributions(learner: Learner, facts: FactTable) -> dict[str, npt.NDArray[np.float64]]:
    """What each fact adds to the log-odds of each row. A rule's weight is shared equally by the facts that it tests."""
    found: dict[str, npt.NDArray[np.float64]] = {}
    for term, mask in learner.additive_score().holding(facts):
        for name in (tested := sorted(term.condition.facts)):
            found.setdefault(name, np.zeros(len(facts)))[mask] += term.weight / len(tested)
    return found


def importances(learner: Learner, mapping: SchemaMapping, columns: Sequence[str]) -> npt.NDArray[np.float64]:
    """The share of each column in how far the remembered cases are apart from their mean; zeros if nothing tells."""
    total = dict.fromkeys(columns, 0.0)
    for fact, added in fact_contributions(learner, learner.remembered().facts).items():
        made_from = mapping.columns_of(fact, columns)
        for column in made_from:
            total[column] += float(np.abs(added - added.mean()).mean()) / len(made_from)
    found = np.array([total[column] for column in columns])
    return found / found.sum() if found.any() else found


def score_query(learner: Learner, table: str) -> str:
    """A query that adds the log-odds and the probability of fraud to a table of facts."""
    name = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    score = learner.additive_score().to_sql()
    return (
        f"SELECT scored.*, 1e0 / (1e0 + EXP(-scored.log_odds)) AS probability\n"
        f"FROM (\nSELECT facts.*,\n  {score}\n  AS log_odds\nFROM {name} AS facts\n) AS scored"
    )
