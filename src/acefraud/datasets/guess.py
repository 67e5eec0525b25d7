"""A first mapping for a file that has none: columns are recognised by their names and by what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from acefraud.core.fact_names import NAMED_FACTS, words_for
from acefraud.datasets.columns import (
    USUAL_WORDS,
    LabelReader,
    folded,
    name_parts,
    names_a_transaction,
    names_an_entity,
    names_an_id,
    plain_name,
    plain_text,
    plain_texts,
    read_labels,
    unknown_words,
)
from acefraud.datasets.leaks import FEWEST_EACH, LEAK, likely_leaks, names_what_comes_after
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.plain_cells import MARKS, holds_clocks, holds_days, holds_marks
from acefraud.datasets.table import FACTS, Column, Purpose
from acefraud.datasets.times import look_like_times, read_time_parts, read_times
from acefraud.facts.history.plan import DAY, HOUR, HistoryPlan, entity_name, read_duration
from acefraud.facts.text import read_facts
from acefraud.support.arrays import IntArray
from acefraud.support.timestamps import UNKNOWN

_HEAD = 2000
"""Rows to look at where a sample is enough."""
_REPEATS = 0.05
"""Share of rows with an id that other rows have too, from which the id counts as an entity. A few frequent entities are
enough; a mean of rows per id would miss them."""
_MOST_ENTITIES = 4
_FEWEST_IDS = 10
_MANY_VALUES = 50
_MOST_DELAY = 0.1
"""The longest delay of labels that is guessed, as a share of the time that the file spans."""
_FEWEST_IN_ORDER, _SORTED = 20, 0.99
_OTHER_DAYS, _LAST_DAYS = (frozenset(map(folded, USUAL_WORDS["other_days"][key])) for key in ("words", "last"))
_FEWEST_SENTENCES, _DISTINCT, _WORDS = 20, 0.1, 4
_TEXTS_READ = 300
"""How many texts are read for facts."""
_TELLING = 0.02
"""Share of the texts that must state a fact the engine knows: a text without any would teach nothing."""
NO_IDS = "ids are made from the content, and no later outcome can name them"
AN_ID = "an id: a rule about it would not generalise"
ANOTHER_TIME = "another time"
"""Why a date beside the time of the transaction is no fact itself."""
ANOTHER_LABEL = "looks like another name for the label: it would leak the answer"
ONE_VALUE = "no row has a value, or all have the same"
SENTENCES = "free text"
ONE_EACH = "a different value in nearly every row"
HARDLY_REPEATS = "its many values hardly repeat: a rule about them would not generalise"

_FRAUD = re.compile("fraud|betrug|frode|estafa|missbrauch")
_LABEL = re.compile(r"fraud|betrug|frode|estafa|label|chargeback|chargedback|cbk")
_LATER = "by its name it comes after the fact, and its dates are not before the transaction"
_SUM = re.compile(r"^(?:amount|amt|value)_|_(?:amount|amt)$")


_USUAL_NAMES = {role: tuple(map(plain_name, names)) for role, names in USUAL_WORDS["roles"].items()}


def guess_mapping(
    columns: Sequence[str],
    sample: Mapping[str, Column] | None = None,
    *,
    given: SchemaMapping | None = None,
    purpose: Purpose = "train",
    labels_apart: bool = False,
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
    found = given.model_copy(update=_guess_roles(columns, sample, given, purpose))
    labels, _ = read_labels(sample.get(found.label or "", []), LabelReader(found.fraud_values, found.legit_values))
    unsettled = _unsettled(sample, found)
    leaks = likely_leaks(unsettled, labels, by_name=not labels_apart)
    if labels_apart:
        sure = likely_leaks({name: sample[name] for name in leaks}, labels, flawless=True)
    else:
        later = {name: _LATER for name, cells in unsettled.items() if _comes_after(name, cells, sample, found)}
        sure = leaks = later | leaks
    leaks = {column: LEAK + why for column, why in leaks.items()}
    if given.text is None and not found.text and purpose == "train":
        texts = (column for column in unsettled if column not in {*leaks, *_listed(found), *found.sensitive})
        found = found.model_copy(update={"text": next((one for one in texts if states_facts(sample[one])), "")})
    free = [column for column in columns if column not in sure]
    if given.history is None:
        found = found.model_copy(update={"history": _guess_history(free, sample, found)})
    entities = [column for column in found.entities if column in columns and column not in found.categories]
    kept = _listed(found)
    if given.ignore is not None:
        leaving = [*given.ignore, *entities, *(column for column in sure if column not in kept)]
        return found.model_copy(update={"ignore": tuple(dict.fromkeys(leaving)), "why": {**given.why, **leaks}})
    judged = labels_apart or min(int((labels == 0).sum()), int((labels == 1).sum())) >= FEWEST_EACH
    why = {**{column: leaks[column] for column in sure}, **dict(_ignored(free, sample, found, judged=judged))}
    for column in entities:
        name = found.history.name_of(column) if found.history else column
        why[column] = f"an id that repeats: the history of each {name} becomes facts"
    ignore = tuple(column for column in columns if column in why and column not in kept)
    return found.model_copy(update={"ignore": ignore, "why": {**given.why, **leaks, **why}})


def _unsettled(sample: Mapping[str, Column], found: SchemaMapping) -> dict[str, Column]:
    """The columns that may become facts. What a row's own ``facts`` object holds is meant to."""
    settled = {column for _, column in (*found.roles(), *found.named_times())}
    settled |= {*(found.ignore or ()), *(found.entities if found.history else ())}
    return {name: cells for name, cells in sample.items() if name not in settled and not name.startswith(FACTS)}


