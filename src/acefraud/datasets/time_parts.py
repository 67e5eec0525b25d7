"""Times of files that write year, month and day or week into columns of their own."""

from __future__ import annotations

import re
from calendar import month_name, monthrange
from collections.abc import Callable, Container, Iterator, Mapping
from datetime import UTC, datetime

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from acefraud.core.timestamps import Micros, micros_of
from acefraud.datasets.distinct import BadCells, Places, distinct_values, spread
from acefraud.datasets.labels import plain_text
from acefraud.datasets.table import Column
from acefraud.errors import ConfigurationError

BadParts = list[tuple[str, BadCells]]
"""For each column, the cells that are no such part of a time."""

_MONTHS = {name[:length].lower(): at for at, name in enumerate(month_name) if at for length in range(3, len(name) + 1)}
_YEARS = range(1900, 2101)
_WEEK = 7
_MISSING = 0


class TimeParts(BaseModel):
    """The columns with the parts of a time. Without day and week, it is the first of the month.

    >>> TimeParts(year="Year", month="Month", week="Week", day="Day")
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: 'time_parts.week' and 'time_parts.day' exclude each other
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    year: str
    month: str
    week: str = ""
    day: str = ""

    @model_validator(mode="after")
    def _sound(self) -> TimeParts:
        if self.week and self.day:
            raise ConfigurationError("'time_parts.week' and 'time_parts.day' exclude each other")
        owners: dict[str, str] = {}
        for key, column in self.named_columns():
            if (other := owners.setdefault(column, key)) != key:
                raise ConfigurationError(f"'{other}' and '{key}' both name the column '{column}'")
        for key in ("year", "month"):
            if not getattr(self, key):
                raise ConfigurationError(f"'time_parts.{key}': expected the name of a column")
        return self

    def are_in(self, columns: Container[str]) -> bool:
        """Whether a file has all of these columns."""
        return all(column in columns for _, column in self.named_columns())

    def named_columns(self) -> Iterator[tuple[str, str]]:
        """Every column that is named, with the key that names it."""
        for key in type(self).model_fields:
            if column := getattr(self, key):
                yield f"time_parts.{key}", column


def read_time_parts(columns: Mapping[str, Column], parts: TimeParts) -> tuple[Micros, BadParts]:
    """The times that the parts make, `UNKNOWN` where a part is missing; and the cells that are wrong.

    >>> from acefraud.core.timestamps import time_of
    >>> columns = {"Year": [1994, 1995, 1996], "Month": ["Dec", 2, "May"], "Week": [3, 5, None]}
    >>> times, _ = read_time_parts(columns, TimeParts(year="Year", month="Month", week="Week"))
    >>> [time and f"{time:%Y-%m-%d}" for time in map(time_of, times)]
    ['1994-12-15', '1995-02-28', None]
    """
    years, bad_years = _read(columns[parts.year], _year, "a year from 1900 to 2100")
    months, bad_months = _read(columns[parts.month], _month, "a month as 1 to 12 or by its English name")
    bad: BadParts = [(parts.year, bad_years), (parts.month, bad_months)]
    days = np.ones(len(years), dtype=np.int64)
    if parts.week:
        days, wrong = _read(columns[parts.week], _first_of_week, "a week of the month from 1 to 6")
        bad.append((parts.week, wrong))
    if parts.day:
        days, wrong = _read(columns[parts.day], _day, "a day of the month from 1 to 31")
        bad.append((parts.day, wrong))
    dates, places = np.unique(np.column_stack([years, months, days]), axis=0, return_inverse=True)
    made = [_time(*date, clipped=not parts.day) for date in dates.tolist()]
    beyond = [
        (place, f"expected a day of {month_name[month]} {year}, got {str(day)!r}")
        for place, (year, month, day) in enumerate(dates.tolist())
        if made[place] is None and _MISSING not in (year, month, day)
    ]
    bad.append((parts.day, spread(beyond, places)))
    return np.array([micros_of(time) for time in made], dtype=np.int64)[places], bad


def _time(year: int, month: int, day: int, *, clipped: bool) -> datetime | None:
    """A week may begin after the month has ended; it then counts as the last day."""
    if _MISSING in (year, month, day):
        return None
    last = monthrange(year, month)[1]
    if day > last and not clipped:
        return None
    return datetime(year, month, min(day, last), tzinfo=UTC)


def _read(column: Column, read: Callable[[str], int | None], expected: str) -> tuple[Places, BadCells]:
    """The figures of a column, `_MISSING` where there is none, and the cells that are none such."""
    texts, places = distinct_values(plain_text(column))
    figures = [None if text is None else read(text) for text in texts]
    bad = [
        (place, f"expected {expected}, got {text[:60]!r}")
        for place, (text, figure) in enumerate(zip(texts, figures, strict=True))
        if figure is None and text is not None and text.casefold() not in ("null", "none")
    ]
    return np.array([figure or _MISSING for figure in figures], dtype=np.int64)[places], spread(bad, places)


def _number(text: str, allowed: range) -> int | None:
    number = re.fullmatch(r"(\d{1,4})(?:\.0*)?", text, re.ASCII)
    return int(number[1]) if number and int(number[1]) in allowed else None


def _year(text: str) -> int | None:
    return _number(text, _YEARS)


def _month(text: str) -> int | None:
    return _MONTHS.get(text.removesuffix(".").lower()) or _number(text, range(1, 13))


def _first_of_week(text: str) -> int | None:
    week = _number(text, range(1, 7))
    return None if week is None else 1 + _WEEK * (week - 1)


def _day(text: str) -> int | None:
    return _number(text, range(1, 32))
