"""The clients of the decision service: one that blocks, and one to await.

Their methods are the functions of `calls`, sent.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import update_wrapper
from http import HTTPStatus
from random import Random
from typing import Any, Final, Generic, NoReturn, ParamSpec, Self, TypeVar, overload

import httpx
from pydantic import ValidationError

from acefraud.client import calls
from acefraud.client.calls import ServiceCall
from acefraud.display.redaction import MASKED
from acefraud.display.short_repr import shortened
from acefraud.errors import ConfigurationError, InputError, ServiceConflict, ServiceError, ServiceUnavailable
from acefraud.settings import service_key
from acefraud.support.arguments import check_type
from acefraud.support.backoff import wait_after
from acefraud.wire.answers import Page

TRY_LATER: Final = frozenset({429, 502, 503, 504})
"""The statuses that say that the same request may succeed later."""
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_LONGEST_MESSAGE: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Retries:
    """When a request is sent again: after outages, with growing pauses, within limits.

    >>> Retries(attempts=0)
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: attempts: expected at least 1, got 0
    """

    attempts: int = 5
    """How often a request is sent at most."""
    seconds: float = 30.0
    """No attempt begins later than this after the first."""
    first_pause: float = 0.2
    """Seconds; each pause is twice as long as the one before, less some jitter."""
    longest_pause: float = 5.0

    def __post_init__(self) -> None:
        for name, least in (("attempts", 1), ("seconds", 0), ("first_pause", 0), ("longest_pause", 0)):
            if not getattr(self, name) >= least:
                raise ConfigurationError(f"{name}: expected at least {least}, got {getattr(self, name)}")


class Attempts:
    """The attempts to send one call, and the pauses between them."""

    def __init__(self, service: _Service[Any], call: ServiceCall[Any]) -> None:
        self._service = service
        self._call = call
        self._failed = 0
        self._end = service._clock() + service._retries.seconds

    def after_failure(self, error: httpx.RequestError) -> float:
        """The pause after an attempt that got no answer. Raises ServiceUnavailable after the last one."""
        again = self._call.repeatable or isinstance(error, _NOT_SENT)
        pause = self._pause(None) if again else None
        if pause is None:
            tries = f" after {self._failed} attempts" if self._failed > 1 else ""
            done = "" if again else "; it may have been done, so look before you send it again"
            message = f"{self._service._url}: no answer to {_named(self._call)}{tries} ({type(error).__name__}){done}"
            raise ServiceUnavailable(message) from error
        return pause

    def after_answer(self, response: httpx.Response) -> float | None:
        """The pause if the service asks to come back later; None if this is the answer.

        Raises ServiceUnavailable after the last attempt, or if the service asks for more time than there is.
        """
        if response.status_code not in TRY_LATER:
            return None
        asked = _retry_after(response.headers)
        again = self._call.repeatable or response.status_code == HTTPStatus.TOO_MANY_REQUESTS
        pause = self._pause(asked) if again else None
        if pause is None:
            self._service._fail(response, asked)
        return pause

    def _pause(self, asked: float | None) -> float | None:
        """The pause before the next attempt; None if there is to be none."""
        retries, random = self._service._retries, self._service._random
        self._failed += 1
        if self._failed >= retries.attempts:
            return None
        growing = wait_after(self._failed, first=retries.first_pause, longest=retries.longest_pause, random=random)
        pause = max(growing, asked or 0.0)
        return pause if self._service._clock() + pause <= self._end else None


def _named(call: ServiceCall[Any]) -> str:
    return f"{call.method} {call.path}"


def checked_url(url: str) -> str:
    """The address of a service. Raises ConfigurationError if it is none."""
    check_type("url", url, str, "the address of a service", ConfigurationError)
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as problem:
        raise ConfigurationError(f"url: {problem}") from None
    if parsed.userinfo:
        raise ConfigurationError("url: expected no user or password in it; give the key as `api_key`")
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.fragment:
        raise ConfigurationError("url: expected an address such as https://fraud.example.com")
    return str(parsed).rstrip("/")


def _retry_after(headers: httpx.Headers) -> float | None:
    """The seconds that a response asks to wait, if it does: as a number, or as a time by the server's own clock."""
    asked = headers.get("Retry-After", "")
    try:
        if asked.replace(".", "", 1).isdecimal():
            return float(asked)
        return max(0.0, (parsedate_to_datetime(asked) - parsedate_to_datetime(headers["Date"])).total_seconds())
    except (ValueError, TypeError, KeyError):
        return None


