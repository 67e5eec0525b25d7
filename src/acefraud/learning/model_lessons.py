"""Lessons from a reflector on a model: it is shown wrong decisions, and its proposals are measured."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.calibration import Calibration
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Verdict
from acefraud.curation.curator import Curator
from acefraud.errors import BudgetExceeded, ModelError
from acefraud.learning.batch_scoring import score
from acefraud.learning.options import LearnerOptions
from acefraud.learning.reflection_policy import ReflectionPolicy, groups_of
from acefraud.learning.training import Training
from acefraud.roles.proposals import Admission, AdmissionStatus, Proposals, example_of, summaries, weightiest
from acefraud.roles.protocols import Example, FactSummary, Proposal
from acefraud.rules.scorecard import GENERAL
from acefraud.selection.hybrid import HybridSelector

REFUSALS_KEPT = 100


@dataclass
class Proposed:
    """What a reflector on a model was asked, and what became of its proposals."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Admission] = field(default_factory=list)
    stopped: str = ""
    """Why the calls ended early; "" unless a budget ran out."""

    def count(self, admission: Admission) -> None:
        """Count what became of one proposal."""
        self.counts[str(admission.status)] += 1
        if admission.status is AdmissionStatus.REFUSED and len(self.refused) < REFUSALS_KEPT:
            self.refused.append(admission)


