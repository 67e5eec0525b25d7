"""The one place where errors of vendors' packages become ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

from acefraud.errors import ModelError, ModelMalformed, ModelRateLimited, ModelRefused, ModelTimeout, ModelUnavailable
from acefraud.llm.metering import with_tokens

if TYPE_CHECKING:
    from httpx2 import Response

_LONGEST = 300
_VENDORS = (("openai", "OpenAIError"), ("anthropic", "AnthropicError"))

_MISSHAPEN = (AttributeError, IndexError, KeyError, TypeError, ValueError, AssertionError)
"""What a vendor's package stumbles with over a reply that lacks something it takes for granted."""

_answers: ContextVar[list[Response] | None] = ContextVar("answers", default=None)


async def note_answer(response: Response) -> None:
    """Keep an answer at hand for as long as its call lasts: where it is of no use, it still tells what it cost."""
    kept = _answers.get()
    if kept is not None:
        kept.append(response)


@contextmanager
def translated(model: str) -> Iterator[None]:
    """Raise as a ModelError whatever a vendor's package raises for a call to this model."""
    import httpx2  # noqa: PLC0415 - optional packages
    from pydantic_ai.exceptions import AgentRunError, UserError  # noqa: PLC0415

    http = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
    vendors: tuple[type[Exception], ...] = (AgentRunError, UserError, *http, *_vendor_errors(), *_MISSHAPEN)
    answers: list[Response] = []
    token = _answers.set(answers)
    try:
        yield
    except ModelError:
        raise
    except vendors as error:
        raise _ours(model, error, _tokens_in(answers)) from error
    finally:
        _answers.reset(token)


def _vendor_errors() -> Iterator[type[Exception]]:
    for package, name in _VENDORS:
        try:
            yield getattr(import_module(package), name)
        except ModuleNotFoundError:
            continue


def _ours(model: str, error: Exception, tokens: tuple[int, int] | None) -> ModelError:
    kind = _kind(error)
    said = f"{model}: {_said(error)}"
    if kind in (ModelRateLimited, ModelUnavailable):
        return kind(said, retry_after=getattr(error, "retry_after", None))
    if kind is not None:
        return with_tokens(kind(said), *(tokens or (0, 0)))
    if tokens is None:  # no model was at work: a page of a proxy, an answer that broke off
        return ModelUnavailable(f"{model}: the answer cannot be read ({_said(error)})")
    return with_tokens(ModelMalformed(f"{model}: the reply cannot be read ({_said(error)})"), *tokens)


def _kind(error: Exception) -> Callable[..., ModelError] | None:
    """Which of our errors it is; None for an answer that cannot be read."""
    from pydantic_ai import exceptions as theirs  # noqa: PLC0415 - an optional package

    status: int = getattr(error, "status_code", 0)
    if isinstance(error, theirs.ModelTimeoutError | theirs.ModelRequestTimeout) or status == 408:
        return ModelTimeout
    if isinstance(error, theirs.ModelRateLimitError):
        return ModelRateLimited
    turned_down = theirs.ModelQuotaExceededError | theirs.ModelRequestRejectedError | theirs.ContentFilterError
    if isinstance(error, turned_down | theirs.UserError) or (400 <= status < 500 and status not in (409, 425)):
        return ModelRefused
    return ModelUnavailable if isinstance(error, theirs.ModelAPIError) else None


def _said(error: Exception) -> str:
    """What the server said, on one line that is not too long."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    said = str(message or (body if isinstance(body, str) else None) or error) or type(error).__name__
    line = " ".join(said.split())
    line = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    return f"status {status}, {line}" if status is not None else line


def _tokens_in(answers: list[Response]) -> tuple[int, int] | None:
    """Input and output tokens that an answer said it took; None where it did not say."""
    import httpx2  # noqa: PLC0415 - an optional package

    for response in answers:
        try:
            usage: dict[str, Any] = json.loads(response.content)["usage"]
            read = int(usage["prompt_tokens"] if "prompt_tokens" in usage else usage["input_tokens"])
            return read, int(usage.get("completion_tokens") or usage.get("output_tokens") or 0)
        except (httpx2.StreamError, ValueError, KeyError, TypeError):
            continue
    return None
