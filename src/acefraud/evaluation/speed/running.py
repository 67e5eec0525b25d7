"""Everything in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from acefraud.errors import ConfigurationError
from acefraud.evaluation.quality.peers import needed
from acefraud.evaluation.speed.curation import (
    ADDED,
    COMPARED_NEW,
    DIFFLIB_UP_TO,
    count_disagreements,
    measure_adding,
    measure_dedupe,
    note_growth,
)
from acefraud.evaluation.speed.deciding import measure_deciding
from acefraud.evaluation.speed.embedding import measure_second_run
from acefraud.evaluation.speed.figures import Figures
from acefraud.evaluation.speed.large import measure_large
from acefraud.evaluation.speed.selection import Workload, measure_selection, prose, spread
from acefraud.evaluation.speed.timing import Effort, label

SIZES = "1k,10k,100k,1m"
LARGE = 500_000
"""Books from this size on are measured on a file, in processes of their own."""
MOST = 5_000_000
DECISION_BULLETS = 1_000
_UNITS = {"k": 1_000, "m": 1_000_000}

Done = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much is done. Books of some hundred bullets are for trying out, and everything else is small then too."""

    effort: Effort
    deciding: Effort
    bullets: int = DECISION_BULLETS
    added: int = ADDED
    compared: int = COMPARED_NEW

    @classmethod
    def for_sizes(cls, sizes: Sequence[int]) -> Amounts:
        """What suits these sizes."""
        if max(sizes) >= 1_000:
            return cls(Effort(), Effort(20.0, 5, 50))
        once = Effort(0.0, 1, 1)
        return cls(once, once, bullets=min(sizes), added=10, compared=10)


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the run, with roughly the seconds that it takes."""

    seconds: float
    work: Callable[[Done], None]


def sizes_in(text: str) -> tuple[int, ...]:
    """Sizes as they are written in an option, in ascending order.

    >>> sizes_in("10k, 1k,1m")
    (1000, 10000, 1000000)
    """
    sizes = {_size(part.strip().lower()) for part in text.split(",") if part.strip()}
    if not sizes:
        raise ConfigurationError("--sizes: expected numbers of bullets such as 1k,10k,100k,1m, got none")
    return tuple(sorted(sizes))


def _size(text: str) -> int:
    unit = _UNITS.get(text[-1], 1)
    digits = text[:-1] if text[-1] in _UNITS else text
    if not digits.isdecimal() or not 50 <= int(digits) * unit <= MOST:
        raise ConfigurationError(f"--sizes: expected numbers of bullets from 50 to {label(MOST)}, got '{text}'")
    return int(digits) * unit


def check_libraries() -> None:
    """A missing library is told now, not after an hour."""
    for module in ("lightgbm", "river.forest", "matplotlib"):
        needed(module)


def measure_speed(sizes: Sequence[int], seed: int = 0, progress: Done = lambda _: None) -> Figures:
    """All figures. Files are written to a temporary folder that is gone afterwards."""
    figures, amounts = Figures(tuple(sizes), seed), Amounts.for_sizes(sizes)
    with TemporaryDirectory(prefix="acefraud-speed-") as folder:
        steps = list(_steps(figures, amounts, Path(folder)))
        whole, done = sum(step.seconds for step in steps), 0.0
        for step in steps:
            step.work(partial(_part_of_all, progress, done, step.seconds, whole))
            done += step.seconds
            progress(done / whole)
    note_growth(figures)
    return figures


def _part_of_all(progress: Done, done: float, own: float, whole: float, share: float) -> None:
    progress((done + own * share) / whole)


def _steps(figures: Figures, amounts: Amounts, folder: Path) -> Iterator[Step]:
    seed, effort = figures.seed, amounts.effort
    small = [size for size in figures.sizes if size < LARGE]
    for size in small:
        for workload in (prose, spread):
            yield Step(10 + size / 2_000, partial(_selection, figures, workload, size, effort))
        yield Step(5 + size / 2_000, partial(_dedupe, figures, size, effort))
        yield Step(5 + size / 2_000, partial(_adding, figures, size, amounts.added))
    compared = [size for size in small if size <= DIFFLIB_UP_TO]
    if compared:
        largest = compared[-1]
        yield Step(40, lambda _: count_disagreements(figures, largest, seed, amounts.compared))
    yield Step(60, lambda _: measure_deciding(figures, amounts.bullets, seed, amounts.deciding, folder))
    yield Step(5, lambda _: measure_second_run(figures, seed, folder / "second_run"))
    for size in figures.sizes:
        if size >= LARGE:
            yield Step(size / 2_000, partial(measure_large, figures, size, seed, folder))
    if not any(size >= LARGE for size in figures.sizes):
        figures.skipped.append("a million bullets: --sizes leaves them out")


def _selection(figures: Figures, workload: Callable[[int, int], Workload], size: int, effort: Effort, _: Done) -> None:
    measure_selection(figures, workload(size, figures.seed), effort)


def _dedupe(figures: Figures, size: int, effort: Effort, _: Done) -> None:
    measure_dedupe(figures, size, figures.seed, effort)


def _adding(figures: Figures, size: int, added: int, _: Done) -> None:
    measure_adding(figures, size, figures.seed, added)
