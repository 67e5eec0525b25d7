"""Small matrix products on one thread.

The products of one induction are small and many. Split over threads, each waits for the others longer than it works;
on a machine with other things to do that made a run five times slower.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 20_000_000
"""Cells up to which a matrix is multiplied on one thread."""


def threads_for(cells: int) -> AbstractContextManager[Any]:
    """Limits the linear algebra inside to one thread where the matrix is small."""
    return _controller().limit(limits=1, user_api="blas") if cells <= SMALL else nullcontext()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
