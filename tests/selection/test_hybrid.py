"""The whole selection against a slow, plain reference, and what it promises at the edges."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from acefraud.core.bullet import Bullet, Evidence, Record, Source, Status, balanced_precision
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.events import BulletAdded, Recalibrated
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.errors import ConfigurationError
from acefraud.roles.embedded.embedder import HashingEmbedder, whole
from acefraud.roles.protocols import Embedder, EmbedsInProcess, Vectors
from acefraud.selection.hybrid import HybridSelector, Selection
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


class GivenVectors(EmbedsInProcess):
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


class Remembering(EmbedsInProcess):
    """An embedder that works out each text once."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.threshold = embedder.name, embedder.threshold
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= zip(missing, self._embedder.embed(missing), strict=True)
        return np.stack([self._known[text] for text in texts])


class FarAway(Remembering):
    """One whose vectors come over a network: only those are asked for that are needed."""

    fetches_ahead = True

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        return text or str(facts)

    def presentable_bullet(self, bullet: Bullet) -> str:
        return bullet.content

    async def fetch(self, texts: Sequence[str]) -> None:
        self.embed(texts)


HASHING, GIVEN = Remembering(HashingEmbedder()), Remembering(GivenVectors())


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


Vector = npt.NDArray[np.float64]


def dot(one: Vector, other: Vector) -> float:
    return float(one @ other)


def for_and_against(bullet: Bullet, base_rate: float) -> tuple[float, float]:
    evenness = 4 * base_rate * (1 - base_rate)
    supporting, opposing = evenness * bullet.helpful_count, evenness * bullet.harmful_count
    if bullet.argues is not None and bullet.evidence is not None:
        record = bullet.evidence.learnt
        right = balanced_precision(record.frauds, record.support, base_rate)
        if bullet.argues is Verdict.APPROVE:
            right = 1 - right
        supporting += (1 - evenness) * record.support * right
        opposing += (1 - evenness) * record.support * (1 - right)
    return supporting, opposing


