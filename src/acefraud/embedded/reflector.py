"""The embedded reflector: remembers labelled cases and proposes what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import DEFAULT_NODE, Bullet
from acefraud.core.condition import Condition
from acefraud.core.english import sentence
from acefraud.core.evidence import ENOUGH_TO_SHOW, Evidence, wilson
from acefraud.core.scoring import Calibration
from acefraud.core.table import FactTable
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.embedded.agent import weight_of
from acefraud.embedded.facts import facts_of
from acefraud.embedded.induction.boosting import History, Induced, InductionOptions, Lesson, induce
from acefraud.embedded.induction.fitting import Cases, fit, probabilities
from acefraud.embedded.induction.growing import Residual, condition_of, grow
from acefraud.embedded.induction.holding_up import record_of
from acefraud.embedded.memory import CaseMemory
from acefraud.embedded.problem_types import problem_types
from acefraud.embedded.scorecard import GENERAL, score_in
from acefraud.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """What the embedded reflector remembers and what it takes to speak up."""

    memory: int = 5_000
    certainty: float = 2.6
    """Standard errors by which a proposed condition must differ from the base rate. More than 1.96, because the
    best of thousands of conditions is looked at."""
    least_gain: float = 6.0
    """Newton gain on the residual below which a condition is taken for chance: what it adds to the playbook, where
    `certainty` looks at what it says on its own."""
    review_rounds: int = 8
    """Conditions looked for in one review of everything remembered."""
    step: float = 0.5
    """Share of the Newton step a new bullet starts with, until all weights are fitted together."""
    induction: InductionOptions = field(default_factory=InductionOptions)


MUCH_MORE = 1.5
"""A bullet learnt on so many times the cases that are remembered is not fitted to those few."""


@dataclass(frozen=True, slots=True)
class Refitted:
    """New weights by bullet, and the frame around them."""

    weights: dict[str, float]
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class KnownAlready:
    """What the playbook says so far: the residual is what that leaves unexplained."""

    bullets: tuple[Bullet, ...] = ()
    calibration: Calibration | None = None


class Reflector:
    """Proposes one bullet from one outcome, in the light of all outcomes it was shown before.

    With too few cases to say anything it returns None rather than a guess.

    >>> import asyncio
    >>> reflector = Reflector()
    >>> asyncio.run(reflector.reflect("User attempts $20 purchase", "APPROVE", "APPROVE", "fraud_detection")) is None
    True
    """

    model = "embedded"

    def __init__(self, options: ReflectorOptions | None = None, *, seed: int = 0) -> None:
        self.options = options or ReflectorOptions()
        self._memory = CaseMemory(self.options.memory, self.options.induction.candidates)
        self._seed = seed
        self._texts = False
        self._proposed: list[tuple[Condition, float]] = []
        self._unnamed = 0

    def __len__(self) -> int:
        return len(self._memory)

    def remember(self, cases: Iterable[Case]) -> None:
        """Take in labelled cases without proposing anything."""
        given = list(cases)
        self._texts = self._texts or any(case.transaction.text for case in given)
        self._memory.remember(given)

    async def reflect(
        self,
        query: str | Transaction,
        predicted: str,
        correct: str,
        node: str = DEFAULT_NODE,
        agent_reasoning: str = "",  # noqa: ARG002  # a language model may use it; figures do not need it
        *,
        known: KnownAlready | None = None,
    ) -> dict[str, Any] | None:
        """A bullet that this case and those before it teach: new_bullet, problem_types, confidence and more.

        `known` is what the playbook says already; without it, what this reflector proposed before.
        """
        transaction = query if isinstance(query, Transaction) else self._named(query)
        truth, missed = _verdict(correct), _verdict(predicted) is not _verdict(correct)
        self.remember([Case(transaction=transaction, is_fraud=truth is Verdict.DECLINE)])
        lesson = self._propose(transaction, truth, known)
        if lesson is None:
            return None
        if known is None:
            self._proposed.append((lesson.condition, lesson.weight))
        return {**as_reply(lesson), "node": node, "learnt_from": "failure" if missed else "success"}

    def _named(self, text: str) -> Transaction:
        """A text has no id of its own, so each is a case of its own."""
        self._unnamed += 1
        return Transaction(id=f"text-{self._unnamed}", text=text)

    def study(
        self,
        cases: Sequence[Case],
        progress: Callable[[float], None] = lambda _: None,
        *,
        rising: tuple[str, ...] = (),
        falling: tuple[str, ...] = (),
    ) -> Induced | None:
        """Everything a whole labelled history teaches, at once; the cases are remembered too.

        What is learnt must hold up on the latest cases, or on cases drawn at random where times are not known. More of
        a fact that is `rising` never lowers the risk, more of one that is `falling` never raises it.
        """
        generator = np.random.default_rng(self._seed)
        ordered = by_time(cases)
        self.remember(ordered)
        if any(case.transaction.time is None for case in ordered):  # the order of a file says nothing
            ordered = [ordered[place] for place in generator.permutation(len(ordered))]
        rows = FactTable([facts_of(case.transaction).facts for case in ordered])
        labels = np.array([case.is_fraud for case in ordered], dtype=np.bool_)
        times = [case.transaction.time for case in ordered]
        history = History(rows, labels, score_in(rows) if self._texts else None, times)
        options = replace(self.options.induction, rising=rising, falling=falling)
        return induce(history, options, generator, progress)

    def review(self, known: KnownAlready) -> list[dict[str, Any]]:
        """What all remembered cases together still teach: a few rounds on the residual of the playbook."""
        labels = self._memory.labels
        if not self._enough(labels):
            return []
        tests, matrix = self._memory.candidates()
        y, margin = labels.astype(np.float64), self._margin(known)
        lessons: dict[Condition, Lesson] = {}
        for _ in range(self.options.review_rounds):
            residual = Residual.of(y, probabilities(margin), self._memory.found_in())
            grown = grow(matrix, residual, self.options.induction.growth)
            if grown is None or grown.gain < self.options.least_gain:
                break
            margin = margin + self.options.step * grown.step * np.all(matrix[:, grown.places] > 0, axis=1)
            lesson = self._lesson(condition_of(tests, grown.places), Verdict.of(grown.step > 0), grown.step, known)
            if lesson is not None:
                lessons.setdefault(lesson.condition, lesson)
        return [as_reply(lesson) for lesson in lessons.values()]

    def refit(self, bullets: Sequence[Bullet]) -> Refitted | None:
        """The weights of bullets fitted together on what is remembered; None where that is too little.

        A bullet that held on too few of these cases, or was learnt on many more than are remembered, keeps its weight.
        """
        labels = self._memory.labels
        if not self._enough(labels):
            return None
        masks = {b.id: self._memory.mask(b.condition) for b in bullets if b.condition is not None}
        fitting = [b for b in bullets if b.id in masks and self._can_be_fitted(b, int(masks[b.id].sum()))]
        offset = np.zeros(len(labels))
        for bullet in bullets:
            if bullet.id in masks and bullet not in fitting:
                offset += (bullet.weight or 0.0) * masks[bullet.id]
        columns = np.column_stack([masks[b.id] for b in fitting]) if fitting else np.zeros((len(labels), 0), np.bool_)
        knowledge = self._memory.knowledge() if self._texts else None
        fitted = fit(columns, Cases(labels, knowledge, offset), self.options.induction.fit)
        weights = {b.id: round(float(w), 6) for b, w in zip(fitting, fitted.weights, strict=True)}
        return Refitted(weights, fitted.calibration)

    def _can_be_fitted(self, bullet: Bullet, support: int) -> bool:
        if support < self.options.induction.growth.least_support:
            return False
        return bullet.evidence is None or bullet.evidence.learnt.support <= MUCH_MORE * support

    def measure(self, condition: Condition) -> Evidence | None:
        """What the remembered cases say of a condition that somebody named; None where there are none."""
        labels = self._memory.labels
        if not len(labels):
            return None
        mask = self._memory.mask(condition)
        first, last = seen(mask, self._memory.times)
        return Evidence(
            learnt=record_of(mask, labels),
            base_rate=float(labels.mean()),
            cases=len(labels),
            first_seen=first,
            last_seen=last,
        )

    def verify(self, condition: Condition) -> Evidence | None:
        """What the remembered cases say of a condition that a model proposed; None where there are none.

        The latest cases are counted apart, or a part drawn by id where times are not known: a condition that a model
        read off some cases has to hold on others. Where either part has too few to go by, they are counted together.
        """
        labels = self._memory.labels
        if not len(labels):
            return None
        mask, found = self._memory.mask(condition), self._earlier()
        if min(int((mask & found).sum()), int((mask & ~found).sum())) < ENOUGH_TO_SHOW:
            found = np.ones(len(labels), dtype=np.bool_)
        first, last = seen(mask, self._memory.times)
        return Evidence(
            learnt=record_of(mask & found, labels),
            base_rate=float(labels.mean()),
            later=None if found.all() else record_of(mask & ~found, labels),
            cases=_cases_shown(mask, found),
            first_seen=first,
            last_seen=last,
        )

    def _earlier(self) -> npt.NDArray[np.bool_]:
        """The remembered cases but for the latest, where all have a time and there are enough to keep some aside."""
        apart = self._memory.found_in()
        times = [time.timestamp() for time in self._memory.times if time is not None]
        if apart.all() or len(times) < len(apart):
            return apart
        moments = np.array(times)
        earlier: npt.NDArray[np.bool_] = moments <= np.quantile(moments, 1 - self.options.induction.later_share)
        return earlier

    def recent(self, condition: Condition, latest: int) -> Evidence:
        """What the latest remembered cases, so many at most, say of a condition."""
        labels, mask = self._memory.labels[-latest:], self._memory.mask(condition)[-latest:]
        base_rate = float(labels.mean()) if len(labels) else 0.0
        return Evidence(learnt=record_of(mask, labels), base_rate=base_rate, cases=len(labels))

    @property
    def table(self) -> FactTable:
        """The facts of the remembered cases."""
        return self._memory.table

    def _propose(self, transaction: Transaction, truth: Verdict, known: KnownAlready | None) -> Lesson | None:
        labels = self._memory.labels
        growth = self.options.induction.growth
        if not self._enough(labels):
            return None
        tests, matrix = self._memory.candidates()
        facts = facts_of(transaction).facts
        allowed = np.array([test.on(facts) is True for test in tests], dtype=np.bool_)
        y, rows = labels.astype(np.float64), self._memory.found_in()
        residual = Residual.of(y, probabilities(self._margin(known)), rows)
        grown = grow(matrix, residual, growth, allowed=allowed, sign=1 if truth is Verdict.DECLINE else -1)
        if grown is None or grown.gain < self.options.least_gain:
            return None
        return self._lesson(condition_of(tests, grown.places), truth, grown.step, known)

    def _lesson(self, condition: Condition, argues: Verdict, step: float, known: KnownAlready | None) -> Lesson | None:
        mask, labels, found = self._memory.mask(condition), self._memory.labels, self._memory.found_in()
        first, last = seen(mask, self._memory.times)
        evidence = Evidence(
            learnt=record_of(mask & found, labels),
            base_rate=float(labels.mean()),
            later=None if found.all() else record_of(mask & ~found, labels),
            cases=_cases_shown(mask, found),
            first_seen=first,
            last_seen=last,
        )
        if not self._speaks_for(argues, evidence) or self._said(condition, known):
            return None
        return Lesson(condition, argues, evidence, self.options.step * step)

    def _enough(self, labels: npt.NDArray[np.bool_]) -> bool:
        """Whether there are cases enough, of both kinds, to say anything."""
        return len(labels) >= self.options.induction.least_cases and bool(labels.any()) and not bool(labels.all())

    def _margin(self, known: KnownAlready | None) -> npt.NDArray[np.float64]:
        """Log-odds of each remembered case as the playbook would have them now."""
        frame = (known.calibration if known else None) or GENERAL
        margin = frame.intercept + frame.knowledge_scale * self._memory.knowledge()
        if known is None:
            weighted = self._proposed
        else:
            weighted = [(b.condition, weight_of(b, frame.base_rate)) for b in known.bullets if b.condition is not None]
        for condition, weight in weighted:
            margin = margin + weight * self._memory.mask(condition)
        return margin

    def _speaks_for(self, truth: Verdict, evidence: Evidence) -> bool:
        """Whether the cases it was found in say so beyond chance, and those kept aside do not say otherwise."""
        low, high = wilson(evidence.learnt.frauds, evidence.learnt.support, self.options.certainty)
        checked = evidence.shown.precision
        if checked is None:
            return False
        if truth is Verdict.DECLINE:
            return low > evidence.base_rate and checked > evidence.base_rate
        return high < evidence.base_rate and checked < evidence.base_rate

    def _said(self, condition: Condition, known: KnownAlready | None) -> bool:
        if known is None:
            return any(condition == said for said, _ in self._proposed)
        return any(condition == bullet.condition for bullet in known.bullets)


def _cases_shown(mask: npt.NDArray[np.bool_], found: npt.NDArray[np.bool_]) -> int:
    """Among how many cases the record that evidence shows was measured."""
    aside = int((mask & ~found).sum()) >= ENOUGH_TO_SHOW
    return int((~found).sum()) if aside else int(found.sum())


def seen(mask: npt.NDArray[np.bool_], times: Sequence[datetime | None]) -> tuple[datetime | None, datetime | None]:
    """The first and the last time a condition held, where times are known."""
    held = [time for holds, time in zip(mask, times, strict=True) if holds and time is not None]
    return min(held, default=None), max(held, default=None)


def by_time(cases: Sequence[Case]) -> list[Case]:
    """In the order of time where every case has one, else as they are."""
    timed = [(case.transaction.time.timestamp(), place) for place, case in enumerate(cases) if case.transaction.time]
    return [cases[place] for _, place in sorted(timed)] if len(timed) == len(cases) else list(cases)


def as_reply(lesson: Lesson) -> dict[str, Any]:
    """A lesson in the shape in which every reflector answers."""
    low, high = lesson.evidence.interval
    return {
        "new_bullet": sentence(lesson.condition, lesson.evidence),
        "problem_types": problem_types(lesson.condition),
        "confidence": round(low if lesson.argues is Verdict.DECLINE else 1 - high, 4),
        "condition": str(lesson.condition),
        "argues": str(lesson.argues),
        "evidence": lesson.evidence,
        "weight": lesson.weight,
    }


def _verdict(word: str) -> Verdict:
    said = str(word).strip().upper()
    if said not in (Verdict.APPROVE, Verdict.DECLINE):
        raise InputError(f"expected APPROVE or DECLINE, got {word!r}")
    return Verdict(said)
