"""What tests on the server share: commands that talk to it, data for them, and its log read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from acefraud.core.transaction import Case
from acefraud.datasets import Dataset, load_dataset
from acefraud.learning.pipeline import known_by
from acefraud.roles.model import build
from acefraud.settings import ModelSettings

if TYPE_CHECKING:
    from tests.llm.loopback import LoggedCall, LoopbackServer

MODELS = {
    "agent": "openai:gpt-3.5-turbo",
    "judge": "openai:gpt-4o-mini",
    "reflector": "openai:gpt-4o-mini",
    "embedding": "openai:text-embedding-3-small",
}


@cache
def world() -> Dataset:
    """The shipped synthetic world."""
    return load_dataset("complex_fraud_detection", seed=0)


def cases(train: int, test: int) -> tuple[list[Case], list[Case]]:
    """The latest labelled cases of the world, and the first ones after them."""
    return list(known_by(world().train, world().test)[0][-train:]), list(world().test[:test])


def write_cases(path: Path, some: Sequence[Case]) -> Path:
    """A file of transactions with their labels."""
    rows = [
        {
            "id": case.transaction.id,
            "time": case.transaction.time.isoformat() if case.transaction.time else None,
            "label": int(case.is_fraud),
            "text": case.transaction.text,
            **case.transaction.facts,
        }
        for case in some
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def chosen(server: LoopbackServer, **more: Any) -> ModelSettings:
    """All roles on the server, with no cache unless one is given."""
    return ModelSettings(**{**MODELS, "base_url": server.base_url, "cache": None, **more})


def without_waits(monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """Let calls be tried again at once: no flag says how long to wait."""
    made = build._options
    quick = {"first_wait": 0.005, "longest_wait": 0.02, "pause": 0.05, **more}
    monkeypatch.setattr(build, "_options", lambda settings: replace(made(settings), **quick))


def price(calls: Iterable[LoggedCall]) -> float:
    """What the calls cost by the list prices, counted from the server's log."""
    from genai_prices import Usage, calc_price

    def one(call: LoggedCall) -> float:
        tokens = Usage(input_tokens=call.input_tokens, output_tokens=call.output_tokens)
        return float(calc_price(tokens, call.model, provider_id="openai").total_price)

    return sum(one(call) for call in calls if call.input_tokens + call.output_tokens)


def usage_by_role(calls: Sequence[LoggedCall]) -> dict[str, dict[str, Any]]:
    """Calls, tokens and cost of each role, counted from the server's log."""
    found: dict[str, dict[str, Any]] = {}
    for role in ("agent", "judge", "reflector", "embedding"):
        mine = [call for call in calls if call.role == role]
        if mine:
            found[role] = {
                "calls": len(mine),
                "input_tokens": sum(call.input_tokens for call in mine),
                "output_tokens": sum(call.output_tokens for call in mine),
                "cost": pytest.approx(price(mine), rel=1e-9),
            }
    return found
