"""Values as other libraries hand them over, in plain Python: NumPy scalars, NaN, NaT, decimals, ids as numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

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
