"""Rows of a table as labelled cases, transactions to decide, or outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

import numpy as np

from acefraud.core.arguments import nearest
from acefraud.core.outcome import Outcome
from acefraud.core.timestamps import plausible, time_of
from acefraud.core.transaction import Transaction
from acefraud.core.transactions import Transactions
from acefraud.datasets.assembly import Assembly, assemble
from acefraud.datasets.columns import plain_texts
from acefraud.datasets.dataset import Dataset
from acefraud.datasets.files import read_table
from acefraud.datasets.frames import FRAME, frame_table
from acefraud.datasets.guess import NO_IDS, guess_mapping
from acefraud.datasets.guess_facts import guess_facts
from acefraud.datasets.guess_remarks import guess_remarks
from acefraud.datasets.lists import with_lists_as_facts
from acefraud.datasets.mapping import SchemaMapping, load_mapping, with_given
from acefraud.datasets.outcome_columns import OutcomeColumns
from acefraud.datasets.reading_report import ReadingReport
from acefraud.datasets.table import BadRow, Purpose, Table
from acefraud.datasets.whole_cells import with_whole_cells
from acefraud.datasets.written_numbers import with_plain_numbers
from acefraud.display.frames import is_frame
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import InputError, point_out
from acefraud.facts.history.plan import HistoryPlan

_COLUMNS_SHOWN = 20
_MANY = 20
_REMARKS = 5
"""Odd things about outcomes that are told of a file."""
_LABEL_KEYS = frozenset({"label", "known_at", "difficulty", "ignore"})
_OPTIONAL = {"train": frozenset[str](), "decide": _LABEL_KEYS, "learn": _LABEL_KEYS - {"label"}}
"""The keys of a mapping whose columns a table may lack."""

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
    report: ReadingReport = field(default_factory=ReadingReport)
    """How the file was read: everything that was guessed, left out or read in a special way."""


@dataclass(frozen=True, slots=True, repr=False)
class ReportedOutcome(ShortRepr):
    """An outcome, with its transaction if the row describes it too."""

    outcome: Outcome
    row: int
    """The number of the row in the file."""
    transaction: Transaction | None = None
    remarks: tuple[str, ...] = ()
    """What a person should know about how it was read."""


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
    _require(assembly, "label", "a label")
    assembly.mark_empty_rows()
    rows = assembly.good_rows()
    labelled = assembly.labels[rows] >= 0
    if late := int((plausible(assembly.times) != assembly.times).sum()):
        assembly.remarks.append(
            f"{late:,} of {len(rows):,} times are far later than all others: they count in no history"
        )
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
        report=loaded.report,
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
    table, complete = prepare(table, mapping, remembered, "decide")
    hidden = (complete.label, complete.known_at)
    kept = {column: cells for column, cells in table.columns.items() if column not in hidden}
    make_ids = ids or bool(complete.entities)
    assembly = assemble(replace(table, columns=kept), complete, unique_ids=ids, make_ids=make_ids)
    assembly.mark_empty_rows()
    loaded = _checked(assembly, assembly.transactions(assembly.good_rows()), 0, strict=strict)
    if not ids or mapping is not None or remembered is None:
        return loaded
    told = check_id(remembered, complete, table.columns, strict=strict and not table.is_frame)
    return replace(loaded, report=ReadingReport((*loaded.report, *told)))


def check_id(remembered: SchemaMapping, mapping: SchemaMapping, columns: Iterable[str], *, strict: bool) -> list[str]:
    """A warning of rows without an id, if those that the playbook was trained with had one; an error if ``strict``."""
    if not remembered.id or mapping.id:
        return []
    told = f"there is no `{remembered.id}`: {NO_IDS}{nearest(remembered.id, columns)}"
    if strict:
        raise InputError(told, field=remembered.id)
    point_out(told)
    return [told]


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
    """Outcomes, one per row: ``transaction_id`` and a label; optionally ``source``, ``id``, ``at``, author and note.

    Columns that the ``remembered`` mapping or the given one knows as facts or text describe the transaction, which is
    then returned too. The others are details of the outcome. If neither names any fact, all of them describe it.
    """
    whole, history = _table_of(source, name), with_given(_loaded(mapping), remembered)
    own = OutcomeColumns.of(history, list(whole.columns))
    kept = {column: cells for column, cells in whole.columns.items() if column not in own.all}
    table, complete = prepare(replace(whole, columns=kept), mapping, remembered, "learn")
    own, complete = own.completed(history, complete, list(table.columns))
    assembly = assemble(table, complete, unique_ids=False, skip=own.all, like=history.day_order if history else "")
    _require(assembly, "label", "a label")
    _require(assembly, "id", "a transaction_id")
    texts = {column: plain_texts({**table.columns, **whole.columns}[column]) for column in own.all}
    rows, unlabelled = _outcomes(assembly, own, texts)
    return _checked(assembly, rows, unlabelled, strict=strict)


def _outcomes(
    assembly: Assembly, own: OutcomeColumns, texts: dict[str, list[str | None]]
) -> tuple[tuple[ReportedOutcome, ...], int]:
    """The outcomes of the rows with a label, and how many rows have none."""
    rows = assembly.good_rows()
    labelled = rows[assembly.labels[rows] >= 0]
    described = labelled[assembly.has_content()[labelled]]
    transactions = dict(zip(described.tolist(), assembly.transactions(described), strict=True))
    reported, remarks = [], dict[str, int]()
    for row in labelled.tolist():
        outcome, odd = own.outcome(
            assembly.ids[row],
            is_fraud=bool(assembly.labels[row]),
            at=time_of(assembly.known_at[row]),
            texts={column: cells[row] for column, cells in texts.items()},
        )
        for remark in odd:
            remarks.setdefault(remark, assembly.table.rows[row])
        reported.append(ReportedOutcome(outcome, assembly.table.rows[row], transactions.get(row), tuple(odd)))
    told = [f"row {row}, {remark}" for remark, row in remarks.items()]
    more = [f"... {len(told):,} such remarks in all"] if len(told) > _REMARKS else []
    assembly.remarks += told[:_REMARKS] + more
    return tuple(reported), len(rows) - len(labelled)


def _loaded(mapping: SchemaMapping | Path | None) -> SchemaMapping | None:
    return load_mapping(mapping) if isinstance(mapping, Path) else mapping


def prepare(
    table: Table,
    mapping: SchemaMapping | Path | None,
    remembered: SchemaMapping | None,
    purpose: Purpose = "train",
) -> tuple[Table, SchemaMapping]:
    """The table with numbers and lists in plain form, and the mapping, checked against it and completed by guesses.

    A mapping that is given for outcomes adds to the ``remembered`` one; any other takes its place.
    """
    given = asked = _loaded(mapping)
    if purpose == "learn" and asked and remembered:
        given, remembered = None, with_given(asked, remembered)
    earlier = given or remembered or SchemaMapping()
    table = with_lists_as_facts(table, earlier)
    table = with_whole_cells(replace(table, as_written=table.columns), earlier)
    table, written = with_plain_numbers(table, earlier)
    if asked and table.height and not (table.open_ended and purpose != "train"):
        place = str(mapping) if isinstance(mapping, Path) else "mapping"
        asked.require_columns(list(table.columns), file=table.name, place=place, optional=_OPTIONAL[purpose])
    if given is None and remembered is not None:
        complete = _from_remembered(table, remembered, purpose)
    else:
        complete = _from_given(table, given or SchemaMapping(), remembered, purpose)
    if remembered is None:
        table = with_whole_cells(table, complete, done=earlier)
        table = replace(table, remarks=(*table.remarks, *guess_remarks(complete, earlier, table, purpose)))
    return table, complete.model_copy(update={"decimal": written.decimal, "decimal_commas": written.decimal_commas})


def _from_given(
    table: Table, given: SchemaMapping, remembered: SchemaMapping | None, purpose: Purpose
) -> SchemaMapping:
    columns = list(table.columns)
    if remembered is None:
        apart = table.labels_apart
        guessed = guess_mapping(columns, table.columns, given=given, purpose=purpose, labels_apart=apart)
        return guess_facts(with_whole_cells(table, guessed, done=given).columns, guessed, purpose)
    # The playbook's facts have to stay what they were.
    kept = {key: getattr(remembered, key) for key in ("history", "time_facts") if getattr(given, key) is None}
    return guess_mapping(columns, table.columns, given=given.model_copy(update=kept), purpose=purpose)


def _from_remembered(table: Table, remembered: SchemaMapping, purpose: Purpose) -> SchemaMapping:
    """Columns of an earlier file are read as they were then. New ones are guessed: they may leak the label."""
    columns = list(table.columns)
    known = remembered.only(columns)
    given = known.model_copy(update={"ignore": None, "history": remembered.history or HistoryPlan()})
    guessed = guess_mapping(columns, table.columns, given=given, purpose=purpose)
    named = {column for _, column in remembered.named_columns()}
    new = [column for column in guessed.ignore or () if column not in named]
    return guessed.model_copy(update={"ignore": (*(known.ignore or ()), *new), "history": remembered.history})


def _require(assembly: Assembly, role: str, what: str) -> None:
    table = assembly.table
    if getattr(assembly.mapping, role) not in table.columns and table.height:
        how = f"SchemaMapping({role}=...)" if table.is_frame else f'`{role} = "..."` in a mapping (--mapping)'
        raise InputError(f"no column with {what}; {_columns(table)}; name it by {how}", file=table.name)


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
    return Loaded(rows, bad, unlabelled, assembly.mapping, assembly.unreadable, assembly.report())
