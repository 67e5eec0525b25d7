"""Hashes of ids."""

from __future__ import annotations

import numpy as np

from acefraud.support.hashes import hashes_of


def test_ids_of_digits_have_hashes_of_their_own() -> None:
    first, second = hashes_of(["436343724436328235", "364254443561535615"]).tolist()  # two checksums agree on them
    assert first != second
    many = [f"{number:016d}" for number in np.random.default_rng(0).integers(0, 10**16, 200_000)]
    assert len(np.unique(hashes_of(many))) == len(set(many))


def test_a_hash_depends_on_the_text_alone() -> None:
    texts = ["", "a", "a\0", "\0", "aaaaaaaa", "aaaaaaaa\0", "é", "x" * 64, "x" * 65, "x" * 66, "x" * 500]
    together = hashes_of(texts)
    assert len(set(together.tolist())) == len(texts)
    assert together.tolist() == [hashes_of([text])[0] for text in texts]
    assert hashes_of([]).tolist() == []
