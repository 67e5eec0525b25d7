"""`acefraud ledger ...`, `backup` and `restore`: what is recorded, moving old decisions out, and whole copies."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from acefraud.cli import group
from acefraud.cli.console import Said, line, print_json
from acefraud.cli.options import ForceOption, JsonOption, PlaybookOption
from acefraud.cli.workspace import any_ledger, copy_to_file, existing_ledger, not_recorded, place_of
from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.events import DecisionMade, Event
from acefraud.core.ledger import DecisionFilter
from acefraud.core.scope import Author
from acefraud.core.transaction import FactValue, Verdict
from acefraud.display.redaction import visible
from acefraud.engine.inputs import nearly_decided
from acefraud.errors import InputError
from acefraud.learning.outcomes import waiting_outcomes
from acefraud.storage.contents import FileStatistics, file_statistics
from acefraud.storage.copies import copy_playbook, read_from_file
from acefraud.support.database_address import shown_place

ledger_app = group("ledger")

SHOWN = 5


@ledger_app.command()
def show(
    playbook: PlaybookOption = None,
    decision: Annotated[str | None, Option(metavar="ID", help="The decision with this id.")] = None,
    transaction: Annotated[str | None, Option(metavar="ID", help="All decisions on this transaction.")] = None,
    last: Annotated[int | None, Option(min=1, help=f"So many of the latest decisions. Default: {SHOWN}.")] = None,
    verdict: Annotated[Verdict | None, Option(help="Only decisions with this verdict.")] = None,
    open_only: Annotated[bool, Option("--open", help="Only decisions without an outcome.")] = False,
    json: JsonOption = False,
) -> None:
    """Print recorded decisions as they are kept, oldest first.

    A compact record has the values of the facts, the picked bullets with their contributions and a digest of all that
    can be computed again; `acefraud explain` computes it. What many records have in common is kept once and shown with
    each. With --json every record is one line.

        acefraud ledger show --last 3 --playbook book.db
        acefraud ledger show --verdict REVIEW --open --last 50 --playbook book.db
    """
    if sum(given is not None for given in (decision, transaction, last)) > 1:
        raise InputError("expected one of --decision, --transaction and --last")
    with existing_ledger(playbook) as ledger:
        if decision is not None or transaction is not None:
            about = DecisionFilter(ids=decision and [decision], transaction_ids=transaction and [transaction])
            found = ledger.find_decisions(about, limit=sys.maxsize, newest_first=False)
        else:
            about = DecisionFilter(verdict=verdict, without_outcome=open_only)
            found = ledger.find_decisions(about, limit=last or SHOWN)[::-1]
        if not found and (wanted := decision or transaction):
            raise not_recorded(f"there is no recorded decision '{wanted}' in this playbook", wanted, ledger)
    for event in found:
        assert isinstance(event.payload, DecisionMade)
        if json:
            print_json(_as_json(event, event.payload.record))
            continue
        decided = event.payload.decision
        line(f"{decided.id}  {decided.verdict}  {100 * decided.probability:.1f}% fraud", "bold")
        for name, value in _fields(event, event.payload.record, decided):
            line(f"{name:>13}  {value}")


def _as_json(event: Event, record: DecisionRecord) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "id": record.id,
        "transaction_id": record.transaction_id,
        "at": event.at.isoformat(),
        "who": event.who,
        "why": event.why,
        "verdict": record.verdict,
        "probability": record.probability,
        "revision": record.revision,
        "compact": record.setup is not None,
        "bytes": len(record.body.encode()),
        "setup": record.setup and jsonlib.loads(record.setup.body),
        "names": record.names and jsonlib.loads(record.names.body),
        "facts": record.decision.facts,
        "body": jsonlib.loads(record.body),
    }


def _fields(event: Event, record: DecisionRecord, decided: Decision) -> Iterator[tuple[str, str]]:
    """What a record says, name by name."""
    size = f"{len(record.body.encode()):,} bytes"
    if record.setup is not None and record.names is not None:
        shared = f"{len(record.setup.body.encode()):,} and {len(record.names.body.encode()):,}"
        yield "recorded", f"compact, {size}; setup and names, kept once for all, take {shared}"
    else:
        yield "recorded", f"whole, {size}"
    yield "written", f"{event.at.isoformat(sep=' ', timespec='seconds')} by {event.who}, event {event.seq}"
    if event.why:
        yield "why", event.why
    yield from _decided_on(decided)
    yield "threshold", f"{decided.threshold:g}, starting at {decided.base:+.4f} in log-odds"
    if record.setup is not None:
        for bullet_id, amount in jsonlib.loads(record.body)["picks"]:
            yield "picked", f"{bullet_id}  {amount:+.4f}"
    else:
        for reason in decided.reasons:
            yield "reason", f"{reason.amount}  {reason.text}  ({reason.bullet_id or reason.kind})"
    yield "revision", str(record.revision)
    engine = f"engine {decided.engine}, reader {decided.reader or 'unknown'}, " if record.setup is not None else ""
    yield "made by", f"{decided.model}, {engine}node {decided.node}, bullets found by {decided.selection.embedder}"
    if decided.digest:
        yield "digest", decided.digest


def _decided_on(decided: Decision) -> Iterator[tuple[str, str]]:
    about = decided.transaction
    yield "transaction", about.id if about.time is None else f"{about.id} of {about.time.isoformat(sep=' ')}"
    if about.text:
        yield "text", about.text
    for entity, value in about.entities.items():
        yield "entity", f"{entity}={value}"
    derived = {name: value for name, value in decided.facts.items() if name not in about.facts}
    if about.facts:
        yield "facts given", _named(about.facts)
    if derived:
        yield "facts derived", _named(derived)
    for piece in decided.unread:
        yield "not read", piece


def _named(facts: dict[str, FactValue]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(facts.items()))


@ledger_app.command()
def waiting(playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """List outcomes whose transactions were not decided yet, oldest first. They count once these are decided.

    An id that differs from a decided one only in case, blanks, leading zeros or ".0" is named beside it.

        acefraud ledger waiting --playbook book.db
    """
    with existing_ledger(playbook) as ledger:
        found = waiting_outcomes(ledger)
        near = nearly_decided([outcome.transaction_id for outcome in found], ledger)
    for outcome in found:
        about = outcome.transaction_id
        if json:
            print_json({**outcome.model_dump(mode="json"), "nearly": near.get(about)})
            continue
        hint = f"; '{near[about]}' was decided" if about in near else ""
        line(visible(f"{about}  {'fraud' if outcome.is_fraud else 'legitimate'} ({outcome.source}){hint}"))
    if not found and not json:
        line("No outcome waits for its transaction to be decided")


@ledger_app.command()
def archive(
    by: Author,
    before: Annotated[
        datetime,
        Option(
            metavar="DATE",
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"],
            help="Move decisions made before this day, or time, in UTC.",
        ),
    ],
    to: Annotated[Path, Option(metavar="FOLDER", help="Where the Parquet files go.")],
    playbook: PlaybookOption = None,
    with_pending: Annotated[bool, Option(help="Include decisions whose outcome has not arrived.")] = False,
) -> Said:
    """Move old decisions to Parquet files, while others go on using the playbook.

    Decisions whose outcome has not arrived stay, because a late outcome needs them. Bullets, counters and evidence stay
    as they are. Each file is on the disk before its decisions are deleted, so that an interruption loses nothing; run
    the command again to complete it.

        acefraud ledger archive --before 2026-01-01 --to archive --playbook book.db
    """
    from acefraud.storage.archive import archive_decisions  # noqa: PLC0415  # polars is slow to import

    with existing_ledger(playbook, read_only=False) as ledger:
        run = archive_decisions(ledger, before.replace(tzinfo=UTC), to, with_pending=with_pending, **by)
    lines = [f"{run.archived:,} decisions archived", *(f"  {file}" for file in run.files)]
    if run.completed:
        lines.insert(0, f"{run.completed:,} decisions that an earlier run had archived were deleted")
    if run.pending:
        lines.append(f"{run.pending:,} older decisions stay: their outcome has not arrived")
    if isinstance(place_of(playbook), str):
        lines.append("The server uses the room for what comes next")
    elif run.shrinks:
        lines.append(f"{run.bytes_given_back:,} bytes given back to the disk")
    else:
        lines.append("The room is free inside the file for what comes next; `acefraud backup` makes a smaller copy")
    return {**asdict(run), "files": [str(file) for file in run.files]}, lines


@ledger_app.command()
def stats(playbook: PlaybookOption = None) -> Said:
    """Show how much a playbook holds, since when, and how much room it takes.

    acefraud ledger stats --playbook book.db
    """
    with existing_ledger(playbook) as ledger:
        found = file_statistics(ledger)
    times = {name: time and time.isoformat() for name, time in (("oldest", found.oldest), ("newest", found.newest))}
    return {**asdict(found), **times}, [f"{name:<26}  {value:>14}" for name, value in _rows(found)]


def _rows(found: FileStatistics) -> Iterator[tuple[str, str]]:
    made = found.compact_decisions + found.whole_decisions
    yield "decisions", f"{made:,}"
    yield "  compact", f"{found.compact_decisions:,}"
    yield "  whole", f"{found.whole_decisions:,}"
    yield "other events", f"{sum(found.events.values()):,}"
    for kind, count in found.events.items():
        yield f"  {kind}", f"{count:,}"
    yield "remembered cases", f"{found.cases:,}"
    yield "rows of history", f"{found.entity_rows:,}"
    for name, time in (("oldest", found.oldest), ("newest", found.newest)):
        yield name, "-" if time is None else time.isoformat(sep=" ", timespec="seconds")
    yield "bytes", f"{found.file_bytes:,}"
    for table, size in found.bytes_by_table.items():
        yield f"  {table}", f"{size:,}"
    yield "  free", f"{found.free_bytes:,}"
    yield "shrinks while in use", "yes" if found.shrinks else "no"
    yield "schema", found.schema or "-"


def backup(
    file: Annotated[Path, Argument(metavar="FILE", help="Where to put the copy.")],
    playbook: PlaybookOption = None,
    force: ForceOption = False,
) -> Said:
    """Copy a playbook with everything in it but the API keys, while others go on using it.

    The copy is the playbook at one moment: bullets, all events and decisions, remembered cases and history. It is
    checked, and gets its name only when it is complete and on the disk. It is a playbook file itself, without free
    room inside, so this also makes a small copy of a file that has shrunk. The copy of a database is such a file, too.

        acefraud backup monday.db --playbook book.db
        acefraud backup monday.db --database postgresql://ana@db.example/fraud
    """
    shown = shown_place(place_of(playbook))
    size = copy_to_file(playbook, file, force=force)
    return {"playbook": shown, "backup": str(file), "bytes": size}, f"{shown} copied to {file}: {size:,} bytes"


def restore(
    source: Annotated[Path, Argument(metavar="BACKUP", help="What `acefraud backup` made.")],
    playbook: PlaybookOption = None,
    force: ForceOption = False,
) -> Said:
    """Make a playbook from a backup, with everything in it.

    API keys that were there before stay as they are; others are not added.

    The backup is checked first, and the playbook gets its name only when it is complete and on the disk. With --force
    it replaces a playbook that nobody uses. A database must be empty, or have no playbook yet; this is how a playbook
    moves from a file to a database.

        acefraud restore monday.db --playbook book.db
        acefraud restore book.db --database postgresql://ana@db.example/fraud
    """
    place = place_of(playbook)
    if isinstance(place, Path):
        size = copy_playbook(source, place, force=force)
    else:
        with any_ledger(playbook) as ledger:
            read_from_file(source, ledger)
        size = source.stat().st_size
    shown = shown_place(place)
    return {"backup": str(source), "playbook": shown, "bytes": size}, f"{shown} restored from {source}: {size:,} bytes"
