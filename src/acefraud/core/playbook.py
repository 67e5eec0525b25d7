"""The state of a playbook, computed from its events, and the immutable snapshots that readers get."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import add
from types import MappingProxyType

import numpy as np
from pydantic import BaseModel

from acefraud.core import events
from acefraud.core.bullet import Bullet, Record, Source, Status, in_order
from acefraud.core.bullet_table import BulletTable
from acefraud.core.calibration import Calibration, OddsScale
from acefraud.core.context_facts import ValueList
from acefraud.core.outcome import OutcomeFeed
from acefraud.core.review_rule import ReviewRule
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr
from acefraud.support.validation import construct_unchecked


@dataclass(frozen=True, repr=False)
class Snapshot(ShortRepr):
    """The playbook at one revision. It never changes, whatever is learnt later."""

    revision: int = 0
    bullets: Mapping[str, Bullet] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    mapping: str = ""
    """The schema mapping of the file it was trained on."""
    scales: Mapping[str, OddsScale] = field(default_factory=dict)
    lists: Mapping[str, ValueList] = field(default_factory=dict)
    reviews: Mapping[str, ReviewRule] = field(default_factory=dict)
    """Which cases go to a person, by node."""

    def __repr_args__(self) -> ReprArgs:
        yield "revision", self.revision
        yield None, Plain(f"{len(self.bullets):,} bullet{'' if len(self.bullets) == 1 else 's'}")

    @cached_property
    def table(self) -> BulletTable:
        """The bullets with their columns."""
        return self.bullets if isinstance(self.bullets, BulletTable) else BulletTable.of(self.bullets.values())

    def for_node(self, node: str, source: Source | str | None = None) -> list[Bullet]:
        """The bullets of a node that are weighed or read, from one source if given, in the order they were added.

        Retired bullets and policies are not among them.
        """
        table = self.table
        rows = table.in_use(table.node(node), None if source is None else Source(source))
        return [table.bullets[row] for row in np.flatnonzero(rows.mask)]

    def policies(self, node: str) -> list[Bullet]:
        """The policies of a node that are in force, in the order in which they are checked."""
        table = self.table
        return table.cached(
            ("policies", node),
            lambda: in_order(table.bullets[row] for row in np.flatnonzero(table.in_force(table.node(node)).mask)),
        )

    def calibration(self, node: str) -> Calibration | None:
        """The calibration of a node; None if nothing was learnt yet."""
        return self.calibrations.get(node)

    def scale(self, node: str, model: str) -> OddsScale | None:
        """The scale of a model's verdict odds at a node; None if it was never fitted."""
        return self.scales.get(_scale_key(node, model))


FOLD = 3
"""The version of the state. Raise it when events come to mean something else: older checkpoints are then ignored."""
NO_RECORD = Record(support=0, frauds=0)
_UNKNOWN_FEED = OutcomeFeed()


@dataclass(frozen=True, slots=True)
class CaseCount:
    """Labelled cases, and how many of them were fraud."""

    cases: int = 0
    frauds: int = 0


@dataclass(frozen=True, slots=True)
class LearningState:
    """What the learner has seen and reviewed at one node."""

    remembered: CaseCount = CaseCount()
    """The cases of the latest review or training."""
    unreviewed: CaseCount = CaseCount()
    """The cases heard since then."""
    unwatched: int = 0
    """Outcomes since the records of the bullets were last checked."""
    reviews: int = 0
    rereads: int = 0
    since_change: int | None = None
    """The cases since fraud began to look different, if it did. Older ones no longer teach."""

    def with_cases(self, cases: int, frauds: int) -> LearningState:
        """The state after more cases became known."""
        new = CaseCount(self.unreviewed.cases + cases, self.unreviewed.frauds + frauds)
        # Spelled out, since `replace` is slow and every outcome comes here.
        since = None if self.since_change is None else self.since_change + cases
        return LearningState(self.remembered, new, self.unwatched + cases, self.reviews, self.rereads, since)


