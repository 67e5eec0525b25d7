"""What was measured, and what each figure means."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.speed.timing import growth, label

WANTED: dict[str, tuple[str, float]] = {
    "selection_10k.plain_loop": (">=", 100),
    "dedupe_10k.difflib": (">=", 300),
    "dedupe_10k.disagreements": ("<=", 0),
    "decision_batch.lightgbm": (">=", 10),
    "decision_with_ledger.allowed": ("<=", 1),
    "decision_with_ledger_batch.allowed": ("<=", 1),
}
"""What is to be kept to."""


@dataclass(slots=True)
class Figures:
    """All that one run measured. Names are of the form ``group_size.peer``."""

    sizes: tuple[int, ...]
    seed: int
    ratios: dict[str, float] = field(default_factory=dict)
    meaning: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, dict[int, float]] = field(default_factory=dict)
    """Seconds by what was done and, where it depends on that, the number of bullets; else under 0."""
    shares: dict[str, dict[str, float]] = field(default_factory=dict)
    """Which share of the book each stage left, by workload and size."""
    about: dict[str, Any] = field(default_factory=dict)

    def time(self, name: str, seconds: float, size: int = 0) -> float:
        """Note how long something took."""
        self.seconds.setdefault(name, {})[size] = seconds
        return seconds

    def faster(self, name: str, theirs: float, ours: float, than: str) -> None:
        """Note how many times as long the other way takes."""
        self.ratio(name, theirs / ours, f"how many times faster than {than}")

    def ratio(self, name: str, value: float, meaning: str) -> None:
        """Note a ratio of another kind, or a count."""
        self.ratios[name] = value
        self.meaning[name] = meaning

    @property
    def growth(self) -> dict[str, float]:
        """The exponents with which times grow with the number of bullets."""
        found = {name: growth(by_size) for name, by_size in self.seconds.items() if 0 not in by_size}
        return {name: exponent for name, exponent in found.items() if exponent is not None}

    @property
    def missed(self) -> list[str]:
        """What is not as it should be."""
        return [name for name, value in self.ratios.items() if not as_wanted(name, value)]

    def as_json(self) -> dict[str, Any]:
        """Everything, for scripts."""
        return {
            "ratios": self.ratios,
            "meaning": self.meaning,
            "wanted": {name: " ".join(map(str, WANTED[name])) for name in self.ratios if name in WANTED},
            "missed": self.missed,
            "seconds": {named(name, size): each for name, got in self.seconds.items() for size, each in got.items()},
            "growth": self.growth,
            "shares": self.shares,
            "sizes": list(self.sizes),
            "seed": self.seed,
            "about": {**computer(), **self.about},
        }


def named(name: str, size: int) -> str:
    """A name with the size behind it, where it depends on that.

    >>> named("selection", 10_000), named("decision", 0)
    ('selection_10k', 'decision')
    """
    return f"{name}_{label(size)}" if size else name


def as_wanted(name: str, value: float) -> bool:
    """Whether a figure is as it should be; also where nobody wants anything of it.

    >>> as_wanted("dedupe_10k.difflib", 299.0), as_wanted("decision.lightgbm", 0.1)
    (False, True)
    """
    if name not in WANTED:
        return True
    way, bound = WANTED[name]
    return value >= bound if way == ">=" else value <= bound


def computer() -> dict[str, Any]:
    """What it was measured on."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    }


def _processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()
