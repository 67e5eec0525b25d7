"""Conditions, bullets and facts in English.

`say` is exact: `read_condition` reads its words back to an equal condition; other words are read by
`acefraud.rules.reader`. Values and names that are long or hold invisible characters are cut and marked with "…". A
sentence with such a mark is not read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from operator import itemgetter

from acefraud.core.bullet import Evidence
from acefraud.core.comparison import PRESENCE, Op, Test, plain_number
from acefraud.core.condition import AnyOf, Condition, Leaf, PairTest
from acefraud.core.context_facts import LookUp
from acefraud.core.fact_names import COMPARISONS, HISTORY_FACTS, NAMED_FACTS, FactWords, history_name, words_for
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
    >>> say(Condition.parse("card_hours_since_last < 0.16666666666666666 and model_year >= 1996"))
    "time since the card's last transaction below 10 minutes and model_year at least 1996"
    """
    if len(condition.parts) == 1 and isinstance(condition.parts[0], AnyOf):
        return _say_choice(condition.parts[0])
    return " and ".join(
        f"({_say_choice(part)})" if isinstance(part, AnyOf) else say_test(part) for part in condition.parts
    )


def _say_choice(choice: AnyOf) -> str:
    return " or ".join(say(option) if len(option.parts) == 1 else f"({say(option)})" for option in choice.options)


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
    if (sought := LookUp.of(test.fact)) is not None and isinstance(test.value, bool):
        return f"{_noun(sought.key)} is {'' if test.value else 'not '}{sought.how} {quoted(sought.what)}"
    words = words_for(test.fact)
    if isinstance(test.value, bool) and words and words.kind == "flag":
        return words.true if test.value else words.false
    noun = _noun(test.fact)
    if test.op not in COMPARISONS:
        return f"{noun} {_predicate(test, words)}"
    assert isinstance(test.value, float)
    figure = _figure(words, test.value, test.fact)
    if words and words.comparisons:
        return in_singular(words.comparisons[test.op], figure)
    return f"{spoken_name(test.fact)} {COMPARISONS[test.op]} {figure}"


def say_clause(condition: Condition, facts: Mapping[str, FactValue]) -> str:
    """The tests that made a condition true, with the values they read. Empty if it is not true.

    >>> say_clause(Condition.parse("amount > 5 and (vpn is true or night is true)"), {"amount": 9.0, "vpn": True})
    'amount above 5 (9) and a VPN or proxy (true)'
    """
    return " and ".join(
        f"{say_test(leaf)} ({say_value(leaf.fact, facts.get(leaf.fact))}"
        f"{f', {say_value(leaf.other, facts.get(leaf.other))}' if isinstance(leaf, PairTest) else ''})"
        for leaf in condition.clause(facts)
    )


