"""A table made ready to be read: cells in plain form, and the mapping completed by guesses.

Columns are recognised by their names and by what they hold: which has which role, and what the others mean as facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from acefraud.core.fact_names import NAMED_FACTS, words_for
from acefraud.datasets.cells import (
    MARKS,
    holds_clocks,
    holds_marks,
    suits,
    with_lists_as_facts,
    with_plain_numbers,
    with_whole_cells,
)
from acefraud.datasets.columns import (
    HEAD,
    USUAL_WORDS,
    LabelReader,
    folded,
    look_like_times,
    name_parts,
    names_a_flag,
    names_a_transaction,
    names_an_entity,
    names_an_id,
    names_what_comes_after,
    plain_name,
    plain_text,
    read_labels,
    read_time_parts,
    read_times,
    shared_format,
    thinned,
    unknown_words,
)
from acefraud.datasets.contents import (
    FEWEST_CODED,
    FEWEST_EACH,
    FEWEST_TELLING,
    LEAK,
    MANY_VALUES,
    grows_with_time,
    hardly_repeats,
    has_one_value_per_row,
    holds_codes,
    holds_sentences,
    likely_leaks,
    states_facts,
)
from acefraud.datasets.mapping import SchemaMapping, with_given
from acefraud.datasets.table import FACTS, Column, Purpose, Table
from acefraud.facts.history.plan import HOUR, HistoryPlan, entity_name, read_duration
from acefraud.facts.time_facts import CLOCK_FACTS, DAY, DAY_FACTS
from acefraud.support.arrays import IntArray
from acefraud.support.timestamps import UNKNOWN

_REPEATS = 0.05
"""Share of rows with an id that other rows have too, from which the id counts as an entity. A few frequent entities are
enough; a mean of rows per id would miss them."""
_MOST_ENTITIES = 4
_FEWEST_IDS = 10
_MOST_DELAY = 0.1
"""The longest delay of labels that is guessed, as a share of the time that the file spans."""
_FEWEST_IN_ORDER, _SORTED = 20, 0.99
_OTHER_DAYS, _LAST_DAYS = (frozenset(map(folded, USUAL_WORDS["other_days"][key])) for key in ("words", "last"))
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
_FILLER, _WHOSE = (frozenset(USUAL_WORDS["name_parts"][key]) for key in ("filler", "whose"))
_OTHER_NAMES = {fact: {plain_name(name) for name in names} for fact, names in USUAL_WORDS["times"].items()}
_BEFORE = 0.95
"""Share of rows in which a date must come before the transaction to be one that was known then."""
UNTOUCHED = "remainder__"
"""How the names of columns begin that scikit-learn's ``ColumnTransformer`` has passed on as they are."""
_LABEL_KEYS = frozenset({"label", "known_at", "difficulty", "ignore"})
_OPTIONAL = {"train": frozenset[str](), "decide": _LABEL_KEYS, "learn": _LABEL_KEYS - {"label"}}
"""The keys of a mapping whose columns a table may lack."""
_BY_WORDS = {frozenset(name.split("_")): name for name in NAMED_FACTS}


def prepare(
    table: Table,
    asked: SchemaMapping | None,
    remembered: SchemaMapping | None,
    purpose: Purpose,
    *,
    place: str = "mapping",
) -> tuple[Table, SchemaMapping]:
    """The table with numbers and lists in plain form, and the mapping, checked against it and completed by guesses.

    A mapping that is ``asked`` for outcomes adds to the ``remembered`` one; any other takes its place. Errors name it
    by its ``place``.
    """
    given = asked
    if purpose == "learn" and asked and remembered:
        given, remembered = None, with_given(asked, remembered)
    earlier = given or remembered or SchemaMapping()
    table = with_lists_as_facts(table, earlier)
    table = with_whole_cells(table, earlier)
    table, written = with_plain_numbers(table, earlier)
    if asked and table.height and not (table.open_ended and purpose != "train"):
        asked.require_columns(list(table.columns), file=table.name, place=place, optional=_OPTIONAL[purpose])
    if given is None and remembered is not None:
        complete = _from_remembered(table, remembered, purpose)
    else:
        complete = _from_given(table, given or SchemaMapping(), remembered, purpose)
    if remembered is None:
        table = with_whole_cells(table, complete, done=earlier)
    return table, complete.model_copy(update={"decimal": written.decimal, "decimal_commas": written.decimal_commas})


