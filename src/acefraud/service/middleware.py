"""What every request passes before its route: its id and log line, who may send it, its size and its time."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from random import Random
from typing import Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acefraud.service.metrics import REQUESTS, SECONDS
from acefraud.service.options import is_loopback
from acefraud.service.problems import RETRY_AFTER, problem_response
from acefraud.service.request_log import request_id

_LOG: Final = logging.getLogger(__name__)
_REQUESTS: Final = logging.getLogger("acefraud.requests")
_HEADER: Final = b"x-request-id"
_ID: Final = re.compile(rb"[\w.:-]{1,64}")
_DICE: Final = Random()
"""Names requests: asking the system for randomness takes longer than the rest of this module."""
_NOT_HERE: Final = "without keys, this service answers only to localhost, 127.0.0.1 and [::1]; use one of these names"
_FROM_ELSEWHERE: Final = "without keys, this service answers no requests from pages of other sites; serve it with keys"


class Middleware:
    """Answers HTTP requests around an application, and passes everything else on."""

    def __init__(self, app: ASGIApp, limit: int = 0) -> None:
        """`limit` is what some of them keep to: bytes, or seconds."""
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await (self.answer if scope["type"] == "http" else self._app)(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request over HTTP."""
        raise NotImplementedError


class _Watched:
    """Sends messages on, and notes the status that they answer with."""

    def __init__(self, send: Send, *headers: tuple[bytes, bytes]) -> None:
        self._send = send
        self._headers = headers
        self.status: int | None = None
        """None until the answer has begun."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message["headers"], *self._headers]}
        await self._send(message)


class RequestLog(Middleware):
    """Gives every request an id, which is also in the answer; logs, counts and times it once it is answered."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
        mine = given if _ID.fullmatch(given) else b"%016x" % _DICE.getrandbits(64)
        token, started, watched = request_id.set(mine.decode()), time.perf_counter(), _Watched(send, (_HEADER, mine))
        try:
            await self._app(scope, receive, watched)
        finally:
            self._note(scope, watched.status or 500, time.perf_counter() - started)
            request_id.reset(token)

    @staticmethod
    def _note(scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")  # a path may hold ids that are personal data
        REQUESTS.labels(scope["method"], route, status).inc()
        SECONDS.labels(route).observe(seconds)
        about = scope.get("state", {}).get("about", {})
        extra = {"method": scope["method"], "route": route, "status": status, "ms": round(1000 * seconds, 2), **about}
        _REQUESTS.info("request", extra=extra)


class LoopbackOnly(Middleware):
    """Refuses requests that name another host than this machine, or that a page from elsewhere sends.

    A browser sends the requests of any website to a loopback address, and a website can give its own name that address.
    """

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it is foreign."""
        refusal = _refusal(scope)
        await (self._app if refusal is None else problem_response(403, refusal))(scope, receive, send)


def _refusal(scope: Scope) -> str | None:
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if not hosts or not all(_names_loopback(f"//{host}") for host in hosts):
        return _NOT_HERE
    origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
    return None if all(_names_loopback(origin) for origin in origins) else _FROM_ELSEWHERE


def _names_loopback(address: str) -> bool:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


class BodyLimit(Middleware):
    """Refuses bodies over a limit, also those that do not say how long they are."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it is too large."""
        refusal = f"the body is larger than {self._limit:,} bytes"
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not said.isdigit() or int(said) > self._limit:
            await problem_response(413, refusal)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise HTTPException(413, refusal)
            return message

        await self._app(scope, counted, send)


class Deadline(Middleware):
    """Answers 503 for a request that takes too long, as while the store is silent or when the server ends.

    What the request has begun may still be done later. A repeat of a decision or an outcome finds it then.
    """

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request in time."""
        watched, limit = _Watched(send), asyncio.timeout(self._limit)
        try:
            async with limit:
                await self._app(scope, receive, watched)
        except (TimeoutError, asyncio.CancelledError):  # cancelled: the server ends, and waits no longer
            if watched.status is not None:
                raise
            late = f"there was no answer within {self._limit:g} seconds; try again"
            detail = late if limit.expired() else "the server is ending; try again"
            response = problem_response(503, detail, headers={"Retry-After": str(RETRY_AFTER)})
            await response(scope, receive, send)


class Crashes(Middleware):
    """Answers unexpected errors. It stands inside the log, which sees the status."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        watched = _Watched(send)
        try:
            await self._app(scope, receive, watched)
        except Exception as problem:
            if watched.status is not None:
                raise
            # The text of an unknown error may quote what was sent, so only its kind is told.
            kind = type(problem).__name__
            _LOG.error("unexpected error", extra={"problem": kind}, exc_info=problem)
            await problem_response(500, f"an unexpected error ({kind}); the log has more")(scope, receive, send)
