"""Inside scikit-learn, with a history: what a score knows, and what is measured of it."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, log_loss
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from acefraud import AceFraudClassifier, InputWarning, SchemaMapping, backtest, backtest_scorer

pytestmark = [pytest.mark.wide, pytest.mark.one_search]

LATE = "past the latest row in the history of this model, and labels take 3d"
EARLY = "before the latest row in the history of this model"


def payments_of_cards(rows: int = 2_400, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Payments of 60 cards over 80 days. A card is stolen for ten days, and then most of its payments are fraud."""
    random = np.random.default_rng(seed)
    seconds = np.sort(random.choice(80 * 86_400, rows, replace=False))
    card = random.integers(0, 60, rows)
    stolen = random.integers(-10, 80, 60)[card]
    day = seconds / 86_400
    frame = pd.DataFrame(
        {
            "time": pd.to_datetime(1_700_000_000 + seconds, unit="s"),
            "card_id": [f"c{number}" for number in card],
            "amount": np.exp(random.normal(4, 1, rows)).round(2),
        }
    )
    return frame, (random.random(rows) < np.where((day > stolen) & (day < stolen + 15), 0.6, 0.01)).astype(int)


X, Y = payments_of_cards()
LATER, LATER_Y = X[1_500:], Y[1_500:]
MAPPING = SchemaMapping(time="time", history={"entities": ("card_id",), "label_delay": "3d"})


@pytest.fixture(scope="module")
def model() -> AceFraudClassifier:
    return AceFraudClassifier(mapping=MAPPING).fit(X[:1_500], Y[:1_500])


@pytest.fixture(scope="module")
def blind(model: AceFraudClassifier) -> Any:
    """The scores of later rows without their labels."""
    with pytest.warns(InputWarning, match=LATE):
        return model.predict_proba(LATER)[:, 1]


def test_rows_to_predict_are_not_taken_for_rows_of_the_fit(model: AceFraudClassifier) -> None:
    """Row numbers as ids would give the first row of X the past of the first row of the fit."""
    with pytest.warns(InputWarning, match=LATE):
        given = model.transform(LATER)
    whole = AceFraudClassifier(mapping=MAPPING).fit_transform(X, Y)
    same = [name for name in given if "known_fraud" not in name and name in whole]
    assert "card_count_24h" in same
    pd.testing.assert_frame_equal(given[same], whole[same][1_500:], check_dtype=False)


def test_labels_arrive_in_a_backtest_and_are_missed_without(model: AceFraudClassifier, blind: Any) -> None:
    found = model.backtest(LATER, LATER_Y)
    reached = found.figures["average_precision"].mean
    assert reached > 1.1 * average_precision_score(LATER_Y, blind)
    assert found.every_bullet
    assert found.rows == len(LATER)
    labelled = model.backtest(LATER.assign(label=LATER_Y))
    assert labelled.figures == found.figures


def test_scikit_learn_measures_what_a_backtest_does(model: AceFraudClassifier) -> None:
    mapped = AceFraudClassifier(mapping=MAPPING)
    split = [(np.arange(1_500), np.arange(1_500, len(X)))]
    scorer = backtest_scorer("average_precision")
    reached = model.backtest(LATER, LATER_Y).figures["average_precision"].mean
    assert cross_val_score(mapped, X, Y, cv=split, scoring=scorer)[0] == pytest.approx(reached)
    piped = make_pipeline(FunctionTransformer(), mapped)
    both = {"caught": backtest_scorer("recall"), "ap": scorer}
    scores = cross_validate(piped, X, Y, cv=split, scoring=both)
    assert scores["test_ap"][0] == pytest.approx(reached)
    assert scores["test_caught"][0] == pytest.approx(model.backtest(LATER, LATER_Y).figures["fraud_caught"].mean)
    with pytest.raises(TypeError, match="scores an AceFraudClassifier"):
        scorer(FunctionTransformer(), X, Y)


def test_a_case_never_sees_its_own_label(model: AceFraudClassifier) -> None:
    """The label of the last row can change nothing before it, nor its own score."""
    turned = LATER_Y.copy()
    turned[-1] = 1 - turned[-1]
    scores, others = (model._backtested(LATER, labels).scores.probabilities.tolist() for labels in (LATER_Y, turned))
    assert scores == others


@pytest.mark.filterwarnings("ignore:no bullet was learnt")
def test_with_labels_that_never_arrive_a_backtest_is_the_prediction() -> None:
    never = SchemaMapping(time="time", history={"entities": ("card_id",), "label_delay": "100d"})
    model = AceFraudClassifier(mapping=never).fit(X[:1_500], Y[:1_500])
    predicted = model.predict_proba(LATER)[:, 1]  # nothing is warned of: no label could have arrived
    np.testing.assert_allclose(model._backtested(LATER, LATER_Y).scores.probabilities, predicted)


