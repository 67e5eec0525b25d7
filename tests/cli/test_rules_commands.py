"""How rules are written: read, refused, kept as notes, made policies, snoozed; and the facts and lists they use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_read_shows_both_faces_and_stores_nothing(trained: Any) -> None:
    state = trained.state()
    read = trained.on_book("playbook", "read", "Decline amounts over $900 unless VPN is false", "--json").json
    assert read["condition"] == "amount > 900 and vpn is true"
    assert read["english"] == "amount above 900 and a VPN or proxy"
    assert (read["argues"], read["action"]) == ("DECLINE", "always decline")
    assert (read["not_understood"], read["did_you_mean"]) == ([], [])
    assert trained.state() == state


def test_read_names_what_it_does_not_understand(trained: Any) -> None:
    read = trained.on_book("playbook", "read", "decline amnts over 900", "--json", code=1).json
    assert read["condition"] is None
    assert read["action"] == "note"
    assert read["not_understood"] == ["amnts"]
    assert "amount" in read["did_you_mean"]
    assert "'amnts'" in trained.on_book("playbook", "read", "decline amnts over 900", code=1).out


def test_read_works_before_there_is_a_playbook(shell: Any) -> None:
    assert "Read as: amount above 900" in shell("playbook", "read", "amount over 900", "--playbook", "none.db").out
    assert not (shell.folder / "none.db").exists()


def test_a_rule_that_is_understood_in_part_is_refused_with_the_words(trained: Any) -> None:
    state = trained.state()
    refused = trained.on_book("playbook", "add", "amount over 900 and a purple card: decline", code=2).err
    assert "'purple'" in refused
    assert "--as-note" in refused
    assert trained.state() == state
    added = trained.on_book("playbook", "add", "amount over 900 and a purple card: decline", "--as-note", "--json").json
    assert (added["condition"], added["policy"]) == (None, None)


def test_formal_and_english_are_taken_alike(trained: Any) -> None:
    formal = trained.on_book("playbook", "add", "amount > 950 or not vpn = true", "--json").json
    assert formal["condition"] == "amount > 950 or vpn is false"
    again = trained.on_book("playbook", "add", "amount above 950 or no VPN", code=2)
    assert formal["id"] in again.err
    edited = trained.on_book("playbook", "edit", formal["id"], "amount between 950 and 990: decline", "--json").json
    assert edited["condition"] == "amount <= 990 and amount >= 950"
    history = trained.folder / "history.csv"
    measured = trained("backtest", history, "--condition", "amount over 950 or no VPN", "--json").json
    assert measured["condition"] == formal["condition"]


def test_always_makes_a_policy_that_decides_and_can_be_snoozed(trained: Any) -> None:
    added = trained.on_book("playbook", "add", "Always decline when the amount is over 5000", "--json").json
    assert added["policy"]["verdict"] == "DECLINE"
    payment = '{"id": "t1", "facts": {"amount": 9000, "card": "c7"}}'
    decided = trained.on_book("decide", payment, "--json").json
    assert decided["verdict"] == "DECLINE"
    assert decided["reasons"][0]["kind"] == "policy"
    assert decided["reasons"][0]["bullet_id"] == added["id"]
    explained = trained.on_book("explain", "t1", "--json").json
    assert explained["read"][added["id"]] == "amount above 5,000 (9,000)"
    assert "read: amount above 5,000 (9,000)" in trained.on_book("explain", "t1").out
    trained.on_book("playbook", "snooze", added["id"], "card=c7", "--until", "2999-01-01", "--why", "known")
    assert f"the policy {added['id']} is snoozed" in trained.on_book("decide", payment.replace("t1", "t3")).out
    snoozed = trained.on_book("decide", payment.replace("t1", "t2"), "--json").json
    assert all(reason["kind"] != "policy" for reason in snoozed["reasons"])
    shown = trained.on_book("playbook", "show", added["id"]).out
    assert "always decline" in shown
    assert "for card c7 until 2999-01-01" in shown
    assert "snoozed for card c7" in trained.on_book("playbook", "history", added["id"]).out


def test_a_policy_by_option_with_priority_and_final(trained: Any) -> None:
    added = trained.on_book(
        "playbook", "add", "amount > 7000", "--always", "decline", "--priority", "7", "--final", "--json"
    ).json
    assert added["policy"] == {"verdict": "DECLINE", "priority": 7, "final": True}
    assert added["argues"] == "DECLINE"
    allow = trained.on_book("playbook", "add", "amount < 3", "--always", "approve", "--json").json
    assert "always approve" in trained.on_book("playbook", "list").out
    edited = trained.on_book("playbook", "edit", allow["id"], "amount < 2", "--json").json
    assert edited["policy"] == allow["policy"], "a policy stays one when its words change"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--priority", "7"], "for policies"),
        (["--final"], "for policies"),
        (["--always", "approve", "--final"], "for policies that decline"),
        (["--always", "perhaps"], "perhaps"),
    ],
)
def test_options_that_make_no_sense_are_refused(trained: Any, options: list[str], says: str) -> None:
    assert says in trained.on_book("playbook", "add", "amount > 7000", *options, code=2).err


def test_dates_that_are_past_and_keys_that_nothing_has_are_pointed_out(trained: Any) -> None:
    policy = trained.on_book("playbook", "add", "amount > 7000", "--always", "decline", "--json").json["id"]
    past = trained.on_book("playbook", "snooze", policy, "card=c7", "--until", "2020-01-01", code=2)
    assert "still to come, got 2020-01-01" in past.err
    unseen = trained.on_book("playbook", "snooze", policy, "cardd=c7", "--until", "2999-01-01")
    assert "no case so far has a 'cardd'" in unseen.out
    fed = trained.on_book("lists", "create", "burnt", "--frauds-of", "cardd", "--days", "9")
    assert "no case so far has a 'cardd'" in fed.out
    assert "still to come" in trained.on_book("lists", "add", "burnt", "c1", "--until", "2020-01-01", code=2).err


def test_a_rule_that_asks_for_a_review_gets_one(trained: Any) -> None:
    assert "always review: a policy" in trained.on_book("playbook", "read", "Flag amounts over 7,000 for review").out
    added = trained.on_book("playbook", "add", "amount over 7,000 should be looked at by an analyst", "--json").json
    assert added["policy"]["verdict"] == "REVIEW"
    assert any("--as-evidence" in remark for remark in added["remarks"])


def test_the_history_of_a_rule_shows_its_words(trained: Any) -> None:
    added = trained.on_book("playbook", "add", "amount over 7,000: decline", "--json").json["id"]
    trained.on_book("playbook", "edit", added, "amount over 8,000: decline", "--why", "too low")
    told = trained.on_book("playbook", "history", added).out
    assert "    amount over 7,000: decline\n" in told
    assert "    amount over 8,000: decline\n" in told
    assert "read as: amount above 8,000" in trained.on_book("playbook", "list").out


def test_a_rule_that_never_fires_says_why(trained: Any) -> None:
    added = trained.on_book("playbook", "add", "amount > 99999999: decline", "--json").json
    assert any("fires on none" in remark for remark in added["remarks"])
    assert any("it lies between" in remark for remark in added["remarks"])
    assert "fires on none" in trained.on_book("playbook", "list").out


def test_a_shadowed_policy_and_evidence_that_changes_nothing_say_so(trained: Any) -> None:
    first = trained.on_book("playbook", "add", "amount > 500", "--always", "decline", "--json").json
    second = trained.on_book("playbook", "add", "amount > 900", "--always", "review", "--json").json
    assert any(f"shadowed: {first['id']}" in remark for remark in second["remarks"])
    third = trained.on_book("playbook", "add", "amount > 800: decline", "--json").json
    assert any("changes nothing" in remark for remark in third["remarks"])


def test_facts_lists_what_rules_can_be_about(trained: Any) -> None:
    found = trained.on_book("facts", "--json").json
    amount = next(each for each in found["facts"] if each["name"] == "amount")
    assert amount["type"] == "number"
    assert amount["low"] <= amount["middle"] <= amount["high"]
    assert 0 < amount["coverage"] <= 1
    assert "amount" in trained.on_book("facts").out


def test_lists_are_created_filled_shown_and_used(trained: Any, tmp_path: Path) -> None:
    trained.on_book("lists", "create", "watched", "--about", "complaints")
    trained.on_book("lists", "add", "watched", "DE", "--until", "2999-01-01", "--why", "complaints", "--who", "ana")
    shown = trained.on_book("lists", "show", "watched", "--json").json
    (item,) = shown["items"]
    assert (item["value"], item["who"], item["reason"]) == ("DE", "ana", "complaints")
    assert "watched" in trained.on_book("lists", "show").out
    assert "complaints" in trained.on_book("lists", "show", "watched").out
    names = tmp_path / "names.txt"
    names.write_text("FR\n\n IT \n")
    assert len(trained.on_book("lists", "import", "watched", str(names), "--json").json["items"]) == 3
    trained.on_book("lists", "remove", "watched", "FR")
    assert "is not on the list" in trained.on_book("lists", "remove", "watched", "FR", code=2).err
    assert "there is no list 'other'" in trained.on_book("lists", "add", "other", "x", code=2).err
    assert "expected a name" in trained.on_book("lists", "create", "Bad Name", code=2).err
    fed = trained.on_book("lists", "create", "burnt", "--frauds-of", "card", "--days", "90", "--json").json
    assert fed["feed"] == {"key": "card", "days": 90.0}
    assert "--days goes with" in trained.on_book("lists", "create", "odd", "--days", "9", code=2).err


def test_a_dry_run_decides_the_same_and_records_nothing(trained: Any) -> None:
    state = trained.state()
    payment = '{"id": "dry", "facts": {"amount": 1500, "vpn": true}}'
    dry = trained.on_book("decide", payment, "--dry-run", "--json").json
    assert trained.state() == state
    assert trained.on_book("decide", payment, "--json").json == dry


def test_the_threshold_is_shown_previewed_and_set(trained: Any) -> None:
    before = trained.on_book("threshold", "show", "--json").json
    assert before["review"] is None
    state = trained.state()
    found = trained.on_book("threshold", "preview", "--threshold", "0.01", "--json").json
    assert found["flips"] > 0
    assert trained.state() == state
    assert "would be decided differently" in trained.on_book("threshold", "preview", "--threshold", "0.01").out
    trained.on_book("threshold", "set", "--threshold", "0.4", "--review-between", "0.2", "0.6", "--who", "ana")
    assert "review from a fraud probability of 0.2 up to 0.6" in trained.on_book("threshold", "show").out
    costs = trained.on_book("threshold", "set", "--costs", "false_decline=20,review=5,per_day=9", "--json").json
    told = {"false_decline": 20.0, "missed_fraud": 0.0, "fraud_loss": 1.0, "review": 5.0, "per_day": 9}
    assert costs["review"]["costs"] == told
    assert costs["threshold"] == 0.4
    assert "at most 9 a day" in trained.on_book("threshold", "show").out
    assert trained.on_book("threshold", "set", "--threshold", "0.3", "--json").json["review"] == costs["review"]
    plain = trained.on_book("threshold", "set", "--no-review", "--json").json
    assert (plain["threshold"], plain["review"], plain["reviews_today"]) == (0.3, None, None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--costs", "false_decline=1,cheap=2"], "cheap: there is no such field"),
        (["--costs", "review=-1,false_decline=2"], "review: expected a number of at least 0"),
        (["--costs", "review=1,false_decline=2", "--review-between", "0.2", "0.6"], "exclude each other"),
        (["--review-between", "0.9", "0.6"], "the lower one first"),
        (["--threshold", "7"], "between 0 and 1"),
        ([], "nothing was changed"),
        (["--no-review", "--review-between", "0.2", "0.6"], "choose one"),
        (["--costs", "review=1"], "false_decline: this field is missing"),
        (["--costs", "review=1,false_decline=2,per_day=1.5"], "a whole number"),
    ],
)
def test_a_threshold_that_makes_no_sense_is_refused(trained: Any, options: list[str], says: str) -> None:
    assert says in trained.on_book("threshold", "set", *options, code=2).err


def test_a_preview_of_a_rule_stores_nothing(trained: Any) -> None:
    state = trained.state()
    found = trained.on_book("playbook", "add", "amount over 900: decline", "--preview", "--json").json
    assert found["cases"] > 0
    assert "labelled cases it fires on" in trained.on_book("playbook", "add", "amount over 900", "--preview").out
    assert trained.state() == state
    added = trained.on_book("playbook", "add", "amount > 900: decline", "--json").json["id"]
    state = trained.state()
    for options in ([], ["--edit", "amount > 700: decline"]):
        assert "would be decided differently" in trained.on_book("playbook", "preview", added, *options).out
    assert trained.state() == state


def test_a_policy_that_says_the_opposite_of_its_words_is_refused(trained: Any) -> None:
    refused = trained.on_book("playbook", "add", "Approve amounts under $20", "--always", "decline", code=2)
    assert "the words argue for APPROVE" in refused.err
    added = trained.on_book("playbook", "add", "amount > 7000", "--always", "decline", "--json").json
    edited = trained.on_book("playbook", "edit", added["id"], "Approve amounts over 8000", code=2)
    assert "the words argue for APPROVE" in edited.err
