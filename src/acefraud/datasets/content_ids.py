"""Ids of rows that bring none, made from what was read of them.

They are the same for the rows of a file, of a data frame and of any part of them, and for a single record. The label
and the time it became known are no content, so that a row has the same id before and after its label has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from acefraud.core.table import Categories, Columns, coded
from acefraud.core.transactions import Ids
from acefraud.support.arrays import BoolArray, IntArray
from acefraud.support.hashes import Hashes, hashes_of, mixed
from acefraud.support.timestamps import UNKNOWN


def content_hashes(
    facts: Columns, times: IntArray, texts: Sequence[str] | None, entities: Mapping[str, Categories]
) -> Hashes:
    """A hash of each row, of which `ids_of` makes its id.

    Neither the order of columns counts, nor a column in which a row has nothing.

    >>> facts = Columns({"amount": np.array([5.0, 5.0])}, {"vpn": np.array([-1, 1], dtype=np.int8)})
    >>> ids_of(content_hashes(facts, np.array([UNKNOWN, UNKNOWN]), None, {})).tolist()
    ['tx-7c87952bd352', 'tx-2c09311d0ae3']
    """
    hashes = np.zeros(len(times), dtype=np.uint64)
    for name, values, known in _cells(facts, times, texts, entities):
        hashes += np.where(known, mixed(values + _hash_of(name)), np.uint64(0))
    return mixed(hashes) >> np.uint64(16)


def ids_of(hashes: Hashes) -> Ids:
    """The ids of rows with these hashes, not numbered yet."""
    return np.array([f"tx-{number:012x}" for number in hashes.tolist()], dtype=object)


@lru_cache(maxsize=4096)
def _hash_of(name: str) -> np.uint64:
    found: np.uint64 = hashes_of([name])[0]
    return found


def _cells(
    facts: Columns, times: IntArray, texts: Sequence[str] | None, entities: Mapping[str, Categories]
) -> Iterator[tuple[str, Hashes, BoolArray]]:
    """By column the bits or the hash of each cell, and whether there is one. A flag counts like the number 0 or 1."""
    yield "time", times.view(np.uint64), times != UNKNOWN
    for name, numbers in facts.numbers.items():
        yield f"fact {name}", (numbers + 0.0).view(np.uint64), ~np.isnan(numbers)  # -0.0 equals 0.0
    for name, flags in facts.flags.items():
        yield f"fact {name}", flags.astype(np.float64).view(np.uint64), flags >= 0
    words = {f"fact {name}": column for name, column in facts.categories.items()}
    words |= {f"entity {name}": column for name, column in entities.items()}
    if texts is not None:
        words["text"] = coded([text or None for text in texts])
    for name, (codes, distinct) in words.items():
        # Files may write a decimal point where a data frame has whole numbers.
        hashes = hashes_of(word.removesuffix(".0") for word in distinct)
        yield name, np.append(hashes, np.uint64(0))[codes], codes >= 0


def places_among_equals(hashes: Hashes, labels: npt.NDArray[np.int8], known_at: IntArray) -> IntArray:
    """The number of each row among those with the same hash, from 1 on.

    Rows that are not labelled yet come last, and the others by their label and when it became known, so that the order
    of rows does not matter, nor whether they come in parts.

    >>> labels, known_at = np.array([-1, 1, 0, 1], dtype=np.int8), np.full(4, UNKNOWN)
    >>> places_among_equals(np.array([7, 7, 7, 5], dtype=np.uint64), labels, known_at).tolist()
    [3, 2, 1, 1]
    """
    order = np.lexsort((known_at, labels.view(np.uint8), hashes))  # as a byte, -1 is the last
    rows = np.arange(len(order))
    first = np.append(True, hashes[order[1:]] != hashes[order[:-1]])[: len(order)]
    places = np.empty(len(order), dtype=np.int64)
    places[order] = rows - np.maximum.accumulate(np.where(first, rows, 0)) + 1
    return places


def numbered(ids: Ids, places: IntArray) -> Ids:
    """Ids that end in a number if they are not the first of their kind.

    >>> numbered(np.array(["tx-1", "tx-1"], dtype=object), np.array([2, 1])).tolist()
    ['tx-1-2', 'tx-1']
    """
    ids, again = ids.copy(), np.flatnonzero(places > 1)
    ids[again] = [f"{name}-{place}" for name, place in zip(ids[again], places[again], strict=True)]
    return ids
