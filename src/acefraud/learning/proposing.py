"""Lessons from a reflector on a model: it is shown what went wrong, and what it says is measured before it counts."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Example, FactSummary, Proposal
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import Verdict
from acefraud.core.transactions import Cases
from acefraud.curation.curator import Curator
from acefraud.embedded.case_memory import LabelledFacts
from acefraud.embedded.scorecard import GENERAL
from acefraud.errors import BudgetExceeded, ModelError
from acefraud.learning.batch_scoring import score
from acefraud.learning.options import LearnerOptions
from acefraud.learning.reflecting import Column, Group, ReflectionPolicy, groups_of
from acefraud.roles.admission import Ruling, Standing
from acefraud.roles.proposals import Proposals, draft, weightiest
from acefraud.roles.shown_cases import example_of, summaries
from acefraud.selection.hybrid import HybridSelector

REFUSALS_KEPT = 100


@dataclass
class Proposed:
    """What a reflector on a model was asked, and what became of what it said."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Ruling] = field(default_factory=list)
    stopped: str = ""
    """Why no more was asked, where a budget ended it."""

    def heard(self, ruling: Ruling) -> None:
        """Count what became of one proposal."""
        self.counts[str(ruling.standing)] += 1
        if ruling.standing is Standing.REFUSED and len(self.refused) < REFUSALS_KEPT:
            self.refused.append(ruling)


