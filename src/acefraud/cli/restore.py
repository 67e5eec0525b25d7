"""`acefraud restore`: a playbook from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli.console import print_result
from acefraud.cli.options import ForceOption, JsonOption, PlaybookOption
from acefraud.cli.workspace import playbook_path
from acefraud.storage.backup import copy_playbook


def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="What `acefraud backup` made.")],
    playbook: PlaybookOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Make a playbook from a backup, with everything in it.

    The backup is checked first, and the playbook gets its name only when it is complete and on the disk. With --force
    it replaces a playbook that nobody uses.

        acefraud restore monday.db --playbook book.db
    """
    path = playbook_path(playbook)
    size = copy_playbook(source, path, force=force)
    content = {"backup": str(source), "playbook": str(path), "bytes": size}
    print_result(content, f"{path} restored from {source}: {size:,} bytes", json=json)
