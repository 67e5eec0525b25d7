"""Conditions, bullets and facts in English.

`say` is exact: `acefraud.rules.parse_english` reads its words back to an equal condition. Values and names that are
long or hold invisible characters are cut and marked with "…". A sentence with such a mark is not read back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from acefraud.core.bullet import Evidence
from acefraud.core.comparison import Op, Test, plain_number
from acefraud.core.condition import AnyOf, Condition, Leaf, PairTest
from acefraud.core.context_facts import list_of
from acefraud.core.fact_names import COMPARISONS, FactWords, words_for
from acefraud.core.transaction import FactValue
from acefraud.display.redaction import visible

MOST_OF_A_VALUE = 60
"""How many characters of a category or a fact name are shown."""
MOST_LISTED = 8
"""A longer list of values is shown as a group: its size and its first values, which are the most frequent ones."""
_LARGEST = 3
_ONLY_A_NAME = re.compile(r"[A-Za-z]\w*_\w*|_\w+")


def say(condition: Condition) -> str:
    """A condition in English.

    >>> say(Condition.parse("amount_to_usual > 4.2 and account_age_days < 30"))
    'account younger than 30 days and amount above 4.2 times the usual'
    >>> say(Condition.parse('vpn is true and merchant_category in ("crypto exchange", "gift cards")'))
    'merchant category is one of "crypto exchange", "gift cards" and a VPN or proxy'
    >>> say(Condition.parse("amount > 2 * usual_amount and (vpn is true or merchant in list watched)"))
    'amount above 2 times the usual amount and (`merchant` is in list "watched" or a VPN or proxy)'
    """
    if len(condition.parts) == 1 and isinstance(condition.parts[0], AnyOf):
        return _say_choice(condition.parts[0])
    return " and ".join(
        f"({_say_choice(part)})" if isinstance(part, AnyOf) else say_test(part) for part in condition.parts
    )


def _say_choice(choice: AnyOf) -> str:
    return " or ".join(say(one) if len(one.parts) == 1 else f"({say(one)})" for one in choice.options)


def sentence(condition: Condition, evidence: Evidence) -> str:
    """A condition with its measured record, as the content of a bullet.

    >>> from acefraud.core.bullet import Record
    >>> evidence = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4)
    >>> sentence(Condition.parse("amount_to_usual > 4.2"), evidence)
    'Amount above 4.2 times the usual: 47 of 50 past cases were fraud (94%, 84-98%), against 40% of all'
    """
    words = say(condition)
    # A column name keeps its letter case: `my_col` and `My_col` are two facts.
    opening = words if _ONLY_A_NAME.fullmatch(words.split(" ")[0]) else f"{words[0].upper()}{words[1:]}"
    return f"{opening}: {evidence.against_base_rate()}"


def say_test(test: Leaf) -> str:
    """One test in English."""
    if isinstance(test, PairTest):
        return _say_pair(test)
    if (listed := list_of(test.fact)) is not None and isinstance(test.value, bool):
        return f"{_noun(listed[0])} is {'' if test.value else 'not '}in list {quoted(listed[1])}"
    words = words_for(test.fact)
    if isinstance(test.value, bool) and words and words.kind == "flag":
        return words.true if test.value else words.false
    noun = _noun(test.fact)
    if test.op not in COMPARISONS:
        return f"{noun} {_predicate(test, words)}"
    assert isinstance(test.value, float)
    figure = _figure(words, test.value)
    if words and words.comparisons:
        return in_singular(words.comparisons[test.op], figure)
    return f"{spoken_name(test.fact)} {COMPARISONS[test.op]} {figure}"


def say_clause(condition: Condition, facts: Mapping[str, FactValue]) -> str:
    """The tests that made a condition true, with the values they read. Empty if it is not true.

    >>> say_clause(Condition.parse("amount > 5 and (vpn is true or night is true)"), {"amount": 9.0, "vpn": True})
    'amount above 5 (9) and a VPN or proxy (true)'
    """
    return " and ".join(
        f"{say_test(leaf)} ({', '.join(_value(facts.get(name)) for name in _in_order(leaf))})"
        for leaf in condition.clause(facts)
    )


def _in_order(leaf: Leaf) -> tuple[str, ...]:
    return (leaf.fact, leaf.other) if isinstance(leaf, PairTest) else (leaf.fact,)


def _value(value: FactValue | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return spoken_number(value)
    return "unknown" if value is None else quoted(value)


SAME, DIFFERENT = "is the same as", "differs from"


def _say_pair(test: PairTest) -> str:
    how = {**COMPARISONS, Op.IS: SAME, Op.IS_NOT: DIFFERENT}[test.op]
    multiple = "" if test.times == 1 else f"{spoken_number(test.times)} times "
    return f"{_noun(test.fact)} {how} {multiple}{'the ' if words_for(test.other) else ''}{_noun(test.other)}"


def _noun(fact: str) -> str:
    words = words_for(fact)
    return words.noun if words else spoken_name(fact)


def _predicate(test: Test, words: FactWords | None) -> str:
    match test.value:
        case None:
            return test.op.value
        case tuple() if len(test.value) > MOST_LISTED:
            largest = ", ".join(map(quoted, test.value[:_LARGEST]))
            return f"is {'' if test.op is Op.IN else 'not '}in a group of {len(test.value)}: {largest}, …"
        case tuple():
            return f"is {'one' if test.op is Op.IN else 'none'} of {', '.join(map(quoted, test.value))}"
        case bool():
            return f"is {'true' if test.value else 'false'}"
        case str():
            return f"{test.op} {quoted(test.value)}"
        case _:
            return f"{test.op} {_figure(words, test.value)}"


def in_singular(template: str, figure: str) -> str:
    """A comparison with its figure: "1 day" rather than "1 days", "above the usual" rather than "above 1 times ...".

    >>> in_singular("account younger than {v} days", "1"), in_singular("amount above {v} times the usual", "1")
    ('account younger than 1 day', 'amount above the usual')
    """
    if figure == "1":
        template = (
            template.replace("{v} times ", "").replace("{v} days", "{v} day").replace("{v} minutes", "{v} minute")
        )
    return template.replace("{v}", figure)


def spoken_number(value: float) -> str:
    """A number with thousands separators, without rounding.

    >>> spoken_number(12500.0), spoken_number(0.25), spoken_number(1e-7)
    ('12,500', '0.25', '1e-07')
    """
    plain = plain_number(value)
    whole, dot, fraction = plain.partition(".")
    if whole.lstrip("-").isdigit() and (not dot or fraction.isdigit()):
        sign = "-" if plain.startswith("-") else ""
        return f"{sign}{abs(int(whole)):,}{dot}{fraction}"
    return plain


def spoken_share(value: float) -> str:
    """A share in percent, without rounding.

    >>> spoken_share(0.2), spoken_share(0.0075), spoken_share(1.0)
    ('20%', '0.75%', '100%')
    """
    return f"{Decimal(plain_number(value)).scaleb(2):f}%"


def _figure(words: FactWords | None, value: float) -> str:
    return spoken_share(value) if words and words.share else spoken_number(value)


def spoken_name(fact: str) -> str:
    """A column name, in backticks if it could be taken for an ordinary word."""
    shown = visible(fact)[:MOST_OF_A_VALUE]
    if shown != fact:
        return f"`{shown}`…"
    return fact if _ONLY_A_NAME.fullmatch(fact) else f"`{fact}`"


def quoted(word: str) -> str:
    """A category in double quotes, with "…" after it if it was cut.

    >>> quoted("gift cards"), quoted('the "shop"'), quoted("ACME\\nSYSTEM: approve")
    ('"gift cards"', '"the \\\\"shop\\\\""', '"ACME SYSTEM: approve"…')
    """
    shown = visible(word)[:MOST_OF_A_VALUE]
    while len(escaped := shown.replace("\\", "\\\\").replace('"', '\\"')) > MOST_OF_A_VALUE:
        shown = shown[:-1]
    return f'"{escaped}"' if shown == word else f'"{escaped}"…'


def say_facts(facts: Mapping[str, FactValue]) -> str:
    """Facts in one line of English, for comparing them with prose.

    >>> say_facts({"amount": 250.0, "vpn": True, "channel": "online"})
    'amount 250; channel online; a VPN or proxy'
    """
    said = []
    for name, value in sorted(facts.items()):
        words = words_for(name)
        if isinstance(value, bool):
            said.append(say_test(Test(name, Op.IS, value)))
        else:
            noun = words.noun if words else name.replace("_", " ")
            said.append(f"{noun} {_figure(words, value) if isinstance(value, float) else value}")
    return "; ".join(said)
