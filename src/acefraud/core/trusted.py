"""Models of parts that were checked when they were made."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def trusted(model: type[M], /, **fields: Any) -> M:
    """A model of values that need no check. All of its fields must be given; they count as set.

    What `model_construct` does, without looking for aliases and defaults: at some thousands a second that tells.

    >>> class Point(BaseModel):
    ...     x: int = 0
    >>> trusted(Point, x=3)
    Point(x=3)
    """
    made = model.__new__(model)
    object.__setattr__(made, "__dict__", fields)
    object.__setattr__(made, "__pydantic_fields_set__", _all_fields(model))
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


@cache
def _all_fields(model: type[BaseModel]) -> set[str]:
    """One set for all models of a kind: they are frozen, so nobody writes to it."""
    return set(model.model_fields)
