"""The classifier keeps scikit-learn's promises and the learner's."""

from __future__ import annotations

import pickle
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.estimator.payments import payments

from acefraud import AceFraudClassifier, Learner, SchemaMapping, load_dataset, open_playbook
from acefraud.errors import InputError

pytestmark = [pytest.mark.wide, pytest.mark.one_search]

X, Y = payments()
LATER, LATER_Y = payments(1_000, seed=1)


@parametrize_with_checks([AceFraudClassifier()])  # type: ignore[untyped-decorator]
def test_scikit_learn_finds_nothing_wrong(estimator: Any, check: Callable[[Any], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many checks fit a handful of rows, from which nothing can be learnt
        check(estimator)


@pytest.fixture(scope="module")
def fitted() -> AceFraudClassifier:
    return AceFraudClassifier().fit(X, Y)


def test_it_finds_what_was_planted() -> None:
    model = AceFraudClassifier(random_state=3).fit(X, Y)  # most find all of it
    reached = average_precision_score(LATER_Y, model.predict_proba(LATER)[:, 1])
    assert reached > 4 * LATER_Y.mean()
    sql = " ".join(model.rules_["sql"])
    assert all(f'"{fact}"' in sql for fact in ("amount", "country", "distance"))


def test_contributions_add_up_to_the_log_odds(fitted: AceFraudClassifier) -> None:
    reasons = fitted.explain(LATER)
    assert isinstance(reasons, pd.DataFrame)
    sums = reasons.groupby("row")["contribution"].sum().to_numpy()
    np.testing.assert_allclose(sums, fitted.decision_function(LATER), rtol=0, atol=1e-9)
    first = reasons[reasons["row"] == 0]
    assert first["kind"].iloc[0] == "level"
    assert set(first["bullet"].iloc[1:]) <= set(fitted.rules_["bullet"])


def test_it_is_what_the_learner_scores_with_every_bullet(fitted: AceFraudClassifier) -> None:
    scores = fitted.learner_.score_all(LATER, every_bullet=True)
    assert scores.probabilities.tolist() == fitted.predict_proba(LATER)[:, 1].tolist()


def test_the_score_of_a_row_depends_on_that_row_alone(fitted: AceFraudClassifier) -> None:
    whole = fitted.decision_function(LATER)
    assert fitted.decision_function(LATER.iloc[::-1]).tolist() == whole[::-1].tolist()
    assert fitted.decision_function(LATER.iloc[[7]]).tolist() == [whole[7]]


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, lambda frame: pl.from_pandas(frame).lazy()])
def test_frames_of_every_library_give_the_same(fitted: AceFraudClassifier, make: Callable[[Any], Any]) -> None:
    other = AceFraudClassifier().fit(make(X), Y)
    assert nw.from_native(other.rules_)["bullet"].to_list() == fitted.rules_["bullet"].tolist()
    assert other.predict_proba(make(LATER)).tolist() == fitted.predict_proba(LATER).tolist()
    assert type(other.explain(make(LATER))).__module__.split(".")[0] in ("polars", "pyarrow")


def test_the_label_may_be_a_column_that_the_mapping_names() -> None:
    labelled = X.assign(outcome=np.where(Y == 1, "fraud", "legit"))
    model = AceFraudClassifier(mapping=SchemaMapping(label="outcome")).fit(labelled)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert model.predict_proba(LATER).tolist() == AceFraudClassifier().fit(X, Y).predict_proba(LATER).tolist()
    assert model.predict_proba(labelled).tolist() == model.predict_proba(X).tolist()  # the label is never a fact


def test_words_say_which_label_means_fraud() -> None:
    words = np.where(Y == 1, "fraud", "honest")
    model = AceFraudClassifier().fit(X, words)
    assert model.classes_.tolist() == ["fraud", "honest"]
    numbers = AceFraudClassifier().fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(LATER)[:, 0], numbers.predict_proba(LATER)[:, 1])
    np.testing.assert_array_equal(model.decision_function(LATER), -numbers.decision_function(LATER))
    at_even_odds = np.where(numbers.decision_function(LATER) > 0, "fraud", "honest")
    assert model.predict(LATER).tolist() == at_even_odds.tolist()


