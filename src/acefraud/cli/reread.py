"""`acefraud reread`: remembered texts, read by the reader of this version."""

from __future__ import annotations

from typing import Annotated

import typer

from acefraud.cli.console import JsonOption, PlaybookOption, existing_playbook, learner_on, line, print_json


def reread(
    playbook: PlaybookOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also the texts that this version has read already.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Read the texts of remembered cases again, with the reader of this version.

    A case is remembered with the facts that were read from it when it was decided or heard, and with the version of the
    reader; a newer version of acefraud never changes them by itself. This command does, and then reviews the playbook
    on the new facts.

        acefraud reread --playbook book.db
    """
    with existing_playbook(playbook) as book:
        learner = learner_on(book)
        done = learner.reread(everything=everything)
    if json:
        print_json({"read": done.cases, "changed": done.changed, "reader": done.reader})
        return
    line(f"{done.cases:,} texts read again by reader {done.reader}: the facts of {done.changed:,} changed")
