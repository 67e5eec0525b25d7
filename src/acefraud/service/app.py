"""The application of one worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import fastapi_offline
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.routing import APIRoute
from starlette.responses import FileResponse

from acefraud import __version__
from acefraud.display.short_repr import quoted, shown_text
from acefraud.service.middleware import BodyLimit, Crashes, Deadline, LoopbackOnly, RequestLog
from acefraud.service.problems import PROBLEMS, Refused, add_problem_handlers, only_problems
from acefraud.service.routes import operations
from acefraud.service.routes.bullets import bullet_routes, rule_routes
from acefraud.service.routes.decisions import agent_routes, decision_routes, outcome_routes
from acefraud.service.routes.playbook import list_routes, playbook_routes
from acefraud.service.runtime import Runtime
from acefraud.support.arguments import nearest

router = APIRouter(include_in_schema=False)
_FILES: Final = Path(fastapi_offline.__file__).parent / "static"
_FOR_A_DAY: Final = {"Cache-Control": "public, max-age=86400"}
_NO_ICON: Final = "data:,"
_PARAMETERS: Final = {"validatorUrl": None}
"""Swagger UI would otherwise ask a server on the internet whether the document is valid."""


@router.get("/docs")
async def page() -> Response:
    """Every route with examples, to be tried out. Addresses are relative, so that it may be behind a prefix."""
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title="acefraud",
        swagger_js_url="docs/swagger-ui-bundle.js",
        swagger_css_url="docs/swagger-ui.css",
        swagger_favicon_url=_NO_ICON,
        swagger_ui_parameters=_PARAMETERS,
    )


@router.get("/docs/swagger-ui-bundle.js")
async def script() -> Response:
    """What draws the page."""
    return FileResponse(_FILES / "swagger-ui-bundle.js", headers=_FOR_A_DAY)


@router.get("/docs/swagger-ui.css")
async def style() -> Response:
    """How it looks."""
    return FileResponse(_FILES / "swagger-ui.css", headers=_FOR_A_DAY)


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
    for routes in (
        *(decision_routes, agent_routes, outcome_routes),
        *(playbook_routes, bullet_routes, rule_routes, list_routes),
    ):
        app.include_router(routes, dependencies=[Depends(refuse_unknown_parameters)])
    app.include_router(router)
    app.include_router(operations.router)  # load balancers and scrapers may send parameters of their own
    add_problem_handlers(app)
    app.add_middleware(Crashes)
    app.add_middleware(Deadline, limit=runtime.options.deadline)
    app.add_middleware(BodyLimit, limit=runtime.options.most_bytes)
    if runtime.options.insecure_local:
        app.add_middleware(LoopbackOnly)
    app.add_middleware(RequestLog)
    return app
