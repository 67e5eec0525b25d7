"""The processes of a server: some answer requests, one learns, and one watches over them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Semaphore
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final

from acefraud import __version__
from acefraud.errors import AcefraudError, ConfigurationError
from acefraud.llm.synchronous import run_sync
from acefraud.roles.model.build import check_models
from acefraud.service.options import ServiceOptions
from acefraud.service.request_log import set_up_logs
from acefraud.storage import open_playbook
from acefraud.storage.service_tables import KeyStore
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.support.database_address import shown_place

_LOG: Final = logging.getLogger(__name__)
_SPAWN: Final = multiprocessing.get_context("spawn")
_BIND_SECONDS: Final = 10.0
"""How long to wait for the address: the processes of a killed server take a moment to end."""
_SHORT_LIFE: Final = 5.0
"""A process that lives shorter than this, in seconds, is started again with a growing pause."""
_LONGEST_PAUSE: Final = 10.0


def _logged(work: Callable[..., None]) -> Callable[..., None]:
    """The work of a process, whose log tells what ended it. The texts of unknown errors may quote what was sent."""

    @wraps(work)
    def run(*given: Any) -> None:
        set_up_logs()
        _end_with_parent()
        try:
            work(*given)
        except Exception as problem:  # noqa: BLE001  # the outermost layer of a process
            detail = str(problem) if isinstance(problem, AcefraudError) else ""
            _LOG.error(
                "ended by an error", extra={"problem": type(problem).__name__, "detail": detail}, exc_info=problem
            )
            sys.exit(1)

    return run


@_logged
def answer_requests(options: ServiceOptions, listening: socket.socket, ready: Semaphore) -> None:
    """Answer requests until told to end. Says so once it is `ready`."""
    import uvicorn  # noqa: PLC0415  # the metrics read the environment when they are imported, so not before this

    from acefraud.service.app import build_app  # noqa: PLC0415
    from acefraud.service.runtime import Runtime  # noqa: PLC0415

    config = uvicorn.Config(
        build_app(Runtime(options), on_start=ready.release),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=options.grace,
        timeout_keep_alive=75,  # longer than balancers and clients keep connections, so that they close them first
        lifespan="on",
    )
    uvicorn.Server(config).run(sockets=[listening])


@_logged
def learn(options: ServiceOptions) -> None:
    """Judge and learn from outcomes until told to end."""
    from acefraud.service.learning_worker import LearningWorker  # noqa: PLC0415
    from acefraud.service.runtime import learner_for, upkeep_for  # noqa: PLC0415

    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when
    with open_playbook(options.store, durability=options.durability) as playbook:
        roles, learner = learner_for(options, playbook)
        LearningWorker(learner, upkeep=upkeep_for(options, playbook)).run(ending)
        roles.close_sync()


def _end_with_parent() -> None:
    """End at once if the parent is killed: what was acknowledged is durable, and the address has to become free."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


@dataclass
class _Child:
    """A process that is started again if it dies."""

    name: str
    work: Callable[..., None]
    given: tuple[Any, ...]
    process: SpawnProcess | None = None
    started: float = 0.0
    pause: float = 0.0
    due: float = 0.0

    @property
    def sentinel(self) -> int:
        """What becomes readable when the process ends; 0 if none runs."""
        return 0 if self.process is None else self.process.sentinel

    def keep_alive(self) -> None:
        """Start the process if it does not run. One that keeps dying is started after growing pauses."""
        now = time.monotonic()
        if self.process is not None and not self.process.is_alive():
            _LOG.error("process ended", extra={"child": self.name, "exit_code": self.process.exitcode})
            self.pause = min(_LONGEST_PAUSE, max(0.1, 2 * self.pause)) if now - self.started < _SHORT_LIFE else 0.0
            self.due, self.process = now + self.pause, None
        if self.process is None and now >= self.due:
            self.process = _SPAWN.Process(target=self.work, args=self.given, name=self.name)
            self.process.start()
            self.started = now


def serve(options: ServiceOptions, *, announce: Callable[[str], None] = lambda _: None) -> None:
    """Run a server until it is told to end (SIGTERM or SIGINT). It finishes what it accepted.

    `announce` is called with the address once it listens.
    """
    set_up_logs()
    _check_start(options)
    listening = _listen(options.host, options.port)
    host, port = listening.getsockname()[:2]
    with TemporaryDirectory(prefix="acefraud-metrics-") as metrics, listening:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics
        ready = _SPAWN.Semaphore(0)
        given = (options, listening, ready)
        children = [_Child(f"worker {number + 1}", answer_requests, given) for number in range(options.workers)]
        children.append(_Child("learner", learn, (options,)))
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        supervisor = _Supervisor(children, options.grace)
        try:
            supervisor.run(ready, lambda: announce(address))
        finally:
            listening.close()  # connections are refused from now on, and not kept waiting
            supervisor.stop()


def _check_start(options: ServiceOptions) -> None:
    """Fail early and clearly if the store or a model cannot be used, and say what is served. Migrates the store."""
    if options.models.uses_models:
        run_sync(check_models(options.models), waits=True)
    with open_playbook(options.store, durability=options.durability) as playbook:
        assert isinstance(playbook.ledger, SqlLedger)
        playbook.ledger.check_writable()
        bullets = len(playbook)
        keys = sum(key.revoked_at is None for key in KeyStore(playbook.ledger).list())
    about = {"store": shown_place(options.store), "bullets": bullets, "keys": keys}
    _LOG.info("starting", extra={"version": __version__, "workers": options.workers, **about})
    if not bullets:
        _LOG.warning("the playbook is empty: decisions rest on general knowledge alone")
    if not keys and not options.insecure_local:
        _LOG.warning("there are no keys yet: `acefraud keys create NAME --scope decide` makes one")


def _listen(host: str, port: int) -> socket.socket:
    """A socket that queues connections from now on: workers accept them once they are ready, and while one restarts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    deadline = time.monotonic() + _BIND_SECONDS
    while True:
        try:
            listening.bind((host, port))
            listening.listen(2048)
            listening.set_inheritable(True)
            return listening
        except OSError as problem:
            if time.monotonic() > deadline:
                listening.close()
                raise ConfigurationError(f"cannot listen on {host}:{port}: {problem.strerror}") from None
            time.sleep(0.1)


class _Supervisor:
    """Starts processes, starts them again if they die, and ends them."""

    def __init__(self, children: list[_Child], grace: int) -> None:
        self._children = children
        self._grace = grace
        self._ending = False

    def run(self, ready: Semaphore, announce: Callable[[], None]) -> None:
        """Keep the processes alive until the end is asked for.

        `announce` is called once every worker has said that it is `ready`.
        """
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._end)
        missing = len(self._children) - 1
        while not self._ending:
            for child in self._children:
                child.keep_alive()
            if missing and ready.acquire(block=False):
                missing -= 1
                if not missing:
                    announce()
            wait([child.sentinel for child in self._children if child.sentinel], timeout=0.02 if missing else 0.2)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ending = True

    def stop(self) -> None:
        """End all processes. Each finishes what it has accepted."""
        _LOG.info("ending")
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + self._grace + 5
        for process in running:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                _LOG.error("process killed: it did not end in time", extra={"child": process.name})
                process.kill()
                process.join()
