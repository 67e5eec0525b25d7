"""Rows of a table as labelled cases, transactions to decide, or outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

import numpy as np

from acefraud.core.outcome import Outcome, OutcomeSource
from acefraud.core.timestamps import time_of
from acefraud.core.transaction import Transaction
from acefraud.core.transactions import Transactions
from acefraud.datasets.assembly import Assembly, assemble
from acefraud.datasets.columns import plain_texts
from acefraud.datasets.dataset import Dataset
from acefraud.datasets.decimal_commas import find_decimal_sign, with_decimal_points
from acefraud.datasets.files import read_table
from acefraud.datasets.frames import FRAME, frame_table
from acefraud.datasets.guess import guess_mapping
from acefraud.datasets.guess_facts import guess_facts
from acefraud.datasets.lists import with_lists_as_facts
from acefraud.datasets.mapping import SchemaMapping, load_mapping
from acefraud.datasets.table import BadRow, Table
from acefraud.display.frames import is_frame
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import InputError
from acefraud.facts.history.plan import HistoryPlan

_COLUMNS_SHOWN = 20
_MANY = 20
LABEL_KEYS = frozenset({"label", "known_at", "difficulty", "ignore"})
_AT_NAMES = ("at", "outcome_at", "outcome_time")

Rows = TypeVar("Rows", bound=Sequence[object])


@dataclass(frozen=True, slots=True, repr=False)
class Loaded(ShortRepr, Generic[Rows]):
    """The rows that could be read, those that could not, and how many had no label yet."""

    rows: Rows
    bad_rows: tuple[BadRow, ...] = ()
    unlabelled: int = 0
    mapping: SchemaMapping = field(default_factory=SchemaMapping)
    unreadable: int = 0
    """Rows with a word such as ``NA`` in place of a number or flag, which is read as unknown."""
    remarks: tuple[str, ...] = ()
    """What a person should know about how the file was read."""


@dataclass(frozen=True, slots=True, repr=False)
class ReportedOutcome(ShortRepr):
    """An outcome, with its transaction if the row describes it too."""

    outcome: Outcome
    row: int
    """The number of the row in the file."""
    transaction: Transaction | None = None


def read_dataset(
    table: Table,
    name: str,
    *,
    mapping: SchemaMapping | Path | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    ids: bool = True,
) -> Dataset:
    """The labelled rows of a table, all of them to learn from. Without ``ids``, rows that bring none are numbered."""
    table, complete = prepare(table, mapping, remembered)
    assembly = assemble(table, complete, unique_ids=ids)
    _require_label(assembly)
    assembly.mark_empty_rows()
    rows = assembly.good_rows()
    labelled = assembly.labels[rows] >= 0
    loaded = _checked(assembly, assembly.cases(rows[labelled]), int(np.sum(~labelled)), strict=strict)
    waiting = rows[~labelled] if loaded.mapping.entities else rows[:0]
    return Dataset(
        name=name,
        train=loaded.rows,
        mapping=loaded.mapping,
        bad_rows=loaded.bad_rows,
        unlabelled=loaded.unlabelled,
        waiting=assembly.transactions(waiting),
        unreadable=loaded.unreadable,
        remarks=loaded.remarks,
    )


def read_transactions(
    source: Path | TextIO | Any,
    *,
    mapping: SchemaMapping | Path | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    name: str | None = None,
    ids: bool = True,
) -> Loaded[Transactions]:
    """Transactions to decide, from a file, a stream of JSON lines or a data frame.

    A label is neither needed nor read, and never becomes a fact. Without a ``mapping``, the columns of a ``remembered``
    one are read as it says, and the others are guessed. Without ``ids``, rows that bring none stay without: enough to
    score them, and faster.
    """
    table = _table_of(source, name)
    table, complete = prepare(table, mapping, remembered, optional=LABEL_KEYS, need_label=False)
    hidden = (complete.label, complete.known_at)
    kept = {column: cells for column, cells in table.columns.items() if column not in hidden}
    make_ids = ids or bool(complete.entities)
    assembly = assemble(replace(table, columns=kept), complete, unique_ids=ids, make_ids=make_ids)
    assembly.mark_empty_rows()
    return _checked(assembly, assembly.transactions(assembly.good_rows()), 0, strict=strict)


def _table_of(source: Path | TextIO | Any, name: str | None) -> Table:
    return frame_table(source, name or FRAME) if is_frame(source) else read_table(source, name=name)


def read_outcomes(
    source: Path | TextIO | Any,
    *,
    mapping: SchemaMapping | Path | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    name: str | None = None,
) -> Loaded[tuple[ReportedOutcome, ...]]:
    """Outcomes, one per row: ``transaction_id`` and a label, optionally ``source``, ``id`` and ``at``.

    Any other columns are facts or text of the transaction, which is then returned too.
    """
    table = _table_of(source, name)
    table, complete = prepare(table, mapping, remembered, optional=LABEL_KEYS - {"label"})
    complete, own_columns = with_outcome_columns(complete, list(table.columns))
    assembly = assemble(table, complete, unique_ids=False, skip=own_columns)
    _require_label(assembly)
    if complete.id not in table.columns and table.height:
        raise InputError(f"no column with a transaction_id; {_columns(table)}", file=table.name)
    rows, unlabelled = _outcomes(assembly, {one: plain_texts(table.columns[one]) for one in own_columns})
    return _checked(assembly, rows, unlabelled, strict=strict)


def with_outcome_columns(mapping: SchemaMapping, columns: Sequence[str]) -> tuple[SchemaMapping, set[str]]:
    """The mapping with the time of outcomes, and the columns that are about the outcome, not the transaction."""
    listed = {*mapping.known, *mapping.numbers, *mapping.flags, *mapping.categories}
    free = [column for column in columns if column not in listed]
    at = next((one for one in _AT_NAMES if one in free), None)
    if at is not None and not mapping.known_at:
        mapping = mapping.model_copy(update={"known_at": at})
    return mapping, {"source", "id", "outcome_id"}.intersection(free) - {mapping.id}


def _outcomes(assembly: Assembly, own_columns: dict[str, list[str | None]]) -> tuple[tuple[ReportedOutcome, ...], int]:
    """The outcomes of the rows with a label, and how many rows have none."""
    empty: list[str | None] = [None] * assembly.table.height
    sources = [text and text.lower() for text in own_columns.get("source", empty)]
    wrong = [(row, problem) for row, one in enumerate(sources) if one and (problem := wrong_source(one))]
    assembly.mark_bad("source", wrong)
    ids = own_columns.get("outcome_id") or own_columns.get("id") or empty
    rows = assembly.good_rows()
    labelled = rows[assembly.labels[rows] >= 0]
    described = labelled[assembly.has_content()[labelled]]
    transactions = dict(zip(described.tolist(), assembly.transactions(described), strict=True))
    reported = []
    for row in labelled.tolist():
        outcome = Outcome(
            transaction_id=assembly.ids[row],
            is_fraud=bool(assembly.labels[row]),
            source=OutcomeSource(sources[row] or OutcomeSource.LABEL),
            id=ids[row] or "",
            at=time_of(assembly.known_at[row]),
        )
        reported.append(ReportedOutcome(outcome, assembly.table.rows[row], transactions.get(row)))
    return tuple(reported), len(rows) - len(labelled)


def wrong_source(source: str) -> str | None:
    """What is wrong with the source of an outcome; None if it is one."""
    if source in {known.value for known in OutcomeSource}:
        return None
    return f"expected one of {', '.join(OutcomeSource)}, got {source[:60]!r}"


def prepare(
    table: Table,
    mapping: SchemaMapping | Path | None,
    remembered: SchemaMapping | None,
    *,
    optional: frozenset[str] = frozenset(),
    need_label: bool = True,
) -> tuple[Table, SchemaMapping]:
    """The table with numbers and lists in plain form, and the mapping, checked against it and completed by guesses."""
    place = str(mapping) if isinstance(mapping, Path) else "mapping"
    given = load_mapping(mapping) if isinstance(mapping, Path) else mapping
    earlier = given or remembered or SchemaMapping()
    table = with_lists_as_facts(table, earlier)
    decimal = earlier.decimal or find_decimal_sign(table)
    if decimal == ",":
        table = with_decimal_points(table, earlier)
    if given is None and remembered is not None:
        complete = _from_remembered(table, remembered, need_label=need_label)
    else:
        given = given or SchemaMapping()
        complete = _from_given(table, given, remembered, place=place, optional=optional, need_label=need_label)
    return table, complete.model_copy(update={"decimal": decimal})


def _from_given(
    table: Table,
    given: SchemaMapping,
    remembered: SchemaMapping | None,
    *,
    place: str,
    optional: frozenset[str],
    need_label: bool,
) -> SchemaMapping:
    columns = list(table.columns)
    if table.height and not (table.open_ended and optional):
        given.require_columns(columns, file=table.name, place=place, optional=optional)
    if remembered is None:
        guessed = guess_mapping(columns, table.columns, given=given, need_label=need_label)
        return guess_facts(table.columns, guessed)
    # The playbook's facts have to stay what they were.
    kept = {key: getattr(remembered, key) for key in ("history", "time_facts") if getattr(given, key) is None}
    return guess_mapping(columns, table.columns, given=given.model_copy(update=kept), need_label=need_label)


def _from_remembered(table: Table, remembered: SchemaMapping, *, need_label: bool) -> SchemaMapping:
    """Columns of an earlier file are read as they were then. New ones are guessed: they may leak the label."""
    columns = list(table.columns)
    known = remembered.only(columns)
    given = known.model_copy(update={"ignore": None, "history": remembered.history or HistoryPlan()})
    guessed = guess_mapping(columns, table.columns, given=given, need_label=need_label)
    named = {column for _, column in remembered.named_columns()}
    new = [column for column in guessed.ignore or () if column not in named]
    return guessed.model_copy(update={"ignore": (*(known.ignore or ()), *new), "history": remembered.history})


def _require_label(assembly: Assembly) -> None:
    if assembly.mapping.label not in assembly.table.columns and assembly.table.height:
        how = "SchemaMapping(label=...)" if assembly.table.is_frame else '`label = "..."` in a mapping (--mapping)'
        raise InputError(
            f"no column with a label; {_columns(assembly.table)}; name it by {how}",
            file=assembly.table.name,
        )


def _columns(table: Table) -> str:
    names = list(table.columns)
    more = f" and {len(names) - _COLUMNS_SHOWN} more" if len(names) > _COLUMNS_SHOWN else ""
    return f"the columns are: {', '.join(names[:_COLUMNS_SHOWN])}{more}"


def _checked(assembly: Assembly, rows: Rows, unlabelled: int, *, strict: bool) -> Loaded[Rows]:
    """The result, unless there are no rows, too many bad ones, or any bad one if ``strict``."""
    bad = assembly.bad_rows()
    if strict and bad:
        raise bad[0].error
    file = assembly.table.name
    first = InputError(bad[0].message, row=bad[0].row, field=bad[0].field) if bad else None
    if not rows and not bad:
        raise InputError(
            f"none of the {unlabelled:,} rows has a label" if unlabelled else "there are no rows", file=file
        )
    if not rows:
        without = f" and {unlabelled:,} without a label" if unlabelled else ""
        raise InputError(f"no usable rows: {len(bad):,} bad{without}; the first bad one is {first}", file=file)
    if len(bad) >= _MANY and len(bad) > len(rows) + unlabelled:  # the file is read in the wrong way
        raise InputError(f"{len(bad):,} of its rows cannot be read; the first is {first}", file=file)
    return Loaded(rows, bad, unlabelled, assembly.mapping, assembly.unreadable, assembly.all_remarks())
