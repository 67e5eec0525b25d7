"""Reading a playbook: its bullets as they are, as they were and as they would be, and the words for its facts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock, RLock
from typing import Any, Final, overload

import numpy as np
from rapidfuzz import fuzz, process

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Firings, Source, Status
from acefraud.core.calibration import with_measured_text
from acefraud.core.events import OUTCOME_KINDS, THE_ENGINE, Event, EventPayload, OutcomeHeard
from acefraud.core.fact_names import NAMED_FACTS, FactCatalog
from acefraud.core.ledger import Entry, Ledger, Precondition, RowStore
from acefraud.core.outcome import OutcomeFeed
from acefraud.core.playbook import Checkpoint, LearningState, PlaybookState, Snapshot
from acefraud.core.table import FactTable
from acefraud.display.frames import make_frame
from acefraud.display.html_tables import block, line, table
from acefraud.display.short_repr import given, quoted, shown_text
from acefraud.errors import InputError
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS, time_facts
from acefraud.rules.english import say
from acefraud.rules.reader import Vocabulary
from acefraud.support.arguments import check_choice, check_type, nearest
from acefraud.support.callers import Owner, current_owner
from acefraud.support.timestamps import UNKNOWN

Clock = Callable[[], datetime]
LATEST_OUTCOMES = 200
"""Outcomes that are kept at hand."""
CHECKPOINT_EVERY = 1_000
"""Events other than decisions, which change nothing that a checkpoint keeps."""
_MOST_KEPT: Final = 64
SAMPLE = 5_000
"""Remembered cases that are looked at, the latest."""
MANY_TIMES = 50
"""A name that another one outnumbers by so much..."""
MISWRITTEN = 85.0
"""...and that is so much like it, of 100, is a slip in a few cases, and no fact of its own."""


@dataclass(slots=True)
class UnitOfWork:
    """What will be written when it ends, and the playbook as it will be then."""

    who: str
    state: PlaybookState
    began_at: int
    """The last event that was written when it began."""
    entries: list[Entry] = field(default_factory=list)

    def record(self, entry: Entry) -> list[Event]:
        """Take in what is to be written. Returns the events it becomes if nobody else writes first."""
        events = replace(entry, who=self.who).events_after(self.state.seq)
        for event in events:
            self.state.apply(event)
        self.entries.append(entry)
        return events

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A part of this unit of work. An exception that ends it undoes what it recorded."""
        before, recorded = self.state, len(self.entries)
        self.state = before.branch()
        try:
            yield
        except BaseException:
            self.state = before
            del self.entries[recorded:]
            raise

    def whole(self, at: datetime, why: str, unchanged: Precondition) -> Entry:
        """All that was recorded, as one entry.

        Preconditions are checked from before the unit of work began: its own events are not in the ledger yet.
        """
        payloads = [payload for entry in self.entries for payload in entry.payloads]
        conditions = [condition for entry in self.entries for condition in entry.preconditions]
        earlier = [replace(condition, seq=min(condition.seq, self.began_at)) for condition in conditions]
        cases = [case for entry in self.entries for case in entry.cases]
        requests = [request for entry in self.entries for request in entry.requests]
        return Entry(payloads, at, self.who, why, [unchanged, *earlier], cases, self._update_rows, requests)

    def _update_rows(self, rows: RowStore) -> None:
        for entry in self.entries:
            if entry.rows is not None:
                entry.rows(rows)


