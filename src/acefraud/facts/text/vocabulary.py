"""The vocabulary files: patterns and words as data, in ``vocabulary/``."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from acefraud.support.package_data import read_package_toml

T = TypeVar("T")

PatternText = Annotated[str, AfterValidator(lambda text: re.sub(r"^ +|\n *", "", text))]
"""A pattern in a vocabulary file. Line breaks are ignored, together with the indentation after them."""


def read_vocabulary(name: str, expected: type[T]) -> T:
    """The content of a vocabulary file."""
    return read_package_toml("acefraud.facts.text", f"vocabulary/{name}.toml", expected)


def fill(pattern: str, parts: dict[str, str]) -> str:
    """A pattern with the parts that it names. A part may name parts that come before it."""
    for name, part in reversed(parts.items()):
        pattern = pattern.replace(f"{{{name}}}", part)
    return pattern
