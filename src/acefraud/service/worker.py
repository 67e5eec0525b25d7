"""What the processes of a server do."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import wraps
from multiprocessing.connection import wait
from multiprocessing.synchronize import Semaphore
from types import FrameType
from typing import Any, Final

from acefraud.errors import AcefraudError
from acefraud.service.options import ServiceOptions
from acefraud.service.request_log import set_up_logs

_LOG: Final = logging.getLogger(__name__)


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
        build_app(Runtime.open(options), on_start=ready.release),
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
    from acefraud.learning.learning_worker import LearningWorker  # noqa: PLC0415
    from acefraud.service.runtime import learner_for, upkeep_for  # noqa: PLC0415
    from acefraud.storage import open_playbook  # noqa: PLC0415

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
