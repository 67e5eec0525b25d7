"""What a person reads of a fitted classifier: its rules, the reasons of its scores, and the score in SQL."""

from __future__ import annotations

from typing import Any

import numpy as np

from acefraud import FactTable, Learner

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


def score_query(learner: Learner, table: str) -> str:
    """A query that adds the log-odds and the probability of fraud to a table of facts."""
    name = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    score = learner.additive_score().to_sql()
    return (
        f"SELECT scored.*, 1e0 / (1e0 + EXP(-scored.log_odds)) AS probability\n"
        f"FROM (\nSELECT facts.*,\n  {score}\n  AS log_odds\nFROM {name} AS facts\n) AS scored"
    )
