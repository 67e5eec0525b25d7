"""A table made ready to be read: cells in plain form, the mapping completed by guesses, and remarks on the guesses.

`guess` says which column has which role; here, what the columns mean as facts: codes that look like numbers, known
facts under other names, and facts from times.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from acefraud.core.fact_names import NAMED_FACTS, words_for
from acefraud.datasets import guess
from acefraud.datasets.cells import suits
from acefraud.datasets.columns import USUAL_WORDS, name_parts, names_a_flag, plain_name, plain_text, unknown_words
from acefraud.datasets.guess import ANOTHER_TIME, guess_mapping, names_a_label, thinned
from acefraud.datasets.leaks import LEAK
from acefraud.datasets.mapping import SchemaMapping, load_mapping, with_given
from acefraud.datasets.plain_cells import holds_marks, with_lists_as_facts, with_plain_numbers, with_whole_cells
from acefraud.datasets.table import FACTS, Column, Purpose, Remark, Table, Weight
from acefraud.datasets.times import read_times, shared_format
from acefraud.facts.history.plan import HistoryPlan
from acefraud.facts.time_facts import CLOCK_FACTS, DAY, DAY_FACTS
from acefraud.support.timestamps import UNKNOWN

_WORDS = {key: frozenset(words) for key, words in USUAL_WORDS["name_parts"].items()}
_OTHER_NAMES = {fact: {plain_name(name) for name in names} for fact, names in USUAL_WORDS["times"].items()}
_BEFORE = 0.95
"""Share of rows in which a date must come before the transaction to be one that was known then."""
_FEWEST_ROWS = 200
_MOST_CODES = 50
_MOST_NAMED_CODES = 300
UNTOUCHED = "remainder__"
"""How the names of columns begin that scikit-learn's ``ColumnTransformer`` has passed on as they are."""
_ROUGH = 1.75
_ROUND = 5
_COSTLY = (LEAK, guess.ANOTHER_LABEL, ANOTHER_TIME, guess.SENTENCES)
_ROLES = {role: re.split(r"[;:,.]", field.description or "")[0] for role, field in SchemaMapping.model_fields.items()}

_LABEL_KEYS = frozenset({"label", "known_at", "difficulty", "ignore"})
_OPTIONAL = {"train": frozenset[str](), "decide": _LABEL_KEYS, "learn": _LABEL_KEYS - {"label"}}
"""The keys of a mapping whose columns a table may lack."""


def prepare(
    table: Table,
    mapping: SchemaMapping | Path | None,
    remembered: SchemaMapping | None,
    purpose: Purpose = "train",
) -> tuple[Table, SchemaMapping]:
    """The table with numbers and lists in plain form, and the mapping, checked against it and completed by guesses.

    A mapping that is given for outcomes adds to the ``remembered`` one; any other takes its place.
    """
    given = asked = loaded_mapping(mapping)
    if purpose == "learn" and asked and remembered:
        given, remembered = None, with_given(asked, remembered)
    earlier = given or remembered or SchemaMapping()
    table = with_lists_as_facts(table, earlier)
    table = with_whole_cells(replace(table, as_written=table.columns), earlier)
    table, written = with_plain_numbers(table, earlier)
    if asked and table.height and not (table.open_ended and purpose != "train"):
        place = str(mapping) if isinstance(mapping, Path) else "mapping"
        asked.require_columns(list(table.columns), file=table.name, place=place, optional=_OPTIONAL[purpose])
    if given is None and remembered is not None:
        complete = _from_remembered(table, remembered, purpose)
    else:
        complete = _from_given(table, given or SchemaMapping(), remembered, purpose)
    if remembered is None:
        table = with_whole_cells(table, complete, done=earlier)
        table = replace(table, remarks=(*table.remarks, *guess_remarks(complete, earlier, table, purpose)))
    return table, complete.model_copy(update={"decimal": written.decimal, "decimal_commas": written.decimal_commas})


def _from_given(
    table: Table, given: SchemaMapping, remembered: SchemaMapping | None, purpose: Purpose
) -> SchemaMapping:
    columns = list(table.columns)
    if remembered is None:
        apart = table.labels_apart
        guessed = guess_mapping(columns, table.columns, given=given, purpose=purpose, labels_apart=apart)
        return guess_facts(with_whole_cells(table, guessed, done=given).columns, guessed, purpose)
    # The playbook's facts have to stay what they were.
    kept = {key: getattr(remembered, key) for key in ("history", "time_facts") if getattr(given, key) is None}
    return guess_mapping(columns, table.columns, given=given.model_copy(update=kept), purpose=purpose)