class PlaybookReading:
    """What can be read of a playbook, and how it keeps up with its ledger."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self.ledger = ledger
        self.clock = clock
        self._refreshing = Lock()
        """Held while what others have written is read and applied."""
        self._saving = Lock()
        """Held while a checkpoint is saved."""
        self._lock = RLock()
        """Held while events are applied and read from memory, never while somebody waits for the ledger."""
        self._units: dict[Owner, UnitOfWork] = {}
        self._vocabulary: tuple[object, Vocabulary] | None = None
        self._state = PlaybookState(self.ledger.checkpoint())
        self._last = Snapshot()
        self._earlier = EarlierRevisions(self.ledger)
        self._heard, self._heard_before = deque[Event](maxlen=LATEST_OUTCOMES), True
        """The latest outcomes that were applied, and whether the ledger may have more of them."""
        self._saved_at = self._state.applied
        last = self.ledger.last_seq()
        self._apply(self.ledger.read(self._state.seq, last, decisions=False), last)
        self._save_if_due()

    def snapshot(self) -> Snapshot:
        """The playbook at its current revision. It never changes.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> before = playbook.snapshot()
        >>> _ = playbook.add_bullet("VPN: decline")
        >>> len(before.bullets), len(playbook.snapshot().bullets)
        (0, 1)
        """
        state = self._visible() if self._units else self._state  # every decision asks for it
        if (latest := state.latest) is not None:
            return latest
        with self._lock:
            made = state.snapshot()
            if state is self._state:
                self._last = made
            return made

    def uncounted(self) -> Snapshot:
        """The playbook at its current revision, except that the counters of its bullets may be older."""
        with self._lock:
            return self._visible().uncounted()

    @property
    def last_snapshot(self) -> Snapshot:
        """The latest snapshot that anybody has asked for: no older than the last decision. It never waits."""
        return self._last

    def checkpoint(self) -> Checkpoint:
        """The playbook as it is now as a value, from which another process can go on without its events."""
        with self._lock:
            return self._state.checkpoint()

    def snapshot_with(self, payloads: Sequence[EventPayload]) -> Snapshot:
        """The playbook as it would be after some events. Nothing is written."""
        with self._lock:
            branch = self._visible().branch()
        for payload in payloads:
            branch.apply(Event(branch.seq + 1, self.clock(), THE_ENGINE, payload))
        return branch.snapshot()

    def snapshot_at(self, revision: int) -> Snapshot:
        """The playbook as it was at an earlier revision, replayed from the ledger.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> bullet_id = playbook.add_bullet("VPN: decline")
        >>> then = playbook.snapshot().revision
        >>> playbook.edit_bullet(bullet_id, "VPN at night: decline")
        >>> playbook.snapshot_at(then).bullets[bullet_id].content
        'VPN: decline'
        """
        latest = self._state.latest
        if latest is not None and latest.revision == revision:
            return latest
        return self._earlier.at(revision)

    def get_bullet(self, bullet_id: str) -> Bullet | None:
        """The bullet with that id, retired or not; None if there is none.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> bullet_id = playbook.add_bullet("VPN: decline")
        >>> str(playbook.get_bullet(bullet_id).argues), playbook.get_bullet("b-unknown")
        ('DECLINE', None)
        """
        check_type("bullet_id", bullet_id, str, "the id of a bullet")
        with self._lock:
            return self._visible().get(bullet_id)

    def get_bullets_for_node(self, node: str, source: Source | str | None = None) -> list[Bullet]:
        """The bullets of a node that are not retired, from one source if given. Policies come last.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> _ = playbook.add_bullet("VPN: decline", source="offline")
        >>> _ = playbook.add_bullet("Strong authentication passed: approve", source="manual")
        >>> [bullet.content for bullet in playbook.get_bullets_for_node("fraud_detection", source="manual")]
        ['Strong authentication passed: approve']
        """
        check_type("node", node, str, "the name of a node")
        if source is not None:
            check_choice("source", source, Source)
        snapshot = self.snapshot()
        calibration = snapshot.calibration(node)
        policies = [policy for policy in snapshot.policies(node) if source in (None, policy.source)]
        return [with_measured_text(bullet, calibration) for bullet in (*snapshot.for_node(node, source), *policies)]

    def __contains__(self, bullet: object) -> bool:
        """Whether there is a bullet with that id, or that bullet as it is now."""
        with self._lock:
            if isinstance(bullet, Bullet):
                return self._visible().get(bullet.id) == bullet
            return isinstance(bullet, str) and bullet in self._visible()

    def __iter__(self) -> Iterator[Bullet]:
        """All bullets in the order they were added, retired ones included."""
        return iter(self.snapshot().table.bullets)

    @overload
    def __getitem__(self, index: str | int) -> Bullet: ...

    @overload
    def __getitem__(self, index: slice) -> list[Bullet]: ...

    def __getitem__(self, index: str | int | slice) -> Bullet | list[Bullet]:
        """The bullet with that id or at that place, or those of a slice. Raises InputError if there is no such id."""
        bullets = self.snapshot().table.bullets
        if isinstance(index, slice):
            return list(bullets[index])
        if isinstance(index, int):
            return bullets[index]
        if not isinstance(index, str):
            raise InputError(f"expected the id of a bullet, its place or a slice, got {given(index)}")
        bullet = self.get_bullet(index)
        if bullet is None:
            like = nearest(index, (bullet.id for bullet in bullets))
            raise InputError(f"there is no bullet {quoted(index)} among the {len(bullets):,} of this playbook{like}")
        return bullet

    def __repr__(self) -> str:
        count = len(self)
        place = getattr(self.ledger, "place", None)
        where = "in memory" if place is None else quoted(place, 100)
        return f"{type(self).__name__}({count:,} bullet{'' if count == 1 else 's'}, revision {self.revision}, {where})"

    def _repr_html_(self) -> str:
        """The bullets for a notebook: those in use first, and of these the strongest."""
        snapshot = self.snapshot()
        bullets = snapshot.table.bullets
        by_strength = sorted(bullets, key=lambda bullet: (bullet.status is Status.RETIRED, -abs(bullet.weight or 0.0)))
        headings = ["id", "content", "status", "weight", "evidence (95 % interval)", "since added"]
        retired = sum(bullet.status is Status.RETIRED for bullet in bullets)
        return block(
            f"Playbook of {len(bullets):,} bullets at revision {snapshot.revision}",
            line(f"{retired:,} of them are retired." if retired else ""),
            table(headings, map(_html_row, by_strength)),
        )

    def to_frame(self, backend: str = "polars", *, node: str | None = None, retired: bool = False) -> Any:
        """The bullets as a data frame of polars, pandas or pyarrow, those of one node if you name it.

        >>> from acefraud import BulletPlaybook
        >>> playbook = BulletPlaybook()
        >>> _ = playbook.add_bullet("Amount above $500: decline")
        >>> playbook.to_frame().select("english", "sql").row(0)
        ('amount above 500', '"amount" > 500')
        """
        bullets = [
            bullet
            for bullet in self.snapshot().table.bullets
            if (retired or bullet.status is not Status.RETIRED) and node in (None, bullet.node)
        ]
        return make_frame(_bullet_columns(bullets), backend)

    def __len__(self) -> int:
        with self._lock:
            return len(self._visible())

    @property
    def outcomes(self) -> int:
        """How many outcomes were heard, revisions included."""
        return self._visible().outcomes

    def learning(self, node: str = DEFAULT_NODE) -> LearningState:
        """What the learner has seen and reviewed at a node."""
        return self._visible().learning(node)

    def feed(self, node: str = DEFAULT_NODE) -> OutcomeFeed:
        """How outcomes reach a node: which decisions get one, and what silence means.

        >>> from acefraud import BulletPlaybook
        >>> BulletPlaybook().feed().words
        'it cannot be told yet which decisions get an outcome; silence says nothing'
        """
        return self._visible().feed(node)

    def taken_in(self, node: str = DEFAULT_NODE) -> int:
        """The number of the last event of a received outcome that was judged at a node; 0 if none was."""
        return self._visible().taken_in(node)

    def latest_outcomes(self) -> list[Event]:
        """The events of the latest outcomes, oldest first."""
        with self._lock:
            first = self._heard[0].seq if self._heard else self._state.seq + 1
        if self._heard_before:
            earlier = self.ledger.find_events(OUTCOME_KINDS, before=first, limit=LATEST_OUTCOMES, newest_first=True)
            with self._lock:
                self._heard.extendleft(earlier[: LATEST_OUTCOMES - len(self._heard)] if self._heard_before else ())
                self._heard_before = False
        with self._lock:
            return list(self._heard)

    @property
    def seq(self) -> int:
        """The number of the last event it has applied."""
        return self._visible().seq

    @property
    def revision(self) -> int:
        """The current revision. Unlike `snapshot` it never waits, not even for other threads."""
        return self._visible().revision

    @property
    def mapping(self) -> str:
        """The schema mapping of the file it was trained on. Never waits either."""
        return self._visible().mapping

    def _visible(self) -> PlaybookState:
        """What the caller sees: the unit of work it is in, or what is written."""
        unit = self._own_unit()
        return self._state if unit is None else unit.state

    def _own_unit(self) -> UnitOfWork | None:
        """The caller's unit of work. One begun outside an event loop covers all tasks that run inside it."""
        if not self._units:
            return None
        thread, task = current_owner()
        return self._units.get((thread, task)) or self._units.get((thread, None))

    def vocabulary(self) -> Vocabulary:
        """The words that rules for this playbook may use: those for the facts it has seen, and its lists."""
        seen = self.outcomes, self.learning(), tuple(self.snapshot().lists)
        if self._vocabulary is None or self._vocabulary[0] != seen:
            self._vocabulary = seen, _vocabulary_of(self.ledger, self.snapshot().lists)
        return self._vocabulary[1]

    def refresh(self) -> None:
        """Read what others have written. Open units of work still see the playbook as it was when they began."""
        with self._refreshing:
            last = self.ledger.last_seq()
            if last <= self._state.seq:
                return
            self._apply(list(self.ledger.read(self._state.seq, last, decisions=False)), last)
        self._save_if_due()

    def _apply(self, events: Iterable[Event], last: int) -> None:
        """Apply all events up to one. Those among them that are not given are decisions, or were applied before."""
        with self._lock:
            for event in events:
                if event.seq > self._state.seq and isinstance(event.payload, OutcomeHeard):
                    self._heard.append(event)
                self._state.apply(event)
            self._state.skip_to(last)

    def _save_if_due(self) -> None:
        """Save a checkpoint after so many events, unless another thread is at it."""
        if self._state.applied - self._saved_at < CHECKPOINT_EVERY or not self._saving.acquire(blocking=False):
            return
        try:
            with self._lock:
                applied, state = self._state.applied, self._state.branch()
            self.ledger.save_checkpoint(state.checkpoint())
            self._saved_at = applied
        finally:
            self._saving.release()


