"""The size of requests, and how long they take."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acefraud.service.problems import RETRY_AFTER, problem_response


class BodyLimit:
    """Refuses bodies over a limit, also those that do not say how long they are."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app = app
        self._most = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not said.isdigit() or int(said) > self._most:
            await self._refuse(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise HTTPException(413, self._refusal)
            return message

        await self._app(scope, counted, send)

    @property
    def _refusal(self) -> str:
        return f"the body is larger than {self._most:,} bytes"

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = problem_response(413, self._refusal)
        await refused(scope, receive, send)


class Deadline:
    """Answers 503 for a request that takes too long, as while the store is silent or when the server ends.

    What the request has begun may still be done later. A repeat of a decision or an outcome finds it then.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request in time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                await self._app(scope, receive, noted)
        except (TimeoutError, asyncio.CancelledError):  # cancelled: the server ends, and waits no longer
            if started:
                raise
            late = f"there was no answer within {self._seconds:g} seconds; try again"
            detail = late if limit.expired() else "the server is ending; try again"
            response = problem_response(503, detail, headers={"Retry-After": str(RETRY_AFTER)})
            await response(scope, receive, send)
