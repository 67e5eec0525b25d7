"""From a table and a mapping to columns of transactions, with everything that is wrong with a row said once.

All entry points share this one path; they differ in what they make of the rows at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from acefraud.core.lexicon import Kind, words_for
from acefraud.core.table import Columns, FactTable, Flags, Mask
from acefraud.core.timestamps import UNKNOWN, Micros
from acefraud.core.transaction import MAX_TEXT
from acefraud.core.transactions import Cases, Ids, Transactions, Words
from acefraud.datasets.cells import find_kind
from acefraud.datasets.distinct import BadCells, Places
from acefraud.datasets.elapsed import read_elapsed
from acefraud.datasets.fact_columns import compact, read_fact, read_words, together
from acefraud.datasets.ids import made_ids, numbered_ids, read_ids
from acefraud.datasets.labels import LabelReader, plain_texts, read_labels
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import FACTS, BadRow, Column, Table
from acefraud.datasets.time_parts import read_time_parts
from acefraud.datasets.times import read_times
from acefraud.errors import ConfigurationError


@dataclass(slots=True)
class Assembly:
    """The columns of a table read by a mapping; ``bad`` holds the first thing that is wrong with each row."""

    table: Table
    mapping: SchemaMapping
    ids: Ids = field(init=False)
    """None where a row has no id, which is then bad."""
    times: Micros = field(init=False)
    known_at: Micros = field(init=False)
    labels: Flags = field(init=False)
    """1 for fraud, 0 for none, -1 where no label has arrived."""
    texts: list[str] | None = None
    difficulty: list[str] | None = None
    facts: Columns = field(default_factory=Columns)
    entities: dict[str, Words] = field(default_factory=dict)
    """Who and what took part, by column."""
    bad: dict[int, tuple[str | None, str]] = field(default_factory=dict)

    def spoil(self, column: str | None, bad: BadCells) -> None:
        """Remember what is wrong, unless the row is spoilt already."""
        for row, message in bad:
            self.bad.setdefault(row, (column, message))

    def bad_rows(self) -> tuple[BadRow, ...]:
        """All that was left out, in the order of the file."""
        found = [BadRow(self.table.name, self.table.rows[row], *what) for row, what in self.bad.items()]
        return tuple(sorted([*self.table.bad, *found], key=lambda bad: bad.row))

    def sound(self) -> Places:
        """The rows with nothing wrong in them."""
        sound = np.ones(self.table.height, dtype=np.bool_)
        sound[list(self.bad)] = False
        return np.flatnonzero(sound)

    def says_something(self) -> Mask:
        """Whether each row has a fact or a text."""
        facts = FactTable.of_columns(self.facts, self.table.height)
        says = np.zeros(self.table.height, dtype=np.bool_)
        if self.texts is not None:
            says |= np.array([bool(text.strip()) for text in self.texts], dtype=np.bool_)
        for name in facts.names:
            says |= facts.known(name)
        return says

    def spoil_empty_rows(self) -> None:
        """A row that says nothing is no transaction."""
        message = "expected at least one fact or a text"
        self.spoil(None, [(row, message) for row in np.flatnonzero(~self.says_something()).tolist()])

    def transactions(self, rows: Places) -> Transactions:
        """Some of the rows as transactions.

        Every cell has been checked column by column, so the rows equal those that checked construction would give.
        """
        return Transactions(
            self.ids[rows],
            FactTable.of_columns(compact(self.facts.take(rows)), len(rows)),
            times=self.times[rows],
            texts=None if self.texts is None else [self.texts[row] for row in rows],
            entities={column: (codes[rows], words) for column, (codes, words) in self.entities.items()},
        )

    def cases(self, rows: Places) -> Cases:
        """Some of the rows, all of them with a label."""
        metadata = self.table.metadata
        return Cases(
            self.transactions(rows),
            self.labels[rows] == 1,
            known_at=self.known_at[rows],
            difficulty=None if self.difficulty is None else [self.difficulty[row] for row in rows],
            metadata=[metadata[row] for row in rows] if any(metadata) else None,
        )


def assemble(
    table: Table, mapping: SchemaMapping, *, unique_ids: bool = True, aside: frozenset[str] = frozenset()
) -> Assembly:
    """Read all columns that a complete mapping gives a part; those in ``aside`` are somebody else's to read."""
    assembly = Assembly(table, mapping)
    _read_ids(assembly, unique=unique_ids)
    _read_times(assembly)
    _read_texts(assembly)
    _read_labels(assembly)
    _read_facts(assembly, aside)
    _read_entities(assembly)
    return assembly


