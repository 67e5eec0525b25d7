"""The pictures of a comparison: accuracy along the stream, and the paired differences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acefraud import Mode
from acefraud.errors import ConfigurationError, StoreError
from acefraud.evaluation.comparison import PAIRS, Comparison
from acefraud.evaluation.metrics import Interval, in_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOW_TO_INSTALL = "pip install 'acefraud[plots]'"
NAMES = {Mode.VANILLA: "Vanilla", Mode.ONLINE_ONLY: "Online only", Mode.OFFLINE_ONLINE: "Offline + online"}
SMOOTHED_OVER = 5

# From the palette of Okabe and Ito, which people with any common colour blindness can tell apart.
COLOURS = {Mode.VANILLA: "#5f6368", Mode.ONLINE_ONLY: "#0072b2", Mode.OFFLINE_ONLINE: "#d55e00"}
_DASHES = {Mode.VANILLA: (0, (5, 2)), Mode.ONLINE_ONLY: "solid", Mode.OFFLINE_ONLINE: "solid"}
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


def draw_learning_curve(comparison: Comparison, path: Path) -> None:
    """Accuracy along the stream, as a PNG."""
    picture = learning_curve_png(comparison)
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def learning_curve_png(comparison: Comparison) -> bytes:
    """Accuracy along the stream, as the bytes of a PNG."""
    with style():
        return saved(_learning_curve(comparison), "png")


def learning_curve_svg(comparison: Comparison) -> str:
    """Accuracy along the stream, as an SVG element to put into a page."""
    with style():
        picture = saved(_learning_curve(comparison), "svg")
    return _embeddable(picture.decode(), "curve", "Accuracy along the stream, one line for each mode")


def differences_svg(comparison: Comparison) -> str:
    """The paired differences of accuracy with their intervals, as an SVG element to put into a page."""
    with style():
        picture = saved(_forest(comparison), "svg")
    return _embeddable(picture.decode(), "differences", "Paired differences of accuracy with their 95 % intervals")


def smoothed(values: Sequence[float], width: int = SMOOTHED_OVER) -> list[float]:
    """Centred moving average; near the ends over the neighbours that there are.

    >>> smoothed([0.0, 1.0, 2.0, 9.0], 3)
    [0.5, 1.0, 4.0, 5.5]
    """
    windows = [values[max(0, place - width // 2) : place + width // 2 + 1] for place in range(len(values))]
    return [math.fsum(window) / len(window) for window in windows]


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places for labels at least `gap` apart, each as near as can be to where it is wanted.

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
    """Where the lowest and the highest label of a group stand when the group is centred on what it wants."""
    centre = math.fsum(wanted[label] for label in group) / len(group)
    half = gap * (len(group) - 1) / 2
    return centre - half, centre + half


@contextmanager
def style() -> Iterator[None]:
    """Our own settings, whatever the settings of the machine are: the same figures give the same bytes."""
    try:
        import matplotlib  # noqa: PLC0415  # an extra, and slow to import
    except ImportError as error:
        raise ConfigurationError(f"pictures need matplotlib: {HOW_TO_INSTALL}") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def saved(figure: Figure, kind: str) -> bytes:
    """The bytes of a picture, the same for the same figures."""
    file = BytesIO()
    # Date and version of the program would make the bytes differ; the rest are addresses nobody should fetch.
    silent = {"svg": ("Date", "Creator", "Format", "Type"), "png": ("Software",)}[kind]
    figure.savefig(file, format=kind, dpi=160, metadata=dict.fromkeys(silent))
    return file.getvalue()


def _embeddable(svg: str, prefix: str, label: str) -> str:
    """Without the XML prologue, and with names that do not clash with those of another picture in the same page."""
    element = svg[svg.index("<svg") :]
    own = re.sub(r"<[^>]*>", lambda tag: re.sub(r'(\bid="|href="#|url\(#)', rf"\1{prefix}-", tag[0]), element)
    return own.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _learning_curve(comparison: Comparison) -> Figure:
    figure, axes = _figure(9, 4.8)
    figure.subplots_adjust(left=0.085, right=0.83, top=0.87, bottom=0.21)
    low, high = _limits([100 * point for got in comparison.modes.values() for point in got.curve])
    ends = {}
    for mode, got in comparison.modes.items():
        if not got.curve:
            continue
        places = [100 * (point + 0.5) / len(got.curve) for point in range(len(got.curve))]
        raw = [100 * point for point in got.curve]
        line = smoothed(raw)
        axes.plot(places, raw, "o", color=COLOURS[mode], alpha=0.25, markersize=3.5, mew=0, clip_on=False)
        axes.plot(places, line, color=COLOURS[mode], linestyle=_DASHES[mode], linewidth=2.2)
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
    axes.set(xlim=(0, 100), ylim=(low, high), xlabel="Share of the stream seen", ylabel="Accuracy")
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=7)
    _in_percent(axes)
    headed(figure, _curve_title(comparison), _curve_caption(comparison))
    return figure


def _curve_title(comparison: Comparison) -> str:
    overall = [f"{NAMES[mode]} {100 * got.figures['accuracy'].mean:.1f}%" for mode, got in comparison.modes.items()]
    return "Accuracy along the stream. Overall: " + ", ".join(overall)


def _curve_caption(comparison: Comparison) -> str:
    points = max((len(got.curve) for got in comparison.modes.values()), default=0)
    dots = f"Dots: {points} equal stretches of the stream, mean of {_counted(comparison.seeds, 'seed')}."
    rows = f"{plain(comparison.dataset, 45)}, {comparison.test_rows:,} test rows."
    intervals = f"95 % intervals in the report: {plain(comparison.method)}."
    return f"{dots} Lines: moving average over {SMOOTHED_OVER} dots.\n{rows} {intervals}"


def _forest(comparison: Comparison) -> Figure:
    figure, axes = _figure(9, 2.9)
    figure.subplots_adjust(left=0.26, right=0.79, top=0.83, bottom=0.27)
    rows = [(a, b, comparison.differences[f"{a}_vs_{b}"]["accuracy"]) for a, b in PAIRS]
    for row, (mode, _, got) in enumerate(rows):
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
    axes.set_yticks(range(len(rows)), [f"{NAMES[a]} vs {NAMES[b]}" for a, b, _ in rows])
    axes.set(xlim=_around_zero([got for *_, got in rows]), ylim=(len(rows) - 0.5, -0.5))
    axes.set_xlabel("Difference in accuracy, percentage points")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.tick_params(axis="y", labelcolor=INK, labelsize=10)
    title = "Differences in accuracy: right of zero, the first of the two was better"
    headed(figure, title, _interval_note(comparison))
    return figure


def _interval_note(comparison: Comparison) -> str:
    return f"Lines: 95 % intervals, {plain(comparison.method)}. Both modes of a pair saw the same rows."


def headed(figure: Figure, title: str, caption: str) -> None:
    """Put a title above a picture and a note of two lines below it."""
    figure.text(0.015, 0.965, title, fontsize=11.5, fontweight="bold", va="top")
    figure.text(0.015, 0.025, caption, fontsize=8.5, color=MUTED, va="bottom", linespacing=1.4)


def _in_percent(axes: Axes) -> None:
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    axes.xaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Whole steps of five percent around the values, never outside 0 to 100, and never so narrow that noise looms."""
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
    """What the font of the pictures can show, in one line."""
    line = " ".join(text.split())
    shown = "".join(sign if sign.isprintable() and ord(sign) < 0x250 else "?" for sign in line)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
