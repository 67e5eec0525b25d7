"""The usage examples that the ACE system is known for, as they stand, on the shipped dataset."""

from __future__ import annotations

import asyncio
import copy
import pickle
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from acefraud import (
    BulletPlaybook,
    Case,
    Curator,
    Dataset,
    HybridSelector,
    Learner,
    LLMJudge,
    Reflector,
    SimpleFraudAgent,
    Status,
    load_dataset,
    open_playbook,
)
from acefraud.core.bullet import NewBullet
from acefraud.core.calibration import Calibration, Fit, MeasuredText
from acefraud.datasets.dataset import ShippedDatasetWarning
from acefraud.errors import InputError

NODE = "fraud_detection"


async def offline_training(train_set: Dataset, reflector: Reflector) -> BulletPlaybook:
    playbook = BulletPlaybook()
    curator = Curator()
    for item in train_set:
        bullet = await reflector.reflect(
            query=item["query"],
            predicted=item["answer"],
            correct=item["answer"],
            node="fraud_detection",
        )
        if bullet:
            curator.merge_bullet(
                content=bullet["new_bullet"],
                node="fraud_detection",
                playbook=playbook,
                source="offline",
            )
    return playbook


def decided_with(playbook: BulletPlaybook, selector: HybridSelector, transaction: str) -> str:
    bullets, _ = selector.select_bullets(
        query=transaction,
        node="fraud_detection",
        playbook=playbook,
        n_bullets=5,
        source="offline",
    )
    agent = SimpleFraudAgent(bullets=[b.content for b in bullets])
    return agent.analyze(transaction)


def accuracy(verdicts: Sequence[str], cases: Sequence[Case]) -> float:
    right = sum(said == str(case.answer) for said, case in zip(verdicts, cases, strict=True))
    return right / len(cases)


@pytest.fixture(scope="module")
def world() -> Dataset:
    with pytest.warns(ShippedDatasetWarning, match="the shipped dataset 'complex_fraud_detection' is used"):
        return load_dataset("agents/complex_fraud_detection.json")


@pytest.fixture(scope="module")
def reflector() -> Reflector:
    return Reflector()


@pytest.fixture(scope="module")
def playbook(world: Dataset, reflector: Reflector) -> BulletPlaybook:
    return asyncio.run(offline_training(world, reflector))


