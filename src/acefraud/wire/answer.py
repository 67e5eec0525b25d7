"""What all answers have in common, and the answer that says what went wrong."""

from __future__ import annotations

import re
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from acefraud.display.short_repr import ShortRepr

T = TypeVar("T")
_NONE: Final = re.compile(r"\bNone\b")


class Answer(
    ShortRepr,
    BaseModel,
    frozen=True,
    extra="allow",
    hide_input_in_errors=True,
    use_attribute_docstrings=True,
    json_schema_serialization_defaults_required=True,
):
    """Anything that the service answers.

    Fields that this version does not know are kept, and can be read like the others. A default stands in for a field
    that older services do not send; this one sends them all.

    >>> Page.model_validate({"items": ["a"], "total": 7}).total
    7
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The fields as the service sends them: without what helps to read other versions, and with null for None."""
        answer = handler(schema)
        described = handler.resolve_ref_schema(answer)
        described.pop("additionalProperties", None)
        for field in described.get("properties", {}).values():
            field.pop("default", None)
            if "description" in field:
                field["description"] = _NONE.sub("null", field["description"])
        return answer


class Page(Answer, Generic[T], use_attribute_docstrings=False):  # every Page[...] would read its source again
    """Part of a list, and where the next part begins."""

    items: tuple[T, ...]
    next: str | None = Field(
        default=None, description="Pass it as `cursor` for the next part; None if this is the last."
    )


def examples(*bodies: dict[str, Any]) -> ConfigDict:
    """The configuration of a model whose description shows these."""
    return ConfigDict(json_schema_extra={"examples": list(bodies)})


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    field: str = Field(examples=["facts.amount"])
    message: str = Field(examples=["expected a number, a flag or text"])


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = examples(
        {
            "type": "urn:acefraud:problem:conflict",
            "title": "Conflict",
            "status": 409,
            "detail": "transaction 't1' was decided with other content",
            "instance": "urn:acefraud:request:4f0c",
            "errors": [],
        }
    )

    type: str = Field(description="A URI that names the kind of problem.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="Names the request, as its log lines do.")
    errors: list[Fault] = Field(default_factory=list)
    bullet_id: str | None = Field(default=None, description="The bullet that says already what a new rule says.")
