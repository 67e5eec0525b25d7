"""Everything acefraud takes from its surroundings, read in this one place."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PLAYBOOK = Path("playbook.db")


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds where a command is not told otherwise."""

    playbook: Path = DEFAULT_PLAYBOOK
    who: str = "analyst"
    embedder: str | None = None
    data: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """ACEFRAUD_PLAYBOOK, ACEFRAUD_WHO, ACEFRAUD_EMBEDDER and ACEFRAUD_DATA, where they are set.

        >>> Settings.from_environment({"ACEFRAUD_PLAYBOOK": "team.db", "ACEFRAUD_WHO": "ana"}).playbook.name
        'team.db'
        """
        given = os.environ if environment is None else environment
        return cls(
            playbook=Path(given.get("ACEFRAUD_PLAYBOOK") or DEFAULT_PLAYBOOK),
            who=given.get("ACEFRAUD_WHO") or _user(),
            embedder=given.get("ACEFRAUD_EMBEDDER") or None,
            data=Path(given["ACEFRAUD_DATA"]) if given.get("ACEFRAUD_DATA") else None,
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user, as in some containers
        return "analyst"
