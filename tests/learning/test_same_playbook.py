"""One playbook and the same decisions, to the last bit: for any number of workers, order of rows and processor."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.rules.test_phrasings import SHARED
from tests.test_exact_math import ARM, SLOW_PATHS

from acefraud import BulletPlaybook, Learner, Transaction, load_dataset, open_playbook
from acefraud.core.transactions import Cases
from acefraud.datasets.world import WorldOptions, generate
from acefraud.engine.parts import PartedHistory, sources_of
from acefraud.learning.attestation import attest
from acefraud.support.runners import DaskRunner, LocalRunner

MAPPINGS = Path(__file__).parent.parent.parent / "benchmarks" / "mappings"
SETS = {
    "cloudwalk": MAPPINGS / "cloudwalk.toml",
    "vehicle_insurance": MAPPINGS / "vehicle_insurance.toml",
    "bri_atm": SHARED / "bri_atm" / "mapping.toml",
}
RUN = "import sys; from tests.learning import test_same_playbook as told; getattr(told, sys.argv[1])(*sys.argv[2:])"
LEARNT, DECIDED = 1_200, 1_000
ANOTHER = {"OPENBLAS_CORETYPE": "CORTEXA57" if ARM else "Haswell"}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all((SHARED / name / "data.csv").exists() for name in SETS),
        reason=f"not all public datasets are at {SHARED}; ACEFRAUD_DATA names their folder",
    ),
]


def digest_of(playbook: BulletPlaybook) -> str:
    """Of everything that a training leaves in a playbook, but times of writing."""
    snapshot = playbook.snapshot()
    figures = [(b.id, b.content, b.weight, repr(b.evidence)) for b in snapshot.bullets.values()]
    calibrations = {node: calibration.model_dump_json() for node, calibration in snapshot.calibrations.items()}
    return hashlib.sha256(repr((figures, calibrations, snapshot.mapping)).encode()).hexdigest()


def show(name: str, folder: str, parts: str, workers: str) -> None:
    """Print the digest of a training in this process, on shuffled rows in so many parts."""
    raw = pl.read_csv(SHARED / name / "data.csv", infer_schema_length=None)
    order = np.random.default_rng(int(parts)).permutation(raw.height)
    for number, rows in enumerate(np.array_split(order, int(parts))):
        raw[rows.tolist()].write_csv(Path(folder, f"part-{number}.csv"))
    playbook = BulletPlaybook()
    with warnings.catch_warnings(action="ignore"), LocalRunner(int(workers)) as runner:
        mapping = load_dataset(SHARED / name / "data.csv", mapping=SETS[name]).mapping
        Learner(playbook).study(PartedHistory.read(sources_of(folder), mapping, runner, name="data"))
    print(digest_of(playbook))


def known_by(kind: str) -> Cases:
    """Cases whose rows are known by facts only, by texts, or by the history of their entities too."""
    if kind == "texts":
        return Cases.of(generate(WorldOptions(transactions=LEARNT + DECIDED), seed=2))
    name = {"facts": "vehicle_insurance", "history": "cloudwalk"}[kind]
    return load_dataset(SHARED / name / "data.csv", mapping=SETS[name]).train.take(slice(0, LEARNT + DECIDED))


def decide(path: str, kind: str) -> None:
    """Record the decisions of a thousand rows after those that were learnt from, half of them one by one."""
    later: list[Transaction] = list(known_by(kind).transactions)[LEARNT:]
    with open_playbook(path) as playbook:
        learner = Learner(playbook)
        learner.decide_all_sync(later[: DECIDED // 2])
        for transaction in later[DECIDED // 2 :]:
            learner.decide_sync(transaction)


def attested(path: str) -> None:
    """Print how many decisions came out as recorded when they were made again, and their digest."""
    with open_playbook(path, read_only=True) as playbook:
        made = attest(playbook, decisions=None)
    print(made.decisions.recorded, made.decisions.same, made.decisions.digest)


def elsewhere(name: str, folder: Path, paths: dict[str, str], parts: int, workers: int) -> str:
    """The digest of a training in a process of its own, with other paths of the processor."""
    folder.mkdir()
    return run("show", name, str(folder), str(parts), str(workers), paths=paths)


def run(*arguments: str, paths: dict[str, str]) -> str:
    """What a function of this module prints in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", RUN, *arguments]
    return subprocess.run(command, env=os.environ | paths, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("name", SETS)
def test_one_playbook_for_all_parts_workers_and_processors(name: str, tmp_path: Path) -> None:
    whole = BulletPlaybook()
    with warnings.catch_warnings(action="ignore"):
        Learner(whole).study(load_dataset(SHARED / name / "data.csv", mapping=SETS[name]))
    older, c_library = SLOW_PATHS.values()
    assert digest_of(whole) == elsewhere(name, tmp_path / "older", older, parts=7, workers=1)
    assert digest_of(whole) == elsewhere(name, tmp_path / "another", ANOTHER, parts=2, workers=2)
    if name == "cloudwalk":  # the quickest
        assert digest_of(whole) == elsewhere(name, tmp_path / "library", c_library, parts=1, workers=1)


@pytest.mark.parametrize("kind", ["facts", "texts", "history"])
def test_a_thousand_decisions_are_made_again_on_other_processors(kind: str, tmp_path: Path) -> None:
    here, there = str(tmp_path / "here.db"), str(tmp_path / "there.db")
    with warnings.catch_warnings(action="ignore"), open_playbook(here) as playbook:
        mapping = SETS["cloudwalk"].read_text() if kind == "history" else ""
        Learner(playbook).study(known_by(kind).take(slice(0, LEARNT)), mapping=mapping)
        assert playbook.snapshot().bullets
    shutil.copy(here, there)
    older = SLOW_PATHS["older processor"]
    decide(here, kind)
    run("decide", there, kind, paths=older)
    made = {run("attested", path, paths=paths) for path in (here, there) for paths in ({}, older)}
    (told,) = made
    assert told.startswith(f"{DECIDED} {DECIDED} ")


@pytest.mark.enable_socket
def test_a_worker_of_a_cluster_that_dies_costs_no_bit(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    expected = elsewhere("cloudwalk", tmp_path / "parts", {}, parts=5, workers=1)
    mapping = load_dataset(SHARED / "cloudwalk" / "data.csv", mapping=SETS["cloudwalk"]).mapping
    playbook, killed = BulletPlaybook(), list[int]()
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:

        def steps(what: str, _rows: int) -> Callable[[float, int], None]:
            def kill(_share: float, _rows: int) -> None:
                if what == "reading" and not killed:
                    killed.append(cluster.workers[0].pid)
                    os.kill(killed[0], signal.SIGKILL)

            return kill

        with warnings.catch_warnings(action="ignore"), DaskRunner.at(cluster.scheduler_address) as runner:
            sources = sources_of(str(tmp_path / "parts"))
            Learner(playbook).study(PartedHistory.read(sources, mapping, runner, steps, name="data"))
    assert killed
    assert digest_of(playbook) == expected
