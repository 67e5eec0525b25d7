"""No code checks the class of a role: what differs between implementations is a member of the protocol."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "acefraud"
PLAYS = {"analyze", "assess", "assess_output", "ask_about", "embed", "fetch", "judge", "propose", "reflect", "rule"}
"""Methods by which a class is known to play a role."""


MODULES = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))


@cache
def modules() -> dict[str, ast.Module]:
    return {name: ast.parse((SOURCE / name).read_text(encoding="utf-8")) for name in MODULES}


@cache
def roles() -> frozenset[str]:
    """The names of all classes that play a role, and of the protocols of the roles."""
    classes = [node for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {node.name for node in classes if PLAYS & {part.name for part in node.body if hasattr(part, "name")}}
    while more := {node.name for node in classes if found & {_name(base) for base in node.bases}} - found:
        found |= more
    return frozenset(found)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _names(node: ast.AST) -> set[str]:
    return {_name(part) for part in ast.walk(node) if isinstance(part, ast.expr)}


def told_apart(tree: ast.Module, classes: frozenset[str]) -> Iterator[int]:
    """The lines that check the class of a role."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kind]) if _names(kind) & classes:
                yield node.lineno
            case ast.MatchClass(cls=kind) if _name(kind) in classes:
                yield kind.lineno
            case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=[kind]) if _names(kind) & classes:
                yield node.lineno
            case _:
                pass


def test_the_roles_are_known() -> None:
    expected = {
        "Agent", "CachedEmbedder", "EmbeddedAgent", "EmbeddedReflector", "Embedder", "Judge", "LLMJudge",
        "ModelAgent", "ModelEmbedder", "ModelJudge", "ModelReflector",
        "Proposals", "Reflector", "SimpleFraudAgent", "SimpleJudge", "Tiered", "WithFallback",
    }  # fmt: skip
    assert expected <= roles()


@pytest.mark.parametrize("name", MODULES)
def test_no_code_tells_roles_apart(name: str) -> None:
    assert list(told_apart(modules()[name], roles())) == []


@pytest.mark.parametrize("name", MODULES)
def test_no_protocol_is_runtime_checkable(name: str) -> None:
    assert "runtime_checkable" not in _names(modules()[name])


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(agent, Tiered)",
        "isinstance(agent, (int, SimpleFraudAgent))",
        "isinstance(agent, Tiered | None)",
        "type(agent) is Tiered",
        "match agent:\n    case Tiered():\n        pass",
    ],
)
def test_it_would_be_noticed(line: str) -> None:
    assert list(told_apart(ast.parse(line), roles()))
