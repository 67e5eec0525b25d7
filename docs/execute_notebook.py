"""Runs a notebook and writes its outputs into it: `python docs/execute_notebook.py [NOTEBOOK ...]`."""

from __future__ import annotations

import os
import sys
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from ipykernel.kernelspec import make_ipkernel_cmd
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from traitlets.config import Config

NOTEBOOK = Path(__file__).with_name("notebook.ipynb")
INLINE = "module://matplotlib_inline.backend_inline"
SECONDS = 300
"""The longest that one cell may take."""


class ThisPython(AsyncKernelManager):
    """Starts the Python that runs this, whatever kernels are installed for the user."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """The command that starts the kernel."""
        return KernelSpec(argv=make_ipkernel_cmd(), display_name="Python 3", language="python")


def execute(notebook: Any) -> Any:
    """A copy of the notebook with the outputs of a run. Raises CellExecutionError at the first cell that fails.

    The kernel runs in an empty temporary folder, and is talked to over sockets in that folder, not over the network.
    """
    executed = deepcopy(notebook)
    with TemporaryDirectory(prefix="nb") as folder:
        sockets = {"transport": "ipc", "connection_file": str(Path(folder, "k.json"))}
        client = NotebookClient(
            executed,
            kernel_manager_class=ThisPython,
            config=Config({"ThisPython": sockets}),
            timeout=SECONDS,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute(env=os.environ | {"IPYTHONDIR": str(Path(folder, "ipython")), "MPLBACKEND": INLINE})
    executed.metadata["language_info"] = {"name": "python"}  # without the version, which changes
    return executed


def main(paths: list[Path]) -> None:
    """Execute notebooks in place."""
    for path in paths:
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        nbformat.write(execute(notebook), path)  # type: ignore[no-untyped-call]
        print(f"{path}: {path.stat().st_size / 1_000:,.0f} kB")


if __name__ == "__main__":
    main([Path(one) for one in sys.argv[1:]] or [NOTEBOOK])
