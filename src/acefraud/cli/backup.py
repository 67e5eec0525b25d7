"""`acefraud backup` and `acefraud restore`: a complete copy of a playbook, and a playbook from one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from acefraud.cli.console import Said
from acefraud.cli.options import ForceOption, PlaybookOption
from acefraud.cli.workspace import any_ledger, copy_to_file, place_of
from acefraud.storage.copies import copy_playbook, read_from_file
from acefraud.support.database_address import shown_place


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
