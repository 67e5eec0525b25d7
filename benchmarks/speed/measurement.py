"""Everything in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from acefraud.errors import ConfigurationError
from benchmarks.quality.peers import needed
from benchmarks.speed.curation import (
    ADDED,
    COMPARED_NEW,
    count_disagreements,
    measure_adding_conditions,
    measure_adding_prose,
    measure_dedupe,
    note_growth,
)
from benchmarks.speed.decisions import measure_decisions
from benchmarks.speed.figures import Figures
from benchmarks.speed.prose import prose_book
from benchmarks.speed.selection import as_shipped, measure_selection, spread
from benchmarks.speed.timing import Effort, label

SIZES = "1k,10k"
MOST = 10_000
DECISION_BULLETS = 1_000
_THOUSAND = "k"

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
            return cls(Effort(), Effort(20.0, 5, 20))
        once = Effort(0.0, 1, 1)
        return cls(once, once, bullets=min(sizes), added=10, compared=10)


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the run, with roughly the seconds that it takes."""

    seconds: float
    work: Callable[[], None]


def sizes_in(text: str) -> tuple[int, ...]:
    """Sizes as they are written in an option, in ascending order.

    >>> sizes_in("10k, 1k,500")
    (500, 1000, 10000)
    """
    sizes = {_size(part.strip().lower()) for part in text.split(",") if part.strip()}
    if not sizes:
        raise ConfigurationError(f"--sizes: expected numbers of bullets such as {SIZES}, got none")
    return tuple(sorted(sizes))


def _size(text: str) -> int:
    digits, unit = (text[:-1], 1_000) if text.endswith(_THOUSAND) else (text, 1)
    if not digits.isdecimal() or not 50 <= int(digits) * unit <= MOST:
        raise ConfigurationError(f"--sizes: expected numbers of bullets from 50 to {label(MOST)}, got '{text}'")
    return int(digits) * unit


def check_libraries() -> None:
    """A missing library is reported now, not after an hour."""
    for module in ("lightgbm", "river.forest", "matplotlib"):
        needed(module)


def measure_speed(sizes: Sequence[int], seed: int = 0, progress: Done = lambda _: None) -> Figures:
    """All figures. Files are written to a temporary folder that is gone afterwards."""
    figures, amounts = Figures(tuple(sizes), seed), Amounts.for_sizes(sizes)
    with TemporaryDirectory(prefix="acefraud-speed-") as folder:
        steps = list(_steps(figures, amounts, Path(folder)))
        whole, done = sum(step.seconds for step in steps), 0.0
        for step in steps:
            step.work()
            done += step.seconds
            progress(done / whole)
    note_growth(figures)
    return figures


def _steps(figures: Figures, amounts: Amounts, folder: Path) -> Iterator[Step]:
    seed = figures.seed
    for size in figures.sizes:
        yield Step(20 + size / 250, partial(_on_prose, figures, size, amounts))
        yield Step(5 + size / 1_000, partial(measure_adding_conditions, figures, size, seed, amounts.added))
    yield Step(40, lambda: count_disagreements(figures, figures.sizes[-1], seed, amounts.compared))
    yield Step(60, lambda: measure_decisions(figures, amounts.bullets, seed, amounts.deciding, folder))


def _on_prose(figures: Figures, size: int, amounts: Amounts) -> None:
    """All that is measured on one book in prose; filling it takes longest. What adds to it comes last."""
    book = prose_book(size, figures.seed)
    for workload in (as_shipped, spread):
        measure_selection(figures, workload(book, figures.seed), amounts.effort)
    measure_dedupe(figures, book, figures.seed, amounts.effort)
    measure_adding_prose(figures, book, figures.seed, amounts.added)
