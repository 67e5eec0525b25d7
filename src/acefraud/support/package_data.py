"""The TOML files that ship inside the package: word lists and other tables that are data rather than code."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TypeVar

from pydantic import TypeAdapter

from acefraud.errors import ConfigurationError

T = TypeVar("T")


def read_package_toml(package: str, name: str, expected: type[T]) -> T:
    """The content of a TOML file of a package, checked against the expected type.

    Raises ConfigurationError that names the file and the entry that is wrong.

    >>> read_package_toml("acefraud.core", "fact_names.toml", dict[str, dict[str, object]])["channel"]
    {'category': 'channel'}
    """
    text = resources.files(package).joinpath(name).read_text("utf-8")
    try:
        return TypeAdapter(expected).validate_python(tomllib.loads(text))
    except ValueError as problem:  # not TOML, or not what was expected
        raise ConfigurationError(f"{package}: {name}: {problem}") from problem