class EarlierRevisions:
    """Snapshots of earlier revisions.

    States along the way are kept at equal distances, so that only the first look at the past goes all the way. If they
    become too many, every second one is dropped.
    """

    def __init__(self, ledger: Ledger, *, distance: int = 1_000) -> None:
        """`distance` is the number of events, other than decisions, between two states that are kept."""
        self._ledger = ledger
        self._distance = distance
        self._kept = [PlaybookState()]
        self._last = PlaybookState()
        self._lock = Lock()

    def at(self, revision: int) -> Snapshot:
        """The playbook at a revision."""
        with self._lock:
            state = self._nearest(revision)
            for event in self._ledger.read(state.seq, revision, decisions=False):
                state.apply(event)
                if state.applied >= self._distance and state.seq > self._kept[-1].seq:
                    self._keep(state)
                    state = state.branch()
            self._last = state
            return state.snapshot()

    def _nearest(self, revision: int) -> PlaybookState:
        """The latest state that is at hand and not after a revision."""
        kept = self._kept[bisect_right(self._kept, revision, key=lambda state: state.seq) - 1]
        return self._last if kept.seq <= self._last.seq <= revision else kept.branch()

    def _keep(self, state: PlaybookState) -> None:
        self._kept.append(state)
        if len(self._kept) > _MOST_KEPT:
            self._kept = self._kept[::2]
            self._distance *= 2


