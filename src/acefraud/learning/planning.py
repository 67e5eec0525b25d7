"""From what was heard to a plan for the playbook: one protocol, for the embedded engine and for a model that reflects.

Whoever reflects may have to be asked first, which takes time and may fail; a plan is then worked out at once, from
what was said, the remembered cases and the playbook as it stands. So it can be worked out anew, without asking again,
where somebody else changed the playbook meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

from acefraud.core.bullet import Source, Status
from acefraud.core.decision import ReasonKind
from acefraud.core.playbook import LearningState, Snapshot
from acefraud.core.transaction import Case, Verdict
from acefraud.curation.curator import NewBullet
from acefraud.embedded.case_memory import LabelledFacts
from acefraud.embedded.reflector import EmbeddedReflector
from acefraud.learning.credits import Hearing
from acefraud.learning.demotion import Demotion
from acefraud.learning.options import LearnerOptions
from acefraud.learning.proposing import ModelLessons, Proposed
from acefraud.learning.reflecting import ReflectionPolicy
from acefraud.learning.remembering import directions_of
from acefraud.learning.review import FitAfter, ReviewPlan, review, review_due, study, watch
from acefraud.learning.training import Training
from acefraud.roles.admission import Ruling, Standing
from acefraud.roles.reflector import Reflector
from acefraud.roles.shown_cases import example_of
from acefraud.selection.hybrid import HybridSelector

Progress = Callable[[float], None]
Said = tuple[Ruling, ...]
"""What a model said and the remembered cases do not refute; nothing where the embedded engine reflects."""


class Depth(StrEnum):
    """How much is learnt at once."""

    PART = "part"
    """What is pressing: a look at recent records, or a call about failures that have come together."""
    WHOLE = "whole"
    """All there is: a search through everything remembered, or a call about every failure that waits."""


class Planner(Protocol):
    """Whoever reflects, as a learner needs it."""

    @property
    def waits(self) -> bool:
        """Whether asking waits for a model."""
        ...

    @property
    def proposed(self) -> Proposed | None:
        """What a model was asked so far, and what became of it; None where none is asked."""
        ...

    def note(self, hearings: Sequence[Hearing]) -> None:
        """Take notice of outcomes. They are remembered elsewhere."""
        ...

    def due(self, state: LearningState) -> Depth | None:
        """How much is to be learnt now; None for nothing."""
        ...

    async def ask(self, snapshot: Snapshot, depth: Depth) -> Said:
        """What there is to say of the outcomes noted. A failed call says nothing."""
        ...

    def review(self, cases: LabelledFacts, snapshot: Snapshot, said: Said, *, depth: Depth, turn: int) -> ReviewPlan:
        """What should change, given the remembered cases. `turn` numbers the reviews of a playbook."""
        ...

    async def ask_about(
        self, training: Training, snapshot: Snapshot, selector: HybridSelector, progress: Progress
    ) -> Said:
        """What there is to say of a whole labelled history."""
        ...

    def study(self, training: Training, snapshot: Snapshot, said: Said, progress: Progress) -> ReviewPlan:
        """What should change, given a whole labelled history."""
        ...


def planner_for(reflector: Reflector, options: LearnerOptions, policy: ReflectionPolicy | None = None) -> Planner:
    """The planner of a learner with this reflector."""
    if reflector.proposals is None:
        return EmbeddedPlanner(reflector.engine, options)
    return ModelPlanner(ModelLessons(reflector.proposals, policy=policy, seed=reflector.engine.seed), options)


class EmbeddedPlanner:
    """Plans what the embedded engine finds. It has to ask nobody."""

    waits = False
    proposed = None

    def __init__(self, engine: EmbeddedReflector, options: LearnerOptions) -> None:
        self._engine = engine
        self._options = options

    def note(self, hearings: Sequence[Hearing]) -> None:
        """Nothing to do: what is remembered is all it looks at."""

    def due(self, state: LearningState) -> Depth | None:
        """A review where enough was heard since the latest; a look at recent records now and then."""
        if review_due(state, self._options, self._engine.options.induction.least_cases):
            return Depth.WHOLE
        return Depth.PART if state.unwatched >= self._options.watch_every else None

    async def ask(self, snapshot: Snapshot, depth: Depth) -> Said:  # noqa: ARG002
        """Nothing."""
        return ()

    def review(self, cases: LabelledFacts, snapshot: Snapshot, said: Said, *, depth: Depth, turn: int) -> ReviewPlan:  # noqa: ARG002
        """Watch, and where it is whole search for new bullets and fit all weights together."""
        if depth is Depth.PART:
            return watch(cases, snapshot, self._options)
        return review(cases, snapshot, self._engine, self._options, turn=turn)

    async def ask_about(
        self,
        training: Training,  # noqa: ARG002
        snapshot: Snapshot,  # noqa: ARG002
        selector: HybridSelector,  # noqa: ARG002
        progress: Progress,  # noqa: ARG002
    ) -> Said:
        """Nothing."""
        return ()

    def study(self, training: Training, snapshot: Snapshot, said: Said, progress: Progress) -> ReviewPlan:  # noqa: ARG002
        """Search the history thoroughly, and fit all weights together."""
        rising, falling = directions_of(training.trained.mapping)
        return study(
            training.facts,
            snapshot,
            self._engine,
            self._options,
            rising=rising,
            falling=falling,
            progress=progress,
        )


class ModelPlanner:
    """Plans what a model says of failures, as far as it is borne out. It searches for nothing itself."""

    waits = True

    def __init__(self, lessons: ModelLessons, options: LearnerOptions) -> None:
        self._lessons = lessons
        self._options = options

    @property
    def proposed(self) -> Proposed:
        """What the model was asked so far, and what became of it."""
        return self._lessons.so_far

    def note(self, hearings: Sequence[Hearing]) -> None:
        """Keep outcomes of decisions for the next call, where they are worth it."""
        for hearing in hearings:
            decision, subject = hearing.decision, hearing.subject
            if decision is not None and subject is not None and decision.verdict is not Verdict.REVIEW:
                said = next((reason.text for reason in decision.reasons if reason.kind is ReasonKind.MODEL), "")
                case = Case(transaction=subject, is_fraud=hearing.outcome.is_fraud)
                example = example_of(case, decision.verdict, said)
                self._lessons.note(example, subject.id, decision.probability, decision.threshold)

    def due(self, state: LearningState) -> Depth | None:
        """All that waits after so many outcomes; before that, failures of which enough have come together."""
        if state.unwatched >= self._options.reflect_every:
            return Depth.WHOLE
        return Depth.PART if self._lessons.ready else None

    async def ask(self, snapshot: Snapshot, depth: Depth) -> Said:
        """What the model says of the outcomes that wait for it."""
        known = snapshot.for_node(self._options.node)
        return tuple(await self._lessons.lessons(known, all_waiting=depth is Depth.WHOLE))

    def review(self, cases: LabelledFacts, snapshot: Snapshot, said: Said, *, depth: Depth, turn: int) -> ReviewPlan:  # noqa: ARG002
        """Add what the model said, measure what could not be measured before, watch, and fit all weights anew."""
        return self._planned(watch(cases, snapshot, self._options), snapshot, said, cases, Source.ONLINE)

    async def ask_about(
        self, training: Training, snapshot: Snapshot, selector: HybridSelector, progress: Progress
    ) -> Said:
        """What the model says of the cases that the bullets so far get wrong, round after round."""
        node = self._options.node
        found = await self._lessons.study(
            training.cases,
            training.facts,
            snapshot.for_node(node),
            snapshot.calibration(node),
            selector=selector,
            wanted=self._options.n_bullets,
            progress=progress,
        )
        return tuple(found)

    def study(self, training: Training, snapshot: Snapshot, said: Said, progress: Progress) -> ReviewPlan:  # noqa: ARG002
        """Add what the model said, measure what could not be measured before, and fit all weights anew."""
        plan = ReviewPlan(len(training.facts), training.facts.frauds)
        return self._planned(plan, snapshot, said, self._lessons.engine.memory.cases, Source.OFFLINE)

    def _planned(
        self, plan: ReviewPlan, snapshot: Snapshot, said: Said, cases: LabelledFacts, source: Source
    ) -> ReviewPlan:
        moves, renewed = dict(plan.moves), dict[str, NewBullet]()
        for bullet in snapshot.for_node(self._options.node):
            ruling = self._lessons.recheck(bullet)
            if ruling is None:
                continue
            refused = ruling.evidence is None or ruling.standing is Standing.REFUSED
            moves[bullet.id] = Demotion(Status.RETIRED if refused else Status.ACTIVE, ruling.reason)
            if not refused:
                words = ruling.new_bullet(source)
                renewed[bullet.id] = replace(words, problem_types=bullet.problem_types, why=ruling.reason)
        return replace(
            plan,
            moves=moves,
            renewed=renewed,
            new=tuple(ruling.new_bullet(source) for ruling in said),
            fit_after=FitAfter(self._lessons.engine, cases),
        )
