"""The clients of the decision service: one that blocks, and one to await.

Their methods are the functions of `calls` and `playbook_calls`, sent.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import update_wrapper
from random import Random
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import httpx

from acefraud.client import calls, playbook_calls
from acefraud.client.calls import ServiceCall
from acefraud.client.exchange import Attempts, Exchange, Retries, checked_url
from acefraud.settings import service_key
from acefraud.wire.answer import Page

P = ParamSpec("P")
T = TypeVar("T")
Transport = TypeVar("Transport", httpx.Client, httpx.AsyncClient)


@dataclass(frozen=True)
class _Sent(Generic[P, T]):
    """A call as a method of both clients, which returns the answer, or a coroutine with it."""

    call: Callable[P, ServiceCall[T]]

    @overload
    def __get__(self, client: None, owner: object) -> Callable[..., Any]: ...
    @overload
    def __get__(self, client: Client, owner: object) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: object) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: object, owner: object) -> Any:
        return self  # each client has a function in its place


@dataclass(frozen=True)
class _Paged(Generic[P, T]):
    """A call as a method of both clients, which returns an iterator over all pages, to be awaited or not."""

    call: Callable[P, ServiceCall[Page[T]]]

    @overload
    def __get__(self, client: None, owner: object) -> Callable[..., Any]: ...
    @overload
    def __get__(self, client: Client, owner: object) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: object) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: object, owner: object) -> Any:
        return self  # each client has a function in its place


def _paging(call: Callable[..., ServiceCall[Page[Any]]]) -> Callable[..., Any]:
    def method(self: Client | AsyncClient, /, *given: Any, **named: Any) -> Any:
        return self._pages(call(*given, **named))

    return method


def _sending(call: Callable[..., ServiceCall[Any]]) -> Callable[..., Any]:
    def method(self: Client, /, *given: Any, **named: Any) -> Any:
        return self._send(call(*given, **named))

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
            if isinstance(method, _Sent | _Paged) and _Service in cls.__bases__:
                sending = cls._sending if isinstance(method, _Sent) else _paging
                setattr(cls, name, _described(sending(method.call), method.call, cls._iterator))

    decide = _Sent(calls.decide)
    decide_batch = _Sent(calls.decide_batch)
    score = _Sent(calls.score)
    decision = _Sent(calls.decision)
    decisions = _Paged(calls.decisions)
    report = _Sent(calls.report)
    pending = _Paged(calls.pending)
    playbook = _Paged(playbook_calls.playbook)
    bullet = _Sent(playbook_calls.bullet)
    history = _Paged(playbook_calls.history)
    add_rule = _Sent(playbook_calls.add_rule)
    edit_rule = _Sent(playbook_calls.edit_rule)
    set_status = _Sent(playbook_calls.set_status)
    pin = _Sent(playbook_calls.pin)
    retire = _Sent(playbook_calls.retire)
    snooze = _Sent(playbook_calls.snooze)
    facts = _Paged(playbook_calls.facts)
    read_rule = _Sent(playbook_calls.read_rule)
    preview_rule = _Sent(playbook_calls.preview_rule)
    lists = _Paged(playbook_calls.lists)
    list_values = _Paged(playbook_calls.list_values)
    put_list = _Sent(playbook_calls.put_list)
    change_list = _Sent(playbook_calls.change_list)
    changes = _Paged(playbook_calls.changes)
    rollback = _Sent(playbook_calls.rollback)
    preview_rollback = _Sent(playbook_calls.preview_rollback)
    threshold = _Sent(playbook_calls.threshold)
    set_threshold = _Sent(playbook_calls.set_threshold)
    feed = _Sent(playbook_calls.feed)
    set_feed = _Sent(playbook_calls.set_feed)
    context = _Sent(calls.context)
    trace = _Sent(calls.trace)

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
        key = service_key() if api_key is None else api_key
        self._exchange = Exchange(checked_url(url), key or None, retries or Retries(), random or Random(), clock)
        self._http: Transport = self._transport(**self._exchange.options(timeout, verify, proxy))
        self._sleep = sleep or self._waits

    def __repr__(self) -> str:
        key = "with a key" if self._exchange.api_key else "without a key"
        return f"{type(self).__name__}({self._exchange.url!r}, {key})"


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
        request, attempts = self._exchange.request(call), Attempts(self._exchange, call)
        while True:
            try:
                response = self._http.request(**request)
            except httpx.RequestError as error:
                pause: float | None = attempts.after_failure(error)
            else:
                pause = attempts.after_answer(response)
            if pause is None:
                return self._exchange.read(call, response)
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
        request, attempts = self._exchange.request(call), Attempts(self._exchange, call)
        while True:
            try:
                response = await self._http.request(**request)
            except httpx.RequestError as error:
                pause: float | None = attempts.after_failure(error)
            else:
                pause = attempts.after_answer(response)
            if pause is None:
                return self._exchange.read(call, response)
            await self._sleep(pause)
