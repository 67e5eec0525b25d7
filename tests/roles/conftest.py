"""Every role in two versions: embedded, and on a model on a loopback server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.llm.conftest import Loopback

from acefraud.llm.client import ClientOptions, ModelClient

if TYPE_CHECKING:
    from tests.llm.loopback import LoopbackServer


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with ExitStack() as closing:
        yield Loopback(closing)


@pytest.fixture
def server(loopback: Loopback) -> LoopbackServer:
    return loopback()


@pytest.fixture
def client() -> ModelClient:
    """Tries every call once, so that a failure is known at once."""
    return ModelClient(ClientOptions(attempts=1, timeout=60.0))
