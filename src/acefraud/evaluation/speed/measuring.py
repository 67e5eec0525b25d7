"""The pieces of work that are timed. Of acefraud it uses only what every version of it has had."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from acefraud.core.bullet import Bullet
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Transaction
from acefraud.curation.curator import Curator
from acefraud.evaluation.speed.timing import Work, taken
from acefraud.evaluation.speed.workloads import NODE
from acefraud.learning.learner import Learner
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook

PICKED = 10
"""Bullets that are picked for a transaction."""


def selecting(selector: HybridSelector, transactions: Sequence[Transaction], snapshot: Snapshot) -> list[Work]:
    """Select for each transaction by itself."""
    return [partial(selector.select, each, {}, snapshot, n_bullets=PICKED) for each in transactions]


def checking(curator: Curator, contents: Sequence[str], bullets: Sequence[Bullet]) -> list[Work]:
    """Look for a duplicate of each text among bullets that are handed over."""
    return [partial(curator.duplicate_of, content, bullets) for content in contents]


def seconds_to_add(playbook: BulletPlaybook, new: Sequence[Bullet]) -> list[float]:
    """The seconds that each addition takes, up to a snapshot that shows it."""
    return [taken(partial(_add, playbook, bullet)) for bullet in new]


def _add(playbook: BulletPlaybook, bullet: Bullet) -> None:
    playbook.add_bullet(
        bullet.content, NODE, condition=bullet.condition, argues=bullet.argues, evidence=bullet.evidence
    )
    playbook.snapshot()


def seconds_to_merge(curator: Curator, playbook: BulletPlaybook, new: Sequence[Bullet]) -> list[float]:
    """The seconds that it takes to look for a duplicate of each and to add it, up to a snapshot that shows it."""
    return [taken(partial(_merge, curator, playbook, bullet)) for bullet in new]


def _merge(curator: Curator, playbook: BulletPlaybook, bullet: Bullet) -> None:
    curator.merge_bullet(
        bullet.content, NODE, playbook, condition=bullet.condition, argues=bullet.argues, evidence=bullet.evidence
    )
    playbook.snapshot()


def deciding(learner: Learner, transactions: Sequence[Transaction], snapshot: Snapshot) -> Work:
    """Decide transactions one after the other; nothing is recorded."""

    async def each() -> None:
        for transaction in transactions:
            await learner.decide_on(transaction, snapshot)

    return lambda: asyncio.run(each())


def deciding_together(learner: Learner, transactions: Sequence[Transaction], snapshot: Snapshot) -> Work:
    """Decide transactions at once; nothing is recorded."""
    return lambda: asyncio.run(_forgotten(learner, transactions, snapshot))


async def _forgotten(learner: Learner, transactions: Sequence[Transaction], snapshot: Snapshot) -> None:
    await learner._decide_on(transactions, snapshot)


def deciding_and_recording(learner: Learner, batches: Sequence[Sequence[Transaction]]) -> Work:
    """Decide batches of transactions one after the other, each recorded before the next; they must be new."""

    async def each() -> None:
        for batch in batches:
            await learner.decide_all(batch)

    return lambda: asyncio.run(each())
