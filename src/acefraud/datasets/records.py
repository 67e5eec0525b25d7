"""JSON objects: their fields, and single ones read as transactions or outcomes, as a file of one row would be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from acefraud.core.outcome import MAX_AUTHOR, MAX_DETAIL, MAX_DETAILS, MAX_NOTE, Outcome, OutcomeSource
from acefraud.core.table import coded, columns_of
from acefraud.core.transaction import FactValue, Transaction
from acefraud.datasets.cells import (
    NO_CONTENT,
    kind_of_cell,
    read_cell,
    too_long,
    with_lists_as_facts,
    with_plain_numbers,
    with_whole_cells,
    wrong_id,
    wrong_text,
)
from acefraud.datasets.columns import (
    ISO,
    USUAL_WORDS,
    LabelReader,
    from_iso,
    is_null_word,
    json_column,
    plain_cell,
    plain_name,
    read_elapsed,
    read_time_parts,
    read_times,
)
from acefraud.datasets.content_ids import content_hashes, ids_of
from acefraud.datasets.guess import NO_IDS, prepare
from acefraud.datasets.mapping import SchemaMapping, declared_kind, with_given
from acefraud.datasets.table import FACTS, Purpose, Table
from acefraud.display.short_repr import ShortRepr
from acefraud.errors import InputError, point_out
from acefraud.facts.time_facts import with_own_time_facts
from acefraud.support.arguments import nearest
from acefraud.support.timestamps import UNKNOWN, micros_of, time_of
from acefraud.support.validation import construct_unchecked

_WRITTEN_OUT = re.compile(r"[-+(]?\s*(?:[^\W\d_]{3}|[^\w\s.,'-])?\s*\d[\d.,'’\s]*(?:[^\W\d_]{3}|[^\w\s.,'])?\)?-?")
"""A number that may be written as people do, such as $1,200.50."""
_MOST_LAYOUTS = 500
"""Sets of fields for which the guessed mapping is kept."""
Fields = Mapping[str, Any]
"""The cells of one row by column."""
JsonObject = str | dict[str, Any]
"""A JSON object: a line of text, or what it holds as plain Python values."""
_OUTCOME_NAMES = {role: tuple(map(plain_name, names)) for role, names in USUAL_WORDS["outcomes"].items()}
_OUTCOME_ROLES = ("source", "author", "note", "id")
_SPOKEN = {*_OUTCOME_NAMES["author"], *_OUTCOME_NAMES["note"]}
_NO_FACTS = frozenset({"id", "time", "clock", "label", "known_at", "difficulty", "ignore", "history.entities"})
_OF_TRANSACTIONS = ("text", "time")
"""Fields of a transaction under their own names, which no mapping has to know."""
_SOURCES = {source.value: source for source in OutcomeSource if source is not OutcomeSource.SILENCE}
_DEEPEST = 10
"""Objects inside objects that are opened."""
HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair. Alone it is not valid Unicode, and nothing further on could store it."""


def fields_of(record: JsonObject) -> Fields:
    """The fields of one JSON object by the names that its columns would have in a file.

    >>> fields_of('{"id": "t1", "card": {"age": 3}, "facts": {"vpn": true}}')
    {'id': 't1', 'card.age': 3, 'facts.vpn': True}
    """
    check_unicode = not isinstance(record, str) or HALF_CHARACTER.search(record) is not None
    flat, _ = flat_record(parse_json(record) if isinstance(record, str) else record, check_unicode=check_unicode)
    return {key: cell for key, (cell,) in opened_records([flat]).items()}


