"""Edits of a playbook as values: the events to write, and which bullets they depend on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import count
from typing import Final, Generic, ParamSpec, TypeVar

from pydantic import ValidationError

from acefraud.core import events
from acefraud.core.bullet import MAX_CONTENT, Bullet, Claim, NewBullet, Policy, Snooze, Source, Status, bullet_id
from acefraud.core.bullet_table import contradicted_in
from acefraud.core.condition import Condition
from acefraud.core.context_facts import NAME, Feed, ListItem, ValueList
from acefraud.core.outcome import MOST_SILENCE_DAYS, FeedKind
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewRule
from acefraud.core.transaction import Verdict
from acefraud.display.short_repr import quoted
from acefraud.errors import InputError, StoreConflict
from acefraud.rules.bullet_text import read_bullet_with, read_claim
from acefraud.storage.playbook_reading import PlaybookReading
from acefraud.support.arguments import check_choice, check_text, check_type, nearest
from acefraud.support.validation import first_fault

ATTEMPTS: Final = 20
"""How often an edit is tried before StoreConflict is raised."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1
_SAID = ("content", "condition", "argues", "evidence", "claim", "policy", "contradicts", "problem_types")
"""What an edit changes of a bullet."""
_JITTER: Final = random.Random()
"""A generator of its own, so that retries leave the global one alone."""

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """Events to write, the bullets they depend on, and the result for the caller once they are written."""

    result: T
    payloads: tuple[events.EventPayload, ...] = ()
    depends_on: Collection[str] | None = None
    """Ids of bullets that nobody else may have added, edited or moved meanwhile; None means every bullet."""


def plan_addition(playbook: PlaybookReading, new: NewBullet, node: str, *, who: str) -> Change[str]:
    """Add a bullet under a free id. The result is the id."""
    check_text("node", node, "the name of a node")
    condition, argues, claim = _read(new, playbook)
    try:
        bullet = Bullet(
            id=next(one for attempt in count() if (one := bullet_id(node, new.content, attempt)) not in playbook),
            content=new.content,
            node=node,
            source=Source(new.source),
            status=new.status,
            status_by=who,
            argues=argues,
            condition=condition,
            evidence=new.evidence,
            claim=claim,
            weight=new.weight,
            policy=_policy(new, condition),
            contradicts=contradicted_in(playbook.snapshot().table, node, condition, argues),
            problem_types=tuple(new.problem_types),
            added_at=playbook.clock(),
        )
    except ValidationError as error:
        raise first_fault(error, Bullet) from None
    return Change(bullet.id, (events.BulletAdded(bullet=bullet, reason=new.why),), [bullet.id])


def plan_edit(playbook: PlaybookReading, bullet_id: str, new: NewBullet) -> Change[None]:
    """Rewrite a bullet."""
    node = bullet_in(playbook, bullet_id).node
    condition, argues, claim = _read(new, playbook)
    against = contradicted_in(playbook.snapshot().table, node, condition, argues)
    edit = events.BulletEdited(
        bullet_id=bullet_id,
        content=new.content,
        condition=condition,
        argues=argues,
        evidence=new.evidence,
        claim=claim,
        policy=_policy(new, condition),
        contradicts=tuple(other for other in against if other != bullet_id),
        problem_types=tuple(new.problem_types),
        reason=new.why,
    )
    return Change(None, (edit,), [bullet_id])


def plan_status_change(playbook: PlaybookReading, bullet_id: str, status: Status, why: str) -> Change[None]:
    """Change the status of a bullet; nothing if it has that status already."""
    moved = bullet_in(playbook, bullet_id).status is not status
    payloads = (events.StatusChanged(bullet_id=bullet_id, status=status, reason=why),) if moved else ()
    return Change(None, payloads, [bullet_id])


