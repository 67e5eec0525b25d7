"""The whole selection against a slow, plain reference, and what it promises at the edges."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Embedder, Vectors
from acefraud.core.transaction import FactValue, Transaction
from acefraud.embedded.embedder import HashingEmbedder
from acefraud.errors import ConfigurationError
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook

PROSE = ["VPN and a crypto merchant", "gift cards at night", "a large amount", "nervous caller", "new device and payee"]
CONDITIONS = [
    "amount > 500",
    "amount < 500",
    "vpn is true",
    "vpn is false",
    "amount > 100 and hour < 6",
    'channel is "x"',
]
STAGES = ["contextual", "quality", "semantic", "hybrid", "diversity"]


class GivenVectors:
    """An embedder whose vectors depend on a seed and the text alone, spread so that thresholds cut some of them."""

    name = "given"
    threshold = 0.3

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, 4), dtype=np.float32)
        rows = []
        for text in texts:
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
            row = np.random.default_rng(seed).normal(size=4) + np.array([1.0, 0.5, 0.0, 0.0])
            rows.append(row / np.linalg.norm(row))
        return np.array(rows, dtype=np.float32)


def random_bullet(dice: random.Random, place: int) -> Bullet:
    with_condition = dice.random() < 0.5
    return Bullet(
        id=f"b{place}",
        content=f"{dice.choice(PROSE)} {dice.choice(PROSE)} {place}",
        node=dice.choice(["fraud_detection"] * 4 + ["other"]),
        source=dice.choice(list(Source)),
        status=dice.choice([Status.ACTIVE] * 4 + [Status.CANDIDATE, Status.PINNED, Status.RETIRED]),
        condition=Condition.parse(dice.choice(CONDITIONS)) if with_condition else None,
        helpful_count=dice.choice([0, 0, 1, 5, 30]),
        harmful_count=dice.choice([0, 0, 1, 3, 12, 90]),
    )


@dataclass(frozen=True)
class Plain:
    """What the reference finds: ids in order, the six figures of each, and how many each stage left."""

    ids: list[str]
    figures: list[list[float]]
    left: list[int]


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def plain_selection(
    selector: HybridSelector,
    transaction: Transaction,
    facts: Mapping[str, FactValue],
    snapshot: Snapshot,
    *,
    n: int,
    source: Source | None,
) -> Plain:
    left: list[int] = []
    context: list[Bullet] = []
    for each in snapshot.bullets.values():
        right_place = each.node == "fraud_detection" and (source is None or each.source is source)
        excluded = each.status is Status.RETIRED or (each.condition and each.condition.truth(facts) is False)
        if right_place and not excluded:
            context.append(each)
    left.append(len(context))

    def rate(of: Bullet) -> float:
        used = of.helpful_count + of.harmful_count
        return of.helpful_count / used if used else 0.5

    def at_least(least: float) -> list[Bullet]:
        return [each for each in context if each.status is Status.PINNED or rate(each) >= least]

    good = at_least(selector.quality_threshold)
    if len(good) < n:
        good = at_least(0.8 * selector.quality_threshold)
    left.append(len(good))

    def vector(text: str) -> list[float]:
        return [float(x) for x in selector.embedder.embed([text])[0]]

    query = vector(transaction.text)
    relevant: list[tuple[Bullet, float, list[float]]] = []
    for each in good:
        proven = each.condition is not None and each.condition.holds(facts)
        own = vector(each.content)
        relevance = 1.0 if proven else dot(own, query)
        if relevance >= selector.semantic_threshold:
            relevant.append((each, relevance, own))
    left.append(len(relevant))

    key = f"{selector.seed}\x00{transaction.id}\x00{snapshot.revision}".encode()
    generator = np.random.default_rng(int.from_bytes(hashlib.sha256(key).digest()[:16], "big"))
    weights = selector.weights
    scored = []
    for each, relevance, own in relevant:
        draw = float(generator.beta(each.helpful_count + 1, each.harmful_count + 1))
        score = weights.quality * rate(each) + weights.semantic * relevance + weights.thompson * draw
        scored.append((each, relevance, own, draw, score))
    left.append(len(scored))

    ids, figures, picked = list[str](), list[list[float]](), list[list[float]]()
    while scored and len(ids) < n:
        best, best_total, best_bonus = 0, -math.inf, 0.0
        for place, (_, _, own, _, score) in enumerate(scored):
            average = sum(dot(own, other) for other in picked) / len(picked) if picked else 1.0
            bonus = (1 - average) * selector.diversity_weight
            if score + bonus > best_total:
                best, best_total, best_bonus = place, score + bonus, bonus
        each, relevance, own, draw, score = scored.pop(best)
        picked.append(own)
        ids.append(each.id)
        figures.append([rate(each), relevance, draw, score, best_bonus, best_total])
    return Plain(ids, figures, [*left, len(ids)])


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("embedder", [HashingEmbedder(), GivenVectors()], ids=lambda embedder: str(embedder.name))
def test_the_selection_is_what_a_plain_reading_of_the_five_stages_gives(embedder: Embedder, seed: int) -> None:
    dice = random.Random(seed)
    bullets = [random_bullet(dice, place) for place in range(dice.choice([0, 1, 6, 25, 60]))]
    snapshot = Snapshot(dice.randrange(100), {each.id: each for each in bullets})
    selector = HybridSelector(
        quality_threshold=dice.choice([0.0, 0.3, 0.6]),
        diversity_weight=dice.choice([0.0, 0.15, 0.5]),
        weights=dice.choice([None, {"quality": 0.1, "semantic": 0.1, "thompson": 0.8}]),
        embedding_model=embedder,
        seed=seed,
    )
    transaction = Transaction(id=f"t{seed}", text=dice.choice(PROSE))
    facts: dict[str, FactValue] = {"amount": dice.choice([50.0, 300.0, 900.0])}
    if dice.random() < 0.5:
        facts["vpn"] = dice.random() < 0.5
    n, source = dice.choice([0, 1, 5, 100]), dice.choice([None, None, Source.OFFLINE])
    chosen = selector.select(transaction, facts, snapshot, n_bullets=n, source=source)
    expected = plain_selection(selector, transaction, facts, snapshot, n=n, source=source)
    assert [each.id for each in chosen.bullets] == expected.ids
    assert [score.bullet_id for score in chosen.scores] == expected.ids
    for score, figures in zip(chosen.scores, expected.figures, strict=True):
        found = [score.quality, score.semantic, score.thompson, score.combined, score.diversity, score.total]
        assert found == pytest.approx(figures, abs=1e-6)
    assert [(stage.stage, stage.left) for stage in chosen.trace.stages] == list(zip(STAGES, expected.left, strict=True))
    assert (chosen.trace.revision, chosen.trace.seed) == (snapshot.revision, seed)


def playbook_of(count: int) -> BulletPlaybook:
    playbook = BulletPlaybook()
    for place in range(count):
        playbook.add_bullet(f"Amount above {100 + place}: decline", "fraud_detection")
    return playbook


def test_the_same_selection_can_be_made_again_and_another_revision_draws_anew() -> None:
    playbook, selector = playbook_of(8), HybridSelector(embedding_model="hashing")
    transaction = Transaction(id="t", facts={"amount": 900})
    first = selector.select_bullets(transaction, "fraud_detection", playbook, 8)
    again = HybridSelector(embedding_model="hashing").select_bullets(transaction, "fraud_detection", playbook, 8)
    assert first == again
    playbook.add_bullet("VIP: approve", "other")
    later = {
        score.bullet_id: score for score in selector.select_bullets(transaction, "fraud_detection", playbook, 8)[1]
    }
    assert all(later[score.bullet_id].thompson != score.thompson for score in first[1])
    seeded = HybridSelector(embedding_model="hashing", seed=1)
    assert seeded.select_bullets(transaction, "fraud_detection", playbook, 8)[1] != list(later.values())


@pytest.mark.parametrize(("count", "wanted", "found"), [(0, 5, 0), (3, 0, 0), (3, 100, 3), (3, 2, 2)])
def test_no_more_bullets_than_there_are_and_than_are_wanted(count: int, wanted: int, found: int) -> None:
    selector = HybridSelector(embedding_model="hashing")
    bullets, scores = selector.select_bullets(
        Transaction(id="t", facts={"amount": 900}), "fraud_detection", playbook_of(count), wanted
    )
    assert len(bullets) == len(scores) == found


def test_a_text_is_read_for_its_facts() -> None:
    playbook = BulletPlaybook()
    small = playbook.add_bullet("Amount below 100: approve")
    large = playbook.add_bullet("Amount above 2,000: decline")
    selector = HybridSelector(embedding_model="hashing")
    bullets, scores = selector.select_bullets("User attempts $2,500 purchase", "fraud_detection", playbook)
    assert [each.id for each in bullets] == [large] != [small]
    assert scores[0].semantic == 1.0


def test_the_threshold_is_the_one_measured_for_the_embedder_unless_given() -> None:
    assert HybridSelector(embedding_model=GivenVectors()).semantic_threshold == 0.3
    assert HybridSelector(semantic_threshold=0.5, embedding_model=GivenVectors()).semantic_threshold == 0.5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"quality_threshold": 1.2}, "quality_threshold"),
        ({"quality_threshold": math.nan}, "quality_threshold"),
        ({"semantic_threshold": -0.1}, "semantic_threshold"),
        ({"diversity_weight": 2}, "diversity_weight"),
        ({"weights": {"luck": 1.0}}, "luck"),
        ({"weights": {"quality": -1.0}}, "negative"),
        ({"embedding_model": "no-such-model"}, "no-such-model"),
    ],
)
def test_options_that_ask_for_the_impossible_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        HybridSelector(**{"embedding_model": "hashing", **options})  # type: ignore[arg-type]


def test_a_weight_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        HybridSelector(embedding_model="hashing", weights={"quality": math.nan})
