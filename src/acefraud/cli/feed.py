"""`acefraud feed ...`: how outcomes arrive, what silence means, and the level of fraud that follows from it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from acefraud.cli import SUMMARIES
from acefraud.cli.console import print_result
from acefraud.cli.options import JsonOption, PlaybookOption, WhoOption, WhyOption
from acefraud.cli.workspace import author, existing_playbook
from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.outcome import FeedKind
from acefraud.storage import BulletPlaybook

app = typer.Typer(help=SUMMARIES["feed"], no_args_is_help=True, add_completion=False)


@app.command()
def show(playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """Show how outcomes arrive, what silence means, and where the level of fraud is.

    acefraud feed show --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        _print(book, json=json)


@app.command("set")
def set_feed(
    playbook: PlaybookOption = None,
    kind: Annotated[
        FeedKind | None, typer.Option("--kind", help="Which decisions get an outcome; unknown lets it be recognised.")
    ] = None,
    silence_days: Annotated[
        float | None,
        typer.Option(
            "--silence-days",
            min=0,
            help="After so many days without a report a decision counts as legitimate; 0: silence says nothing.",
        ),
    ] = None,
    declines_pass: Annotated[
        bool | None,
        typer.Option(
            "--declines-pass/--declines-stop",
            help="Whether declined transactions go through all the same, so that their silence says something.",
        ),
    ] = None,
    follow_level: Annotated[
        bool | None, typer.Option("--follow-level/--no-level", help="Whether the level of fraud follows outcomes.")
    ] = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Say how outcomes arrive. What is not given stays as it is.

    Chargebacks report frauds only, so nothing is learnt from them until you say when silence counts as legitimate.

        acefraud feed set --kind fraud_only --silence-days 60 --playbook book.db
        acefraud feed set --no-level --why 'a partner sent wrong labels' --playbook book.db
    """
    with existing_playbook(playbook) as book:
        book.set_feed(
            kind,
            silence_days=silence_days,
            declines_pass=declines_pass,
            follow_level=follow_level,
            who=author(who),
            why=why,
        )
        _print(book, json=json)


@app.command()
def accept(
    playbook: PlaybookOption = None, who: WhoOption = None, why: WhyOption = "", json: JsonOption = False
) -> None:
    """Agree to a step of the level of fraud that is held because it would change many verdicts.

    acefraud feed accept --who ana --why 'the attack is real' --playbook book.db
    """
    _settle(playbook, accept=True, who=who, why=why, json=json)


@app.command()
def reset(
    playbook: PlaybookOption = None, who: WhoOption = None, why: WhyOption = "", json: JsonOption = False
) -> None:
    """Put the level of fraud back to what was calibrated, and drop a step that is held.

    acefraud feed reset --playbook book.db
    """
    _settle(playbook, accept=False, who=who, why=why, json=json)


def _settle(playbook: Any, *, accept: bool, who: str | None, why: str, json: bool) -> None:
    with existing_playbook(playbook) as book:
        book.settle_level(accept=accept, who=author(who), why=why)
        _print(book, json=json)


def _print(book: BulletPlaybook, *, json: bool) -> None:
    feed, level = book.feed(DEFAULT_NODE), level_in_words(book)
    content = {**feed.model_dump(mode="json"), "words": feed.words, "level": level}
    print_result(content, "\n".join([f"Outcomes: {feed.words}", *level]), json=json)


def level_in_words(book: BulletPlaybook) -> list[str]:
    """Where the level of fraud is, what is held, and since when silence counts."""
    feed, calibration = book.feed(DEFAULT_NODE), book.snapshot().calibration(DEFAULT_NODE)
    told = []
    if feed.silence_days is not None and feed.silent_until is None:
        told.append("The days run from when a transaction is decided; none is that old yet")
    if feed.silent_until is not None:
        told.append(f"Silence counts for decisions made until {feed.silent_until:%Y-%m-%d %H:%M}")
    if calibration is not None and calibration.recent is not None:
        told.append(f"Level of fraud: {calibration.recent.shift:+.1f}, {calibration.recent.in_words}")
    if calibration is not None and calibration.held is not None:
        told.append(f"Held until `acefraud feed accept`: {calibration.held.in_words}")
    return told
