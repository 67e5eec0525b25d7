"""What is selected from and for. Of acefraud it uses only what every version of it has had."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from acefraud.core.bullet import Bullet, bullet_id
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Vectors
from acefraud.core.transaction import Transaction
from acefraud.datasets import load_dataset
from acefraud.evaluation.speed.sentences import sentences

NODE = "fraud_detection"
MOST_HELPFUL, MOST_HARMFUL = 30, 12
CLUSTERS = 50
"""Each transaction resembles the bullets of one cluster: one in fifty."""


def prose_bullets(count: int, seed: int = 0, first: int = 0) -> Iterator[Bullet]:
    """Bullets in prose with a record of their own."""
    dice = random.Random(f"{seed} {first}")
    for number, text in enumerate(sentences(count, seed, first), first):
        yield Bullet(
            id=f"{bullet_id(NODE, text)}-{number}",
            content=text,
            helpful_count=dice.randrange(MOST_HELPFUL),
            harmful_count=dice.randrange(MOST_HARMFUL),
        )


def snapshot_of(bullets: Iterable[Bullet], revision: int = 1) -> Snapshot:
    """A playbook of these bullets."""
    return Snapshot(revision, {bullet.id: bullet for bullet in bullets})


def asked_about(count: int, seed: int = 0) -> list[Transaction]:
    """Transactions that are told in an analyst's words; none of their facts counts here."""
    cases = load_dataset("complex_fraud_detection", seed=seed).train
    return [
        Transaction(id=f"t{place}", text=cases[place % len(cases)].transaction.text or f"transaction {place}")
        for place in range(count)
    ]


class GivenVectors:
    """Stands in for an embedder: vectors around a few centres, so that a text resembles about one in fifty others."""

    name = "given"
    threshold = 0.3
    dimensions = 256

    def __init__(self, texts: Sequence[str], seed: int = 0) -> None:
        chance = np.random.default_rng(seed)
        centres = _unit(chance.normal(size=(CLUSTERS, self.dimensions)))
        near = centres[chance.integers(0, CLUSTERS, len(texts))]
        self._vectors = _unit(near + 0.8 * _unit(chance.normal(size=near.shape)))
        self._places = {text: place for place, text in enumerate(texts)}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts that it knows."""
        return self._vectors[[self._places[text] for text in texts]]


def _unit(vectors: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | Vectors) -> Vectors:
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
