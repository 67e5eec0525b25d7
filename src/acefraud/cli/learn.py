"""`acefraud learn`: outcomes that have arrived."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli.console import note, note_bad_rows, print_result, progress
from acefraud.cli.options import JsonOption, MappingOption, PlaybookOption, StrictOption, with_model_options
from acefraud.cli.stream import NAME, Answer, BatchOption, Stream, StreamOptions, as_line, one_line
from acefraud.cli.workspace import (
    existing_playbook,
    exit_if_over_budget,
    learner_with,
    model_report,
    roles_for,
    trained_mapping,
)
from acefraud.core.outcome import Ruling
from acefraud.datasets import BadRow
from acefraud.datasets.records import RecordReader
from acefraud.datasets.rows import ReportedOutcome, read_outcomes
from acefraud.learning.build_roles import Roles
from acefraud.learning.learner import Heard, Learner
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook

BATCH = 50
"""Outcomes that are written and acknowledged together."""
_PAUSE = 0.1
"""Seconds between two looks whether another process has taken in what was received."""
_RULINGS = {
    Ruling.CORRECT: "the decision was right",
    Ruling.INCORRECT: "the decision was wrong",
    Ruling.UNJUDGED: "not judged",
}
_KNOWN = "known already"


@with_model_options
def learn(
    source: Annotated[str, typer.Argument(metavar="[FILE|-]", help="Outcomes, or - for JSON lines on stdin.")] = "-",
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
    batch_ms: BatchOption = 0,
    *,
    settings: ModelSettings,
) -> None:
    """Take in outcomes that have arrived, and learn from them.

    Each row names a transaction and its label. Labels may come late, twice or revised: the same outcome twice changes
    nothing, and a revised one takes back what the first one counted. A row that brings the transaction itself (facts
    or text) is learnt from even if it was never decided here.

    Standard input is a stream of JSON lines: every line is answered by one line as soon as its outcome is recorded. A
    bad line is answered by an error and makes the exit code 1. Lines that wait are taken in together.

        acefraud learn outcomes.csv --playbook book.db
        echo '{"transaction_id": "t1", "label": "fraud"}' | acefraud learn - --playbook book.db
    """
    with existing_playbook(playbook) as book:
        remembered = trained_mapping(book)
        roles = roles_for(settings, remembered, mapping)
        if source == "-":
            reader = RecordReader(mapping=mapping, remembered=remembered)
            how = StreamOptions(json=json, strict=strict, batch_ms=batch_ms)
            learner, stream = asyncio.run(_hear_stream(roles, book, reader, how))
            exit_if_over_budget(learner)
            stream.exit_if_bad()
            return
        loaded = read_outcomes(Path(source), mapping=mapping, remembered=remembered, strict=strict)
        learner, counts, unknown = asyncio.run(_hear_all(roles, book, loaded.rows, strict, source))
    note_bad_rows([*loaded.bad_rows, *unknown], loaded.unlabelled, loaded.remarks)
    counts["bad_rows"] = len(loaded.bad_rows) + len(unknown)
    counts["unlabelled"] = loaded.unlabelled
    if loaded.unreadable:
        counts["rows.unreadable"] = loaded.unreadable
    print_result({**counts, **model_report(roles, learner)}, _in_words(counts), json=json)
    exit_if_over_budget(learner)


def _in_words(counts: Counter[str]) -> str:
    return (
        f"{counts['heard']:,} outcomes heard: {counts['correct']:,} decisions were right, "
        f"{counts['incorrect']:,} wrong, {counts['unjudged']:,} not judged; {counts['already_known']:,} known already; "
        f"{counts['bullets_added']:,} bullets learnt"
    )


async def _hear_stream(
    roles: Roles, book: BulletPlaybook, reader: RecordReader, how: StreamOptions
) -> tuple[Learner, Stream[ReportedOutcome]]:
    counts = _no_counts()
    async with learner_with(roles, book) as learner:
        await _take_in_waiting(learner)

        async def record(rows: Sequence[ReportedOutcome]) -> list[Answer]:
            unknown = _unknown(book, rows, NAME)
            known = [row for row in rows if row.row not in unknown]
            heard = iter(await _hear(learner, known, counts) if known else ())
            return [
                bad.error if (bad := unknown.get(row.row)) else _answer(row, next(heard), json=how.json) for row in rows
            ]

        stream = Stream(reader.outcome, record, BATCH, how)
        try:
            await stream.answer()
            counts["bullets_added"] += len(await learner.finish_lessons())
        finally:
            note(_in_words(counts))
    return learner, stream


def _answer(row: ReportedOutcome, heard: Heard, *, json: bool) -> str:
    outcome, ruling = row.outcome, str(heard.judgement.ruling)
    added = list(heard.review.added) if heard.review else []
    if json:
        content = {
            "transaction_id": outcome.transaction_id,
            "is_fraud": outcome.is_fraud,
            "ruling": ruling,
            "already_known": heard.already_known,
            "bullets_added": added,
        }
        return as_line(content)
    said = _KNOWN if heard.already_known else _RULINGS[heard.judgement.ruling]
    learnt = f"; {len(added):,} bullets learnt" if added else ""
    return one_line(f"{outcome.transaction_id}: {'fraud' if outcome.is_fraud else 'legitimate'}, {said}{learnt}")


async def _hear_all(
    roles: Roles, book: BulletPlaybook, rows: tuple[ReportedOutcome, ...], strict: bool, name: str
) -> tuple[Learner, Counter[str], list[BadRow]]:
    counts = _no_counts()
    async with learner_with(roles, book) as learner:
        unknown = _unknown(book, rows, name)
        if strict and unknown:  # before any outcome is written: a run that stops must not take in half of its rows
            raise next(iter(unknown.values())).error
        await _take_in_waiting(learner)
        known = [row for row in rows if row.row not in unknown]
        with progress("learning from outcomes") as done:
            for start in range(0, len(known), BATCH):
                await _hear(learner, known[start : start + BATCH], counts)
                done(min(1.0, (start + BATCH) / len(known)))
        counts["bullets_added"] += len(await learner.finish_lessons())
    return learner, counts, list(unknown.values())


async def _take_in_waiting(learner: Learner) -> None:
    """Take in the outcomes that a service has received and nobody has judged, so that these do not overtake them."""
    count, taken = 0, await learner.take_in()
    while taken.count or taken.left:
        count += taken.count
        if not taken.count:  # another process is at them
            await asyncio.sleep(_PAUSE)
        taken = await learner.take_in()
    if count:
        note(f"{count:,} outcomes that were received before were taken in first")


def _no_counts() -> Counter[str]:
    return Counter(heard=0, correct=0, incorrect=0, unjudged=0, already_known=0, bullets_added=0)


async def _hear(learner: Learner, rows: Sequence[ReportedOutcome], counts: Counter[str]) -> Sequence[Heard]:
    all_heard = await learner.hear_all([row.outcome for row in rows], [row.transaction for row in rows])
    for heard in all_heard:
        if heard.already_known:
            counts["already_known"] += 1
        else:
            counts["heard"] += 1
            counts[str(heard.judgement.ruling)] += 1
        if heard.review is not None:
            counts["bullets_added"] += len(heard.review.added)
            if heard.review.declined:
                note(f"nothing was learnt at this point: {heard.review.declined}")
    return all_heard


def _unknown(book: BulletPlaybook, rows: Sequence[ReportedOutcome], name: str) -> dict[int, BadRow]:
    """Rows about a transaction that was never decided and that no row until then describes, by row number."""
    bare = {row.outcome.transaction_id for row in rows if row.transaction is None}
    known = {one for one, past in book.ledger.transaction_events(bare).items() if past.decisions}
    known.update(book.ledger.known_cases(bare))
    problem = "no decision was made on '{}', and the row brings neither facts nor text to learn from"
    unknown: dict[int, BadRow] = {}
    for row in rows:
        one = row.outcome.transaction_id
        if row.transaction is not None:
            known.add(one)
        elif one not in known:
            unknown[row.row] = BadRow(name, row.row, "transaction_id", problem.format(one))
    return unknown
