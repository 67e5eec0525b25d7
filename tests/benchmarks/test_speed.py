"""The benchmark of speed on tiny books: names, shapes and counts; never how long anything took."""

from __future__ import annotations

import json
import math
from itertools import islice
from typing import Any

import numpy as np
import pytest

from acefraud import BulletPlaybook, Curator, FactTable, HybridSelector
from acefraud.errors import ConfigurationError
from benchmarks.speed import curation, decisions, measurement, tables
from benchmarks.speed.conditions import (
    TRUE_OF,
    condition_book,
    condition_bullets,
    conditions,
    firing_bullets,
    world_rows,
)
from benchmarks.speed.figures import Figures
from benchmarks.speed.measurement import measure_speed, sizes_in
from benchmarks.speed.picture import picture
from benchmarks.speed.plain_loop import plain_selection
from benchmarks.speed.prose import NODE, GivenVectors, prose_book
from benchmarks.speed.selection import PICKED
from benchmarks.speed.sentences import FORMS, said_otherwise, sentence, sentences
from benchmarks.speed.timing import Effort, growth, interleaved

pytestmark = pytest.mark.wide


class Quick:
    """Stands in for another learner: training real ones takes seconds."""

    def __init__(self, _: int) -> None:
        self.model = self.classifier = self.encoding = self

    @property
    def booster_(self) -> Quick:
        return self

    def fit(self, facts: Any, labels: Any) -> None: ...

    def matrix(self, facts: Any) -> Any:
        return np.zeros((len(facts), 1))

    def learn(self, train: Any) -> None: ...

    def predict(self, rows: Any) -> Any:
        return np.zeros(len(rows))

    predict_proba = predict_proba_one = predict


