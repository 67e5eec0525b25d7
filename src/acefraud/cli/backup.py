"""`acefraud backup`: a complete copy of a playbook."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli.console import print_result
from acefraud.cli.options import ForceOption, JsonOption, PlaybookOption
from acefraud.cli.workspace import playbook_path
from acefraud.storage.backup import copy_playbook


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to put the copy.")],
    playbook: PlaybookOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Copy a playbook with everything in it, while others go on using it.

    The copy is the playbook at one moment: bullets, all events and decisions, remembered cases and history. It is
    checked, and gets its name only when it is complete and on the disk. It is a playbook file itself, without free
    room inside, so this also makes a small copy of a file that has shrunk.

        acefraud backup monday.db --playbook book.db
    """
    path = playbook_path(playbook)
    size = copy_playbook(path, file, force=force)
    content = {"playbook": str(path), "backup": str(file), "bytes": size}
    print_result(content, f"{path} copied to {file}: {size:,} bytes", json=json)
