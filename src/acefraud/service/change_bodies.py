"""What changed a playbook, and how to undo it, as clients send and get it."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from acefraud.core.events import RolledBack
from acefraud.service.bodies import Why
from acefraud.service.masking import RuleWords
from acefraud.service.preview_bodies import PreviewBody
from acefraud.service.strict_bodies import StrictBody, examples
from acefraud.storage.change_log import PlaybookChange


class ChangeBody(BaseModel):
    """One change of a playbook, with its author and reason."""

    model_config = examples(
        {
            "revision": 41,
            "at": "2026-03-01T02:14:00Z",
            "who": "ana",
            "reason": "the pattern has faded",
            "kind": "status_changed",
            "subject": "b-cd2445bf",
            "what": "now retired",
            "content": "",
        }
    )

    revision: int = Field(description="The revision after it, which `POST /v1/playbook:rollback` takes.")
    at: datetime
    who: str = Field(description="The name of the key, or the person at the command line.")
    reason: str
    kind: str
    subject: str = Field(description="The bullet, node or list that changed, or the playbook.")
    what: str = Field(description="What happened to it, in words.")
    content: str = Field(description="What a bullet says from then on, if that is what changed.")

    @classmethod
    def of(cls, change: PlaybookChange, words: RuleWords) -> ChangeBody:
        """A change as a caller may see it."""
        return cls(
            revision=change.seq,
            at=change.at,
            who=change.who,
            reason=words.shown(change.why, change.subject),
            kind=change.kind,
            subject=change.subject,
            what=words.shown(change.what, change.subject),
            content=words.shown(change.content, change.subject),
        )


class RollbackBody(StrictBody):
    """Which revision to go back to."""

    model_config = examples({"revision": 41, "reason": "too many false alarms since Monday"})

    revision: int = Field(ge=0, le=2**53, description="As `GET /v1/playbook/changes` tells it.")
    reason: Why = Field(default="", description="Needed, except for a preview.")
    preview: bool = Field(default=False, description="Only tell what would change.")


class RolledBackBody(BaseModel):
    """What went back, or would."""

    revision: int
    retired: list[str] = Field(description="Bullets that were not there then.")
    edited: list[str] = Field(description="Bullets with their former words.")
    moved: list[str] = Field(description="Bullets with their former status.")
    weights: int = Field(description="How many bullets got their former weight.")
    also: list[str] = Field(description="What else went back, such as the calibration.")
    changes_nothing: bool
    preview: PreviewBody | None = Field(description="What that would do to the past, if only a preview was asked for.")

    @classmethod
    def of(cls, done: RolledBack, preview: PreviewBody | None = None) -> RolledBackBody:
        """A rollback that was done or planned."""
        same = done.model_dump(include={"retired", "edited", "moved", "also"})
        return cls(
            **same, revision=done.to, weights=len(done.weights), changes_nothing=done.changes_nothing, preview=preview
        )
