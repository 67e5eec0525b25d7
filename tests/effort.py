"""How often long tests repeat themselves."""

from __future__ import annotations

import os

FULL = bool(os.environ.get("ACEFRAUD_TEST_FULL"))
"""Whether they take all the time they can use: `make test-long FULL=1`."""


def rounds(full: int) -> int:
    """A quarter of the full number, unless all of it was asked for."""
    return full if FULL else max(1, full // 4)
