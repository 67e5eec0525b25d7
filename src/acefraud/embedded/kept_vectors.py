"""Vectors on disk, by the content of their texts: what was embedded once need not be embedded again.

Two files in a folder, each behind the same header: `NAME.keys` with a digest and a checksum a row, and `NAME.vectors`
with the vector of each. Rows are only ever added, vectors before keys; a row counts where both are whole, whatever a
crash left behind. Nothing of a text is written down but its digest.
"""

from __future__ import annotations

import logging
import os
import struct
import time
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from acefraud.core.roles import Vectors

try:
    import fcntl
except ImportError:  # Windows: nothing is written there, and so nothing found
    fcntl = None  # type: ignore[assignment]

LIMIT: Final = 2_000_000_000
"""Bytes that the vectors of one embedder may take; beyond them the files are begun anew."""
AT_ONCE: Final = 512
"""Vectors wait in memory until there are so many, and are then written together."""

Found = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
_State = tuple[int, ...]

_log = logging.getLogger(__name__)
_MAGIC: Final = b"ACFVECTS"
_VERSION: Final = 1
_MAKER: Final = struct.Struct(
    "<8sII16s"
)  # magic, version, dimensions, and a digest of the embedder's name and revision
_HEADER_SIZE: Final = 64  # the maker, 16 random bytes that both files share, and room
_KEY: Final = np.dtype([("first", "<u8"), ("rest", "<u8"), ("check", "<u4")])
_LATEST: Final = 50_000  # so many rows are looked up in a dict before they are sorted in among the others
_PATIENCE_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.005
_told: set[Path] = set()


class _Unusable(Exception):
    """Why the files cannot be used."""


class KeptVectors:
    """The vectors of one embedder in a folder. Several processes may add to them at once.

    A cache and no more: where the files cannot be read or written they are not used, and a warning says so once.
    `revision` is what the vectors depend on besides the name, such as the version of the weights: files of another
    revision, or with vectors of another length, are begun anew.

    >>> from tempfile import mkdtemp
    >>> kept = KeptVectors(Path(mkdtemp()), "toy", dimensions=2)
    >>> kept.keep(["a VPN"], np.array([[0.0, 1.0]], dtype=np.float32))
    >>> found, vectors = kept.find(["a VPN", "gift cards"])
    >>> found.tolist(), vectors[0].tolist()
    ([True, False], [0.0, 1.0])
    """

    def __init__(self, folder: Path, name: str, dimensions: int, *, revision: str = "", limit: int = LIMIT) -> None:
        self._given = (folder, name, dimensions, revision, limit)
        self._files = _Files(folder, name, dimensions, revision, limit)
        self._waiting: dict[bytes, Vectors] = {}
        self._lock = RLock()
        # What waits is written when this is let go of, and at the end of the process.
        weakref.finalize(self, _write, self._files, self._waiting)

    def __len__(self) -> int:
        """How many vectors are on disk."""
        with self._lock, self._files.forgiven():
            self._files.look_again()
        return self._files.table.count

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: the same files, looked at anew."""
        return _open, self._given

    def find(self, texts: Sequence[str]) -> tuple[Found, Vectors]:
        """Which texts have a vector here, and a row for each text, which means nothing where there is none."""
        found, vectors = self._files.nothing(len(texts))
        if not texts or self._files.off:
            return found, vectors
        digests = _digests(texts)
        with self._lock:
            with self._files.forgiven():
                found, vectors = self._files.find(digests)
            for place in np.flatnonzero(~found).tolist() if self._waiting else ():
                if (vector := self._waiting.get(digests[place])) is not None:
                    found[place], vectors[place] = True, vector
        return found, vectors

    def keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keep a vector for each text."""
        rows = np.array(vectors, dtype=np.float32)
        if rows.shape != (len(texts), self._files.dimensions):
            raise ValueError(f"expected {len(texts)} rows of {self._files.dimensions} numbers, got {rows.shape}")
        if self._files.off or fcntl is None:
            return
        with self._lock:
            self._waiting.update(zip(_digests(texts), rows, strict=True))
            if len(self._waiting) >= AT_ONCE:
                self.flush()

    def flush(self) -> None:
        """Write what still waits to be written."""
        with self._lock:
            _write(self._files, self._waiting)


def _open(folder: Path, name: str, dimensions: int, revision: str, limit: int) -> KeptVectors:
    return KeptVectors(folder, name, dimensions, revision=revision, limit=limit)


def _write(files: _Files, waiting: dict[bytes, Vectors]) -> None:
    if waiting and not files.off:
        with files.forgiven():
            files.add(waiting)
    waiting.clear()


