"""Learns from outcomes and histories: asks a model if one reflects, plans a review, and writes it.

A review rests on the playbook as it was read. If somebody else changes the playbook meanwhile, it is planned again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from acefraud.core.events import LevelMoved, Reviewed
from acefraud.core.ledger import Precondition
from acefraud.curation.curator import Curator
from acefraud.errors import AcefraudError, StoreConflict, StoreError, StoreUnavailable
from acefraud.learning.apply_review import apply
from acefraud.learning.credits import CreditedOutcome
from acefraud.learning.level import LEVEL_EVERY, lag_of, level_moved
from acefraud.learning.odds_calibration import FittedOdds
from acefraud.learning.options import LearnerOptions
from acefraud.learning.planners import Admissions, Depth, Planner
from acefraud.learning.remembered_cases import RememberedCases
from acefraud.learning.training import Training
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.changes import retry_on_conflict
from acefraud.storage.playbook import BulletPlaybook

ATTEMPTS = 5
"""How often learning is tried because somebody else changed the playbook meanwhile."""


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Reviews one playbook."""

    playbook: BulletPlaybook
    planner: Planner
    cases: RememberedCases
    odds: FittedOdds
    curator: Curator
    options: LearnerOptions

    async def learn_if_due(self, credited: Sequence[CreditedOutcome]) -> Reviewed | None:
        """Learn from outcomes if it is time to. They are recorded by now, so errors are reported, not raised."""
        recorded = [one for one in credited if one.event is not None]
        if not recorded:
            return None
        new = [one for one in recorded if one.teaches]
        count = self.playbook.outcomes
        level = count // LEVEL_EVERY > (count - len(recorded)) // LEVEL_EVERY
        return await self._learn(new, level=level)

    async def resume(self) -> Reviewed | None:
        """Learn what is due already, as after a process that ended before it came to it.

        That the level was followed is no event if it stayed. Following it again changes nothing: it is estimated from
        the cases alone.
        """
        return await self._learn((), level=self.ends_at_a_level)

    @property
    def ends_at_a_level(self) -> bool:
        """Whether the level is to be followed after the outcomes so far."""
        return self.playbook.outcomes > 0 and self.playbook.outcomes % LEVEL_EVERY == 0

    @property
    def is_due(self) -> bool:
        """Whether something is to be learnt before the next outcome is heard."""
        return self.planner.due(self.playbook.learning(self.options.node)) is not None

    @property
    def room(self) -> int:
        """How many outcomes may be recorded, at most, before it is time to learn."""
        return 1 if self.planner.waits else LEVEL_EVERY - self.playbook.outcomes % LEVEL_EVERY

    def before_due(self, credited: Sequence[CreditedOutcome]) -> int:
        """How many of some outcomes to record before it is time to learn, as if they were heard one by one."""
        state = self.playbook.learning(self.options.node)
        for place, one in enumerate(credited, 1):
            if not one.teaches:
                continue
            state = state.with_case(one.judged.outcome.is_fraud)
            has_odds = one.judged.decision is not None and one.judged.decision.odds is not None
            if has_odds or self.planner.due(state) is not None:
                return place
        return len(credited)

    async def _learn(self, new: Sequence[CreditedOutcome], *, level: bool) -> Reviewed | None:
        try:
            self.odds.hear([(one.judged.decision, one.judged.outcome.is_fraud) for one in new])
            self.planner.note([one.judged for one in new])
            depth = self.planner.due(self.playbook.learning(self.options.node))
            if depth is None and not level:
                return None
            with self.playbook.ledger.claim(f"learning {self.options.node}") as mine:
                if not mine:  # somebody else is learning from these outcomes; what is left will be due again
                    return None
                if depth is not None:
                    return await self.ask_and_review(depth)
                self._follow_level()
                return None
        except AcefraudError as problem:
            given_up = Reviewed(node=self.options.node, whole=True, cases=0, frauds=0, declined=str(problem))
            if not isinstance(problem, StoreUnavailable):  # nobody knows what was written then, and it is due again
                with suppress(StoreError):  # the caller is told even if it cannot be written
                    self.playbook.record([given_up])
            return given_up

    def _follow_level(self) -> None:
        """Move the level of the calibration if the latest outcomes ask for it."""
        self.playbook.refresh()
        seen = self.playbook.seq
        moved = self._level_moved(self.cases.catch_up())
        if moved is not None:
            with suppress(StoreConflict):  # somebody changed the playbook: the level is followed from there
                self.playbook.record([moved], preconditions=[Precondition.no_edits_since(seen)])

    def _level_moved(self, cases: LabelledFacts) -> LevelMoved | None:
        lag = lag_of(self.playbook, cases, self.options.node)
        return level_moved(cases, self.playbook.snapshot(), self.options, lag)

    async def ask_and_review(self, depth: Depth) -> Reviewed | None:
        """Ask a model, if one reflects, and review the playbook with what it says."""
        self.cases.catch_up()
        admitted = await self.planner.ask(self.playbook.snapshot(), depth)
        return self.review(depth, admitted, forced=self.planner.waits)  # what a model was asked for is not dropped

    def review(self, depth: Depth, admitted: Admissions = (), *, forced: bool = False) -> Reviewed | None:
        """One review, in the ledger even if it had to be given up; None if it is no longer due."""
        try:
            return retry_on_conflict(partial(self._review, depth, admitted, forced=forced), ATTEMPTS)
        except StoreConflict as conflict:
            why = f"{len(admitted)} lessons {conflict}" if admitted else str(conflict)
            cases, node = self.cases.catch_up(), self.options.node
            given_up = Reviewed(node=node, whole=False, cases=len(cases), frauds=cases.frauds, declined=why)
            self.playbook.record([given_up])
            return given_up

    def _review(self, depth: Depth, admitted: Admissions, *, forced: bool) -> Reviewed | None:
        self.playbook.refresh()
        state = self.playbook.learning(self.options.node)
        due = depth if forced else self.planner.due(state)
        if due is None:  # another learner on this playbook was faster
            return None
        seen, snapshot, cases = self.playbook.seq, self.playbook.snapshot(), self.cases.catch_up()
        plan = self.planner.review(cases, snapshot, admitted, depth=due, turn=state.reviews)
        with self.playbook.unit_of_work(why=f"learnt from the latest {plan.cases:,} outcomes", since=seen):
            reviewed = apply(plan, self.playbook, self.curator, self.options)
            moved = self._level_moved(cases)
            if moved is not None:
                self.playbook.record([moved])
            self.playbook.record([reviewed])
        return reviewed

    def study(self, training: Training, admitted: Admissions, selector: HybridSelector) -> list[str]:
        """Learn from a whole labelled history. Returns the ids of the new bullets."""
        return retry_on_conflict(partial(self._study, training, admitted, selector), ATTEMPTS)

    def _study(self, training: Training, admitted: Admissions, selector: HybridSelector) -> list[str]:
        self.playbook.refresh()
        seen = self.playbook.seq
        plan = self.planner.study(training, self.playbook.snapshot(), admitted)
        with self.playbook.unit_of_work(why=f"learnt from {training.trained.rows:,} labelled cases", since=seen):
            training.remember(self.playbook)
            added = apply(plan, self.playbook, self.curator, self.options).added
            training.set_threshold(self.playbook, selector, self.options)
        return list(added)
