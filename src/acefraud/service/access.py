"""Who calls, and what they may do. Every route but the probes asks for a scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Final

from fastapi import Depends, Request
from fastapi.params import Depends as Dependency
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from acefraud.core.scope import Scope, allows
from acefraud.service.problems import Refused
from acefraud.service.runtime import Runtime

ANONYMOUS: Final = "anonymous"
_NO_KEY: Final = "expected a key in the header `Authorization: Bearer KEY`; `acefraud keys create` makes one"
_BEARER: Final = HTTPBearer(auto_error=False, description="An API key, made by `acefraud keys create`.")
_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request."""

    name: str
    """The name of the key: the author of what it changes."""
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether they have this scope too."""
        return allows(self.scopes, scope)


async def runtime_of(request: Request) -> Runtime:  # FastAPI runs what is not async in a thread, for every request
    """What the worker serves with."""
    runtime: Runtime = request.app.state.runtime
    return runtime


def requires(scope: Scope) -> Dependency:
    """A dependency that lets a request through only with a key that has this scope."""
    check = _check(scope)
    dependency: Dependency = Depends(check)
    return dependency


SCOPE_OF: Final = "acefraud_scope"
"""The attribute of a dependency that says which scope it asks for."""


def _check(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    async def caller(
        request: Request, bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
    ) -> Caller:
        runtime: Runtime = request.app.state.runtime
        found = await _caller(runtime, bearer, scope)
        wait = 0.0 if runtime.rates is None else runtime.rates.take(found.name)
        if wait > 0:
            raise Refused(429, "too many requests with this key", headers={"Retry-After": str(ceil(wait))})
        request.scope.setdefault("state", {}).setdefault("about", {})["caller"] = found.name
        return found

    setattr(caller, SCOPE_OF, scope)
    return caller


async def _caller(runtime: Runtime, bearer: HTTPAuthorizationCredentials | None, scope: Scope) -> Caller:
    if bearer is None:
        if runtime.options.insecure_local:
            return Caller(ANONYMOUS, frozenset({Scope.ADMIN}))
        raise Refused(401, _NO_KEY, headers=_CHALLENGE)
    remembered = runtime.keys.remembered(bearer.credentials)
    key = remembered.key if remembered else await runtime.look_up_key(bearer.credentials)
    if key is None:
        raise Refused(401, "the key is unknown or was revoked", headers=_CHALLENGE)
    if not key.allows(scope):
        raise Refused(403, f"the key '{key.name}' lacks the scope '{scope}'")
    return Caller(key.name, key.scopes)
