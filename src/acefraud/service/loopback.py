"""Who may call a service that asks for no keys: programs on this machine, but no page of a website."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from acefraud.service.problems import problem_response

_NOT_HERE: Final = "without keys, this service answers only to localhost, 127.0.0.1 and [::1]; use one of these names"
_FROM_ELSEWHERE: Final = "without keys, this service answers no requests from pages of other sites; serve it with keys"


class LoopbackOnly:
    """Refuses requests that name another host than this machine, or that a page from elsewhere sends.

    A browser sends the requests of any website to a loopback address, and a website can give its own name that address.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it is foreign."""
        refusal = _refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await problem_response(403, refusal)(scope, receive, send)


def _refusal(scope: Scope) -> str | None:
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if not hosts or not all(_names_loopback(f"//{host}") for host in hosts):
        return _NOT_HERE
    origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
    return None if all(_names_loopback(origin) for origin in origins) else _FROM_ELSEWHERE


def _names_loopback(address: str) -> bool:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, and can only be reached from it.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
