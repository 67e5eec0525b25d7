"""The embedder on a language model. Vectors are fetched ahead, so that selection never waits for the network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from acefraud.core.bullet import Bullet
from acefraud.display.redaction import cut
from acefraud.errors import ModelMalformed
from acefraud.llm.call import Call, Role
from acefraud.llm.synchronous import run_sync
from acefraud.roles.embedded.embedder import unit
from acefraud.roles.model.model_role import CachedCaller, ModelRole, Shared
from acefraud.roles.model.prompts import MAX_SHOWN, on_one_line, reveals
from acefraud.roles.protocols import Vectors

DEFAULT_EMBEDDING = "openai:text-embedding-3-small"
DIMENSIONS = {"openai:text-embedding-3-small": 1536, "openai:text-embedding-3-large": 3072}
MOST_KEPT = 20_000
"""Vectors kept in memory; beyond this all are dropped."""
BATCH = 256
"""Texts in one call."""
NOTHING = "(nothing)"
"""Embedded in place of an empty text, which servers reject."""


class ModelEmbedder(ModelRole):
    """Vectors of length one from an embedding model.

    `fetch` loads missing vectors; `embed` returns loaded ones, and blocks to fetch any that are still missing.
    """

    fetches_ahead = True
    threshold = 0.5
    """The cosine from which texts count as related, set by the ACE system for text-embedding-3-small."""

    role = Role.EMBEDDING

    def __init__(self, client: CachedCaller, model: str = DEFAULT_EMBEDDING, **shared: Unpack[Shared]) -> None:
        super().__init__(client, model, **shared)
        self.name = model
        self._vectors: dict[str, Vectors] = {}
        self._dimensions = DIMENSIONS.get(model)

    def presentable_bullet(self, bullet: Bullet) -> str:
        """A bullet in words that the model may see: only the names of its facts if it would reveal a hidden value."""
        if bullet.condition is not None and reveals(bullet, self._mask):
            return " and ".join(sorted(bullet.condition.facts))
        return bullet.content

    async def fetch(self, texts: Sequence[str]) -> None:
        """Load the vectors of these texts. Raises ModelError if that fails."""
        if len(self._vectors) > MOST_KEPT:
            self._vectors.clear()  # the reply cache still has them
        missing = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        batches = [missing[start : start + BATCH] for start in range(0, len(missing), BATCH)]
        await asyncio.gather(*(self._fetch(batch) for batch in batches))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text."""
        if any(text not in self._vectors for text in texts):
            run_sync(self.fetch(texts))
        rows = [self._vectors[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self._dimensions or 0), dtype=np.float32)

    async def _fetch(self, texts: list[str]) -> None:
        # Mask before cutting: half a card number is not recognised as one.
        masked = tuple(cut(self._mask.masked_text(on_one_line(text)), MAX_SHOWN) or NOTHING for text in texts)
        call = Call(role=Role.EMBEDDING, model=self.name, base_url=self._base_url, texts=masked, max_tokens=0)
        rows = (await self._client.send(call)).vectors
        widths = {len(row) for row in rows}
        expected = {self._dimensions} if self._dimensions else widths
        if len(rows) != len(texts) or widths != expected or len(widths) != 1 or 0 in widths:
            self._client.forget(call)
            wanted = f"{len(texts)} vectors of {self._dimensions or 'equal'} dimensions"
            raise ModelMalformed(f"{self.name}: expected {wanted}, got {len(rows)} of {sorted(widths)}")
        vectors = np.array(rows, dtype=np.float32)
        self._dimensions = vectors.shape[1]
        self._vectors.update(zip(texts, unit(vectors), strict=True))
