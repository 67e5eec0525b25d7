"""The report: complete, self-contained, safe against what the data says, and written whole."""

from __future__ import annotations

import errno
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from acefraud.errors import ConfigurationError, StoreError
from acefraud.evaluation.comparison import Comparison, ModeFigures
from acefraud.evaluation.metrics import METRICS, Interval, in_percent
from acefraud.evaluation.plots import (
    differences_svg,
    learning_curve_svg,
    smoothed,
    spread,
)
from acefraud.evaluation.report import in_words, page, write_report
from acefraud.learning.pipeline import Mode

pytestmark = pytest.mark.wide

HOSTILE = "<script>alert('1 & 2')</script>\"$title $x^2$"


def _around(mean: float, half: float) -> Interval:
    return Interval(mean, mean - half, mean + half)


def _mode(accuracy: float, gain: float, *, bullets: float, cited: float, seconds: float) -> ModeFigures:
    figures = {
        "accuracy": _around(accuracy, 0.011),
        "fraud_caught": _around(accuracy - 0.121, 0.024),
        "false_declines": _around(0.213 - accuracy / 5, 0.007),
        "average_precision": _around(accuracy - 0.082, 0.017),
    }
    curve = tuple(accuracy - gain / 2 + gain * (n / 39) ** 0.5 + 0.012 * math.sin(7 * n + accuracy) for n in range(40))
    return ModeFigures(figures, bullets, cited, seconds, curve)


def _difference(accuracy: float, half: float) -> dict[str, Interval]:
    return {
        "accuracy": _around(accuracy, half),
        "fraud_caught": _around(accuracy + 0.031, half * 2),
        "false_declines": _around(-accuracy / 4, half / 2),
        "average_precision": _around(accuracy - 0.013, half * 1.5),
    }


@pytest.fixture
def comparison() -> Comparison:
    return Comparison(
        dataset="synthetic world",
        rows=6_400,
        test_rows=2_357,
        seeds=5,
        method="Student's t over 5 independent worlds",
        modes={
            Mode.VANILLA: _mode(0.718, 0.0, bullets=0, cited=0, seconds=12.3),
            Mode.ONLINE_ONLY: _mode(0.803, 0.12, bullets=41.4, cited=2.37, seconds=45.6),
            Mode.OFFLINE_ONLINE: _mode(0.861, 0.03, bullets=67.8, cited=3.19, seconds=1234.5),
        },
        differences={
            (Mode.ONLINE_ONLY, Mode.VANILLA): _difference(0.085, 0.014),
            (Mode.OFFLINE_ONLINE, Mode.VANILLA): _difference(0.142, 0.021),
            (Mode.OFFLINE_ONLINE, Mode.ONLINE_ONLY): _difference(0.006, 0.009),
        },
        sample=(
            "A first purchase over 800 € shipped abroad at night is likely to be fraud.",
            "A customer of more than two years who buys below the usual amount is likely to be honest.",
            "Three or more attempts within an hour with a new device are likely to be fraud.",
        ),
    )


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


