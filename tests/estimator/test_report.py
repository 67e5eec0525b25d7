"""Nothing is left out in silence: what a fit guesses, drops or reads in a special way is in its report."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimator.payments import payments

from acefraud import AceFraudClassifier, InputWarning, load_dataset
from acefraud.datasets import parse_mapping

pytestmark = [pytest.mark.wide, pytest.mark.one_search]

NAMES = (
    "fraud_score",
    "fraud_probability",
    "chargeback",
    "chargeback_count",
    "prior_frauds",
    "fraud_reports_90d",
    "is_fraud_ip",
    "label",
)
DAY = pd.Timedelta(days=1)


def telling(y: Any, seed: int) -> Any:
    """A strong feature of whole numbers, mostly zero on honest rows."""
    return np.random.default_rng(seed).poisson(np.where(y == 1, 4.0, 0.03))


def notes(y: Any, seed: int) -> list[str]:
    """Sentences of which no two are alike, and which tell something of the label."""
    random = np.random.default_rng(seed)
    vpn = random.random(len(y)) < np.where(y == 1, 0.9, 0.05)
    return [
        f"order {row} of this customer came {'through a VPN' if told else 'as usual'}" for row, told in enumerate(vpn)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_makes_a_feature_a_label_if_labels_are_apart(name: str) -> None:
    frame, y = payments()
    data = load_dataset(frame.assign(**{name: telling(y, 1), "y": y}), mapping={"label": "y"}, labels_apart=True)
    assert name in data.mapping.facts_by_column([name])
    assert all(remark.column != name for remark in data.remarks)


def test_a_strong_feature_counts_the_same_under_any_name() -> None:
    (frame, y), (later, truth) = payments(), payments(seed=1)

    def precision(name: str) -> float:
        model = AceFraudClassifier(most_bullets=20).fit(frame.assign(**{name: telling(y, 1)}), y)
        scores = model.predict_proba(later.assign(**{name: telling(truth, 2)}))[:, 1]
        return float(average_precision_score(truth, scores))

    assert precision("chargeback") == pytest.approx(precision("shade"), abs=0.02)


def test_a_column_that_never_errs_is_left_out_aloud_and_its_line_keeps_it() -> None:
    frame, y = payments()
    frame = frame.assign(closed_as=np.where(y == 1, "bad", "good"))
    with pytest.warns(InputWarning, match="`closed_as` is left out: a likely leak"):
        model = AceFraudClassifier(most_bullets=5).fit(frame, y)
    remark = next(remark for remark in model.report_ if remark.column == "closed_as")
    assert remark.change == 'categories = ["closed_as"]'
    with pytest.warns(InputWarning, match="`closed_as` is kept: a likely leak"):
        kept = AceFraudClassifier(most_bullets=5, mapping=parse_mapping(remark.change)).fit(frame, y)
    assert "closed_as" in kept.facts_


def test_a_likely_leak_that_errs_is_kept_and_named_if_labels_are_apart() -> None:
    frame, y = payments()
    some = (y == 1) & (np.arange(len(y)) % 2 == 0)
    frame = frame.assign(reason=pd.Series(np.where(frame["vpn"], "10.4", "4837")).where(some, None), y=y)
    with pytest.warns(InputWarning, match="`reason` is kept: a likely leak"):
        data = load_dataset(frame, mapping={"label": "y"}, labels_apart=True)
    assert "reason" in data.train.facts.names
    with pytest.warns(InputWarning, match="`reason` is left out: a likely leak"):
        data = load_dataset(frame, mapping={"label": "y"})
    assert "reason" not in data.train.facts.names


@pytest.mark.filterwarnings("ignore:no bullet was learnt")
@pytest.mark.parametrize("name", ["note", "comment"])
def test_free_text_is_read_whatever_its_name(name: str) -> None:
    (frame, y), (later, truth) = payments(800), payments(800, seed=1)

    def scores(name: str) -> Any:
        model = AceFraudClassifier(most_bullets=10).fit(frame[["amount"]].assign(**{name: notes(y, 1)}), y)
        assert any(remark.column == name and "free text" in remark for remark in model.report_)
        return model.predict_proba(later[["amount"]].assign(**{name: notes(truth, 2)}))[:, 1]

    assert scores(name).tolist() == scores("text").tolist()


def test_a_second_text_and_one_that_says_nothing_are_left_out_aloud() -> None:
    frame, y = payments(400)
    told = {"note": notes(y, 1), "comment": notes(y, 2)}
    with pytest.warns(InputWarning, match="`comment` is left out: free text beside that of `note`"):
        load_dataset(frame.assign(**told, label=y))
    dull = [f"the people of house {row} were as kind as ever" for row in range(len(y))]
    with pytest.warns(InputWarning, match="`note` is left out: free text that states no fact"):
        load_dataset(frame.assign(note=dull, label=y))


def days(y: Any, spread: int, seed: int) -> Any:
    return pd.to_timedelta(np.random.default_rng(seed).integers(1, spread, len(y)), unit="D")


@pytest.mark.parametrize("text", [False, True])
def test_the_time_of_a_case_is_the_later_one_and_never_empty_or_constant(text: bool) -> None:
    frame, y = payments(400)
    happened = pd.Timestamp("2025-01-01") + days(y, 60, 1)
    columns = {
        "empty": pd.Series(pd.NaT, index=frame.index),
        "exported": pd.Timestamp("2026-01-01"),
        "time": pd.Series(pd.NaT, index=frame.index),
        "policy_bind": happened - days(y, 4000, 2),
        "happened": happened,
        "born_birth": happened - 9000 * DAY,
    }
    frame = frame.assign(**columns, label=y)
    if text:
        frame = frame.assign(**{name: frame[name].dt.strftime("%Y-%m-%d") for name in columns})
    with warnings.catch_warnings(action="ignore", category=InputWarning):
        data = load_dataset(frame)
    assert data.mapping.time == "happened"
    assert data.mapping.days_between["days_since_policy_bind"] == ("policy_bind", "happened")
    said = next(remark for remark in data.report if remark.column == "happened")
    assert "policy_bind" in said
    assert said.change.startswith("time = ")


def test_a_usual_name_is_the_time_and_a_later_column_is_named() -> None:
    frame, y = payments(400)
    happened = pd.Timestamp("2025-01-01") + days(y, 60, 1)
    frame = frame.assign(processed=happened + days(y, 9, 2), transaction_date=happened, label=y)
    with pytest.warns(InputWarning, match=r"`processed` is left out.*days_between = .*time = \"processed\""):
        data = load_dataset(frame)
    assert data.mapping.time == "transaction_date"
    sorted_by = frame.rename(columns={"processed": "placed", "transaction_date": "created_at"}).sort_values("placed")
    assert load_dataset(sorted_by).mapping.time == "placed"


def test_every_column_without_a_fact_is_in_the_report_with_a_line_that_brings_it_back() -> None:
    frame, y = payments(400)
    random = np.random.default_rng(0)
    frame = frame.assign(
        customer_id=np.arange(len(y)) % 40,
        mileage=random.permutation(100_000)[: len(y)],
        driver=[f"Ann Bo{row}" for row in range(len(y))],
        same=1.0,
    )
    with pytest.warns(InputWarning) as warned:
        model = AceFraudClassifier(most_bullets=5).fit(frame, y)
    assert {str(warning.message).split("`")[1] for warning in warned if "left out" in str(warning.message)} == {
        "mileage",
        "driver",
    }
    report = {remark.column: remark for remark in model.report_}
    assert report["same"].done == "teaches nothing"
    for column in ("customer_id", "mileage", "driver"):
        with warnings.catch_warnings(action="ignore", category=InputWarning):  # of the others
            data = load_dataset(frame.assign(label=y), mapping=parse_mapping(report[column].change))
        assert column in data.mapping.facts_by_column(list(frame))
    assert str(model.report_).splitlines() == list(model.report_)
    assert [each.change for each in pickle.loads(pickle.dumps(model)).report_] == [
        each.change for each in model.report_
    ]


def test_names_of_column_transformers_and_flags_read_as_people_say_them() -> None:
    frame, y = payments()
    frame = pd.DataFrame(
        {"amount": frame["amount"], "new_device": frame["vpn"], "is_overnight": (frame["items"] > 6) * 1}
    )
    y = ((frame["new_device"] | (frame["is_overnight"] == 1)) & (frame["amount"] > 50)).to_numpy().astype(int)
    scaled = ColumnTransformer([("num", StandardScaler(), ["amount"])], remainder="passthrough").set_output(
        transform="pandas"
    )
    model = make_pipeline(scaled, AceFraudClassifier(most_bullets=8)).fit(frame, y)[-1]
    said = " / ".join(model.rules_["content"])
    assert "new device" in said
    assert "is_overnight is true" in said or "is_overnight is false" in said
    assert "remainder" not in said
    model = AceFraudClassifier(most_bullets=8, monotonic_cst={"is_overnight": 1}).fit(frame, y)
    assert any("is_overnight at least 1" in words for words in model.rules_["content"])
