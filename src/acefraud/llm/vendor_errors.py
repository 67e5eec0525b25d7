"""The one place where errors of vendor packages become errors of acefraud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

from acefraud.errors import ModelError, ModelMalformed, ModelRateLimited, ModelRefused, ModelTimeout, ModelUnavailable

if TYPE_CHECKING:
    from httpx2 import Response

_LONGEST = 300
_VENDORS = (("openai", "OpenAIError"), ("anthropic", "AnthropicError"))
_PARSE_ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError, AssertionError)
"""What a vendor package raises on a reply that lacks a field it takes for granted."""

_responses: ContextVar[list[Response] | None] = ContextVar("responses", default=None)


async def note_response(response: Response) -> None:
    """Keep a response until its call ends: an unusable one still reports the tokens it is charged for."""
    kept = _responses.get()
    if kept is not None:
        kept.append(response)


@contextmanager
def translated(model: str) -> Iterator[None]:
    """Raise a ModelError in place of any error of a vendor package during a call to this model."""
    import httpx2  # noqa: PLC0415 - optional packages
    from pydantic_ai.exceptions import AgentRunError, UserError  # noqa: PLC0415

    http = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
    vendor_errors: tuple[type[Exception], ...] = (AgentRunError, UserError, *http, *_vendor_errors(), *_PARSE_ERRORS)
    responses: list[Response] = []
    token = _responses.set(responses)
    try:
        yield
    except ModelError:
        raise
    except vendor_errors as error:
        raise _translate(model, error, _reported_tokens(responses)) from error
    finally:
        _responses.reset(token)


def _vendor_errors() -> Iterator[type[Exception]]:
    for package, name in _VENDORS:
        try:
            yield getattr(import_module(package), name)
        except ModuleNotFoundError:
            continue


def _translate(model: str, error: Exception, tokens: tuple[int, int] | None) -> ModelError:
    kind = _kind(error)
    if kind is not None:
        retry_after = getattr(error, "retry_after", None)
        return kind(f"{model}: {_message(error)}", retry_after=retry_after, tokens=tokens or (0, 0))
    if tokens is None:  # no model was involved: a proxy's error page, a truncated response
        return ModelUnavailable(f"{model}: the response cannot be read ({_message(error)})")
    return ModelMalformed(f"{model}: the reply cannot be read ({_message(error)})", tokens=tokens)


def _kind(error: Exception) -> type[ModelError] | None:
    """The error to raise; None for a response that cannot be read."""
    from pydantic_ai import exceptions as theirs  # noqa: PLC0415 - an optional package

    status: int = getattr(error, "status_code", 0)
    if isinstance(error, theirs.ModelTimeoutError | theirs.ModelRequestTimeout) or status == 408:
        return ModelTimeout
    if isinstance(error, theirs.ModelRateLimitError):
        return ModelRateLimited
    rejected = theirs.ModelQuotaExceededError | theirs.ModelRequestRejectedError | theirs.ContentFilterError
    if isinstance(error, rejected | theirs.UserError) or (400 <= status < 500 and status not in (409, 425)):
        return ModelRefused
    return ModelUnavailable if isinstance(error, theirs.ModelAPIError) else None


def _message(error: Exception) -> str:
    """The server's message on one line of limited length."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    text = str(message or (body if isinstance(body, str) else None) or error) or type(error).__name__
    line = " ".join(text.split())
    line = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    return f"status {status}, {line}" if status is not None else line


def _reported_tokens(responses: list[Response]) -> tuple[int, int] | None:
    """The input and output tokens that a response reports; None if none does."""
    import httpx2  # noqa: PLC0415 - an optional package

    for response in responses:
        try:
            usage: dict[str, Any] = json.loads(response.content)["usage"]
            read = int(usage["prompt_tokens"] if "prompt_tokens" in usage else usage["input_tokens"])
            return read, int(usage.get("completion_tokens") or usage.get("output_tokens") or 0)
        except (httpx2.StreamError, ValueError, KeyError, TypeError):
            continue
    return None
