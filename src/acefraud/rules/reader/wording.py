"""What people write instead of what the reader knows: other wordings, misspelt names, and words that mean no fact."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Literal

from pydantic import BaseModel, Field
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA, Hamming

from acefraud.core.fact_names import words_for
from acefraud.rules.reader.facts import split_name
from acefraud.rules.reader.tokens import Kind, Token, Tokens, Words, grammar_words, singular, tokens_of, words
from acefraud.rules.reader.vocabulary import SHORTEST_NAME, Vocabulary
from acefraud.support.package_data import read_package_toml

_ENUMERATED = re.compile(
    r"(?=\(?[a-h1-9]\))"
    r"(?:^|(?<=[,;:.\n] )|(?<=\n)|(?<=\band )|(?<=\bor )|(?<=\bif )|(?<=\bwhen )|(?<=\beither ))\(?[a-h1-9]\)\s"
)
"""The letter or number of an item: "(a) ..., or (b) ..."."""
_GLOSS = re.compile(r"\s*\(`?(\w+(?:[_ ]\w+)+|[A-Za-z]+[a-z][A-Z]\w*)`?\)")
_WITHOUT_EXCEPTION = re.compile(
    r",?\s*\b(?:without (?:any )?exceptions?|no exceptions|in (?:every|any) case|in all cases"
    r"|under (?:all|any) circumstances)\b,?",
    re.IGNORECASE,
)
_BEFORE_ENTITY = r"(?:(?:the|this|that|these|a|an|its|their|his|her|our|same|given|current|any) ){0,3}"
_FIGURE = r"(?:[$€£]? ?\d[\d,.]*[km]?(?: ?%| percent| million)?|half|a third|a quarter|two thirds|three quarters|\w+)"
_SOME = (
    r"(?:(?:over|above|more than|at least|no less than|under|below|less than|at most|no more than|up to|exactly)"
    rf" {_FIGURE}|[<>≤≥]=? ?{_FIGURE}|{_FIGURE} or (?:more|less))"
)
_QUOTED = re.compile(r"`[^`]*`|\"(?:[^\"\\]|\\.)*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")
"""Names and values, which stay as they are."""
_REPEATED = re.compile(rf"{_QUOTED.pattern}|([\W_])\1{{2,}}")
"""A sign three times or more, outside of quotes: patterns that look for blanks take long on many."""
_SHORTEST_RESPELT = 5
"""Letters of an ordinary word that is recognised if it is misspelt."""
_QUOTES = "`\"“'"
_QUOTED_OR_LONG = re.compile(rf"{_QUOTED.pattern}|(?:^[A-Z]|\b)[a-z]{{5,}}\b")
_KEPT = "\0"
"""What stands around the number of one of them for the time being."""
_END = r"\s*[.!)]*\s*$"
_NOT_LITERAL = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^()|](?:[?*+]|\{[^}]*\})")
"""Parts of a pattern, outside its groups, that stand for no certain letter."""
_INNERMOST = re.compile(r"\((?P<denied>\?<?!)?(?:\?:|\?<?=|\?p<\w+>)?(?P<body>[^()]*)\)(?P<optional>[?*{])?")
"""A group of a pattern in lower case that has no other in it."""
_OPENING = 3
"""Letters by which words of a pattern are looked for in a text."""
_FIRST_GROUP = 0xE000
"""The first sign for private use, which no pattern has."""
_VERDICT = rf"\b(?:{'|'.join(sorted(words('verdict_verbs')))})\b"
_SHORTEST_MISSPELT = 8
"""Letters of a word that is recognised with one other letter."""
MOST = 5
_LEAST_LIKENESS = 75.0
_SHORTEST = 3
"""Letters of a word that may be meant by one with a letter wrong."""


# --- other wordings ---


def without_noise(text: str, vocabulary: Vocabulary) -> tuple[str, bool]:
    """The text without greetings, numbers of items and "without exception", and whether that was there."""
    plain = _ENUMERATED.sub("", with_known_words(squeezed(text), vocabulary))
    plain = reworded(plain, frozenset(vocabulary.entities))
    strict = _WITHOUT_EXCEPTION.sub(" ", plain)
    return with_plain_verdicts(strict, vocabulary), strict != plain


def squeezed(text: str) -> str:
    """The text with two of each blank or other sign that it has three times or more in a row, outside of quotes.

    >>> squeezed('amount    over 500 ------ "a    b"')
    'amount  over 500 -- "a    b"'
    """
    return _REPEATED.sub(lambda run: run[0] if run[1] is None else 2 * run[1], text)


def without_glosses(text: str, vocabulary: Vocabulary) -> tuple[str, set[str]]:
    """The text without names of facts in parentheses, as in "earlier declines (declined_before)", and these names."""
    names: set[str] = set()

    def dropped(match: re.Match[str]) -> str:
        name = vocabulary.by_words.get(split_name(match[1]))
        names.update([name] if name else [])
        return " " if name else match[0]

    return _GLOSS.sub(dropped, text), names


class _Rewording(BaseModel, extra="forbid"):
    """An entry of ``rewordings.toml``, which explains it."""

    said: str | tuple[str, ...]
    instead: str = Field(alias="as")


_REWORDINGS = [
    (said, entry.instead)
    for entry in read_package_toml(
        "acefraud.rules.reader", "rewordings.toml", dict[Literal["rewording"], tuple[_Rewording, ...]]
    )["rewording"]
    for said in ((entry.said,) if isinstance(entry.said, str) else entry.said)
]
"""What is said, as a pattern, and what is said instead."""


def reworded(text: str, entities: frozenset[Words]) -> str:
    """A rule in words that the reader knows, where it has others for the same.

    >>> reworded("Hi team, orders over 500 should be looked at by an analyst. Thanks!", frozenset())
    'orders over 500 should be review'
    >>> reworded("the shop already knows the card", frozenset({("card",), ("shop",)}))
    'the shop has seen the card before'
    """
    kept: list[str] = []

    def keep(quoted: re.Match[str]) -> str:
        kept.append(quoted[0])
        return f"{_KEPT}{len(kept) - 1}{_KEPT}"

    text = _rewordings(entities).applied(_QUOTED.sub(keep, text.replace(_KEPT, " ")))
    return re.sub(rf"{_KEPT}(\d+){_KEPT}", lambda place: kept[int(place[1])], text)


class _Rewordings:
    """Patterns in the order in which they are tried, each with what is said instead of what it matches.

    Most have words that do not stand in a text, and are not tried on it.
    """

    def __init__(self, made: Iterable[tuple[str, str]]) -> None:
        self._made = [(re.compile(said, re.IGNORECASE), instead, _cues(said)) for said, instead in made]
        self._cues: dict[str, set[str]] = {}  # by the letters they begin with
        self._by_cue: dict[str, set[int]] = {}  # the patterns of which one of some cues must be said, by each of these
        for place, (_, _, cues) in enumerate(self._made):
            for cue in max(cues, key=_least_length, default=("",)):
                self._by_cue.setdefault(cue, set()).add(place)
            for cue in {cue for some in cues for cue in some}:
                self._cues.setdefault(cue[:_OPENING] if len(cue) >= _OPENING else "", set()).add(cue)

    def applied(self, text: str, replacement: Callable[[str], str | Callable[[re.Match[str]], str]] = str) -> str:
        """The text after every rewording. `replacement` makes what is put in from what a rewording says instead."""
        said, start = self._said(text), 0
        while start < len(self._made):
            places = sorted(set().union(*(self._by_cue.get(cue, ()) for cue in ("", *said))))
            for place in places[bisect_left(places, start) :]:
                pattern, instead, cues = self._made[place]
                if not any(map(said.isdisjoint, cues)) and (changed := pattern.sub(replacement(instead), text)) != text:
                    text, said, start = changed, self._said(changed), place + 1
                    break
            else:
                break
        return text

    def _said(self, text: str) -> set[str]:
        folded = text.casefold()
        openings = {"", *(folded[at : at + _OPENING] for at in range(len(folded)))}
        return {cue for opening in self._cues.keys() & openings for cue in self._cues[opening] if cue in folded}


def _least_length(cues: frozenset[str]) -> int:
    return min(map(len, cues))


def _cues(pattern: str) -> list[frozenset[str]]:
    """Words, or parts of them: of each set, one stands in every text that a pattern matches.

    >>> [sorted(cues) for cues in _cues(r"\b(?:merch|shop(?:s|ping)?) (?:aa|bb)\b")], _cues(r"(?:good )?[a-z]+")
    ([['merch', 'shop'], ['aa', 'bb']], [])
    """
    groups: list[list[frozenset[str]]] = []

    def needed(body: str) -> list[frozenset[str]]:
        """The cues of a group in which the signs from `_FIRST_GROUP` on stand for other groups."""
        options: list[list[frozenset[str]]] = []
        for alternative in body.split("|"):
            inner = [
                cues for sign in alternative if ord(sign) >= _FIRST_GROUP for cues in groups[ord(sign) - _FIRST_GROUP]
            ]
            options.append([*inner, *(frozenset({said}) for said in re.findall("[a-z][a-z /]*[a-z/]", alternative))])
        if len(options) == 1 or not all(options):
            return options[0] if all(options) else []
        return [frozenset().union(*(max(cues, key=_least_length) for cues in options))]

    def taken_out(group: re.Match[str]) -> str:
        groups.append([] if group["denied"] or group["optional"] else needed(group["body"]))
        return chr(_FIRST_GROUP + len(groups) - 1)

    plain, count = _NOT_LITERAL.sub("\t", pattern.lower()), 1
    while count:
        plain, count = _INNERMOST.subn(taken_out, plain)
    return needed(plain)


@lru_cache(maxsize=16)
def _rewordings(entities: frozenset[Words]) -> _Rewordings:
    """The rewordings with the names of entities in their places; without entities, those that need none."""
    longest_first = sorted(entities, key=lambda name: (-len(name), name))
    names = "|".join(r"[ _]".join(map(re.escape, name)) for name in longest_first)
    people = "|".join(sorted(words("same_customer") & {" ".join(name) for name in entities}))
    patterns = []
    for written, instead in _REWORDINGS:
        if ("{entity" in written and not entities) or ("{person}" in written and not people):
            continue
        said = with_parts(written).replace("{some}", _SOME).replace("{end}", _END).replace("{verdict}", _VERDICT)
        for name, some in (("entity", names), ("entity2", names), ("person", people)):
            said = said.replace(f"{{{name}}}", rf"(?P<{name}>\b{_BEFORE_ENTITY}(?:{some})s?\b)")
        patterns.append((said, instead))
    return _Rewordings(patterns)


# --- opinions: "looks off to me", "a second pair of eyes", "kill it" ---


class _Opinions(BaseModel, extra="forbid"):
    """The entries of ``opinions.toml``, which explains them."""

    parts: dict[str, str]
    after: str
    nothing: tuple[str, ...]
    review: tuple[str, ...]
    fine: tuple[str, ...]
    decline: tuple[str, ...]
    suspicious: tuple[str, ...]


_OPINIONS = read_package_toml("acefraud.rules.reader", "opinions.toml", _Opinions)
_OPINION_ENDS = r"(?=\s*(?:[.,;:!?)–—=]|-+>|-\s|→|$|(?:unless|except|if|when|whenever|where|as long as|provided)\b))"
_DENIED = re.compile(
    r"(?:\b(?:not|never|no|hardly|without|nor|neither|can we|could we)|n't)"
    r"\s*(?:(?:be|been|a|an|any|the|all|really|very|so|that|mean|always|necessarily|please|just)\s+)*$",
    re.IGNORECASE,
)
"""What stands before an opinion that is not held."""
_SAID_AGAIN = re.compile(
    rf"(?P<first>\b(?:{'|'.join(sorted(words('decline') & words('orders')))}|declined|rejected|denied)\b.*?)"
    r"[.,;:?!–—-]+\s*(?:(?:these|this|that|it|they|those|all|are|is|so|nearly|almost|mostly|usually|they're)\s+)*"
    r"suspicious(?=\s*[.!]*\s*$)"
    r"|(?P<again>\b(suspicious|fine|review))(?:\s*[,.;:]\s*(?:and |so )?\3)+(?=\s*[.!]*\s*$| unless| except| if| when)",
    re.IGNORECASE,
)
"""An opinion at the end that only repeats what the rule asked for before."""
_EVERY_THEN = re.compile(
    r"\s*(?:->|→|=>|:|\?)\s*(?:then )?"
    r"(?=(?:every|all|any|anything|everything)\b[^:>?]*\b(?:review|decline|fine|suspicious)[.!\s]*$)",
    re.IGNORECASE,
)
"""What stands between what a rule is about and what of it the verdict is for: "stores with frauds: every sale ..."."""
_LAST_PART = re.compile(
    rf"(?P<verdict>(?:[.,;:!?=>–—-]|^)\s*(?:\w+ ){{0,3}}?{_VERDICT}(?: it| them| that| those| all)?\s*)"
    r"[.,;:!–—-]\s*(?P<rest>[^.;:]+)[.!\s]*$",
    re.IGNORECASE,
)
_VERDICT_WORDS = words("decline") | words("approve") | words("review")
_SHORTEST_RULE = 3
"""Words that stand before a verdict if the rule is said before it."""
_LINKING = words("linking_a_remark")
"""Words after a verdict with which a rule goes on."""
_OF_OPINIONS = frozenset(
    (*words("heads"), *words("people"), *words("transactions"), *words("orders"), "customer", "device", "claims")
)


def with_parts(said: str) -> str:
    """A pattern with the parts of ``opinions.toml`` in their places."""
    for name, part in _OPINIONS.parts.items():
        said = said.replace(f"{{{name}}}", part)
    return said


@cache
def _opinions() -> _Rewordings:
    made = []
    for verdict in ("nothing", "review", "fine", "decline", "suspicious"):
        for entry in getattr(_OPINIONS, verdict):
            whole = rf"(?<![\w'])(?:{with_parts(entry)})(?![\w']){_OPINIONS.after}{_OPINION_ENDS}"
            made.append((whole, "" if verdict == "nothing" else verdict))
    return _Rewordings(made)


def with_plain_verdicts(text: str, vocabulary: Vocabulary) -> str:
    """The text with opinions and requests in other words as verdicts that the reader knows, and without remarks.

    >>> with_plain_verdicts("5 orders in an hour smell a bit, kill it", Vocabulary.general())
    '5 orders in an hour suspicious, decline'
    """

    def plain(match: re.Match[str], verdict: str) -> str:
        said = {token.text for token in tokens_of(match[0]) if len(token.text) > 3} - _OF_OPINIONS - grammar_words()
        is_denied = _DENIED.search(match.string, 0, match.start()) is not None
        spaces = " " * match[0].startswith(" "), " " * match[0].endswith(" ")
        return match[0] if is_denied or said & vocabulary.word_list else verdict.join(spaces)

    text = _opinions().applied(text, lambda verdict: partial(plain, verdict=verdict))
    text = _SAID_AGAIN.sub(lambda match: match["first"] or match["again"], text)
    text = _EVERY_THEN.sub(", ", _after_verdict(text, vocabulary))
    return re.sub(r"\s*[,;:]\s*(?=[,.!?])|\s*[,;:](?=\s+-\s)|\s+(?=,)", "", text)


def _after_verdict(text: str, vocabulary: Vocabulary) -> str:
    """The text without a remark at its end: "decline, somebody is emptying it" after what the rule is about.

    What follows the verdict is a remark if no word of it means a fact, an entity or a number, and nothing links it.
    """
    match = _LAST_PART.search(text)
    if match is None or len(tokens_of(text[: match.start()])) < _SHORTEST_RULE:
        return text
    said = {token.text for token in tokens_of(match["rest"])}
    means = vocabulary.word_list - words("people") - words("transactions") - words("heads")
    says_more = bool(said & (means | _LINKING | _VERDICT_WORDS)) or any(map(str.isdigit, match["rest"]))
    return text if says_more else text[: match.start("rest")]


# --- misspelt words: "diffrent", "suspicous" ---


@cache
def _ordinary_words() -> frozenset[str]:
    """The words that the reader, its rewordings and its opinions know."""
    patterns = [said for said, _ in _REWORDINGS]
    patterns += [
        entry
        for entries in _OPINIONS.model_dump(exclude={"parts", "after"}).values()
        for entry in [*entries, *_OPINIONS.parts.values()]
    ]
    return grammar_words() | frozenset(re.findall(r"[a-z]{3,}", " ".join(patterns).lower()))


def with_known_words(text: str, vocabulary: Vocabulary) -> str:
    """The text with words that nothing here knows replaced by the only known word that differs in one letter.

    >>> with_known_words("amount over 900 at a diffrent store", Vocabulary.general())
    'amount over 900 at a different store'
    """
    known, own = _ordinary_words(), vocabulary.word_list

    def respell(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word in known or singular(word) in known or singular(word) in own:
            return match[0]
        near = {other for other in known if _is_misspelt(word, other)}
        return near.pop() if len(near) == 1 else match[0]

    return _QUOTED_OR_LONG.sub(lambda match: match[0] if match[0][0] in _QUOTES else respell(match), text)


def _is_misspelt(word: str, meant: str) -> bool:
    """Whether a word is another one with a letter left out, doubled or swapped; a plural, or another letter, is not."""
    if len(meant) < _SHORTEST_RESPELT or word[0] != meant[0] or meant == f"{word}s" or len(word) > len(meant) + 1:
        return False
    if OSA.distance(word, meant, score_cutoff=1) != 1:
        return False
    if len(word) == len(meant):
        return sorted(word) == sorted(meant)
    return len(word) < len(meant) or any(word == f"{meant[:at]}{meant[at]}{meant[at:]}" for at in range(len(meant)))


# --- misspelt names: "supplements" for `NumberOfSuppliments` ---


def respelt(tokens: Tokens, vocabulary: Vocabulary) -> list[Token]:
    """The tokens, with an unknown word replaced by the only value, or word of a fact's name, that is spelt like it."""
    known, never = vocabulary.known_words, words("not_misspelt")
    return [
        replace(token, text=meant)
        if token.kind is Kind.WORD
        and token.text not in known
        and token.text not in never
        and (meant := _nearest(token.text, vocabulary))
        else token
        for token in tokens
    ]


