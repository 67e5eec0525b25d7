"""Which model plays which role, and how models are called."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

from acefraud.errors import ConfigurationError

EMBEDDED = "embedded"
ROLES = ("agent", "judge", "reflector", "embedding")
EMBEDDERS = ("wordllama", "hashing")
"""The embedders that need no network, by name."""
EMBEDDER_VARIABLE = "ACEFRAUD_EMBEDDER"
"""The variable that says which of them `embedded` means."""
DEFAULT = "default"
"""The origin of a value that nobody chose."""

COMBINED = "combined"
_CHOICES = {
    "style": ("reasoned", "direct"),
    "opinion": ("alone", COMBINED),
    "fallback": ("error", "review", "embedded"),
}
_RANGES = {
    "tier": (0.5, 1.0, "a certainty from 0.5 to 1, such as 0.95"),
    "timeout": (0.001, math.inf, "a number of seconds above 0"),
    "budget": (0.0, math.inf, "US dollars, 0 or more"),
    "concurrency": (1, math.inf, "a whole number from 1 on"),
    "attempts": (1, math.inf, "a whole number from 1 on"),
    "max_calls": (0, math.inf, "a whole number from 0 on"),
}
_NOT_SHOWN = ("base_url", "cache", "prices", "chosen_by")
_LONGEST = 180
_MODEL = re.compile(r"[a-z0-9][a-z0-9_.-]*:[^\s/]\S*")


def default_cache(environment: Mapping[str, str] | None = None) -> Path | None:
    """The default reply cache: acefraud/replies.db in the user's cache folder. None if there is no such folder.

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelSettings:
    """A model for each role, or `embedded`, which sends nothing; and how the models are called.

    >>> ModelSettings(agent="openai:gpt-4o-mini").on_models
    ('agent',)
    >>> ModelSettings(agent="gpt-4o-mini")
    Traceback (most recent call last):
    acefraud.errors.ConfigurationError: agent: expected embedded or provider:name, such as openai:gpt-4o-mini; got
    'gpt-4o-mini'
    """

    agent: str = EMBEDDED
    """Decides."""
    judge: str = EMBEDDED
    """Says whether a decision was right if the truth is unknown."""
    reflector: str = EMBEDDED
    """Proposes bullets."""
    embedding: str = EMBEDDED
    """Finds bullets by their words."""
    base_url: str = ""
    """The address of a self-hosted server, for roles whose provider is openai; "" for the provider's own."""
    style: str = "reasoned"
    """`reasoned` for verdicts with reasons and a stated probability; `direct` for one token and its odds."""
    opinion: str = "alone"
    """`alone`: the agent's model decides. `combined`: its opinion is added to what the embedded engine says, with a
    weight that labelled cases give it, and it is asked only where that can change the verdict."""
    tier: float | None = None
    """The certainty from which the embedded engine decides without the model; None always calls the model."""
    fallback: str = "error"
    """What happens if the agent's model fails: `error`, `review` by a person, or `embedded`."""
    concurrency: int = 8
    """Calls at the same time."""
    timeout: float = 60.0
    """Seconds to wait for a reply."""
    attempts: int = 4
    """How often a call is tried."""
    budget: float | None = None
    """The most US dollars to spend."""
    max_calls: int | None = None
    """The most calls to make."""
    cache: Path | None = field(default_factory=default_cache)
    """Where replies are kept, so that nothing is paid for twice; None keeps none."""
    sensitive: tuple[str, ...] = ()
    """Facts that no model is shown, in addition to those that the mapping names."""
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """US dollars for a million input and output tokens, by model."""
    chosen_by: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each value comes from: a flag, a variable, a file, or `default`."""

    def __post_init__(self) -> None:
        for role in ROLES:
            self._check_role(role, getattr(self, role))
        if self.base_url and not _is_address(self.base_url):
            raise self._wrong("base_url", "an address such as http://localhost:8000/v1")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise self._wrong(name, f"one of {', '.join(known)}")
        for name, (least, most, expected) in _RANGES.items():
            value = getattr(self, name)
            number = isinstance(value, int | float)
            if value is not None and not (number and least <= value <= most and value != math.inf):
                raise self._wrong(name, expected)
        if self.opinion == COMBINED and self.tier is not None:
            raise self._wrong("tier", f"no tier with the opinion {COMBINED}, which asks only where that can matter")
        for model, price in self.prices.items():
            if not all(0 <= dollars < math.inf for dollars in price):
                raise ConfigurationError(f"{self._place('prices')}: {model}: expected prices of 0 or more")

    def __repr__(self) -> str:
        """What differs from the defaults, without passwords that an address may have."""
        chosen = [(setting.name, getattr(self, setting.name), setting.default) for setting in fields(self)]
        changed = [f"{name}={value!r}" for name, value, usual in chosen if name not in _NOT_SHOWN and value != usual]
        server = [f"server={urlsplit(self.base_url).hostname!r}"] if self.base_url else []
        shown = ", ".join([*changed, *server])
        return f"ModelSettings({shown if len(shown) <= _LONGEST else f'{shown[:_LONGEST]}…'})"

    @property
    def on_models(self) -> tuple[str, ...]:
        """The roles that a language model plays, by name."""
        return tuple(role for role in ROLES if getattr(self, role) not in (EMBEDDED, *EMBEDDERS))

    @property
    def uses_models(self) -> bool:
        """Whether any role uses a model."""
        return bool(self.on_models)

    def server_of(self, role: str) -> str:
        """The address that a role's calls go to; "" for the provider's own, and for an embedded role.

        >>> local = ModelSettings(agent="openai:qwen2.5-7b", base_url="http://localhost:8000/v1")
        >>> local.server_of("agent"), local.server_of("judge")
        ('http://localhost:8000/v1', '')
        """
        provider = getattr(self, role).partition(":")[0]
        return self.base_url if provider in ("openai", "openai-chat", "openai-responses") else ""

    def _check_role(self, role: str, value: str) -> None:
        own = (EMBEDDED, *EMBEDDERS) if role == "embedding" else (EMBEDDED,)
        if self.chosen_by.get(role) == EMBEDDER_VARIABLE and value not in EMBEDDERS:
            raise self._wrong(role, f"{' or '.join(EMBEDDERS)}; ACEFRAUD_EMBEDDING_MODEL takes provider:name")
        if value not in own and not (isinstance(value, str) and _MODEL.fullmatch(value)):
            example = "openai:text-embedding-3-small" if role == "embedding" else "openai:gpt-4o-mini"
            raise self._wrong(role, f"{', '.join(own)} or provider:name, such as {example}")

    def _wrong(self, name: str, expected: str) -> ConfigurationError:
        return ConfigurationError(f"{self._place(name)}: expected {expected}; got {getattr(self, name)!r}")

    def _place(self, name: str) -> str:
        origin = self.chosen_by.get(name, DEFAULT)
        if origin == DEFAULT:
            return name
        return origin if origin.startswith(("--", "ACEFRAUD_")) else f"{origin}: {name}"


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # a broken IPv6 host
        return False
