"""The three modes: no bullets, bullets learnt from training data and online, and bullets learnt online only."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from acefraud.core.decision import Decision
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Verdict
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets.history_facts import usual_known_at
from acefraud.display.short_repr import Plain, ReprArgs, ShortRepr, quoted
from acefraud.engine.entity_memory import memory_for
from acefraud.engine.options import LearnerOptions
from acefraud.engine.score import score
from acefraud.errors import ConfigurationError
from acefraud.facts.extraction import facts_in
from acefraud.facts.history import HistoryPlan
from acefraud.learning.learner import Learner
from acefraud.learning.model_lessons import Proposed, ReflectionPolicy
from acefraud.llm.synchronous import blocking_twin
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.roles.protocols import Agent, Embedder, Judge, OwnRole, Proposer, name_of
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.settings import EMBEDDED
from acefraud.storage.playbook import BulletPlaybook
from acefraud.support.arguments import check_choice
from acefraud.support.arrays import BoolArray, IntArray
from acefraud.support.timestamps import UNKNOWN

Step = tuple[Literal["decide", "hear"], IntArray]


def label_stream(
    cases: Cases,
    *,
    decide: Sequence[int] | IntArray,
    hear: Sequence[int] | IntArray = (),
    batch: int = 64,
    early: bool = True,
) -> Iterator[Step]:
    """The steps of a stream, as positions of cases: decide a batch, hear the labels that have arrived, and so on.

    `decide` are the cases to decide, in order of time. `hear` are earlier ones that are only heard once their labels
    arrive. A batch is decided after every label that was known when its first case came, and no label is heard before
    its case is decided. With `early` a batch ends when a label arrives; without it, the label waits for the end of the
    batch. Labels of cases without a time are heard right after their batch, which with `early` is one case. Labels that
    arrive after the last case are never heard.

    >>> from acefraud import Case, Cases, Transaction
    >>> rows = [Transaction(id=str(place), facts={"amount": 1.0}) for place in range(2)]
    >>> cases = Cases.of([Case(transaction=row, is_fraud=False) for row in rows])
    >>> [(what, places.tolist()) for what, places in label_stream(cases, decide=[0, 1])]
    [('decide', [0]), ('hear', [0]), ('decide', [1]), ('hear', [1])]
    """
    cases = Cases.of(cases)
    rows, earlier = np.asarray(decide, dtype=np.int64), np.asarray(hear, dtype=np.int64)
    times = cases.transactions.times
    timeless = times[rows] == UNKNOWN
    if timeless.all():  # no time says when earlier labels arrive
        yield from _heard(earlier, batch)
        earlier = earlier[:0]
    due = np.where(cases.known_at == UNKNOWN, times, np.maximum(times, cases.known_at))
    waiting = [(int(due[row]), int(row)) for row in earlier]
    heapq.heapify(waiting)
    start = 0
    while start < len(rows):
        if timeless[start]:
            some = rows[start : start + 1 if early else start + _alike(timeless[start : start + batch])]
            yield "decide", some
            yield "hear", some
            start += len(some)
            continue
        now, arrived = times[rows[start]], []
        while waiting and waiting[0][0] <= now:
            arrived.append(heapq.heappop(waiting)[1])
        yield from _heard(np.array(arrived, dtype=np.int64), batch)
        some = rows[start : start + _alike(timeless[start : start + batch])]
        if early:
            some = _until_a_label(some, times, due, waiting[0][0] if waiting else None)
        yield "decide", some
        for row in some.tolist():
            heapq.heappush(waiting, (int(due[row]), row))
        start += len(some)


def _until_a_label(rows: IntArray, times: IntArray, due: IntArray, first: int | None) -> IntArray:
    """The rows before the next label arrives: nothing is learnt in between."""
    for place, row in enumerate(rows.tolist()):
        if place and first is not None and first <= times[row]:
            return rows[:place]
        first = int(due[row]) if first is None else min(first, int(due[row]))
    return rows


def _alike(flags: BoolArray) -> int:
    """The length of the first run of equal flags."""
    return len(flags) if (flags == flags[0]).all() else int(np.argmax(flags != flags[0]))


def _heard(rows: IntArray, batch: int) -> Iterator[Step]:
    for start in range(0, len(rows), batch):
        yield "hear", rows[start : start + batch]


class Mode(StrEnum):
    """How a run learns.

    >>> Mode("online_only") is Mode.ONLINE_ONLY, [str(mode) for mode in Mode]
    (True, ['vanilla', 'online_only', 'offline_online'])
    """

    VANILLA = "vanilla"
    """Not at all: general knowledge decides."""
    ONLINE_ONLY = "online_only"
    """From outcomes as they arrive, starting with an empty playbook."""
    OFFLINE_ONLINE = "offline_online"
    """From the training cases first, then from outcomes as they arrive."""


@dataclass(frozen=True, slots=True, repr=False)
class ModeRun(ShortRepr):
    """What one mode decided on a stream of cases, and its playbook at the end.

    >>> import asyncio
    >>> from acefraud import Case, TrainingPipeline, Transaction
    >>> orders = [Transaction(id=f"t{number}", facts={"emulator": number == 2}) for number in range(4)]
    >>> cases = [Case(transaction=order, is_fraud=order.facts["emulator"]) for order in orders]
    >>> run = asyncio.run(TrainingPipeline().run(Mode.VANILLA, [], cases))
    >>> run.declined.tolist(), float((run.declined == run.labels).mean())
    ([False, False, True, False], 1.0)
    """

    mode: Mode
    """The mode."""
    declined: npt.NDArray[np.bool_]
    """Whether each case was declined."""
    decided: npt.NDArray[np.bool_]
    """False for cases left to a person."""
    probabilities: npt.NDArray[np.float64]
    """Of fraud, for each case."""
    labels: npt.NDArray[np.bool_]
    """Whether each case was fraud."""
    bullets: int
    """Bullets in use at the end."""
    cited: float
    """Bullets among the reasons of a decision, on average."""
    seconds: float
    """How long it took."""
    playbook: BulletPlaybook = field(repr=False)
    """The playbook at the end."""
    fallbacks: int = 0
    """Decisions that a model failed to make."""
    proposed: Proposed | None = None
    """What a reflector on a model proposed; None if none was asked."""
    without_label_facts: npt.NDArray[np.float64] | None = None
    """The probabilities if the facts that depend on labels are unknown; None if there are none, or if a model decides.
    """

    def __repr_args__(self) -> ReprArgs:
        yield None, Plain(quoted(self.mode))
        yield None, Plain(f"{len(self.labels):,} cases, {int(self.labels.sum()):,} frauds")
        yield "declined", int(self.declined.sum())
        left = int((~self.decided).sum())
        if left:
            yield "left_to_a_person", left
        yield "bullets", self.bullets
        yield "cited", Plain(f"{self.cited:.2f}")
        yield "seconds", Plain(f"{self.seconds:.1f}")


def _not_shown(_: float) -> None:
    """Nobody looks at the progress."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainingPipeline(ShortRepr):
    """Runs the modes with the same agent, judge and options, each on a playbook of its own.

    >>> from acefraud import load_dataset
    >>> from acefraud.datasets.world import WorldOptions
    >>> data = load_dataset("complex_fraud_detection", options=WorldOptions(transactions=50))
    >>> run = TrainingPipeline().run_sync(Mode.VANILLA, data.train, data.test)
    >>> len(run.declined), run.bullets
    (23, 0)
    """

    agent: Agent | OwnRole | None = None
    """Decides; None for the embedded engine."""
    judge: Judge | OwnRole | None = None
    """Says whether a decision was right; None for the comparison with the truth."""
    options: LearnerOptions | None = None
    """Of the learners."""
    proposer: Proposer | OwnRole | None = None
    """A model that reflects; None for the embedded engine."""
    policy: ReflectionPolicy | None = None
    """Which cases that model is shown."""
    embedder: str | Embedder | OwnRole = DEFAULT_EMBEDDER
    """Finds bullets by their words."""
    scale_odds: int = 0
    """Training cases on which the odds of a model's verdict tokens are fitted, in every mode."""
    seed: int = 0
    """Of the selector's draws and the samples of learning."""

    def learner(self, playbook: BulletPlaybook) -> Learner:
        """A learner on this playbook, the same in all modes."""
        return Learner(
            playbook,
            agent=self.agent,
            judge=self.judge,
            reflector=Reflector(model=self.proposer or EMBEDDED, seed=self.seed),
            selector=HybridSelector(embedding_model=self.embedder, seed=self.seed),
            policy=self.policy,
            options=self.options,
        )

    async def run(
        self,
        mode: Mode,
        train: Sequence[Case],
        test: Sequence[Case],
        *,
        playbook: BulletPlaybook | None = None,
        mapping: str = "",
        progress: Callable[[float], None] = _not_shown,
    ) -> ModeRun:
        """Run one mode over the test cases. Only offline + online sees the labels of the training cases.

        If the mapping asks for a history, all modes remember the training transactions, so that they decide on the
        same facts. Training cases without both labels teach nothing beforehand: they are remembered, and offline +
        online then starts as online only does.

        >>> from acefraud import Case, Transaction
        >>> orders = [Transaction(id=f"t{n}", facts={"vpn": n % 3 == 0, "amount": n}) for n in range(80)]
        >>> cases = [Case(transaction=order, is_fraud=order.facts["vpn"]) for order in orders]
        >>> run = TrainingPipeline().run_sync(Mode.OFFLINE_ONLINE, cases[:60], cases[60:])
        >>> bool((run.declined == run.labels).all()), run.cited > 0
        (True, True)
        """
        check_choice("mode", mode, Mode, ConfigurationError)
        mode = Mode(mode)
        started = time.perf_counter()
        book = BulletPlaybook() if playbook is None else playbook
        learner = self.learner(book)
        memory = memory_for(mapping)
        before, after = Cases.of(train), Cases.of(test)
        if memory is not None:
            before, after = (_with_delay(cases, memory.plan) for cases in (before, after))
        known, pending = known_by(before, after)
        if mode is Mode.OFFLINE_ONLINE:
            waiting = pending.transactions if memory else ()
            await learner.train(known, mapping=mapping, waiting=waiting, both_labels=False)
        elif memory is not None:
            await learner.train((), mapping=mapping, waiting=before.transactions, both_labels=False)
        if self.scale_odds:
            labelled = memory.studied(known, Transactions.of(())) if memory else known
            share = float(labelled.labels.mean()) if len(labelled) else 0.0
            await learner.scale_odds(sample_of(labelled, self.scale_odds), share)
        late = pending if mode is Mode.OFFLINE_ONLINE else pending[:0]
        label_facts = memory.plan.label_facts if memory and name_of(learner.agent) == EMBEDDED else ()
        without: list[npt.NDArray[np.float64]] = []

        def score_again(made: Sequence[Decision]) -> None:
            if label_facts:
                without.append(_probabilities_without(label_facts, made, learner))

        learns = mode is not Mode.VANILLA
        decisions = await stream(learner, after, late, learns=learns, decided=score_again, progress=progress)
        run = _summed_up(mode, decisions, after, learner, time.perf_counter() - started)
        return replace(run, without_label_facts=np.concatenate(without)) if without else run

    run_sync = blocking_twin(run)


