"""Everything acefraud takes from its surroundings: flags, environment variables and acefraud.toml.

`Settings.from_environment` and `service_key` read them; no other module does. May import errors only.
"""

from __future__ import annotations

from acefraud.settings.model_settings import COMBINED, EMBEDDED, EMBEDDERS, ROLES, ModelSettings
from acefraud.settings.precedence import DEFAULT_PLAYBOOK, Durability, Settings, service_key

__all__ = [
    "COMBINED",
    "DEFAULT_PLAYBOOK",
    "EMBEDDED",
    "EMBEDDERS",
    "ROLES",
    "Durability",
    "ModelSettings",
    "Settings",
    "service_key",
]
