"""`acefraud playbook export` and `import`: a playbook as text."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli.console import (
    JsonOption,
    PlaybookOption,
    WhoOption,
    WhyOption,
    author,
    existing_playbook,
    line,
    playbook_path,
    print_json,
)
from acefraud.core.bullet import DEFAULT_NODE
from acefraud.core.events import BulletAdded, Happening, Recalibrated, Trained
from acefraud.errors import InputError
from acefraud.storage import BulletPlaybook, open_playbook
from acefraud.storage.exchange import Exported, from_json, from_markdown, to_json, to_markdown


class Format(StrEnum):
    """How a playbook is written down."""

    MARKDOWN = "md"
    JSON = "json"


def export(
    playbook: PlaybookOption = None,
    format: Annotated[Format, typer.Option(help="Markdown for people and diffs, JSON for machines.")] = Format.MARKDOWN,
    to: Annotated[Path | None, typer.Option(help="File to write; standard output without it.")] = None,
) -> None:
    """Write the whole playbook down. Importing what was exported gives the same playbook.

    acefraud playbook export --playbook book.db --to book.md
    """
    with existing_playbook(playbook, read_only=True) as book:
        exported = Exported.of(book.snapshot())
    text = to_json(exported) if format is Format.JSON else to_markdown(exported)
    if to is None:
        sys.stdout.write(text)
        return
    beside = to.with_name(f".{to.name}.part")  # the file itself is only ever whole
    try:
        beside.write_text(text, "utf-8")
        beside.replace(to)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {problem.strerror}", file=str(to)) from None


def import_bullets(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote, Markdown or JSON.")],
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Read an exported playbook into this one, all of it or nothing. Starts a playbook where there is none.

    Bullets that are there already and say the same are passed over; one that is there and says something else is an
    error.

        acefraud playbook import book.md --playbook copy.db
    """
    try:
        text = source.read_text("utf-8")
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", file=str(source)) from None
    except UnicodeDecodeError as problem:
        raise InputError(f"not valid UTF-8 at byte {problem.start}", file=str(source)) from None
    read = from_json if text.lstrip().startswith("{") else from_markdown
    exported = read(text, file=str(source))
    with open_playbook(playbook_path(playbook)) as book:
        why = why or f"imported from {source.name}"
        added = book.run_step(lambda: _import(exported, book), who=author(who), why=why)
    there = len(exported.bullets) - added
    if json:
        print_json({"imported": added, "there_already": there})
    else:
        line(f"{added} bullets imported, {there} were there already")


def _import(exported: Exported, book: BulletPlaybook) -> int:
    """Record what is not there yet; returns how many bullets that were."""
    happenings = _to_import(exported, book)
    book.record(happenings)
    return sum(isinstance(what, BulletAdded) for what in happenings)


def _to_import(exported: Exported, book: BulletPlaybook) -> list[Happening]:
    happenings: list[Happening] = []
    for bullet in exported.bullets:
        there = book.get_bullet(bullet.id)
        if there is None:
            happenings.append(BulletAdded(bullet=bullet))
        elif there != bullet:
            raise InputError(f"bullet {bullet.id} is in this playbook already and differs; import into a new one")
    snapshot = book.snapshot()
    for node, frame in exported.calibrations.items():
        if snapshot.calibration(node) is None:
            happenings.append(Recalibrated(node=node, calibration=frame))
    if exported.mapping and not snapshot.mapping:
        happenings.append(Trained(node=DEFAULT_NODE, dataset="import", rows=0, frauds=0, mapping=exported.mapping))
    return happenings
