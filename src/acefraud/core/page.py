"""Pages: some bullets in a row with their columns. A page never changes; a new one shares what stays the same."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.rules import MOST_BREAKS, Rules
from acefraud.core.transaction import Verdict

Mask = npt.NDArray[np.bool_]
Table = npt.NDArray[np.void]
T = TypeVar("T")

PAGE = 1024
REMEMBERED_CHANGES = 64
"""Changes of words after which what was derived from a page is derived anew, rather than gone on with."""
FEW_BREAKS = 16
"""Cuts of a fact's range that the rules of a page look at in a book of that size; in a smaller one they are exact."""

SOURCES = tuple(Source)
STATUSES = tuple(Status)
_RETIRED = STATUSES.index(Status.RETIRED)
VERDICTS: tuple[Verdict | None, ...] = (None, *Verdict)
ROW = np.dtype(
    [
        ("key", "u8"),
        ("node", "u2"),
        ("source", "u1"),
        ("status", "u1"),
        ("argues", "u1"),
        ("conditioned", "?"),
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
"""What the columns hold. ``support`` and ``frauds`` are the record since the bullet was added, ``shown_`` that of its
evidence; ``shown_base`` is NaN where nothing was measured, ``weight`` where none was fitted."""


def key_of(bullet_id: str) -> int:
    """A number that stands for a bullet wherever it is: in whatever book, at whatever row."""
    return int.from_bytes(hashlib.blake2b(bullet_id.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a page: as a mask for arithmetic, as a bit set for combining with those of its rules.

    >>> Rows(np.array([True, False, True])).bits, Rows(np.array([True, False, True])).count
    (5, 2)
    """

    mask: Mask

    @cached_property
    def bits(self) -> int:
        """Bit i for row i."""
        return int.from_bytes(np.packbits(self.mask, bitorder="little").tobytes(), "little")

    @cached_property
    def count(self) -> int:
        """How many they are."""
        return int(np.count_nonzero(self.mask))


def mask_of(bits: int, count: int) -> Mask:
    """A bit set of so many rows as a mask.

    >>> mask_of(5, 4).tolist()
    [True, False, True, False]
    """
    raw = np.frombuffer(bits.to_bytes(PAGE // 8, "little"), dtype=np.uint8)
    mask: Mask = np.unpackbits(raw, bitorder="little", count=count).view(np.bool_)
    return mask


class Life:
    """Lasts as long as somebody holds a page with a certain wording."""

    __slots__ = ("__weakref__",)


class Wording:
    """What the bullets of a page say. Pages that differ in counters only share it, and all that is derived from it."""

    __slots__ = ("__weakref__", "_before", "_life", "anew", "depth")

    def __init__(self, before: Wording | None = None, anew: frozenset[int] = frozenset()) -> None:
        self._before: Wording | None = before if before is not None and before.depth < REMEMBERED_CHANGES else None
        self._life: weakref.ref[Life] | None = None
        self.depth: int = 0 if self._before is None else self._before.depth + 1
        self.anew = anew
        """The rows that say something else than before, those added at the end included."""

    @property
    def in_use(self) -> bool:
        """Whether any page with it is left."""
        return self._life is not None and self._life() is not None

    def lived(self) -> Life:
        """For a page to hold on to."""
        life = None if self._life is None else self._life()
        if life is None:
            life = Life()
            self._life = weakref.ref(life)
        return life

    def origins(self) -> Iterator[tuple[Wording, frozenset[int]]]:
        """The wordings it came from, the latest first, each with the rows that say something else now."""
        anew, one = self.anew, self._before
        while one is not None:
            yield one, anew
            anew, one = anew | one.anew, one._before


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page as it is kept in a file: its columns as bytes, and each bullet as JSON."""

    table: bytes
    bullets: tuple[bytes, ...]


class Page:
    """Up to 1,024 bullets in a row. It never changes."""

    __slots__ = ("__weakref__", "_rules", "derived", "entries", "ids", "life", "most_breaks", "table", "wording")

    def __init__(
        self,
        entries: Sequence[Bullet | bytes],
        ids: Sequence[str],
        table: Table,
        *,
        wording: Wording | None = None,
        rules: Rules | None = None,
        most_breaks: int = MOST_BREAKS,
    ) -> None:
        self.entries = entries
        self.ids = ids
        self.table = table
        self.wording = wording or Wording()
        self.life = self.wording.lived()
        self.most_breaks = most_breaks
        self._rules = rules
        self.derived: dict[object, Any] = {}
        """What others have computed from this very page, under a key of their own."""

    def __len__(self) -> int:
        return len(self.entries)

    def bullet(self, row: int) -> Bullet:
        """One of its bullets."""
        entry = self.entries[row]
        return Bullet.model_validate_json(entry) if isinstance(entry, bytes) else entry

    def bullets(self) -> Iterator[Bullet]:
        """All of them, in order."""
        return (self.bullet(row) for row in range(len(self.entries)))

    @property
    def rules(self) -> Rules:
        """Its conditions, compiled when they are first asked for."""
        if self._rules is None:
            conditioned = self.table["conditioned"].tolist()
            conditions = [self.bullet(row).condition if has else None for row, has in enumerate(conditioned)]
            self._rules = Rules.of(conditions, most_breaks=self.most_breaks)
        return self._rules

    def once(self, key: object, work_out: Callable[[], T]) -> T:
        """What is derived from this very page, worked out when it is first asked for."""
        if key not in self.derived:
            self.derived[key] = work_out()
        found: T = self.derived[key]
        return found

    def in_use(self, node: int | None, source: Source | None = None) -> Rows:
        """The rows of a node that are not retired, of one source if asked."""

        def work_out() -> Rows:
            mask = self.not_retired().mask & (self.table["node"] == node if node is not None else False)
            return Rows(mask if source is None else mask & (self.table["source"] == SOURCES.index(source)))

        return self.once((node, source), work_out)

    def not_retired(self) -> Rows:
        """The rows of all nodes that are not retired."""
        return self.once("not retired", lambda: Rows(self.table["status"] != _RETIRED))

    def kept(self) -> KeptPage:
        """The page as it is kept in a file."""
        return KeptPage(self.table.tobytes(), tuple(packed(entry) for entry in self.entries))

    def opened(self) -> OpenPage:
        """A copy that can be written to."""
        return OpenPage(self)

    @property
    def compiled(self) -> Rules | None:
        """Its rules, where somebody has asked for them."""
        return self._rules


class OpenPage:
    """A page while it is written to."""

    def __init__(self, base: Page | None) -> None:
        self._base = base
        self.entries: list[Bullet | bytes] = [] if base is None else list(base.entries)
        self.ids: list[str] = [] if base is None else list(base.ids)
        self._table = np.empty(PAGE, dtype=ROW)
        if base is not None:
            self._table[: len(base)] = base.table
        self._anew: set[int] = set()
        self._other_conditions = False
        self._touched: set[int] = set()

    def __len__(self) -> int:
        return len(self.entries)

    def bullet(self, row: int) -> Bullet:
        entry = self.entries[row]
        return Bullet.model_validate_json(entry) if isinstance(entry, bytes) else entry

    def put(self, row: int, bullet: Bullet, node: int) -> None:
        """Write a bullet to its row, or to the first that is free."""
        if row == len(self.entries):
            self.entries.append(bullet)
            self.ids.append(bullet.id)
            self._anew.add(row)
        else:
            before = self.bullet(row)
            other_condition = before.condition != bullet.condition
            self._other_conditions |= other_condition
            if other_condition or before.content != bullet.content:
                self._anew.add(row)
            self.entries[row] = bullet
        self._touched.add(row)
        self._table[row] = row_of(bullet, node)

    def frozen(self, *, pack: bool) -> Page:
        """The page as it stands. Nothing may be written to this one afterwards."""
        base, count = self._base, len(self.entries)
        if pack:
            for row in self._touched:
                self.entries[row] = packed(self.entries[row])
        wording = None if base is None else base.wording
        if wording is None or self._anew:
            wording = Wording(wording, frozenset(self._anew))
        return Page(
            self.entries,
            self.ids,
            self._table[:count],
            wording=wording,
            rules=self._rules(),
            most_breaks=FEW_BREAKS if pack else MOST_BREAKS,
        )

    def _rules(self) -> Rules | None:
        """Those of the page before where they can be gone on with."""
        compiled = None if self._base is None else self._base.compiled
        if compiled is None or self._other_conditions:
            return None
        added = [self.bullet(row).condition for row in range(len(compiled), len(self.entries))]
        return compiled.extended(added) if added else compiled


def row_of(bullet: Bullet, node: int) -> tuple[int | float | bool, ...]:
    """What the columns say of a bullet."""
    evidence = bullet.evidence
    shown = evidence.shown if evidence is not None else None
    return (
        key_of(bullet.id),
        node,
        SOURCES.index(bullet.source),
        STATUSES.index(bullet.status),
        VERDICTS.index(bullet.argues),
        bullet.condition is not None,
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


def packed(entry: Bullet | bytes) -> bytes:
    """A bullet as it is kept outside of memory."""
    return entry if isinstance(entry, bytes) else entry.model_dump_json(exclude_defaults=True).encode()