def say_value(fact: str, value: FactValue | None) -> str:
    """The value of a fact for people: numbers to four decimals at most, years as years, parts of an hour in minutes.

    >>> say_value("hours_since_login", 1 / 6), say_value("amount", 1238.5555555), say_value("Year", 1996.0)
    ('10 minutes', '1,238.5556', '1996')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _part_of_unit(fact, value, _SHOWN_DECIMALS) or _figure(words_for(fact), round(value, 4), fact)
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
            return f"{test.op} {_figure(words, test.value, test.fact)}"


def in_singular(template: str, figure: str) -> str:
    """A comparison with its figure: "1 day" rather than "1 days", "above the usual" rather than "above 1 times ...".

    A figure that brings a unit replaces that of the comparison.

    >>> in_singular("account younger than {v} days", "1"), in_singular("amount above {v} times the usual", "1")
    ('account younger than 1 day', 'amount above the usual')
    >>> in_singular("account younger than {v} days", "12 hours")
    'account younger than 12 hours'
    """
    if figure == "1":
        template = re.sub(r"(\{v\} (?:day|hour|minute))s", r"\1", template.replace("{v} times ", ""))
    elif figure[-1].isalpha():
        template = _OWN_UNIT.sub("{v}", template)
    return template.replace("{v}", figure)


def spoken_number(value: float) -> str:
    """A number with thousands separators, without rounding.

    >>> spoken_number(12500.0), spoken_number(0.25), spoken_number(1e-7)
    ('12,500', '0.25', '1e-07')
    """
    plain = plain_number(value)
    return plain if "e" in plain else f"{Decimal(plain):,}"


def spoken_share(value: float) -> str:
    """A share in percent, without rounding.

    >>> spoken_share(0.2), spoken_share(0.0075), spoken_share(1.0)
    ('20%', '0.75%', '100%')
    """
    return f"{Decimal(plain_number(value)).scaleb(2):f}%"


def _figure(words: FactWords | None, value: float, fact: str = "") -> str:
    """A number as it is said of a fact: in percent, as a year, or in a smaller unit of time if that makes it whole."""
    if words and words.share:
        return spoken_share(value)
    if _YEAR.search(fact) and value.is_integer() and 1_000 <= value < 10_000:
        return plain_number(value)
    return _part_of_unit(fact, value) or spoken_number(value)


_YEAR = re.compile(r"(?<!per_)(?<!a_)year$", re.IGNORECASE)
"""How the names of facts end whose numbers are years."""
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_OWN_UNIT = re.compile(r"\{v\} (?:day|hour|minute)s\b")
_NAMES_UNIT = re.compile(r"(?:^|(?<!\d)_)(day|hour|minute)s(?:_|$)", re.IGNORECASE)
"""How the name of a fact says its unit. One such as `orders_in_24_hours` names a window."""
_MOST_PARTS = 200
"""Of a smaller unit: more than this many minutes say less than a fraction of a day."""
_SHOWN_DECIMALS = 10
"""Decimals that are looked at to show a value in hours as "10 minutes". In a condition it must be exactly that."""


def _seconds_in(fact: str) -> int:
    """The seconds in the unit of a fact; 0 if it is no duration."""
    named = _NAMES_UNIT.search(fact)
    return _SECONDS[named[1].lower()] if named else 0


def _part_of_unit(fact: str, value: float, decimals: int | None = None) -> str:
    """A duration as a whole number of a smaller unit, such as "10 minutes"; "" if it is not exact, or needs none."""
    own = _seconds_in(fact) if value > 0 and (value < 1 or value != round(value, 2)) else 0
    for unit, seconds in _SECONDS.items():
        count = round(value * own / seconds)
        if seconds < own and count <= _MOST_PARTS:
            off = abs(count * seconds / own - value)
            if not (off if decimals is None else round(off, decimals)):
                return f"{count} {unit}{'' if count == 1 else 's'}"
    return ""


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


_DEEPEST = 50


def read_condition(words: str) -> Condition | None:
    """The condition that `say` says in these words, or None if they are other words.

    >>> str(read_condition("amount above 2,000 and (a VPN or proxy or account younger than 30 days)"))
    'amount > 2000 and (account_age_days < 30 or vpn is true)'
    """
    try:
        found = _choice(words, 0, 0)
    except ValueError:  # a figure that no float can hold, as in "above 1e999"
        return None
    return found[0] if found is not None and found[1] == len(words) else None


def _choice(words: str, position: int, depth: int) -> tuple[Condition, int] | None:
    """Options joined by "or", or parts joined by "and": what stands in parentheses has one kind of joint."""
    parts: list[Condition] = []
    joint = ""
    while (found := _part(words, position, depth)) is not None:
        parts.append(found[0])
        position = found[1]
        joint = joint or next((word for word in (" and ", " or ") if words.startswith(word, position)), "")
        if not joint or not words.startswith(joint, position):
            return (Condition.any_of(parts) if joint == " or " else Condition.all_of(parts)), position
        position += len(joint)
    return None


def _part(words: str, position: int, depth: int) -> tuple[Condition, int] | None:
    if words.startswith("(", position) and depth < _DEEPEST:
        inner = _choice(words, position + 1, depth + 1)
        if inner is not None and words.startswith(")", inner[1]):
            return inner[0], inner[1] + 1
        return None
    found: list[tuple[int, Leaf]] = []
    for phrase in _phrases_at(words, position):
        match = phrase.regex.match(words, position)
        is_whole = match and (match.end() == len(words) or words.startswith((" and ", " or ", ")"), match.end()))
        if match and is_whole and (test := phrase.test(match)) is not None:
            found.append((match.end(), test))
    if not found:
        return None
    end, test = max(found, key=itemgetter(0))
    return Condition.of(test), end


# --- phrases ----------------------------------------------------------------------------------------------------

_FIGURE = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?"
_NUMBER = rf"(?P<v>{_FIGURE})"
_DURATION = r"(?P<v>\d+) (?P<part>hour|minute|second)s?"
_SHARE = r"(?P<share>-?\d+(?:\.\d+)?)%"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\""
_LIST = rf"(?P<w>{_QUOTED}(?:, {_QUOTED})*)"
_NAME = r"(?:`(?P<ticked>[^`]+)`|(?P<name>[A-Za-z]\w*_\w*|_\w+))"
_ENTITY_WORD = r"(?!(?:and|or|above|below)\b)\w+"
_ENTITY = rf"{_ENTITY_WORD}(?: {_ENTITY_WORD}){{0,7}}?"
_HISTORY = {
    "{e}": rf"(?P<entity>{_ENTITY})",
    "{o}": rf"(?P<other>{_ENTITY})",
    "{os}": rf"(?P<others>{_ENTITY}s)",
    "{w}": r"the last (?P<window>(?:\d+ )?(?:hour|day)s?)",
}
_START = 8
"""How many characters of the words decide which exact phrases are tried."""
_FIXED_TEXT = re.compile(r"(?:(?:[\w ',/%]|\\\W)(?![?*+{]))*")
"""The beginning of a pattern that stands for itself: plain and escaped characters that nothing repeats."""


@dataclass(frozen=True)
class _Phrase:
    """One way to say a test. What is left open is read from the named groups of the match."""

    pattern: str
    op: Op
    fact: str = ""
    value: bool | float | None = None

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first tried."""
        return re.compile(self.pattern, re.IGNORECASE)

    @cached_property
    def opening(self) -> str:
        """The fixed text that the pattern begins with, in lower case."""
        fixed = _FIXED_TEXT.match(self.pattern)
        return fixed[0].replace("\\", "").lower() if fixed else ""

    def test(self, match: re.Match[str]) -> Leaf | None:
        """The test that a match of the pattern states; None if it names a fact that there is not."""
        groups = match.groupdict()
        fact = history_name(self.fact, groups) if self.fact else groups["ticked"] or groups["name"]
        if groups.get("how") is not None:
            return Test(LookUp(fact, groups["how"], _unquoted(groups["what"])).flag, Op.IS, self.op is Op.IN)
        if groups.get("pair") is not None:
            named, times = _fact_called(groups["pair"]), (groups["times"] or "1").replace(",", "")
            return PairTest(fact, self.op, named, float(times)) if named and named != fact else None
        if self.op in PRESENCE or self.value is not None:
            return Test(fact, self.op, self.value)
        if groups.get("w") is not None:
            words = tuple(map(_unquoted, re.findall(_QUOTED, groups["w"])))
            return Test(fact, self.op, words if self.op in (Op.IN, Op.NOT_IN) else words[0])
        share, part = groups.get("share"), groups.get("part")
        value = float(Decimal(share) / 100 if share else groups["v"].replace(",", ""))
        if part is not None:
            own, seconds = _seconds_in(fact), _SECONDS[part.lower()]
            return Test(fact, self.op, value * seconds / own) if own > seconds else None
        return Test(fact, self.op, value)


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1])


