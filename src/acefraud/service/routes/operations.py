"""For those who run the service: is it alive, can it answer, how is it doing."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from acefraud.errors import StoreError
from acefraud.service.metrics import MEDIA_TYPE, REVISION, WAITING, exposition
from acefraud.service.routes.decisions import Serving

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """That the process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """That the store answers."""

    status: Literal["ready"] = "ready"
    playbook_revision: int


@router.get("/healthz", summary="Is the process alive?")
async def health() -> Health:
    """Answers as long as the process runs."""
    return Health()


@router.get("/readyz", summary="Can it decide?")
async def ready(runtime: Serving) -> Readiness:
    """Answers once the store does; 503 while it does not."""
    await runtime.in_thread(runtime.playbook.refresh)
    return Readiness(playbook_revision=runtime.playbook.snapshot().revision)


@router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
async def metrics(runtime: Serving) -> Response:
    """Counts and times of requests, decisions and outcomes, for all workers of this server."""
    REVISION.set(runtime.playbook.snapshot().revision)
    with suppress(StoreError):  # the other figures are wanted most while the store is down
        WAITING.set(await runtime.in_thread(runtime.outcomes_waiting))
    return Response(exposition(), media_type=MEDIA_TYPE)
