"""`python -m benchmarks small`: what a small history teaches, beside general knowledge alone.

Three parts: the public texts, cross-validated; a learning curve on the synthetic world, offline (`study`) and online
(`hear_all`); and the pairs of learnt bullets that hold on nearly the same cases, which should be none.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from acefraud import (
    BulletPlaybook,
    Cases,
    HybridSelector,
    Learner,
    Mode,
    Outcome,
    Reflector,
    Source,
    Status,
    TrainingPipeline,
    known_by,
    load_dataset,
)
from acefraud.evaluation.compare import compare_parts, parts_of_file
from acefraud.evaluation.metrics import Interval, Scored, accuracy, average_precision, in_percent, student_interval
from benchmarks.console import JsonOption, line, note, print_json, progress

WORLD = "complex_fraud_detection"
SIZES = (40, 80, 160, 320, 640)
FOLDS = 5
SAME = 0.8
"""A Jaccard index from which on two bullets are one lesson."""
BATCH = 10
"""Outcomes that are heard together."""


def small(
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of the folds of the public texts.")] = 5,
    worlds: Annotated[int, typer.Option(min=1, help="Synthetic worlds of the learning curve.")] = 10,
    sizes: Annotated[str, typer.Option(help="Cases to learn from, separated by commas.")] = ",".join(map(str, SIZES)),
    json: JsonOption = False,
) -> None:
    """Measure what **20 to some hundred cases** teach, beside vanilla, which learns nothing.

    The 83 public texts are cross-validated if $ACEFRAUD_DATA has complex_fraud_detection.json. On each synthetic world
    a playbook learns the latest cases before the test part, offline or online, then scores the test part. Differences
    are paired. Pairs of learnt, active bullets with a Jaccard index of 0.8 or more are counted on the remembered cases.

        ACEFRAUD_DATA=../shared/data python -m benchmarks small
    """
    counts = [int(size) for size in sizes.split(",")]
    with progress("learning from few cases") as done:
        found = {"texts": public_texts(seeds), "curve": learning_curve(worlds, counts, done)}
    if json:
        print_json(found)
        return
    for text in described(found):
        line(text)


def public_texts(seeds: int) -> dict[str, Any] | None:
    """The modes on the public texts, cross-validated; None if the file is not there."""
    file = Path(os.environ.get("ACEFRAUD_DATA") or "../shared/data") / f"{WORLD}.json"
    if not file.exists():
        note(f"{file} is not there: the public texts are left out; set ACEFRAUD_DATA to their folder")
        return None
    data = load_dataset(file).without_duplicates()
    parts = list(parts_of_file(data, range(seeds), folds=FOLDS))
    return compare_parts(parts, name=data.name, independent=False, processes=1).as_json()


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a playbook reached on a test part, and what is in it."""

    scored: Scored
    bullets: int
    same: int
    """Pairs of learnt, active bullets that hold on nearly the same cases."""

    @property
    def figures(self) -> dict[str, float]:
        """By name: the higher the better, so the log-loss is negative."""
        return {
            "accuracy": accuracy(self.scored),
            "average_precision": average_precision(self.scored),
            "log_likelihood": log_likelihood(self.scored),
        }


def learning_curve(worlds: int, sizes: Sequence[int], done: Any = lambda _: None) -> list[dict[str, Any]]:
    """Offline and online after each number of cases, less vanilla on the same rows, over independent worlds."""
    differences: dict[tuple[str, int], list[dict[str, float]]] = {}
    reached: dict[tuple[str, int], list[Learnt]] = {}
    for seed in range(worlds):
        vanilla, runs = _world(seed, sizes)
        for key, learnt in runs:
            mine, theirs = learnt.figures, vanilla.figures
            differences.setdefault(key, []).append({name: mine[name] - theirs[name] for name in mine})
            reached.setdefault(key, []).append(learnt)
        done((seed + 1) / worlds)
    return [
        {
            "how": how,
            "cases": cases or None,
            "bullets": float(np.mean([each.bullets for each in reached[how, cases]])),
            "same": sum(each.same for each in reached[how, cases]),
            "accuracy": float(np.mean([accuracy(each.scored) for each in reached[how, cases]])),
            "less_vanilla": {name: student_interval([value[name] for value in values]).as_json() for name in values[0]},
        }
        for (how, cases), values in differences.items()
    ]


