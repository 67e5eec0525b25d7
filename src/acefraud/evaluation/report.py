"""The comparison as a page that opens offline, a plot and a JSON file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from acefraud import Mode
from acefraud.errors import ConfigurationError, StoreError
from acefraud.evaluation.comparison import LIGHTGBM, NAMES, NO_LABEL_FACTS, NO_REASONS, Comparison
from acefraud.evaluation.metrics import METRICS, Interval, in_percent
from acefraud.evaluation.plots import HOW_TO_INSTALL, differences_svg, learning_curve_png, learning_curve_svg

PAGE, PLOT, FIGURES = "report.html", "learning_curve.png", "comparison.json"


def write_report(comparison: Comparison, folder: Path) -> Path:
    """Write page, plot and figures into the folder, all or none of them. Returns the path of the page.

    Without matplotlib there is no plot, and the page says how to install it.
    """
    figures = json.dumps(comparison.as_json(), indent=2, ensure_ascii=False) + "\n"
    # Half a surrogate pair, as in the name of a file, has no encoding.
    contents = {FIGURES: figures.encode("utf-8", "replace"), PAGE: page(comparison).encode("utf-8", "replace")}
    with suppress(ConfigurationError):
        contents[PLOT] = learning_curve_png(comparison)
    try:
        _replace(folder, contents)
        if PLOT not in contents:
            (folder / PLOT).unlink(missing_ok=True)  # it would show an earlier comparison
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error.strerror or error}") from error
    return folder / PAGE


def page(comparison: Comparison) -> str:
    """The whole report as one HTML file that needs nothing else."""
    template = Template(files("acefraud.evaluation").joinpath(PAGE).read_text(encoding="utf-8"))
    lead = (Mode.OFFLINE_ONLINE, Mode.VANILLA)
    return template.substitute(
        title=escape(f"Three ways to decide: {comparison.dataset}"),
        lead=escape(in_words(*lead, comparison.differences[lead]["accuracy"])),
        facts=_facts(comparison),
        modes="\n".join(_mode_rows(comparison)),
        no_lightgbm=escape(comparison.no_lightgbm and f" {comparison.no_lightgbm}."),
        about_labels=escape(comparison.about_labels and f" {comparison.about_labels}"),
        differences="\n".join(_difference_rows(comparison)),
        plots=_plots(comparison),
        sample=_sample(comparison),
    )


def in_words(mode: str, other: str, difference: Interval) -> str:
    """A paired difference of accuracy as a sentence.

    >>> in_words(Mode.OFFLINE_ONLINE, Mode.VANILLA, Interval(0.142, 0.121, 0.163))
    'Offline + online was 14.2 points more accurate than vanilla (12.1 to 16.3).'
    >>> in_words(Mode.ONLINE_ONLY, Mode.VANILLA, Interval(0.004, -0.01, 0.018))
    'Between online only and vanilla, no difference could be shown: +0.4 points (-1.0 to +1.8).'
    """
    low, high = difference.low, difference.high
    if math.isnan(difference.mean):
        return f"The difference between {_inside(mode)} and {_inside(other)} could not be measured."
    if low is None or high is None:
        size = f"{100 * difference.mean:+.1f} points in accuracy"
        return f"{NAMES[mode]} against {_inside(other)}: {size}, but there is no interval to judge it by."
    if low <= 0 <= high:
        size = f"{100 * difference.mean:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f})"
        return f"Between {_inside(mode)} and {_inside(other)}, no difference could be shown: {size}."
    nearer, farther = sorted((abs(low), abs(high)))
    direction = "more" if difference.mean > 0 else "less"
    size = f"{100 * abs(difference.mean):.1f} points {direction} accurate"
    return f"{NAMES[mode]} was {size} than {_inside(other)} ({100 * nearer:.1f} to {100 * farther:.1f})."


def _inside(mode: str) -> str:
    """The name of a mode within a sentence."""
    return NAMES[mode] if mode == LIGHTGBM else NAMES[mode].lower()


def _replace(folder: Path, contents: dict[str, bytes]) -> None:
    """Write everything before replacing anything, so that a full disk leaves an earlier report as it was."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".report-") as temporary:
        for name, content in contents.items():
            (Path(temporary) / name).write_bytes(content)
        for name in contents:
            os.replace(Path(temporary) / name, folder / name)


def _facts(comparison: Comparison) -> str:
    facts = {
        "Dataset": comparison.dataset,
        "Rows": f"{comparison.rows:,}",
        "Test rows": f"{comparison.test_rows:,}",
        "Seeds": f"{comparison.seeds:,}",
        "95 % intervals": comparison.method,
    }
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())


def _mode_rows(comparison: Comparison) -> Iterator[str]:
    for mode, got in comparison.modes.items():
        name, used = NAMES[mode], (f"{got.bullets:,.1f}".removesuffix(".0"), f"{got.cited:.2f}")
        if mode == LIGHTGBM:
            name, used = f"{name} ({NO_REASONS})", ("–", "–")
        yield _row(name, [*(_figure(got.figures[metric]) for metric in METRICS), *used, f"{got.seconds:,.1f}"])
        if figures := got.without_label_facts:
            cells = [_figure(figures[metric]) for metric in METRICS]
            yield _row(f"{NAMES[mode]}, {NO_LABEL_FACTS}", [*cells, "–", "–", "–"])


def _difference_rows(comparison: Comparison) -> Iterator[str]:
    for (mode, other), figures in comparison.differences.items():
        cells = [_figure(figures[metric], signed=True) for metric in METRICS]
        yield _row(f"{NAMES[mode]} vs {NAMES[other]}", cells)
        said = escape(in_words(mode, other, figures["accuracy"]))
        yield f'<tr class="said"><td colspan="{len(cells) + 1}">{said}</td></tr>'


def _row(name: str, cells: list[str]) -> str:
    return f'<tr><th scope="row">{escape(name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _figure(interval: Interval, *, signed: bool = False) -> str:
    if math.isnan(interval.mean):
        return "not measurable"
    mean, _, bounds = in_percent(interval, signed=signed).partition(" ")
    return f"{mean} <small>{bounds}</small>" if bounds else mean


def _plots(comparison: Comparison) -> str:
    try:
        plots = [learning_curve_svg(comparison), differences_svg(comparison)]
    except ConfigurationError:
        command = escape(HOW_TO_INSTALL)
        return f'<p class="card">For the plots, install matplotlib and run again: <code>{command}</code></p>'
    return "\n".join(f'<figure><div class="picture">{plot}</div></figure>' for plot in plots)


def _sample(comparison: Comparison) -> str:
    if not comparison.sample:
        return "<p>No bullets were learnt.</p>"
    bullets = "\n".join(f"<li>{escape(bullet)}</li>" for bullet in comparison.sample)
    note = '<p class="note">The strongest bullets at the end of an offline + online run.</p>'
    return f'{note}\n<ul class="sample">\n{bullets}\n</ul>'
