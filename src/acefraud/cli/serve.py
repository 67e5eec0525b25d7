"""`acefraud serve` and `acefraud keys ...`: the decision service, and who may use it for what."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from typer import Argument, Option

from acefraud.cli import group
from acefraud.cli.console import Said, line, note, print_result
from acefraud.cli.options import DaysAheadOption, JsonOption, PlaybookOption, WhoOption
from acefraud.cli.workspace import author, existing_ledger, ledger_to_fill, place_of
from acefraud.core.scope import Scope
from acefraud.errors import ConfigurationError
from acefraud.settings import ModelSettings, Settings
from acefraud.storage.service_tables import ApiKey, KeyStore

keys_app = group("keys")
ScopeOption = Annotated[list[Scope], Option(help="What it allows; repeat it for several. `admin` includes all others.")]


def serve(
    playbook: PlaybookOption = None,
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8000,
    workers: Annotated[int, Option(min=1, help="Processes that answer requests.")] = 1,
    insecure_local: Annotated[bool, Option(help="Let callers without a key do everything, on loopback only.")] = False,
    most_bytes: Annotated[int, Option(min=1, help="The largest body of a request.")] = 1_000_000,
    rate: Annotated[
        float, Option(min=0, help="Requests per second and key that a worker answers; 0: no limit.")
    ] = 2_000.0,
    idempotency_days: Annotated[int, Option(min=0, help="Days that idempotency keys are kept; 0: for ever.")] = 30,
    deadline: Annotated[int, Option(min=1, help="Seconds after which a request is told to try again.")] = 30,
    strict: Annotated[
        bool, Option(help="Refuse facts that the playbook does not know and times that cannot be.")
    ] = False,
    days_ahead: DaysAheadOption = 1.0,
    grace: Annotated[int, Option(min=0, help="Seconds to finish what was accepted.")] = 30,
    *,
    settings: Annotated[ModelSettings, "judge"],  # what nobody labels is judged by `acefraud judge`
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


@keys_app.command()
def create(
    name: Annotated[str, Argument(metavar="NAME", help="Who uses it: the author of what is done with it.")],
    scope: ScopeOption,
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    json: JsonOption = False,
) -> None:
    """Create an API key and print its secret, which cannot be shown again: only its hash is kept.

    A database without a playbook gets its tables. A file must be there.

    acefraud keys create checkout --scope decide --scope outcomes --playbook book.db
    """
    with ledger_to_fill(playbook) as ledger:
        key, secret = KeyStore(ledger).create(name, scope, who=author(who), now=datetime.now(UTC))
    if not json:
        note(f"key {key.id} for {key.name}: {_scopes(key)}. Keep the secret: it is not shown again")
    print_result({**_as_json(key), "secret": secret}, secret, json=json)


@keys_app.command("list")
def list_keys(playbook: PlaybookOption = None) -> Said:
    """List the API keys with what they allow, revoked ones included. Secrets are not kept.

    acefraud keys list --playbook book.db
    """
    with existing_ledger(playbook) as ledger:
        keys = KeyStore(ledger).list()
    in_use = sum(key.revoked_at is None for key in keys)
    count = f"{in_use:,} {'key' if in_use == 1 else 'keys'} in use"
    return [_as_json(key) for key in keys], [*map(_in_words, keys), (count, "dim")]


def _in_words(key: ApiKey) -> str | tuple[str, str]:
    words = f"{key.id}  {key.name}  {_scopes(key)}  created {_when(key.created_at)} by {key.created_by}"
    if key.revoked_at is None:
        return words
    return f"{words}  revoked {_when(key.revoked_at)} by {key.revoked_by}", "dim"


@keys_app.command()
def revoke(
    key: Annotated[str, Argument(metavar="KEY", help="Its id or its name, as `list` shows them.")],
    playbook: PlaybookOption = None,
    who: WhoOption = None,
) -> Said:
    """Revoke an API key. A service that is running refuses it within seconds.

    acefraud keys revoke checkout --playbook book.db
    """
    with existing_ledger(playbook, read_only=False) as ledger:
        revoked = KeyStore(ledger).revoke(key, who=author(who), now=datetime.now(UTC))
    return _as_json(revoked), f"revoked {revoked.id} ({revoked.name})"


def _scopes(key: ApiKey) -> str:
    return ", ".join(scope for scope in Scope if scope in key.scopes)


def _when(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _as_json(key: ApiKey) -> dict[str, Any]:
    content = {**asdict(key), "scopes": [scope for scope in Scope if scope in key.scopes]}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in content.items()}
