"""How the package is laid out: folders that can be looked over, and no circle of imports."""

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


def test_no_folder_has_too_many_modules() -> None:
    modules = Counter(file.parent.relative_to(PACKAGE).as_posix() for file in FILES.values())
    assert {folder for folder, count in modules.items() if count > MOST_MODULES} <= GROWS


def test_no_module_imports_itself_through_others() -> None:
    """The public names are left out: they are imported when they are used, also by the estimators behind them."""
    imports = {module: imported(file) - {"acefraud"} for module, file in FILES.items() if module != "acefraud"}
    TopologicalSorter(imports).prepare()  # an error names the circle
