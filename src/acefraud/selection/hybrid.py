"""The selector: runs the five stages over a snapshot of the playbook."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Source
from acefraud.core.decision import BulletScore, SelectionTrace, StageCount
from acefraud.core.english import say_facts
from acefraud.core.playbook import ReadsPlaybook, Snapshot
from acefraud.core.roles import Embedder, FetchesAhead, Presents, Vectors
from acefraud.core.transaction import FactValue, Transaction
from acefraud.embedded.agent import weight_of
from acefraud.embedded.embedder import DEFAULT_EMBEDDER, embedder_named
from acefraud.embedded.facts import facts_of
from acefraud.errors import ConfigurationError, InputError
from acefraud.llm.client import ModelClient
from acefraud.llm.embedder import DEFAULT_EMBEDDING, ModelEmbedder
from acefraud.selection import stages
from acefraud.selection.stages import Weights


@dataclass(frozen=True, slots=True)
class Selection:
    """The bullets picked, their scores in the same order, and what each stage left."""

    bullets: tuple[Bullet, ...]
    scores: tuple[BulletScore, ...]
    trace: SelectionTrace


@dataclass(frozen=True, slots=True)
class Choice:
    """What stages 2 to 5 picked, and how many bullets each of the five stages left."""

    bullets: tuple[Bullet, ...]
    scores: tuple[BulletScore, ...]
    left: tuple[int, ...]


class HybridSelector:
    """Picks bullets by record, relevance, exploration and difference from one another.

    `semantic_threshold` is the embedder's own measured one unless given (0.5 was set for text-embedding-3-small).
    With `explore=False` what is expected of a bullet takes the place of the draw, and nothing is left to chance.

    >>> from acefraud.storage.playbook import BulletPlaybook
    >>> playbook = BulletPlaybook()
    >>> _ = playbook.add_bullet("Amount above 2,000 and a VPN: decline", "fraud_detection")
    >>> bullets, scores = HybridSelector().select_bullets(
    ...     "Transaction: $2,500 purchase through a VPN", "fraud_detection", playbook)
    >>> bullets[0].content, scores[0].semantic
    ('Amount above 2,000 and a VPN: decline', 1.0)
    """

    def __init__(
        self,
        quality_threshold: float = 0.3,
        semantic_threshold: float | None = None,
        diversity_weight: float = 0.15,
        weights: Mapping[str, float] | None = None,
        embedding_model: str | Embedder = DEFAULT_EMBEDDER,
        *,
        seed: int = 0,
        explore: bool = True,
    ) -> None:
        self.embedder = _embedder(embedding_model) if isinstance(embedding_model, str) else embedding_model
        self.quality_threshold = _share("quality_threshold", quality_threshold)
        self.semantic_threshold = (
            self.embedder.threshold if semantic_threshold is None else _share("semantic_threshold", semantic_threshold)
        )
        self.diversity_weight = _share("diversity_weight", diversity_weight)
        self.weights = _weights(weights)
        self.seed = seed
        self.explore = explore

    def select_bullets(
        self,
        query: str | Transaction,
        node: str,
        playbook: ReadsPlaybook,
        n_bullets: int = 5,
        source: Source | str | None = None,
    ) -> tuple[list[Bullet], list[BulletScore]]:
        """The bullets for a transaction, best first, and their scores."""
        transaction = query if isinstance(query, Transaction) else _of_text(query)
        known = facts_of(transaction)
        chosen = self.select(
            transaction, known.facts, playbook.snapshot(), node=node, n_bullets=n_bullets, source=source
        )
        return list(chosen.bullets), list(chosen.scores)

    def select(
        self,
        transaction: Transaction,
        facts: Mapping[str, FactValue],
        snapshot: Snapshot,
        *,
        node: str = DEFAULT_NODE,
        n_bullets: int = 5,
        source: Source | str | None = None,
    ) -> Selection:
        """The same for facts already known, with the trace of the stages."""
        if n_bullets < 0:
            raise ConfigurationError(f"n_bullets must not be negative, got {n_bullets}")
        in_context = stages.contextual(snapshot, node, _source(source), facts)
        calibration = snapshot.calibration(node)
        base_rate = calibration.base_rate if calibration else 0.5
        generator = stages.draws_for(self.seed, transaction.id, snapshot.revision) if self.explore else None
        choice = self.choose(in_context, base_rate, n_bullets, generator, lambda: self._embed_query(transaction, facts))
        names = ("contextual", "quality", "semantic", "hybrid", "diversity")
        trace = SelectionTrace(
            stages=tuple(StageCount(stage=name, left=left) for name, left in zip(names, choice.left, strict=True)),
            scores=choice.scores,
            revision=snapshot.revision,
            seed=self.seed,
            embedder=self.embedder.name,
            settings=f"{self.settings} n={n_bullets} source={source or 'all'}",
        )
        return Selection(choice.bullets, choice.scores, trace)

    def texts_for(
        self, transaction: Transaction, facts: Mapping[str, FactValue], snapshot: Snapshot, node: str
    ) -> list[str]:
        """Every text that a selection may embed, for embedders that have to be asked ahead."""
        in_context = stages.contextual(snapshot, node, None, facts)
        asked = [] if all(proven for _, proven in in_context) else [self._query_text(transaction, facts)]
        return [*asked, *(self._bullet_text(bullet) for bullet, _ in in_context)]

    def choose(
        self,
        in_context: Sequence[tuple[Bullet, bool]],
        base_rate: float,
        wanted: int,
        generator: np.random.Generator | None,
        query: Callable[[], Vectors],
    ) -> Choice:
        """Stages 2 to 5 over the bullets that may apply, each with whether that is proven."""
        all_merits = stages.merits_of([bullet for bullet, _ in in_context], base_rate)
        places = stages.quality(in_context, all_merits, self.quality_threshold, wanted)
        good = [in_context[place] for place in places]
        vectors = self.embedder.embed([self._bullet_text(bullet) for bullet, _ in good])
        contributions = np.array([weight_of(bullet, base_rate) for bullet, _ in good], dtype=np.float64)
        asked = None if all(proven for _, proven in good) else query()
        kept, relevance = stages.semantic(good, contributions, vectors, asked, self.semantic_threshold)
        merits = all_merits[places][kept]
        success, draws = stages.success_of(merits), stages.thompson(merits, generator)
        combined = stages.hybrid(success, relevance, draws, self.weights)
        bullets = [good[place][0] for place in kept]
        proven = [good[place][1] for place in kept]
        picks = stages.diverse(combined, proven, vectors[kept], wanted, self.diversity_weight)
        scores = tuple(
            BulletScore(
                bullet_id=bullets[i].id,
                quality=float(success[i]),
                semantic=float(relevance[i]),
                thompson=float(draws[i]),
                combined=float(combined[i]),
                diversity=bonus,
                total=float(combined[i]) + bonus,
            )
            for i, bonus in picks
        )
        left = (len(in_context), len(good), len(kept), len(combined), len(picks))
        return Choice(tuple(bullets[i] for i, _ in picks), scores, left)

    def without_draws(self) -> HybridSelector:
        """The same selector, leaving nothing to chance and nothing to a network."""
        far = isinstance(self.embedder, FetchesAhead)
        same = self.with_embedder(DEFAULT_EMBEDDER) if far else copy.copy(self)
        same.explore = False
        return same

    def with_embedder(self, name: str) -> HybridSelector:
        """The same selector with an embedder of another name, and the threshold that was measured for that."""
        same = copy.copy(self)
        same.embedder = _embedder(name)
        same.semantic_threshold = same.embedder.threshold
        return same

    @property
    def settings(self) -> str:
        """The thresholds and weights, in one line."""
        w = self.weights
        return (
            f"quality>={self.quality_threshold:g} semantic>={self.semantic_threshold:g} "
            f"diversity={self.diversity_weight:g} weights={w.quality:g}/{w.semantic:g}/{w.thompson:g}"
            f"{'' if self.explore else ' explore=no'}"
        )

    def _embed_query(self, transaction: Transaction, facts: Mapping[str, FactValue]) -> Vectors:
        vector: Vectors = self.embedder.embed([self._query_text(transaction, facts)])[0]
        return vector

    def _bullet_text(self, bullet: Bullet) -> str:
        return self.embedder.presentable_bullet(bullet) if isinstance(self.embedder, FetchesAhead) else bullet.content

    def _query_text(self, transaction: Transaction, facts: Mapping[str, FactValue]) -> str:
        """What a transaction is looked up by: its text, or its facts in words; without what may not leave the house."""
        if isinstance(self.embedder, Presents):
            return self.embedder.presentable(transaction.text, facts)
        return transaction.text or say_facts(facts)


def _embedder(name: str) -> Embedder:
    """The embedder of that name: an embedded one, or a model that is named with its provider."""
    if name == DEFAULT_EMBEDDING.partition(":")[2]:  # as the ACE system calls it
        name = DEFAULT_EMBEDDING
    return ModelEmbedder(ModelClient(), name) if ":" in name else embedder_named(name)


def _of_text(query: str) -> Transaction:
    """Free text has no id; its own first words stand in for one."""
    if not query.strip():
        raise InputError("expected the text of a transaction, got an empty one")
    return Transaction(id=query.strip()[:200], text=query)


def _source(source: Source | str | None) -> Source | None:
    try:
        return None if source is None else Source(source)
    except ValueError:
        raise ConfigurationError(f"source must be one of {', '.join(Source)}, got {source!r}") from None


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ConfigurationError(f"{name} must lie between 0 and 1, got {value}")
    return value


def _weights(given: Mapping[str, float] | None) -> Weights:
    try:
        weights = Weights(**(given or {}))
    except TypeError:
        raise ConfigurationError(f"weights takes quality, semantic and thompson, got {sorted(given or {})}") from None
    if not all(math.isfinite(part) and part >= 0 for part in (weights.quality, weights.semantic, weights.thompson)):
        raise ConfigurationError(f"weights must be numbers that are not negative, got {given}")
    return weights
