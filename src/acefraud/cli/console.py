"""What all commands share: options, progress, and telling of rows that could not be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from acefraud.datasets import BadRow, SchemaMapping, parse_mapping
from acefraud.embedded.embedder import DEFAULT_EMBEDDER, embedder_named
from acefraud.errors import InputError, StoreError
from acefraud.learning.casting import Cast, cast
from acefraud.learning.learner import Learner
from acefraud.learning.proposing import Proposed
from acefraud.llm.client import ModelClient
from acefraud.selection.hybrid import HybridSelector
from acefraud.settings import ModelSettings, Settings
from acefraud.storage import BulletPlaybook, open_playbook
from acefraud.storage.playbook import THE_ENGINE

BAD_ROWS_SHOWN = 5
REFUSALS_SHOWN = 5
STOPPED_SHORT = 3
"""Exit code where a budget was used up: what was learnt until then is kept."""

PlaybookOption = Annotated[
    Path | None,
    typer.Option("--playbook", help="The playbook file. Default: $ACEFRAUD_PLAYBOOK, else playbook.db."),
]
MappingOption = Annotated[
    Path | None,
    typer.Option("--mapping", help="TOML file that says which column is the id, time, label, amount and text."),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at the first row that cannot be read, instead of counting it.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
WhoOption = Annotated[str | None, typer.Option("--who", help="Who is doing this. Default: $ACEFRAUD_WHO or the user.")]
WhyOption = Annotated[str, typer.Option("--why", help="The reason, kept in the ledger.")]

# What is printed are other people's words: a bracket in them is a bracket, and ":100:" is no picture.
out = Console(markup=False, emoji=False)
err = Console(stderr=True, markup=False, emoji=False)


def settings() -> Settings:
    """What the environment says."""
    return Settings.from_environment()


def author(given: str | None) -> str:
    """Who does something by hand. The engine's own name is not to be had."""
    who = given or settings().who
    if who == THE_ENGINE:
        raise InputError(f"'{THE_ENGINE}' is how the playbook calls itself; who are you?")
    return who


def playbook_path(given: Path | None) -> Path:
    """The playbook a command was given, or the default one."""
    return given or settings().playbook


def existing_playbook(given: Path | None, *, read_only: bool = False) -> BulletPlaybook:
    """The playbook at that place. A missing one is an error: a mistyped name must not start an empty playbook."""
    path = playbook_path(given)
    if not path.exists():
        raise StoreError(
            f"there is no playbook at {path}; `acefraud train FILE --playbook {path}` makes one from labelled history, "
            f"and `acefraud playbook add` starts one by hand"
        )
    return open_playbook(path, create=False, read_only=read_only)


def trained_mapping(playbook: BulletPlaybook) -> SchemaMapping | None:
    """How the file that the playbook was trained on was read."""
    written = playbook.snapshot().mapping
    return parse_mapping(written, place="the mapping this playbook was trained with") if written else None


def cast_for(chosen: ModelSettings, *mappings: SchemaMapping | None) -> Cast:
    """Who plays which role, and which facts no model may see: those that any of the mappings names."""
    sensitive = tuple(name for one in mappings if one for name in one.sensitive_facts)
    return cast(chosen, sensitive=sensitive, vectors=chosen.vectors)


def usage_json(client: ModelClient | None) -> dict[str, Any]:
    """What was asked of models, for scripts; nothing where none was."""
    return {} if client is None else {"usage": client.usage.as_json()}


def tell_usage(client: ModelClient | None) -> None:
    """Say on standard error what was asked of models, and what it cost."""
    if client is None:
        return
    for role, used in client.usage.by_role.items():
        price = f"${used.cost:.4f}" + (f" and {used.unpriced:,} calls without a known price" if used.unpriced else "")
        note(
            f"{role}: {used.calls:,} calls ({used.failed:,} failed), {used.cached:,} answered from the cache, "
            f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out, {price}"
        )


def proposed_json(proposed: Proposed | None) -> dict[str, Any]:
    """What a model proposed and what became of it, for scripts; nothing where none was asked."""
    if proposed is None:
        return {}
    refused = [{"bullet": one.proposal.content, "reason": one.reason} for one in proposed.refused]
    return {"proposals": {**proposed.counts, "refused_because": refused, "stopped": proposed.stopped}}


def tell_proposed(proposed: Proposed | None) -> None:
    """Say on standard error what a model proposed and what became of it."""
    if proposed is None:
        return
    counts = proposed.counts
    note(
        f"proposals: {counts['asked']:,} asked for, {counts['measured']:,} measured and borne out, "
        f"{counts['unverified']:,} not to be measured yet, {counts['refused']:,} refused, {counts['failed']:,} failed"
    )
    for ruling in proposed.refused[:REFUSALS_SHOWN]:
        note(f"refused: {ruling.proposal.content} ({ruling.reason})")
    if proposed.stopped:
        note(f"no more was asked: {proposed.stopped}. What was learnt until then is kept")


def stop_short(learner: Learner, unfitted: str = "") -> None:
    """Where a budget ended the asking, what was learnt is kept and the exit code says that there is more."""
    if unfitted or (learner.proposed is not None and learner.proposed.stopped):
        raise typer.Exit(STOPPED_SHORT)


def learner_on(playbook: BulletPlaybook) -> Learner:
    """A learner on the embedded engine, with the embedder that the environment names."""
    given = settings()
    embedder = embedder_named(given.embedder or DEFAULT_EMBEDDER, given.models.vectors)
    return Learner(playbook, selector=HybridSelector(embedding_model=embedder))


def print_json(content: Any) -> None:
    """One JSON value on one line of standard output."""
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def line(text: str, style: str | None = None) -> None:
    """One line of plain text on standard output, never wrapped or marked up."""
    out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """One line on standard error."""
    err.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def tell_bad_rows(bad_rows: Sequence[BadRow], unlabelled: int = 0) -> None:
    """Say on standard error which rows were left out and why."""
    for bad in bad_rows[:BAD_ROWS_SHOWN]:
        note(f"left out: {bad}")
    if len(bad_rows) > BAD_ROWS_SHOWN:
        note(f"... {len(bad_rows):,} rows in all could not be read")
    if unlabelled:
        note(f"{unlabelled:,} rows have no label yet and were passed over")


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on standard error, where that is a terminal. It is called with the share that is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)
