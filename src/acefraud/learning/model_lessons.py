"""Lessons from a reflector on a model: it is shown wrong decisions, and its proposals are measured."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.calibration import Calibration
from acefraud.core.decision import ReasonKind
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, Verdict
from acefraud.curation.curator import Curator
from acefraud.engine.options import LearnerOptions
from acefraud.engine.score import score
from acefraud.errors import BudgetExceeded, ConfigurationError, ModelError
from acefraud.learning.credits import HeardOutcome
from acefraud.learning.training import Training
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.roles.proposals import Admission, AdmissionStatus, Proposals, example_of, summaries, weightiest
from acefraud.roles.protocols import Example, FactSummary, Proposal
from acefraud.rules.scorecard import GENERAL
from acefraud.selection.hybrid import HybridSelector
from acefraud.support.arguments import check_share, check_type, check_whole
from acefraud.support.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionPolicy:
    """Which cases are worth a call. The plain flow of the ACE system is `ReflectionPolicy.plain()`.

    >>> policy = ReflectionPolicy(near_miss=0.05)
    >>> policy.worth(probability=0.9, threshold=0.5, missed=False, draw=0.5)
    False
    >>> policy.worth(probability=0.47, threshold=0.5, missed=False, draw=0.5)
    True
    """

    near_miss: float = 0.1
    """A correct decision whose probability is this close to the threshold is shown too."""
    success_share: float = 0.05
    """The share of the other correct decisions that is shown."""
    together: int = 3
    """Similar cases in one call."""
    contrast: int = 2
    """Similar cases with the opposite label that are shown beside them."""
    rounds: int = 3
    """How often to go through a labelled history; what is still wrong is shown again."""
    most_share: float = 0.4
    """The most calls for a labelled history, as a share of its cases."""
    every_case: bool = False
    """Whether every case is worth a call."""

    def __post_init__(self) -> None:
        check_share("near_miss", self.near_miss)
        check_share("success_share", self.success_share)
        check_type("most_share", self.most_share, (int, float), "a number above 0", ConfigurationError)
        if self.most_share <= 0:
            raise ConfigurationError(f"most_share: expected a number above 0, got {self.most_share}")
        for name, least in (("together", 1), ("contrast", 0), ("rounds", 1)):
            check_whole(name, getattr(self, name), least=least)

    @classmethod
    def plain(cls) -> ReflectionPolicy:
        """The policy of one call for every case, as in the ACE system.

        >>> ReflectionPolicy.plain().worth(probability=0.99, threshold=0.5, missed=False, draw=0.5)
        True
        """
        return cls(together=1, contrast=0, rounds=1, most_share=1.0, every_case=True)

    def worth(self, probability: float, threshold: float, missed: bool, draw: float) -> bool:
        """Whether to show a case to the reflector. `draw` is a random number from 0 to 1 that belongs to the case.

        >>> ReflectionPolicy().worth(probability=0.9, threshold=0.5, missed=True, draw=0.5)
        True
        """
        near = abs(probability - threshold) <= self.near_miss
        return self.every_case or missed or near or draw < self.success_share


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of a history that go into one call."""

    rows: tuple[int, ...]
    contrast: tuple[int, ...]
    """Similar rows with the opposite label."""


def groups_of(
    scores: FloatArray,
    labels: BoolArray,
    threshold: float,
    table: FactTable,
    *,
    draws: FloatArray,
    policy: ReflectionPolicy,
    without: Collection[int] = (),
) -> list[Group]:
    """The cases worth a call, in groups of similar cases with one label, those with the most wrong decisions first."""
    missed = (scores >= threshold) != labels
    worth = [
        row
        for row in range(len(labels))
        if row not in without and policy.worth(float(scores[row]), threshold, bool(missed[row]), float(draws[row]))
    ]
    vectors = case_vectors(table)
    found = []
    for label in (True, False):
        mine = sorted((row for row in worth if labels[row] == label), key=lambda row: (not missed[row], row))
        others = [row for row in range(len(labels)) if labels[row] != label]
        for rows in similar_groups(mine, vectors, policy.together):
            found.append(Group(tuple(rows), tuple(nearest_rows(rows, others, vectors, policy.contrast))))
    most = max(1, int(policy.most_share * len(labels) / policy.rounds))
    return sorted(found, key=lambda group: -sum(bool(missed[row]) for row in group.rows))[:most]