def plan_use(playbook: PlaybookReading, bullet_id: str, *, is_helpful: bool) -> Change[None]:
    """Count one use of a bullet. Counters only add up, so this depends on no bullet."""
    bullet_in(playbook, bullet_id)
    credit = events.Credit(bullet_id=bullet_id, helpful=int(is_helpful), harmful=int(not is_helpful), selected=1)
    return Change(None, (events.BulletCredited(credit=credit),), ())


def bullet_in(playbook: PlaybookReading, bullet_id: str) -> Bullet:
    """The bullet with that id. Raises InputError if there is none."""
    bullet = playbook.get_bullet(bullet_id)
    if bullet is None:
        like = nearest(bullet_id, (bullet.id for bullet in playbook))
        raise InputError(f"there is no bullet {quoted(bullet_id)} in this playbook{like}")
    return bullet


def retry_on_conflict(attempt: Callable[[], T], attempts: int = ATTEMPTS) -> T:
    """What an attempt returns. After a StoreConflict it is tried again, up to `attempts` times in all."""
    for tries in count(1):
        try:
            return attempt()
        except StoreConflict as conflict:
            if tries == attempts:
                given_up = f"given up after {attempts} attempts: {conflict}"
                raise StoreConflict(given_up, who=conflict.who, at=conflict.at) from conflict
        time.sleep(_JITTER.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tries)))
    raise AssertionError("the loop returns or raises")


def retried_on_conflict(work: Callable[P, T]) -> Callable[P, T]:
    """A function that is called again after a StoreConflict."""

    @wraps(work)
    def attempts(*args: P.args, **kwargs: P.kwargs) -> T:
        return retry_on_conflict(partial(work, *args, **kwargs))

    return attempts


def plan_snooze(playbook: PlaybookReading, bullet_id: str, snooze: Snooze, why: str) -> Change[None]:
    """Let a policy not apply to one entity until a date."""
    if bullet_in(playbook, bullet_id).policy is None:
        raise InputError(f"bullet {bullet_id} is no policy: only a policy can be snoozed")
    return Change(None, (events.PolicySnoozed(bullet_id=bullet_id, snooze=snooze, reason=why),), [bullet_id])


def plan_threshold(
    playbook: PlaybookReading, node: str, threshold: float | None, review: ReviewRule | None, *, no_review: bool = False
) -> Change[None]:
    """Set the threshold of a node and which cases go to a person. What is not given stays as it is."""
    snapshot = playbook.snapshot()
    calibration = snapshot.calibration(node)
    if threshold is None and review is None and not no_review:
        raise InputError("expected a threshold, or which cases go to a person; nothing was changed")
    if no_review and review is not None:
        raise InputError("some cases are to go to a person, and none: choose one")
    if review is None and not no_review:
        review = snapshot.reviews.get(node)
    if threshold is not None and not 0 < threshold < 1:
        raise InputError(f"expected a fraud probability between 0 and 1, got {threshold}", field="threshold")
    if threshold is not None and calibration is None:
        raise InputError("nothing was learnt yet: there is no threshold to set before the first training or review")
    current = threshold if threshold is not None else (calibration.threshold if calibration else 0.5)
    if review is not None and review.between is not None and not review.between[0] <= current <= review.between[1]:
        raise InputError(
            f"the band {review.between[0]:g} to {review.between[1]:g} must hold the threshold, which is {current:g}",
            field="review-between",
        )
    return Change(None, (events.ThresholdSet(node=node, threshold=threshold, review=review),), ())


