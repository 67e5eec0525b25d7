"""Vectors on disk: what is found is whole and right, whatever happened to the files; what is not is embedded again."""

from __future__ import annotations

import fcntl
import logging
import pickle
import random
import resource
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from acefraud.core.bullet import Source
from acefraud.core.roles import Vectors
from acefraud.datasets import load_dataset
from acefraud.embedded import embedder as embedders
from acefraud.embedded import kept_vectors
from acefraud.embedded.embedder import CachedEmbedder, HashingEmbedder, embedder_named
from acefraud.embedded.kept_vectors import AT_ONCE, KeptVectors
from acefraud.evaluation import comparison
from acefraud.evaluation.comparison import Part
from acefraud.learning.casting import cast
from acefraud.settings import ModelSettings
from acefraud.storage import open_playbook

WIDTH = 8
HEADER, KEY, VECTOR = 64, 20, 4 * WIDTH
TEXTS = [f"text {n}" for n in range(30)]


def vectors_of(texts: Sequence[str], width: int = WIDTH) -> Vectors:
    """A vector for each text that only this text has."""
    rows = [np.random.default_rng(zlib.crc32(text.encode())).random(width) for text in texts]
    return np.array(rows, dtype=np.float32).reshape(len(texts), width)


def opened(folder: Path, **options: int | str) -> KeptVectors:
    return KeptVectors(folder, "toy", WIDTH, **options)  # type: ignore[arg-type]


def written(folder: Path, texts: Sequence[str] = TEXTS) -> None:
    kept = opened(folder)
    kept.keep(texts, vectors_of(texts))
    kept.flush()


def right(kept: KeptVectors, texts: Sequence[str]) -> list[str]:
    """The texts that are found; each with its own vector."""
    found, vectors = kept.find(texts)
    there = [text for text, yes in zip(texts, found.tolist(), strict=True) if yes]
    np.testing.assert_array_equal(vectors[found], vectors_of(there))
    return there


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "vectors"


@pytest.fixture(autouse=True)
def _warnings_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_vectors, "_told", set())


# --- keeping and finding -----------------------------------------------------------------------------------------


def test_what_is_kept_is_found_by_whoever_opens_the_files_next(folder: Path) -> None:
    written(folder)
    kept = opened(folder)
    wanted = ["unknown", *reversed(TEXTS), TEXTS[3], "", "Überweisung", "\ud800"]
    assert right(kept, wanted) == [*reversed(TEXTS), TEXTS[3]]
    assert len(kept) == len(TEXTS)
    assert kept.find([])[1].shape == (0, WIDTH)


def test_what_still_waits_to_be_written_is_found_too_and_is_written_when_it_is_let_go_of(folder: Path) -> None:
    kept = opened(folder)
    kept.keep(TEXTS, vectors_of(TEXTS))
    assert len(kept) == 0
    assert right(kept, TEXTS) == TEXTS
    del kept
    assert right(opened(folder), TEXTS) == TEXTS


def test_many_are_written_at_once(folder: Path) -> None:
    kept = opened(folder)
    texts = [f"n{n}" for n in range(AT_ONCE)]
    kept.keep(texts[:-1], vectors_of(texts[:-1]))
    assert not folder.exists()
    kept.keep(texts[-1:], vectors_of(texts[-1:]))
    assert right(opened(folder), texts) == texts


def test_a_text_is_written_once(folder: Path) -> None:
    written(folder)
    written(folder, [*TEXTS, "new", "new"])
    assert len(opened(folder)) == len(TEXTS) + 1


def test_rows_are_found_in_the_sorted_part_and_among_the_latest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_vectors, "_LATEST", 10)
    kept = opened(folder)
    for n in range(50):
        texts = [f"{n}/{m}" for m in range(7)]
        kept.keep(texts, vectors_of(texts))
        kept.flush()
        everything = [f"{n}/{m}" for n in range(n + 1) for m in range(7)]
        assert right(kept, everything) == everything