def _comes_after(column: str, cells: Column, sample: Mapping[str, Column], found: SchemaMapping) -> bool:
    """Whether a column holds dates that are after the fact, by its name and because most are not before the day."""
    if not found.label or not names_what_comes_after(column) or not _holds_times(cells):
        return False
    times, dates = _times(sample, found), read_times(thinned(cells), like=found.day_order).values
    if len(times) != len(dates) or not (both := (times != UNKNOWN) & (dates != UNKNOWN)).any():
        return False
    return bool((dates[both] // DAY >= times[both] // DAY).mean() > 0.5)


def _guess_history(columns: Sequence[str], sample: Mapping[str, Column], found: SchemaMapping) -> HistoryPlan | None:
    """Ids that repeat are entities with a history, if there is a time to order them."""
    if not found.has_time:
        return None
    entities: dict[str, str] = {}
    for column in _free_columns(columns, found):
        cells = sample.get(column)
        if holds_ids(column, cells) and not names_a_label(column) and _repeats(cells):
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


def holds_ids(column: str, cells: Column | None) -> bool:
    """Whether a column names entities, by its name; a name such as ``Card`` only if it holds more than kinds of cards.

    >>> holds_ids("card_id", None), holds_ids("Card", pl.Series(["Visa", "Mastercard"])), holds_ids("Card", None)
    (True, False, False)
    """
    if names_an_id(column):
        return True
    if cells is None or not names_an_entity(column):
        return False
    values = plain_text(thinned(cells)).drop_nulls().unique()
    numbers = values.cast(pl.Float64, strict=False)
    if (numbers != numbers.round()).any():
        return False
    coded = int(values.str.contains(r"\d|@").sum()) >= 0.9 * len(values)
    return len(values) >= (_FEWEST_IDS if coded else _MANY_VALUES)


def _listed(mapping: SchemaMapping) -> set[str]:
    """Columns that the mapping names as facts."""
    return {*mapping.known, *mapping.numbers, *mapping.flags, *mapping.categories, *mapping.rename}


def _free_columns(columns: Sequence[str], mapping: SchemaMapping) -> list[str]:
    """Columns without a role that the mapping does not name as facts."""
    used = {column for _, column in mapping.roles()} | _listed(mapping)
    return [column for column in columns if column not in used and not column.startswith(FACTS)]


def _guess_roles(
    columns: Sequence[str], sample: Mapping[str, Column], given: SchemaMapping, purpose: Purpose
) -> dict[str, Any]:
    taken = {column for _, column in given.roles()} | _listed(given) | set(given.ignore or ())
    times = {column for _, column in given.named_times()}
    roles: dict[str, Any] = {}
    for role, names in _USUAL_NAMES.items():
        if getattr(given, role) is not None:
            continue
        if role == "time" and given.time_parts:
            roles[role] = ""
            continue
        others = taken if role == "time" else taken | times | (set(given.sensitive) if role == "text" else set())
        free = [column for column in columns if column not in others and not column.startswith(FACTS)]
        named = sorted((c for c in free if plain_name(c) in names), key=lambda c: names.index(plain_name(c)))
        fitting = [column for column in named if column not in sample or _fits(role, column, sample[column])]
        if role == "label" and purpose != "decide":
            fitting = fitting or named or _label_columns({c: sample[c] for c in free if c in sample}, purpose)
            if fitting and fitting[0] in sample and holds_marks(sample[fitting[0]]) and not given.fraud_values:
                roles |= {"fraud_values": MARKS, "legit_values": ("",)}
        if role == "id" and purpose == "train":
            fitting = fitting or [c for c in free if names_a_transaction(c) and _numbers_rows(c, sample.get(c))]
        if role == "time":
            free = [c for c in free if c in sample and (c in fitting or not _names_another_day(c))]
            dated = [c for c in free if c not in fitting and _holds_times(sample[c], surely=bool(fitting))]
            likely = _likely_times(fitting, dated, sample) if purpose == "train" else [*fitting, *dated]
            fitting = likely or [c for c in fitting if c not in sample]
            clocks = [c for c in free if fitting and holds_clocks(sample[c])]
            if given.clock is None and len(clocks) == 1 and holds_days(thinned(sample[fitting[0]])):
                taken.add(roles.setdefault("clock", clocks[0]))
        if role == "amount":
            fitting = fitting or [c for c in free if names_an_amount(c) and not names_what_comes_after(c)]
        if role == "difficulty" and not roles.get("text"):
            fitting = []
        roles[role] = fitting[0] if fitting else ""
        taken.add(roles[role])
    return roles


def _likely_times(named: Sequence[str], others: Sequence[str], sample: Mapping[str, Column]) -> list[str]:
    """Columns of times, the likeliest time of a case first. Empty and constant ones are none.

    A usual name counts most, then being later than the rest in most rows, which says nothing against a usual name, then
    being in the order of the file. The latter two together outweigh a usual name out of order.
    """
    read = {name: read_times(thinned(sample[name])).values for name in (*named, *others) if name in sample}
    known = {name: times[times != UNKNOWN] for name, times in read.items()}
    read = {name: read[name] for name, times in known.items() if len(times) == 1 or len(np.unique(times)) > 1}
    scores = {name: 4 * (name in named) + 2 * _in_order(times) for name, times in read.items()}
    for name in set(others) & read.keys():
        rest = [(read[name], times, times != UNKNOWN) for other, times in read.items() if other != name]
        is_later = all(2 * (own >= times)[known].sum() > known.sum() for own, times, known in rest)
        scores[name] += -3 if _LAST_DAYS & set(name_parts(name)) else 3 * (bool(rest) and is_later)
    return sorted(scores, key=lambda name: -scores[name])


def _in_order(times: IntArray) -> bool:
    """Whether a file is sorted by these times, the first or the last of them on top."""
    steps = np.diff(times[times != UNKNOWN])
    return len(steps) >= _FEWEST_IN_ORDER and max((steps >= 0).mean(), (steps <= 0).mean()) > _SORTED


def _names_another_day(column: str) -> bool:
    """Whether a name says that a date is not that of the transaction: one of birth, of expiry, or after the fact."""
    return names_what_comes_after(column) or bool(_OTHER_DAYS & set(name_parts(column)))


def _label_columns(sample: Mapping[str, Column], purpose: Purpose) -> list[str]:
    """Columns whose name speaks of fraud and whose cells are labels, else the only one whose cells say fraud or not."""
    named = {column: cells for column, cells in sample.items() if _FRAUD.search(plain_name(column))}
    found = [column for column, cells in named.items() if holds_marks(cells) or _share_of_labels(cells) == 1.0]
    saying = [column for column, cells in sample.items() if not found and _says_fraud(cells, purpose)]
    return found or (saying if len(saying) == 1 else [])


def _says_fraud(column: Column, purpose: Purpose) -> bool:
    words = {text for text in plain_texts(column[:_HEAD]) if text is not None}
    expected = ({True, False}, {True}) if purpose == "learn" else ({True, False},)  # outcomes may all be frauds
    return any(map(_FRAUD.search, map(plain_name, words))) and set(map(LabelReader(), words)) in expected


def _fits(role: str, name: str, column: Column) -> bool:
    match role:
        case "label":
            return _share_of_labels(column) >= 0.5
        case "time" | "known_at":
            return look_like_times(column, at_least=0.5)
        case "id":  # few rows have the number of an investigation
            return not names_what_comes_after(name) or 2 * plain_text(column).null_count() <= len(column)
        case "text" | "difficulty":
            return isinstance(column, list) or column.dtype == pl.String
    return True


def _holds_times(column: Column, *, surely: bool = False) -> bool:
    """Whether a column of any name holds dates and times. Numbers do not count, ``surely`` not even as texts."""
    if isinstance(column, list) or not (column.dtype == pl.String or column.dtype.is_temporal()):
        return False
    return (not surely or _writes_times(column)) and look_like_times(column)


def _share_of_labels(column: Column) -> float:
    reader = LabelReader()
    texts = [text for text in plain_texts(column[:_HEAD]) if text is not None]
    return sum(reader(text) is not None for text in texts) / len(texts) if texts else 1.0


def _ignored(
    columns: Sequence[str], sample: Mapping[str, Column], found: SchemaMapping, *, judged: bool
) -> Iterator[tuple[str, str]]:
    """The columns that should not become facts, each with the reason.

    A name alone makes a leak only if labels are too few to have ``judged`` the column by what it holds.
    """
    order = _time_order(sample, found)
    for column in _free_columns(columns, found):
        cells = sample.get(column)
        if plain_name(column) == "metadata":
            yield column, "metadata never becomes facts"
        elif found.label and not judged and names_a_label(column):
            yield column, ANOTHER_LABEL
        elif holds_ids(column, cells):
            yield column, AN_ID
        elif not isinstance(cells, pl.Series) or cells.dtype.is_nested():
            continue
        elif _writes_times(cells):
            yield column, ANOTHER_TIME if len(cells) == 1 or cells.drop_nulls().n_unique() > 1 else ONE_VALUE
        elif _one_value_per_row(cells):
            yield column, SENTENCES if holds_sentences(cells) else ONE_EACH
        elif _hardly_repeats(cells):
            yield column, SENTENCES if holds_sentences(cells) else HARDLY_REPEATS
        elif order is not None and _grows_with_time(cells, order):
            yield column, "grows with time: a rule about it would be about the calendar"


def _numbers_rows(column: str, cells: Column | None) -> bool:
    """Whether no cell is empty or there twice, in a column that is neither a time nor filled later."""
    if not isinstance(cells, pl.Series) or cells.dtype.is_nested() or names_what_comes_after(column):
        return False
    present = plain_text(cells.filter(~unknown_words(cells))).drop_nulls().n_unique()
    return present == len(cells) and _one_value_per_row(cells) and not _holds_times(cells)


def _one_value_per_row(cells: pl.Series) -> bool:
    """Measurements differ in every row too, so of numbers only whole ones count, and only with at least 100 rows."""
    present = cells.filter(~unknown_words(cells)).drop_nulls()
    if len(present) < 20 or present.dtype.is_float():
        return False
    distinct = present.n_unique()
    if present.dtype == pl.String and present.cast(pl.Float64, strict=False).null_count() < 0.05 * len(present):
        present = present.cast(pl.Int64, strict=False)
    if present.dtype.is_integer():
        return len(present) >= 100 and not present.has_nulls() and distinct == len(present)
    return present.dtype == pl.String and distinct >= 0.9 * len(present)


def _hardly_repeats(cells: pl.Series) -> bool:
    """Whether words are so many that rules would only memorise who or what they name."""
    if cells.dtype != pl.String or cells.n_unique() <= max(_MANY_VALUES, len(cells) // 3):
        return False
    known = plain_text(cells.filter(~unknown_words(cells))).drop_nulls()
    return known.cast(pl.Float64, strict=False).null_count() > 0.05 * len(known)


def _writes_times(cells: pl.Series) -> bool:
    """Whether cells are times by their type, or texts that are times and no numbers."""
    if cells.dtype != pl.String:
        return cells.dtype.is_temporal()
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
    return column.lower() not in NAMED_FACTS and _LABEL.search(plain_name(column)) is not None


def holds_sentences(column: Column) -> bool:
    """Whether most cells are several words long and few of them are alike.

    >>> holds_sentences(pl.Series([f"paid {n} dollars with a new card" for n in range(30)]))
    True
    >>> holds_sentences(pl.Series(["Visa", "Mastercard"] * 20))
    False
    """
    if not isinstance(column, pl.Series) or column.dtype != pl.String:
        return False
    cells = plain_text(thinned(column)).drop_nulls()
    if len(cells) < _FEWEST_SENTENCES or cells.n_unique() < max(_FEWEST_SENTENCES, _DISTINCT * len(cells)):
        return False
    return 2 * int((cells.str.count_matches(r"\pL{2,}") >= _WORDS).sum()) > len(cells)


def states_facts(column: Column) -> bool:
    """Whether a column holds sentences, and they state facts that the engine knows.

    >>> states_facts(pl.Series([f"order {n} came here through a VPN" for n in range(30)]))
    True
    """
    if not holds_sentences(column):
        return False
    cells = plain_text(column).drop_nulls()
    cells = cells[:: max(1, len(cells) // _TEXTS_READ)]
    return sum(bool(read_facts(cell).facts) for cell in cells) >= _TELLING * len(cells) > 0
