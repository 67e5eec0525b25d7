"""What holds for all tests."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterator
from functools import cache, lru_cache
from pathlib import Path

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

# By default a whole history is searched six times. Ordinary tests in these folders are about what goes on around the
# search, so that one is enough for them; whoever passes options of their own gets what they say.
ONE_SEARCH_IN = (
    *("benchmarks", "cli", "client", "datasets", "desk", "estimator"),
    *("evaluation", "learning", "llm", "service", "storage"),
)
ONE_SEARCH = ReflectorOptions(induction=InductionOptions(searches=1))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test together with the fixtures that it is the first to need."""
    here = Path(__file__).parent
    around_the_search = any(item.path.is_relative_to(here / folder) for folder in ONE_SEARCH_IN)
    with pytest.MonkeyPatch.context() as patch:
        if around_the_search and item.get_closest_marker("long") is None:
            patch.setattr(reflector, "ReflectorOptions", lambda: ONE_SEARCH)
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
