"""`python -m benchmarks train`: time and memory of `acefraud train` on a file, beside a fit of LightGBM.

Each runs in its own process, one after the other. The command is timed as a user runs it: it reads the file, derives
the history, learns and writes the playbook. For LightGBM, only the fit on the same facts is timed; its memory is that
of the whole process.
"""

from __future__ import annotations

import json as json_format
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from acefraud import load_dataset
from acefraud.errors import AcefraudError, ConfigurationError
from benchmarks.console import JsonOption, line, print_json
from benchmarks.quality.peers import LightGbm, needed

FileArgument = Annotated[Path, typer.Argument(help="Labelled transactions: JSON, JSONL, CSV or Parquet.")]
MappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="TOML file that says what each column is. Default: a guess.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed for LightGBM.")]


def train(file: FileArgument, mapping: MappingOption = None, seed: SeedOption = 0, json: JsonOption = False) -> None:
    """Measure time and peak memory of `acefraud train` on a file, beside a fit of **LightGBM** on the same facts.

    The command reads the file, derives the history, learns and writes a playbook; all of that is timed. For LightGBM,
    only the fit is timed. Memory is the peak of each whole process.

        python -m benchmarks train data/cards/data.csv --mapping benchmarks/mappings/cards.toml
    """
    needed("lightgbm")
    found = measure(file, mapping, seed)
    if json:
        print_json(found)
    else:
        line(described(found))


def measure(file: Path, mapping: Path | None, seed: int) -> dict[str, Any]:
    """Run both processes one after the other, and give the first as a multiple of the second."""
    given = [str(file), *(["--mapping", str(mapping)] if mapping else [])]
    with tempfile.TemporaryDirectory(prefix="acefraud-train-") as folder:
        command = [user_command(), "train", *given, "--playbook", f"{folder}/playbook.db", "--json"]
        ours, trained = apart(command)
    theirs, fitted = apart([sys.executable, "-m", "benchmarks.train", *given, "--seed", str(seed)])
    return {
        "about": {
            **{name: fitted.pop(name) for name in ("rows", "frauds", "facts")},
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
        },
        "models": {
            "acefraud": {**ours, "size": trained["bullets"]},
            "lightgbm": {**theirs, **fitted},
        },
        "ratios": {
            "train_to_lightgbm_fit": ours["seconds"] / max(fitted["fit_seconds"], 1e-9),
            "memory": ours["memory"] / theirs["memory"],
        },
    }


def user_command() -> str:
    """The command that users run, from the environment of this process."""
    path = Path(sys.executable).parent / "acefraud"
    if not path.exists():
        raise ConfigurationError(f"there is no {path}; install the project: pip install '.[bench]'")
    return str(path)


def apart(
    command: Sequence[str], env: Mapping[str, str] = MappingProxyType({})
) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds and peak memory in MB of a separate process, and the JSON that it printed.

    On Linux the peak of a child begins with that of its parent, so this process must stay small.
    """
    with tempfile.TemporaryFile("w+") as printed:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=printed, env={**_environment(), **env})
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)  # os.wait4 has reaped it, for its memory
        if process.returncode:
            raise ConfigurationError(f"`{' '.join(command)}` ended with exit code {process.returncode}")
        printed.seek(0)
        found: dict[str, Any] = json_format.loads(printed.read().splitlines()[-1])
    unit = 1 if sys.platform == "darwin" else 1024
    return {"seconds": seconds, "memory": usage.ru_maxrss * unit / 1e6}, found


def _environment() -> dict[str, str]:
    """Our environment, with the path of this package, which is not installed."""
    path = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def described(found: dict[str, Any]) -> str:
    """The figures as a small table."""
    about, ours, theirs = found["about"], found["models"]["acefraud"], found["models"]["lightgbm"]
    ratios = found["ratios"]
    return "\n".join(
        [
            f"{about['rows']:,} rows, {about['frauds']:,} frauds, {about['facts']} facts; {about['cores']} cores, "
            f"load {about['load']:.1f} at the end",
            f"acefraud train  {ours['seconds']:9.1f} s in all    {ours['memory']:8,.0f} MB  {ours['size']:,} bullets",
            f"LightGBM        {theirs['fit_seconds']:9.1f} s the fit   {theirs['memory']:8,.0f} MB  "
            f"{theirs['size']:,} leaves; {theirs['load_seconds']:.1f} s to read the file",
            f"ratio           {ratios['train_to_lightgbm_fit']:9.2f}             {ratios['memory']:8.2f}",
        ]
    )


def fit_lightgbm(file: FileArgument, mapping: MappingOption = None, seed: SeedOption = 0) -> None:
    """Read the file, derive the history, fit, and print what it took; runs in a separate process."""
    began = time.perf_counter()
    cases = load_dataset(file, mapping=mapping).with_history().train
    loaded = time.perf_counter()
    model = LightGbm(seed)
    ready = time.perf_counter()
    model.fit(cases, "")
    fitted = time.perf_counter()
    print_json(
        {
            "rows": len(cases),
            "frauds": int(cases.labels.sum()),
            "facts": len(cases.facts.names),
            "load_seconds": loaded - began,
            "fit_seconds": fitted - ready,
            "size": model.size,
        }
    )


if __name__ == "__main__":
    try:
        typer.run(fit_lightgbm)
    except AcefraudError as problem:
        sys.exit(str(problem))
