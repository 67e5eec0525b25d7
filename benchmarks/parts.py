"""`python -m benchmarks parts`: training in parts, in processes and on Dask, beside LightGBM's interface to Dask.

The file is cut into months, and a history that is longer than the file repeats them later in time with other ids. Each
way runs in its own process, with one thread per worker. Memory is the peak of the largest process among a command and
its workers.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import polars as pl
import polars.selectors as cs
import typer

from acefraud import SchemaMapping
from acefraud.errors import AcefraudError, ConfigurationError
from benchmarks.console import JsonOption, line, print_json
from benchmarks.quality.peers import needed
from benchmarks.train import apart, user_command

FileArgument = Annotated[Path, typer.Argument(help="Labelled transactions with ids and times: CSV or Parquet.")]
MappingOption = Annotated[Path, typer.Option("--mapping", help="TOML file that says what each column is.")]
CopiesOption = Annotated[int, typer.Option(min=1, help="How many times the history of the file is repeated.")]
WorkersOption = Annotated[list[int] | None, typer.Option("--workers", min=1, help="Numbers of workers. Default: 1, 2.")]


ONE_THREAD = dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"], "1")


def parts(
    file: FileArgument,
    mapping: MappingOption,
    copies: CopiesOption = 1,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Measure `acefraud train` on parts: with several workers, on Dask, and beside **LightGBM** on Dask.

    The digest tells whether two ways gave the same playbook, or the same model. LightGBM gets the numbers of the same
    files as they are; it derives no history of entities.

        python -m benchmarks parts data/card_handbook/data.parquet --mapping benchmarks/mappings/card_handbook.toml
    """
    needed("lightgbm")
    needed("distributed")
    with tempfile.TemporaryDirectory(prefix="acefraud-parts-") as folder:
        rows = cut(file, SchemaMapping.load(mapping), copies, Path(folder, "parts"))
        found: dict[str, Any] = {"rows": rows, "parts": len(list(Path(folder, "parts").iterdir())), "ways": {}}
        for way, figures in _ways(file if copies == 1 else None, mapping, workers or [1, 2], Path(folder)):
            found["ways"][way] = figures
            if not json:
                line(described(way, figures))
    if json:
        print_json(found)


def cut(file: Path, mapping: SchemaMapping, copies: int, folder: Path) -> int:
    """Write the months of a file, copied so many times, and return the number of rows."""
    if not (mapping.id and mapping.time):
        raise ConfigurationError("expected a mapping that names columns with ids and times")
    rows = pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_csv(file, try_parse_dates=True)
    when = pl.col(mapping.time)
    first, last = rows.select(when.min().alias("first"), when.max().alias("last")).row(0)
    days = (last - first).days + 1
    folder.mkdir()
    for copy in range(copies):
        moved = rows.with_columns(
            pl.format("{}-{}", mapping.id, pl.lit(copy)).alias(mapping.id) if copy else pl.col(mapping.id).cast(str),
            when + pl.duration(days=days * copy),
        )
        for (month,), part in moved.group_by(when.dt.strftime("%Y-%m")):
            part.write_parquet(folder / f"{month}-{copy:03}.parquet")
    return len(rows) * copies


def _ways(whole: Path | None, mapping: Path, workers: list[int], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    pattern = str(folder / "parts" / "*.parquet")
    train = [user_command(), "train", "--mapping", str(mapping), "--json"]
    if whole is not None:
        yield "one file", _trained([*train, str(whole)], folder / "whole.db")
    for count in workers:
        book = folder / f"processes-{count}.db"
        yield f"{count} in processes", _trained([*train, pattern, "--workers", str(count)], book)
    here = [sys.executable, "-m", "benchmarks.parts", str(workers[-1])]
    yield f"{workers[-1]} on Dask", _trained([*here, *train, pattern], folder / "dask.db")
    for count in workers:
        theirs = [sys.executable, "-m", "benchmarks.parts", str(count), "lightgbm", pattern, str(mapping)]
        figures, told = apart(theirs, ONE_THREAD)
        yield f"{count} on Dask, LightGBM", {**figures, **told}


def _trained(command: list[str], book: Path) -> dict[str, Any]:
    figures, told = apart([*command, "--playbook", str(book)], ONE_THREAD)
    _, attested = apart([user_command(), "attest", "--playbook", str(book), "--json"])
    return {**figures, "size": told["bullets"], "digest": attested["playbook"]}


def described(way: str, found: dict[str, Any]) -> str:
    """One way in a line."""
    return (
        f"{way:22} {found['seconds']:9.1f} s  {found['memory']:8,.0f} MB  {found['size']:6,} bullets or leaves  "
        f"{found['digest'][:16]}"
    )


def on_cluster(workers: int, command: list[str]) -> None:
    """Run a command on a cluster of this machine, whose processes are children of this one."""
    from distributed import Client, LocalCluster  # noqa: PLC0415

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:  # type: ignore[no-untyped-call]
        if command[0] == "lightgbm":
            with Client(cluster) as client:  # type: ignore[no-untyped-call]
                print_json(_lightgbm(client, *command[1:]))
        else:
            subprocess.run([*command, "--scheduler", cluster.scheduler_address], check=True)


def _numbers(file: str) -> pd.DataFrame:
    return pl.read_parquet(file).select(cs.numeric()).to_pandas()


def _lightgbm(client: Any, pattern: str, mapping: str) -> dict[str, Any]:
    import dask.dataframe as dd  # noqa: PLC0415
    from lightgbm import DaskLGBMClassifier  # noqa: PLC0415

    known = SchemaMapping.load(mapping)
    # Dask's own reader would put small columns into fewer partitions than large ones, and the label beside other rows.
    rows = dd.from_map(_numbers, sorted(glob(pattern)))  # type: ignore[no-untyped-call]
    model = DaskLGBMClassifier(
        client=client, n_estimators=300, deterministic=True, force_row_wise=True, seed=0, verbose=-1
    )
    began = time.perf_counter()
    hidden = [name for name in rows.columns if name in (known.label, *(known.ignore or ()))]
    model.fit(rows.drop(columns=hidden), rows[known.label])
    text = model.booster_.model_to_string()
    return {
        "fit_seconds": time.perf_counter() - began,
        "size": sum(tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"]),
        "digest": hashlib.sha256(text.partition("\nparameters:")[0].encode()).hexdigest(),
    }


if __name__ == "__main__":
    try:
        on_cluster(int(sys.argv[1]), sys.argv[2:])
    except AcefraudError as problem:
        sys.exit(str(problem))
