"""Errors in the format of RFC 9457: `application/problem+json`, with what was expected."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final, get_type_hints

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match

from acefraud.display.redaction import mask_patterns
from acefraud.errors import (
    AcefraudError,
    BudgetExceeded,
    DuplicateRule,
    InputError,
    ModelError,
    OutcomeConflict,
    RequestReused,
    RuleNotUnderstood,
    StoreError,
)
from acefraud.service.request_log import request_id
from acefraud.support.validation import misfit
from acefraud.wire.answers import Fault, Problem

_LOG = logging.getLogger(__name__)
MEDIA_TYPE: Final = "application/problem+json"
_SEND_JSON: Final = "send the body as JSON, with the header `Content-Type: application/json`"
_NEXT_STEPS: Final = "`GET /v1/facts` lists what a rule can be about; `as_note` keeps it as a note."
RETRY_AFTER: Final = 1
"""Seconds after which a caller may try again if nothing better is known."""


class Refused(Exception):
    """A request that is answered with a problem."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, field: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers
        self.faults = [] if field is None else [Fault(field=field, message=detail)]


PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "model": Problem,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status in (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503)
}
"""The problems that any route may answer with, for the OpenAPI document."""


def only_problems(document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document in which errors are problems, and not plain JSON as well, which FastAPI adds."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for answer in operation["responses"].values():
                if MEDIA_TYPE in answer.get("content", ()):
                    answer["content"].pop("application/json", None)
    return document


def problem_response(
    status: int,
    detail: str,
    faults: list[Fault] | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    bullet_id: str | None = None,
) -> Response:
    """A problem as a response."""
    title = HTTPStatus(status).phrase
    body = Problem(
        type=f"urn:acefraud:problem:{title.lower().replace(' ', '-')}",
        title=title,
        status=status,
        detail=detail,
        instance=f"urn:acefraud:request:{request_id.get()}",
        errors=faults or [],
        bullet_id=bullet_id,
    )
    return JSONResponse(body.model_dump(exclude_none=True), status, dict(headers or {}), MEDIA_TYPE)


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every error with a problem. What was expected is told, never a value that was sent."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(AcefraudError, _own)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)


async def _refused(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Refused)
    return problem_response(problem.status, str(problem), problem.faults, problem.headers)


async def _own(_: Request, problem: Exception) -> Response:
    status, headers = status_of(problem)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # The first line of a database's message has no values of rows.
        detail = {"detail": mask_patterns(str(problem).partition("\n")[0])} if isinstance(problem, StoreError) else {}
        _LOG.warning("request failed", extra={"problem": type(problem).__name__, **detail})
    same = problem.bullet_id or None if isinstance(problem, DuplicateRule) else None
    return problem_response(status, _detail(problem), _faults(problem), headers, bullet_id=same)


def _faults(problem: Exception) -> list[Fault]:
    """What is wrong with which field. Words that are not understood come one by one, then what may be meant."""
    if isinstance(problem, RuleNotUnderstood):
        field = problem.field or "content"
        said = [f"not understood: '{word}'" for word in problem.not_understood] or [problem.message]
        meant = [f"did you mean {name}?" for name in problem.did_you_mean]
        return [Fault(field=field, message=message.strip()) for message in (*said, *meant, *problem.advice)]
    if isinstance(problem, InputError) and problem.field:
        return [Fault(field=problem.field, message=_without_value(problem.message))]
    return []


def _detail(problem: Exception) -> str:
    """What a caller is told. Models and databases may quote what was sent, and the paths of files are private.

    The words of a rule are told to who wrote it.
    """
    if isinstance(problem, ModelError):
        return f"the language model gave no usable answer ({type(problem).__name__}); try again"
    if isinstance(problem, StoreError):
        return f"the store cannot be read or written at the moment ({type(problem).__name__}); try again"
    if isinstance(problem, RuleNotUnderstood):
        return f"{problem.message} {_NEXT_STEPS}"
    if isinstance(problem, DuplicateRule):
        return str(problem)
    if isinstance(problem, InputError) and problem.field:
        return f"{problem.field}: {_without_value(problem.message)}"
    return _without_value(str(problem))


def _without_value(message: str) -> str:
    """What was expected, without the value that came instead."""
    return message.partition(", got ")[0]


@contextmanager
def naming(field: str) -> Iterator[None]:
    """Attribute an InputError that names no field to this one."""
    try:
        yield
    except InputError as problem:
        problem.field = problem.field or field
        raise


def status_of(problem: Exception) -> tuple[int, dict[str, str]]:
    """The status and headers for an error of ours."""
    again = {"Retry-After": str(RETRY_AFTER)}
    if isinstance(problem, ModelError):
        return 503, {"Retry-After": str(max(RETRY_AFTER, round(problem.retry_after or 0)))}
    if isinstance(problem, RequestReused | OutcomeConflict | DuplicateRule):
        return 409, {}
    if isinstance(problem, StoreError | BudgetExceeded):
        return 503, again
    return 422, {}


async def _invalid(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    if isinstance(problem.body, bytes):  # FastAPI has not read it, as nothing said that it is JSON
        kind = Fault(field="Content-Type", message=_SEND_JSON)
        return problem_response(415, _SEND_JSON, [kind])
    broken = next((error for error in problem.errors() if error["type"] == "json_invalid"), None)
    faults = [_broken_json(problem.body, broken["loc"][-1])] if broken else _misfits(request, problem)
    return problem_response(400 if broken else 422, f"{faults[0].field}: {faults[0].message}", faults)


def _broken_json(document: str, position: int) -> Fault:
    """Where a body stops to be JSON."""
    before = document[:position]
    line, column = before.count("\n") + 1, position - before.rfind("\n")
    return Fault(field="body", message=f"expected valid JSON, but it goes wrong at line {line}, column {column}")


def _misfits(request: Request, problem: RequestValidationError) -> list[Fault]:
    """What does not fit, in the order of the fields. A fault of the whole body has the field `body`."""
    shape = get_type_hints(request.scope["endpoint"], include_extras=True).get("body")
    faults = []
    for error in problem.errors():
        part, *path = error["loc"]
        field, message = misfit({**error, "loc": path}, shape if part == "body" else None)
        if error["loc"] == ("body",) and error["type"] == "missing":
            message = "expected a JSON object"
        faults.append(Fault(field=field or part, message=message))
    return faults


async def _plain(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    if problem.status_code == HTTPStatus.NOT_FOUND:
        # Only the router raises this: what is missing behind a route is Refused.
        twice = ", and the path has /v1 twice" if request.url.path.startswith("/v1/v1") else ""
        return problem_response(404, f"there is no such route{twice}; /docs and /openapi.json list all of them")
    if problem.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        methods = ", ".join(_methods(request))
        return problem_response(405, f"this route takes {methods}", headers={"Allow": methods})
    detail = str(problem.detail) if problem.detail else HTTPStatus(problem.status_code).phrase
    return problem_response(problem.status_code, detail, headers=problem.headers)


def _methods(request: Request) -> list[str]:
    """The methods that a path has, of all its routes. Starlette names only those of the first."""
    routes = request.app.router.routes
    return [
        method
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]
