"""`train` makes bullets from a history, `decide` uses them."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.storage.replaying import cases_of

from acefraud import Learner

pytestmark = pytest.mark.one_search

RISKY = {"id": "t1", "facts": {"amount": 2900, "vpn": True, "account_age_days": 3}}
HARMLESS = {"id": "t2", "facts": {"amount": 20, "vpn": False, "account_age_days": 800}}


def texts(rows: int = 60) -> list[dict[str, Any]]:
    """The shape of the ACE system's datasets."""
    risky = "User (account {n} minutes old) attempts ${a} purchase at 3:15 AM through a VPN"
    honest = "User (account {n} years old, verified) buys a book for ${a}"
    return [
        {
            "query": (risky if n % 2 else honest).format(n=2 + n % 9, a=20 + 31 * n),
            "answer": "DECLINE" if n % 2 else "APPROVE",
            "difficulty": "easy",
            "metadata": {"n": n},
        }
        for n in range(rows)
    ]


def test_train_on_csv_reports_what_it_did(shell: Any) -> None:
    ran = shell.on_book("train", "history.csv", "--json")
    assert ran.json["rows"] == 80
    assert ran.json["playbook"] == str(shell.book)
    assert (ran.json["bad_rows"], ran.json["unlabelled"]) == (0, 0)
    with shell.open() as book:
        bullets = book.get_bullets_for_node("fraud_detection")
        assert len(cases_of(book.ledger)) == 80
    assert ran.json["bullets"] == len(bullets) > 0
    assert {str(bullet.source) for bullet in bullets} == {"offline"}
    assert all(bullet.evidence is not None and bullet.condition is not None for bullet in bullets)


def test_train_tells_how_columns_were_taken_and_a_mapping_overrides_it(shell: Any) -> None:
    assert 'label = "label"' in shell.on_book("train", "history.csv").err
    mapping = shell.write("map.toml", 'id = "id"\nlabel = "label"\nignore = ["amount"]\n')
    shell.book.unlink()
    shell.on_book("train", "history.csv", "--mapping", mapping)
    with shell.open() as book:
        facts = {test.fact for bullet in book.snapshot().bullets.values() for test in bullet.condition.tests}
        assert 'ignore = ["amount"]' in book.snapshot().mapping
    assert facts
    assert "amount" not in facts


def test_short_bullets_only_are_asked_for_once(shell: Any) -> None:
    shell.on_book("train", "history.csv", "--plain")
    with shell.open() as book:
        assert book.snapshot().calibration("fraud_detection").plain
        Learner(book).refit()
        assert book.snapshot().calibration("fraud_detection").plain


def test_train_on_a_json_list_of_queries_and_answers(shell: Any) -> None:
    path = shell.write("ace.json", json.dumps(texts()))
    ran = shell.on_book("train", path, "--json")
    assert (ran.json["rows"], ran.json["frauds"]) == (60, 30)
    with shell.open() as book:
        assert {case.transaction.text for case in cases_of(book.ledger)} == {row["query"] for row in texts()}


def test_train_twice_on_one_history_adds_no_bullet_twice(trained: Any) -> None:
    with trained.open() as book:
        before = {str(bullet.condition) for bullet in book.snapshot().bullets.values()}
    trained.on_book("train", "history.csv", "--json")
    with trained.open() as book:
        conditions = [str(bullet.condition) for bullet in book.snapshot().bullets.values()]
    assert len(conditions) == len(set(conditions))
    assert before <= set(conditions)


@pytest.mark.parametrize("transaction", [RISKY, HARMLESS])
def test_decide_json_gives_what_scripts_rely_on(trained: Any, transaction: dict[str, Any]) -> None:
    ran = trained.on_book("decide", json.dumps(transaction), "--json")
    (decision,) = ran.lines
    assert decision["transaction_id"] == transaction["id"]
    assert decision["verdict"] == ("DECLINE" if transaction is RISKY else "APPROVE")
    assert (decision["probability"] >= decision["threshold"]) == (decision["verdict"] == "DECLINE")
    assert decision["reasons"] or transaction is HARMLESS, "only where nothing speaks there need be no reason"
    for reason in decision["reasons"]:
        assert {"text", "contribution", "bullet_id", "kind"} == set(reason)
    with trained.open() as book:
        kept = book.ledger.decisions([decision["decision_id"]]).get(decision["decision_id"])
    assert kept is not None
    assert str(kept.verdict) == decision["verdict"]


def test_decide_a_file_gives_one_line_per_row_and_never_looks_at_a_label(trained: Any) -> None:
    header, *rows = (trained.folder / "history.csv").read_text().splitlines()
    flipped = [row[:-1] + str(1 - int(row[-1])) for row in rows]
    plain = trained.write("plain.csv", "\n".join(line.rpartition(",")[0] for line in [header, *rows]))
    first = trained.on_book("decide", "history.csv", "--json").lines
    assert [line["transaction_id"] for line in first] == [f"h{n}" for n in range(80)]
    with_flipped = trained.write("flipped.csv", "\n".join([header, *flipped]))
    assert trained.on_book("decide", with_flipped, "--json").lines == first
    assert trained.on_book("decide", plain, "--json").lines == first


