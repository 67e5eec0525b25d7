"""The container and compose files name only what exists, and run the command that the tests run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.postgres import database_for
from tests.service.on_server import ACEFRAUD, running
from typer.main import get_command

from acefraud.cli import app
from acefraud.settings import Settings

pytestmark = pytest.mark.wide

ROOT = Path(__file__).parents[2]
OFFICIAL = re.compile(r"(python:3\.(1[1-9])(-slim)?|postgres:1[4-9])")
"""Images of the official library, with tags that it has."""
INSTRUCTIONS = {
    "ARG",
    "FROM",
    "WORKDIR",
    "COPY",
    "RUN",
    "ENV",
    "USER",
    "VOLUME",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}


def _steps() -> list[tuple[str, str]]:
    text = (ROOT / "Containerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.strip().partition(" ") for line in joined.splitlines())]


def _compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    return content


def _environment_of_the_image() -> dict[str, str]:
    settings = [word for name, rest in _steps() if name == "ENV" for word in shlex.split(rest)]
    environment = dict(word.split("=", 1) for word in settings)
    del environment["PATH"]  # where the image has the command; tests have it elsewhere
    return environment


def _environment_of_the_service() -> dict[str, str]:
    """What the container of the compose file runs with: what the image sets, and what the compose file adds."""
    added: dict[str, str] = _compose()["services"]["service"]["environment"]
    return _environment_of_the_image() | added


def _documented(start: str) -> list[str]:
    """The rest of a command that the documentation and the compose file both tell to run."""
    told = [(ROOT / name).read_text("utf-8") for name in ("docs/service.md", "compose.yaml")]
    (rest,) = {line for text in told for line in re.findall(rf"{start}(.+)", text)}
    return shlex.split(rest)


def _parses(arguments: list[str]) -> dict[str, Any]:
    """The options of `acefraud ...` as the command line reads them."""
    name, *rest = arguments
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    options: dict[str, Any] = command.make_context(name, rest).params
    return options


def test_every_step_is_one_that_a_container_file_has() -> None:
    steps = _steps()

    assert {name for name, _ in steps} <= INSTRUCTIONS
    stages = set()
    for name, rest in steps:
        if name == "FROM":
            image, *named = rest.split(" AS ")
            assert OFFICIAL.fullmatch(image), image
            stages.update(named)
        if name in ("CMD", "ENTRYPOINT"):
            assert all(isinstance(part, str) for part in json.loads(rest))
    copied = [shlex.split(rest) for name, rest in steps if name == "COPY"]
    assert {word.partition("=")[2] for words in copied for word in words if word.startswith("--from=")} <= stages


def test_what_is_copied_exists_and_is_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for name, rest in _steps():
        words = shlex.split(rest)
        if name == "COPY" and not words[0].startswith("--from="):
            for source in words[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored


def test_the_container_installs_extras_that_the_project_has() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (usual,) = [rest.partition("EXTRAS=")[2] for name, rest in _steps() if name == "ARG"]
    cluster = yaml.safe_load((ROOT / "compose.cluster.yaml").read_text("utf-8"))["services"]
    chosen = {service["build"]["args"]["EXTRAS"] for service in cluster.values()}

    assert chosen == {"dask"}
    assert {*usual.split(","), *chosen} <= set(extras)


def test_the_container_runs_the_command_that_the_tests_run() -> None:
    steps = dict(_steps())
    entry, arguments = json.loads(steps["ENTRYPOINT"]), json.loads(steps["CMD"])

    assert entry == ["acefraud"]
    assert arguments[0] == "serve"
    assert _parses(arguments)["port"] == int(steps["EXPOSE"])


def test_the_compose_file_runs_postgresql_and_two_workers() -> None:
    services = _compose()["services"]
    service, database = services["service"], services["database"]

    assert OFFICIAL.fullmatch(database["image"])
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    assert set(service["depends_on"]) <= set(services)
    options = _parses(service["command"])
    assert (options["workers"], options["port"]) == (2, 8000)
    address = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", service["environment"]["ACEFRAUD_DATABASE"])
    assert Settings.from_environment({"ACEFRAUD_DATABASE": address}).database == address
    assert "@database/acefraud" in address
    named = {volume.partition(":")[0] for volume in database["volumes"]}
    assert named <= set(_compose()["volumes"])


@pytest.mark.enable_socket
def test_the_service_of_the_compose_file_starts_and_takes_the_key_that_the_documentation_makes(tmp_path: Path) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("ACEFRAUD_")}
    environment = outside | _environment_of_the_service() | {"ACEFRAUD_DATABASE": database_for(tmp_path)}
    command, *options = _compose()["services"]["service"]["command"]
    create = _documented("docker compose exec service acefraud ")

    assert command == "serve"
    with running(options, tmp_path / "log", more=["--host", "127.0.0.1"], environment=environment) as server:
        made = subprocess.run([*ACEFRAUD, *create], env=environment, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        bearer = {"Authorization": f"Bearer {made.stdout.strip()}"}
        assert httpx.get(f"{server.url}/v1/playbook", headers=bearer).status_code == 200
        assert httpx.get(f"{server.url}/v1/playbook").status_code == 401


def test_the_image_by_itself_keeps_its_playbook_in_the_volume() -> None:
    steps = dict(_steps())
    served = _parses(json.loads(steps["CMD"]))["playbook"]
    elsewhere = Path(steps["WORKDIR"]) / Settings.from_environment(_environment_of_the_image()).playbook

    assert served == elsewhere == Path(steps["VOLUME"]) / "playbook.db"
