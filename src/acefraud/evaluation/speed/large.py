"""A playbook file of very many bullets, made and then opened by processes of their own, whose memory is told.

python -m acefraud.evaluation.speed.large build FOLDER BULLETS SEED
python -m acefraud.evaluation.speed.large measure FOLDER BULLETS SEED
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from acefraud.core.events import BulletAdded
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import Vectors
from acefraud.core.transaction import Transaction
from acefraud.embedded.embedder import DEFAULT_EMBEDDER, CachedEmbedder, WordLlamaEmbedder, embedder_named
from acefraud.errors import ConfigurationError
from acefraud.evaluation.speed.figures import Figures, named
from acefraud.evaluation.speed.measuring import PICKED, selecting
from acefraud.evaluation.speed.timing import Effort, Work, interleaved, label, taken
from acefraud.evaluation.speed.workloads import asked_about, prose_bullets
from acefraud.selection.hybrid import HybridSelector
from acefraud.selection.large import index_can_be_used
from acefraud.selection.nearest import PROPOSED, Nearest
from acefraud.storage import open_playbook

AT_ONCE = 5_000
ASKED = 16
BATCH = 64
TOP = 10
A_HAIR = 1e-6
"""Cosines that differ by less are equal."""
DIMENSIONS = WordLlamaEmbedder.dimensions
DISK_PER_BULLET, MEMORY_PER_BULLET = 3_000, 4_500
"""Bytes that the files take at most, and a process that also holds all vectors in full to compare with."""


def measure_large(figures: Figures, size: int, seed: int, folder: Path, progress: Callable[[float], None]) -> None:
    """Everything about one large file, unless the computer is too small for it."""
    lack = lacking(size, folder)
    if lack:
        figures.skipped.append(f"{size:,} bullets: {lack}")
        return
    _in_its_own_process("build", folder, size, seed)
    progress(0.5)
    _note(figures, size, _in_its_own_process("measure", folder, size, seed))


def lacking(size: int, folder: Path) -> str:
    """What there is too little of; nothing where there is enough."""
    disk, memory = shutil.disk_usage(folder).free, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if disk < size * DISK_PER_BULLET:
        return f"needs {size * DISK_PER_BULLET / 1e9:.1f} GB of disk in {folder}, which has {disk / 1e9:.1f}"
    if memory < size * MEMORY_PER_BULLET:
        return f"needs {size * MEMORY_PER_BULLET / 1e9:.1f} GB of memory, there are {memory / 1e9:.1f}"
    return ""


def _in_its_own_process(part: str, folder: Path, size: int, seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "acefraud.evaluation.speed.large", part, str(folder), str(size), str(seed)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["no word"])[-1]
        raise ConfigurationError(f"the book of {size:,} bullets could not be measured: {last}")
    result: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return result


def _note(figures: Figures, size: int, got: dict[str, Any]) -> None:
    for name, seconds in got["seconds"].items():
        figures.time(name, seconds, size)
    raw = size * DIMENSIONS * 4
    figures.memory |= {named(name, size): bytes_ for name, bytes_ in got["memory"].items()}
    figures.memory[named("raw_matrix", size)] = raw
    figures.memory[named("file", size)] = got["file"]
    figures.shares[named("selection", size)] = got["shares"]
    figures.ratio(
        f"{named('memory', size)}.raw_matrix",
        got["memory"]["peak"] / raw,
        "peak memory of a process that opens the file and selects, beside the vectors alone in full",
    )
    for what in ("selection", "index"):
        if what in got["seconds"]:
            figures.ratio(
                f"{named(what, size)}.matvec",
                got["seconds"][what] / got["seconds"]["matvec"],
                "how many times as long as a bare product of the matrix with one vector: a selection "
                + ("by the index" if what == "index" else "that looks at every bullet"),
            )
    if "recall" in got:
        figures.ratio(
            f"{named('index', size)}.recall",
            got["recall"],
            f"share of the {TOP} bullets that resemble a transaction most that the index proposes",
        )


# --- in processes of their own -----------------------------------------------------------------------------------


def build(folder: Path, size: int, seed: int) -> dict[str, Any]:
    """Write the file, with a checkpoint, and the vectors of all its bullets and of the transactions."""
    embedder, bullets = _embedder(folder), prose_bullets(size, seed)
    with open_playbook(folder / f"{label(size)}.db") as playbook:
        while some := list(islice(bullets, AT_ONCE)):
            playbook.record([BulletAdded(bullet=bullet) for bullet in some])
            embedder.embed([bullet.content for bullet in some])
    embedder.embed([transaction.text for transaction in asked_about(BATCH, seed)])
    return {}


def measure(folder: Path, size: int, seed: int) -> dict[str, Any]:
    """Open the file and select. What needs all vectors in full comes after memory was looked at."""
    file, found = folder / f"{label(size)}.db", []
    transactions, embedder = asked_about(BATCH, seed), _embedder(folder)
    selector = HybridSelector(embedding_model=embedder)
    start = _peak()
    opened = taken(lambda: found.append(open_playbook(file, create=False)))
    snapshot, after_opening = found[0].snapshot(), _peak()
    works = selecting(selector, transactions[:ASKED], snapshot)
    first = taken(works[0])
    for work in works:
        work()
    memory = {"start": start, "opened": after_opening, "peak": _peak()}
    beside = _beside_all_vectors(selector, embedder, snapshot, transactions, with_index=index_can_be_used(size))
    found[0].close()
    return {
        "seconds": {"load": opened, "first_selection": first, **beside.pop("seconds")},
        "memory": memory,
        "file": file.stat().st_size,
        **beside,
    }


def _beside_all_vectors(
    selector: HybridSelector,
    embedder: CachedEmbedder,
    snapshot: Snapshot,
    transactions: Sequence[Transaction],
    *,
    with_index: bool,
) -> dict[str, Any]:
    exact = HybridSelector(embedding_model=embedder, exact=True)
    matrix = _all_vectors(snapshot, embedder)
    queries = embedder.embed([transaction.text for transaction in transactions])
    works: dict[str, list[Work]] = {
        "selection": selecting(exact, transactions[:ASKED], snapshot),
        "matvec": [partial(np.matmul, matrix, query) for query in queries[:ASKED]],
    }
    if with_index:
        works["index"] = selecting(selector, transactions[:ASKED], snapshot)
    seconds = interleaved(works, Effort(20.0, 2, 20))
    facts: list[dict[str, float | bool | str]] = [{} for _ in transactions]
    together = taken(lambda: exact.select_many(transactions, facts, snapshot, n_bullets=PICKED))
    seconds["select_many"] = together / len(transactions)
    stages = exact.select(transactions[0], {}, snapshot, n_bullets=PICKED).trace.stages
    shares = {stage.stage: stage.left / len(snapshot.bullets) for stage in stages}
    recall = {"recall": recalled(matrix, queries)} if with_index else {}
    return {"seconds": seconds, "shares": shares, **recall}


def _all_vectors(snapshot: Snapshot, embedder: CachedEmbedder) -> Vectors:
    matrix = np.empty((len(snapshot.bullets), DIMENSIONS), dtype=np.float32)
    bullets, start = iter(snapshot.bullets.values()), 0
    while some := list(islice(bullets, AT_ONCE)):
        matrix[start : start + len(some)] = embedder.embed([bullet.content for bullet in some])
        start += len(some)
    return matrix


def recalled(matrix: Vectors, queries: Vectors) -> float:
    """Which share of the rows that resemble a query most the index proposes. Of equals any may be among them."""
    nearest = Nearest(matrix.shape[1])
    for start in range(0, len(matrix), AT_ONCE):
        nearest.add(np.arange(start, min(len(matrix), start + AT_ONCE)), matrix[start : start + AT_ONCE])
    shares = []
    for query in queries:
        cosines = matrix @ query
        top = min(TOP, len(matrix))
        least = np.partition(cosines, -top)[-top] - A_HAIR
        shares.append(min(top, int((cosines[nearest.propose(query, PROPOSED)] >= least).sum())) / top)
    return float(np.mean(shares))


def _embedder(folder: Path) -> CachedEmbedder:
    return embedder_named(DEFAULT_EMBEDDER, folder / "vectors")


def _peak() -> int:
    """The most memory that this process ever held, in bytes.

    Linux also counts what the process held before it became this program, which is what its parent held; so it is asked
    in another way there.
    """
    try:
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


if __name__ == "__main__":
    part, folder, size, seed = sys.argv[1:]
    work = {"build": build, "measure": measure}[part]
    print(json.dumps(work(Path(folder), int(size), int(seed))))