def parse_json(text: str, file: str | None = None) -> object:
    """What a whole file holds, or a single line if there is no file to name."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as broken:
        line = f"line {broken.lineno}, " if file else ""
        problem = f"broken JSON at {line}column {broken.colno}: {broken.msg}"
    except RecursionError:
        problem = "broken JSON: nested too deeply"
    except ValueError:
        problem = "broken JSON: a number with too many digits"
    raise InputError(problem, file=file)


def opened_records(records: Sequence[dict[str, Any]], file: str | None = None) -> dict[str, list[Any]]:
    """The columns that records make, also of what is in the objects inside them."""
    columns: dict[str, list[Any]] = {}
    for key, cells in _opened_objects(records):
        if columns.setdefault(key, cells) is not cells:
            raise InputError(f"the field '{key}' is there twice: under this name, and inside an object", file=file)
    return columns


def _opened_objects(
    values: Sequence[dict[str, Any] | None], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, list[Any]]]:
    """The fields of objects with their cells, and the fields of objects inside them under dotted names.

    An object stays, and makes a bad row, if it is too deep or if another row holds something else in its place.
    """
    for key in dict.fromkeys(key for value in values if value for key in value):
        inner = [None if value is None else value.get(key) for value in values]
        present = [cell for cell in inner if cell is not None]
        if present and len(path) < _DEEPEST and all(isinstance(cell, dict) for cell in present):
            yield from _opened_objects(inner, (*path, key))
        else:
            yield ".".join((*path, key)), inner


def flat_record(row: object, *, check_unicode: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """One flat record and its metadata: ``transaction`` is opened, and ``facts`` become columns."""
    if not isinstance(row, dict):
        raise InputError(f"expected an object, got {json_type(row)}")
    if check_unicode and not _is_unicode(row):
        raise InputError("expected text that is valid Unicode, got half of a two-part character")
    record = dict(row)
    whole = record.pop("transaction", None) if isinstance(record.get("transaction"), dict) else {}
    inner = {"transaction_id" if key == "id" else key: value for key, value in whole.items()}
    record = inner | record
    metadata = record.pop("metadata", None)
    facts = record.pop("facts", None)
    for field, value in (("metadata", metadata), ("facts", facts)):
        if value is not None and not isinstance(value, dict):
            raise InputError(f"expected an object, got {json_type(value)}", field=field)
    record |= {FACTS + key: value for key, value in (facts or {}).items()}
    return record, metadata or {}


def _is_unicode(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def json_type(value: object) -> str:
    """What JSON calls such a value, in words."""
    names = {dict: "an object", list: "a list", str: "text", bool: "a flag", type(None): "null"}
    return names.get(type(value), "a number")


@dataclass(frozen=True, slots=True, repr=False)
class ReportedOutcome(ShortRepr):
    """An outcome, with its transaction if the row describes it too."""

    outcome: Outcome
    row: int
    """The number of the row in the file."""
    transaction: Transaction | None = None
    remarks: tuple[str, ...] = ()
    """What a person should know about how it was read."""


def check_id(remembered: SchemaMapping, mapping: SchemaMapping, columns: Iterable[str], *, strict: bool) -> list[str]:
    """A warning of rows without an id, if those that the playbook was trained with had one; an error if ``strict``."""
    if not remembered.id or mapping.id:
        return []
    told = f"there is no `{remembered.id}`: {NO_IDS}{nearest(remembered.id, columns)}"
    if strict:
        raise InputError(told, field=remembered.id)
    point_out(told)
    return [told]


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
        found = {role: [free[name] for name in _OUTCOME_NAMES[role] if name in free] for role in _OUTCOME_ROLES}
        return cls({role: fitting[0] for role, fitting in found.items() if fitting})

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
        at = [name for name in columns if plain_name(name) in _OUTCOME_NAMES["at"] and name not in mapping.numbers]
        if at and not mapping.known_at:
            mapping = mapping.model_copy(update={"known_at": at[0]})
        roles = dict(self.roles)
        if "id" in columns and mapping.id != "id":
            roles.setdefault("id", "id")
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
        self, transaction_id: str, *, is_fraud: bool, at: datetime | None, texts: Mapping[str, str | None]
    ) -> tuple[Outcome, list[str]]:
        """The outcome that the texts of these columns describe, and what a person should know about it."""
        said = {role: (texts[column] or "").strip() for role, column in self.roles.items()}
        details = {column: text for column in self.details if (text := (texts[column] or "").strip())}
        remarks = []
        word, author, note = (said.get(role, "") for role in ("source", "author", "note"))
        source = _SOURCES.get(word.lower() or OutcomeSource.LABEL)
        if source is None:
            source, unknown = OutcomeSource.ANALYST, f"{word[:60]!r} is none of {', '.join(_SOURCES)}"
            remarks.append(f"field '{self.roles['source']}': {unknown}; it is taken as the author, an analyst")
            if author:
                details[self.roles["source"]] = word
            author = author or word
        limits = {"author": (author, MAX_AUTHOR), "note": (note, MAX_NOTE)}
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
            note=note[:MAX_NOTE],
            author=author[:MAX_AUTHOR],
            details=cut,
        )
        return outcome, remarks


class RecordReader:
    """Reads transactions and outcomes, one JSON object at a time.

    A whole file shows what its columns hold; one object does not. So what no mapping says is guessed from the first
    object with the same fields, and kept for those that follow.

    >>> RecordReader().transaction('{"id": 7, "amount": 250, "facts": {"vpn": true}}').facts
    {'amount': 250.0, 'vpn': True}
    """

    def __init__(
        self, *, mapping: Path | None = None, remembered: SchemaMapping | None = None, strict: bool = False
    ) -> None:
        """``remembered`` is the mapping that the playbook was trained with. ``strict`` refuses rows without its id."""
        self.remarks: dict[str, None] = {}
        self._strict = strict
        self._given = None if mapping is None else SchemaMapping.load(mapping)
        self._remembered = remembered
        self._history = with_given(self._given, remembered)
        self._layouts: dict[tuple[Purpose, frozenset[str]], SchemaMapping] = {}
        self._adding = Lock()

    def transaction(self, record: JsonObject) -> Transaction:
        """The transaction in a line. A label is not read and never becomes a fact."""
        fields, mapping = self._read(record, "decide")
        hidden = (mapping.label, mapping.known_at)
        fields = {column: cell for column, cell in fields.items() if column not in hidden}
        facts = mapping.facts_by_column(list(fields))
        name = _id(fields, mapping) if mapping.id in fields else None
        transaction = _transaction(name, fields, mapping, facts)
        if transaction is None:
            raise InputError(NO_CONTENT)
        if self._given is None and self._remembered and mapping.id not in fields:
            self.remarks |= dict.fromkeys(check_id(self._remembered, mapping, fields, strict=self._strict))
        return transaction

    def outcome(self, record: JsonObject, number: int) -> ReportedOutcome:
        """The outcome in a line, with its transaction if the line describes it too."""
        given, history = fields_of(record), self._history
        own = OutcomeColumns.of(history, list(given))
        fields, mapping = self._read({column: cell for column, cell in given.items() if column not in own.all}, "learn")
        own, mapping = own.completed(history, mapping, list(fields))
        for role, what in (("label", "label"), ("id", "transaction_id")):
            if getattr(mapping, role) not in fields:
                raise InputError(f"expected a {what}, got the fields {', '.join(fields) or 'of an empty object'}")
        facts = mapping.facts_by_column([column for column in fields if column not in own.all])
        transaction_id = _id(fields, mapping)
        known_at = _time(fields, mapping.known_at, None, like=history.day_order if history else "")
        is_fraud = _label(fields, mapping)
        transaction = _transaction(transaction_id, fields, mapping, facts)
        outcome, remarks = own.outcome(
            transaction_id,
            is_fraud=is_fraud,
            at=time_of(known_at),
            texts={column: plain_cell({**fields, **given}[column]) for column in own.all},
        )
        return ReportedOutcome(outcome, number, transaction, tuple(remarks))

    def _read(self, record: JsonObject, purpose: Purpose) -> tuple[Fields, SchemaMapping]:
        """The fields of a line in plain form, and the mapping completed for them."""
        given = (self._history if purpose == "learn" else self._given or self._remembered) or SchemaMapping()
        fields = fields_of(record)
        if any(isinstance(cell, list) for cell in fields.values()):
            fields = _row_of(with_lists_as_facts(_table(fields), given))
        mapping = self._mapping_for(fields, purpose)
        if mapping.clock or mapping.marked:
            fields = _row_of(with_whole_cells(_table(fields), mapping))
        written_out = any(isinstance(cell, str) and _WRITTEN_OUT.fullmatch(cell) for cell in fields.values())
        if mapping.decimal == "," or mapping.decimal_commas or written_out:
            plain, _ = with_plain_numbers(_table(fields), given)
            _raise_first((column, message) for column, cells in plain.unfit.items() for _, message in cells)
            fields = _row_of(plain)
        return fields, mapping

    def _mapping_for(self, fields: Fields, purpose: Purpose) -> SchemaMapping:
        key = purpose, frozenset(map(_guessed_by, fields))
        if (known := self._layouts.get(key)) is not None:
            return known
        _, mapping = prepare(_table(fields), self._given, self._remembered, purpose)
        if purpose == "learn" and not mapping.label:
            return mapping  # the next one may say more
        with self._adding:  # threads may share a reader
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.pop(next(iter(self._layouts)))
            return self._layouts.setdefault(key, mapping)


def _guessed_by(column: str) -> str:
    """What a guess looks at: an object's own facts need none, unless their names are dotted."""
    return FACTS if column.startswith(FACTS) and "." not in column.removeprefix(FACTS) else column


