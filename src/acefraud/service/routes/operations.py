"""For those who run the service: is it alive, can it answer, how is it doing."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from acefraud.errors import StoreUnavailable
from acefraud.service.access import Serving
from acefraud.service.metrics import MEDIA_TYPE, REVISION, exposition

router = APIRouter(tags=["operations"])
STORE_SECONDS: Final = 2.0
"""How long a probe waits for the store. A server that is stopped keeps its connections, and says nothing."""


class Health(BaseModel):
    """That the process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """That the store can be read and written."""

    status: Literal["ready"] = "ready"
    playbook_revision: int


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", summary="Is the process alive?")
async def health() -> Health:
    """Answers as long as the process runs."""
    return Health()


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", summary="Can it decide?")
async def ready(runtime: Serving) -> Readiness:
    """Answers while the store can be read and written; 503 while it cannot."""
    try:
        async with asyncio.timeout(STORE_SECONDS):
            await runtime.probing.run(runtime.check_store)
    except TimeoutError:
        raise StoreUnavailable(f"the store did not answer within {STORE_SECONDS:g} seconds") from None
    return Readiness(playbook_revision=runtime.playbook.revision)


@router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
async def metrics(runtime: Serving) -> Response:
    """Counts and times of requests, decisions and outcomes, for all workers of this server."""
    REVISION.set(runtime.playbook.revision)
    return Response(exposition(), media_type=MEDIA_TYPE)
