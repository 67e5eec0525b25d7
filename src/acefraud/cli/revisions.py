"""`acefraud playbook history`, `changes` and `rollback`: what happened to a playbook, and how to undo it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from acefraud.cli.console import line, print_json, print_result
from acefraud.cli.options import JsonOption, PlaybookOption, WhoOption, WhyOption
from acefraud.cli.rules import BulletArgument, flips_in_words
from acefraud.cli.workspace import author, embedded_learner, existing_ledger, existing_playbook
from acefraud.core.events import DecisionMade, Event, RolledBack
from acefraud.service.answers import rollback_answer
from acefraud.storage.change_log import change_of, playbook_changes
from acefraud.storage.changes import bullet_in, plan_rollback


def history(bullet_id: BulletArgument, playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """Show what happened to a bullet: when, by whom and why.

    acefraud playbook history b-1f2e3d4c --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        bullet_in(book, bullet_id)
        events = book.ledger.history(bullet_id)
    if json:
        print_json([_event_json(event) for event in events])
        return
    for change in map(change_of, events):
        line(f"{change.at:%Y-%m-%d %H:%M:%S}  {change.what}  by {change.who}  {change.why}".rstrip())
        if change.content:
            line(f"    {change.content}", "dim")


def _event_json(event: Event) -> dict[str, Any]:
    assert not isinstance(event.payload, DecisionMade), "the history of a bullet has no decisions"
    return {
        "seq": event.seq,
        "at": event.at.isoformat(),
        "who": event.who,
        "why": event.why,
        "what": event.payload.model_dump(mode="json"),
    }


def changes(
    playbook: PlaybookOption = None,
    last: Annotated[int, typer.Option("--last", min=1, help="How many.")] = 20,
    before: Annotated[
        int | None, typer.Option("--before", min=1, metavar="REVISION", help="Only those before this revision.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what changed a playbook, newest first: the revision after it, when, by whom and why.

    `acefraud playbook rollback` takes such a revision.

        acefraud playbook changes --playbook book.db
    """
    with existing_ledger(playbook) as ledger:
        found = playbook_changes(ledger, before=before, limit=last)
    if json:
        print_json([change.as_json() for change in found])
        return
    for change in found:
        line(f"{change.seq:>7}  {change.at:%Y-%m-%d %H:%M:%S}  {change.words}  by {change.who}")
        if change.content:
            line(f"         {change.content}", "dim")


def roll_back(
    revision: Annotated[int, typer.Argument(metavar="REVISION", help="As `changes` shows it.")],
    playbook: PlaybookOption = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would change, and which decisions; store nothing.")
    ] = False,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Bring a playbook back to an earlier revision. Nothing is deleted: a rollback can be rolled back.

    Bullets get their words, status and weight of then, and those added since are retired; calibration, threshold,
    review rule and mapping go back. Counters, lists, snoozes and remembered cases stay.

        acefraud playbook rollback 41 --preview --playbook book.db
        acefraud playbook rollback 41 --why "too many false alarms since Monday" --playbook book.db
    """
    if not preview:
        with existing_playbook(playbook) as book:
            done = book.rollback(revision, who=author(who), why=why)
        print_result(_as_json(done), _in_words(done), json=json)
        return
    with existing_playbook(playbook, read_only=True) as book:
        change = plan_rollback(book, revision, why)
        found = embedded_learner(book).preview_change(change.payloads)
    words = [_in_words(change.result, planned=True), *flips_in_words(found)]
    print_result({**_as_json(change.result), "preview": found.as_json()}, "\n".join(words), json=json)


def _as_json(done: RolledBack) -> dict[str, Any]:
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
