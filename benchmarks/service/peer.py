"""A bare FastAPI route that writes one row: what any service in this place would have to do at least.

It has the driver, the pool, the durability and the response model of the service, and nothing of the engine.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import Engine, create_engine, event, text


class Order(BaseModel):
    """A transaction."""

    id: str
    time: datetime | None = None
    facts: dict[str, bool | float | str] = {}
    text: str = ""


class Reason(BaseModel):
    """A reason of a decision."""

    bullet_id: str | None
    content: str
    weight: float | None


class Answer(BaseModel):
    """The same fields as the service answers with."""

    decision_id: str
    transaction_id: str
    verdict: str
    probability: float
    reasons: list[Reason]
    playbook_revision: int
    time: datetime


TABLE = "CREATE TABLE IF NOT EXISTS rows (id TEXT PRIMARY KEY, body TEXT NOT NULL)"


def _engine(address: str) -> Engine:
    if address.startswith("postgresql"):
        return create_engine(address.replace("postgresql://", "postgresql+psycopg://", 1))
    engine = create_engine(f"sqlite:///{address}", connect_args={"timeout": 30})

    def durable(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    event.listen(engine, "connect", durable)
    return engine


def build() -> FastAPI:
    """The application, on the database that BENCH_DATABASE names, with rows that are BENCH_ROW_BYTES long."""
    engine, size = _engine(os.environ["BENCH_DATABASE"]), int(os.environ["BENCH_ROW_BYTES"])
    insert = text("INSERT INTO rows VALUES (:id, :body)")
    app = FastAPI()

    @app.post("/rows", response_model=Answer)
    def write(order: Order) -> Answer:
        content = json.dumps(order.facts)
        with engine.begin() as connection:
            connection.execute(insert, {"id": order.id, "body": content.ljust(size)})
        return Answer(
            decision_id=f"d-{order.id}",
            transaction_id=order.id,
            verdict="APPROVE",
            probability=0.1,
            reasons=[Reason(bullet_id=f"b-{n}", content="amount above 500", weight=0.5) for n in range(10)],
            playbook_revision=1,
            time=datetime.now(UTC),
        )

    return app
