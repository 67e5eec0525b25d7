"""`acefraud train`: bullets from labelled history."""

from __future__ import annotations

from typing import Annotated

import typer

from acefraud.cli.console import (
    JsonOption,
    MappingOption,
    PlaybookOption,
    StrictOption,
    learner_on,
    line,
    note,
    playbook_path,
    print_json,
    progress,
    tell_bad_rows,
)
from acefraud.datasets import SHIPPED, load_dataset
from acefraud.errors import InputError
from acefraud.storage import open_playbook


def train(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Labelled transactions: JSON, JSONL, CSV or Parquet.")],
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Learn bullets from a labelled history and add them to a playbook.

    The conditions are grown on the earlier three quarters of the rows and must hold up on the later quarter; each
    bullet shows what was measured of it. Nothing is written unless the whole run succeeds.

        acefraud train history.csv --playbook book.db
    """
    data = load_dataset(source, mapping=mapping, strict=strict)
    tell_bad_rows(data.bad_rows, data.unlabelled)
    if mapping is None and source not in SHIPPED:
        note("# Columns were taken so; save this, correct it and pass it with --mapping:")
        note(data.mapping.describe().rstrip())
    if len({case.is_fraud for case in data}) < 2:
        raise InputError("all rows have the same label; expected both fraud and honest ones", file=source)
    path = playbook_path(playbook)
    with open_playbook(path) as book, progress("learning") as done:
        learner = learner_on(book)
        added = learner.study(data, dataset=data.name, mapping=data.mapping.describe(), progress=done)
        standing = len(book.get_bullets_for_node(learner.options.node))
        kept = [b for b in book.get_bullets_for_node(learner.options.node) if b.id in set(added)]
    if json:
        print_json(
            {
                "playbook": str(path),
                "rows": len(data),
                "frauds": data.frauds,
                "bad_rows": len(data.bad_rows),
                "unlabelled": data.unlabelled,
                "bullets": len(kept),
            }
        )
        return
    line(
        f"{len(data):,} cases, {data.frauds:,} of them fraud: "
        f"{len(kept)} bullet{'' if len(kept) == 1 else 's'} in {path}"
    )
    for bullet in sorted(kept, key=lambda b: -abs(b.weight or 0))[:5]:
        line(f"  {bullet.id}  {bullet.content}")
    if not kept and standing:
        line(f"Nothing new: the playbook's {standing} bullets say what these cases teach.")
    elif not kept:
        line("Nothing could be shown with so few cases; decisions rest on general knowledge until more arrive.")
