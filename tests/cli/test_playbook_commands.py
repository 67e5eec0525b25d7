"""What analysts do with bullets: list, show, add, edit, approve, pin, retire, history."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from acefraud import open_playbook
from acefraud.core.bullet import MAX_CONTENT, Source, Status


@pytest.fixture
def book(shell: Any) -> Any:
    """A playbook with one bullet that was measured nowhere, one with a claim, and a note."""
    for content in ("VPN and amount > 900: decline", "Emulator = 95% fraud", "Nervous callers are odd"):
        shell.on_book("playbook", "add", content, "--as-note", "--who", "ana", "--why", "seen often")
    return shell


def ids(shell: Any) -> list[str]:
    with shell.open() as book:
        return list(book.snapshot().bullets)


def test_add_starts_a_playbook_and_reads_the_words(shell: Any) -> None:
    added = shell.on_book("playbook", "add", "Amount above 5,000 and an emulator: decline", "--json").json
    assert added["source"] == "manual"
    assert added["argues"] == "DECLINE"
    assert added["evidence"] is None
    with shell.open() as book:
        bullet = book.get_bullet(added["id"])
    assert bullet is not None
    assert str(bullet.condition) == "amount > 5000 and emulator is true"


def test_add_says_what_was_read_and_what_was_not(book: Any) -> None:
    assert "Read as: amount above 700" in book.on_book("playbook", "add", "amount > 700 and KYC missing: decline").out
    assert "Kept as a note" in book.on_book("playbook", "add", "Something smells here", "--as-note").out
    assert "is a claim until it is measured" in book.on_book("playbook", "add", "amount > 8000 = 90% fraud").out


def test_add_measures_on_the_cases_that_the_playbook_remembers(trained: Any) -> None:
    added = trained.on_book("playbook", "add", "amount > 1200 and VPN = 99% fraud", "--json").json
    rows = [line.split(",") for line in (trained.folder / "history.csv").read_text().splitlines()[1:]]
    held = [row[-1] == "1" for row in rows if float(row[2]) > 1200 and row[3] == "true"]
    assert added["evidence"]["learnt"] == {"support": len(held), "frauds": sum(held)}
    assert added["claim"]["fraud_share"] == 0.99, "what was stated stays a claim beside what was measured"
    assert "its figure is a claim; measured: " in trained.on_book("playbook", "list").out


def test_what_is_said_already_is_refused_with_its_place(book: Any) -> None:
    state = book.state()
    refused = book.on_book("playbook", "add", "vpn and AMOUNT > 900: decline", code=2)
    assert ids(book)[0] in refused.err
    assert book.state() == state


def test_a_bullet_that_a_person_retired_is_named_when_it_is_added_again(book: Any) -> None:
    book.on_book("playbook", "retire", ids(book)[0], "--why", "too broad")
    refused = book.on_book("playbook", "add", "VPN and amount > 900: decline", code=2)
    assert f"{ids(book)[0]} (retired)" in refused.err


def test_list_marks_claims_and_what_nobody_measured(book: Any) -> None:
    shown = book.on_book("playbook", "list").out
    assert "3 bullets" in shown
    assert "Emulator = 95% fraud [claim, not measured]" in " ".join(shown.split())
    assert "[unverified]" in shown


def test_list_filters_by_source_and_status(book: Any) -> None:
    first, second, third = ids(book)
    book.on_book("playbook", "pin", first)
    book.on_book("playbook", "retire", second)

    def listed(*options: str) -> set[str]:
        return {bullet["id"] for bullet in book.on_book("playbook", "list", "--json", *options).json}

    assert listed() == {first, third}
    assert listed("--all") == {first, second, third}
    assert listed("--status", "retired") == {second}
    assert listed("--status", "pinned") == {first}
    assert listed("--source", "manual") == {first, third}
    assert listed("--source", "offline") == set()


def test_list_shows_the_strongest_first(trained: Any) -> None:
    weights = [abs(bullet["weight"]) for bullet in trained.on_book("playbook", "list", "--json").json]
    assert weights == sorted(weights, reverse=True)


def test_show_tells_condition_figures_and_claims(book: Any) -> None:
    first, second, third = ids(book)
    shown = book.on_book("playbook", "show", first).out
    assert "amount > 900 and vpn is true" in shown
    assert "as SQL" in shown
    assert "CLAIM" in book.on_book("playbook", "show", second).out
    assert "stated, not measured" in book.on_book("playbook", "show", second).out
    assert "it is a note" in book.on_book("playbook", "show", third).out
    assert book.on_book("playbook", "show", first, "--json").json["id"] == first


def test_show_tells_the_status_with_who_set_it_and_why(book: Any) -> None:
    first, second, _ = ids(book)
    assert "active, set by ana: seen often" in book.on_book("playbook", "show", first).out
    book.on_book("playbook", "retire", first, "--who", "ben", "--why", "too broad")
    assert "retired, set by ben: too broad" in book.on_book("playbook", "show", first).out
    book.on_book("playbook", "pin", second, "--who", "ben")
    assert "pinned, set by ben\n" in book.on_book("playbook", "show", second).out


def test_history_and_show_give_the_reason_of_the_bullet_before_that_of_the_unit_of_work(shell: Any) -> None:
    with open_playbook(shell.book) as book, book.unit_of_work(why="learnt from the latest 80 outcomes"):
        one = book.add_bullet("VPN: decline", why="the model said so")
        book.edit_bullet(one, "VPN and an emulator: decline", why="measured again")
        book.add_bullet("Gift cards: decline")
        book.set_status(one, Status.CANDIDATE, why="its record has left its interval")
    told = shell.on_book("playbook", "history", one).out.splitlines()
    assert [line.partition("  ")[2] for line in told if not line.startswith(" ")] == [
        "added  by the engine  the model said so",
        "edited  by the engine  measured again",
        "now candidate  by the engine  its record has left its interval",
    ]
    assert "candidate, set by the engine: its record has left" in shell.on_book("playbook", "show", one).out
    other = ids(shell)[1]
    assert "learnt from the latest 80 outcomes" in shell.on_book("playbook", "history", other).out


def test_show_tells_what_was_learnt_and_what_came_later(trained: Any) -> None:
    shown = trained.on_book("playbook", "show", ids(trained)[0]).out
    assert "learnt with" in shown
    assert "log-odds of fraud" in shown


@pytest.mark.long  # a whole history is searched several times
def test_show_tells_how_many_searches_found_a_bullet(shell: Any) -> None:
    shell.on_book("train", "history.csv")
    assert "% of the searches" in shell.on_book("playbook", "show", ids(shell)[0]).out


def test_edit_reads_the_condition_anew_and_keeps_the_counters(trained: Any) -> None:
    bullet_id = ids(trained)[0]
    with trained.open() as book:
        book.update_stats(bullet_id, is_helpful=True)
    ran = trained.on_book("playbook", "edit", bullet_id, "amount > 2000 and VPN: decline", "--why", "was too low")
    assert "Measured on the cases remembered here" in ran.out
    with trained.open() as book:
        bullet = book.get_bullet(bullet_id)
    assert bullet is not None
    assert str(bullet.condition) == "amount > 2000 and vpn is true"
    assert (bullet.helpful_count, bullet.times_selected, bullet.weight) == (1, 1, None)


@pytest.mark.parametrize(("command", "status"), [("pin", "pinned"), ("retire", "retired")])
def test_moves_and_their_history_with_who_and_why(book: Any, command: str, status: str) -> None:
    first = ids(book)[0]
    moved = book.on_book("playbook", command, first, "--who", "ben", "--why", "because of [brackets]")
    assert f"{first}: active -> {status}" in moved.out
    back = book.on_book("playbook", "approve", first, "--who", "cem", "--why", "on second thought")
    assert f"{first}: {status} -> active" in back.out
    told = book.on_book("playbook", "history", first).out.splitlines()
    assert [line.partition("  ")[2] for line in told if not line.startswith(" ")] == [
        "added  by ana  seen often",
        f"now {status}  by ben  because of [brackets]",
        "now active  by cem  on second thought",
    ]
    events = book.on_book("playbook", "history", first, "--json").json
    assert [event["what"]["kind"] for event in events] == ["bullet_added", "status_changed", "status_changed"]


def test_who_comes_from_the_environment(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACEFRAUD_WHO", "dora")
    shell.on_book("playbook", "add", "VPN: decline")
    with shell.open() as book:
        assert [event.who for event in book.ledger.read()] == ["dora"]
        (bullet,) = book.snapshot().bullets.values()
    assert (bullet.source, bullet.status, bullet.status_by) == (Source.MANUAL, Status.ACTIVE, "dora")


@pytest.mark.parametrize("command", ["show", "pin", "retire", "approve", "history"])
def test_an_unknown_bullet(book: Any, command: str) -> None:
    state = book.state()
    assert "there is no bullet 'b-nobody'" in book.on_book("playbook", command, "b-nobody", code=2).err
    assert book.state() == state


def test_editing_an_unknown_bullet(book: Any) -> None:
    assert "there is no bullet 'b-nobody'" in book.on_book("playbook", "edit", "b-nobody", "VPN", code=2).err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("  ", "got an empty text"),
        ("x" * (MAX_CONTENT + 1), "expected at most 2,000 characters, got 2,001"),
        ("caf\udcff", "expected valid UTF-8"),
    ],
)
def test_content_that_cannot_be_a_bullet(book: Any, content: str, message: str) -> None:
    state = book.state()
    for command in (["add"], ["edit", ids(book)[0]]):
        refused = book.on_book("playbook", *command, content, code=2)
        assert f"field 'content': {message}" in refused.err or message in refused.err
    assert book.state() == state
    book("playbook", "add", content, "--playbook", book.folder / "new.db", code=2)
    assert not (book.folder / "new.db").exists()


def rows_with(shell: Any, least: int) -> list[dict[str, str]]:
    """The rows of the history with an amount above this."""
    with (shell.folder / "history.csv").open() as file:
        return [row for row in csv.DictReader(file) if int(row["amount"]) > least]


def test_a_bullet_shows_how_often_it_fired_how_much_was_fraud_and_in_money(trained: Any) -> None:
    """Before, a rule that declined was shown with the decisions that were right beside it, whatever it had argued."""
    name = trained.on_book("playbook", "add", "Amount above 2,500: decline", "--json").json["id"]
    held, everything = rows_with(trained, 2_500), rows_with(trained, 0)
    frauds = [row for row in held if row["label"] == "1"]
    money, stolen = (sum(int(row["amount"]) for row in rows) for rows in (held, frauds))
    base_rate = sum(row["label"] == "1" for row in everything) / len(everything)
    on = f"fired on {len(held)} labelled cases, {len(frauds)} of them fraud ({100 * len(frauds) / len(held):.0f}%"
    of_all, in_money = f"against {100 * base_rate:.0f}% of all", f"; {money:,} in money, {stolen:,} of it fraud"
    listed = trained.on_book("playbook", "list").out
    assert f"{on}, {of_all}){in_money}" in listed
    shown = trained.on_book("playbook", "show", name).out
    assert f"{on.removeprefix('fired ')}, 95% interval " in shown
    assert f"), {of_all}{in_money}" in shown
    for text in (listed, shown):
        assert "helpful" not in text
        assert "harmful" not in text
    everywhere = [trained.on_book("playbook", "show", name, "--json").json]
    everywhere += [one for one in trained.on_book("playbook", "list", "--json").json if one["id"] == name]
    for content in everywhere:
        assert {"helpful_count", "harmful_count", "times_selected"} <= content.keys()
        fired = content["firings"]
        assert (fired["support"], fired["frauds"]) == (len(held), len(frauds))
        assert (fired["money"], fired["fraud_money"], fired["base_rate"]) == (money, stolen, base_rate)


def test_outcomes_since_a_bullet_was_added_are_shown_beside_all_cases(trained: Any) -> None:
    name = trained.on_book("playbook", "add", "Amount above 2,500: decline", "--json").json["id"]
    new = [{"id": f"n{n}", "amount": 2_600, "vpn": True, "account_age_days": 9, "label": int(n < 3)} for n in range(4)]
    trained.on_book("learn", trained.rows("new.jsonl", new))
    held = len(rows_with(trained, 2_500)) + 4
    assert f"fired on {held} labelled cases" in trained.on_book("playbook", "list").out
    assert "; since added 3 of 4 were fraud" in trained.on_book("playbook", "list").out
    assert "3 of 4 past cases were fraud" in trained.on_book("playbook", "show", name).out


def test_a_rule_that_has_not_fired_says_so_and_a_note_says_nothing_of_it(shell: Any) -> None:
    rule = shell.on_book("playbook", "add", "Amount above 2,500: decline", "--json").json["id"]
    note = shell.on_book("playbook", "add", "Nervous callers ask twice", "--as-note", "--json").json["id"]
    assert "has not fired yet" in shell.on_book("playbook", "show", rule).out
    assert "fired" not in shell.on_book("playbook", "show", note).out
    assert shell.on_book("playbook", "list").out.count("has not fired yet") == 1
    assert shell.on_book("playbook", "show", note, "--json").json["firings"] is None
    with shell.open() as book:
        book.update_stats(note, is_helpful=True)
        book.update_stats(note, is_helpful=False)
    assert "a reason in 2 judged decisions, 1 of which were right" in shell.on_book("playbook", "list").out


def test_what_happens_to_a_rule_without_a_verdict_is_said(trained: Any) -> None:
    words = "neither way; it weighs as its measured share of fraud says"
    assert f" argues: {words}" in trained.on_book("playbook", "read", "amount above 2,500").out
    name = trained.on_book("playbook", "add", "amount above 2,500", "--json").json["id"]
    assert words in trained.on_book("playbook", "show", name).out
    assert " argues: REVIEW" in trained.on_book("playbook", "read", "Always review amounts above 2,500").out
