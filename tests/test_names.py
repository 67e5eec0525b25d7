"""One word, one meaning: names across the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import acefraud

PACKAGE = Path(acefraud.__file__).parent


def test_no_class_name_is_defined_twice() -> None:
    files = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(str(file.relative_to(PACKAGE)))
    assert {name: places for name, places in files.items() if len(places) > 1} == {}