def _table(fields: Fields) -> Table:
    columns = {column: json_column(column, [cell]) for column, cell in fields.items()}
    return Table("line", columns, (1,), typed=True, open_ended=True)


def _row_of(table: Table) -> Fields:
    return {column: cells[0] for column, cells in table.columns.items()}


def _id(fields: Fields, mapping: SchemaMapping) -> str:
    text = plain_cell(fields[mapping.id or ""])
    _raise_first([(mapping.id, wrong_id(text))])
    return text or ""


def _label(fields: Fields, mapping: SchemaMapping) -> bool:
    text = plain_cell(fields[mapping.label or ""])
    reader = LabelReader(mapping.fraud_values, mapping.legit_values)
    is_fraud = reader(text)
    if is_fraud is None:
        raise InputError("there is no label yet" if is_null_word(text) else reader.expected(text), field=mapping.label)
    return is_fraud


def _transaction(
    transaction_id: str | None, fields: Fields, mapping: SchemaMapping, names: Mapping[str, str]
) -> Transaction | None:
    """The transaction that a row describes, its facts named by ``names``; None if it has neither a fact nor a text.

    Without an id it gets one made from its content.
    """
    time = _time(fields, mapping.time, mapping.time_format, like=mapping.day_order)
    if (parts := mapping.time_parts) and parts.are_in(fields):
        times, wrong = read_time_parts({column: [cell] for column, cell in fields.items()}, parts)
        _raise_first((column, message) for column, cells in wrong for _, message in cells)
        time = int(times[0])
    text = fields.get(mapping.text or "")
    _raise_first([(mapping.text, wrong_text(text))])
    facts = {**_facts(fields, mapping, names), **_elapsed(fields, mapping)}
    entities = _entities(fields, mapping, names)
    if not facts and not (text or "").strip():
        return None
    if transaction_id is None:
        columns = columns_of((name, [value]) for name, value in facts.items())
        words = {column: coded([word]) for column, word in entities.items()}
        (transaction_id,) = ids_of(content_hashes(columns, np.array([time]), [text or ""], words))
    made = with_own_time_facts(
        construct_unchecked(  # every cell has been checked
            Transaction, id=transaction_id, time=time_of(time), facts=facts, text=text or "", entities=entities
        ),
        mapping.time_facts or (),
    )
    return made.model_copy(update={"facts": dict(sorted(made.facts.items()))})