def plan_feed(
    playbook: PlaybookReading,
    node: str,
    kind: FeedKind | str | None,
    *,
    silence_days: float | None,
    declines_pass: bool | None,
    follow_level: bool | None,
) -> Change[None]:
    """Say how outcomes reach a node. What is None stays as it is; silence ends where the kind leaves it no meaning."""
    if kind is not None:
        check_choice("kind", kind, FeedKind)
    if silence_days is not None and not 0 <= silence_days <= MOST_SILENCE_DAYS:
        wanted = f"expected up to {MOST_SILENCE_DAYS:,} days, or 0 if silence says nothing"
        raise InputError(f"{wanted}, got {silence_days:g}", field="silence_days")
    now = playbook.feed(node)
    feed = now.kind if kind is None else FeedKind(kind)
    means_something = feed in (FeedKind.FRAUD_ONLY, FeedKind.UNKNOWN)
    if silence_days and not means_something:
        raise InputError(f"silence counts only where frauds alone are reported, not if {feed=!s}", field="silence_days")
    kept = now.silence_days if means_something else None
    said = events.FeedSet(
        node=node,
        feed=feed,
        declared=now.declared if kind is None else feed is not FeedKind.UNKNOWN,
        silence_days=kept if silence_days is None else silence_days or None,
        declines_pass=now.declines_pass if declines_pass is None else declines_pass,
        follow_level=now.follow_level if follow_level is None else follow_level,
    )
    return Change(None, (said,), ())


def plan_level(playbook: PlaybookReading, node: str, *, accept: bool) -> Change[None]:
    """Let a held step of the level count, or put the level back to what was calibrated."""
    calibration = playbook.snapshot().calibration(node)
    if calibration is None or (calibration.held is None if accept else not (calibration.held or calibration.recent)):
        raise InputError("no step of the level is held" if accept else "the level is where it was calibrated")
    held = calibration.held
    recent = held.recent if accept and held else None
    declines = (held.declines, held.would_decline) if accept and held else None
    return Change(None, (events.LevelMoved(node=node, recent=recent, anchors=True, declines=declines),), ())


