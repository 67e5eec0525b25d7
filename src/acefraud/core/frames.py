"""Data frames in and out. narwhals, which knows their kinds, is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from acefraud.errors import ConfigurationError

Backend: TypeAlias = Literal["polars", "pandas", "pyarrow"]
"""The library whose data frames you get."""
BACKENDS = ("polars", "pandas", "pyarrow")


def is_frame(given: object) -> bool:
    """Whether something is a data frame that narwhals reads: pandas, polars, pyarrow, DuckDB, ...

    >>> import polars as pl
    >>> is_frame(pl.DataFrame({"amount": [5.0]})), is_frame([{"amount": 5.0}])
    (True, False)
    """
    if isinstance(given, str | bytes | Mapping | Sequence) or not hasattr(given, "columns"):
        return False
    import narwhals as nw  # noqa: PLC0415

    return isinstance(nw.from_native(given, pass_through=True), nw.DataFrame | nw.LazyFrame)


def make_frame(columns: Mapping[str, Sequence[Any]], backend: Backend = "polars") -> Any:
    """A data frame with these columns.

    >>> make_frame({"amount": [5.0, 7.0]}).columns
    ['amount']
    """
    if backend not in BACKENDS:
        raise ConfigurationError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    import narwhals as nw  # noqa: PLC0415

    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ImportError:
        raise ConfigurationError(f"{backend} is not installed: pip install {backend}") from None
