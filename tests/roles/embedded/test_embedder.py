"""What every embedder promises. A new one is one more entry in EMBEDDERS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from acefraud.errors import ConfigurationError
from acefraud.roles.embedded.embedder import CachedEmbedder, HashingEmbedder, WordLlamaEmbedder, embedder_named
from acefraud.roles.protocols import Embedder, EmbedsInProcess, Vectors

EMBEDDERS: dict[str, Callable[[], Embedder]] = {
    "wordllama": WordLlamaEmbedder,
    "hashing": HashingEmbedder,
    "cached wordllama": lambda: embedder_named("wordllama"),
    "cached hashing": lambda: CachedEmbedder(HashingEmbedder(), size=2),
}
TEXTS = ["a VPN and a new device", "gift cards at night", "Überweisung nach Köln", "amount above 2,000"]


@pytest.fixture(params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return EMBEDDERS[request.param]()


def test_there_is_one_row_of_length_one_for_each_text(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape[0] == len(TEXTS)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1.0] * len(TEXTS), abs=1e-5)


def test_hashing_gives_short_words_of_the_trade_a_vector_too() -> None:
    vectors = HashingEmbedder().embed(["VPN", "VIP: 95%", "no KYC"])
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)


def test_the_vector_of_a_text_depends_on_that_text_alone(embedder: Embedder) -> None:
    together = embedder.embed([*TEXTS, *reversed(TEXTS)])
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(together[: len(TEXTS)], alone, atol=1e-6)
    np.testing.assert_allclose(together[len(TEXTS) :][::-1], alone, atol=1e-6)


def test_no_texts_give_no_rows_of_the_same_width(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.embed(["a VPN"]).shape[1])


def test_an_empty_text_has_a_vector_without_nan(embedder: Embedder) -> None:
    assert np.isfinite(embedder.embed(["", " "])).all()


@pytest.mark.parametrize(
    ("text", "related", "unrelated"),
    [
        ("VPN connection from a new device", "new device using a VPN", "merchant rating below 3 stars"),
        ("gift cards bought at night", "gift card purchase late at night", "account older than five years"),
        ("crypto exchange transfer", "transfer to a crypto exchange", "grocery store in the home town"),
    ],
)
def test_what_is_related_is_closer_than_what_is_not(
    embedder: Embedder, text: str, related: str, unrelated: str
) -> None:
    one, near, far = embedder.embed([text, related, unrelated])
    assert float(one @ near) > float(one @ far) + 0.1
    assert float(one @ near) >= embedder.threshold


def test_it_has_a_name_and_a_threshold(embedder: Embedder) -> None:
    assert embedder.name
    assert 0 < embedder.threshold < 1


class Counting(EmbedsInProcess):
    """Remembers what it was asked to embed."""

    name = "counting"
    threshold = 0.4

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.extend(texts)
        return HashingEmbedder().embed(texts)


def test_a_cached_text_is_embedded_once_and_the_oldest_makes_room() -> None:
    counting = Counting()
    cached = CachedEmbedder(counting, size=2)
    cached.embed(["a", "b", "a"])
    cached.embed(["b", "a"])
    assert counting.asked == ["a", "b"]
    cached.embed(["c"])
    cached.embed(["c", "b"])
    assert counting.asked == ["a", "b", "c"]
    cached.embed(["a"])
    assert counting.asked == ["a", "b", "c", "a"]
    assert (cached.name, cached.threshold) == ("counting", 0.4)


def test_more_texts_at_once_than_the_cache_holds_are_all_embedded() -> None:
    cached = CachedEmbedder(HashingEmbedder(), size=2)
    np.testing.assert_array_equal(cached.embed(TEXTS), HashingEmbedder().embed(TEXTS))
    np.testing.assert_array_equal(cached.embed(TEXTS), HashingEmbedder().embed(TEXTS))


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match="wordllama, hashing"):
        embedder_named("text-embedding-9")


LOADING = """
import logging, socket
def refuse(*_, **__): raise AssertionError("the network was asked for")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
root = logging.getLogger()
kept = logging.NullHandler()
root.addHandler(kept)
root.setLevel(logging.ERROR)
from acefraud.roles.embedded.embedder import WordLlamaEmbedder
assert WordLlamaEmbedder().embed(["a VPN"]).shape == (1, 256)
assert (root.level, root.handlers) == (logging.ERROR, [kept]), (root.level, root.handlers)
"""


def test_loading_the_weights_needs_no_network_and_leaves_the_root_logger_alone() -> None:
    finished = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
