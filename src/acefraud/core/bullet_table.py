"""The bullets of one revision, by id and in columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from acefraud.core.arrays import BoolArray
from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition_index import ConditionIndex
from acefraud.core.transaction import Verdict

Columns = npt.NDArray[np.void]
T = TypeVar("T")

SOURCES = tuple(Source)
STATUSES = tuple(Status)
VERDICTS: tuple[Verdict | None, ...] = (None, *Verdict)
ROW = np.dtype(
    [
        ("key", "u8"),
        ("node", "u2"),
        ("source", "u1"),
        ("status", "u1"),
        ("argues", "u1"),
        ("conditioned", "?"),
        ("policy", "?"),
        ("claimed", "?"),
        ("helpful", "i8"),
        ("harmful", "i8"),
        ("shown_support", "i8"),
        ("shown_frauds", "i8"),
        ("support", "i8"),
        ("frauds", "i8"),
        ("shown_base", "f8"),
        ("weight", "f8"),
    ]
)
"""The columns. ``support`` and ``frauds`` are the bullet's record since it was added, ``shown_`` those of its evidence;
``shown_base`` is NaN where nothing was measured, ``weight`` where none was fitted."""


def key_of(bullet_id: str) -> int:
    """A number for a bullet that is the same in every table."""
    return int.from_bytes(hashlib.blake2b(bullet_id.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, eq=False)
class RowSet:
    """Some rows of a table: as a mask for arithmetic, and as the bit set that `ConditionIndex` works with.

    >>> RowSet(np.array([True, False, True])).bits
    5
    """

    mask: BoolArray

    @cached_property
    def bits(self) -> int:
        """Bit i for row i."""
        return int.from_bytes(np.packbits(self.mask, bitorder="little").tobytes(), "little")


class Wording:
    """What the bullets of a table say, and what follows from it.

    Tables that differ only in counters share one, so a counter never invalidates anything derived from the words.
    """

    def __init__(self, bullets: tuple[Bullet, ...], facts: list[frozenset[str]], lower_case: list[str]) -> None:
        self._bullets = bullets
        self.facts = facts
        """The facts that the condition of each bullet tests; empty for prose."""
        self.lower_case = lower_case
        """The content of each bullet in lower case."""

    @cached_property
    def conditions(self) -> ConditionIndex:
        """The conditions, compiled together."""
        return ConditionIndex([bullet.condition for bullet in self._bullets])

    def updated(self, bullets: tuple[Bullet, ...], rows: Iterable[int]) -> Wording:
        """The wording of other bullets, of which only these rows say something else."""
        added = len(bullets) - len(self._bullets)
        facts, lower_case = self.facts + [frozenset()] * added, self.lower_case + [""] * added
        for row in rows:
            condition = bullets[row].condition
            facts[row] = frozenset() if condition is None else condition.facts
            lower_case[row] = bullets[row].content.lower()
        return Wording(bullets, facts, lower_case)


class BulletTable(Mapping[str, Bullet]):
    """The bullets of one revision in the order they were added. It never changes.

    >>> table = BulletTable.of([Bullet(id="b1", content="VPN: decline"), Bullet(id="b2", content="a regular: approve")])
    >>> table["b2"].content, list(table), table.columns["helpful"].tolist()
    ('a regular: approve', ['b1', 'b2'], [0, 0])
    """

    __slots__ = ("_nodes", "_rows", "bullets", "cache", "columns", "wording")

    def __init__(
        self,
        bullets: tuple[Bullet, ...],
        columns: Columns,
        rows: Mapping[str, int],
        nodes: Mapping[str, int],
        wording: Wording,
    ) -> None:
        self.bullets = bullets
        self.columns = columns
        self.wording = wording
        self._rows = rows
        self._nodes = nodes
        self.cache: dict[object, Any] = {}
        """What others have computed from this very table, under a key of their own."""

    @classmethod
    def of(cls, bullets: Iterable[Bullet]) -> BulletTable:
        """A table of these bullets."""
        return cls((), np.empty(0, dtype=ROW), {}, {}, Wording((), [], [])).updated(bullets)

    def updated(self, changed: Iterable[Bullet]) -> BulletTable:
        """A table with these bullets added, or put in place of those with the same id."""
        latest = {bullet.id: bullet for bullet in changed}
        added = [one for one in latest if one not in self._rows]
        rows = {**self._rows, **{one: row for row, one in enumerate(added, len(self))}} if added else self._rows
        nodes = dict(self._nodes)
        bullets = [*self.bullets, *(latest[one] for one in added)]
        reworded = bool(added)
        for bullet in latest.values():
            row = rows[bullet.id]
            before = bullets[row]
            reworded = reworded or (before.content, before.condition) != (bullet.content, bullet.condition)
            bullets[row] = bullet
        columns = np.empty(len(bullets), dtype=ROW)
        columns[: len(self)] = self.columns
        changed_rows = [row_of(one, nodes.setdefault(one.node, len(nodes))) for one in latest.values()]
        places = [rows[one] for one in latest]
        columns[places] = np.array(changed_rows, dtype=ROW)
        frozen = tuple(bullets)
        wording = self.wording.updated(frozen, places) if reworded else self.wording
        return BulletTable(frozen, columns, rows, nodes, wording)

    def __len__(self) -> int:
        return len(self.bullets)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __getitem__(self, bullet_id: str) -> Bullet:
        return self.bullets[self._rows[bullet_id]]

    def row(self, bullet_id: str) -> int:
        """The row of a bullet. KeyError if there is none of that id."""
        return self._rows[bullet_id]

    def node(self, name: str) -> int | None:
        """The number of a node in the columns; None if it has no bullet."""
        return self._nodes.get(name)

    def in_use(self, node: int | None, source: Source | None = None) -> RowSet:
        """The rows of a node that are weighed or read, of one source if asked: neither retired nor policies."""

        def compute() -> RowSet:
            mask = self.of_node(node).mask & ~self.columns["policy"]
            return RowSet(mask if source is None else mask & (self.columns["source"] == SOURCES.index(source)))

        return self.cached(("in use", node, source), compute)

    def in_force(self, node: int | None) -> RowSet:
        """The policies of a node that decide: neither retired nor waiting for approval."""
        waiting = STATUSES.index(Status.CANDIDATE)
        return self.cached(
            ("in force", node),
            lambda: RowSet(self.of_node(node).mask & self.columns["policy"] & (self.columns["status"] != waiting)),
        )

    def of_node(self, node: int | None) -> RowSet:
        """The rows of a node that are not retired, policies among them."""
        return self.cached(
            ("of node", node),
            lambda: RowSet(self.not_retired().mask & (self.columns["node"] == node if node is not None else False)),
        )

    def not_retired(self) -> RowSet:
        """The rows of all nodes that are not retired."""
        retired = STATUSES.index(Status.RETIRED)
        return self.cached("not retired", lambda: RowSet(self.columns["status"] != retired))

    def unapproved_notes(self) -> RowSet:
        """The rows without a condition that are candidates: no language model sees them before they are approved."""
        candidate = STATUSES.index(Status.CANDIDATE)
        return self.cached(
            "unapproved notes", lambda: RowSet((self.columns["status"] == candidate) & ~self.columns["conditioned"])
        )

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """What follows from this very table, computed once."""
        if key not in self.cache:
            self.cache[key] = compute()
        found: T = self.cache[key]
        return found


def row_of(bullet: Bullet, node: int) -> tuple[int | float | bool, ...]:
    """The columns of one bullet."""
    evidence = bullet.evidence
    shown = evidence.shown if evidence is not None else None
    return (
        key_of(bullet.id),
        node,
        SOURCES.index(bullet.source),
        STATUSES.index(bullet.status),
        VERDICTS.index(bullet.argues),
        bullet.condition is not None,
        bullet.policy is not None,
        bullet.claim is not None,
        bullet.helpful_count,
        bullet.harmful_count,
        shown.support if shown is not None else 0,
        shown.frauds if shown is not None else 0,
        bullet.record.support,
        bullet.record.frauds,
        evidence.base_rate if evidence is not None else np.nan,
        np.nan if bullet.weight is None else bullet.weight,
    )
