"""The comparison as a page that opens offline, a picture and a JSON file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from acefraud import Mode
from acefraud.errors import ConfigurationError, StoreError
from acefraud.evaluation.comparison import PAIRS, Comparison, ModeFigures
from acefraud.evaluation.curves import (
    HOW_TO_INSTALL,
    NAMES,
    differences_svg,
    learning_curve_png,
    learning_curve_svg,
)
from acefraud.evaluation.metrics import METRICS, Interval, in_percent

PAGE, PICTURE, FIGURES = "report.html", "learning_curve.png", "comparison.json"


def write_report(comparison: Comparison, folder: Path) -> Path:
    """Write page, picture and figures into the folder, each of them whole; returns where the page is.

    Without matplotlib there is no picture, and the page says how to get it.
    """
    try:
        picture: bytes | None = learning_curve_png(comparison)
    except ConfigurationError:
        picture = None
    figures = json.dumps(comparison.as_json(), indent=2, ensure_ascii=False) + "\n"
    contents = {FIGURES: _encoded(figures), PAGE: _encoded(page(comparison))}
    if picture is not None:
        contents[PICTURE] = picture
    try:
        _replace(folder, contents)
        if picture is None:
            (folder / PICTURE).unlink(missing_ok=True)  # it would show an earlier comparison
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error.strerror or error}") from error
    return folder / PAGE


def page(comparison: Comparison) -> str:
    """The whole report as one HTML file that needs nothing else."""
    template = Template(files("acefraud.evaluation").joinpath(PAGE).read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(f"Three ways to decide: {comparison.dataset}"),
        lead=escape(_lead(comparison)),
        facts=_facts(comparison),
        modes="\n".join(_mode_row(mode, got) for mode, got in comparison.modes.items()),
        differences="\n".join(_difference_rows(comparison)),
        pictures=_pictures(comparison),
        sample=_sample(comparison),
    )


def in_words(mode: Mode, other: Mode, difference: Interval) -> str:
    """What a paired difference of accuracy says.

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


def _inside(mode: Mode) -> str:
    """The name of a mode within a sentence."""
    return NAMES[mode].lower()


def _replace(folder: Path, contents: dict[str, bytes]) -> None:
    """Nothing is replaced before everything has been written, so a full disk leaves an earlier report as it was."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".report-") as temporary:
        for name, content in contents.items():
            (Path(temporary) / name).write_bytes(content)
        for name in contents:
            os.replace(Path(temporary) / name, folder / name)


def _encoded(text: str) -> bytes:
    """A name may come from a file system with half a character in it, which has no encoding."""
    return text.encode("utf-8", "replace")


def _lead(comparison: Comparison) -> str:
    difference = comparison.differences[f"{Mode.OFFLINE_ONLINE}_vs_{Mode.VANILLA}"]["accuracy"]
    return in_words(Mode.OFFLINE_ONLINE, Mode.VANILLA, difference)


def _facts(comparison: Comparison) -> str:
    facts = {
        "Dataset": comparison.dataset,
        "Rows": f"{comparison.rows:,}",
        "Test rows": f"{comparison.test_rows:,}",
        "Seeds": f"{comparison.seeds:,}",
        "95 % intervals": comparison.method,
    }
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())


def _mode_row(mode: Mode, got: ModeFigures) -> str:
    cells = [_figure(got.figures[metric]) for metric in METRICS]
    cells += [f"{got.bullets:,.1f}".removesuffix(".0"), f"{got.cited:.2f}", f"{got.seconds:,.1f}"]
    return _row(NAMES[mode], cells)


def _difference_rows(comparison: Comparison) -> Iterator[str]:
    for mode, other in PAIRS:
        figures = comparison.differences[f"{mode}_vs_{other}"]
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


def _pictures(comparison: Comparison) -> str:
    try:
        pictures = [learning_curve_svg(comparison), differences_svg(comparison)]
    except ConfigurationError:
        command = escape(HOW_TO_INSTALL)
        return f'<p class="card">For the pictures, install matplotlib and run again: <code>{command}</code></p>'
    return "\n".join(f'<figure><div class="picture">{picture}</div></figure>' for picture in pictures)


def _sample(comparison: Comparison) -> str:
    if not comparison.sample:
        return "<p>No bullets were learnt.</p>"
    bullets = "\n".join(f"<li>{escape(bullet)}</li>" for bullet in comparison.sample)
    note = '<p class="note">The strongest bullets at the end of an offline + online run.</p>'
    return f'{note}\n<ul class="sample">\n{bullets}\n</ul>'
