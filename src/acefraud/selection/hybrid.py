"""The selector: runs the five stages over a snapshot of the playbook."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock

import numpy as np

from acefraud.core.book import Book
from acefraud.core.bullet import DEFAULT_NODE, Bullet, Source
from acefraud.core.decision import BulletScore, SelectionTrace, StageCount
from acefraud.core.measured_text import with_measured_text
from acefraud.core.playbook import ReadsPlaybook, Snapshot
from acefraud.core.roles import Embedder, Vectors
from acefraud.core.rules import places_in
from acefraud.core.transaction import FactValue, Transaction
from acefraud.core.trusted import trusted
from acefraud.embedded.embedder import DEFAULT_EMBEDDER, embedder_named
from acefraud.embedded.facts import facts_of
from acefraud.errors import ConfigurationError, InputError
from acefraud.llm.client import ModelClient
from acefraud.llm.embedder import DEFAULT_EMBEDDING, ModelEmbedder
from acefraud.selection import stages
from acefraud.selection.axis import Axis, Bins
from acefraud.selection.contest import Pick, Weights, picks_of
from acefraud.selection.draws import beta, key_for
from acefraud.selection.large import BookIndex, index_can_be_used, index_installed
from acefraud.selection.nearest import PROPOSED
from acefraud.selection.stages import NOBODY, Asked, Kept, Resembling
from acefraud.selection.together import Alone, Scoring, picked_together
from acefraud.selection.vectors import BookVectors
from acefraud.selection.worth import Column, Rows, drawn_from, pinned_at, worth_in


@dataclass(frozen=True, slots=True)
class Selection:
    """The bullets picked, their scores in the same order, and what each stage left."""

    bullets: tuple[Bullet, ...]
    scores: tuple[BulletScore, ...]
    trace: SelectionTrace
    proven: int
    """How many of the bullets, from the first on, are proven to apply."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What stages 3 to 5 picked, by row, and how many bullets each of the five stages left."""

    picks: list[tuple[int, Pick]]
    left: tuple[int, ...]
    proven: int
    """How many of them, from the first on, are proven to apply."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Bullets by their rows in the book, in ascending order. Draws and vectors are looked up when they are needed."""

    asked: Asked
    rows: Rows
    success: Column
    relevance: Column
    key: np.uint64 | None
    """What draws start from; None where nothing is left to chance."""
    query: Vectors | None
    """What they resemble; None where they are proven to apply."""
    known: BookVectors

    def draws(self, places: Rows) -> Column:
        """One from each bullet's Beta(for + 1, against + 1), or what is expected of it."""
        keys, shapes = drawn_from(self.asked.book, self.rows[places], self.asked.base_rate)
        return shapes.expected if self.key is None else beta(keys ^ self.key, shapes)

    def vectors(self, places: Rows) -> Vectors:
        """Their vectors."""
        return self.known.at(self.asked.book, self.rows[places])

    def exact(self, places: Rows, vectors: Vectors) -> Column:
        """Their relevance, which the size of a matrix product has no part in."""
        if self.query is None:
            return self.relevance[places]
        cosines: Column = np.vecdot(vectors, self.query).astype(np.float64)
        return cosines

    def likeness(self, vector: Vectors) -> Vectors:
        """The products of all of them with a vector, roughly."""
        return self.known.products(self.asked.book, self.rows, vector)

    def axis(self) -> tuple[Axis, Bins] | None:
        """A direction that most vectors have in common, and how far they lean to it; None where that is not known."""
        return self.known.axis(self.asked.book, self.rows)


STAGES = ("contextual", "quality", "semantic", "hybrid", "diversity")


