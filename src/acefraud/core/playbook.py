"""The playbook as a pure fold over what happened, and the snapshots that readers hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.events import (
    BulletAdded,
    BulletCredited,
    BulletEdited,
    Credit,
    DecisionMade,
    Event,
    OddsScaled,
    OutcomeHeard,
    Recalibrated,
    StatusChanged,
    Trained,
)
from acefraud.core.evidence import Record
from acefraud.core.scoring import Calibration, OddsScale


@dataclass(frozen=True)
class Snapshot:
    """The playbook at one revision. It never changes, so a reader is not disturbed by what is learnt meanwhile."""

    revision: int = 0
    bullets: Mapping[str, Bullet] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    mapping: str = ""
    """How the columns of the file it was trained on were read."""
    scales: Mapping[str, OddsScale] = field(default_factory=dict)

    def for_node(self, node: str, source: Source | str | None = None) -> list[Bullet]:
        """The bullets of a node that are not retired, of one source if asked, in the order they were added."""
        return [
            bullet
            for bullet in self.bullets.values()
            if bullet.node == node
            and bullet.status is not Status.RETIRED
            and (source is None or bullet.source == source)
        ]

    def calibration(self, node: str) -> Calibration | None:
        """The frame fitted for a node; None where nothing was learnt yet."""
        return self.calibrations.get(node)

    def scale(self, node: str, model: str) -> OddsScale | None:
        """What the odds of a model's verdict tokens mean at a node; None where that was never fitted."""
        return self.scales.get(_scale_key(node, model))


class ReadsPlaybook(Protocol):
    """Anything that can show the playbook as it is now."""

    def snapshot(self) -> Snapshot:
        """The playbook at its present revision."""
        ...


FOLD = 1
"""Raised whenever the fold changes: a checkpoint of another fold is not used."""
NO_RECORD = Record(support=0, frauds=0)


class Checkpoint(BaseModel):
    """The fold up to a place in the ledger, so that opening need not start from the beginning."""

    model_config = ConfigDict(frozen=True)

    fold: int = FOLD
    seq: int = 0
    settled: int = 0
    """The last event that was not a decision: decisions change nothing that an edit could be based on."""
    revision: int = 0
    outcomes: int = 0
    bullets: tuple[Bullet, ...] = ()
    calibrations: dict[str, Calibration] = {}
    mapping: str = ""
    scales: dict[str, OddsScale] = {}


class PlaybookState:
    """Folds events, one after another. Only this changes bullets."""

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        start = checkpoint if checkpoint is not None and checkpoint.fold == FOLD else Checkpoint()
        self.seq = start.seq
        self.settled = start.settled
        self.outcomes = start.outcomes
        self.revision = start.revision
        self._bullets = {bullet.id: bullet for bullet in start.bullets}
        self._calibrations = dict(start.calibrations)
        self._mapping = start.mapping
        self._scales = dict(start.scales)
        self._snapshot: Snapshot | None = None

    def apply(self, event: Event) -> None:
        """Take in the next event. Events already seen are passed over."""
        if event.seq <= self.seq:
            return
        self.seq = event.seq
        if isinstance(event.what, DecisionMade):
            return
        self.settled = event.seq
        if isinstance(event.what, OutcomeHeard):
            self.outcomes += 1
        if self._changes(event):
            self.revision = event.seq
            self._snapshot = None

    def _changes(self, event: Event) -> bool:
        """Apply what the event says of bullets and frames; whether it said anything."""
        match event.what:
            case BulletAdded(bullet=bullet):
                self._bullets[bullet.id] = bullet
            case BulletEdited() as edit:
                self._edit(edit)
            case StatusChanged(bullet_id=bullet_id, status=status):
                self._move(bullet_id, status, event.who)
            case BulletCredited(credit=credit):
                self._credit(credit)
            case OutcomeHeard(credits=credits):
                for credit in credits:
                    self._credit(credit)
                return bool(credits)
            case Recalibrated() as fitted:
                self._calibrations[fitted.node] = fitted.calibration
                for bullet_id, weight in fitted.weights.items():
                    self._replace(bullet_id, weight=weight)
            case OddsScaled(node=node, model=model, scale=scale):
                self._scales[_scale_key(node, model)] = scale
            case Trained(mapping=mapping):
                self._mapping = mapping
            case _:
                return False
        return True

    def snapshot(self) -> Snapshot:
        """The playbook as it stands; the same object until something changes."""
        if self._snapshot is None:
            self._snapshot = Snapshot(
                self.revision,
                MappingProxyType(dict(self._bullets)),
                MappingProxyType(dict(self._calibrations)),
                self._mapping,
                MappingProxyType(dict(self._scales)),
            )
        return self._snapshot

    def checkpoint(self) -> Checkpoint:
        """The whole fold as a value."""
        return Checkpoint(
            seq=self.seq,
            settled=self.settled,
            outcomes=self.outcomes,
            revision=self.revision,
            bullets=tuple(self._bullets.values()),
            calibrations=dict(self._calibrations),
            mapping=self._mapping,
            scales=dict(self._scales),
        )

    def __contains__(self, bullet_id: str) -> bool:
        return bullet_id in self._bullets

    def __iter__(self) -> Iterator[Bullet]:
        return iter(self._bullets.values())

    def get(self, bullet_id: str) -> Bullet | None:
        """The bullet of that id, retired or not."""
        return self._bullets.get(bullet_id)

    def _replace(self, bullet_id: str, **changes: object) -> None:
        bullet = self._bullets[bullet_id]
        self._bullets[bullet_id] = bullet.model_copy(update=changes)

    def _move(self, bullet_id: str, status: Status, who: str) -> None:
        """One that comes back starts with a clean record: the old one is why it went."""
        back = self._bullets[bullet_id].status is Status.RETIRED
        self._replace(bullet_id, status=status, status_by=who, **({"record": NO_RECORD} if back else {}))

    def _edit(self, edit: BulletEdited) -> None:
        same = self._bullets[edit.bullet_id].condition == edit.condition
        self._replace(
            edit.bullet_id,
            content=edit.content,
            condition=edit.condition,
            argues=edit.argues,
            evidence=edit.evidence,
            claim=edit.claim,
            contradicts=edit.contradicts,
            problem_types=edit.problem_types,
            weight=None,
            **({} if same else {"record": NO_RECORD}),
        )

    def _credit(self, credit: Credit) -> None:
        bullet = self._bullets.get(credit.bullet_id)
        if bullet is None:
            return
        support = max(0, bullet.record.support + credit.fired)  # a record begun anew has nothing to give back
        frauds = min(support, max(0, bullet.record.frauds + credit.fired_frauds))
        self._replace(
            bullet.id,
            helpful_count=bullet.helpful_count + credit.helpful,
            harmful_count=bullet.harmful_count + credit.harmful,
            times_selected=bullet.times_selected + credit.selected,
            record=Record(support=support, frauds=frauds),
        )


def _scale_key(node: str, model: str) -> str:
    return f"{node} {model}"
