"""The log of a process: lines of JSON with the id of the request at hand, and without what was sent."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the request at hand. Tasks that answer it inherit the value."""
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
            content["where"] = [
                f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(record.exc_info[2])[-8:]
            ]
        return json.dumps(content, default=str)


def set_up_logs(level: int = logging.INFO) -> None:
    """Write the log of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("alembic", "sqlalchemy", "asyncio", "uvicorn", "httpx"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
