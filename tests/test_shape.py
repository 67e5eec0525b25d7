"""How the package is laid out: folders that can be looked over, and no circle of imports.

What does not hold yet is listed as an exception. The lists may only get shorter: an exception that is no longer needed
fails too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import acefraud

PACKAGE = Path(acefraud.__file__).parent
MOST_MODULES = 18
"""Modules that a folder has at most, its `__init__.py` included."""
GROWS = {"storage/migrations/versions"}
"""Every change of the schema adds a module here, so that it may have any number."""
TOO_LARGE = {"cli", "core", "learning", "service", "storage"}
"""Folders that still have more."""
CLOSING_CIRCLES = {
    # the public names, which the estimators and the evaluation use as others would; it imports them when asked for them
    ("acefraud", "acefraud.estimator.backtest_scorer"),
    ("acefraud", "acefraud.estimator.classifier"),
    ("acefraud", "acefraud.estimator.stream_classifier"),
    ("acefraud", "acefraud.evaluation.backtest"),
    ("acefraud", "acefraud.evaluation.compare"),
    ("acefraud", "acefraud.evaluation.comparison"),
    # for type checkers only
    ("acefraud.core.policy", "acefraud.core.bullet"),
    ("acefraud.storage.changes", "acefraud.storage.playbook"),
    ("acefraud.storage.facts_at_hand", "acefraud.storage.playbook"),
}
"""Imports without which there would be no circle: who imports, and what."""

Imports = Mapping[str, Set[str]]
"""The modules of the package that each of them imports."""


def name_of(file: Path) -> str:
    """The name that a module is imported by."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """What a module says outside functions, under `if TYPE_CHECKING` too."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ("body", "orelse", "finalbody"):
                yield from statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from statements(handler.body)


def imported(file: Path) -> Set[str]:
    """The modules of the package that a module imports. The name of a package means its `__init__.py`."""
    package = name_of(file.parent / "__init__.py")
    named: set[str] = set()
    for statement in statements(ast.parse(file.read_text("utf-8")).body):
        if isinstance(statement, ast.Import):
            named.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            source = resolve_name("." * statement.level + (statement.module or ""), package)
            modules = {f"{source}.{alias.name}" for alias in statement.names}
            named |= modules if modules <= FILES.keys() else modules | {source}
    return named & FILES.keys()


def reached(start: str, imports: Imports) -> Set[str]:
    """The modules that one imports, directly or through others."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = imports[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def without(imports: Imports, some: Set[tuple[str, str]]) -> Imports:
    return {module: {other for other in others if (module, other) not in some} for module, others in imports.items()}


def test_no_folder_has_too_many_modules() -> None:
    modules = Counter(file.parent.relative_to(PACKAGE).as_posix() for file in FILES.values())
    assert {folder for folder, count in modules.items() if count > MOST_MODULES} - GROWS == TOO_LARGE


def test_no_module_imports_itself_through_others() -> None:
    imports = {module: imported(file) for module, file in FILES.items()}
    others = without(imports, CLOSING_CIRCLES)
    TopologicalSorter(others).prepare()  # an error names the circle
    closing = {
        (module, other)
        for module, other in CLOSING_CIRCLES
        if other in imports.get(module, ()) and module in reached(other, others)
    }
    assert closing == CLOSING_CIRCLES
