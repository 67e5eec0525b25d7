"""What a person passes as X, as data frames that the learner reads, and results as data frames: facts and reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from math import isnan
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from acefraud import FactTable, Learner, SchemaMapping
from acefraud.display.frames import BACKENDS, is_frame, make_frame
from acefraud.errors import ConfigurationError

ARRAY = "array"
"""What results of an array are: arrays where that is possible."""
ROLELESS = {"id": "", "time": "", "text": "", "amount": "", "known_at": "", "difficulty": ""}
"""A mapping without roles, for arrays: their columns have no names that mean anything."""
LEVEL = "level"
"""The kind of the first reason of every row: the log-odds before any bullet fires."""
_LABEL = "label"


def has_names(given: object) -> bool:
    """Whether X is a data frame whose columns are named. One with numbers for names counts as an array."""
    return is_frame(given) and all(isinstance(name, str) for name in nw.from_native(given).collect_schema().names())


def eager(frame: Any) -> nw.DataFrame[Any]:
    """The frame behind one interface, collected if it is lazy."""
    given = nw.from_native(frame)
    return given.collect("polars") if isinstance(given, nw.LazyFrame) else given


def array_frame(cells: npt.NDArray[Any], names: Sequence[str]) -> pl.DataFrame:
    """A two-dimensional array as a frame. A column of objects holds numbers if all of its cells are."""
    return pl.DataFrame({name: _column(cells[:, at]) for at, name in enumerate(names)})


def _column(cells: npt.NDArray[Any]) -> pl.Series:
    if cells.dtype.kind == "O":
        try:
            cells = cells.astype(np.float64)
        except (TypeError, ValueError):  # words, or pandas' own sign for a missing value
            return pl.Series([_word(cell) for cell in cells.tolist()], dtype=pl.String)
    if cells.dtype.kind in "US":
        return pl.Series(cells.astype(str).tolist(), dtype=pl.String)
    return pl.Series(np.ascontiguousarray(cells, dtype=np.float64))


def _word(cell: Any) -> str | None:
    missing = cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and isnan(cell))
    return None if missing else str(cell)


def with_labels(frame: Any, mapping: SchemaMapping, is_fraud: npt.NDArray[np.bool_]) -> tuple[Any, SchemaMapping]:
    """A frame with a column of labels, 1 for fraud, in place of one it may have, and the mapping that names it."""
    given = eager(without_columns(frame, (mapping.label,)))
    name = _LABEL
    while name in given.columns:
        name += "_"
    labels = nw.new_series(name, is_fraud.astype(np.int64).tolist(), nw.Int64, backend=given.implementation)
    if nw.dependencies.is_pandas_dataframe(frame):  # which would align by index
        labels = nw.from_native(labels.to_native().set_axis(frame.index), series_only=True)
    update = {"label": name, "fraud_values": ("1",), "legit_values": ("0",)}
    return given.with_columns(labels).to_native(), mapping.model_copy(update=update)


def first_partition(frame: Any, labels: Any) -> tuple[Any, Any]:
    """The rows of the first partition of a Dask frame that has any, and their labels if they are apart."""
    if labels is not None and getattr(labels, "npartitions", None) != frame.npartitions:
        raise ConfigurationError("y: expected a Dask series with the partitions of X, or None and a column of X")
    for index in range(frame.npartitions):
        rows = frame.partitions[index].compute()
        if len(rows) and not has_names(rows):
            raise ConfigurationError("X: expected a Dask frame whose columns have names")
        if len(rows):
            return rows, None if labels is None else labels.partitions[index].compute()
    raise ValueError("Found array with 0 sample(s), and a minimum of 1 is required.")


def with_texts(frame: Any, without: str | None, name: str, labels: Any) -> Any:
    """A Dask frame with a column of labels as texts, and without another column."""
    kept = [column for column in frame.columns if column != without]
    return frame[kept].assign(**{name: labels.astype(str)})


def by_partition(function: Callable[[Any], Any], frame: Any, empty: npt.NDArray[Any]) -> Any:
    """What a function gives for each partition of a Dask frame, as a Dask array. `empty` is its result for no rows."""
    return frame.map_partitions(_unless_empty, function, empty, meta=empty)


def _unless_empty(rows: Any, function: Callable[[Any], Any], empty: npt.NDArray[Any]) -> Any:
    return function(rows) if len(rows) else empty


def without_columns(frame: Any, names: Sequence[str | None]) -> Any:
    """A frame without these columns, whether it has them or not."""
    given = eager(frame)
    there = [name for name in names if name and name in given.columns]
    return given.drop(there).to_native() if there else given.to_native()


def backend_of(frame: Any) -> str:
    """The library that a frame comes from, if results can be given in it; else polars."""
    name = nw.from_native(frame).implementation.name.lower()
    return name if name in BACKENDS else "polars"


def library_of(given: Any) -> str:
    """The library in which results about X are given."""
    return backend_of(given) if has_names(given) else ARRAY


def backend_for(backend: str) -> str:
    """The library of results. Those of an array come in pandas, as scikit-learn gives them, or in polars without it."""
    if backend == ARRAY:
        return "pandas" if find_spec("pandas") else "polars"
    return backend


def result_frame(columns: Mapping[str, Any], backend: str) -> Any:
    """A frame with results."""
    return make_frame(columns, backend_for(backend))


def fact_columns(facts: FactTable, names: Sequence[str]) -> dict[str, pl.Series]:
    """Facts by name: numbers, flags or words, null where they are unknown."""
    return {name: _fact_column(facts, name) for name in names}


def _fact_column(facts: FactTable, name: str) -> pl.Series:
    numbers = pl.Series(facts.numbers(name)).fill_nan(None)
    if name in facts.columns.categories:
        codes, words = facts.categories(name)
        text = pl.Series([*words, None], dtype=pl.String).gather(np.where(codes < 0, len(words), codes))
        return text.zip_with(text.is_not_null(), numbers.cast(pl.String))
    if name in facts.columns.flags:
        flags = facts.flags(name)
        return pl.Series(flags == 1).set(pl.Series(flags < 0), None)
    return numbers


def reason_columns(learner: Learner, facts: FactTable) -> dict[str, Any]:
    """One row for each reason of each score. The contributions of a row add up to its log-odds of fraud."""
    score = learner.additive_score()
    rows, terms = [np.arange(len(facts))], [np.zeros(len(facts), dtype=np.int64)]
    weights, words, kinds, ids = [score.calibration.level], ["before any bullet fires"], [LEVEL], [""]
    for index, (term, mask) in enumerate(score.holding(facts), start=1):
        fired = np.flatnonzero(mask)
        rows.append(fired)
        terms.append(np.full(len(fired), index))
        weights.append(term.weight)
        words.append(term.words)
        kinds.append(str(term.kind))
        ids.append("" if term.bullet is None else term.bullet.id)
    row, reason = np.concatenate(rows), np.concatenate(terms)
    strength = np.abs(np.array(weights))
    strength[0] = np.inf  # the level stands first
    order = np.lexsort((reason, -strength[reason], row))
    row, reason = row[order], reason[order]
    return {
        "row": row,
        "kind": np.array(kinds, dtype=object)[reason].tolist(),
        "bullet": np.array(ids, dtype=object)[reason].tolist(),
        "reason": np.array(words, dtype=object)[reason].tolist(),
        "contribution": np.array(weights)[reason],
    }


def fact_contributions(learner: Learner, facts: FactTable) -> dict[str, npt.NDArray[np.float64]]:
    """What each fact adds to the log-odds of each row. A rule's weight is shared equally by the facts that it tests."""
    found: dict[str, npt.NDArray[np.float64]] = {}
    for term, mask in learner.additive_score().holding(facts):
        for name in (tested := sorted(term.condition.facts)):
            found.setdefault(name, np.zeros(len(facts)))[mask] += term.weight / len(tested)
    return found


def importances(learner: Learner, mapping: SchemaMapping, columns: Sequence[str]) -> npt.NDArray[np.float64]:
    """The share of each column in how far the remembered cases are apart from their mean; zeros if nothing tells."""
    total = dict.fromkeys(columns, 0.0)
    for fact, added in fact_contributions(learner, learner.remembered().facts).items():
        made_from = mapping.columns_of(fact, columns)
        for column in made_from:
            total[column] += float(np.abs(added - added.mean()).mean()) / len(made_from)
    found = np.array([total[column] for column in columns])
    return found / found.sum() if found.any() else found
