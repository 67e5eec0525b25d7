"""Writes the reference pages from the code: commands, the scorecard of vanilla mode, facts, and the transcript."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from typer.testing import CliRunner

from acefraud.cli import app
from acefraud.core.fact_names import NAMED_FACTS
from acefraud.rules.scorecard import GENERAL, scorecard

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- transcript: made by `make docs` -->", "<!-- end of transcript -->"


def commands() -> str:
    """Every command with its help and options."""
    lines = ["# Commands", "", "Made by `make docs` from the commands themselves.", ""]
    for path, command in _walk(typer.main.get_command(app), ["acefraud"]):
        lines += [f"## {' '.join(path)}", "", inspect.cleandoc(command.help or ""), ""]
        context = command.context_class(command, info_name=" ".join(path))
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and record[0] != "--help":
                lines.append(f"- `{record[0]}`: {record[1]}")
            elif parameter.param_type_name == "argument":
                lines.append(f"- `{parameter.make_metavar(context)}`: {getattr(parameter, 'help', '') or ''}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _walk(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    for name, listed in command.commands.items():
        child = getattr(listed, "loaded", listed)  # commands are imported when they are called
        if hasattr(child, "commands"):
            yield from _walk(child, [*path, name])
        else:
            yield [*path, name], child


def general_knowledge() -> str:
    """The scorecard that vanilla mode decides by."""
    lines = [
        "# General knowledge: the scorecard of vanilla mode",
        "",
        "Made by `make docs` from `rules/scorecard.toml`. Points are log-odds of fraud; a transaction starts at "
        f"{GENERAL.intercept:+.1f} and is declined at even odds or higher. The points were set by judgement, from "
        "commonly published red and green flags. None was fitted to a data set. "
        "A playbook fits points of its own from labelled history.",
        "",
        "| condition | points |",
        "| --- | ---: |",
        *(f"| {point.words} | {point.points:+.1f} |" for point in scorecard()),
    ]
    return "\n".join(lines) + "\n"


def facts() -> str:
    """The facts that texts are read for."""
    lines = [
        "# Facts the engine knows by name",
        "",
        "Made by `make docs` from `core/fact_names.toml`. These facts are read from texts. A column with "
        "one of these names is described in the words beside it. Any other column is a fact too, under its own name.",
        "",
        "| fact | kind | in words |",
        "| --- | --- | --- |",
        *(
            f"| `{w.name}` | {w.kind} | {w.true or w.noun}{f' ({w.unit})' if w.unit else ''} |"
            for w in NAMED_FACTS.values()
        ),
    ]
    return "\n".join(lines) + "\n"


TRANSCRIPT = (
    ["train", "complex_fraud_detection"],
    [
        "decide",
        "Phone order of $640 at 14:20. The account is 8 months old with 64 transactions, usual amount $110. "
        "The card was added 20 days ago. 2 chargebacks before. No VPN.",
    ],
    ["playbook", "add", "VPN and a new device = 95% fraud", "--who", "ana"],
)


def transcript() -> str:
    """What an analyst types, and what the commands print."""
    lines = []
    with TemporaryDirectory() as folder:
        for arguments in TRANSCRIPT:
            result = CliRunner().invoke(app, [*arguments, "--playbook", f"{folder}/book.db"], catch_exceptions=False)
            lines.append(f"$ acefraud {shlex.join([*arguments, '--playbook', 'book.db'])}")
            lines.append(result.stdout.replace(f"{folder}/", "").rstrip())
    return "```console\n" + "\n".join(lines) + "\n```"


def readme() -> str:
    """The README with the current transcript."""
    text = README.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{transcript()}\n{END}{after}"


PAGES = {"commands.md": commands, "general-knowledge.md": general_knowledge, "facts.md": facts}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), "utf-8")
        print(f"docs/{name}")
    README.write_text(readme(), "utf-8")
    print("README.md")
