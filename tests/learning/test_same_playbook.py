"""One playbook, to the last bit: for any number of workers, any order of rows, any processor, on public datasets."""

from __future__ import annotations

import hashlib
import os
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
from tests.test_exact_math import SLOW_PATHS

from acefraud import BulletPlaybook, Learner, load_dataset
from acefraud.engine.parts import PartedHistory, sources_of
from acefraud.support.runners import DaskRunner, LocalRunner

MAPPINGS = Path(__file__).parent.parent.parent / "benchmarks" / "mappings"
SETS = {
    "cloudwalk": MAPPINGS / "cloudwalk.toml",
    "vehicle_insurance": MAPPINGS / "vehicle_insurance.toml",
    "bri_atm": SHARED / "bri_atm" / "mapping.toml",
}
RUN = "import sys; from tests.learning import test_same_playbook as told; told.show(*sys.argv[1:])"
HASWELL = {"OPENBLAS_CORETYPE": "Haswell"}

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


def elsewhere(name: str, folder: Path, paths: dict[str, str], parts: int, workers: int) -> str:
    """The digest of a training in a process of its own, with other paths of the processor."""
    folder.mkdir()
    arguments = [sys.executable, "-W", "ignore", "-c", RUN, name, str(folder), str(parts), str(workers)]
    done = subprocess.run(arguments, env=os.environ | paths, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("name", SETS)
def test_one_playbook_for_all_parts_workers_and_processors(name: str, tmp_path: Path) -> None:
    whole = BulletPlaybook()
    with warnings.catch_warnings(action="ignore"):
        Learner(whole).study(load_dataset(SHARED / name / "data.csv", mapping=SETS[name]))
    older, c_library = SLOW_PATHS.values()
    assert digest_of(whole) == elsewhere(name, tmp_path / "older", older, parts=7, workers=1)
    assert digest_of(whole) == elsewhere(name, tmp_path / "haswell", HASWELL, parts=2, workers=2)
    if name == "cloudwalk":  # the quickest
        assert digest_of(whole) == elsewhere(name, tmp_path / "library", c_library, parts=1, workers=1)


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
