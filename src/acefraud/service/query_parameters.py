"""Query parameters that a route does not have are refused: without that, a misspelt filter would list everything."""

from __future__ import annotations

from fastapi import Request
from fastapi.routing import APIRoute

from acefraud.core.arguments import nearest
from acefraud.display.short_repr import quoted, shown_text
from acefraud.service.problems import Refused


async def refuse_unknown_parameters(request: Request) -> None:
    """Raise Refused for the first query parameter that the route of a request does not declare."""
    if not request.scope["query_string"]:
        return
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [one.alias for one in route.dependant.query_params]
    for name in request.query_params:
        if name not in known:
            there_are = f"; there are {', '.join(known)}" if known else "; this route takes none"
            hint = nearest(name, known) or there_are
            raise Refused(422, f"there is no parameter {quoted(name)}{hint}", field=shown_text(name))
