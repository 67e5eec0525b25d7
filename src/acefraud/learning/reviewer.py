"""Learns from outcomes and histories: asks a model if one reflects, plans a review, and writes it.

A review rests on the playbook as it was read. If somebody else changes the playbook meanwhile, it is planned again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from acefraud.core.arrays import FloatArray
from acefraud.core.calibration import RecentLevel
from acefraud.core.events import EventPayload, LevelHeld, LevelMoved, Reviewed, SilenceMatured
from acefraud.core.ledger import Precondition
from acefraud.curation.curator import Curator
from acefraud.errors import AcefraudError, StoreConflict, StoreError, StoreUnavailable
from acefraud.learning import level
from acefraud.learning.apply_review import apply
from acefraud.learning.credits import CreditedOutcome
from acefraud.learning.odds_calibration import FittedOdds
from acefraud.learning.options import LearnerOptions
from acefraud.learning.outcome_feeds import reaches_most
from acefraud.learning.pattern_change import LEAST_LEARNT, LOOK_BACK, LOOK_EVERY, pattern_change
from acefraud.learning.planners import Admissions, Depth, Planner
from acefraud.learning.remembered_cases import RememberedCases
from acefraud.learning.training import Training
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.change_log import what_happened
from acefraud.storage.changes import retry_on_conflict
from acefraud.storage.playbook import BulletPlaybook

FEWER_REPORTS = 5
"""Outcomes after which the level is estimated again if only frauds are reported."""
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
    announced: list[str] = field(default_factory=list)
    """What moved many verdicts, or was held, and was not told yet."""

    async def learn_if_due(self, credited: Sequence[CreditedOutcome]) -> Reviewed | None:
        """Learn from outcomes if it is time to. They are recorded by now, so errors are reported, not raised."""
        recorded = [one for one in credited if one.event is not None]
        if not recorded:
            return None
        new = [one for one in recorded if one.teaches]
        count = self.playbook.outcomes
        every = FEWER_REPORTS if self.playbook.feed(self.options.node).defers else level.LEVEL_EVERY
        follow_level = count // every > (count - len(recorded)) // every
        look = count // LOOK_EVERY > (count - len(recorded)) // LOOK_EVERY
        return await self._learn(new, follow_level=follow_level, look_for_change=look)

    async def learn_from_silence(self, matured: SilenceMatured) -> Reviewed | None:
        """Learn from decisions that count as legitimate by now, if it is time to."""
        self.announce(matured)
        return await self._learn((), follow_level=False)

    def announce(self, payload: EventPayload) -> None:
        """Keep what happened, in words, for whoever brought the outcomes."""
        self.announced.append(what_happened(payload))

    def take_announced(self) -> tuple[str, ...]:
        """What happened since this was asked last."""
        told, self.announced[:] = tuple(self.announced), []
        return told

    async def resume(self) -> Reviewed | None:
        """Learn what is due already, as after a process that ended before it came to it.

        That the level was followed is no event if it stayed. Following it again changes nothing: it is estimated from
        the cases alone.
        """
        look = self.ends_at_a_level and self.playbook.outcomes % LOOK_EVERY == 0
        return await self._learn((), follow_level=self.ends_at_a_level, look_for_change=look)

    @property
    def ends_at_a_level(self) -> bool:
        """Whether the level is to be followed after the outcomes so far."""
        return self.playbook.outcomes > 0 and self.playbook.outcomes % level.LEVEL_EVERY == 0

    @property
    def is_due(self) -> bool:
        """Whether something is to be learnt before the next outcome is heard."""
        return self.planner.due(self.playbook.learning(self.options.node)) is not None

    @property
    def room(self) -> int:
        """How many outcomes may be recorded, at most, before it is time to learn."""
        return 1 if self.planner.waits else level.LEVEL_EVERY - self.playbook.outcomes % level.LEVEL_EVERY

    def before_due(self, credited: Sequence[CreditedOutcome]) -> int:
        """How many of some outcomes to record before it is time to learn, as if they were heard one by one."""
        state = self.playbook.learning(self.options.node)
        for place, one in enumerate(credited, 1):
            if not one.teaches:
                continue
            state = state.with_cases(1, int(one.judged.outcome.is_fraud))
            has_odds = one.judged.decision is not None and one.judged.decision.odds is not None
            if has_odds or self.planner.due(state) is not None:
                return place
        return len(credited)

    async def _learn(
        self, new: Sequence[CreditedOutcome], *, follow_level: bool, look_for_change: bool = False
    ) -> Reviewed | None:
        try:
            self.odds.hear([(one.judged.decision, one.judged.outcome.is_fraud) for one in new])
            self.planner.note([one.judged for one in new])
            if self.planner.due(self.playbook.learning(self.options.node)) is None and not follow_level:
                return None
            with self.playbook.ledger.claim(f"learning {self.options.node}") as mine:
                if not mine:  # somebody else is learning from these outcomes; what is left will be due again
                    return None
                if look_for_change:
                    self._notice_change()
                depth = self.planner.due(self.playbook.learning(self.options.node))
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

    def _notice_change(self) -> None:
        """Let only the latest outcomes teach if they show that fraud looks different.

        Only a complete feed shows that: elsewhere it may be the way of hearing of frauds that changed.
        """
        self.playbook.refresh()
        node, seen, snapshot = self.options.node, self.playbook.seq, self.playbook.snapshot()
        calibration, since = snapshot.calibration(node), self.playbook.learning(node).since_change
        learnt = 0 if calibration is None else calibration.cases
        unlearnt = since is not None and learnt > since  # the latest change still waits for a review
        if unlearnt or learnt < LEAST_LEARNT or not self.playbook.feed(node).is_complete:
            return
        cases = self.cases.since_change()
        latest = cases.take(slice(max(0, len(cases) - LOOK_BACK), None))
        expected = level.log_odds_in(latest, snapshot, self.options)
        changed = None if expected is None else pattern_change(expected, latest.labels, latest.facts, node)
        if changed is not None and reaches_most(self.playbook, node):
            with suppress(StoreConflict):  # somebody changed the playbook: it is tested again later
                self.playbook.record([changed], preconditions=[Precondition.no_edits_since(seen)])
                self.announce(changed)

    def _follow_level(self) -> None:
        """Move the level of the calibration if the latest outcomes ask for it."""
        self.playbook.refresh()
        seen = self.playbook.seq
        step = self._level_step(self.cases.since_change())
        if step is not None:
            with suppress(StoreConflict):  # somebody changed the playbook: the level is followed from there
                self.playbook.record([step], preconditions=[Precondition.no_edits_since(seen)])
                self.announce(step)

    def _level_step(self, cases: LabelledFacts) -> LevelMoved | LevelHeld | None:
        """What to do about the level of fraud; nothing as long as it cannot be told how outcomes arrive."""
        node, found = self.options.node, self._level(cases)
        calibration = self.playbook.snapshot().calibration(node)
        if found is None or calibration is None:
            return None
        recent, expected = found
        fair = self.playbook.feed(node).is_complete and (recent is None or reaches_most(self.playbook, node))
        return level.level_change(recent, expected, calibration, fair=fair, node=node, outcomes=self.playbook.outcomes)

    def _level(self, cases: LabelledFacts) -> tuple[RecentLevel | None, FloatArray] | None:
        """Where outcomes have the level, and the log-odds that it is added to; None if that cannot be told.

        Labelled cases tell it where every decision gets an outcome, also by silence. Reports on decisions that are too
        young for that come first, if they tell anything.
        """
        snapshot, feed = self.playbook.snapshot(), self.playbook.feed(self.options.node)
        if snapshot.calibration(self.options.node) is None or not feed.follow_level:
            return None
        told = level.reported_level(self.playbook, snapshot, self.options) if feed.defers else None
        if (told and told[0]) or not (feed.is_complete or feed.silence_days):
            return told
        latest = cases.take(slice(max(0, len(cases) - level.LATEST), None))
        expected = level.log_odds_in(latest, snapshot, self.options)
        if expected is None:
            return None
        lag = level.lag_of(self.playbook, cases, self.options.node)
        return level.recent_level(expected, latest.labels, lag), expected

    async def ask_and_review(self, depth: Depth) -> Reviewed | None:
        """Ask a model, if one reflects, and review the playbook with what it says."""
        self.cases.since_change()
        admitted = await self.planner.ask(self.playbook.snapshot(), depth)
        return self.review(depth, admitted, forced=self.planner.waits)  # what a model was asked for is not dropped

    def review(self, depth: Depth, admitted: Admissions = (), *, forced: bool = False) -> Reviewed | None:
        """One review, in the ledger even if it had to be given up; None if it is no longer due."""
        try:
            return retry_on_conflict(partial(self._review, depth, admitted, forced=forced), ATTEMPTS)
        except StoreConflict as conflict:
            why = f"{len(admitted)} lessons {conflict}" if admitted else str(conflict)
            cases, node = self.cases.since_change(), self.options.node
            given_up = Reviewed(node=node, whole=False, cases=len(cases), frauds=cases.frauds, declined=why)
            self.playbook.record([given_up])
            return given_up

    def _review(self, depth: Depth, admitted: Admissions, *, forced: bool) -> Reviewed | None:
        self.playbook.refresh()
        state = self.playbook.learning(self.options.node)
        due = depth if forced else self.planner.due(state)
        if due is None:  # another learner on this playbook was faster
            return None
        seen, snapshot, cases = self.playbook.seq, self.playbook.snapshot(), self.cases.since_change()
        feed = self.playbook.feed(self.options.node)
        sees = feed.declines_pass or not feed.defers
        plan = self.planner.review(cases, snapshot, admitted, depth=due, turn=state.reviews, sees_declines=sees)
        with self.playbook.unit_of_work(why=f"learnt from the latest {plan.cases:,} outcomes", since=seen):
            reviewed = apply(plan, self.playbook, self.curator, self.options)
            if feed.is_complete:
                step = self._level_step(cases)
                steps = [] if step is None else [step]
            else:
                told = self._level(cases) if feed.silence_days else None
                steps = level.after_review(self.playbook, snapshot, cases, self.options, told)
            self.playbook.record([*steps, reviewed])
        for one in steps:
            self.announce(one)
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
