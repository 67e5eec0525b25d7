"""`python -m benchmarks witness`: a model's opinion added to the embedded engine's, beside each of the two alone.

Cross-validated on the public texts and on texts of the synthetic world. Weights are fitted on the training part alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acefraud import BulletPlaybook, Cases, Dataset, Learner, LearnerOptions, ModelSettings, build_roles, load_dataset
from acefraud.evaluation.compare import Part, parts_of_file
from benchmarks.arrays import Numbers
from benchmarks.console import JsonOption, line, note, print_json, progress

TEXTS = "complex_fraud_detection"
FOLDS = 5
SCALED_ON = 60
WAYS = ("embedded", "model", "combined", "combined, asked where it can matter")


def witness(
    *,
    model: Annotated[str, typer.Option("--agent-model", help="The model, as provider:name.")],
    base_url: Annotated[str, typer.Option(help="Your own server that speaks OpenAI's protocol.")] = "",
    style: Annotated[str, typer.Option(help="reasoned or direct.")] = "direct",
    seeds: Annotated[int, typer.Option(min=1, help="Divisions into five folds.")] = 4,
    rows: Annotated[int, typer.Option(min=50, help="Synthetic texts.")] = 300,
    json: JsonOption = False,
) -> None:
    """Measure the log-loss of the **embedded engine, a model, and both together**.

    The 83 public texts are left out if $ACEFRAUD_DATA does not have complex_fraud_detection.json.

        python tests/llm/loopback.py --port 8100 &
        python -m benchmarks witness --agent-model openai:gpt-3.5-turbo --base-url http://127.0.0.1:8100/v1
    """
    settings = ModelSettings(agent=model, base_url=base_url, style=style)
    alone, combined = build_roles(settings), build_roles(replace(settings, opinion="combined"))
    agents = (None, alone.agent, combined.without_tier().agent, combined.agent)
    found: dict[str, Any] = {}
    try:
        for name, data in _datasets(rows):
            with progress(name) as done:
                found[name] = asyncio.run(measured(data, dict(zip(WAYS, agents, strict=True)), seeds, done))
    finally:
        alone.close_sync()
        combined.close_sync()
    if json:
        print_json(found)
        return
    for name, figures in found.items():
        for text in described(name, figures):
            line(text)


def _datasets(rows: int) -> Iterator[tuple[str, Dataset]]:
    file = Path(os.environ.get("ACEFRAUD_DATA") or "../shared/data") / f"{TEXTS}.json"
    if file.exists():
        yield "public texts", load_dataset(file).without_duplicates()
    else:
        note(f"{file} is not there: the public texts are left out; set ACEFRAUD_DATA to their folder")
    world = load_dataset(TEXTS, seed=0)
    yield "synthetic texts", Dataset(world.name, world.train[:rows], world.test[:0])


async def measured(
    data: Dataset, agents: Mapping[str, Any], seeds: int, done: Callable[[float], None]
) -> dict[str, Any]:
    """Log-losses of every way over all folds, with intervals over cases, and how each fold came out."""
    parts = list(parts_of_file(data, range(seeds), folds=FOLDS))
    losses: dict[str, list[Numbers]] = {way: [] for way in WAYS}
    asked = 0
    for count, part in enumerate(parts, 1):
        of_part, share = await _losses(part, agents)
        for way in WAYS:
            losses[way].append(of_part[way])
        asked += share
        done(count / len(parts))
    means = {way: [float(each.mean()) for each in losses[way]] for way in WAYS}
    ratios = [both / min(own, said) for own, said, both in zip(*(means[way] for way in WAYS[:3]), strict=True)]
    every = {way: np.concatenate(losses[way]) for way in WAYS}
    return {
        "texts": len(parts[0].train) + len(parts[0].test),
        "splits": len(parts),
        "log_loss": {way: _with_interval(every[way], seeds) for way in WAYS},
        "over_the_better": {"mean": float(np.mean(ratios)), "largest": max(ratios)},
        "asked": asked / len(every[WAYS[0]]),
    }


def _with_interval(losses: Numbers, seeds: int) -> dict[str, float]:
    """The mean, with an interval over texts: each was tested once for every seed."""
    low, high = np.percentile(
        [
            float(losses[np.random.default_rng(draw).integers(0, len(losses), len(losses) // seeds)].mean())
            for draw in range(400)
        ],
        [2.5, 97.5],
    )
    return {"mean": float(losses.mean()), "low": float(low), "high": float(high)}


async def _losses(part: Part, agents: Mapping[str, Any]) -> tuple[dict[str, Numbers], int]:
    """The log-loss of each test case, and about how many the model was asked where it can matter."""
    found: dict[str, Numbers] = {}
    asked = 0
    learner = Learner(BulletPlaybook(), options=LearnerOptions(seed=part.seed))
    learner.study(part.train)
    for way, agent in agents.items():
        if agent is not None:
            learner.agent = agent
            if way != WAYS[-1]:  # it has the weights of the one before
                await learner.scale_odds(_drawn(part.train), float(part.train.labels.mean()))
        decisions = list(await learner.decide_all(part.test.transactions))
        p = np.clip([decision.probability for decision in decisions], 1e-6, 1 - 1e-6)
        found[way] = -np.log(np.where(part.test.labels, p, 1 - p))
        asked = sum(decision.engine_odds is not None for decision in decisions)
    return found, asked


def _drawn(cases: Cases) -> Cases:
    """As many cases of each label as `acefraud train` fits the odds on."""
    of_each = [np.flatnonzero(cases.labels == label)[-SCALED_ON // 2 :] for label in (False, True)]
    return cases.take(np.sort(np.concatenate(of_each)))


def described(name: str, found: dict[str, Any]) -> Iterator[str]:
    """The figures of one set in lines."""
    yield f"{name}: {found['texts']} texts, {found['splits']} splits"
    for way, loss in found["log_loss"].items():
        yield f"  {way:38} {loss['mean']:.3f} ({loss['low']:.3f} to {loss['high']:.3f})"
    better = found["over_the_better"]
    yield f"  combined over the better of the two: {better['mean']:.3f} in the mean, {better['largest']:.3f} at most"
    yield f"  asked where it can matter: {100 * found['asked']:.0f} % of the texts"
