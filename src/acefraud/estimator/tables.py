"""What a person passes as X, as data frames that the learner reads, and results as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from math import isnan
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from acefraud import FactTable
from acefraud.display.frames import BACKENDS, is_frame, make_frame

ARRAY = "array"
"""What results of an array are: arrays where that is possible."""
ROLELESS = {"id": "", "time": "", "text": "", "amount": "", "known_at": "", "difficulty": ""}
"""A mapping without roles, for arrays: their columns have no names that mean anything."""
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


def with_labels(frame: Any, is_fraud: npt.NDArray[np.bool_]) -> tuple[Any, str]:
    """A frame with a column of labels, 1 for fraud, and the name of that column."""
    given = eager(frame)
    name = _LABEL
    while name in given.columns:
        name += "_"
    labels = nw.new_series(name, is_fraud.astype(np.int64).tolist(), nw.Int64, backend=given.implementation)
    if nw.dependencies.is_pandas_dataframe(frame):  # which would align by index
        labels = nw.from_native(labels.to_native().set_axis(frame.index), series_only=True)
    return given.with_columns(labels).to_native(), name


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