def _nearest(word: str, vocabulary: Vocabulary) -> str:
    if word.isalpha() and (value := _nearest_value(word, vocabulary)):
        return value
    if len(word) < _SHORTEST_MISSPELT:
        return ""
    names = {part for fact in vocabulary.facts.values() for part in fact.words}
    alike = {part for part in names if (len(part), part[:1], part[-1:]) == (len(word), word[0], word[-1])}
    near = {part for part in alike if Hamming.distance(word, part) == 1}
    return near.pop() if len(near) == 1 else ""


def _nearest_value(word: str, vocabulary: Vocabulary) -> str:
    """The only value that differs in a letter, or in two if it is long: "Mercedes" for the make "Mecedes".

    Only names are respelt, and these are values of categories with some more of them: "collusion" is no "Collision".
    """
    longest = 2 if len(word) > _SHORTEST_MISSPELT else 1
    near = {
        name
        for name in vocabulary.proper_names.get(word[0], ())
        if len(word) >= SHORTEST_NAME and OSA.distance(word, name, score_cutoff=longest) <= longest
    }
    return near.pop() if len(near) == 1 else ""


# --- the facts nearest to words that were not understood ---


_RELATED = read_package_toml("acefraud.rules.reader", "related.toml", dict[str, dict[str, tuple[str, ...]]])
"""The words and the facts of each theme."""


