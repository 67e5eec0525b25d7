"""`python -m benchmarks lessons`: whether what a playbook says is worth reading.

On each dataset: rules that shuffled labels bring (there should be none), bullets that argue against their own evidence,
how short bullets are, whether they are found again on resampled rows, and whether their intervals hold on later rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from acefraud import Bullet, BulletPlaybook, Cases, FactTable, Learner, LearnerOptions, Transactions
from acefraud.errors import ConfigurationError
from benchmarks.arrays import Mask, Places
from benchmarks.console import JsonOption, names_in, out, print_json, progress
from benchmarks.quality.dataset_folder import data_folder, sources
from benchmarks.quality.evidence import evidence_held
from benchmarks.quality.measures import average_precision
from benchmarks.quality.playbooks import NODE
from benchmarks.quality.splits import split_rows, taken

SAME = 0.8
"""A Jaccard index from which on two bullets are one lesson."""
HEAVIEST = 10
NOISE_ROWS, NOISE_FACTS = 3_000, 12
NOISE = "pure noise"
FolderArgument = Annotated[
    Path | None, typer.Argument(help="Folder of datasets: NAME/data.csv or NAME/data.parquet. Default: $ACEFRAUD_DATA.")
]


def lessons(
    folder: FolderArgument = None,
    *,
    datasets: Annotated[str | None, typer.Option(help="Only these datasets, separated by commas.")] = None,
    mappings: Annotated[Path | None, typer.Option(help="Folder with a mapping NAME.toml for each dataset.")] = None,
    last: Annotated[int, typer.Option("--rows", min=200, help="The most recent rows of each dataset.")] = 100_000,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Fits with the true labels.")] = 3,
    shuffles: Annotated[int, typer.Option(min=0, max=100, help="Fits with shuffled labels.")] = 5,
    bootstraps: Annotated[int, typer.Option(min=0, max=100, help="Fits with resampled rows.")] = 5,
    plain: Annotated[bool, typer.Option("--plain", help="Learn short bullets only.")] = False,
    json: JsonOption = False,
) -> None:
    """Measure whether bullets are **worth reading**: none from noise or against its evidence, short, and found again.

    A playbook learns the first 70 % of the rows by time. Its intervals and its average precision are measured on the
    rest. "Found again" is the share of the ten heaviest bullets of the first fit that a fit on resampled rows has too.

        python -m benchmarks lessons ../shared/data --mappings benchmarks/mappings --rows 20000
    """
    found = sources(data_folder(folder), names=names_in(datasets), mappings=mappings)
    if not found:
        raise ConfigurationError("no dataset to measure")
    figures: dict[str, dict[str, Any]] = {}
    with progress("learning") as done:
        for index, source in enumerate(found):
            cases = source.load(last).train
            split = split_rows(cases, name=source.name)
            train, test = taken(cases, split.train), taken(cases, split.test)
            study = Study(train, test, plain=plain)
            figures[source.name] = study.figures(seeds, shuffles, bootstraps)
            done((index + 1) / (len(found) + 1))
        if shuffles:
            figures[NOISE] = {"shuffled": [len(learnt(noise(seed), seed)) for seed in range(shuffles)]}
    if json:
        print_json(figures)
        return
    out.print(_table(figures))


@dataclass(frozen=True, slots=True)
class Study:
    """Rows to learn from and later rows to measure on."""

    train: Cases
    test: Cases
    plain: bool = False

    def figures(self, seeds: int, shuffles: int, bootstraps: int) -> dict[str, Any]:
        """All figures of a dataset."""
        fits = [self._learnt(self.train, seed) for seed in range(seeds)]
        books = [fit.get_bullets_for_node(NODE) for fit in fits]
        bullets = [bullet for book in books for bullet in book]
        held = evidence_held(bullets, self.test.facts, self.test.labels)
        widths = [high - low for low, high in (b.evidence.interval for b in bullets if b.evidence)]
        rows = (
            np.sort(np.random.default_rng(500 + b).integers(0, len(self.train), len(self.train)))
            for b in range(bootstraps)
        )
        again = [self._found_again(books[0], resampled(self.train, sample)) for sample in rows]
        return {
            "bullets": [len(book) for book in books],
            "average_precision": [round(self._precision(fit, seed), 4) for seed, fit in enumerate(fits)],
            "against": sum(map(argues_against_evidence, bullets)),
            "short": round(mean(map(is_short, bullets)), 4) if bullets else None,
            "inside": held.as_json(),
            "median_width": round(median(widths), 4) if widths else None,
            "found_again": again,
            "shuffled": [
                len(self._learnt(shuffled(self.train, s), s).get_bullets_for_node(NODE)) for s in range(shuffles)
            ],
        }

    def _learnt(self, cases: Cases, seed: int) -> BulletPlaybook:
        playbook = BulletPlaybook()
        Learner(playbook, options=LearnerOptions(seed=seed, plain=self.plain)).study(cases)
        return playbook

    def _precision(self, playbook: BulletPlaybook, seed: int) -> float:
        learner = Learner(playbook, options=LearnerOptions(seed=seed))
        scores = learner.score_all(self.test.transactions, every_bullet=True).probabilities
        return average_precision(scores, self.test.labels)

    def _found_again(self, book: Sequence[Bullet], cases: Cases) -> float | None:
        heaviest = sorted(book, key=lambda bullet: -abs(bullet.weight or 0.0))[:HEAVIEST]
        others = _masks(self._learnt(cases, 0).get_bullets_for_node(NODE), self.test.facts)
        mine = _masks(heaviest, self.test.facts)
        return round(mean(any(nearly_same(mask, other) for other in others) for mask in mine), 4) if mine else None


def learnt(cases: Cases, seed: int) -> list[Bullet]:
    """The bullets that cases teach."""
    return Study(cases, cases)._learnt(cases, seed).get_bullets_for_node(NODE)


def shuffled(cases: Cases, seed: int) -> Cases:
    """The same transactions with their labels in another order."""
    return Cases(cases.transactions, np.random.default_rng(100 + seed).permutation(cases.labels))


def resampled(cases: Cases, rows: Places) -> Cases:
    """A bootstrap of the cases, each row with an id of its own."""
    drawn = cases.take(rows)
    before = drawn.transactions
    ids = np.array([f"r{number}" for number in range(len(rows))], dtype=before.ids.dtype)
    return Cases(Transactions(ids, before.facts, times=before.times), drawn.labels)


def noise(seed: int) -> Cases:
    """Facts and labels that have nothing to do with each other; 2 to 30 % fraud."""
    generator = np.random.default_rng(seed)
    columns = {f"x{number}": generator.normal(size=NOISE_ROWS) for number in range(NOISE_FACTS)}
    facts = FactTable(
        [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    )
    labels = generator.random(NOISE_ROWS) < generator.uniform(0.02, 0.3)
    return Cases(Transactions(np.array([f"n{row}" for row in range(NOISE_ROWS)]), facts), labels)


def argues_against_evidence(bullet: Bullet) -> bool:
    """Whether a bullet with more fraud than usual argues for approval, or the other way round."""
    lift = bullet.evidence.lift if bullet.evidence else None
    return lift is not None and (bullet.weight or 0.0) * (lift - 1) < 0


def is_short(bullet: Bullet) -> bool:
    """At most two tests, and lists of at most three values."""
    tests = bullet.condition.tests if bullet.condition else ()
    listed = (len(test.value) for test in tests if isinstance(test.value, tuple))
    return len(tests) <= 2 and max(listed, default=1) <= 3


def nearly_same(one: Mask, other: Mask) -> bool:
    """Whether two bullets hold on nearly the same rows."""
    return bool((one & other).sum() >= SAME * (one | other).sum() > 0)


def _masks(bullets: Sequence[Bullet], facts: FactTable) -> list[Mask]:
    return [bullet.condition.holds_in(facts) for bullet in bullets if bullet.condition]


def _table(figures: dict[str, dict[str, Any]]) -> Table:
    columns = ("dataset", "bullets", "AP", "against", "short", "inside", "median width", "found again", "shuffled")
    table = Table(*columns, box=SIMPLE_HEAD)
    for name, of in figures.items():
        again = [share for share in of.get("found_again", ()) if share is not None]
        table.add_row(
            name,
            _joined(of.get("bullets", ())),
            f"{mean(of['average_precision']):.3f}" if "average_precision" in of else "",
            str(of.get("against", "")),
            f"{of['short']:.0%}" if of.get("short") is not None else "",
            f"{of['inside']['inside']} of {of['inside']['of']}" if "inside" in of else "",
            str(of.get("median_width") or ""),
            f"{mean(again):.2f} ({min(again):.2f})" if again else "",
            _joined(of["shuffled"]),
        )
    return table


def _joined(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