def _from_given(
    table: Table, given: SchemaMapping, remembered: SchemaMapping | None, purpose: Purpose
) -> SchemaMapping:
    if remembered is None:
        guessed = guess_mapping(table.columns, given, purpose, labels_apart=table.labels_apart)
        return guess_facts(with_whole_cells(table, guessed, done=given).columns, guessed, purpose)
    # The playbook's facts have to stay what they were.
    kept = {key: getattr(remembered, key) for key in ("history", "time_facts") if getattr(given, key) is None}
    return guess_mapping(table.columns, given.model_copy(update=kept), purpose)


def _from_remembered(table: Table, remembered: SchemaMapping, purpose: Purpose) -> SchemaMapping:
    """Columns of an earlier file are read as they were then. New ones are guessed: they may leak the label."""
    known = remembered.only(table.columns)
    given = known.model_copy(update={"ignore": None, "history": remembered.history or HistoryPlan()})
    guessed = guess_mapping(table.columns, given, purpose)
    named = {column for _, column in remembered.named_columns()}
    new = [column for column in guessed.ignore or () if column not in named]
    return guessed.model_copy(update={"ignore": (*(known.ignore or ()), *new), "history": remembered.history})


def guess_mapping(
    columns: Mapping[str, Column], given: SchemaMapping, purpose: Purpose = "train", *, labels_apart: bool = False
) -> SchemaMapping:
    """Complete a mapping by the usual names and by what the columns hold.

    What is given stays. A column that is listed as known, or whose kind is given, is kept even if it looks like an
    id. ``why`` gives the reason for each ignored column. Ids that repeat become entities with a history.

    >>> cells = pl.Series([0, 1])
    >>> names = ["TX_ID", "CUSTOMER_ID", "TX_AMOUNT", "TX_FRAUD", "TX_FRAUD_SCENARIO"]
    >>> guessed = guess_mapping(dict.fromkeys(names, cells), SchemaMapping())
    >>> guessed.id, guessed.amount, guessed.label
    ('TX_ID', 'TX_AMOUNT', 'TX_FRAUD')
    >>> guessed.ignore
    ('CUSTOMER_ID', 'TX_FRAUD_SCENARIO')
    """
    found = given.model_copy(update=_guess_roles(columns, given, purpose))
    labels, _ = read_labels(columns.get(found.label or "", []), LabelReader(found.fraud_values, found.legit_values))
    # What a row's own ``facts`` object holds is meant to become facts.
    settled = {column for _, column in (*found.roles(), *found.named_times())}
    settled |= {*(found.ignore or ()), *found.entities}
    unsettled = {name: columns[name] for name in columns if name not in settled and not name.startswith(FACTS)}
    counts = int((labels == 0).sum()), int((labels == 1).sum())
    leaks = likely_leaks(unsettled, labels, by_name=not labels_apart) if min(counts) else {}
    if labels_apart:
        sure = likely_leaks({name: columns[name] for name in leaks}, labels, flawless=True)
    else:
        later = {name: _LATER for name, cells in unsettled.items() if _comes_after(name, cells, columns, found)}
        sure = leaks = later | leaks
    leaks = {column: LEAK + why for column, why in leaks.items()}
    if given.text is None and not found.text and purpose == "train":
        texts = (column for column in unsettled if column not in {*leaks, *_named_facts(found), *found.sensitive})
        found = found.model_copy(update={"text": next((name for name in texts if states_facts(columns[name])), "")})
    free = {name: cells for name, cells in columns.items() if name not in sure}
    if given.history is None:
        found = found.model_copy(update={"history": _guess_history(free, columns, found)})
    entities = [column for column in found.entities if column in columns and column not in found.categories]
    kept = _named_facts(found)
    if given.ignore is not None:
        leaving = [*given.ignore, *entities, *(column for column in sure if column not in kept)]
        return found.model_copy(update={"ignore": tuple(dict.fromkeys(leaving)), "why": {**given.why, **leaks}})
    judged = labels_apart or min(counts) >= FEWEST_EACH
    why = {**{column: leaks[column] for column in sure}, **dict(_ignored(free, columns, found, judged=judged))}
    for column in entities:
        name = found.history.name_of(column) if found.history else column
        why[column] = f"an id that repeats: the history of each {name} becomes facts"
    ignore = tuple(column for column in columns if column in why and column not in kept)
    return found.model_copy(update={"ignore": ignore, "why": {**given.why, **leaks, **why}})