def _in_words(status: int, problem: Mapping[str, Any]) -> str:
    """What went wrong in one line. The detail is left out if the fields that are wrong say it too."""
    faults = _faults(problem)
    detail = str(problem.get("detail") or "")
    said = any(fault.get("message") and str(fault["message"]) in detail for fault in faults)
    fields = "; ".join(f"{fault.get('field')}: {fault.get('message')}" for fault in faults)
    parts = (problem.get("title") or _phrase(status), "" if said else detail, fields)
    return shortened(f"HTTP {status}, {': '.join(str(part) for part in parts if part)}", _LONGEST_MESSAGE)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "an error"


def _faults(problem: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The fields that are wrong."""
    errors = problem.get("errors")
    return [fault for fault in errors if isinstance(fault, dict)] if isinstance(errors, list) else []


def _places(problem: ValidationError) -> str:
    return ", ".join(".".join(map(str, error["loc"])) for error in problem.errors(include_input=False)[:3])


P = ParamSpec("P")
T = TypeVar("T")
Given = TypeVar("Given")
Awaited = TypeVar("Awaited")
Transport = TypeVar("Transport", httpx.Client, httpx.AsyncClient)


@dataclass(frozen=True)
class _Method(Generic[P, Given, Awaited]):
    """A call as a method of both clients: what it gives in the one that blocks, and in the one to await."""

    call: Callable[P, ServiceCall[Any]]
    paged: bool = False

    @overload
    def __get__(self, client: None, owner: object) -> Callable[..., Any]: ...
    @overload
    def __get__(self, client: Client, owner: object) -> Callable[P, Given]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: object) -> Callable[P, Awaited]: ...
    def __get__(self, client: object, owner: object) -> Any:
        return self  # each client has a function in its place


def _sent(call: Callable[P, ServiceCall[T]]) -> _Method[P, T, Coroutine[Any, Any, T]]:
    """A method that returns the answer, or a coroutine with it."""
    return _Method(call)


def _paged(call: Callable[P, ServiceCall[Page[T]]]) -> _Method[P, Iterator[T], AsyncIterator[T]]:
    """A method that returns an iterator over all pages, to be awaited or not."""
    return _Method(call, paged=True)


def _sending(call: Callable[..., ServiceCall[Any]], send: str = "_send") -> Callable[..., Any]:
    def method(self: Client | AsyncClient, /, *given: Any, **named: Any) -> Any:
        return getattr(self, send)(call(*given, **named))

    return method


def _awaiting(call: Callable[..., ServiceCall[Any]]) -> Callable[..., Any]:
    async def method(self: AsyncClient, /, *given: Any, **named: Any) -> Any:
        return await self._send(call(*given, **named))

    return method


def _described(method: Callable[..., Any], call: Callable[..., ServiceCall[Any]], iterator: str) -> Callable[..., Any]:
    """A method with the name, the parameters and the docstring of the call that it sends."""
    update_wrapper(method, call)
    read = str(call.__annotations__["return"]).removeprefix("ServiceCall[").removesuffix("]")
    answer = read.replace("Page[", f"{iterator}[")
    method.__annotations__ = {**call.__annotations__, "return": answer}
    signature, own = inspect.signature(call), inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = signature.replace(parameters=[own, *signature.parameters.values()], return_annotation=answer)
    setattr(method, "__signature__", signature)  # noqa: B010  # a function does not declare it
    return method


class _Service(Generic[Transport]):
    """What both clients are made from: the table of their methods, and what these send with."""

    _transport: type[Transport]
    _waits: staticmethod[[float], Any]
    _sending: Callable[[Callable[..., ServiceCall[Any]]], Callable[..., Any]]
    """Makes the method that sends a call."""
    _iterator: str
    """The type that methods return which fetch page by page."""

    def __init_subclass__(cls) -> None:
        """Give a client its methods. What is made from a client inherits them."""
        super().__init_subclass__()
        for name, method in vars(_Service).items():
            if isinstance(method, _Method) and _Service in cls.__bases__:
                made = _sending(method.call, "_pages") if method.paged else cls._sending(method.call)
                setattr(cls, name, _described(made, method.call, cls._iterator))

    decide = _sent(calls.decide)
    decide_batch = _sent(calls.decide_batch)
    score = _sent(calls.score)
    decision = _sent(calls.decision)
    decisions = _paged(calls.decisions)
    report = _sent(calls.report)
    pending = _paged(calls.pending)
    playbook = _paged(calls.playbook)
    bullet = _sent(calls.bullet)
    history = _paged(calls.history)
    add_rule = _sent(calls.add_rule)
    edit_rule = _sent(calls.edit_rule)
    set_status = _sent(calls.set_status)
    pin = _sent(calls.pin)
    retire = _sent(calls.retire)
    snooze = _sent(calls.snooze)
    facts = _paged(calls.facts)
    read_rule = _sent(calls.read_rule)
    preview_rule = _sent(calls.preview_rule)
    lists = _paged(calls.lists)
    list_values = _paged(calls.list_values)
    put_list = _sent(calls.put_list)
    change_list = _sent(calls.change_list)
    changes = _paged(calls.changes)
    rollback = _sent(calls.rollback)
    preview_rollback = _sent(calls.preview_rollback)
    threshold = _sent(calls.threshold)
    set_threshold = _sent(calls.set_threshold)
    feed = _sent(calls.feed)
    set_feed = _sent(calls.set_feed)
    context = _sent(calls.context)
    trace = _sent(calls.trace)

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
        verify: ssl.SSLContext | bool = True,
        proxy: str | None = None,
        sleep: Callable[[float], Any] | None = None,
        random: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url, self._retries = checked_url(url), retries or Retries()
        self._random, self._clock = random or Random(), clock
        self._key = key = (service_key() if api_key is None else api_key) or None
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise ConfigurationError("api_key: expected the secret that `acefraud keys create` prints")
        self._sleep = sleep or self._waits
        self._http: Transport = self._transport(
            base_url=self._url,
            headers={"Accept": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})},
            timeout=timeout,
            verify=verify,
            proxy=proxy,
            trust_env=False,  # a proxy that only the environment names would get the key
            follow_redirects=False,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r}, {'with' if self._key else 'without'} a key)"

    def _request(self, call: ServiceCall[Any]) -> dict[str, Any]:
        """The arguments that send a call. Every attempt sends the same bytes."""
        try:
            for value in call.params.values():
                str(value).encode()
            body = None if call.body is None else json.dumps(call.body, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError as problem:
            raise InputError(f"expected valid UTF-8, got something else at character {problem.start + 1}") from None
        kind = {} if body is None else {"Content-Type": "application/json"}
        return {
            "method": call.method,
            "url": call.path,
            "params": call.params,
            "content": body,
            "headers": {**kind, **call.headers},
        }

    def _read(self, call: ServiceCall[T], response: httpx.Response) -> T:
        """What the response says. Raises ServiceError if it is an error, or not what the call asked for."""
        if not response.is_success:
            self._fail(response)
        try:
            return call.read(json.loads(response.content))
        except (ValueError, TypeError, KeyError) as problem:
            where = f" in {_places(problem)}" if isinstance(problem, ValidationError) else ""
            message = f"the answer to {_named(call)} cannot be read{where}; is {self._url} a decision service?"
            raise ServiceError(message, status=response.status_code) from None

    def _fail(self, response: httpx.Response, retry_after: float | None = None) -> NoReturn:
        """Raise the error that a response is."""
        problem = self._problem(response)
        status, message = response.status_code, _in_words(response.status_code, problem)
        if status == HTTPStatus.CONFLICT:
            raise ServiceConflict(message, status=status, problem=problem)
        if status in TRY_LATER:
            raise ServiceUnavailable(message, status=status, problem=problem, retry_after=retry_after)
        raise ServiceError(message, status=status, problem=problem)

    def _problem(self, response: httpx.Response) -> dict[str, Any]:
        text = response.content.decode(errors="replace")
        if self._key:  # a proxy may say back what it was sent
            text = text.replace(self._key, MASKED)
        try:
            problem = json.loads(text)
        except ValueError:
            return {}
        return problem if isinstance(problem, dict) else {}


class Client(_Service[httpx.Client]):
    """A decision service over HTTP. It can be shared between threads.

    The key is sent to ``url`` and nowhere else. Without ``api_key`` it is the one in ACEFRAUD_API_KEY, if that is set;
    ``api_key=""`` sends none. Requests are sent again after outages, as ``retries`` says; a change of the playbook is
    not, once it may have arrived. Raises ServiceError if the service refuses a request, ServiceConflict if it
    contradicts an earlier one, and ServiceUnavailable if there is no answer.

    >>> with Client("https://fraud.example.com", api_key="ace_1f_secret") as client:
    ...     print(client)
    Client('https://fraud.example.com', with a key)

    With a service at that address, ``client.decide({"id": "t1", "facts": {"amount": 900}})`` answers with a verdict, a
    probability and reasons.
    """

    _transport, _waits = httpx.Client, staticmethod(time.sleep)
    _sending, _iterator = staticmethod(_sending), "Iterator"

    def close(self) -> None:
        """Close the connections. Closing twice is harmless."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pages(self, call: ServiceCall[Page[T]]) -> Iterator[T]:
        wanted: ServiceCall[Page[T]] | None = call
        while wanted is not None:
            page = self._send(wanted)
            yield from page.items
            wanted = calls.next_page(call, page)

    def _send(self, call: ServiceCall[T]) -> T:
        """Send a call until there is an answer, and read it."""
        request, attempts = self._request(call), Attempts(self, call)
        while True:
            try:
                response = self._http.request(**request)
            except httpx.RequestError as error:
                pause: float | None = attempts.after_failure(error)
            else:
                pause = attempts.after_answer(response)
            if pause is None:
                return self._read(call, response)
            self._sleep(pause)


class AsyncClient(_Service[httpx.AsyncClient]):
    """A decision service over HTTP, to be awaited. It has the methods of Client.

    Those that fetch page by page are asynchronous iterators: ``async for decision in client.decisions()``.

    >>> AsyncClient("https://fraud.example.com", api_key="ace_1f_secret")
    AsyncClient('https://fraud.example.com', with a key)
    """

    _transport, _waits = httpx.AsyncClient, staticmethod(asyncio.sleep)
    _sending, _iterator = staticmethod(_awaiting), "AsyncIterator"

    async def close(self) -> None:
        """Close the connections. Closing twice is harmless."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _pages(self, call: ServiceCall[Page[T]]) -> AsyncIterator[T]:
        wanted: ServiceCall[Page[T]] | None = call
        while wanted is not None:
            page = await self._send(wanted)
            for item in page.items:
                yield item
            wanted = calls.next_page(call, page)

    async def _send(self, call: ServiceCall[T]) -> T:
        """Send a call until there is an answer, and read it."""
        request, attempts = self._request(call), Attempts(self, call)
        while True:
            try:
                response = await self._http.request(**request)
            except httpx.RequestError as error:
                pause: float | None = attempts.after_failure(error)
            else:
                pause = attempts.after_answer(response)
            if pause is None:
                return self._read(call, response)
            await self._sleep(pause)
