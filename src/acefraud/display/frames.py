"""Data frames in and out. narwhals, which knows their kinds, is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from acefraud.errors import ConfigurationError

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame
    from typing_extensions import TypeIs

BACKENDS = ("polars", "pandas", "pyarrow")
"""The libraries in whose data frames results are given."""


def is_frame(given: object) -> TypeIs[IntoFrame]:
    """Whether something is a data frame that narwhals reads: pandas, polars, pyarrow, DuckDB, ...

    >>> import polars as pl
    >>> is_frame(pl.DataFrame({"amount": [5.0]})), is_frame([{"amount": 5.0}])
    (True, False)
    """
    # Asked of its type, because a lazy frame would compute its columns.
    if isinstance(given, str | bytes | Mapping | Sequence) or not hasattr(type(given), "columns"):
        return False
    import narwhals as nw  # noqa: PLC0415

    try:
        return isinstance(nw.from_native(given, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except nw.exceptions.DuplicateError:  # one with a column twice is a frame too, and whoever reads it says so
        return True


def is_dask_frame(given: object) -> bool:
    """Whether something is a data frame of Dask, which is not imported to find out.

    >>> is_dask_frame([{"amount": 5.0}])
    False
    """
    kind = type(given)
    return kind.__module__.startswith("dask.dataframe") and kind.__name__ == "DataFrame"


def make_frame(columns: Mapping[str, Any], backend: str = "polars") -> Any:
    """A data frame with these columns, of polars, pandas or pyarrow.

    >>> make_frame({"amount": [5.0, 7.0]}).columns
    ['amount']
    """
    if backend not in BACKENDS:
        raise ConfigurationError(f"backend: expected one of {', '.join(BACKENDS)}, got {backend!r}")
    import narwhals as nw  # noqa: PLC0415

    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()  # type: ignore[arg-type]  # checked above
    except ImportError:
        raise ConfigurationError(f"{backend} is not installed: pip install {backend}") from None


def frame_of_rows(rows: Sequence[Mapping[str, Any]], backend: str = "polars") -> Any:
    """A data frame with a row for each mapping. All of them have the same keys.

    >>> frame_of_rows([{"id": "t1", "amount": 5.0}, {"id": "t2", "amount": None}]).shape
    (2, 2)
    """
    return make_frame({name: [row[name] for row in rows] for name in (rows[0] if rows else ())}, backend)
