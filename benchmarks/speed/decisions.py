"""Whole decisions beside LightGBM and river, on the same facts."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from acefraud import BulletPlaybook, Cases, Learner, Transaction, Transactions, open_playbook
from acefraud.evaluation.lightgbm_model import LightGbm
from benchmarks.arrays import Numbers
from benchmarks.ledger import bare_file, inserting
from benchmarks.quality.encodings import CommonWords, row_dicts
from benchmarks.quality.river_peers import AdaptiveForest
from benchmarks.speed.conditions import ConditionBullet, LabelledRows, condition_book, firing_bullets, world_rows
from benchmarks.speed.figures import Figures
from benchmarks.speed.prose import NODE
from benchmarks.speed.timing import Effort, Work, interleaved

TOGETHER = 256
TIMED = 32
RECORDED_ALONE = 64
RECORDED_ROUNDS = 5
TRAINED_ON = 0.6
"""The first rows are learnt from, the others decided."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Peers:
    """Other learners after training, and the rows to be decided as they take them."""

    classifier: Any
    booster: Any
    forest: Any
    matrix: Numbers
    dicts: list[dict[str, float | str]]

    def works(self) -> dict[str, Sequence[Work]]:
        """All rows one by one, some at a time, and all at once."""
        rows = [self.matrix[index : index + 1] for index in range(len(self.matrix))]
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
    first = round(TRAINED_ON * len(rows.labels))
    whole = Cases(Transactions.of(rows.transactions), np.array(rows.labels))
    train, test = whole[:first], whole[first : first + decided]
    boosting, forest = LightGbm(seed), AdaptiveForest(seed)
    boosting.fit(train.facts, train.labels)
    forest.learn(train)
    common = CommonWords()
    common.hear(whole.facts)
    model = boosting.classifier
    matrix = np.ascontiguousarray(boosting.encoding.matrix(test.facts))
    return Peers(model, model.booster_, forest.model, matrix, row_dicts(test.facts, common))


# --- ours --------------------------------------------------------------------------------------------------------


def taught(playbook: BulletPlaybook, book: Sequence[ConditionBullet], rows: LabelledRows) -> Learner:
    """A learner that has studied the first rows, and was given these bullets on top of what it found."""
    learner = Learner(playbook)
    learner.study(rows.cases(round(TRAINED_ON * len(rows.labels))))
    condition_book(book, playbook)
    return learner


def measure_decisions(figures: Figures, bullets: int, seed: int, effort: Effort, folder: Path) -> None:
    """Decisions one by one, in batches and as bare scores, kept in memory and in a file, beside the others."""
    rows = world_rows(seed)
    book = firing_bullets(bullets, seed)
    first = round(TRAINED_ON * len(rows.labels))
    transactions = rows.transactions[first : first + TOGETHER]
    peers = trained_peers(rows, len(transactions), seed)
    learner = taught(BulletPlaybook(), book, rows)
    table = Transactions.of(transactions)
    seconds = interleaved(
        {
            "decision": [_one_by_one(learner, some, effort.most) for some in _parts(transactions)],
            "decision_batch": [_all_at_once(learner, transactions, effort.most)],
            "score_batch": [partial(learner.score_all, table)],
            **peers.works(),
        },
        effort,
    )
    turns = min(RECORDED_ROUNDS, effort.most)
    path = folder / "decisions.db"
    with open_playbook(path) as kept, closing(bare_file(folder / "bare.db")) as bare:
        in_file = taught(kept, book, rows)
        _all_at_once(in_file, transactions, 0)()
        size = figures.about["bytes_of_a_decision"] = _bytes_of_a_decision(path)
        seconds |= interleaved(
            {
                "decision_with_ledger": [_one_by_one(in_file, transactions[:RECORDED_ALONE], turns)],
                "decision_with_ledger_batch": [_all_at_once(in_file, transactions, turns)],
                "bare_insert": [partial(_repeat, inserting(bare, size, rows=1), RECORDED_ALONE)],
                "bare_insert_batch": [inserting(bare, size, rows=TOGETHER)],
            },
            Effort(0.0, turns, turns),
        )
    _note(figures, seconds, len(transactions))
    _note_firing(figures, learner.playbook, rows)


