"""Transactions in many files, scored part by part: each file of transactions becomes a file of scores.

A part depends on nothing but the playbook and its own rows, so it comes out the same wherever it is scored.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import polars as pl

from acefraud.core.events import THE_ENGINE
from acefraud.core.ledger import Entry
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Verdict
from acefraud.core.transactions import Transactions
from acefraud.datasets import SchemaMapping, mapping_of
from acefraud.datasets.rows import read_transactions
from acefraud.datasets.table import BadRow
from acefraud.engine.decider import verdicts_in
from acefraud.engine.entity_memory import memory_for, rows_with_history
from acefraud.engine.options import LearnerOptions
from acefraud.engine.rule_context import columns_in_context
from acefraud.engine.score import score
from acefraud.errors import InputError
from acefraud.facts.extraction import facts_in
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arrays import FloatArray
from acefraud.support.runners import Progress, Runner

_ROW_GROUP = 250_000
"""Rows in a group of a Parquet file. Without a number it could depend on how many threads there are."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """All that scoring needs of a playbook, so that it can be done where the playbook is out of reach."""

    ledger: MemoryLedger
    """The bullets as they are now, and what is remembered of entities. Decisions and cases stay behind."""
    now: datetime
    """The time that counts for transactions without one."""
    mapping: SchemaMapping | None
    """How columns are read, if not as in the training."""
    strict: bool
    embedder: str

    @classmethod
    def of(
        cls,
        playbook: BulletPlaybook,
        *,
        mapping: SchemaMapping | None = None,
        strict: bool = False,
        embedder: str = DEFAULT_EMBEDDER,
    ) -> Scorer:
        """A scorer with a playbook as it is now."""
        playbook.refresh()
        ledger, now = MemoryLedger(), playbook.clock()
        ledger.save_checkpoint(playbook.checkpoint())
        if memory_for(playbook.mapping) is not None:
            with playbook.ledger.rows() as rows:
                kept = rows.get_all()
            ledger.append(Entry([], now, THE_ENGINE, rows=lambda store: store.put_many(kept)))
        return cls(ledger, now, mapping, strict, embedder)

    def snapshot(self) -> Snapshot:
        """The playbook as it was."""
        return BulletPlaybook(self.ledger).snapshot()

    def score(self, given: Transactions, snapshot: Snapshot) -> tuple[FloatArray, list[Verdict]]:
        """The probabilities of `Learner.score_all`, and the verdicts that policies, rules and the threshold give.

        The number of reviews that a rule may allow for a day does not count.
        """
        options, selector = LearnerOptions(), HybridSelector(embedding_model=self.embedder)
        rows = rows_with_history(columns_in_context(given, snapshot, lambda: self.now), snapshot, self.ledger)
        facts = facts_in(rows)
        probabilities = score(rows, snapshot, selector, options, known=facts).probabilities
        return probabilities, verdicts_in(facts, probabilities, snapshot, options)


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """What became of the rows of a part."""

    verdicts: Counter[Verdict]
    bad_rows: tuple[BadRow, ...]

    @property
    def row_count(self) -> int:
        """How many rows were scored."""
        return self.verdicts.total()


def targets_of(sources: Sequence[str], folder: Path) -> dict[str, Path]:
    """Where the scores of each file go: CSV if it is one, else Parquet.

    Raises InputError if two files would share a target, or scores would replace the transactions of a file.
    """
    found: dict[str, Path] = {}
    read = {Path(source).resolve() for source in sources}
    for source in map(Path, sources):
        target = folder / f"{source.stem}{'.csv' if source.suffix.lower() == '.csv' else '.parquet'}"
        if target.resolve() in read:
            raise InputError(
                f"its scores would replace the transactions in {target}: name another folder", file=str(source)
            )
        if target in found.values():
            raise InputError(f"the scores of another part are to be written to {target} too", file=str(source))
        found[str(source)] = target
    return found


def score_parts(
    targets: dict[str, Path], scorer: Scorer, runner: Runner, progress: Progress = lambda *_: None
) -> list[ScoredPart]:
    """Score files, and write the scores of each as soon as they are known.

    Raises InputError if a file cannot be read. What was written until then is complete, and stays.
    """
    ((sent,),) = runner.keep(list, [([scorer],)], 1)  # once, not with every part
    calls = [(sent, Path(source).absolute(), source, target.absolute()) for source, target in targets.items()]
    found: list[ScoredPart] = runner.map(_score_part, calls, progress)
    return found


def _score_part(scorer: Scorer, path: Path, name: str, target: Path) -> ScoredPart:
    snapshot = scorer.snapshot()
    remembered = mapping_of(snapshot.mapping)
    read = read_transactions(path, mapping=scorer.mapping, remembered=remembered, strict=scorer.strict, name=name)
    probabilities, verdicts = scorer.score(read.rows, snapshot)
    columns = {"id": read.rows.ids.tolist(), "probability": probabilities, "verdict": list(map(str, verdicts))}
    _write(pl.DataFrame(columns, schema={"id": pl.String, "probability": pl.Float64, "verdict": pl.String}), target)
    return ScoredPart(Counter(verdicts), read.bad_rows)


def _write(scores: pl.DataFrame, target: Path) -> None:
    """Write a file that has its name only once it is complete."""
    content = io.BytesIO()
    if target.suffix == ".csv":
        scores.write_csv(content)
    else:
        scores.write_parquet(content, row_group_size=_ROW_GROUP)
    unfinished = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        unfinished.write_bytes(content.getvalue())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