async def stream(
    learner: Learner,
    cases: Cases,
    pending: Cases,
    *,
    learns: bool = True,
    decided: Callable[[Sequence[Decision]], None] = lambda _: None,
    progress: Callable[[float], None] = _not_shown,
) -> list[Decision]:
    """Decide the cases in order. The learner hears each label once it has arrived, never before the decision.

    `pending` are earlier cases that are not decided here and whose labels are still to come. `decided` is called with
    the decisions that were just made, before the learner hears anything more.
    """
    whole = Cases.stacked([cases, pending])
    decisions: list[Decision] = []
    for what, places in label_stream(whole, decide=range(len(cases)), hear=range(len(cases), len(whole))):
        some = [whole[place] for place in places.tolist()]
        if what == "decide":
            made = await learner.decide_all([case.transaction for case in some])
            decided(made)
            decisions.extend(made)
            progress(len(decisions) / len(cases))
        elif learns:
            outcomes = [
                Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud, at=case.known_at) for case in some
            ]
            await learner.hear_all(outcomes, [case.transaction for case in some])
    return decisions


def _with_delay(cases: Cases, plan: HistoryPlan) -> Cases:
    """Cases whose labels arrive after the usual delay if nothing says when they became known."""
    same = copy(cases)
    same.known_at = usual_known_at(cases, plan)
    return same


