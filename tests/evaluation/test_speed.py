"""The benchmark of speed on tiny books: names, shapes and counts; never how long anything took."""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acefraud.core.table import FactTable
from acefraud.curation.curator import Curator
from acefraud.embedded.embedder import HashingEmbedder
from acefraud.errors import ConfigurationError
from acefraud.evaluation.speed import curation, deciding, large, running, tables
from acefraud.evaluation.speed.figures import Figures
from acefraud.evaluation.speed.measuring import PICKED
from acefraud.evaluation.speed.picture import picture
from acefraud.evaluation.speed.plain import plain_selection
from acefraud.evaluation.speed.rules import TRUE_OF, firing_bullets, rule_bullets, world_rows
from acefraud.evaluation.speed.running import measure_speed, sizes_in
from acefraud.evaluation.speed.sentences import FORMS, said_otherwise, sentence, sentences
from acefraud.evaluation.speed.timing import Effort, growth, interleaved
from acefraud.evaluation.speed.workloads import GivenVectors, prose_bullets, snapshot_of
from acefraud.selection.hybrid import HybridSelector


class Quick:
    """Stands in for another learner: training real ones takes seconds."""

    def __init__(self, _: int) -> None:
        self.model = self

    @property
    def booster_(self) -> Quick:
        return self

    def fit(self, train: Any) -> None: ...

    def learn(self, train: Any) -> None: ...

    def predict(self, rows: Any) -> Any:
        return np.zeros(len(rows))

    predict_proba = predict_proba_one = predict


@pytest.fixture(scope="module")
def measured() -> Figures:
    """One run over two tiny books, with learners that need no training."""
    told: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "LightGbm", Quick)
        patch.setattr(deciding, "AdaptiveForest", Quick)
        figures = measure_speed((60, 120), seed=1, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    return figures


@pytest.mark.long
def test_every_figure_has_its_name_and_its_meaning(measured: Figures) -> None:
    expected = {
        *(f"selection{kind}_{size}.{peer}" for kind in ("", "_spread") for size in (60, 120) for peer in PEERS),
        *(f"select_many{kind}_{size}.one_by_one" for kind in ("", "_spread") for size in (60, 120)),
        *(f"dedupe_{size}.difflib" for size in (60, 120)),
        "dedupe_120.disagreements",
        *(f"decision.{peer}" for peer in ("lightgbm", "lightgbm_booster", "river_arf")),
        *(f"decision_batch.{peer}" for peer in ("lightgbm", "lightgbm_booster", "lightgbm_batch")),
        "decision_with_ledger.lightgbm",
        "decision_with_ledger_batch.lightgbm",
        "standing_60.truth",
        "second_run.embedded",
        *(f"{what}_120.{what}_60" for what in ("insert", "merge", "insert_prose", "merge_prose")),
    }
    assert set(measured.ratios) == set(measured.meaning) == expected
    assert all(math.isfinite(value) and value >= 0 for value in measured.ratios.values())


PEERS = ("matvec", "plain_loop")


@pytest.mark.long
def test_nothing_is_embedded_twice_and_nobody_disagrees(measured: Figures) -> None:
    assert measured.ratios["second_run.embedded"] == 0
    assert measured.ratios["dedupe_120.disagreements"] == 0
    assert "second_run.embedded" not in measured.missed


@pytest.mark.long
def test_the_workloads_are_what_they_are_said_to_be(measured: Figures) -> None:
    assert measured.shares["selection_120"]["contextual"] == 1.0
    assert 0.2 < measured.shares["selection_120"]["semantic"] < 0.9
    assert 0.001 < measured.shares["selection_spread_120"]["semantic"] < 0.1
    assert measured.about["decisions"]["bullets"] == 60


@pytest.mark.long
def test_the_json_is_whole(measured: Figures) -> None:
    got = json.loads(json.dumps(measured.as_json(), allow_nan=False))
    assert got["sizes"] == [60, 120]
    assert got["seed"] == 1
    assert {"selection_60", "matvec_120", "decision", "lightgbm", "insert_60"} <= set(got["seconds"])
    assert all(seconds > 0 for seconds in got["seconds"].values())
    assert {"selection", "select_many", "dedupe", "insert"} <= set(got["growth"])
    assert got["skipped"] == ["a million bullets: --sizes leaves them out"]
    assert got["about"]["cores"] >= 1


@pytest.mark.long
def test_tables_and_picture_show_it(measured: Figures) -> None:
    written = tables.as_markdown(measured)
    assert "| duplicate check |" in written
    assert "| dedupe_120.disagreements | 0 |" in written
    assert "--sizes 60,120 --seed 1" in written
    assert {len(row) for row in tables.times(measured)} == {4}
    drawn = picture(measured, "svg")
    assert b"plain loop" in drawn
    assert b"difflib over all" in drawn
    assert drawn == picture(measured, "svg")


# --- what it is measured on ---


def test_sentences_are_distinct_and_depend_on_nothing_but_number_and_seed() -> None:
    many = list(sentences(50_000, seed=3))
    assert len(set(many)) == len(many)
    assert many[777] == sentence(777, seed=3) == next(iter(sentences(1, seed=3, first=777)))
    assert many[777] != sentence(777, seed=4)
    assert all(text[0].isupper() or text[0].isdigit() for text in many[: len(FORMS)])


def test_there_are_enough_sentences_for_a_million_bullets() -> None:
    assert min(form.size for form in FORMS) * len(FORMS) > 1_000_000
    ends = [*range(999_000, 1_000_000), *range(1_000)]
    assert len({sentence(number) for number in ends}) == len(ends)


def test_bullets_in_prose_go_on_where_they_stopped() -> None:
    assert [one.id for one in prose_bullets(4)][2:] == [one.id for one in prose_bullets(2, first=2)]
    assert all(one.condition is None for one in prose_bullets(20))


def test_nearly_the_same_is_found_to_be_a_duplicate() -> None:
    text, other = sentence(5), sentence(22)
    assert said_otherwise(text, [other], 0) == text
    assert Curator().alike(said_otherwise(text, [other], 1), text)
    assert not Curator().alike(said_otherwise(text, [other], 12), text)


def test_all_rows_know_the_same_facts() -> None:
    rows = world_rows(1)
    assert len({frozenset(facts) for facts in rows.facts}) == 1
    assert not any(transaction.text for transaction in rows.transactions)
    assert 0.05 < rows.base_rate < 0.95


def test_conditions_hold_where_they_should() -> None:
    rows, bullets = world_rows(1), firing_bullets(20, 1)
    table = FactTable(rows.facts)
    for bullet in bullets:
        assert bullet.condition is not None
        assert 2 <= len(bullet.condition.tests) <= 4
        assert TRUE_OF[0] <= bullet.condition.holds_in(table).mean() <= TRUE_OF[1]
        assert bullet.evidence is not None
        assert bullet.evidence.in_words() in bullet.content
    some = list(islice(rule_bullets(50, 1), 50))
    assert len({one.condition for one in some}) == len({one.id for one in some}) == 50


# --- how it is measured ---


def test_the_plain_loop_picks_what_the_stages_say() -> None:
    bullets = list(prose_bullets(60))
    texts = [bullet.content for bullet in bullets]
    embedder = GivenVectors(texts)
    selector = HybridSelector(embedding_model=embedder)
    picked = plain_selection(selector, bullets, list(embedder.embed(texts)), embedder.embed(texts[:1])[0], PICKED)
    assert bullets[0] in picked or bullets[0].success_rate < selector.quality_threshold
    assert all(one.success_rate >= selector.quality_threshold for one in picked)
    transparent = HybridSelector(embedding_model=HashingEmbedder(), semantic_threshold=0.0)
    assert len(snapshot_of(bullets).bullets) == 60
    assert len(plain_selection(transparent, bullets, list(embedder.embed(texts)), embedder.embed(texts[:1])[0], 3)) == 3


def test_everybody_gets_the_same_number_of_turns() -> None:
    turns = {"one": 0, "other": 0}

    def work(name: str) -> Any:
        def turn() -> None:
            turns[name] += 1

        return turn

    interleaved({name: [work(name)] for name in turns}, Effort(0.0, 3, 3))
    assert turns == {"one": 4, "other": 4}, "once to warm up, and three times"


def test_growth_is_the_slope_of_the_logarithms() -> None:
    assert growth({10: 2.0, 1_000: 2.0}) == pytest.approx(0.0)
    assert growth({10: 1.0, 100: 100.0}) == pytest.approx(2.0)


def test_what_differs_from_difflib_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Curator, "said_already", lambda *_: None)
    figures = Figures((60,), 0)
    curation.count_disagreements(figures, 60, 0, new=6)
    assert figures.ratios["dedupe_60.disagreements"] > 0