@pytest.fixture(scope="module")
def measured() -> Figures:
    """One run over two tiny books, with learners that need no training."""
    told: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "LightGbm", Quick)
        patch.setattr(decisions, "AdaptiveForest", Quick)
        figures = measure_speed((60, 120), seed=1, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    return figures


@pytest.mark.long
def test_every_figure_has_its_name_and_its_meaning(measured: Figures) -> None:
    expected = {
        *(f"selection{kind}_{size}.{peer}" for kind in ("", "_spread") for size in (60, 120) for peer in PEERS),
        *(f"dedupe_{size}.difflib" for size in (60, 120)),
        "dedupe_120.disagreements",
        *(f"decision.{peer}" for peer in ("lightgbm", "lightgbm_booster", "river_arf")),
        *(f"decision_batch.{peer}" for peer in ("decision", "lightgbm", "lightgbm_booster", "lightgbm_batch")),
        *(f"score_batch.{peer}" for peer in ("lightgbm", "lightgbm_batch")),
        "decision_with_ledger.lightgbm",
        "decision_with_ledger_batch.lightgbm",
        "decision_with_ledger.allowed",
        "decision_with_ledger_batch.allowed",
        *(f"{what}_120.{what}_60" for what in ("insert", "merge", "insert_prose", "merge_prose")),
    }
    assert set(measured.ratios) == set(measured.meaning) == expected
    assert all(math.isfinite(value) and value >= 0 for value in measured.ratios.values())


PEERS = ("matvec", "plain_loop")


@pytest.mark.long
def test_nobody_disagrees_with_difflib(measured: Figures) -> None:
    assert measured.ratios["dedupe_120.disagreements"] == 0


@pytest.mark.long
def test_the_workloads_are_what_they_are_said_to_be(measured: Figures) -> None:
    assert measured.shares["selection_120"]["contextual"] == 1.0
    assert 0.2 < measured.shares["selection_120"]["semantic"] < 0.9
    assert 0.001 < measured.shares["selection_spread_120"]["semantic"] < 0.1
    assert measured.about["decisions"]["bullets"] >= 60


@pytest.mark.long
def test_the_json_is_whole(measured: Figures) -> None:
    got = json.loads(json.dumps(measured.as_json(), allow_nan=False))
    assert got["sizes"] == [60, 120]
    assert got["seed"] == 1
    assert {"selection_60", "matvec_120", "decision", "lightgbm", "insert_60"} <= set(got["seconds"])
    assert all(seconds > 0 for seconds in got["seconds"].values())
    assert {"selection", "dedupe", "insert"} <= set(got["growth"])
    assert got["about"]["cores"] >= 1


@pytest.mark.long
def test_tables_and_picture_show_it(measured: Figures) -> None:
    written = tables.as_markdown(measured)
    assert "| merge a bullet that is there already |" in written
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


def test_a_book_in_prose_has_records_and_no_conditions() -> None:
    bullets = prose_book(40, 1).get_bullets_for_node(NODE)
    assert [bullet.content for bullet in bullets] == list(sentences(40, 1))
    assert all(bullet.condition is None for bullet in bullets)
    assert {bullet.times_selected for bullet in bullets} == {0, 1, 2, 3}
    assert [bullet.helpful_count for bullet in bullets] == [
        each.helpful_count for each in prose_book(40, 1).get_bullets_for_node(NODE)
    ]


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
        assert 2 <= len(bullet.condition.tests) <= 4
        assert TRUE_OF[0] <= bullet.condition.holds_in(table).mean() <= TRUE_OF[1]
        assert bullet.evidence.in_words() in bullet.content
    assert all(each.holds_in(table).any() for each in islice(conditions(rows, 30, 2), 30))


def test_books_of_conditions_say_what_was_given() -> None:
    bullets = list(condition_bullets(50, 1))
    found = condition_book(bullets).get_bullets_for_node(NODE)
    assert [(each.condition, each.weight) for each in found] == [
        (bullet.condition, bullet.weight) for bullet in bullets
    ]
    assert all(each.verified and each.claim is None for each in found)
    assert len({each.condition for each in found}) == 50


# --- how it is measured ---


def test_the_plain_loop_picks_what_the_stages_say() -> None:
    bullets = prose_book(60).get_bullets_for_node(NODE)
    texts = [bullet.content for bullet in bullets]
    embedder = GivenVectors(texts)
    selector = HybridSelector(embedding_model=embedder)
    vectors, query = list(embedder.embed(texts)), embedder.embed(texts[:1])[0]
    picked = plain_selection(selector, bullets, vectors, query, PICKED)
    assert bullets[0] in picked or bullets[0].success_rate < selector.quality_threshold
    assert all(each.success_rate >= selector.quality_threshold for each in picked)
    transparent = HybridSelector(embedding_model=embedder, semantic_threshold=0.0)
    assert len(plain_selection(transparent, bullets, vectors, query, 3)) == 3


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


def test_each_turn_decides_transactions_that_are_new() -> None:
    seen: list[str] = []

    async def decide(some: Any) -> None:
        seen.extend(each.id for each in some)

    work = decisions._anew("alone", decide, world_rows(1).transactions[:3], turns=2)
    for _ in range(3):
        work()
    assert len(set(seen)) == 9


def test_what_is_there_already_is_merged_without_a_trace() -> None:
    playbook, figures = prose_book(60), Figures((60,), 0)
    curation.measure_dedupe(figures, playbook, 0, Effort(0.0, 1, 1))
    assert set(figures.ratios) == {"dedupe_60.difflib"}
    assert len(playbook.get_bullets_for_node(NODE)) == 60


def test_what_differs_from_difflib_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Curator, "merge_bullet", lambda *_: "new")
    figures = Figures((60,), 0)
    curation.count_disagreements(figures, 60, 0, new=6)
    assert figures.ratios["dedupe_60.disagreements"] > 0


def test_adding_is_measured_for_both_kinds_of_bullets() -> None:
    figures = Figures((50, 60), 0)
    for size in (50, 60):
        curation.measure_adding_conditions(figures, size, 0, added=5)
        curation.measure_adding_prose(figures, prose_book(size), 0, added=5)
    curation.note_growth(figures)
    assert set(figures.seconds) == {"insert", "merge", "insert_prose", "merge_prose"}
    assert "merge_prose_60.merge_prose_50" in figures.ratios


@pytest.mark.parametrize("text", ["", "ten", "10", "1k,-5", "101k", "1m", "1kk"])
def test_sizes_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--sizes: expected numbers of bullets"):
        sizes_in(text)


def test_one_book_in_prose_serves_for_all_that_is_measured_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def book(size: int, _: int) -> BulletPlaybook:
        made.append(size)
        return BulletPlaybook()

    monkeypatch.setattr(measurement, "prose_book", book)
    for name in ("measure_selection", "measure_dedupe", "measure_adding_prose", "measure_adding_conditions"):
        monkeypatch.setattr(measurement, name, lambda *_: None)
    for name in ("measure_decisions", "count_disagreements"):
        monkeypatch.setattr(measurement, name, lambda *_: None)
    measure_speed((60, 1_000))
    assert made == [60, 1_000]
