"""Conditions over facts. Data, never code.

A condition is a conjunction of parts. A part is a test of one fact, a comparison of two facts, or a choice between
other conditions ("or"). There is no "not": it is moved inward until it meets a test, and every test has an opposite. So
two conditions that say the same in another order are equal values.

A condition has one text form (`str(condition)`), which parses back to an equal condition. It can also be said in
English, printed as SQL, and evaluated on the facts of one transaction or on a table. The logic has three values
(Kleene's): a test of an unknown fact is neither true nor false; "and" is false if any part is false, "or" is true if
any option is true, and what is left is unknown. A condition *holds* only if it is true. What the learner finds is
plain: at most four tests. The rest is for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from acefraud.core.comparison import KEYWORDS, ORDERED, Op, PairTest, Test
from acefraud.core.context_facts import IN_LIST, NAMED, STARTING, LookUp
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue
from acefraud.display.short_repr import given, shown_text
from acefraud.support.arrays import BoolArray

__all__ = ["MAX_TESTS", "MOST_LEAVES", "AnyOf", "Condition", "Leaf", "Op", "PairTest", "Part", "Test"]

MAX_TESTS = 4
"""The most tests in a condition that the learner finds."""
MOST_LEAVES = 50
"""The most tests in a condition that a person writes."""

Leaf: TypeAlias = Test | PairTest


@dataclass(frozen=True, slots=True, repr=False)
class AnyOf:
    """A choice: true if any of its options is."""

    options: tuple[Condition, ...]

    def __post_init__(self) -> None:
        flat = [nested for option in self.options for nested in _options_of(option)]
        object.__setattr__(self, "options", tuple(sorted(set(flat), key=_simplest_first)))
        if len(self.options) < 2:
            raise ValueError("a choice has at least two different options")

    @property
    def facts(self) -> frozenset[str]:
        """The names of the facts that the options test."""
        return frozenset().union(*(option.facts for option in self.options))

    def on(self, facts: Mapping[str, FactValue]) -> bool | None:
        """Whether any option is true of these facts; None if an unknown fact leaves that open."""
        return _settled((option.truth(facts) for option in self.options), by=True)

    def in_table(self, table: FactTable) -> BoolArray:
        """For each row of a table, whether it is true."""
        return reduce(np.logical_or, (option.holds_in(table) for option in self.options))

    def fails_in(self, table: FactTable) -> BoolArray:
        """For each row of a table, whether it is false."""
        return reduce(np.logical_and, (option.fails_in(table) for option in self.options))

    def __str__(self) -> str:
        return f"({self.bare})"

    def __repr__(self) -> str:
        return f"AnyOf({Condition.of(self).shown(150)!r})"

    @property
    def bare(self) -> str:
        """The options without parentheses around them all."""
        return " or ".join(str(option) if len(option.parts) == 1 else f"({option})" for option in self.options)

    def to_sql(self) -> str:
        """The choice in SQL."""
        return f"({' OR '.join(f'({option.to_sql()})' for option in self.options)})"


Part: TypeAlias = Test | PairTest | AnyOf


@dataclass(frozen=True, slots=True, repr=False)
class Condition:
    """A conjunction of tests and choices, sorted so that equal conditions are equal values.

    >>> condition = Condition.parse("amount > 2000 and account_age_days < 30")
    >>> condition.holds({"amount": 2500.0, "account_age_days": 3.0})
    True
    >>> condition.truth({"amount": 2500.0}) is None
    True
    >>> condition.to_sql()
    '"account_age_days" < 30 AND "amount" > 2000'
    >>> str(Condition.parse("amount > 300 and not (vip is true and country = 'FR')"))
    'amount > 300 and (country is not "FR" or vip is false)'
    """

    parts: tuple[Part, ...]
    """Tests of one fact, comparisons of two, and choices."""

    def __post_init__(self) -> None:
        if isinstance(self.parts, str):
            raise ValueError("parts: expected tests, got text: use Condition.parse(text)")
        ordered = tuple(self.parts if len(self.parts) == 1 else sorted(set(self.parts), key=_simplest_first))
        object.__setattr__(self, "parts", ordered)
        if not ordered:
            raise ValueError("a condition has at least one test")
        has_many = len(ordered) > MAX_TESTS or any(isinstance(part, AnyOf) for part in ordered)
        if has_many and len(self.leaves) > MOST_LEAVES:
            raise ValueError(f"a condition has at most {MOST_LEAVES} tests, got {len(self.leaves)}")

    @classmethod
    def of(cls, *parts: Part) -> Condition:
        """A condition from its parts."""
        return cls(parts)

    @classmethod
    def all_of(cls, conditions: Iterable[Condition]) -> Condition:
        """The condition that holds where all of these do.

        >>> str(Condition.all_of(map(Condition.parse, ["vpn is true", "amount > 900"])))
        'amount > 900 and vpn is true'
        """
        return cls(tuple(part for condition in conditions for part in condition.parts))

    @classmethod
    def any_of(cls, conditions: Iterable[Condition]) -> Condition:
        """The condition that holds where any of these does.

        >>> str(Condition.any_of(map(Condition.parse, ["vpn is true", "amount > 9", "amount > 9"])))
        'amount > 9 or vpn is true'
        >>> str(Condition.any_of(map(Condition.parse, ['browser is "IE"', 'browser is "Opera"'])))
        'browser in ("IE", "Opera")'
        """
        distinct = _merged(dict.fromkeys(nested for condition in conditions for nested in _options_of(condition)))
        return next(iter(distinct)) if len(distinct) == 1 else cls((AnyOf(tuple(distinct)),))

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The condition that the text form states. Raises ValueError that says where the text stops making sense.

        >>> str(Condition.parse("country in ('NG', 'RO') and amount > 3 * usual_amount"))
        'amount > 3 * usual_amount and country in ("NG", "RO")'
        """
        if not isinstance(text, str):
            raise ValueError(f"a condition is written as text, got {given(text)}")
        return ConditionParser(text).condition()

    def negated(self) -> Condition:
        """The condition that is true where this one is false, and unknown where this one is.

        >>> str(Condition.parse("vpn is true and amount > 900").negated())
        'amount <= 900 or vpn is false'
        """
        return Condition.any_of(_negated(part) for part in self.parts)

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests of a plain condition. ValueError if it has anything else."""
        plain = tuple(part for part in self.parts if isinstance(part, Test))
        if len(plain) < len(self.parts):
            raise ValueError(f"not a plain conjunction of tests: {self}")
        return plain

    @property
    def is_plain(self) -> bool:
        """Whether it is a conjunction of tests of one fact each, as the learner finds them."""
        return all(isinstance(part, Test) for part in self.parts)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """All tests in it, at any depth."""
        nested = (
            [leaf for option in part.options for leaf in option.leaves] if isinstance(part, AnyOf) else [part]
            for part in self.parts
        )
        return tuple(chain.from_iterable(nested))

    def mapped(self, change: Callable[[Leaf], Leaf]) -> Condition:
        """The condition with every test changed."""
        return Condition(
            tuple(
                AnyOf(tuple(option.mapped(change) for option in part.options))
                if isinstance(part, AnyOf)
                else change(part)
                for part in self.parts
            )
        )

    @property
    def facts(self) -> frozenset[str]:
        """The names of the facts it tests.

        >>> sorted(Condition.parse("amount > 900 and (vpn is true or tor is true)").facts)
        ['amount', 'tor', 'vpn']
        """
        return frozenset().union(*(part.facts for part in self.parts))

    def truth(self, facts: Mapping[str, FactValue]) -> bool | None:
        """True, False, or None if an unknown fact leaves it open.

        >>> rule = Condition.parse("amount > 900 and vpn is true")
        >>> rule.truth({"amount": 20.0}), rule.truth({"amount": 950.0})
        (False, None)
        """
        return _settled((part.on(facts) for part in self.parts), by=False)

    def holds(self, facts: Mapping[str, FactValue]) -> bool:
        """Whether it is true of these facts."""
        return self.truth(facts) is True

    def clause(self, facts: Mapping[str, FactValue]) -> tuple[Leaf, ...]:
        """The tests that make it true of these facts: of every choice, the first option that holds. None if it is not.

        >>> rule = Condition.parse("amount > 5 and (vpn is true or night is true)")
        >>> [str(leaf) for leaf in rule.clause({"amount": 9.0, "vpn": True, "night": False})]
        ['amount > 5', 'vpn is true']
        """
        found: list[Leaf] = []
        for part in self.parts if self.holds(facts) else ():
            if isinstance(part, AnyOf):
                found += next(option.clause(facts) for option in part.options if option.holds(facts))
            else:
                found.append(part)
        return tuple(found)

    @property
    def effort(self) -> float:
        """What it takes to read it: a step for each further test, word of a list, or word for what something is not.

        >>> [Condition.parse(text).effort for text in ("a > 1", "a > 1 and b is not 'x'", "c in ('u', 'v', 'w')")]
        [0.0, 1.5, 1.0]
        """
        lists = [test for test in self.leaves if isinstance(test, Test) and test.op in (Op.IN, Op.NOT_IN, Op.IS_NOT)]
        words = sum(len(test.value) - 1 for test in lists if isinstance(test.value, tuple))
        denied = sum(test.op is not Op.IN for test in lists)
        return len(self.leaves) - 1 + (words + denied) / 2

    def holds_in(self, table: FactTable) -> BoolArray:
        """For each row of a table, whether it holds.

        >>> from acefraud import FactTable
        >>> Condition.parse("amount > 900").holds_in(FactTable([{"amount": 950.0}, {"amount": 20.0}])).tolist()
        [True, False]
        """
        return reduce(np.logical_and, (part.in_table(table) for part in self.parts))

    def fails_in(self, table: FactTable) -> BoolArray:
        """For each row of a table, whether it is false. Where a row has neither, it is unknown."""
        return reduce(np.logical_or, (part.fails_in(table) for part in self.parts))

    def implies(self, other: Condition) -> bool:
        """Whether the other holds wherever this one does, as far as that is plain to see.

        >>> Condition.parse("amount > 9000").implies(Condition.parse("amount > 1000 or vpn is true"))
        True
        """
        return all(_any_implies(self, theirs) for theirs in other.parts)

    def __str__(self) -> str:
        if len(self.parts) == 1 and isinstance(self.parts[0], AnyOf):
            return self.parts[0].bare
        return " and ".join(str(part) for part in self.parts)

    def __repr__(self) -> str:
        return f"Condition({self.shown(150)!r})"

    def shown(self, most: int) -> str:
        """The text form without personal data, cut to `most` characters. It may not parse back.

        >>> Condition.parse('full_name is "Ann Lee" and amount > 9').shown(60)
        'amount > 9 and full_name is "[masked]"'
        """
        return shown_text(str(self), most, hidden=self.hidden_values)

    @property
    def hidden_values(self) -> list[str]:
        """The values of personal facts that it asks for."""
        return [value for leaf in self.leaves if isinstance(leaf, Test) for value in leaf.hidden_values]

    def to_sql(self) -> str:
        """The condition in SQL, over columns named like the facts and tables named like the lists."""
        return " AND ".join(part.to_sql() for part in self.parts)

    @classmethod
    def _validate(cls, value: Any) -> Condition:
        return value if isinstance(value, cls) else cls.parse(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In JSON a condition is its text form."""
        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )


