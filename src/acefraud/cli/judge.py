"""`acefraud judge`: decisions without an outcome."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Annotated

import typer

from acefraud.cli.console import print_result, progress
from acefraud.cli.options import JsonOption, PlaybookOption, with_model_options
from acefraud.cli.workspace import existing_playbook, learner_with, model_report, roles_for, trained_mapping
from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, OutcomeHeard, OutcomeReceived
from acefraud.core.transaction import Verdict
from acefraud.errors import ConfigurationError
from acefraud.learning.build_roles import Roles
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook

BATCH = 32
"""Decisions that are judged at the same time."""


@with_model_options
def judge(
    playbook: PlaybookOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Judge at most this many decisions, the latest first.")] = 100,
    json: JsonOption = False,
    *,
    settings: ModelSettings,
) -> None:
    """Ask a model whether decisions without an outcome were right.

    Its answer counts as a use of the bullets that the decision cited. It is an opinion: no evidence and no bullet
    comes from it, and a label that arrives later replaces it. If a call fails, the decision stays unjudged.

        acefraud judge --judge-model openai:gpt-4o-mini --playbook book.db --limit 50
    """
    if "judge" not in settings.on_models:
        raise ConfigurationError("no model plays the judge; name one, as in --judge-model openai:gpt-4o-mini")
    with existing_playbook(playbook) as book:
        roles = roles_for(settings, trained_mapping(book))
        pending = _pending(book)[:limit]
        counts = asyncio.run(_judge_all(roles, book, pending))
    print_result(
        {**counts, **model_report(roles)},
        f"{len(pending):,} decisions without an outcome: {counts['correct']:,} judged right, "
        f"{counts['incorrect']:,} wrong, {counts['unjudged']:,} not judged",
        json=json,
    )


def _pending(book: BulletPlaybook) -> list[Decision]:
    """The decisions on transactions without an outcome, the latest first."""
    made: dict[str, Decision] = {}
    for event in book.ledger.read():
        if isinstance(event.payload, DecisionMade):
            made[event.payload.decision.transaction.id] = event.payload.decision
        elif isinstance(event.payload, OutcomeHeard | OutcomeReceived):
            made.pop(event.payload.outcome.transaction_id, None)
    return [decision for decision in reversed(made.values()) if decision.verdict is not Verdict.REVIEW]


async def _judge_all(roles: Roles, book: BulletPlaybook, pending: list[Decision]) -> Counter[str]:
    counts: Counter[str] = Counter(correct=0, incorrect=0, unjudged=0)
    async with learner_with(roles, book) as learner:
        with progress("judging") as done:
            for start in range(0, len(pending), BATCH):
                batch = pending[start : start + BATCH]
                for judgement in await asyncio.gather(*(learner.judge_pending(decision) for decision in batch)):
                    counts[str(judgement.ruling)] += 1
                done((start + len(batch)) / len(pending))
    return counts
