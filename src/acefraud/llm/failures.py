"""Failures of calls as plain values, so that they can pass from one process to another."""

from __future__ import annotations

from typing import Any

from acefraud import errors
from acefraud.errors import AcefraudError, ModelError
from acefraud.llm.metering import tokens_of, with_tokens


def failure_of(error: AcefraudError) -> dict[str, Any]:
    """What is to be known of a failure elsewhere."""
    return {
        "kind": type(error).__name__,
        "message": str(error),
        "retry_after": getattr(error, "retry_after", None),
        "tokens": list(tokens_of(error)) if isinstance(error, ModelError) else [0, 0],
    }


def failure_from(said: dict[str, Any]) -> AcefraudError:
    """The failure again, as it was.

    >>> failure_from(failure_of(errors.ModelRateLimited("too many calls", retry_after=2.5))).retry_after
    2.5
    """
    kind = getattr(errors, said["kind"])
    waits = {} if said["retry_after"] is None else {"retry_after": said["retry_after"]}
    error: AcefraudError = kind(said["message"], **waits)
    return with_tokens(error, *said["tokens"]) if isinstance(error, ModelError) else error
