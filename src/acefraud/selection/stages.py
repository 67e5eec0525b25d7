"""The first three stages over the pages of a playbook. Values in, values out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acefraud.core.book import Book
from acefraud.core.bullet import Source
from acefraud.core.page import PAGE, Page, mask_of
from acefraud.core.page import Rows as PageRows
from acefraud.core.roles import Vectors
from acefraud.core.transaction import FactValue
from acefraud.selection.axis import ROUNDING
from acefraud.selection.vectors import BookVectors
from acefraud.selection.worth import Column, Mask, Rows, good_in

RELAXATION = 0.8
MOST_COSINES = 16_000_000
"""Cosines that are held at once."""
NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be selected from, and how much of it."""

    book: Book
    node: int | None
    source: Source | None
    base_rate: float
    wanted: int
    proven_only: bool = False
    """Whether a bullet whose condition is left open by an unknown fact is out: the embedded engine could not use it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The bullets that stages 1 and 2 left for a transaction."""

    in_context: int
    good: int
    proven: Rows
    """Rows of the book whose condition holds."""
    prose: tuple[Mask, ...] = ()
    """For each page, the rows that may be relevant by resemblance; none where enough are proven to be."""


def contextual_and_good(asked: Asked, facts: Mapping[str, FactValue], threshold: float) -> Kept:
    """Stages 1 and 2: the bullets of this node and source that may apply here, and of these the good enough.

    A bullet whose condition is false here is out; one whose condition is left open by an unknown fact stays, unless
    `proven_only` is asked for. Where too few are good, a little less will do.
    """
    pages = asked.book.pages
    standing = [_standing(page, facts, asked.proven_only) if page.rules.any else None for page in pages]
    node, source = asked.node, asked.source
    in_context = sum(_count(page.in_use(node, source), there) for page, there in zip(pages, standing, strict=True))
    for least in (threshold, RELAXATION * threshold):
        good = [good_in(page, node, source, asked.base_rate, least) for page in pages]
        count = sum(_count(rows, there) for rows, there in zip(good, standing, strict=True))
        if count >= asked.wanted:
            break
    proven = [0 if there is None else rows.bits & there[1] for rows, there in zip(good, standing, strict=True)]
    found = [
        np.flatnonzero(mask_of(bits, len(page))) + number * PAGE
        for number, (page, bits) in enumerate(zip(pages, proven, strict=True))
        if bits
    ]
    rows = found[0] if len(found) == 1 else np.concatenate(found) if found else NONE
    if len(rows) >= asked.wanted:
        return Kept(in_context, count, rows)
    prose = tuple(
        rows.mask if there is None else mask_of(rows.bits & there[0] & ~bits, len(page))
        for page, rows, there, bits in zip(pages, good, standing, proven, strict=True)
    )
    return Kept(in_context, count, rows, prose)


def _standing(page: Page, facts: Mapping[str, FactValue], proven_only: bool) -> tuple[int, int]:
    """The rows of a page that may apply and those that are proven to, as bit sets."""
    possible, proven = page.rules.standing(facts)
    return (proven | (possible & ~page.rules.conditioned), proven) if proven_only else (possible, proven)


def _count(rows: PageRows, standing: tuple[int, int] | None) -> int:
    """How many of some rows of a page are possible."""
    return rows.count if standing is None else (rows.bits & standing[0]).bit_count()


def relevance_by_proof(strength: Column, threshold: float) -> Column:
    """Stage 3 for bullets whose condition holds: between the threshold and 1, the more it moves the decision."""
    largest = float(strength.max(initial=0.0))
    share = strength / largest if largest > 0 else np.ones(len(strength))
    relevance: Column = threshold + (1 - threshold) * share
    return relevance


class Resembling(NamedTuple):
    """The bullets in prose that are relevant to a transaction, by their rows in the book, in ascending order."""

    rows: Rows
    cosines: Column
    """With the query, roughly: up to `ROUNDING`."""
    query: Vectors | None


NOBODY = Resembling(NONE, np.empty(0), None)


def resembling(
    asked: Asked, kept: Sequence[Kept], queries: Sequence[Vectors | None], threshold: float, vectors: BookVectors
) -> Iterator[Resembling]:
    """Stage 3 for bullets in prose, for each transaction: those whose cosine with the query reaches the threshold.

    Some transactions at a time, for the sake of memory.
    """
    together = max(1, MOST_COSINES // max(1, len(asked.book)))
    for start in range(0, len(kept), together):
        batch = range(start, min(len(kept), start + together))
        asking = {place: query for place in batch if (query := queries[place]) is not None}
        found = iter(_cosines(asked.book, [kept[i] for i in asking], list(asking.values()), vectors))
        for place in batch:
            if place in asking:
                yield _above(asked.book, kept[place], (next(found), asking[place]), threshold, vectors)
            else:
                yield NOBODY


def _cosines(
    book: Book, kept: Sequence[Kept], queries: Sequence[Vectors], vectors: BookVectors
) -> npt.NDArray[np.float32]:
    """Of each query with the bullets of the book that may be relevant to any of them; 0 for the others."""
    cosines = np.zeros((len(queries), len(book)), dtype=np.float32)
    if not len(queries):
        return cosines
    asked = np.stack(queries)
    wanted = [reduce(np.logical_or, (one.prose[number] for one in kept)) for number in range(len(book.pages))]
    for start, matrix in vectors.stretches(book, wanted):
        rows = slice(start, start + len(matrix))
        if len(queries) == 1:
            np.dot(matrix, queries[0], out=cosines[0, rows])
        else:
            cosines[:, rows] = asked @ matrix.T
    return cosines


def _above(
    book: Book, kept: Kept, rough: tuple[Vectors, Vectors], threshold: float, vectors: BookVectors
) -> Resembling:
    """Those above the threshold; the few that are too close to it for a rough cosine are looked at more closely."""
    cosines, query = rough
    among = kept.prose[0] if len(kept.prose) == 1 else np.concatenate(kept.prose)
    rows = np.flatnonzero((cosines >= threshold - ROUNDING) & among)
    found = cosines[rows]
    close = np.flatnonzero(found < threshold + ROUNDING)
    if len(close):
        below = np.vecdot(vectors.at(book, rows[close]), query) < threshold
        rows, found = np.delete(rows, close[below]), np.delete(found, close[below])
    return Resembling(rows, found.astype(np.float64), query)