def _html_row(bullet: Bullet) -> tuple[str, ...]:
    claim = " [claim, not measured]" if bullet.claim is not None and not bullet.verified else ""
    return (
        shown_text(bullet.id),
        f"{bullet.shown_content(300)}{claim}",
        str(bullet.status),
        "" if bullet.weight is None else f"{bullet.weight:+.2f}",
        bullet.evidence.in_words() if bullet.evidence is not None and bullet.verified else "",
        "" if bullet.is_note else Firings(bullet.record).in_words(short=True),
    )


def _bullet_columns(bullets: Sequence[Bullet]) -> dict[str, list[Any]]:
    """The bullets as columns, the heaviest first."""
    ordered = sorted(bullets, key=lambda bullet: (-abs(bullet.weight or 0.0), bullet.id))
    rows = [_row(bullet) for bullet in ordered]
    names = _row(Bullet(id="-", content="-"))  # also where there is none
    return {name: [row[name] for row in rows] for name in names}


def _row(bullet: Bullet) -> dict[str, Any]:
    measured: dict[str, Any] = dict.fromkeys(("support", "frauds", "precision", "low", "high", "base_rate"))
    if (evidence := bullet.evidence) is not None:
        low, high = evidence.interval
        measured |= {**evidence.shown.figures, "low": low, "high": high, "base_rate": evidence.base_rate}
    return {
        "bullet": bullet.id,
        "english": bullet.shown if bullet.condition is None else say(bullet.condition),
        "weight": bullet.weight,
        **measured,
        "sql": "" if bullet.condition is None else bullet.condition.to_sql(),
        "argues": str(bullet.argues or ""),
        "content": bullet.shown,
        "status": str(bullet.status),
        "source": str(bullet.source),
        "node": bullet.node,
        "helpful": bullet.helpful_count,
        "harmful": bullet.harmful_count,
        "fired": bullet.record.support,
        "fired_frauds": bullet.record.frauds,
    }


