"""`python -m benchmarks bullets`: how few bullets do the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acefraud import BulletPlaybook, HybridSelector, Learner, LearnerOptions
from benchmarks.console import JsonOption, line, names_in, print_json, progress
from benchmarks.quality.dataset_folder import Source, sources
from benchmarks.quality.measures import average_precision
from benchmarks.quality.peers import LightGbm
from benchmarks.quality.playbooks import NODE
from benchmarks.quality.splits import split_rows, taken

SIZES = (10, 20, 40, 80, 150)


def bullets(
    folder: Annotated[Path, typer.Argument(help="A folder with a folder for each dataset.")],
    mappings: Annotated[Path | None, typer.Option(help="Folder with a mapping for each dataset.")] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these datasets, separated by commas.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 3,
    json: JsonOption = False,
) -> None:
    """Measure average precision with at most 10, 20, 40, 80 and 150 bullets, as a share of **LightGBM**'s.

    Trained on the earlier 70 % of the rows, tested on the rest, ten bullets per decision.

        python -m benchmarks bullets data --mappings benchmarks/mappings
    """
    chosen = sources(folder, names=names_in(datasets), mappings=mappings)
    with progress("learning") as done:
        found = {}
        for index, source in enumerate(chosen):
            found[source.name] = measure(source, seeds)
            done((index + 1) / len(chosen))
    if json:
        print_json(found)
    else:
        for text in described(found):
            line(text)


def measure(source: Source, seeds: int) -> dict[str, Any]:
    """The mean average precision by the limit on bullets, the bullets that were learnt, and LightGBM's."""
    cases = source.load().train
    split = split_rows(cases, name=source.name)
    train, test = taken(cases, split.train), taken(cases, split.test)
    peer = LightGbm(0)
    peer.fit(train, "")
    measured: dict[str, Any] = {"lightgbm": average_precision(peer.score(test), test.labels), "sizes": {}}
    for size in SIZES:
        scores, counts = [], []
        for seed in range(seeds):
            playbook = BulletPlaybook()
            options = LearnerOptions(seed=seed, most_bullets=size)
            learner = Learner(playbook, selector=HybridSelector(seed=seed), options=options)
            learner.study(train)
            scores.append(average_precision(learner.score_all(test.transactions).probabilities, test.labels))
            counts.append(len(playbook.get_bullets_for_node(NODE)))
        measured["sizes"][size] = {"average_precision": float(np.mean(scores)), "bullets": float(np.mean(counts))}
    return measured


def described(found: dict[str, Any]) -> list[str]:
    """A table: a dataset in each row, a limit in each column."""
    columns = "".join(f" at most {size} |" for size in SIZES)
    rows = [f"| dataset | LightGBM |{columns}", f"| --- | ---: |{' ---: |' * len(SIZES)}"]
    for name, measured in found.items():
        cells = "".join(
            f" {each['average_precision']:.3f} ({each['average_precision'] / measured['lightgbm']:.2f}, "
            f"{each['bullets']:.0f} bullets) |"
            for each in measured["sizes"].values()
        )
        rows.append(f"| {name} | {measured['lightgbm']:.3f} |{cells}")
    return rows
