"""The playbook as a pure fold over what happened, and the snapshots that readers hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import add
from types import MappingProxyType
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from acefraud.core.book import Book, Draft
from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.events import (
    BulletAdded,
    BulletCredited,
    BulletEdited,
    Credit,
    DecisionMade,
    Event,
    Happening,
    OddsScaled,
    OutcomeHeard,
    Recalibrated,
    Reread,
    Reviewed,
    StatusChanged,
    Trained,
)
from acefraud.core.evidence import Record
from acefraud.core.page import KeptPage, Page, Rows
from acefraud.core.rules import places_in
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

    @cached_property
    def book(self) -> Book:
        """The bullets with their columns."""
        return self.bullets if isinstance(self.bullets, Book) else Book.of(self.bullets.values())

    def for_node(self, node: str, source: Source | str | None = None) -> list[Bullet]:
        """The bullets of a node that are not retired, of one source if asked, in the order they were added."""
        return [page.bullet(place) for page, rows in self.rows_of(node, source) for place in places_in(rows.bits)]

    def count(self, node: str) -> int:
        """How many bullets of a node are not retired."""
        return sum(rows.count for _, rows in self.rows_of(node))

    def rows_of(self, node: str, source: Source | str | None = None) -> Iterator[tuple[Page, Rows]]:
        """The same as rows of each page."""
        number = self.book.node(node)
        for page in self.book.pages:
            yield page, page.in_use(number, None if source is None else Source(source))

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


FOLD = 3
"""Raised whenever the fold changes: a checkpoint of another fold is not used."""
NO_RECORD = Record(support=0, frauds=0)


@dataclass(frozen=True, slots=True)
class CaseCount:
    """Labelled cases, and how many of them were fraud."""

    cases: int = 0
    frauds: int = 0

    def plus(self, cases: int, frauds: int) -> CaseCount:
        """The count with some more."""
        return CaseCount(self.cases + cases, self.frauds + frauds)


@dataclass(frozen=True, slots=True)
class LearningState:
    """How far learning has come at one node, as the ledger tells."""

    remembered: CaseCount = CaseCount()
    """What the latest review, or training, looked at."""
    unreviewed: CaseCount = CaseCount()
    """What was heard since."""
    unwatched: int = 0
    """Outcomes since the record of each bullet was last looked at."""
    reviews: int = 0
    rereads: int = 0


class Frame(BaseModel):
    """Where a fold stands, and all of it but the bullets."""

    model_config = ConfigDict(frozen=True)

    fold: int = FOLD
    seq: int = 0
    revision: int = 0
    outcomes: int = 0
    bullets: int = 0
    nodes: tuple[str, ...] = ()
    """The nodes in the order of the numbers they go by in the columns."""
    calibrations: dict[str, Calibration] = {}
    mapping: str = ""
    scales: dict[str, OddsScale] = {}
    learning: dict[str, LearningState] = {}


@dataclass(frozen=True)
class Checkpoint:
    """The fold up to a place in the ledger, so that opening need not start from the beginning."""

    frame: Frame = field(default_factory=Frame)
    pages: Mapping[int, KeptPage] = field(default_factory=dict)
    """The pages of bullets by number: all of them, or those that changed since another checkpoint."""

    @property
    def seq(self) -> int:
        """The last event that is in it."""
        return self.frame.seq


class PlaybookState:
    """Folds events, one after another. Only this changes bullets."""

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        self._stand(Frame(), Draft())
        if checkpoint is not None and checkpoint.frame.fold == FOLD:
            kept = [checkpoint.pages[number] for number in sorted(checkpoint.pages)]
            with suppress(ValueError):  # damaged: the events are folded again
                bullets = Draft.of_kept(kept, checkpoint.frame.nodes)
                if len(bullets) == checkpoint.frame.bullets:
                    self._stand(checkpoint.frame, bullets)

    def _stand(self, frame: Frame, bullets: Draft) -> None:
        self.seq = frame.seq
        self.outcomes = frame.outcomes
        self.revision = frame.revision
        self._bullets = bullets
        self._calibrations = dict(frame.calibrations)
        self._mapping = frame.mapping
        self._scales = dict(frame.scales)
        self._learning = dict(frame.learning)
        self._uncounted: dict[str, tuple[int, ...]] = {}
        """What was credited and is not written to bullets yet: many outcomes change the same few."""
        self.latest: Snapshot | None = None
        """The snapshot of its present revision, where somebody has asked for it."""

    def branched(self) -> PlaybookState:
        """A fold that goes on from here by itself; nothing of the book is copied."""
        self._count()
        branch = PlaybookState.__new__(PlaybookState)
        branch._stand(self.frame, self._bullets.branched())
        return branch

    def apply(self, event: Event) -> None:
        """Take in the next event. Events already seen are passed over."""
        if event.seq <= self.seq:
            return
        self.seq = event.seq
        if isinstance(event.what, DecisionMade):
            return
        if isinstance(event.what, OutcomeHeard):
            self.outcomes += 1
        self._follow(event.what)
        if self._changes(event):
            self.revision = event.seq
            self.latest = None

    def pass_over(self, seq: int) -> None:
        """Stand at a later event; those in between are known to be decisions."""
        self.seq = max(self.seq, seq)

    def learning(self, node: str) -> LearningState:
        """How far learning has come at a node."""
        return self._learning.get(node) or LearningState()

    def _follow(self, what: Happening) -> None:
        match what:
            case OutcomeHeard(node=node, remembered=True, outcome=outcome):
                before = self.learning(node)
                new = before.unreviewed.plus(1, outcome.is_fraud)
                # Spelled out, since `replace` is slow and this comes with every outcome.
                now = LearningState(before.remembered, new, before.unwatched + 1, before.reviews, before.rereads)
            case Trained(node=node):
                looked_at = CaseCount(what.remembered, what.remembered_frauds)
                now = replace(self.learning(node), remembered=looked_at, unreviewed=CaseCount(), unwatched=0)
            case Reviewed(node=node, whole=True):
                before, looked_at = self.learning(node), CaseCount(what.cases, what.frauds)
                now = LearningState(looked_at, reviews=before.reviews + 1, rereads=before.rereads)
            case Reviewed(node=node):
                now = replace(self.learning(node), unwatched=0)
            case Reread(node=node):
                now = replace(self.learning(node), rereads=self.learning(node).rereads + 1)
            case _:
                return
        self._learning[node] = now

    def _changes(self, event: Event) -> bool:
        """Apply what the event says of bullets and frames; whether it said anything."""
        match event.what:
            case BulletAdded(bullet=bullet):
                self._count()  # what was credited before is not its own
                self._bullets.put(bullet)
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
        if self.latest is None:
            self._count()
            self.latest = Snapshot(
                self.revision,
                self._bullets.book(),
                MappingProxyType(dict(self._calibrations)),
                self._mapping,
                MappingProxyType(dict(self._scales)),
            )
        return self.latest

    @property
    def frame(self) -> Frame:
        """Where it stands, without the bullets."""
        return Frame(
            seq=self.seq,
            outcomes=self.outcomes,
            revision=self.revision,
            bullets=len(self._bullets),
            nodes=self._bullets.nodes,
            calibrations=dict(self._calibrations),
            mapping=self._mapping,
            scales=dict(self._scales),
            learning=dict(self._learning),
        )

    def checkpoint(self, since: Sequence[Page] = ()) -> Checkpoint:
        """The fold as a value, without the pages that are still the same."""
        changed = {
            number: page.kept()
            for number, page in enumerate(self.pages)
            if number >= len(since) or page is not since[number]
        }
        return Checkpoint(self.frame, changed)

    @property
    def pages(self) -> tuple[Page, ...]:
        """The bullets as they stand."""
        self._count()
        return self._bullets.book().pages

    def __contains__(self, bullet_id: str) -> bool:
        return bullet_id in self._bullets

    def __len__(self) -> int:
        return len(self._bullets)

    def __iter__(self) -> Iterator[Bullet]:
        self._count()
        return iter(self._bullets)

    def get(self, bullet_id: str) -> Bullet | None:
        """The bullet of that id, retired or not."""
        self._count()
        return self._bullets.get(bullet_id)

    def _known(self, bullet_id: str) -> Bullet:
        self._count()
        bullet = self._bullets.get(bullet_id)
        if bullet is None:
            raise KeyError(bullet_id)
        return bullet

    def _replace(self, bullet_id: str, **changes: object) -> None:
        self._bullets.put(self._known(bullet_id).model_copy(update=changes))

    def _move(self, bullet_id: str, status: Status, who: str) -> None:
        """One that comes back starts with a clean record: the old one is why it went."""
        back = self._known(bullet_id).status is Status.RETIRED
        self._replace(bullet_id, status=status, status_by=who, **({"record": NO_RECORD} if back else {}))

    def _edit(self, edit: BulletEdited) -> None:
        same = self._known(edit.bullet_id).condition == edit.condition
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
        """Counters have bounds, so only credits that cannot meet one are added up with those before and after."""
        counts = credit.counts
        bounded = min(counts) < 0 or credit.fired_frauds > credit.fired
        if bounded:
            self._count()
        kept = self._uncounted.get(credit.bullet_id)
        self._uncounted[credit.bullet_id] = counts if kept is None else tuple(map(add, kept, counts))
        if bounded:
            self._count()

    def _count(self) -> None:
        """Write to bullets what was credited since the last time."""
        uncounted, self._uncounted = self._uncounted, {}
        for bullet_id, (helpful, harmful, selected, fired, fired_frauds) in uncounted.items():
            bullet = self._bullets.get(bullet_id)
            if bullet is None:
                continue
            support = max(0, bullet.record.support + fired)  # a record begun anew has nothing to give back
            frauds = min(support, max(0, bullet.record.frauds + fired_frauds))
            changes = {
                "helpful_count": max(0, bullet.helpful_count + helpful),
                "harmful_count": max(0, bullet.harmful_count + harmful),
                "times_selected": max(0, bullet.times_selected + selected),
                "record": Record(support=support, frauds=frauds),
            }
            self._bullets.put(bullet.model_copy(update=changes))


def _scale_key(node: str, model: str) -> str:
    return f"{node} {model}"
