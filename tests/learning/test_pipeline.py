"""The three modes differ in what they are shown, and in nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.storage.replaying import cases_of, matches_replay

from acefraud.core.bullet import Source
from acefraud.core.transaction import Case, Verdict
from acefraud.datasets import Dataset, load_dataset
from acefraud.datasets.world import WorldOptions
from acefraud.learning.learner import Learner
from acefraud.learning.pipeline import Mode, ModeRun, TrainingPipeline
from acefraud.storage.playbook import BulletPlaybook


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load_dataset("complex_fraud_detection", options=WorldOptions(transactions=200))


def run(mode: Mode, train: Sequence[Case], test: Sequence[Case], **options: Any) -> ModeRun:
    return asyncio.run(TrainingPipeline(**options).run(mode, train, test))


@pytest.fixture(scope="module")
def runs(world: Dataset) -> dict[Mode, ModeRun]:
    return {mode: run(mode, world.train, world.test) for mode in Mode}


def sources(playbook: BulletPlaybook) -> set[Source]:
    return {bullet.source for bullet in playbook.snapshot().bullets.values()}


def test_every_case_is_decided_once_and_set_beside_its_label(world: Dataset, runs: dict[Mode, ModeRun]) -> None:
    for mode, got in runs.items():
        assert got.mode is mode
        assert got.labels.tolist() == [case.is_fraud for case in world.test]
        found = got.playbook.ledger.transaction_events([case.transaction.id for case in world.test])
        decided = [events.decisions for events in found.values()]
        assert [len(made) for made in decided] == [1] * len(world.test)
        assert got.declined.tolist() == [made[0].verdict is Verdict.DECLINE for made in decided]
        assert got.probabilities.tolist() == [made[0].probability for made in decided]
        assert matches_replay(got.playbook)


def test_vanilla_leaves_an_empty_playbook_and_hears_nothing(runs: dict[Mode, ModeRun]) -> None:
    got = runs[Mode.VANILLA]
    assert (len(got.playbook), got.bullets, got.cited) == (0, 0, 0.0)
    assert {event.payload.kind for event in got.playbook.ledger.read()} == {"decision_made"}
    assert cases_of(got.playbook.ledger) == []


def test_online_only_starts_empty_and_learns_on_the_way(toy: Any) -> None:
    cases = toy.cases(120, delay=2)
    got = run(Mode.ONLINE_ONLY, toy.cases(80, seed=9, prefix="train"), cases)
    assert sources(got.playbook) == {Source.ONLINE}
    first = got.playbook.ledger.transaction_events(["c0"])["c0"].decisions[0]
    assert (first.revision, first.cited) == (0, ())
    assert not [case for case in cases_of(got.playbook.ledger) if case.transaction.id.startswith("train")]


def test_offline_online_studies_the_training_part_first(world: Dataset, runs: dict[Mode, ModeRun]) -> None:
    got = runs[Mode.OFFLINE_ONLINE]
    assert Source.OFFLINE in sources(got.playbook)
    events = list(got.playbook.ledger.read())
    decided = next(index for index, event in enumerate(events) if event.payload.kind == "decision_made")
    assert events[0].payload.kind == "trained"
    assert {event.payload.kind for event in events[:decided]} >= {"trained", "bullet_added", "recalibrated"}
    assert not {"outcome_heard", "outcome_revised"} & {event.payload.kind for event in events[:decided]}


@pytest.mark.parametrize("mode", Mode)
def test_no_decision_depends_on_a_label_that_had_not_arrived(
    world: Dataset, runs: dict[Mode, ModeRun], mode: Mode
) -> None:
    """With the labels of the last third of the test turned round, all before the first of them is known stays."""
    cut = 2 * len(world.test) // 3
    turned = [
        case.model_copy(update={"is_fraud": not case.is_fraud}) if index >= cut else case
        for index, case in enumerate(world.test)
    ]
    known = min(case.known_at for case in world.test[cut:] if case.known_at is not None)
    safe = sum(case.transaction.time < known for case in world.test if case.transaction.time is not None)
    assert safe >= cut
    one, other = runs[mode], run(mode, world.train, turned)
    assert np.array_equal(one.probabilities[:safe], other.probabilities[:safe])
    assert np.array_equal(one.declined[:safe], other.declined[:safe])


def test_vanilla_and_online_only_never_see_the_training_part(world: Dataset, runs: dict[Mode, ModeRun]) -> None:
    for mode in (Mode.VANILLA, Mode.ONLINE_ONLY):
        assert np.array_equal(run(mode, (), world.test).probabilities, runs[mode].probabilities)


def test_a_run_is_repeatable_and_a_seed_is_its_own(world: Dataset, runs: dict[Mode, ModeRun]) -> None:
    again = run(Mode.OFFLINE_ONLINE, world.train, world.test)
    assert np.array_equal(again.probabilities, runs[Mode.OFFLINE_ONLINE].probabilities)
    another = run(Mode.OFFLINE_ONLINE, world.train, world.test, seed=1)
    assert not np.array_equal(another.probabilities, again.probabilities)


def test_learning_pays_on_a_world_with_a_plain_pattern(toy: Any) -> None:
    train, test = toy.cases(150, prefix="train"), toy.cases(200, seed=1)
    right = {}
    for mode in Mode:
        got = run(mode, train, test)
        right[mode] = float(np.mean(got.declined == got.labels))
    assert right[Mode.VANILLA] < right[Mode.ONLINE_ONLY] < right[Mode.OFFLINE_ONLINE]
    assert right[Mode.OFFLINE_ONLINE] >= 0.9


def test_a_given_playbook_is_used_and_kept(world: Dataset) -> None:
    playbook = BulletPlaybook()
    kept = playbook.add_bullet("VPN and a new device: decline")
    got = asyncio.run(TrainingPipeline().run(Mode.VANILLA, (), world.test[:5], playbook=playbook))
    assert got.playbook is playbook
    assert (got.bullets, playbook.get_bullet(kept) is not None) == (1, True)
    assert isinstance(TrainingPipeline().learner(playbook), Learner)