def _bytes_of_a_decision(path: Path) -> int:
    """The mean size of a recorded decision without its text."""
    with closing(sqlite3.connect(path)) as file:
        columns = "length(CAST(body AS BLOB)) + length(id) + length(transaction_id) + 40"
        (size,) = file.execute(f"SELECT avg({columns}) FROM decisions").fetchone()
    return int(size)


def _repeat(work: Work, times: int) -> None:
    for _ in range(times):
        work()


def _one_by_one(learner: Learner, transactions: Sequence[Transaction], turns: int) -> Work:
    async def each(some: Sequence[Transaction]) -> None:
        for transaction in some:
            await learner.decide(transaction)

    return _anew("alone", each, transactions, turns)


def _all_at_once(learner: Learner, transactions: Sequence[Transaction], turns: int) -> Work:
    return _anew("together", learner.decide_all, transactions, turns)


def _anew(
    name: str,
    decide: Callable[[Sequence[Transaction]], Coroutine[Any, Any, object]],
    transactions: Sequence[Transaction],
    turns: int,
) -> Work:
    """Decide the same facts under new ids each time: what was decided once is not decided again."""
    rounds = iter(
        [
            [Transaction(id=f"{name}-{turn}-{each.id}", facts=each.facts) for each in transactions]
            for turn in range(turns + 1)  # once to warm up
        ]
    )
    return lambda: asyncio.run(decide(next(rounds)))


_PEERS = {
    "lightgbm": "LGBMClassifier.predict_proba of one row at a time",
    "lightgbm_booster": "the bare Booster.predict of one row at a time",
    "river_arf": "ARFClassifier.predict_proba_one of river",
    "lightgbm_batch": "LGBMClassifier.predict_proba of all rows at once",
    "decision": "deciding the same transactions one by one",
}
_ONE_BY_ONE = ("decision", "lightgbm", "lightgbm_booster", "river_arf")
_OURS = {
    "decision": ("lightgbm", "lightgbm_booster", "river_arf"),
    "decision_batch": ("decision", "lightgbm", "lightgbm_booster", "lightgbm_batch"),
    "score_batch": ("lightgbm", "lightgbm_batch"),
    "decision_with_ledger": ("lightgbm",),
    "decision_with_ledger_batch": ("lightgbm",),
}


def _note(figures: Figures, seconds: dict[str, float], decided: int) -> None:
    """Seconds for one decision each, and how they compare."""
    counts = dict.fromkeys(("decision_with_ledger", "bare_insert"), RECORDED_ALONE) | dict.fromkeys(_ONE_BY_ONE, TIMED)
    each = {name: least / counts.get(name, decided) for name, least in seconds.items()}
    for name, least in each.items():
        figures.time(name, least)
    for ours, theirs in _OURS.items():
        for peer in theirs:
            figures.faster(f"{ours}.{peer}", each[peer], each[ours], _PEERS[peer])
    figures.ratio(
        "decision_with_ledger.allowed",
        each["decision_with_ledger"] / (each["lightgbm"] + 2 * each["bare_insert"]),
        "the share it takes of LightGBM's prediction of one row and twice a bare insert and commit of the same bytes",
    )
    figures.ratio(
        "decision_with_ledger_batch.allowed",
        each["decision_with_ledger_batch"] / (2 * (each["decision_batch"] + each["bare_insert_batch"])),
        "the share it takes of twice a batch kept in memory and a bare insert of the same bytes",
    )


def _note_firing(figures: Figures, playbook: BulletPlaybook, rows: LabelledRows) -> None:
    bullets = playbook.get_bullets_for_node(NODE)
    firing = [
        sum(bullet.condition is not None and bullet.condition.holds(facts) for bullet in bullets)
        for facts in rows.facts[:99]
    ]
    figures.about["decisions"] = {
        "bullets": len(bullets),
        "facts": len(rows.facts[0]),
        "firing": sum(firing) / len(firing),
        "trained_on": round(TRAINED_ON * len(rows.labels)),
    }