def _world(seed: int, sizes: Sequence[int]) -> tuple[Learnt, list[tuple[tuple[str, int], Learnt]]]:
    data = load_dataset(WORLD, seed=seed)
    known, _ = known_by(data.train, data.test)
    vanilla = _learnt(_learner(seed), data.test)
    runs = []
    for size in sizes:
        offline, online, latest = _learner(seed), _learner(seed), known[-size:]
        offline.study(latest, both_labels=False)
        runs.append((("offline", size), _learnt(offline, data.test)))
        asyncio.run(_hear(online, latest))
        runs.append((("online", size), _learnt(online, data.test)))
    whole = asyncio.run(TrainingPipeline(seed=seed).run(Mode.OFFLINE_ONLINE, data.train, data.test))
    scored = Scored(whole.declined, whole.probabilities, whole.labels)
    book = Learner(whole.playbook)
    runs.append((("offline + online", 0), Learnt(scored, whole.bullets, nearly_same(book))))
    return vanilla, runs


def _learner(seed: int) -> Learner:
    return Learner(BulletPlaybook(), reflector=Reflector(seed=seed), selector=HybridSelector(seed=seed))


async def _hear(learner: Learner, cases: Cases) -> None:
    for start in range(0, len(cases), BATCH):
        some = list(cases[start : start + BATCH])
        outcomes = [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in some]
        await learner.hear_all(outcomes, [case.transaction for case in some])


def _learnt(learner: Learner, test: Cases) -> Learnt:
    said = learner.score_all(test.transactions).probabilities
    bullets = learner.playbook.get_bullets_for_node(learner.options.node)
    return Learnt(Scored(said >= 0.5, said, test.labels), len(bullets), nearly_same(learner))


def log_likelihood(scored: Scored) -> float:
    """The mean log of the probability that the truth was given."""
    p = np.clip(np.where(scored.labels, scored.probabilities, 1 - scored.probabilities), 1e-6, 1)
    return float(np.log(p).mean())


def nearly_same(learner: Learner) -> int:
    """How many pairs of learnt, active bullets hold on nearly the same remembered cases."""
    facts = learner.remembered().facts
    masks = [
        bullet.condition.holds_in(facts)
        for bullet in learner.playbook.get_bullets_for_node(learner.options.node)
        if bullet.condition is not None and bullet.source is not Source.MANUAL and bullet.status is Status.ACTIVE
    ]
    return sum(jaccard(each, other) >= SAME for each, other in combinations(masks, 2))


def jaccard(one: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]) -> float:
    """The cases of both as a share of the cases of either; 0 if there are none.

    >>> jaccard(np.array([True, True, False]), np.array([True, False, False]))
    0.5
    """
    either = int((one | other).sum())
    return int((one & other).sum()) / either if either else 0.0


def described(found: dict[str, Any]) -> Iterator[str]:
    """The figures as tables in Markdown."""
    texts = found["texts"]
    if texts:
        yield f"{texts['rows']} public texts, {FOLDS} folds, {texts['seeds']} seeds; intervals: {texts['interval']}"
        yield "| mode | accuracy | less vanilla, points | bullets |"
        yield "| --- | --- | --- | --- |"
        for mode, got in texts["modes"].items():
            less = texts["differences"].get(f"{mode}_vs_{Mode.VANILLA}")
            points = in_percent(_interval(less["accuracy"]), signed=True) if less else ""
            yield f"| {mode} | {in_percent(_interval(got['accuracy']))} | {points} | {got['bullets']:.1f} |"
        yield ""
    yield "| learnt | cases | accuracy | less vanilla, points | AP, points | log-likelihood | bullets | same |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in found["curve"]:
        less = {name: _interval(value) for name, value in row["less_vanilla"].items()}
        gained = less["log_likelihood"]
        yield (
            f"| {row['how']} | {row['cases'] or 'all'} | {100 * row['accuracy']:.1f}% "
            f"| {in_percent(less['accuracy'], signed=True)} | {in_percent(less['average_precision'], signed=True)} "
            f"| {_signed(gained)} | {row['bullets']:.1f} | {row['same']} |"
        )


def _signed(interval: Interval) -> str:
    if interval.low is None:
        return f"{interval.mean:+.3f}"
    return f"{interval.mean:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"


def _interval(found: dict[str, Any]) -> Interval:
    return Interval(**found)
