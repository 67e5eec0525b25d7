"""Hashes of ids and numbers that are the same on every machine."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]


def hashes_of(texts: Iterable[str]) -> Hashes:
    """A hash of each text. Two of ten million ids have the same one with a chance of one in half a million.

    >>> hashes_of(["t1", "t2"]).tolist() == [*hashes_of(["t1"]).tolist(), *hashes_of(["t2"]).tolist()]
    True
    """
    digests = (blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def mixed(values: Hashes) -> Hashes:
    """Every bit of a value spread over all bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
