"""The playbook: bullets that every writer of a ledger shares.

Every edit takes one path (`BulletPlaybook.change`): it is planned on the newest revision, and written only if nobody
has changed the bullets it depends on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeVar, Unpack

import numpy as np

from acefraud.core.bullet import (
    DEFAULT_NODE,
    BulletDetails,
    Evidence,
    NewBullet,
    Policy,
    Snooze,
    Source,
    Status,
)
from acefraud.core.condition import Condition
from acefraud.core.context_facts import Feed, ListItem, ValueList
from acefraud.core.events import THE_ENGINE, Event, EventPayload, FeedSet, RolledBack
from acefraud.core.ledger import Entry, KeptRequest, KnownCase, Ledger, Precondition, RowUpdate
from acefraud.core.outcome import FeedKind, OutcomeFeed
from acefraud.core.review_rule import ReviewRule, SaidReview
from acefraud.core.transaction import Verdict
from acefraud.storage import changes
from acefraud.storage.changes import Change
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook_reading import Clock, PlaybookReading, UnitOfWork
from acefraud.support.arguments import check_choice, check_has, check_type
from acefraud.support.callers import current_owner
from acefraud.support.timestamps import system_clock

T = TypeVar("T")


class BulletPlaybook(PlaybookReading):
    """Bullets by node, with their counters; in memory. `acefraud.open_playbook` opens one that is kept.

    Threads and tasks can share one. Each process opens its own on the file or database.

    >>> playbook = BulletPlaybook()
    >>> bullet_id = playbook.add_bullet("VPN and a new device: decline", "fraud_detection", source="offline")
    >>> playbook.update_stats(bullet_id, is_helpful=True)
    >>> bullet = playbook.get_bullet(bullet_id)
    >>> bullet.helpful_count, bullet.times_selected, str(bullet.condition)
    (1, 1, 'new_device is true and vpn is true')

    It is also a collection of all its bullets, retired ones included:

    >>> bullet_id in playbook, len(playbook), playbook[bullet_id] == playbook[0], len(playbook[:5])
    (True, 1, True, 1)
    >>> playbook
    BulletPlaybook(1 bullet, revision 2, in memory)
    """

    def __init__(self, ledger: Ledger | None = None, *, clock: Clock = system_clock) -> None:
        if ledger is not None:
            check_has("ledger", ledger, "a ledger (`acefraud.open_playbook` opens a file)", "checkpoint")
        self._editing = RLock()
        """Held while an edit is planned and written, so that threads do not compete for the ledger."""
        super().__init__(MemoryLedger() if ledger is None else ledger, clock)

    # --- editing ---

    def add_bullet(
        self,
        content: str,
        node: str = DEFAULT_NODE,
        source: Source | str = Source.MANUAL,
        *,
        who: str = THE_ENGINE,
        why: str = "",
        **details: Unpack[BulletDetails],
    ) -> str:
        """Add a bullet and return its id. A condition or verdict that is not given is read from the content.

        The details are `condition`, `argues`, `evidence`, `weight`, `problem_types`, `status` and `policy`.

        >>> from acefraud import Condition
        >>> playbook = BulletPlaybook()
        >>> read = playbook.add_bullet("Amount above $2,000 and a VPN: decline", who="ana")
        >>> str(playbook.get_bullet(read).condition)
        'amount > 2000 and vpn is true'
        >>> mules = Condition.parse("payouts_24h > 5")
        >>> given = playbook.add_bullet("Looks like a mule account", condition=mules, argues=Verdict.DECLINE)
        >>> playbook.get_bullet(given).condition == mules
        True
        """
        new = NewBullet(content, source, why=why, **details)
        return self.change(lambda: changes.plan_addition(self, new, node, who=who), who=who, why=why)

    def edit_bullet(
        self,
        bullet_id: str,
        content: str,
        *,
        condition: Condition | None = None,
        argues: Verdict | None = None,
        evidence: Evidence | None = None,
        problem_types: Sequence[str] = (),
        policy: Policy | None = None,
        who: str = THE_ENGINE,
        why: str = "",
    ) -> None:
        """Rewrite a bullet. Its fitted weight is dropped.

        A condition or verdict that is not given is read from the content. Without a `policy` it is evidence, or a note.

        >>> playbook = BulletPlaybook()
        >>> bullet_id = playbook.add_bullet("Amount above $2,000: decline")
        >>> playbook.edit_bullet(bullet_id, "Amount above $5,000: decline", who="ana", why="too many false alarms")
        >>> str(playbook.get_bullet(bullet_id).condition)
        'amount > 5000'
        """
        new = NewBullet(
            content,
            condition=condition,
            argues=argues,
            evidence=evidence,
            problem_types=problem_types,
            policy=policy,
            why=why,
        )
        self.change(lambda: changes.plan_edit(self, bullet_id, new), who=who, why=why)

    def snooze(self, bullet_id: str, snooze: Snooze, *, who: str = THE_ENGINE, why: str = "") -> None:
        """Let a policy not apply to one entity until a date."""
        self.change(lambda: changes.plan_snooze(self, bullet_id, snooze, why), who=who, why=why)

    def set_status(self, bullet_id: str, status: Status, *, who: str = THE_ENGINE, why: str = "") -> None:
        """Approve, pin, retire or revive a bullet.

        >>> playbook = BulletPlaybook()
        >>> bullet_id = playbook.add_bullet("VPN: decline")
        >>> playbook.set_status(bullet_id, Status.PINNED, who="ana", why="agreed in the weekly review")
        >>> str(playbook.get_bullet(bullet_id).status), playbook.get_bullet(bullet_id).status_by
        ('pinned', 'ana')
        """
        check_choice("status", status, Status)
        self.change(lambda: changes.plan_status_change(self, bullet_id, status, why), who=who, why=why)

    def set_threshold(
        self,
        threshold: float | None = None,
        review: SaidReview | None = None,
        node: str = DEFAULT_NODE,
        *,
        no_review: bool = False,
        who: str = THE_ENGINE,
        why: str = "",
    ) -> None:
        """Set from which fraud probability on transactions are declined, and which go to a person.

        `review` is a band of probabilities such as (0.3, 0.7), or what each verdict costs, as an object or as text:
        "false_decline=15,missed_fraud=200,review=5,per_day=50". What is not given stays as it is; `no_review` drops the
        band or the costs. Raises InputError if there is no threshold to set yet.

        >>> from acefraud import Case, Learner, Transaction
        >>> from acefraud.core.review_rule import ReviewRule
        >>> orders = [Transaction(id=f"t{n}", facts={"vpn": n % 3 == 0, "amount": n}) for n in range(60)]
        >>> playbook = BulletPlaybook()
        >>> _ = Learner(playbook).study([Case(transaction=one, is_fraud=one.facts["vpn"]) for one in orders])
        >>> playbook.set_threshold(0.7, review=ReviewRule(between=(0.4, 0.7)), who="ana")
        >>> playbook.snapshot().calibration("fraud_detection").threshold
        0.7
        >>> playbook.set_threshold(review="false_decline=15,missed_fraud=80%+25")
        >>> playbook.snapshot().reviews["fraud_detection"].words
        'the verdict that costs least: a missed fraud 25 and 80% of its amount, a false decline 15, no reviews'
        """
        rule = None if review is None else ReviewRule.of(review)
        if threshold is not None:
            check_type("threshold", threshold, (int, float, np.floating), "a fraud probability between 0 and 1")
        self.change(lambda: changes.plan_threshold(self, node, threshold, rule, no_review=no_review), who=who, why=why)

    def set_feed(
        self,
        kind: FeedKind | str | None = None,
        *,
        silence_days: float | None = None,
        declines_pass: bool | None = None,
        follow_level: bool | None = None,
        node: str = DEFAULT_NODE,
        who: str = THE_ENGINE,
        why: str = "",
    ) -> OutcomeFeed:
        """Say how outcomes reach a node. What is not given stays as it is; `silence_days=0` lets silence say nothing.

        >>> playbook = BulletPlaybook()
        >>> playbook.set_feed("fraud_only", silence_days=60, who="ana").words
        'only frauds are reported (declared); 60 days without a report count as legitimate'
        """
        plan = partial(
            changes.plan_feed,
            self,
            node,
            kind,
            silence_days=silence_days,
            declines_pass=declines_pass,
            follow_level=follow_level,
        )
        self.change(plan, who=who, why=why)
        return self.feed(node)

    def assume_complete_feed(self, node: str = DEFAULT_NODE) -> None:
        """Take every transaction to get an outcome until outcomes show otherwise, as a stream of labelled rows does."""
        if self.feed(node).kind is FeedKind.UNKNOWN:
            self.record([FeedSet(node=node, feed=FeedKind.COMPLETE, declared=False)])

    def settle_level(self, *, accept: bool, node: str = DEFAULT_NODE, who: str, why: str = "") -> None:
        """Let a held step of the level of fraud count (`accept`), or put the level back to what was calibrated.

        Raises InputError if no step is held, or the level is where it was calibrated.
        """
        self.change(lambda: changes.plan_level(self, node, accept=accept), who=who, why=why)

    def create_list(
        self, name: str, *, about: str = "", feed: Feed | None = None, who: str = THE_ENGINE, why: str = ""
    ) -> ValueList:
        """Create a list of values, or change what is said of it. Returns the list.

        >>> playbook = BulletPlaybook()
        >>> playbook.create_list("blocked_cards", about="reported stolen", who="ana").about
        'reported stolen'
        """
        self.change(lambda: changes.plan_list(name, about, feed, why), who=who, why=why)
        return self.get_list(name)

    def change_list(
        self,
        name: str,
        *,
        added: Sequence[ListItem] = (),
        removed: Sequence[str] = (),
        who: str = THE_ENGINE,
        why: str = "",
    ) -> ValueList:
        """Put values on a list, or take them off. Returns the list.

        Raises InputError, with nothing changed, if a value to take off is not on it.

        >>> from acefraud.core.context_facts import ListItem
        >>> playbook = BulletPlaybook()
        >>> _ = playbook.create_list("blocked_cards")
        >>> cards = playbook.change_list("blocked_cards", added=[ListItem(value="card-17", reason="stolen")])
        >>> sorted(cards.items)
        ['card-17']
        """
        self.change(lambda: changes.plan_list_change(self, name, added, removed, why), who=who, why=why)
        return self.get_list(name)

    def get_list(self, name: str) -> ValueList:
        """The list with that name. Raises InputError if there is none.

        >>> playbook = BulletPlaybook()
        >>> _ = playbook.create_list("blocked_cards")
        >>> playbook.get_list("blocked_cards").name
        'blocked_cards'
        """
        return changes.list_in(self, name)

    def rollback(self, revision: int, *, who: str, why: str = "") -> RolledBack:
        """Bring the playbook back to an earlier revision, by new events in one unit of work. Returns what changed.

        Nothing is deleted, and it can be undone (`plan_rollback` says what goes back). Raises InputError if there is no
        such revision, and StoreConflict if others change the playbook faster every time.

        >>> playbook = BulletPlaybook()
        >>> bullet_id = playbook.add_bullet("VPN: decline")
        >>> then = playbook.snapshot().revision
        >>> playbook.edit_bullet(bullet_id, "VPN at night: decline")
        >>> other = playbook.add_bullet("An emulator: decline")
        >>> done = playbook.rollback(then, who="ana", why="too many false alarms")
        >>> done.edited == (bullet_id,), done.retired == (other,)
        (True, True)
        >>> playbook.get_bullet(bullet_id).content
        'VPN: decline'
        """
        back = partial(self.change, lambda: changes.plan_rollback(self, revision, why), who=who)
        return self.run_unit_of_work(back, who=who, why=why)

    def update_stats(self, bullet_id: str, is_helpful: bool) -> None:
        """Count one use of a bullet: helpful or harmful, and selected.

        >>> playbook = BulletPlaybook()
        >>> bullet_id = playbook.add_bullet("VPN: decline")
        >>> playbook.update_stats(bullet_id, is_helpful=False)
        >>> playbook.get_bullet(bullet_id).harmful_count
        1
        """
        check_type("is_helpful", is_helpful, (bool, np.bool_), "True or False")
        self.change(lambda: changes.plan_use(self, bullet_id, is_helpful=is_helpful))

    def change(self, plan: Callable[[], Change[T]], *, who: str = THE_ENGINE, why: str = "") -> T:
        """Plan a change on the newest revision and write it; plan it again if a bullet it depends on has changed.

        Raises StoreConflict if other writers are faster every time. Inside a unit of work the change becomes part
        of that.
        """
        if self._own_unit() is not None:
            change = plan()
            if change.payloads:
                self.record(change.payloads, who=who, why=why)
            return change.result

        def attempt() -> T:
            with self._editing:
                self.refresh()
                newest = self._state.seq
                change = plan()
                if change.payloads:
                    unedited = Precondition.no_bullet_edits_since(newest, change.depends_on)
                    self._append(Entry(change.payloads, self.clock(), who, why, [unedited]))
                return change.result

        return changes.retry_on_conflict(attempt)

    def record(
        self,
        payloads: Sequence[EventPayload],
        *,
        who: str = THE_ENGINE,
        why: str = "",
        preconditions: Sequence[Precondition] = (),
        cases: Sequence[KnownCase] = (),
        rows: RowUpdate | None = None,
        requests: Sequence[KeptRequest] = (),
    ) -> list[Event]:
        """Write events and apply them. Raises StoreConflict, with nothing written, if a precondition does not hold.

        Inside a unit of work they are written when it ends, under its preconditions too.
        """
        unit = self._own_unit()
        entry = Entry(payloads, self.clock(), who, why, preconditions, cases, rows, requests)
        if unit is None:
            return self._append(entry)
        if who not in (THE_ENGINE, unit.who):
            raise ValueError(f"a unit of work has one author: begun by {unit.who}, now {who}")
        return unit.record(entry)

    def _append(self, entry: Entry) -> list[Event]:
        events = self.ledger.append(entry)
        with self._lock:
            follows = bool(events) and events[0].seq == self._state.seq + 1
            if follows:
                self._apply(events, events[-1].seq)
        if follows:
            self._save_if_due()
        else:  # others wrote in between: read what they wrote first
            self.refresh()
        return events

    @contextmanager
    def unit_of_work(self, *, who: str = THE_ENGINE, why: str = "", since: int | None = None) -> Iterator[None]:
        """Write what is recorded inside the block together when it ends, or not at all.

        Until then only this thread, or this task of an event loop, sees the changes. Raises StoreConflict, with
        nothing written, if somebody else has changed the playbook since the block began, or since the event
        ``since``. Decisions and outcomes of others do not conflict. A unit of work inside another is part of it.

        >>> playbook = BulletPlaybook()
        >>> old = playbook.add_bullet("VPN: decline")
        >>> with playbook.unit_of_work(who="ana", why="one rule in place of another"):
        ...     playbook.set_status(old, Status.RETIRED)
        ...     new = playbook.add_bullet("VPN and a new device: decline")
        >>> [bullet.id == new for bullet in playbook.get_bullets_for_node("fraud_detection")]
        [True]
        """
        outer = self._own_unit()
        if outer is not None:
            with outer.nested():
                yield
            return
        self.refresh()
        with self._lock:
            newest = self._state.seq
            unchanged = Precondition.no_edits_since(newest if since is None else since)
            unit = UnitOfWork(who, self._state.branch(), newest)
        owner = current_owner()
        self._units[owner] = unit
        try:
            yield
        finally:
            del self._units[owner]
        whole = unit.whole(self.clock(), why, unchanged)
        if whole.payloads or whole.cases or whole.requests:
            self._append(whole)

    def run_unit_of_work(self, work: Callable[[], T], *, who: str = THE_ENGINE, why: str = "") -> T:
        """Call ``work`` in a unit of work and return what it returns; call it again after a conflict.

        Raises StoreConflict if other writers are faster every time. Inside a unit of work it is called once.
        """

        def attempt() -> T:
            with self.unit_of_work(who=who, why=why):
                return work()

        return attempt() if self._own_unit() is not None else changes.retry_on_conflict(attempt)

    one_step, run_step = unit_of_work, run_unit_of_work  # their earlier names

    def save(self, path: str | Path) -> None:
        """Write the playbook with its whole ledger to a new file. Raises StoreError if there is one already."""
        from acefraud.storage.copies import save_ledger  # noqa: PLC0415  # a playbook in memory needs no database

        save_ledger(self.ledger, Path(path))

    def __reduce__(self) -> tuple[Any, ...]:
        """One in memory is pickled with all it holds. Others are opened again where they are unpickled.

        The pickle of one in a database has its address with the password, if that has one.
        """
        origin = getattr(self.ledger, "origin", None)
        return (BulletPlaybook, (self.ledger,)) if origin is None else (_reopened, (origin,))

    def close(self) -> None:
        """Close the file."""
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _reopened(place: str | Path) -> BulletPlaybook:
    """The playbook in a file or database that exists."""
    from acefraud.storage.open_ledger import open_ledger  # noqa: PLC0415  # a playbook in memory needs no database

    return BulletPlaybook(open_ledger(place, create=False))