def _fact_called(noun: str) -> str | None:
    """The fact that a noun of `say` means: a name, or "the" and the noun of a fact that the engine knows."""
    if match := re.fullmatch(_NAME, noun):
        return match["ticked"] or match["name"]
    return _facts_by_noun().get(noun.removeprefix("the ")) or next(
        (
            history_name(words.name, match.groupdict())
            for words in HISTORY_FACTS
            if (match := re.fullmatch(_pattern(words.noun), noun.removeprefix("the ")))
        ),
        None,
    )


@cache
def _facts_by_noun() -> dict[str, str]:
    return {words.noun: name for name, words in NAMED_FACTS.items()}


@cache
def _exact_phrases() -> tuple[_Phrase, ...]:
    """The phrases that `acefraud.rules.english.say` uses."""
    found: list[_Phrase] = []
    for words in (*NAMED_FACTS.values(), *HISTORY_FACTS):
        found.extend(_generic_phrases(_pattern(words.noun), words.name, _SHARE if words.share else _NUMBER))
        found.extend(_number_phrases(words) if words.kind == "number" else _flag_phrases(words))
    found.extend(_generic_phrases(_NAME, "", _NUMBER))
    for number in (_NUMBER, _DURATION):
        found.extend(_Phrase(rf"{_NAME} {word} {number}", op) for op, word in COMPARISONS.items())
    return tuple(found)


