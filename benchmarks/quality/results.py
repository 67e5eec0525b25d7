"""The figures of all datasets, as JSON and as Markdown tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acefraud.evaluation.metrics import Interval
from benchmarks.quality.contenders import OURS, REFERENCE, WITHOUT_DRAWS
from benchmarks.quality.measurement import DatasetFigures, ModelFigures

_FIGURES = ("AP", "ROC AUC", "recall at 0.5 % FP", "recall at 1 % FP", "ECE", "ECE, equal mass", "AP / LightGBM")
_HEADINGS = (
    "model", *_FIGURES, "size", "cited", "inside interval", "fit s", "to LightGBM", "predict s", "to LightGBM",
)  # fmt: skip
_STREAM_HEADINGS = ("dataset", "model", *_FIGURES, "size", "cited", "learn s", "decide s", "rows/s")


@dataclass(frozen=True, slots=True)
class Quality:
    """What every learner reached on every dataset."""

    datasets: Sequence[DatasetFigures]
    seeds: int
    not_measured: Mapping[str, str] = field(default_factory=dict)
    """Datasets that could not be read or split, and why."""

    @property
    def method(self) -> str:
        """How the intervals were made."""
        how = "test rows drawn anew, 200 times, middle 95 %"
        return how if self.seeds == 1 else f"means over {self.seeds} seeds; {how} of the draws of all seeds together"

    @property
    def failed(self) -> list[str]:
        """Which datasets could not be measured and which learners failed, and where."""
        unread = [f"{name}: {why}" for name, why in self.not_measured.items()]
        return unread + [
            f"{name} on {data.name}: {error}" for data in self.datasets for name, error in data.failed.items()
        ]

    @property
    def has_ratios(self) -> bool:
        """Whether LightGBM took part, so that there are ratios."""
        return any(REFERENCE in data.models for data in self.datasets)

    def ratios(self) -> dict[str, dict[str, float | None]]:
        """Each model's average precision as a share of LightGBM's by dataset, and the geometric mean."""
        models = list(dict.fromkeys(name for data in self.datasets for name in data.models))
        return {name: with_mean({data.name: ratio(data, name) for data in self.datasets}) for name in models}

    def as_json(self) -> dict[str, Any]:
        """All figures. ``ratio_to_lightgbm`` is that of the playbook; ``ratios`` has everyone's."""
        ratios = self.ratios() if self.has_ratios else {}
        return {
            "datasets": {data.name: _everyone(data) for data in self.datasets},
            "ratio_to_lightgbm": ratios.get(OURS, {}),
            "ratios": ratios,
            "exploration_cost": {data.name: _rounded(exploration_cost(data)) for data in self.datasets},
            "not_measured": dict(self.not_measured),
            "about": {data.name: _about(data) for data in self.datasets},
            "settings": {name: model.settings for data in self.datasets for name, model in data.models.items()},
            "seeds": self.seeds,
            "intervals": self.method,
        }

    def as_markdown(self) -> str:
        """A table of ratios, one of the stream learners, one for each dataset, and the settings.

        Stream learners have their own table: they decide other rows than the rest.
        """
        parts = ["# Quality beside other learners\n", f"Intervals: {self.method}.\n"]
        parts += [*self._ratio_table(), *self._stream_table()]
        for data in self.datasets:
            parts += [f"## {data.name}\n", described(data) + "\n", table(_HEADINGS, _rows(data))]
            parts += [f"{text}\n" for text in remarks(data)]
        for name, why in self.not_measured.items():
            parts += [f"## {name}\n", f"Not measured: {why}\n"]
        parts.append("## Settings\n")
        settings = {name: model.settings for data in self.datasets for name, model in data.models.items()}
        parts.append("\n".join(f"- {name}: {text}" for name, text in settings.items()) + "\n")
        return "\n".join(parts)

    def _ratio_table(self) -> Iterator[str]:
        if not self.has_ratios:
            return
        yield "## Average precision as a share of LightGBM's\n"
        cells = [
            [name, *(_number(each, 3) for each in got.values())]
            for name, got in self.ratios().items()
            if name not in self._streamed
        ]
        yield table(["model", *(data.name for data in self.datasets), "geometric mean"], cells)

    def _stream_table(self) -> Iterator[str]:
        if not self._streamed:
            return
        yield "## On a stream\n"
        yield table(_STREAM_HEADINGS, [row for data in self.datasets for row in _stream_rows(data)])
        ratios = {name: self.ratios()[name]["geometric_mean"] for name in self._streamed}
        known = [f"{each:.3f} ({name})" for name, each in ratios.items() if each is not None]
        if known:
            yield f"AP / LightGBM is on the rows that both decided; its geometric mean is {', '.join(known)}.\n"

    @property
    def _streamed(self) -> list[str]:
        """The models that learn from the stream."""
        return list(
            dict.fromkeys(name for data in self.datasets for name, model in data.models.items() if model.streamed)
        )


def ratio(data: DatasetFigures, name: str) -> float | None:
    """Average precision as a share of LightGBM's, on the rows that both were measured on."""
    one, other = data.models.get(name), data.models.get(REFERENCE)
    if one is None or other is None:
        return None
    ours, theirs = one.figures["average_precision"].mean, other.figures["average_precision"].mean
    if one.streamed:
        ours, theirs = one.on_stream_rows, other.on_stream_rows
    return ours / theirs if theirs > 0 and not math.isnan(ours) else None


def exploration_cost(data: DatasetFigures) -> float | None:
    """How much average precision the playbook loses because its selector explores."""
    ours, without = data.models.get(OURS), data.models.get(WITHOUT_DRAWS)
    if ours is None or without is None:
        return None
    return without.figures["average_precision"].mean - ours.figures["average_precision"].mean


