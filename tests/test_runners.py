"""Calls in this process, in others, and on a Dask cluster: the same results, also if a process dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from acefraud.errors import ConfigurationError, InputError
from acefraud.support.runners import DaskRunner, LocalRunner, Runner, runner_for

WAYS = ["in this process", "in two processes", "on Dask"]


def halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def joined(parts: list[str], between: str) -> str:
    return between.join(parts)


@dataclass(frozen=True)
class Rows:
    row_count: int


def rows_and_name(count: int) -> tuple[Rows, str]:
    return Rows(count), "rows"


def once_killed(number: int, folder: str) -> int:
    """Kills its process the first time that it is called with 2."""
    marker = Path(folder, "killed")
    if number == 2 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def always_killed(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(params=[*WAYS[:2], pytest.param(WAYS[2], marks=pytest.mark.wide)])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    if request.param != "on Dask":
        with LocalRunner(1 + WAYS.index(request.param)) as local:
            yield local
        return
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        DaskRunner.at(cluster.scheduler_address) as remote,
    ):
        yield remote


@pytest.mark.enable_socket
def test_results_come_in_order_and_can_be_kept(runner: Runner) -> None:
    done: list[tuple[float, int]] = []
    kept = runner.keep(halves, [("abcd",), ("efgh",)], 2, lambda *told: done.append(told))
    assert done == [(0.5, 0), (1.0, 0)]
    assert runner.map(joined, [(list(pieces), "-") for pieces in kept]) == ["ab-cd", "ef-gh"]
    runner.forget(handle for pieces in kept for handle in pieces)


@pytest.mark.enable_socket
def test_rows_are_counted_as_results_come(runner: Runner) -> None:
    done: list[tuple[float, int]] = []
    runner.map(Rows, [(3,), (3,)], lambda *told: done.append(told))
    runner.keep(rows_and_name, [(5,)], 2, lambda *told: done.append(told))
    assert done == [(0.5, 3), (1.0, 6), (1.0, 5)]


@pytest.mark.enable_socket
def test_what_a_function_raises_is_raised(runner: Runner) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        runner.map(int, [("1",), ("one",)])


def test_a_call_whose_process_died_is_made_again(tmp_path: Path) -> None:
    with LocalRunner(2) as runner:
        assert runner.map(once_killed, [(number, str(tmp_path)) for number in range(6)]) == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "killed").exists()


def test_a_call_that_always_kills_its_process_ends_with_an_error() -> None:
    with LocalRunner(2) as runner, pytest.raises(InputError, match="died 3 times in a row"):
        runner.map(always_killed, [(1,), (2,)])


def test_files_are_gone_afterwards(tmp_path: Path) -> None:
    with LocalRunner(folder=tmp_path) as runner:
        runner.keep(halves, [("abcd",)], 2)
        assert any(tmp_path.iterdir())
    assert not any(tmp_path.iterdir())


def test_no_workers_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="workers must be 1 or more"):
        runner_for(0)


@pytest.mark.wide
@pytest.mark.enable_socket
def test_a_scheduler_that_is_not_there_is_an_error() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        runner_for(scheduler="tcp://127.0.0.1:9")


def waits(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)


def run_until_killed(folder: str) -> None:
    with LocalRunner(2) as runner:
        runner.map(waits, [(folder,), (folder,)])


@pytest.mark.wide
def test_workers_end_when_their_parent_was_killed(tmp_path: Path) -> None:
    parent = multiprocessing.get_context("spawn").Process(target=run_until_killed, args=(str(tmp_path),))
    parent.start()
    assert soon(lambda: len(list(tmp_path.iterdir())) == 2)
    parent.kill()
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert soon(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def soon(happened: Callable[[], bool]) -> bool:
    for _ in range(300):
        if happened():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.wide
@pytest.mark.enable_socket
def test_a_call_that_always_kills_workers_of_a_cluster_ends_with_an_error() -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        DaskRunner.at(cluster.scheduler_address) as remote,
        pytest.raises(InputError, match="a worker process died 4 times in a row"),
    ):
        remote.map(always_killed, [(1,)])
