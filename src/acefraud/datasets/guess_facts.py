"""What columns mean as facts: codes that look like numbers, known facts under other names, and facts from times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from acefraud.core.fact_names import NAMED_FACTS, words_for
from acefraud.core.timestamps import UNKNOWN
from acefraud.datasets.cells import suits
from acefraud.datasets.columns import plain_text, unknown_words
from acefraud.datasets.guess import ANOTHER_TIME, names_a_label, thinned
from acefraud.datasets.labels import USUAL_WORDS
from acefraud.datasets.mapping import SchemaMapping, fact_names
from acefraud.datasets.names import name_parts, names_a_flag, plain_name
from acefraud.datasets.table import FACTS, Column, Purpose
from acefraud.datasets.times import read_times, shared_format
from acefraud.datasets.whole_cells import holds_marks
from acefraud.facts.time_facts import CLOCK_FACTS, DAY, DAY_FACTS

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


def guess_facts(columns: Mapping[str, Column], found: SchemaMapping, purpose: Purpose = "train") -> SchemaMapping:
    """Complete a mapping by what its columns mean as facts. What is given stays."""
    found = found.model_copy(update={"rename": {**found.rename, **dict(_known_names(columns, found))}})
    found = found.model_copy(update={"categories": (*found.categories, *_codes(columns, found))})
    if purpose == "train":  # bullets without a mapping know these as numbers
        found = found.model_copy(update={"flags": (*found.flags, *_answers(columns, found))})
    marked = (name for name in fact_names(found, list(columns)) if holds_marks(columns[name]))
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
    names = fact_names(found, list(columns))
    meant = {column: known_fact(column) for column in names if column not in found.rename and column != found.amount}
    for column, fact in meant.items():
        if fact is None or fact in names.values() or list(meant.values()).count(fact) > 1:
            continue
        if fact not in NAMED_FACTS or suits(columns[column], NAMED_FACTS[fact].kind):
            yield column, fact


# --- codes that look like numbers


def _codes(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[str]:
    listed = {*found.numbers, *found.flags, *found.categories, found.amount}
    for column, fact in fact_names(found, list(columns)).items():
        if column not in listed and words_for(fact) is None and holds_codes(column, columns[column]):
            yield column


def _answers(columns: Mapping[str, Column], found: SchemaMapping) -> Iterator[str]:
    """Columns whose names ask for yes or no, with nothing but 1 and 0. What has a direction stays a number."""
    others = {*found.numbers, *found.flags, *found.categories, *found.rising, *found.falling, found.amount}
    for column, fact in fact_names(found, list(columns)).items():
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
    taken = {plain_name(one) for one in (*columns, *fact_names(found, list(columns)).values())}
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
    names = set(fact_names(found, list(columns)).values())
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
