"""A ledger that lives as long as the process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import groupby, islice, takewhile
from threading import Condition, RLock
from typing import Any

from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.events import BULLET_HISTORY_KINDS, DecisionMade, Event, OutcomeHeard, OutcomeReceived
from acefraud.core.ledger import (
    BufferedRows,
    DecisionFilter,
    Entry,
    KeptRequest,
    KnownCase,
    Ledger,
    MemoryRows,
    RememberedCase,
    RowStore,
    TransactionEvents,
)
from acefraud.core.playbook import Checkpoint
from acefraud.core.transaction import FactValue, Verdict
from acefraud.storage.changes import answered_already, conflict_with
from acefraud.support.timestamps import micros_of


class MemoryLedger:
    """Keeps every promise of a ledger except outliving the process. Threads may share it."""

    def __init__(self) -> None:
        self._lock = RLock()
        """Held by writers, and by readers that look more than once."""
        self._written = Condition(self._lock)
        """Told when there are new events other than decisions."""
        self._last_event = 0
        """The number of the last of these."""
        self._events: list[Event] = []
        self._cases: dict[str, tuple[int, KnownCase]] = {}
        self._cases_seen = 0
        self._decisions: dict[str, DecisionRecord] = {}
        self._decided: dict[str, list[DecisionRecord]] = defaultdict(list)
        self._heard: dict[str, list[OutcomeHeard]] = defaultdict(list)
        self._requests: dict[str, KeptRequest] = {}
        self._reported: dict[str, Event] = {}
        """The first event of each outcome, received or heard, by key."""
        self._reports: dict[str, list[Event]] = defaultdict(list)
        """All events of outcomes, received or heard, by transaction."""
        self._rows = MemoryRows()
        self._checkpoint: Checkpoint | None = None
        self._claimed: set[str] = set()

    def append(self, entry: Entry) -> list[Event]:
        """Write all of it, or nothing."""
        with self._lock:
            for each in entry.preconditions:
                violation = next(filter(each.violated_by, self._events[each.seq :]), None)
                if violation is not None:
                    raise conflict_with(violation)
            if (answered := next((one for one in entry.requests if one.key in self._requests), None)) is not None:
                raise answered_already(answered)
            events = entry.events_after(self.last_seq())
            if entry.rows is not None:
                buffer = BufferedRows(self._rows)
                entry.rows(buffer)
                buffer.write_to(self._rows)
            for payload in entry.payloads:
                if isinstance(payload, DecisionMade):
                    self._decisions[payload.record.id] = payload.record
                    self._decided[payload.subject].append(payload.record)
                elif isinstance(payload, OutcomeHeard):
                    self._heard[payload.subject].append(payload)
            for event in events:
                if isinstance(event.payload, OutcomeReceived | OutcomeHeard):
                    self._reported.setdefault(event.payload.outcome.key, event)
                    self._reports[event.payload.subject].append(event)
            self._requests |= {one.key: one for one in entry.requests}
            for known in entry.cases:
                self._cases_seen += 1
                self._cases.pop(known.case.transaction.id, None)
                self._cases[known.case.transaction.id] = self._cases_seen, replace(known, case=known.kept)
            self._events.extend(events)
            if told := [event.seq for event in events if not isinstance(event.payload, DecisionMade)]:
                self._last_event = told[-1]
                self._written.notify_all()
        return events

    def last_seq(self) -> int:
        """The number of the last event."""
        return len(self._events)

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one number up to and including another."""
        for event in self._events[after:until]:
            if decisions or not isinstance(event.payload, DecisionMade):
                yield event

    def decisions(self, decision_ids: Collection[str]) -> dict[str, Decision]:
        """The recorded decisions with these ids."""
        return {one: self._decisions[one].decision for one in decision_ids if one in self._decisions}

    def recorded(self, decision_ids: Collection[str]) -> set[str]:
        """Which of these decisions are recorded."""
        return self._decisions.keys() & decision_ids

    def latest_decisions(self, limit: int) -> list[DecisionRecord]:
        """The records of the latest decisions, oldest first."""
        made = [event.payload.record for event in self._events if isinstance(event.payload, DecisionMade)]
        return made[max(0, len(made) - limit) :]

    def reviews_since(self, at: datetime, after: int = 0) -> tuple[int, int]:
        """How many decisions sent a case to a person, and the last event."""
        last = self.last_seq()
        made = (event.payload for event in self._events[after:last] if event.at >= at)
        return sum(isinstance(one, DecisionMade) and one.record.verdict == Verdict.REVIEW for one in made), last

    def find_decisions(
        self,
        wanted: DecisionFilter,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = True,
    ) -> list[Event]:
        """The recorded decisions that are wanted."""
        between = self._between(after, before, newest_first=newest_first)
        return list(islice((event for event in between if self._is_wanted(event, wanted)), max(0, limit)))

    def _is_wanted(self, event: Event, wanted: DecisionFilter) -> bool:
        if not isinstance(event.payload, DecisionMade):
            return False
        made, one = event.payload, wanted
        return (
            (one.ids is None or made.record.id in one.ids)
            and (one.transaction_ids is None or made.subject in one.transaction_ids)
            and (one.since is None or event.at >= one.since)
            and (one.until is None or event.at < one.until)
            and one.verdict in (None, made.record.verdict)
            and (one.least_probability is None or made.record.probability >= one.least_probability)
            and (one.most_probability is None or made.record.probability <= one.most_probability)
            and not (one.without_outcome and self._has_outcome(made.subject))
        )

    def _has_outcome(self, transaction_id: str) -> bool:
        reports = (event.payload for event in self._reports.get(transaction_id, ()))
        return any(isinstance(one, OutcomeReceived | OutcomeHeard) and not one.outcome.is_opinion for one in reports)

    def find_events(
        self,
        kinds: Collection[str],
        *,
        subject: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = False,
    ) -> list[Event]:
        """The events of these kinds."""
        wanted = (
            event
            for event in self._between(after, before, newest_first=newest_first)
            if event.payload.kind in kinds and subject in (None, event.payload.subject)
        )
        return list(islice(wanted, max(0, limit)))

    def count_events(self, kinds: Collection[str], *, after: int = 0, limit: int) -> int:
        """How many events of these kinds there are after one."""
        return len(self.find_events(kinds, after=after, limit=limit))

    def _between(self, after: int, before: int | None, *, newest_first: bool) -> Iterator[Event]:
        events = self._events[after : len(self._events) if before is None else max(0, before - 1)]
        return reversed(events) if newest_first else iter(events)

    def received_outcomes(self, keys: Collection[str]) -> dict[str, Event]:
        """The outcomes received or heard with these keys."""
        return {key: self._reported[key] for key in keys if key in self._reported}

    def outcome_events(self, transaction_ids: Collection[str]) -> dict[str, list[Event]]:
        """The events of outcomes of these transactions."""
        return {one: list(self._reports[one]) for one in transaction_ids if one in self._reports}

    def requests(self, keys: Collection[str]) -> dict[str, KeptRequest]:
        """The answered requests with these keys."""
        return {key: self._requests[key] for key in keys if key in self._requests}

    def requests_about(self, transaction_ids: Collection[str]) -> dict[str, KeptRequest]:
        """The first answered request on each of these transactions."""
        wanted = set(transaction_ids)
        return {one.transaction_id: one for one in reversed(self._requests.values()) if one.transaction_id in wanted}

    def transaction_events(self, transaction_ids: Collection[str]) -> dict[str, TransactionEvents]:
        """The decisions on these transactions and their outcomes."""
        return {
            one: TransactionEvents(list(self._decided.get(one, ())), list(self._heard.get(one, ())))
            for one in transaction_ids
        }

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet."""
        return [
            event
            for event in self._events
            if event.payload.kind in BULLET_HISTORY_KINDS and event.payload.subject == bullet_id
        ]

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest remembered cases after a position."""
        with self._lock:
            newest_first = takewhile(lambda kept: kept[0] > after, reversed(self._cases.values()))
            found = list(islice(newest_first, max(0, limit)))
        return [
            RememberedCase(
                seq=seq,
                id=known.case.transaction.id,
                is_fraud=known.case.is_fraud,
                time=micros_of(known.case.transaction.time),
                has_text=bool(known.case.transaction.text),
                reader=known.reader,
                facts=known.facts,
            )
            for seq, known in reversed(found)
        ]

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """The remembered cases of these transactions."""
        with self._lock:
            return {one: self._cases[one][1] for one in transaction_ids if one in self._cases}

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Replace the facts of remembered cases."""
        with self._lock:
            for one, new in facts.items():
                if one in self._cases:
                    seq, known = self._cases[one]
                    self._cases[one] = seq, replace(known, facts=new, reader=reader)

    @contextmanager
    def rows(self) -> Iterator[RowStore]:
        """The row store, for reading only."""
        with self._lock:
            yield self._rows

    @contextmanager
    def claim(self, work: str) -> Iterator[bool]:
        """Try to be the only one who does some work."""
        with self._lock:
            free = work not in self._claimed
            self._claimed.add(work)
        try:
            yield free
        finally:
            if free:
                self._claimed.discard(work)

    def wait_for_events(self, after: int, timeout: float) -> bool:
        """Wait until there are events other than decisions after a number."""
        with self._written:
            return self._written.wait_for(lambda: self._last_event > after, timeout)

    def checkpoint(self) -> Checkpoint | None:
        """The saved checkpoint."""
        return self._checkpoint

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the saved checkpoint."""
        with self._lock:
            if self._checkpoint is None or self._checkpoint.header.seq <= checkpoint.header.seq:
                self._checkpoint = checkpoint

    def copy_to(self, other: Ledger) -> None:
        """Write everything into another ledger, which must be empty."""
        with self._lock:
            for (at, who, why), events in groupby(self._events, key=lambda event: (event.at, event.who, event.why)):
                other.append(Entry([event.payload for event in events], at, who, why))
            if self._events:
                cases, rows = [known for _, known in self._cases.values()], dict(self._rows.rows)
                last, requests = self._events[-1], list(self._requests.values())
                other.append(
                    Entry(
                        [], last.at, last.who, cases=cases, rows=lambda store: store.put_many(rows), requests=requests
                    )
                )

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in ("_lock", "_written")}
        return {**kept, "_claimed": set()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        lock = RLock()
        vars(self).update(state, _lock=lock, _written=Condition(lock))

    def close(self) -> None:
        """Do nothing: there is no file."""