class HybridSelector:
    """Picks bullets by record, relevance, exploration and difference from one another.

    `semantic_threshold` is the embedder's own measured one unless given (0.5 was set for text-embedding-3-small).
    With `explore=False` what is expected of a bullet takes the place of the draw, and nothing is left to chance. In a
    book of 200,000 bullets or more an index proposes those that resemble a transaction most, where the extra `index` is
    installed; with `exact=True` all are looked at, whatever their number. Threads may share one.

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
        exact: bool = False,
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
        self.exact = exact
        self._vectors = BookVectors(self.embedder, hold_all=exact or not index_installed())
        self._index = BookIndex(self._vectors)
        self._selecting = RLock()
        """Held while vectors are looked up, which fills what is kept of them."""

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
        snapshot = playbook.snapshot()
        chosen = self.select(transaction, known.facts, snapshot, node=node, n_bullets=n_bullets, source=source)
        frame = snapshot.calibration(node)
        return [with_measured_text(bullet, frame) for bullet in chosen.bullets], list(chosen.scores)

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
        return self.select_many([transaction], [facts], snapshot, node=node, n_bullets=n_bullets, source=source)[0]

    def select_many(
        self,
        transactions: Sequence[Transaction],
        facts: Sequence[Mapping[str, FactValue]],
        snapshot: Snapshot,
        *,
        node: str = DEFAULT_NODE,
        n_bullets: int = 5,
        source: Source | str | None = None,
        proven_only: bool = False,
    ) -> list[Selection]:
        """The same for many transactions at once: all are compared with the book in one matrix product.

        With `proven_only`, bullets whose condition cannot be checked for want of a fact are left out: the embedded
        engine, which picks for itself, could not use them. A language model may.
        """
        if n_bullets < 0:
            raise ConfigurationError(f"n_bullets must not be negative, got {n_bullets}")
        calibration = snapshot.calibration(node)
        asked = Asked(
            book=snapshot.book,
            node=snapshot.book.node(node),
            source=_source(source),
            base_rate=calibration.base_rate if calibration else 0.5,
            wanted=n_bullets,
            proven_only=proven_only,
        )
        kept = [stages.contextual_and_good(asked, each, self.quality_threshold) for each in facts]
        queries = self._queries(transactions, facts, kept)
        keys = self._keys(transactions, snapshot)
        with self._selecting:
            found = list(self._resembling(asked, kept, queries))
            together = self._chosen_together(asked, kept, found, keys)
            chosen = [
                together.get(place) or self._chosen(asked, left, prose, key)
                for place, (left, prose, key) in enumerate(zip(kept, found, keys, strict=True))
            ]
        by_index = f" nearest={PROPOSED}" if self._by_index(asked.book) else ""
        settings = f"{self.settings} n={n_bullets} source={source or 'all'}{by_index}"
        return [self._selection(asked.book, each, snapshot.revision, settings) for each in chosen]

    def pick_proven(self, book: Book, rows: Rows, base_rate: float, wanted: int, key: np.uint64 | None) -> Rows:
        """Which of the bullets that fire (rows of a book) are cited. ``key`` is what draws start from, if any."""
        success = worth_in(book, base_rate).success[rows]
        for least in (self.quality_threshold, stages.RELAXATION * self.quality_threshold):
            good = rows[(success >= least) | pinned_at(book, rows)]
            if len(good) >= wanted:
                break
        asked = Asked(book, None, None, base_rate, wanted)
        with self._selecting:
            chosen = self._chosen(asked, Kept(len(rows), len(good), good), NOBODY, key)
        return np.array([row for row, _ in chosen.picks], dtype=np.int64)

    def texts_for(
        self, transaction: Transaction, facts: Mapping[str, FactValue], snapshot: Snapshot, node: str
    ) -> list[str]:
        """Every text that a selection may embed, for embedders that have to be asked ahead."""
        in_context = [
            (page.bullet(place), bool(proven >> place & 1))
            for page, rows in snapshot.rows_of(node)
            for possible, proven in [page.rules.standing(facts)]
            for place in places_in(rows.bits & possible)
        ]
        query = [] if all(proven for _, proven in in_context) else [self._query_text(transaction, facts)]
        return [*query, *(self._vectors.text_of(bullet) for bullet, _ in in_context)]

    def _queries(
        self, transactions: Sequence[Transaction], facts: Sequence[Mapping[str, FactValue]], kept: Sequence[Kept]
    ) -> Sequence[Vectors | None]:
        """The vectors of those transactions that anything in prose could resemble."""
        asking = [place for place, left in enumerate(kept) if any(mask.any() for mask in left.prose)]
        if not asking:
            return [None] * len(kept)
        vectors = self.embedder.embed([self._query_text(transactions[place], facts[place]) for place in asking])
        found = dict(zip(asking, vectors, strict=True))
        return [found.get(place) for place in range(len(kept))]

    def _keys(self, transactions: Sequence[Transaction], snapshot: Snapshot) -> list[np.uint64 | None]:
        if not self.explore:
            return [None] * len(transactions)
        return [key_for(self.seed, transaction.id, snapshot.revision) for transaction in transactions]

    def _chosen_together(
        self,
        asked: Asked,
        kept: Sequence[Kept],
        found: Sequence[Resembling],
        keys: Sequence[np.uint64 | None],
    ) -> dict[int, Chosen]:
        """Those of many transactions that can be chosen for in one go."""
        if len(kept) < 2 or not asked.wanted:
            return {}
        fields = [Alone.of(left, prose, key) for left, prose, key in zip(kept, found, keys, strict=True)]
        alone = {place: field for place, field in enumerate(fields) if field is not None}
        scoring = Scoring(self.semantic_threshold, self.weights, self.diversity_weight)
        picked = picked_together(asked, list(alone.values()), scoring, self._vectors)
        return {
            place: _chosen(kept[place], len(found[place].rows), picks)
            for place, picks in zip(alone, picked, strict=True)
        }

    def _resembling(
        self, asked: Asked, kept: Sequence[Kept], queries: Sequence[Vectors | None]
    ) -> Iterator[Resembling]:
        if self._by_index(asked.book):
            return self._index.resembling(asked, kept, queries, self.semantic_threshold)
        return stages.resembling(asked, kept, queries, self.semantic_threshold, self._vectors)

    def _by_index(self, book: Book) -> bool:
        return not self.exact and index_can_be_used(len(book))

    def _chosen(self, asked: Asked, kept: Kept, prose: Resembling, key: np.uint64 | None) -> Chosen:
        """Stages 3 to 5. What merely resembles never takes the place of what is proven to apply."""
        strength = worth_in(asked.book, asked.base_rate).strength[kept.proven]
        fields = (
            (kept.proven, stages.relevance_by_proof(strength, self.semantic_threshold), None),
            prose,
        )
        picks: list[tuple[int, Pick]] = []
        vectors: list[Vectors] = []
        for rows, relevance, query in fields:
            left = asked.wanted - len(picks)
            if left and len(rows):
                success = worth_in(asked.book, asked.base_rate).success[rows]
                entrants = Candidates(asked, rows, success, relevance, key, query, self._vectors)
                won, vectors = picks_of(entrants, left, self.weights, self.diversity_weight, vectors)
                picks.extend((int(rows[pick.place]), pick) for pick in won)
        return _chosen(kept, len(prose.rows), picks)

    def _selection(self, book: Book, chosen: Chosen, revision: int, settings: str) -> Selection:
        bullets = tuple(book.at(row) for row, _ in chosen.picks)
        trace = trusted(
            SelectionTrace,
            stages=tuple(
                trusted(StageCount, stage=name, left=left) for name, left in zip(STAGES, chosen.left, strict=True)
            ),
            scores=tuple(
                trusted(
                    BulletScore,
                    bullet_id=bullet.id,
                    quality=pick.quality,
                    semantic=pick.semantic,
                    thompson=pick.thompson,
                    combined=pick.combined,
                    diversity=pick.diversity,
                    total=pick.combined + pick.diversity,
                )
                for bullet, (_, pick) in zip(bullets, chosen.picks, strict=True)
            ),
            revision=revision,
            seed=self.seed,
            embedder=self.embedder.name,
            settings=settings,
        )
        return Selection(bullets, trace.scores, trace, chosen.proven)

    def without_draws(self) -> HybridSelector:
        """The same selector, leaving nothing to chance and nothing to a network."""
        same = self.with_embedder(DEFAULT_EMBEDDER) if self.embedder.fetches_ahead else copy.copy(self)
        same.explore = False
        return same

    def with_embedder(self, name: str) -> HybridSelector:
        """The same selector with an embedder of another name, and the threshold that was measured for that."""
        same = copy.copy(self)
        same.embedder = _embedder(name)
        same._vectors = BookVectors(same.embedder, hold_all=same.exact or not index_installed())
        same._index = BookIndex(same._vectors)
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

    def _query_text(self, transaction: Transaction, facts: Mapping[str, FactValue]) -> str:
        """What a transaction is looked up by: its text, or its facts in words; without what may not leave the house."""
        return self.embedder.presentable(transaction.text, facts)


def _chosen(kept: Kept, resembling: int, picks: list[tuple[int, Pick]]) -> Chosen:
    relevant = len(kept.proven) + resembling
    left = (kept.in_context, kept.good, relevant, relevant, len(picks))
    return Chosen(picks, left, min(len(kept.proven), len(picks)))


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
