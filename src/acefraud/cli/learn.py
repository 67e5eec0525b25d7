"""`acefraud learn` and `acefraud judge`: outcomes that have arrived, and decisions without one."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from acefraud.cli.console import BAD_ROWS_SHOWN, Said, note, note_bad_rows, print_result, progress, stoppable
from acefraud.cli.options import JsonOption, MappingOption, PlaybookOption, StrictOption
from acefraud.cli.stream import Answer, BatchOption, Stream, StreamOptions, as_line, one_line
from acefraud.cli.workspace import (
    Changing,
    budget_code,
    embedded_learner,
    existing_playbook,
    learner_with,
    model_report,
    playbook_copy,
    roles_for,
    trained_mapping,
)
from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, OutcomeHeard, OutcomeReceived
from acefraud.core.outcome import FeedKind, Ruling
from acefraud.core.transaction import Verdict
from acefraud.datasets.records import RecordReader, ReportedOutcome
from acefraud.datasets.rows import read_outcomes
from acefraud.errors import ConfigurationError, InputError, InputWarning
from acefraud.learning.build_roles import Roles
from acefraud.learning.hearing import Heard
from acefraud.learning.learner import Learner
from acefraud.settings import ModelSettings
from acefraud.storage import BulletPlaybook

PREVIEWED = 1_000
"""The latest decisions that a preview makes again."""
BATCH = 50
"""Outcomes that are written and acknowledged together."""
JUDGED = 32
"""Decisions that are judged at the same time."""
_PAUSE = 0.1
"""Seconds between two looks whether another process has taken in what was received."""
_RULINGS = {
    Ruling.CORRECT: "the decision was right",
    Ruling.INCORRECT: "the decision was wrong",
    Ruling.UNJUDGED: "not judged",
}
_WAITING = (
    "{:,} outcomes are about transactions not decided yet; they are kept and count once these are decided "
    "(`acefraud ledger waiting` lists them)"
)


def learn(
    source: Annotated[str, Argument(metavar="[FILE|-]", help="Outcomes, or - for JSON lines on stdin.")] = "-",
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
    batch_ms: BatchOption = 0,
    preview: Annotated[bool, Option(help="Only show what a file of outcomes would change. Nothing is stored.")] = False,
    *,
    settings: ModelSettings,
) -> None:
    """Take in outcomes that have arrived, and learn from them.

    Each row names a transaction and its label. Labels may come late, twice or revised: the same outcome twice changes
    nothing, and a revised one takes back what the first one counted. A row that brings the transaction itself (facts
    or text) is learnt from even if it was never decided here. An outcome that comes before its decision is kept, and
    counts once the transaction is decided.

    Columns that the history knows as facts describe the transaction. Author, note and all other columns are kept with
    the outcome as they are, and `acefraud explain` shows them.

    Standard input is a stream of JSON lines: every line is answered by one line as soon as its outcome is recorded. A
    bad line is answered by an error and makes the exit code 1. Lines that wait are taken in together.

        acefraud learn outcomes.csv --playbook book.db
        acefraud learn chargebacks.csv --preview --playbook book.db
        echo '{"transaction_id": "t1", "label": "fraud"}' | acefraud learn - --playbook book.db
    """
    if preview and source == "-":
        raise InputError("--preview goes with a file of outcomes")
    with playbook_copy(playbook) if preview else existing_playbook(playbook) as book:
        remembered = trained_mapping(book)
        roles = roles_for(settings, remembered, mapping)
        before = _verdicts(book) if preview else []
        if source == "-":
            reader = RecordReader(mapping=mapping, remembered=remembered)
            how = StreamOptions(json=json, strict=strict, batch_ms=batch_ms)
            learner, stream = asyncio.run(_hear_stream(roles, book, reader, how))
            if code := budget_code(learner):
                raise Exit(code)
            stream.exit_if_bad()
            return
        with stoppable(partial(_kept, book, book.outcomes)):
            loaded = read_outcomes(Path(source), mapping=mapping, remembered=remembered, strict=strict)
            note_bad_rows(loaded.bad_rows, loaded.unlabelled, loaded.report.remarks)
            learner, counts = asyncio.run(_hear_all(roles, book, loaded.rows))
        after, advice = _verdicts(book) if preview else [], _advice(book)
    _note_odd(counts)
    if advice:
        note(advice)
    counts["bad_rows"] = len(loaded.bad_rows)
    counts["unlabelled"] = loaded.unlabelled
    if loaded.unreadable:
        counts["rows.unreadable"] = loaded.unreadable
    content, words = {**counts, **model_report(roles, learner)}, _in_words(counts)
    if preview:
        flips = sum(verdict != other for verdict, other in zip(before, after, strict=True))
        declines = [verdicts.count(Verdict.DECLINE) for verdicts in (before, after)]
        content |= {"preview": True, "decisions": len(before), "flips": flips, "declines": declines}
        words = (
            f"Nothing was stored. {words}\n{flips:,} of the latest {len(before):,} decisions would be decided "
            f"differently; {declines[0]:,} of them are declined now, {declines[1]:,} would be"
        )
    print_result(content, words, budget_code(learner), json=json)


def _verdicts(book: BulletPlaybook) -> list[Verdict]:
    """What the playbook would decide now on the transactions of the latest decisions."""
    made = [record.decision.transaction for record in book.ledger.latest_decisions(PREVIEWED)]
    with warnings.catch_warnings(action="ignore", category=InputWarning):  # they were pointed out when it decided
        return [decision.verdict for decision in embedded_learner(book).score_sync(made)] if made else []


def _advice(book: BulletPlaybook) -> str:
    """What to say about the feed, if nothing can be learnt from it as it is."""
    feed = book.feed()
    if feed.kind is not FeedKind.FRAUD_ONLY or feed.silence_days is not None:
        return ""
    return (
        "only frauds are reported, so nothing more is learnt from them until you say after how many days without a "
        "report a decision counts as legitimate: acefraud feed set --silence-days 60"
    )


def _kept(book: BulletPlaybook, before: int) -> str:
    """What is kept of a file that was stopped."""
    book.refresh()
    return f"{book.outcomes - before:,} outcomes were recorded and are kept; run it again for the others"


def _in_words(counts: Counter[str]) -> str:
    return (
        f"{counts['heard']:,} outcomes heard: {counts['correct']:,} decisions were right, "
        f"{counts['incorrect']:,} wrong, {counts['unjudged']:,} not judged; {counts['already_known']:,} known already; "
        f"{counts['bullets_added']:,} bullets learnt"
    )


async def _hear_stream(
    roles: Roles, book: BulletPlaybook, reader: RecordReader, how: StreamOptions
) -> tuple[Learner, Stream[ReportedOutcome]]:
    counts, told = _no_counts(), set[str]()
    async with learner_with(roles, book) as learner:
        await _take_in_waiting(learner)

        async def record(rows: Sequence[ReportedOutcome]) -> list[Answer]:
            heard = await _hear(learner, rows, counts, told)
            for remark in (remark for row in rows for remark in row.remarks):
                _note_once(remark, told)
            return [_answer(row, answer, json=how.json) for row, answer in zip(rows, heard, strict=True)]

        stream = Stream(reader.outcome, record, BATCH, how)
        try:
            await stream.answer()
            counts["bullets_added"] += len(await learner.finish_lessons())
        finally:
            note(_in_words(counts))
            _note_odd(counts)
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
            "waiting": heard.is_waiting,
            "bullets_added": added,
        }
        return as_line(content)
    said = "known already" if heard.already_known else _RULINGS[heard.judgement.ruling]
    said = "kept until its transaction is decided" if heard.is_waiting else said
    learnt = f"; {len(added):,} bullets learnt" if added else ""
    return one_line(f"{outcome.transaction_id}: {'fraud' if outcome.is_fraud else 'legitimate'}, {said}{learnt}")


async def _hear_all(
    roles: Roles, book: BulletPlaybook, rows: tuple[ReportedOutcome, ...]
) -> tuple[Learner, Counter[str]]:
    counts, told = _no_counts(), set[str]()
    async with learner_with(roles, book) as learner:
        await _take_in_waiting(learner)
        with progress("learning from outcomes", len(rows)) as done:
            for start in range(0, len(rows), BATCH):
                await _hear(learner, rows[start : start + BATCH], counts, told)
                done(min(1.0, (start + BATCH) / len(rows)))
        counts["bullets_added"] += len(await learner.finish_lessons())
    return learner, counts


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


def _note_once(remark: str, told: set[str]) -> None:
    """Say what is odd about an outcome that was taken all the same, the first few times."""
    if remark not in told and len(told) < BAD_ROWS_SHOWN:
        note(remark)
    told.add(remark)


def _note_odd(counts: Counter[str]) -> None:
    if counts["remarks"] > BAD_ROWS_SHOWN:
        note(f"... {counts['remarks']:,} outcomes in all have such a time or id; they were taken all the same")
    if counts["waiting"]:
        note(_WAITING.format(counts["waiting"]))


def _no_counts() -> Counter[str]:
    return Counter(heard=0, correct=0, incorrect=0, unjudged=0, already_known=0, bullets_added=0, waiting=0, remarks=0)


async def _hear(
    learner: Learner, rows: Sequence[ReportedOutcome], counts: Counter[str], told: set[str]
) -> Sequence[Heard]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # said here with its row
        all_heard = await learner.hear_all([row.outcome for row in rows], [row.transaction for row in rows])
    for row, heard in zip(rows, all_heard, strict=True):
        if heard.remark:
            counts["remarks"] += 1
            _note_once(f"row {row.row:,}, {heard.remark}", told)
        counts["waiting"] += heard.is_waiting
        if heard.already_known:
            counts["already_known"] += 1
        else:
            counts["heard"] += 1
            counts[str(heard.judgement.ruling)] += 1
        for change in heard.announced:
            note(change)
        if heard.review is not None:
            counts["bullets_added"] += len(heard.review.added)
            if heard.review.declined:
                note(f"nothing was learnt at this point: {heard.review.declined}")
    return all_heard


def judge(
    book: Changing,
    limit: Annotated[int, Option(min=1, help="Judge at most this many decisions, the latest first.")] = 100,
    *,
    settings: ModelSettings,
) -> Said:
    """Ask a model whether decisions without an outcome were right.

    Its answer counts as a use of the bullets that the decision cited. It is an opinion: no evidence and no bullet
    comes from it, and a label that arrives later replaces it. If a call fails, the decision stays unjudged.

        acefraud judge --judge-model openai:gpt-4o-mini --playbook book.db --limit 50
    """
    if "judge" not in settings.on_models:
        raise ConfigurationError("no model plays the judge; name one, as in --judge-model openai:gpt-4o-mini")
    roles = roles_for(settings, trained_mapping(book))
    pending = _pending(book)[:limit]
    counts = asyncio.run(_judge_all(roles, book, pending))
    return {**counts, **model_report(roles)}, (
        f"{len(pending):,} decisions without an outcome: {counts['correct']:,} judged right, "
        f"{counts['incorrect']:,} wrong, {counts['unjudged']:,} not judged"
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
            for start in range(0, len(pending), JUDGED):
                batch = pending[start : start + JUDGED]
                for judgement in await asyncio.gather(*(learner.judge_pending(decision) for decision in batch)):
                    counts[str(judgement.ruling)] += 1
                done((start + len(batch)) / len(pending))
    return counts
