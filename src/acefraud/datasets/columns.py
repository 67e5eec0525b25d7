"""A labelled file as columns: the same facts as `load_dataset` reads, without an object for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from acefraud.core.table import Codes, Columns, FactTable, Flags, Mask, Numbers, RowIndex
from acefraud.core.timestamps import UNKNOWN
from acefraud.core.transaction import MAX_TEXT
from acefraud.datasets.assembly import MAX_ID, Assembly, declared_kind, fact_names, joined, too_long
from acefraud.datasets.cells import find_kind
from acefraud.datasets.column_cells import (
    Micros,
    Places,
    coded_flags,
    compact,
    entity_codes,
    micros_of,
    parted,
    read_fact,
    read_micros,
    read_numbers,
    spread,
    together,
)
from acefraud.datasets.files import read_table
from acefraud.datasets.labels import LabelReader, plain_texts, read_labels
from acefraud.datasets.loading import checked, complete_mapping, require_label
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import BadRow, Column
from acefraud.datasets.time_parts import read_time_parts
from acefraud.datasets.times import shared_format
from acefraud.history.columns import history_columns
from acefraud.history.events import HistoryEvents

Ids = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class LabelledColumns:
    """Labelled transactions as columns, in order of time where every row has one, else in that of the file."""

    name: str
    facts: FactTable
    labels: Mask
    ids: Ids
    times: Micros | None = None
    """Microseconds since 1970 in UTC; None where some row has no time."""
    known_at: Micros | None = None
    """When each label was known; None where labels are known at once."""
    entities: Mapping[str, Codes] = field(default_factory=dict)
    """For each column that names somebody or something, a code per row; -1 where the cell is empty."""
    mapping: SchemaMapping = field(default_factory=SchemaMapping)
    bad_rows: tuple[BadRow, ...] = ()
    unlabelled: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: RowIndex) -> LabelledColumns:
        """Some of the rows, in the given order."""
        return replace(
            self,
            facts=self.facts.take(rows),
            labels=self.labels[rows],
            ids=self.ids[rows],
            times=None if self.times is None else self.times[rows],
            known_at=None if self.known_at is None else self.known_at[rows],
            entities={name: codes[rows] for name, codes in self.entities.items()},
        )


def load_columns(source: Path, *, mapping: SchemaMapping | Path | None = None) -> LabelledColumns:
    """Labelled transactions from a file, as columns. Free text is checked, but not kept."""
    table = read_table(source)
    assembly = Assembly(table, complete_mapping(table, mapping))
    ids = _read_ids(assembly)
    times, known_at = _read_times(assembly)
    has_text = _read_texts(assembly)
    labels = _read_labels(assembly)
    require_label(assembly)
    facts = _read_facts(assembly)
    _check_entities(assembly)
    rows = _in_order(np.flatnonzero(_sound(assembly, facts, has_text)), times)
    entities, remembered = _history(assembly, rows, facts, times=times, labels=labels, known_at=known_at)
    labelled = labels[rows] >= 0
    rows = rows[labelled]
    loaded = checked(assembly, rows.tolist(), int(np.sum(~labelled)), strict=False)
    columns = compact(together(facts.take(rows), remembered.take(labelled)))
    timed = bool((times[rows] != UNKNOWN).all())
    return LabelledColumns(
        name=source.stem,
        facts=FactTable.of_columns(columns, len(rows)),
        labels=labels[rows] == 1,
        ids=ids[rows],
        times=times[rows] if timed else None,
        known_at=_arrivals(loaded.mapping, times[rows], known_at[rows]) if timed else None,
        entities={name: codes[labelled] for name, codes in entities.items()},
        mapping=loaded.mapping,
        bad_rows=loaded.bad_rows,
        unlabelled=loaded.unlabelled,
    )


def _in_order(rows: Places, times: Micros) -> Places:
    """By time, and as in the file where times are equal or one is missing."""
    return rows[np.argsort(times[rows], kind="stable")] if (times[rows] != UNKNOWN).all() else rows


def _arrivals(mapping: SchemaMapping, times: Micros, known_at: Micros) -> Micros | None:
    """When labels became known; where a file does not say, after the usual delay of the history."""
    delay = mapping.history.delay if mapping.history else 0
    if not mapping.known_at and not delay:
        return None
    return np.where(known_at == UNKNOWN, times + delay, known_at)


def _history(
    assembly: Assembly, rows: Places, facts: Columns, *, times: Micros, labels: Flags, known_at: Micros
) -> tuple[dict[str, Codes], Columns]:
    """The entities of the rows, and what their past says of each row."""
    plan, table = assembly.mapping.history, assembly.table
    if plan is None or not plan.entities:
        return {}, Columns()
    entities = {column: entity_codes(table.columns[column])[rows] for column in plan.entities}
    amount = facts.numbers.get("amount")
    events = HistoryEvents(
        time=times[rows],
        entities=entities,
        amount=None if amount is None else amount[rows],
        category=entity_codes(table.columns[plan.category])[rows] if plan.category else None,
        latitude=read_numbers(table.columns[plan.latitude], typed=table.typed)[rows] if plan.has_places else None,
        longitude=read_numbers(table.columns[plan.longitude], typed=table.typed)[rows] if plan.has_places else None,
        label=labels[rows],
        known_at=known_at[rows],
    )
    return entities, history_columns(plan, events)


def _column(assembly: Assembly, name: str | None) -> Column | None:
    return assembly.table.columns.get(name) if name else None


def _read_ids(assembly: Assembly) -> Ids:
    table, name = assembly.table, assembly.mapping.id
    column = _column(assembly, name)
    if column is None:
        return np.array([f"row-{row}" for row in table.rows], dtype=object)
    ids = plain_texts(column)
    series = pl.Series(ids, dtype=pl.String)
    wrong = series.is_null() | (series.str.len_chars() > MAX_ID) | ~series.is_first_distinct()
    first = {one: at for at, one in reversed(list(enumerate(ids)))} if wrong.any() else {}
    bad = []
    for at in wrong.fill_null(True).arg_true().to_list():
        one = ids[at]
        if one is None:
            bad.append((at, "expected an id, got an empty cell"))
        elif len(one) > MAX_ID:
            bad.append((at, f"expected an id of at most {MAX_ID} characters, got {len(one):,}"))
        else:
            bad.append((at, f"duplicate id {one!r}, first at row {table.rows[first[one]]}"))
    assembly.spoil(name, bad)
    return np.array(ids, dtype=object)


def _read_times(assembly: Assembly) -> tuple[Micros, Micros]:
    times = known_at = np.full(assembly.table.height, UNKNOWN, dtype=np.int64)
    mapping = assembly.mapping
    if (column := _column(assembly, mapping.time)) is not None:
        times, bad, found = read_micros(column, mapping.time_format)
        assembly.mapping = mapping.model_copy(update={"time_format": found})
        assembly.spoil(mapping.time, bad)
    if mapping.time_parts and mapping.time_parts.are_in(assembly.table.columns):
        stamps, wrong = read_time_parts(assembly.table.columns, mapping.time_parts)
        times = micros_of(stamps)
        for name, bad in wrong:
            assembly.spoil(name, bad)
    if (column := _column(assembly, mapping.known_at)) is not None:
        known_at, bad, _ = read_micros(column, None)
        assembly.spoil(mapping.known_at, bad)
    return times, known_at


def _read_texts(assembly: Assembly) -> Mask:
    """Whether each row has a text."""
    name = assembly.mapping.text
    column = _column(assembly, name)
    if column is None:
        return np.zeros(assembly.table.height, dtype=np.bool_)
    cells = column if isinstance(column, list) else column.to_list()
    texts = [cell if isinstance(cell, str) else "" for cell in cells]
    bad = [(at, "expected text") for at, cell in enumerate(cells) if cell is not None and not isinstance(cell, str)]
    bad += [
        (at, f"expected a text of at most {MAX_TEXT:,} characters, got {len(text):,}")
        for at, text in enumerate(texts)
        if len(text) > MAX_TEXT
    ]
    assembly.spoil(name, bad)
    return np.array([bool(text.strip()) for text in texts], dtype=np.bool_)


def _read_labels(assembly: Assembly) -> Flags:
    """1 for fraud, 0 for none, -1 where there is no label yet."""
    mapping = assembly.mapping
    column = _column(assembly, mapping.label)
    if column is None:
        return np.full(assembly.table.height, -1, dtype=np.int8)
    cells, places = parted(column)
    values, bad = read_labels(cells, LabelReader(mapping.fraud_values, mapping.legit_values))
    assembly.spoil(mapping.label, spread(bad, places))
    assembly.labels = values  # of the distinct cells: all that is asked of it is whether there are any
    return coded_flags(values)[places]


def _read_facts(assembly: Assembly) -> Columns:
    table, mapping = assembly.table, assembly.mapping
    found = Columns({}, {}, {})
    kinds: dict[str, list[str]] = {"number": [], "flag": [], "category": []}
    for column, fact in fact_names(mapping, list(table.columns)).items():
        cells = table.columns[column]
        kind = declared_kind(mapping, column) or find_kind(cells, fact, typed=table.typed)
        one, bad = read_fact(fact, cells, kind, typed=table.typed)
        found = together(found, one)
        assembly.spoil(column, bad)
        if kind is not None:
            kinds[kind].append(column)
    found = together(found, _read_elapsed(assembly))
    assembly.mapping = mapping.model_copy(
        update={
            "numbers": joined(mapping.numbers, kinds["number"]),
            "flags": joined(mapping.flags, kinds["flag"]),
            "categories": joined(mapping.categories, kinds["category"]),
        }
    )
    return found


def _read_elapsed(assembly: Assembly) -> Columns:
    """Seconds from one time of a row to another."""
    table, mapping = assembly.table, assembly.mapping
    read: dict[str, Micros] = {}
    found: dict[str, Numbers] = {}
    for fact, pair in mapping.elapsed.items():
        if not all(name in table.columns for name in pair):
            continue
        for name in pair:
            if name not in read:
                cells = table.columns[name]
                read[name], bad, _ = read_micros(cells, shared_format(cells, mapping.time_format))
                assembly.spoil(name, bad)
        start, end = (read[name] for name in pair)
        found[fact] = np.where((start == UNKNOWN) | (end == UNKNOWN), np.nan, (end - start) / 1e6)
    return Columns(found)


def _check_entities(assembly: Assembly) -> None:
    table, mapping = assembly.table, assembly.mapping
    facts = fact_names(mapping, list(table.columns))
    for _, column in mapping.history.named_columns() if mapping.history and mapping.entities else ():
        if column not in facts and column in table.columns:
            cells, places = parted(table.columns[column])
            assembly.spoil(column, spread(too_long(plain_texts(cells)), places))


def _sound(assembly: Assembly, facts: Columns, has_text: Mask) -> Mask:
    """Rows with nothing wrong in them, and something said."""
    height = assembly.table.height
    says = has_text.copy()
    table = FactTable.of_columns(facts, height)
    for name in table.names:
        says |= table.known(name)
    message = "expected at least one fact or a text"
    for row in np.flatnonzero(~says).tolist():
        assembly.bad.setdefault(row, (None, message))
    sound = np.ones(height, dtype=np.bool_)
    sound[list(assembly.bad)] = False
    return sound