@cache
def _phrases_by_opening() -> dict[str, list[int]]:
    """The places of the exact phrases by the characters with which they must begin."""
    by_opening: dict[str, list[int]] = {}
    for place, phrase in enumerate(_exact_phrases()):
        by_opening.setdefault(phrase.opening[:_START], []).append(place)
    return by_opening


def _phrases_at(words: str, position: int) -> Iterator[_Phrase]:
    """The exact phrases that can begin here. Letters beyond ASCII may match in unexpected ways."""
    phrases, by_opening = _exact_phrases(), _phrases_by_opening()
    start = words[position : position + _START].lower()
    shortest = 0 if re.compile(_NAME).match(words, position) else 1  # phrases without an opening begin with a name
    openings = [start[:length] for length in range(shortest, len(start) + 1)] if start.isascii() else by_opening
    places = sorted(place for opening in openings for place in by_opening.get(opening, ()))
    return (phrases[place] for place in places)


def _pattern(words: str) -> str:
    """The words as a regular expression that leaves entities and windows open."""
    pattern = re.escape(words)
    for part, group in _HISTORY.items():
        pattern = pattern.replace(re.escape(part), group)
    return pattern


def _generic_phrases(noun: str, fact: str, number: str) -> Iterator[_Phrase]:
    """What can be said of any fact: that it is missing or known, and that it equals a category, a flag or a figure."""
    other = rf"(?:(?P<times>{_FIGURE}) times )?(?P<pair>`[^`]+`|[^()`]+?)(?= and | or |\)|$)"
    said = [("is missing", Op.MISSING), ("is known", Op.KNOWN)]
    said += [(f"is one of {_LIST}", Op.IN), (f"is none of {_LIST}", Op.NOT_IN)]
    for op in (Op.IS, Op.IS_NOT):
        said += [(rf"{op} (?P<w>{_QUOTED})", op), (f"{op} {number}", op), (f"{op} {_DURATION}", op)]
    said += [(f"{how} {other}", op) for op, how in ((Op.IS, SAME), (Op.IS_NOT, DIFFERENT), *COMPARISONS.items())]
    sought = rf"(?P<how>in list|named|starting with) (?P<what>{_QUOTED})"
    said += [(f"is {sought}", Op.IN), (f"is not {sought}", Op.NOT_IN)]
    yield from (_Phrase(f"{noun} {words}", op, fact) for words, op in said)
    yield _Phrase(rf"{noun} is true", Op.IS, fact, True)
    yield _Phrase(rf"{noun} is false", Op.IS, fact, False)


def _number_phrases(words: FactWords) -> Iterator[_Phrase]:
    for op, said in words.comparisons.items():
        before, after = said.split("{v}")
        number = _SHARE if words.share else _NUMBER
        yield _Phrase(_pattern(before) + number + _pattern(after), op, words.name)
        if not words.share:
            yield _Phrase(_pattern(in_singular(said, "1")), op, words.name, 1.0)
        if _seconds_in(words.name):
            yield _Phrase(_DURATION.join(map(_pattern, _OWN_UNIT.sub("{v}", said).split("{v}"))), op, words.name)


def _flag_phrases(words: FactWords) -> Iterator[_Phrase]:
    if words.true:
        for said, value in ((words.true, True), (words.false, False)):
            yield _Phrase(rf"{_pattern(said)}(?= and | or |\)|$)", Op.IS, words.name, value)
