"""The index proposes what a look at every vector finds, and says so when it cannot be read."""

from __future__ import annotations

import random
import sys

import numpy as np
import numpy.typing as npt
import pytest

from acefraud.core.roles import Embedder, Vectors
from acefraud.datasets import load_dataset
from acefraud.embedded.embedder import HashingEmbedder, WordLlamaEmbedder
from acefraud.errors import ConfigurationError
from acefraud.selection import nearest as module
from acefraud.selection.nearest import PROPOSED, Nearest

pytest.importorskip("numkong")

TOPICS = ["account takeover", "card testing", "gift card fraud", "a romance scam", "refund abuse", "a money mule"]
SIGNS = [
    "the device was first seen today",
    "the connection runs through a VPN",
    "several declines came just before",
    "the beneficiary is new",
    "the amount is far above the usual range",
    "the password was reset within the hour",
    "the addresses do not match",
    "the merchant has fresh fraud reports",
    "the account was dormant for months",
    "a remote access tool is active",
]
SHOPS = ["a pharmacy", "an airline", "a crypto exchange", "a jewellery store", "a gaming service", "a ticket reseller"]
ADVICE = ["decline it", "hold it for review", "ask for a second factor", "approve it", "call the customer"]


def bullets(count: int) -> list[str]:
    dice = random.Random(7)
    found: dict[str, None] = {}
    while len(found) < count:
        first, second = dice.sample(SIGNS, 2)
        where = f"at {dice.choice(SHOPS)} above {dice.randrange(20, 3000)} dollars"
        text = f"If {first} and {second} {where}, suspect {dice.choice(TOPICS)}: {dice.choice(ADVICE)}."
        found[text] = None
    return list(found)


def noise(count: int, dimensions: int = 64, seed: int = 0) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(count, dimensions))
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def filled(vectors: Vectors) -> Nearest:
    nearest = Nearest(vectors.shape[1])
    nearest.add(np.arange(len(vectors)), vectors)
    return nearest


def by_numpy(vectors: Vectors, query: Vectors) -> npt.NDArray[np.int64]:
    """The order the index is to give, from the same codes multiplied without the library."""
    turned = module._coded(query[np.newaxis])[0].astype(np.int64)
    products = module._coded(vectors).astype(np.int64) @ turned
    scores = products.astype(np.float32) * np.abs(vectors).max(axis=1)
    return np.argsort(-scores, kind="stable")


@pytest.fixture(scope="module")
def asked() -> list[str]:
    return [case.transaction.text for case in load_dataset("complex_fraud_detection", seed=0).train[:40]]


@pytest.mark.parametrize("embedder", [WordLlamaEmbedder(), HashingEmbedder()], ids=lambda embedder: embedder.name)
def test_the_ten_most_alike_are_proposed(embedder: Embedder, asked: list[str]) -> None:
    vectors = embedder.embed(bullets(2000))
    nearest = filled(vectors)
    queries = embedder.embed(asked)
    found = 0
    for query in queries:
        tenth = np.sort(vectors @ query)[-10]
        proposed = nearest.propose(query)
        assert len(proposed) == len(set(proposed)) == PROPOSED
        found += min(10, int((vectors[proposed] @ query >= tenth - 1e-6).sum()))
    assert found / (10 * len(queries)) >= 0.99


@pytest.mark.parametrize("dimensions", [1, 7, 64, 100, 256, 512])
def test_products_are_exact_whatever_the_dimensions(dimensions: int) -> None:
    vectors = noise(500, dimensions)
    query = noise(1, dimensions, seed=1)[0]
    assert filled(vectors).propose(query, 500).tolist() == by_numpy(vectors, query).tolist()


def test_largest_products_do_not_overflow() -> None:
    vectors = np.full((3, 512), 1 / np.sqrt(512), dtype=np.float32)
    vectors[1] *= -1
    vectors[2, 0] *= -1
    assert filled(vectors).propose(vectors[0], 3).tolist() == [0, 2, 1]


