"""What the servers under load work on: a playbook of many rules, a bare table, and how much they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

from sqlalchemy import Engine, create_engine, text

from acefraud import open_playbook
from benchmarks.service.peer import TABLE

COUNTRIES = ("FR", "DE", "US", "BR", "NG", "IN", "GB", "ES")

_BYTES = {
    "postgresql": """
        SELECT sum(pg_total_relation_size(pg_class.oid)) FROM pg_class
        JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname = current_schema() AND relkind = 'r'
    """,
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
}


def orders(count: int, name: str) -> list[bytes]:
    """Transactions given as facts, with ids of their own."""
    return [
        json.dumps(
            {
                "id": f"{name}-{n}",
                "facts": {
                    "amount": 5 + (n * 7919) % 4000,
                    "account_age_days": (n * 31) % 900,
                    "vpn": n % 7 == 0,
                    "new_device": n % 5 == 0,
                    "country": COUNTRIES[n % len(COUNTRIES)],
                    "payments_24h": n % 12,
                    "hour": n % 24,
                    "merchant_category": f"category {n % 20}",
                },
            }
        ).encode()
        for n in range(count)
    ]


def write_playbook(address: str, bullets: int) -> None:
    """A playbook of rules that look at several facts each."""
    with open_playbook(address) as book, book.unit_of_work(who="benchmark"):
        for n in range(bullets):
            country = COUNTRIES[n % len(COUNTRIES)]
            rule = f'amount > {4 * n} and account_age_days < {n + 5} and country is "{country}"'
            book.add_bullet(f"{rule}: decline")


def write_table(address: str) -> None:
    """The table of the bare route."""
    engine = _engine(address)
    with engine.begin() as connection:
        connection.execute(text(TABLE))
    engine.dispose()


def bytes_in(address: str) -> int:
    """How large a store is, with its indices."""
    engine = _engine(address)
    with engine.connect() as connection:
        size: int = connection.scalar(text(_BYTES[engine.dialect.name]))
    engine.dispose()
    return size


@contextmanager
def own_schema(database: str) -> Iterator[str]:
    """A schema of its own in a database, and the address that leads to it."""
    name = f"bench_{uuid4().hex[:12]}"
    engine = _engine(database)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    try:
        yield f"{database}{'&' if '?' in database else '?'}options={quote(f'-csearch_path={name}')}"
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()


def _engine(address: str) -> Engine:
    driver = address.replace("postgresql://", "postgresql+psycopg://", 1)
    return create_engine(driver if "://" in address else f"sqlite:///{address}")