def test_what_another_process_adds_is_seen_without_opening_anew(folder: Path) -> None:
    kept = opened(folder)
    assert right(kept, TEXTS) == []
    written(folder, TEXTS[:5])
    assert right(kept, TEXTS) == TEXTS[:5]
    written(folder, TEXTS[5:])
    assert right(kept, TEXTS) == TEXTS


def test_only_digests_of_texts_are_written_down_and_only_the_user_may_read_them(folder: Path) -> None:
    secret = "4111 1111 1111 1111, N. Rossi"
    written(folder, [secret])
    for file in folder.iterdir():
        assert secret[:9].encode() not in file.read_bytes()
        assert file.stat().st_mode & 0o077 == 0


def test_names_that_are_no_file_names_do_not_lead_out_of_the_folder(folder: Path) -> None:
    for name in ("../a:b/c", "../a:b_c"):
        kept = KeptVectors(folder, name, WIDTH)
        kept.keep([name], vectors_of([name]))
        kept.flush()
    assert right(KeptVectors(folder, "../a:b/c", WIDTH), ["../a:b/c"])
    assert [path.name for path in folder.parent.iterdir()] == ["vectors"]


def test_vectors_of_another_width_than_was_said_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="expected 1 rows of 8 numbers"):
        opened(folder).keep(["a"], np.zeros((1, 9), dtype=np.float32))


# --- several processes, and processes that die -------------------------------------------------------------------

ADDING = """
import sys, zlib
from pathlib import Path
import numpy as np
from acefraud.embedded import kept_vectors
kept_vectors.AT_ONCE = 3
kept = kept_vectors.KeptVectors(Path(sys.argv[1]), "toy", 8)
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[2]), int(sys.argv[3])):
    text = f"text {n}"
    row = np.random.default_rng(zlib.crc32(text.encode())).random(8)
    kept.keep([text], np.array([row], dtype=np.float32))
"""


