"""The figures beside tuned boosters, as JSON and as a Markdown table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.quality.contenders import OURS, REFERENCE
from benchmarks.quality.measurement import DatasetFigures
from benchmarks.quality.results import described, table, with_mean
from benchmarks.tuned.search import Found, shown

HEADINGS = (
    "dataset", "ours", "LightGBM", "tuned LightGBM", "tuned CatBoost", "ours / better tuned", "trials", "search s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """A dataset, what everyone reached on it, and what the searches found."""

    figures: DatasetFigures
    found: Mapping[str, Sequence[Found]]
    """By booster; one for each search."""

    def average_precision(self, name: str) -> float | None:
        """The mean over the seeds; None if the learner failed."""
        one = self.figures.models.get(name)
        return None if one is None else one.figures["average_precision"].mean

    @property
    def ratio(self) -> float | None:
        """Our average precision as a share of that of the tuned booster that does better on the test rows."""
        ours, tuned = self.average_precision(OURS), [self.average_precision(name) for name in self.found]
        best = max((each for each in tuned if each is not None), default=0.0)
        return None if ours is None or None in tuned or best <= 0 else ours / best


@dataclass(frozen=True, slots=True)
class Comparison:
    """What everyone reached on every dataset."""

    datasets: Sequence[Measured]
    seeds: int

    @property
    def ratios(self) -> dict[str, float | None]:
        """Our share of the better tuned booster's average precision by dataset, and the geometric mean."""
        return with_mean({dataset.figures.name: dataset.ratio for dataset in self.datasets})

    @property
    def failed(self) -> list[str]:
        """Which learners failed, and where."""
        return [
            f"{name} on {dataset.figures.name}: {why}"
            for dataset in self.datasets
            for name, why in dataset.figures.failed.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """All figures and the settings that were found."""
        return {
            "datasets": {
                dataset.figures.name: {
                    "average_precision": {
                        name: model.figures["average_precision"].as_json()
                        for name, model in dataset.figures.models.items()
                    },
                    "ratio_to_better_tuned": None if dataset.ratio is None else round(dataset.ratio, 6),
                    "searches": {
                        name: [asdict(search) for search in searches] for name, searches in dataset.found.items()
                    },
                    "about": described(dataset.figures),
                    "failed": dataset.figures.failed,
                }
                for dataset in self.datasets
            },
            "ratio_to_better_tuned": self.ratios,
            "seeds": self.seeds,
        }

    def rows(self) -> list[list[str]]:
        """The cells of the table, with the geometric mean in the last row."""
        cells = [
            [
                dataset.figures.name,
                *(_number(dataset.average_precision(name)) for name in (OURS, REFERENCE, *dataset.found)),
                _number(dataset.ratio),
                ", ".join(str(sum(each.trials for each in searches)) for searches in dataset.found.values()),
                ", ".join(f"{sum(each.seconds for each in searches):,.0f}" for searches in dataset.found.values()),
            ]
            for dataset in self.datasets
        ]
        mean = _number(self.ratios["geometric_mean"])
        return [*cells, ["geometric mean", *[""] * 4, mean, "", ""]]

    def as_markdown(self) -> str:
        """The table, then the settings that were found."""
        parts = [
            "# Beside tuned boosters\n",
            f"Average precision; seeds: {self.seeds}.\n",
            table(HEADINGS, self.rows()),
        ]
        for dataset in self.datasets:
            parts += [f"## {dataset.figures.name}\n", described(dataset.figures) + "\n"]
            parts.append("\n".join(f"- {text}" for text in _settings(dataset)) + "\n")
        return "\n".join(parts)


def _settings(one: Measured) -> list[str]:
    return [
        f"{name}: {search.trees} trees, "
        + ", ".join(f"{setting} {shown(value)}" for setting, value in search.settings.items())
        + f"; validation AP {search.average_precision:.3f} with {search.rows:,} rows"
        for name, searches in one.found.items()
        for search in searches
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
