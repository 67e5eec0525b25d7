"""Values as other libraries hand them over, in plain Python, and points in time."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BeforeValidator

_PLAIN = (float, str, bool, int)


def plain_value(value: Any) -> Any:
    """The value in plain Python, None if it says that there is none. Anything else is returned as it is.

    >>> plain_value(np.float32(0.5)), plain_value(float("nan")), plain_value(np.datetime64("2025-01-31T12:00"))
    (0.5, None, datetime.datetime(2025, 1, 31, 12, 0))
    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        value = float(value)
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):  # noqa: PLR0124
        return None
    return value


def plain_values(values: dict[str, Any]) -> dict[str, Any]:
    """The values by name in plain Python, without those that say that there is none."""
    plain = {name: value if type(value) in _PLAIN else plain_value(value) for name, value in values.items()}
    return {name: value for name, value in plain.items() if value is not None and value == value}  # noqa: PLR0124


def id_text(value: Any) -> Any:
    """A whole number as text, a text without blanks around it; anything else is returned in plain Python.

    >>> id_text(np.int64(42)), id_text(" t1")
    ('42', 't1')
    """
    if isinstance(value, str):
        return value.strip()
    plain = plain_value(value)
    return str(plain) if isinstance(plain, int) and not isinstance(plain, bool) else plain


IdText = Annotated[str, BeforeValidator(id_text)]
"""An id, which may come as a whole number."""
PlainFlag = Annotated[bool, BeforeValidator(plain_value)]
"""True or false, which may come from NumPy."""


UNKNOWN = -(2**63)
"""Marks an unknown time or amount in a column of integers."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


A_YEAR = timedelta(days=365)
"""How much later a lonely time has to be at least."""


def last_plausible(times: npt.NDArray[np.int64]) -> int:
    """The time before a few lonely ones that are far later than all others; `UNKNOWN` if there are none.

    They are at most 1 % of the times, or one, and come more than a year later, and later than twice the span between
    the middle time and the last one before them. A clock that runs wrong gives such times.

    >>> year = 365 * 86_400_000_000
    >>> last_plausible(np.array([3, 1, 2, 80 * year])), last_plausible(np.array([3, 1, 2]))
    (3, -9223372036854775808)
    """
    known = np.sort(times[times != UNKNOWN])
    if len(known) < 3:  # neither of two times is the lonely one
        return UNKNOWN
    first = max(1, len(known) - max(1, len(known) // 100) - 1)
    before, after = known[first:-1], known[first + 1 :]
    lonely = np.flatnonzero(after - before > np.maximum(A_YEAR // _MICROSECOND, 2 * (before - known[len(known) // 2])))
    return int(before[lonely[0]]) if len(lonely) else UNKNOWN


def plausible(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The times, `UNKNOWN` in place of lonely ones that are far later than all others."""
    last = last_plausible(times)
    return times if last == UNKNOWN else np.where(times > last, UNKNOWN, times)


class NaiveTimeWarning(UserWarning):
    """A time without a zone was read as UTC. Python shows it once; `warnings.filterwarnings` turns it off.

    >>> import warnings
    >>> from datetime import datetime
    >>> from acefraud import Transaction
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NaiveTimeWarning)
    ...     order = Transaction(id="t1", time=datetime(2025, 1, 6, 9, 30), facts={"amount": 20})
    >>> order.time.isoformat()
    '2025-01-06T09:30:00+00:00'
    """


def in_utc(time: datetime) -> datetime:
    """The time with a zone. One without is read as UTC, with a warning.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     in_utc(datetime(2025, 1, 6, 9, 30)).isoformat()
    '2025-01-06T09:30:00+00:00'
    """
    if time.tzinfo is not None:
        return time
    warnings.warn("a time without a zone is read as UTC; give times a tzinfo", NaiveTimeWarning, stacklevel=2)
    return time.replace(tzinfo=UTC)


Timestamp = Annotated[datetime, AfterValidator(in_utc)]
"""A time in the input."""


OptionalTimestamp = Annotated[Timestamp | None, BeforeValidator(plain_value)]
"""A time in the input that may be missing, also as pandas and NumPy say it."""


def micros_of(time: datetime | None) -> int:
    """Microseconds since 1970, `UNKNOWN` for None.

    >>> micros_of(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return UNKNOWN if time is None else (in_utc(time) - _EPOCH) // _MICROSECOND


def time_of(micros: int) -> datetime | None:
    """The inverse of `micros_of`."""
    return None if micros == UNKNOWN else _EPOCH + timedelta(microseconds=int(micros))
