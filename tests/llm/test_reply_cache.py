"""Cached replies are found again by every process, and never confused."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acefraud.errors import ModelUnavailable, StoreError
from acefraud.llm.call import Call, Message, Reply, Role, TokenLogprobs
from acefraud.llm.reply_cache import ReplyCache

WRITER = """
import sys
from pathlib import Path
from acefraud.llm.reply_cache import ReplyCache
from acefraud.llm.call import Reply

store = ReplyCache(Path(sys.argv[1]))
for n in range(100):
    store.put({f"{sys.argv[2]}-{n}": Reply(text=f"{sys.argv[2]} {n}"), f"both-{n}": Reply(text="the same")})
store.close()
"""


def call(text: str, role: Role = Role.JUDGE) -> Call:
    return Call(role=role, model="openai:one", messages=(Message(role="user", content=text),))


def embedding(*texts: str) -> Call:
    return Call(role=Role.EMBEDDING, model="openai:vectors", texts=texts)


class Server:
    """Answers with what it was asked, and remembers it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.error: Exception | None = None
        self.seconds = 0.0
        self.gate: asyncio.Event | None = None

    async def send(self, call: Call) -> Reply:
        self.calls.append(call)
        await asyncio.sleep(self.seconds)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        if call.role is Role.EMBEDDING:
            vectors = tuple((float(len(text)), 0.1) for text in call.texts)
            return Reply(vectors=vectors, input_tokens=len(call.texts), cost=0.5)
        chances = TokenLogprobs(token="é", logprob=-0.1, others={"x": -2.5})
        return Reply(text=f"é {call.messages[0].content}", logprobs=(chances,), input_tokens=3, cost=0.25)

    async def close(self) -> None:
        pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "below" / "replies.db"


@pytest.fixture
def store(path: Path) -> Iterator[ReplyCache]:
    with closing(ReplyCache(path)) as store:
        yield store


def test_a_reply_is_found_again_after_the_file_was_closed(path: Path) -> None:
    server = Server()

    async def play() -> Reply:
        cached = ReplyCache(path)
        try:
            return await cached.answer(call("is it?"), server.send)
        finally:
            cached.close()
            cached.close()

    first, second = asyncio.run(play()), asyncio.run(play())
    assert len(server.calls) == 1
    assert (first.cached, first.cost) == (False, 0.25)
    assert second == first.model_copy(update={"cached": True, "cost": 0.0})


def test_roles_share_cached_replies(store: ReplyCache) -> None:
    server = Server()
    calls = [call("is it?", Role.AGENT), call("is it?", Role.JUDGE), call("is it not?", Role.JUDGE)]
    assert [asyncio.run(store.answer(sent, server.send)).cached for sent in calls] == [False, True, False]
    assert len(server.calls) == 2


def test_only_unseen_texts_are_sent_in_one_call(store: ReplyCache) -> None:
    server = Server()
    asyncio.run(store.answer(embedding("a", "bb"), server.send))
    reply = asyncio.run(store.answer(embedding("dddd", "bb", "ccc", "dddd", "a"), server.send))
    assert [sent.texts for sent in server.calls] == [("a", "bb"), ("dddd", "ccc")]
    assert [vector[0] for vector in reply.vectors] == [4.0, 2.0, 3.0, 4.0, 1.0]
    assert (reply.cached, reply.cost, reply.input_tokens) == (False, 0.5, 2)
    again = asyncio.run(store.answer(embedding("ccc", "a"), server.send))
    assert (again.vectors, again.cached, again.cost) == (((3.0, 0.1), (1.0, 0.1)), True, 0.0)
    assert len(server.calls) == 2


def test_more_texts_than_one_statement_takes(store: ReplyCache) -> None:
    server = Server()
    texts = tuple(f"{n:05}" + "x" * (n % 7) for n in range(1301))
    first = asyncio.run(store.answer(embedding(*texts), server.send))
    again = asyncio.run(store.answer(embedding(*texts), server.send))
    assert again.cached
    assert again.vectors == first.vectors
    assert len(server.calls) == 1


