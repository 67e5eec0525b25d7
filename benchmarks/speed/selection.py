"""Selection from books of growing size, beside a plain loop and beside a bare matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from acefraud import Bullet, BulletPlaybook, HybridSelector, Transaction
from acefraud.facts.extraction import facts_of
from benchmarks.speed.figures import Figures, named
from benchmarks.speed.plain_loop import plain_selection
from benchmarks.speed.prose import NODE, GivenVectors, Vectors, asked_about
from benchmarks.speed.timing import Effort, Work, interleaved, taken

ASKED = 16
"""Transactions that are selected for."""
PICKED = 10
"""Bullets that are picked for a transaction."""
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Workload:
    """A book, what is asked of it, and the selector that is asked."""

    name: str
    playbook: BulletPlaybook
    bullets: list[Bullet]
    transactions: list[Transaction]
    selector: HybridSelector

    @property
    def size(self) -> int:
        """The bullets of the book."""
        return len(self.bullets)

    def figure(self, what: str) -> str:
        """What a figure of this workload is called."""
        return f"{what}_{self.name}" if self.name else what

    def matrix(self) -> Vectors:
        """The vectors of all bullets."""
        texts = [bullet.content for bullet in self.bullets]
        parts = [texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE)]
        return np.concatenate([self.selector.embedder.embed(some) for some in parts])

    def queries(self) -> Vectors:
        """The vectors of the transactions."""
        return self.selector.embedder.embed([transaction.text for transaction in self.transactions])

    def select(self, transaction: Transaction) -> Work:
        """The call that is timed."""
        return partial(self.selector.select_bullets, transaction, NODE, self.playbook, n_bullets=PICKED)


def as_shipped(playbook: BulletPlaybook, seed: int) -> Workload:
    """With the default embedder: a large share of the book resembles each transaction."""
    bullets = playbook.get_bullets_for_node(NODE)
    return Workload("", playbook, bullets, asked_about(ASKED, seed), HybridSelector())


def spread(playbook: BulletPlaybook, seed: int) -> Workload:
    """The same bullets and transactions with vectors of which about one in fifty is alike."""
    bullets, transactions = playbook.get_bullets_for_node(NODE), asked_about(ASKED, seed)
    texts = [*(bullet.content for bullet in bullets), *(transaction.text for transaction in transactions)]
    selector = HybridSelector(embedding_model=GivenVectors(texts, seed))
    return Workload("spread", playbook, bullets, transactions, selector)


def measure_selection(figures: Figures, work: Workload, effort: Effort) -> None:
    """Everything about one workload. The plain loop takes seconds, so it is asked once."""
    matrix, queries = work.matrix(), work.queries()
    seconds = interleaved(
        {
            "selection": [work.select(transaction) for transaction in work.transactions],
            "matvec": [partial(np.matmul, matrix, query) for query in queries],
        },
        effort,
    )
    vectors = list(matrix)
    seconds["plain_loop"] = taken(lambda: plain_selection(work.selector, work.bullets, vectors, queries[0], PICKED))
    for what, least in seconds.items():
        figures.time(work.figure(what), least, work.size)
    selection = named(work.figure("selection"), work.size)
    figures.ratio(
        f"{selection}.matvec",
        seconds["selection"] / seconds["matvec"],
        "how many times as long as a bare product of the matrix with one vector",
    )
    figures.faster(
        f"{selection}.plain_loop", seconds["plain_loop"], seconds["selection"], "a plain loop over the bullets"
    )
    figures.shares[selection] = _shares(work)


def _shares(work: Workload) -> dict[str, float]:
    """Which share of the book each stage leaves for these transactions."""
    facts = [facts_of(transaction).facts for transaction in work.transactions]
    chosen = work.selector.select_many(work.transactions, facts, work.playbook.snapshot(), node=NODE, n_bullets=PICKED)
    traces = [each.trace for each in chosen]
    return {
        stage.stage: sum(trace.stages[index].left for trace in traces) / len(traces) / work.size
        for index, stage in enumerate(traces[0].stages)
    }
