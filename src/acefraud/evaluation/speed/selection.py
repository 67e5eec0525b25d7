"""Selection over books of growing size, beside a plain loop and beside a bare matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from acefraud.core.bullet import Bullet
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Embedder, Vectors
from acefraud.core.transaction import Transaction
from acefraud.embedded.embedder import DEFAULT_EMBEDDER, WordLlamaEmbedder, embedder_named
from acefraud.evaluation.speed.figures import Figures, named
from acefraud.evaluation.speed.measuring import PICKED, selecting
from acefraud.evaluation.speed.plain import plain_selection
from acefraud.evaluation.speed.timing import Effort, Work, interleaved, taken
from acefraud.evaluation.speed.workloads import GivenVectors, asked_about, prose_bullets, snapshot_of
from acefraud.selection.hybrid import HybridSelector
from acefraud.selection.large import index_can_be_used

TOGETHER = 256
"""Transactions of a batch."""
ALONE = 16
"""Transactions that are measured one by one."""
PLAIN_UP_TO = 100_000


@dataclass(frozen=True, slots=True)
class Workload:
    """A book, what is asked of it, and the vectors of both."""

    name: str
    bullets: list[Bullet]
    snapshot: Snapshot
    transactions: list[Transaction]
    embedder: Embedder
    matrix: Vectors
    queries: Vectors

    @property
    def size(self) -> int:
        """The bullets of the book."""
        return len(self.bullets)


def prose(size: int, seed: int) -> Workload:
    """Texts of transactions against bullets in prose, by the default embedder: a large share of the book is alike."""
    bullets, transactions = list(prose_bullets(size, seed)), asked_about(TOGETHER, seed)
    return _workload("", bullets, transactions, embedder_named(DEFAULT_EMBEDDER), WordLlamaEmbedder())


def spread(size: int, seed: int) -> Workload:
    """The same bullets and transactions with vectors of which about one in fifty is alike."""
    bullets, transactions = list(prose_bullets(size, seed)), asked_about(TOGETHER, seed)
    texts = [*(bullet.content for bullet in bullets), *(transaction.text for transaction in transactions)]
    given = GivenVectors(texts, seed)
    return _workload("spread", bullets, transactions, given, given)


def _workload(
    name: str, bullets: list[Bullet], transactions: list[Transaction], embedder: Embedder, bare: Embedder
) -> Workload:
    """``bare`` embeds the matrix: a cache would hold on to what is asked for once."""
    matrix = np.ascontiguousarray(bare.embed([bullet.content for bullet in bullets]))
    queries = embedder.embed([transaction.text for transaction in transactions])
    return Workload(name, bullets, snapshot_of(bullets), transactions, embedder, matrix, queries)


def measure_selection(figures: Figures, work: Workload, effort: Effort) -> None:
    """Everything about one workload."""
    exact = HybridSelector(embedding_model=work.embedder, exact=True)
    _one_by_one(figures, work, exact, effort)
    _together(figures, work, exact, effort)
    if work.size <= PLAIN_UP_TO:
        _beside_plain(figures, work, exact)


def _one_by_one(figures: Figures, work: Workload, exact: HybridSelector, effort: Effort) -> None:
    alone = work.transactions[:ALONE]
    _note_shares(figures, work, exact)
    works: dict[str, Sequence[Work]] = {
        "selection": selecting(exact, alone, work.snapshot),
        "matvec": [partial(np.matmul, work.matrix, query) for query in work.queries[:ALONE]],
    }
    if index_can_be_used(work.size):
        works["index"] = selecting(HybridSelector(embedding_model=work.embedder), alone, work.snapshot)
    seconds = interleaved(works, effort)
    for what, least in seconds.items():
        figures.time(_name(what, work), least, work.size)
    for what in ("selection", "index"):
        if what in seconds:
            figures.ratio(
                f"{named(_name(what, work), work.size)}.matvec",
                seconds[what] / seconds["matvec"],
                f"how many times as long as a bare product of the matrix with one vector: {_WHAT[what]}",
            )


def _note_shares(figures: Figures, work: Workload, exact: HybridSelector) -> None:
    chosen = [
        exact.select(transaction, {}, work.snapshot, n_bullets=PICKED) for transaction in work.transactions[:ALONE]
    ]
    figures.shares[named(_name("selection", work), work.size)] = {
        stage.stage: sum(one.trace.stages[place].left for one in chosen) / len(chosen) / work.size
        for place, stage in enumerate(chosen[0].trace.stages)
    }


def _together(figures: Figures, work: Workload, exact: HybridSelector, effort: Effort) -> None:
    """A batch at once, beside the same transactions one after the other."""
    many = work.transactions
    facts: list[dict[str, float | bool | str]] = [{} for _ in many]
    alone = selecting(exact, many, work.snapshot)
    seconds = interleaved(
        {
            "together": [lambda: exact.select_many(many, facts, work.snapshot, n_bullets=PICKED)],
            "alone": [lambda: [one() for one in alone]],
        },
        effort,
    )
    figures.time(_name("select_many", work), seconds["together"] / len(many), work.size)
    figures.faster(
        f"{named(_name('select_many', work), work.size)}.one_by_one",
        seconds["alone"],
        seconds["together"],
        f"selecting for the same {len(many)} transactions one by one",
    )


def _beside_plain(figures: Figures, work: Workload, exact: HybridSelector) -> None:
    """The plain loop takes seconds, so it is asked once."""
    vectors = list(work.matrix)
    plain = taken(lambda: plain_selection(exact, work.bullets, vectors, work.queries[0], PICKED))
    ours = figures.seconds[_name("selection", work)][work.size]
    figures.time(_name("plain_loop", work), plain, work.size)
    figures.faster(
        f"{named(_name('selection', work), work.size)}.plain_loop", plain, ours, "a plain loop over the bullets"
    )


_WHAT = {"selection": "a selection that looks at every bullet", "index": "a selection by the index"}


def _name(what: str, work: Workload) -> str:
    return f"{what}_{work.name}" if work.name else what
