"""Books of bullets in prose, and texts of transactions to select for."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from acefraud import Bullet, BulletPlaybook, Transaction, load_dataset
from benchmarks.speed.sentences import sentences

NODE = "fraud_detection"
CLUSTERS = 50
"""Each transaction resembles the bullets of one cluster: one in fifty."""
MOST_USES = 3
_AT_ONCE = 2_000

Vectors = npt.NDArray[np.float32]


def prose_book(size: int, seed: int = 0) -> BulletPlaybook:
    """A playbook in memory of bullets in prose, each of which helped or harmed a few times or never."""
    playbook, dice, texts = BulletPlaybook(), random.Random(seed), sentences(size, seed)
    while some := list(islice(texts, _AT_ONCE)):
        with playbook.unit_of_work():
            for text in some:
                bullet = playbook.add_bullet(text, NODE)
                for helpful in dice.choices((True, False), (3, 1), k=dice.randint(0, MOST_USES)):
                    playbook.update_stats(bullet, helpful)
    return playbook


def asked_about(count: int, seed: int = 0) -> list[Transaction]:
    """Transactions that are told in an analyst's words."""
    cases = load_dataset("complex_fraud_detection", seed=seed).train
    return [
        Transaction(id=f"t{index}", text=cases[index % len(cases)].transaction.text or f"transaction {index}")
        for index in range(count)
    ]


class GivenVectors:
    """Stands in for an embedder: vectors around a few centres, so that a text resembles about one in fifty others."""

    name = "given"
    threshold = 0.3
    dimensions = 256
    fetches_ahead = False

    def __init__(self, texts: Sequence[str], seed: int = 0) -> None:
        chance = np.random.default_rng(seed)
        centres = _unit(chance.normal(size=(CLUSTERS, self.dimensions)))
        near = centres[chance.integers(0, CLUSTERS, len(texts))]
        self._vectors = _unit(near + 0.8 * _unit(chance.normal(size=near.shape)))
        self._places = {text: index for index, text in enumerate(texts)}

    def presentable(self, text: str, facts: Mapping[str, float | bool | str]) -> str:  # noqa: ARG002
        """The text."""
        return text

    def presentable_bullet(self, bullet: Bullet) -> str:
        """Its words."""
        return bullet.content

    async def fetch(self, texts: Sequence[str]) -> None:
        """Nothing to do."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts that it knows."""
        return self._vectors[[self._places[text] for text in texts]]


def _unit(vectors: npt.NDArray[np.float64] | Vectors) -> Vectors:
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