def _from_remembered(table: Table, remembered: SchemaMapping, purpose: Purpose) -> SchemaMapping:
    """Columns of an earlier file are read as they were then. New ones are guessed: they may leak the label."""
    columns = list(table.columns)
    known = remembered.only(columns)
    given = known.model_copy(update={"ignore": None, "history": remembered.history or HistoryPlan()})
    guessed = guess_mapping(columns, table.columns, given=given, purpose=purpose)
    named = {column for _, column in remembered.named_columns()}
    new = [column for column in guessed.ignore or () if column not in named]
    return guessed.model_copy(update={"ignore": (*(known.ignore or ()), *new), "history": remembered.history})


def loaded_mapping(mapping: SchemaMapping | Path | None) -> SchemaMapping | None:
    """The mapping, read from its file if a path is given."""
    return load_mapping(mapping) if isinstance(mapping, Path) else mapping


def guess_facts(columns: Mapping[str, Column], found: SchemaMapping, purpose: Purpose = "train") -> SchemaMapping:
    """Complete a mapping by what its columns mean as facts. What is given stays."""
    found = found.model_copy(update={"rename": {**found.rename, **dict(_known_names(columns, found))}})
    found = found.model_copy(update={"categories": (*found.categories, *_codes(columns, found))})
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
    words = frozenset(name_parts(column)) - _WORDS["filler"]
    return _BY_WORDS.get(words) or _BY_WORDS.get(words - _WORDS["whose"])


_BY_WORDS = {frozenset(name.split("_")): name for name in NAMED_FACTS}


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


