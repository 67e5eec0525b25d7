"""Which model plays which role, and how models are called."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from acefraud.errors import ConfigurationError

EMBEDDED = "embedded"
ROLES = ("agent", "judge", "reflector", "embedding")
EMBEDDERS = ("wordllama", "hashing")
"""Embedders that work with the network off, by the name they are chosen by."""
WHICH_EMBEDDER = "ACEFRAUD_EMBEDDER"
"""The variable that says which of them is meant by `embedded`."""
STYLES = ("reasoned", "direct")
FALLBACKS = ("error", "review", "embedded")
DEFAULT = "default"
"""Who says what nobody said."""

_MODEL = re.compile(r"[a-z0-9][a-z0-9_.-]*:[^\s/]\S*")


def default_cache(environment: Mapping[str, str] | None = None) -> Path | None:
    """Where replies are kept: acefraud/replies.db in the user's cache folder. None where there is no such folder.

    >>> default_cache({"XDG_CACHE_HOME": "/var/cache"}).as_posix()
    '/var/cache/acefraud/replies.db'
    """
    given = os.environ if environment is None else environment
    folder = Path(given.get("XDG_CACHE_HOME") or "")
    if not folder.is_absolute():
        try:
            folder = Path.home() / ".cache"
        except RuntimeError:  # a user without a home
            return None
    return folder / "acefraud" / "replies.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """A model for each role, `embedded` where nothing is ever sent; and how the models are called.

    >>> ModelSettings(agent="openai:gpt-4o-mini").on_models
    ('agent',)
    >>> ModelSettings(agent="gpt-4o-mini")
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: agent: expected embedded or provider:name, such as openai:gpt-4o-mini; got
    'gpt-4o-mini'
    """

    agent: str = EMBEDDED
    judge: str = EMBEDDED
    reflector: str = EMBEDDED
    embedding: str = EMBEDDED
    base_url: str = ""
    """A server of one's own, for the roles whose provider is openai; "" for the provider's usual one."""
    style: str = "reasoned"
    tier: float | None = None
    """The certainty of the embedded engine from which on no agent is asked; None asks it every time."""
    fallback: str = "error"
    concurrency: int = 8
    timeout: float = 60.0
    attempts: int = 4
    budget: float | None = None
    """US dollars that may be spent."""
    max_calls: int | None = None
    cache: Path | None = field(default_factory=default_cache)
    sensitive: tuple[str, ...] = ()
    """Facts that no model is shown, besides those the mapping names."""
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """US dollars for a million tokens in and out, by model."""
    said_by: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each value comes from: a flag, a variable, a file, or `default`."""

    def __post_init__(self) -> None:
        for role in ROLES:
            self._check_role(role, getattr(self, role))
        url = _split(self.base_url)
        if self.base_url and (url is None or url[0] not in ("http", "https") or not url[1]):
            raise self._wrong("base_url", "an address such as http://localhost:8000/v1")
        for name, known in (("style", STYLES), ("fallback", FALLBACKS)):
            if getattr(self, name) not in known:
                raise self._wrong(name, f"one of {', '.join(known)}")
        self._check_number("tier", 0.5, 1.0, "a certainty from 0.5 to 1, such as 0.95")
        self._check_number("timeout", 0.001, math.inf, "a number of seconds above 0")
        self._check_number("budget", 0.0, math.inf, "US dollars, 0 or more")
        self._check_number("concurrency", 1, math.inf, "a whole number from 1 on")
        self._check_number("attempts", 1, math.inf, "a whole number from 1 on")
        self._check_number("max_calls", 0, math.inf, "a whole number from 0 on")
        for model, (cost_in, cost_out) in self.prices.items():
            if not (0 <= cost_in < math.inf and 0 <= cost_out < math.inf):
                raise ConfigurationError(f"{self._place('prices')}: {model}: expected prices of 0 or more")

    @property
    def vectors(self) -> Path | None:
        """The folder beside the replies that commands keep vectors of texts in; None where nothing is to be kept.

        >>> ModelSettings(cache=Path("/var/cache/acefraud/replies.db")).vectors.as_posix()
        '/var/cache/acefraud/vectors'
        """
        return None if self.cache is None else self.cache.parent / "vectors"

    @property
    def on_models(self) -> tuple[str, ...]:
        """The roles that a language model plays."""
        return tuple(role for role in ROLES if getattr(self, role) not in (EMBEDDED, *EMBEDDERS))

    @property
    def uses_models(self) -> bool:
        """Whether anything is sent to a model at all."""
        return bool(self.on_models)

    def server_of(self, role: str) -> str:
        """The address that a role's calls go to; "" for the provider's usual one, and for an embedded role."""
        provider = getattr(self, role).partition(":")[0]
        return self.base_url if provider in ("openai", "openai-chat", "openai-responses") else ""

    def _check_role(self, role: str, value: str) -> None:
        own = (EMBEDDED, *EMBEDDERS) if role == "embedding" else (EMBEDDED,)
        if self.said_by.get(role) == WHICH_EMBEDDER and value not in EMBEDDERS:
            raise self._wrong(role, f"{' or '.join(EMBEDDERS)}; ACEFRAUD_EMBEDDING_MODEL takes provider:name")
        if value not in own and not _MODEL.fullmatch(value):
            example = "openai:text-embedding-3-small" if role == "embedding" else "openai:gpt-4o-mini"
            raise self._wrong(role, f"{', '.join(own)} or provider:name, such as {example}")

    def _check_number(self, name: str, least: float, most: float, expected: str) -> None:
        value = getattr(self, name)
        if value is not None and not (least <= value <= most and value != math.inf):
            raise self._wrong(name, expected)

    def _wrong(self, name: str, expected: str) -> ConfigurationError:
        return ConfigurationError(f"{self._place(name)}: expected {expected}; got {getattr(self, name)!r}")

    def _place(self, name: str) -> str:
        said = self.said_by.get(name, DEFAULT)
        if said == DEFAULT:
            return name
        return said if said.startswith(("--", "ACEFRAUD_")) else f"{said}: {name}"


def _split(address: str) -> tuple[str, str | None] | None:
    """Scheme and host of an address; None where it is none."""
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname
    except ValueError:  # a broken IPv6 host
        return None
