"""The playbook that everybody writes to: every edit is an event, and the ledger comes first.

Every edit takes one path (`BulletPlaybook.change`): it is worked out on the newest revision, and written on the
condition that nobody changed meanwhile what it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import RLock
from typing import Any, Self, TypeVar

from acefraud.core.book import Book
from acefraud.core.bullet import DEFAULT_NODE, Bullet, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.contradiction import contradicted_in
from acefraud.core.encoding import EncodedConditions
from acefraud.core.events import Event, Happening
from acefraud.core.evidence import Evidence
from acefraud.core.ledger import KnownCase, Ledger, RowsChange, Unless
from acefraud.core.measured_text import with_measured_text
from acefraud.core.page import Page
from acefraud.core.playbook import LearningState, PlaybookState, Snapshot
from acefraud.core.transaction import Verdict
from acefraud.storage.changes import Change, NewBullet, addition, again_where_overtaken, edition, move, use
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.step import Owner, Step, owner

Clock = Callable[[], datetime]
CHECKPOINT_EVERY = 1_000
THE_ENGINE = "the engine"
"""Who is named for what nobody did by hand. No person can go by this name."""

T = TypeVar("T")


def system_clock() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Saved:
    """What the latest checkpoint holds."""

    seq: int
    pages: tuple[Page, ...]


class BulletPlaybook:
    """Bullets by node, with their counters. In memory by default; `acefraud.open_playbook` keeps it in a file.

    Threads and tasks may share one. A process opens its own on the file.

    >>> playbook = BulletPlaybook()
    >>> bullet_id = playbook.add_bullet("VPN and a new device: decline", "fraud_detection", source="offline")
    >>> playbook.update_stats(bullet_id, is_helpful=True)
    >>> bullet = playbook.get_bullet(bullet_id)
    >>> bullet.helpful_count, bullet.times_selected, str(bullet.condition)
    (1, 1, 'new_device is true and vpn is true')
    """

    def __init__(self, ledger: Ledger | None = None, *, clock: Clock = system_clock) -> None:
        self.ledger: Ledger = MemoryLedger() if ledger is None else ledger
        self._clock = clock
        self._editing = RLock()
        """Held while an edit is worked out and written: those of one playbook take turns."""
        self._lock = RLock()
        """Held while the fold moves, and never while anything is written but a checkpoint."""
        self._comparing = RLock()
        self._conditions = EncodedConditions()
        self._steps: dict[Owner, Step] = {}
        self._state = PlaybookState(self.ledger.checkpoint())
        self._saved = _Saved(self._state.seq, self._state.pages)
        self.refresh()

    # --- reading ---

    def snapshot(self) -> Snapshot:
        """The playbook at its present revision."""
        state = self._seen() if self._steps else self._state  # asked for at every turn
        if (latest := state.latest) is not None:
            return latest
        with self._lock:
            return state.snapshot()

    def snapshot_at(self, revision: int) -> Snapshot:
        """The playbook as it was at an earlier revision, from the ledger alone."""
        state = PlaybookState()
        for event in self.ledger.read(until=revision):
            state.apply(event)
        return state.snapshot()

    def get_bullet(self, bullet_id: str) -> Bullet | None:
        """The bullet of that id, retired or not."""
        with self._lock:
            return self._seen().get(bullet_id)

    def get_bullets_for_node(self, node: str, source: Source | str | None = None) -> list[Bullet]:
        """The bullets of a node that are not retired, of one source if asked."""
        snapshot = self.snapshot()
        frame = snapshot.calibration(node)
        return [with_measured_text(bullet, frame) for bullet in snapshot.for_node(node, source)]

    @contextmanager
    def conditions_of(self, book: Book) -> Iterator[EncodedConditions]:
        """The conditions of one of its books, row by row, to be compared at once; by one thread at a time."""
        with self._comparing:
            self._conditions.keep_up_with(book)
            yield self._conditions

    def contradicted(self, node: str, condition: Condition | None, argues: Verdict | None) -> tuple[str, ...]:
        """The bullets in use that argue for another verdict under a condition that overlaps with this one, by id."""
        if condition is None or argues is None:
            return ()
        book = self.snapshot().book
        with self.conditions_of(book) as encoded:
            return contradicted_in(book, encoded, node, condition, argues)

    def __contains__(self, bullet_id: str) -> bool:
        with self._lock:
            return bullet_id in self._seen()

    def __len__(self) -> int:
        return len(self._seen())

    @property
    def outcomes(self) -> int:
        """How many outcomes have been heard, revisions included."""
        return self._seen().outcomes

    def learning(self, node: str = DEFAULT_NODE) -> LearningState:
        """How far learning has come at a node."""
        return self._seen().learning(node)

    @property
    def seq(self) -> int:
        """The place of the last event that it has taken in."""
        return self._seen().seq

    def _seen(self) -> PlaybookState:
        """What whoever asks may see: the step that they have begun, or what is written."""
        step = self._own_step()
        return self._state if step is None else step.state

    def _own_step(self) -> Step | None:
        """The step of whoever asks. One that was begun outside an event loop holds for all tasks that run inside it."""
        if not self._steps:
            return None
        thread, task = owner()
        return self._steps.get((thread, task)) or self._steps.get((thread, None))

    # --- editing ---

    def add_bullet(
        self,
        content: str,
        node: str = DEFAULT_NODE,
        source: Source | str = Source.MANUAL,
        *,
        condition: Condition | None = None,
        argues: Verdict | None = None,
        evidence: Evidence | None = None,
        weight: float | None = None,
        problem_types: Sequence[str] = (),
        status: Status = Status.ACTIVE,
        who: str = THE_ENGINE,
        why: str = "",
    ) -> str:
        """Add a bullet and return its id. What is not given is read from its words, where it can be."""
        new = NewBullet(content, source, condition, argues, evidence, weight, problem_types, status, why)
        return self.change(lambda: self.addition(new, node, who=who), who=who, why=why)

    def addition(self, new: NewBullet, node: str, *, who: str = THE_ENGINE) -> Change[str]:
        """What adding a bullet would change as the playbook stands. Nothing is written."""
        return addition(self, new, node, who=who, at=self._clock())

    def edit_bullet(
        self,
        bullet_id: str,
        content: str,
        *,
        condition: Condition | None = None,
        argues: Verdict | None = None,
        evidence: Evidence | None = None,
        problem_types: Sequence[str] = (),
        who: str = THE_ENGINE,
        why: str = "",
    ) -> None:
        """Let a bullet say something else. Its fitted weight goes with the old words.

        What is not given is read from its words, where it can be.
        """
        new = NewBullet(
            content, condition=condition, argues=argues, evidence=evidence, problem_types=problem_types, why=why
        )
        self.change(lambda: edition(self, bullet_id, new), who=who, why=why)

    def set_status(self, bullet_id: str, status: Status, *, who: str = THE_ENGINE, why: str = "") -> None:
        """Approve, pin, retire or revive a bullet."""
        self.change(lambda: move(self, bullet_id, status, why), who=who, why=why)

    def update_stats(self, bullet_id: str, is_helpful: bool) -> None:
        """Count one use of a bullet: helpful or harmful, and selected."""
        self.change(lambda: use(self, bullet_id, is_helpful=is_helpful))

    def change(self, work_out: Callable[[], Change[T]], *, who: str = THE_ENGINE, why: str = "") -> T:
        """Write a change that is worked out on the newest revision, unless somebody changed what it rests on meanwhile.

        Then it is worked out again on what is there now; StoreConflict where others are faster every time. Inside a
        step it becomes part of the step.
        """
        if self._own_step() is not None:
            change = work_out()
            if change.happenings:
                self.record(change.happenings, who=who, why=why)
            return change.result
        return again_where_overtaken(lambda: self._changed(work_out, who, why))

    def _changed(self, work_out: Callable[[], Change[T]], who: str, why: str) -> T:
        with self._editing:
            self.refresh()
            newest = self._state.seq
            change = work_out()
            if change.happenings:
                self._append(change.happenings, who=who, why=why, unless=change.unless(newest))
            return change.result

    def record(
        self,
        happenings: Sequence[Happening],
        *,
        who: str = THE_ENGINE,
        why: str = "",
        unless: Unless | None = None,
        cases: Sequence[KnownCase] = (),
        rows: RowsChange | None = None,
    ) -> list[Event]:
        """Write happenings and take them in. StoreConflict, and nothing is written, where `unless` has come true.

        Inside a step they are written when it ends, and on its condition too.
        """
        step = self._own_step()
        if step is None:
            return self._append(happenings, who=who, why=why, unless=unless, cases=cases, rows=rows)
        if who not in (THE_ENGINE, step.who):
            raise ValueError(f"one step has one author: begun by {step.who}, now {who}")
        events = step.stage(happenings, at=self._clock(), why=why)
        step.stage_beside(cases, rows, unless)
        return events

    def _append(
        self,
        happenings: Sequence[Happening],
        *,
        who: str,
        why: str,
        unless: Unless | None = None,
        cases: Sequence[KnownCase] = (),
        rows: RowsChange | None = None,
    ) -> list[Event]:
        """Write, and take in what was written; what others wrote in between is read first."""
        events = self.ledger.append(
            happenings, at=self._clock(), who=who, why=why, unless=unless, cases=cases, rows=rows
        )
        with self._lock:
            if events and events[0].seq == self._state.seq + 1:
                for event in events:
                    self._state.apply(event)
                self._save_now_and_then()
            else:
                self.refresh()
        return events

    @contextmanager
    def one_step(self, *, who: str = THE_ENGINE, why: str = "", since: int | None = None) -> Iterator[None]:
        """What is recorded inside is written together when it ends, or not at all.

        ``since`` is the event that the step was worked out on, where that was before it began.

        Until it ends only this thread, or this task of an event loop, sees what is inside; all others read and write
        the playbook as it was. StoreConflict where somebody has changed the book meanwhile: then nothing of the step
        was written. Outcomes and decisions of others are in nobody's way. A step inside another is part of it.
        """
        outer = self._own_step()
        if outer is not None:
            with outer.part():
                yield
            return
        with self._lock:
            self.refresh()
            newest = self._state.seq
            unless = Unless.edited(newest if since is None else since)
            step = Step(who, self._state.branched(), newest, unless)
        begun_by = owner()
        self._steps[begun_by] = step
        try:
            yield
        finally:
            del self._steps[begun_by]
        if step.happenings or step.cases:
            self._append(step.happenings, who=who, why=why, unless=step.unless, cases=step.cases, rows=step.change_rows)

    def run_step(self, work: Callable[[], T], *, who: str = THE_ENGINE, why: str = "") -> T:
        """Do some work as one step, and again on what is there now where somebody changed the book meanwhile.

        StoreConflict where others are faster every time. Inside a step the work is done once, as part of it.
        """

        def attempt() -> T:
            with self.one_step(who=who, why=why):
                return work()

        return attempt() if self._own_step() is not None else again_where_overtaken(attempt)

    def refresh(self) -> None:
        """Take in what others have written since. An open step goes on from where it began."""
        with self._lock:
            last = self.ledger.last_seq()
            if last == self._state.seq:
                return
            for event in self.ledger.read(self._state.seq, last, decisions=False):
                self._state.apply(event)
            self._state.pass_over(last)
            self._save_now_and_then()

    def _save_now_and_then(self) -> None:
        if self._state.seq - self._saved.seq >= CHECKPOINT_EVERY:
            self._save()

    def _save(self) -> None:
        """Write the pages that changed since the last time; all of them where somebody else has saved meanwhile."""
        state = self._state
        changed = state.checkpoint(since=self._saved.pages)
        if not self.ledger.save_checkpoint(changed, on_top_of=self._saved.seq):
            self.ledger.save_checkpoint(state.checkpoint())
        self._saved = _Saved(state.seq, state.pages)

    def close(self) -> None:
        """Let go of the file."""
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def same_fold(playbook: BulletPlaybook) -> bool:
    """Whether replaying the whole ledger gives the playbook as it stands, counters and all."""
    replayed = PlaybookState()
    for event in playbook.ledger.read():
        replayed.apply(event)
    with playbook._lock:
        return replayed.checkpoint() == playbook._state.checkpoint()
