"""Curves of a dataset: precision and recall, figures along the stream, and whether probabilities can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from acefraud.core.table import Mask, Numbers
from acefraud.evaluation.quality.measures import Groups, average_precision
from acefraud.evaluation.quality.peers import needed
from acefraud.evaluation.quality.running import DatasetFigures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOWS = 20
_SIZE = (8.5, 4.5)
_POINTS = 500


def pictures(data: DatasetFigures) -> dict[str, bytes]:
    """PNG files by their names; none where nobody came to figures."""
    if not data.models:
        return {}
    return {
        f"{data.name}_precision_recall.png": _drawn(data, 1, _precision_recall),
        f"{data.name}_stream.png": _drawn(data, 2, _along_the_stream),
        f"{data.name}_reliability.png": _drawn(data, 1, _reliability),
    }


def _drawn(data: DatasetFigures, panels: int, draw: Callable[[DatasetFigures, Any], None]) -> bytes:
    figure = needed("matplotlib.figure").Figure(figsize=(_SIZE[0], _SIZE[1] * panels), layout="constrained")
    axes = figure.subplots(panels, 1)
    draw(data, axes)
    figure.suptitle(data.name)
    page = BytesIO()
    figure.savefig(page, format="png", dpi=110, metadata={"Software": None})
    return page.getvalue()


def _colour(at: int) -> str:
    return f"C{at % 10}"


def _style(at: int) -> str:
    return "--" if at >= 10 else "-"


def _legend(axes: Axes, title: str | None = None) -> None:
    axes.legend(fontsize="small", title=title, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _precision_recall(data: DatasetFigures, axes: Axes) -> None:
    for at, (name, model) in enumerate(data.models.items()):
        recall, precision = precision_recall(model.first.scores, model.first.labels)
        area = model.figures["average_precision"].mean
        axes.step(recall, precision, where="pre", color=_colour(at), linestyle=_style(at), label=f"{name} {area:.3f}")
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    _legend(axes, "average precision")


def precision_recall(scores: Numbers, labels: Mask) -> tuple[Numbers, Numbers]:
    """Recall and precision at each threshold, thinned to what a picture can show."""
    groups = Groups.of(scores, labels)
    caught, declined = np.cumsum(groups.frauds), np.cumsum(groups.mass)
    some = np.unique(np.linspace(0, len(caught) - 1, _POINTS).astype(np.int64))
    recall, precision = caught[some] / caught[-1], caught[some] / declined[some]
    return np.append(0.0, recall), np.append(precision[0], precision)


def _along_the_stream(data: DatasetFigures, axes: Any) -> None:
    for at, (name, model) in enumerate(data.models.items()):
        on = model.first.on_stream
        scores, labels = model.first.scores[on], model.first.labels[on]
        for panel, values in zip(axes, windowed(scores, labels), strict=True):
            share = (np.arange(len(values)) + 0.5) / len(values) * len(scores)
            panel.plot(share, values, color=_colour(at), linestyle=_style(at), label=name)
    axes[0].set(ylabel="accuracy at one half")
    axes[1].set(ylabel="average precision", xlabel=f"measured rows, in {WINDOWS} windows")
    _legend(axes[0])


def windowed(scores: Numbers, labels: Mask) -> tuple[Numbers, Numbers]:
    """Accuracy and average precision in windows of equal length; NaN where a window has no fraud."""
    parts = [part for part in np.array_split(np.arange(len(scores)), WINDOWS) if len(part)]
    accuracy = [float(np.mean((scores[part] >= 0.5) == labels[part])) for part in parts]
    precision = [average_precision(scores[part], labels[part]) for part in parts]
    return np.array(accuracy), np.array(precision)


def _reliability(data: DatasetFigures, axes: Axes) -> None:
    for at, (name, model) in enumerate(data.models.items()):
        scores, labels = model.first.scores, model.first.labels
        if scores.min() >= 0 and scores.max() <= 1:
            said, found = reliability(scores, labels)
            axes.plot(said, found, marker=".", color=_colour(at), linestyle=_style(at), label=name)
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    axes.set(xlabel="mean score of a bin", ylabel="share of fraud", xlim=(0, 1), ylim=(0, 1))
    _legend(axes)


def reliability(scores: Numbers, labels: Mask) -> tuple[Numbers, Numbers]:
    """Mean score and share of fraud in each bin of equal mass."""
    groups = Groups.of(scores, labels)
    bins, mass = groups.bins_of_equal_mass(), groups.mass
    total = np.bincount(bins, mass)
    some = total > 0
    said, found = np.bincount(bins, mass * groups.scores), np.bincount(bins, groups.frauds)
    return said[some] / total[some], found[some] / total[some]