def plain_uniform(key: int, turn: int) -> float:
    """SplitMix64, word for word."""
    z = (key + (turn + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (((z ^ (z >> 31)) >> 12) + 0.5) / 2**52


def plain_beta(start: int, bullet_id: str, a: float, b: float) -> float:
    """Cheng's BB as it stands in the paper, without its short cuts."""
    key = start ^ int.from_bytes(hashlib.blake2b(bullet_id.encode(), digest_size=8).digest(), "big")
    if b == 1:
        return float(plain_uniform(key, 0) ** (1 / a))
    if a == 1:
        return float(1 - plain_uniform(key, 0) ** (1 / b))
    low, high = min(a, b), max(a, b)
    rate = math.sqrt((a + b - 2) / (2 * a * b - a - b))
    for turn in range(0, 1000, 2):
        u, other = plain_uniform(key, turn), plain_uniform(key, turn + 1)
        v = rate * math.log(u / (1 - u))
        w = low * math.exp(v)
        if (low + 1 / rate) * v - math.log(4) + (a + b) * math.log((a + b) / (high + w)) >= math.log(u * u * other):
            return (w if a == low else high) / (high + w)
    raise AssertionError("no draw")


def plain_selection(  # noqa: PLR0915  # one stage after the other, as it is told
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
        waiting = each.condition is None and each.status is Status.CANDIDATE
        excluded = each.status is Status.RETIRED or (each.condition and each.condition.truth(facts) is False) or waiting
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

    texts = [transaction.text, *(each.content for each in good)]
    rounded = whole(selector.embedder.embed(texts)).astype(np.float64)
    lengths = np.sqrt((rounded**2).sum(axis=1, keepdims=True))
    vectors = dict(zip(texts, rounded / np.maximum(lengths, 1.0), strict=True))

    query, floor = vectors[transaction.text], selector.semantic_threshold
    largest = max((abs(each.weight or 0.0) for each in good if proven(each)), default=0.0)
    relevant: list[tuple[Bullet, float, Vector]] = []
    enough = sum(proven(each) for each in good) >= n
    for each in good:
        if enough and not proven(each):  # what merely resembles would have no place
            continue
        own = vectors[each.content]
        relevance = floor + (1 - floor) * abs(each.weight or 0.0) / largest if proven(each) else dot(own, query)
        if relevance >= floor:
            relevant.append((each, relevance, own))
    left.append(len(relevant))

    key = f"{selector.seed}\x00{transaction.id}\x00{snapshot.revision}".encode()
    start = int.from_bytes(hashlib.sha256(key).digest()[:8], "big")
    weights = selector.weights
    scored = []
    for each, relevance, own in relevant:
        supporting, opposing = for_and_against(each, base_rate)
        expected = (supporting + 1) / (supporting + opposing + 2)
        draw = plain_beta(start, each.id, supporting + 1, opposing + 1) if selector.explore else expected
        score = weights.quality * rate(each) + weights.semantic * relevance + weights.thompson * draw
        scored.append((each, relevance, own, draw, score))
    left.append(len(scored))

    ids, figures = list[str](), list[list[float]]()
    alike = [0.0] * len(scored)
    left_over = dict(enumerate(scored))
    while left_over and len(ids) < n:
        best, best_total, best_bonus = 0, -math.inf, 0.0
        any_proven = any(proven(each) for each, *_ in left_over.values())
        for at, (each, *_, score) in left_over.items():
            bonus = (1 - alike[at] / len(ids)) * selector.diversity_weight if ids else 0.0
            if score + bonus > best_total and (proven(each) or not any_proven):
                best, best_total, best_bonus = at, score + bonus, bonus
        each, relevance, picked, draw, score = left_over.pop(best)
        alike = [before + dot(own, picked) for before, (_, _, own, *_) in zip(alike, scored, strict=True)]
        ids.append(each.id)
        figures.append([rate(each), relevance, draw, score, best_bonus, best_total])
    return Plain(ids, figures, [*left, len(ids)])


def check(chosen: Selection, expected: Plain) -> None:
    assert [each.id for each in chosen.bullets] == expected.ids
    assert [score.bullet_id for score in chosen.scores] == expected.ids
    for score, figures in zip(chosen.scores, expected.figures, strict=True):
        found = [score.quality, score.semantic, score.thompson, score.combined, score.diversity, score.total]
        assert found == pytest.approx(figures, abs=1e-6)
    assert [(stage.stage, stage.left) for stage in chosen.trace.stages] == list(zip(STAGES, expected.left, strict=True))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("embedder", [HashingEmbedder(), GivenVectors()], ids=lambda embedder: str(embedder.name))
def test_the_selection_is_what_a_plain_reading_of_the_five_stages_gives(embedder: Embedder, seed: int) -> None:
    dice = random.Random(seed)
    bullets = [random_bullet(dice, index) for index in range(dice.choice([0, 1, 6, 25, 60]))]
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
    chosen = selector.select_many([transaction], [facts], snapshot, n_bullets=n, source=source)[0]
    expected = plain_selection(selector, transaction, facts, snapshot, n=n, source=source)
    check(chosen, expected)
    assert (chosen.trace.revision, chosen.trace.seed) == (snapshot.revision, seed)


# --- fields and books that are too large to be looked at as a whole ----------------------------------------------

WORDS = ["gift", "cards", "night", "crypto", "merchant", "nervous", "caller", "device", "payee", "amount", "refund"]


def in_words(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=4))


def prose(dice: random.Random, place: int) -> Bullet:
    return Bullet(
        id=f"b{place}",
        content=f"{in_words(dice)} {dice.randrange(10**6)}",
        argues=dice.choice([Verdict.DECLINE, Verdict.APPROVE, None]),
        weight=dice.uniform(-3, 3),
        helpful_count=dice.choice([0, 0, 1, 5, 30]),
        harmful_count=dice.choice([0, 0, 1, 3]),
    )


@cache
def large_snapshot(size: int, ties: bool = False) -> Snapshot:
    """A book in prose. With ties, every text stands there twenty times, and nothing else tells bullets apart."""
    dice = random.Random(size)
    bullets = [prose(dice, index) for index in range(size)]
    if ties:
        texts = [each.content for each in bullets[: size // 20]]
        bullets = [Bullet(id=each.id, content=dice.choice(texts)) for each in bullets]
    return Snapshot(7, {each.id: each for each in bullets})


@pytest.mark.parametrize("diversity", [0.0, 0.15, 0.5])
@pytest.mark.parametrize("embedder", [HASHING, GIVEN], ids=lambda embedder: str(embedder.name))
@pytest.mark.parametrize(("size", "ties"), [(700, False), (700, True), (3_000, False), (3_000, True)])
def test_of_a_large_field_those_are_picked_that_looking_at_everybody_picks(
    size: int, ties: bool, embedder: Embedder, diversity: float
) -> None:
    snapshot = large_snapshot(size, ties)
    selector = HybridSelector(
        semantic_threshold=0.0, diversity_weight=diversity, embedding_model=embedder, explore=not ties
    )
    for name in ("t1", "t4") if size < 1_000 else ("t1",):
        transaction = Transaction(id=name, text=in_words(random.Random(name)))
        chosen = selector.select_many([transaction], [{}], snapshot, n_bullets=6)[0]
        assert chosen.trace.stages[2].left > 128
        check(chosen, plain_selection(selector, transaction, {}, snapshot, n=6, source=None))


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 100, 700])
def test_of_a_large_field_as_many_are_picked_as_are_wanted(n: int, explore: bool) -> None:
    snapshot = large_snapshot(700)
    selector = HybridSelector(semantic_threshold=0.0, embedding_model=GIVEN, explore=explore)
    transaction = Transaction(id="t", text=in_words(random.Random("t1")))
    chosen = selector.select_many([transaction], [{}], snapshot, n_bullets=n)[0]
    assert len(chosen.bullets) == min(n, chosen.trace.stages[2].left)
    check(chosen, plain_selection(selector, transaction, {}, snapshot, n=n, source=None))


@cache
def mixed_snapshot() -> Snapshot:
    """Bullets in prose and with conditions."""
    dice = random.Random(4)
    bullets = [random_bullet(dice, index) for index in range(2_500)]
    return Snapshot(
        3,
        {each.id: each for each in bullets},
        {"fraud_detection": Calibration(intercept=-1.0, base_rate=0.05)},
    )


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("n", [5, 150])
def test_the_selection_from_a_large_mixed_book_is_what_a_plain_reading_gives(n: int, explore: bool) -> None:
    selector = HybridSelector(embedding_model=GIVEN, explore=explore, seed=2)
    # Nearly nothing is proven, much is proven, and nothing can be.
    known: list[dict[str, FactValue]] = [{"channel": "x"}, {"amount": 900.0, "vpn": True}, {}]
    for index, facts in enumerate(known if n == 5 else known[:1]):
        transaction = Transaction(id=f"t{index}", text=PROSE[index])
        chosen = selector.select_many([transaction], [facts], mixed_snapshot(), n_bullets=n)[0]
        check(chosen, plain_selection(selector, transaction, facts, mixed_snapshot(), n=n, source=None))


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("diversity", [0.0, 0.5])
def test_thousands_of_proven_bullets(explore: bool, diversity: float) -> None:
    condition = Condition.parse("amount > 100")
    bullets = [
        Bullet(id=f"b{index}", content=f"bullet number {index}", condition=condition, weight=3 - index / 1_000)
        for index in range(2_500)
    ]
    snapshot = Snapshot(1, {each.id: each for each in bullets})
    selector = HybridSelector(diversity_weight=diversity, embedding_model=GIVEN, explore=explore)
    transaction, facts = Transaction(id="t", text="x"), {"amount": 900.0}
    chosen = selector.select_many([transaction], [facts], snapshot)[0]
    check(chosen, plain_selection(selector, transaction, facts, snapshot, n=5, source=None))


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("n", [2, 5, 40])
def test_vectors_that_come_over_a_network_make_no_difference(n: int, explore: bool) -> None:
    near = HybridSelector(semantic_threshold=0.1, embedding_model=GIVEN, explore=explore)
    far = HybridSelector(semantic_threshold=0.1, embedding_model=FarAway(GivenVectors()), explore=explore)
    transactions, facts = transactions_for(random.Random(n), 12)
    for snapshot in (mixed_snapshot(), large_snapshot(700)):
        for transaction, known in zip(transactions, facts, strict=True):
            expected = near.select_many([transaction], [known], snapshot, n_bullets=n)[0]
            assert far.select_many([transaction], [known], snapshot, n_bullets=n)[0] == expected
        together = far.select_many(transactions, facts, snapshot, n_bullets=n)
        assert list(together) == list(near.select_many(transactions, facts, snapshot, n_bullets=n))


def transactions_for(dice: random.Random, count: int) -> tuple[list[Transaction], list[dict[str, FactValue]]]:
    facts: list[dict[str, FactValue]] = []
    for _ in range(count):
        known: dict[str, FactValue] = {
            "amount": dice.choice([50.0, 300.0, 900.0]),
            "vpn": dice.random() < 0.5,
            "hour": float(dice.randrange(24)),
            "channel": dice.choice("xy"),
        }
        facts.append({name: value for name, value in known.items() if dice.random() < 0.6})
    return [Transaction(id=f"t{index}", text=f"{in_words(dice)} {index % 40}") for index in range(count)], facts


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("embedder", [HASHING, GIVEN], ids=lambda embedder: str(embedder.name))
@pytest.mark.parametrize("large", [False, True])
def test_many_transactions_at_once_get_what_each_gets_alone_to_the_last_bit(
    large: bool, embedder: Embedder, explore: bool
) -> None:
    dice = random.Random(large)
    small = Snapshot(9, {each.id: each for each in (random_bullet(dice, index) for index in range(120))})
    snapshot = mixed_snapshot() if large else small
    count = 300 if embedder is GIVEN else 40
    transactions, facts = transactions_for(dice, count)
    selector = HybridSelector(embedding_model=embedder, explore=explore, seed=5)
    kinds = set()
    for n, source in ((5, None), (150 if large else 25, Source.OFFLINE)):
        some = slice(None) if n < 100 else slice(6)
        together = selector.select_many(transactions[some], facts[some], snapshot, n_bullets=n, source=source)
        alone = [
            selector.select_many([transaction], [known], snapshot, n_bullets=n, source=source)[0]
            for transaction, known in zip(transactions[some], facts[some], strict=True)
        ]
        assert list(together) == alone
        kinds |= {"none" if not each.proven else "enough" if each.proven == n else "a few" for each in together}
    assert kinds == {"none", "a few", "enough"}  # bullets that are proven to apply


def test_no_transactions_get_no_selections() -> None:
    assert len(HybridSelector(embedding_model=GIVEN).select_many([], [], mixed_snapshot())) == 0


# --- revisions ---------------------------------------------------------------------------------------------------


def random_edit(dice: random.Random, playbook: BulletPlaybook) -> None:
    ids = list(playbook.snapshot().bullets)
    said = f"{dice.choice([in_words(dice), 'Amount above 500', 'VPN'])} {dice.randrange(50)}: decline"
    acts: list[Callable[[], object]] = [
        lambda: playbook.add_bullet(said, source=dice.choice(list(Source))),
        lambda: playbook.edit_bullet(dice.choice(ids), said),
        lambda: playbook.set_status(dice.choice(ids), dice.choice(list(Status))),
        lambda: playbook.update_stats(dice.choice(ids), dice.random() < 0.5),
        lambda: playbook.record(
            [
                Recalibrated(
                    node="fraud_detection",
                    calibration=Calibration(intercept=-1.0, base_rate=dice.choice([0.5, 0.05])),
                    weights={dice.choice(ids): dice.uniform(-2, 2)},
                )
            ]
        ),
        lambda: given_up(dice, playbook),
    ]
    dice.choice(acts if ids else acts[:1])()


def given_up(dice: random.Random, playbook: BulletPlaybook) -> None:
    """A step that is seen by a selection and then comes to nothing."""
    with suppress(ZeroDivisionError), playbook.unit_of_work():
        playbook.add_bullet(f"{in_words(dice)}: decline")
        playbook.edit_bullet(next(iter(playbook.snapshot().bullets)), f"{in_words(dice)} again: decline")
        raise ZeroDivisionError


def selected(selector: HybridSelector, snapshot: Snapshot) -> list[Selection]:
    transactions, facts = transactions_for(random.Random(snapshot.revision), 3)
    return [
        selector.select_many([transaction], [known], snapshot, n_bullets=8)[0]
        for transaction, known in zip(transactions, facts, strict=True)
    ]


def fresh(embedder: Embedder) -> HybridSelector:
    return HybridSelector(0.2, 0.1, embedding_model=embedder)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_a_selector_used_over_many_revisions_gives_what_a_fresh_one_gives(seed: int) -> None:
    dice, playbook, shared = random.Random(seed), BulletPlaybook(), fresh(GIVEN)
    taken: list[tuple[Snapshot, list[Selection]]] = []
    for _ in range(70):
        random_edit(dice, playbook)
        if dice.random() < 0.3:
            continue  # not every revision is looked at
        snapshot = playbook.snapshot()
        chosen = selected(shared, snapshot)
        assert chosen == selected(fresh(GIVEN), playbook.snapshot_at(snapshot.revision))
        taken.append((snapshot, chosen))
    for snapshot, chosen in dice.sample(taken, 15):  # whoever still holds an old one gets the same from it
        assert selected(shared, snapshot) == chosen
        assert selected(fresh(GIVEN), snapshot) == chosen


def test_a_selector_used_between_edits_of_a_large_book_gives_what_a_fresh_one_gives() -> None:
    dice, playbook, shared = random.Random(1), BulletPlaybook(), fresh(GIVEN)
    playbook.record([BulletAdded(bullet=prose(dice, index)) for index in range(1_021)])
    taken: list[tuple[Snapshot, list[Selection]]] = []
    for turn in range(8):
        playbook.record([BulletAdded(bullet=prose(dice, 1_021 + turn))])
        playbook.edit_bullet(f"b{dice.randrange(1_021 + turn)}", f"{in_words(dice)}: decline")
        playbook.update_stats(f"b{dice.randrange(1_021 + turn)}", is_helpful=True)
        snapshot = playbook.snapshot()
        taken.append((snapshot, selected(shared, snapshot)))
    for snapshot, chosen in taken:
        assert selected(shared, snapshot) == chosen
        assert selected(fresh(GIVEN), snapshot) == chosen
    assert selected(fresh(GIVEN), playbook.snapshot_at(taken[-1][0].revision)) == taken[-1][1]


def test_a_reader_of_an_old_snapshot_gets_the_same_selection_whatever_is_written_meanwhile() -> None:
    dice, playbook, shared = random.Random(8), BulletPlaybook(), fresh(HASHING)
    playbook.record([BulletAdded(bullet=prose(dice, index)) for index in range(40)])
    old = playbook.snapshot()
    before = selected(shared, old)
    playbook.add_bullet("gift cards at night: decline")
    playbook.edit_bullet("b3", "refund to a crypto merchant: decline")
    playbook.update_stats("b4", is_helpful=False)
    playbook.set_status("b5", Status.RETIRED)
    playbook.set_status("b6", Status.PINNED)
    assert selected(shared, playbook.snapshot()) != before
    assert selected(shared, old) == before
    assert selected(fresh(HASHING), old) == before


def playbook_of(count: int) -> BulletPlaybook:
    playbook = BulletPlaybook()
    for index in range(count):
        playbook.add_bullet(f"Amount above {100 + index}: decline", "fraud_detection")
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
    first = HybridSelector(embedding_model="hashing", explore=False).select_many(
        [Transaction(id="t", facts=facts)], [facts], snapshot
    )[0]
    for seed, name, book in [(1, "t", snapshot), (0, "u", snapshot), (0, "t", later)]:
        selector = HybridSelector(embedding_model="hashing", seed=seed, explore=False)
        again = selector.select_many([Transaction(id=name, facts=facts)], [facts], book)[0]
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
    chosen = selector.select_many([Transaction(id="t", text="x")], [{"amount": 900.0}], Snapshot(1, bullets))[0]
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
