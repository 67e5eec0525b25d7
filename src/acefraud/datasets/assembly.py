"""From a table and a mapping to transactions, with everything that is wrong with a row said once.

All entry points share this one path; they differ in what they make of a row at the end.
"""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from acefraud.core.lexicon import Kind, words_for
from acefraud.core.transaction import MAX_TEXT, MAX_WORD, FactValue, Transaction
from acefraud.datasets.cells import find_kind, read_cells
from acefraud.datasets.elapsed import read_elapsed
from acefraud.datasets.labels import LabelReader, plain_texts, read_labels
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import FACTS, BadRow, Column, Table
from acefraud.datasets.time_parts import read_time_parts
from acefraud.datasets.times import read_times
from acefraud.errors import ConfigurationError

MAX_ID = 200
_FIELDS = {"id", "time", "facts", "text", "entities"}


@contextmanager
def many_objects() -> Iterator[None]:
    """Build without the cyclic collector, which would walk all of a million rows again and again to find no cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(slots=True)
class Assembly:
    """The columns of a table read by a mapping; ``bad`` holds the first thing that is wrong with each row."""

    table: Table
    mapping: SchemaMapping
    ids: list[str | None] = field(default_factory=list)
    times: list[datetime | None] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    labels: list[bool | None] | None = None
    known_at: list[datetime | None] = field(default_factory=list)
    difficulty: list[str | None] = field(default_factory=list)
    facts: dict[str, list[FactValue | None]] = field(default_factory=dict)
    entities: dict[str, list[str | None]] = field(default_factory=dict)
    """Who and what took part, by column."""
    bad: dict[int, tuple[str | None, str]] = field(default_factory=dict)

    def spoil(self, column: str | None, bad: Sequence[tuple[int, str]]) -> None:
        """Remember what is wrong, unless the row is spoilt already."""
        for row, message in bad:
            self.bad.setdefault(row, (column, message))

    def bad_rows(self) -> tuple[BadRow, ...]:
        """All that was left out, in the order of the file."""
        found = [BadRow(self.table.name, self.table.rows[row], *what) for row, what in self.bad.items()]
        return tuple(sorted([*self.table.bad, *found], key=lambda bad: bad.row))

    def transactions(self, *, empty_allowed: bool = False) -> Iterator[tuple[int, Transaction | None]]:
        """Each sound row with its transaction, or None where it says nothing and that is allowed.

        Every cell has been checked column by column, so the objects are built without checking them again: they
        equal those that checked construction would give.
        """
        names = tuple(self.facts)
        ids = [one or "" for one in self.ids]
        rows = zip(*self.facts.values(), strict=True) if names else iter([()] * self.table.height)
        for at, values in enumerate(rows):
            if at in self.bad:
                continue
            facts = {name: value for name, value in zip(names, values, strict=True) if value is not None}
            text = self.texts[at]
            if facts or text.strip():
                entities = {column: value for column, cells in self.entities.items() if (value := cells[at])}
                yield (
                    at,
                    Transaction.model_construct(
                        _FIELDS, id=ids[at], time=self.times[at], facts=facts, text=text, entities=entities
                    ),
                )
            elif empty_allowed:
                yield at, None
            else:
                self.bad[at] = (None, "expected at least one fact or a text")

    def metadata(self, at: int) -> dict[str, Any]:
        """What a row brought as metadata."""
        return self.table.metadata[at] if self.table.metadata else {}


def assemble(
    table: Table, mapping: SchemaMapping, *, unique_ids: bool = True, aside: frozenset[str] = frozenset()
) -> Assembly:
    """Read all columns that a complete mapping gives a part; those in ``aside`` are somebody else's to read."""
    assembly = Assembly(table, mapping)
    _read_ids(assembly, unique=unique_ids)
    _read_times(assembly)
    _read_texts(assembly)
    if mapping.label in table.columns:
        reader = LabelReader(mapping.fraud_values, mapping.legit_values)
        assembly.labels, bad = read_labels(table.columns[mapping.label], reader)
        assembly.spoil(mapping.label, bad)
    _read_facts(assembly, aside)
    _read_entities(assembly)
    return assembly


def _column(assembly: Assembly, role: str) -> tuple[str, Column] | None:
    name = getattr(assembly.mapping, role)
    return (name, assembly.table.columns[name]) if name in assembly.table.columns else None


def _read_ids(assembly: Assembly, *, unique: bool) -> None:
    found = _column(assembly, "id")
    rows = assembly.table.rows
    if found is None:
        assembly.ids = _made_ids(assembly.table) if unique else [f"row-{row}" for row in rows]
        return
    name, column = found
    assembly.ids = plain_texts(column)
    first: dict[str, int] = {}
    bad: list[tuple[int, str]] = []
    for at, one in enumerate(assembly.ids):
        if one is None:
            bad.append((at, "expected an id, got an empty cell"))
        elif len(one) > MAX_ID:
            bad.append((at, f"expected an id of at most {MAX_ID} characters, got {len(one):,}"))
        elif unique and first.setdefault(one, at) != at:
            bad.append((at, f"duplicate id {one!r}, first at row {rows[first[one]]}"))
    assembly.spoil(name, bad)


def _made_ids(table: Table) -> list[str | None]:
    """Rows without an id are known by their content: positions would be the same in every file."""
    columns = [column if isinstance(column, list) else column.to_list() for column in table.columns.values()]
    seen: Counter[str] = Counter()
    ids: list[str | None] = []
    for cells in zip(*columns, strict=True):
        made = "tx-" + hashlib.sha256(repr(cells).encode(errors="surrogatepass")).hexdigest()[:12]
        seen[made] += 1
        ids.append(made if seen[made] == 1 else f"{made}-{seen[made]}")
    return ids