def test_pos_label_says_it_where_words_do_not() -> None:
    swapped = AceFraudClassifier(pos_label=0).fit(X, 1 - Y)
    plain = AceFraudClassifier().fit(X, Y)
    np.testing.assert_array_equal(swapped.predict_proba(LATER)[:, 0], plain.predict_proba(LATER)[:, 1])
    with pytest.raises(ValueError, match="pos_label='x' is none of the labels"):
        AceFraudClassifier(pos_label="x").fit(X, Y)


def test_weights_move_the_probabilities_and_not_what_was_measured() -> None:
    plain = AceFraudClassifier().fit(X, Y)
    balanced = AceFraudClassifier(class_weight="balanced", random_state=2).fit(X, Y)  # some find nothing beyond chance
    assert balanced.predict_proba(LATER)[:, 1].mean() > 2 * plain.predict_proba(LATER)[:, 1].mean()
    assert balanced.rules_["base_rate"].iloc[0] < 0.2
    scaled = AceFraudClassifier().fit(X, Y, sample_weight=np.full(len(Y), 250.0))
    np.testing.assert_allclose(scaled.predict_proba(LATER), plain.predict_proba(LATER))


def test_rows_without_a_weight_are_as_if_they_were_not_there() -> None:
    weights = np.ones(len(Y))
    weights[1_500:] = 0
    some, part = AceFraudClassifier().fit(X, Y, sample_weight=weights), AceFraudClassifier().fit(X[:1_500], Y[:1_500])
    np.testing.assert_allclose(some.predict_proba(LATER), part.predict_proba(LATER))


