"""The application of one worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI

from acefraud import __version__
from acefraud.service import api_page
from acefraud.service.limits import BodyLimit, Deadline
from acefraud.service.loopback import LoopbackOnly
from acefraud.service.metrics import RequestMetrics
from acefraud.service.problems import PROBLEMS, Crashes, add_problem_handlers, only_problems
from acefraud.service.query_parameters import refuse_unknown_parameters
from acefraud.service.request_log import RequestLog
from acefraud.service.routes import agents, bullets, decisions, lists, operations, outcomes, playbook, rules
from acefraud.service.runtime import Runtime

_ABOUT = """Decide transactions with a playbook that learns in plain English.

Errors are problems in the format of RFC 9457. Lists come in pages: pass `next` of one as `cursor` of the following.
"""


class _Service(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """The description of all routes."""
        return only_problems(super().openapi())


def build_app(runtime: Runtime, *, on_start: Callable[[], None] = lambda: None) -> FastAPI:
    """The application, serving with a runtime that it closes when it ends. `on_start` is called once it is ready."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        on_start()
        yield
        await runtime.close()

    app = _Service(
        title="acefraud",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        responses=PROBLEMS,
        docs_url=None,
        redoc_url=None,
    )
    app.state.runtime = runtime
    for module in (decisions, agents, outcomes, playbook, bullets, rules, lists):
        app.include_router(module.router, dependencies=[Depends(refuse_unknown_parameters)])
    app.include_router(api_page.router)
    app.include_router(operations.router)  # load balancers and scrapers may send parameters of their own
    add_problem_handlers(app)
    app.add_middleware(Crashes)
    app.add_middleware(Deadline, seconds=runtime.options.deadline)
    app.add_middleware(BodyLimit, most_bytes=runtime.options.most_bytes)
    if runtime.options.insecure_local:
        app.add_middleware(LoopbackOnly)
    app.add_middleware(RequestMetrics)
    app.add_middleware(RequestLog)
    return app