def adding(folder: Path, start: int, stop: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", ADDING, str(folder), str(start), str(stop)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def test_two_processes_add_at_once_and_nothing_is_lost_or_written_twice(folder: Path) -> None:
    both = [adding(folder, 0, 400), adding(folder, 200, 600)]
    go(*both)
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    texts = [f"text {n}" for n in range(600)]
    kept = opened(folder)
    assert right(kept, texts) == texts
    assert len(kept) == 600


def kill_in_the_middle(folder: Path, times: int) -> None:
    chance = random.Random(7)
    start = before = 0
    for _ in range(times):
        process = adding(folder, start, 10**9)
        go(process)
        time.sleep(chance.uniform(0.02, 0.15))
        process.kill()
        process.communicate(timeout=30)
        assert process.returncode == -signal.SIGKILL
        kept = opened(folder)
        there = right(kept, [f"text {n}" for n in range(start + 20_000)])
        assert len(there) == len(kept) > before
        assert there == [f"text {n}" for n in range(len(there))], "what was added before is still there"
        start = before = len(there)


def test_killed_while_adding_what_is_there_is_whole(folder: Path) -> None:
    kill_in_the_middle(folder, 1)


@pytest.mark.long
def test_killed_while_adding_again_and_again(folder: Path) -> None:
    kill_in_the_middle(folder, 15)


def test_a_lock_that_is_never_let_go_of_holds_nobody_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kept_vectors, "_PATIENCE_SECONDS", 0.05)
    written(folder, TEXTS[:1])
    with (folder / "toy.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        written(folder)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "does not let go" in caplog.text
    assert right(opened(folder), TEXTS) == TEXTS[:1]


# --- damage ------------------------------------------------------------------------------------------------------


def cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def heals(folder: Path) -> None:
    """What is found is right, and after everything was kept again everything is found."""
    right(opened(folder), TEXTS)
    written(folder)
    assert right(opened(folder), TEXTS) == TEXTS


@pytest.mark.parametrize("length", [HEADER, HEADER + 1, HEADER + 7 * KEY, HEADER + 8 * KEY - 1, HEADER + 29 * KEY + 5])
def test_keys_cut_short_are_as_many_as_are_whole(folder: Path, length: int) -> None:
    written(folder)
    cut(folder / "toy.keys", length)
    assert right(opened(folder), TEXTS) == TEXTS[: (length - HEADER) // KEY]
    heals(folder)


@pytest.mark.parametrize("length", [HEADER, HEADER + 3, HEADER + 7 * VECTOR, HEADER + 8 * VECTOR - 1])
def test_a_key_whose_vector_is_not_whole_is_none(folder: Path, length: int) -> None:
    written(folder)
    cut(folder / "toy.vectors", length)
    assert right(opened(folder), TEXTS) == TEXTS[: (length - HEADER) // VECTOR]
    written(folder, ["a new one"])
    assert right(opened(folder), ["a new one", *TEXTS]) == ["a new one", *TEXTS[: (length - HEADER) // VECTOR]]
    heals(folder)


def test_vectors_without_keys_are_written_over(folder: Path) -> None:
    written(folder, TEXTS[:5])
    with (folder / "toy.vectors").open("ab") as file:
        file.write(b"x" * (3 * VECTOR + 1))
    assert right(opened(folder), TEXTS) == TEXTS[:5]
    written(folder, TEXTS[:6])
    assert right(opened(folder), TEXTS) == TEXTS[:6]
    heals(folder)


@pytest.mark.parametrize("file", ["toy.keys", "toy.vectors"])
@pytest.mark.parametrize("length", [0, 4, 8, 30, HEADER - 1])
def test_a_header_cut_short_begins_anew(folder: Path, file: str, length: int) -> None:
    written(folder)
    cut(folder / file, length)
    assert right(opened(folder), TEXTS) == []
    heals(folder)


@pytest.mark.parametrize("file", ["toy.keys", "toy.vectors"])
def test_one_file_without_the_other_begins_anew(folder: Path, file: str) -> None:
    written(folder)
    (folder / file).unlink()
    assert right(opened(folder), TEXTS) == []
    heals(folder)


def test_files_that_do_not_belong_together_are_not_used(tmp_path: Path) -> None:
    written(tmp_path / "one")
    written(tmp_path / "other", list(reversed(TEXTS)))
    (tmp_path / "one" / "toy.keys").write_bytes((tmp_path / "other" / "toy.keys").read_bytes())
    assert len(opened(tmp_path / "one")) == 0
    heals(tmp_path / "one")


@pytest.mark.parametrize("damage", [b"\0" * VECTOR, b"\xff" * VECTOR, b"!"])
def test_a_vector_that_was_damaged_is_not_found(folder: Path, damage: bytes) -> None:
    written(folder)
    with (folder / "toy.vectors").open("r+b") as file:
        file.seek(HEADER + 4 * VECTOR)
        file.write(damage)
    assert right(opened(folder), TEXTS) == [*TEXTS[:4], *TEXTS[5:]]
    heals(folder)


def test_files_cut_short_while_they_are_in_use_are_looked_at_anew(folder: Path) -> None:
    written(folder)
    kept = opened(folder)
    assert right(kept, TEXTS) == TEXTS
    with (folder / "toy.vectors").open("r+b") as file:
        file.truncate(HEADER + 2 * VECTOR)
    assert right(kept, TEXTS) == TEXTS[:2]


@pytest.mark.parametrize("file", ["toy.keys", "toy.vectors"])
def test_a_file_of_somebody_else_is_left_alone(folder: Path, file: str, caplog: pytest.LogCaptureFixture) -> None:
    written(folder)
    (folder / file).write_bytes(b"my own notes, and long enough to be more than a header: " * 3)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for _ in range(2):
        kept = opened(folder)
        assert right(kept, TEXTS) == []
        kept.keep(TEXTS, vectors_of(TEXTS))
        kept.flush()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (told,) = caplog.records
    assert told.levelno == logging.WARNING
    assert "left untouched" in told.getMessage()


def test_another_width_or_revision_begins_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(folder)
    other = KeptVectors(folder, "toy", 5)
    assert not other.find(TEXTS)[0].any()
    assert right(opened(folder), TEXTS) == TEXTS, "looking alone changes nothing"
    other.keep(TEXTS, vectors_of(TEXTS, 5))
    other.flush()
    np.testing.assert_array_equal(KeptVectors(folder, "toy", 5).find(TEXTS)[1], vectors_of(TEXTS, 5))
    assert right(opened(folder), TEXTS) == []
    written(folder)
    assert right(opened(folder, revision="2"), TEXTS) == []
    assert right(opened(folder), TEXTS) == TEXTS
    assert "begun anew" in caplog.text
    assert len(caplog.records) == 1


def test_a_folder_that_cannot_be_written_costs_one_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.parent.mkdir()
    folder.write_text("a file in place of the folder")
    for _ in range(3):
        cached = CachedEmbedder(HashingEmbedder(), kept=KeptVectors(folder, "hashing-512", 512))
        np.testing.assert_array_equal(cached.embed(TEXTS), HashingEmbedder().embed(TEXTS))
        cached.embed([f"another {n}" for n in range(AT_ONCE)])
    assert len(caplog.records) == 1
    assert folder.read_text() == "a file in place of the folder"


@pytest.mark.parametrize("size", [HEADER, HEADER + 10 * VECTOR, HEADER + 11 * VECTOR + 1, HEADER + 25 * KEY])
def test_a_full_disk_costs_one_warning_and_no_row(folder: Path, size: int, caplog: pytest.LogCaptureFixture) -> None:
    written(folder, TEXTS[:5])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        kept = opened(folder)
        kept.keep(TEXTS, vectors_of(TEXTS))
        kept.flush()
        kept.keep(["one more"], vectors_of(["one more"]))
        kept.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(caplog.records) == 1
    assert "File too large" in caplog.text
    assert right(opened(folder), TEXTS)[:5] == TEXTS[:5]
    heals(folder)


def test_beyond_the_limit_the_files_are_begun_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    limit = 2 * HEADER + 12 * (KEY + VECTOR)
    kept, reader = opened(folder, limit=limit), opened(folder)
    sizes = []
    for text in TEXTS:
        kept.keep([text], vectors_of([text]))
        kept.flush()
        assert right(reader, [text]) == [text]
        sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
    assert max(sizes) == limit
    assert right(kept, TEXTS) == TEXTS[24:]
    kept.keep(TEXTS, vectors_of(TEXTS))
    kept.flush()
    assert right(kept, TEXTS) == TEXTS[-12:], "more at once than there is room for"
    assert not caplog.records


# --- the embedder that uses them ---------------------------------------------------------------------------------


class Batches(HashingEmbedder):
    """Remembers what it was asked for, call by call."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return super().embed(texts)


def test_memory_comes_first_then_the_disk_and_what_is_missing_is_embedded_in_one_call(folder: Path) -> None:
    first = CachedEmbedder(Batches(), kept=KeptVectors(folder, "hashing-512", 512))
    first.embed(TEXTS[:10])
    del first
    embedder = Batches()
    second = CachedEmbedder(embedder, kept=KeptVectors(folder, "hashing-512", 512))
    vectors = second.embed([*TEXTS, *TEXTS])
    np.testing.assert_array_equal(vectors, HashingEmbedder().embed([*TEXTS, *TEXTS]))
    assert embedder.asked == [TEXTS[10:]]
    assert second.embedded == 20
    for file in folder.iterdir():
        file.unlink()
    np.testing.assert_array_equal(second.embed(TEXTS), HashingEmbedder().embed(TEXTS))
    assert second.embedded == 20


def test_it_can_be_handed_to_another_process(folder: Path) -> None:
    first = CachedEmbedder(HashingEmbedder(), kept=KeptVectors(folder, "hashing-512", 512))
    first.embed([f"n{n}" for n in range(AT_ONCE)])
    second = pickle.loads(pickle.dumps(first))
    assert (second.name, second.embedded) == ("hashing-512", 0)
    second.embed(["n1", "n2", "new"])
    assert second.embedded == 1


def test_the_embedders_say_how_long_their_vectors_are() -> None:
    for make in embedders.EMBEDDERS.values():
        assert make().embed(["a VPN"]).shape == (1, make().dimensions)
        assert make().revision


# --- commands ----------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's cache folder, in a place with a playbook that has a bullet whose condition cannot be read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    for name in ("ACEFRAUD_CACHE", "ACEFRAUD_EMBEDDER", "ACEFRAUD_CONFIG", "ACEFRAUD_MODELS"):
        monkeypatch.delenv(name, raising=False)
    with open_playbook(tmp_path / "book.db") as book:
        book.add_bullet("Gift cards bought in a hurry smell of fraud", source=Source.OFFLINE)
    rows = [f't{n},"${n} for gift cards, in a hurry, case {n}",{n % 2}' for n in range(1, 41)]
    (tmp_path / "cases.csv").write_text("\n".join(["id,text,label", *rows]) + "\n")
    yield tmp_path / "xdg" / "acefraud"
    embedders._named.cache_clear()


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """A command as a process of its own would run it: with nothing in memory."""
    from acefraud.cli import main

    embedders._named.cache_clear()
    monkeypatch.setattr(sys, "argv", ["acefraud", *arguments])
    try:
        main()
    except SystemExit as left:
        if left.code:
            raise


@pytest.mark.parametrize("name", ["decide", "backtest"])
def test_a_second_run_over_the_same_transactions_embeds_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for expected in (41, 0):  # forty transactions and a bullet
        command(monkeypatch, name, "cases.csv", "--json", "--playbook", "book.db")
        assert embedder_named("wordllama", cache / "vectors").embedded == expected


@pytest.mark.parametrize("off", ["--no-cache", "ACEFRAUD_CACHE", "acefraud.toml"])
def test_where_nothing_is_to_be_kept_nothing_is_written(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, off: str
) -> None:
    flags = ["--no-cache"] if off == "--no-cache" else []
    if off == "ACEFRAUD_CACHE":
        monkeypatch.setenv("ACEFRAUD_CACHE", "none")
    if off == "acefraud.toml":
        (tmp_path / "acefraud.toml").write_text('[llm]\ncache = "none"\n')
    command(monkeypatch, "decide", "cases.csv", "--json", "--playbook", "book.db", *flags)
    embedders._named.cache_clear()
    assert not cache.exists()
    assert not list(tmp_path.rglob("*.vectors"))


def test_vectors_lie_beside_the_replies(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "replies.db"
    command(monkeypatch, "decide", "cases.csv", "--json", "--playbook", "book.db", "--cache", str(elsewhere))
    embedders._named.cache_clear()
    assert (elsewhere.parent / "vectors" / "wordllama-l2-256.keys").exists()
    assert not cache.exists()


def test_the_library_alone_writes_nothing(cache: Path) -> None:
    from acefraud import BulletPlaybook, HybridSelector

    playbook = BulletPlaybook()
    playbook.add_bullet("Gift cards bought in a hurry smell of fraud")
    HybridSelector().select_bullets("$20 for gift cards", "fraud_detection", playbook)
    assert cast(ModelSettings()).embedder == "wordllama"
    assert not cache.exists()


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_second_comparison_embeds_nothing_in_its_workers_either(folder: Path, processes: int) -> None:
    data = load_dataset("complex_fraud_detection")
    part = comparison.limited(Part(0, data.train, data.test, tuple(range(len(data.test)))), 60)
    on_disk, embedded = [], []
    for _ in range(2):
        embedders._named.cache_clear()
        players = cast(ModelSettings(embedding="hashing"), vectors=folder)
        comparison.compare([part], name="world", independent=True, players=players, processes=processes)
        embedded.append(embedder_named("hashing", folder).embedded)
        del players
        embedders._named.cache_clear()
        on_disk.append(len(KeptVectors(folder, "hashing-512", 512, revision="1")))
    assert on_disk[0] == on_disk[1] > 0
    assert embedded == ([on_disk[0], 0] if processes == 1 else [0, 0]), "a worker has an embedder of its own"
