"""What the documents show is what the code does."""

from __future__ import annotations

import ast
import asyncio
import doctest
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.service.on_server import running
from typer.testing import CliRunner

import acefraud
from acefraud import BulletPlaybook, Dataset, Source, Verdict, errors, load_dataset, open_playbook
from acefraud.cli import app
from acefraud.datasets.world import WorldOptions

pytestmark = pytest.mark.wide

ROOT = Path(__file__).parent.parent


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["api.md", "commands.md", "general-knowledge.md", "facts.md"])
def test_the_reference_pages_are_what_make_docs_writes(page: str) -> None:
    assert (ROOT / "docs" / page).read_text("utf-8") == generator().PAGES[page]()


def test_every_public_name_has_a_group_on_the_api_page() -> None:
    module = generator()
    assert module.OTHERS not in module.grouped(), "put the name into a group of GROUPS in docs/generate.py"
    listed = [name for names in module.GROUPS.values() for name in names.split()]
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(acefraud.__all__)


def test_a_name_in_no_group_stands_at_the_end_of_the_api_page(monkeypatch: pytest.MonkeyPatch) -> None:
    module = generator()
    monkeypatch.setitem(module.GROUPS, "Options and settings", "LearnerOptions ReflectionPolicy")
    assert list(module.grouped())[-1] == module.OTHERS
    assert module.grouped()[module.OTHERS] == ["ModelSettings"]


def test_links_on_the_api_page_lead_to_its_headings() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page, flags=re.DOTALL), re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= set(anchors)


def test_the_examples_on_the_api_page_need_no_more_than_the_public_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in the page can be copied: in the modules themselves, examples see more names."""
    monkeypatch.chdir(tmp_path)
    names = {name: getattr(acefraud, name) for name in acefraud.__all__}
    names |= {name: var for name, var in vars(errors).items() if getattr(var, "__module__", "") == errors.__name__}
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    sections = re.split(r"^#+ (?=`)", (ROOT / "docs" / "api.md").read_text("utf-8"), flags=re.MULTILINE)
    for section in sections:
        text = re.sub(r"^ *```.*$", "", section, flags=re.MULTILINE)
        runner.run(doctest.DocTestParser().get_doctest(text, dict(names), section.partition("\n")[0], None, None))
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries > 300


def test_the_transcript_in_the_readme_is_what_the_commands_print() -> None:
    assert (ROOT / "README.md").read_text("utf-8") == generator().readme()


def run(code: str, names: dict[str, Any]) -> None:
    """Run a block of the README, which may await at its top level."""
    compiled = compile(code, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, names)
    if inspect.iscoroutine(result):
        asyncio.run(result)


def test_the_examples_in_the_readme_run_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a smaller world than the shipped one; `test_ace_flow.py` has the figures on the whole of it."""
    monkeypatch.chdir(tmp_path)

    def smaller(source: Any, **given: Any) -> Dataset:
        """The shipped dataset is smaller, data frames are as they are."""
        return load_dataset(
            source, options=WorldOptions(transactions=800) if isinstance(source, str) else None, **given
        )

    monkeypatch.setattr("acefraud.load_dataset", smaller)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 7
    names: dict[str, Any] = {}
    run(blocks[0], names)
    playbook = names["playbook"]
    assert isinstance(playbook, BulletPlaybook)
    learnt = playbook.get_bullets_for_node("fraud_detection", source="offline")
    assert len(learnt) >= 10
    assert all(bullet.condition is not None and bullet.argues is not None for bullet in learnt)
    assert all(bullet.verified and bullet.claim is None for bullet in learnt), "the words bring what was measured"
    run(blocks[1], names)
    assert 0 < len(names["bullets"]) == len(names["scores"]) <= 5
    assert {bullet.source for bullet in names["bullets"]} == {Source.OFFLINE}
    assert names["decision"] == Verdict.DECLINE, "at night, through a VPN, on an account of two days"
    before = len(names["reflector"])
    run(blocks[2], names)
    assert len(names["reflector"]) > before, "it reflects on mistakes"
    run(blocks[3], names)
    assert names["decision"].reasons
    assert (tmp_path / "team.db").exists()
    run(blocks[4], names)
    assert (names["decision"].verdict, names["decision"].model) == (Verdict.DECLINE, "Cautious")
    assert names["own"].playbook.get_bullets_for_node("fraud_detection")
    run(blocks[5], names)
    assert len(names["model"].rules_)


@pytest.mark.enable_socket
@pytest.mark.parametrize("document", ["README.md", pytest.param("docs/service.md", marks=pytest.mark.long)])
def test_the_examples_of_the_service_run_against_a_server(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the commands before them: the key is the one that is printed, and only the port is another."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / document).read_text("utf-8")
    create, serve = (re.search(rf"acefraud ({command} .*?--playbook \S+?)[\s)]", text) for command in ("keys", "serve"))
    assert create is not None
    assert serve is not None
    with open_playbook("book.db") as book:  # in place of one that was trained
        book.add_bullet("VPN and a new account: decline")
    made = CliRunner().invoke(app, create[1].split())
    assert made.exit_code == 0, made.output
    secret = made.stdout.strip()
    monkeypatch.setenv("ACEFRAUD_API_KEY", secret)
    (block,) = re.findall(r"```python\n(from acefraud import Client\n.*?)```", text, re.DOTALL)
    with running(serve[1].split()[1:], tmp_path / "server.log", more=()) as server:
        names: dict[str, Any] = {}
        run(block.replace("http://127.0.0.1:8000", server.url).replace("ace_...", secret), names)
        assert names["decided"].transaction_id == "order-17"
        if document == "README.md":
            assert names["flips"] >= 1
            assert names["added"].bullet.policy == "always review"
            assert names["explained"].reasons == names["decided"].reasons


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_architecture_names_modules_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").replace("roles/…/", "roles/embedded/")
    package = ROOT / "src" / "acefraud"
    folders = "|".join(["tests", *(folder.name for folder in package.iterdir() if folder.is_dir())])
    named = set(re.findall(rf"(?<![\w/])((?:{folders})/(?:\w+/)*(?:\w+\.py)?)", page))
    assert len(named) > 40
    assert not {path for path in named if not (package / path).exists() and not (ROOT / path).exists()}


def test_the_glossary_stays_short() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert page.split("## Glossary")[1].count("\n| ") - 2 <= 25
