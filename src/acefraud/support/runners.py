"""Calls of a function on many parts: in this process, in others on this machine, or on a Dask cluster.

Functions must be pure: a call whose process died is made again, and what it returned may be computed twice.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

from acefraud.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    from distributed import Client

Progress = Callable[[float, int], None]
"""Called with the share of calls that are done, and with the rows that were, as far as results have a `row_count`."""
Call = Callable[..., Any]


def _silent(_: float, __: int) -> None:
    """No progress is shown."""


def _row_count(result: Any) -> int:
    """Of how many rows a result is, or the first piece of it."""
    first = result[0] if isinstance(result, tuple) else result
    return getattr(first, "row_count", 0)


class Runner(Protocol):
    """Where calls are made."""

    def map(self, function: Call, calls: Sequence[Sequence[Any]], progress: Progress = _silent) -> list[Any]:
        """What the function returns for each list of arguments, in order."""

    def keep(
        self, function: Call, calls: Sequence[Sequence[Any]], pieces: int, progress: Progress = _silent
    ) -> list[tuple[Any, ...]]:
        """The same, but results stay where they were made. The function returns a sequence of so many pieces.

        For each call there is a handle of each piece. A handle, alone or in a list, can be an argument of other calls,
        which get what it stands for.
        """

    def forget(self, handles: Iterable[Any]) -> None:
        """Let go of what these handles stand for."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a call returned, in a file."""

    path: Path

    def load(self) -> Any:
        return pickle.loads(self.path.read_bytes())  # a file of our own


_ATTEMPTS = 3
"""Deaths of worker processes, without a call done between them, that end a run."""
_DIED = (
    "a worker process died {times} times in a row; it may need more memory than there is: use smaller parts or fewer "
    "workers"
)


class LocalRunner:
    """Calls in this process, or in several others. Results that are kept wait in files of a temporary folder.

    >>> with LocalRunner() as runner:
    ...     ((first, last),) = runner.keep(str.split, [("red green",)], pieces=2)
    ...     runner.map(len, [(first,), (last,)])
    [3, 5]
    """

    def __init__(self, workers: int = 1, folder: Path | None = None) -> None:
        """The temporary folder is made in `folder`, or where the system makes them."""
        if workers < 1:
            raise ConfigurationError(f"workers must be 1 or more, got {workers}")
        self._workers = workers
        self._folder = TemporaryDirectory(prefix="acefraud-", dir=folder)
        self._made = 0
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> LocalRunner:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._pool is not None:
            if kind is not None:  # what is under way is not waited for
                for process in list(self._pool._processes.values()):
                    process.terminate()
            self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    def map(self, function: Call, calls: Sequence[Sequence[Any]], progress: Progress = _silent) -> list[Any]:
        """What the function returns for each list of arguments, in order."""
        return self._run(function, calls, [()] * len(calls), progress)

    def keep(
        self, function: Call, calls: Sequence[Sequence[Any]], pieces: int, progress: Progress = _silent
    ) -> list[tuple[Any, ...]]:
        """Handles of what the function returns."""
        handles = [tuple(self._new() for _ in range(pieces)) for _ in calls]
        self._run(function, calls, handles, progress)
        return handles

    def forget(self, handles: Iterable[_Kept]) -> None:
        """Delete the files."""
        for handle in handles:
            handle.path.unlink(missing_ok=True)

    def _new(self) -> _Kept:
        self._made += 1
        return _Kept(Path(self._folder.name, f"{self._made}.pickle"))

    def _run(
        self, function: Call, calls: Sequence[Sequence[Any]], targets: Sequence[tuple[_Kept, ...]], progress: Progress
    ) -> list[Any]:
        found: list[Any] = [None] * len(calls)
        rows = 0
        if self._workers == 1:
            for place, (arguments, target) in enumerate(zip(calls, targets, strict=True)):
                found[place], count = _call(function, arguments, target)
                rows += count
                progress((place + 1) / len(calls), rows)
            return found
        left, deaths = set(range(len(calls))), 0
        while left:
            try:
                for place, (result, count) in self._in_processes(function, calls, targets, sorted(left)):
                    found[place] = result
                    left.discard(place)
                    rows, deaths = rows + count, 0
                    progress(1 - len(left) / len(calls), rows)
            except BrokenProcessPool:
                self._pool, deaths = None, deaths + 1
                if deaths == _ATTEMPTS:
                    raise InputError(_DIED.format(times=_ATTEMPTS)) from None
        return found

    def _in_processes(
        self,
        function: Call,
        calls: Sequence[Sequence[Any]],
        targets: Sequence[tuple[_Kept, ...]],
        places: Sequence[int],
    ) -> Iterable[tuple[int, tuple[Any, int]]]:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, context, initializer=_begin_worker)
        waiting: dict[Future[Any], int] = {
            self._pool.submit(_call, function, calls[place], targets[place]): place for place in places
        }
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def _begin_worker() -> None:
    """Keep libraries to one thread, leave Ctrl-C to the parent, and end with it."""
    # They are not loaded yet. The processes share the processors.
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(function: Call, arguments: Sequence[Any], targets: Sequence[_Kept]) -> tuple[Any, int]:
    """The result if it is not kept, and its number of rows."""
    result = function(*map(_loaded, arguments))
    if not targets:
        return result, _row_count(result)
    for target, piece in zip(targets, result, strict=True):
        unfinished = target.path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(piece, protocol=5))
        unfinished.replace(target.path)
    return None, _row_count(result)