def _settled(answers: Iterable[bool | None], *, by: bool) -> bool | None:
    """What answers come to if one that is `by` settles it; None if an unknown one leaves it open."""
    result: bool | None = not by
    for answer in answers:
        if answer is by:
            return by
        if answer is None:
            result = None
    return result


def _simplest_first(part: Part | Condition) -> tuple[bool, str]:
    """The order of parts and options: single tests come before what stands in parentheses."""
    nested = len(part.parts) > 1 if isinstance(part, Condition) else isinstance(part, AnyOf)
    return nested, str(part)


def _options_of(condition: Condition) -> tuple[Condition, ...]:
    """The options of a condition that is nothing but a choice; otherwise the condition itself."""
    (first, *others) = condition.parts
    return first.options if isinstance(first, AnyOf) and not others else (condition,)


def _merged(options: Iterable[Condition]) -> list[Condition]:
    """Options in which those that only ask for values of one category became one list of values."""
    kept: list[Condition] = []
    listed: dict[str, list[Test]] = {}
    for option in options:
        (part, *others) = option.parts
        if isinstance(part, Test) and not others and part.op in (Op.IS, Op.IN) and isinstance(part.value, str | tuple):
            listed.setdefault(part.fact, []).append(part)
        else:
            kept.append(option)
    return kept + [Condition.of(_one_of(tests)) for tests in listed.values()]


