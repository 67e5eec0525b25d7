"""The playbook that everybody writes to: every edit is an event, and the ledger comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Claim, Source, Status, bullet_id
from acefraud.core.condition import Condition
from acefraud.core.contradiction import contradicted_in
from acefraud.core.encoding import EncodedConditions
from acefraud.core.events import BulletAdded, BulletCredited, BulletEdited, Credit, Event, Happening, StatusChanged
from acefraud.core.evidence import Evidence
from acefraud.core.ledger import KnownCase, Ledger, RowsChange, RowStore, Unless
from acefraud.core.page import Page
from acefraud.core.playbook import LearningState, PlaybookState, Snapshot
from acefraud.core.reading import Reading, read_bullet
from acefraud.core.transaction import Verdict
from acefraud.errors import InputError
from acefraud.storage.memory import MemoryLedger

Clock = Callable[[], datetime]
CHECKPOINT_EVERY = 1_000
THE_ENGINE = "the engine"
"""Who is named for what nobody did by hand. No person can go by this name."""


def system_clock() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


@dataclass
class _Staged:
    """What one step will write when it ends."""

    who: str
    happenings: list[Happening] = field(default_factory=list)
    cases: list[KnownCase] = field(default_factory=list)
    changes: list[RowsChange] = field(default_factory=list)

    def change_rows(self, rows: RowStore) -> None:
        """All changes to rows, in turn."""
        for change in self.changes:
            change(rows)


@dataclass(frozen=True, slots=True)
class _Saved:
    """What the latest checkpoint holds."""

    seq: int
    pages: tuple[Page, ...]


class BulletPlaybook:
    """Bullets by node, with their counters. In memory by default; `acefraud.open_playbook` keeps it in a file.

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
        self._staged: _Staged | None = None
        self._state = PlaybookState(self.ledger.checkpoint())
        self._saved = _Saved(self._state.seq, self._state.pages)
        self._conditions = EncodedConditions()
        self.refresh()

    # --- reading ---

    def snapshot(self) -> Snapshot:
        """The playbook at its present revision."""
        return self._state.snapshot()

    def snapshot_at(self, revision: int) -> Snapshot:
        """The playbook as it was at an earlier revision, from the ledger alone."""
        state = PlaybookState()
        for event in self.ledger.read(until=revision):
            state.apply(event)
        return state.snapshot()

    def get_bullet(self, bullet_id: str) -> Bullet | None:
        """The bullet of that id, retired or not."""
        return self._state.get(bullet_id)

    def get_bullets_for_node(self, node: str, source: Source | str | None = None) -> list[Bullet]:
        """The bullets of a node that are not retired, of one source if asked."""
        return self.snapshot().for_node(node, None if source is None else Source(source))

    def conditions(self) -> EncodedConditions:
        """The conditions of its bullets as they stand, row by row as in the book, to be compared at once."""
        self._conditions.keep_up_with(self.snapshot().book)
        return self._conditions

    def __len__(self) -> int:
        return len(self._state)

    @property
    def outcomes(self) -> int:
        """How many outcomes have been heard, revisions included."""
        return self._state.outcomes

    def learning(self, node: str = DEFAULT_NODE) -> LearningState:
        """How far learning has come at a node."""
        return self._state.learning(node)

    @property
    def seq(self) -> int:
        """The place of the last event that it has taken in."""
        return self._state.seq

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
        reading = _read(content, condition, argues, evidence)
        bullet = Bullet(
            id=self._free_id(node, content),
            content=content,
            node=node,
            source=Source(source),
            status=status,
            status_by=who,
            argues=argues or reading.argues,
            condition=condition or reading.condition,
            evidence=evidence,
            claim=_claim_beside(reading.claim, content, evidence),
            weight=weight,
            contradicts=self._contradicted(node, condition or reading.condition, argues or reading.argues),
            problem_types=tuple(problem_types),
            added_at=self._clock(),
        )
        self.record([BulletAdded(bullet=bullet, reason=why)], who=who, why=why)
        return bullet.id

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
        node = self._must_have(bullet_id).node
        reading = _read(content, condition, argues, evidence)
        contradicted = self._contradicted(node, condition or reading.condition, argues or reading.argues)
        edit = BulletEdited(
            bullet_id=bullet_id,
            content=content,
            condition=condition or reading.condition,
            argues=argues or reading.argues,
            evidence=evidence,
            claim=_claim_beside(reading.claim, content, evidence),
            contradicts=tuple(other for other in contradicted if other != bullet_id),
            problem_types=tuple(problem_types),
            reason=why,
        )
        self.record([edit], who=who, why=why)

    def set_status(self, bullet_id: str, status: Status, *, who: str = THE_ENGINE, why: str = "") -> None:
        """Approve, pin, retire or revive a bullet."""
        if self._must_have(bullet_id).status is not status:
            self.record([StatusChanged(bullet_id=bullet_id, status=status, reason=why)], who=who, why=why)

    def update_stats(self, bullet_id: str, is_helpful: bool) -> None:
        """Count one use of a bullet: helpful or harmful, and selected."""
        self._must_have(bullet_id)
        credit = Credit(bullet_id=bullet_id, helpful=int(is_helpful), harmful=int(not is_helpful), selected=1)
        self.record([BulletCredited(credit=credit)])

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
        """Write happenings and take them in. StoreConflict, and nothing is written, where `unless` has come true."""
        if self._staged is not None:
            return self._stage(happenings, who, why, cases, rows)
        return self._append(happenings, who=who, why=why, unless=unless, cases=cases, rows=rows)

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

        StoreConflict where somebody else has changed the book meanwhile: then nothing of it was. Outcomes and decisions
        of others are in nobody's way. A step inside another is part of it.
        """
        if self._staged is not None:
            yield
            return
        self.refresh()
        before = self._state
        staged = _Staged(who)
        self._state, self._staged = before.branched(), staged
        try:
            yield
        finally:
            self._state, self._staged = before, None
        if staged.happenings or staged.cases:
            self._append(
                staged.happenings,
                who=who,
                why=why,
                unless=Unless.edited(before.seq if since is None else since),
                cases=staged.cases,
                rows=staged.change_rows,
            )

    def _stage(
        self, happenings: Sequence[Happening], who: str, why: str, cases: Sequence[KnownCase], rows: RowsChange | None
    ) -> list[Event]:
        assert self._staged is not None
        if who not in (THE_ENGINE, self._staged.who):
            raise ValueError(f"one step has one author: begun by {self._staged.who}, now {who}")
        first = self._state.seq + 1
        at = self._clock()
        by = self._staged.who
        events = [Event(seq=seq, at=at, who=by, why=why, what=what) for seq, what in enumerate(happenings, first)]
        for event in events:
            self._state.apply(event)
        self._staged.happenings.extend(happenings)
        self._staged.cases.extend(cases)
        self._staged.changes.extend([rows] if rows else [])
        return events

    def refresh(self) -> None:
        """Take in what others have written since."""
        last = self.ledger.last_seq()
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

    def _contradicted(self, node: str, condition: Condition | None, argues: Verdict | None) -> tuple[str, ...]:
        if condition is None or argues is None:
            return ()
        return contradicted_in(self.snapshot().book, self.conditions(), node, condition, argues)

    def _must_have(self, bullet_id: str) -> Bullet:
        bullet = self._state.get(bullet_id)
        if bullet is None:
            raise InputError(f"there is no bullet '{bullet_id}' in this playbook")
        return bullet

    def _free_id(self, node: str, content: str) -> str:
        attempt = 0
        while bullet_id(node, content, attempt) in self._state:
            attempt += 1
        return bullet_id(node, content, attempt)


def _read(content: str, condition: Condition | None, argues: Verdict | None, evidence: Evidence | None) -> Reading:
    """What the words of a bullet say, where anything is left to be read."""
    if condition is not None and argues is not None and evidence is not None and evidence.in_words() in content:
        return Reading(condition=condition, argues=argues, claim=None)
    return read_bullet(content)


def _claim_beside(claim: Claim | None, content: str, evidence: Evidence | None) -> Claim | None:
    """A figure in the words is a claim, unless it is the very figure that was measured."""
    return None if evidence is not None and evidence.in_words() in content else claim


def same_fold(playbook: BulletPlaybook) -> bool:
    """Whether replaying the whole ledger gives the playbook as it stands, counters and all."""
    replayed = PlaybookState()
    for event in playbook.ledger.read():
        replayed.apply(event)
    return replayed.checkpoint() == playbook._state.checkpoint()