class ModelLessons:
    """Shows a reflector on a model the cases that are worth a call, and measures its proposals.

    A failed call is counted and teaches nothing. If the budget runs out, no more calls are made, but the run goes on.
    """

    def __init__(self, proposals: Proposals, *, policy: ReflectionPolicy | None = None, seed: int = 0) -> None:
        self.policy = policy or ReflectionPolicy()
        self.proposed = Proposed()
        self.engine = proposals.engine
        self._proposals = proposals
        self._seed = seed
        self._waiting: dict[Verdict, list[Example]] = {Verdict.DECLINE: [], Verdict.APPROVE: []}
        self._most_waiting = self.policy.together if self.policy.every_case else 2 * self.policy.together
        """The most outcomes of one label that wait for a call."""

    # --- one outcome at a time ---

    def note(self, example: Example, key: str, probability: float, threshold: float) -> None:
        """Keep an outcome for the next call if it is worth one."""
        if self.policy.worth(probability, threshold, example.missed, self._draw(key)):
            waiting = self._waiting[example.correct]
            waiting.append(example)
            del waiting[: -self._most_waiting]

    async def lessons(self, known: Sequence[Bullet], *, all_waiting: bool = False) -> list[Admission]:
        """What the waiting outcomes teach, once there are enough of one label."""
        groups = []
        for waiting in self._waiting.values():
            if self._enough(waiting) or (all_waiting and any(example.missed for example in waiting)):
                groups.append(list(waiting))
                waiting.clear()
        return [admission for admission in await self._ask(groups, known) if admission is not None]

    @property
    def ready(self) -> bool:
        """Whether enough outcomes of one label wait for a call."""
        return any(self._enough(waiting) for waiting in self._waiting.values())

    def _enough(self, waiting: Sequence[Example]) -> bool:
        missed = sum(example.missed for example in waiting)
        return missed >= self.policy.together or len(waiting) >= self._most_waiting

    # --- a whole labelled history ---

    async def study(
        self, training: Training, before: Snapshot, selector: HybridSelector, options: LearnerOptions
    ) -> list[Admission]:
        """What a history teaches, in a few rounds: each shows the model what the bullets so far get wrong.

        The embedded engine decides the cases here in place of the agent, because that costs nothing.
        """
        cases, table, labels = training.cases, training.facts.facts, training.facts.labels
        self.engine.memory.add(training.facts)
        draws = np.array([self._draw(one) for one in training.facts.ids.tolist()])
        scoring, deterministic = LearnerOptions(n_bullets=options.n_bullets), selector.without_draws()
        bullets, calibration = before.for_node(options.node), before.calibration(options.node) or GENERAL
        found, fruitless = list[Admission](), set[int]()
        for round_ in range(self.policy.rounds):
            measured = {b.id: b for b in bullets if b.condition is not None}
            snapshot = Snapshot(bullets=measured, calibrations={scoring.node: calibration})
            scores = score(cases.transactions, snapshot, deterministic, scoring, known=table).probabilities
            groups = groups_of(
                scores, labels, calibration.threshold, table, draws=draws, policy=self.policy, without=fruitless
            )
            examples = [
                [
                    example_of(cases[row], Verdict.of(bool(scores[row] >= calibration.threshold)))
                    for row in (*group.rows, *group.contrast)
                ]
                for group in groups
            ]
            answers = await self._ask(examples, bullets)
            new = self._new([admission for admission in answers if admission is not None], bullets)
            for group, answer in zip(groups, answers, strict=True):
                if answer is None:
                    fruitless.update(group.rows)
            found.extend(new)
            training.progress((round_ + 1) / self.policy.rounds)
            if not new or self.proposed.stopped:
                break
            bullets += [admission.draft(number) for number, admission in enumerate(new, len(bullets))]
            bullets, calibration = self._fitted(bullets, calibration)
            draws = np.ones(len(cases))  # correct decisions are sampled in the first round only
        return found

    def recheck(self, bullet: Bullet) -> Admission | None:
        """What later cases say about a bullet that could not be measured when it was added; None if still unknown."""
        by_hand = bullet.source is Source.MANUAL  # keeps the words that a person wrote
        if by_hand or bullet.status is not Status.CANDIDATE or bullet.condition is None or bullet.verified:
            return None
        proposal = Proposal(content=bullet.content, argues=bullet.argues, condition=bullet.condition, model="a model")
        admission = self._proposals.measure(proposal)
        return None if admission.status is AdmissionStatus.UNVERIFIED else admission

    async def _ask(self, groups: Sequence[Sequence[Example]], known: Sequence[Bullet]) -> list[Admission | None]:
        """One call for each group, all at once; None for a group that taught nothing that holds up."""
        if self.proposed.stopped or not groups:
            return [None] * len(groups)
        facts, shown = summaries(self.engine.memory.cases.facts), weightiest(known)
        proposals = await asyncio.gather(*(self._propose(group, facts, shown) for group in groups))
        admissions = [None if proposal is None else self._proposals.measure(proposal) for proposal in proposals]
        for admission in admissions:
            if admission is not None:
                self.proposed.count(admission)
        return [None if one is None or one.status is AdmissionStatus.REFUSED else one for one in admissions]

    async def _propose(
        self, group: Sequence[Example], facts: Sequence[FactSummary], shown: Sequence[Bullet]
    ) -> Proposal | None:
        if self.proposed.stopped:
            return None
        self.proposed.counts["asked"] += 1
        try:
            proposal = await self._proposals.proposer.propose(group, facts, shown)
        except BudgetExceeded as spent:
            self.proposed.counts["asked"] -= 1
            self.proposed.stopped = str(spent)
            return None
        except ModelError:
            self.proposed.counts["failed"] += 1
            return None
        self.proposed.counts["nothing new"] += proposal is None
        return proposal

    def _new(self, admissions: Sequence[Admission], bullets: Sequence[Bullet]) -> list[Admission]:
        """The admissions that duplicate neither a bullet nor an earlier admission."""
        curator, existing, new = Curator(), list(bullets), list[Admission]()
        for admission in admissions:
            bullet = admission.draft(len(existing))
            same = curator.duplicate_of(bullet, existing)
            self.proposed.counts["said already"] += same is not None
            if same is None:
                existing.append(bullet)
                new.append(admission)
        return new

    def _fitted(self, bullets: Sequence[Bullet], calibration: Calibration) -> tuple[list[Bullet], Calibration]:
        refitted = self.engine.refit([bullet for bullet in bullets if bullet.condition is not None])
        if refitted is None:
            return list(bullets), calibration
        weighed = [b.model_copy(update={"weight": refitted.weights.get(b.id, b.weight)}) for b in bullets]
        return weighed, refitted.calibration.model_copy(update={"threshold": calibration.threshold})

    def _draw(self, key: str) -> float:
        """A number from 0 to 1 that belongs to a case, so that a run can be repeated."""
        return zlib.crc32(f"{self._seed} {key}".encode()) / 2**32
