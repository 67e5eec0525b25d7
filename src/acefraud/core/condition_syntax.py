"""The formal syntax of conditions, such as ``amount > 2000 and vpn is true``: reads what `str(condition)` writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from acefraud.core.comparison import MEMBERSHIP, ORDERED, PRESENCE, Op, Test, TestValue

_TOKEN = re.compile(
    r"\s*(?:(?P<name>`[^`]+`)|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<symbol>>=|<=|>|<|\(|\)|,)|(?P<word>[A-Za-z_][A-Za-z0-9_]*))"
)
_TWO_WORDS = frozenset(op.value for op in Op if " " in op)


class ConditionParser:
    """Reads the tokens of one text from left to right. Each method takes the tokens of what it is named after."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise ValueError(f"{self._text!r} ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def tests(self) -> Iterator[Test]:
        """The tests of a condition. Raises ValueError that says where the text stops making sense."""
        if not self._tokens:
            raise ValueError("an empty condition")
        yield self.test()
        while self._at < len(self._tokens):
            kind, joint = self._next()
            if (kind, joint) != ("word", "and"):
                raise ValueError(f"expected 'and' before {joint!r} in {self._text!r}")
            yield self.test()

    def test(self) -> Test:
        kind, name = self._next()
        if kind not in ("name", "word"):
            raise ValueError(f"expected a fact, got {name!r} in {self._text!r}")
        fact = name.strip("`")
        op = self.op(fact)
        if op in PRESENCE:
            return Test(fact, op)
        return Test(fact, op, self.listed_words() if op in MEMBERSHIP else self.literal())

    def op(self, fact: str) -> Op:
        first = self._next()[1]
        kind, second = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind == "word" and f"{first} {second}" in _TWO_WORDS:
            self._at += 1
            return Op(f"{first} {second}")
        if first in ("is", "in") or first in ORDERED:
            return Op(first)
        raise ValueError(f"expected a comparison after '{fact}', got {first!r} in {self._text!r}")

    def listed_words(self) -> tuple[str, ...]:
        rest = self._tokens[self._at :]
        close = next((place for place, (_, value) in enumerate(rest) if value == ")"), None)
        if close is None or rest[0][1] != "(":
            raise ValueError(f"expected a list in parentheses in {self._text!r}")
        items = rest[1:close]
        if any(value != "," for _, value in items[1::2]) or any(kind != "string" for kind, _ in items[::2]):
            raise ValueError(f"expected quoted words between commas in {self._text!r}")
        self._at += close + 1
        return tuple(json.loads(value) for _, value in items[::2])

    def literal(self) -> TestValue:
        kind, token = self._next()
        if kind == "number":
            return float(token)
        if kind == "string":
            return str(json.loads(token))
        if token in ("true", "false"):
            return token == "true"
        raise ValueError(f"expected a number, a quoted word, true or false, got {token!r} in {self._text!r}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ValueError(f"cannot read condition at {text[position : position + 20]!r}")
        yield match.lastgroup, match[match.lastgroup]
        position = match.end()
