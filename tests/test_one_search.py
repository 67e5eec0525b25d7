"""A test searches once if it says so, and what it shares with others does not depend on it."""

from __future__ import annotations

import pytest

from acefraud.roles.embedded.reflector import EmbeddedReflector, ReflectorOptions


def searches() -> int:
    """How often a learner would search that nobody gave options."""
    return EmbeddedReflector().options.induction.searches


@pytest.fixture(scope="session")
def of_the_session() -> int:
    return searches()


@pytest.fixture(scope="module")
def of_the_module() -> int:
    return searches()


@pytest.fixture(scope="class")
def of_the_class() -> int:
    return searches()


@pytest.fixture
def of_the_test() -> int:
    return searches()


@pytest.mark.one_search
def test_one_that_asks_for_one_search_is_the_first(of_the_session: int, of_the_module: int, of_the_test: int) -> None:
    assert (of_the_session, of_the_module, of_the_test, searches()) == (6, 6, 1, 1)
    assert EmbeddedReflector(ReflectorOptions()).options.induction.searches == 6


def test_another_searches_as_often_as_users_do(of_the_session: int, of_the_module: int, of_the_test: int) -> None:
    assert (of_the_session, of_the_module, of_the_test, searches()) == (6, 6, 6, 6)


@pytest.mark.one_search
class TestSomeThatAskTogether:
    def test_what_they_share_searches_once(self, of_the_class: int) -> None:
        assert (of_the_class, searches()) == (1, 1)
