"""What holds for all tests."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache

import pytest
from hypothesis import HealthCheck, settings
from tests.blank_playbooks import migrated_once
from tests.postgres import drop_schemas

import acefraud.roles.reflector  # noqa: F401  # it must have the options before a test replaces them
from acefraud.datasets import dataset
from acefraud.datasets.world import generate
from acefraud.roles.embedded import reflector
from acefraud.roles.embedded.reflector import ReflectorOptions
from acefraud.rules.induction.boosting import InductionOptions

# The same examples in every run. `make test` tries a few, `make test-long` many. A property that is slow to check takes
# a quarter of them: `@settings(max_examples=settings().max_examples // 4)`.
settings.register_profile(
    "few", max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", settings.get_profile("few"), max_examples=100)
settings.load_profile("few")

ONE_SEARCH = ReflectorOptions(induction=InductionOptions(searches=1))
"""By default a whole history is searched six times."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("one_search") and item.get_closest_marker("long"):
            raise pytest.UsageError(f"{item.nodeid}: a long test searches as often as users do")


@contextmanager
def _searching_as_asked(node: pytest.Item | pytest.Collector) -> Iterator[None]:
    """Search once if a test or a module asks for it. Whoever passes options of their own gets what they say."""
    with pytest.MonkeyPatch.context() as patch:
        if node.get_closest_marker("one_search"):
            patch.setattr(reflector, "ReflectorOptions", lambda: ONE_SEARCH)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with _searching_as_asked(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, object, object]:
    """What a module shares does as the module asks, not as the test that is the first to need it."""
    with _searching_as_asked(request.node):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the replies and vectors that commands cache out of the user's own cache folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("xdg_cache")))
        yield


@pytest.fixture(autouse=True)
def _schemas_of_its_own() -> Iterator[None]:
    """Drop what a test has made in PostgreSQL."""
    yield
    drop_schemas()


@pytest.fixture(scope="session", autouse=True)
def _new_playbooks_migrated_once() -> Iterator[None]:
    with migrated_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once() -> Iterator[None]:
    """Read the certificate store once: every HTTP client reads it, though the server on loopback needs none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def _worlds_made_once() -> Iterator[None]:
    """Make each shipped world once: its cases cannot be changed, and the tests of the generator call it themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "generate", lru_cache(maxsize=None, typed=True)(generate))
        yield
