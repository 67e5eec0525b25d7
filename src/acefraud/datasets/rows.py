"""Rows of a table as labelled cases, transactions to decide, or outcomes, with remarks on how they were read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

import numpy as np
import polars as pl

from acefraud.core.transactions import Transactions
from acefraud.datasets import guess
from acefraud.datasets.assembly import Assembly, assemble
from acefraud.datasets.cells import suits
from acefraud.datasets.columns import plain_text, thinned
from acefraud.datasets.contents import LEAK
from acefraud.datasets.dataset import Dataset
from acefraud.datasets.files import FRAME, frame_table, read_table
from acefraud.datasets.guess import prepare
from acefraud.datasets.mapping import SchemaMapping, with_given
from acefraud.datasets.records import OutcomeColumns, ReportedOutcome, check_id
from acefraud.datasets.table import BadRow, Column, Purpose, ReadingReport, Remark, Table, Weight
from acefraud.display.frames import is_frame
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import InputError
from acefraud.support.timestamps import plausible, time_of

_COLUMNS_SHOWN = 20
_MANY = 20
_MOST_REMARKS = 5
"""Odd things about outcomes that are told of a file."""
Rows = TypeVar("Rows", bound=Sequence[object])
_COSTLY = (LEAK, guess.ANOTHER_LABEL, guess.ANOTHER_TIME, guess.SENTENCES)
_ROLE_WORDS = {
    role: re.split(r"[;:,.]", field.description or "")[0] for role, field in SchemaMapping.model_fields.items()
}


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


def read_dataset(
    table: Table,
    name: str,
    *,
    mapping: SchemaMapping | Path | None = None,
    remembered: SchemaMapping | None = None,
    strict: bool = False,
    ids: bool = True,
    may_be_empty: bool = False,
) -> Dataset:
    """The labelled rows of a table, all of them to learn from. Without ``ids``, those in a column may repeat.

    Raises InputError if there are none, unless the table ``may_be_empty``.
    """
    table, complete = _prepared(table, mapping, remembered, "train")
    assembly = assemble(table, complete, unique_ids=ids)
    _require(assembly, "label", "a label")
    assembly.mark_empty_rows()
    rows = assembly.good_rows()
    assembly.name_rows(rows)
    labelled = assembly.labels[rows] >= 0
    if late := int((plausible(assembly.times) != assembly.times).sum()):
        told = f"{late:,} of {len(rows):,} times are far later than all others: they count in no history"
        assembly.remarks.append(told)
    cases, unlabelled = assembly.cases(rows[labelled]), int(np.sum(~labelled))
    loaded = _checked(assembly, cases, unlabelled, strict=strict, may_be_empty=may_be_empty)
    waiting = rows[~labelled] if loaded.mapping.entities else rows[:0]
    shared = {key: getattr(loaded, key) for key in ("bad_rows", "unlabelled", "mapping", "unreadable", "report")}
    return Dataset(name, loaded.rows, waiting=assembly.transactions(waiting), **shared)


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
    table, complete = _prepared(table_of(source, name), mapping, remembered, "decide")
    hidden = (complete.label, complete.known_at)
    kept = {column: cells for column, cells in table.columns.items() if column not in hidden}
    assembly = assemble(replace(table, columns=kept), complete, unique_ids=ids)
    assembly.mark_empty_rows()
    rows = assembly.good_rows()
    if ids or complete.entities:  # a history tells rows apart by their ids
        assembly.name_rows(rows)
    loaded = _checked(assembly, assembly.transactions(rows), 0, strict=strict)
    if not ids or mapping is not None or remembered is None:
        return loaded
    told = check_id(remembered, complete, table.columns, strict=strict and not table.is_frame)
    return replace(loaded, report=ReadingReport((*loaded.report, *told)))


def _loaded(mapping: SchemaMapping | Path | None) -> SchemaMapping | None:
    return SchemaMapping.load(mapping) if isinstance(mapping, Path) else mapping


def _prepared(
    table: Table, mapping: SchemaMapping | Path | None, remembered: SchemaMapping | None, purpose: Purpose
) -> tuple[Table, SchemaMapping]:
    """What `prepare` makes of a table, with remarks on the guesses."""
    given, place = _loaded(mapping), str(mapping) if isinstance(mapping, Path) else "mapping"
    table, complete = prepare(table, given, remembered, purpose, place=place)
    if remembered is not None:
        return table, complete
    told = guess_remarks(complete, given or SchemaMapping(), table, purpose)
    return replace(table, remarks=(*table.remarks, *told)), complete


def table_of(source: Path | TextIO | Any, name: str | None) -> Table:
    """The columns of a file, a stream of JSON lines or a data frame, as they are written."""
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
    whole, history = table_of(source, name), with_given(_loaded(mapping), remembered)
    own = OutcomeColumns.of(history, list(whole.columns))
    kept = {column: cells for column, cells in whole.columns.items() if column not in own.all}
    table, complete = _prepared(replace(whole, columns=kept), mapping, remembered, "learn")
    own, complete = own.completed(history, complete, list(table.columns))
    assembly = assemble(table, complete, unique_ids=False, skip=own.all, like=history.day_order if history else "")
    _require(assembly, "label", "a label")
    _require(assembly, "id", "a transaction_id")
    texts = {column: plain_text({**table.columns, **whole.columns}[column]).to_list() for column in own.all}
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
    more = [f"... {len(told):,} such remarks in all"] if len(told) > _MOST_REMARKS else []
    assembly.remarks += told[:_MOST_REMARKS] + more
    return tuple(reported), len(rows) - len(labelled)


def _require(assembly: Assembly, role: str, what: str) -> None:
    table = assembly.table
    if getattr(assembly.mapping, role) not in table.columns and table.height:
        how = f"SchemaMapping({role}=...)" if table.is_frame else f'`{role} = "..."` in a mapping (--mapping)'
        names = list(table.columns)
        more = f" and {len(names) - _COLUMNS_SHOWN} more" if len(names) > _COLUMNS_SHOWN else ""
        there = f"the columns are: {', '.join(names[:_COLUMNS_SHOWN])}{more}"
        raise InputError(f"no column with {what}; {there}; name it by {how}", file=table.name)


def _checked(
    assembly: Assembly, rows: Rows, unlabelled: int, *, strict: bool, may_be_empty: bool = False
) -> Loaded[Rows]:
    """The result, unless there are no rows, too many bad ones, or any bad one if ``strict``."""
    bad = assembly.bad_rows()
    if strict and bad:
        raise bad[0].error
    file = assembly.table.name
    first = InputError(bad[0].message, row=bad[0].row, field=bad[0].field) if bad else None
    if not rows and not bad and may_be_empty:
        return Loaded(rows, bad, unlabelled, assembly.mapping, assembly.unreadable, assembly.report())
    if not rows and not bad:
        told = f"none of the {unlabelled:,} rows has a label" if unlabelled else "there are no rows"
        raise InputError(told, file=file)
    if not rows:
        without = f" and {unlabelled:,} without a label" if unlabelled else ""
        raise InputError(f"no usable rows: {len(bad):,} bad{without}; the first bad one is {first}", file=file)
    if len(bad) >= _MANY and len(bad) > len(rows) + unlabelled:  # the file is read in the wrong way
        raise InputError(f"{len(bad):,} of its rows cannot be read; the first is {first}", file=file)
    return Loaded(rows, bad, unlabelled, assembly.mapping, assembly.unreadable, assembly.report())


def guess_remarks(found: SchemaMapping, given: SchemaMapping, table: Table, purpose: Purpose) -> Iterator[Remark]:
    """What was guessed, left out or read in a special way, each with the line of a mapping that changes it."""
    columns = table.columns
    if given.id is None and not found.id and not table.labels_apart:
        yield Remark("", "no column with ids was found", guess.NO_IDS, 'id = "..."')
    if purpose == "train":
        yield from _role_remarks(found, given, columns)
    for column, cells in columns.items():
        if why := found.why.get(column):
            yield _with_reason(column, why, found, given, cells)
        elif isinstance(cells, pl.Series) and cells.n_unique() < 2 < len(cells) and found.facts_by_column([column]):
            yield Remark(column, "teaches nothing", guess.ONE_VALUE, weight="usual")
    if given.history is None and found.entities:
        listed = ", ".join(found.entities)
        yield Remark("", "taken as entities, whose history becomes facts", listed, "history = {entities = []}")
    named = [column for column, why in found.why.items() if why == guess.AN_ID and column in columns]
    if named and not found.has_time:
        yield Remark("", f"no history of {', '.join(named)}", "no column with the time of a transaction was found")
    yield from _fact_remarks(found, given)


def _role_remarks(found: SchemaMapping, given: SchemaMapping, columns: Mapping[str, Column]) -> Iterator[Remark]:
    for role, column in found.roles():
        if column not in columns or getattr(given, role) is not None:
            continue
        others = [name for name, why in found.why.items() if why == guess.ANOTHER_TIME] if role == "time" else []
        why = f"times are in {', '.join(others)} too" if others else ""
        change = f"{role} = {json.dumps(others[0] if others else '...')}"
        weight: Weight = "note" if others or role in ("known_at", "text") else "usual"
        yield Remark(column, f"is read as the {_ROLE_WORDS[role].lower()}", why, change, weight)


def _with_reason(column: str, why: str, found: SchemaMapping, given: SchemaMapping, cells: Column) -> Remark:
    """A column that is left out for a reason, or kept in spite of one."""
    ignored = found.ignore or ()
    if column not in ignored:
        change = f"ignore = {_as_list(*ignored, column)}" if given.ignore is None else ""
        return Remark(column, "is kept", why, change, "warning" if why.startswith(LEAK) else "usual")
    measured = [fact for fact, pair in (*found.days_between.items(), *found.elapsed.items()) if column in pair]
    if measured:
        return Remark(column, f"is read as {measured[0]}", why, f"time = {json.dumps(column)}", "usual")
    change = f"{'numbers' if suits(cells, 'number') else 'categories'} = {_as_list(column)}"
    if why == guess.ANOTHER_TIME and found.time:
        gap = f"days_between = {{{json.dumps(f'days_to_{column}')} = {_as_list(found.time, column)}}}"
        why = f"another time than that of `{found.time}`, and not before it; if known by then, `{gap}` makes it a fact"
        change = f"time = {json.dumps(column)}"
    elif why == guess.SENTENCES:
        other = f"beside that of `{found.text}`" if found.text else "that states no fact the engine knows"
        why, change = f"{why} {other}", f"text = {json.dumps(column)}"
    weight: Weight = "usual" if why == guess.ANOTHER_TIME and given.time == "" else _weight(why, cells)
    return Remark(column, "is left out", why, change, weight)


def _weight(why: str, cells: Column) -> Weight:
    """Whether leaving a column out may cost something. One that numbers the rows, or names them by codes, does not."""
    if why.startswith(_COSTLY):
        return "warning"
    texts = plain_text(thinned(cells)).drop_nulls()
    steps = texts.cast(pl.Float64, strict=False).diff().drop_nulls()
    telling = steps.n_unique() > 1 or 2 * int(texts.str.contains(r"\pL \pL").sum()) > len(texts)
    return "warning" if why in (guess.ONE_EACH, guess.HARDLY_REPEATS) and telling else "usual"


def _fact_remarks(found: SchemaMapping, given: SchemaMapping) -> Iterator[Remark]:
    for column in (*found.categories, *found.flags):
        if column not in {*given.categories, *given.flags, *found.entities}:
            what = "yes or no" if column in found.flags else "codes"
            yield Remark(column, f"is read as {what}, not as numbers", "", f"numbers = {_as_list(column)}", "usual")
    for column, fact in found.rename.items():
        if column not in given.rename:
            change = f'rename = {{{json.dumps(column)} = "..."}}'
            yield Remark(column, f"is read as the fact `{fact}`", "", change, "usual")
    if given.time_facts is None and found.time_facts:
        yield Remark("", "facts made from the time", ", ".join(found.time_facts), "time_facts = []", "usual")


def _as_list(*names: str) -> str:
    return json.dumps(names, ensure_ascii=False)
