"""Splits, measures, streams and peers of the quality benchmark, on small data."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from acefraud import (
    Bullet,
    Cases,
    Columns,
    Condition,
    Dataset,
    Evidence,
    FactTable,
    Record,
    SchemaMapping,
    Transactions,
)
from acefraud.errors import ConfigurationError, InputError
from benchmarks.arrays import UNKNOWN, Codes, Numbers, Places
from benchmarks.quality import peers
from benchmarks.quality.contenders import CONTENDERS, chosen
from benchmarks.quality.encodings import MOST_WORDS, OTHER, CommonWords, OneHot, row_dicts
from benchmarks.quality.evidence import EvidenceHeld, evidence_held, together
from benchmarks.quality.measurement import Fits, measure
from benchmarks.quality.measures import BINS, CALIBRATION, Groups, average_precision, bootstrap, pooled
from benchmarks.quality.playbooks import Playbook, WholePlaybook, outcomes_of
from benchmarks.quality.reliability_lines import precision_recall, reliability, windowed
from benchmarks.quality.results import Quality
from benchmarks.quality.samples import subsample
from benchmarks.quality.splits import Split, split_rows
from benchmarks.quality.streams import BATCH, Stream, run_stream, stream_of

pytestmark = pytest.mark.wide

DAY = 86_400_000_000


def made(count: int = 400, *, timed: bool = True, delay_days: int = 0, seed: int = 0) -> Cases:
    """Rows a day apart, fraud where the amount is high or the country is XX, with empty cells of each kind."""
    generator = np.random.default_rng(seed)
    amount = generator.gamma(2.0, 50.0, count)
    country = generator.integers(0, 3, count).astype(np.int32)
    vpn = generator.integers(-1, 2, count).astype(np.int8)
    odds = (amount > 150) * 2.0 + (country == 2) * 1.5 + (vpn == 1) - 2.5
    labels = generator.random(count) < 1 / (1 + np.exp(-odds))
    amount[(generator.random(count) < 0.05) & (vpn >= 0)] = np.nan  # a transaction without any fact is none
    country[generator.random(count) < 0.05] = -1
    columns = Columns({"amount": amount}, {"vpn": vpn}, {"country": (country, ("DE", "FR", "XX"))})
    times = np.arange(count, dtype=np.int64) * DAY
    transactions = Transactions(
        np.array([f"t{at}" for at in range(count)], dtype=object),
        FactTable.of_columns(columns, count),
        times=times if timed else None,
        entities={"card": entity(np.arange(count) // 4), "shop": entity(np.arange(count) % 20)},
    )
    return Cases(transactions, labels, known_at=times + delay_days * DAY if timed else None)


def entity(numbers: Places) -> tuple[Codes, tuple[str, ...]]:
    """A column that says who, by numbers."""
    return numbers.astype(np.int32), tuple(str(number) for number in range(numbers.max() + 1))


def dataset(cases: Cases) -> Dataset:
    """The same with a name."""
    return Dataset("made", cases, mapping=SchemaMapping(label="y"))


class ByAmount:
    """Stands in for a learner: the higher the amount, the more like fraud."""

    settings, size, cited, rows_cap = "none", None, None, None

    def __init__(self, seed: int) -> None: ...

    def fit(self, train: Cases, _: str) -> None: ...

    def score(self, test: Cases) -> Numbers:
        amount = np.nan_to_num(test.facts.numbers("amount"))
        return np.asarray(amount / (amount + 150), dtype=np.float64)


class TestSplits:
    def test_the_latest_rows_are_the_test(self) -> None:
        split = split_rows(made(100))
        assert split.train.tolist() == list(range(70))
        assert split.test.tolist() == list(range(70, 100))

    def test_labels_that_come_too_late_are_not_learnt_from(self) -> None:
        split = split_rows(made(100, delay_days=7))
        assert split.late.tolist() == list(range(64, 70))
        assert split.train.tolist() == list(range(64))

    def test_without_times_each_label_is_shared_out(self) -> None:
        data = made(200, timed=False)
        split = split_rows(data, seed=3)
        assert data.labels[split.test].sum() == round(0.3 * data.labels.sum())
        assert sorted([*split.train, *split.test]) == list(range(200))
        assert split.test.tolist() != split_rows(data, seed=4).test.tolist()

    @pytest.mark.parametrize("timed", [True, False])
    @pytest.mark.parametrize("entity", ["card", "shop"])
    def test_no_entity_is_on_both_sides(self, entity: str, timed: bool) -> None:
        data = made(600, timed=timed, delay_days=3)
        split = split_rows(data, entity_disjoint=entity)
        codes, _ = data.transactions.entities[entity]
        assert not set(codes[split.train]) & set(codes[split.test])
        if timed:
            assert split.train.max() < split.test.min()

    def test_an_unknown_entity_is_an_error(self) -> None:
        with pytest.raises(ConfigurationError, match=r"'device' is not among the entities.*card, shop"):
            split_rows(made(100), entity_disjoint="device")

    def test_one_class_is_an_error(self) -> None:
        data = made(100)
        data.labels[:] = False
        with pytest.raises(InputError, match="0 are fraud: expected both kinds"):
            split_rows(data)


class TestMeasures:
    @pytest.fixture(params=["fine", "coarse"])
    def scores(self, request: pytest.FixtureRequest) -> Numbers:
        scores = np.random.default_rng(1).random(500)
        return scores if request.param == "fine" else scores.round(1)

    @pytest.mark.long
    def test_figures_are_those_of_scikit_learn(self, scores: Numbers) -> None:
        from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

        labels = np.random.default_rng(2).random(500) < scores * 0.5
        got = Groups.of(scores, labels).figures()
        assert got["average_precision"] == pytest.approx(average_precision_score(labels, scores))
        assert got["roc_auc"] == pytest.approx(roc_auc_score(labels, scores))
        wrong, caught, _ = roc_curve(labels, scores, drop_intermediate=False)
        for name, allowed in (("recall_at_0.5_fpr", 0.005), ("recall_at_1_fpr", 0.01)):
            assert got[name] == pytest.approx(max(caught[wrong <= allowed]))

    def test_merging_stretches_without_fraud_changes_no_figure_but_bins_of_equal_mass(self, scores: Numbers) -> None:
        labels = np.random.default_rng(2).random(500) < scores**3 * 0.2
        groups = Groups.of(scores, labels)
        merged = groups.merged(20)
        assert len(merged.scores) < len(groups.scores) or len(groups.scores) < 20
        assert merged.mass.sum() == 500
        before, after = groups.figures(), merged.figures()
        name = "expected_calibration_error_equal_mass"
        assert before.pop(name) == pytest.approx(after.pop(name), abs=0.02)
        assert before == pytest.approx(after)

    def test_intervals_are_those_of_rows_drawn_one_by_one(self) -> None:
        generator = np.random.default_rng(2)
        scores = generator.random(400)
        labels = generator.random(400) < scores * 0.5
        rows = [generator.integers(0, 400, 400) for _ in range(400)]
        plain = [average_precision(scores[some], labels[some]) for some in rows]
        ours = bootstrap(scores, labels, draws=400)["average_precision"][1:]
        assert np.mean(ours) == pytest.approx(np.mean(plain), abs=0.02)
        assert np.std(ours) == pytest.approx(np.std(plain), rel=0.15)

    def test_calibration_error_of_bins_of_equal_width(self) -> None:
        scores = np.random.default_rng(3).beta(1, 4, 700).round(2)
        labels = np.random.default_rng(0).random(len(scores)) < scores**2
        edges = np.arange(BINS + 1) / BINS
        parts = [(scores > low) & (scores <= high) for low, high in pairwise(edges)]
        parts[0] |= scores == 0
        expected = sum(abs(np.sum(scores[part] - labels[part])) for part in parts) / len(scores)
        assert Groups.of(scores, labels).figures()["expected_calibration_error"] == pytest.approx(expected)

    def test_calibration_error_of_bins_of_equal_mass(self) -> None:
        scores = np.linspace(0.01, 0.99, 15 * 40) ** 2
        labels = np.random.default_rng(0).random(len(scores)) < scores
        parts = zip(np.split(scores, BINS), np.split(labels, BINS), strict=True)
        expected = np.mean([abs(some.mean() - found.mean()) for some, found in parts])
        assert Groups.of(scores, labels).figures()["expected_calibration_error_equal_mass"] == pytest.approx(expected)

    def test_equal_scores_are_one_bin(self) -> None:
        labels = np.array([True] * 30 + [False] * 70)
        got = Groups.of(np.full(100, 0.25), labels).figures()
        assert [got[name] for name in CALIBRATION] == pytest.approx([0.05, 0.05])

    def test_scores_that_are_no_probabilities_have_no_calibration_error(self) -> None:
        got = Groups.of(np.array([3.0, 0.1]), np.array([True, False])).figures()
        assert all(math.isnan(got[name]) for name in CALIBRATION)

    def test_draws_depend_on_the_seed_alone_and_are_pooled_over_seeds(self) -> None:
        labels = np.random.default_rng(0).random(300) < 0.2
        scores = np.random.default_rng(1).random(300) * 0.7 + labels * 0.3
        runs = [bootstrap(scores, labels, draws=50, seed=seed) for seed in (0, 0, 1)]
        assert runs[0] == runs[1] != runs[2]
        interval = pooled(runs)["average_precision"]
        assert interval.low is not None
        assert interval.high is not None
        assert interval.low < interval.mean < interval.high

    def test_curves_for_the_pictures(self) -> None:
        labels = np.array([False, True] * 50)
        scores = np.where(labels, 0.9, 0.1)
        recall, precision = precision_recall(scores, labels)
        assert (recall.tolist(), precision.tolist()) == ([0.0, 1.0, 1.0], [1.0, 1.0, 0.5])
        accuracy, area = windowed(scores, labels)
        assert accuracy.min() == area.min() == 1.0
        said, found = reliability(scores, labels)
        assert (said.round(6).tolist(), found.tolist()) == ([0.9, 0.1], [1.0, 0.0])


class Heard:
    """Stands in for a stream learner: writes down what it hears and decides."""

    settings, size, cited = "none", None, None

    def __init__(self) -> None:
        self.steps: list[tuple[str, list[int]]] = []

    def learn(self, rows: Cases) -> None:
        self.steps.append(("learn", places(rows)))

    def predict(self, rows: Cases) -> Numbers:
        self.steps.append(("predict", places(rows)))
        return np.array(places(rows), dtype=np.float64)


def places(rows: Cases) -> list[int]:
    """Where rows stand, by their ids."""
    return [int(id_[1:]) for id_ in rows.transactions.ids]


class TestStreams:
    def test_a_label_is_heard_when_it_arrives_and_not_before(self) -> None:
        data, learner = made(1000, delay_days=9), Heard()
        stream = stream_of(data, split_rows(data), cap=2000)
        run_stream(learner, data, stream)
        heard: list[int] = []
        decided: list[int] = []
        for what, rows in learner.steps:
            assert len(rows) <= BATCH
            if what == "learn":
                heard += rows
                continue
            decided += rows
            known = np.flatnonzero(data.known_at <= data.transactions.times[rows[0]])
            assert heard == known.tolist()
        assert decided == stream.measured.tolist()

    def test_labels_without_a_time_are_heard_right_after_the_decision(self) -> None:
        data, learner = made(400, timed=False), Heard()
        stream = stream_of(data, split_rows(data), cap=400)
        run_stream(learner, data, stream)
        first = next(at for at, (what, _) in enumerate(learner.steps) if what == "predict")
        assert sorted(row for _, rows in learner.steps[:first] for row in rows) == stream.warm_up.tolist()
        later = learner.steps[first:]
        assert [what for what, _ in later] == ["predict", "learn"] * (len(later) // 2)
        assert all(decided == heard for (_, decided), (_, heard) in zip(later[::2], later[1::2], strict=True))

    def test_of_a_capped_stream_the_last_third_is_measured(self) -> None:
        split = Split(np.arange(70), np.arange(70, 100), np.arange(0), "")
        capped = stream_of(made(100), split, cap=20)
        assert capped.warm_up.tolist() == list(range(80, 94))
        assert capped.measured.tolist() == list(range(94, 100))
        assert capped.capped
        assert not stream_of(made(100), split, cap=100).capped

    def test_rows_whose_labels_are_awaited_do_not_use_up_the_stream(self) -> None:
        data = made(100, delay_days=40)
        stream = stream_of(data, split_rows(data), cap=20)
        assert stream.warm_up.tolist() == list(range(41, 55))
        assert stream.waiting.tolist() == list(range(55, 94))

    def test_scores_come_in_the_order_of_the_rows(self) -> None:
        data = made(300)
        stream = Stream(np.arange(10), np.arange(0), np.arange(10, 300), capped=False)
        streamed = run_stream(Heard(), data, stream)
        assert streamed.scores.tolist() == list(range(10, 300))
        assert streamed.rows == 300


QUICK = ("acefraud", "acefraud_online")
"""They need no library that takes seconds to import."""


def each(*names: str) -> list[ParameterSet]:
    """The contenders of these names; all but two of ours among the long tests."""
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in names]


class TestPeers:
    @pytest.mark.parametrize("name", each(*CONTENDERS))
    def test_everyone_learns_more_than_nothing(self, name: str) -> None:
        got = measure(dataset(made(800)), chosen([name])).models[name]
        assert got.figures["roc_auc"].mean > 0.55
        assert got.first.scores.shape == (240,)

    @pytest.mark.parametrize("name", each("acefraud", "lightgbm", "tree", "figs", "river_hat"))
    def test_a_seed_gives_the_same_scores_again(self, name: str) -> None:
        data = dataset(made(200))
        one, other = (measure(data, chosen([name]), seeds=(5,)).models[name].first for _ in range(2))
        assert one.scores == pytest.approx(other.scores, rel=1e-9)

    def test_frauds_are_kept_up_to_half_of_a_sample(self) -> None:
        labels = np.arange(1000) % 10 == 0
        rows = subsample(labels, 300, seed=0)
        assert (len(rows), labels[rows].sum()) == (300, 100)
        assert labels[subsample(labels, 120, seed=0)].sum() == 60
        assert labels[subsample(~labels, 300, seed=0)].sum() == 100
        assert subsample(labels, 1000, seed=0).tolist() == list(range(1000))

    def test_matrices(self) -> None:
        facts = FactTable([{"n": 1.0, "f": True, "c": "x"}, {"n": 3.0, "c": "y"}, {"f": False, "c": "x"}, {"n": 8.0}])
        one_hot = OneHot().fit(facts).matrix(facts)
        assert one_hot[:, :4].tolist() == [[1, 1, 0, 0], [3, 0.5, 0, 1], [3, 0, 1, 0], [8, 0.5, 0, 1]]
        assert one_hot[:, 4:].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]]

    def test_stream_learners_tell_few_words_apart(self) -> None:
        common = CommonWords()
        first = FactTable([{"c": f"w{at}", "n": 1.0} for at in [*range(40), *range(20, 40)]])
        common.hear(first)
        rows = row_dicts(first, common)
        assert len({row["c"] for row in rows}) == MOST_WORDS + 1
        assert {row["c"] for row in rows[40:]} == {f"w{at}" for at in range(20, 40)}
        assert rows[19] == {"c": OTHER, "n": 1.0}

    def test_new_words_are_told_apart_while_there_is_room(self) -> None:
        common = CommonWords()
        for word in ("x", "y"):
            common.hear(FactTable([{"c": word}]))
        rows = row_dicts(FactTable([{"c": "y"}, {"c": "z"}, {"f": True}]), common)
        assert rows == [{"c": "y"}, {"c": OTHER}, {"f": 1.0}]

    def test_a_failure_is_told_and_the_others_go_on(self) -> None:
        class Broken(ByAmount):
            def score(self, test: Cases) -> Numbers:
                return np.full(len(test), np.nan)

        got = measure(dataset(made(200)), {"broken": Broken, "plain": ByAmount})
        assert got.failed == {"broken": "ValueError: expected one finite score for each row"}
        assert list(got.models) == ["plain"]
        result = Quality([got], 1)
        assert result.as_json()["datasets"]["made"]["broken"] == {"error": got.failed["broken"]}
        assert "| broken | failed: ValueError: expected one finite score" in result.as_markdown()
        assert result.failed == ["broken on made: ValueError: expected one finite score for each row"]

    def test_a_missing_library_names_the_extra(self) -> None:
        with pytest.raises(ConfigurationError, match=r"pip install '\.\[bench\]'"):
            peers.needed("no_such_library")

    def test_an_unknown_model_is_an_error(self) -> None:
        with pytest.raises(ConfigurationError, match=r"there is no model 'magic'; the models are: .*lightgbm, "):
            chosen(["magic"])


def test_ratios_of_stream_learners_are_on_the_rows_that_both_decided() -> None:
    data = dataset(made(600))
    result = measure(data, {"lightgbm": ByAmount, **chosen(["acefraud_online"])}, stream_rows=200, seeds=(0, 1))
    assert result.stream_capped
    stream, offline = result.models["acefraud_online"], result.models["lightgbm"]
    ratios = Quality([result], 2).ratios()
    assert ratios["acefraud_online"]["made"] == pytest.approx(stream.on_stream_rows / offline.on_stream_rows, abs=1e-6)
    assert ratios["lightgbm"] == {"made": 1.0, "geometric_mean": 1.0}
    assert "measured on the last 60" in Quality([result], 2).as_markdown()


class TestEvidence:
    @staticmethod
    def bullet(condition: str, support: int, frauds: int) -> Bullet:
        evidence = Evidence(learnt=Record(support=support, frauds=frauds), base_rate=0.1)
        return Bullet(id=condition, content=condition, condition=Condition.parse(condition), evidence=evidence)

    def test_only_bullets_that_hold_somewhere_count(self) -> None:
        facts = FactTable([{"n": float(at)} for at in range(10)])
        bullets = [
            self.bullet("n > 4", 100, 60),
            self.bullet("n > 5", 100, 10),
            self.bullet("n > 100", 100, 60),
            Bullet(id="prose", content="Look twice"),
        ]
        held = evidence_held(bullets, facts, np.array([False] * 7 + [True] * 3))
        assert held == EvidenceHeld(inside=1, of=2)
        assert held.as_json() == {"inside": 1, "of": 2, "share": 0.5}

    def test_runs_are_added_up(self) -> None:
        assert together([EvidenceHeld(1, 2), None, EvidenceHeld(3, 3)]) == EvidenceHeld(4, 5)
        assert together([None]) is None
        assert EvidenceHeld(0, 0).as_json() == {"inside": 0, "of": 0, "share": None}

    def test_it_is_told_beside_what_exploration_costs(self) -> None:
        names = ["acefraud", "acefraud_without_draws"]
        result = Quality([measure(dataset(made(500)), chosen(names))], 1)
        ours, without = (result.as_json()["datasets"]["made"][name] for name in names)
        held = ours["evidence_held"]
        assert 0 < held["inside"] <= held["of"] <= ours["size"]
        cost = without["average_precision"]["mean"] - ours["average_precision"]["mean"]
        assert result.as_json()["exploration_cost"]["made"] == pytest.approx(cost, abs=2e-6)
        page = result.as_markdown()
        assert f"Evidence held: of {held['of']} bullets that held on some test row, {held['inside']} (" in page
        assert f"| {held['inside']} of {held['of']} |" in page
        assert "Exploration: an AP of " in page


class Counting(ByAmount):
    """Stands in for a playbook: counts how often it learns."""

    fitted_as = "counting"
    fits: ClassVar[list[str]] = []

    def __init__(self, _: int) -> None:
        self.learnt = 0

    def fit(self, train: Cases, mapping: str) -> None:
        self.fits.append(mapping)
        self.learnt = len(train)


class TestPlaybooks:
    def test_those_who_learn_the_same_learn_once_for_each_seed(self) -> None:
        Counting.fits.clear()
        got = measure(dataset(made(200)), {"one": Counting, "other": Counting, "plain": ByAmount}, seeds=(0, 1))
        assert Counting.fits == [SchemaMapping(label="y").describe()] * 2
        assert got.models["one"].fit_seconds == got.models["other"].fit_seconds

    def test_what_was_learnt_is_handed_on(self) -> None:
        fits, first, second = Fits(""), Counting(0), Counting(0)
        seconds = [fits.seconds_of(one, made(50), 0) for one in (first, second)]
        assert first.learnt == second.learnt == 50
        assert seconds[0] == seconds[1]

    def test_all_rows_of_ours_but_the_online_one_share_a_fit(self) -> None:
        offline = [CONTENDERS[name] for name in ("acefraud", "acefraud_without_draws", "acefraud_all")]
        assert {getattr(one, "fitted_as", "") for one in offline} == {"playbook"}
        assert (Playbook.explore, Playbook.every_bullet) == (True, False), "the headline is what is shipped"
        assert (WholePlaybook.explore, WholePlaybook.every_bullet) == (True, True)

    def test_outcomes_say_when_they_became_known(self) -> None:
        cases = made(3, delay_days=2)
        cases.known_at[1] = UNKNOWN
        found = outcomes_of(cases)
        assert [one.transaction_id for one in found] == ["t0", "t1", "t2"]
        assert [one.is_fraud for one in found] == cases.labels.tolist()
        assert [one.at for one in found] == [datetime(1970, 1, 3, tzinfo=UTC), None, datetime(1970, 1, 5, tzinfo=UTC)]


def test_stream_learners_stand_in_a_table_of_their_own() -> None:
    class Stays(Heard):
        def __init__(self, _: int) -> None:
            super().__init__()

    result = Quality([measure(dataset(made(300)), {"lightgbm": ByAmount, "stays": Stays})], 1)
    page = result.as_markdown()
    before, _, after = page.partition("## made")
    assert "| made | stays |" in before
    assert "| stays |" not in after
    assert page.count("stays |") == 1
    assert "stays" in result.as_json()["ratios"]
