"""`acefraud playbook ...`: what analysts do with bullets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli import SUMMARIES
from acefraud.cli.console import line, note, print_json, print_result, read_text
from acefraud.cli.options import JsonOption, PlaybookOption, WhoOption, WhyOption
from acefraud.cli.revisions import changes, history, roll_back
from acefraud.cli.rules import BulletArgument, add, edit, preview, read, snooze
from acefraud.cli.workspace import any_playbook, author, embedded_learner, existing_playbook
from acefraud.core.bullet import DEFAULT_NODE, Bullet, Source, Status, percent, record_in_words
from acefraud.core.events import BulletAdded, Event, EventPayload, Recalibrated, StatusChanged, Trained
from acefraud.errors import InputError
from acefraud.rules.english import say
from acefraud.storage import BulletPlaybook
from acefraud.storage.change_log import why_of
from acefraud.storage.changes import bullet_in
from acefraud.storage.contents import holdings
from acefraud.storage.playbook_text import Exported, from_json, from_markdown, to_json, to_markdown
from acefraud.storage.sql_ledger import SqlLedger

app = typer.Typer(help=SUMMARIES["playbook"], no_args_is_help=True, add_completion=False)


class Format(StrEnum):
    """How an exported playbook is written."""

    MARKDOWN = "md"
    JSON = "json"


@app.command("list")
def list_bullets(
    playbook: PlaybookOption = None,
    source: Annotated[Source | None, typer.Option(help="Only bullets from this source.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only bullets with this status.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include retired bullets.")] = False,
    json: JsonOption = False,
) -> None:
    """List the bullets with their evidence and what has happened since: policies, then by strength, then notes.

    acefraud playbook list --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        bullets = [
            bullet
            for bullet in book.snapshot().bullets.values()
            if (everything or status is Status.RETIRED or bullet.status is not Status.RETIRED)
            and source in (None, bullet.source)
            and status in (None, bullet.status)
        ]
        remarks = _remarks(book, bullets)
    bullets.sort(key=lambda bullet: (bullet.policy is None, bullet.is_note, -abs(bullet.weight or 0)))
    if json:
        print_json([{**one.model_dump(mode="json"), "remarks": remarks.get(one.id, [])} for one in bullets])
        return
    for bullet in bullets:
        used = f"{bullet.helpful_count} helpful, {bullet.harmful_count} harmful"
        if bullet.record.support:
            used += f"; since added {bullet.record.frauds} of {bullet.record.support} were fraud"
        line(f"{bullet.id}  {bullet.status:<9}  {_effect(bullet)}  {used}", "bold")
        line(f"    {bullet.shown}")
        if bullet.condition is not None and bullet.source is Source.MANUAL:
            line(f"    read as: {say(bullet.condition)}", "dim")
        if bullet.contradicts:
            line(f"    contradicts {', '.join(bullet.contradicts)}", "yellow")
        for remark in remarks.get(bullet.id, ()):
            line(f"    {remark}", "yellow")
    line(f"{len(bullets)} bullets", "dim")


def _remarks(book: BulletPlaybook, bullets: Sequence[Bullet]) -> dict[str, list[str]]:
    """What is wrong with rules that people wrote. What the engine learnt has fired by definition."""
    learner = embedded_learner(book)
    manual = [one for one in bullets if one.source is Source.MANUAL and one.status is not Status.RETIRED]
    return {one.id: found for one in manual if (found := learner.remarks_on(one))}


def _effect(bullet: Bullet) -> str:
    """What a bullet does to a decision: a policy, a note, or a weight."""
    if bullet.policy is not None:
        return bullet.policy.words
    if bullet.is_note:
        return f"{'note':<18}"
    weight = "      " if bullet.weight is None else f"{bullet.weight:+6.2f}"
    return f"{bullet.argues or 'no verdict':<10}  {weight}"