def facts_at_hand(ledger: Ledger, sample: int = SAMPLE) -> FactCatalog:
    """The facts of the latest `sample` of remembered cases, with those that follow from their times.

    Empty if there are none.
    """
    cases = ledger.remembered(sample)
    table = FactTable([case.facts for case in cases])
    times = np.array([case.time for case in cases], dtype=np.int64)
    if len(cases) and (times != UNKNOWN).any():
        wanted = DAY_FACTS if any(case.has_text for case in cases) else (*CLOCK_FACTS, *DAY_FACTS)
        missing = [name for name in wanted if name not in table.names]
        table = table.beside(time_facts(times, missing))
    catalog = FactCatalog.of(table)
    return FactCatalog({name: catalog[name] for name in catalog if not _is_slip(name, catalog)}, catalog.rows)


def plain_name(name: str) -> str:
    """A name without what people write differently.

    >>> plain_name("CUSTOMER_ID"), plain_name("customerId"), plain_name("Customer Id")
    ('customerid', 'customerid', 'customerid')
    """
    return re.sub(r"[\W_]+", "", name).casefold()


def _is_slip(name: str, catalog: FactCatalog) -> bool:
    least = MANY_TIMES * catalog[name].coverage
    if least > 1 or name in NAMED_FACTS:
        return False
    digits = re.sub(r"\D", "", name)
    others = (other for other in catalog if catalog[other].coverage >= least and other != name)
    usual = [plain_name(other) for other in others if re.sub(r"\D", "", other) == digits]
    return process.extractOne(plain_name(name), usual, scorer=fuzz.ratio, score_cutoff=MISWRITTEN) is not None


def _vocabulary_of(ledger: Ledger, lists: Collection[str]) -> Vocabulary:
    """The words that rules for a playbook with these lists may use.

    If it remembers texts, they may also use the facts that texts are read for. Before the first case, they may use
    every fact that the engine knows by name, and any other by its name in backticks or with an underscore.
    """
    catalog = facts_at_hand(ledger)
    if not catalog:
        return Vocabulary.general(lists=lists)
    from_texts = any(case.has_text for case in ledger.remembered(1))
    return Vocabulary.of(catalog, lists=lists, named=NAMED_FACTS if from_texts else ())
