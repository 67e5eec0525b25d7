"""`acefraud playbook ...`: what analysts do with bullets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli import exchange
from acefraud.cli.console import (
    JsonOption,
    PlaybookOption,
    WhoOption,
    WhyOption,
    author,
    existing_playbook,
    learner_on,
    line,
    playbook_path,
    print_json,
)
from acefraud.core.bullet import DEFAULT_NODE, MAX_CONTENT, Bullet, Source, Status
from acefraud.core.english import say
from acefraud.core.events import BulletAdded, BulletEdited, StatusChanged
from acefraud.core.evidence import Evidence, record_in_words
from acefraud.core.reading import read_bullet
from acefraud.curation.curator import Curator
from acefraud.errors import InputError
from acefraud.storage import BulletPlaybook, open_playbook

app = typer.Typer(help="Read, add, edit, approve, pin and retire bullets.", no_args_is_help=True)

BulletArgument = Annotated[str, typer.Argument(metavar="BULLET_ID", help="Id of the bullet, as `list` shows it.")]
ContentArgument = Annotated[str, typer.Argument(metavar="CONTENT", help="What the bullet says, in plain English.")]
NodeOption = Annotated[str, typer.Option("--node", help="Which agent uses it.")]


@app.command("list")
def list_bullets(
    playbook: PlaybookOption = None,
    source: Annotated[Source | None, typer.Option(help="Only bullets of this source.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only bullets of this status.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Retired ones too.")] = False,
    json: JsonOption = False,
) -> None:
    """List the bullets, strongest first, with what was measured of them and what has happened since.

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
    bullets.sort(key=lambda bullet: -abs(bullet.weight or 0))
    if json:
        print_json([bullet.model_dump(mode="json") for bullet in bullets])
        return
    for bullet in bullets:
        weight = "      " if bullet.weight is None else f"{bullet.weight:+6.2f}"
        used = f"{bullet.helpful_count} helpful, {bullet.harmful_count} harmful"
        since = (
            f"; since added {bullet.record.frauds} of {bullet.record.support} were fraud"
            if bullet.record.support
            else ""
        )
        head = f"{bullet.id}  {bullet.status:<9}  {bullet.argues or 'no verdict':<10}  {weight}  {used}{since}"
        line(head, "bold")
        line(f"    {bullet.shown}")
        if bullet.contradicts:
            line(f"    contradicts {', '.join(bullet.contradicts)}", "yellow")
    line(f"{len(bullets)} bullets", "dim")