@pytest.mark.parametrize("directions", [{"amount": -1}, [-1, 0, 0, 0, 0, 0]])
def test_a_direction_holds_for_every_rule(directions: Any) -> None:
    model = AceFraudClassifier(monotonic_cst=directions).fit(X, Y)
    for rule in model.playbook_:
        tests = [test for test in rule.condition.tests if test.fact == "amount"] if rule.condition else []
        rises = [test.op in (">", ">=") for test in tests]
        assert all(up == ((rule.weight or 0) < 0) for up in rises)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"monotonic_cst": {"nothing": 1}}, "names 'nothing', and the features of X are: amount, distance"),
        ({"monotonic_cst": [1]}, "must have 6 directions, one for each feature, got 1"),
        ({"threshold": "often"}, "threshold must be"),
    ],
)
def test_wrong_parameters_are_named_when_it_is_fitted(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        AceFraudClassifier(**parameters).fit(X, Y)


def test_the_threshold_can_be_chosen_on_the_latest_cases() -> None:
    model = AceFraudClassifier(threshold="fpr=0.01").fit(X, Y)
    assert 0 < model.threshold_ < 1
    assert model.threshold_ != 0.5
    declined = model.predict_proba(LATER)[:, 1] >= model.threshold_
    assert (model.predict(LATER) == declined).all()


@pytest.mark.filterwarnings("ignore:no bullet was learnt")
def test_it_works_in_pipelines_and_searches() -> None:
    numbers = X[["amount", "distance", "items"]]
    scaled = ColumnTransformer([("scaled", StandardScaler(), ["amount"])], remainder="passthrough")
    assert cross_val_score(make_pipeline(scaled, AceFraudClassifier()), numbers, Y, cv=3, scoring="roc_auc").min() > 0
    search = GridSearchCV(AceFraudClassifier(), {"most_bullets": [5, 20]}, cv=2, scoring="average_precision").fit(X, Y)
    assert len(search.best_estimator_.rules_) <= 20
    calibrated = CalibratedClassifierCV(AceFraudClassifier(), cv=2).fit(X, Y)
    assert calibrated.predict_proba(LATER).shape == (len(LATER), 2)


def test_it_clones_and_pickles(fitted: AceFraudClassifier) -> None:
    assert clone(AceFraudClassifier(most_bullets=7)).most_bullets == 7
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict_proba(LATER).tolist() == fitted.predict_proba(LATER).tolist()
    again.partial_fit(LATER, LATER_Y)  # and goes on learning


def test_the_same_seed_gives_the_same_playbook(fitted: AceFraudClassifier) -> None:
    assert AceFraudClassifier(random_state=0).fit(X, Y).rules_.equals(fitted.rules_)
    drawn = AceFraudClassifier(random_state=np.random.RandomState(5)).fit(X, Y)
    assert drawn.rules_.equals(AceFraudClassifier(random_state=np.random.RandomState(5)).fit(X, Y).rules_)


def test_it_is_saved_to_a_playbook_file_and_loaded(fitted: AceFraudClassifier, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    fitted.save(path)
    loaded = AceFraudClassifier.load(path)
    assert loaded.predict_proba(LATER).tolist() == fitted.predict_proba(LATER).tolist()
    assert loaded.rules_["sql"].to_list() == fitted.rules_["sql"].tolist()
    loaded.partial_fit(LATER[:50], LATER_Y[:50])
    with open_playbook(path) as book:
        assert book.outcomes == 50
        assert Learner(book).score_all(LATER).probabilities.shape == (len(LATER),)
    with pytest.raises(Exception, match="exists already"):
        fitted.save(path)


def test_partial_fit_studies_first_and_hears_then() -> None:
    model = AceFraudClassifier(random_state=5).partial_fit(X[:1_000], Y[:1_000])  # half find nothing in so few
    studied = len(model.rules_)
    assert studied
    assert model.playbook_.outcomes == 0
    model.partial_fit(X[1_000:], Y[1_000:])
    assert model.playbook_.outcomes == 1_000
    reached = average_precision_score(LATER_Y, model.predict_proba(LATER)[:, 1])
    assert reached > 4 * LATER_Y.mean()


def test_partial_fit_needs_classes_if_it_sees_only_one() -> None:
    honest = Y == 0
    with pytest.raises(ValueError, match="two classes"):
        AceFraudClassifier().partial_fit(X[honest], Y[honest])
    model = AceFraudClassifier().partial_fit(X[honest][:20], Y[honest][:20], classes=[0, 1])
    assert model.predict_proba(LATER).shape == (len(LATER), 2)
    with pytest.raises(ValueError, match="class_weight cannot be used"):
        AceFraudClassifier(class_weight="balanced").partial_fit(X, Y)


def test_one_class_and_nothing_learnt_are_said() -> None:
    with pytest.raises(ValueError, match="two classes"):
        AceFraudClassifier().fit(X, np.zeros(len(Y)))
    with pytest.warns(UserWarning, match="no bullet was learnt: 20 labelled cases, 40 are needed"):
        AceFraudClassifier().fit(X[:20], [0, 1] * 10)
    with pytest.raises(NotFittedError):
        AceFraudClassifier().predict(X)


def test_rows_that_cannot_be_read_are_left_out_of_a_fit_and_refused_in_a_prediction(fitted: AceFraudClassifier) -> None:
    broken = X.assign(amount=np.where(np.arange(len(X)) == 3, np.inf, X["amount"]))
    with pytest.warns(UserWarning, match="X, row 4, field 'amount': expected a finite number"):
        AceFraudClassifier().fit(broken, Y)
    with pytest.raises(InputError, match="X, row 4, field 'amount'"):
        fitted.predict(broken)


def test_transform_gives_the_facts_that_the_score_looks_at(fitted: AceFraudClassifier) -> None:
    facts = fitted.transform(LATER)
    assert list(facts.columns) == fitted.get_feature_names_out().tolist() == LATER.columns.tolist()
    pd.testing.assert_frame_equal(facts, LATER, check_dtype=False)
    numbers = X[["amount", "items"]].to_numpy()
    assert AceFraudClassifier().fit_transform(numbers, (X["items"] > 6) | (Y == 1)).tolist() == numbers.tolist()


def test_texts_are_read_and_their_facts_come_out_of_transform() -> None:
    data = load_dataset("complex_fraud_detection")
    texts = pl.DataFrame({"query": [case["query"] for case in data]})
    model = AceFraudClassifier().fit(texts, [int(case.is_fraud) for case in data])
    facts = model.transform(texts[:20])
    assert {"amount", "account_age_days", "vpn"} <= set(facts.columns)
    reasons = model.explain(texts[:5])
    assert "general knowledge" in set(reasons["kind"])
    sums = reasons.group_by("row", maintain_order=True).agg(pl.col("contribution").sum())["contribution"]
    np.testing.assert_allclose(sums, model.decision_function(texts[:5]), rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def visits() -> pl.DataFrame:
    random = np.random.default_rng(3)
    rows = 1_500
    customer = random.integers(0, 40, rows)
    risky = customer < 4
    return pl.DataFrame(
        {
            "time": (1_700_000_000 + np.sort(random.integers(0, 90 * 86_400, rows))) * 1_000_000,
            "customer_id": [f"c{each}" for each in customer],
            "amount": np.exp(random.normal(4, 1, rows)).round(2),
            "is_fraud": (random.random(rows) < np.where(risky, 0.5, 0.03)).astype(int),
        }
    ).with_columns(pl.col("time").cast(pl.Datetime("us")))


STATED = SchemaMapping(label="is_fraud", history={"entities": ("customer_id",), "label_delay": "7d"})


def test_a_guessed_delay_of_labels_is_said(visits: pl.DataFrame) -> None:
    with pytest.warns(UserWarning, match='label_delay = "7d" is a guess'):
        AceFraudClassifier().fit(visits)


def test_a_history_gives_facts_that_transform_shows(visits: pl.DataFrame) -> None:
    model = AceFraudClassifier(mapping=STATED)
    facts = model.fit_transform(visits)
    assert model.mapping_.entities == ("customer_id",)
    derived = [name for name in facts.columns if name.startswith("customer_")]
    assert derived
    assert facts[derived[0]].null_count() < len(facts)
    known = load_dataset(visits).with_history().train.facts
    assert facts["amount"].to_list() == known["amount"].tolist()
    later = model.transform(visits[:10].with_columns(pl.col("time") + pl.duration(days=91)))
    assert set(derived) <= set(later.columns)


SQL_ROWS = 10_000


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_the_score_in_sql_is_the_score(fitted: AceFraudClassifier, engine: str) -> None:
    rows, _ = payments(SQL_ROWS, seed=2)
    facts = pl.from_pandas(fitted.transform(rows))
    query = f"SELECT log_odds, probability FROM ({fitted.to_sql('facts')}) ORDER BY place"
    placed = facts.with_row_index("place")
    if engine == "sqlite":
        connection = sqlite3.connect(":memory:")
        columns = ", ".join(f'"{name}"' for name in placed.columns)
        connection.execute(f"CREATE TABLE facts ({columns})")
        connection.executemany(f"INSERT INTO facts VALUES ({', '.join('?' * len(placed.columns))})", placed.rows())
        found = np.array(connection.execute(query).fetchall())
        connection.close()
    else:
        with duckdb.connect() as database:
            database.register("facts", placed.to_arrow())
            found = np.array(database.execute(query).fetchall())
    np.testing.assert_allclose(found[:, 0], fitted.decision_function(rows), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[:, 1], fitted.predict_proba(rows)[:, 1], rtol=0, atol=1e-9)


def test_pictures_show_the_rules_and_the_learning(fitted: AceFraudClassifier) -> None:
    from matplotlib.figure import Figure

    axes = fitted.plot_rules(most=5, ax=Figure().subplots())
    assert len(axes.get_yticklabels()) == 5
    curve = fitted.plot_learning(LATER, LATER_Y, ax=Figure().subplots())
    reached = curve.lines[0].get_ydata()
    assert reached[-1] == pytest.approx(average_precision_score(LATER_Y, fitted.decision_function(LATER)), abs=1e-6)
    assert "learnt from" in fitted.plot_learning(ax=Figure().subplots()).get_title()
    empty = AceFraudClassifier().partial_fit(X[:5], [0] * 5, classes=[0, 1])
    assert "No rule" in empty.plot_rules(ax=Figure().subplots()).get_title()


def test_a_file_goes_on_where_it_stopped(fitted: AceFraudClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "book.db")
    for _ in range(2):
        model = AceFraudClassifier.load(tmp_path / "book.db")
        model.partial_fit(LATER[:30], LATER_Y[:30])
        heard = model.playbook_.outcomes
        model.playbook_.close()
    assert heard == 60


def test_it_hears_with_its_mapping_before_it_has_studied_anything(visits: pl.DataFrame) -> None:
    honest = visits.filter(pl.col("is_fraud") == 0)
    model = AceFraudClassifier(mapping=STATED).partial_fit(honest[:50].drop("is_fraud"), [0] * 50, classes=[0, 1])
    assert any(name.startswith("customer_") for name in model.transform(honest[50:60].drop("is_fraud")).columns)


@pytest.mark.filterwarnings("ignore:no bullet was learnt")  # labels come too late to tell who is risky
def test_when_labels_became_known_counts_and_is_no_feature(visits: pl.DataFrame) -> None:
    later = visits.with_columns(known_at=pl.col("time") + pl.duration(days=60))
    mapping = STATED.model_copy(update={"known_at": "known_at"})
    model = AceFraudClassifier(mapping=mapping).fit(later)
    assert "known_at" not in model.feature_names_in_.tolist()
    separate = AceFraudClassifier(mapping=mapping).fit(later, later["is_fraud"].to_numpy())
    assert separate.rules_.equals(model.rules_)
    at_once = AceFraudClassifier(mapping=STATED).fit(visits)
    assert not at_once.rules_.equals(model.rules_)


def test_a_word_that_is_known_says_what_the_other_means() -> None:
    model = AceFraudClassifier().fit(X, np.where(Y == 1, "chargeback", "went through"))
    assert model.rules_["base_rate"].iloc[0] < 0.2
    with pytest.warns(UserWarning, match="'two' is taken for fraud, and 'one' not; pos_label= says it"):
        AceFraudClassifier().fit(X, np.where(Y == 1, "two", "one"))


@pytest.mark.parametrize(
    ("fraud", "honest"), [("fraud", "legit"), (1, 0), (True, False), ("bad", "good"), (2.0, 1.0)], ids=str
)
def test_a_loaded_model_knows_its_labels(fraud: Any, honest: Any, tmp_path: Path) -> None:
    labels = np.where(Y == 1, fraud, honest)
    model = AceFraudClassifier(threshold=0.3, pos_label=fraud).fit(X, labels)
    model.save(tmp_path / "book.db")
    loaded = AceFraudClassifier.load(tmp_path / "book.db")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.predict(LATER).tolist() == model.predict(LATER).tolist()
    assert loaded.predict_proba(LATER).tolist() == model.predict_proba(LATER).tolist()
    assert loaded.get_params()["threshold"] == loaded.threshold_ == 0.3
    loaded.partial_fit(LATER[:20], np.where(LATER_Y[:20] == 1, fraud, honest))


def test_a_loaded_model_names_the_columns_that_it_lacks(fitted: AceFraudClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "book.db")
    loaded = AceFraudClassifier.load(tmp_path / "book.db")
    with pytest.raises(ValueError, match="X lacks columns that the playbook was trained with: amount"):
        loaded.predict_proba(LATER.drop(columns="amount"))
    assert isinstance(loaded.explain(LATER[:2]), pd.DataFrame)


def test_the_index_of_pandas_is_kept(fitted: AceFraudClassifier) -> None:
    part = LATER[500:510]
    assert fitted.transform(part).index.tolist() == part.index.tolist()
    some = fitted.explain(LATER, rows=[3, 7])
    assert some["row"].unique().tolist() == [3, 7]


def test_missing_values_of_pandas_in_an_array_are_unknown() -> None:
    cells = np.array([[pd.NA, 1.0], ["x", None], ["y", float("nan")], ["x", 2.0]] * 20, dtype=object)
    model = AceFraudClassifier().fit(cells, [0, 1, 0, 1] * 20)
    assert model.predict_proba(cells).shape == (80, 2)


def test_repeated_rows_are_scored_like_others(visits: pl.DataFrame) -> None:
    rows = visits.with_columns(payment_id=pl.int_range(pl.len()).cast(pl.String))
    model = AceFraudClassifier(mapping=STATED.model_copy(update={"id": "payment_id"})).fit(rows)
    twice = pl.concat([rows[-3:], rows[-3:]]).drop("is_fraud")
    assert model.predict_proba(twice).shape == (6, 2)


def test_a_mapping_may_be_a_dict() -> None:
    model = AceFraudClassifier(mapping={"categories": ["items"]}).fit(X, Y)
    assert "items" in model.mapping_.categories