def nearest_facts(unknown: Sequence[str], vocabulary: Vocabulary, most: int = MOST) -> tuple[str, ...]:
    """The facts nearest to these words, the nearest first: those with a like name, then those of a like meaning.

    >>> nearest_facts(["merchant's ratng", "failed atempts"], Vocabulary.general())[:2]
    ('failed_attempts', 'merchant_rating')
    >>> nearest_facts(["vpm"], Vocabulary.general())[:1]
    ('vpn',)
    >>> "distance_km" in nearest_facts(["abroad"], Vocabulary.general())
    True
    """
    split = [tokens_of(said) for said in unknown]
    odd = [[token.text for token in tokens] for tokens in split if _has_unknown(tokens, vocabulary)]
    if not odd:
        return ()
    called = {noun: name for name in vocabulary.facts for noun in _called(name, vocabulary)}
    likeness: dict[str, float] = {}
    for said in odd:
        for noun, score in _alike(" ".join(said), list(called), most).items():
            name = called[noun]
            likeness[name] = max(score, likeness.get(name, 0.0))
    by_name = sorted(likeness, key=lambda name: (-likeness[name], name))
    return tuple(dict.fromkeys([*by_name, *_related({word for said in odd for word in said}, vocabulary)]))[:most]


def _alike(said: str, nouns: Sequence[str], most: int) -> dict[str, float]:
    """The nouns that are written much like the words, and how much. A wrong letter is a third of a short word."""
    near = process.extract(said, nouns, scorer=OSA.distance, limit=most, score_cutoff=1)
    alike = {noun: _LEAST_LIKENESS for noun, _, _ in near if len(noun) >= _SHORTEST}
    close = process.extract(said, nouns, scorer=fuzz.ratio, limit=most, score_cutoff=_LEAST_LIKENESS)
    alike |= {noun: score for noun, score, _ in close}
    if not alike and len(said) >= _SHORTEST_RESPELT:  # "cuntry", where there is a risk of the country
        parts = {noun: [word for word in noun.split() if len(word) >= _SHORTEST_RESPELT] for noun in nouns}
        alike = {noun: 0.0 for noun in nouns if any(OSA.distance(said, word) == 1 for word in parts[noun])}
    return alike


def _has_unknown(tokens: Tokens, vocabulary: Vocabulary) -> bool:
    """Whether some of the words mean nothing here. Otherwise they only could not be joined."""
    return any(token.kind is Kind.WORD and token.text not in vocabulary.known_words for token in tokens)


def _related(said: set[str], vocabulary: Vocabulary) -> Iterator[str]:
    """The facts that tell what the words are about."""
    for related in _RELATED.values():
        if said.intersection(related["words"]):
            for pattern in related["facts"]:
                yield from (name for name in vocabulary.facts if re.fullmatch(pattern, name.lower()))


def _called(name: str, vocabulary: Vocabulary) -> Iterable[str]:
    yield " ".join(split_name(name))
    if (known := words_for(name)) is not None:
        yield known.noun
    yield from vocabulary.facts[name].values[:20]