@app.command()
def show(bullet_id: BulletArgument, playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """Show everything about one bullet: its condition, its figures, and which of them are only claims.

    acefraud playbook show b-1f2e3d4c --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        bullet = _bullet(book, bullet_id)
    if json:
        print_json(bullet.model_dump(mode="json"))
        return
    line(f"{bullet.id}  {bullet.status}  {bullet.source}  node {bullet.node}", style="bold")
    line(bullet.content)
    for name, value in _details(bullet):
        line(f"{name:>17}  {value}")


def _details(bullet: Bullet) -> list[tuple[str, str]]:
    found = [("argues for", str(bullet.argues or "nothing that could be read"))]
    if bullet.condition is not None:
        found += [("condition", str(bullet.condition)), ("as SQL", bullet.condition.to_sql())]
    else:
        found.append(("condition", "none could be read: it is used as prose, where it resembles the transaction"))
    if bullet.evidence is not None:
        found.append(("learnt with", record_in_words(bullet.evidence.learnt)))
        if bullet.evidence.later is not None:
            found.append(("checked on others", record_in_words(bullet.evidence.later)))
        if bullet.evidence.first_seen and bullet.evidence.last_seen:
            found.append(("seen", f"{bullet.evidence.first_seen:%Y-%m-%d} to {bullet.evidence.last_seen:%Y-%m-%d}"))
    if bullet.claim is not None:
        found.append(("CLAIM", f"{bullet.claim.words!r} was stated, not measured"))
    if bullet.record.support:
        found.append(("since added", record_in_words(bullet.record)))
    found.append(
        ("used", f"{bullet.times_selected} times: {bullet.helpful_count} helpful, {bullet.harmful_count} harmful")
    )
    if bullet.weight is not None:
        found.append(("weight", f"{bullet.weight:+.3f} log-odds of fraud"))
    if bullet.contradicts:
        found.append(("contradicts", ", ".join(bullet.contradicts)))
    return found


@app.command()
def add(
    content: ContentArgument,
    playbook: PlaybookOption = None,
    node: NodeOption = DEFAULT_NODE,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Add a bullet in plain English. Starts a playbook where there is none.

    Its condition is read from its words where that is possible, and measured on the cases the playbook remembers;
    a figure that the words only state is kept as a claim.

        acefraud playbook add "Amount above 5,000 and an emulator: decline" --playbook book.db
    """
    _check(content)
    with open_playbook(playbook_path(playbook)) as book:
        evidence = _measured(book, content)
        new = Curator().merge_bullet(content, node, book, Source.MANUAL, evidence=evidence, who=author(who), why=why)
        if new is None:
            reading = read_bullet(content)
            existing = Curator().said_already(content, node, book, condition=reading.condition, argues=reading.argues)
            where = f"{existing.id} ({existing.status}): {existing.content}" if existing else "a retired bullet"
            raise InputError(f"the playbook says this already in {where}")
        bullet = _bullet(book, new)
    if json:
        print_json(bullet.model_dump(mode="json"))
    else:
        line(f"added {bullet.id}")
        _tell_reading(bullet)


@app.command()
def edit(
    bullet_id: BulletArgument,
    content: ContentArgument,
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Let a bullet say something else. Its condition is read anew and measured; its counters stay.

    acefraud playbook edit b-1f2e3d4c "Amount above 6,000 and an emulator: decline" --why "5,000 was too low"
    """
    _check(content)
    with existing_playbook(playbook) as book:
        book.edit_bullet(bullet_id, content, evidence=_measured(book, content), who=author(who), why=why)
        bullet = _bullet(book, bullet_id)
    if json:
        print_json(bullet.model_dump(mode="json"))
    else:
        line(f"edited {bullet_id}")
        _tell_reading(bullet)


@app.command()
def approve(
    bullet_id: BulletArgument,
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Make a bullet active: approve a candidate, unpin a pinned one, bring back a retired one.

    acefraud playbook approve b-1f2e3d4c --playbook book.db --why "checked against last month"
    """
    _move(bullet_id, Status.ACTIVE, playbook, who, why, json)


@app.command()
def pin(
    bullet_id: BulletArgument,
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Pin a bullet: neither its record nor the engine takes it out.

    acefraud playbook pin b-1f2e3d4c --playbook book.db --why "required by policy"
    """
    _move(bullet_id, Status.PINNED, playbook, who, why, json)


@app.command()
def retire(
    bullet_id: BulletArgument,
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Retire a bullet: it is never selected again, and learning does not bring it back.

    acefraud playbook retire b-1f2e3d4c --playbook book.db --why "the pattern has faded"
    """
    _move(bullet_id, Status.RETIRED, playbook, who, why, json)


@app.command()
def history(bullet_id: BulletArgument, playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """Show what happened to a bullet: when, by whom and why.

    acefraud playbook history b-1f2e3d4c --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        _bullet(book, bullet_id)
        events = book.ledger.history(bullet_id)
    if json:
        print_json([event.model_dump(mode="json") for event in events])
        return
    for event in events:
        what = {
            BulletAdded: "added",
            BulletEdited: "edited",
            StatusChanged: f"now {event.what.status}" if isinstance(event.what, StatusChanged) else "",
        }.get(type(event.what), "counted")
        reason = event.what.reason if isinstance(event.what, StatusChanged) else ""
        line(f"{event.at:%Y-%m-%d %H:%M:%S}  {what}  by {event.who}  {reason or event.why}".rstrip())


app.command()(exchange.export)
app.command("import")(exchange.import_bullets)


def _move(bullet_id: str, status: Status, playbook: Path | None, who: str | None, why: str, json: bool) -> None:
    with existing_playbook(playbook) as book:
        before = _bullet(book, bullet_id).status
        book.set_status(bullet_id, status, who=author(who), why=why)
        after = _bullet(book, bullet_id)
    if json:
        print_json(after.model_dump(mode="json"))
    else:
        line(f"{bullet_id}: {before} -> {status}")


def _bullet(book: BulletPlaybook, bullet_id: str) -> Bullet:
    bullet = book.get_bullet(bullet_id)
    if bullet is None:
        raise InputError(f"there is no bullet '{bullet_id}' in this playbook")
    return bullet


def _check(content: str) -> None:
    if not content.strip():
        raise InputError("expected what the bullet says, got an empty text", field="content")
    if len(content) > MAX_CONTENT:
        raise InputError(f"expected at most {MAX_CONTENT:,} characters, got {len(content):,}", field="content")
    try:
        content.encode()
    except UnicodeEncodeError as problem:
        place = problem.start + 1
        raise InputError(f"expected valid UTF-8, got something else at character {place}", field="content") from None


def _measured(book: BulletPlaybook, content: str) -> Evidence | None:
    condition = read_bullet(content).condition
    return None if condition is None else learner_on(book).measure(condition)


def _tell_reading(bullet: Bullet) -> None:
    if bullet.condition is None:
        line("No condition could be read from its words: it is used as prose.")
    else:
        line(f"Read as: {say(bullet.condition)}")
    if bullet.evidence is not None:
        line(f"Measured on the cases remembered here: {bullet.evidence.in_words()}")
        if bullet.claim is not None:
            line(f"What it states ({bullet.claim.words}) is kept as a claim beside that.")
    elif bullet.claim is not None:
        line(f"Its figure ({bullet.claim.words}) is a claim until it is measured.")
