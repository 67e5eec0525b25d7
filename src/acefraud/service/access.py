"""What routes begin with: who calls, what they may do, and which page of a list they ask for."""

from __future__ import annotations

import base64
import binascii
import inspect
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import wraps
from ipaddress import IPv6Address, IPv6Network, ip_address
from math import ceil
from typing import Annotated, Any, Final, ParamSpec, TypeVar

from fastapi import Depends, Query, Request
from fastapi.params import Depends as Dependency
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from acefraud.core.scope import Author, Scope, allows
from acefraud.service.problems import Refused
from acefraud.service.runtime import Runtime

P = ParamSpec("P")
T = TypeVar("T")
ANONYMOUS: Final = "anonymous"
_NO_KEY: Final = "expected a key in the header `Authorization: Bearer KEY`; `acefraud keys create` makes one"
_BEARER: Final = HTTPBearer(auto_error=False, description="An API key, made by `acefraud keys create`.")
_TOO_MANY: Final = "too many requests with this key"
_TOO_MANY_FAILURES: Final = "too many requests without a valid key from this address"


@dataclass(frozen=True, slots=True)
class Requester:
    """Who sent a request."""

    name: str
    """The name of the key: the author of what it changes."""
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether they have this scope too."""
        return allows(self.scopes, scope)

    def by(self, reason: str) -> Author:
        """Who changes something, and why."""
        return Author(who=self.name, why=reason)

    @property
    def in_clear(self) -> bool:
        """Whether personal data in rules and lists is shown to them: whoever may change these sees it."""
        return self.may(Scope.CURATE)


async def runtime_of(request: Request) -> Runtime:  # FastAPI runs what is not async in a thread, for every request
    """What the worker serves with."""
    runtime: Runtime = request.app.state.runtime
    return runtime


Serving = Annotated[Runtime, Depends(runtime_of)]
"""What a route serves with."""


def in_thread(route: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A route that waits for the store, run in a thread of its `runtime` while the event loop goes on."""

    @wraps(route)
    async def run(*given: P.args, **named: P.kwargs) -> T:
        runtime = named["runtime"]
        assert isinstance(runtime, Runtime)
        return await runtime.threads.run(lambda: route(*given, **named))

    # FastAPI would look for the types of the parameters in this module.
    setattr(run, "__signature__", inspect.signature(route, eval_str=True))  # noqa: B010
    return run


SCOPE_OF: Final = "acefraud_scope"
"""The attribute of a dependency that says which scope it asks for."""


def requires(scope: Scope) -> Dependency:
    """A dependency that lets a request through only with a key that has this scope."""

    async def caller(
        request: Request, bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)], runtime: Serving
    ) -> Requester:
        requester = await _requester(request, bearer, runtime)
        request.scope.setdefault("state", {}).setdefault("about", {})["caller"] = requester.name
        if runtime.rates is not None:
            _let_pass(runtime.rates.take(requester.name), _TOO_MANY)
        if not requester.may(scope):
            raise Refused(403, lacks(requester.name, scope))
        return requester

    setattr(caller, SCOPE_OF, scope)
    dependency: Dependency = Depends(caller)
    return dependency


def charge(runtime: Runtime, caller: Requester, items: int) -> None:
    """Let a request count as many requests as it has items. Raises Refused if the caller has to wait for that."""
    if runtime.rates is not None:
        _let_pass(runtime.rates.take(caller.name, items, paid=1), _TOO_MANY)


def lacks(name: str, scope: Scope) -> str:
    """What a caller is told whose key lacks a scope."""
    return (
        f"the key '{name}' lacks the scope '{scope}'; `acefraud keys create NAME --scope {scope}` makes one that has it"
    )


async def _requester(request: Request, bearer: HTTPAuthorizationCredentials | None, runtime: Runtime) -> Requester:
    """Who has the key of a request. Who has sent too many wrong ones learns nothing about further ones.

    Secrets that have worked go on working, since other callers may share the address.
    """
    if bearer is None and runtime.options.insecure_local:
        return Requester(ANONYMOUS, frozenset({Scope.ADMIN}))
    network, key = _network(request), None
    if bearer is not None:
        remembered = runtime.keys.remembered(bearer.credentials)
        if remembered is None:
            if not runtime.keys.has_worked(bearer.credentials):
                _let_pass(runtime.failures.wait(network), _TOO_MANY_FAILURES)
            key = await runtime.key_threads.run(lambda: runtime.keys.find(bearer.credentials))
        else:
            key = remembered.key
    if key is None:
        _let_pass(runtime.failures.take(network), _TOO_MANY_FAILURES)
        detail = _NO_KEY if bearer is None else "the key is unknown or was revoked"
        raise Refused(401, detail, headers={"WWW-Authenticate": "Bearer"})
    return Requester(key.name, key.scopes)


def _let_pass(wait: float, otherwise: str) -> None:
    if wait > 0:
        raise Refused(429, otherwise, headers={"Retry-After": str(ceil(wait))})


def _network(request: Request) -> str:
    """Where a request comes from: the address, or for IPv6 the /64 network, whose addresses one machine can have."""
    host = "" if request.client is None else request.client.host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(IPv6Network((int(address), 64), strict=False)) if isinstance(address, IPv6Address) else host


MayRead = Annotated[Requester, requires(Scope.READ)]
MayDecide = Annotated[Requester, requires(Scope.DECIDE)]
MayCurate = Annotated[Requester, requires(Scope.CURATE)]
"""The caller of a route that asks for this scope."""


MOST_ITEMS: Final = 500
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many at most.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before.")]


def write_cursor(of: str, place: int) -> str:
    """The cursor for a place in a list, which `of` names.

    >>> read_cursor("decisions", write_cursor("decisions", 120))
    120
    """
    return base64.urlsafe_b64encode(f"{of}:{place}".encode()).decode().rstrip("=")


def read_cursor(of: str, cursor: str | None) -> int | None:
    """The place that a cursor of a list stands for; None for the start. Raises Refused if it is none of that list."""
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        named, _, place = text.rpartition(":")
        if named == of and place.isdigit() and len(place) < 19:
            return int(place)
    except (ValueError, binascii.Error):
        pass
    raise Refused(422, "expected a cursor that an earlier page of this list gave as `next`", field="cursor")


def page_of(
    of: str, rows: Sequence[T], start: int, limit: int, wanted: Callable[[T], bool] = lambda _: True
) -> tuple[list[T], str | None]:
    """Up to `limit` of the wanted rows of a list from a place on, and the cursor for those after them.

    >>> page_of("letters", "abcde", 1, 2, lambda letter: letter != "c")
    (['b', 'd'], 'bGV0dGVyczo0')
    >>> page_of("letters", "abcde", read_cursor("letters", "bGV0dGVyczo0"), 2)
    (['e'], None)
    """
    items: list[T] = []
    for index in range(start, len(rows)):
        if not wanted(rows[index]):
            continue
        if len(items) == limit:
            return items, write_cursor(of, index)
        items.append(rows[index])
    return items, None