class _Text(HTMLParser):
    """What a reader sees, with the tags that made it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.shown = ""
        self.feed(source)
        self.shown = " ".join(self.shown.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.shown += f" {data}"


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_from_elsewhere(comparison: Comparison) -> None:
    source = page(comparison)
    read = _Text(source)
    assert re.search(r"https?://", re.sub(r'xmlns(:\w+)?="[^"]*"', "", source)) is None
    assert not {"script", "link", "img", "iframe", "object"} & set(read.tags)
    assert all(link.startswith("#") and link[1:] in read.ids for link in read.links)
    assert "@import" not in source
    assert set(re.findall(r"url\((.)", source)) <= {"#"}


def test_two_pictures_in_one_page_do_not_share_names(comparison: Comparison) -> None:
    ids = _Text(page(comparison)).ids
    assert len(ids) > 20
    assert len(ids) == len(set(ids))


def test_every_figure_is_shown(comparison: Comparison) -> None:
    shown = _Text(page(comparison)).shown
    for got in comparison.modes.values():
        for metric in METRICS:
            assert in_percent(got.figures[metric]) in shown
    for figures in comparison.differences.values():
        for metric in METRICS:
            assert in_percent(figures[metric], signed=True) in shown
    for figure in ("41.4", "67.8", "2.37", "3.19", "12.3", "45.6", "1,234.5", "6,400", "2,357"):
        assert figure in shown
    for text in (comparison.dataset, comparison.method, *comparison.sample):
        assert text in shown
    for name in ("Vanilla", "Online only", "Offline + online"):
        assert name in shown


def test_each_difference_is_said_in_words(comparison: Comparison) -> None:
    shown = _Text(page(comparison)).shown
    assert "Offline + online was 14.2 points more accurate than vanilla (12.1 to 16.3)." in shown
    assert "Online only was 8.5 points more accurate than vanilla (7.1 to 9.9)." in shown
    assert (
        "Between offline + online and online only, no difference could be shown: +0.6 points (-0.3 to +1.5)." in shown
    )


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (Interval(-0.03, -0.05, -0.01), "Online only was 3.0 points less accurate than vanilla (1.0 to 5.0)."),
        (Interval(0.0, 0.0, 0.0), "no difference could be shown"),
        (Interval(0.01, 0.0, 0.02), "no difference could be shown"),
        (Interval(-0.01, -0.03, 0.01), "no difference could be shown"),
        (Interval(0.02, None, None), "+2.0 points in accuracy, but there is no interval to judge it by"),
        (Interval(math.nan, None, None), "could not be measured"),
    ],
)
def test_the_words_follow_the_interval(difference: Interval, expected: str) -> None:
    assert expected in in_words(Mode.ONLINE_ONLY, Mode.VANILLA, difference)


def test_what_the_data_says_stays_text(comparison: Comparison) -> None:
    hostile = replace(comparison, dataset=HOSTILE, method=HOSTILE, sample=(HOSTILE, "</li></ul><img src=x onerror=y>"))
    source = page(hostile)
    read = _Text(source)
    assert "<script" not in source
    assert not {"script", "img"} & set(read.tags)
    assert read.shown.count(HOSTILE) >= 4
    assert "</li></ul><img src=x onerror=y>" in read.shown


@pytest.mark.parametrize("name", ["支付 🦊 data", "a\x00b\nc", "half \udc80 sign", "x" * 500, ""])
def test_odd_names_are_written(comparison: Comparison, tmp_path: Path, name: str) -> None:
    path = write_report(replace(comparison, dataset=name), tmp_path)
    assert "</html>" in path.read_text(encoding="utf-8")


def test_a_figure_that_could_not_be_measured_is_not_shown_as_a_number(comparison: Comparison, tmp_path: Path) -> None:
    unknown = dict.fromkeys(METRICS, Interval(math.nan, None, None))
    bare = replace(
        comparison,
        modes={mode: replace(got, figures={**unknown, "accuracy": Interval(0.7, None, None)}, curve=(0.7,))
               for mode, got in comparison.modes.items()},
        differences=dict.fromkeys(comparison.differences, unknown),
        sample=(),
    )  # fmt: skip
    shown = _Text(write_report(bare, tmp_path).read_text(encoding="utf-8")).shown
    assert "nan" not in shown.split()
    assert "nan%" not in shown
    assert "not measurable" in shown
    assert "No bullets were learnt." in shown


# --- the pictures ------------------------------------------------------------------------------------------------


def test_pictures_are_well_formed_and_say_what_they_show(comparison: Comparison) -> None:
    curve = " ".join(ElementTree.fromstring(learning_curve_svg(comparison)).itertext())
    for text in ("Accuracy along the stream", "Share of the stream seen", "5 seeds", comparison.method, "86.1%"):
        assert text in curve
    forest = " ".join(ElementTree.fromstring(differences_svg(comparison)).itertext())
    for figures in comparison.differences.values():
        assert in_percent(figures["accuracy"], signed=True) in forest


def test_pictures_leave_the_settings_of_others_alone(comparison: Comparison) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 23, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        odd = learning_curve_svg(comparison)
        assert dict(matplotlib.rcParams) == before
    assert odd == learning_curve_svg(comparison)


def test_smoothing_keeps_a_level_and_the_length() -> None:
    assert smoothed([0.5] * 40) == [0.5] * 40
    assert smoothed([0.2]) == [0.2]
    assert smoothed([]) == []


def test_labels_keep_their_distance_and_their_order() -> None:
    placed = spread([5.0, 4.9, 5.1, 20.0], 1.0)
    assert placed == pytest.approx([5.0, 4.0, 6.0, 20.0])


# --- the files ---------------------------------------------------------------------------------------------------


def test_two_writes_give_the_same_bytes(comparison: Comparison, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert write_report(comparison, first) == first / "report.html"
    write_report(comparison, second)
    names = sorted(path.name for path in first.iterdir())
    assert names == ["comparison.json", "learning_curve.png", "report.html"]
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_json_does_not_depend_on_the_clock(comparison: Comparison, tmp_path: Path) -> None:
    write_report(comparison, tmp_path / "first")
    later = {mode: replace(got, seconds=got.seconds + 9) for mode, got in comparison.modes.items()}
    write_report(replace(comparison, modes=later), tmp_path / "second")
    written = (tmp_path / "first" / "comparison.json").read_text(encoding="utf-8")
    assert written == (tmp_path / "second" / "comparison.json").read_text(encoding="utf-8")
    assert written.endswith("}\n")
    assert json.loads(written) == comparison.as_json()
    assert list(json.loads(written)) == list(comparison.as_json())


@pytest.mark.usefixtures("no_matplotlib")
def test_without_matplotlib_the_page_says_how_to_get_pictures(comparison: Comparison, tmp_path: Path) -> None:
    (tmp_path / "learning_curve.png").write_bytes(b"of an earlier comparison")
    read = _Text(write_report(comparison, tmp_path).read_text(encoding="utf-8"))
    assert "pip install 'acefraud[plots]'" in read.shown
    assert "svg" not in read.tags
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comparison.json", "report.html"]


@pytest.mark.usefixtures("no_matplotlib")
@pytest.mark.parametrize("draw", [learning_curve_svg, differences_svg])
def test_without_matplotlib_a_picture_names_the_command(
    comparison: Comparison, draw: Callable[[Comparison], str]
) -> None:
    with pytest.raises(ConfigurationError, match=r"pip install 'acefraud\[plots\]'"):
        draw(comparison)


def test_a_full_disk_leaves_the_old_report_intact(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(comparison, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    whole = Path.write_bytes

    def half(path: Path, content: bytes) -> int:
        if path.name == "report.html":
            whole(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, content)

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(StoreError, match=f"{re.escape(str(tmp_path))}.*No space left"):
        write_report(replace(comparison, dataset="another"), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_made_is_named(comparison: Comparison, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreError, match="taken"):
        write_report(comparison, tmp_path / "taken" / "report")
    assert (tmp_path / "taken").read_text() == "a file"
