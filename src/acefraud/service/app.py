"""The application of one worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.routing import APIRoute

from acefraud import __version__
from acefraud.display.short_repr import quoted, shown_text
from acefraud.service import api_page
from acefraud.service.middleware import BodyLimit, Crashes, Deadline, LoopbackOnly, RequestLog
from acefraud.service.problems import PROBLEMS, Refused, add_problem_handlers, only_problems
from acefraud.service.routes import agents, bullets, decisions, lists, operations, outcomes, playbook, rules
from acefraud.service.runtime import Runtime
from acefraud.support.arguments import nearest

_ABOUT = """Decide transactions with a playbook that learns in plain English.

Errors are problems in the format of RFC 9457. Lists come in pages: pass `next` of one as `cursor` of the following.
"""


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """The description of all routes."""
        return only_problems(super().openapi())


async def refuse_unknown_parameters(request: Request) -> None:
    """Raise Refused for the first query parameter that the route of a request does not declare.

    Without that, a misspelt filter would list everything.
    """
    if not request.scope["query_string"]:
        return
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [parameter.alias for parameter in route.dependant.query_params]
    for name in request.query_params:
        if name not in known:
            there_are = f"; there are {', '.join(known)}" if known else "; this route takes none"
            hint = nearest(name, known) or there_are
            raise Refused(422, f"there is no parameter {quoted(name)}{hint}", field=shown_text(name))


def build_app(runtime: Runtime, *, on_start: Callable[[], None] = lambda: None) -> FastAPI:
    """The application, serving with a runtime that it closes when it ends. `on_start` is called once it is ready."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        on_start()
        yield
        await runtime.close()

    app = _Application(
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
    app.add_middleware(RequestLog)
    return app