def _one_of(tests: list[Test]) -> Test:
    """One test for any of the values that tests of a category ask for."""
    if len(tests) == 1:
        return tests[0]
    words = {word for test in tests for word in (test.value if isinstance(test.value, tuple) else (str(test.value),))}
    return Test(tests[0].fact, Op.IN, tuple(sorted(words)))


def _negated(part: Part) -> Condition:
    if isinstance(part, AnyOf):
        return Condition.all_of(option.negated() for option in part.options)
    return Condition.of(part.negated())


def _any_implies(condition: Condition, theirs: Part) -> bool:
    """Whether one of the parts of a condition implies a part of another."""
    if isinstance(theirs, AnyOf) and any(condition.implies(option) for option in theirs.options):
        return True
    return any(_part_implies(mine, theirs) for mine in condition.parts)


def _part_implies(mine: Part, theirs: Part) -> bool:
    if isinstance(mine, AnyOf):
        return all(_any_implies(option, theirs) for option in mine.options)
    if isinstance(theirs, AnyOf):
        return any(Condition.of(mine).implies(option) for option in theirs.options)
    if isinstance(mine, Test) and isinstance(theirs, Test):
        return mine.implies(theirs)
    return mine == theirs


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
        elif self._takes("named"):
            found = Condition.of(Test(LookUp(fact, NAMED, self._word()).flag, Op.IS, True))
        elif self._takes("starting"):
            self._expect("with")
            found = Condition.of(Test(LookUp(fact, STARTING, self._word()).flag, Op.IS, True))
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
            return Test(LookUp(fact, IN_LIST, self._fact("the name of a list")).flag, Op.IS, True)
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
        return self._next(expected, "name", "word").strip("`")

    def _number(self) -> float:
        return float(self._next("a number", "number"))

    def _word(self) -> str:
        text = self._next("a word in quotes", "string")
        return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] == "'" else str(json.loads(text))

    def _next(self, expected: str, *kinds: str) -> str:
        """Take a token of one of these kinds that is no keyword."""
        kind, text = self._peek()
        if kind not in kinds or (kind == "word" and text.lower() in KEYWORDS):
            self._fail(expected)
        self._at += 1
        return text

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
