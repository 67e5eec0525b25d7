"""Every public method that has to be awaited has a twin that blocks: `decide` and `decide_sync`.

`AsyncClient` has a whole class for a twin, which `tests/client` compares it with.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_overloads

import pytest

import acefraud


def awaited() -> Iterator[tuple[type, str]]:
    """The classes that are exported, with the names of their public methods that have to be awaited."""
    exported = {one for name in acefraud.__all__ if inspect.isclass(one := getattr(acefraud, name))}
    for kind in sorted(exported - {acefraud.AsyncClient}, key=str):
        for name, method in inspect.getmembers(kind):
            if not name.startswith("_") and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)):
                yield kind, name


METHODS = list(awaited())


def test_there_are_methods_to_look_at() -> None:
    found = {f"{kind.__name__}.{name}" for kind, name in METHODS}
    assert found >= {"Learner.decide", "LLMJudge.judge", "Reflector.reflect", "Roles.close", "TrainingPipeline.run"}


def each_signature(method: Any) -> list[inspect.Signature]:
    """Parameters, defaults and annotations as they are written, of every overload."""
    return [inspect.signature(each) for each in [method, *get_overloads(method)]]


@pytest.mark.parametrize(("kind", "name"), METHODS, ids=lambda value: getattr(value, "__name__", value))
def test_the_twin_differs_only_in_that_it_is_not_awaited(kind: type, name: str) -> None:
    twin = getattr(kind, f"{name}_sync", None)
    assert twin is not None, f"{kind.__name__}.{name} has no twin"
    assert not inspect.iscoroutinefunction(twin)
    assert each_signature(twin) == each_signature(getattr(kind, name))
    assert inspect.getdoc(twin) == f"`{name}` for callers that do not await."


def test_no_twin_is_left_without_its_method() -> None:
    for name in acefraud.__all__:
        kind = getattr(acefraud, name)
        twins = [each for each in dir(kind) if each.endswith("_sync")] if inspect.isclass(kind) else []
        assert all((kind, twin.removesuffix("_sync")) in METHODS for twin in twins), name