def remarks(data: DatasetFigures) -> list[str]:
    """Sentences about the playbook: whether its figures held, and what exploration costs."""
    said, ours = [], data.models.get(OURS)
    if ours is not None and ours.evidence_held is not None and ours.evidence_held.share is not None:
        held = ours.evidence_held
        said.append(
            f"Evidence held: of {held.of:,} bullets that held on some test row, {held.inside:,} ({held.share:.1%}) had "
            "a share of fraud inside the interval printed when they were learnt."
        )
    cost = exploration_cost(data)
    if ours is not None and cost is not None:
        mean = ours.figures["average_precision"].mean
        said.append(f"Exploration: an AP of {mean:.3f} beside {mean + cost:.3f} without draws ({0 - cost:+.3f}).")
    return said


def with_mean(ratios: Mapping[str, float | None]) -> dict[str, float | None]:
    """Ratios by dataset, and the geometric mean of those that are known."""
    known = [each for each in ratios.values() if each is not None]
    mean = None
    if known:
        mean = math.exp(sum(math.log(each) for each in known) / len(known)) if min(known) > 0 else 0.0
    rounded = {name: None if each is None else round(each, 6) for name, each in ratios.items()}
    return {**rounded, "geometric_mean": None if mean is None else round(mean, 6)}


def _everyone(data: DatasetFigures) -> dict[str, Any]:
    return {name: _model(data, name) for name in data.models} | {
        name: {"error": error} for name, error in data.failed.items()
    }


def _model(data: DatasetFigures, name: str) -> dict[str, Any]:
    one, other = data.models[name], data.models.get(REFERENCE)
    return {
        **{figure: interval.as_json() for figure, interval in one.figures.items()},
        "average_precision_on_stream_rows": _rounded(one.on_stream_rows),
        "size": one.size,
        "cited_mean": _rounded(one.cited_mean),
        "cited_max": one.cited_max,
        **({} if one.evidence_held is None else {"evidence_held": one.evidence_held.as_json()}),
        "learnt_from": one.learnt_from,
        "fit_seconds": _rounded(one.fit_seconds),
        "predict_seconds": _rounded(one.predict_seconds),
        "fit_ratio_to_lightgbm": _rounded(_share(one.fit_seconds, other.fit_seconds if other else None)),
        "predict_ratio_to_lightgbm": _rounded(_share(one.predict_seconds, other.predict_seconds if other else None)),
        "rows_per_second": _rounded(one.rows_per_second),
    }


def _share(seconds: float, other: float | None) -> float | None:
    return seconds / other if other else None


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 6)


def _about(data: DatasetFigures) -> dict[str, Any]:
    names = ("rows", "frauds", "train_rows", "train_frauds", "test_rows", "test_frauds", "split", "stream_rows")
    more = ("stream_measured", "stream_capped", "bad_rows", "unlabelled")
    about = {name: getattr(data, name) for name in (*names, *more)}
    return {**about, "labels_too_late": data.late, "facts": list(data.facts)}


def described(data: DatasetFigures) -> str:
    """A dataset in a few sentences."""
    text = (
        f"{data.rows:,} rows, {data.frauds / data.rows:.2%} fraud, {len(data.facts)} facts. Test: {data.split} "
        f"({data.test_rows:,} rows, {data.test_frauds:,} frauds); learnt from {data.train_rows:,} rows with "
        f"{data.train_frauds:,} frauds."
    )
    if data.late:
        text += f" {data.late:,} rows were not learnt from, since their label came after the test had begun."
    if data.stream_capped:
        text += (
            f" Stream learners began with the last {data.stream_rows - data.stream_measured:,} rows whose labels were "
            f"known by then, and were measured on the last {data.stream_measured:,}; on these rows the others reach an "
            "AP of "
            + ", ".join(
                f"{model.on_stream_rows:.3f} ({name})" for name, model in data.models.items() if not model.streamed
            )
            + "."
        )
    return text


def _rows(data: DatasetFigures) -> list[list[str]]:
    failed = [[name, f"failed: {error}", *[""] * (len(_HEADINGS) - 2)] for name, error in data.failed.items()]
    return [_row(data, name, model) for name, model in data.models.items() if not model.streamed] + failed


def _stream_rows(data: DatasetFigures) -> Iterator[list[str]]:
    for name, model in data.models.items():
        if model.streamed:
            seconds = [f"{model.fit_seconds:,.2f}", f"{model.predict_seconds:,.2f}"]
            yield [data.name, *_merit(data, name, model), *seconds, f"{model.rows_per_second or 0:,.0f}"]


def _merit(data: DatasetFigures, name: str, one: ModelFigures) -> list[str]:
    """The cells that all tables have: how good a model is, and how large."""
    return [
        name,
        *(_interval(interval) for interval in one.figures.values()),
        _number(ratio(data, name), 3),
        "" if one.size is None else f"{one.size:,.0f}",
        "" if one.cited_mean is None else f"{one.cited_mean:.1f} (max {one.cited_max})",
    ]


def _row(data: DatasetFigures, name: str, one: ModelFigures) -> list[str]:
    other, held = data.models.get(REFERENCE), one.evidence_held
    return [
        *_merit(data, name, one),
        "" if held is None else f"{held.inside:,} of {held.of:,}",
        f"{one.fit_seconds:,.2f}",
        _number(_share(one.fit_seconds, other.fit_seconds if other else None), 2),
        f"{one.predict_seconds:,.2f}",
        _number(_share(one.predict_seconds, other.predict_seconds if other else None), 2),
    ]


def _interval(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return _number(interval.mean, 3)
    return f"{interval.mean:.3f} ({interval.low:.3f}–{interval.high:.3f})"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def table(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    return "\n".join(lines) + "\n"
