"""Whole decisions beside LightGBM and river, on the same facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from acefraud.core.bullet import Bullet
from acefraud.core.condition import Condition
from acefraud.core.events import Recalibrated
from acefraud.core.rules import Rules
from acefraud.core.scoring import Calibration, log_odds
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Transaction
from acefraud.datasets.columns import LabelledColumns
from acefraud.evaluation.quality.encoding import CommonWords, coded_matrix, row_dicts
from acefraud.evaluation.quality.peers import LightGbm
from acefraud.evaluation.quality.river_peers import AdaptiveForest
from acefraud.evaluation.speed.curation import filled
from acefraud.evaluation.speed.figures import Figures
from acefraud.evaluation.speed.measuring import deciding, deciding_and_recording, deciding_together
from acefraud.evaluation.speed.rules import LabelledRows, firing_bullets, world_rows
from acefraud.evaluation.speed.timing import Effort, Work, interleaved
from acefraud.evaluation.speed.workloads import NODE
from acefraud.learning.learner import Learner
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook

TOGETHER = 256
TIMED = 32
RECORDED_ALONE = 64
RECORDED_ROUNDS = 5
TRAINED_ON = 0.6
"""The first rows are learnt from, the others decided."""

T = TypeVar("T")
Matrix = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Peers:
    """Other learners after training, and the rows to be decided as they take them."""

    classifier: Any
    booster: Any
    forest: Any
    matrix: Matrix
    dicts: list[dict[str, float | str]]

    def works(self) -> dict[str, Sequence[Work]]:
        """All rows one by one, some at a time, and all at once."""
        rows = [self.matrix[place : place + 1] for place in range(len(self.matrix))]
        return {
            "lightgbm": [partial(_each, self.classifier.predict_proba, some) for some in _parts(rows)],
            "lightgbm_booster": [partial(_each, self.booster.predict, some) for some in _parts(rows)],
            "river_arf": [partial(_each, self.forest.predict_proba_one, some) for some in _parts(self.dicts)],
            "lightgbm_batch": [partial(self.classifier.predict_proba, self.matrix)],
        }


def _parts(rows: Sequence[T]) -> list[Sequence[T]]:
    """Rows that are timed together: one by one the clock would count, all of them are seldom undisturbed."""
    return [rows[start : start + TIMED] for start in range(0, len(rows), TIMED)]


def _each(work: Any, rows: Sequence[Any]) -> None:
    for row in rows:
        work(row)


def trained_peers(rows: LabelledRows, decided: int, seed: int) -> Peers:
    """Train them on the first rows; the rows decided are the next."""
    table = FactTable(rows.facts)
    first = round(TRAINED_ON * len(rows.labels))
    train = LabelledColumns(
        name="world",
        facts=table.take(slice(0, first)),
        labels=np.array(rows.labels[:first]),
        ids=np.empty(0, dtype=object),
    )
    boosting, forest = LightGbm(seed), AdaptiveForest(seed)
    boosting.fit(train)
    forest.learn(train)
    test = table.take(slice(first, first + decided))
    common = CommonWords()
    common.hear(table)
    model = boosting.model
    matrix = np.ascontiguousarray(coded_matrix(test)[0])
    return Peers(model, model.booster_, forest.model, matrix, row_dicts(test, common))


# --- ours --------------------------------------------------------------------------------------------------------


def playbook_of(bullets: Sequence[Bullet], base_rate: float, playbook: BulletPlaybook | None = None) -> BulletPlaybook:
    """A playbook of these bullets with a fitted frame."""
    playbook = filled(bullets, playbook)
    frame = Calibration(intercept=log_odds(base_rate), base_rate=base_rate, knowledge_scale=0.5, cases=1)
    playbook.record([Recalibrated(node=NODE, calibration=frame)])
    return playbook


def measure_deciding(figures: Figures, bullets: int, seed: int, effort: Effort, folder: Path) -> None:
    """Decisions one by one and in batches, without and with the ledger, beside the others."""
    rows = world_rows(seed)
    book = firing_bullets(bullets, seed)
    first = round(TRAINED_ON * len(rows.labels))
    transactions = rows.transactions[first : first + TOGETHER]
    peers = trained_peers(rows, len(transactions), seed)
    learner = Learner(playbook_of(book, rows.base_rate))
    snapshot = learner.playbook.snapshot()
    seconds = interleaved(
        {
            "decision": [deciding(learner, some, snapshot) for some in _parts(transactions)],
            "decision_batch": [deciding_together(learner, transactions, snapshot)],
            **peers.works(),
        },
        effort,
    )
    with open_playbook(folder / "decisions.db") as kept:
        learner = Learner(playbook_of(book, rows.base_rate, kept))
        seconds |= _recorded(learner, transactions, min(RECORDED_ROUNDS, effort.most))
    _note(figures, seconds, len(transactions))
    _note_firing(figures, book, rows)
    _conditions(figures, [one.condition for one in book if one.condition is not None], rows.facts[first:], effort)


def _recorded(learner: Learner, transactions: Sequence[Transaction], turns: int) -> dict[str, float]:
    """Decisions that are written to a file. What was decided once is not decided again, so each round has new ones."""
    rounds = [_renamed(transactions, turn) for turn in range(2 * (turns + 1))]
    alone, together = iter(rounds[::2]), iter(rounds[1::2])

    def one_by_one() -> None:
        deciding_and_recording(learner, [[each] for each in next(alone)[:RECORDED_ALONE]])()

    def all_at_once() -> None:
        deciding_and_recording(learner, [next(together)])()

    return interleaved(
        {"decision_with_ledger": [one_by_one], "decision_with_ledger_batch": [all_at_once]},
        Effort(0.0, turns, turns),
    )


def _renamed(transactions: Sequence[Transaction], turn: int) -> list[Transaction]:
    return [Transaction(id=f"{turn}-{each.id}", facts=each.facts) for each in transactions]


_PEERS = {
    "lightgbm": "LGBMClassifier.predict_proba of one row at a time",
    "lightgbm_booster": "the bare Booster.predict of one row at a time",
    "river_arf": "ARFClassifier.predict_proba_one of river",
    "lightgbm_batch": "LGBMClassifier.predict_proba of all rows at once",
}
_ONE_BY_ONE = ("decision", "lightgbm", "lightgbm_booster", "river_arf")
_OURS = {
    "decision": ("lightgbm", "lightgbm_booster", "river_arf"),
    "decision_batch": ("lightgbm", "lightgbm_booster", "lightgbm_batch"),
    "decision_with_ledger": ("lightgbm",),
    "decision_with_ledger_batch": ("lightgbm",),
}


def _note(figures: Figures, seconds: dict[str, float], decided: int) -> None:
    """Seconds for one decision each, and how they compare."""
    counts = {"decision_with_ledger": RECORDED_ALONE} | dict.fromkeys(_ONE_BY_ONE, TIMED)
    each = {name: least / counts.get(name, decided) for name, least in seconds.items()}
    for name, least in each.items():
        figures.time(name, least)
    for ours, theirs in _OURS.items():
        for peer in theirs:
            figures.faster(f"{ours}.{peer}", each[peer], each[ours], _PEERS[peer])


def _note_firing(figures: Figures, book: Sequence[Bullet], rows: LabelledRows) -> None:
    firing = [
        sum(one.condition is not None and one.condition.holds(facts) for one in book) for facts in rows.facts[:99]
    ]
    figures.about["decisions"] = {
        "bullets": len(book),
        "facts": len(rows.facts[0]),
        "firing": sum(firing) / len(firing),
        "trained_on": round(TRAINED_ON * len(rows.labels)),
    }


def _conditions(
    figures: Figures, conditions: Sequence[Condition], facts: Sequence[dict[str, FactValue]], effort: Effort
) -> None:
    """Which conditions hold, compiled together and asked one by one."""
    rules = Rules.of(conditions)
    some = facts[:16]
    seconds = interleaved(
        {
            "standing": [partial(rules.standing, one) for one in some],
            "truth": [partial(_truths, conditions, one) for one in some],
        },
        effort,
    )
    for name, least in seconds.items():
        figures.time(name, least)
    figures.faster(
        f"standing_{len(conditions)}.truth", seconds["truth"], seconds["standing"], "asking each condition by itself"
    )


def _truths(conditions: Sequence[Condition], facts: dict[str, FactValue]) -> list[bool | None]:
    return [condition.truth(facts) for condition in conditions]
