"""How bodies are declared: what they refuse, what errors may repeat, and the examples in their description."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class StrictBody(BaseModel, extra="forbid"):
    """A body that refuses fields it does not have."""


class PrivateBody(StrictBody, hide_input_in_errors=True):
    """A body whose values may be personal: errors do not repeat them."""


def examples(*bodies: dict[str, Any]) -> ConfigDict:
    """The configuration of a body whose description shows these."""
    return ConfigDict(json_schema_extra={"examples": list(bodies)})
