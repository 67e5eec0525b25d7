"""What holds where a command is not told otherwise."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from acefraud.settings.choosing import ModelFlags, resolve
from acefraud.settings.file import read_file
from acefraud.settings.models import EMBEDDERS, WHICH_EMBEDDER, ModelSettings

DEFAULT_PLAYBOOK = Path("playbook.db")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment and acefraud.toml say."""

    playbook: Path = DEFAULT_PLAYBOOK
    who: str = "analyst"
    embedder: str | None = None
    """The embedded embedder that was named, by whatever way."""
    data: Path | None = None
    models: ModelSettings = field(default_factory=ModelSettings)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """ACEFRAUD_PLAYBOOK, ACEFRAUD_WHO, ACEFRAUD_DATA and what chooses models, where they are set.

        Variables are asked for by name, one by one; a key is not among them.

        >>> Settings.from_environment({"ACEFRAUD_PLAYBOOK": "team.db", "ACEFRAUD_WHO": "ana"}).playbook.name
        'team.db'
        """
        given = os.environ if environment is None else environment
        models = resolve(ModelFlags(), given, read_file(given))
        named = models.embedding if models.embedding in EMBEDDERS else given.get(WHICH_EMBEDDER)
        return cls(
            playbook=Path(given.get("ACEFRAUD_PLAYBOOK") or DEFAULT_PLAYBOOK),
            who=given.get("ACEFRAUD_WHO") or _user(),
            embedder=named or None,
            data=Path(given["ACEFRAUD_DATA"]) if given.get("ACEFRAUD_DATA") else None,
            models=models,
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user, as in some containers
        return "analyst"
