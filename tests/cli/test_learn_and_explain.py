"""`learn` takes in outcomes, `explain` says how a decision came about, `backtest` measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.storage.replaying import cases_of

from acefraud.core.outcome import Outcome, Ruling
from acefraud.learning.learner import Learner


@pytest.fixture
def decided(trained: Any) -> Any:
    """A playbook with decisions on its own history."""
    trained.on_book("decide", "history.csv", "--json")
    return trained


def counters(shell: Any) -> dict[str, tuple[int, ...]]:
    with shell.open() as book:
        return {
            bullet.id: (
                bullet.helpful_count,
                bullet.harmful_count,
                bullet.times_selected,
                bullet.record.support,
                bullet.record.frauds,
            )
            for bullet in book.snapshot().bullets.values()
        }


def learn(shell: Any, *rows: dict[str, Any]) -> dict[str, int]:
    result: dict[str, int] = shell.on_book("learn", shell.rows("outcomes.jsonl", list(rows)), "--json").json
    return result


def test_outcomes_from_a_file_are_judged_and_counted(decided: Any) -> None:
    before = counters(decided)
    assert not any(sum(counts) for counts in before.values())
    ran = decided.on_book("learn", "history.csv", "--json").json
    assert ran["heard"] == 80
    assert ran["correct"] + ran["incorrect"] == 80
    assert ran["correct"] > 60
    assert ran["unjudged"] == ran["already_known"] == ran["bad_rows"] == 0
    assert sum(helpful for helpful, *_ in counters(decided).values()) > 0


def test_outcomes_from_standard_input(decided: Any) -> None:
    stdin = '{"transaction_id": "h1", "label": "fraud"}\n{"transaction_id": "h2", "label": "legit"}\n'
    answers = decided.on_book("learn", "-", "--json", stdin=stdin).lines
    assert [(answer["transaction_id"], answer["is_fraud"]) for answer in answers] == [("h1", True), ("h2", False)]
    with decided.open() as book:
        assert [heard.outcome.is_fraud for heard in book.ledger.transaction_events(["h1"])["h1"].outcomes] == [True]
        assert [heard.outcome.is_fraud for heard in book.ledger.transaction_events(["h2"])["h2"].outcomes] == [False]


@pytest.mark.parametrize("stream", [False, True])
def test_outcomes_that_were_received_before_are_taken_in_first(decided: Any, stream: bool) -> None:
    with decided.open() as book:
        reported = Outcome(transaction_id="h1", is_fraud=True, id="first")
        Learner(book).receive([reported], who="the bank")
    row = {"transaction_id": "h1", "label": "legit"}
    if stream:
        ran = decided.on_book("learn", "-", stdin=json.dumps(row))
    else:
        ran = decided.on_book("learn", decided.rows("outcomes.jsonl", [row]))
    assert "1 outcomes that were received before were taken in first" in ran.err
    with decided.open() as book:
        assert [outcome.outcome.is_fraud for outcome in book.ledger.transaction_events(["h1"])["h1"].outcomes] == [
            True,
            False,
        ]


def test_the_same_outcome_again_changes_nothing(decided: Any) -> None:
    row = {"transaction_id": "h1", "label": "fraud"}
    assert learn(decided, row)["heard"] == 1
    state = decided.state()
    assert learn(decided, row) | {"bullets_added": 0} == {
        "heard": 0, "correct": 0, "incorrect": 0, "unjudged": 0, "already_known": 1, "bullets_added": 0,
        "waiting": 0, "remarks": 0, "bad_rows": 0, "unlabelled": 0,
    }  # fmt: skip
    assert decided.state() == state


def test_a_revised_outcome_leaves_only_the_second_truth(decided: Any, tmp_path: Path) -> None:
    before = decided.book.read_bytes()
    learn(decided, {"transaction_id": "h0", "label": "fraud"})
    first = counters(decided)
    learn(decided, {"transaction_id": "h0", "label": "legit"})
    revised = counters(decided)
    assert revised != first
    with decided.open() as book:
        assert [heard.kind for heard in book.ledger.transaction_events(["h0"])["h0"].outcomes] == [
            "outcome_heard",
            "outcome_revised",
        ]
    for leftover in tmp_path.glob("book.db-*"):
        leftover.unlink()
    decided.book.write_bytes(before)
    learn(decided, {"transaction_id": "h0", "label": "legit"})
    assert counters(decided) == revised


def test_unknown_ids_are_kept_and_counted_apart_from_bad_rows(decided: Any) -> None:
    rows = [("h1", "perhaps"), ("h2", None), ("nobody", "fraud"), ("h3", "legit")]
    path = decided.rows("outcomes.jsonl", [{"transaction_id": name, "label": label} for name, label in rows])
    state = decided.state()
    assert "row 1, field 'label'" in decided.on_book("learn", path, "--strict", code=2).err
    assert decided.state() == state
    ran = decided.on_book("learn", path, "--json").json
    assert (ran["heard"], ran["waiting"], ran["bad_rows"], ran["unlabelled"]) == (2, 1, 1, 1)


def test_a_row_that_brings_its_transaction_is_learnt_from_undecided(trained: Any) -> None:
    ran = learn(trained, {"transaction_id": "new", "amount": 2500, "vpn": True, "label": "fraud"})
    assert (ran["heard"], ran["unjudged"], ran["bad_rows"]) == (1, 1, 0)
    with trained.open() as book:
        assert cases_of(book.ledger)[-1].transaction.id == "new"
        assert book.ledger.transaction_events(["new"])["new"].outcomes[0].judgement.ruling is Ruling.UNJUDGED


def test_rows_without_a_label_are_pending(decided: Any) -> None:
    ran = learn(decided, {"transaction_id": "h1", "label": "fraud"}, {"transaction_id": "h2", "label": None})
    assert (ran["heard"], ran["unlabelled"], ran["bad_rows"]) == (1, 1, 0)
    with decided.open() as book:
        assert book.ledger.transaction_events(["h2"])["h2"].outcomes == []


# --- explain -----------------------------------------------------------------------------------------------------


def test_explain_adds_up_and_replays_after_learning(decided: Any) -> None:
    (line,) = decided.on_book("decide", '{"id": "t", "facts": {"amount": 2900, "vpn": true}}', "--json").lines
    decided.on_book("learn", "history.csv", "--json")
    by_decision = decided.on_book("explain", line["decision_id"], "--replay", "--json").json
    assert by_decision["replayed_the_same"] is True
    total = by_decision["base"] + sum(reason["contribution"] for reason in by_decision["reasons"])
    assert 1 / (1 + 2.718281828459045**-total) == pytest.approx(by_decision["probability"])
    assert [stage["stage"] for stage in by_decision["selection"]["stages"]] == [
        "contextual", "quality", "semantic", "hybrid", "diversity",
    ]  # fmt: skip
    assert by_decision["selection"]["scores"]
    assert decided.on_book("explain", "t", "--replay", "--json").json == by_decision


def test_explain_for_people_tells_stages_reasons_outcome_and_replay(decided: Any) -> None:
    learn(decided, {"transaction_id": "h0", "label": "fraud", "source": "chargeback"})
    ran = decided.on_book("explain", "h0", "--replay")
    for words in (
        "Bullets left after each stage: contextual",
        "Selected bullets",
        "Later known (chargeback): fraud",
        "the same decision",
    ):
        assert words in ran.out


def test_explain_begins_with_who_what_the_verdict_and_why(decided: Any) -> None:
    order = {
        "id": "t",
        "time": "2024-02-01T09:30:00Z",
        "facts": {"amount": 2900.5, "vpn": True, "customer": "ann@acme.org", "merchant": "ACME", "hours_open": 0.5},
    }
    decided.on_book("decide", json.dumps(order), "--json")
    out = decided.on_book("explain", "t").out
    who, what, verdict, why, later = out.splitlines()[:5]
    assert who == "Who: customer [email], merchant ACME"
    assert what == "What: 2,900.50, 2024-02-01 09:30 UTC, transaction t"
    assert verdict.startswith("DECLINE  ")
    assert verdict.endswith("% fraud")
    assert why.startswith("Declined: fraud is ")
    assert " likely, not below the limit of 50%; mostly because: " in why
    assert later == "Not known yet whether it was fraud"
    assert "hours_open 30 minutes" in out
    assert "amount 2,900.5," in out
    learn(decided, {"transaction_id": "t", "label": "legit"})
    assert "Later known (label): legitimate; the verdict was incorrect" in decided.on_book("explain", "t").out


def test_explain_names_the_policy_and_what_an_approval_was_given_despite(decided: Any) -> None:
    decided.on_book("playbook", "add", "Always review amounts above 2,990")
    for name, amount in (("dear", 2_995), ("cheap", 15)):
        facts = {"amount": amount, "vpn": True, "account_age_days": 300}
        decided.on_book("decide", json.dumps({"id": name, "facts": facts}), "--json")
    assert "Sent to review: the policy b-" in decided.on_book("explain", "dear").out
    cheap = decided.on_book("explain", "cheap").out.splitlines()
    assert cheap[:2] == ["Who: not known", "What: 15, at an unknown time, transaction cheap"]
    assert cheap[3].startswith("Approved: fraud is ")


def test_explain_reports_a_replay_that_differs_with_exit_code_1(decided: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from acefraud.learning.learner import Learner

    async def another(self: Learner, decision: Any) -> Any:
        return decision.model_copy(update={"probability": 0.123})

    monkeypatch.setattr(Learner, "replay", another)
    assert "NOT the same" in decided.on_book("explain", "h1", "--replay", code=1).out


# --- backtest ----------------------------------------------------------------------------------------------------


def truth(shell: Any) -> tuple[int, int, float]:
    rows = [line.split(",") for line in (shell.folder / "history.csv").read_text().splitlines()[1:]]
    held = [row[-1] == "1" for row in rows if float(row[2]) > 1500 and row[3] == "true"]
    return len(held), sum(held), sum(row[-1] == "1" for row in rows) / len(rows)


@pytest.mark.parametrize(
    "condition", ["amount > 1500 and vpn is true", "Amount above 1,500 and a VPN", "VPN and amount > $1,500: decline"]
)
def test_backtest_measures_a_condition_in_either_form(shell: Any, condition: str) -> None:
    found = shell("backtest", "history.csv", "--condition", condition, "--json").json
    support, frauds, base_rate = truth(shell)
    assert found["condition"] == "amount > 1500 and vpn is true"
    assert (found["support"], found["frauds"]) == (support, frauds)
    assert found["base_rate"] == pytest.approx(base_rate)
    assert found["lift"] == pytest.approx(frauds / support / base_rate, abs=1e-5)
    assert found["low"] < found["precision"] <= found["high"]
    assert f"{frauds} of {support}" in shell("backtest", "history.csv", "--condition", condition).out


def test_backtest_of_a_whole_playbook_records_nothing(trained: Any) -> None:
    state = trained.state()
    found = trained.on_book("backtest", "history.csv", "--json").json
    assert found["rows"] == 80
    assert found["accuracy"]["low"] <= found["accuracy"]["mean"] <= found["accuracy"]["high"]
    with trained.open() as book:
        held = {bullet.id for bullet in book.get_bullets_for_node("fraud_detection")}
    assert {row["bullet_id"] for row in found["bullets"]} == held
    assert "bullets on 80 cases" in trained.on_book("backtest", "history.csv").out
    assert trained.state() == state


def test_backtest_of_words_that_are_no_condition(shell: Any) -> None:
    assert "not understood: 'lovely'" in shell("backtest", "history.csv", "--condition", "lovely weather", code=2).err


def test_json_is_one_line(decided: Any) -> None:
    assert len(decided.on_book("explain", "h1", "--json").out.splitlines()) == 1
    assert json.loads(decided.on_book("playbook", "list", "--json").out)
