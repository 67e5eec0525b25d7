"""`acefraud backup`: a complete copy of a playbook."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli.console import print_result
from acefraud.cli.options import ForceOption, JsonOption, PlaybookOption
from acefraud.cli.workspace import copy_to_file, place_of
from acefraud.support.database_address import shown_place


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to put the copy.")],
    playbook: PlaybookOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Copy a playbook with everything in it but the API keys, while others go on using it.

    The copy is the playbook at one moment: bullets, all events and decisions, remembered cases and history. It is
    checked, and gets its name only when it is complete and on the disk. It is a playbook file itself, without free
    room inside, so this also makes a small copy of a file that has shrunk. The copy of a database is such a file, too.

        acefraud backup monday.db --playbook book.db
        acefraud backup monday.db --database postgresql://ana@db.example/fraud
    """
    place = place_of(playbook)
    size, shown = copy_to_file(playbook, file, force=force), shown_place(place)
    content = {"playbook": shown, "backup": str(file), "bytes": size}
    print_result(content, f"{shown} copied to {file}: {size:,} bytes", json=json)