def _codes(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[str]:
    listed = {*found.numbers, *found.flags, *found.categories, found.amount}
    for column, fact in found.facts_by_column(list(columns)).items():
        if column not in listed and words_for(fact) is None and holds_codes(column, columns[column]):
            yield column


def _answers(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[str]:
    """Columns whose names ask for yes or no, with nothing but 1 and 0. What has a direction stays a number."""
    others = {*found.numbers, *found.flags, *found.categories, *found.rising, *found.falling, found.amount}
    for column, fact in found.facts_by_column(list(columns)).items():
        asked = names_a_flag(fact) and not {column, fact} & others
        if asked and set(plain_text(columns[column]).drop_nulls().unique()) in ({"0"}, {"1"}, {"0", "1"}):
            yield column


def holds_codes(name: str, column: Column) -> bool:
    """Whether whole numbers are codes: few, and either the name says so or the numbers do.

    Amounts, counts and ages are common around one figure and get rarer away from it. Codes are common here and there,
    with gaps between. Round figures are measures too.
    """
    if isinstance(column, list) or len(column) < _FEWEST_ROWS:
        return False
    if not (column.dtype.is_integer() or column.dtype == pl.String):
        return False
    cells = plain_text(column.filter(~unknown_words(column))).drop_nulls().cast(pl.Int64, strict=False)
    parts = set(name_parts(name))
    if len(cells) < _FEWEST_ROWS or cells.has_nulls() or parts & _WORDS["measure"]:
        return False
    distinct, counts = np.unique(cells.to_numpy(), return_counts=True)
    if len(distinct) < 3:
        return False
    if parts & _WORDS["code"]:
        return len(distinct) <= _MOST_NAMED_CODES
    few = len(distinct) <= min(_MOST_CODES, len(cells) // 20)
    return few and math.gcd(*distinct.tolist()) < _ROUND and _roughness(distinct.tolist(), counts.tolist()) >= _ROUGH


def _roughness(values: Sequence[int], counts: Sequence[int]) -> float:
    """How often the counts rise and fall again along the numbers: 1 if there is one peak, 2 for two of equal height.

    Differences that chance explains do not count.

    >>> _roughness([1, 2, 3], [100, 500, 80]), _roughness([1, 2, 7], [500, 20, 500])
    (1.0, 2.0)
    """
    steps: list[tuple[float, float]] = []
    for place, count in enumerate(counts):
        beside = counts[place - 1] if place and values[place] == values[place - 1] + 1 else 0
        if place and not beside:
            steps.append((counts[place - 1], 0))
        steps.append((beside, count))
    steps.append((counts[-1], 0))
    told = [abs(new - old) for old, new in steps if abs(new - old) > 4 * math.sqrt(old + new)]
    return float(sum(told) / (2 * max(counts)))


# --- facts from times


def _time_facts(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[str]:
    """The facts that the time tells and no column has. Rows with a ``facts`` object say themselves what counts."""
    if found.known or any(name.startswith(FACTS) for name in columns):
        return
    taken = {plain_name(one) for one in (*columns, *found.facts_by_column(list(columns)).values())}
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


def guess_remarks(found: SchemaMapping, given: SchemaMapping, table: Table, purpose: Purpose) -> Iterator[Remark]:
    """What was guessed, left out or read in a special way, each with the line of a mapping that changes it."""
    columns = table.columns
    if given.id is None and not found.id and not table.labels_apart:
        yield Remark("", "no column with ids was found", guess.NO_IDS, 'id = "..."')
    if purpose == "train":
        yield from _roles(found, given, columns)
    for column, cells in columns.items():
        if why := found.why.get(column):
            yield _with_reason(column, why, found, given, cells)
        elif isinstance(cells, pl.Series) and cells.n_unique() < 2 < len(cells) and found.facts_by_column([column]):
            yield Remark(column, "teaches nothing", guess.ONE_VALUE, weight="usual")
    if given.history is None and found.entities:
        listed = ", ".join(found.entities)
        yield Remark("", "taken as entities, whose history becomes facts", listed, "history = {entities = []}")
    named = [column for column, why in found.why.items() if why == guess.AN_ID and column in columns]
    if named and not found.has_time:
        yield Remark("", f"no history of {', '.join(named)}", "no column with the time of a transaction was found")
    yield from _facts(found, given)


def _roles(found: SchemaMapping, given: SchemaMapping, columns: Mapping[str, Column]) -> Iterator[Remark]:
    for role, column in found.roles():
        if column not in columns or getattr(given, role) is not None:
            continue
        others = [name for name, why in found.why.items() if why == ANOTHER_TIME] if role == "time" else []
        why = f"times are in {', '.join(others)} too" if others else ""
        change = f"{role} = {json.dumps(others[0] if others else '...')}"
        weight: Weight = "note" if others or role in ("known_at", "text") else "usual"
        yield Remark(column, f"is read as the {_ROLES[role].lower()}", why, change, weight)


def _with_reason(column: str, why: str, found: SchemaMapping, given: SchemaMapping, cells: Column) -> Remark:
    """A column that is left out for a reason, or kept in spite of one."""
    ignored = found.ignore or ()
    if column not in ignored:
        change = f"ignore = {_listed(*ignored, column)}" if given.ignore is None else ""
        return Remark(column, "is kept", why, change, "warning" if why.startswith(LEAK) else "usual")
    measured = [fact for fact, pair in (*found.days_between.items(), *found.elapsed.items()) if column in pair]
    if measured:
        return Remark(column, f"is read as {measured[0]}", why, f"time = {json.dumps(column)}", "usual")
    change = f"{'numbers' if suits(cells, 'number') else 'categories'} = {_listed(column)}"
    if why == ANOTHER_TIME and found.time:
        gap = f"days_between = {{{json.dumps(f'days_to_{column}')} = {_listed(found.time, column)}}}"
        why = f"another time than that of `{found.time}`, and not before it; if known by then, `{gap}` makes it a fact"
        change = f"time = {json.dumps(column)}"
    elif why == guess.SENTENCES:
        other = f"beside that of `{found.text}`" if found.text else "that states no fact the engine knows"
        why, change = f"{why} {other}", f"text = {json.dumps(column)}"
    weight: Weight = "usual" if why == ANOTHER_TIME and given.time == "" else _weight(why, cells)
    return Remark(column, "is left out", why, change, weight)


def _weight(why: str, cells: Column) -> Weight:
    """Whether leaving a column out may cost something. One that numbers the rows, or names them by codes, does not."""
    if why.startswith(_COSTLY):
        return "warning"
    texts = plain_text(thinned(cells)).drop_nulls()
    steps = texts.cast(pl.Float64, strict=False).diff().drop_nulls()
    telling = steps.n_unique() > 1 or 2 * int(texts.str.contains(r"\pL \pL").sum()) > len(texts)
    return "warning" if why in (guess.ONE_EACH, guess.HARDLY_REPEATS) and telling else "usual"


def _facts(found: SchemaMapping, given: SchemaMapping) -> Iterator[Remark]:
    for column in (*found.categories, *found.flags):
        if column not in {*given.categories, *given.flags, *found.entities}:
            what = "yes or no" if column in found.flags else "codes"
            yield Remark(column, f"is read as {what}, not as numbers", "", f"numbers = {_listed(column)}", "usual")
    for column, fact in found.rename.items():
        if column not in given.rename:
            change = f'rename = {{{json.dumps(column)} = "..."}}'
            yield Remark(column, f"is read as the fact `{fact}`", "", change, "usual")
    if given.time_facts is None and found.time_facts:
        yield Remark("", "facts made from the time", ", ".join(found.time_facts), "time_facts = []", "usual")


def _listed(*names: str) -> str:
    return json.dumps(names, ensure_ascii=False)
