"""`acefraud judge`: decisions whose outcome never came."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Annotated

import typer

from acefraud.cli.console import (
    JsonOption,
    PlaybookOption,
    cast_for,
    existing_playbook,
    line,
    print_json,
    progress,
    tell_usage,
    trained_mapping,
    usage_json,
)
from acefraud.cli.models import with_model_options
from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, OutcomeHeard
from acefraud.core.transaction import Verdict
from acefraud.errors import ConfigurationError
from acefraud.learning.casting import Cast
from acefraud.learning.learner import Learner
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook

TOGETHER = 32
"""Decisions that are judged at once."""


@with_model_options
def judge(
    playbook: PlaybookOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Judge so many decisions at most, the latest first.")] = 100,
    json: JsonOption = False,
    *,
    chosen: ModelSettings,
) -> None:
    """Ask a model whether decisions were right whose outcome never came.

    What it says counts as a use of the bullets that a decision cited. It is an opinion: nothing is measured by it, no
    bullet is learnt from it, and a label that comes later takes its place. A failed call leaves a decision unjudged.

        acefraud judge --judge-model openai:gpt-4o-mini --playbook book.db --limit 50
    """
    if "judge" not in chosen.on_models:
        raise ConfigurationError("no model plays the judge; name one, as in --judge-model openai:gpt-4o-mini")
    with existing_playbook(playbook) as book:
        players = cast_for(chosen, trained_mapping(book))
        pending = _pending(book)[:limit]
        with progress("judging") as done:
            counts = asyncio.run(_judge_all(players, players.learner(book), pending, done))
    if json:
        print_json({**counts, **usage_json(players.client)})
        return
    line(
        f"{len(pending):,} decisions without an outcome: {counts['correct']:,} held to be right, "
        f"{counts['incorrect']:,} wrong, {counts['unjudged']:,} not judged"
    )


def _pending(book: BulletPlaybook) -> list[Decision]:
    """The decisions on transactions of which nothing was heard, the latest first."""
    made: dict[str, Decision] = {}
    for event in book.ledger.read():
        if isinstance(event.what, DecisionMade):
            made[event.what.decision.transaction.id] = event.what.decision
        elif isinstance(event.what, OutcomeHeard):
            made.pop(event.what.outcome.transaction_id, None)
    return [decision for decision in reversed(made.values()) if decision.verdict is not Verdict.REVIEW]


async def _judge_all(
    players: Cast, learner: Learner, pending: list[Decision], done: Callable[[float], None]
) -> Counter[str]:
    counts: Counter[str] = Counter(correct=0, incorrect=0, unjudged=0)
    try:
        for start in range(0, len(pending), TOGETHER):
            batch = pending[start : start + TOGETHER]
            for judgement in await asyncio.gather(*(learner.judge_pending(decision) for decision in batch)):
                counts[str(judgement.ruling)] += 1
            done((start + len(batch)) / len(pending))
    finally:
        await players.close()
        tell_usage(players.client)
    return counts
