"""`acefraud serve`: the decision service."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from acefraud.cli.console import line
from acefraud.cli.options import DaysAheadOption, PlaybookOption, with_model_options
from acefraud.cli.workspace import place_of
from acefraud.errors import ConfigurationError
from acefraud.settings import ModelSettings, Settings


@partial(with_model_options, without=["judge"])  # what nobody labels is judged by `acefraud judge`
def serve(
    playbook: PlaybookOption = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any that is free.")] = 8000,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that answer requests.")] = 1,
    insecure_local: Annotated[
        bool, typer.Option("--insecure-local", help="Let callers without a key do everything, on loopback only.")
    ] = False,
    most_bytes: Annotated[int, typer.Option("--most-bytes", min=1, help="The largest body of a request.")] = 1_000_000,
    rate: Annotated[
        float, typer.Option("--rate", min=0, help="Requests per second and key that a worker answers; 0: no limit.")
    ] = 2_000.0,
    idempotency_days: Annotated[
        int, typer.Option("--idempotency-days", min=0, help="Days that idempotency keys are kept; 0: for ever.")
    ] = 30,
    deadline: Annotated[
        int, typer.Option("--deadline", min=1, help="Seconds after which a request is told to try again.")
    ] = 30,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse facts that the playbook does not know and times that cannot be.")
    ] = False,
    days_ahead: DaysAheadOption = 1.0,
    grace: Annotated[int, typer.Option("--grace", min=0, help="Seconds to finish what was accepted.")] = 30,
    *,
    settings: ModelSettings,
) -> None:
    """Serve a playbook over HTTP: decisions, outcomes and rules.

    The routes are under /v1, and described at /docs. Requests need a key (`acefraud keys create`). Outcomes are learnt
    from in the background. SIGTERM ends it once it has answered what it accepted.

        acefraud serve --playbook book.db --port 8000
        acefraud serve --database postgresql://acefraud@db/acefraud --workers 4 --host 0.0.0.0
    """
    try:
        from acefraud.service.options import ServiceOptions  # noqa: PLC0415
        from acefraud.service.server import serve as run  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise ConfigurationError(f"this needs {missing.name}: pip install 'acefraud[service]'") from None
    options = ServiceOptions(
        store=place_of(playbook),
        host=host,
        port=port,
        workers=workers,
        insecure_local=insecure_local,
        most_bytes=most_bytes,
        rate=rate,
        idempotency_days=idempotency_days,
        deadline=deadline,
        grace=grace,
        strict=strict,
        days_ahead=days_ahead,
        durability=Settings.from_environment().durability,
        models=settings,
    )
    run(options, announce=lambda address: line(f"listening on {address}"))
