"""Rules that somebody is writing, as clients send and get them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from acefraud.core.bullet import DEFAULT_NODE, Status
from acefraud.core.fact_catalog import FactKind, FactProfile
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


class KnownFactBody(BaseModel):
    """A fact that rules can be about. Personal and sensitive values are left out."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "amount",
                    "english": "amount",
                    "type": "number",
                    "low": 1.5,
                    "middle": 60,
                    "high": 9800,
                    "true_share": None,
                    "examples": [],
                    "values": None,
                    "coverage": 1,
                }
            ]
        }
    )

    name: str
    english: str
    type: FactKind
    low: float | None = Field(default=None, description="Of a number: the least value.")
    middle: float | None = Field(default=None, description="Of a number: half of the values are below it.")
    high: float | None = Field(default=None, description="Of a number: the greatest value.")
    true_share: float | None = Field(default=None, description="Of a flag: how often it is true.")
    examples: list[str] = Field(default_factory=list, description="Of a category: the most frequent values.")
    values: int | None = Field(default=None, description="Of a category: how many different values there are.")
    coverage: float = Field(description="The share of the cases that know it.")

    @classmethod
    def of(cls, fact: FactProfile, *, hide_values: bool) -> KnownFactBody:
        """A fact, without its values if they have to be hidden."""
        content = fact.as_json()
        if hide_values:
            content |= {"low": None, "middle": None, "high": None, "examples": []}
        return cls(**content)


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