def test_decide_reads_text_stdin_and_bare_facts(trained: Any) -> None:
    text = "User (3 days old) attempts $2,900 purchase at 3:15 AM through a VPN"
    (by_text,) = trained.on_book("decide", text, "--json").lines
    assert by_text["verdict"] == "DECLINE"
    assert by_text["transaction_id"].startswith("tx-")
    stdin = json.dumps(RISKY["facts"] | {"id": "a"}) + "\n" + json.dumps({"id": "b", "text": text}) + "\n"  # type: ignore[operator]
    piped = trained.on_book("decide", "-", "--json", stdin=stdin).lines
    assert [line["transaction_id"] for line in piped] == ["a", "b"]
    (bare,) = trained.on_book("decide", '{"amount": 2900, "vpn": true}', "--json").lines
    assert bare["verdict"] == "DECLINE"


def test_decide_for_people_shows_verdict_reasons_and_where_they_come_from(trained: Any) -> None:
    ran = trained.on_book("decide", json.dumps(RISKY))
    assert ran.out.startswith("DECLINE")
    assert "t1" in ran.out
    assert "(b-" in ran.out
    (line,) = trained.on_book("decide", json.dumps(RISKY), "--json").lines
    assert line["decision_id"] in ran.out


def test_a_file_ends_with_a_summary(trained: Any) -> None:
    trained.on_book("playbook", "add", "Always review amounts above 2,950")
    made = trained.on_book("decide", "history.csv", "--json", "--dry-run").lines
    with (trained.folder / "history.csv").open() as file:
        amounts = {row["id"]: int(row["amount"]) for row in csv.DictReader(file)}
    counts, money = Counter[str](), Counter[str]()
    for decision in made:
        counts[decision["verdict"]] += 1
        money[decision["verdict"]] += amounts[decision["transaction_id"]]
    said = ", ".join(
        f"{counts[verdict]} {words} ({money[verdict]:,} in money)"
        for verdict, words in (("APPROVE", "approved"), ("DECLINE", "declined"), ("REVIEW", "sent to review"))
    )
    *_, summary, policy, rule = [
        line
        for line in trained.on_book("decide", "history.csv").out.splitlines()
        if line.startswith(("80 decided", "  decided", "  weighed"))
    ][:3]
    assert summary == f"80 decided: {said}"
    assert policy.startswith(f"  decided {counts['REVIEW']}: Always review amounts above 2,950")
    assert rule.startswith("  weighed in ")
    assert "decided:" not in trained.on_book("decide", json.dumps(RISKY)).out, "one transaction needs no summary"


def test_a_table_has_one_aligned_row_for_each_transaction(trained: Any) -> None:
    who = {"customer": "ann@acme.org", "merchant": "ACME"}
    named = {"id": "an id that is longer than others", "facts": {"amount": 2900, "vpn": True, **who}}
    ran = trained.on_book("decide", trained.rows("two.jsonl", [named, HARMLESS]), "--table")
    heading, first, second, summary, *_ = ran.out.splitlines()
    starts = [heading.index(name) for name in ("transaction", "who", "verdict", "main reason")]
    assert [first[start:].split("  ")[0] for start in starts[:3]] == [
        named["id"],
        "customer [email], merchant ACME",
        "DECLINE",
    ]
    assert [second[start:].split("  ")[0] for start in (starts[0], starts[2])] == ["t2", "APPROVE"]
    assert first[: starts[2]].endswith(" 2,900  ")
    assert first[starts[3] :].startswith("Amount above ")
    assert summary.startswith("2 decided: 1 approved (20 in money), 1 declined (2,900 in money), 0 sent to review")


def test_only_some_decisions_are_printed_and_all_are_counted_and_recorded(trained: Any) -> None:
    both = trained.rows("two.jsonl", [RISKY, HARMLESS])
    for options in ([], ["--table"]):
        out = trained.on_book("decide", both, "--only", "decline", *options).out
        assert "t1" in out
        assert "t2" not in out
        assert "2 decided: 1 approved" in out
    assert [
        line["transaction_id"] for line in trained.on_book("decide", both, "--only", "decline", "--json").lines
    ] == ["t1"]
    assert trained.on_book("decide", both, "--only", "review").out.startswith("2 decided: ")
    assert trained.on_book("explain", "t2").out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("two.jsonl", "--only", "approve"), "'approve' is not one of 'decline', 'review'"),
        (("two.jsonl", "--table", "--json"), "--table is for people who decide a file"),
        (("-", "--table"), "--table is for people who decide a file"),
        (("-", "--only", "decline"), "every line of a stream is answered"),
    ],
)
def test_options_that_make_no_sense_are_refused(trained: Any, arguments: tuple[str, ...], problem: str) -> None:
    trained.rows("two.jsonl", [RISKY, HARMLESS])
    before = trained.state()
    refused = trained.on_book("decide", *arguments, code=2)
    assert problem in " ".join(refused.err.replace("│", " ").split())
    assert trained.state() == before


