"""Who calls, and what they may do. Every route but the probes asks for a scope."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from ipaddress import IPv6Address, IPv6Network, ip_address
from math import ceil
from typing import Annotated, Any, Final, ParamSpec, TypeVar

from fastapi import Depends, Request
from fastapi.params import Depends as Dependency
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from acefraud.core.scope import Scope, allows
from acefraud.service.problems import Refused
from acefraud.service.runtime import Runtime
from acefraud.storage.service_tables import ApiKey

P = ParamSpec("P")
T = TypeVar("T")
ANONYMOUS: Final = "anonymous"
_NO_KEY: Final = "expected a key in the header `Authorization: Bearer KEY`; `acefraud keys create` makes one"
_BEARER: Final = HTTPBearer(auto_error=False, description="An API key, made by `acefraud keys create`.")
_TOO_MANY: Final = "too many requests with this key"
_TOO_MANY_FAILURES: Final = "too many requests without a valid key from this address"
_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class Requester:
    """Who sent a request."""

    name: str
    """The name of the key: the author of what it changes."""
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether they have this scope too."""
        return allows(self.scopes, scope)

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
        return await runtime.in_thread(lambda: route(*given, **named))

    # FastAPI would look for the types of the parameters in this module.
    setattr(run, "__signature__", inspect.signature(route, eval_str=True))  # noqa: B010
    return run


def requires(scope: Scope) -> Dependency:
    """A dependency that lets a request through only with a key that has this scope."""
    check = _check(scope)
    dependency: Dependency = Depends(check)
    return dependency


SCOPE_OF: Final = "acefraud_scope"
"""The attribute of a dependency that says which scope it asks for."""


def charge(runtime: Runtime, caller: Requester, items: int) -> None:
    """Let a request count as many requests as it has items. Raises Refused if the caller has to wait for that."""
    if runtime.rates is not None:
        _let_pass(runtime.rates.take(caller.name, items, paid=1), _TOO_MANY)


def _check(scope: Scope) -> Callable[..., Awaitable[Requester]]:
    async def caller(
        request: Request, bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
    ) -> Requester:
        runtime: Runtime = request.app.state.runtime
        requester = await _caller(request, bearer)
        request.scope.setdefault("state", {}).setdefault("about", {})["caller"] = requester.name
        if runtime.rates is not None:
            _let_pass(runtime.rates.take(requester.name), _TOO_MANY)
        if not requester.may(scope):
            raise Refused(403, lacks(requester.name, scope))
        return requester

    setattr(caller, SCOPE_OF, scope)
    return caller


def lacks(name: str, scope: Scope) -> str:
    """What a caller is told whose key lacks a scope."""
    return (
        f"the key '{name}' lacks the scope '{scope}'; `acefraud keys create NAME --scope {scope}` makes one that has it"
    )


async def _caller(request: Request, bearer: HTTPAuthorizationCredentials | None) -> Requester:
    runtime: Runtime = request.app.state.runtime
    if bearer is None:
        if runtime.options.insecure_local:
            return Requester(ANONYMOUS, frozenset({Scope.ADMIN}))
        raise _failure(request, _NO_KEY)
    key = await _key(request, bearer.credentials)
    if key is None:
        raise _failure(request, "the key is unknown or was revoked")
    return Requester(key.name, key.scopes)


async def _key(request: Request, secret: str) -> ApiKey | None:
    """The key with this secret. Who has sent too many wrong ones learns nothing about further ones.

    Secrets that have worked go on working, since other callers may share the address.
    """
    runtime: Runtime = request.app.state.runtime
    remembered = runtime.keys.remembered(secret)
    if remembered is not None:
        return remembered.key
    if not runtime.keys.has_worked(secret):
        _let_pass(runtime.failures.wait(_network(request)), _TOO_MANY_FAILURES)
    return await runtime.key_threads.run(lambda: runtime.keys.find(secret))


def _failure(request: Request, detail: str) -> Refused:
    """What a caller without a valid key is told. It counts against the address."""
    runtime: Runtime = request.app.state.runtime
    _let_pass(runtime.failures.take(_network(request)), _TOO_MANY_FAILURES)
    return Refused(401, detail, headers=_CHALLENGE)


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
