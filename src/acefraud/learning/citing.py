"""What bullets with a condition say of many transactions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet
from acefraud.core.table import FactTable
from acefraud.embedded.agent import weight_of
from acefraud.selection.columns import cited_in
from acefraud.selection.hybrid import HybridSelector


@dataclass(frozen=True, slots=True)
class Cited:
    """Which bullets speak for each row, and what they say together."""

    cited: npt.NDArray[np.bool_]
    """A row for each transaction, a column for each bullet with a condition."""
    log_odds: npt.NDArray[np.float64]
    """What the cited bullets add to the log-odds of each row."""


def cite(
    bullets: Sequence[Bullet],
    rows: FactTable,
    base_rate: float,
    wanted: int,
    selector: HybridSelector | None,
    *,
    ids: Sequence[str] | None = None,
) -> Cited:
    """The bullets that the selector picks for each row, `wanted` at most; without one, all that fire."""
    able = [(bullet, bullet.condition) for bullet in bullets if bullet.condition is not None]
    speaking = [bullet for bullet, _ in able]
    cited = np.zeros((len(rows), len(able)), dtype=np.bool_)
    for place, (_, condition) in enumerate(able):
        cited[:, place] = condition.holds_in(rows)
    if selector is not None:
        cited = cited_in(selector, speaking, cited, base_rate, wanted, ids=ids)
    weights = np.array([weight_of(bullet, base_rate) for bullet in speaking], dtype=np.float64)
    return Cited(cited, cited @ weights)
