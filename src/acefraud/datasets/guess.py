"""A first mapping for a file that has none: columns are recognised by their names and by what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from acefraud.core.arrays import IntArray
from acefraud.core.fact_names import NAMED_FACTS, words_for
from acefraud.core.timestamps import UNKNOWN
from acefraud.datasets.columns import plain_texts
from acefraud.datasets.labels import USUAL_WORDS, LabelReader
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.table import FACTS, Column
from acefraud.datasets.times import look_like_times, read_time_parts, read_times
from acefraud.facts.history.plan import HOUR, HistoryPlan, entity_name, read_duration

_HEAD = 2000
"""Rows to look at where a sample is enough."""
_REPEATS = 0.05
"""Share of rows with an id that other rows have too, from which the id counts as an entity. A few frequent entities are
enough; a mean of rows per id would miss them."""
_MOST_ENTITIES = 4
_MOST_DELAY = 0.1
"""The longest delay of labels that is guessed, as a share of the time that the file spans."""
ANOTHER_TIME = "another time"
"""Why a date beside the time of the transaction is no fact itself."""

_ENTITY = re.compile(
    r"(?:^|_)(?:id|uuid|guid|iban|e_?mail|ip|ip_address)$"
    r"|(?:^|_)(?:card|cc|account|acct|policy|phone|iban|passport|ssn)_?(?:number|num|no|nr|hash)$"
)
_LEAK = re.compile(r"fraud|label|chargeback|chargedback|cbk")
_SUM = re.compile(r"^(?:amount|amt|value)_|_(?:amount|amt)$")


def plain_name(column: str) -> str:
    """A name without case and punctuation, so that ``isFraud`` and ``is_fraud`` are the same.

    >>> plain_name("TX_Fraud"), plain_name("FraudFound_P")
    ('txfraud', 'fraudfoundp')
    """
    return re.sub(r"[^0-9a-z]+", "", column.lower())


_USUAL_NAMES = {role: tuple(map(plain_name, names)) for role, names in USUAL_WORDS["roles"].items()}


def guess_mapping(
    columns: Sequence[str],
    sample: Mapping[str, Column] | None = None,
    *,
    given: SchemaMapping | None = None,
    need_label: bool = True,
) -> SchemaMapping:
    """Complete a mapping by the usual names and, given a sample, by what the columns hold.

    What is given stays. A column that is listed as known, or whose kind is given, is kept even if it looks like an
    id. ``why`` gives the reason for each ignored column. Ids that repeat become entities with a history.

    >>> guessed = guess_mapping(["TX_ID", "TX_DATETIME", "CUSTOMER_ID", "TX_AMOUNT", "TX_FRAUD", "TX_FRAUD_SCENARIO"])
    >>> guessed.id, guessed.time, guessed.amount, guessed.label
    ('TX_ID', 'TX_DATETIME', 'TX_AMOUNT', 'TX_FRAUD')
    >>> guessed.ignore
    ('CUSTOMER_ID', 'TX_FRAUD_SCENARIO')
    """
    given = given or SchemaMapping()
    sample = sample or {}
    found = given.model_copy(update=_guess_roles(columns, sample, given, need_label=need_label))
    if given.history is None:
        found = found.model_copy(update={"history": _guess_history(columns, sample, found)})
    entities = [column for column in found.entities if column in columns and column not in found.categories]
    if given.ignore is not None:
        return found.model_copy(update={"ignore": tuple(dict.fromkeys([*given.ignore, *entities]))})
    why = dict(_ignored(columns, sample, found))
    for column in entities:
        name = found.history.name_of(column) if found.history else column
        why[column] = f"an id that repeats: the history of each {name} becomes facts"
    ignore = tuple(column for column in columns if column in why)
    return found.model_copy(update={"ignore": ignore, "why": {**given.why, **why}})


def _guess_history(columns: Sequence[str], sample: Mapping[str, Column], found: SchemaMapping) -> HistoryPlan | None:
    """Ids that repeat are entities with a history, if there is a time to order them."""
    if not found.has_time:
        return None
    entities: dict[str, str] = {}
    for column in _free_columns(columns, found):
        if names_an_entity(column) and not names_a_label(column) and _repeats(sample.get(column)):
            entities.setdefault(entity_name(column), column)
    if not entities:
        return None
    places = {
        key: next((one for one in columns if plain_name(one) in names), "")
        for key, names in USUAL_WORDS["places"].items()
    }
    delay = guess_label_delay(found.label or "", sample.get(found.label or ""), _span(sample, found))
    return HistoryPlan(
        entities=tuple(entities.values())[:_MOST_ENTITIES],
        label_delay=delay,
        **(places if all(places.values()) else {}),
    )


def guess_label_delay(label: str, cells: Column | None, span: int) -> str:
    """How late labels are by the name of their column and by its values, but at most a tenth of the ``span`` in time.

    >>> guess_label_delay("has_cbk", None, 9000 * HOUR), guess_label_delay("is_fraud", None, 480 * HOUR)
    ('28d', '48h')
    """
    values = {text for text in plain_texts(cells[:_HEAD]) if text} if cells is not None else set()
    names = [plain_name(label), *map(plain_name, values)]
    delay = next(
        delay
        for delay, words in USUAL_WORDS["label_delays"].items()
        if any(word in name for word in words for name in names)
    )
    most = int(_MOST_DELAY * span / HOUR)
    return delay if read_duration(delay) <= most * HOUR else f"{most}h"


def _repeats(column: Column | None) -> bool:
    """Whether values of a column repeat, but are not all the same."""
    if column is None or (isinstance(column, pl.Series) and column.dtype.is_nested()):
        return False
    present = (pl.Series(plain_texts(column)) if isinstance(column, list) else column).drop_nulls()
    return present.n_unique() > 1 and int(present.is_duplicated().sum()) >= _REPEATS * len(present)


def _listed(mapping: SchemaMapping) -> set[str]:
    """Columns that the mapping names as facts."""
    return {*mapping.known, *mapping.numbers, *mapping.flags, *mapping.categories, *mapping.rename}


def _free_columns(columns: Sequence[str], mapping: SchemaMapping) -> list[str]:
    """Columns without a role that the mapping does not name as facts."""
    used = {column for _, column in mapping.roles()} | _listed(mapping)
    return [column for column in columns if column not in used and not column.startswith(FACTS)]


def _guess_roles(
    columns: Sequence[str], sample: Mapping[str, Column], given: SchemaMapping, *, need_label: bool
) -> dict[str, str]:
    taken = {column for _, column in given.roles()} | _listed(given) | set(given.ignore or ())
    times = {column for _, column in given.named_times()}
    roles: dict[str, str] = {}
    for role, names in _USUAL_NAMES.items():
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
            fitting = (
                fitting
                or named
                or [c for c in free if "fraud" in plain_name(c) and c in sample and _share_of_labels(sample[c]) == 1.0]
            )
        if role == "time":
            fitting = fitting or [c for c in free if c in sample and _holds_times(sample[c])]
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


def _holds_times(column: Column) -> bool:
    """Whether a column of any name holds dates and times. Numbers do not count: they may be anything."""
    if isinstance(column, list) or not (column.dtype == pl.String or column.dtype.is_temporal()):
        return False
    return look_like_times(column)


def _share_of_labels(column: Column) -> float:
    reader = LabelReader()
    texts = [text for text in plain_texts(column[:_HEAD]) if text is not None]
    return sum(reader(text) is not None for text in texts) / len(texts) if texts else 1.0


def _ignored(columns: Sequence[str], sample: Mapping[str, Column], found: SchemaMapping) -> Iterator[tuple[str, str]]:
    """The columns that should not become facts, each with the reason."""
    order = _time_order(sample, found)
    for column in _free_columns(columns, found):
        cells = sample.get(column)
        if plain_name(column) == "metadata":
            yield column, "metadata never becomes facts"
        elif found.label and names_a_label(column):
            yield column, "looks like another name for the label: it would leak the answer"
        elif names_an_entity(column):
            yield column, "an id: a rule about it would not generalise"
        elif not isinstance(cells, pl.Series) or cells.dtype.is_nested():
            continue
        elif cells.dtype.is_temporal() or (cells.dtype == pl.String and _is_worded_time(cells)):
            yield column, ANOTHER_TIME
        elif _one_value_per_row(cells):
            yield column, "a different value in nearly every row"
        elif order is not None and _grows_with_time(cells, order):
            yield column, "grows with time: a rule about it would be about the calendar"


def _one_value_per_row(cells: pl.Series) -> bool:
    """Measurements differ in every row too, so of numbers only whole ones count, and only with at least 100 rows."""
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


def _times(sample: Mapping[str, Column], found: SchemaMapping) -> IntArray:
    """The times of cells from all over the file."""
    column = sample.get(found.time or "")
    if found.time_parts and found.time_parts.are_in(sample):
        columns = {name: thinned(sample[name]) for _, name in found.time_parts.named_columns()}
        return read_time_parts(columns, found.time_parts)[0]
    if column is not None:
        return read_times(thinned(column), found.time_format).values
    return np.empty(0, dtype=np.int64)


def _span(sample: Mapping[str, Column], found: SchemaMapping) -> int:
    """The time from the first to the last of these cells; 0 if none can be read."""
    times = _times(sample, found)
    times = times[times != UNKNOWN]
    return int(times.max() - times.min()) if len(times) else 0


def _time_order(sample: Mapping[str, Column], found: SchemaMapping) -> pl.Series | None:
    """The order in time of cells from all over the file; None if it cannot be told."""
    times = _times(sample, found)
    told = len(times) >= 20 and not (times == UNKNOWN).any() and bool((times != times[0]).any())
    return pl.Series(times).arg_sort() if told else None


def _grows_with_time(cells: pl.Series, order: pl.Series) -> bool:
    """Whether a column only counts up with time, such as the number of the day."""
    figures = cells[:: _step(cells)].cast(pl.Float64, strict=False)
    return not figures.has_nulls() and figures.n_unique() > 1 and figures.gather(order).is_sorted()


def thinned(column: Column) -> Column:
    """Cells from all over a column."""
    return column[:: _step(column)]


def _step(column: Column) -> int:
    return max(1, len(column) // _HEAD)


def names_an_entity(column: str) -> bool:
    """Whether the name of a column says that it holds ids of entities.

    >>> names_an_entity("customer_id"), names_an_entity("CustomerID"), names_an_entity("paid")
    (True, True, False)
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return _ENTITY.search(re.sub(r"[\s.-]+", "_", snake).lower()) is not None


def names_an_amount(column: str) -> bool:
    """Whether the name of a column says that it is an amount.

    >>> names_an_amount("value_brl"), names_an_amount("usual_amount"), names_an_amount("amount_to_usual")
    (True, False, False)
    """
    return words_for(column.lower()) is None and _SUM.search(column.lower()) is not None


def names_a_label(column: str) -> bool:
    """Whether a column looks like another name for the label. Facts that the engine knows by name never do.

    >>> names_a_label("TX_FRAUD_SCENARIO"), names_a_label("fraud_reports")
    (True, False)
    """
    return column.lower() not in NAMED_FACTS and _LEAK.search(plain_name(column)) is not None
