"""The plots of a comparison: accuracy along the stream, and the paired differences."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

from acefraud import Mode
from acefraud.display.redaction import cut
from acefraud.errors import ConfigurationError
from acefraud.evaluation.comparison import LIGHTGBM, NAMES, Comparison
from acefraud.evaluation.metrics import Interval, in_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOW_TO_INSTALL = "pip install 'acefraud[plots]'"
SMOOTHED_OVER = 5

# From the palette of Okabe and Ito, which people with any common colour blindness can tell apart.
COLOURS: dict[str, str] = {
    Mode.VANILLA: "#5f6368",
    Mode.ONLINE_ONLY: "#0072b2",
    Mode.OFFLINE_ONLINE: "#d55e00",
    LIGHTGBM: "#009e73",
}
_DASHES: dict[str, Any] = {Mode.VANILLA: (0, (5, 2)), LIGHTGBM: (0, (1.5, 1.5))}
INK, MUTED, RULE = "#1f2328", "#59636e", "#d8dee4"
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "acefraud",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.color": INK,
}


def learning_curve_png(comparison: Comparison) -> bytes:
    """Accuracy along the stream, as the bytes of a PNG."""
    with style():
        return saved(_learning_curve(comparison), "png")


def learning_curve_svg(comparison: Comparison) -> str:
    """Accuracy along the stream, as an SVG element to put into a page."""
    return _embeddable(_learning_curve, comparison, "curve", "Accuracy along the stream, one line for each mode")


def differences_svg(comparison: Comparison) -> str:
    """The paired differences of accuracy with their intervals, as an SVG element to put into a page."""
    label = "Paired differences of accuracy with their 95 % intervals"
    return _embeddable(_forest, comparison, "differences", label)


def smoothed(values: Sequence[float], width: int = SMOOTHED_OVER) -> list[float]:
    """Centred moving average, over fewer neighbours near the ends.

    >>> smoothed([0.0, 1.0, 2.0, 9.0], 3)
    [0.5, 1.0, 4.0, 5.5]
    """
    windows = [values[max(0, index - width // 2) : index + width // 2 + 1] for index in range(len(values))]
    return [math.fsum(window) / len(window) for window in windows]


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions for labels at least `gap` apart, each as near as possible to its wanted position.

    >>> spread([1.0, 1.0, 9.0], 2.0)
    [0.0, 2.0, 9.0]
    """
    groups: list[list[int]] = []
    for label in sorted(range(len(wanted)), key=lambda place: wanted[place]):
        groups.append([label])
        while len(groups) > 1 and _ends(groups[-1], wanted, gap)[0] < _ends(groups[-2], wanted, gap)[1] + gap:
            groups[-2:] = [groups[-2] + groups[-1]]
    placed = list(wanted)
    for group in groups:
        lowest = _ends(group, wanted, gap)[0]
        for rank, label in enumerate(group):
            placed[label] = lowest + rank * gap
    return placed


def _ends(group: Sequence[int], wanted: Sequence[float], gap: float) -> tuple[float, float]:
    """The lowest and highest position of a group that is centred on its wanted positions."""
    centre = math.fsum(wanted[label] for label in group) / len(group)
    half = gap * (len(group) - 1) / 2
    return centre - half, centre + half


@contextmanager
def style() -> Iterator[None]:
    """Our own settings, independent of the user's matplotlib settings: the same figures give the same bytes."""
    try:
        import matplotlib  # noqa: PLC0415  # an extra, and slow to import
    except ImportError as error:
        raise ConfigurationError(f"plots need matplotlib: {HOW_TO_INSTALL}") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def saved(figure: Figure, kind: str) -> bytes:
    """The bytes of a plot, the same for the same figures."""
    file = BytesIO()
    # Date and program version would make the bytes differ; the others are web addresses that nobody should fetch.
    silent = {"svg": ("Date", "Creator", "Format", "Type"), "png": ("Software",)}[kind]
    figure.savefig(file, format=kind, dpi=160, metadata=dict.fromkeys(silent))
    return file.getvalue()


