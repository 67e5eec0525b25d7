"""`decide -` and `learn -`: one answer for each line, in order, once it is recorded."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Shell
from tests.cli.test_history import payments, row

pytestmark = pytest.mark.wide

RISKY = {"id": "t1", "facts": {"amount": 2900, "vpn": True}}
BAD = '{"id": "t2", "amount": "12,5x"}'
TEXT = "User (3 days old) attempts $2,900 purchase at 3:15 AM through a VPN"


def lines(*content: Any) -> str:
    return "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in content)


# --- answers -----------------------------------------------------------------------------------------------------


def test_every_line_is_answered_in_order_and_bad_ones_by_their_number(trained: Any) -> None:
    stdin = lines(RISKY, "", BAD, TEXT, "{]", {"id": "t3", "facts": {"amount": 20, "vpn": False}})
    ran = trained.on_book("decide", "-", "--json", stdin=stdin, code=1)
    answers = ran.lines
    assert [answer.get("transaction_id") for answer in answers[::4]] == ["t1", "t3"]
    assert answers[1] == {"line": 3, "error": "field 'amount': expected a number, got '12,5x'"}
    assert answers[2]["transaction_id"].startswith("tx-")
    assert answers[3]["line"] == 5
    assert "5 lines answered, 2 of them with an error" in ran.err


def test_an_answer_is_the_decision_on_this_transaction_alone(trained: Any) -> None:
    (alone,) = trained.on_book("decide", json.dumps(RISKY), "--json").lines
    (by_text,) = trained.on_book("decide", TEXT, "--json").lines
    assert trained.on_book("decide", "-", "--json", stdin=lines(RISKY, TEXT)).lines == [alone, by_text]


def test_answers_for_people_are_one_short_line_each(trained: Any) -> None:
    ran = trained.on_book(
        "decide", "-", stdin=lines(RISKY, BAD, "hello", {"id": "a\nb", "facts": {"amount": 5}}), code=1
    )
    first, second, third, fourth = ran.out.splitlines()
    assert first.startswith("t1: DECLINE, ")
    assert "% fraud: " in first
    assert second == "line 2: field 'amount': expected a number, got '12,5x'"
    assert "nothing could be read from this" in third
    assert fourth.startswith("a b: APPROVE")


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        (b'{"id": \xff}\n', "not valid UTF-8 at byte 7"),
        (b'{"text": "' + b"x" * 2_100_000 + b'"}\n', "expected a line of at most 2,000,000 bytes"),
        (b"x" * 150_000, "the text has 150,000 characters, expected at most 100,000"),
        (b"{}", "expected at least one fact or a text"),
    ],
    ids=["utf-8", "long line", "long text", "empty"],
)
def test_a_line_that_is_no_transaction(trained: Any, stdin: bytes, message: str) -> None:
    state = trained.state()
    assert trained.on_book("decide", "-", "--json", stdin=stdin, code=1).lines == [{"line": 1, "error": message}]
    assert trained.state() == state


@pytest.mark.parametrize("command", ["decide", "learn"])
def test_no_line_is_no_error(trained: Any, command: str) -> None:
    state = trained.state()
    ran = trained.on_book(command, "-", stdin=b"\n \n")
    assert ran.out == ""
    assert "0 lines answered" in ran.err
    assert trained.state() == state


def test_a_strict_stream_stops_at_the_first_bad_line(trained: Any) -> None:
    stdin = lines(RISKY, BAD, {"id": "t3", "facts": {"amount": 20}})
    ran = trained.on_book("decide", "-", "--strict", "--json", stdin=stdin, code=2)
    assert [line.get("transaction_id") for line in ran.lines] == ["t1", None]
    assert "acefraud: standard input, row 2: field 'amount': expected a number" in ran.err
    with trained.open() as book:
        found = book.ledger.transaction_events(["t1", "t3"])
    assert [bool(found[name].decisions) for name in ("t1", "t3")] == [True, False]


def test_a_byte_order_mark_is_no_part_of_the_first_line(trained: Any) -> None:
    (answer,) = trained.on_book("decide", "-", "--json", stdin=b"\xef\xbb\xbf" + json.dumps(RISKY).encode()).lines
    assert answer["transaction_id"] == "t1"


def test_without_a_playbook_nothing_is_kept(shell: Any) -> None:
    ran = shell("decide", "-", "--json", stdin=lines(RISKY, {**RISKY, "id": "t2"}))
    assert [line["transaction_id"] for line in ran.lines] == ["t1", "t2"]
    assert "nothing is kept" in ran.err
    assert [path.name for path in shell.folder.iterdir()] == ["history.csv"]


@pytest.fixture(scope="module")
def shop_once(tmp_path_factory: pytest.TempPathFactory) -> Any:
    shell = Shell(tmp_path_factory.mktemp("shop"))
    shell.on_book("train", shell.write("payments.csv", payments()))
    return shell


@pytest.fixture
def shop(shell: Any, shop_once: Any) -> Any:
    """A shell whose playbook keeps the history of customers and terminals."""
    shutil.copy(shop_once.book, shell.book)
    return shell


def events(shell: Any) -> list[Any]:
    with shell.open() as book:
        return [event.payload for event in book.ledger.read()]


def one_by_one_and_together(shell: Any, command: str, stdin: str) -> tuple[Any, Any]:
    """The answers and events of a strict stream, which takes one line at a time, and of one that gathers all."""
    found = []
    before = shell.book.read_bytes()
    for option in (["--strict"], ["--batch-ms", "60000"]):
        for path in shell.folder.glob("book.db*"):
            path.unlink()
        shell.book.write_bytes(before)
        found.append((shell.on_book(command, "-", "--json", *option, stdin=stdin).out, events(shell)))
    return found[0], found[1]


def test_lines_decided_together_get_the_decisions_they_would_get_one_by_one(shop: Any) -> None:
    paid = [row(f"n{n}", 7 * n, customer_id=f"c{n % 3}", amount=20 + n) for n in range(40)]
    again = [paid[3], {**paid[5], "amount": 500}]  # the same id, as it was and with other facts
    alone, together = one_by_one_and_together(shop, "decide", lines(*paid, *again))
    assert together == alone
    answers = [json.loads(line) for line in together[0].splitlines()]
    assert [answer["transaction_id"] for answer in answers] == [each["tx_id"] for each in (*paid, *again)]
    assert len({answer["probability"] for answer in answers}) > 2, "history makes a difference here"


# --- outcomes ----------------------------------------------------------------------------------------------------


def test_outcomes_are_answered_by_what_became_of_them(trained: Any) -> None:
    trained.on_book("decide", "-", stdin=lines(RISKY))
    told = {"transaction_id": "t1", "label": "fraud"}
    stdin = lines(
        told, told, {"transaction_id": "nobody", "label": 1}, "words", {"transaction_id": "t1", "label": None}
    )
    ran = trained.on_book("learn", "-", "--json", stdin=stdin, code=1)
    first = {"transaction_id": "t1", "is_fraud": True, "ruling": "correct", "already_known": False, "waiting": False}
    first["bullets_added"] = []
    assert ran.lines[:2] == [first, {**first, "already_known": True}]
    assert (ran.lines[2]["transaction_id"], ran.lines[2]["waiting"]) == ("nobody", True)
    assert [line["line"] for line in ran.lines[3:]] == [4, 5]
    assert ran.lines[4]["error"] == "field 'label': there is no label yet"
    assert "5 lines answered, 2 of them with an error" in ran.err
    assert "2 outcomes heard: 1 decisions were right, 0 wrong, 1 not judged" in ran.err


def test_outcomes_for_people_are_one_short_line_each(trained: Any) -> None:
    trained.on_book("decide", "-", stdin=lines(RISKY))
    stdin = lines({"transaction_id": "t1", "label": 0}, {"transaction_id": "t1", "label": 0}, {"tx": 1})
    said = trained.on_book("learn", "-", stdin=stdin, code=1).out.splitlines()
    assert said == [
        "t1: legitimate, the decision was wrong",
        "t1: legitimate, known already",
        "line 3: expected a label, got the fields tx",
    ]


def test_bullets_that_an_outcome_brings_are_named(shell: Any) -> None:
    shell.on_book("playbook", "add", "VPN: decline")
    rows = [line.split(",") for line in (shell.folder / "history.csv").read_text().splitlines()[1:]]
    told = [
        {"transaction_id": each[0], "amount": int(each[2]), "vpn": each[3] == "true", "label": each[5]} for each in rows
    ]
    ran = shell.on_book("learn", "-", "--json", stdin=lines(*told))
    added = [name for each in ran.lines for name in each["bullets_added"]]
    assert f"; {len(added)} bullets learnt" in ran.err
    with shell.open() as book:
        assert set(added) <= set(book.snapshot().bullets)


def test_outcomes_heard_together_count_as_they_would_one_by_one(shop: Any) -> None:
    paid = [row(f"n{n}", 7 * n, customer_id=f"c{n % 3}") for n in range(12)]
    shop.on_book("decide", "-", stdin=lines(*paid))
    told = [{"tx_id": each["tx_id"], "label": n % 2, "at": row("", 200 + n)["time"]} for n, each in enumerate(paid)]
    told += [row("new", 300, label=1), {"tx_id": "new", "label": 0}, {**told[0], "label": 1}]
    alone, together = one_by_one_and_together(shop, "learn", lines(*told))
    assert together == alone


# --- files, paths and texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Customer uploaded report.csv and paid $900", "He paid $900 and sent report.csv"])
def test_a_text_that_names_a_file_is_a_text(trained: Any, text: str) -> None:
    (decision,) = trained.on_book("decide", text, "--json").lines
    assert decision["transaction_id"].startswith("tx-")


@pytest.mark.parametrize("path", ["nowhere.csv", "no/where.jsonl", "../no where.csv", "/no where/today.parquet"])
def test_a_path_to_nowhere_is_no_text(trained: Any, path: str) -> None:
    assert f"{path}: there is no such file" in trained.on_book("decide", path, code=2).err


def test_a_file_with_spaces_in_its_name_is_read(trained: Any) -> None:
    trained.rows("my list.jsonl", [RISKY])
    assert trained.on_book("decide", "my list.jsonl", "--json").lines[0]["transaction_id"] == "t1"


# --- processes ---------------------------------------------------------------------------------------------------


@contextmanager
def process(command: str, book: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from acefraud.cli import main; main()",
            command,
            "-",
            "--json",
            "--playbook",
            str(book),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def ask(started: subprocess.Popen[bytes], content: Any) -> Any:
    assert started.stdin is not None
    assert started.stdout is not None
    started.stdin.write(lines(content).encode())
    return json.loads(started.stdout.readline())


def test_an_answer_comes_before_the_next_line_and_is_recorded_by_then(trained: Any) -> None:
    with process("decide", trained.book) as deciding:
        for name in ("p1", "p2"):
            assert ask(deciding, {**RISKY, "id": name})["transaction_id"] == name
        with trained.open() as book:  # while the process goes on
            assert all(past.decisions for past in book.ledger.transaction_events(["p1", "p2"]).values())
        deciding.send_signal(signal.SIGINT)
        assert deciding.wait() == 130
        assert deciding.stderr is not None
        said = deciding.stderr.read().decode()
    assert "2 lines answered" in said
    assert "Traceback" not in said


def test_a_reader_that_goes_ends_the_stream_and_keeps_what_was_answered(trained: Any) -> None:
    with process("decide", trained.book) as deciding:
        assert deciding.stdin is not None
        assert deciding.stdout is not None
        assert deciding.stderr is not None
        ask(deciding, {**RISKY, "id": "p1"})
        deciding.stdout.close()
        deciding.stdin.write(lines({**RISKY, "id": "p2"}).encode())
        assert deciding.wait() == 0
        assert deciding.stderr.read().decode().splitlines()[-1] == "1 lines answered"
    with trained.open() as book:
        assert book.ledger.transaction_events(["p1"])["p1"].decisions


def test_a_reader_that_stops_reading_stops_the_intake_and_nothing_is_lost(trained: Any) -> None:
    """Lines that cannot be read cost no decision, so that pipes fill quickly."""
    content, offered = lines("{" + "x" * 500).encode(), 20_000
    with process("decide", trained.book) as deciding:
        assert deciding.stdin is not None
        assert deciding.stdout is not None
        ask(deciding, "{")
        os.set_blocking(deciding.stdin.fileno(), False)
        written = 0
        while written < offered * len(content) and select.select([], [deciding.stdin], [], 2.0)[1]:
            written += deciding.stdin.write(content[written % len(content) :]) or 0
        sent = written // len(content)
        assert sent < offered, "somebody takes in lines without end"
        os.set_blocking(deciding.stdin.fileno(), True)
        deciding.stdin.write(content[written % len(content) :])
        deciding.stdin.close()
        answers = [json.loads(line) for line in deciding.stdout]
    assert [answer["line"] for answer in answers] == list(range(2, sent + 3))
