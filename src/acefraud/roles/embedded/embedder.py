"""Embedders that work with the network off."""

from __future__ import annotations

import importlib.util
import logging
import math
import re
import zlib
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from acefraud.errors import ConfigurationError
from acefraud.roles.protocols import Embedder, EmbedsInProcess, OwnRole, Vectors, name_of
from acefraud.support.arrays import FloatArray

OWN_THRESHOLD = 0.5
"""The cosine from which texts count as related for an embedder that states none."""


class WordLlamaEmbedder(EmbedsInProcess):
    """Static token vectors, pooled: 256 dimensions, weights inside the `wordllama` package.

    The threshold was measured by `benchmarks/embedder_threshold.py`; see docs/decisions.md.
    """

    name = "wordllama-l2-256"
    threshold = 0.26
    dimensions = 256

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        vectors = np.asarray(_wordllama().embed(list(texts), norm=False), dtype=np.float32)
        return unit(vectors)


_WORD = re.compile(r"[^\W\d_]{4,}")
"""Shorter words are mostly "the" and "of", and would make every text look like every other."""


class HashingEmbedder(EmbedsInProcess):
    """Hashed words and letter triples: no weights at all, so it knows spelling but not meaning."""

    name = "hashing-512"
    threshold = 0.21
    dimensions = 512

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in _WORD.findall(text.casefold()) or text.casefold().split() or [""]:
                padded = f"<{word}>"
                for gram in (word, *(padded[i : i + 3] for i in range(len(padded) - 2))):
                    digest = zlib.crc32(gram.encode())
                    row[digest % self.dimensions] += 1.0 if digest & 0x10000 else -1.0
        return unit(vectors)


def is_own(embedder: Embedder | OwnRole) -> bool:
    """Whether an embedder lacks members of its protocol, for which `CachedEmbedder` has defaults."""
    return not all(hasattr(embedder, member) for member in vars(Embedder) if not member.startswith("_"))


class CachedEmbedder:
    """Remembers the vectors of the latest texts, so that none of them is embedded twice.

    It has the defaults for an embedder of your own, whose rows it checks and scales to length one.

    >>> CachedEmbedder(HashingEmbedder()).embed(["a VPN", "gift cards", "a VPN"]).shape
    (3, 512)
    """

    def __init__(self, embedder: Embedder | OwnRole, size: int = 20_000) -> None:
        self._embedder = embedder
        self._is_own = is_own(embedder)
        self.name: str = getattr(embedder, "name", "") or name_of(embedder)
        self.threshold: float = getattr(embedder, "threshold", OWN_THRESHOLD)
        self.fetches_ahead: bool = getattr(embedder, "fetches_ahead", False)
        plain = EmbedsInProcess()
        self.presentable = getattr(embedder, "presentable", plain.presentable)
        self.presentable_bullet = getattr(embedder, "presentable_bullet", plain.presentable_bullet)
        self._size = size
        self._known: dict[str, Vectors] = {}
        self._lock = RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: the same embedder with nothing remembered."""
        return CachedEmbedder, (self._embedder, self._size)

    async def fetch(self, texts: Sequence[str]) -> None:
        """Let the embedder it stands before fetch what is missing."""
        await self._embedder.fetch([text for text in texts if text not in self._known])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text. All that are new are embedded in one call."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32) if self._is_own else self._embedder.embed([])
        with self._lock:
            missing = list(dict.fromkeys(text for text in texts if text not in self._known))
            if missing:
                self._known.update(zip(missing, self._embed(missing), strict=True))
            vectors = np.stack([self._known[text] for text in texts])
            for oldest in list(islice(self._known, max(0, len(self._known) - self._size))):
                del self._known[oldest]
            return vectors

    def _embed(self, texts: list[str]) -> Vectors:
        rows = self._embedder.embed(texts)
        if not self._is_own:
            return rows
        if len(np.shape(rows)) != 2 or len(rows) != len(texts):
            raise ConfigurationError(f"{self.name}.embed: expected a row of numbers for each of {len(texts):,} texts")
        return unit(np.asarray(rows, dtype=np.float32))


EMBEDDERS: dict[str, type[WordLlamaEmbedder] | type[HashingEmbedder]] = {
    "wordllama": WordLlamaEmbedder,
    "hashing": HashingEmbedder,
}
DEFAULT_EMBEDDER = "wordllama"


def key_of(full_name: str) -> str | None:
    """What an embedder is chosen by, from the name its vectors are filed under.

    >>> key_of("hashing-512")
    'hashing'
    """
    return next((key for key, make in EMBEDDERS.items() if make().name == full_name), None)


@cache
def embedder_named(name: str) -> CachedEmbedder:
    """The embedder of that name, which remembers what it has embedded.

    >>> embedder_named("hashing").embed(["a VPN"]).shape
    (1, 512)
    """
    if name not in EMBEDDERS:
        known = ", ".join(EMBEDDERS)
        raise ConfigurationError(
            f"no embedder is called '{name}': expected one of {known}, "
            "or an acefraud.roles.protocols.Embedder of your own"
        )
    return CachedEmbedder(EMBEDDERS[name]())


def unit(vectors: Vectors) -> Vectors:
    """The rows scaled to length one; a row of zeros stays as it is."""
    return _scaled(vectors, 1.0).astype(np.float32)


def whole(vectors: Vectors) -> Vectors:
    """The rows in whole numbers, scaled to a length of less than 2^12, so that any processor gives the same cosines.

    Products of two rows, and all sums on the way to them, are whole numbers of at most 2^24. These have no rounding
    errors in 32 bits, in whatever order they are added.

    >>> whole(np.array([[0.6, -0.8]], dtype=np.float32)).tolist()
    [[2457.0, -3275.0]]
    """
    dimensions = vectors.shape[1]
    return np.rint(_scaled(vectors, 4095.0 - math.sqrt(dimensions) / 2)).astype(np.float32)


def _scaled(vectors: Vectors, length: float) -> FloatArray:
    rows = np.ascontiguousarray(vectors, dtype=np.float64)
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    scaled: FloatArray = np.divide(rows * length, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled


@cache
def _wordllama() -> Any:
    """The model, loaded once. Importing the package configures the root logger, so that is put back."""
    if importlib.util.find_spec("wordllama") is None:
        raise ConfigurationError(
            "the default embedder needs the package wordllama: pip install wordllama, or choose the embedder 'hashing'"
        )
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        import wordllama  # noqa: PLC0415  # heavy, and only needed once something is embedded
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
    # Its own search for the tokenizer looks in the wrong folder and then wants the network.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
