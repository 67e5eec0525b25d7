"""The embedder on a model: vectors fetched ahead, of length one and of the right width, once for each text."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from acefraud.errors import ModelMalformed, ModelUnavailable
from acefraud.llm.call import Call, Reply
from acefraud.llm.client import ClientOptions, ModelClient
from acefraud.llm.provider import ProviderCaller
from acefraud.roles.model.embedder import BATCH, DEFAULT_EMBEDDING, NOTHING, ModelEmbedder
from acefraud.roles.model.prompts import MAX_SHOWN

if TYPE_CHECKING:
    from tests.llm.conftest import Loopback

http = pytest.mark.enable_socket
TEXTS = ["a new device", "a VPN at night", "a new device and a VPN"]


class Vectors:
    """Answers with vectors of the width it is told, whatever the text."""

    def __init__(self, *widths: int, factor: float = 5.0) -> None:
        self.widths = list(widths)
        self.factor = factor
        self.sent: list[Call] = []
        self.forgotten: list[Call] = []

    async def send(self, call: Call) -> Reply:
        self.sent.append(call)
        await asyncio.sleep(0)
        width = self.widths.pop(0) if len(self.widths) > 1 else self.widths[0]
        return Reply(vectors=tuple((self.factor * (1 + len(text)),) * width for text in call.texts))

    def forget(self, call: Call) -> None:
        self.forgotten.append(call)

    async def close(self) -> None:
        pass


@http
def test_fetched_ahead_and_asked_for_once(loopback: Loopback) -> None:
    server = loopback()

    async def play() -> None:
        async with ModelClient(ClientOptions(attempts=1)) as client:
            embedder = ModelEmbedder(client, base_url=server.base_url)
            assert embedder.fetches_ahead
            assert embedder.name == DEFAULT_EMBEDDING
            await embedder.fetch([*TEXTS, TEXTS[0]])
            assert len(server.log) == 1
            vectors = embedder.embed([TEXTS[2], TEXTS[0], TEXTS[2]])
            assert vectors.shape == (3, 1536)
            assert vectors.dtype == np.float32
            assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
            assert (vectors[0] == vectors[2]).all()
            near, far = float(vectors[0] @ vectors[1]), float(vectors[1] @ embedder.embed([TEXTS[1]])[0])
            assert near > far
            await embedder.fetch(TEXTS)
            assert len(server.log) == 1
            await embedder.fetch([*TEXTS, "something else"])

    asyncio.run(play())
    assert [json.loads(call.body)["input"] for call in server.log] == [TEXTS, ["something else"]]


@http
def test_inside_a_running_loop_and_outside_of_one_it_asks_itself(loopback: Loopback) -> None:
    server = loopback()

    async def inside() -> None:
        async with ModelClient(ClientOptions(attempts=1)) as client:
            embedder = ModelEmbedder(client, base_url=server.base_url)
            assert embedder.embed(TEXTS).shape == (3, 1536)
            await embedder.fetch(["and over the loop itself"])

    asyncio.run(inside())
    assert len(server.log) == 2
    client = ModelClient(ClientOptions(attempts=1))
    assert ModelEmbedder(client, base_url=server.base_url).embed(TEXTS).shape == (3, 1536)
    asyncio.run(client.close())
    assert len(server.log) == 3


@http
def test_a_wrong_width_is_an_error_and_is_not_kept(loopback: Loopback, tmp_path: Path) -> None:
    server = loopback(misbehave={"wrong_dimension": [1]})

    async def play() -> None:
        options = ClientOptions(attempts=1, cache=tmp_path / "replies.db")
        async with ModelClient(options, caller=ProviderCaller()) as client:
            embedder = ModelEmbedder(client, base_url=server.base_url)
            with pytest.raises(ModelMalformed, match=r"expected 3 vectors of 1536 dimensions, got 3 of \[3\]"):
                await embedder.fetch(TEXTS)
            await embedder.fetch(TEXTS)
            other = ModelEmbedder(client, base_url=server.base_url)
            await other.fetch(TEXTS)
            assert (other.embed(TEXTS) == embedder.embed(TEXTS)).all()

    asyncio.run(play())
    assert len(server.log) == 2


@http
def test_failures_are_errors(loopback: Loopback) -> None:
    server = loopback(misbehave={"http_500": 1.0})
    client = ModelClient(ClientOptions(attempts=1))
    with pytest.raises(ModelUnavailable):
        ModelEmbedder(client, base_url=server.base_url).embed(TEXTS)
    asyncio.run(client.close())


def test_many_texts_go_in_batches() -> None:
    client = Vectors(8)
    texts = [f"text {n}" for n in range(2 * BATCH + 1)]
    assert ModelEmbedder(client, "openai:mine").embed(texts).shape == (len(texts), 8)
    assert [len(call.texts) for call in client.sent] == [BATCH, BATCH, 1]
    assert [text for call in client.sent for text in call.texts] == texts


def test_an_unknown_model_has_one_width() -> None:
    client = Vectors(8, 9)
    embedder = ModelEmbedder(client, "openai:mine")
    assert embedder.embed([]).shape == (0, 0)
    embedder.embed(["a"])
    with pytest.raises(ModelMalformed, match="of 8 dimensions"):
        embedder.embed(["b"])
    assert client.forgotten == client.sent[1:]
    assert embedder.embed([]).shape == (0, 8)
    assert np.linalg.norm(embedder.embed(["a"])) == pytest.approx(1.0)


def test_no_vectors_are_an_error_and_no_direction_is_none() -> None:
    with pytest.raises(ModelMalformed):
        ModelEmbedder(Vectors(0), "openai:mine").embed(["a"])
    assert not ModelEmbedder(Vectors(4, factor=0.0), "openai:mine").embed(["a"]).any()


def test_texts_are_made_fit_to_be_sent() -> None:
    client = Vectors(4)
    texts = ["", "\u200b\n", "x" * 100_000, "two\nlines", "ann@example.org"]
    ModelEmbedder(client, "openai:mine").embed(texts)
    (call,) = client.sent
    assert call.texts[0] == call.texts[1] == NOTHING
    assert len(call.texts[2]) == MAX_SHOWN
    assert call.texts[3:] == ("two lines", "[email]")
