"""A folder of datasets: each a folder of its own with ``data.csv`` or ``data.parquet``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from acefraud import Dataset, load_dataset
from acefraud.errors import ConfigurationError, InputError

FILES = ("data.csv", "data.parquet")
MAPPING = "mapping.toml"


@dataclass(frozen=True, slots=True)
class Source:
    """One dataset of a folder. If it has no mapping, one is guessed."""

    name: str
    file: Path
    mapping: Path | None

    def load(self, rows: int | None = None) -> Dataset:
        """All rows, or the most recent ones, with the facts of their history."""
        data = load_dataset(self.file, mapping=self.mapping).with_history()
        latest = data.train if rows is None else data.train[-rows:]
        return replace(data, name=self.name, train=latest)


def data_folder(given: Path | None) -> Path:
    """The folder of datasets that was given, else that of the environment."""
    named = given or os.environ.get("ACEFRAUD_DATA")
    if not named:
        raise ConfigurationError("no folder of datasets: name one, or set ACEFRAUD_DATA")
    return Path(named)


def sources(folder: Path, *, names: Sequence[str] | None = None, mappings: Path | None = None) -> list[Source]:
    """The datasets of a folder in alphabetical order, or those with the given names."""
    if not folder.is_dir():
        raise InputError("there is no such folder", file=str(folder))
    if mappings is not None and not mappings.is_dir():
        raise ConfigurationError(f"--mappings: there is no folder {mappings}")
    found = {each.name: each for each in (_source(path, mappings) for path in sorted(folder.iterdir())) if each}
    if not found:
        raise InputError(f"no dataset here: expected folders with {' or '.join(FILES)} in them", file=str(folder))
    unknown = [name for name in names or () if name not in found]
    if unknown:
        raise ConfigurationError(f"{folder} has no dataset '{unknown[0]}'; it has: {', '.join(found)}")
    return [source for name, source in found.items() if names is None or name in names]


def _source(path: Path, mappings: Path | None) -> Source | None:
    file = next((path / name for name in FILES if (path / name).is_file()), None)
    if file is None:
        return None
    places = [path / MAPPING, *([mappings / f"{path.name}.toml"] if mappings else [])]
    return Source(path.name, file, next((at for at in places if at.is_file()), None))
