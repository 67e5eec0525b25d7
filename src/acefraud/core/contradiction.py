"""Bullets that cannot both be right."""

from __future__ import annotations

import numpy as np

from acefraud.core.arrays import BoolArray
from acefraud.core.bullet_table import VERDICTS, BulletTable
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict


def contradicted_in(
    table: BulletTable, node: str, condition: Condition | None, argues: Verdict | None
) -> tuple[str, ...]:
    """The ids of the bullets in use that argue for another verdict under an overlapping condition.

    Two conditions overlap if one implies the other: where the narrower one holds, the two bullets disagree.
    """
    if condition is None or argues is None:
        return ()
    mine, facts = condition.facts, table.wording.facts
    in_use = table.of_node(table.node(node)).mask & table.columns["conditioned"]
    against = np.flatnonzero(in_use & opposed_rows(table, argues)).tolist()
    # A condition implies only conditions on the same facts or on fewer of them.
    others = [table.bullets[row] for row in against if mine <= facts[row] or facts[row] <= mine]
    return tuple(other.id for other in others if other.condition is not None and _overlap(condition, other.condition))


def opposed(one: Verdict | None, other: Verdict | None) -> bool:
    """Whether two verdicts are known and differ."""
    return one is not None and other is not None and one is not other


def opposed_rows(table: BulletTable, argues: Verdict | None) -> BoolArray:
    """A mask of the bullets that argue for another verdict."""
    theirs = table.columns["argues"]
    against: BoolArray = (theirs != VERDICTS.index(None)) & (theirs != VERDICTS.index(argues)) & (argues is not None)
    return against


def _overlap(one: Condition, other: Condition) -> bool:
    return one.implies(other) or other.implies(one)
