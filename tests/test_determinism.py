"""The same input gives the same bytes, in another process, with another hash seed and on an older processor."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.test_exact_math import SLOW_PATHS

pytestmark = pytest.mark.wide

SEVERAL = """
import json, os, sys
from acefraud.cli import main
if __name__ == "__main__":
    processes = int(sys.argv[2])
    os.cpu_count = lambda: processes
    for arguments in json.loads(sys.argv[1]):
        sys.argv = ["acefraud", *arguments]
        try:
            main()
        except SystemExit as left:
            assert not left.code, left.code
        sys.stdout.flush()
"""


def history(folder: Path) -> None:
    chance = random.Random(3)
    lines = ["id,time,amount,vpn,country,account_age_days,label"]
    for n in range(60):
        amount, vpn, country = chance.randint(10, 3000), chance.random() < 0.5, chance.choice(["NO", "PT", "NG"])
        fraud = (amount > 1500 and vpn) or chance.random() < 0.05
        time = f"2024-01-{1 + n // 10:02d}T{n % 10:02d}:00:00Z"
        lines.append(f"t{n},{time},{amount},{str(vpn).lower()},{country},{chance.randint(1, 900)},{int(fraud)}")
    (folder / "history.csv").write_text("\n".join(lines) + "\n")


def run(folder: Path, hash_seed: int, *commands: list[str], processes: int = 1) -> bytes:
    """What the commands print; on an older processor if the seed is odd."""
    folder.mkdir()
    history(folder)
    script = folder / "several.py"  # a file, so that processes started by it can import it again
    script.write_text(SEVERAL)
    ran = subprocess.run(
        [sys.executable, str(script), json.dumps(commands), str(processes)],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=300,
        env=os.environ
        | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
        | (SLOW_PATHS["older processor"] if hash_seed % 2 else {}),
    )
    return ran.stdout


def without_times(exported: str) -> str:
    """An export says when each bullet was added; that is the clock's, and everything else the engine's."""
    return "\n".join(line for line in exported.splitlines() if not line.startswith("- added_at: "))


@pytest.mark.long
@pytest.mark.parametrize("data", [["history.csv"], []], ids=["a file", "the shipped world"])
def test_compare_gives_the_same_bytes(tmp_path: Path, data: list[str]) -> None:
    command = ["compare", *data, "--seeds", "1", "--json"]
    first = run(tmp_path / "one", 1, command)
    assert run(tmp_path / "two", 2, command, processes=2) == first
    assert set(json.loads(first)["modes"]) == {"vanilla", "online_only", "offline_online"}


def test_train_decide_learn_and_export_give_the_same_bytes(tmp_path: Path) -> None:
    commands = [
        ["train", "history.csv", "--playbook", "book.db", "--json"],
        ["decide", "history.csv", "--playbook", "book.db", "--json"],
        ["learn", "history.csv", "--playbook", "book.db", "--json"],
        ["decide", "history.csv", "--playbook", "book.db", "--json"],
        *(
            ["playbook", "export", "--playbook", "book.db", "--format", format, "--to", f"{name}.{format}"]
            for format in ("md", "json")
            for name in ("once", "again")
        ),
    ]
    first, second = (run(tmp_path / str(seed), seed, *commands) for seed in (1, 2))
    assert first == second
    lines = [json.loads(line) for line in first.decode().splitlines()]
    assert len(lines) == 1 + 60 + 1 + 60
    assert any(reason["bullet_id"] for line in lines[1:61] for reason in line["reasons"])
    exports = [(tmp_path / str(seed) / "once.md").read_text() for seed in (1, 2)]
    assert without_times(exports[0]) == without_times(exports[1])
    assert exports[0].count("\n## b-") > 0
    for name in ("md", "json"):
        assert (tmp_path / "1" / f"once.{name}").read_bytes() == (tmp_path / "1" / f"again.{name}").read_bytes() != b""
