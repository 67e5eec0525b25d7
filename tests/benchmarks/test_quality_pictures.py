"""The pictures of the quality benchmark: who is drawn, how, and how far the axes reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.arrays import Numbers
from benchmarks.quality.contenders import CONTENDERS
from benchmarks.quality.measurement import DatasetFigures, ModelFigures, Scored
from benchmarks.quality.measures import bootstrap, pooled
from benchmarks.quality.pictures import looks, on_the_stream, pictures, range_of, shown

pytestmark = pytest.mark.wide

LEFT_OUT = ("acefraud_without_draws", "acefraud_all")
STREAMED = ("acefraud_online", "river_hat", "river_arf")


def model(scores: Numbers, labels: np.ndarray, *, streamed: bool) -> ModelFigures:
    run = Scored(scores, labels, np.arange(len(labels)) >= 200, fit_seconds=1.0, predict_seconds=1.0)
    figures = pooled([bootstrap(scores, labels, draws=5)])
    return ModelFigures(
        settings="",
        streamed=streamed,
        figures=figures,
        fit_seconds=1.0,
        predict_seconds=1.0,
        size=None,
        cited_mean=None,
        cited_max=None,
        rows_per_second=None,
        learnt_from=0,
        on_stream_rows=0.0,
        evidence_held=None,
        first=run,
    )


@pytest.fixture(scope="module")
def data() -> DatasetFigures:
    """Everyone who takes part, at five percent of fraud, the last two hundred rows without any."""
    generator = np.random.default_rng(0)
    risk = generator.beta(1, 19, 1000)
    labels = generator.random(1000) < risk
    labels[800:] = False
    models = {
        name: model(np.clip(risk + generator.normal(0, 0.01, 1000), 0, 1), labels, streamed=name in STREAMED)
        for name in CONTENDERS
    }
    return DatasetFigures(
        name="made",
        rows=3000,
        frauds=150,
        train_rows=2000,
        train_frauds=100,
        test_rows=1000,
        test_frauds=int(labels.sum()),
        late=0,
        split="",
        stream_rows=3000,
        stream_measured=800,
        stream_capped=True,
        facts=(),
        bad_rows=0,
        unlabelled=0,
        models=models,
    )


@pytest.fixture(scope="module")
def drawn(data: DatasetFigures) -> dict[str, bytes]:
    return pictures(data)


def test_variants_of_ours_are_left_out_unless_there_is_nobody_else(data: DatasetFigures) -> None:
    assert list(shown(data)) == [name for name in CONTENDERS if name not in LEFT_OUT]
    alone = replace(data, models={"acefraud_all": data.models["acefraud_all"]})
    assert list(shown(alone)) == ["acefraud_all"]


def test_along_the_stream_are_its_learners_and_those_they_are_held_against(data: DatasetFigures) -> None:
    assert set(on_the_stream(data)) == {*STREAMED, "acefraud", "lightgbm"}


def test_ours_stands_out_and_everyone_can_be_told_apart(data: DatasetFigures) -> None:
    look_of = looks(data)
    assert list(look_of) == list(shown(data))
    ours = look_of.pop("acefraud")
    assert all(look.width < ours.width and look.layer < ours.layer for look in look_of.values())
    assert len({(look.colour, str(look.dashes)) for look in look_of.values()}) == len(look_of)
    assert {name for name, look in look_of.items() if look.name_weight == "bold"} == {"acefraud_online", "lightgbm"}


def test_the_axes_reach_as_far_as_those_who_are_compared() -> None:
    near = (np.array([0.01, 0.2]), np.array([0.02, 0.1]))
    far = (np.array([0.1, 0.9]), np.array([0.0, 1.0]))
    assert range_of({"acefraud": near, "figs": far}) == pytest.approx(0.212)
    assert range_of({"figs": far}) == 1.0
    assert range_of({}) == 1.0


def test_pictures_are_the_same_whatever_the_settings_are(data: DatasetFigures, drawn: dict[str, bytes]) -> None:
    import matplotlib

    assert list(drawn) == ["made_precision_recall.png", "made_stream.png", "made_reliability.png"]
    assert all(picture.startswith(b"\x89PNG") for picture in drawn.values())
    with matplotlib.rc_context({"font.size": 23, "axes.facecolor": "red"}):
        assert pictures(data) == drawn


def test_ours_is_in_the_picture_and_its_variants_are_not(data: DatasetFigures, drawn: dict[str, bytes]) -> None:
    def without(*names: str) -> DatasetFigures:
        return replace(data, models={name: each for name, each in data.models.items() if name not in names})

    assert pictures(without(*LEFT_OUT)) == drawn
    fewer = pictures(without("acefraud"))
    assert all(fewer[name] != drawn[name] for name in drawn)


def test_there_is_a_picture_even_where_little_can_be_drawn(data: DatasetFigures) -> None:
    assert pictures(replace(data, models={})) == {}
    labels = np.arange(1000) < 100  # none of them on the stream
    odd = model(np.linspace(3.0, -3.0, 1000), labels, streamed=False)
    assert len(pictures(replace(data, models={"figs": odd}))) == 3
