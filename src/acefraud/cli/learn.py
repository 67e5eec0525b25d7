"""`acefraud learn`: outcomes that have arrived."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli.console import note, note_bad_rows, print_result, progress
from acefraud.cli.options import JsonOption, MappingOption, PlaybookOption, StrictOption, with_model_options
from acefraud.cli.workspace import (
    existing_playbook,
    exit_if_over_budget,
    learner_with,
    model_report,
    roles_for,
    trained_mapping,
)
from acefraud.datasets import BadRow
from acefraud.datasets.rows import ReportedOutcome, read_outcomes
from acefraud.learning.build_roles import Roles
from acefraud.learning.learner import Learner
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook

BATCH = 50
"""Outcomes that are written and acknowledged together."""


@with_model_options
def learn(
    source: Annotated[str, typer.Argument(metavar="[FILE|-]", help="Outcomes, or - for JSON lines on stdin.")] = "-",
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
    *,
    settings: ModelSettings,
) -> None:
    """Take in outcomes that have arrived, and learn from them.

    Each row names a transaction and its label. Labels may come late, twice or revised: the same outcome twice changes
    nothing, and a revised one takes back what the first one counted. A row that brings the transaction itself (facts
    or text) is learnt from even if it was never decided here.

        acefraud learn outcomes.csv --playbook book.db
        echo '{"transaction_id": "t1", "label": "fraud"}' | acefraud learn - --playbook book.db
    """
    from_stdin = source == "-"
    name = "standard input" if from_stdin else source
    with existing_playbook(playbook) as book:
        remembered = trained_mapping(book)
        loaded = read_outcomes(
            sys.stdin if from_stdin else Path(source),
            mapping=mapping,
            remembered=remembered,
            strict=strict,
            name=name if from_stdin else None,
        )
        roles = roles_for(settings, remembered, mapping)
        learner, counts, unknown = asyncio.run(_hear_all(roles, book, loaded.rows, strict, name))
    note_bad_rows([*loaded.bad_rows, *unknown], loaded.unlabelled, loaded.remarks)
    counts["bad_rows"] = len(loaded.bad_rows) + len(unknown)
    counts["unlabelled"] = loaded.unlabelled
    if loaded.unreadable:
        counts["rows.unreadable"] = loaded.unreadable
    print_result(
        {**counts, **model_report(roles, learner)},
        f"{counts['heard']:,} outcomes heard: {counts['correct']:,} decisions were right, "
        f"{counts['incorrect']:,} wrong, {counts['unjudged']:,} not judged; {counts['already_known']:,} known already; "
        f"{counts['bullets_added']:,} bullets learnt",
        json=json,
    )
    exit_if_over_budget(learner)


async def _hear_all(
    roles: Roles, book: BulletPlaybook, rows: tuple[ReportedOutcome, ...], strict: bool, name: str
) -> tuple[Learner, Counter[str], list[BadRow]]:
    counts: Counter[str] = Counter(heard=0, correct=0, incorrect=0, unjudged=0, already_known=0, bullets_added=0)
    async with learner_with(roles, book) as learner:
        unknown = _unknown(book, rows, name)
        if strict and unknown:  # before any outcome is written: a run that stops must not take in half of its rows
            raise next(iter(unknown.values())).error
        known = [row for row in rows if row.row not in unknown]
        with progress("learning from outcomes") as done:
            for start in range(0, len(known), BATCH):
                await _hear(learner, known[start : start + BATCH], counts)
                done(min(1.0, (start + BATCH) / len(known)))
        counts["bullets_added"] += len(await learner.finish_lessons())
    return learner, counts, list(unknown.values())


async def _hear(learner: Learner, rows: list[ReportedOutcome], counts: Counter[str]) -> None:
    for heard in await learner.hear_all([row.outcome for row in rows], [row.transaction for row in rows]):
        if heard.already_known:
            counts["already_known"] += 1
        else:
            counts["heard"] += 1
            counts[str(heard.judgement.ruling)] += 1
        if heard.review is not None:
            counts["bullets_added"] += len(heard.review.added)
            if heard.review.declined:
                note(f"nothing was learnt at this point: {heard.review.declined}")


def _unknown(book: BulletPlaybook, rows: tuple[ReportedOutcome, ...], name: str) -> dict[int, BadRow]:
    """Rows about a transaction that was never decided and that the row does not describe, by row number."""
    bare = {row.outcome.transaction_id for row in rows if row.transaction is None}
    decided = {one for one, past in book.ledger.transaction_events(bare).items() if past.decisions}
    known = decided | set(book.ledger.known_cases(bare))
    problem = "no decision was made on '{}', and the row brings neither facts nor text to learn from"
    return {
        row.row: BadRow(name, row.row, "transaction_id", problem.format(row.outcome.transaction_id))
        for row in rows
        if row.transaction is None and row.outcome.transaction_id not in known
    }