def _comes_after(column: str, cells: Column, columns: Mapping[str, Column], found: SchemaMapping) -> bool:
    """Whether a column holds dates that are after the fact, by its name and because most are not before the day."""
    if not found.label or not names_what_comes_after(column) or not _holds_times(cells):
        return False
    times, dates = _times(columns, found), read_times(thinned(cells), like=found.day_order).values
    if len(times) != len(dates) or not (both := (times != UNKNOWN) & (dates != UNKNOWN)).any():
        return False
    return bool((dates[both] // DAY >= times[both] // DAY).mean() > 0.5)


def _guess_history(
    free: Mapping[str, Column], columns: Mapping[str, Column], found: SchemaMapping
) -> HistoryPlan | None:
    """Ids that repeat are entities with a history, if there is a time to order them."""
    entities: dict[str, str] = {}
    for name, cells in _free_columns(free, found) if found.has_time else ():
        if holds_ids(name, cells) and not names_a_label(name) and _repeats(cells):
            entities.setdefault(entity_name(name), name)
    if not entities:
        return None
    places = {
        key: next((name for name in free if plain_name(name) in names), "")
        for key, names in USUAL_WORDS["places"].items()
    }
    times = _times(columns, found)
    times = times[times != UNKNOWN]
    span = int(times.max() - times.min()) if len(times) else 0
    return HistoryPlan(
        entities=tuple(entities.values())[:_MOST_ENTITIES],
        label_delay=guess_label_delay(found.label or "", columns.get(found.label or "", []), span),
        **(places if all(places.values()) else {}),
    )


def guess_label_delay(label: str, cells: Column, span: int) -> str:
    """How late labels are by the name of their column and by its values, but at most a tenth of the ``span`` in time.

    >>> guess_label_delay("has_cbk", [], 9000 * HOUR), guess_label_delay("is_fraud", [], 480 * HOUR)
    ('28d', '48h')
    """
    names = [plain_name(text) for text in (label, *plain_text(cells[:HEAD]).drop_nulls().unique())]
    delay = next(
        delay
        for delay, words in USUAL_WORDS["label_delays"].items()
        if any(word in name for word in words for name in names)
    )
    most = int(_MOST_DELAY * span / HOUR)
    return delay if read_duration(delay) <= most * HOUR else f"{most}h"


def _repeats(column: Column) -> bool:
    """Whether values of a column repeat, but are not all the same."""
    if isinstance(column, pl.Series) and column.dtype.is_nested():
        return False
    present = (plain_text(column) if isinstance(column, list) else column).drop_nulls()
    return present.n_unique() > 1 and int(present.is_duplicated().sum()) >= _REPEATS * len(present)


def holds_ids(column: str, cells: Column) -> bool:
    """Whether a column names entities, by its name; a name such as ``Card`` only if it holds more than kinds of cards.

    >>> holds_ids("card_id", []), holds_ids("Card", pl.Series(["Visa", "Mastercard"]))
    (True, False)
    """
    if names_an_id(column) or not names_an_entity(column):
        return names_an_id(column)
    values = plain_text(thinned(cells)).drop_nulls().unique()
    numbers = values.cast(pl.Float64, strict=False)
    if (numbers != numbers.round()).any():
        return False
    coded = int(values.str.contains(r"\d|@").sum()) >= 0.9 * len(values)
    return len(values) >= (_FEWEST_IDS if coded else MANY_VALUES)


def _named_facts(mapping: SchemaMapping) -> set[str]:
    """Columns that the mapping names as facts."""
    return {*mapping.known, *mapping.numbers, *mapping.flags, *mapping.categories, *mapping.rename}


def _free_columns(columns: Mapping[str, Column], mapping: SchemaMapping) -> list[tuple[str, Column]]:
    """Columns without a role that the mapping does not name as facts."""
    used = {column for _, column in mapping.roles()} | _named_facts(mapping)
    return [(name, cells) for name, cells in columns.items() if name not in used and not name.startswith(FACTS)]


def _guess_roles(columns: Mapping[str, Column], given: SchemaMapping, purpose: Purpose) -> dict[str, Any]:
    taken = {column for _, column in given.roles()} | _named_facts(given) | set(given.ignore or ())
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
        fitting = [column for column in named if _fits(role, column, columns[column])]
        if role == "label" and purpose != "decide":
            fitting = fitting or named or _label_columns({c: columns[c] for c in free}, purpose)
            if fitting and holds_marks(columns[fitting[0]]) and not given.fraud_values:
                roles |= {"fraud_values": MARKS, "legit_values": ("",)}
        if role == "id" and purpose == "train":
            fitting = fitting or [c for c in free if names_a_transaction(c) and _numbers_rows(c, columns[c])]
        if role == "time":
            free = [c for c in free if c in fitting or not _names_another_day(c)]
            dated = [c for c in free if c not in fitting and _holds_times(columns[c], surely=bool(fitting))]
            fitting = _likely_times(fitting, dated, columns) if purpose == "train" else [*fitting, *dated]
            clocks = [c for c in free if fitting and holds_clocks(columns[c])]
            if given.clock is None and len(clocks) == 1 and holds_days(thinned(columns[fitting[0]])):
                taken.add(roles.setdefault("clock", clocks[0]))
        if role == "amount":
            fitting = fitting or [c for c in free if names_an_amount(c) and not names_what_comes_after(c)]
        if role == "difficulty" and not roles.get("text"):
            fitting = []
        roles[role] = fitting[0] if fitting else ""
        taken.add(roles[role])
    return roles


def _likely_times(named: Sequence[str], others: Sequence[str], columns: Mapping[str, Column]) -> list[str]:
    """Columns of times, the likeliest time of a case first. Empty and constant ones are none.

    A usual name counts most, then being later than the rest in most rows, which says nothing against a usual name, then
    being in the order of the file. The latter two together outweigh a usual name out of order.
    """
    read = {name: read_times(thinned(columns[name])).values for name in (*named, *others)}
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


def _label_columns(columns: Mapping[str, Column], purpose: Purpose) -> list[str]:
    """Columns whose name speaks of fraud and whose cells are labels, else the only one whose cells say fraud or not."""
    named = {column: cells for column, cells in columns.items() if _FRAUD.search(plain_name(column))}
    found = [column for column, cells in named.items() if holds_marks(cells) or _share_of_labels(cells) == 1.0]
    saying = [column for column, cells in columns.items() if not found and _says_fraud(cells, purpose)]
    return found or (saying if len(saying) == 1 else [])


def _says_fraud(column: Column, purpose: Purpose) -> bool:
    words = set(plain_text(column[:HEAD]).drop_nulls())
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


def holds_days(column: Column) -> bool:
    """Whether no time in a column has a time of day."""
    times = read_times(column).values
    return not (times[times != UNKNOWN] % DAY).any()


def _share_of_labels(column: Column) -> float:
    reader = LabelReader()
    texts = plain_text(column[:HEAD]).drop_nulls()
    return sum(reader(text) is not None for text in texts) / len(texts) if len(texts) else 1.0


def _ignored(
    free: Mapping[str, Column], columns: Mapping[str, Column], found: SchemaMapping, *, judged: bool
) -> Iterator[tuple[str, str]]:
    """The columns that should not become facts, each with the reason.

    A name alone makes a leak only if labels are too few to have ``judged`` the column by what it holds.
    """
    times = _times(columns, found)
    ordered = len(times) >= FEWEST_TELLING and not (times == UNKNOWN).any() and bool((times != times[0]).any())
    for column, cells in _free_columns(free, found):
        if plain_name(column) == "metadata":
            yield column, "metadata never becomes facts"
        elif found.label and not judged and names_a_label(column):
            yield column, ANOTHER_LABEL
        elif holds_ids(column, cells):
            yield column, AN_ID
        elif isinstance(cells, list) or cells.dtype.is_nested():
            continue
        elif _writes_times(cells):
            yield column, ANOTHER_TIME if len(cells) == 1 or cells.drop_nulls().n_unique() > 1 else ONE_VALUE
        elif len(cells) < FEWEST_TELLING:
            continue
        elif has_one_value_per_row(cells):
            yield column, SENTENCES if holds_sentences(cells) else ONE_EACH
        elif hardly_repeats(cells):
            yield column, SENTENCES if holds_sentences(cells) else HARDLY_REPEATS
        elif ordered and grows_with_time(cells, times):
            yield column, "grows with time: a rule about it would be about the calendar"


def _numbers_rows(column: str, cells: Column) -> bool:
    """Whether no cell is empty or there twice, in a column that is neither a time nor filled later."""
    if isinstance(cells, list) or cells.dtype.is_nested() or names_what_comes_after(column):
        return False
    present = plain_text(cells.filter(~unknown_words(cells))).drop_nulls().n_unique()
    return present == len(cells) and has_one_value_per_row(cells) and not _holds_times(cells)


def _writes_times(cells: pl.Series) -> bool:
    """Whether cells are times by their type, or texts that are times and no numbers."""
    if cells.dtype != pl.String:
        return cells.dtype.is_temporal()
    head = cells.drop_nulls().head(50)
    if not head.str.contains(r"\d.*\d").all():
        return False
    return len(head) > 0 and head.cast(pl.Float64, strict=False).has_nulls() and look_like_times(head)


def _times(columns: Mapping[str, Column], found: SchemaMapping) -> IntArray:
    """The times of cells from all over the file."""
    if found.time_parts and found.time_parts.are_in(columns):
        parts = {name: thinned(columns[name]) for _, name in found.time_parts.named_columns()}
        return read_time_parts(parts, found.time_parts)[0]
    if (column := columns.get(found.time or "")) is not None:
        return read_times(thinned(column), found.time_format).values
    return np.empty(0, dtype=np.int64)


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


def guess_facts(columns: Mapping[str, Column], found: SchemaMapping, purpose: Purpose = "train") -> SchemaMapping:
    """Complete a mapping by what its columns mean as facts. What is given stays."""
    found = found.model_copy(update={"rename": {**found.rename, **dict(_known_names(columns, found))}})
    found = found.model_copy(update={"categories": (*found.categories, *_code_columns(columns, found))})
    if purpose == "train":  # bullets without a mapping know these as numbers
        found = found.model_copy(update={"flags": (*found.flags, *_answers(columns, found))})
    marked = (name for name in found.facts_by_column(list(columns)) if holds_marks(columns[name]))
    found = found.model_copy(update={"marked": (*found.marked, *marked)})
    if not found.days_between:
        found = found.model_copy(update={"days_between": dict(_days_between(columns, found))})
    if found.time_facts is None and found.has_time:
        found = found.model_copy(update={"time_facts": tuple(_time_facts(columns, found))})
    return found


# --- known facts under other names


def known_fact(column: str) -> str | None:
    """The known fact that a dotted name means: it must have all its words, with the unit, and no other that matters.

    A column that scikit-learn's ``ColumnTransformer`` has passed on as it is means what its name says after the prefix.

    >>> known_fact("customer.age_of_account_days"), known_fact("device.is_new"), known_fact("customer.account_age")
    ('account_age_days', 'new_device', None)
    """
    if column.startswith(UNTOUCHED):
        return column.removeprefix(UNTOUCHED)
    if "." not in column.removeprefix(FACTS) or names_a_label(column):
        return None
    words = frozenset(name_parts(column)) - _FILLER
    return _BY_WORDS.get(words) or _BY_WORDS.get(words - _WHOSE)


def _known_names(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[tuple[str, str]]:
    """Columns that mean a known fact, unless another column has that name or means the same."""
    names = found.facts_by_column(list(columns))
    meant = {column: known_fact(column) for column in names if column not in found.rename and column != found.amount}
    for column, fact in meant.items():
        if fact is None or fact in names.values() or list(meant.values()).count(fact) > 1:
            continue
        if fact not in NAMED_FACTS or suits(columns[column], NAMED_FACTS[fact].kind):
            yield column, fact


# --- codes that look like numbers


def _code_columns(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[str]:
    listed = {*found.numbers, *found.flags, *found.categories, found.amount}
    for column, fact in found.facts_by_column(list(columns)).items():
        may_be = column not in listed and words_for(fact) is None and len(columns[column]) >= FEWEST_CODED
        if may_be and holds_codes(column, columns[column]):
            yield column


def _answers(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[str]:
    """Columns whose names ask for yes or no, with nothing but 1 and 0. What has a direction stays a number."""
    others = {*found.numbers, *found.flags, *found.categories, *found.rising, *found.falling, found.amount}
    for column, fact in found.facts_by_column(list(columns)).items():
        asked = names_a_flag(fact) and not {column, fact} & others
        if asked and set(plain_text(columns[column]).drop_nulls().unique()) in ({"0"}, {"1"}, {"0", "1"}):
            yield column


# --- facts from times


def _time_facts(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[str]:
    """The facts that the time tells and no column has. Rows with a ``facts`` object say themselves what counts."""
    if found.known or any(name.startswith(FACTS) for name in columns):
        return
    taken = {plain_name(name) for name in (*columns, *found.facts_by_column(list(columns)).values())}
    column = columns.get(found.time or "")
    times = np.array([UNKNOWN]) if column is None else read_times(column, found.time_format).values
    clock = bool((times[times != UNKNOWN] % DAY != 0).any())
    dated = column is not None or bool(found.time_parts and found.time_parts.day)
    for fact in (*(CLOCK_FACTS if clock else ()), *(DAY_FACTS if dated else ())):
        if not taken & {fact, *_OTHER_NAMES[fact]}:
            yield fact


def _days_between(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[tuple[str, tuple[str, str]]]:
    """The days since each date that lies before the transaction. Later ones may be known only with the label."""
    if not found.time or found.time not in columns:
        return
    measured = {column for pair in found.elapsed.values() for column in pair}
    names = set(found.facts_by_column(list(columns)).values())
    end = read_times(thinned(columns[found.time]), found.time_format)
    for column, why in found.why.items():
        fact = f"days_since_{column}"
        if why != ANOTHER_TIME or column not in columns or column in measured or fact in names:
            continue
        cells = thinned(columns[column])
        start = read_times(cells, shared_format(cells, end.format)).values
        both = (start != UNKNOWN) & (end.values != UNKNOWN)
        if both.any() and (start <= end.values)[both].mean() >= _BEFORE:
            yield fact, (column, found.time)
