"""The API key for a decision service. Apart from `Settings`, which no key is part of: only a client asks for it."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "ACEFRAUD_API_KEY"


def service_key(environment: Mapping[str, str] | None = None) -> str | None:
    """The key in ACEFRAUD_API_KEY; None if it is not set or empty.

    >>> service_key({"ACEFRAUD_API_KEY": "ace_1_x"}), service_key({})
    ('ace_1_x', None)
    """
    return (os.environ if environment is None else environment).get(VARIABLE) or None
