"""Pydantic models built from values that were validated before."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def construct_unchecked(model: type[M], /, **fields: Any) -> M:
    """A model of these values, without validation. Give every field; all of them count as set.

    Like `model_construct`, but it does not look for aliases and defaults, which takes time at thousands a second.

    >>> class Point(BaseModel):
    ...     x: int = 0
    >>> construct_unchecked(Point, x=3)
    Point(x=3)
    """
    made = model.__new__(model)
    object.__setattr__(made, "__dict__", fields)
    object.__setattr__(made, "__pydantic_fields_set__", _field_names(model))
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


@cache
def _field_names(model: type[BaseModel]) -> set[str]:
    """One set shared by all instances: the models are frozen, so nothing writes to it."""
    return set(model.model_fields)
