"""A case memory that follows the ledger, so that it has the outcomes of all learners."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from threading import RLock

import numpy as np

from acefraud.core.events import Reread
from acefraud.core.ledger import RememberedCase
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.facts.extraction import READER, facts_of
from acefraud.roles.embedded.case_memory import CaseMemory, LabelledFacts
from acefraud.storage.playbook import BulletPlaybook


class RememberedCases:
    """Keeps a case memory up with the ledger of a playbook.

    A cursor marks what it has seen, so catching up costs only what is new.
    """

    def __init__(self, playbook: BulletPlaybook, memory: CaseMemory, node: str) -> None:
        self._playbook = playbook
        self._memory = memory
        self._node = node
        self._cursor = 0
        self._rereads = 0
        self._catching_up = RLock()

    def catch_up(self) -> LabelledFacts:
        """The latest cases in the ledger, with their recorded facts."""
        with self._catching_up:
            rereads = self._playbook.learning(self._node).rereads
            if rereads != self._rereads:
                self._memory.clear()
                self._cursor, self._rereads = 0, rereads
            rows = self._playbook.ledger.remembered(self._memory.capacity, after=self._cursor)
            if rows:
                self._memory.add(self._labelled(rows))
                self._cursor = rows[-1].seq
            return self._memory.cases

    def since_change(self) -> LabelledFacts:
        """The latest cases, from the time on when fraud began to look different if it did."""
        cases, since = self.catch_up(), self._playbook.learning(self._node).since_change
        if since is None:
            return cases
        return replace(cases.take(slice(max(0, len(cases) - since), None)), after_change=True)

    def _labelled(self, rows: Sequence[RememberedCase]) -> LabelledFacts:
        unread = {row.id for row in rows if not row.reader}  # in files of an earlier schema
        read = self._read(unread) if unread else {}
        return LabelledFacts(
            np.array([row.id for row in rows], dtype=object),
            FactTable([read.get(row.id, row.facts) for row in rows]),
            np.array([row.is_fraud for row in rows], dtype=np.bool_),
            np.array([row.time for row in rows], dtype=np.int64),
            any(row.has_text for row in rows),
        )

    def reread(self, *, everything: bool) -> Reread:
        """Read texts again that another version of the reader has read, or all of them."""
        kept = self._playbook.ledger.remembered(self._memory.capacity)
        old = {row.id: dict(row.facts) for row in kept if row.has_text and (everything or row.reader != READER)}
        new = self._read(old)
        changed = sum(new[one] != facts for one, facts in old.items())
        done = Reread(node=self._node, reader=READER, cases=len(old), changed=changed)
        self._playbook.record([done])
        return done

    def _read(self, ids: Collection[str]) -> dict[str, dict[str, FactValue]]:
        """The facts of some cases, read from their texts again and stored."""
        known = self._playbook.ledger.known_cases(ids)
        read = {one: facts_of(each.case.transaction).facts for one, each in known.items()}
        self._playbook.ledger.replace_facts(read, READER)
        return read
