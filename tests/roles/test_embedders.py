"""The contract of every embedder, embedded or on a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from acefraud import BulletPlaybook, HybridSelector, Learner, Transaction
from acefraud.core.bullet import Bullet
from acefraud.errors import ModelError
from acefraud.llm.client import ModelClient
from acefraud.roles.embedded.embedder import CachedEmbedder, HashingEmbedder, WordLlamaEmbedder
from acefraud.roles.model.embedder import ModelEmbedder
from acefraud.roles.protocols import Embedder

if TYPE_CHECKING:
    from tests.llm.loopback import LoopbackServer

pytestmark = pytest.mark.enable_socket
TEXTS = ["a new device", "a VPN at night", "a new device and a VPN"]


@pytest.fixture(params=["hashing", "wordllama", "cached", "model", "cached model"])
def embedder(request: pytest.FixtureRequest, server: LoopbackServer, client: ModelClient) -> Embedder:
    made: dict[str, Callable[[], Embedder]] = {
        "hashing": HashingEmbedder,
        "wordllama": WordLlamaEmbedder,
        "cached": lambda: CachedEmbedder(HashingEmbedder()),
        "model": lambda: ModelEmbedder(client, base_url=server.base_url),
        "cached model": lambda: CachedEmbedder(ModelEmbedder(client, base_url=server.base_url)),
    }
    return made[request.param]()


def test_vectors_are_of_length_one_and_belong_to_their_text(embedder: Embedder) -> None:
    vectors = embedder.embed([*TEXTS, TEXTS[0]])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[3])
    assert float(vectors[0] @ vectors[2]) > float(vectors[0] @ vectors[1])
    assert embedder.embed([]).shape == (0, vectors.shape[1])
    assert embedder.name
    assert 0 < embedder.threshold < 1


def test_what_was_fetched_is_not_asked_for_again(embedder: Embedder, server: LoopbackServer) -> None:
    asyncio.run(embedder.fetch(TEXTS))
    asked = len(server.log)
    embedder.embed(TEXTS)
    assert len(server.log) == asked
    assert embedder.fetches_ahead is (asked > 0)


def test_what_it_may_see_are_the_words_or_the_facts(embedder: Embedder) -> None:
    assert embedder.presentable("a VPN", {"amount": 5.0}) == "a VPN"
    assert "amount" in embedder.presentable("", {"amount": 5.0}).lower()
    assert embedder.presentable_bullet(Bullet(id="b", content="VPN: decline")) == "VPN: decline"


def test_a_selector_finds_notes_with_it_and_an_embedded_decision_does_not_use_them(embedder: Embedder) -> None:
    playbook = BulletPlaybook()
    known = playbook.add_bullet("gift cards bought by a caller who sounds nervous")
    selector = HybridSelector(embedding_model=embedder, semantic_threshold=0.1)
    text = "a caller who sounds nervous bought gift cards"
    bullets, _ = selector.select_bullets(text, "fraud_detection", playbook)
    assert [bullet.id for bullet in bullets] == [known]
    decision = asyncio.run(Learner(playbook, selector=selector).decide(Transaction(id="t", text=text)))
    assert decision.selection.embedder == embedder.name
    assert decision.cited == ()


def test_a_failed_call_is_an_error(loopback: Callable[..., LoopbackServer], client: ModelClient) -> None:
    embedder = ModelEmbedder(client, base_url=loopback(misbehave={"http_500": 1.0}).base_url)
    with pytest.raises(ModelError):
        embedder.embed(TEXTS)
