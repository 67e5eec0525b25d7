"""From outcomes to a plan for the playbook, with the embedded engine or with a model that reflects.

A model must be asked first, which takes time and may fail. The plan itself is then computed from what the model said,
the remembered cases and the current playbook. If the playbook changes meanwhile, the plan is computed again without
asking again.
"""

# ruff: noqa: ARG002  # each planner looks at a part of what it is given

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from acefraud.core.bullet import NewBullet, Source, Status
from acefraud.core.decision import ReasonKind
from acefraud.core.playbook import LearningState, Snapshot
from acefraud.core.transaction import Case, Verdict
from acefraud.engine.entity_memory import directions_of
from acefraud.engine.options import LearnerOptions
from acefraud.learning.credits import JudgedOutcome
from acefraud.learning.demotion import StatusMove
from acefraud.learning.model_lessons import ModelLessons, Proposed, ReflectionPolicy
from acefraud.learning.review import DeferredFit, ReviewPlan, review, review_due, watch
from acefraud.learning.training import Training
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.embedded.reflector import EmbeddedReflector
from acefraud.roles.proposals import Admission, AdmissionStatus, example_of
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector

Admissions = tuple[Admission, ...]
"""What a model proposed and the remembered cases do not refute; empty if the embedded engine reflects."""


class Depth(StrEnum):
    """How much is learnt at once."""

    PART = "part"
    """What is urgent: watching recent records, or a call about failures of one kind."""
    WHOLE = "whole"
    """Everything: a search through all remembered cases, or a call about every waiting failure."""


def planner_for(reflector: Reflector, options: LearnerOptions, policy: ReflectionPolicy | None = None) -> Planner:
    """The planner of a learner with this reflector."""
    if reflector.proposals is None:
        return Planner(reflector.engine, options)
    lessons = ModelLessons(reflector.proposals, policy=policy, seed=reflector.engine.seed)
    return ModelPlanner(lessons, options)


class Planner:
    """Plans with the rules that the embedded engine finds. There is nobody to ask."""

    waits = False
    """Whether asking waits for a model."""
    proposed: Proposed | None = None
    """What a model was asked so far and what became of it; None if no model reflects."""

    def __init__(self, engine: EmbeddedReflector, options: LearnerOptions) -> None:
        self._engine = engine
        self._options = options

    def note(self, outcomes: Sequence[JudgedOutcome]) -> None:
        """Note outcomes to ask about. The embedded engine looks at the remembered cases instead."""

    def due(self, state: LearningState) -> Depth | None:
        """How much to learn now: a review after enough outcomes, a look at recent records in between."""
        if review_due(state, self._options, self._engine.options.induction.least_cases):
            return Depth.WHOLE
        return Depth.PART if state.unwatched >= self._options.watch_every else None

    async def ask(self, snapshot: Snapshot, depth: Depth) -> Admissions:
        """What a model says of the outcomes noted. A failed call says nothing."""
        return ()

    async def ask_about(self, training: Training, snapshot: Snapshot, selector: HybridSelector) -> Admissions:
        """What a model says of a whole labelled history."""
        return ()

    def review(
        self,
        cases: LabelledFacts,
        snapshot: Snapshot,
        admitted: Admissions,
        *,
        depth: Depth,
        turn: int,
        sees_declines: bool = True,
    ) -> ReviewPlan:
        """What should change, given the remembered cases, and whether declined transactions are among them.

        `turn` numbers the reviews of a playbook.
        """
        if depth is Depth.PART:
            return watch(cases, snapshot, self._options, sees_declines=sees_declines)
        return review(cases, snapshot, self._engine, self._options, turn=turn, sees_declines=sees_declines)

    def study(self, training: Training, snapshot: Snapshot, admitted: Admissions) -> ReviewPlan:
        """What should change, given a whole labelled history."""
        rising, falling = directions_of(training.trained.mapping)
        return review(
            training.facts,
            snapshot,
            self._engine,
            self._options,
            rising=rising,
            falling=falling,
            progress=training.progress,
        )


class ModelPlanner(Planner):
    """Plans with what a model says of failures, once it is measured. It does not search for rules itself."""

    waits = True

    def __init__(self, lessons: ModelLessons, options: LearnerOptions) -> None:
        super().__init__(lessons.engine, options)
        self._lessons = lessons
        self.proposed = lessons.proposed

    def note(self, outcomes: Sequence[JudgedOutcome]) -> None:
        for known in outcomes:
            decision, subject = known.decision, known.transaction
            if decision is not None and subject is not None and decision.verdict is not Verdict.REVIEW:
                said = next((reason.text for reason in decision.reasons if reason.kind is ReasonKind.MODEL), "")
                case = Case(transaction=subject, is_fraud=known.outcome.is_fraud)
                example = example_of(case, decision.verdict, said)
                self._lessons.note(example, subject.id, decision.probability, decision.threshold)

    def due(self, state: LearningState) -> Depth | None:
        """How much to ask about now: everything after so many outcomes, failures of one kind once there are enough."""
        if state.unwatched >= self._options.reflect_every:
            return Depth.WHOLE
        return Depth.PART if self._lessons.ready else None

    async def ask(self, snapshot: Snapshot, depth: Depth) -> Admissions:
        known = snapshot.for_node(self._options.node)
        return tuple(await self._lessons.lessons(known, all_waiting=depth is Depth.WHOLE))

    async def ask_about(self, training: Training, snapshot: Snapshot, selector: HybridSelector) -> Admissions:
        return tuple(await self._lessons.study(training, snapshot, selector, self._options))

    def review(
        self,
        cases: LabelledFacts,
        snapshot: Snapshot,
        admitted: Admissions,
        *,
        depth: Depth,
        turn: int,
        sees_declines: bool = True,
    ) -> ReviewPlan:
        watched = watch(cases, snapshot, self._options, sees_declines=sees_declines)
        return self._planned(watched, snapshot, admitted, cases, Source.ONLINE)

    def study(self, training: Training, snapshot: Snapshot, admitted: Admissions) -> ReviewPlan:
        plan = ReviewPlan(len(training.facts), training.facts.frauds)
        return self._planned(plan, snapshot, admitted, self._engine.memory.cases, Source.OFFLINE)

    def _planned(
        self, plan: ReviewPlan, snapshot: Snapshot, admitted: Admissions, cases: LabelledFacts, source: Source
    ) -> ReviewPlan:
        """Add what the model said, measure what could not be measured before, and fit all weights again."""
        moves, renewed = dict(plan.moves), dict[str, NewBullet]()
        for bullet in snapshot.for_node(self._options.node):
            ruling = self._lessons.recheck(bullet)
            if ruling is None:
                continue
            refused = ruling.evidence is None or ruling.status is AdmissionStatus.REFUSED
            moves[bullet.id] = StatusMove(Status.RETIRED if refused else Status.ACTIVE, ruling.reason)
            if not refused:
                measured = ruling.new_bullet(source)
                renewed[bullet.id] = replace(measured, problem_types=bullet.problem_types, why=ruling.reason)
        return replace(
            plan,
            moves=moves,
            renewed=renewed,
            new=tuple(ruling.new_bullet(source) for ruling in admitted),
            deferred_fit=DeferredFit(self._engine, cases),
        )