def _loaded(argument: Any) -> Any:
    if isinstance(argument, _Kept):
        return argument.load()
    return [_loaded(each) for each in argument] if isinstance(argument, list) else argument


class DaskRunner:
    """Calls on a Dask cluster. Results that are kept stay in the memory of its workers, which spill to their disks."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    def at(cls, scheduler: str) -> DaskRunner:
        """A runner on the cluster of a scheduler such as tcp://10.0.0.5:8786. Raises InputError if none answers."""
        try:
            from distributed import Client  # noqa: PLC0415
        except ImportError:
            raise ConfigurationError("a scheduler needs the extra `dask`: pip install 'acefraud[dask]'") from None
        try:
            return cls(Client(scheduler, timeout="10s"))  # type: ignore[no-untyped-call]
        except (OSError, TimeoutError, ValueError) as problem:
            raise InputError(f"no Dask scheduler answers at {scheduler}: {problem}") from None

    def __enter__(self) -> DaskRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()  # type: ignore[no-untyped-call]

    def map(self, function: Call, calls: Sequence[Sequence[Any]], progress: Progress = _silent) -> list[Any]:
        """What the function returns for each list of arguments, in order."""
        with _failures_told():
            futures = self._submitted(function, calls, progress)
            found: list[Any] = self._client.gather(futures)  # type: ignore[no-untyped-call]
        return found

    def keep(
        self, function: Call, calls: Sequence[Sequence[Any]], pieces: int, progress: Progress = _silent
    ) -> list[tuple[Any, ...]]:
        """Futures of what the function returns."""
        with _failures_told():
            futures = self._submitted(function, calls, progress)
        submit: Call = self._client.submit
        return [tuple(submit(itemgetter(piece), future) for piece in range(pieces)) for future in futures]

    def forget(self, handles: Iterable[Any]) -> None:
        """Let the cluster forget these results."""
        for handle in handles:
            handle.release()

    def _submitted(self, function: Call, calls: Sequence[Sequence[Any]], progress: Progress) -> list[Any]:
        from distributed import as_completed as completed  # noqa: PLC0415

        submit: Call = self._client.submit
        futures = [submit(function, *arguments, pure=False) for arguments in calls]
        counts = [submit(_row_count, future, pure=False) for future in futures] if progress is not _silent else futures
        rows = 0
        for done, future in enumerate(completed(counts), 1):  # type: ignore[no-untyped-call]
            if progress is not _silent or future.status == "error":
                rows += future.result()
            progress(done / len(calls), rows)
        return futures


@contextmanager
def _failures_told() -> Iterator[None]:
    """Failures of a cluster itself as InputError."""
    from distributed import KilledWorker  # noqa: PLC0415
    from distributed.comm.core import CommClosedError  # noqa: PLC0415

    try:
        yield
    except KilledWorker as problem:
        raise InputError(_DIED.format(times=problem.allowed_failures + 1)) from None
    except (CommClosedError, CancelledError) as problem:
        raise InputError(f"the Dask cluster was lost: {problem}") from None


@contextmanager
def runner_for_frame(frame: Any) -> Iterator[tuple[Runner, list[Any]]]:
    """A runner for a data frame of Dask, and what stands for its partitions in calls.

    Calls are made on the Dask client in use, which stays open, or in this process if there is none.
    """
    distributed, partitions = sys.modules.get("distributed"), frame.to_delayed()
    try:
        client = distributed.get_client() if distributed is not None else None
    except ValueError:  # there is none
        client = None
    if client is not None:
        yield DaskRunner(client), client.compute(partitions)
        return
    with LocalRunner() as runner:
        yield runner, partitions


def computed(source: Any) -> Any:
    """The rows of a partition that is still to be computed, or is on a cluster; others are returned unchanged."""
    for step in ("compute", "result"):
        if hasattr(type(source), step):  # a partition to compute has every attribute one asks for
            return getattr(source, step)()
    return source


def runner_for(workers: int = 1, scheduler: str | None = None) -> LocalRunner | DaskRunner:
    """A runner on the cluster of a scheduler if there is one, else in so many processes of this machine."""
    return LocalRunner(workers) if scheduler is None else DaskRunner.at(scheduler)