def _embeddable(draw: Callable[[Comparison], Figure], comparison: Comparison, prefix: str, label: str) -> str:
    """An SVG without its XML prologue, and with ids that do not clash with those of another plot on the page."""
    with style():
        svg = saved(draw(comparison), "svg").decode()
    element = svg[svg.index("<svg") :]
    own = re.sub(r"<[^>]*>", lambda tag: re.sub(r'(\bid="|href="#|url\(#)', rf"\1{prefix}-", tag[0]), element)
    return own.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _learning_curve(comparison: Comparison) -> Figure:
    figure, axes = _figure(9, 4.8)
    figure.subplots_adjust(left=0.085, right=0.83, top=0.87, bottom=0.245)
    low, high = _limits([100 * point for got in comparison.modes.values() for point in got.curve])
    ends = {}
    for mode, got in comparison.modes.items():
        if not got.curve:
            continue
        places = [100 * (point + 0.5) / len(got.curve) for point in range(len(got.curve))]
        raw = [100 * point for point in got.curve]
        line = smoothed(raw)
        axes.plot(places, raw, "o", color=COLOURS[mode], alpha=0.25, markersize=3.5, mew=0, clip_on=False)
        axes.plot(places, line, color=COLOURS[mode], linestyle=_DASHES.get(mode, "solid"), linewidth=2.2)
        ends[mode] = line[-1]
    for mode, height in zip(ends, spread(list(ends.values()), (high - low) * 0.065), strict=True):
        axes.annotate(
            NAMES[mode],
            (101.5, height),
            color=COLOURS[mode],
            fontsize=10.5,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )
    axes.set(xlim=(0, 100), ylim=(low, high), xlabel="Share of the stream seen", ylabel="Accuracy", axisbelow=True)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.tick_params(length=0, pad=7)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda percent, _: f"{percent:.0f}%")
    overall = [f"{NAMES[mode]} {100 * got.figures['accuracy'].mean:.1f}%" for mode, got in comparison.modes.items()]
    points = max((len(got.curve) for got in comparison.modes.values()), default=0)
    caption = (
        f"Overall: {', '.join(overall)}.\n"
        f"Dots: {points} equal stretches of the stream, mean of {comparison.seeds:,} seed"
        f"{'' if comparison.seeds == 1 else 's'}. Lines: moving average over {SMOOTHED_OVER} dots.\n"
        f"{plain(comparison.dataset, 45)}, {comparison.test_rows:,} test rows. "
        f"95 % intervals in the report: {plain(comparison.method)}."
    )
    headed(figure, "Accuracy along the stream", caption)
    return figure


def _forest(comparison: Comparison) -> Figure:
    rows = [(pair, figures["accuracy"]) for pair, figures in comparison.differences.items()]
    inches = 1.73 + 0.39 * len(rows)
    figure, axes = _figure(9, inches)
    figure.subplots_adjust(left=0.26, right=0.79, top=1 - 0.493 / inches, bottom=0.783 / inches)
    for row, ((mode, _), got) in enumerate(rows):
        if math.isnan(got.mean):
            continue
        if got.low is not None and got.high is not None:
            ends = [100 * got.low, 100 * got.high]
            axes.plot(ends, [row, row], color=COLOURS[mode], linewidth=2.4, solid_capstyle="round")
        axes.plot([100 * got.mean], [row], "o", color=COLOURS[mode], markersize=8)
        axes.annotate(
            in_percent(got, signed=True),
            (1.02, row),
            xycoords=axes.get_yaxis_transform(),
            fontsize=9.5,
            va="center",
            annotation_clip=False,
        )
    axes.axvline(0, color=INK, linewidth=1, zorder=0)
    axes.set_yticks(range(len(rows)), [f"{NAMES[mode]} vs {NAMES[other]}" for (mode, other), _ in rows])
    axes.set(xlim=_around_zero([got for _, got in rows]), ylim=(len(rows) - 0.5, -0.5), axisbelow=True)
    axes.set_xlabel("Difference in accuracy, percentage points")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.tick_params(length=0)
    axes.tick_params(axis="y", labelcolor=INK, labelsize=10)
    caption = f"Lines: 95 % intervals, {plain(comparison.method)}. Both of a pair saw the same rows."
    headed(figure, "Differences in accuracy: right of zero, the first of the two was better", caption)
    return figure


def headed(figure: Figure, title: str, caption: str) -> None:
    """Put a title above a plot and a caption below it."""
    figure.text(0.015, 0.965, title, fontsize=11.5, fontweight="bold", va="top")
    figure.text(0.015, 0.025, caption, fontsize=8.5, color=MUTED, va="bottom", linespacing=1.4)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Axis limits: whole steps of five percent around the values, within 0 to 100, and at least 20 apart."""
    if not values:
        return 0.0, 100.0
    low, high = 5 * math.floor((min(values) - 1) / 5), 5 * math.ceil((max(values) + 1) / 5)
    low, high = max(0, min(low, 80)), min(100, max(high, 20))
    return (float(low), float(high)) if high - low >= 20 else (float(high - 20), float(high))


def _around_zero(intervals: Sequence[Interval]) -> tuple[float, float]:
    bounds: list[float] = [0.0]
    for got in intervals:
        bounds += [100 * end for end in (got.low, got.mean, got.high) if end is not None and not math.isnan(end)]
    margin = max(0.5, 0.08 * (max(bounds) - min(bounds)))
    return min(bounds) - margin, max(bounds) + margin


def plain(text: str, width: int = 60) -> str:
    """The text in one line, with "?" for characters that the font of the plots lacks."""
    line = " ".join(text.split())
    return cut("".join(sign if sign.isprintable() and ord(sign) < 0x250 else "?" for sign in line), width)
