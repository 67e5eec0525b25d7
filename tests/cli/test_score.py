"""`acefraud score`: a file of scores for each file of transactions, the same wherever it is made."""

from __future__ import annotations

import io
import re
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from tests.cli.conftest import Shell, history
from tests.learning.test_parts import COLUMNS, HISTORY, orders

from acefraud import Learner, Policy, SchemaMapping, Verdict, load_transactions, open_playbook
from acefraud.cli import console
from acefraud.engine import batch_scoring
from acefraud.engine.batch_scoring import Scorer

TO = ("--to", "scores")


@pytest.fixture
def days(trained: Shell) -> Shell:
    """A playbook, and three files of transactions for it: two in Parquet, one as CSV."""
    (trained.folder / "days").mkdir()
    rows = pl.read_csv(history(120).encode())
    for number in range(2):
        rows[40 * number : 40 * number + 40].drop("label").write_parquet(trained.folder / f"days/day-{number}.parquet")
    rows[80:].write_csv(trained.folder / "days/day-2.csv")
    return trained


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_each_file_gets_a_file_of_scores_and_nothing_is_recorded(days: Shell) -> None:
    before = days.state()
    said = days.on_book("score", "days", *TO, "--json").json
    assert (said["parts"], said["skipped"], said["rows"], said["bad_rows"]) == (3, 0, 120, 0)
    assert sorted(contents(days.folder / "scores")) == ["day-0.parquet", "day-1.parquet", "day-2.csv"]
    assert days.state() == before
    scores = pl.read_parquet(days.folder / "scores/day-1.parquet")
    assert scores.columns == ["id", "probability", "verdict"]
    assert sum(said["verdicts"].values()) == 120
    with days.open() as book:
        decided = Learner(book).score_sync(pl.read_parquet(days.folder / "days/day-1.parquet"))
    assert scores["id"].to_list() == [each.transaction.id for each in decided]
    assert scores["probability"].to_list() == [each.probability for each in decided]
    assert scores["verdict"].to_list() == [str(each.verdict) for each in decided]
    assert scores["verdict"].n_unique() == 2


def test_scores_are_not_written_over_transactions(days: Shell) -> None:
    before = contents(days.folder / "days")
    told = days.on_book("score", "days", "--to", "days", "--force", code=2).err
    assert "its scores would replace the transactions in" in told
    assert contents(days.folder / "days") == before


def test_a_second_run_skips_what_is_there(days: Shell) -> None:
    days.on_book("score", "days/*.parquet", *TO)
    first = contents(days.folder / "scores")
    (days.folder / "scores/day-1.parquet").write_bytes(b"kept")
    shown = days.on_book("score", "days", *TO)
    assert "40 rows of 1 files scored" in shown.out
    assert "2 files were skipped" in shown.out
    assert (days.folder / "scores/day-1.parquet").read_bytes() == b"kept"
    assert days.on_book("score", "days", *TO, "--force", "--json").json["parts"] == 3
    assert contents(days.folder / "scores").items() >= first.items()


def test_policies_and_review_rules_count(days: Shell) -> None:
    with days.open() as book:
        book.set_threshold(review=(0.05, 0.6))
        book.add_bullet("amount above 2500", policy=Policy(verdict=Verdict.DECLINE))
    days.on_book("score", "days/day-0.parquet", *TO)
    scores = pl.read_parquet(days.folder / "scores/day-0.parquet")
    rows = pl.read_parquet(days.folder / "days/day-0.parquet")
    with days.open() as book:
        verdicts = [str(each.verdict) for each in Learner(book).score_sync(rows)]
    assert scores["verdict"].to_list() == verdicts
    assert {"DECLINE", "REVIEW"} <= set(verdicts)


def test_a_scorer_knows_what_the_playbook_remembers_of_entities(tmp_path: Path) -> None:
    rows, columns = orders(), {**COLUMNS, "history": {**HISTORY, "label_delay": "1d"}}
    with open_playbook(tmp_path / "book.db") as book:
        learner = Learner(book)
        learner.study(rows[:600], mapping=SchemaMapping(**columns, id="id"))
        expected = learner.score_all(rows[600:700])
        scorer = Scorer.of(book)
        later = load_transactions(rows[600:700], remembered=learner.mapping)
        assert scorer.score(later, scorer.snapshot())[0].tolist() == expected.probabilities.tolist()
        assert scorer.ledger.last_seq() == 0


@pytest.mark.wide
@pytest.mark.enable_socket
def test_processes_and_a_cluster_write_the_same_bytes(days: Shell) -> None:
    distributed = pytest.importorskip("distributed")
    days.on_book("score", "days", "--to", "one")
    days.on_book("score", "days", "--to", "two", "--workers", "2")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        days.on_book("score", "days", "--to", "dask", "--scheduler", cluster.scheduler_address)
    folders = [contents(days.folder / name) for name in ("one", "two", "dask")]
    assert folders[0] == folders[1] == folders[2]


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.wide)])
def test_a_terminal_shows_rows_per_second(days: Shell, workers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=shown, force_terminal=True, width=200))
    days.on_book("score", "days", *TO, "--workers", workers)
    assert re.search(r"scoring.*100%.* [\d,]+ rows/s", shown.getvalue())
    days.on_book("train", "days/*-2.csv", "--workers", workers)
    for step in ("reading", "facts", "learning"):
        assert re.search(rf"{step}.* [\d,]+ rows/s", shown.getvalue())


# --- what goes wrong ---


def test_no_file_matches(days: Shell) -> None:
    assert "nights/*.parquet: no file matches" in days.on_book("score", "nights/*.parquet", *TO, code=2).err
    assert not (days.folder / "scores").exists()


def test_the_folder_of_the_scores_is_a_file(days: Shell) -> None:
    days.write("scores", "something else")
    assert "scores: this is a file" in days.on_book("score", "days", *TO, code=2).err


def test_two_files_that_would_have_the_same_scores(days: Shell) -> None:
    days.rows("days/day-0.jsonl", [{"id": "t1", "amount": 5}])
    assert "scores/day-0.parquet too" in days.on_book("score", "days", *TO, code=2).err


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.wide)])
def test_a_part_that_cannot_be_read_is_named_and_the_others_are_complete(days: Shell, workers: str) -> None:
    days.write("days/day-1.parquet", b"PAR1 and nothing else")
    assert "days/day-1.parquet" in days.on_book("score", "days", *TO, "--workers", workers, code=2).err
    assert not (days.folder / "scores/day-1.parquet").exists()
    pl.read_parquet(days.folder / "scores/day-0.parquet")


def test_a_write_that_fails_leaves_no_file(days: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, target: Path) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(Path, "replace", fail)
    with days.open() as book, pytest.raises(OSError, match="full"):
        batch_scoring._score_part(
            Scorer.of(book), days.folder / "days/day-2.csv", "day-2.csv", days.folder / "day-2.csv"
        )
    assert not list(days.folder.glob("*day-2*"))


def test_rows_that_cannot_be_read_are_told(days: Shell) -> None:
    rows = pl.read_csv(days.folder / "days/day-2.csv").cast({"amount": pl.String})
    rows[0, "amount"] = "much"
    rows.write_csv(days.folder / "days/day-2.csv")
    ran = days.on_book("score", "days/day-2.csv", *TO, "--json")
    assert (ran.json["rows"], ran.json["bad_rows"]) == (39, 1)
    assert "skipped: days/day-2.csv, row 1, field 'amount'" in ran.err
    assert "row 1" in days.on_book("score", "days/day-2.csv", *TO, "--strict", "--force", code=2).err
