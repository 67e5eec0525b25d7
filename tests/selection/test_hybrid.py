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
from acefraud.core.evidence import Evidence, Record
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Embedder, Vectors
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import FactValue, Transaction, Verdict
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
    with_condition, support = dice.random() < 0.5, dice.choice([0, 0, 30, 400])
    frauds = round(support * dice.choice([0.0, 0.02, 0.3, 0.9]))
    return Bullet(
        id=f"b{place}",
        content=f"{dice.choice(PROSE)} {dice.choice(PROSE)} {place}",
        node=dice.choice(["fraud_detection"] * 4 + ["other"]),
        source=dice.choice(list(Source)),
        status=dice.choice([Status.ACTIVE] * 4 + [Status.CANDIDATE, Status.PINNED, Status.RETIRED]),
        condition=Condition.parse(dice.choice(CONDITIONS)) if with_condition else None,
        argues=dice.choice([Verdict.DECLINE, Verdict.APPROVE, None]),
        evidence=Evidence(learnt=Record(support=support, frauds=frauds), base_rate=0.1) if support else None,
        weight=dice.uniform(-3, 3),
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


def for_and_against(bullet: Bullet, base_rate: float) -> tuple[float, float]:
    evenness = 4 * base_rate * (1 - base_rate)
    supporting, opposing = evenness * bullet.helpful_count, evenness * bullet.harmful_count
    if bullet.argues is not None and bullet.evidence is not None:
        record = bullet.evidence.learnt
        right = record.balanced_precision(base_rate)
        if bullet.argues is Verdict.APPROVE:
            right = 1 - right
        supporting += (1 - evenness) * record.support * right
        opposing += (1 - evenness) * record.support * (1 - right)
    return supporting, opposing


def plain_selection(
    selector: HybridSelector,
    transaction: Transaction,
    facts: Mapping[str, FactValue],
    snapshot: Snapshot,
    *,
    n: int,
    source: Source | None,
) -> Plain:
    calibration = snapshot.calibration("fraud_detection")
    base_rate = calibration.base_rate if calibration else 0.5
    left: list[int] = []
    context: list[Bullet] = []
    for each in snapshot.bullets.values():
        right_place = each.node == "fraud_detection" and (source is None or each.source is source)
        excluded = each.status is Status.RETIRED or (each.condition and each.condition.truth(facts) is False)
        if right_place and not excluded:
            context.append(each)
    left.append(len(context))

    def proven(of: Bullet) -> bool:
        return of.condition is not None and of.condition.holds(facts)

    context = [each for each in context if proven(each)] + [each for each in context if not proven(each)]

    def rate(of: Bullet) -> float:
        supporting, opposing = for_and_against(of, base_rate)
        return supporting / (supporting + opposing) if supporting + opposing else 0.5

    def at_least(least: float) -> list[Bullet]:
        return [each for each in context if each.status is Status.PINNED or rate(each) >= least]

    good = at_least(selector.quality_threshold)
    if len(good) < n:
        good = at_least(0.8 * selector.quality_threshold)
    left.append(len(good))

    def vector(text: str) -> list[float]:
        return [float(x) for x in selector.embedder.embed([text])[0]]

    query, floor = vector(transaction.text), selector.semantic_threshold
    largest = max((abs(each.weight or 0.0) for each in good if proven(each)), default=0.0)
    relevant: list[tuple[Bullet, float, list[float]]] = []
    for each in good:
        own = vector(each.content)
        relevance = floor + (1 - floor) * abs(each.weight or 0.0) / largest if proven(each) else dot(own, query)
        if relevance >= floor:
            relevant.append((each, relevance, own))
    left.append(len(relevant))

    key = f"{selector.seed}\x00{transaction.id}\x00{snapshot.revision}".encode()
    generator = np.random.default_rng(int.from_bytes(hashlib.sha256(key).digest()[:16], "big"))
    weights = selector.weights
    scored = []
    for each, relevance, own in relevant:
        supporting, opposing = for_and_against(each, base_rate)
        expected = (supporting + 1) / (supporting + opposing + 2)
        draw = float(generator.beta(supporting + 1, opposing + 1)) if selector.explore else expected
        score = weights.quality * rate(each) + weights.semantic * relevance + weights.thompson * draw
        scored.append((each, relevance, own, draw, score))
    left.append(len(scored))

    ids, figures, picked = list[str](), list[list[float]](), list[list[float]]()
    while scored and len(ids) < n:
        best, best_total, best_bonus = 0, -math.inf, 0.0
        any_proven = any(proven(each) for each, *_ in scored)
        for place, (each, _, own, _, score) in enumerate(scored):
            average = sum(dot(own, other) for other in picked) / len(picked) if picked else 1.0
            bonus = (1 - average) * selector.diversity_weight
            if score + bonus > best_total and (proven(each) or not any_proven):
                best, best_total, best_bonus = place, score + bonus, bonus
        each, relevance, own, draw, score = scored.pop(best)
        picked.append(own)
        ids.append(each.id)
        figures.append([rate(each), relevance, draw, score, best_bonus, best_total])
    return Plain(ids, figures, [*left, len(ids)])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("embedder", [HashingEmbedder(), GivenVectors()], ids=lambda embedder: str(embedder.name))
def test_the_selection_is_what_a_plain_reading_of_the_five_stages_gives(embedder: Embedder, seed: int) -> None:
    dice = random.Random(seed)
    bullets = [random_bullet(dice, place) for place in range(dice.choice([0, 1, 6, 25, 60]))]
    base_rate = dice.choice([None, 0.5, 0.05, 0.005])
    frames = {} if base_rate is None else {"fraud_detection": Calibration(intercept=-1.0, base_rate=base_rate)}
    snapshot = Snapshot(dice.randrange(100), {each.id: each for each in bullets}, frames)
    selector = HybridSelector(
        quality_threshold=dice.choice([0.0, 0.3, 0.6]),
        diversity_weight=dice.choice([0.0, 0.15, 0.5]),
        weights=dice.choice([None, {"quality": 0.1, "semantic": 0.1, "thompson": 0.8}]),
        embedding_model=embedder,
        seed=seed,
        explore=dice.random() < 0.7,
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


def test_without_exploration_neither_seed_nor_transaction_nor_revision_matters() -> None:
    facts: dict[str, FactValue] = {"amount": 900.0}
    snapshot = playbook_of(8).snapshot()
    later = Snapshot(snapshot.revision + 1, snapshot.bullets, snapshot.calibrations)
    first = HybridSelector(embedding_model="hashing", explore=False).select(
        Transaction(id="t", facts=facts), facts, snapshot
    )
    for seed, name, book in [(1, "t", snapshot), (0, "u", snapshot), (0, "t", later)]:
        selector = HybridSelector(embedding_model="hashing", seed=seed, explore=False)
        again = selector.select(Transaction(id=name, facts=facts), facts, book)
        assert (again.bullets, again.scores) == (first.bullets, first.scores)
    assert all(score.thompson == 0.5 for score in first.scores)  # nothing is known of any of them
    assert first.trace.settings.count("explore=no") == 1


def test_a_selector_without_draws_is_the_same_in_all_else() -> None:
    selector = HybridSelector(0.4, 0.5, 0.2, {"quality": 1.0}, "hashing", seed=3)
    settled = selector.without_draws()
    assert (selector.explore, settled.explore) == (True, False)
    assert settled.settings == f"{selector.settings} explore=no"


def test_what_moves_the_decision_more_is_cited_first() -> None:
    condition = Condition.parse("amount > 100")
    weights = {"a little": 0.2, "much": -2.0, "some": 1.0}
    bullets = {name: Bullet(id=name, content=name, condition=condition, weight=w) for name, w in weights.items()}
    selector = HybridSelector(embedding_model="hashing", diversity_weight=0.0, explore=False)
    chosen = selector.select(Transaction(id="t", text="x"), {"amount": 900.0}, Snapshot(1, bullets))
    assert [each.id for each in chosen.bullets] == ["much", "some", "a little"]
    assert [score.semantic for score in chosen.scores] == pytest.approx([1.0, 0.605, 0.289])


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
