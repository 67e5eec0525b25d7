"""`acefraud keys ...`: who may use the service, and for what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from acefraud.cli import SUMMARIES
from acefraud.cli.console import line, note, print_json, print_result
from acefraud.cli.options import JsonOption, PlaybookOption, WhoOption
from acefraud.cli.workspace import author, existing_ledger, ledger_to_fill
from acefraud.core.scope import Scope
from acefraud.storage.service_tables import ApiKey, KeyStore

app = typer.Typer(help=SUMMARIES["keys"], no_args_is_help=True, add_completion=False)

ScopeOption = Annotated[
    list[Scope], typer.Option("--scope", help="What it allows; repeat it for several. `admin` includes all others.")
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who uses it: the author of what is done with it.")],
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


@app.command("list")
def list_keys(playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """List the API keys with what they allow, revoked ones included. Secrets are not kept.

    acefraud keys list --playbook book.db
    """
    with existing_ledger(playbook) as ledger:
        keys = KeyStore(ledger).list()
    if json:
        print_json([_as_json(key) for key in keys])
        return
    for key in keys:
        revoked = "" if key.revoked_at is None else f"  revoked {_when(key.revoked_at)} by {key.revoked_by}"
        created = f"created {_when(key.created_at)} by {key.created_by}"
        line(f"{key.id}  {key.name}  {_scopes(key)}  {created}{revoked}", "dim" if revoked else None)
    in_use = sum(key.revoked_at is None for key in keys)
    line(f"{in_use:,} {'key' if in_use == 1 else 'keys'} in use", "dim")


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its id or its name, as `list` shows them.")],
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    json: JsonOption = False,
) -> None:
    """Revoke an API key. A service that is running refuses it within seconds.

    acefraud keys revoke checkout --playbook book.db
    """
    with existing_ledger(playbook, read_only=False) as ledger:
        revoked = KeyStore(ledger).revoke(key, who=author(who), now=datetime.now(UTC))
    print_result(_as_json(revoked), f"revoked {revoked.id} ({revoked.name})", json=json)


def _scopes(key: ApiKey) -> str:
    return ", ".join(scope for scope in Scope if scope in key.scopes)


def _when(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _as_json(key: ApiKey) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": [scope for scope in Scope if scope in key.scopes],
        "created_at": key.created_at.isoformat(),
        "created_by": key.created_by,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
        "revoked_by": key.revoked_by,
    }