def known_by(train: Cases, test: Cases) -> tuple[Cases, Cases]:
    """The training cases whose label had arrived when the test begins, and those whose label had not.

    >>> from datetime import UTC, datetime
    >>> from acefraud import Case, Cases, Transaction
    >>> def case(name: str, day: int, known: int) -> Case:
    ...     time, known_at = datetime(2025, 3, day, tzinfo=UTC), datetime(2025, 3, known, tzinfo=UTC)
    ...     return Case(transaction=Transaction(id=name, time=time, text="$20"), is_fraud=False, known_at=known_at)
    >>> train, test = Cases.of([case("t1", 1, 5), case("t2", 2, 12)]), Cases.of([case("t3", 10, 17)])
    >>> known, pending = known_by(train, test)
    >>> known.transactions.ids.tolist(), pending.transactions.ids.tolist()
    (['t1'], ['t2'])
    """
    train, test = Cases.of(train), Cases.of(test)
    start = test.transactions.times[0] if len(test) else UNKNOWN
    late = (train.known_at > start) if start != UNKNOWN else np.zeros(len(train), dtype=np.bool_)
    return train.take(~late), train.take(late)


def sample_of(cases: Cases, wanted: int) -> Cases:
    """The latest cases of each kind, half and half if there are enough, in their own order."""
    few, many = sorted((np.flatnonzero(cases.labels), np.flatnonzero(~cases.labels)), key=len)
    half = wanted // 2
    taken = few[-half:] if half else few[:0]
    return cases.take(np.sort(np.concatenate([taken, many[-(wanted - len(taken)) :]])))


def _probabilities_without(
    facts: Collection[str], made: Sequence[Decision], learner: Learner
) -> npt.NDArray[np.float64]:
    """What the probabilities of decisions just made would be with these facts unknown."""
    rows = Transactions.of(decision.transaction for decision in made)
    known = facts_in(rows).without(facts)
    return score(rows, learner.playbook.snapshot(), learner.selector, learner.options, known=known).probabilities


def _summed_up(mode: Mode, decisions: Sequence[Decision], test: Cases, learner: Learner, seconds: float) -> ModeRun:
    return ModeRun(
        mode=mode,
        declined=np.array([decision.verdict is Verdict.DECLINE for decision in decisions], dtype=np.bool_),
        decided=np.array([decision.verdict is not Verdict.REVIEW for decision in decisions], dtype=np.bool_),
        probabilities=np.array([decision.probability for decision in decisions], dtype=np.float64),
        labels=test.labels,
        bullets=len(learner.playbook.snapshot().for_node(learner.options.node)),
        cited=float(np.mean([len(decision.cited) for decision in decisions])) if decisions else 0.0,
        seconds=seconds,
        playbook=learner.playbook,
        fallbacks=sum(bool(decision.fallback) for decision in decisions),
        proposed=learner.proposed,
    )