def test_proposals_do_not_depend_on_how_the_rows_came_in(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = noise(2000)
    query = noise(1, seed=1)[0]
    expected = filled(vectors).propose(query).tolist()
    assert filled(vectors).propose(query).tolist() == expected
    monkeypatch.setattr(module, "_BLOCK", 128)
    shuffled = Nearest(64)
    for rows in np.array_split(np.random.default_rng(3).permutation(2000), 17):
        shuffled.add(rows, vectors[rows])
    assert shuffled.propose(query).tolist() == expected


def test_rows_alike_come_in_the_order_of_their_numbers() -> None:
    vectors = np.repeat(noise(1), 300, axis=0)
    assert filled(vectors).propose(vectors[0], 20).tolist() == list(range(20))


def test_one_row_more() -> None:
    vectors = noise(200)
    nearest = filled(vectors[:199])
    nearest.add(np.array([199]), vectors[199:])
    assert len(nearest) == 200
    assert nearest.propose(vectors[199], 1).tolist() == [199]


def test_a_row_with_new_words_is_found_by_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 16)
    vectors = noise(100)
    old, new = vectors[40], noise(1, seed=9)
    nearest = filled(vectors)
    nearest.remove(np.array([40]))
    assert len(nearest) == 99
    assert 40 not in nearest.propose(old, 100)
    nearest.add(np.array([40]), new)
    assert len(nearest) == 100
    assert nearest.propose(new[0], 1).tolist() == [40]
    assert nearest.propose(old, 1).tolist() != [40]
    nearest.add(np.array([40]), old[np.newaxis])
    assert len(nearest) == 100
    assert nearest.propose(old, 1).tolist() == [40]


def test_rows_that_are_not_in_are_never_proposed() -> None:
    vectors = noise(60)
    nearest = Nearest(64)
    rows = np.arange(0, 60, 3)
    nearest.add(rows, vectors[rows])
    nearest.remove(np.array([0, 0, 1, 5000]))
    assert len(nearest) == 19
    for query in (vectors[0], -vectors[0]):
        assert sorted(nearest.propose(query, 500)) == rows[1:].tolist()
    nearest.remove(rows)
    assert len(nearest) == 0
    assert nearest.propose(vectors[0]).tolist() == []


def test_a_row_said_twice_counts_once() -> None:
    nearest = Nearest(64)
    vectors = noise(2)
    nearest.add(np.array([3, 3]), vectors)
    assert len(nearest) == 1
    nearest.add(np.zeros(0, dtype=np.int64), noise(0))
    assert len(nearest) == 1


def test_vectors_of_nothing() -> None:
    vectors = np.zeros((3, 8), dtype=np.float32)
    vectors[1, 2] = 1
    nearest = filled(vectors)
    assert nearest.propose(vectors[1]).tolist() == [1, 0, 2]
    assert nearest.propose(-vectors[1]).tolist() == [0, 2, 1]
    assert nearest.propose(vectors[0], 2).tolist() == [0, 1]
    assert Nearest(8).propose(vectors[1]).tolist() == []


def test_memory_is_about_a_quarter_of_the_vectors() -> None:
    vectors = np.zeros((32_768, 256), dtype=np.float32)
    nearest = filled(vectors)
    assert nearest.nbytes == 32_768 * (256 + 4) < 0.26 * vectors.nbytes


@pytest.mark.parametrize(
    ("rows", "vectors", "said"),
    [
        ([0, 1], noise(3), "expected 2 vectors of 64 dimensions"),
        ([0, 1], noise(2, 32), "expected 2 vectors of 64 dimensions"),
        ([0, -1], noise(2), "whole numbers from zero"),
        ([0.5, 1.0], noise(2), "whole numbers from zero"),
        ([0], np.full((1, 64), np.nan, dtype=np.float32), "no number"),
        ([0], np.array([[np.inf, -np.inf] * 32], dtype=np.float32), "no number"),
    ],
)
def test_what_cannot_be_added_is_turned_down(rows: list[int], vectors: Vectors, said: str) -> None:
    nearest = Nearest(64)
    with pytest.raises(ConfigurationError, match=said):
        nearest.add(np.array(rows), vectors)
    assert len(nearest) == 0


def test_a_query_of_other_dimensions_is_turned_down() -> None:
    with pytest.raises(ConfigurationError, match="expected a vector of 64 numbers"):
        filled(noise(5)).propose(noise(1, 32)[0])
    with pytest.raises(ConfigurationError, match="at least one dimension"):
        Nearest(0)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module._numkong.cache_clear()
    monkeypatch.setitem(sys.modules, "numkong", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'acefraud\[index\]'"):
        Nearest(64)
    module._numkong.cache_clear()
