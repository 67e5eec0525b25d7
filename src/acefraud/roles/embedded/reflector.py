"""The embedded reflector: remembers labelled cases and proposes the rules they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acefraud.core.bullet import Bullet, Source
from acefraud.core.calibration import Calibration, Fit
from acefraud.core.condition import Condition
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.core.transactions import Cases
from acefraud.errors import InputError
from acefraud.facts.extraction import facts_of
from acefraud.roles.embedded.agent import weight_of
from acefraud.roles.embedded.case_memory import CaseMemory, KnownCases, LabelledFacts
from acefraud.roles.protocols import Example, Facts, Reflection
from acefraud.rules.induction.bins import BinOptions
from acefraud.rules.induction.boosting import InductionOptions
from acefraud.rules.induction.fitting import FitCases, FitOptions, fit
from acefraud.rules.induction.induce import Induced, Lesson, induce, too_little
from acefraud.rules.induction.out_of_time import History, drawn_by
from acefraud.rules.induction.trees import TreeOptions
from acefraud.rules.scorecard import directions
from acefraud.settings import EMBEDDED
from acefraud.support.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """What the embedded reflector remembers, and how hard it searches."""

    memory: int = 20_000
    """Labelled cases that are remembered; the oldest make room."""
    induction: InductionOptions = field(default_factory=InductionOptions)
    """The search through a whole history."""
    review: InductionOptions = field(
        default_factory=lambda: InductionOptions(
            rounds=5,
            per_round=12,
            chance=1.0,
            searches=1,
            most_rows=10_000,
            search_rows=10_000,
            bins=BinOptions(cuts=24, fraud_cuts=12),
            trees=TreeOptions(leaves=10, price=0.0),
            fit=FitOptions(certainty=1.5),
        )
    )
    """The search of a review. Reviews are frequent and start from the rules in the playbook, so bins are coarser and
    rounds few. They can be less strict, because what they add is watched from then on."""
    search_again: float = 1.2
    """`reflect` searches again when the memory has grown by this factor, but at most every 20 cases."""


LEAST_NEW = 20
"""New cases that `reflect` waits for before it searches again."""
MUCH_MORE = 1.5
"""A bullet learnt on this many times the remembered cases keeps its weight: they could not fit it better."""
LEAST_FITTED = 8
"""Remembered cases on which an unmeasured or hand-written bullet must hold before its weight is fitted."""

ONE_SIDED = 100
"""Cases up to which rules keep to the directions of the scorecard: so few cannot show where a risk turns round."""


@dataclass(frozen=True, slots=True)
class Refitted:
    """New weights by bullet id, and the calibration they belong to."""

    weights: dict[str, float]
    calibration: Calibration


class EmbeddedReflector:
    """Remembers labelled cases, searches them for rules and fits weights on them.

    With too few cases it proposes nothing rather than guess.

    >>> import asyncio
    >>> reflector = EmbeddedReflector()
    >>> asyncio.run(reflector.reflect("User attempts $20 purchase", "APPROVE", "APPROVE")) is None
    True
    """

    model = EMBEDDED

    def __init__(self, options: ReflectorOptions | None = None, *, seed: int = 0) -> None:
        self.options = options or ReflectorOptions()
        self.memory = CaseMemory(self.options.memory)
        self.seed = seed
        self._found: dict[Condition, Lesson] = {}
        self._fit: Fit | None = None
        self._proposed: set[Condition] = set()
        self._searched_at = 0
        self._shown = 0
        self._unnamed = 0

    def __len__(self) -> int:
        return len(self.memory)

    def remember(self, cases: Iterable[Case]) -> None:
        """Take in labelled cases without proposing anything."""
        self.memory.add(LabelledFacts.of(Cases.of(cases)))

    async def reflect(
        self, query: str | Transaction, predicted: str, correct: str, agent_reasoning: str = ""
    ) -> Reflection | None:
        """The strongest rule found in the remembered cases that fits this case and was not proposed before.

        It fits if it holds on the case and argues for its true verdict. None if there is no such rule.
        """
        example = self.remember_example(query, predicted, correct, agent_reasoning)
        if self._shown - self._searched_at >= max(LEAST_NEW, (self.options.search_again - 1) * self._searched_at):
            self._search_memory()
        lesson = self._lesson_for(example.facts, example.correct)
        if lesson is None:
            return None
        self._proposed.add(lesson.condition)
        low, high = lesson.evidence.interval
        confidence = round(low if lesson.argues is Verdict.DECLINE else 1 - high, 4)
        return Reflection(lesson.new_bullet(Source.ONLINE), confidence, example, self._fit)

    def remember_example(self, query: str | Transaction, predicted: str, correct: str, reasoning: str = "") -> Example:
        """Remember a case whose truth is known. Returns it as an example for a reflector on a model."""
        if isinstance(query, Transaction):
            transaction = query
        else:  # a text has no id, so each counts as a case of its own
            self._unnamed += 1
            transaction = Transaction(id=f"text-{self._unnamed}", text=query)
        facts = facts_of(transaction).facts
        example = Example(transaction.text, facts, _verdict(predicted), _verdict(correct), reasoning)
        self.remember([Case(transaction=transaction, is_fraud=example.correct is Verdict.DECLINE)])
        self._shown += 1
        return example

    def _search_memory(self) -> None:
        self._searched_at = self._shown
        induced = self.search(self.memory.cases, known=sorted(self._proposed, key=str), turn=self._shown)
        self._found = {lesson.condition: lesson for lesson in induced.lessons} if induced else {}
        if induced is not None:
            weights = {condition: lesson.weight for condition, lesson in self._found.items()}
            self._fit = Fit(induced.calibration, {**dict.fromkeys(self._proposed, 0.0), **weights})

    def _lesson_for(self, facts: Facts, truth: Verdict) -> Lesson | None:
        fitting = [
            lesson
            for condition, lesson in self._found.items()
            if condition not in self._proposed and lesson.argues is truth and condition.holds(facts)
        ]
        return max(fitting, key=lambda lesson: abs(lesson.weight), default=None)

    def search(
        self,
        cases: KnownCases,
        *,
        turn: int | None = None,
        known: Sequence[Condition] = (),
        written: Sequence[Condition] = (),
        offset: FloatArray | None = None,
        most_bullets: int | None = None,
        most_cited: int | None = None,
        plain: bool = False,
        rising: tuple[str, ...] = (),
        falling: tuple[str, ...] = (),
        progress: Callable[[float], None] = lambda _: None,
    ) -> Induced | None:
        """Rules found in labelled cases, with all weights fitted together; None if there are too few cases.

        Without a `turn` this is the thorough search of a whole history. With one it is the short search of the
        review with that number, which draws its own samples and can be repeated. Rules must hold on the latest
        cases, or on randomly drawn ones if times are unknown. A higher `rising` fact never lowers the risk, and a
        higher `falling` fact never raises it. `most_bullets`, `most_cited` and `plain` are the limits of the learner.
        """
        options = self.options.induction if turn is None else self.options.review
        limit = options.most_bullets if most_bullets is None else most_bullets
        if cases.from_texts and len(cases) <= ONE_SIDED and not (rising or falling):
            rising, falling = directions()
        options = replace(
            options,
            most_bullets=limit if turn is None else max(limit, options.most_bullets),  # a review cuts afterwards
            most_cited=options.most_cited if most_cited is None else most_cited,
            trees=replace(options.trees, plain=plain or options.trees.plain),
            rising=rising or options.rising,
            falling=falling or options.falling,
        )
        generator = np.random.default_rng(self.seed if turn is None else [self.seed, turn])
        sums, points = cases.knowledge()
        times = cases.times if cases.timed else None
        hashes, order = cases.hashes, None
        if turn is None and not cases.timed:  # the order of a file says nothing
            order = np.argsort(drawn_by(hashes, generator), kind="stable")
        parts: list[Any] = [cases.labels, hashes, sums, offset, times, cases.weights]
        in_order = (part if part is None or order is None else part[order] for part in parts)
        history = History(cases.facts_in(order), *in_order)
        induced = induce(history, options, generator, progress, known=known, written=written)
        if induced is None and points:  # knowledge adapts before any rule can be proven
            every = FitCases(cases.labels, sums, offset, counts=cases.weights)
            alone = fit(np.zeros((len(cases), 0), np.bool_), every, options.fit)
            induced = Induced((), alone.calibration)
        return None if induced is None else induced.with_points(points)

    def too_little(self, cases: KnownCases) -> str:
        """Why nothing can be learnt from these cases yet; empty if something can."""
        return too_little(cases.labels, self.options.induction)

    def refit(self, bullets: Sequence[Bullet], cases: LabelledFacts | None = None) -> Refitted | None:
        """The weights of bullets, fitted together on the remembered cases; None if those are too few.

        A bullet keeps its weight if it held on too few of these cases, or was learnt on many more of them.
        """
        cases = self.memory.cases if cases is None else cases
        if self.too_little(cases):
            return None
        masks = {b.id: cases.holds(b.condition) for b in bullets if b.condition is not None}
        new = cases.after_change
        fitting = [b for b in bullets if b.id in masks and can_be_fitted(b, int(masks[b.id].sum()), after_change=new)]
        sums, points = cases.knowledge()
        offset = np.zeros(len(cases))
        fit_cases = FitCases(cases.labels, sums, offset, counts=cases.weights)
        for bullet in bullets:
            if bullet.id in masks and bullet not in fitting:
                offset += weight_of(bullet, fit_cases.base_rate) * masks[bullet.id]
        columns = np.column_stack([masks[b.id] for b in fitting]) if fitting else np.zeros((len(cases), 0), np.bool_)
        fitted = fit(columns, fit_cases, self.options.induction.fit)
        pairs = zip(fitting, fitted.weights.tolist(), strict=True)
        weights = {b.id: round(w, 6) if agrees(b, w) else 0.0 for b, w in pairs}
        return Refitted(weights, fitted.calibration.model_copy(update={"points": points}))


def agrees(bullet: Bullet, weight: float) -> bool:
    """Whether a weight argues for what the evidence of a bullet does."""
    lift = None if bullet.evidence is None else bullet.evidence.lift
    return lift is None or weight * (lift - 1) >= 0


def can_be_fitted(bullet: Bullet, support: int, *, after_change: bool = False) -> bool:
    """Whether the remembered cases can improve the weight of a bullet that held on `support` of them.

    If they are those since fraud began to look different, a few are better than the many that it was learnt on.
    """
    if (bullet.evidence is None or bullet.source is Source.MANUAL) and support < LEAST_FITTED:
        return False
    return after_change or bullet.evidence is None or bullet.evidence.learnt.support <= MUCH_MORE * support


def _verdict(word: str) -> Verdict:
    verdict = str(word).strip().upper()
    if verdict not in (Verdict.APPROVE, Verdict.DECLINE):
        raise InputError(f"expected APPROVE or DECLINE, got {word!r}")
    return Verdict(verdict)
