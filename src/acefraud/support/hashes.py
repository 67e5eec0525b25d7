"""Hashes of ids and numbers that are the same on every machine."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import adler32, crc32

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]


def hashes_of(texts: Iterable[str]) -> Hashes:
    """A hash of each text.

    >>> hashes_of(["t1", "t2"]).tolist() == [*hashes_of(["t1"]).tolist(), *hashes_of(["t2"]).tolist()]
    True
    """
    encoded = (text.encode(errors="surrogatepass") for text in texts)
    return mixed(np.array([crc32(text) << 32 | adler32(text) for text in encoded], dtype=np.uint64))


def mixed(values: Hashes) -> Hashes:
    """Every bit of a value spread over all bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