def plan_list(name: str, about: str, feed: Feed | None, why: str) -> Change[None]:
    """Create a list, or change what is said of it."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"expected a name of lower-case letters, digits and '_', such as watched_merchants, got '{name}'",
            field="name",
        )
    return Change(None, (events.ListCreated(name=name, text=about, feed=feed, reason=why),), ())


def plan_list_change(
    playbook: PlaybookReading, name: str, added: Sequence[ListItem], removed: Sequence[str], why: str
) -> Change[None]:
    """Put values on a list, or take them off."""
    there = list_in(playbook, name).items
    for value in removed:
        if value not in there:
            raise InputError(f"'{value}' is not on the list {name}; nothing was changed", field="value")
    if not added and not removed:
        return Change(None)
    return Change(None, (events.ListChanged(name=name, added=tuple(added), removed=tuple(removed), reason=why),), ())


def list_in(playbook: PlaybookReading, name: str) -> ValueList:
    """The list with that name. Raises InputError if there is none."""
    lists = playbook.snapshot().lists
    if name not in lists:
        there = f"; there are {', '.join(sorted(lists))}" if lists else ""
        raise InputError(f"there is no list '{name}' in this playbook{there}").helped_by("create a list")
    return lists[name]


def _policy(new: NewBullet, condition: Condition | None) -> Policy | None:
    if new.policy is not None and condition is None:
        raise InputError("a policy needs a condition, and none could be read from these words", field="content")
    return new.policy


def _read(new: NewBullet, playbook: PlaybookReading) -> tuple[Condition | None, Verdict | None, Claim | None]:
    """The condition, verdict and claim of a new bullet; its content is parsed only if something is missing.

    A figure in the content is a claim, unless it is the measured one.
    """
    if len(new.content) > MAX_CONTENT:
        raise InputError(f"content: expected at most {MAX_CONTENT:,} characters, got {len(new.content):,}")
    if new.condition is not None:
        new = replace(new, condition=_condition(new.condition))
    if new.policy is not None and new.argues is None and new.policy.verdict is not Verdict.REVIEW:
        new = replace(new, argues=new.policy.verdict)
    measured = new.evidence is not None and new.evidence.in_words() in new.content
    if new.condition is not None and new.argues is not None:
        return new.condition, new.argues, None if measured else read_claim(new.content)
    reading = read_bullet_with(new.content, playbook.vocabulary())
    return new.condition or reading.condition, new.argues or reading.argues, None if measured else reading.claim


def _condition(given: Condition | str) -> Condition:
    """A condition, which may come as its text form."""
    check_type("condition", given, (Condition, str), "a Condition, or its text form")
    try:
        return Condition.parse(given) if isinstance(given, str) else given
    except ValueError as error:
        raise InputError(f"condition: {error}") from None


def plan_rollback(playbook: PlaybookReading, revision: int, why: str = "") -> Change[events.RolledBack]:
    """The events that bring a playbook back, none if it is as it was; and what they change.

    What goes back: the words, condition, verdict, evidence, claim, policy and problem types of bullets, their status
    and weight; the calibration of each node with its threshold and recent level, the review rules, the scales of
    models' odds and the mapping. Bullets that were added since are retired.

    What stays: the counters and records of bullets, which outcomes make; the remembered cases; and what is operational:
    lists and snoozes. A bullet that has neither a weight nor evidence is weighed by its record, so outcomes heard since
    still count for it.
    """
    playbook.refresh()
    if not 0 <= revision <= playbook.seq:
        latest = playbook.snapshot().revision
        raise InputError(f"expected a revision from 0 to {latest}, the current one, got {revision}", field="revision")
    now, then = playbook.snapshot(), playbook.snapshot_at(revision)
    reason = f"rolled back to revision {revision}: {why}" if why else f"rolled back to revision {revision}"
    retired = [
        bullet.id
        for bullet in now.table.bullets
        if bullet.id not in then.bullets and bullet.status is not Status.RETIRED
    ]
    kept = [(now.bullets[before.id], before) for before in then.table.bullets]
    edited = {
        before.id: {name: getattr(before, name) for name in _SAID}
        for after, before in kept
        if any(getattr(after, name) != getattr(before, name) for name in _SAID)
    }
    moved = {before.id: before.status for after, before in kept if after.status is not before.status}
    payloads: list[events.EventPayload] = [  # an edit drops the weight
        events.BulletEdited(bullet_id=bullet_id, **said, reason=reason) for bullet_id, said in edited.items()
    ]
    payloads += [
        events.StatusChanged(bullet_id=bullet_id, status=status, reason=reason)
        for bullet_id, status in (*moved.items(), *((bullet_id, Status.RETIRED) for bullet_id in retired))
    ]
    halfway = playbook.snapshot_with(payloads)
    payloads += _kept_records(now, then, halfway)
    parts = {
        "calibration": "calibrations",
        "review rule": "reviews",
        "scale of odds": "scales",
        "mapping": "mapping",
    }
    done = events.RolledBack(
        to=revision,
        retired=tuple(retired),
        edited=tuple(edited),
        moved=tuple(moved),
        weights={
            before.id: before.weight
            for before in then.table.bullets
            if halfway.bullets[before.id].weight != before.weight
        },
        calibrations=dict(then.calibrations),
        reviews=dict(then.reviews),
        scales=dict(then.scales),
        mapping=then.mapping,
        also=tuple(part for part, name in parts.items() if getattr(now, name) != getattr(then, name)),
    )
    return Change(done, () if done.changes_nothing else (*payloads, done))


def _kept_records(now: Snapshot, then: Snapshot, halfway: Snapshot) -> Iterator[events.BulletCredited]:
    """What gives bullets the records back that edits and revivals have cleared.

    A bullet that tests something else than it did gets the record of its former condition.
    """
    for before in then.table.bullets:
        changed = now.bullets[before.id].condition != before.condition
        wanted = before.record if changed else now.bullets[before.id].record
        left = halfway.bullets[before.id].record
        if left != wanted:
            fired, frauds = wanted.support - left.support, wanted.frauds - left.frauds
            yield events.BulletCredited(credit=events.Credit(before.id, fired=fired, fired_frauds=frauds))
