"""The selector: runs the five stages over a snapshot of the playbook."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import RLock
from typing import NamedTuple

import numpy as np

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Source
from acefraud.core.bullet_table import BulletTable, Words, counts_of, packed_flags, rows_in, rows_of_each
from acefraud.core.calibration import with_measured_text
from acefraud.core.decision import BulletScore, SelectionTrace, StageCount
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import FactValue, Transaction
from acefraud.display.short_repr import ShortRepr, shown_text
from acefraud.errors import ConfigurationError, InputError
from acefraud.facts.extraction import facts_of
from acefraud.llm.client import ModelClient
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER, CachedEmbedder, embedder_named, is_own
from acefraud.roles.model.embedder import DEFAULT_EMBEDDING, ModelEmbedder
from acefraud.roles.protocols import Embedder, Facts, OwnRole
from acefraud.selection import stages
from acefraud.selection.bullet_stats import key_for, stats_of
from acefraud.selection.stages import (
    NO_CANDIDATES,
    STAGES,
    BulletVectors,
    Candidates,
    Directions,
    Passed,
    Picks,
    Ranking,
    Request,
    Weights,
    add_picks,
)
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_has, check_share, check_type, check_whole
from acefraud.support.validation import construct_unchecked


@dataclass(frozen=True, slots=True, repr=False)
class Selection(ShortRepr):
    """The bullets picked, their scores in the same order, and how many bullets were left after each stage."""

    bullets: tuple[Bullet, ...]
    scores: tuple[BulletScore, ...]
    trace: SelectionTrace
    proven: int
    """How many of the first bullets are proven to apply."""


class Setup(NamedTuple):
    """What all selections of a batch have in common."""

    revision: int
    seed: int
    embedder: str
    settings: str


@dataclass(frozen=True, slots=True)
class Selections:
    """The selections for many transactions, in columns. One is built when you ask for it."""

    table: BulletTable
    picks: Picks
    left: Sequence[tuple[int, ...]]
    """How many bullets were left after each stage, for each transaction."""
    proven: Sequence[int]
    """How many of the first picks of each transaction are proven to apply."""
    setup: Setup

    def __len__(self) -> int:
        return len(self.picks)

    def __iter__(self) -> Iterator[Selection]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, place: int) -> Selection:
        picks = self.picks[place]
        bullets = tuple(self.table.bullets[pick.row] for pick in picks)
        trace = construct_unchecked(
            SelectionTrace,
            stages=tuple(
                construct_unchecked(StageCount, stage=name, left=count)
                for name, count in zip(STAGES, self.left[place], strict=True)
            ),
            scores=tuple(
                construct_unchecked(
                    BulletScore,
                    bullet_id=bullet.id,
                    quality=pick.quality,
                    semantic=pick.semantic,
                    thompson=pick.thompson,
                    combined=pick.combined,
                    diversity=pick.diversity,
                    total=pick.combined + pick.diversity,
                )
                for bullet, pick in zip(bullets, picks, strict=True)
            ),
            **self.setup._asdict(),
        )
        return Selection(bullets, trace.scores, trace, self.proven[place])


class HybridSelector:
    """Picks bullets by record, relevance, exploration and difference from one another.

    Unless you give a `semantic_threshold`, the one measured for the embedder is used (0.5 for text-embedding-3-small).
    With `explore=False` the expected value takes the place of the draw, and nothing is left to chance. Threads may
    share a selector.

    >>> from acefraud import BulletPlaybook
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
        embedding_model: str | Embedder | OwnRole = DEFAULT_EMBEDDER,
        *,
        seed: int = 0,
        explore: bool = True,
    ) -> None:
        if not isinstance(embedding_model, str):
            check_has("embedding_model", embedding_model, "the name of an embedder, or an Embedder", "embed")
        check_whole("seed", seed)
        self.embedder = _embedder(embedding_model)
        check_share("quality_threshold", quality_threshold)
        if semantic_threshold is not None:
            check_share("semantic_threshold", semantic_threshold)
        check_share("diversity_weight", diversity_weight)
        self.quality_threshold, self.diversity_weight = quality_threshold, diversity_weight
        self.semantic_threshold = self.embedder.threshold if semantic_threshold is None else semantic_threshold
        self.weights = Weights.of(weights)
        self.seed = seed
        self.explore = explore
        self._vectors = BulletVectors(self.embedder)
        self._selecting = RLock()
        """Held while vectors are looked up, which fills their matrix."""

    def __repr__(self) -> str:
        return f"HybridSelector({shown_text(self.embedder.name)}, {self.settings}, seed={self.seed})"

    def select_bullets(
        self,
        query: str | Transaction,
        node: str,
        playbook: BulletPlaybook,
        n_bullets: int = 5,
        source: Source | str | None = None,
    ) -> tuple[list[Bullet], list[BulletScore]]:
        """The bullets for a transaction, best first, and their scores.

        >>> from acefraud import BulletPlaybook, Transaction
        >>> playbook = BulletPlaybook()
        >>> vpn = playbook.add_bullet("VPN: decline", source="offline")
        >>> night = playbook.add_bullet("Night and amount above 500: decline", source="online")
        >>> order = Transaction(id="t1", facts={"vpn": True, "night": True, "amount": 20})
        >>> bullets, scores = HybridSelector().select_bullets(order, "fraud_detection", playbook, n_bullets=5)
        >>> [bullet.content for bullet in bullets]
        ['VPN: decline']
        >>> HybridSelector().select_bullets(order, "fraud_detection", playbook, source="online")
        ([], [])
        """
        check_type("query", query, (str, Transaction), "the text of a transaction, or a Transaction")
        check_type("node", node, str, "the name of a node")
        check_type("playbook", playbook, BulletPlaybook, "a BulletPlaybook")
        transaction = query if isinstance(query, Transaction) else _transaction(query)
        facts, snapshot = facts_of(transaction).facts, playbook.snapshot()
        (chosen,) = self.select_many([transaction], [facts], snapshot, node=node, n_bullets=n_bullets, source=source)
        calibration = snapshot.calibration(node)
        return [with_measured_text(bullet, calibration) for bullet in chosen.bullets], list(chosen.scores)

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
        drawn_at: Sequence[int] | None = None,
    ) -> Selections:
        """Select for transactions with known facts, with a trace of the stages.

        Many at once are several times as fast as one by one.

        With `proven_only`, notes and bullets whose condition an unknown fact leaves open are left out: the embedded
        engine, which picks for itself, does not use them. A language model may. Draws are those of the snapshot's
        revision, or of the revision in `drawn_at` for each transaction, so that only a change of the playbook shows.
        """
        check_whole("n_bullets", n_bullets, least=0)
        request = _request(snapshot, node, n_bullets, source, proven_only=proven_only)
        good = stages.passed_by(request, facts, self.quality_threshold)
        revisions = [snapshot.revision] * len(transactions) if drawn_at is None else drawn_at
        keys = [
            key_for(self.seed, transaction.id, revision) if self.explore else None
            for transaction, revision in zip(transactions, revisions, strict=True)
        ]
        with self._selecting:
            prose = self._semantic_matches(request.table, list(zip(transactions, facts, strict=True)), good)
            picks = self._picks(request, good, prose, keys)
        counts = picks.counts.tolist()
        relevant = [len(passed.proven) + len(near.rows) for passed, near in zip(good, prose, strict=True)]
        left = [
            (passed.in_context, passed.good, near, near, count)
            for passed, near, count in zip(good, relevant, counts, strict=True)
        ]
        proven = [min(len(passed.proven), count) for passed, count in zip(good, counts, strict=True)]
        setup = self.setup(snapshot.revision, n_bullets, source)
        return Selections(snapshot.table, picks, left, proven, setup)

    def cite(
        self, proven: Words, ids: Sequence[str], snapshot: Snapshot, *, node: str = DEFAULT_NODE, n_bullets: int = 5
    ) -> Words:
        """The bullets that `select_many` picks of those that are proven to apply, as bit sets of rows.

        Without exploration the picks depend only on which bullets apply, so they are made once for each set of them.
        """
        request = _request(snapshot, node, n_bullets, proven_only=True)
        cited = stages.good_of(request, proven, self.quality_threshold)
        crowded = np.flatnonzero(counts_of(cited) > n_bullets)  # the others cite all that are left
        sets, same = cited[crowded], np.arange(len(crowded))
        if not self.explore:
            sets, same = np.unique(sets, axis=0, return_inverse=True)
        keys = [key_for(self.seed, ids[row], snapshot.revision) if self.explore else None for row in crowded.tolist()]
        at_once = max(1, stages.CELLS // max(1, len(request.table)))
        parts = (slice(start, start + at_once) for start in range(0, len(sets), at_once))
        picked = [self._picked(request, sets[part], keys[part]) for part in parts]
        cited[crowded] = np.concatenate([sets[:0], *picked])[same.reshape(-1)]
        return cited

    def _picked(self, request: Request, sets: Words, keys: Sequence[np.uint64 | None]) -> Words:
        """The picks out of each set of proven bullets."""
        count = len(request.table)
        good = [Passed(0, len(rows), rows) for rows in rows_of_each(sets, count)]
        with self._selecting:
            rows = self._picks(request, good, [NO_CANDIDATES] * len(good), keys).rows
        flags = np.zeros((len(sets), count), dtype=np.bool_)
        flags[np.nonzero(rows >= 0)[0], rows[rows >= 0]] = True
        return packed_flags(flags)

    def texts_for(
        self, transaction: Transaction, facts: Mapping[str, FactValue], snapshot: Snapshot, node: str
    ) -> list[str]:
        """Every text that a selection may embed, for embedders that fetch vectors ahead."""
        table = snapshot.table
        possible, proven = table.wording.conditions.match(facts)
        in_context = table.in_use(table.node(node)).bits & possible
        query = [self.embedder.presentable(transaction.text, facts)] if in_context & ~proven else []
        return [*query, *(self.embedder.presentable_bullet(table.bullets[row]) for row in rows_in(in_context))]

    def _semantic_matches(
        self, table: BulletTable, given: Sequence[tuple[Transaction, Facts]], good: Sequence[Passed]
    ) -> list[Candidates]:
        """Stage 3 for bullets in prose."""
        found = [NO_CANDIDATES] * len(good)
        asking = [index for index, passed in enumerate(good) if len(passed.prose)]
        if asking:
            texts = [self.embedder.presentable(given[at][0].text, given[at][1]) for at in asking]
            queries = Directions.of(self.embedder.embed(texts))
            for index, place in enumerate(asking):
                rows = good[place].prose
                matrix = self._vectors.matrix(table, rows)
                found[place] = stages.semantic_by_cosine(rows, matrix, queries.take(index), self.semantic_threshold)
        return found

    def _picks(
        self, request: Request, good: Sequence[Passed], prose: Sequence[Candidates], keys: Sequence[np.uint64 | None]
    ) -> Picks:
        """Stages 3 to 5. A bullet that is only similar never takes the place of one that is proven to apply."""
        stats = stats_of(request.table, request.base_rate)
        likeness_of = partial(self._vectors.likeness, request.table)
        ranking = Ranking(stats, likeness_of, self.weights, self.diversity_weight)
        proven = stages.all_semantic_by_proof(
            [passed.proven for passed in good], stats.strength, self.semantic_threshold
        )
        picks = Picks.none(len(good), request.wanted)
        for candidates in (proven, prose):
            add_picks(picks, candidates, keys, ranking)
        return picks

    def setup(self, revision: int, n_bullets: int, source: Source | str | None = None) -> Setup:
        """What a trace says of how a selection was made."""
        settings = f"{self.settings} n={n_bullets} source={source or 'all'}"
        return Setup(revision, self.seed, self.embedder.name, settings)

    def without_draws(self) -> HybridSelector:
        """A copy of this selector that draws nothing at random and uses no network.

        >>> HybridSelector().without_draws().explore
        False
        """
        clone = self.with_embedder(DEFAULT_EMBEDDER) if self.embedder.fetches_ahead else copy.copy(self)
        clone.explore = False
        return clone

    def with_embedder(self, name: str) -> HybridSelector:
        """A copy of this selector with another embedder and the threshold measured for it.

        >>> HybridSelector().with_embedder("hashing").embedder.name
        'hashing-512'
        """
        clone = copy.copy(self)
        clone.embedder = _embedder(name)
        clone._vectors = BulletVectors(clone.embedder)
        clone.semantic_threshold = clone.embedder.threshold
        return clone

    @property
    def settings(self) -> str:
        """The thresholds and weights, in one line.

        >>> HybridSelector(semantic_threshold=0.5).settings
        'quality>=0.3 semantic>=0.5 diversity=0.15 weights=0.3/0.4/0.3'
        """
        thresholds = self.quality_threshold, self.semantic_threshold, self.diversity_weight
        return _settings_of(*thresholds, self.weights, self.explore)


@lru_cache(maxsize=64)
def _settings_of(quality: float, semantic: float, diversity: float, weights: Weights, explore: bool) -> str:
    return (
        f"quality>={quality:g} semantic>={semantic:g} diversity={diversity:g} "
        f"weights={weights.quality:g}/{weights.semantic:g}/{weights.thompson:g}{'' if explore else ' explore=no'}"
    )


def _embedder(name: str | Embedder | OwnRole) -> Embedder:
    """The embedder of that name (an embedded one, or a model that is named with its provider), or one's own."""
    if not isinstance(name, str):
        return CachedEmbedder(name) if is_own(name) else name
    if name == DEFAULT_EMBEDDING.partition(":")[2]:  # as the ACE system calls it
        name = DEFAULT_EMBEDDING
    return ModelEmbedder(ModelClient(), name) if ":" in name else embedder_named(name)


def _request(
    snapshot: Snapshot, node: str, wanted: int, source: Source | str | None = None, *, proven_only: bool
) -> Request:
    table, calibration = snapshot.table, snapshot.calibration(node)
    base_rate = calibration.base_rate if calibration else 0.5
    return Request(table, table.node(node), _source(source), base_rate, wanted, proven_only)


def _transaction(query: str) -> Transaction:
    """A transaction from free text. Its first words serve as its id."""
    if not query.strip():
        raise InputError("expected the text of a transaction, got an empty one")
    return Transaction(id=query.strip()[:200], text=query)


def _source(source: Source | str | None) -> Source | None:
    try:
        return None if source is None else Source(source)
    except ValueError:
        raise ConfigurationError(f"source must be one of {', '.join(Source)}, got {source!r}") from None
