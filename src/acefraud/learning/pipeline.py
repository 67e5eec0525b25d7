"""The three modes: no bullets at all, bullets learnt beforehand and on the way, bullets learnt on the way only."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from acefraud.core.decision import Decision
from acefraud.core.roles import Agent, Embedder, Judge, Proposes
from acefraud.core.transaction import Case, Verdict
from acefraud.curation.curator import Curator
from acefraud.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.embedded.reflector import Reflector, ReflectorOptions
from acefraud.learning.learner import Learner
from acefraud.learning.options import LearnerOptions
from acefraud.learning.proposing import ModelLessons, Proposed
from acefraud.learning.reflecting import ReflectionPolicy
from acefraud.learning.remembering import awaited, memory_for
from acefraud.learning.stream import stream
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook import BulletPlaybook


class Mode(StrEnum):
    """How a run learns."""

    VANILLA = "vanilla"
    ONLINE_ONLY = "online_only"
    OFFLINE_ONLINE = "offline_online"


@dataclass(frozen=True, slots=True)
class ModeRun:
    """What one mode decided on a stream of cases, and what it knew at the end."""

    mode: Mode
    declined: npt.NDArray[np.bool_]
    decided: npt.NDArray[np.bool_]
    """False where it was left to a person."""
    probabilities: npt.NDArray[np.float64]
    labels: npt.NDArray[np.bool_]
    bullets: int
    cited: float
    """Bullets among the reasons, on average over the decisions."""
    seconds: float
    playbook: BulletPlaybook = field(repr=False)
    fallbacks: int = 0
    """Decisions that a model failed to make."""
    proposed: Proposed | None = None
    """What a reflector on a model said, where one was asked."""


class TrainingPipeline:
    """Runs the modes with the same agent, judge and options, each on a playbook of its own.

    >>> import asyncio
    >>> from acefraud.datasets import load_dataset
    >>> data = load_dataset("complex_fraud_detection")
    >>> run = asyncio.run(TrainingPipeline().run(Mode.VANILLA, data.train, data.test[:20]))
    >>> len(run.declined), run.bullets
    (20, 0)
    """

    def __init__(
        self,
        *,
        agent: Agent | None = None,
        judge: Judge | None = None,
        options: LearnerOptions | None = None,
        reflector_options: ReflectorOptions | None = None,
        proposer: Proposes | None = None,
        policy: ReflectionPolicy | None = None,
        embedder: str | Embedder = DEFAULT_EMBEDDER,
        scale_odds: int = 0,
        seed: int = 0,
    ) -> None:
        """`scale_odds`: on how many training cases the odds of a model's verdict tokens are fitted, in every mode."""
        self._agent = agent
        self._judge = judge
        self._proposer = proposer
        self._policy = policy
        self._embedder = embedder
        self._scale_odds = scale_odds
        self._options = options
        self._reflector_options = reflector_options
        self.seed = seed

    def learner(self, playbook: BulletPlaybook) -> Learner:
        """A learner on this playbook, as all modes use it."""
        reflector = Reflector(self._reflector_options, seed=self.seed)
        lessons = None
        if self._proposer is not None:
            lessons = ModelLessons(self._proposer, reflector, policy=self._policy, seed=self.seed)
        return Learner(
            playbook,
            agent=self._agent,
            judge=self._judge,
            reflector=reflector,
            curator=Curator(),
            selector=HybridSelector(embedding_model=self._embedder, seed=self.seed),
            lessons=lessons,
            options=self._options,
        )

    async def run(
        self,
        mode: Mode,
        train: Sequence[Case],
        test: Sequence[Case],
        *,
        playbook: BulletPlaybook | None = None,
        mapping: str = "",
        progress: Callable[[float], None] = lambda _: None,
    ) -> ModeRun:
        """Run one mode over the test cases. Only offline + online is shown the labels of the training cases.

        Where the mapping asks for a history, all modes remember the training transactions, so that they decide on the
        same facts.
        """
        started = time.perf_counter()
        book = BulletPlaybook() if playbook is None else playbook
        learner = self.learner(book)
        memory = memory_for(mapping)
        if memory is not None:
            train, test = awaited(train, memory.plan), awaited(test, memory.plan)
        pending: list[Case] = []
        if mode is Mode.OFFLINE_ONLINE:
            known, pending = known_by(train, test)
            waiting = [case.transaction for case in pending] if memory else ()
            await learner.train(known, mapping=mapping, waiting=waiting)
        elif memory is not None:
            learner.study((), mapping=mapping, waiting=[case.transaction for case in train])
        if self._scale_odds:
            labelled = known_by(train, test)[0]
            labelled = memory.studied(labelled, ()) if memory else labelled
            share = sum(case.is_fraud for case in labelled) / max(1, len(labelled))
            await learner.scale_odds(sample_of(labelled, self._scale_odds), share)
        learns = mode is not Mode.VANILLA
        decisions = await stream(learner, test, learns=learns, pending=pending, progress=progress)
        return _summed_up(mode, decisions, test, learner, time.perf_counter() - started)


def known_by(train: Sequence[Case], test: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """The training cases whose label had arrived when the test begins, and those whose label was still to come."""
    start = test[0].transaction.time if test else None
    if start is None:
        return list(train), []
    late = [case for case in train if case.known_at is not None and case.known_at > start]
    ids = {case.transaction.id for case in late}
    return [case for case in train if case.transaction.id not in ids], late


def sample_of(cases: Sequence[Case], wanted: int) -> list[Case]:
    """The latest cases of each kind, half and half as far as there are enough, in their own order."""
    frauds = [place for place, case in enumerate(cases) if case.is_fraud]
    honest = [place for place, case in enumerate(cases) if not case.is_fraud]
    half = wanted // 2
    few, many = sorted((frauds, honest), key=len)
    taken = few[-half:] if half else []
    return [cases[place] for place in sorted([*taken, *many[-(wanted - len(taken)) :]])]


def _summed_up(
    mode: Mode, decisions: Sequence[Decision], test: Sequence[Case], learner: Learner, seconds: float
) -> ModeRun:
    return ModeRun(
        mode=mode,
        declined=np.array([decision.verdict is Verdict.DECLINE for decision in decisions], dtype=np.bool_),
        decided=np.array([decision.verdict is not Verdict.REVIEW for decision in decisions], dtype=np.bool_),
        probabilities=np.array([decision.probability for decision in decisions], dtype=np.float64),
        labels=np.array([case.is_fraud for case in test], dtype=np.bool_),
        bullets=learner.playbook.snapshot().count(learner.options.node),
        cited=float(np.mean([len(decision.cited) for decision in decisions])) if decisions else 0.0,
        seconds=seconds,
        playbook=learner.playbook,
        fallbacks=sum(bool(decision.fallback) for decision in decisions),
        proposed=learner.lessons.so_far if learner.lessons else None,
    )
