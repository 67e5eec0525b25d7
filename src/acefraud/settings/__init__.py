"""Everything acefraud takes from its surroundings: the environment, acefraud.toml and the flags of a command."""

from __future__ import annotations

from acefraud.settings.choosing import ModelFlags, resolve
from acefraud.settings.environment import DEFAULT_PLAYBOOK, Settings
from acefraud.settings.file import Given, read_file
from acefraud.settings.models import EMBEDDED, EMBEDDERS, ROLES, ModelSettings

__all__ = [
    "DEFAULT_PLAYBOOK",
    "EMBEDDED",
    "EMBEDDERS",
    "ROLES",
    "Given",
    "ModelFlags",
    "ModelSettings",
    "Settings",
    "read_file",
    "resolve",
]
