"""Types of the arrays that cases and scores consist of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]
"""Positions of rows in the data."""
Micros = npt.NDArray[np.int64]
"""Microseconds since 1970 in UTC, `UNKNOWN` if there is no time."""
UNKNOWN = int(np.iinfo(np.int64).min)
