"""Whether a second run over the same transactions embeds anything."""

from __future__ import annotations

from pathlib import Path

from acefraud.embedded.embedder import CachedEmbedder, WordLlamaEmbedder
from acefraud.embedded.kept_vectors import KeptVectors
from acefraud.evaluation.speed.figures import Figures
from acefraud.evaluation.speed.measuring import PICKED, selecting
from acefraud.evaluation.speed.timing import taken
from acefraud.evaluation.speed.workloads import asked_about, prose_bullets, snapshot_of
from acefraud.selection.hybrid import HybridSelector

TRANSACTIONS, BULLETS = 256, 500


def measure_second_run(figures: Figures, seed: int, folder: Path) -> None:
    """Select for the same transactions twice, as two processes that share a folder would."""
    snapshot, transactions = snapshot_of(prose_bullets(BULLETS, seed)), asked_about(TRANSACTIONS, seed)
    embedded = []
    for run in ("first_run", "second_run"):
        kept = KeptVectors(
            folder, WordLlamaEmbedder.name, WordLlamaEmbedder.dimensions, revision=WordLlamaEmbedder().revision
        )
        cached = CachedEmbedder(WordLlamaEmbedder(), kept=kept)
        works = selecting(HybridSelector(embedding_model=cached), transactions, snapshot)
        figures.time(run, sum(taken(work) for work in works))
        kept.flush()
        embedded.append(cached.embedded)
    figures.ratio(
        "second_run.embedded",
        embedded[1],
        f"texts that a second run embeds; the first embedded {embedded[0]:,} for {TRANSACTIONS} transactions, "
        f"{BULLETS} bullets and {PICKED} picks each",
    )
