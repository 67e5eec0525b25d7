"""Concurrent edits from two handles and their threads equal some serial order of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.postgres import database_for
from tests.storage.acknowledged import Act, Done, Meanwhile, folded, in_some_order, perform, plain
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import Status
from acefraud.core.events import THE_ENGINE
from acefraud.core.ledger import Ledger
from acefraud.curation.curator import Curator
from acefraud.errors import StoreConflict
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.postgres import PostgresLedger
from acefraud.storage.sqlite import SqliteLedger

CONTENTS = ["VPN: decline", "amount > $1000 = DECLINE", "amount > $9000 = APPROVE", "Nervous callers", "Refunds twice"]
Wish = tuple[str, int, int]
"""The kind of an act, which of the bullets there are, and what it should say or be."""

wishes = st.tuples(
    st.sampled_from(["add", "merge", "edit", "move", "use"]), st.integers(0, 7), st.integers(0, len(CONTENTS) - 1)
)
some_wishes = st.lists(wishes, min_size=1, max_size=3)
handles = st.integers(0, 1)
names = st.sampled_from(["ana", THE_ENGINE])


class GivenUpOnPurpose(Exception):
    pass


class TwoHandlesOnOneStore(RuleBasedStateMachine):
    """Two handles, and two threads on the first. A step of this thread may be open while the others act."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        first, second = self.ledgers(Path(self._folder.name))
        self.interrupted: Any = [Meanwhile(first), Meanwhile(second)]
        self.playbooks = [BulletPlaybook(each) for each in self.interrupted]
        self.curators = [Curator(), Curator()]
        self.thread = ThreadPoolExecutor(1)
        self.done: list[Done] = []
        self.ids: list[str] = []
        self.tokens = (f"act {n}" for n in count())
        self.step: AbstractContextManager[None] | None = None
        self.in_step: list[Act] = []
        self.step_token = ""

    def ledgers(self, folder: Path) -> tuple[Ledger, Ledger]:
        raise NotImplementedError

    def teardown(self) -> None:
        if self.step is not None:
            self._end_step()
        self.all_agree()
        self.thread.shutdown()
        for playbook in self.playbooks:
            playbook.close()
        self._folder.cleanup()

    # --- one act at a time ---

    @rule(wish=wishes, who=names, handle=handles)
    def act(self, wish: Wish, who: str, handle: int) -> None:
        if handle == 0 and self.step is not None:
            in_step = list(self.playbooks[0].snapshot().bullets)  # not what others added since it began
            self.in_step.append(self._perform(self._act_of(wish, THE_ENGINE, in_step), 0, self.step_token))
        else:
            self._acknowledged(lambda token: [self._perform(self._act_of(wish, who), handle, token)])

    @rule(wish=wishes, who=names)
    def act_in_another_thread(self, wish: Wish, who: str) -> None:
        self.thread.submit(self._acknowledged, lambda token: [self._perform(self._act_of(wish, who), 0, token)]).result(
            60
        )

    @rule(mine=wishes, theirs=some_wishes, handle=handles)
    def act_while_another_handle_does(self, mine: Wish, theirs: list[Wish], handle: int) -> None:
        """The other one acts between working out and writing, each time that this one tries."""
        if self.step is not None:
            return
        other = 1 - handle
        act = self._act_of(mine, "ana")
        acts = [self._act_of(wish, "bob") for wish in theirs]
        self.interrupted[handle].acts = [
            lambda each=each: self._acknowledged(lambda token: [self._perform(each, other, token)]) for each in acts
        ]
        self._acknowledged(lambda token: [self._perform(act, handle, token)])
        self.interrupted[handle].acts = []

    # --- steps ---

    @rule(wanted=some_wishes, handle=handles)
    def whole_step(self, wanted: list[Wish], handle: int) -> None:
        if self.step is None:
            playbook = self.playbooks[handle]
            self._acknowledged(
                lambda token: playbook.run_unit_of_work(lambda: self._all(wanted, handle, token), why=token)
            )

    @rule(wanted=some_wishes, handle=handles)
    def given_up_step(self, wanted: list[Wish], handle: int) -> None:
        if self.step is None:
            token, playbook = next(self.tokens), self.playbooks[handle]
            with suppress(GivenUpOnPurpose), playbook.unit_of_work(why=token):
                self._all(wanted, handle, token)
                raise GivenUpOnPurpose

    @precondition(lambda self: self.step is None)
    @rule()
    def begin_step(self) -> None:
        self.step_token, self.in_step = next(self.tokens), []
        self.step = self.playbooks[0].unit_of_work(why=self.step_token)
        self.step.__enter__()

    @precondition(lambda self: self.step is not None)
    @rule()
    def end_step(self) -> None:
        self._end_step()

    @precondition(lambda self: self.step is not None)
    @rule()
    def give_up_step(self) -> None:
        assert self.step is not None
        error = GivenUpOnPurpose()
        with suppress(GivenUpOnPurpose):
            self.step.__exit__(type(error), error, None)
        self.step = None

    def _end_step(self) -> None:
        assert self.step is not None
        with suppress(StoreConflict):
            self.step.__exit__(None, None, None)
            self._note(Done(self.step_token, tuple(self.in_step)))
        self.step = None

    # --- what holds at any time ---

    @invariant()
    def all_agree(self) -> None:
        expected = in_some_order(self.done, list(self.playbooks[0].ledger.read()))
        assert folded(self.playbooks[0].ledger) == expected
        others: list[Callable[[], dict[str, Any]]] = [
            lambda: self.thread.submit(self._seen, 0).result(60),
            lambda: self._seen(1),
        ]
        if self.step is None:
            others.append(lambda: self._seen(0))
        for seen in others:
            assert seen() == expected
        for playbook in self.playbooks:
            assert matches_replay(playbook)

    def _seen(self, handle: int) -> dict[str, Any]:
        self.playbooks[handle].refresh()
        return dict(plain(self.playbooks[handle].snapshot().bullets.values()))

    # --- helpers ---

    def _act_of(self, wish: Wish, who: str, among: Sequence[str] | None = None) -> Act:
        kind, which, what = wish
        ids = self.ids if among is None else among
        if kind in ("add", "merge") or not ids:
            return Act("merge" if kind == "merge" else "add", content=CONTENTS[what], who=who)
        status = [Status.PINNED, Status.RETIRED, Status.RETIRED, Status.ACTIVE, Status.CANDIDATE][what]
        return Act(kind, ids[which % len(ids)], CONTENTS[what], status, who)

    def _all(self, wanted: list[Wish], handle: int, token: str) -> list[Act]:
        return [self._perform(self._act_of(wish, THE_ENGINE), handle, token) for wish in wanted]

    def _perform(self, act: Act, handle: int, token: str) -> Act:
        return perform(act, self.playbooks[handle], self.curators[handle], token)

    def _acknowledged(self, work: Callable[[str], list[Act]]) -> None:
        token = next(self.tokens)
        with suppress(StoreConflict):
            self._note(Done(token, tuple(work(token))))

    def _note(self, done: Done) -> None:
        self.done.append(done)
        new = [act.bullet_id for act in done.acts if act.bullet_id is not None]
        self.ids.extend(each for each in new if each not in self.ids)


class OnOneMemory(TwoHandlesOnOneStore):
    def ledgers(self, folder: Path) -> tuple[Ledger, Ledger]:  # noqa: ARG002
        shared = MemoryLedger()
        return shared, shared


class OnOneFile(TwoHandlesOnOneStore):
    def ledgers(self, folder: Path) -> tuple[Ledger, Ledger]:
        return SqliteLedger.open(folder / "book.db"), SqliteLedger.open(folder / "book.db")


class OnOneDatabase(TwoHandlesOnOneStore):
    def ledgers(self, folder: Path) -> tuple[Ledger, Ledger]:
        address = database_for(folder)
        return PostgresLedger.open(address), PostgresLedger.open(address)


TestOnOneMemory = OnOneMemory.TestCase
TestOnOneMemory.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=20)
TestOnOneFile = OnOneFile.TestCase
TestOnOneFile.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=15)
TestOnOneDatabase = pytest.mark.wide(OnOneDatabase.TestCase)
TestOnOneDatabase.settings = settings(max_examples=settings().max_examples // 8, stateful_step_count=15)
