"""Rows of a table as labelled cases, transactions to decide, or outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

import numpy as np

from acefraud.core.outcome import MAX_AUTHOR, MAX_DETAIL, MAX_DETAILS, MAX_NOTE, Outcome, OutcomeSource
from acefraud.core.transaction import Transaction
from acefraud.core.transactions import Transactions
from acefraud.datasets.assembly import Assembly, assemble
from acefraud.datasets.columns import USUAL_WORDS, plain_name, plain_texts
from acefraud.datasets.dataset import Dataset
from acefraud.datasets.files import read_table
from acefraud.datasets.frames import FRAME, frame_table
from acefraud.datasets.guess import NO_IDS
from acefraud.datasets.mapping import SchemaMapping, with_given
from acefraud.datasets.preparation import loaded_mapping, prepare
from acefraud.datasets.table import FACTS, BadRow, ReadingReport, Table
from acefraud.display.frames import is_frame
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import InputError, point_out
from acefraud.support.arguments import nearest
from acefraud.support.timestamps import plausible, time_of

_COLUMNS_SHOWN = 20
_MANY = 20
_MOST_REMARKS = 5
"""Odd things about outcomes that are told of a file."""
_NAMES = {role: tuple(map(plain_name, names)) for role, names in USUAL_WORDS["outcomes"].items()}
_ROLES = ("source", "author", "note", "id")
_SPOKEN = {*_NAMES["author"], *_NAMES["note"]}
_NO_FACTS = frozenset({"id", "time", "clock", "label", "known_at", "difficulty", "ignore", "history.entities"})
_OF_TRANSACTIONS = ("text", "time")
"""Fields of a transaction under their own names, which no mapping has to know."""
_SOURCES = {source.value: source for source in OutcomeSource if source is not OutcomeSource.SILENCE}

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


@dataclass(frozen=True, slots=True)
class OutcomeColumns:
    """Which columns of a report say what of the outcome itself."""

    roles: Mapping[str, str]
    """The columns of source, author, note and id, by these names."""
    details: tuple[str, ...] = ()
    """Columns that are kept as they are: the history does not know them as facts."""

    @classmethod
    def of(cls, history: SchemaMapping | None, columns: Sequence[str]) -> OutcomeColumns:
        """The columns with a role by their names, except those that the mapping of the history knows.

        If those that it knows as facts are notes and authors by name, they are about the outcome: a note alone
        describes no transaction, unless the history has nothing else.
        """
        named = [] if history is None else [pair for pair in history.named_columns() if pair[0] != "ignore"]
        facts = {column for key, column in named if key not in _NO_FACTS}
        there = {column for column in columns if column in facts or column.startswith(FACTS) or column == "text"}
        lone = all(plain_name(column) in _SPOKEN for column in there) and facts > there
        known = {column for _, column in named} - (there if lone else set())
        free = {plain_name(column): column for column in reversed(columns) if column not in known}
        found = {role: next((free[name] for name in _NAMES[role] if name in free), None) for role in _ROLES}
        return cls({role: column for role, column in found.items() if column is not None})

    @property
    def all(self) -> set[str]:
        """All of them."""
        return {*self.roles.values(), *self.details}

    def completed(
        self, history: SchemaMapping | None, mapping: SchemaMapping, columns: Sequence[str]
    ) -> tuple[OutcomeColumns, SchemaMapping]:
        """These columns with the details of outcomes, and the completed mapping without what became a detail.

        A column is a fact only if the history knows it as one. Without a history that names facts, every column is,
        unless it has another role or is ignored.
        """
        at = next((one for one in columns if plain_name(one) in _NAMES["at"] and one not in mapping.numbers), None)
        if at is not None and not mapping.known_at:
            mapping = mapping.model_copy(update={"known_at": at})
        roles = (
            self.roles
            if "id" in self.roles or mapping.id == "id" or "id" not in columns
            else {**self.roles, "id": "id"}
        )
        kept = {mapping.id, mapping.label, mapping.known_at, *roles.values(), *_OF_TRANSACTIONS}
        if history is not None and history.names_facts:
            kept |= {column for key, column in history.named_columns() if key != "ignore"}
            kept |= {column for column in columns if column.startswith(FACTS)}
        else:
            kept |= set(columns).difference(mapping.ignore or ())
        details = tuple(column for column in columns if column not in kept)
        lost = {role: None for role, column in mapping.roles() if column in details}
        return OutcomeColumns(roles, details), mapping.model_copy(update=lost)

    def outcome(
        self,
        transaction_id: str,
        *,
        is_fraud: bool,
        at: datetime | None,
        texts: Mapping[str, str | None],
    ) -> tuple[Outcome, list[str]]:
        """The outcome that the texts of these columns describe, and what a person should know about it."""
        said = {role: (texts[column] or "").strip() for role, column in self.roles.items()}
        details = {column: text for column in self.details if (text := (texts[column] or "").strip())}
        remarks = []
        word, author = said.get("source", ""), said.get("author", "")
        source = _SOURCES.get(word.lower() or OutcomeSource.LABEL)
        if source is None:
            source, unknown = OutcomeSource.ANALYST, f"{word[:60]!r} is none of {', '.join(_SOURCES)}"
            remarks.append(f"field '{self.roles['source']}': {unknown}; it is taken as the author, an analyst")
            if author:
                details[self.roles["source"]] = word
            author = author or word
        limits = {"author": (author, MAX_AUTHOR), "note": (said.get("note", ""), MAX_NOTE)}
        limits |= {column: (text, MAX_DETAIL) for column, text in details.items()}
        remarks += [
            f"field '{name}': the text is cut to {most:,} characters"
            for name, (text, most) in limits.items()
            if len(text) > most
        ]
        if len(details) > MAX_DETAILS:
            remarks.append(f"only the first {MAX_DETAILS} of {len(details):,} columns that are no facts are kept")
        cut = {column[:MAX_DETAIL]: text[:MAX_DETAIL] for column, text in list(details.items())[:MAX_DETAILS]}
        outcome = Outcome(
            transaction_id=transaction_id,
            is_fraud=is_fraud,
            source=source,
            id=said.get("id", ""),
            at=at,
            note=said.get("note", "")[:MAX_NOTE],
            author=author[:MAX_AUTHOR],
            details=cut,
        )
        return outcome, remarks


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
    whole, history = _table_of(source, name), with_given(loaded_mapping(mapping), remembered)
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
    more = [f"... {len(told):,} such remarks in all"] if len(told) > _MOST_REMARKS else []
    assembly.remarks += told[:_MOST_REMARKS] + more
    return tuple(reported), len(rows) - len(labelled)


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
