"""Commands run in this process, and small files for them."""

from __future__ import annotations

import json
import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.storage.replaying import cases_of
from typer.testing import CliRunner

from acefraud.cli import console, main
from acefraud.settings import ROLES
from acefraud.storage import BulletPlaybook, open_playbook

SETTINGS = (
    *(
        "PLAYBOOK",
        "DATABASE",
        "WHO",
        "EMBEDDER",
        "DATA",
        "CONFIG",
        "MODELS",
        "BASE_URL",
        "STYLE",
        "FALLBACK",
        "CACHE",
        "DURABILITY",
    ),
    *(f"{role.upper()}_MODEL" for role in ROLES),
)
"""The variables that a command asks for, without their first word."""


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one value it printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The values it printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """A folder with commands to run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.book = folder / "book.db"

    def __call__(self, *arguments: str | Path, stdin: str | bytes = b"", code: int = 0) -> Ran:
        """Run a command that ends with this exit code."""
        ran = self.attempt(*arguments, stdin=stdin)
        assert ran.code == code, f"exit code {ran.code}, expected {code}\n{ran.out}\n{ran.err}"
        return ran

    def attempt(self, *arguments: str | Path, stdin: str | bytes = b"") -> Ran:
        """Run a command as from the shell: through the entry point, which turns errors into exit codes."""
        with CliRunner().isolation(input=stdin) as streams, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["acefraud", *map(str, arguments)])
            try:
                main()
            except SystemExit as left:
                exit_code = int(left.code or 0)
            else:
                exit_code = 0
            sys.stdout.flush()
            sys.stderr.flush()
            return Ran(exit_code, streams[0].getvalue().decode(), streams[1].getvalue().decode())

    def on_book(self, *arguments: str | Path, stdin: str | bytes = b"", code: int = 0) -> Ran:
        """The same on this folder's playbook."""
        return self(*arguments, "--playbook", self.book, stdin=stdin, code=code)

    def write(self, name: str, content: str | bytes) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def rows(self, name: str, rows: list[dict[str, Any]]) -> Path:
        """A file of JSON lines."""
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def open(self) -> BulletPlaybook:
        """The playbook as it stands."""
        return open_playbook(self.book, create=False)

    def state(self) -> Any:
        """All that the playbook holds, to be compared before and after."""
        if not self.book.exists():
            return None
        with self.open() as book:
            return list(book.ledger.read()), cases_of(book.ledger)


def history(rows: int = 80) -> str:
    """Transactions as CSV: large ones through a VPN are fraud, with a little noise."""
    chance = random.Random(5)
    lines = ["id,time,amount,vpn,account_age_days,label"]
    for n in range(rows):
        amount, vpn, age = chance.randint(10, 3000), chance.random() < 0.5, chance.randint(1, 900)
        fraud = (amount > 1500 and vpn) or chance.random() < 0.04
        time = f"2024-01-{1 + n // 10:02d}T{n % 10:02d}:00:00Z"
        lines.append(f"h{n},{time},{amount},{str(vpn).lower()},{age},{int(fraud)}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def shell(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(f"ACEFRAUD_{name}", raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACEFRAUD_CACHE", str(tmp_path_factory.mktemp("cache") / "replies.db"))
    monkeypatch.setenv("COLUMNS", "200")  # for help, which looks at it each time
    monkeypatch.setattr(console.out, "width", 200)
    (tmp_path / "history.csv").write_text(history())
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "history.csv").write_text(history())
    shell = Shell(folder)
    shell.on_book("train", folder / "history.csv", "--json")
    return shell.book


@pytest.fixture
def trained(shell: Shell, trained_once: Path) -> Shell:
    """A shell whose playbook was trained on its history."""
    shutil.copy(trained_once, shell.book)
    return shell