class CheckpointHeader(BaseModel, frozen=True):
    """Everything in a checkpoint except the bullets."""

    fold: int = FOLD
    seq: int = 0
    revision: int = 0
    outcomes: int = 0
    bullets: int = 0
    calibrations: dict[str, Calibration] = {}
    mapping: str = ""
    scales: dict[str, OddsScale] = {}
    learning: dict[str, LearningState] = {}
    lists: dict[str, ValueList] = {}
    reviews: dict[str, ReviewRule] = {}
    taken_in: dict[str, int] = {}
    feeds: dict[str, OutcomeFeed] = {}

    def own(self, **changes: object) -> CheckpointHeader:
        """A copy with these changes. What happens to its mappings does not happen to others."""
        copies = {name: dict(value) for name, value in self if isinstance(value, dict)}
        return self.model_copy(update={**copies, **changes})


@dataclass(frozen=True)
class Checkpoint:
    """The state after an event, saved so that opening a file does not start at the first event."""

    header: CheckpointHeader = field(default_factory=CheckpointHeader)
    bullets: bytes = b""
    """The bullets as lines of JSON."""


class PlaybookState:
    """Applies events in order. Nothing else changes bullets."""

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        self._restore(CheckpointHeader(), BulletTable.of(()))
        if checkpoint is not None and checkpoint.header.fold == FOLD:
            lines = checkpoint.bullets.splitlines()
            with suppress(ValueError):  # damaged: the events are applied again
                table = BulletTable.of(Bullet.model_validate_json(line) for line in lines)
                if len(table) == len(lines) == checkpoint.header.bullets:
                    self._restore(checkpoint.header, table)

    def _restore(self, header: CheckpointHeader, table: BulletTable) -> None:
        self.seq = header.seq
        self.applied = 0
        """How many events other than decisions were applied since."""
        self.outcomes = header.outcomes
        self.revision = header.revision
        self._table = table
        self._changed: dict[str, Bullet] = {}
        """Bullets changed since the table was built."""
        self.mapping = header.mapping
        self._kept = header.own()
        """All else, by node or by name."""
        self._uncounted: dict[str, tuple[int, ...]] = {}
        """Credits not applied to bullets yet: many outcomes change the same few."""
        self.latest: Snapshot | None = None
        """The snapshot of the current revision, once somebody has asked for it."""
        self._said: Snapshot | None = None
        """The last snapshot, as long as only counters of bullets have changed since."""

    def branch(self) -> PlaybookState:
        """A copy that changes independently. The two share the bullets that neither changes."""
        branch = PlaybookState.__new__(PlaybookState)
        branch._restore(self.header, self.table)
        return branch

    def apply(self, event: events.Event) -> None:
        """Apply the next event. Events that were applied before are ignored."""
        if event.seq <= self.seq:
            return
        self.seq = event.seq
        if isinstance(event.payload, events.DecisionMade):
            return
        self.applied += 1
        if isinstance(event.payload, events.OutcomeHeard):
            self.outcomes += 1
        self._update_learning(event.payload)
        if self._update_bullets(event):
            self.revision = event.seq
            self.latest = None
            if not isinstance(event.payload, events.OutcomeHeard):
                self._said = None

    def skip_to(self, seq: int) -> None:
        """Move to a later event, where all events in between are decisions."""
        self.seq = max(self.seq, seq)

    def learning(self, node: str) -> LearningState:
        """What the learner has seen and reviewed at a node."""
        return self._kept.learning.get(node) or LearningState()

    def feed(self, node: str) -> OutcomeFeed:
        """How outcomes reach a node."""
        return self._kept.feeds.get(node, _UNKNOWN_FEED)

    def taken_in(self, node: str) -> int:
        """The number of the last event of a received outcome that was judged at a node; 0 if none was."""
        return self._kept.taken_in.get(node, 0)

    def _update_learning(self, payload: events.EventPayload) -> None:
        match payload:
            case events.OutcomesTakenIn(node=node, until=until):
                self._kept.taken_in[node] = until
                return
            case events.FeedSet(node=node) as said:
                self._kept.feeds[node] = said.applied_to(self.feed(node))
                return
            case events.OutcomeHeard(node=node, remembered=True, outcome=outcome):
                now = self.learning(node).with_cases(1, int(outcome.is_fraud))
            case events.SilenceMatured(node=node, cases=cases, frauds=frauds):
                now = self.learning(node).with_cases(cases, frauds)
            case events.Trained(node=node):
                reviewed = CaseCount(payload.remembered, payload.remembered_frauds)
                was = self.learning(node)
                now = LearningState(reviewed, reviews=was.reviews, rereads=was.rereads)
            case events.Reviewed(node=node, whole=True):
                was, reviewed = self.learning(node), CaseCount(payload.cases, payload.frauds)
                now = replace(was, remembered=reviewed, unreviewed=CaseCount(), unwatched=0, reviews=was.reviews + 1)
            case events.PatternsChanged(node=node, cases=cases, frauds=frauds):
                was, new = self.learning(node), CaseCount(cases, frauds)
                now = replace(was, remembered=CaseCount(), unreviewed=new, since_change=cases)
            case events.Reviewed(node=node):
                now = replace(self.learning(node), unwatched=0)
            case events.Reread(node=node):
                now = replace(self.learning(node), rereads=self.learning(node).rereads + 1)
            case _:
                return
        self._kept.learning[node] = now

    def _update_bullets(self, event: events.Event) -> bool:
        """Apply an event to bullets and lists. Returns whether it changed anything that a snapshot shows."""
        match event.payload:
            case events.BulletAdded(bullet=bullet):
                self._count()  # earlier credits are not its own
                self._changed[bullet.id] = bullet
            case events.BulletEdited() as edit:
                self._edit(edit)
            case events.StatusChanged(bullet_id=bullet_id, status=status):
                self._move(bullet_id, status, event.who)
            case events.BulletCredited(credit=credit):
                self._credit(credit)
            case events.OutcomeHeard(credits=credits):
                for credit in credits:
                    self._credit(credit)
                return bool(credits)
            case events.SilenceMatured(node=node) as matured:
                for credit in matured.credits:
                    self._credit(credit)
                reached = {"silent_until": matured.until, "silent_through": matured.through}
                self._kept.feeds[node] = self.feed(node).model_copy(update=reached)
                return bool(matured.credits)
            case events.PolicySnoozed(bullet_id=bullet_id, snooze=snooze):
                snoozes = self._known(bullet_id).snoozes
                others = [old for old in snoozes if (old.key, old.value) != (snooze.key, snooze.value)]
                self._replace(bullet_id, snoozes=(*others, snooze))
            case events.ListCreated() | events.ListChanged() as change:
                self._change_list(change)
            case _:
                return self._update_frame(event.payload)
        return True

    def _update_frame(self, payload: events.EventPayload) -> bool:
        """Apply an event to calibrations, scales and the mapping. Returns whether it changed any."""
        match payload:
            case events.Recalibrated() as fitted:
                self._kept.calibrations[fitted.node] = fitted.calibration
                for bullet_id, weight in fitted.weights.items():
                    self._replace(bullet_id, weight=weight)
            case events.LevelMoved(node=node, recent=recent, anchors=anchors) if node in self._kept.calibrations:
                anchor = {"anchor_shift": recent.shift if recent else 0.0} if anchors else {}
                changes = {"recent": recent, "held": None, **anchor}
                self._kept.calibrations[node] = self._kept.calibrations[node].model_copy(update=changes)
            case events.LevelHeld(node=node, held=held) if node in self._kept.calibrations:
                self._kept.calibrations[node] = self._kept.calibrations[node].model_copy(update={"held": held})
            case events.ThresholdSet() as change:
                self._set_threshold(change)
            case events.OddsScaled(node=node, model=model, scale=scale):
                self._kept.scales[_scale_key(node, model)] = scale
            case events.Trained(mapping=mapping):
                self.mapping = mapping
            case events.RolledBack() as back:
                self._kept = self._kept.own(
                    calibrations=dict(back.calibrations), reviews=dict(back.reviews), scales=dict(back.scales)
                )
                self.mapping = back.mapping
                for bullet_id, former in back.weights.items():
                    self._replace(bullet_id, weight=former)
            case _:
                return False
        return True

    def snapshot(self) -> Snapshot:
        """The playbook as it is now; the same object until something changes."""
        if self.latest is None:
            self.latest = Snapshot(
                self.revision,
                self.table,
                MappingProxyType(dict(self._kept.calibrations)),
                self.mapping,
                MappingProxyType(dict(self._kept.scales)),
                MappingProxyType(dict(self._kept.lists)),
                MappingProxyType(dict(self._kept.reviews)),
            )
            self._said = self.latest
        return self.latest

    def uncounted(self) -> Snapshot:
        """The playbook as it is now, except that the counters of bullets may be older."""
        return self._said or self.snapshot()

    @property
    def header(self) -> CheckpointHeader:
        """The state without the bullets."""
        counts = {"seq": self.seq, "outcomes": self.outcomes, "revision": self.revision, "bullets": len(self.table)}
        return self._kept.own(**counts, mapping=self.mapping)

    def checkpoint(self) -> Checkpoint:
        """The state as a value."""
        lines = [bullet.model_dump_json(exclude_defaults=True).encode() for bullet in self.table.bullets]
        return Checkpoint(self.header, b"\n".join(lines))

    @property
    def table(self) -> BulletTable:
        """The bullets as they are now."""
        self._count()
        if self._changed:
            self._table, self._changed = self._table.updated(self._changed.values()), {}
        return self._table

    def __contains__(self, bullet_id: str) -> bool:
        return bullet_id in self._changed or bullet_id in self._table

    def __len__(self) -> int:
        return len(self.table)

    def get(self, bullet_id: str) -> Bullet | None:
        """The bullet with that id, retired or not."""
        self._count()
        return self._counted(bullet_id)

    def _counted(self, bullet_id: str) -> Bullet | None:
        return self._changed.get(bullet_id) or self._table.get(bullet_id)

    def _known(self, bullet_id: str) -> Bullet:
        self._count()
        return self._changed.get(bullet_id) or self._table[bullet_id]

    def _replace(self, bullet_id: str, **changes: object) -> None:
        self._changed[bullet_id] = self._known(bullet_id).model_copy(update=changes)

    def _move(self, bullet_id: str, status: Status, who: str) -> None:
        """A revived bullet starts with a clean record: the old one is why it was retired."""
        back = self._known(bullet_id).status is Status.RETIRED
        self._replace(bullet_id, status=status, status_by=who, **({"record": NO_RECORD} if back else {}))

    def _set_threshold(self, change: events.ThresholdSet) -> None:
        calibration = self._kept.calibrations.get(change.node)
        if change.threshold is not None and calibration is not None:
            self._kept.calibrations[change.node] = calibration.model_copy(update={"threshold": change.threshold})
        self._kept.reviews.pop(change.node, None)
        if change.review is not None:
            self._kept.reviews[change.node] = change.review

    def _change_list(self, change: events.ListCreated | events.ListChanged) -> None:
        before = self._kept.lists.get(change.name, ValueList(name=change.name))
        if isinstance(change, events.ListCreated):
            self._kept.lists[change.name] = before.model_copy(update={"about": change.text, "feed": change.feed})
        else:
            added = {item.value: item for item in change.added}
            self._kept.lists[change.name] = before.changed(added, dict.fromkeys(change.removed))

    def _edit(self, edit: events.BulletEdited) -> None:
        same = self._known(edit.bullet_id).condition == edit.condition
        said = {name: value for name, value in edit if name in Bullet.model_fields}
        self._replace(edit.bullet_id, weight=None, **said, **({} if same else {"record": NO_RECORD}))

    def _credit(self, credit: events.Credit) -> None:
        """Add up credits for later, except those that might hit the bounds of a counter: these are applied in order."""
        counts = credit.counts
        bounded = min(counts) < 0 or credit.fired_frauds > credit.fired
        if bounded:
            self._count()
        kept = self._uncounted.get(credit.bullet_id)
        self._uncounted[credit.bullet_id] = counts if kept is None else tuple(map(add, kept, counts))
        if bounded:
            self._count()

    def _count(self) -> None:
        """Apply the credits that were added up."""
        uncounted, self._uncounted = self._uncounted, {}
        for bullet_id, (helpful, harmful, selected, fired, fired_frauds) in uncounted.items():
            bullet = self._counted(bullet_id)
            if bullet is None:
                continue
            support = max(0, bullet.record.support + fired)  # a record that started again cannot go below 0
            frauds = min(support, max(0, bullet.record.frauds + fired_frauds))
            changes = {
                "helpful_count": max(0, bullet.helpful_count + helpful),
                "harmful_count": max(0, bullet.harmful_count + harmful),
                "times_selected": max(0, bullet.times_selected + selected),
                "record": construct_unchecked(Record, support=support, frauds=frauds),
            }
            self._changed[bullet_id] = bullet.model_copy(update=changes)


def _scale_key(node: str, model: str) -> str:
    return f"{node} {model}"