def _column(assembly: Assembly, role: str) -> tuple[str, Column] | None:
    name = getattr(assembly.mapping, role)
    return (name, assembly.table.columns[name]) if name in assembly.table.columns else None


def _read_ids(assembly: Assembly, *, unique: bool) -> None:
    if (found := _column(assembly, "id")) is not None:
        assembly.ids, bad = read_ids(assembly.table, found[1], unique=unique)
        assembly.spoil(found[0], bad)
    else:
        assembly.ids = made_ids(assembly.table) if unique else numbered_ids(assembly.table)


def _read_times(assembly: Assembly) -> None:
    assembly.times = assembly.known_at = np.full(assembly.table.height, UNKNOWN, dtype=np.int64)
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
    if (found := _column(assembly, "difficulty")) is not None:
        assembly.difficulty = [text or "" for text in plain_texts(found[1])]
    if (found := _column(assembly, "text")) is None:
        return
    name, column = found
    cells = column if isinstance(column, list) else column.to_list()
    texts = [cell if isinstance(cell, str) else "" for cell in cells]
    bad = [(row, "expected text") for row, cell in enumerate(cells) if cell is not None and not isinstance(cell, str)]
    bad += [
        (row, f"expected a text of at most {MAX_TEXT:,} characters, got {len(text):,}")
        for row, text in enumerate(texts)
        if len(text) > MAX_TEXT
    ]
    assembly.texts = texts
    assembly.spoil(name, bad)


def _read_labels(assembly: Assembly) -> None:
    assembly.labels = np.full(assembly.table.height, -1, dtype=np.int8)
    if (found := _column(assembly, "label")) is not None:
        reader = LabelReader(assembly.mapping.fraud_values, assembly.mapping.legit_values)
        assembly.labels, bad = read_labels(found[1], reader)
        assembly.spoil(found[0], bad)


def _read_facts(assembly: Assembly, aside: frozenset[str]) -> None:
    table, mapping = assembly.table, assembly.mapping
    parts: list[Columns] = []
    kinds: dict[Kind, list[str]] = {"number": [], "flag": [], "category": []}
    for column, fact in fact_names(mapping, [one for one in table.columns if one not in aside]).items():
        kind = declared_kind(mapping, column) or find_kind(table.columns[column], fact, typed=table.typed)
        read, bad = read_fact(fact, table.columns[column], kind, typed=table.typed)
        parts.append(read)
        assembly.spoil(column, bad)
        if kind is not None:
            kinds[kind].append(column)
    for fact, seconds, wrong in read_elapsed(table, mapping):
        parts.append(Columns({fact: seconds}))
        for column, bad in wrong:
            assembly.spoil(column, bad)
    assembly.facts = together(parts)
    # What was found is written down, so that one row to be decided later is read as the file was.
    assembly.mapping = mapping.model_copy(
        update={
            "numbers": _joined(mapping.numbers, kinds["number"]),
            "flags": _joined(mapping.flags, kinds["flag"]),
            "categories": _joined(mapping.categories, kinds["category"]),
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
            assembly.entities[column], bad = read_words(table.columns[column])
            assembly.spoil(column, bad)


def _joined(given: Sequence[str], found: Sequence[str]) -> tuple[str, ...]:
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