@pytest.mark.parametrize("name", ["[/x]", "[bold]", ":100:"])
def test_an_id_is_printed_as_it_is(trained: Any, name: str) -> None:
    ran = trained.on_book("decide", json.dumps({**RISKY, "id": name}))
    assert f"  {name}  " in ran.out
    assert f" {name}, playbook revision" in trained.on_book("explain", name).out


def test_without_a_playbook_general_knowledge_decides_and_nothing_is_kept(shell: Any) -> None:
    ran = shell("decide", json.dumps(RISKY), "--json")
    assert ran.lines[0]["verdict"] == "DECLINE"
    assert {reason["kind"] for reason in ran.lines[0]["reasons"]} == {"general knowledge"}
    assert "nothing is kept" in ran.err
    assert [path.name for path in shell.folder.iterdir()] == ["history.csv"]


def test_deciding_again_records_nothing_new(trained: Any) -> None:
    first = trained.on_book("decide", "history.csv", "--json").out
    state = trained.state()
    assert trained.on_book("decide", "history.csv", "--json").out == first
    assert trained.state() == state


def test_the_environment_names_the_playbook(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACEFRAUD_PLAYBOOK", str(trained.book))
    by_environment = trained("decide", json.dumps(RISKY), "--json").out
    assert by_environment == trained.on_book("decide", json.dumps(RISKY), "--json").out


def graded(count: int = 400) -> list[str]:
    """Transactions an hour apart, the larger the likelier to be fraud, so that no threshold parts them cleanly."""
    dice = random.Random(11)
    lines = ["id,time,amount,vpn,label"]
    for n in range(count):
        amount, vpn = dice.randint(10, 3000), dice.random() < 0.5
        fraud = dice.random() < (0.02 + 0.25 * (amount > 1000) + 0.6 * (amount > 2200)) * (1.0 if vpn else 0.3)
        time = datetime(2024, 1, 1) + timedelta(hours=n)
        lines.append(f"g{n},{time.isoformat()}Z,{amount},{str(vpn).lower()},{int(fraud)}")
    return lines


def declined_with(shell: Any, rule: str) -> tuple[float, set[str]]:
    """The threshold after training by a rule, and what is declined then of the latest fifth, on which it was chosen."""
    header, *rows = graded()
    history = shell.write("graded.csv", "\n".join([header, *rows]))
    latest = shell.write("latest.csv", "\n".join(line.rpartition(",")[0] for line in [header, *rows[320:]]))
    shell.book.unlink(missing_ok=True)
    trained = shell.on_book("train", history, "--threshold", rule, "--json").json
    assert trained["threshold_rule"] == rule
    decisions = shell.on_book("decide", latest, "--json").lines
    assert {made["threshold"] for made in decisions} == {trained["threshold"]}
    return trained["threshold"], {made["transaction_id"] for made in decisions if made["verdict"] == "DECLINE"}


def test_the_dearer_a_missed_fraud_the_more_is_declined(shell: Any) -> None:
    wary, often = declined_with(shell, "cost=1:50")
    bold, seldom = declined_with(shell, "cost=50:1")
    assert (wary, bold) == pytest.approx((1 / 51, 50 / 51))
    assert seldom < often


@pytest.mark.parametrize("budget", [0.0, 0.1, 0.3])
def test_no_more_of_the_honest_ones_are_declined_than_the_budget_allows(shell: Any, budget: float) -> None:
    threshold, declined = declined_with(shell, f"fpr={budget}")
    labels = {row.split(",")[0]: row.endswith("1") for row in graded()[321:]}
    honest = [name for name, fraud in labels.items() if not fraud]
    assert 0 < threshold < 1
    assert sum(name in declined for name in honest) <= budget * len(honest)
    if budget:
        assert any(labels[name] for name in declined)


def test_train_says_the_threshold_and_its_rule_and_keeps_it_without_one(shell: Any) -> None:
    assert "Declines from a fraud probability of 0.5\n" in shell.on_book("train", "history.csv").out
    told = shell.on_book("train", "history.csv", "--threshold", "cost=1:3").out
    assert "Declines from a fraud probability of 0.25 (cost=1:3)" in told
    again = shell.on_book("train", "history.csv", "--json").json
    assert (again["threshold"], again["threshold_rule"]) == (0.25, None)


def test_a_threshold_that_makes_no_sense_is_refused_and_nothing_is_written(shell: Any) -> None:
    ran = shell.on_book("train", "history.csv", "--threshold", "best", code=2)
    assert "fpr=0.01" in ran.err
    assert not shell.book.exists()


def test_train_on_a_handful_says_what_is_missing(shell: Any) -> None:
    (shell.folder / "few.json").write_text(json.dumps(texts(12)))
    said = shell.on_book("train", "few.json").out
    assert "No bullet was learnt: 12 labelled cases, 40 are needed" in said
    assert "; general knowledge decides." in said
