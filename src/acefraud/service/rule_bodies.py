"""Rules that somebody is writing, as clients send and get them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from acefraud.core.bullet import DEFAULT_NODE, Status
from acefraud.core.transaction import Verdict
from acefraud.learning.rule_admission import ASKS_FOR_REVIEW, reading_as_json
from acefraud.rules.bullet_text import Reading
from acefraud.service.bodies import Id
from acefraud.service.bullet_bodies import BulletBody, Content, PolicyFields
from acefraud.service.preview_bodies import PreviewBody


class ReadBody(BaseModel):
    """Words to read."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"content": "Decline gift cards over $300 unless the customer is a VIP"}]},
        extra="forbid",
        hide_input_in_errors=True,
    )

    content: Content


class ReadingBody(BaseModel):
    """How words are understood."""

    understood: bool
    condition: str | None = Field(description="In the formal syntax; null if a part is not understood.")
    english: str | None
    argues: Verdict | None
    action: Literal["note", "evidence", "always decline", "always approve", "always review"]
    not_understood: list[str]
    did_you_mean: list[str] = Field(description="The facts nearest to the words that are not understood.")
    readings: list[str] = Field(description="The conditions that the words may mean, if there are several.")
    problem: str = Field(description="Why no condition was read, in words; empty if one was.")
    remarks: list[str]

    @classmethod
    def of(cls, reading: Reading) -> ReadingBody:
        """A reading."""
        return cls(
            **reading_as_json(reading),
            understood=reading.condition is not None,
            problem=reading.rule.problem,
            remarks=[ASKS_FOR_REVIEW] if reading.rule.asks_for_review else [],
        )


class PreviewRequestBody(PolicyFields):
    """A change to preview: a new rule, or other words or another status for a bullet."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"content": "Amount above 5,000 and an emulator", "always": "decline"},
                {"bullet_id": "b-cd2445bf", "content": "VPN at night: decline"},
                {"bullet_id": "b-cd2445bf", "status": "retired"},
            ]
        }
    )

    content: Content | None = None
    bullet_id: Id | None = Field(default=None, description="The bullet to change; without one, the rule is new.")
    status: Status | None = Field(
        default=None, description="Without words and status: `retired` for a bullet in use, else `active`."
    )
    node: Id = Field(default=DEFAULT_NODE, description="Which agent uses a new rule.")


class PreviewedBody(BaseModel):
    """What a change would do. Nothing was written."""

    reading: ReadingBody | None = Field(description="How the words are understood; null if none were sent.")
    bullet: BulletBody | None = Field(description="As it would be; null if a part of the words is not understood.")
    preview: PreviewBody | None = Field(description="null if a part of the words is not understood.")