@app.command()
def show(bullet_id: BulletArgument, playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """Show everything about one bullet: its status and why, its condition, its figures, and which are only claims.

    acefraud playbook show b-1f2e3d4c --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        bullet, events = bullet_in(book, bullet_id), book.ledger.history(bullet_id)
    if json:
        print_json(bullet.model_dump(mode="json"))
        return
    line(f"{bullet.id}  {bullet.status}  {bullet.source}  node {bullet.node}", style="bold")
    line(bullet.content)
    line(f"{'status':>17}  {_status(bullet, events)}")
    for name, value in _details(bullet):
        line(f"{name:>17}  {value}")


def _status(bullet: Bullet, events: list[Event]) -> str:
    """The status of a bullet, who set it and why."""
    (*_, latest) = (event for event in events if isinstance(event.payload, BulletAdded | StatusChanged))
    set_by = f"{bullet.status}, set by {bullet.status_by or latest.who}"
    return f"{set_by}: {reason}" if (reason := why_of(latest)) else set_by


def _details(bullet: Bullet) -> Iterator[tuple[str, str]]:
    yield "argues for", str(bullet.argues or "unknown")
    if bullet.policy is not None:
        yield "policy", bullet.policy.words
    for snoozed in bullet.snoozes:
        yield "snoozed", f"for {snoozed.key} {snoozed.value} until {snoozed.until:%Y-%m-%d %H:%M} UTC"
    if bullet.condition is None:
        yield "condition", "none: it is a note for people, and for a language model; it never moves the engine"
    else:
        yield "in English", say(bullet.condition)
        yield "condition", str(bullet.condition)
        yield "as SQL", bullet.condition.to_sql()
    if bullet.evidence is not None:
        yield "learnt with", record_in_words(bullet.evidence.learnt)
        if bullet.evidence.later is not None:
            yield "on later cases", record_in_words(bullet.evidence.later)
        if bullet.evidence.found_again is not None:
            yield "found again", f"by {percent(bullet.evidence.found_again)} of the searches"
        if bullet.evidence.first_seen and bullet.evidence.last_seen:
            yield "seen", f"{bullet.evidence.first_seen:%Y-%m-%d} to {bullet.evidence.last_seen:%Y-%m-%d}"
    if bullet.claim is not None:
        yield "CLAIM", f"{bullet.claim.words!r} was stated, not measured"
    if bullet.record.support:
        yield "since added", record_in_words(bullet.record)
    yield "used", f"{bullet.times_selected} times: {bullet.helpful_count} helpful, {bullet.harmful_count} harmful"
    if bullet.weight is not None:
        yield "weight", f"{bullet.weight:+.3f} log-odds of fraud"
    if bullet.contradicts:
        yield "contradicts", ", ".join(bullet.contradicts)


app.command("read")(read)
app.command("add")(add)
app.command("edit")(edit)
app.command("preview")(preview)
app.command("snooze")(snooze)
app.command("history")(history)
app.command("changes")(changes)
app.command("rollback")(roll_back)


def _status_command(status: Status, help: str) -> Callable[..., None]:
    """A command that moves a bullet to a status."""

    def command(
        bullet_id: BulletArgument,
        playbook: PlaybookOption = None,
        who: WhoOption = None,
        why: WhyOption = "",
        json: JsonOption = False,
    ) -> None:
        with existing_playbook(playbook) as book:
            before = bullet_in(book, bullet_id).status
            book.set_status(bullet_id, status, who=author(who), why=why)
            after = bullet_in(book, bullet_id)
        print_result(after.model_dump(mode="json"), f"{bullet_id}: {before} -> {status}", json=json)

    command.__doc__ = help
    return command


APPROVE = """Make a bullet active: approve a candidate, unpin a pinned bullet, bring back a retired one.

acefraud playbook approve b-1f2e3d4c --playbook book.db --why "checked against last month"
"""
PIN = """Pin a bullet: neither its record nor the engine removes it.

acefraud playbook pin b-1f2e3d4c --playbook book.db --why "required by policy"
"""
RETIRE = """Retire a bullet: it is never selected again, and learning does not bring it back.

acefraud playbook retire b-1f2e3d4c --playbook book.db --why "the pattern has faded"
"""
app.command("approve")(_status_command(Status.ACTIVE, APPROVE))
app.command("pin")(_status_command(Status.PINNED, PIN))
app.command("retire")(_status_command(Status.RETIRED, RETIRE))


@app.command()
def export(
    playbook: PlaybookOption = None,
    format: Annotated[Format, typer.Option(help="Markdown for people and diffs, JSON for scripts.")] = Format.MARKDOWN,
    to: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """Write out all bullets and their calibration. Importing the export gives a playbook that decides the same.

    What is left out (decisions, remembered cases, history) is said on standard error; `acefraud backup` keeps it.

        acefraud playbook export --playbook book.db --to book.md
    """
    with existing_playbook(playbook, read_only=True) as book:
        exported = Exported.of(book.snapshot())
        left_out = _left_out(book)
    text = to_json(exported) if format is Format.JSON else to_markdown(exported)
    if to is None:
        sys.stdout.write(text)
    else:
        _write(text, to)
    if left_out:
        note(f"not exported: {left_out}; `acefraud backup` keeps everything")


def _write(text: str, to: Path) -> None:
    part = to.with_name(f".{to.name}.part")  # so that the file itself is never half-written
    try:
        part.write_text(text, "utf-8")
        part.replace(to)
    except OSError as problem:
        part.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {problem.strerror}", file=str(to)) from None


def _left_out(book: BulletPlaybook) -> str:
    assert isinstance(book.ledger, SqlLedger), "it was opened from a file or database"
    held = holdings(book.ledger)
    counts = (
        (held.cases, "remembered cases"),
        (held.entity_rows, "rows of history"),
        (held.decisions, "decisions"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


@app.command("import")
def import_bullets(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote, Markdown or JSON.")],
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Read an exported playbook into this one, all of it or nothing. Starts a playbook if there is none.

    Bullets that are already there and say the same are skipped. A bullet that is already there and says something else
    is an error.

        acefraud playbook import book.md --playbook copy.db
    """
    text = read_text(source)
    read = from_json if text.lstrip().startswith("{") else from_markdown
    exported = read(text, file=str(source))
    with any_playbook(playbook) as book:
        why = why or f"imported from {source.name}"
        added = book.run_unit_of_work(lambda: _import(exported, book), who=author(who), why=why)
    there = len(exported.bullets) - added
    print_result(
        {"imported": added, "there_already": there}, f"{added} bullets imported, {there} already there", json=json
    )


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
