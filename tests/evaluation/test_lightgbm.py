"""LightGBM in the comparison: the same cases, the same facts, and only labels that were known in time."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from acefraud import Case, Cases, Dataset, FactTable, Mode, SchemaMapping, Transaction
from acefraud.evaluation.compare import LIGHTGBM_ROWS, Part, _run_lightgbm, compare_parts, parts_of_file
from acefraud.evaluation.comparison import LIGHTGBM, WITH_LIGHTGBM, Comparison
from acefraud.evaluation.lightgbm_model import FactEncoding, LightGbm
from acefraud.evaluation.metrics import METRICS
from acefraud.evaluation.report import page, write_report

pytestmark = pytest.mark.wide

START = datetime(2024, 3, 1, tzinfo=UTC)


def cases(count: int = 400, *, known_after: timedelta | None = None) -> tuple[Case, ...]:
    """Large amounts through a VPN are fraud, with a little noise; every case has a text, some facts only there."""
    generator = np.random.default_rng(4)
    amounts, vpn, noise = generator.integers(10, 4000, count), generator.random(count) < 0.5, generator.random(count)
    return tuple(
        Case(
            transaction=Transaction(
                id=f"c{n}",
                time=START + timedelta(hours=n),
                facts={"vpn": bool(vpn[n]), "channel": "web" if n % 3 else "phone"},
                text=f"A ${amounts[n]} purchase",
            ),
            is_fraud=bool((amounts[n] > 2000 and vpn[n]) != (noise[n] < 0.05)),
            known_at=None if known_after is None else START + timedelta(hours=n) + known_after,
        )
        for n in range(count)
    )


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare_parts(list(parts_of_file(Dataset("x", cases()), [0])), name="x", independent=False, processes=1)


def test_it_is_measured_on_the_same_rows_with_the_same_metrics(compared: Comparison) -> None:
    assert list(compared.modes) == [*Mode, LIGHTGBM]
    got = compared.modes[LIGHTGBM]
    assert got.figures["accuracy"].mean > 0.85, "it sees the amounts, which only the texts name"
    assert set(got.figures) == set(METRICS)
    assert len(got.curve) == len(compared.modes[Mode.VANILLA].curve)
    for metric in METRICS:
        gap = compared.modes[Mode.OFFLINE_ONLINE].figures[metric].mean - got.figures[metric].mean
        assert compared.differences[WITH_LIGHTGBM][metric].mean == pytest.approx(gap)


def test_json_has_it_under_a_key_of_its_own(compared: Comparison) -> None:
    content = compared.as_json()
    assert list(content["modes"]) == ["vanilla", "online_only", "offline_online"]
    assert len(content["differences"]) == 3
    assert set(content["lightgbm"]) == {*METRICS, "curve", "offline_online_vs_lightgbm"}
    assert set(content["lightgbm"]["offline_online_vs_lightgbm"]) == set(METRICS)
    assert json.dumps(content) == json.dumps(compared.as_json())


def test_the_page_and_its_plots_show_it(compared: Comparison) -> None:
    shown = page(compared)
    assert "LightGBM (no reasons, no online learning)" in shown
    assert shown.count("Offline + online vs LightGBM") == 2, "in the table and in the plot"


def test_labels_that_arrive_during_the_test_are_not_learnt_from() -> None:
    late = Cases.of(cases(known_after=timedelta(hours=30)))
    train, test = late[:300], late[300:]
    part = Part(0, train, test, tuple(range(100)))
    flipped = Cases(
        train.transactions, np.where(np.arange(300) > 270, ~train.labels, train.labels), known_at=train.known_at
    )
    scores = [_run_lightgbm(Part(0, some, test, part.rows)).scored.probabilities for some in (train, flipped)]
    assert scores[0].tolist() == scores[1].tolist()
    hidden = Cases(test.transactions, ~test.labels, known_at=test.known_at)
    assert _run_lightgbm(Part(0, train, hidden, part.rows)).scored.probabilities.tolist() == scores[0].tolist()


def test_if_no_fraud_is_known_in_time_it_approves_everything() -> None:
    some = Cases.of(cases(300))
    honest = np.where(np.arange(300) < 200, False, some.labels)
    known_at = np.where(honest, some.transactions.times + 10**15, some.transactions.times)
    late = Cases(some.transactions, honest, known_at=known_at)
    run = _run_lightgbm(Part(0, late[:250], late[250:], tuple(range(50))))
    assert not run.scored.declined.any()


def test_rows_keep_their_places_if_the_history_puts_them_in_order() -> None:
    some = Cases.of(cases(260))
    shuffled = np.random.default_rng(1).permutation(np.arange(220, 260))
    part = Part(0, some[:220], some.take(shuffled), tuple(shuffled.tolist()), SchemaMapping())
    run = _run_lightgbm(part)
    assert [bool(some.labels[row]) for row in run.rows] == run.scored.labels.tolist()


def test_with_few_rows_it_is_left_out_and_the_reason_given(tmp_path: Path) -> None:
    few = list(parts_of_file(Dataset("x", cases(LIGHTGBM_ROWS)), [0]))
    found = compare_parts(few, name="x", independent=False, processes=1)
    assert found.no_lightgbm == "LightGBM is left out: 140 training rows, and it takes part from 200 on"
    assert list(found.modes) == list(Mode)
    assert "lightgbm" not in found.as_json()
    assert found.no_lightgbm in write_report(found, tmp_path).read_text("utf-8")


def test_without_the_library_nothing_fails_and_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    found = compare_parts(list(parts_of_file(Dataset("x", cases(300)), [0])), name="x", independent=False, processes=1)
    assert "pip install 'acefraud[bench]'" in found.no_lightgbm
    assert list(found.modes) == list(Mode)


# --- the model ---------------------------------------------------------------------------------------------------


def test_columns_and_codes_are_those_of_the_training_rows() -> None:
    train = FactTable([{"n": 1.0, "f": True, "c": "y"}, {"n": 3.0, "c": "z"}, {"f": False, "c": "y"}, {"n": 8.0}])
    encoding = FactEncoding.of(train)
    assert encoding.categorical == [2]
    assert np.isnan(encoding.matrix(train)[3, 1:]).all()
    other = encoding.matrix(FactTable([{"c": "a", "n": 2.0}, {"c": "z", "unknown": 5.0}]))
    assert np.isnan(other[0, 1:]).all()
    assert other[1, 2] == 1.0
    assert other.shape == (2, 3)


def test_the_same_seed_gives_the_same_scores() -> None:
    some = Cases.of(cases(300))
    scores = []
    for _ in range(2):
        model = LightGbm(3)
        model.fit(some.facts, some.labels)
        scores.append(model.score(some.facts).tolist())
    assert scores[0] == scores[1]
    assert model.leaves > 0
