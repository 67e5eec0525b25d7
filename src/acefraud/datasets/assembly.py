"""A table and a mapping become columns of transactions, with the first problem of every bad row.

All readers share this path; they differ in what they make of the rows at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from acefraud.core.fact_names import Kind
from acefraud.core.table import Categories, Columns, FactTable, Flags
from acefraud.core.transactions import Cases, Ids, Transactions
from acefraud.datasets.cells import (
    FLAGS,
    MAX_ID,
    NO_CONTENT,
    compact,
    find_kind,
    read_fact,
    read_words,
    wrong_id,
    wrong_text,
)
from acefraud.datasets.columns import (
    BadCells,
    LabelReader,
    Times,
    folded,
    plain_text,
    read_elapsed,
    read_labels,
    read_time_parts,
    read_times,
    shared_format,
    unknown_words,
)
from acefraud.datasets.content_ids import content_hashes, ids_of, numbered, places_among_equals
from acefraud.datasets.mapping import KINDS, SchemaMapping, declared_kind
from acefraud.datasets.table import BadRow, Column, ReadingReport, Remark, Table
from acefraud.errors import InputError
from acefraud.facts.time_facts import with_time_facts
from acefraud.support.arrays import BoolArray, IntArray
from acefraud.support.timestamps import UNKNOWN, time_of

_SHOWN = 5
_WORDS_LOOKED_AT = 50
_PLAIN_WORDS = frozenset(
    {"0", "1", "0.0", "1.0", "true", "false", "yes", "no", "y", "n", "fraud", "legit", "legitimate"}
)


@dataclass(slots=True)
class Assembly:
    """The columns of a table read by a mapping; ``bad`` holds the first problem of each bad row."""

    table: Table
    mapping: SchemaMapping
    ids: Ids = field(init=False)
    """None if a cell is empty, which makes the row bad; "" in a table without ids until `name_rows`."""
    times: IntArray = field(init=False)
    known_at: IntArray = field(init=False)
    labels: Flags = field(init=False)
    """1 for fraud, 0 for legitimate, -1 where no label has arrived."""
    texts: list[str] | None = None
    difficulty: list[str] | None = None
    facts: Columns = field(default_factory=Columns)
    entities: dict[str, Categories] = field(default_factory=dict)
    """Who and what took part, by column."""
    bad: dict[int, tuple[str | None, str]] = field(default_factory=dict)
    unknown_words: dict[str, BoolArray] = field(default_factory=dict)
    """For columns of numbers and flags that hold words such as ``NA``: in which rows."""
    remarks: list[str] = field(default_factory=list)
    """What a person should know about how the file was read."""

    def mark_bad(self, column: str | None, bad: BadCells) -> None:
        """Note what is wrong with rows; of a row that is bad already, the first problem stays."""
        for row, message in bad:
            self.bad.setdefault(row, (column, message))

    def bad_rows(self) -> tuple[BadRow, ...]:
        """All rows that were left out, in the order of the file."""
        found = [BadRow(self.table.name, self.table.rows[row], *what) for row, what in self.bad.items()]
        return tuple(sorted([*self.table.bad, *found], key=lambda bad: bad.row))

    def good_rows(self) -> IntArray:
        """The rows with nothing wrong in them."""
        return np.setdiff1d(np.arange(self.table.height), list(self.bad), assume_unique=True)

    def name_rows(self, rows: IntArray) -> None:
        """Give ids that are made from the content to rows of a table without a column of ids."""
        if self.mapping.id in self.table.columns:
            return
        texts = None if self.texts is None else [self.texts[row] for row in rows]
        entities = {column: (codes[rows], words) for column, (codes, words) in self.entities.items()}
        hashes = content_hashes(self.facts.take(rows), self.times[rows], texts, entities)
        places = places_among_equals(hashes, self.labels[rows], self.known_at[rows])
        self.ids[rows] = numbered(ids_of(hashes), places)

    def has_content(self) -> BoolArray:
        """Whether each row has a fact or a text."""
        facts = FactTable.of_columns(self.facts, self.table.height)
        found = np.zeros(self.table.height, dtype=np.bool_)
        if self.texts is not None:
            found[:] = [bool(text.strip()) for text in self.texts]
        for name in facts.names:
            if found.all():
                break
            found |= facts.known(name)
        return found

    @property
    def unreadable(self) -> int:
        """How many rows hold a word such as ``NA`` in place of a number or a flag."""
        return int(np.any(list(self.unknown_words.values()), axis=0).sum()) if self.unknown_words else 0

    def report(self) -> ReadingReport:
        """How the file was read."""
        remarks = (*self.table.remarks, *self.remarks)
        if not self.unknown_words:
            return ReadingReport(remarks)
        counts = [f"{column} {int(rows.sum()):,}" for column, rows in self.unknown_words.items()]
        listed = ", ".join(counts[:_SHOWN]) + (", ..." if len(counts) > _SHOWN else "")
        told = f"rows with NA, null, - or the like in place of a number or flag: {self.unreadable:,} ({listed})"
        return ReadingReport((*remarks, f"{told}, read as unknown"))

    def mark_empty_rows(self) -> None:
        """Rows without a fact or a text are bad."""
        self.mark_bad(None, [(row, NO_CONTENT) for row in np.flatnonzero(~self.has_content()).tolist()])

    def transactions(self, rows: IntArray) -> Transactions:
        """Some of the rows as transactions.

        Every cell has been checked column by column, so the rows equal those that checked construction would give.
        """
        facts = self.facts if len(rows) == self.table.height else self.facts.take(rows)
        made = Transactions(
            self.ids[rows],
            FactTable.of_columns(compact(facts), len(rows)),
            times=self.times[rows],
            texts=None if self.texts is None else [self.texts[row] for row in rows],
            entities={column: (codes[rows], words) for column, (codes, words) in self.entities.items()},
        )
        return with_time_facts(made, self.mapping.time_facts or ())

    def cases(self, rows: IntArray) -> Cases:
        """Some of the rows, all of them with a label."""
        metadata = self.table.metadata
        return Cases(
            self.transactions(rows),
            self.labels[rows] == 1,
            known_at=self.known_at[rows],
            difficulty=None if self.difficulty is None else [self.difficulty[row] for row in rows],
            metadata=[metadata[row] for row in rows] if any(metadata) else None,
            weights=None if self.table.weights is None else self.table.weights[rows],
        )


def assemble(
    table: Table,
    mapping: SchemaMapping,
    *,
    unique_ids: bool = True,
    skip: Collection[str] = (),
    like: str = "",
) -> Assembly:
    """Read all columns to which a complete mapping gives a role, except those in ``skip``.

    ``like`` is the format of other times, whose order of day and month counts for those that the mapping gives none.
    """
    assembly = Assembly(table, mapping)
    _read_ids(assembly, unique=unique_ids)
    _read_times(assembly, like)
    _read_texts(assembly)
    _read_labels(assembly)
    _read_facts(assembly, skip)
    _read_entities(assembly)
    return assembly


def _column(assembly: Assembly, role: str) -> tuple[str, Column] | None:
    name = getattr(assembly.mapping, role)
    return (name, assembly.table.columns[name]) if name in assembly.table.columns else None


def _read_ids(assembly: Assembly, *, unique: bool) -> None:
    assembly.ids = np.full(assembly.table.height, "", dtype=object)
    if (found := _column(assembly, "id")) is not None:
        texts = plain_text(found[1])
        assembly.ids = texts.to_numpy()
        assembly.mark_bad(found[0], _bad_ids(texts, assembly.table, unique=unique))


def _bad_ids(texts: pl.Series, table: Table, *, unique: bool) -> BadCells:
    """The cells that are no id or, where ids are ``unique``, repeat an earlier one."""
    wrong = texts.is_null() | (texts.str.len_chars() > MAX_ID).fill_null(True)
    if unique:
        wrong |= ~texts.is_first_distinct()
    if not wrong.any():
        return []
    first = {text: row for row, text in reversed(list(enumerate(texts)))}
    return [
        (row, wrong_id(text) or f"duplicate id {text!r}, first at row {table.rows[first[text]]}")
        for row, text in zip(wrong.arg_true(), texts.filter(wrong), strict=True)
    ]


def _read_times(assembly: Assembly, like: str) -> None:
    table = assembly.table
    assembly.times = assembly.known_at = np.full(table.height, UNKNOWN, dtype=np.int64)
    if clock := assembly.mapping.clock:
        assembly.mark_bad(clock, list(table.unfit.get(clock, ())))
    if (found := _column(assembly, "time")) is not None:
        times = read_times(found[1], assembly.mapping.time_format, like=like or assembly.mapping.day_order)
        assembly.times = times.values
        assembly.mapping = assembly.mapping.model_copy(update={"time_format": times.format})
        _mark_times(assembly, found[0], times)
    if (parts := assembly.mapping.time_parts) and parts.are_in(table.columns):
        assembly.times, wrong = read_time_parts(table.columns, parts)
        for column, cells in wrong:
            assembly.mark_bad(column, cells)
    if (found := _column(assembly, "known_at")) is not None:
        same = shared_format(found[1], assembly.mapping.time_format)
        times = read_times(found[1], same, like=like or assembly.mapping.day_order)
        assembly.known_at = times.values
        _mark_times(assembly, found[0], times)


def _mark_times(assembly: Assembly, column: str, times: Times) -> None:
    """Note bad cells and an assumed order of day and month. Two orders in one column cannot be told apart."""
    if times.mixed:
        row, told = times.mixed
        raise InputError(told, file=assembly.table.name, row=assembly.table.rows[row], field=column)
    change = 'time_format = "..."'
    remark = Remark(column, "is read as a time", times.unsure, change) if times.unsure else None
    if not remark and times.format.startswith("%") and (times.values != UNKNOWN).any():
        row = int(np.flatnonzero(times.values != UNKNOWN)[0])
        written, time = assembly.table.columns[column][row], time_of(times.values[row])
        remark = Remark(column, "is read as a time", f"{written!r} is {time:%Y-%m-%d %H:%M}", change)
    if remark and remark not in assembly.remarks:
        assembly.remarks.append(remark)
    assembly.mark_bad(column, times.bad)


def _read_texts(assembly: Assembly) -> None:
    if (found := _column(assembly, "difficulty")) is not None:
        assembly.difficulty = [text or "" for text in plain_text(found[1])]
    if (found := _column(assembly, "text")) is None:
        return
    cells = list(found[1])
    assembly.texts = [cell if isinstance(cell, str) else "" for cell in cells]
    assembly.mark_bad(found[0], [(row, problem) for row, cell in enumerate(cells) if (problem := wrong_text(cell))])


def _read_labels(assembly: Assembly) -> None:
    assembly.labels = np.full(assembly.table.height, -1, dtype=np.int8)
    if (found := _column(assembly, "label")) is not None:
        reader = LabelReader(assembly.mapping.fraud_values, assembly.mapping.legit_values)
        assembly.labels, bad = read_labels(found[1], reader)
        assembly.mark_bad(found[0], bad)
        _say_how(assembly, found[0], "the label", reader, ("legitimate", "fraud"))


def _say_how(
    assembly: Assembly, column: str, what: str, read: Callable[[str], bool | None], meanings: tuple[str, str]
) -> None:
    """Tell what words are taken for, unless they go without saying."""
    cells = assembly.table.columns[column]
    if isinstance(cells, list) or cells.dtype != pl.String:
        return
    texts = sorted(cells.drop_nulls().str.strip_chars().unique(maintain_order=True).head(_WORDS_LOOKED_AT))
    examples = {meanings[means]: text for text in ["", *reversed(texts)] if (means := read(text)) is not None}
    if any(folded(text) not in _PLAIN_WORDS for text in examples.values()):
        told = ", ".join(f"{text!r} is {meaning}" for meaning, text in sorted(examples.items()))
        change = 'fraud_values = ["..."]' if what == "the label" else f'categories = ["{column}"]'
        assembly.remarks.append(Remark(column, f"is read as {what}", told, change))


def _read_facts(assembly: Assembly, skip: Collection[str]) -> None:
    table, mapping = assembly.table, assembly.mapping
    facts: dict[str, dict[str, Any]] = {"numbers": {}, "flags": {}, "categories": {}}
    columns: dict[Kind, list[str]] = {kind: [*getattr(mapping, key)] for key, kind in KINDS.items()}
    for column, fact in mapping.facts_by_column([name for name in table.columns if name not in skip]).items():
        cells = table.columns[column]
        kind = declared_kind(mapping, column) or find_kind(cells, fact, typed=table.typed)
        read, bad = read_fact(fact, cells, kind, typed=table.typed, nan_is_unknown=table.is_frame)
        for key in facts:
            facts[key] |= getattr(read, key)
        assembly.mark_bad(column, [*(table.unfit.get(column, ()) if kind == "number" else ()), *bad])
        if kind == "flag":
            _say_how(assembly, column, "yes or no", lambda text: FLAGS.get(folded(text)), ("no", "yes"))
        if kind in ("number", "flag") and (unknown := unknown_words(cells)).any():
            assembly.unknown_words[column] = unknown.to_numpy()
        if kind is not None and column not in columns[kind]:
            columns[kind].append(column)
    for fact, elapsed, read_columns in read_elapsed(table.columns, mapping):
        facts["numbers"][fact] = elapsed
        for column, times in read_columns.items():
            _mark_times(assembly, column, times)
    assembly.facts = Columns(**facts)
    # The mapping keeps the kinds that were found, so that a single row decided later is read like the file.
    assembly.mapping = mapping.model_copy(update={key: tuple(columns[kind]) for key, kind in KINDS.items()})


def _read_entities(assembly: Assembly) -> None:
    """The columns of a history that are not facts: those of the entities, and places and categories left out."""
    table, history = assembly.table, assembly.mapping.history
    if history is None or not history.entities:
        return
    facts = assembly.mapping.facts_by_column(list(table.columns))
    for _, column in history.named_columns():
        if column in table.columns and (column not in facts or column in history.entities):
            assembly.entities[column], bad = read_words(table.columns[column])
            assembly.mark_bad(column, bad)
