"""What bullets with a condition say of many transactions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet
from acefraud.core.condition import Condition
from acefraud.core.rules import Rules
from acefraud.core.table import FactTable
from acefraud.embedded.agent import weight_of
from acefraud.selection.columns import cited_in
from acefraud.selection.hybrid import HybridSelector

MANY = 300
"""From so many conditions on, compiling them together is quicker than asking one after another."""


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
    cited = fired_in([condition for _, condition in able], rows)
    if selector is not None:
        cited = cited_in(selector, speaking, cited, base_rate, wanted, ids=ids)
    weights = np.array([weight_of(bullet, base_rate) for bullet in speaking], dtype=np.float64)
    return Cited(cited, cited @ weights)


def fired_in(conditions: Sequence[Condition], rows: FactTable) -> npt.NDArray[np.bool_]:
    """Where each condition holds: a row for each transaction, a column for each condition."""
    if len(conditions) >= MANY:
        return Rules.of(conditions).standing_in(rows)[1]
    fired = np.zeros((len(rows), len(conditions)), dtype=np.bool_)
    for place, condition in enumerate(conditions):
        fired[:, place] = condition.holds_in(rows)
    return fired
