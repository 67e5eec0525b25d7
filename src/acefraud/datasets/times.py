"""Times in the shapes that files bring them in, all made timezone-aware; a naive time is taken as UTC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import polars as pl

from acefraud.core.timestamps import UNKNOWN, Micros, micros_of
from acefraud.datasets.distinct import BadCells, distinct_values, spread
from acefraud.datasets.labels import plain_text
from acefraud.datasets.table import Column

ISO = "iso"
EPOCH = "epoch"
EPOCH_MS = "epoch_ms"

# Two-digit years stand before four-digit ones, since the parser would take "15" for the year 15. Month first
# stands before day first: where every cell can be read both ways, the mapping's time_format decides.
_DAYS = ("%m/%d/%y", "%m/%d/%Y", "%d/%m/%y", "%d/%m/%Y", "%Y/%m/%d", "%d.%m.%y", "%d.%m.%Y", "%d-%m-%Y")
_NAMED_DAYS = ("%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y")
_CLOCKS = (" %H:%M", " %H:%M:%S", " %H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p", "")
_EARLIEST = micros_of(datetime(1900, 1, 1, tzinfo=UTC))
_SAMPLE = 1000


_EXPECTED = {
    ISO: "like 2025-01-31T14:05:00",
    EPOCH: "in seconds since 1970",
    EPOCH_MS: "in milliseconds since 1970",
}


@dataclass(frozen=True, slots=True)
class Times:
    """A column of times, the cells that are none, and the format that was found."""

    values: Micros
    bad: BadCells
    format: str


def read_times(column: Column, time_format: str | None = None) -> Times:
    """Read a column of times in the given format, or in the one that reads most of its cells.

    >>> read_times(pl.Series(["2/24/15 22:55", "soon"])).bad
    [(1, "expected a time like '%m/%d/%y %H:%M', got 'soon'")]
    """
    if isinstance(column, pl.Series) and column.dtype.is_temporal():
        return Times(_stamps(column), [], time_format or ISO)
    texts = plain_text(column)
    chosen = time_format or find_format(texts) or ISO
    distinct, places = distinct_values(texts)
    values = _parse(distinct, chosen)
    shape = _EXPECTED.get(chosen, f"like {chosen!r}")
    bad = [
        (int(place), f"expected a time {shape}, got {text[:60]!r}")
        for place in np.flatnonzero(values == UNKNOWN)
        if (text := distinct[int(place)]) is not None and text.casefold() not in ("null", "none")
    ]
    return Times(values[places], spread(bad, places), chosen)


def find_format(texts: pl.Series) -> str | None:
    """The format that reads the most cells of a sample, or None where none reads any.

    The sample is spread over the column: in a file sorted by time, the first days of January read both ways.
    """
    present = texts.drop_nulls()
    sample = present[:: max(1, len(present) // _SAMPLE)]
    if sample.is_empty():
        return None
    best, best_share = None, 0.0
    for time_format in (EPOCH, EPOCH_MS, ISO, *(day + clock for day in _DAYS + _NAMED_DAYS for clock in _CLOCKS)):
        share = _count_read(sample, time_format) / len(sample)
        if share > best_share:
            best, best_share = time_format, share
        if share == 1.0:
            break
    return best


def shared_format(column: Column, time_format: str | None) -> str | None:
    """The format of another column where it reads most cells of this one too; else None, and it has to be found.

    A single row would not tell day and month apart, so it is read as the column beside it.

    >>> shared_format(["2/1/15"], "%d/%m/%y"), shared_format(["2015-01-02"], "%d/%m/%y")
    ('%d/%m/%y', None)
    """
    sample = plain_text(_head(column)).drop_nulls()
    if time_format is None or sample.is_empty():
        return time_format
    return time_format if 2 * _count_read(sample, time_format) >= len(sample) else None


def look_like_times(column: Column, *, at_least: float = 0.95) -> bool:
    """Whether that share of the first cells are times, so that a column may be guessed to hold them.

    >>> look_like_times(["2025-01-31", "2025-02-01"]), look_like_times([0.0, 31.0])
    (True, False)
    """
    if isinstance(column, pl.Series) and column.dtype.is_temporal():
        return True
    sample = plain_text(_head(column)).drop_nulls()
    found = find_format(sample)
    return found is not None and _count_read(sample, found) >= at_least * len(sample)


def _head(column: Column) -> Column:
    """The first cells that hold something."""
    if isinstance(column, pl.Series):
        return column.drop_nulls().head(_SAMPLE)
    return [cell for cell in column if cell is not None][:_SAMPLE]


def _count_read(texts: pl.Series, time_format: str) -> int:
    return int(np.sum(_parse(texts, time_format) != UNKNOWN))


def _stamps(series: pl.Series) -> Micros:
    if series.dtype == pl.Date:
        series = series.cast(pl.Datetime("us"))
    if not isinstance(series.dtype, pl.Datetime):
        return np.full(len(series), UNKNOWN, dtype=np.int64)
    stamps = series.cast(pl.Datetime("us", series.dtype.time_zone)).to_physical()  # in UTC, whatever the zone
    return stamps.fill_null(UNKNOWN).to_numpy()


def _parse(texts: pl.Series, time_format: str) -> Micros:
    if time_format == ISO:
        return _each(_from_iso, texts)
    if time_format in (EPOCH, EPOCH_MS):
        return _from_epoch(texts, 1 if time_format == EPOCH else 1000)
    pattern = time_format.replace(".%f", "%.f")
    stamps = _stamps(texts.str.to_datetime(pattern, strict=False, ambiguous="null"))
    return np.where(stamps >= _EARLIEST, stamps, UNKNOWN)


def _each(read: Callable[[str], datetime | None], texts: pl.Series) -> Micros:
    micros = (UNKNOWN if text is None else micros_of(read(text)) for text in texts)
    return np.fromiter(micros, dtype=np.int64, count=len(texts))


def _from_iso(text: str) -> datetime | None:
    if "-" not in text:  # "20250131" would pass for a date, and so would many an id
        return None
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return None
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return None


def _from_epoch(texts: pl.Series, per_second: int) -> Micros:
    """Only figures that fall between 2000 and 2100 are times; smaller ones are seconds since who knows when."""
    seconds = texts.cast(pl.Float64, strict=False) / per_second
    plausible = seconds.is_between(946_684_800, 4_102_444_800)
    micros = (seconds.set(~plausible.fill_null(False), None) * 1_000_000).round().cast(pl.Int64, strict=False)
    return micros.fill_null(UNKNOWN).to_numpy()
