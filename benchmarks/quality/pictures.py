"""Plots of a dataset: acefraud and LightGBM in colour, the others in grey behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acefraud import Mode
from acefraud.evaluation.comparison import LIGHTGBM
from acefraud.evaluation.plots import COLOURS, INK, MUTED, RULE, headed, plain, saved, smoothed, spread, style
from benchmarks.arrays import Numbers
from benchmarks.quality.contenders import OURS, REFERENCE, WITHOUT_DRAWS
from benchmarks.quality.measurement import DatasetFigures, ModelFigures
from benchmarks.quality.reliability_lines import WINDOWS, precision_recall, reliability, windowed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT_OUT = (WITHOUT_DRAWS, "acefraud_all")
"""They differ from ours by less than the width of a line."""
COMPARED = (OURS, REFERENCE, "logistic")
"""Models whose probabilities a reader compares: the reliability plot shows the range that they cover."""
_CALIBRATION = "expected_calibration_error_equal_mass"


@dataclass(frozen=True, slots=True)
class Look:
    """How a model is drawn."""

    colour: str
    width: float
    layer: int
    dashes: Any = "solid"
    name_colour: str = MUTED
    name_weight: str = "normal"

    @property
    def line(self) -> dict[str, Any]:
        """Options of matplotlib for the line."""
        return {"color": self.colour, "linewidth": self.width, "zorder": self.layer, "linestyle": self.dashes}

    @property
    def name(self) -> dict[str, Any]:
        """Options of matplotlib for the name."""
        return {"color": self.name_colour, "fontweight": self.name_weight}


def _strong(colour: str, width: float, layer: int) -> Look:
    return Look(colour, width, layer, name_colour=colour, name_weight="bold")


_STRONG = {
    OURS: _strong(COLOURS[Mode.OFFLINE_ONLINE], 3.0, 6),
    "acefraud_online": _strong(COLOURS[Mode.ONLINE_ONLY], 2.2, 5),
    REFERENCE: _strong(COLOURS[LIGHTGBM], 2.2, 4),
}
_GREYS = ("#8c959f", "#b6bec6")
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))


def pictures(data: DatasetFigures) -> dict[str, bytes]:
    """PNG files by name; none if every learner failed."""
    if not data.models:
        return {}
    drawn: dict[str, Callable[[DatasetFigures], Figure]] = {
        "precision_recall": _precision_recall,
        "stream": _along_the_stream,
        "reliability": _reliability,
    }
    with style():
        return {f"{data.name}_{name}.png": saved(draw(data), "png") for name, draw in drawn.items()}


def shown(data: DatasetFigures) -> dict[str, ModelFigures]:
    """The models that are drawn. Variants of ours are left out, unless nobody else took part."""
    return {name: model for name, model in data.models.items() if name not in LEFT_OUT} or data.models


def on_the_stream(data: DatasetFigures) -> dict[str, ModelFigures]:
    """The models drawn along the stream: those that learn from it, and beside them ours and the reference."""
    models = shown(data)
    return {name: model for name, model in models.items() if model.streamed or name in _STRONG} or models


def range_of(points: Mapping[str, tuple[Numbers, Numbers]]) -> float:
    """How far the axes reach: a little beyond the points of the models that are compared."""
    wanted = [point for name, point in points.items() if name in COMPARED] or list(points.values())
    return min(1.0, 1.06 * max((float(np.max(some)) for pair in wanted for some in pair), default=1.0))


def looks(data: DatasetFigures) -> dict[str, Look]:
    """How each model is drawn, the same in all plots: others than ours and the reference in grey, with dashes."""
    peers = [name for name in shown(data) if name not in _STRONG]
    muted = {name: Look(_GREYS[at // len(_DASHES) % 2], 1.3, 2, _DASHES[at % 4]) for at, name in enumerate(peers)}
    return {name: _STRONG.get(name) or muted[name] for name in shown(data)}


# --- the three pictures ------------------------------------------------------------------------------------------


def _precision_recall(data: DatasetFigures) -> Figure:
    figure, (axes,) = _figure(1, 5.2)
    models = shown(data)
    for name, look in looks(data).items():
        recall, precision = precision_recall(models[name].first.scores, models[name].first.labels)
        axes.step(recall, precision, where="pre", label=name, **look.line)
    axes.set(xlabel="Recall: frauds that are declined", ylabel="Precision: fraud among what is declined")
    axes.set(xlim=(0, 1), ylim=(0, 1.01))
    _legend(axes, data, "average_precision", "Average precision", best_is_high=True)
    headed(figure, f"{plain(data.name)}: precision and recall", f"{_test_rows(data)}\n{_stream_note(data)}")
    return figure


def _along_the_stream(data: DatasetFigures) -> Figure:
    figure, panels = _figure(2, 7.4)
    models, look_of = on_the_stream(data), looks(data)
    for index, (axes, what) in enumerate(zip(panels, ("Accuracy at one half", "Average precision"), strict=True)):
        ends = {}
        for name, model in reversed(models.items()):  # of equal ends, the first is named at the top
            on, run = model.first.on_stream, model.first
            ends[name] = _smooth_line(axes, windowed(run.scores[on], run.labels[on])[index], look_of[name])
        axes.set(xlim=(0, 1), ylabel=what)
        _named_at_the_ends(axes, {name: height for name, height in ends.items() if height is not None}, look_of)
    panels[-1].set_xlabel("Share of the measured stream")
    dots = (
        f"Dots: {WINDOWS} equal stretches. Lines: moving average. Online and river learners hear labels as they arrive."
    )
    rows = f"{data.stream_measured:,} measured rows; the others learnt once, from what came before the test."
    headed(figure, f"{plain(data.name)}: along the stream", f"{dots}\n{rows}")
    return figure


def _reliability(data: DatasetFigures) -> Figure:
    figure, (axes,) = _figure(1, 5.8)
    runs = {name: model.first for name, model in shown(data).items()}
    points = {
        name: reliability(run.scores, run.labels)
        for name, run in runs.items()
        if run.scores.min() >= 0 and run.scores.max() <= 1
    }
    reach = range_of(points)
    axes.plot([0, reach], [0, reach], color=INK, linewidth=1, zorder=1)
    for name, (said, point) in points.items():
        look = looks(data)[name]
        axes.plot(said, point, marker="o" if name in _STRONG else "", mew=0, label=name, **look.line)
    axes.set(xlabel="Probability of fraud that was stated", ylabel="Share of fraud that was found")
    axes.set(xlim=(0, reach), ylim=(0, reach))
    _legend(axes, data, _CALIBRATION, "Calibration error", best_is_high=False)
    bins = "Points: bins with equally many rows. On the black line, what is stated is what happens."
    headed(figure, f"{plain(data.name)}: can the probabilities be trusted?", f"{_test_rows(data)}\n{bins}")
    return figure


# --- what they share ---------------------------------------------------------------------------------------------


def _figure(panels: int, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure  # noqa: PLC0415  # an extra, and slow to import

    figure = Figure(figsize=(9, height))
    figure.subplots_adjust(left=0.09, right=0.735, top=1 - 0.62 / height, bottom=1.08 / height, hspace=0.2)
    axes = [figure.add_subplot(panels, 1, index + 1) for index in range(panels)]
    for ax in axes:
        ax.grid(color=RULE, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.tick_params(length=0, pad=7)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    return figure, axes


def _legend(axes: Axes, data: DatasetFigures, metric: str, title: str, *, best_is_high: bool) -> None:
    """The best first, each with the figure."""
    lines, names = axes.get_legend_handles_labels()
    line_of = dict(zip(names, lines, strict=True))
    means = {name: data.models[name].figures[metric].mean for name in names}
    ranked = sorted(means, key=means.__getitem__, reverse=best_is_high)
    legend = axes.legend(
        [line_of[name] for name in ranked],
        [f"{means[name]:.3f}  {name}" for name in ranked],
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.015, 1.03),
        frameon=False,
        fontsize=9.5,
        labelspacing=0.65,
        alignment="left",
    )
    legend.get_title().set(color=MUTED, fontsize=9.5)
    look_of = looks(data)
    for text, name in zip(legend.get_texts(), ranked, strict=True):
        text.set(**look_of[name].name)


def _smooth_line(axes: Axes, values: Numbers, look: Look) -> float | None:
    """Draw the known values and their moving average. Returns where the average ends."""
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return None
    places, line = (known + 0.5) / len(values), smoothed(values[known].tolist())
    axes.plot(places, values[known], "o", color=look.colour, alpha=0.25, markersize=3.5, mew=0)
    axes.plot(places, line, **look.line)
    return line[-1]


def _named_at_the_ends(axes: Axes, ends: Mapping[str, float], look_of: Mapping[str, Look]) -> None:
    low, high = axes.get_ylim()
    gap = (high - low) * 0.085
    heights = np.array(spread(list(ends.values()), gap))
    if len(heights):  # names stay beside the panel, off the title and the numbers of the other axis
        heights += max(0.0, low + gap / 2 - heights.min()) - max(0.0, heights.max() - high)
    for name, height in zip(ends, heights.tolist(), strict=True):
        name_style = look_of[name].name
        axes.annotate(name, (1.015, height), fontsize=10, va="center", annotation_clip=False, **name_style)


def _test_rows(data: DatasetFigures) -> str:
    share = data.test_frauds / max(1, data.test_rows)
    return f"{data.test_rows:,} test rows, {data.test_frauds:,} of them fraud ({share:.1%}). Lines: first seed."


def _stream_note(data: DatasetFigures) -> str:
    if not data.stream_capped:
        return "Online and river learners hear labels as they arrive."
    return f"Online and river learners hear labels as they arrive, measured on the last {data.stream_measured:,} rows."
