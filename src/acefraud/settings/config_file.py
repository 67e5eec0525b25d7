"""acefraud.toml: which models play which roles, how they are called, and what the playbook file survives."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from acefraud.errors import ConfigurationError

DEFAULT_FILE = "acefraud.toml"

_TEXT, _NUMBER, _WHOLE, _TEXTS = "a text", "a number", "a whole number", "a list of texts"
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "models": dict.fromkeys(("all", "agent", "judge", "reflector", "embedding", "base_url"), _TEXT),
    "llm": {
        "style": _TEXT,
        "tier": _NUMBER,
        "fallback": _TEXT,
        "concurrency": _WHOLE,
        "timeout": _NUMBER,
        "attempts": _WHOLE,
        "budget": _NUMBER,
        "max_calls": _WHOLE,
        "cache": _TEXT,
        "sensitive": _TEXTS,
    },
    "storage": {"durability": _TEXT},
}
"""The keys of each section, and the kind of value that each takes."""
_PRICE = {"input": _NUMBER, "output": _NUMBER}


class Choice(NamedTuple):
    """A value, and where it comes from: a flag, a variable or a file."""

    value: Any
    origin: str


Choices = dict[str, Choice]
"""The choices of one source, by the field of Settings or ModelSettings; `models` stands for all roles."""


def read_file(environment: Mapping[str, str]) -> Choices:
    """The choices in the file that ACEFRAUD_CONFIG names, or in acefraud.toml in the working folder, if it exists."""
    named = environment.get("ACEFRAUD_CONFIG")
    path = Path(named or DEFAULT_FILE)
    if not path.is_file():
        if named:
            raise ConfigurationError(f"ACEFRAUD_CONFIG: there is no file {named}")
        return {}
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as problem:
        raise ConfigurationError(f"{path}: {problem.strerror or problem}") from None


def parse(content: bytes, file: str = DEFAULT_FILE) -> Choices:
    """The choices in the content of a file.

    >>> parse(b'[models]\\nagent = "openai:gpt-4o-mini"')["agent"].value
    'openai:gpt-4o-mini'
    >>> parse(b'[models]\\nagnet = "openai:gpt-4o-mini"')
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: acefraud.toml: [models] has no key 'agnet'; known are all, agent, judge,
    reflector, embedding, base_url
    """
    try:
        tables = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: expected UTF-8") from None
    except (ValueError, RecursionError) as broken:
        raise ConfigurationError(f"{file}: not valid TOML: {broken}") from None
    known = [*SECTIONS, "prices"]
    for name, table in tables.items():
        if name not in known:
            raise ConfigurationError(f"{file}: there is no section [{name}]; known are {', '.join(known)}")
        if not isinstance(table, dict):
            raise ConfigurationError(f"{file}: expected a section [{name}], got {name} = {table!r}")
    values: dict[str, Any] = {}
    for section, keys in SECTIONS.items():
        values |= _checked(tables.get(section, {}), keys, f"{file}: [{section}]")
    if "all" in values:
        values["models"] = values.pop("all")
    if "sensitive" in values:
        values["sensitive"] = tuple(values["sensitive"])
    if "prices" in tables:
        values["prices"] = {model: _price(row, model, file) for model, row in tables["prices"].items()}
    return {name: Choice(value, file) for name, value in values.items()}


def _price(row: Any, model: str, file: str) -> tuple[float, float]:
    place = f'{file}: [prices."{model}"]'
    if not isinstance(row, dict) or ":" not in model:
        raise ConfigurationError(f'{place}: expected a section such as [prices."openai:gpt-4o"]')
    found = _checked(row, _PRICE, place)
    if len(found) < len(_PRICE):
        raise ConfigurationError(f"{place}: expected input and output, in US dollars for a million tokens")
    return float(found["input"]), float(found["output"])


def _checked(table: Mapping[str, Any], keys: Mapping[str, str], place: str) -> dict[str, Any]:
    for name, value in table.items():
        if name not in keys:
            raise ConfigurationError(f"{place} has no key '{name}'; known are {', '.join(keys)}")
        if not _is(keys[name], value):
            raise ConfigurationError(f"{place} {name}: expected {keys[name]}; got {value!r}")
    return dict(table)


def _is(kind: str, value: Any) -> bool:
    if kind == _TEXT:
        return isinstance(value, str)
    if kind == _TEXTS:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if isinstance(value, bool) or not isinstance(value, int if kind == _WHOLE else int | float):
        return False
    return abs(value) < 1e300  # rejects NaN, infinity and integers that no float can hold
