"""The ways in: a dataset to learn from, transactions to decide, outcomes that arrived."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Generic, TextIO, TypeVar

import numpy as np

from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.timestamps import time_of
from acefraud.core.transaction import Transaction
from acefraud.core.transactions import Transactions
from acefraud.datasets.assembly import Assembly, assemble
from acefraud.datasets.dataset import Dataset
from acefraud.datasets.files import read_table
from acefraud.datasets.guess import guess_mapping
from acefraud.datasets.labels import plain_texts
from acefraud.datasets.mapping import SchemaMapping, load_mapping
from acefraud.datasets.table import BadRow, Table
from acefraud.datasets.world import WorldOptions, generate
from acefraud.errors import ConfigurationError, InputError
from acefraud.history import HistoryPlan

SHIPPED = ("complex_fraud_detection",)
"""Datasets that need no file."""

_TRAIN_PERIOD = 0.6
_COLUMNS_SHOWN = 20
_MANY = 20
_LABEL_PARTS = frozenset({"label", "known_at", "difficulty", "ignore"})
_AT_NAMES = ("at", "outcome_at", "outcome_time")

Rows = TypeVar("Rows", bound=Sequence[object])


@dataclass(frozen=True, slots=True)
class Loaded(Generic[Rows]):
    """What could be read, what could not, and how many rows had no label yet."""

    rows: Rows
    bad_rows: tuple[BadRow, ...] = ()
    unlabelled: int = 0
    mapping: SchemaMapping = field(default_factory=SchemaMapping)


@dataclass(frozen=True, slots=True)
class ReportedOutcome:
    """An outcome, with its transaction where the row told of it too."""

    outcome: Outcome
    row: int
    """Where it stands in the file."""
    transaction: Transaction | None = None


class ShippedDatasetWarning(UserWarning):
    """A path leads nowhere and names a shipped dataset, which was loaded instead."""


def load_dataset(
    source: str | Path,
    *,
    mapping: SchemaMapping | Path | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    seed: int = 0,
    options: WorldOptions | None = None,
) -> Dataset:
    """A shipped dataset by its name, or labelled transactions from a file.

    Where there is no such file, a path that ends in the name of a shipped dataset and ``.json`` stands for that one,
    with a `ShippedDatasetWarning`: so the line ``load_dataset("agents/complex_fraud_detection.json")`` works anywhere.
    The shipped one is generated from ``seed`` and ``options``, and comes parted by time. A file comes whole, as rows
    to learn from; `Dataset.split` parts it. With ``strict`` the first bad row raises, otherwise bad rows are
    collected and the rest is used.
    """
    path = Path(source)
    shipped = _shipped_name(source)
    if shipped is not None and not path.exists():
        if mapping is not None:
            raise ConfigurationError(f"the shipped dataset '{shipped}' takes no mapping")
        if str(source) != shipped:
            told = f"there is no file {source}: the shipped dataset '{shipped}' is used"
            warnings.warn(told, ShippedDatasetWarning, stacklevel=2)
        return _shipped(shipped, seed, options)
    if options is not None:
        raise ConfigurationError(f"options shape a shipped dataset ({', '.join(SHIPPED)}); {source} is a file")
    if not path.exists():
        raise InputError(f"there is no such file, and the shipped datasets are: {', '.join(SHIPPED)}", file=str(source))
    table = read_table(path)
    assembly = assemble(table, _complete_mapping(table, mapping, remembered))
    _require_label(assembly)
    assembly.spoil_empty_rows()
    rows = assembly.sound()
    labelled = assembly.labels[rows] >= 0
    loaded = _checked(assembly, assembly.cases(rows[labelled]), int(np.sum(~labelled)), strict=strict)
    waiting = rows[~labelled] if loaded.mapping.entities else rows[:0]
    return Dataset(
        name=path.stem,
        train=loaded.rows,
        mapping=loaded.mapping,
        bad_rows=loaded.bad_rows,
        unlabelled=loaded.unlabelled,
        waiting=assembly.transactions(waiting),
    )


def _shipped_name(source: str | Path) -> str | None:
    """The shipped dataset that a name, or a path to a JSON file of that name, stands for."""
    path = Path(source)
    name = path.stem if path.suffix == ".json" else str(source)
    return name if name in SHIPPED else None


def read_transactions(
    source: Path | TextIO,
    *,
    mapping: SchemaMapping | Path | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    name: str | None = None,
    format: str | None = None,
) -> Loaded[Transactions]:
    """Transactions to be decided, from a file or from a stream of JSON lines.

    A label, if there is one, is neither needed nor looked at, and never becomes a fact. Without a ``mapping``, columns
    that a ``remembered`` one speaks of are read as it says, and the others are guessed.
    """
    table = read_table(source, name=name, format=format)
    complete = _complete_mapping(table, mapping, remembered, optional=_LABEL_PARTS, need_label=False)
    assembly = assemble(_without(table, complete.label, complete.known_at), complete)
    assembly.spoil_empty_rows()
    return _checked(assembly, assembly.transactions(assembly.sound()), 0, strict=strict)


def read_outcomes(
    source: Path | TextIO,
    *,
    mapping: SchemaMapping | Path | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    name: str | None = None,
    format: str | None = None,
) -> Loaded[tuple[ReportedOutcome, ...]]:
    """Outcomes, one per row: ``transaction_id`` and a label, perhaps ``source``, ``id`` and ``at``.

    Columns beyond these are facts or text of the transaction, which then comes along.
    """
    table = read_table(source, name=name, format=format)
    complete = _complete_mapping(table, mapping, remembered, optional=_LABEL_PARTS - {"label"})
    listed = {*complete.known, *complete.numbers, *complete.flags, *complete.categories}
    at = next((one for one in _AT_NAMES if one in table.columns and one not in listed), None)
    if at is not None and not complete.known_at:
        complete = complete.model_copy(update={"known_at": at})
    named = {one for one in ("source", "id", "outcome_id") if one in table.columns and one not in listed}
    aside = frozenset(named - {complete.id})
    assembly = assemble(table, complete, unique_ids=False, aside=aside)
    _require_label(assembly)
    if complete.id not in table.columns and table.height:
        raise InputError(f"no column with a transaction_id; {_columns(table)}", file=table.name)
    rows, unlabelled = _outcomes(assembly, aside)
    return _checked(assembly, rows, unlabelled, strict=strict)


def _shipped(name: str, seed: int, options: WorldOptions | None) -> Dataset:
    cases = generate(options or WorldOptions(), seed)
    times = [case.transaction.time for case in cases if case.transaction.time is not None]
    cut = times[0] + _TRAIN_PERIOD * (times[-1] - times[0]) + timedelta(microseconds=1)
    at = sum(time < cut for time in times)
    mapping = SchemaMapping(label="answer", text="query", difficulty="difficulty")
    return Dataset(name=name, train=cases[:at], test=cases[at:], mapping=mapping)


def _complete_mapping(
    table: Table,
    mapping: SchemaMapping | Path | None,
    remembered: SchemaMapping | None = None,
    *,
    optional: frozenset[str] = frozenset(),
    need_label: bool = True,
) -> SchemaMapping:
    """The mapping that was given, checked against the file and completed by guesses."""
    place = str(mapping) if isinstance(mapping, Path) else "mapping"
    columns = list(table.columns)
    given = load_mapping(mapping) if isinstance(mapping, Path) else mapping
    if given is None and remembered is not None:
        return _as_remembered(table, remembered, need_label=need_label)
    given = given or SchemaMapping()
    if table.height and not (table.open_ended and optional):
        given.require_columns(columns, file=table.name, place=place, optional=optional)
    if given.history is None and remembered is not None:
        given = given.model_copy(update={"history": remembered.history})
    return guess_mapping(columns, table.columns, given=given, need_label=need_label)


def _as_remembered(table: Table, remembered: SchemaMapping, *, need_label: bool) -> SchemaMapping:
    """Columns that an earlier file had are read as they were then. New ones are guessed: they may leak the label."""
    columns = list(table.columns)
    known = remembered.only(columns)
    given = known.model_copy(update={"ignore": None, "history": remembered.history or HistoryPlan()})
    guessed = guess_mapping(columns, table.columns, given=given, need_label=need_label)
    named = {column for _, column in remembered.named_columns()}
    new = [column for column in guessed.ignore or () if column not in named]
    return guessed.model_copy(update={"ignore": (*(known.ignore or ()), *new), "history": remembered.history})


def _without(table: Table, *columns: str | None) -> Table:
    kept = {name: cells for name, cells in table.columns.items() if name not in columns}
    return Table(table.name, kept, table.rows, table.typed, table.bad, table.metadata, table.open_ended)


def _require_label(assembly: Assembly) -> None:
    """Refuse a file to learn from that has no label."""
    if assembly.mapping.label not in assembly.table.columns and assembly.table.height:
        raise InputError(
            f'no column with a label; {_columns(assembly.table)}; name it by `label = "..."` in a mapping (--mapping)',
            file=assembly.table.name,
        )


def _columns(table: Table) -> str:
    names = list(table.columns)
    more = f" and {len(names) - _COLUMNS_SHOWN} more" if len(names) > _COLUMNS_SHOWN else ""
    return f"the columns are: {', '.join(names[:_COLUMNS_SHOWN])}{more}"


def _outcomes(assembly: Assembly, aside: frozenset[str]) -> tuple[tuple[ReportedOutcome, ...], int]:
    """The outcomes of the rows with a label, and how many have none."""
    table = assembly.table
    extra = {name: plain_texts(table.columns[name]) for name in aside}
    sources = [text and text.lower() for text in extra.get("source", [None] * table.height)]
    known = {source.value for source in OutcomeSource}
    expected = f"expected one of {', '.join(OutcomeSource)}"
    wrong = [(row, f"{expected}, got {one[:60]!r}") for row, one in enumerate(sources) if one and one not in known]
    assembly.spoil("source", wrong)
    ids = extra.get("outcome_id") or extra.get("id") or [None] * table.height
    rows = assembly.sound()
    labelled = rows[assembly.labels[rows] >= 0]
    told = labelled[assembly.says_something()[labelled]]
    transactions = dict(zip(told.tolist(), assembly.transactions(told), strict=True))
    reported = []
    for row in labelled.tolist():
        outcome = Outcome(
            transaction_id=assembly.ids[row],
            is_fraud=bool(assembly.labels[row]),
            source=OutcomeSource(sources[row] or OutcomeSource.LABEL),
            id=ids[row] or "",
            at=time_of(assembly.known_at[row]),
        )
        reported.append(ReportedOutcome(outcome, table.rows[row], transactions.get(row)))
    return tuple(reported), len(rows) - len(labelled)


def _checked(assembly: Assembly, rows: Rows, unlabelled: int, *, strict: bool) -> Loaded[Rows]:
    """What could be read, unless that is nothing, or bad rows were to stop it."""
    bad = assembly.bad_rows()
    if strict and bad:
        raise bad[0].error
    if not rows:
        raise InputError(_nothing(bad, unlabelled), file=assembly.table.name)
    if len(bad) >= _MANY and len(bad) > len(rows) + unlabelled:  # not slips, but a file that is read in the wrong way
        first = InputError(bad[0].message, row=bad[0].row, field=bad[0].field)
        raise InputError(f"{len(bad):,} of its rows cannot be read; the first is {first}", file=assembly.table.name)
    return Loaded(rows, bad, unlabelled, assembly.mapping)


def _nothing(bad: Sequence[BadRow], unlabelled: int) -> str:
    if not bad:
        return f"none of the {unlabelled:,} rows has a label" if unlabelled else "there are no rows"
    first = InputError(bad[0].message, row=bad[0].row, field=bad[0].field)
    without = f" and {unlabelled:,} without a label" if unlabelled else ""
    return f"no usable rows: {len(bad):,} bad{without}; the first bad one is {first}"
