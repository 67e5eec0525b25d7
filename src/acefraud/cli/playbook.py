"""`acefraud playbook ...`: what analysts do with bullets."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from acefraud.cli import group
from acefraud.cli.console import Part, Said, Shown, note, read_text, write_text
from acefraud.cli.options import PlaybookOption
from acefraud.cli.rules import BulletArgument, add, bullet_json, edit, flips_in_words, preview, read, snooze
from acefraud.cli.workspace import Changing, Reading, any_playbook, embedded_learner, existing_ledger, existing_playbook
from acefraud.core.bullet import DEFAULT_NODE, Bullet, Firings, Source, Status, percent, record_in_words
from acefraud.core.events import (
    BulletAdded,
    DecisionMade,
    Event,
    EventPayload,
    Recalibrated,
    RolledBack,
    StatusChanged,
    Trained,
)
from acefraud.core.scope import Author
from acefraud.errors import InputError
from acefraud.learning.preview import firings_on
from acefraud.rules.english import say
from acefraud.service.answers import rollback_answer
from acefraud.storage import BulletPlaybook
from acefraud.storage.change_log import change_of, playbook_changes, why_of
from acefraud.storage.changes import bullet_in, plan_rollback
from acefraud.storage.contents import holdings
from acefraud.storage.playbook_text import Exported, from_json, from_markdown, to_json, to_markdown
from acefraud.storage.sql_ledger import SqlLedger

playbook_app = group("playbook")


class Format(StrEnum):
    """How an exported playbook is written."""

    MARKDOWN = "md"
    JSON = "json"


@playbook_app.command("list")
def list_bullets(
    book: Reading,
    source: Annotated[Source | None, Option(help="Only bullets from this source.")] = None,
    status: Annotated[Status | None, Option(help="Only bullets with this status.")] = None,
    everything: Annotated[bool, Option("--all", help="Include retired bullets.")] = False,
) -> Said:
    """List the bullets with their evidence and what has happened since: policies, then by strength, then notes.

    acefraud playbook list --playbook book.db
    """
    bullets = [
        bullet
        for bullet in book.snapshot().bullets.values()
        if (everything or status is Status.RETIRED or bullet.status is not Status.RETIRED)
        and source in (None, bullet.source)
        and status in (None, bullet.status)
    ]
    bullets.sort(key=lambda bullet: (bullet.policy is None, bullet.is_note, -abs(bullet.weight or 0)))
    learner = embedded_learner(book)
    cases, content, lines = learner.remembered(), [], list[Part]()
    for bullet in bullets:
        fired, remarks = firings_on(cases, bullet), []
        if bullet.source is Source.MANUAL and bullet.status is not Status.RETIRED:
            remarks = learner.remarks_on(bullet)  # what the engine learnt has fired by definition
        content.append(bullet_json(bullet, remarks) | {"firings": fired and fired.as_json()})
        lines += _listed(bullet, fired, remarks)
    return content, [*lines, (f"{len(bullets)} bullets", "dim")]


def _listed(bullet: Bullet, fired: Firings | None, remarks: Sequence[str]) -> Iterator[Part]:
    figures = _as_reason(bullet) if fired is None else fired.in_words(short=True)
    if fired is not None and bullet.record.support and bullet.record != fired.record:
        figures += f"; since added {bullet.record.frauds:,} of {bullet.record.support:,} were fraud"
    yield f"{bullet.id}  {bullet.status:<9}  {_effect(bullet)}  {figures}".rstrip(), "bold"
    yield f"    {bullet.shown}"
    if bullet.condition is not None and bullet.source is Source.MANUAL:
        yield f"    read as: {say(bullet.condition)}", "dim"
    if bullet.contradicts:
        yield f"    contradicts {', '.join(bullet.contradicts)}", "yellow"
    for remark in remarks:
        yield f"    {remark}", "yellow"


def _as_reason(bullet: Bullet) -> str:
    """The decisions that gave a bullet as a reason, and how many were right whatever it argued for."""
    said = f"a reason in {bullet.times_selected:,} judged decisions, {bullet.helpful_count:,} of which were right"
    return said if bullet.times_selected else ""


def _effect(bullet: Bullet) -> str:
    """What a bullet does to a decision: a policy, a note, or a weight."""
    if bullet.policy is not None:
        return bullet.policy.words
    if bullet.is_note:
        return f"{'note':<18}"
    weight = "      " if bullet.weight is None else f"{bullet.weight:+6.2f}"
    return f"{bullet.argues or 'no verdict':<10}  {weight}"


@playbook_app.command()
def show(book: Reading, bullet_id: BulletArgument) -> Said:
    """Show everything about one bullet: its status and why, its condition, its figures, and which are only claims.

    acefraud playbook show b-1f2e3d4c --playbook book.db
    """
    bullet, events = bullet_in(book, bullet_id), book.ledger.history(bullet_id)
    heading = f"{bullet.id}  {bullet.status}  {bullet.source}  node {bullet.node}", "bold"
    fired = firings_on(embedded_learner(book).remembered(), bullet)
    details = [("status", _status(bullet, events)), *_details(bullet, fired)]
    shown: Shown = [heading, bullet.content, *(f"{name:>17}  {value}" for name, value in details if value)]
    return bullet.model_dump(mode="json") | {"firings": fired and fired.as_json()}, shown


def _status(bullet: Bullet, events: list[Event]) -> str:
    """The status of a bullet, who set it and why."""
    (*_, latest) = (event for event in events if isinstance(event.payload, BulletAdded | StatusChanged))
    set_by = f"{bullet.status}, set by {bullet.status_by or latest.who}"
    return f"{set_by}: {reason}" if (reason := why_of(latest)) else set_by


def _details(bullet: Bullet, fired: Firings | None) -> Iterator[tuple[str, str]]:
    """What is known of a bullet, name by name. Empty values are left out."""
    weighs = bullet.condition is not None and bullet.policy is None
    yield "argues", f"for {bullet.argues}" if bullet.argues else Bullet.WITHOUT_VERDICT if weighs else ""
    yield "policy", bullet.policy.words if bullet.policy else ""
    for snoozed in bullet.snoozes:
        yield "snoozed", f"for {snoozed.key} {snoozed.value} until {snoozed.until:%Y-%m-%d %H:%M} UTC"
    if bullet.condition is None:
        yield "condition", "none: it is a note for people, and for a language model; it never moves the engine"
    else:
        yield "in English", say(bullet.condition)
        yield "condition", str(bullet.condition)
        yield "as SQL", bullet.condition.to_sql()
    if (measured := bullet.evidence) is not None:
        yield "learnt with", record_in_words(measured.learnt)
        yield "on later cases", record_in_words(measured.later) if measured.later else ""
        if measured.found_again is not None:
            yield "found again", f"by {percent(measured.found_again)} of the searches"
        if measured.first_seen and measured.last_seen:
            yield "seen", f"{measured.first_seen:%Y-%m-%d} to {measured.last_seen:%Y-%m-%d}"
    yield "CLAIM", f"{bullet.claim.words!r} was stated, not measured" if bullet.claim else ""
    yield "since added", record_in_words(bullet.record) if bullet.record.support else ""
    yield "fired", fired.in_words().removeprefix("fired ") if fired else ""
    yield "used", _as_reason(bullet)
    yield "weight", "" if bullet.weight is None else f"{bullet.weight:+.3f} log-odds of fraud"
    yield "contradicts", ", ".join(bullet.contradicts)


for command in (read, add, edit, preview, snooze):
    playbook_app.command()(command)


@playbook_app.command()
def history(book: Reading, bullet_id: BulletArgument) -> Said:
    """Show what happened to a bullet: when, by whom and why.

    acefraud playbook history b-1f2e3d4c --playbook book.db
    """
    bullet_in(book, bullet_id)
    events = book.ledger.history(bullet_id)
    return [_event_json(event) for event in events], [line for event in events for line in _happened(event)]


def _happened(event: Event) -> Iterator[str | tuple[str, str]]:
    change = change_of(event)
    yield f"{change.at:%Y-%m-%d %H:%M:%S}  {change.what}  by {change.who}  {change.why}".rstrip()
    if change.content:
        yield f"    {change.content}", "dim"


def _event_json(event: Event) -> dict[str, Any]:
    assert not isinstance(event.payload, DecisionMade), "the history of a bullet has no decisions"
    return {
        "seq": event.seq,
        "at": event.at.isoformat(),
        "who": event.who,
        "why": event.why,
        "what": event.payload.model_dump(mode="json"),
    }


@playbook_app.command()
def changes(
    playbook: PlaybookOption = None,
    last: Annotated[int, Option(min=1, help="How many.")] = 20,
    before: Annotated[int | None, Option(min=1, metavar="REVISION", help="Only those before this revision.")] = None,
) -> Said:
    """Show what changed a playbook, newest first: the revision after it, when, by whom and why.

    `acefraud playbook rollback` takes such a revision.

        acefraud playbook changes --playbook book.db
    """
    with existing_ledger(playbook) as ledger:
        found = playbook_changes(ledger, before=before, limit=last)
    lines: list[str | tuple[str, str]] = []
    for change in found:
        lines.append(f"{change.seq:>7}  {change.at:%Y-%m-%d %H:%M:%S}  {change.words}  by {change.who}")
        if change.content:
            lines.append((f"         {change.content}", "dim"))
    return [change.as_json() for change in found], lines


@playbook_app.command("rollback")
def roll_back(
    by: Author,
    revision: Annotated[int, Argument(metavar="REVISION", help="As `changes` shows it.")],
    playbook: PlaybookOption = None,
    preview: Annotated[bool, Option(help="Show what would change, and which decisions; store nothing.")] = False,
) -> Said:
    """Bring a playbook back to an earlier revision. Nothing is deleted: a rollback can be rolled back.

    Bullets get their words, status and weight of then, and those added since are retired; calibration, threshold,
    review rule and mapping go back. Counters, lists, snoozes and remembered cases stay.

        acefraud playbook rollback 41 --preview --playbook book.db
        acefraud playbook rollback 41 --why "too many false alarms since Monday" --playbook book.db
    """
    if not preview:
        with existing_playbook(playbook) as book:
            done = book.rollback(revision, **by)
        return _rollback_json(done), _in_words(done)
    with existing_playbook(playbook, read_only=True) as book:
        change = plan_rollback(book, revision, by["why"])
        found = embedded_learner(book).preview_change(change.payloads)
    content = {**_rollback_json(change.result), "preview": found.as_json()}
    return content, [_in_words(change.result, planned=True), *flips_in_words(found)]


def _rollback_json(done: RolledBack) -> dict[str, Any]:
    return {"to": done.to, **rollback_answer(done).model_dump(mode="json", exclude={"revision", "preview"})}


def _in_words(done: RolledBack, *, planned: bool = False) -> str:
    if done.changes_nothing:
        return f"The playbook is as it was at revision {done.to}: nothing to do"
    counts = (
        (done.retired, "retired, which were not there then"),
        (done.edited, "with their former words"),
        (done.moved, "with their former status"),
    )
    lines = [f"{'Would roll' if planned else 'Rolled'} back to revision {done.to}"]
    lines += [f"{len(some):>7,} {how}: {', '.join(some)}" for some, how in counts if some]
    if done.weights:
        lines.append(f"{len(done.weights):>7,} with their former weight")
    if done.also:
        lines.append(f"        and the former {', '.join(done.also)}")
    return "\n".join(lines)


@playbook_app.command()
def approve(book: Changing, by: Author, bullet_id: BulletArgument) -> Said:
    """Make a bullet active: approve a candidate, unpin a pinned bullet, bring back a retired one.

    acefraud playbook approve b-1f2e3d4c --playbook book.db --why "checked against last month"
    """
    return _moved(book, by, bullet_id, Status.ACTIVE)


@playbook_app.command()
def pin(book: Changing, by: Author, bullet_id: BulletArgument) -> Said:
    """Pin a bullet: neither its record nor the engine removes it.

    acefraud playbook pin b-1f2e3d4c --playbook book.db --why "required by policy"
    """
    return _moved(book, by, bullet_id, Status.PINNED)


@playbook_app.command()
def retire(book: Changing, by: Author, bullet_id: BulletArgument) -> Said:
    """Retire a bullet: it is never selected again, and learning does not bring it back.

    acefraud playbook retire b-1f2e3d4c --playbook book.db --why "the pattern has faded"
    """
    return _moved(book, by, bullet_id, Status.RETIRED)


def _moved(book: BulletPlaybook, by: Author, bullet_id: str, status: Status) -> Said:
    before = bullet_in(book, bullet_id).status
    book.set_status(bullet_id, status, **by)
    return bullet_in(book, bullet_id).model_dump(mode="json"), f"{bullet_id}: {before} -> {status}"


@playbook_app.command()
def export(
    book: Reading,
    format: Annotated[Format, Option(help="Markdown for people and diffs, JSON for scripts.")] = Format.MARKDOWN,
    to: Annotated[Path | None, Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """Write out all bullets and their calibration. Importing the export gives a playbook that decides the same.

    What is left out (decisions, remembered cases, history) is said on standard error; `acefraud backup` keeps it.

        acefraud playbook export --playbook book.db --to book.md
    """
    exported, left_out = Exported.of(book.snapshot()), _left_out(book)
    text = to_json(exported) if format is Format.JSON else to_markdown(exported)
    if to is None:
        sys.stdout.write(text)
    else:
        write_text(text, to)
    if left_out:
        note(f"not exported: {left_out}; `acefraud backup` keeps everything")


def _left_out(book: BulletPlaybook) -> str:
    assert isinstance(book.ledger, SqlLedger), "it was opened from a file or database"
    held = holdings(book.ledger)
    counts = ((held.cases, "remembered cases"), (held.entity_rows, "rows of history"), (held.decisions, "decisions"))
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


@playbook_app.command("import")
def import_bullets(
    by: Author,
    source: Annotated[Path, Argument(metavar="FILE", help="What `export` wrote, Markdown or JSON.")],
    playbook: PlaybookOption = None,
) -> Said:
    """Read an exported playbook into this one, all of it or nothing. Starts a playbook if there is none.

    Bullets that are already there and say the same are skipped. A bullet that is already there and says something else
    is an error.

        acefraud playbook import book.md --playbook copy.db
    """
    text = read_text(source)
    read = from_json if text.lstrip().startswith("{") else from_markdown
    exported = read(text, file=str(source))
    by["why"] = by["why"] or f"imported from {source.name}"
    with any_playbook(playbook) as book:
        added = book.run_unit_of_work(lambda: _import(exported, book), **by)
    there = len(exported.bullets) - added
    return {"imported": added, "there_already": there}, f"{added} bullets imported, {there} already there"


def _import(exported: Exported, book: BulletPlaybook) -> int:
    """Record what is not there yet. Returns the number of new bullets."""
    new: list[EventPayload] = []
    for bullet in exported.bullets:
        there = book.get_bullet(bullet.id)
        if there is None:
            new.append(BulletAdded(bullet=bullet))
        elif there != bullet:
            raise InputError(f"bullet {bullet.id} is already in this playbook and differs; import into a new one")
    count, snapshot = len(new), book.snapshot()
    for node, calibration in exported.calibrations.items():
        if snapshot.calibration(node) is None:
            new.append(Recalibrated(node=node, calibration=calibration))
    if exported.mapping and not snapshot.mapping:
        new.append(Trained(node=DEFAULT_NODE, dataset="import", rows=0, frauds=0, mapping=exported.mapping))
    book.record(new)
    return count