def _time(fields: Fields, column: str | None, time_format: str | None, *, like: str = "") -> int:
    text = plain_cell(fields.get(column or ""))
    if text is None:
        return UNKNOWN
    if time_format in (None, ISO) and (found := from_iso(text)) is not None:
        return micros_of(found)
    times = read_times([text], time_format, like=like)
    _raise_first((column, message) for _, message in times.bad)
    return int(times.values[0])


def _facts(fields: Fields, mapping: SchemaMapping, names: Mapping[str, str]) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    for column, fact in names.items():
        cell = fields[column]
        if cell is None:
            continue
        try:
            value = read_cell(cell, declared_kind(mapping, column) or kind_of_cell(cell, fact))
        except ValueError as unfit:
            raise InputError(str(unfit), field=column) from None
        if problem := too_long(value):
            raise InputError(problem, field=column)
        if value is not None:
            facts[fact] = value
    return facts


def _elapsed(fields: Fields, mapping: SchemaMapping) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    for fact, elapsed, read in read_elapsed({column: [cell] for column, cell in fields.items()}, mapping):
        _raise_first((column, message) for column, times in read.items() for _, message in times.bad)
        if elapsed[0] == elapsed[0]:  # not NaN
            facts[fact] = float(elapsed[0])
    return facts


def _entities(fields: Fields, mapping: SchemaMapping, facts: Mapping[str, str]) -> dict[str, str]:
    """Who and what took part; as in a file, also places and categories that are no facts."""
    history = mapping.history
    if history is None or not history.entities:
        return {}
    entities: dict[str, str] = {}
    for _, column in history.named_columns():
        text = plain_cell(fields.get(column))
        if text is None or (column in facts and column not in history.entities):
            continue
        _raise_first([(column, too_long(text))])
        entities[column] = text
    return entities


def _raise_first(problems: Iterable[tuple[str | None, str | None]]) -> None:
    """An error for the first column with which something is wrong."""
    for column, message in problems:
        if message:
            raise InputError(message, field=column)