class _Open:
    """A file that is open for as long as somebody reads from it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


@dataclass(slots=True)
class _Table:
    """The rows of both files as they stood when they were last looked at, and where among them a digest is.

    Most rows are found by the first half of their digest, in sorted order; the latest in a dict, until they are many.
    """

    header: bytes
    """Empty where the files are not there, or not what they should be."""
    keys: npt.NDArray[np.void]
    dimensions: int
    file: _Open | None = None
    """What the vectors are read from."""
    state: _State = ()
    sorted: int = 0
    firsts: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    order: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    latest: dict[bytes, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.keys)

    def vectors_at(self, rows: Rows) -> Vectors:
        """The vectors of some rows, those that stand together read together.

        Not through a memory map: its pages would count as memory of this process, whole neighbourhoods at a time.
        """
        vectors = np.empty((len(rows), self.dimensions), dtype=np.float32)
        order = np.argsort(rows, kind="stable")
        for run in np.split(order, np.flatnonzero(np.diff(rows[order]) != 1) + 1) if len(rows) else ():
            vectors[run] = self._read(int(rows[run[0]]), len(run))
        return vectors

    def _read(self, row: int, count: int) -> Vectors:
        assert self.file is not None
        width = 4 * self.dimensions
        raw = os.pread(self.file.descriptor, count * width, _HEADER_SIZE + row * width)
        return np.frombuffer(raw, "<f4").reshape(count, self.dimensions)

    def index(self) -> None:
        """Sort all rows."""
        firsts = self.keys["first"]
        order = np.argsort(firsts, kind="stable")  # of two rows with one digest the later one comes last
        self.firsts, self.order, self.latest = firsts[order], order.astype(np.uint32), {}
        self.sorted = self.count

    def index_after(self, before: _Table) -> None:
        """Go on from what was known of the same files when they had fewer rows."""
        if self.count - before.sorted > max(_LATEST, before.sorted // 4):
            self.index()
            return
        self.sorted, self.firsts, self.order, self.latest = before.sorted, before.firsts, before.order, before.latest
        for row, (first, rest, _) in enumerate(self.keys[before.count :].tolist(), before.count):
            self.latest[struct.pack("<QQ", first, rest)] = row

    def rows_of(self, digests: Sequence[bytes]) -> Rows:
        """The row of each digest, -1 where there is none."""
        rows = np.full(len(digests), -1, dtype=np.int64)
        if self.sorted:
            halves = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)
            last = np.maximum(np.searchsorted(self.firsts, halves[:, 0], side="right") - 1, 0)
            there = np.flatnonzero(self.firsts[last] == halves[:, 0])
            candidates = self.order[last[there]]
            same = self.keys["rest"][candidates] == halves[there, 1]
            rows[there[same]] = candidates[same]
        if self.latest:
            for place, digest in enumerate(digests):
                rows[place] = self.latest.get(digest, rows[place])
        return rows


class _Files:
    """The two files. What goes wrong is raised here, and forgiven by whoever asks."""

    def __init__(self, folder: Path, name: str, dimensions: int, revision: str, limit: int) -> None:
        stem = quote(name, safe="")
        self._keys, self._vectors, self._lock = (folder / f"{stem}.{kind}" for kind in ("keys", "vectors", "lock"))
        made_by = blake2b(f"{name}\0{revision}".encode(), digest_size=16).digest()
        self._maker = _MAKER.pack(_MAGIC, _VERSION, dimensions, made_by)
        self.dimensions = dimensions
        self._width = 4 * dimensions
        self._most = max(1, (limit - 2 * _HEADER_SIZE) // (self._width + _KEY.itemsize))
        self.table = self._empty()
        self.off = False

    @contextmanager
    def forgiven(self) -> Iterator[None]:
        """Whatever is the matter with the files, the caller goes on without them; a warning says so once."""
        try:
            yield
        except (OSError, ValueError, _Unusable) as problem:
            self.off, self.table = True, self._empty()
            self._tell("not used", problem)

    def nothing(self, count: int) -> tuple[Found, Vectors]:
        """So many texts without a vector."""
        return np.zeros(count, dtype=np.bool_), np.zeros((count, self.dimensions), dtype=np.float32)

    def find(self, digests: Sequence[bytes]) -> tuple[Found, Vectors]:
        """Which digests have a whole vector, and a row for each."""
        self.look_again()
        found, vectors = self.nothing(len(digests))
        rows = self.table.rows_of(digests)
        there = np.flatnonzero(rows >= 0)
        vectors[there] = self.table.vectors_at(rows[there])
        checks = self.table.keys["check"][rows[there]].tolist()
        for place, check in zip(there.tolist(), checks, strict=True):
            found[place] = _check(digests[place], vectors[place]) == check
        return found, vectors

    def look_again(self) -> None:
        """Take in what was added since, by whomever."""
        known = self.table
        try:
            if known.state == _state(self._keys.stat(), self._vectors.stat()):
                return
            seen = self._read()
        except FileNotFoundError:
            seen = self._empty()
        same = seen.header and seen.header == known.header and seen.count >= known.count
        seen.index_after(known) if same else seen.index()
        self.table = seen

    def add(self, new: dict[bytes, Vectors]) -> None:
        """Add vectors under their digests, those that are not there yet."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._alone():
            found, _ = self.find(list(new))
            missing = [digest for digest, there in zip(new, found.tolist(), strict=True) if not there]
            if not self.table.header or self.table.count + len(missing) > self._most:
                missing = list(new)[-self._most :]
                self._begin_anew()
            if missing:
                self._append(missing, np.stack([new[digest] for digest in missing]))
        self.look_again()

    def _append(self, digests: Sequence[bytes], vectors: Vectors) -> None:
        count = self.table.count
        keys = np.empty(len(digests), dtype=_KEY)
        keys["first"], keys["rest"] = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2).T
        keys["check"] = [_check(digest, vector) for digest, vector in zip(digests, vectors, strict=True)]
        with self._keys.open("r+b") as key_file, self._vectors.open("r+b") as vector_file:
            key_file.truncate(_HEADER_SIZE + count * _KEY.itemsize)  # keys whose vectors are lost
            vector_file.seek(_HEADER_SIZE + count * self._width)
            vector_file.write(vectors.astype("<f4", copy=False).tobytes())
            vector_file.flush()
            key_file.seek(0, os.SEEK_END)
            key_file.write(keys.tobytes())

    def _begin_anew(self) -> None:
        """Empty files in place of those there are; whoever still reads the old ones may go on."""
        if not self.table.header and self._keys.exists():
            self._tell("begun anew", "they were made by another version, or are damaged")
        header = (self._maker + os.urandom(16)).ljust(_HEADER_SIZE, b"\0")
        for path in (self._vectors, self._keys):
            beside = path.with_name(f"{path.name}.new")
            descriptor = os.open(beside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(header)
            beside.replace(path)
        self.look_again()

    def _read(self) -> _Table:
        with self._keys.open("rb") as keys, self._vectors.open("rb") as vectors:
            header, other = keys.read(_HEADER_SIZE), vectors.read(_HEADER_SIZE)
            for file, head in ((self._keys, header), (self._vectors, other)):
                if not _MAGIC.startswith(head[: len(_MAGIC)]):
                    raise _Unusable(f"{file.name} is no file of vectors; it was left untouched")
            of_keys, of_vectors = os.fstat(keys.fileno()), os.fstat(vectors.fileno())
            state = _state(of_keys, of_vectors)
            if header != other or len(header) < _HEADER_SIZE or not header.startswith(self._maker):
                return self._empty(b"", state)
            whole_keys = (of_keys.st_size - _HEADER_SIZE) // _KEY.itemsize
            count = min(whole_keys, (of_vectors.st_size - _HEADER_SIZE) // self._width)
            if not count:  # which cannot be mapped
                return self._empty(header, state)
            mapped = np.asarray(np.memmap(keys, _KEY, "r", _HEADER_SIZE, (count,)))
            return _Table(header, mapped, self.dimensions, _Open(os.dup(vectors.fileno())), state)

    def _empty(self, header: bytes = b"", state: _State = ()) -> _Table:
        return _Table(header, np.empty(0, dtype=_KEY), self.dimensions, None, state)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While this lasts no other process adds anything."""
        descriptor = os.open(self._lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise _Unusable(f"another process does not let go of {self._lock.name}") from None
                    time.sleep(_PAUSE_SECONDS)
            yield
        finally:
            os.close(descriptor)  # which lets go of the lock too

    def _tell(self, what: str, why: object) -> None:
        if self._vectors not in _told:
            _told.add(self._vectors)
            _log.warning("the vectors kept in %s are %s: %s", self._vectors, what, why)


def _state(keys: os.stat_result, vectors: os.stat_result) -> _State:
    """Which files they are and how long: other figures say that there is something new."""
    return keys.st_ino, keys.st_size, vectors.st_ino, vectors.st_size


def _digests(texts: Iterable[str]) -> list[bytes]:
    return [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]


def _check(digest: bytes, vector: Vectors) -> int:
    return zlib.crc32(vector.data, zlib.crc32(digest))
