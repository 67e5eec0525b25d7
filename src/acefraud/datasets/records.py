"""JSON objects read one at a time, each as a file with this one row would be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from acefraud.core.transaction import FactValue, Transaction
from acefraud.datasets.assembly import NO_CONTENT, content_id, wrong_id, wrong_text
from acefraud.datasets.cells import kind_of_cell, read_cell, too_long
from acefraud.datasets.columns import LabelReader, is_null_word, json_column, plain_cell
from acefraud.datasets.files import fields_of, read_record
from acefraud.datasets.mapping import SchemaMapping, declared_kind, load_mapping, with_given
from acefraud.datasets.plain_cells import with_lists_as_facts, with_plain_numbers, with_whole_cells
from acefraud.datasets.preparation import prepare
from acefraud.datasets.rows import OutcomeColumns, ReportedOutcome, check_id
from acefraud.datasets.table import FACTS, Purpose, Table
from acefraud.datasets.times import ISO, from_iso, read_elapsed, read_time_parts, read_times
from acefraud.errors import InputError
from acefraud.facts.time_facts import with_own_time_facts
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
        self._given = None if mapping is None else load_mapping(mapping)
        self._remembered = remembered
        self._history = with_given(self._given, remembered)
        self._layouts: dict[tuple[Purpose, frozenset[str]], SchemaMapping] = {}
        self._adding = Lock()

    def transaction(self, record: JsonObject) -> Transaction:
        """The transaction in a line. A label is not read and never becomes a fact."""
        fields, mapping, written = self._read(record, "decide")
        hidden = (mapping.label, mapping.known_at)
        fields = {column: cell for column, cell in fields.items() if column not in hidden}
        facts = mapping.facts_by_column(list(fields))
        name = _id(fields, mapping) if mapping.id in fields else content_id([written[column] for column in fields])
        transaction = _transaction(name, fields, mapping, facts)
        if transaction is None:
            raise InputError(NO_CONTENT)
        if self._given is None and self._remembered and mapping.id not in fields:
            self.remarks |= dict.fromkeys(check_id(self._remembered, mapping, fields, strict=self._strict))
        return transaction

    def outcome(self, record: JsonObject, number: int) -> ReportedOutcome:
        """The outcome in a line, with its transaction if the line describes it too."""
        given, history = _fields(record), self._history
        own = OutcomeColumns.of(history, list(given))
        fields, mapping, _ = self._read(
            {column: cell for column, cell in given.items() if column not in own.all}, "learn"
        )
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

    def _read(self, record: JsonObject, purpose: Purpose) -> tuple[Fields, SchemaMapping, Fields]:
        """The fields of a line in plain form, the mapping completed for them, and the fields as they are written."""
        given = (self._history if purpose == "learn" else self._given or self._remembered) or SchemaMapping()
        fields = _fields(record)
        if any(isinstance(cell, list) for cell in fields.values()):
            fields = _row_of(with_lists_as_facts(_table({key: [cell] for key, cell in fields.items()}), given))
        mapping, written = self._mapping_for(fields, purpose), fields
        if mapping.clock or mapping.marked:
            fields = _row_of(with_whole_cells(_typed_table(fields), mapping))
        written_out = any(isinstance(cell, str) and _WRITTEN_OUT.fullmatch(cell) for cell in fields.values())
        if mapping.decimal == "," or mapping.decimal_commas or written_out:
            plain, _ = with_plain_numbers(_typed_table(fields), given)
            _raise_first((column, message) for column, cells in plain.unfit.items() for _, message in cells)
            fields = _row_of(plain)
        return fields, mapping, written

    def _mapping_for(self, fields: Fields, purpose: Purpose) -> SchemaMapping:
        key = purpose, frozenset(map(_guessed_by, fields))
        if (known := self._layouts.get(key)) is not None:
            return known
        _, mapping = prepare(_typed_table(fields), self._given, self._remembered, purpose)
        if purpose == "learn" and not mapping.label:
            return mapping  # the next one may say more
        with self._adding:  # threads may share a reader
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.pop(next(iter(self._layouts)))
            return self._layouts.setdefault(key, mapping)


def _fields(record: JsonObject) -> Fields:
    return read_record(record) if isinstance(record, str) else fields_of(record)


def _guessed_by(column: str) -> str:
    """What a guess looks at: an object's own facts need none, unless their names are dotted."""
    return FACTS if column.startswith(FACTS) and "." not in column.removeprefix(FACTS) else column


def _table(columns: Mapping[str, Any]) -> Table:
    return Table("line", dict(columns), (1,), typed=True, open_ended=True)


def _typed_table(fields: Fields) -> Table:
    return _table({column: json_column(column, [cell]) for column, cell in fields.items()})


def _row_of(table: Table) -> Fields:
    return {column: cells[0] for column, cells in table.columns.items()}


def _id(fields: Fields, mapping: SchemaMapping) -> str:
    text = plain_cell(fields[mapping.id or ""])
    if problem := wrong_id(text):
        raise InputError(problem, field=mapping.id)
    return text or ""


def _label(fields: Fields, mapping: SchemaMapping) -> bool:
    text = plain_cell(fields[mapping.label or ""])
    reader = LabelReader(mapping.fraud_values, mapping.legit_values)
    is_fraud = reader(text)
    if is_fraud is None:
        raise InputError("there is no label yet" if is_null_word(text) else reader.expected(text), field=mapping.label)
    return is_fraud


def _transaction(
    transaction_id: str, fields: Fields, mapping: SchemaMapping, names: Mapping[str, str]
) -> Transaction | None:
    """The transaction that a row describes, its facts named by ``names``; None if it has neither a fact nor a text."""
    time = _time(fields, mapping.time, mapping.time_format, like=mapping.day_order)
    if (parts := mapping.time_parts) and parts.are_in(fields):
        times, wrong = read_time_parts({column: [cell] for column, cell in fields.items()}, parts)
        _raise_first((column, message) for column, cells in wrong for _, message in cells)
        time = int(times[0])
    text = fields.get(mapping.text or "")
    if problem := wrong_text(text):
        raise InputError(problem, field=mapping.text)
    facts = {**_facts(fields, mapping, names), **_elapsed(fields, mapping)}
    entities = _entities(fields, mapping, names)
    if not facts and not (text or "").strip():
        return None
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
        if problem := too_long(text):
            raise InputError(problem, field=column)
        entities[column] = text
    return entities


def _raise_first(problems: Iterator[tuple[str | None, str]]) -> None:
    for column, message in problems:
        raise InputError(message, field=column)
