"""The commands and the trained playbook of `tests/cli`."""

from tests.cli.conftest import shell, trained, trained_once

__all__ = ["shell", "trained", "trained_once"]