@pytest.mark.filterwarnings("ignore:no bullet was learnt")
def test_a_backtest_is_score_all_where_there_is_no_history() -> None:
    rows = X.drop(columns="card_id").assign(payment=[f"p{number}" for number in range(len(X))])
    model = AceFraudClassifier(mapping={"id": "payment"}).fit(rows[:1_500], Y[:1_500])
    labelled = rows[1_500:].assign(is_fraud=LATER_Y)
    for every in (True, False):
        scores = model.learner_.score_all(rows[1_500:], every_bullet=every).probabilities
        found = backtest(model.learner_, labelled, every_bullet=every)
        assert found.figures["average_precision"].mean == pytest.approx(average_precision_score(LATER_Y, scores))
        caught = float((scores >= model.threshold_)[LATER_Y == 1].mean())
        assert found.figures["fraud_caught"].mean == pytest.approx(caught)
    assert model.backtest(rows[1_500:], LATER_Y).figures["accuracy"].mean == pytest.approx(
        (model.predict(rows[1_500:]) == LATER_Y).mean()
    )


def test_the_order_of_rows_does_not_matter(model: AceFraudClassifier, blind: Any) -> None:
    order = np.random.default_rng(1).permutation(len(LATER))
    with pytest.warns(InputWarning, match=LATE):
        mixed = model.predict_proba(LATER.iloc[order])[:, 1]
    assert mixed.tolist() == blind[order].tolist()
    backwards = AceFraudClassifier(mapping=MAPPING).fit(X[:1_500][::-1], Y[:1_500][::-1])
    with pytest.warns(InputWarning, match=LATE):
        assert backwards.predict_proba(LATER)[:, 1].tolist() == blind.tolist()


def test_shuffled_folds_are_warned_of_and_splits_by_time_are_not(model: AceFraudClassifier) -> None:
    mapped = AceFraudClassifier(mapping=MAPPING, most_bullets=5)
    with pytest.warns(InputWarning, match=EARLY):
        cross_val_score(mapped, X, Y, cv=KFold(2, shuffle=True, random_state=0), scoring="average_precision")
    with warnings.catch_warnings(record=True, action="always") as told:
        cross_val_score(mapped, X, Y, cv=TimeSeriesSplit(2), scoring=backtest_scorer())
    assert not [warning for warning in told if issubclass(warning.category, InputWarning)]
    model.predict_proba(X[1_000:1_500])  # rows of the fit itself have the facts that they had


@pytest.mark.parametrize("rows", [2_000, 38])
def test_nothing_learnt_predicts_the_share_of_fraud(rows: int) -> None:
    random = np.random.default_rng(5)
    frame, y = pd.DataFrame({"batch": np.ones(rows)}), (np.arange(rows) % 19 == 0).astype(int)
    with pytest.warns(UserWarning, match=r"no bullet was learnt: .*: every row gets the base rate, 5\.\d+ %"):
        model = AceFraudClassifier().fit(frame, y)
    later = (random.random(5_000) < 1 / 19).astype(int)
    reached = log_loss(later, model.predict_proba(pd.DataFrame({"batch": np.ones(5_000)}))[:, 1])
    assert reached == pytest.approx(log_loss(later, np.full(5_000, y.mean())), rel=0.01)


def test_importances_are_shares_of_the_columns(model: AceFraudClassifier) -> None:
    found = model.feature_importances_
    assert found.shape == (len(model.feature_names_in_),)
    assert found.sum() == pytest.approx(1)
    assert model.feature_names_in_[found.argmax()] == "card_id"  # its known frauds tell the most
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"unused": np.ones(800), "amount": random.uniform(0, 100, 800), "vpn": random.random(800) < 0.5}
    )
    told = AceFraudClassifier().fit(frame, (frame["amount"] > 80) & frame["vpn"]).feature_importances_
    assert told[0] == 0
    assert min(told[1:]) > 0.2
    with pytest.warns(UserWarning, match="no bullet was learnt"):
        assert AceFraudClassifier().fit(frame[["unused"]], np.arange(800) % 2).feature_importances_.tolist() == [0]


def test_the_recipe_for_mlflow_scores_from_the_file(
    model: AceFraudClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: dict[str, Any] = {}
    pyfunc = SimpleNamespace(PythonModel=object, log_model=lambda **given: logged.update(given))
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(pyfunc=pyfunc))
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "frames.md").read_text("utf-8")
    (recipe,) = re.findall(r"```python\n(import mlflow\n.*?)```", page, re.DOTALL)
    exec(recipe, {"model": model})
    served = logged["python_model"]
    served.load_context(SimpleNamespace(artifacts=logged["artifacts"]))
    soon = LATER[:50]
    assert served.predict(None, soon).tolist() == model.predict_proba(soon)[:, 1].tolist()
    served.model.playbook_.close()
