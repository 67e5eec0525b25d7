"""What a playbook file survives."""

from __future__ import annotations

from enum import StrEnum

from acefraud.errors import ConfigurationError


class Durability(StrEnum):
    """What an acknowledged write to a playbook file survives."""

    POWER = "power"
    """A power cut: every commit waits for the disk."""
    PROCESS = "process"
    """A killed process. A power cut may take the last commits, but never damages the file."""

    @classmethod
    def named(cls, name: str, place: str = "durability") -> Durability:
        """The one with this name. Raises ConfigurationError, naming the place, if there is none.

        >>> Durability.named("process")
        <Durability.PROCESS: 'process'>
        """
        try:
            return cls(name)
        except ValueError:
            raise ConfigurationError(f"{place}: expected {' or '.join(cls)}; got {name!r}") from None
