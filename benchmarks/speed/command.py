"""`python -m benchmarks speed`: how long selection, curation and decisions take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.console import JsonOption, json_file, line, out, print_json, progress, write_files
from benchmarks.speed import tables
from benchmarks.speed.figures import Figures
from benchmarks.speed.measurement import SIZES, check_libraries, measure_speed, sizes_in
from benchmarks.speed.picture import picture


def speed(
    sizes: Annotated[str, typer.Option(help="Numbers of bullets, separated by commas.")] = SIZES,
    seed: Annotated[int, typer.Option(min=0, help="What bullets and transactions are made from.")] = 0,
    folder_out: Annotated[Path, typer.Option("--out", help="Folder for the figures and the picture.")] = Path(
        "out/speed"
    ),
    json: JsonOption = False,
) -> None:
    """Measure how long selection, curation and decisions take, beside plain ways and other learners.

    Selection is compared with a plain loop and with a bare matrix product, merging with difflib, decisions with
    **LightGBM** and river on the same facts. All of them take turns in one process, and the least of many times
    counts. With both sizes this takes a few minutes.

        python -m benchmarks speed
        python -m benchmarks speed --sizes 1k,10k --json
    """
    wanted = sizes_in(sizes)
    check_libraries()
    with progress("measuring") as done:
        figures = measure_speed(wanted, seed, done)
    write_files(folder_out, _files(figures))
    if json:
        print_json(figures.as_json())
        return
    for rows in (tables.times(figures), tables.rates(figures), [row[:3] for row in tables.ratios(figures)]):
        out.print(_table(rows))
    for text in (*tables.shares(figures), *tables.remarks(figures)):
        line(text, "dim")
    line(f"Figures, what they mean and the picture: {folder_out}")


def _files(figures: Figures) -> dict[str, bytes]:
    return {
        "speed.json": json_file(figures.as_json()),
        "speed.md": tables.as_markdown(figures).encode(),
        "performance.svg": picture(figures, "svg"),
        "performance.png": picture(figures, "png"),
    }


def _table(rows: list[list[str]]) -> Table:
    table = Table(padding=(0, 0, 0, 1), box=SIMPLE_HEAD)
    for index, heading in enumerate(rows[0]):
        table.add_column(heading, justify="right" if index else "left", no_wrap=bool(index))
    for row in rows[1:]:
        table.add_row(*row)
    return table
