"""The requests about the playbook: bullets, rules, lists, changes and the threshold."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel

from acefraud.client.calls import ServiceCall, getting, posting
from acefraud.client.inputs import segment, time_text, without_nothing
from acefraud.core.bullet import Source, Status
from acefraud.core.review_rule import ReviewRule, SaidReview
from acefraud.core.transaction import Verdict
from acefraud.errors import InputError
from acefraud.support.arguments import check_choice
from acefraud.wire.answer import Page
from acefraud.wire.playbook import (
    AdmittedRule,
    BulletAnswer,
    ChangeAnswer,
    FactAnswer,
    ListAnswer,
    ListValue,
    OutcomeFeedAnswer,
    PreviewedRule,
    RollbackAnswer,
    RuleReading,
    ThresholdAnswer,
    WholeBullet,
)

M = TypeVar("M", bound=BaseModel)
_ROLLBACK: Final = "/v1/playbook:rollback"
_THRESHOLD: Final = "/v1/threshold"
_FEED: Final = "/v1/feed"


def _kind_of_rule(
    always: Verdict | str | None = None, priority: int | None = None, *, final: bool = False, as_note: bool = False
) -> dict[str, Any]:
    """Whether a rule becomes a policy or a note, if its words do not say so, for the wire.

    >>> _kind_of_rule("DECLINE", final=True)
    {'always': 'decline', 'final': True}
    """
    if always is not None:
        check_choice("always", str(always).upper(), Verdict)
    return without_nothing(always=always and str(always).lower(), priority=priority, final=final, as_note=as_note)


def _changing(method: str, path: str, kind: type[M], body: Any) -> ServiceCall[M]:
    """A change is not sent again once it may have arrived: it would be made, or refused, twice."""
    return ServiceCall(method=method, path=path, read=kind.model_validate, body=body, repeatable=False)


def playbook(
    *,
    source: Source | str | None = None,
    status: Status | str | None = None,
    node: str | None = None,
    retired: bool = False,
) -> ServiceCall[Page[BulletAnswer]]:
    """The bullets of the playbook, fetched page by page. Retired ones only if you ask for them."""
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


def bullet(bullet_id: str) -> ServiceCall[WholeBullet]:
    """One bullet with its evidence, its counters and the latest of its history."""
    return getting(_bullet(bullet_id), WholeBullet)


def history(bullet_id: str) -> ServiceCall[Page[ChangeAnswer]]:
    """What happened to a bullet, the latest first, fetched page by page."""
    return getting(f"{_bullet(bullet_id)}/history", Page[ChangeAnswer])


def _bullet(bullet_id: str) -> str:
    return f"/v1/bullets/{segment('bullet_id', bullet_id)}"


def add_rule(
    text: str,
    *,
    reason: str = "",
    node: str | None = None,
    always: Verdict | str | None = None,
    priority: int | None = None,
    final: bool = False,
    as_note: bool = False,
) -> ServiceCall[AdmittedRule]:
    """Add a rule in plain English or in the formal syntax.

    With ``always`` it is a policy, which decides by itself; the highest ``priority`` decides, and nothing overrides
    one that is ``final``. Words that are not understood are refused, or kept as a note with ``as_note``. A rule
    that the playbook already says is a ServiceConflict.
    """
    kind = _kind_of_rule(always, priority, final=final, as_note=as_note)
    body = {"content": text, **without_nothing(reason=reason, node=node), **kind}
    return _changing("POST", "/v1/bullets", AdmittedRule, body)


def edit_rule(
    bullet_id: str,
    text: str,
    *,
    reason: str,
    always: Verdict | str | None = None,
    priority: int | None = None,
    final: bool = False,
    as_note: bool = False,
) -> ServiceCall[AdmittedRule]:
    """Rewrite a rule. Its counters stay, and a policy stays a policy."""
    kind = _kind_of_rule(always, priority, final=final, as_note=as_note)
    return _changing("PATCH", _bullet(bullet_id), AdmittedRule, {"content": text, "reason": reason, **kind})


def set_status(bullet_id: str, status: Status | str, *, reason: str) -> ServiceCall[AdmittedRule]:
    """Approve, pin, retire or revive a rule."""
    return _changing("PATCH", _bullet(bullet_id), AdmittedRule, {"status": _checked(status), "reason": reason})


def pin(bullet_id: str, *, reason: str) -> ServiceCall[AdmittedRule]:
    """Pin a rule: learning does not retire it."""
    return set_status(bullet_id, Status.PINNED, reason=reason)


def retire(bullet_id: str, *, reason: str) -> ServiceCall[AdmittedRule]:
    """Retire a rule: it is never selected again, unless somebody revives it."""
    return set_status(bullet_id, Status.RETIRED, reason=reason)


def snooze(bullet_id: str, *, key: str, value: str, until: datetime, reason: str) -> ServiceCall[BulletAnswer]:
    """Let a policy not apply to one customer, card or other entity until a time.

    ``key`` names the entity or the fact, such as ``card``.
    """
    body = {"key": key, "value": value, "until": time_text(until), "reason": reason}
    return _changing("POST", f"{_bullet(bullet_id)}:snooze", BulletAnswer, body)


def facts() -> ServiceCall[Page[FactAnswer]]:
    """The facts that rules can be about, with type, range, examples and coverage, fetched page by page."""
    return getting("/v1/facts", Page[FactAnswer])


def read_rule(text: str) -> ServiceCall[RuleReading]:
    """How a rule is understood. Stores nothing."""
    return posting("/v1/rules:read", RuleReading, {"content": text})


def preview_rule(
    text: str | None = None,
    *,
    bullet_id: str | None = None,
    status: Status | str | None = None,
    always: Verdict | str | None = None,
    priority: int | None = None,
    final: bool = False,
    as_note: bool = False,
) -> ServiceCall[PreviewedRule]:
    """What a rule would do to past decisions and labelled cases. Stores nothing.

    With ``bullet_id`` it is what other words, or another status, would do to that rule.
    """
    if text is None and bullet_id is None:
        raise InputError("expected the text of a rule, the id of one, or both")
    kind = _kind_of_rule(always, priority, final=final, as_note=as_note)
    body = {**without_nothing(content=text, bullet_id=bullet_id, status=_checked(status)), **kind}
    return posting("/v1/rules:preview", PreviewedRule, body)


def lists() -> ServiceCall[Page[ListAnswer]]:
    """The lists that rules can refer to, fetched page by page."""
    return getting("/v1/lists", Page[ListAnswer])


def list_values(name: str) -> ServiceCall[Page[ListValue]]:
    """The values of a list in the order in which they were added, fetched page by page."""
    return getting(_list(name), Page[ListValue])


def _list(name: str) -> str:
    return f"/v1/lists/{segment('name', name)}"


def put_list(
    name: str, *, about: str = "", frauds_of: str | None = None, days: float | None = None, reason: str
) -> ServiceCall[ListAnswer]:
    """Create a list, or change what it is for and what feeds it. Its values stay.

    With ``frauds_of`` outcomes feed it: the value of that fact or entity of every fraud, for so many ``days``.
    """
    if days is not None and frauds_of is None:
        raise InputError("days: goes with frauds_of")
    feed = None if frauds_of is None else without_nothing(key=frauds_of, days=days)
    return _changing("PUT", _list(name), ListAnswer, {"reason": reason, **without_nothing(about=about, feed=feed)})


def change_list(
    name: str, *, add: Iterable[str] = (), remove: Iterable[str] = (), until: datetime | None = None, reason: str
) -> ServiceCall[ListAnswer]:
    """Put values on a list, perhaps until a date, and take others off it, all or none."""
    for argument, values in (("add", add), ("remove", remove)):
        if isinstance(values, str):
            raise InputError(f"{argument}: expected many values, got one text")
    limited = without_nothing(until=time_text(until))
    body = {"add": [{"value": value, **limited} for value in add], "remove": list(remove), "reason": reason}
    return _changing("PATCH", _list(name), ListAnswer, body)


def changes() -> ServiceCall[Page[ChangeAnswer]]:
    """What changed in the playbook, the latest first, fetched page by page."""
    return getting("/v1/playbook/changes", Page[ChangeAnswer])


def rollback(revision: int, *, reason: str) -> ServiceCall[RollbackAnswer]:
    """Bring the playbook back to an earlier revision. Nothing is deleted, so this can be undone as well."""
    return _changing("POST", _ROLLBACK, RollbackAnswer, {"revision": revision, "reason": reason})


def preview_rollback(revision: int) -> ServiceCall[RollbackAnswer]:
    """What going back to an earlier revision would change. Stores nothing."""
    return posting(_ROLLBACK, RollbackAnswer, {"revision": revision, "preview": True})


def threshold() -> ServiceCall[ThresholdAnswer]:
    """From which probability of fraud on transactions are declined, and which go to a person."""
    return getting(_THRESHOLD, ThresholdAnswer)


def set_threshold(
    threshold: float | None = None, *, review: SaidReview | None = None, no_review: bool = False, reason: str
) -> ServiceCall[ThresholdAnswer]:
    """Set from which probability of fraud on transactions are declined, and which go to a person.

    ``review`` may be costs as text: "false_decline=15,missed_fraud=200,review=5,per_day=50". What is not
    given stays as it is. With ``no_review`` nothing goes to a person any more, except by policies.
    """
    if no_review and review is not None:
        raise InputError("some cases are to go to a person, and none: choose one")
    rule = None if review is None else ReviewRule.of(review).model_dump(mode="json", exclude_none=True)
    given = {"review": None} if no_review else without_nothing(review=rule)
    body = {**without_nothing(threshold=threshold), **given, "reason": reason}
    return _changing("PUT", _THRESHOLD, ThresholdAnswer, body)


def feed() -> ServiceCall[OutcomeFeedAnswer]:
    """Which decisions get an outcome, what silence means, and where the level of fraud is."""
    return getting(_FEED, OutcomeFeedAnswer)


def set_feed(
    kind: str | None = None,
    *,
    silence_days: float | None = None,
    declines_pass: bool | None = None,
    follow_level: bool | None = None,
    level: Literal["accept", "reset"] | None = None,
    reason: str,
) -> ServiceCall[OutcomeFeedAnswer]:
    """Say how outcomes arrive. What is not given stays as it is; ``silence_days=0`` lets silence say nothing.

    ``level="accept"`` agrees to a step of the level of fraud that is held, "reset" puts the level back to what was
    calibrated.
    """
    given = {"kind": kind, "silence_days": silence_days, "declines_pass": declines_pass, "follow_level": follow_level}
    said = {name: value for name, value in {**given, "level": level}.items() if value is not None}
    return _changing("PUT", _FEED, OutcomeFeedAnswer, {**said, "reason": reason})
