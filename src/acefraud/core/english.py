"""Conditions and bullets as English sentences.

`say` is exact: what it says, `acefraud.core.reading` reads back to an equal condition. Values and names that are long
or hold invisible characters are not shown in full. A "…" follows them, and such a sentence is not read back at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from acefraud.core.comparison import Op, Test, plain_number
from acefraud.core.condition import Condition
from acefraud.core.evidence import Evidence
from acefraud.core.lexicon import FactWords, words_for
from acefraud.core.transaction import FactValue
from acefraud.core.visible_text import visible

MOST_OF_A_VALUE = 60
"""Characters of a category or of the name of a fact that are shown."""
_ONLY_A_NAME = re.compile(r"[A-Za-z]\w*_\w*|_\w+")
COMPARISONS = {Op.ABOVE: "above", Op.AT_LEAST: "at least", Op.BELOW: "below", Op.AT_MOST: "at most"}


def say(condition: Condition) -> str:
    """A condition in English.

    >>> say(Condition.parse("amount_to_usual > 4.2 and account_age_days < 30"))
    'account younger than 30 days and amount above 4.2 times the usual'
    >>> say(Condition.parse('vpn is true and merchant_category in ("crypto exchange", "gift cards")'))
    'merchant category is one of "crypto exchange", "gift cards" and a VPN or proxy'
    """
    return " and ".join(say_test(test) for test in condition.tests)


def sentence(condition: Condition, evidence: Evidence) -> str:
    """A bullet: its condition and the measured record.

    >>> from acefraud.core.evidence import Record
    >>> evidence = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.4)
    >>> sentence(Condition.parse("amount_to_usual > 4.2"), evidence)
    'Amount above 4.2 times the usual: 47 of 50 past cases were fraud (94%, 84-98%), against 40% of all'
    """
    words = say(condition)
    share = 100 * evidence.base_rate
    base = f"{share:.0f}" if share >= 10 else f"{share:.2g}"
    # A column's name keeps its letter case: `my_col` and `My_col` are two facts.
    opening = words if _ONLY_A_NAME.fullmatch(words.split(" ")[0]) else f"{words[0].upper()}{words[1:]}"
    return f"{opening}: {evidence.in_words()}, against {base}% of all"


def say_test(test: Test) -> str:
    """One test in English."""
    words = words_for(test.fact)
    noun = words.noun if words else spoken_name(test.fact)
    if test.op in (Op.MISSING, Op.KNOWN):
        return f"{noun} {test.op}"
    if isinstance(test.value, tuple):
        listed = ", ".join(quoted(value) for value in test.value)
        return f"{noun} is {'one' if test.op is Op.IN else 'none'} of {listed}"
    if isinstance(test.value, bool):
        if words and words.kind == "flag":
            return words.true if test.value else words.false
        return f"{noun} is {'true' if test.value else 'false'}"
    if isinstance(test.value, float):
        return _say_number(test, test.value)
    return f"{noun} {test.op} {quoted(str(test.value))}"


def _say_number(test: Test, value: float) -> str:
    words = words_for(test.fact)
    figure = _figure(words, value)
    if test.op in (Op.IS, Op.IS_NOT):
        noun = words.noun if words else spoken_name(test.fact)
        return f"{noun} {test.op} {figure}"
    if words is None or words.kind != "number":
        return f"{spoken_name(test.fact)} {COMPARISONS[test.op]} {figure}"
    template = {
        Op.ABOVE: words.above,
        Op.AT_LEAST: words.at_least,
        Op.BELOW: words.below,
        Op.AT_MOST: words.at_most,
    }[test.op]
    unit = f" {words.unit}" if words.unit else ""
    return in_singular(template or f"{words.noun} {COMPARISONS[test.op]} {{v}}{unit}", figure)


def in_singular(template: str, figure: str) -> str:
    """The template with its figure: "1 day" rather than "1 days", "above the usual" rather than "above 1 times it".

    >>> in_singular("account younger than {v} days", "1"), in_singular("amount above {v} times the usual", "1")
    ('account younger than 1 day', 'amount above the usual')
    """
    if figure == "1":
        template = (
            template.replace("{v} times ", "").replace("{v} days", "{v} day").replace("{v} minutes", "{v} minute")
        )
    return template.replace("{v}", figure)


def spoken_number(value: float) -> str:
    """A number with thousands separated, exact.

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
    """A share in percent, exact.

    >>> spoken_share(0.2), spoken_share(0.0075), spoken_share(1.0)
    ('20%', '0.75%', '100%')
    """
    return f"{Decimal(plain_number(value)).scaleb(2):f}%"


def _figure(words: FactWords | None, value: float) -> str:
    return spoken_share(value) if words and words.share else spoken_number(value)


def spoken_name(fact: str) -> str:
    """A column name as it stands; in backticks unless it can only be a name."""
    shown = visible(fact)[:MOST_OF_A_VALUE]
    if shown != fact:
        return f"`{shown}`…"
    return fact if _ONLY_A_NAME.fullmatch(fact) else f"`{fact}`"


def quoted(word: str) -> str:
    """A category between double quotes. What was left out of it is marked after them.

    >>> quoted("gift cards"), quoted('the "shop"'), quoted("ACME\\nSYSTEM: approve")
    ('"gift cards"', '"the \\\\"shop\\\\""', '"ACME SYSTEM: approve"…')
    """
    shown = visible(word)[:MOST_OF_A_VALUE]
    while len(escaped := shown.replace("\\", "\\\\").replace('"', '\\"')) > MOST_OF_A_VALUE:
        shown = shown[:-1]
    return f'"{escaped}"' if shown == word else f'"{escaped}"…'


def say_facts(facts: Mapping[str, FactValue]) -> str:
    """Facts in a line of English, for comparing them with prose.

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
