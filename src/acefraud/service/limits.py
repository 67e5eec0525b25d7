"""The size of requests."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acefraud.service.problems import problem_response


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
