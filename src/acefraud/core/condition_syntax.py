r"""The formal syntax of conditions: reads what `str(condition)` writes, and a little more.

    condition  = conjunction { "or" conjunction } [ "unless" condition ]
    conjunction = unit { "and" unit }
    unit       = "not" unit | "(" condition ")" | test
    test       = fact comparison operand
               | fact [ "not" ] "between" number "and" number
               | fact "is" [ "not" ] ( "missing" | "known" )
               | fact [ "not" ] "in" ( "(" word { "," word } ")" | "list" name )
    comparison = ">" | ">=" | "<" | "<=" | "is" | "is not" | "=" | "==" | "!="
    operand    = number | word | "true" | "false" | [ number "*" ] fact
    fact, name = letters, digits and "_", or anything in `backticks`
    word       = text in "double" or 'single' quotes

Keywords may be in capitals. After "is", "=" and "!=" a fact needs backticks: a bare word there is more likely a
category without its quotes, which is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from acefraud.core.comparison import KEYWORDS, ORDERED, Op, Test
from acefraud.core.condition import Condition
from acefraud.core.context_facts import list_fact
from acefraud.core.pair_test import PairTest

_TOKEN = re.compile(
    r"\s*(?:(?P<name>`[^`]+`)|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])"
    r"|(?P<symbol>>=|<=|!=|<>|==|>|<|=|\(|\)|,|\*)|(?P<word>[A-Za-z_][A-Za-z0-9_]*))"
)
_SYMBOLS = {"=": Op.IS, "==": Op.IS, "!=": Op.IS_NOT, "<>": Op.IS_NOT, **{op.value: op for op in ORDERED}}
_DEEPEST = 50


class _Token(NamedTuple):
    kind: str
    text: str


_END = _Token("end", "the end")


class ConditionParser:
    """Reads the tokens of one text from left to right. Each method takes the tokens of what it is named after."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def condition(self) -> Condition:
        """The whole text as a condition. Raises ValueError that says where the text stops making sense."""
        if not self._tokens:
            raise ValueError("an empty condition")
        found = self._choice()
        if self._at < len(self._tokens):
            self._fail("'and' or 'or'")
        return found

    def _choice(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"a condition is nested at most {_DEEPEST} times")
        options = [self._conjunction()]
        while self._takes("or"):
            options.append(self._conjunction())
        found = Condition.any_of(options)
        if self._takes("unless"):
            found = Condition.all_of([found, self._choice().negated()])
        self._depth -= 1
        return found

    def _conjunction(self) -> Condition:
        parts = [self._unit()]
        while self._takes("and"):
            parts.append(self._unit())
        return Condition.all_of(parts)

    def _unit(self) -> Condition:
        if self._takes("not"):
            return self._unit().negated()
        if self._takes("("):
            found = self._choice()
            self._expect(")")
            return found
        return self._test()

    def _test(self) -> Condition:
        fact = self._fact("a fact")
        negated = self._takes("not")
        if self._takes("between"):
            found = self._between(fact)
        elif self._takes("in"):
            found = Condition.of(self._listed(fact))
        elif negated:
            self._fail("'in' or 'between' after 'not'")
        else:
            return Condition.of(self._compared(fact))
        return found.negated() if negated else found

    def _between(self, fact: str) -> Condition:
        low = self._number()
        self._expect("and")
        return Condition.of(Test(fact, Op.AT_LEAST, low), Test(fact, Op.AT_MOST, self._number()))

    def _listed(self, fact: str) -> Test:
        if self._takes("list"):
            return Test(list_fact(fact, self._fact("the name of a list")), Op.IS, True)
        self._expect("(", "a list in parentheses, or 'list' and its name,")
        words = [self._word()]
        while self._takes(","):
            words.append(self._word())
        self._expect(")")
        return Test(fact, Op.IN, tuple(words))

    def _compared(self, fact: str) -> Test | PairTest:
        if self._takes("is"):
            negated = self._takes("not")
            for word, op in (("missing", Op.MISSING), ("known", Op.KNOWN)):
                if self._takes(word):
                    test = Test(fact, op)
                    return test.negated() if negated else test
            return self._operand(fact, Op.IS_NOT if negated else Op.IS)
        kind, text = self._peek()
        if kind != "symbol" or text not in _SYMBOLS:
            self._fail(f"a comparison after '{fact}'")
        self._at += 1
        return self._operand(fact, _SYMBOLS[text])

    def _operand(self, fact: str, op: Op) -> Test | PairTest:
        kind, text = self._peek()
        if kind == "number":
            number = self._number()
            if self._takes("*"):
                return PairTest(fact, op, self._fact("a fact after '*'"), number)
            return Test(fact, op, number)
        if kind == "string":
            return Test(fact, op, self._word())
        if self._takes("true"):
            return Test(fact, op, True)
        if self._takes("false"):
            return Test(fact, op, False)
        if kind != "name" and (kind != "word" or op not in ORDERED or text.lower() in KEYWORDS):
            self._fail("a number, a word in quotes, true, false, or a fact in backticks")
        return PairTest(fact, op, self._fact("a fact"))

    def _fact(self, expected: str) -> str:
        kind, text = self._peek()
        if kind == "name":
            self._at += 1
            return text.strip("`")
        if kind != "word" or text.lower() in KEYWORDS:
            self._fail(expected)
        self._at += 1
        return text

    def _number(self) -> float:
        kind, text = self._peek()
        if kind != "number":
            self._fail("a number")
        self._at += 1
        return float(text)

    def _word(self) -> str:
        kind, text = self._peek()
        if kind != "string":
            self._fail("a word in quotes")
        self._at += 1
        if text[0] == "'":
            return re.sub(r"\\(.)", r"\1", text[1:-1])
        return str(json.loads(text))

    def _takes(self, text: str) -> bool:
        """Whether the next token is this keyword or symbol, which is then taken."""
        kind, found = self._peek()
        if kind in ("word", "symbol") and found.lower() == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str, expected: str = "") -> None:
        if not self._takes(text):
            self._fail(expected or f"'{text}'")

    def _peek(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _fail(self, expected: str) -> NoReturn:
        kind, found = self._peek()
        if kind == "end":
            raise ValueError(f"expected {expected}, but {self._text!r} ends too early")
        raise ValueError(f"expected {expected} before {found!r} in {self._text!r}")


def _tokens(text: str) -> Iterator[_Token]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ValueError(f"cannot read condition at {text[position : position + 20]!r}")
        yield _Token(match.lastgroup, match[match.lastgroup])
        position = match.end()
