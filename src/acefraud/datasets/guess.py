"""A first mapping for a file that nobody has described yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from acefraud.core.timestamps import UNKNOWN, Micros
from acefraud.datasets.labels import LabelReader, plain_texts
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.names import (
    PLACES,
    USUAL_NAMES,
    names_a_label,
    names_an_amount,
    names_an_entity,
    plain_name,
)
from acefraud.datasets.table import FACTS, Column
from acefraud.datasets.time_parts import read_time_parts
from acefraud.datasets.times import look_like_times, read_times
from acefraud.history.plan import HistoryPlan, entity_name

_HEAD = 2000
"""Rows that are looked at where a sample tells enough."""
_REPEATS = 0.05
"""Share of rows with a value that others have too, from which an id tells of those who come again. Few who come often
are enough: a mean of rows per value would miss them."""
_MOST_ENTITIES = 4


def guess_mapping(
    columns: Sequence[str],
    sample: Mapping[str, Column] | None = None,
    *,
    given: SchemaMapping | None = None,
    need_label: bool = True,
) -> SchemaMapping:
    """Complete a mapping by the usual names and, where there is a sample, by what the columns hold.

    What is given stays. A column that is listed as known, or whose kind is given, is kept even if it looks like an
    id; ``why`` says of each ignored column what gave it away. Ids that come again become entities with a history.

    >>> guessed = guess_mapping(["TX_ID", "TX_DATETIME", "CUSTOMER_ID", "TX_AMOUNT", "TX_FRAUD", "TX_FRAUD_SCENARIO"])
    >>> guessed.id, guessed.time, guessed.amount, guessed.label
    ('TX_ID', 'TX_DATETIME', 'TX_AMOUNT', 'TX_FRAUD')
    >>> guessed.ignore
    ('CUSTOMER_ID', 'TX_FRAUD_SCENARIO')
    """
    given = given or SchemaMapping()
    sample = sample or {}
    roles = _guess_roles(columns, sample, given, need_label=need_label)
    found = given.model_copy(update=roles)
    if given.history is None:
        found = found.model_copy(update={"history": _guess_history(columns, sample, found)})
    remembered = {column: _remembered_as(found.history, column) for column in found.entities if column in columns}
    if given.ignore is not None:
        return found.model_copy(update={"ignore": tuple(dict.fromkeys([*given.ignore, *remembered]))})
    why = {**dict(_ignored(columns, sample, found)), **remembered}
    ignore = tuple(column for column in columns if column in why)
    return found.model_copy(update={"ignore": ignore, "why": {**given.why, **why}})


def _remembered_as(history: HistoryPlan | None, column: str) -> str:
    name = history.name_of(column) if history else column
    return f"an id that comes again: what is remembered of each {name} becomes facts"


def _guess_history(columns: Sequence[str], sample: Mapping[str, Column], found: SchemaMapping) -> HistoryPlan | None:
    """Ids that come again are remembered, where the time says what was before what."""
    if not found.has_time:
        return None
    parts = {column for _, column in found.roles()} | _listed(found)
    free = [column for column in columns if column not in parts and not column.startswith(FACTS)]
    entities: dict[str, str] = {}
    for column in free:
        if names_an_entity(column) and not names_a_label(column) and _comes_again(sample.get(column)):
            entities.setdefault(entity_name(column), column)
    if not entities:
        return None
    places = {key: next((one for one in columns if plain_name(one) in names), "") for key, names in PLACES.items()}
    return HistoryPlan(entities=tuple(entities.values())[:_MOST_ENTITIES], **(places if all(places.values()) else {}))


def _comes_again(column: Column | None) -> bool:
    """Whether values of a column repeat, but are not one and the same."""
    if column is None or (isinstance(column, pl.Series) and column.dtype.is_nested()):
        return False
    there = pl.Series(plain_texts(column)) if isinstance(column, list) else column
    there = there.drop_nulls()
    return there.n_unique() > 1 and int(there.is_duplicated().sum()) >= _REPEATS * len(there)


def _listed(mapping: SchemaMapping) -> set[str]:
    """Columns that somebody meant to have as facts."""
    return {*mapping.known, *mapping.numbers, *mapping.flags, *mapping.categories, *mapping.rename}


def _guess_roles(
    columns: Sequence[str], sample: Mapping[str, Column], given: SchemaMapping, *, need_label: bool
) -> dict[str, str]:
    taken = {column for _, column in given.roles()} | _listed(given) | set(given.ignore or ())
    times = {column for _, column in given.named_times()}
    roles: dict[str, str] = {}
    for role, names in USUAL_NAMES.items():
        if getattr(given, role) is not None:
            continue
        if role == "time" and given.time_parts:
            roles[role] = ""
            continue
        others = taken if role == "time" else taken | times | (set(given.sensitive) if role == "text" else set())
        free = [column for column in columns if column not in others and not column.startswith(FACTS)]
        named = sorted((c for c in free if plain_name(c) in names), key=lambda c: names.index(plain_name(c)))
        fitting = [column for column in named if column not in sample or _fits(role, sample[column])]
        if role == "label" and need_label:
            fitting = fitting or named or [c for c in free if "fraud" in plain_name(c) and _two_valued(sample.get(c))]
        if role == "time":
            fitting = fitting or [c for c in free if c in sample and _is_of_times(sample[c])]
        if role == "amount":
            fitting = fitting or [c for c in free if names_an_amount(c)]
        if role == "difficulty" and not roles.get("text"):
            fitting = []
        roles[role] = fitting[0] if fitting else ""
        taken.add(roles[role])
    return roles


def _fits(role: str, column: Column) -> bool:
    match role:
        case "label":
            return _share_of_labels(column) >= 0.5
        case "time" | "known_at":
            return look_like_times(column, at_least=0.5)
        case "text" | "difficulty":
            return isinstance(column, list) or column.dtype == pl.String
    return True


def _is_of_times(column: Column) -> bool:
    """Whether a column holds dates and times, whatever it is called. Numbers do not count: they may be anything."""
    if isinstance(column, list) or not (column.dtype == pl.String or column.dtype.is_temporal()):
        return False
    return look_like_times(column, at_least=0.95)


def _share_of_labels(column: Column) -> float:
    reader = LabelReader()
    texts = [text for text in plain_texts(column[:_HEAD]) if text is not None]
    return sum(reader(text) is not None for text in texts) / len(texts) if texts else 1.0


def _two_valued(column: Column | None) -> bool:
    return column is not None and _share_of_labels(column) == 1.0


def _ignored(columns: Sequence[str], sample: Mapping[str, Column], found: SchemaMapping) -> Iterable[tuple[str, str]]:
    parts = {column for _, column in found.roles()} | _listed(found)
    clock = _Clock(_some_times(sample, found))
    for column in columns:
        if column in parts or column.startswith(FACTS):
            continue
        reason = _reason(column, sample.get(column), clock, has_label=bool(found.label))
        if reason:
            yield column, reason


def _reason(column: str, cells: Column | None, clock: _Clock, *, has_label: bool) -> str | None:
    if plain_name(column) == "metadata":
        return "metadata never becomes facts"
    if has_label and names_a_label(column):
        return "sounds like the label in other words: it would leak the answer"
    if names_an_entity(column):
        return "an id: a rule about it would be learnt by heart"
    if not isinstance(cells, pl.Series) or cells.dtype.is_nested():
        return None
    return _reason_in_cells(cells, clock)


def _reason_in_cells(cells: pl.Series, clock: _Clock) -> str | None:
    if _one_value_per_row(cells):
        return "a different value in nearly every row"
    if cells.dtype.is_temporal() or (cells.dtype == pl.String and _is_worded_time(cells)):
        return "another time"
    return "counts on with the time: a rule about it would be about the calendar" if clock.goes_with(cells) else None


def _one_value_per_row(cells: pl.Series) -> bool:
    """Measurements differ in every row too, so of numbers only whole ones count, and only in a fair number of rows."""
    present = cells.drop_nulls()
    if len(present) < 20 or present.dtype.is_float():
        return False
    distinct = present.n_unique()
    if present.dtype == pl.String and present.cast(pl.Float64, strict=False).null_count() < 0.05 * len(present):
        present = present.cast(pl.Int64, strict=False)
    if present.dtype.is_integer():
        return len(present) >= 100 and not present.has_nulls() and distinct == len(present)
    return present.dtype == pl.String and distinct >= 0.9 * len(present)


def _is_worded_time(cells: pl.Series) -> bool:
    head = cells.drop_nulls().head(50)
    if not head.str.contains(r"\d.*\d").all():
        return False
    return len(head) > 0 and head.cast(pl.Float64, strict=False).has_nulls() and look_like_times(head)


def _some_times(sample: Mapping[str, Column], found: SchemaMapping) -> Micros:
    """Times from all over the file; none where nobody says what they are."""
    if found.time_parts and found.time_parts.are_in(sample):
        columns = {name: _spread(sample[name]) for _, name in found.time_parts.named_columns()}
        return read_time_parts(columns, found.time_parts)[0]
    column = sample.get(found.time or "")
    return np.empty(0, dtype=np.int64) if column is None else read_times(_spread(column)).values


class _Clock:
    """Tells columns that only count on with the time, such as the number of the day."""

    def __init__(self, times: Micros) -> None:
        self._order: pl.Series | None = None
        if len(times) >= 20 and not (times == UNKNOWN).any() and (times != times[0]).any():
            self._order = pl.Series(times).arg_sort()

    def goes_with(self, cells: pl.Series) -> bool:
        if self._order is None:
            return False
        figures = cells[:: _step(cells)].cast(pl.Float64, strict=False)
        return not figures.has_nulls() and figures.n_unique() > 1 and figures.gather(self._order).is_sorted()


def _step(column: Column) -> int:
    return max(1, len(column) // _HEAD)


def _spread(column: Column) -> Column:
    """Cells from all over a column."""
    return column[:: _step(column)]