def test_equal_calls_in_flight_are_sent_once(store: ReplyCache) -> None:
    server = Server()
    server.seconds = 0.01

    async def send_all() -> list[Reply]:
        same = [store.answer(call("same", role), server.send) for role in (Role.AGENT, Role.JUDGE, Role.JUDGE)]
        return await asyncio.gather(
            *same, store.answer(call("other"), server.send), store.answer(embedding("a"), server.send)
        )

    replies = asyncio.run(send_all())
    assert len(server.calls) == 3
    assert [reply.cached for reply in replies] == [False, True, True, False, False]
    assert [reply.cost for reply in replies] == [0.25, 0.0, 0.0, 0.25, 0.5]


@pytest.mark.parametrize("failure", ["error", "cancelled"])
def test_a_call_waits_for_an_equal_one_and_is_sent_if_that_one_fails(store: ReplyCache, failure: str) -> None:
    server = Server()
    server.seconds = 0.01  # the second call is still under way when the error is taken back

    async def send_both() -> Reply:
        server.gate = asyncio.Event()
        first, second = (asyncio.create_task(store.answer(call("same"), server.send)) for _ in range(2))
        while not server.calls:
            await asyncio.sleep(0)
        if failure == "cancelled":
            first.cancel()
        else:
            server.error = ModelUnavailable("down")
        server.gate.set()
        await asyncio.wait([first])
        server.error = None
        return await second

    assert not asyncio.run(send_both()).cached
    assert len(server.calls) == 2


def test_a_failure_is_not_cached(store: ReplyCache) -> None:
    server = Server()
    server.error = ModelUnavailable("down")
    for wanted in (call("is it?"), embedding("a")):
        with pytest.raises(ModelUnavailable):
            asyncio.run(store.answer(wanted, server.send))
    server.error = None
    assert not asyncio.run(store.answer(call("is it?"), server.send)).cached
    assert not asyncio.run(store.answer(embedding("a"), server.send)).cached


def test_an_unusable_reply_is_forgotten(store: ReplyCache) -> None:
    server = Server()
    for wanted in (call("is it?"), embedding("a", "b")):
        asyncio.run(store.answer(wanted, server.send))
        store.forget(wanted)
        store.forget(wanted)
        assert not asyncio.run(store.answer(wanted, server.send)).cached
    assert len(server.calls) == 4


def test_only_its_owner_may_read_it(store: ReplyCache, path: Path) -> None:
    store.put({"key": Reply(text="secret")})
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes[path.name] == 0o600
    assert set(modes.values()) == {0o600}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_several_processes_write_at_once(path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], env=environment) for name in ("one", "two")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    with closing(ReplyCache(path)) as store:
        keys = [f"{name}-{n}" for name in ("one", "two", "both") for n in range(100)]
        found = store.get(keys)
    assert set(found) == set(keys)
    assert found["two-99"].text == "two 99"
    assert found["both-5"].text == "the same"


def test_a_file_that_is_not_a_cache_is_named_and_left_unchanged(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are notes, and no database at all\n" * 40)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE thing (x)")
    for path in (text, other, tmp_path):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(StoreError, match=str(path)):
            ReplyCache(path)
        assert before is None or path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["notes.txt", "other.db"]


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    ReplyCache(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer version"):
        ReplyCache(path)


@pytest.mark.parametrize("body", [b"not compressed", zlib.compress(b'{"nonsense": 1}')])
def test_a_damaged_reply_is_no_reply(store: ReplyCache, path: Path, body: bytes) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO answer VALUES ('key', ?)", (body,))
        connection.commit()
    with pytest.raises(StoreError, match=r"replies\.db is damaged"):
        store.get(["key"])


def test_a_damaged_file_is_named(path: Path) -> None:
    with closing(ReplyCache(path)) as store:
        store.put({f"key {n}": Reply(text=str(n) * 500) for n in range(2000)})
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 4)
        file.write(b"\xff" * (size // 2))

    def read() -> None:
        with closing(ReplyCache(path)) as store:
            store.get([f"key {n}" for n in range(2000)])

    with pytest.raises(StoreError, match=r"replies\.db"):
        read()
