"""Embedders that work with the network off."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from acefraud.core.bullet import Bullet
from acefraud.core.roles import Embedder, EmbedsInProcess, Vectors
from acefraud.core.transaction import FactValue
from acefraud.embedded.kept_vectors import KeptVectors
from acefraud.errors import ConfigurationError


class WordLlamaEmbedder(EmbedsInProcess):
    """Static token vectors, pooled: 256 dimensions, weights inside the `wordllama` package.

    The threshold was measured by `benchmarks/embedder_threshold.py`; see docs/decisions.md.
    """

    name = "wordllama-l2-256"
    threshold = 0.26
    dimensions = 256

    @property
    def revision(self) -> str:
        """What the vectors depend on besides the name: the package that the weights come with."""
        try:
            return importlib.metadata.version("wordllama")
        except importlib.metadata.PackageNotFoundError:
            return ""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        vectors = np.asarray(_wordllama().embed(list(texts), norm=False), dtype=np.float32)
        return _unit(vectors)


_WORD = re.compile(r"[^\W\d_]{4,}")
"""Shorter words are mostly "the" and "of", and would make every text look like every other."""


class HashingEmbedder(EmbedsInProcess):
    """Hashed words and letter triples: no weights at all, so it knows spelling but not meaning."""

    name = "hashing-512"
    threshold = 0.21
    dimensions = 512
    revision = "1"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in _WORD.findall(text.casefold()) or text.casefold().split() or [""]:
                padded = f"<{word}>"
                for gram in (word, *(padded[i : i + 3] for i in range(len(padded) - 2))):
                    digest = zlib.crc32(gram.encode())
                    row[digest % self.dimensions] += 1.0 if digest & 0x10000 else -1.0
        return _unit(vectors)


class CachedEmbedder:
    """Remembers the vectors of the texts it saw last, by content; and all of them on disk, where `kept` is given.

    >>> cached = CachedEmbedder(HashingEmbedder())
    >>> _ = cached.embed(["a VPN", "gift cards"]), cached.embed(["gift cards", "a VPN"])
    >>> cached.embedded
    2
    """

    def __init__(self, embedder: Embedder, size: int = 20_000, kept: KeptVectors | None = None) -> None:
        self._embedder = embedder
        self._size = size
        self._kept = kept
        self._places: dict[str, int] = {}
        self._texts: list[str] = []
        self._next = 0
        self._vectors: Vectors = np.empty((0, 0), dtype=np.float32)
        self._lock = RLock()
        self.embedded = 0
        """How many texts were really embedded, and neither remembered nor found on disk."""

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: the same embedder and files, with nothing in memory."""
        return CachedEmbedder, (self._embedder, self._size, self._kept)

    @property
    def name(self) -> str:
        """The name of the embedder it stands before."""
        return self._embedder.name

    @property
    def threshold(self) -> float:
        """The threshold of the embedder it stands before."""
        return self._embedder.threshold

    @property
    def fetches_ahead(self) -> bool:
        """Whether the embedder it stands before does."""
        return self._embedder.fetches_ahead

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        """A transaction in words that the embedder it stands before may see."""
        return self._embedder.presentable(text, facts)

    def presentable_bullet(self, bullet: Bullet) -> str:
        """A bullet in words that the embedder it stands before may see."""
        return self._embedder.presentable_bullet(bullet)

    async def fetch(self, texts: Sequence[str]) -> None:
        """Let the embedder it stands before fetch what is missing."""
        await self._embedder.fetch([text for text in texts if text not in self._places])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text; only what is new is embedded, all of it in one call."""
        if not texts:
            return self._embedder.embed([])
        with self._lock:
            places = [self._places.get(text, -1) for text in texts]
            if -1 not in places:
                remembered: Vectors = self._vectors[places]
                return remembered
            return self._with_missing(texts)

    def _with_missing(self, texts: Sequence[str]) -> Vectors:
        missing = list(dict.fromkeys(text for text in texts if text not in self._places))
        made = self._found_or_embedded(missing)
        fresh = dict(zip(missing, made, strict=True))
        vectors = np.stack([fresh[text] if text in fresh else self._vectors[self._places[text]] for text in texts])
        self._remember(missing, made)
        return vectors

    def _found_or_embedded(self, texts: list[str]) -> Vectors:
        if self._kept is None:
            return self._embed(texts)
        found, vectors = self._kept.find(texts)
        new = [text for text, there in zip(texts, found.tolist(), strict=True) if not there]
        if new:
            vectors[~found] = made = self._embed(new)
            self._kept.keep(new, made)
        return vectors

    def _embed(self, texts: list[str]) -> Vectors:
        self.embedded += len(texts)
        return self._embedder.embed(texts)

    def _remember(self, texts: list[str], vectors: Vectors) -> None:
        """The latest texts take the places of the oldest."""
        if not self._texts:
            self._vectors = np.empty((self._size, vectors.shape[1]), dtype=np.float32)
        for text, vector in list(zip(texts, vectors, strict=True))[max(0, len(texts) - self._size) :]:
            if self._next < len(self._texts):
                del self._places[self._texts[self._next]]
                self._texts[self._next] = text
            else:
                self._texts.append(text)
            self._places[text] = self._next
            self._vectors[self._next] = vector
            self._next = (self._next + 1) % self._size


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


def embedder_named(name: str, folder: Path | None = None) -> CachedEmbedder:
    """The embedder of that name, remembering what it has embedded; from one run to the next where a folder is given.

    >>> embedder_named("hashing").embed(["a VPN"]).shape
    (1, 512)
    """
    return _named(name, folder)


@lru_cache(maxsize=8)
def _named(name: str, folder: Path | None) -> CachedEmbedder:
    if name not in EMBEDDERS:
        known = ", ".join(EMBEDDERS)
        raise ConfigurationError(
            f"no embedder is called '{name}': expected one of {known}, or an acefraud.core.roles.Embedder of your own"
        )
    embedder = EMBEDDERS[name]()
    if folder is None:
        return CachedEmbedder(embedder)
    kept = KeptVectors(folder, embedder.name, embedder.dimensions, revision=embedder.revision)
    return CachedEmbedder(embedder, kept=kept)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


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
