"""`acefraud reread`: remembered texts, read by the reader of this version."""

from __future__ import annotations

from typing import Annotated

import typer

from acefraud.cli.console import print_result
from acefraud.cli.options import JsonOption, PlaybookOption
from acefraud.cli.workspace import embedded_learner, existing_playbook


def reread(
    playbook: PlaybookOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include texts that this version has already read.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Read the texts of remembered cases again, with the reader of this version.

    A case is remembered with the facts that were read from its text at the time, and with the version of the reader.
    A newer version of acefraud never changes them by itself. This command does, and then reviews the playbook on the
    new facts.

        acefraud reread --playbook book.db
    """
    with existing_playbook(playbook) as book:
        done = embedded_learner(book).reread(everything=everything)
    print_result(
        {"read": done.cases, "changed": done.changed, "reader": done.reader},
        f"{done.cases:,} texts read again by reader {done.reader}: the facts of {done.changed:,} changed",
        json=json,
    )