def case_vectors(table: FactTable) -> FloatArray:
    """Each case as a vector: numbers by rank, flags and the most common words as 0 or 1, unknown values as 0.5."""
    columns = table.columns
    parts: list[FloatArray] = []
    for name in sorted(columns.numbers):
        values = columns.numbers[name]
        known = ~np.isnan(values)
        ranked = np.full(len(values), 0.5)
        if known.any():
            _, rank = np.unique(values[known], return_inverse=True)
            ranked[known] = rank / max(1, int(rank.max()))
        parts.append(ranked)
    for name in sorted(columns.flags):
        flags = columns.flags[name].astype(np.float64)
        parts.append(np.where(flags < 0, 0.5, flags))
    for name in sorted(columns.categories):
        codes, words = columns.categories[name]
        common = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(words)), kind="stable")[:5]
        parts.extend((codes == code).astype(np.float64) for code in common)
    return np.column_stack(parts) if parts else np.zeros((len(table), 0))


def similar_groups(rows: Sequence[int], vectors: FloatArray, size: int) -> list[list[int]]:
    """The rows in groups of at most `size`, each the nearest to the first row that is left.

    >>> similar_groups([0, 1, 2, 3], np.array([[0.0], [1.0], [0.1], [0.9]]), 2)
    [[0, 2], [1, 3]]
    """
    left = list(rows)
    groups = []
    while left:
        distance = _squared_distances(vectors[left], vectors[left[0]])
        nearest = sorted(np.argsort(distance, kind="stable")[:size].tolist(), key=lambda at: (at != 0, distance[at]))
        groups.append([left[at] for at in nearest])
        left = [row for at, row in enumerate(left) if at not in nearest]
    return groups


def nearest_rows(rows: Sequence[int], others: Sequence[int], vectors: FloatArray, wanted: int) -> list[int]:
    """The rows among `others` that are nearest to the mean of `rows`."""
    if not others or wanted <= 0:
        return []
    distance = _squared_distances(vectors[list(others)], vectors[list(rows)].mean(axis=0))
    return [others[at] for at in np.argsort(distance, kind="stable")[:wanted]]


def _squared_distances(vectors: FloatArray, centre: FloatArray) -> FloatArray:
    squared: FloatArray = np.square(vectors - centre).sum(axis=1)
    return squared


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

    def hear(self, outcomes: Sequence[HeardOutcome]) -> None:
        """Keep outcomes for the next call if they are worth one, and were neither undecided nor left to a person."""
        for heard in outcomes:
            decision, about = heard.decision, heard.transaction
            if decision is not None and about is not None and decision.verdict is not Verdict.REVIEW:
                said = next((reason.text for reason in decision.reasons if reason.kind is ReasonKind.MODEL), "")
                case = Case(transaction=about, is_fraud=heard.outcome.is_fraud)
                example = example_of(case, decision.verdict, said)
                self.keep(example, about.id, decision.probability, decision.threshold)

    def keep(self, example: Example, key: str, probability: float, threshold: float) -> None:
        """Keep an example for the next call if it is worth one."""
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
        cases, known = training.cases, training.facts
        assert isinstance(known, LabelledFacts)
        table, labels = known.facts, known.labels
        self.engine.memory.add(known)
        draws = np.array([self._draw(name) for name in known.ids.tolist()])
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
        return [None if each is None or each.status is AdmissionStatus.REFUSED else each for each in admissions]

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
