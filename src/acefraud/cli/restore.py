"""`acefraud restore`: a playbook from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli.console import print_result
from acefraud.cli.options import ForceOption, JsonOption, PlaybookOption
from acefraud.cli.workspace import any_ledger, place_of
from acefraud.storage.copies import copy_playbook, read_from_file
from acefraud.support.database_address import shown_place


def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="What `acefraud backup` made.")],
    playbook: PlaybookOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
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
    content = {"backup": str(source), "playbook": shown, "bytes": size}
    print_result(content, f"{shown} restored from {source}: {size:,} bytes", json=json)
