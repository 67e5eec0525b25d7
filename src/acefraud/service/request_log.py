"""One line of JSON for each request, with the ids of the request and of its decision and without what was sent."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the request at hand. Tasks that answer it inherit the value."""
_HEADER: Final = b"x-request-id"
_ID: Final = re.compile(rb"[\w.:-]{1,64}")
_DICE: Final = Random()
"""Names requests: asking the system for randomness takes longer than the rest of this module."""
_LOG: Final = logging.getLogger("acefraud.requests")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Log records as lines of JSON. Tracebacks keep files and lines, and drop the texts of errors."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "request_id": request_id.get(),
            **{name: value for name, value in vars(record).items() if name not in _STANDARD},
        }
        if record.exc_info and record.exc_info[2] is not None:
            content["where"] = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(record.exc_info[2])[-8:]]
        return json.dumps(content, default=str)


def set_up_logs(level: int = logging.INFO) -> None:
    """Write the log of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("alembic", "sqlalchemy", "asyncio", "uvicorn", "httpx"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


class RequestLog:
    """Gives every request an id, which is also in the answer, and logs it once it is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
        mine = given if _ID.fullmatch(given) else b"%016x" % _DICE.getrandbits(64)
        token, started, status = request_id.set(mine.decode()), time.perf_counter(), 500

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], (_HEADER, mine)]}
            await send(message)

        try:
            await self._app(scope, receive, named)
        finally:
            self._note(scope, status, time.perf_counter() - started)
            request_id.reset(token)

    @staticmethod
    def _note(scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        about = scope.get("state", {}).get("about", {})
        extra = {
            "method": scope["method"],
            "route": getattr(route, "path", "unknown"),  # a path may hold ids that are personal data
            "status": status,
            "ms": round(1000 * seconds, 2),
            **about,
        }
        _LOG.info("request", extra=extra)
