"""The clients of the decision service: one that blocks, and one to await.

Their methods are the functions of `calls` and `playbook_calls`, sent.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from random import Random
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

import httpx

from acefraud.client import calls, playbook_calls
from acefraud.client.calls import Call
from acefraud.client.exchange import Attempts, Exchange, Retries
from acefraud.wire.answer import Page

P = ParamSpec("P")
T = TypeVar("T")
Transport = TypeVar("Transport", httpx.Client, httpx.AsyncClient)
Method = TypeVar("Method", bound=Callable[..., Any])


def _described(method: Method, call: Callable[..., Call[Any]], pages: str = "") -> Method:
    """A method with the name, the parameters and the docstring of the call that it sends."""
    update_wrapper(method, call)
    answer = str(call.__annotations__["return"]).removeprefix("Call[").removesuffix("]").replace("Page[", f"{pages}[")
    method.__annotations__ = {**call.__annotations__, "return": answer}
    signature, own = inspect.signature(call), inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = signature.replace(parameters=[own, *signature.parameters.values()], return_annotation=answer)
    setattr(method, "__signature__", signature)  # noqa: B010  # a function does not declare it
    return method


def _sent(call: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    def method(self: Client, /, *given: P.args, **named: P.kwargs) -> T:
        return self._send(call(*given, **named))

    return _described(method, call)


def _paged(call: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[Client, P], Iterator[T]]:
    def method(self: Client, /, *given: P.args, **named: P.kwargs) -> Iterator[T]:
        return self._pages(call(*given, **named))

    return _described(method, call, "Iterator")


def _awaited(call: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def method(self: AsyncClient, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._send(call(*given, **named))

    return _described(method, call)


def _awaited_pages(call: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    def method(self: AsyncClient, /, *given: P.args, **named: P.kwargs) -> AsyncIterator[T]:
        return self._pages(call(*given, **named))

    return _described(method, call, "AsyncIterator")


class _Service(Generic[Transport]):
    """What both clients are made from."""

    _transport: type[Transport]
    _waits: staticmethod[[float], Any]

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
        self._exchange = Exchange.with_service(url, api_key, retries, random, clock)
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

    def close(self) -> None:
        """Close the connections. Closing twice is harmless."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    decide = _sent(calls.decide)
    decide_batch = _sent(calls.decide_batch)
    score = _sent(calls.score)
    decision = _sent(calls.decision)
    decisions = _paged(calls.decisions)
    report = _sent(calls.report)
    pending = _paged(calls.pending)
    playbook = _paged(playbook_calls.playbook)
    bullet = _sent(playbook_calls.bullet)
    history = _paged(playbook_calls.history)
    add_rule = _sent(playbook_calls.add_rule)
    edit_rule = _sent(playbook_calls.edit_rule)
    set_status = _sent(playbook_calls.set_status)
    pin = _sent(playbook_calls.pin)
    retire = _sent(playbook_calls.retire)
    snooze = _sent(playbook_calls.snooze)
    facts = _paged(playbook_calls.facts)
    read_rule = _sent(playbook_calls.read_rule)
    preview_rule = _sent(playbook_calls.preview_rule)
    lists = _paged(playbook_calls.lists)
    list_values = _paged(playbook_calls.list_values)
    put_list = _sent(playbook_calls.put_list)
    change_list = _sent(playbook_calls.change_list)
    changes = _paged(playbook_calls.changes)
    rollback = _sent(playbook_calls.rollback)
    preview_rollback = _sent(playbook_calls.preview_rollback)
    threshold = _sent(playbook_calls.threshold)
    set_threshold = _sent(playbook_calls.set_threshold)
    feed = _sent(playbook_calls.feed)
    set_feed = _sent(playbook_calls.set_feed)
    context = _sent(calls.context)
    trace = _sent(calls.trace)

    def _pages(self, call: Call[Page[T]]) -> Iterator[T]:
        wanted: Call[Page[T]] | None = call
        while wanted is not None:
            page = self._send(wanted)
            yield from page.items
            wanted = calls.next_page(call, page)

    def _send(self, call: Call[T]) -> T:
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

    async def close(self) -> None:
        """Close the connections. Closing twice is harmless."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    decide = _awaited(calls.decide)
    decide_batch = _awaited(calls.decide_batch)
    score = _awaited(calls.score)
    decision = _awaited(calls.decision)
    decisions = _awaited_pages(calls.decisions)
    report = _awaited(calls.report)
    pending = _awaited_pages(calls.pending)
    playbook = _awaited_pages(playbook_calls.playbook)
    bullet = _awaited(playbook_calls.bullet)
    history = _awaited_pages(playbook_calls.history)
    add_rule = _awaited(playbook_calls.add_rule)
    edit_rule = _awaited(playbook_calls.edit_rule)
    set_status = _awaited(playbook_calls.set_status)
    pin = _awaited(playbook_calls.pin)
    retire = _awaited(playbook_calls.retire)
    snooze = _awaited(playbook_calls.snooze)
    facts = _awaited_pages(playbook_calls.facts)
    read_rule = _awaited(playbook_calls.read_rule)
    preview_rule = _awaited(playbook_calls.preview_rule)
    lists = _awaited_pages(playbook_calls.lists)
    list_values = _awaited_pages(playbook_calls.list_values)
    put_list = _awaited(playbook_calls.put_list)
    change_list = _awaited(playbook_calls.change_list)
    changes = _awaited_pages(playbook_calls.changes)
    rollback = _awaited(playbook_calls.rollback)
    preview_rollback = _awaited(playbook_calls.preview_rollback)
    threshold = _awaited(playbook_calls.threshold)
    set_threshold = _awaited(playbook_calls.set_threshold)
    feed = _awaited(playbook_calls.feed)
    set_feed = _awaited(playbook_calls.set_feed)
    context = _awaited(calls.context)
    trace = _awaited(calls.trace)

    async def _pages(self, call: Call[Page[T]]) -> AsyncIterator[T]:
        wanted: Call[Page[T]] | None = call
        while wanted is not None:
            page = await self._send(wanted)
            for item in page.items:
                yield item
            wanted = calls.next_page(call, page)

    async def _send(self, call: Call[T]) -> T:
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