@pytest.mark.parametrize("text", ["", "ten", "10", "1k,-5", "9m", "1kk"])
def test_sizes_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--sizes: expected numbers of bullets"):
        sizes_in(text)


# --- the file of very many bullets ---


def test_a_file_is_made_and_measured(tmp_path: Path) -> None:
    figures = Figures((150,), 0)
    large.measure_large(figures, 150, 0, tmp_path, lambda _: None)
    assert set(figures.ratios) == {"memory_150.raw_matrix", "selection_150.matvec"}
    assert figures.memory["raw_matrix_150"] == 150 * 256 * 4
    assert figures.memory["peak_150"] >= figures.memory["opened_150"] > 0
    assert {"load", "first_selection", "selection", "matvec", "select_many"} == set(figures.seconds)
    assert figures.shares["selection_150"]["contextual"] == 1.0


def test_large_books_are_left_to_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    for name in ("measure_dedupe", "measure_adding", "measure_selection", "measure_deciding", "measure_second_run"):
        monkeypatch.setattr(running, name, lambda *_: None)
    monkeypatch.setattr(running, "count_disagreements", lambda *_: None)
    monkeypatch.setattr(running, "measure_large", lambda _, size, *__: asked.append(size))
    assert not measure_speed((60, 1_000_000)).skipped
    assert asked == [1_000_000]


def test_a_computer_that_is_too_small_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = Figures((1_000,), 0)
    monkeypatch.setattr(large, "MEMORY_PER_BULLET", 10**12)
    large.measure_large(figures, 1_000, 0, tmp_path, lambda _: None)
    assert figures.skipped[0].startswith("1,000 bullets: needs 1000000.0 GB of memory, there are ")
    monkeypatch.setattr(large, "DISK_PER_BULLET", 10**12)
    assert "GB of disk" in large.lacking(1_000, tmp_path)


def test_a_process_that_fails_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"the book of 150 bullets could not be measured: .+"):
        large._in_its_own_process("measure", tmp_path / "nowhere", 150, 0)


def test_the_index_is_asked_for_the_most_alike() -> None:
    pytest.importorskip("numkong")
    vectors = GivenVectors([str(place) for place in range(2_000)]).embed([str(place) for place in range(2_000)])
    assert large.recalled(vectors, vectors[:5]) == 1.0
