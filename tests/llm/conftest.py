"""A model server on loopback, for tests that marked themselves `enable_socket`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.llm.loopback import LoopbackServer

NAME = "acefraud_tests_loopback"


def load() -> ModuleType:
    """The module by its path, once: test modules cannot be imported by name."""
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name("loopback.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module  # dataclasses look their module up while it is being loaded
        spec.loader.exec_module(module)
    return sys.modules[NAME]


class Loopback:
    """Starts servers: `loopback(delay=0.2)` or `loopback(script=Script(...))`. They are closed with the test."""

    def __init__(self, closing: ExitStack) -> None:
        self._closing = closing

    def __call__(self, *, script: Any = None, **options: Any) -> LoopbackServer:
        module = load()
        server = module.LoopbackServer(script=script or module.Script(**options))
        started: LoopbackServer = self._closing.enter_context(server)
        return started


@pytest.fixture(scope="session")
def loopback_module() -> ModuleType:
    """The module itself, for its Script and its parts."""
    return load()


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with ExitStack() as closing:
        yield Loopback(closing)