@pytest.fixture(scope="module")
def studied_once(world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studied") / "book.db"
    with open_playbook(path) as book:
        Learner(book).study(world)
    return path


@pytest.fixture
def studied(studied_once: Path, tmp_path: Path) -> Iterator[BulletPlaybook]:
    """A playbook that the learner trained on the world."""
    with open_playbook(shutil.copy(studied_once, tmp_path)) as book:
        yield book


def test_every_bullet_is_verified_and_none_is_a_claim(playbook: BulletPlaybook) -> None:
    bullets = playbook.get_bullets_for_node(NODE)
    assert len(bullets) > 20
    assert all(bullet.verified and bullet.claim is None and bullet.condition is not None for bullet in bullets)
    assert not any("claim" in bullet.shown for bullet in bullets)


@pytest.mark.wide
def test_the_flow_is_ten_points_above_vanilla_on_the_whole_test_part(
    world: Dataset, playbook: BulletPlaybook, studied: BulletPlaybook
) -> None:
    selector, test = HybridSelector(), list(world.test)
    vanilla = accuracy([SimpleFraudAgent().analyze(case["query"]) for case in test], test)
    with_bullets = accuracy([decided_with(playbook, selector, case["query"]) for case in test], test)
    said = Learner(studied).score_all([case.transaction for case in test]).probabilities
    learnt = accuracy(["DECLINE" if each >= 0.5 else "APPROVE" for each in said], test)
    assert with_bullets >= vanilla + 0.10, (vanilla, with_bullets, learnt)
    assert learnt >= with_bullets - 0.02, (vanilla, with_bullets, learnt)


def test_what_looks_like_fraud_to_an_analyst_is_declined_for_these_signs(studied: BulletPlaybook) -> None:
    words = "User 'john' attempts $2500 purchase at 3:15 AM through a VPN, account opened 2 days ago"
    decision = Learner(studied).decide_sync(words)
    assert decision.verdict == "DECLINE"
    signs = {reason.text: reason.contribution or 0.0 for reason in decision.reasons}
    assert all(signs[sign] > 0 for sign in ("a VPN or proxy", "between 11 PM and 6 AM", "account younger than 7 days"))


def test_a_mistake_teaches_as_in_the_third_example(
    world: Dataset, playbook: BulletPlaybook, reflector: Reflector
) -> None:
    async def online_learning() -> tuple[int, list[str | None]]:
        selector, judge, curator, added, wrong = HybridSelector(), LLMJudge(), Curator(), list[str | None](), 0
        for case in list(world.test)[:150]:
            transaction, ground_truth = case["query"], case["answer"]
            decision = decided_with(playbook, selector, transaction)
            is_correct, _ = await judge.judge(input_text=transaction, output=decision, ground_truth=ground_truth)
            if not is_correct:
                wrong += 1
                bullet = await reflector.reflect(
                    query=transaction, predicted=decision, correct=ground_truth, node="fraud_detection"
                )
                if bullet:
                    assert bullet["learnt_from"] == "failure"
                    added.append(
                        curator.merge_bullet(
                            content=bullet["new_bullet"], node="fraud_detection", playbook=playbook, source="online"
                        )
                    )
        return wrong, added

    wrong, added = asyncio.run(online_learning())
    assert wrong >= len(added)
    for bullet_id in filter(None, added):
        bullet = playbook.get_bullet(bullet_id)
        assert bullet is not None
        assert bullet.verified
        assert bullet.source == "online"


def test_words_bring_what_was_measured_into_the_playbook_and_to_the_agent(
    world: Dataset, playbook: BulletPlaybook
) -> None:
    frame = playbook.snapshot().calibration(NODE)
    assert frame is not None
    transaction = next(case for case in world.test if case.is_fraud)["query"]
    bullets, _ = HybridSelector(explore=False).select_bullets(transaction, NODE, playbook)
    by_words = SimpleFraudAgent(bullets=[b.content for b in bullets]).explain(transaction)
    by_bullets = SimpleFraudAgent(bullets=bullets, calibration=frame).explain(transaction)
    assert by_words.probability == by_bullets.probability
    assert by_words.base == frame.intercept
    assert [reason.contribution for reason in by_words.reasons] == [
        reason.contribution for reason in by_bullets.reasons
    ]


def test_words_of_one_fit_do_not_change_the_weights_of_another(
    playbook: BulletPlaybook, studied: BulletPlaybook
) -> None:
    before = {bullet.id: bullet.weight for bullet in studied.get_bullets_for_node(NODE)}
    frame = studied.snapshot().calibration(NODE)
    lesson = next(b for b in playbook.get_bullets_for_node(NODE) if b.weight and b.condition not in conditions(studied))
    added = Curator().merge_bullet(lesson.content, NODE, studied)
    assert added is not None
    newcomer = studied.get_bullet(added)
    assert newcomer is not None
    assert newcomer.evidence == lesson.evidence
    assert newcomer.weight is None, "it was fitted with others, which are not here"
    assert studied.snapshot().calibration(NODE) == frame
    assert {bullet.id: bullet.weight for bullet in studied.get_bullets_for_node(NODE) if bullet.id != added} == before


def conditions(playbook: BulletPlaybook) -> set[object]:
    return {bullet.condition for bullet in playbook.snapshot().bullets.values()}


def test_what_a_person_says_comes_before_what_the_words_bring(playbook: BulletPlaybook) -> None:
    lesson = playbook.get_bullets_for_node(NODE)[0]
    book = BulletPlaybook()
    added = Curator().merge_bullet(lesson.content, NODE, book, status=Status.CANDIDATE, problem_types=["mine"])
    bullet = book.get_bullet(added or "")
    assert bullet is not None
    assert (bullet.status, bullet.problem_types, bullet.condition) == (Status.CANDIDATE, ("mine",), lesson.condition)


def test_measured_words_are_plain_text_and_can_be_copied() -> None:
    words = MeasuredText(NewBullet("VPN: decline", weight=0.5, problem_types=("vpn",)))
    assert words == "VPN: decline"
    assert type(words.lower()) is str
    for twin in (copy.copy(words), copy.deepcopy(words), pickle.loads(pickle.dumps(words))):
        assert (twin, twin.bullet) == (words, words.bullet)


def test_words_of_two_frames_are_weighed_in_the_general_one() -> None:
    frames = [Calibration(intercept=level, knowledge_scale=1.0) for level in (-1.0, -2.0)]
    texts = [MeasuredText(NewBullet(f"{index}: decline"), Fit(frame)) for index, frame in enumerate(frames)]
    assert SimpleFraudAgent(bullets=texts[:1]).explain("$20 purchase").base == -1.0
    assert SimpleFraudAgent(bullets=texts).explain("$20 purchase").base == SimpleFraudAgent().explain("$20").base


def test_a_path_of_another_name_is_not_replaced_and_a_file_that_is_there_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        load_dataset("agents/other.json")
    file = tmp_path / "complex_fraud_detection.json"
    file.write_text('[{"query": "$20 purchase", "answer": "APPROVE"}]')
    assert len(load_dataset(file)) == 1
