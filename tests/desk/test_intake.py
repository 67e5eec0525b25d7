"""Nothing that a desk sends is lost: early outcomes, notes, authors and other columns, ids that nearly fit, Ctrl-C."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Shell
from tests.cli.test_processes import COMMAND

from acefraud import Learner, LearnerOptions, Outcome, Transaction, open_playbook
from acefraud.errors import InputError, InputWarning

pytestmark = pytest.mark.wide

SOON = 2.0
"""Seconds within which Ctrl-C stops a command."""


def decide(shell: Shell, *ids: str) -> None:
    rows = [{"id": id_, "amount": 2500, "vpn": True, "account_age_days": 3} for id_ in ids]
    shell.on_book("decide", shell.rows("today.jsonl", rows), "--json")


def outcomes_of(shell: Shell, one: str) -> list[dict[str, Any]]:
    explained: list[dict[str, Any]] = shell.on_book("explain", one, "--json").json["outcomes"]
    return [heard["outcome"] for heard in explained]


# --- outcomes before their decisions ---


def test_outcomes_before_their_decision_are_kept_and_count_once_it_comes(trained: Shell) -> None:
    file = trained.write("early.csv", "transaction_id,label,source\np1,1,chargeback\np2,0,label\n")
    ran = trained.on_book("learn", file, "--json")
    assert (ran.json["heard"], ran.json["waiting"], ran.json["bad_rows"]) == (2, 2, 0)
    assert (
        "2 outcomes are about transactions not decided yet; they are kept and count once these are decided" in ran.err
    )
    waiting = trained.on_book("ledger", "waiting", "--json").lines
    assert [(each["transaction_id"], each["is_fraud"]) for each in waiting] == [("p1", True), ("p2", False)]
    decide(trained, "p1", "p2")
    assert trained.on_book("ledger", "waiting").out == "No outcome waits for its transaction to be decided\n"
    later = trained.on_book("learn", trained.write("later.csv", "transaction_id,label\np1,1\n"))
    assert "2 outcomes that were received before were taken in first" in later.err
    with trained.open() as book:
        past = book.ledger.transaction_events(["p1", "p2"])
        assert [str(past[each].outcomes[-1].judgement.ruling) for each in ("p1", "p2")] != ["unjudged"] * 2
        assert all(past[each].outcomes[-1].decision_id or past[each].outcomes[-2].decision_id for each in ("p1", "p2"))


def test_a_stream_keeps_outcomes_before_their_decision_too(trained: Shell) -> None:
    ran = trained.on_book("learn", "-", "--json", stdin='{"transaction_id": "p1", "label": "fraud"}\n')
    assert ran.lines[0]["waiting"] is True
    assert "1 outcomes are about transactions not decided yet" in ran.err


def test_python_keeps_outcomes_before_their_decision_too(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        learner = Learner(book)
        assert learner.hear_sync(Outcome(transaction_id="t1", is_fraud=True)).is_waiting
        learner.decide_sync(Transaction(id="t1", facts={"amount": 12}))
        learner.decide_sync(Transaction(id="t2", facts={"amount": 12}))
        assert not learner.hear_sync(Outcome(transaction_id="t2", is_fraud=False)).is_waiting
        (first, judged) = book.ledger.transaction_events(["t1"])["t1"].outcomes
        assert (first.decision_id, judged.judgement.is_correct) == (None, False)


def test_5000_unknown_ids_are_kept_with_one_remark(trained: Shell) -> None:
    rows = "".join(f"u{number},{number % 2}\n" for number in range(5_000))
    ran = trained.on_book("learn", trained.write("many.csv", "transaction_id,label\n" + rows), "--json")
    assert ran.json["waiting"] == 5_000
    assert ran.err.count("not decided yet") == 1
    assert len(trained.on_book("ledger", "waiting", "--json").lines) == 5_000


# --- notes, authors and other columns ---


def test_a_note_an_author_and_other_columns_are_kept_and_are_no_facts(trained: Shell) -> None:
    decide(trained, "p1")
    note = "said [bold]no[/bold]\nto 2 & more"
    row = f'p1,1,analyst,maria,"{note}",stolen card,t-17\np9,1,analyst,maria,,stolen card,t-18\n'
    columns = "transaction_id,label,source,Author,note,Reason,ticket\n"
    trained.on_book("learn", trained.write("week.csv", columns + row), "--json")
    (outcome,) = outcomes_of(trained, "p1")
    assert (outcome["author"], outcome["note"]) == ("maria", note)
    assert outcome["details"] == {"Reason": "stolen card", "ticket": "t-17"}
    said = trained.on_book("explain", "p1").out
    assert "Later known (analyst by maria): fraud; the verdict was " in said
    assert "note: said [bold]no[/bold] to 2 & more" in said
    assert "Reason: stolen card" in said
    with trained.open() as book:
        learner = Learner(book)
        assert not {"Reason", "ticket", "note", "Author"} & set(learner.remembered().facts.names)
        assert not book.ledger.known_cases(["p9"])


def test_a_row_with_the_columns_of_the_history_still_brings_its_transaction(trained: Shell) -> None:
    columns, row = "transaction_id,label,amount,vpn,Reason\n", "p7,1,900,true,stolen\n"
    ran = trained.on_book("learn", trained.write("new.csv", columns + row), "--json")
    assert ran.json["waiting"] == 0
    with trained.open() as book:
        assert dict(book.ledger.known_cases(["p7"])["p7"].facts) == {"amount": 900.0, "vpn": True}


def test_a_source_that_is_a_name_is_the_author(trained: Shell) -> None:
    decide(trained, "p1", "p2")
    file = trained.write("names.csv", "transaction_id,label,source\np1,1,Maria\np2,0,Maria\n")
    ran = trained.on_book("learn", file, "--json")
    assert (ran.json["heard"], ran.json["bad_rows"]) == (2, 0)
    assert ran.err.count("'Maria' is none of label, chargeback, analyst, judge") == 1
    (outcome,) = outcomes_of(trained, "p1")
    assert (outcome["source"], outcome["author"]) == ("analyst", "Maria")


def test_contradicting_rows_of_two_authors_are_both_kept_and_the_last_one_counts(trained: Shell) -> None:
    decide(trained, "p1")
    rows = "p1,1,analyst,ana,seen it\np1,0,analyst,bob,a mistake\np1,0,analyst,eve,I agree\n"
    trained.on_book("learn", trained.write("two.csv", "transaction_id,label,source,author,note\n" + rows), "--json")
    kept = outcomes_of(trained, "p1")
    assert [(each["is_fraud"], each["author"]) for each in kept] == [(True, "ana"), (False, "bob"), (False, "eve")]


def test_a_column_of_a_megabyte_is_cut_and_said_once(trained: Shell) -> None:
    decide(trained, "p1", "p2")
    rows = [
        {"transaction_id": each, "label": 1, "export": "x" * 1_000_000, "note": "y" * 9_000} for each in ("p1", "p2")
    ]
    ran = trained.on_book("learn", trained.rows("blob.jsonl", rows), "--json")
    (outcome,) = outcomes_of(trained, "p1")
    assert (len(outcome["details"]["export"]), len(outcome["note"])) == (500, 2_000)
    assert ran.err.count("field 'export': the text is cut to 500 characters") == 1


# --- exports in other languages: ids, and columns of outcomes ---


HEADINGS = ("Zahlungs-Nr", "Buchungszeit", "Karte", "Betrag (EUR)", "Kanal", "Notiz", "Betrug")
REPORT = "Zahlungs-Nr;Ergebnis;Grund;Meldedatum;Notiz;Bearbeiter\n"
REPORTED = "ZA-900;Betrug;Konto übernommen;03.06.2024;Kunde bestreitet;Ana\n"


def german_row(row: int) -> list[str]:
    dice = random.Random(row)
    fraud, day = dice.random() < 0.2, f"{1 + row % 28:02d}.{1 + row // 28:02d}.2024 10:{row % 60:02d}"
    amount = f"{dice.randrange(20, 90) + 400 * fraud},50"
    note = ["", "", "VIP", "Rückfrage"][row % 4]
    return [f"ZA-{row:03d}", day, f"C{row % 30:08d}", amount, ["Web", "App"][row % 2], note, "ja" if fraud else "nein"]


@pytest.fixture(scope="module")
def german_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shell = Shell(tmp_path_factory.mktemp("german"))
    lines = [";".join(cells) for cells in (HEADINGS, *map(german_row, range(140)))]
    shell.on_book("train", shell.write("historie.csv", "\n".join(lines) + "\n"), "--json")
    return shell.book


@pytest.fixture
def german(german_once: Path, shell: Shell) -> Shell:
    shell.book.write_bytes(german_once.read_bytes())
    return shell


def payments(*ids: str, heading: str = "Zahlungs-Nr") -> str:
    rows = [";".join([id_, "02.06.2024 10:00", "C00000001", "45,50", "Web", ""]) for id_ in ids]
    return "\n".join([";".join([heading, *HEADINGS[1:-1]]), *rows]) + "\n"


def test_an_outcome_names_a_payment_by_the_number_that_the_export_has(german: Shell) -> None:
    made = german.on_book("decide", german.write("heute.csv", payments("ZA-900", "ZA-901")), "--json")
    assert [line["transaction_id"] for line in made.lines] == ["ZA-900", "ZA-901"]
    assert german.on_book("learn", german.write("cb.csv", REPORT + REPORTED), "--json").json["waiting"] == 0


@pytest.mark.parametrize("mapping", ["", 'id = "Zahlungs-Nr"\nlabel = "Ergebnis"\n'])
def test_an_early_outcome_with_a_note_waits_and_keeps_all_its_columns(german: Shell, mapping: str) -> None:
    options = ("--mapping", german.write("cb.toml", mapping)) if mapping else ()
    ran = german.on_book("learn", german.write("cb.csv", REPORT + REPORTED), "--json", *options)
    assert (ran.json["heard"], ran.json["waiting"]) == (1, 1)
    with german.open() as book:
        assert not book.ledger.known_cases(["ZA-900"])
    german.on_book("decide", german.write("heute.csv", payments("ZA-900")), "--json")
    (outcome, *_) = outcomes_of(german, "ZA-900")
    assert (outcome["author"], outcome["note"], outcome["at"]) == ("Ana", "Kunde bestreitet", "2024-06-03T00:00:00Z")
    assert outcome["details"] == {"Grund": "Konto übernommen"}


def test_a_stream_of_such_outcomes_is_read_in_the_same_way(german: Shell) -> None:
    said = dict(zip(REPORT.strip().split(";"), REPORTED.strip().split(";"), strict=True))
    mapping = german.write("cb.toml", 'id = "Zahlungs-Nr"\nlabel = "Ergebnis"\n')
    for number, options in enumerate([(), ("--mapping", mapping)]):
        line = json.dumps({**said, "Zahlungs-Nr": f"ZA-91{number}"}) + "\n"
        assert german.on_book("learn", "-", "--json", *options, stdin=line).lines[0]["waiting"] is True


def test_a_note_beside_facts_of_the_history_is_one_of_them(german: Shell) -> None:
    row = "Zahlungs-Nr;Betrug;Betrag (EUR);Notiz;Bearbeiter\nZA-900;ja;45,50;VIP;Ana\n"
    mapping = german.write("cb.toml", 'id = "Zahlungs-Nr"\nlabel = "Betrug"\n')
    ran = german.on_book("learn", german.write("cb.csv", row), "--json", "--mapping", mapping)
    assert ran.json["waiting"] == 0
    with german.open() as book:
        assert dict(book.ledger.known_cases(["ZA-900"])["ZA-900"].facts) == {"amount": 45.5, "Notiz": "VIP"}


def test_a_file_of_outcomes_without_an_id_names_the_key_of_the_mapping(german: Shell) -> None:
    ran = german.on_book("learn", german.write("cb.csv", "Fall;Ergebnis\n7;Betrug\n"), code=2)
    assert 'no column with a transaction_id; the columns are: Fall, Ergebnis; name it by `id = "..."`' in ran.err


def test_a_file_to_train_on_needs_both_labels_under_any_name(shell: Shell) -> None:
    rows = "".join(f"{row},{row}.5,fraud\n" for row in range(40))
    assert "no column with a label" in shell.on_book("train", shell.write("t.csv", "id,amount,x\n" + rows), code=2).err


def test_payments_without_the_column_of_the_id_are_pointed_out_and_refused_if_strict(german: Shell) -> None:
    told = "there is no `Zahlungs-Nr`: ids are made from the content, and no later outcome can name them"
    file = german.write("heute.csv", payments(*(f"ZA-9{row:02d}" for row in range(30)), heading="ZahlungsNr"))
    assert f"{told}; did you mean ZahlungsNr?" in german.on_book("decide", file, "--dry-run").err
    before = german.state()
    assert f"field 'Zahlungs-Nr': {told}" in german.on_book("decide", file, "--strict", code=2).err
    line = '{"ZahlungsNr": "ZA-900", "Betrag (EUR)": 45.5, "Kanal": "Web"}\n'
    assert german.on_book("decide", "-", "--strict", stdin=line, code=2).err.count(told) == 1
    assert german.state() == before
    assert german.on_book("decide", "-", "--dry-run", stdin=line + line).err.count(told) == 1
    with german.open() as book:
        with pytest.warns(InputWarning) as warned:
            Learner(book).decide_sync({"Betrag (EUR)": 45.5, "Kanal": "Web"})
        assert any(str(each.message).startswith(told) for each in warned)
        with pytest.raises(InputError, match="there is no `Zahlungs-Nr`") as refused:
            Learner(book, options=LearnerOptions(strict=True)).decide_sync({"Betrag (EUR)": 45.5, "Kanal": "Web"})
        assert refused.value.field == "Zahlungs-Nr"


def test_an_entity_may_be_called_by_its_column(german: Shell) -> None:
    assert "no case so far" not in german.on_book("lists", "create", "cards", "--frauds-of", "Karte").out
    assert "no case so far has a 'Krate'" in german.on_book("lists", "create", "slip", "--frauds-of", "Krate").out


@pytest.mark.parametrize("command", ["train", "learn", "compare"])
def test_a_slip_in_the_name_of_a_file_is_pointed_out(german: Shell, command: str) -> None:
    german.write("historie.csv", "a;b\n")
    slip = german.book.parent / "hisotrie.csv"
    options = () if command == "compare" else ("--playbook", german.book)
    assert f"did you mean {slip.with_name('historie.csv')}?" in german.attempt(command, slip, *options).err


# --- ids and times ---


@pytest.mark.parametrize(
    ("decided", "reported"),
    [("TX-01", "tx-01"), ("AB12", "ab 12"), ("Order-7", "ORDER-7"), ("0042", "42"), ("42", "42.0"), ("17", "0017")],
)
def test_an_id_that_nearly_fits_is_pointed_out_and_not_matched(trained: Shell, decided: str, reported: str) -> None:
    decide(trained, decided)
    ran = trained.on_book("learn", trained.rows("near.jsonl", [{"transaction_id": reported, "label": 1}]), "--json")
    assert f"but on '{decided}'" in ran.err
    assert ran.json["waiting"] == 1
    assert trained.on_book("ledger", "waiting", "--json").lines[0]["nearly"] == decided


def test_ids_that_nearly_fit_are_counted_and_only_the_first_are_named(trained: Shell) -> None:
    decide(trained, *(f"TX-{number}" for number in range(30)))
    rows = [{"transaction_id": f"tx-{number}", "label": 1} for number in range(30)]
    ran = trained.on_book("learn", trained.rows("lower.jsonl", rows), "--json")
    assert (ran.json["remarks"], ran.json["waiting"], ran.err.count("but on 'TX-")) == (30, 30, 5)
    assert "... 30 outcomes in all have such a time or id" in ran.err


def test_ids_that_are_blank_are_bad_rows(trained: Shell) -> None:
    decide(trained, "p1")
    ran = trained.on_book("learn", trained.write("b.csv", "transaction_id,label\np1,1\n  ,1\n,0\n"), "--json")
    assert (ran.json["heard"], ran.json["bad_rows"]) == (1, 2)
    assert "row 2, field 'transaction_id': expected an id, got an empty cell" in ran.err


def test_dates_of_outcomes_are_day_first_if_those_of_the_history_are(shell: Shell) -> None:
    dice = random.Random(3)
    days = [f"{1 + number % 28:02d}/{1 + number % 6:02d}/2024 10:{number % 60:02d}" for number in range(120)]
    rows = [f"h{row},{day},{dice.randrange(900)},{row % 7 == 0:d}" for row, day in enumerate(days)]
    shell.on_book("train", shell.write("day_first.csv", "id,time,amount,label\n" + "\n".join(rows) + "\n"), "--json")
    today = shell.write("today.csv", "id,time,amount\np1,01/02/2024 09:00,50\np2,20/03/2024 09:00,60\n")
    shell.on_book("decide", today, "--json")
    ran = shell.on_book(
        "learn", shell.write("o.csv", "transaction_id,label,at\np1,1,05/02/2024\np2,1,04/03/2024\n"), "--json"
    )
    assert outcomes_of(shell, "p1")[0]["at"] == "2024-02-05T00:00:00Z"
    assert "row 2, the time 2024-03-04 00:00 is before the transaction 'p2' of 2024-03-20 09:00" in ran.err
    assert "row 1," not in ran.err
    line = '{"transaction_id": "p1", "label": 0, "at": "06/02/2024"}\n'
    shell.on_book("learn", "-", stdin=line)
    assert outcomes_of(shell, "p1")[-1]["at"] == "2024-02-06T00:00:00Z"


def test_python_warns_of_a_time_before_the_transaction(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        learner = Learner(book)
        learner.decide_sync(Transaction(id="t1", time=datetime(2026, 2, 1, tzinfo=UTC), facts={"amount": 12}))
        early = Outcome(transaction_id="t1", is_fraud=True, at=datetime(2026, 1, 2, tzinfo=UTC))
        with pytest.warns(InputWarning, match="is before the transaction 't1'"):
            learner.hear_sync(early)
        with pytest.warns(InputWarning, match="'maria' is none of"):
            learner.hear_sync({"transaction_id": "t1", "is_fraud": False, "source": "maria"})


# --- Ctrl-C ---


def long_history(path: Path, rows: int) -> Path:
    """Enough noise that learning from it takes far longer than a command may take to stop."""
    dice = random.Random(1)
    names = [f"f{number}" for number in range(25)]
    with path.open("w") as file:
        file.write(",".join(["id", "time", *names, "label"]) + "\n")
        for row in range(rows):
            values = [f"{dice.random():.4f}" for _ in names]
            fraud = dice.random() < 0.02 + 0.3 * (float(values[0]) > 0.9)
            file.write(f"t{row},2024-01-{1 + 27 * row // rows:02d}T00:00:00Z,{','.join(values)},{fraud:d}\n")
    return path


def interrupted(*arguments: str | Path, at: str = "# The columns", after: float = 1.0) -> tuple[int, str]:
    """Ctrl-C once a command has printed something and worked on for a while. It has to stop soon: exit code and words.

    A machine that takes long to start a command may take as long to stop it.
    """
    command = [sys.executable, "-u", "-c", COMMAND, *map(str, arguments)]
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said = next((line for line in process.stdout if line.startswith(at)), "")
        assert said, "it has ended without a word"
        soon = max(SOON, time.monotonic() - start)
        time.sleep(after)
        assert process.poll() is None, "it has ended already: the history is too short"
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        said += process.communicate(timeout=60)[0]
        assert time.monotonic() - start < soon
    assert "Traceback" not in said
    return process.returncode, said


def contents(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return long_history(tmp_path_factory.mktemp("long") / "long.csv", 40_000)


def test_ctrl_c_stops_training_and_leaves_the_playbook_as_it_was(trained: Shell, long: Path) -> None:
    before = contents(trained.book)
    code, said = interrupted("train", long, "--playbook", trained.book)
    assert (code, said.splitlines()[-1]) == (130, "stopped; the playbook is as it was")
    assert contents(trained.book) == before


def test_ctrl_c_stops_decisions_and_says_how_many_are_kept(trained: Shell, long: Path) -> None:
    code, said = interrupted("decide", long, "--playbook", trained.book, "--json", at='{"transaction_id"', after=0.1)
    assert code == 130
    with trained.open() as book:
        made = len(book.ledger.latest_decisions(40_000))
    assert 0 < made < 40_000
    assert said.splitlines()[-1] == f"stopped; {made:,} decisions were recorded and are kept"
    assert said.count("\n{") < made, "whatever was printed is recorded"


def test_ctrl_c_stops_outcomes_and_says_how_many_are_kept(trained: Shell, long: Path) -> None:
    rows = "".join(f"t{row},{row % 9 == 0:d},{row},maria\n" for row in range(20_000))
    file = trained.write("outcomes.csv", "transaction_id,label,amount,source\n" + rows)
    code, said = interrupted("learn", file, "--playbook", trained.book, at="row 1, field 'source'")
    assert code == 130
    with trained.open() as book:
        recorded = book.outcomes
    assert 0 < recorded < 20_000
    assert said.splitlines()[-1].startswith(f"stopped; {recorded:,} outcomes were recorded and are kept")


@pytest.mark.long
def test_ctrl_c_stops_a_comparison_and_its_workers(shell: Shell, long: Path) -> None:
    code, said = interrupted("compare", long, "--json", after=3.0)
    assert (code, said.splitlines()[-1]) == (130, "stopped; nothing was written")