def _read_times(assembly: Assembly) -> None:
    nothing: list[datetime | None] = [None] * assembly.table.height
    assembly.times = assembly.known_at = nothing
    if (found := _column(assembly, "time")) is not None:
        times = read_times(found[1], assembly.mapping.time_format)
        assembly.times = times.values
        assembly.mapping = assembly.mapping.model_copy(update={"time_format": times.format})
        assembly.spoil(found[0], times.bad)
    if (parts := assembly.mapping.time_parts) and parts.are_in(assembly.table.columns):
        assembly.times, wrong = read_time_parts(assembly.table.columns, parts)
        for column, bad in wrong:
            assembly.spoil(column, bad)
    if (found := _column(assembly, "known_at")) is not None:
        times = read_times(found[1])
        assembly.known_at = times.values
        assembly.spoil(found[0], times.bad)


def _read_texts(assembly: Assembly) -> None:
    assembly.texts = [""] * assembly.table.height
    assembly.difficulty = [None] * assembly.table.height
    if (found := _column(assembly, "difficulty")) is not None:
        assembly.difficulty = plain_texts(found[1])
    if (found := _column(assembly, "text")) is None:
        return
    name, column = found
    cells = column if isinstance(column, list) else column.to_list()
    assembly.texts = [cell if isinstance(cell, str) else "" for cell in cells]
    bad = [(at, "expected text") for at, cell in enumerate(cells) if cell is not None and not isinstance(cell, str)]
    bad += [
        (at, f"expected a text of at most {MAX_TEXT:,} characters, got {len(text):,}")
        for at, text in enumerate(assembly.texts)
        if len(text) > MAX_TEXT
    ]
    assembly.spoil(name, bad)


def _read_facts(assembly: Assembly, aside: frozenset[str]) -> None:
    table, mapping = assembly.table, assembly.mapping
    kinds: dict[str, list[str]] = {"number": [], "flag": [], "category": []}
    for column, fact in fact_names(mapping, [one for one in table.columns if one not in aside]).items():
        kind = declared_kind(mapping, column) or find_kind(table.columns[column], fact, typed=table.typed)
        cells = read_cells(table.columns[column], kind, typed=table.typed)
        assembly.facts[fact] = cells.values
        assembly.spoil(column, [*cells.bad, *too_long(cells.values)])
        if kind is not None:
            kinds[kind].append(column)
    for fact, seconds, wrong in read_elapsed(table, mapping):
        assembly.facts[fact] = seconds
        for column, bad in wrong:
            assembly.spoil(column, bad)
    # What was found is written down, so that one row to be decided later is read as the file was.
    assembly.mapping = mapping.model_copy(
        update={
            "numbers": joined(mapping.numbers, kinds["number"]),
            "flags": joined(mapping.flags, kinds["flag"]),
            "categories": joined(mapping.categories, kinds["category"]),
        }
    )


def _read_entities(assembly: Assembly) -> None:
    """The columns of a history that are not facts: those of the entities, and places and categories left out."""
    table, history = assembly.table, assembly.mapping.history
    if history is None or not history.entities:
        return
    facts = fact_names(assembly.mapping, list(table.columns))
    for _, column in history.named_columns():
        if column in table.columns and column not in facts:
            assembly.entities[column] = plain_texts(table.columns[column])
            assembly.spoil(column, too_long(assembly.entities[column]))


def too_long(values: Sequence[FactValue | None]) -> list[tuple[int, str]]:
    """The words that are longer than any word should be."""
    return [
        (at, f"expected at most {MAX_WORD:,} characters, got {len(value):,}")
        for at, value in enumerate(values)
        if isinstance(value, str) and len(value) > MAX_WORD
    ]


def joined(given: Sequence[str], found: Sequence[str]) -> tuple[str, ...]:
    """The columns that were given and those that were found, each once."""
    return tuple(dict.fromkeys([*given, *found]))


def declared_kind(mapping: SchemaMapping, column: str) -> Kind | None:
    """The kind that a mapping gives a column."""
    if column in mapping.categories:
        return "category"
    if column in mapping.flags:
        return "flag"
    return "number" if column in mapping.numbers or column == mapping.amount else None


def fact_names(mapping: SchemaMapping, columns: Sequence[str]) -> dict[str, str]:
    """The columns that become facts, each with the name of its fact.

    >>> fact_names(SchemaMapping(amount="TX_AMOUNT", label="y"), ["TX_AMOUNT", "VPN", "Make", "facts.crypto", "y"])
    {'TX_AMOUNT': 'amount', 'VPN': 'vpn', 'Make': 'Make', 'facts.crypto': 'crypto'}
    """
    parts = {column for role, column in mapping.roles() if role != "amount"} | set(mapping.ignore or ())
    wanted = [one for one in columns if one not in parts]
    if mapping.known:
        wanted = [one for one in wanted if one in mapping.known or one == mapping.amount]
    named = {one: mapping.rename.get(one) or _own_name(one, mapping) for one in wanted}
    for column, fact in named.items():
        house = fact.lower()
        if column not in mapping.rename and words_for(house) and house not in named.values():
            named[column] = house
    owners: dict[str, str] = {}
    for column, fact in named.items():
        if fact in mapping.elapsed:
            raise ConfigurationError(
                f"mapping: the column '{column}' and 'elapsed' both become the fact '{fact}'; rename or ignore one"
            )
        if (other := owners.setdefault(fact, column)) != column:
            raise ConfigurationError(
                f"mapping: the columns '{other}' and '{column}' both become the fact '{fact}'; rename or ignore one"
            )
    return named


def _own_name(column: str, mapping: SchemaMapping) -> str:
    return "amount" if column == mapping.amount else column.removeprefix(FACTS)