class ModelLessons:
    """Asks a reflector on a model about cases that are worth it, and measures what it proposes.

    A failed call is counted and teaches nothing; a budget that is used up ends the asking, not the run.
    """

    def __init__(self, proposals: Proposals, *, policy: ReflectionPolicy | None = None, seed: int = 0) -> None:
        self.policy = policy or ReflectionPolicy()
        self.so_far = Proposed()
        self.engine = proposals.engine
        self._proposals = proposals
        self._seed = seed
        self._waiting: dict[Verdict, list[Example]] = {Verdict.DECLINE: [], Verdict.APPROVE: []}

    # --- one outcome after another ---

    def note(self, example: Example, key: str, probability: float, threshold: float) -> None:
        """Keep an outcome for the next call, where it is worth it."""
        if self.policy.worth(probability, threshold, example.missed, self._draw(key)):
            waiting = self._waiting[example.correct]
            waiting.append(example)
            del waiting[: -self._most_waiting]  # nobody may come to fetch them for long

    async def lessons(self, known: Sequence[Bullet], *, all_waiting: bool = False) -> list[Ruling]:
        """What the outcomes kept so far teach, once enough of one kind have come together."""
        groups = []
        for waiting in self._waiting.values():
            if self._enough(waiting) or (all_waiting and any(example.missed for example in waiting)):
                groups.append(list(waiting))
                waiting.clear()
        return [ruling for ruling in await self._ask(groups, known) if ruling is not None]

    @property
    def ready(self) -> bool:
        """Whether enough outcomes of one kind have come together for a call."""
        return any(self._enough(waiting) for waiting in self._waiting.values())

    def _enough(self, waiting: Sequence[Example]) -> bool:
        missed = sum(example.missed for example in waiting)
        return missed >= self.policy.together or len(waiting) >= self._most_waiting

    @property
    def _most_waiting(self) -> int:
        """Outcomes of one truth that wait for a call at most."""
        return self.policy.together if self.policy.every_case else 2 * self.policy.together

    # --- a whole labelled history ---

    async def study(
        self,
        cases: Cases,
        facts: LabelledFacts,
        known: Sequence[Bullet],
        calibration: Calibration | None,
        *,
        selector: HybridSelector,
        wanted: int,
        progress: Callable[[float], None] = lambda _: None,
    ) -> list[Ruling]:
        """What a history teaches, in a few rounds: each looks at what the bullets so far still get wrong.

        The embedded engine stands in for the agent here: it says at no cost which cases the bullets leave unexplained.
        """
        self.engine.memory.add(facts)
        table, labels = facts.facts, facts.labels
        draws = np.array([self._draw(one) for one in facts.ids.tolist()])
        options = LearnerOptions(n_bullets=wanted)
        plain = selector.without_draws()
        bullets, frame, found = list(known), calibration or GENERAL, list[Ruling]()
        fruitless: set[int] = set()
        for round_ in range(self.policy.rounds):
            measured = [b for b in bullets if b.condition is not None]
            snapshot = Snapshot(bullets={b.id: b for b in measured}, calibrations={options.node: frame})
            said = score(cases.transactions, snapshot, plain, options, known=table).probabilities
            groups = groups_of(said, labels, frame.threshold, table, draws=draws, policy=self.policy, without=fruitless)
            examples = [self._examples(group, cases, said, frame.threshold) for group in groups]
            asked = await self._ask(examples, bullets)
            rulings = self._new([ruling for ruling in asked if ruling is not None], bullets)
            fruitless |= {
                p for group, ruling in zip(groups, asked, strict=True) if ruling is None for p in group.places
            }
            found.extend(rulings)
            progress((round_ + 1) / self.policy.rounds)
            if not rulings or self.so_far.stopped:
                break
            bullets += [draft(ruling, place) for place, ruling in enumerate(rulings, len(bullets))]
            bullets, frame = self._fitted(bullets, frame)
            draws = np.ones(len(cases))  # successes are sampled once
        return found

    def recheck(self, bullet: Bullet) -> Ruling | None:
        """What the cases heard since say of a bullet that could not be measured when it came in."""
        by_hand = bullet.source is Source.MANUAL  # its words are a person's
        if by_hand or bullet.status is not Status.CANDIDATE or bullet.condition is None or bullet.verified:
            return None
        proposal = Proposal(content=bullet.content, argues=bullet.argues, condition=bullet.condition, model="a model")
        ruling = self._proposals.measured(proposal)
        return None if ruling.standing is Standing.UNVERIFIED else ruling

    async def _ask(self, groups: Sequence[Sequence[Example]], known: Sequence[Bullet]) -> list[Ruling | None]:
        """One call for each group, all at once; None where it taught nothing, or nothing that holds up."""
        if self.so_far.stopped or not groups:
            return [None] * len(groups)
        facts, shown = summaries(self.engine.memory.cases.facts), weightiest(known)
        replies = await asyncio.gather(*(self._propose(group, facts, shown) for group in groups))
        rulings = [None if proposal is None else self._proposals.measured(proposal) for proposal in replies]
        for ruling in rulings:
            if ruling is not None:
                self.so_far.heard(ruling)
        return [None if ruling is None or ruling.standing is Standing.REFUSED else ruling for ruling in rulings]

    async def _propose(
        self, group: Sequence[Example], facts: Sequence[FactSummary], shown: Sequence[Bullet]
    ) -> Proposal | None:
        if self.so_far.stopped:
            return None
        self.so_far.counts["asked"] += 1
        try:
            proposal = await self._proposals.proposer.propose(group, facts, shown)
        except BudgetExceeded as spent:
            self.so_far.counts["asked"] -= 1
            self.so_far.stopped = str(spent)
            return None
        except ModelError:
            self.so_far.counts["failed"] += 1
            return None
        self.so_far.counts["nothing new"] += proposal is None
        return proposal

    def _new(self, rulings: Sequence[Ruling], bullets: Sequence[Bullet]) -> list[Ruling]:
        """Those that no bullet says already, nor one before it."""
        curator, said, new = Curator(), list(bullets), list[Ruling]()
        for ruling in rulings:
            bullet = draft(ruling, len(said))
            same = curator.duplicate_of(bullet.content, said, condition=bullet.condition, argues=bullet.argues)
            self.so_far.counts["said already"] += same is not None
            if same is None:
                said.append(bullet)
                new.append(ruling)
        return new

    def _fitted(self, bullets: Sequence[Bullet], frame: Calibration) -> tuple[list[Bullet], Calibration]:
        refitted = self.engine.refit([bullet for bullet in bullets if bullet.condition is not None])
        if refitted is None:
            return list(bullets), frame
        weighed = [b.model_copy(update={"weight": refitted.weights.get(b.id, b.weight)}) for b in bullets]
        return weighed, refitted.calibration.model_copy(update={"threshold": frame.threshold})

    def _examples(self, group: Group, cases: Cases, said: Column, threshold: float) -> list[Example]:
        return [
            example_of(cases[place], Verdict.of(bool(said[place] >= threshold)))
            for place in (*group.places, *group.beside)
        ]

    def _draw(self, key: str) -> float:
        """A number between 0 and 1 that belongs to a case, so that a run can be repeated."""
        return zlib.crc32(f"{self._seed} {key}".encode()) / 2**32
