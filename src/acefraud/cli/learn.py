"""`acefraud learn`: outcomes that arrived."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli.console import (
    JsonOption,
    MappingOption,
    PlaybookOption,
    StrictOption,
    cast_for,
    existing_playbook,
    line,
    note,
    print_json,
    progress,
    proposed_json,
    stop_short,
    tell_bad_rows,
    tell_proposed,
    tell_usage,
    trained_mapping,
    usage_json,
)
from acefraud.cli.models import with_model_options
from acefraud.core.events import Reviewed
from acefraud.datasets import BadRow, ReportedOutcome, load_mapping, read_outcomes
from acefraud.learning.casting import Cast
from acefraud.learning.learner import Learner
from acefraud.settings import ModelSettings

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
    chosen: ModelSettings,
) -> None:
    """Take in what turned out to be true, and learn from it.

    Each row names a transaction and its label. Labels may come late, again or revised: the same outcome twice
    changes nothing, another truth takes back what the first one counted. A row that brings the transaction itself
    (facts or text) is learnt from even if it was never decided here.

        acefraud learn outcomes.csv --playbook book.db
        echo '{"transaction_id": "t1", "label": "fraud"}' | acefraud learn - --playbook book.db
    """
    name = "standard input" if source == "-" else source
    with existing_playbook(playbook) as book:
        if source == "-":
            loaded = read_outcomes(
                sys.stdin, mapping=mapping, remembered=trained_mapping(book), strict=strict, name=name, format="jsonl"
            )
        else:
            loaded = read_outcomes(Path(source), mapping=mapping, remembered=trained_mapping(book), strict=strict)
        players = cast_for(chosen, trained_mapping(book), load_mapping(mapping) if mapping else None)
        learner = players.learner(book)
        with progress("learning from outcomes") as done:
            counts, unknown = asyncio.run(_hear_all(players, learner, loaded.rows, done, strict, name))
    tell_bad_rows([*loaded.bad_rows, *unknown], loaded.unlabelled)
    counts["bad_rows"] = len(loaded.bad_rows) + len(unknown)
    counts["unlabelled"] = loaded.unlabelled
    if json:
        print_json({**counts, **proposed_json(learner.proposed), **usage_json(players.client)})
        stop_short(learner)
        return
    line(
        f"{counts['heard']:,} outcomes heard: {counts['correct']:,} decisions were right, "
        f"{counts['incorrect']:,} wrong, {counts['unjudged']:,} not judged; {counts['already_known']:,} known already; "
        f"{counts['bullets_added']:,} bullets learnt"
    )
    stop_short(learner)


async def _hear_all(
    players: Cast,
    learner: Learner,
    rows: tuple[ReportedOutcome, ...],
    done: Callable[[float], None],
    strict: bool,
    name: str,
) -> tuple[Counter[str], list[BadRow]]:
    try:
        counts, unknown = await _hear_each(learner, rows, done, strict, name)
        counts["bullets_added"] += len(await learner.finish_lessons())
        return counts, unknown
    finally:
        await players.close()
        tell_usage(players.client)
        tell_proposed(learner.proposed)


async def _hear_each(
    learner: Learner, rows: tuple[ReportedOutcome, ...], done: Callable[[float], None], strict: bool, name: str
) -> tuple[Counter[str], list[BadRow]]:
    counts: Counter[str] = Counter(heard=0, correct=0, incorrect=0, unjudged=0, already_known=0, bullets_added=0)
    unknown = _unknown(learner, rows, name)
    if strict and unknown:  # before anything is heard: a run that stops must not have taken in half of its rows
        raise next(iter(unknown.values())).error
    known = [row for row in rows if row.row not in unknown]
    for start in range(0, len(known), BATCH):
        some = known[start : start + BATCH]
        for heard in await learner.hear_all([row.outcome for row in some], [row.transaction for row in some]):
            if heard.already_known:
                counts["already_known"] += 1
            else:
                counts["heard"] += 1
                counts[str(heard.judgement.ruling)] += 1
            if heard.review is not None:
                counts["bullets_added"] += len(heard.review.added)
                tell_review(heard.review)
        done((start + len(some)) / len(known))
    return counts, list(unknown.values())


def tell_review(review: Reviewed) -> None:
    """Say on standard error why a review came to nothing, where it did."""
    if review.declined:
        note(f"nothing was learnt at this point: {review.declined}")


def _unknown(learner: Learner, rows: tuple[ReportedOutcome, ...], name: str) -> dict[int, BadRow]:
    """The rows about transactions that nobody decided and that say nothing of them, by their place in the file."""
    bare = {row.outcome.transaction_id for row in rows if row.transaction is None}
    ledger = learner.playbook.ledger
    known = {one for one, past in ledger.pasts_of(bare).items() if past.decisions} | set(ledger.known_cases(bare))
    problem = "no decision was made on '{}', and the row brings neither facts nor text to learn from"
    return {
        row.row: BadRow(name, row.row, "transaction_id", problem.format(row.outcome.transaction_id))
        for row in rows
        if row.transaction is None and row.outcome.transaction_id not in known
    }
