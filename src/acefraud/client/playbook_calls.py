"""The requests about the playbook: bullets, rules, lists, changes and the threshold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from acefraud.client.answers import Page
from acefraud.client.calls import Call, getting, posting
from acefraud.client.inputs import segment, time_text, without_nothing
from acefraud.client.playbook_answers import (
    AdmittedRule,
    BulletAnswer,
    ChangeAnswer,
    FactAnswer,
    ListAnswer,
    ListValue,
    PreviewedRule,
    RollbackAnswer,
    RuleReading,
    ThresholdAnswer,
    WholeBullet,
)
from acefraud.core.arguments import check_choice
from acefraud.core.bullet import Source, Status
from acefraud.core.review_rule import ReviewRule
from acefraud.core.transaction import Verdict
from acefraud.errors import InputError

M = TypeVar("M", bound=BaseModel)
_ROLLBACK: Final = "/v1/playbook:rollback"
_THRESHOLD: Final = "/v1/threshold"


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """Whether a rule becomes a policy or a note, if its words do not say so."""

    always: Verdict | str | None = None
    priority: int | None = None
    final: bool = False
    as_note: bool = False

    def fields(self) -> dict[str, Any]:
        """Them for the wire.

        >>> RuleOptions(always="DECLINE", final=True).fields()
        {'always': 'decline', 'final': True}
        """
        always = None if self.always is None else str(self.always).lower()
        if always is not None:
            check_choice("always", always.upper(), Verdict)
        return without_nothing(always=always, priority=self.priority, final=self.final, as_note=self.as_note)


def _changing(method: str, path: str, kind: type[M], body: Any) -> Call[M]:
    """A change is not sent again once it may have arrived: it would be made, or refused, twice."""
    return Call(method=method, path=path, read=kind.model_validate, body=body, repeatable=False)


def playbook(
    *, source: Source | str | None, status: Status | str | None, node: str | None, retired: bool
) -> Call[Page[BulletAnswer]]:
    """The bullets that pass the filters."""
    if source is not None:
        check_choice("source", source, Source)
    return getting(
        "/v1/playbook",
        Page[BulletAnswer],
        source=source and str(source),
        status=_checked(status),
        node=node,
        retired=retired,
    )


def _checked(status: Status | str | None) -> str | None:
    if status is None:
        return None
    check_choice("status", status, Status)
    return str(status)


def bullet(bullet_id: str) -> Call[WholeBullet]:
    """One bullet with the latest of its history, and its evidence."""
    return getting(_bullet(bullet_id), WholeBullet)


def history(bullet_id: str) -> Call[Page[ChangeAnswer]]:
    """What happened to one bullet."""
    return getting(f"{_bullet(bullet_id)}/history", Page[ChangeAnswer])


def _bullet(bullet_id: str) -> str:
    return f"/v1/bullets/{segment('bullet_id', bullet_id)}"


def add_rule(text: str, *, reason: str, node: str | None, options: RuleOptions) -> Call[AdmittedRule]:
    """Add a rule."""
    body = {"content": text, **without_nothing(reason=reason, node=node), **options.fields()}
    return _changing("POST", "/v1/bullets", AdmittedRule, body)


def edit_rule(bullet_id: str, text: str, *, reason: str, options: RuleOptions) -> Call[AdmittedRule]:
    """Rewrite a rule."""
    return _changing("PATCH", _bullet(bullet_id), AdmittedRule, {"content": text, "reason": reason, **options.fields()})


def set_status(bullet_id: str, status: Status | str, reason: str) -> Call[AdmittedRule]:
    """Approve, pin, retire or revive a rule."""
    return _changing("PATCH", _bullet(bullet_id), AdmittedRule, {"status": _checked(status), "reason": reason})


def snooze(bullet_id: str, key: str, value: str, until: datetime, reason: str) -> Call[BulletAnswer]:
    """Let a policy not apply to somebody for a while."""
    body = {"key": key, "value": value, "until": time_text(until), "reason": reason}
    return _changing("POST", f"{_bullet(bullet_id)}:snooze", BulletAnswer, body)


def facts() -> Call[Page[FactAnswer]]:
    """The facts that rules can be about."""
    return getting("/v1/facts", Page[FactAnswer])


def read_rule(text: str) -> Call[RuleReading]:
    """How a rule is understood."""
    return posting("/v1/rules:read", RuleReading, {"content": text})


def preview_rule(
    text: str | None, *, bullet_id: str | None, status: Status | str | None, options: RuleOptions
) -> Call[PreviewedRule]:
    """What a rule, or a change of one, would do."""
    if text is None and bullet_id is None:
        raise InputError("expected the text of a rule, the id of one, or both")
    body = {**without_nothing(content=text, bullet_id=bullet_id, status=_checked(status)), **options.fields()}
    return posting("/v1/rules:preview", PreviewedRule, body)


def lists() -> Call[Page[ListAnswer]]:
    """The lists."""
    return getting("/v1/lists", Page[ListAnswer])


def list_values(name: str) -> Call[Page[ListValue]]:
    """The values of one list."""
    return getting(_list(name), Page[ListValue])


def _list(name: str) -> str:
    return f"/v1/lists/{segment('name', name)}"


def put_list(name: str, *, about: str, frauds_of: str | None, days: float | None, reason: str) -> Call[ListAnswer]:
    """Create a list, or describe it anew."""
    if days is not None and frauds_of is None:
        raise InputError("days: goes with frauds_of")
    feed = None if frauds_of is None else without_nothing(key=frauds_of, days=days)
    return _changing("PUT", _list(name), ListAnswer, {"reason": reason, **without_nothing(about=about, feed=feed)})


def change_list(
    name: str, add: Iterable[str], remove: Iterable[str], until: datetime | None, reason: str
) -> Call[ListAnswer]:
    """Put values on a list and take others off it."""
    for argument, values in (("add", add), ("remove", remove)):
        if isinstance(values, str):
            raise InputError(f"{argument}: expected many values, got one text")
    limited = without_nothing(until=time_text(until))
    body = {"add": [{"value": value, **limited} for value in add], "remove": list(remove), "reason": reason}
    return _changing("PATCH", _list(name), ListAnswer, body)


def changes() -> Call[Page[ChangeAnswer]]:
    """What changed in the playbook."""
    return getting("/v1/playbook/changes", Page[ChangeAnswer])


def rollback(revision: int, reason: str) -> Call[RollbackAnswer]:
    """Go back to an earlier revision."""
    return _changing("POST", _ROLLBACK, RollbackAnswer, {"revision": revision, "reason": reason})


def preview_rollback(revision: int) -> Call[RollbackAnswer]:
    """What going back would change."""
    return posting(_ROLLBACK, RollbackAnswer, {"revision": revision, "preview": True})


def threshold() -> Call[ThresholdAnswer]:
    """How probabilities become verdicts."""
    return getting(_THRESHOLD, ThresholdAnswer)


def set_threshold(
    threshold: float | None, review: ReviewRule | None, *, no_review: bool, reason: str
) -> Call[ThresholdAnswer]:
    """Set how probabilities become verdicts. What is not given stays as it is."""
    if no_review and review is not None:
        raise InputError("some cases are to go to a person, and none: choose one")
    rule = None if review is None else review.model_dump(mode="json", exclude_none=True)
    given = {"review": None} if no_review else without_nothing(review=rule)
    body = {**without_nothing(threshold=threshold), **given, "reason": reason}
    return _changing("PUT", _THRESHOLD, ThresholdAnswer, body)
