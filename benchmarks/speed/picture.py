"""One picture: time over the number of bullets, on both axes by powers of ten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acefraud.evaluation.plots import INK, MUTED, RULE, headed, saved, spread, style
from benchmarks.speed.figures import Figures
from benchmarks.speed.tables import duration
from benchmarks.speed.timing import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAP = 0.075
"""Between the names at the right end of a panel, as a share of its height."""


MUTED_WIDTH = 1.6


@dataclass(frozen=True, slots=True)
class Curve:
    """One of the things measured, and how it is drawn."""

    name: str
    words: str
    colour: str
    dashes: Any = "solid"
    width: float = 2.2


# From the palette of Okabe and Ito, which people with any common colour blindness can tell apart.
SELECTION = (
    Curve("plain_loop", "plain loop", "#8c959f", (0, (5, 2)), MUTED_WIDTH),
    Curve("selection", "selection", "#d55e00", width=3.0),
    Curve("matvec", "bare matrix product", "#8c959f", (0, (1.5, 1.5)), MUTED_WIDTH),
)
CURATION = (
    Curve("difflib", "difflib over all", "#8c959f", (0, (5, 2)), MUTED_WIDTH),
    Curve("merge", "merge a new one", "#0072b2"),
    Curve("dedupe", "merge a known one", "#d55e00", width=3.0),
    Curve("insert", "add", "#009e73"),
)


def picture(figures: Figures, kind: str) -> bytes:
    """The picture as an SVG or PNG file."""
    with style():
        return saved(_drawn(figures), kind)


def _drawn(figures: Figures) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415  # an extra, and slow to import

    figure = Figure(figsize=(12, 5.2))
    figure.subplots_adjust(left=0.065, right=0.84, top=0.83, bottom=0.21, wspace=0.85)
    for index, (title, curves) in enumerate((("Selection", SELECTION), ("Curation", CURATION)), 1):
        axes = figure.add_subplot(1, 2, index)
        _panel(axes, figures, title, curves)
    sizes = f"{label(figures.sizes[0])} to {label(figures.sizes[-1])}"
    headed(
        figure,
        f"Time for one transaction or one new bullet, in a playbook of {sizes} bullets",
        "Behind each name, the exponent with which the time grows: 1 is proportional to the number of bullets.\n"
        "Bullets in prose against texts of transactions whose vectors are at hand; what is added and merged as new are "
        "bullets with conditions.",
    )
    return figure


def _panel(axes: Axes, figures: Figures, title: str, curves: Sequence[Curve]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="Bullets in the playbook")
    axes.set_title(title, loc="left", fontsize=10.5, color=INK)
    axes.grid(color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, pad=7)
    axes.minorticks_off()
    drawn = [curve for curve in curves if curve.name in figures.seconds]
    for curve in drawn:
        by_size = figures.seconds[curve.name]
        axes.plot(
            list(by_size),
            list(by_size.values()),
            color=curve.colour,
            linestyle=curve.dashes,
            linewidth=curve.width,
            marker="o",
            markersize=4,
        )
    axes.set_xticks(figures.sizes, [label(size) for size in figures.sizes])
    axes.yaxis.set_major_formatter(lambda seconds, _: duration(seconds))
    _named(axes, figures, drawn)


def _named(axes: Axes, figures: Figures, curves: Sequence[Curve]) -> None:
    """The names at the right, as high as the curves end, none upon another."""
    low, high = (math.log10(end) for end in axes.get_ylim())
    ends = [(math.log10(_last(figures.seconds[curve.name])) - low) / (high - low) for curve in curves]
    for curve, height in zip(curves, spread(ends, GAP), strict=True):
        exponent = figures.growth.get(curve.name)
        strong = curve.width > MUTED_WIDTH
        axes.text(
            1.03,
            height,
            curve.words + ("" if exponent is None else f"  {exponent:.2f}"),
            transform=axes.transAxes,
            color=curve.colour if strong else MUTED,
            fontsize=9.5,
            fontweight="bold" if strong else "normal",
            va="center",
        )


def _last(by_size: dict[int, float]) -> float:
    return by_size[max(by_size)]
