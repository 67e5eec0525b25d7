"""The options that several commands share, among them those that choose models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from acefraud.support.package_data import read_package_toml

PlaybookOption = Annotated[
    Path | None, Option(help="The playbook file. Default: $ACEFRAUD_PLAYBOOK, else playbook.db.")
]
DatabaseOption = Annotated[
    str | None,
    Option(
        metavar="ADDRESS",
        help="A PostgreSQL database in place of the file, as postgresql://user@host/name. Default: $ACEFRAUD_DATABASE.",
    ),
]
MappingOption = Annotated[
    Path | None, Option(help="TOML file that says which column is the id, time, label, amount and text.")
]
StrictOption = Annotated[bool, Option(help="Stop at the first row that cannot be read, instead of skipping it.")]
WorkersOption = Annotated[int, Option(min=1, help="Processes on this machine that share the work.")]
SchedulerOption = Annotated[
    str | None,
    Option(metavar="ADDRESS", help="The scheduler of a Dask cluster that does the work, such as tcp://10.0.0.5:8786."),
]
DaysAheadOption = Annotated[
    float, Option(min=0, help="How far after now a transaction may be dated; a later time counts in no history.")
]
JsonOption = Annotated[bool, Option(help="Print JSON for scripts.")]
ForceOption = Annotated[bool, Option(help="Replace what is there.")]
WhoOption = Annotated[str | None, Option(help="Your name. Default: $ACEFRAUD_WHO, else your user name.")]
WhyOption = Annotated[str, Option(help="The reason, kept in the ledger.")]


_KINDS: dict[str, Any] = {
    "text": str | None,
    "number": float | None,
    "whole": int | None,
    "path": Path | None,
    "flag": bool,
}


def _model_option(name: str, help: str, kind: str = "text", metavar: str | None = None) -> Any:
    option = Option(name, help=help, metavar=metavar, rich_help_panel="Language models")
    return Annotated[_KINDS[kind], option]


MODEL_OPTIONS = {
    field: _model_option(**option)
    for field, option in read_package_toml("acefraud.cli", "model_options.toml", dict[str, dict[str, str]]).items()
}
"""The options of ``model_options.toml``, by the field of ModelSettings that they set."""
