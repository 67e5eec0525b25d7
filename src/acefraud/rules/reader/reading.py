"""From the words of a rule to its condition and what it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from acefraud.core.comparison import Op
from acefraud.core.condition import Condition, Leaf, PairTest, Test
from acefraud.core.context_facts import IN_LIST, LookUp
from acefraud.core.fact_names import words_for
from acefraud.core.transaction import Verdict
from acefraud.rules.english import read_condition
from acefraud.rules.reader.facts import Fact
from acefraud.rules.reader.grammar import EXCEPTIONS, LINKS, STOPS, Grammar, tests_at
from acefraud.rules.reader.history_phrases import windows_said
from acefraud.rules.reader.joints import EVERYTHING
from acefraud.rules.reader.lookup_phrases import named_tests
from acefraud.rules.reader.quantities import NUMBER_WORDS, comparators, near_limits
from acefraud.rules.reader.remarks import without_remarks
from acefraud.rules.reader.sentence import Sentence
from acefraud.rules.reader.tokens import (
    CURRENCIES,
    FILLERS,
    Kind,
    Token,
    Tokens,
    currencies_of,
    grammar_words,
    phrases,
    tokens_of,
    words,
)
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.rules.reader.wording import nearest_facts, respelt, without_glosses, without_noise

_DECLINE = words("decline")
_APPROVE = words("approve")
_REVIEW = words("review")
_CORE = _DECLINE | _APPROVE | _REVIEW
_BEFORE = words("before_verdict")
"""Words that may stand before the verdict itself: "should not be", "is very likely"."""
_AFTER = words("after_verdict")
"""Words that may stand after it."""
_INSIDE = words("inside_conclusion")
"""Words that belong to a conclusion only between others of its words: "sign of fraud", "send it for review"."""
_DENIALS = ("not", "never", "no")
_HASTY = words("hasty")
_ORDERS, _BEFORE_ORDER = words("orders"), words("before_order")
_LETTING = ("let", "go", "get", "pass", "wave", "waved", "put", "send")
_SIGNS = frozenset("->=>→⇒=:,.;-–—!?+") | {"->", "=>", "–>", "—>"}


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the words ask for, and where they stand."""

    start: int
    end: int
    argues: Verdict | None
    always: Verdict | None
    orders: Verdict | None = None
    """What the words tell to do with cases: a rule that begins with "block" does, and every one that asks for a review,
    which nothing but an order can bring about."""
    spares: bool = False
    """Whether it only says what must not happen: "never decline" may mean to approve, or to leave it to a person."""


def conclusions(tokens: Tokens) -> Iterator[Conclusion]:
    """Every run of words that may be the conclusion of a rule."""
    cores = [index for index, token in enumerate(tokens) if token.kind is Kind.WORD and _is_core(tokens, index)]
    is_question = not any(token.text == "please" for token in tokens)
    while cores:
        first = last = cores.pop(0)
        while cores and all(_between(tokens, index) for index in range(last + 1, cores[0])):
            last = cores.pop(0)
        if first < last:
            cores.insert(0, last)  # "... turned out to be fraud, block"
        start, end = first, last + 1
        while start > 0 and _before(tokens, start - 1):
            start -= 1
        while end < len(tokens) and tokens[end].kind is Kind.WORD and tokens[end].text in _AFTER:
            end += 1
        conclusion = _conclusion(start, end, [token.text for token in tokens[start:end]])
        if conclusion is None or (is_question and end < len(tokens) and tokens[end].text == "?"):
            continue
        yield conclusion
        said = [token.text for token in tokens[start : last + 1]]
        for shorter in dict.fromkeys(((start, last + 1), (first, last + 1))):
            if shorter != (start, end) and (conclusion := _conclusion(*shorter, said)) is not None:
                yield conclusion


def _is_core(tokens: Tokens, at: int) -> bool:
    """Whether a word asks for a verdict. "Through" does so only after a verb: "let it through", "not through a VPN"."""
    word = tokens[at].text
    is_let = word != "through" or any(token.text in _LETTING for token in tokens[:at])
    return word in _CORE and is_let


def _before(tokens: Tokens, at: int) -> bool:
    token = tokens[at]
    if token.kind is Kind.NUMBER:
        return token.is_percent
    if token.kind is not Kind.WORD:
        return False
    return token.text in _BEFORE or token.text == "no" or (token.text in _INSIDE and at > 0 and _before(tokens, at - 1))


def _between(tokens: Tokens, at: int) -> bool:
    """Whether a token may stand between two words of one conclusion: "flag it for review", "fine, accept"."""
    token = tokens[at]
    if token.kind is Kind.SIGN:
        return token.text in ",.:;-–—"
    return token.kind is Kind.WORD and (token.text in _BEFORE or token.text in _INSIDE or token.text in _AFTER)


def _conclusion(start: int, end: int, words: list[str]) -> Conclusion | None:
    """What a run of words asks for; None if it contradicts itself, as "stop declining" does."""
    clauses: list[list[str]] = [[]]
    for word in words:
        if word in _SIGNS:
            clauses.append([])
        else:
            clauses[-1].append(word)
    verdicts = {_verdict(clause) for clause in clauses if any(word in _CORE for word in clause)}
    if None in verdicts or len(verdicts - {Verdict.REVIEW}) > 1:
        return None
    denial = next((at for at, word in enumerate(words) if word in _DENIALS), len(words))
    denied = denial < len(words)
    if not _HASTY.isdisjoint(words[denial:]):
        return None  # "do not decline automatically", "must not just be approved": perhaps for another reason
    if Verdict.REVIEW in verdicts and (denied or Verdict.APPROVE in verdicts):
        return None  # "to be reviewed, not declined", "is fine, put it in the queue"
    argues = next(iter(verdicts - {Verdict.REVIEW}), None)
    verdict, said = argues or Verdict.REVIEW, [word for word in words if word not in _BEFORE_ORDER]
    is_strict = ("always" in words or "never" in words) and not {"suspicious", "risky"}.intersection(words)
    always = verdict if is_strict else None  # "always suspicious" is an opinion
    if Verdict.REVIEW in verdicts and not any(word in _ORDERS and word not in _REVIEW for word in words):
        verdict = Verdict.REVIEW  # "is fishy, review please"
    verbs = said[1:] if said[:1] == ["do"] else said[:1]  # "do not approve", but not "we do not trust"
    is_order = verdict is Verdict.REVIEW or (start == 0 and any(word in _ORDERS for word in verbs))
    orders = always or (verdict if is_order else None)
    return Conclusion(start, end, argues, always, orders, any(map(_spares, clauses)))


def _spares(words: Sequence[str]) -> bool:
    return "never" in words and any(word in _DECLINE for word in words)


def _verdict(words: list[str]) -> Verdict | None:
    """What one clause asks for: "must not be approved" is a decline. None if it says one thing and another."""
    declines, approves = any(word in _DECLINE for word in words), any(word in _APPROVE for word in words)
    if any(word in _DECLINE and words[index + 1 : index + 2] == ["to"] for index, word in enumerate(words)):
        return None  # "refuse to block"
    if (declines and approves) or ("stop" in words and sum(word in _CORE for word in words) > 1):
        return None
    if not declines and not approves:
        return Verdict.REVIEW
    denied = sum(word in _DENIALS for word in words) % 2 == 1
    return Verdict.of(declines != denied)


def outside(tokens: Tokens, conclusion: Conclusion) -> tuple[int, int]:
    """Where what stands before a conclusion ends, and where what follows it begins, without the signs next to it."""
    left, right = conclusion.start, conclusion.end
    while left > 0 and tokens[left - 1].kind is Kind.SIGN and tokens[left - 1].text in _SIGNS:
        left -= 1
    while right < len(tokens) and tokens[right].kind is Kind.SIGN and tokens[right].text in _SIGNS:
        right += 1
    return left, right


GRAMMAR_WORDS = grammar_words() | NUMBER_WORDS
"""Words that the reader knows whatever the facts are. They are never reported as not understood."""
_NEGATIVE = ("no", "neither", "none", "nothing", "nobody")
"""Subjects and objects that turn a verdict round."""
_ASKS = ("should", "do", "has", "can", "could", "would", "may", "shall", "will")
"""Words that open a question, if a question mark ends it."""
_LINKING = ("if", "when", "where", "whenever", "once", "provided", "as")
_OF_A_SETTING = ("for", "in", "is", "on", "at", "during", "between", "after", "before", "from")
"""Words that open what a rule is about, before its verdict: "if ..., decline", "on Sundays, decline"."""
_HOURS_BETWEEN = re.compile(r"\bhour (?:not )?between (\d\d?) and (\d\d?)\b", re.IGNORECASE)
_MOST_CURRENCIES = 3
"""Currencies that are named where a rule has another one."""
_LONGEST = 300
"""Words in a rule. A longer text is a note."""
_MOST_REPEATED, _MOST_TIMES = 60, 8
"""Words in a text, and how often each is said, from which on it says the same again and again."""
_MOST_SIGNS = 3_000
"""Letters and other signs in a rule, likewise."""


@dataclass(frozen=True, slots=True)
class ReadRule:
    """What was understood of the words of a rule."""

    condition: Condition | None = None
    argues: Verdict | None = None
    always: Verdict | None = None
    """The verdict that the words order without exception."""
    orders: Verdict | None = None
    """What the words tell to do, with or without "always": what begins with "block", or asks for a review."""
    spares: Condition | None = None
    """What the words say must never be declined, which may mean to approve it, or to let a person decide."""
    not_understood: tuple[str, ...] = ()
    """The words that could not be placed."""
    did_you_mean: tuple[str, ...] = ()
    """The facts nearest to these words."""
    readings: tuple[Condition, ...] = ()
    """The different conditions that the words may mean, if there are several."""
    assumed: tuple[str, ...] = ()
    """What was taken although the words do not say it."""

    @property
    def problem(self) -> str:
        """Why no condition was read, in words; empty if one was."""
        if self.condition is not None:
            return ""
        if self.spares is not None:
            words = "may mean to approve it, or to let a person decide: say 'always approve' or 'always review'."
            return f"'{self.not_understood[0]}' {words}"
        if self.readings:
            ways = "; or ".join(f"'{condition}'" for condition in self.readings[:3])
            return f"it can be read in several ways: {ways}. Parentheses, 'or' or the formal syntax make it clear."
        words = ", ".join(f"'{word}'" for word in self.not_understood)
        meant = f"; did you mean {' or '.join(self.did_you_mean)}?" if self.did_you_mean else "."
        return f"not understood: {words}{meant}"


def read_rule(text: str, vocabulary: Vocabulary) -> ReadRule:
    """What the words of a rule say.

    >>> reading = read_rule("Decline gift cards above $500 unless the customer is a VIP", Vocabulary.general())
    >>> str(reading.condition), str(reading.argues)
    ('amount > 500 and gift_cards is true and vip is false', 'DECLINE')
    >>> read_rule("Decline purple orders above $500", Vocabulary.general()).not_understood
    ('purple',)
    """
    if is_too_long(text):
        return ReadRule(not_understood=(f"{text[:40]}...",))
    text, always = without_noise(text, vocabulary)
    text, glosses = without_glosses(text, vocabulary)
    reading = _read_plain(text, vocabulary, always=always, glosses=glosses)
    if reading.not_understood and reading.spares is None:
        shorter = without_remarks(text, vocabulary)
        again = (
            _read_plain(shorter.text, vocabulary, always=always, glosses=glosses) if shorter.text != text else reading
        )
        approves = Verdict.APPROVE in (again.argues, again.orders)
        has_verdict = again.argues or again.orders
        if (
            again.condition is not None
            and has_verdict
            and shorter.agrees(again.condition, vocabulary, approves=approves)
        ):
            remarks = (f"Passed over: '{remark}'." for remark in shorter.remarks)
            return replace(again, assumed=(*remarks, *again.assumed))
    return reading


def _read_plain(text: str, vocabulary: Vocabulary, *, always: bool, glosses: set[str]) -> ReadRule:
    """What a text in words that the reader knows says."""
    sentence = Sentence(respelt(tokens_of(text), vocabulary), vocabulary)
    reading = _read(text, sentence, always=always, glosses=glosses)
    return reading if reading.condition is None else replace(reading, assumed=_assumed(reading.condition, sentence))


def is_too_long(text: str) -> bool:
    """Whether a text is a note rather than a rule. Patterns are matched only on what is not: some take long on more."""
    if len(text) > _MOST_SIGNS or len(text) <= _LONGEST:
        return len(text) > _MOST_SIGNS
    said = [token.text for token in tokens_of(text)]
    return len(said) > _LONGEST or len(said) > max(_MOST_REPEATED, len(set(said)) * _MOST_TIMES)


def _assumed(condition: Condition, sentence: Sentence) -> tuple[str, ...]:
    """What was taken: a period for each figure of the past without one, and any currency, where a column tells it.

    Of an entity never seen, no period has to be said.
    """
    named = {token.shown.strip("`") for token in sentence.tokens}
    unseen = {leaf.fact for leaf in condition.leaves if isinstance(leaf, Test) and leaf.op in (Op.MISSING, Op.KNOWN)}
    assumed, taken = [], condition.facts - unseen - named
    for figure, kept in sentence.vocabulary.windows.items():
        hours, fact = max(kept.items(), key=lambda window: window[0])
        is_unseen = f"{figure.removesuffix('_count')}_hours_since_last" in unseen
        if fact.name in taken and not is_unseen and hours not in windows_said(sentence):
            known = words_for(fact.name)
            noun = fact.name if known is None else re.sub(r" in the last \d+ \w+", "", known.noun)
            period = f"{hours / 24:g} days" if hours > 24 else f"{hours:g} hours"
            assumed.append(f"No period was said for '{noun}': the longest that is kept, {period}, was taken.")
    codes = currencies_of(sentence.tokens)
    if codes or any(token.text in CURRENCIES for token in sentence.tokens):
        assumed += [
            told for fact in sentence.vocabulary.facts.values() if (told := _of_currency(fact, codes, condition))
        ]
    return tuple(assumed)


def _of_currency(fact: Fact, codes: Sequence[str], condition: Condition) -> str:
    """What a fact tells of the currency of amounts, where a rule names one: its values, or its own name."""
    said = "".join(codes)
    if fact.kind == "category" and fact.name.lower().removesuffix("_code").endswith("currency"):
        if fact.name in condition.facts:
            return ""
        if said and fact.values and said not in map(str.upper, fact.values):
            others = ", ".join(fact.values[:_MOST_CURRENCIES])
            return f"No amount at hand is in {said}: `{fact.name}` is {others}. The figure was taken as it is."
        return f"Amounts in any currency are meant: to test `{fact.name}` too, say it, as in 'in EUR'."
    own = [word.upper() for word in fact.words if CURRENCIES.get(word) == word.upper()]
    if said and own and fact.name in condition.facts and said not in own:
        return f"`{fact.name}` is in {own[0]}, not in {said}: the figure was taken as it is."
    return ""


def _read(text: str, sentence: Sentence, *, always: bool, glosses: set[str]) -> ReadRule:
    """What a sentence says, with or without a verdict."""
    vocabulary = sentence.vocabulary
    hopeless = _is_question(sentence) or bool(_odd_words(sentence))  # no such sentence is read, so do not try
    whole, whole_doubtful = ([], []) if hopeless else _readings(text, sentence)
    if len(whole) == 1 and glosses <= whole[0].facts:  # "fraud share above 5%" has a word of a verdict, but no verdict
        return ReadRule(whole[0])
    readings: dict[Condition, ReadRule] = {}
    doubtful: list[Condition] = []
    said = ReadRule()
    for conclusion in conclusions(sentence.tokens):
        if always and conclusion.always is None:
            verdict = conclusion.argues or Verdict.REVIEW
            conclusion = replace(conclusion, always=verdict, orders=verdict)  # noqa: PLW2901
        said = replace(said, argues=said.argues or conclusion.argues, always=said.always or conclusion.always)
        for condition in () if hopeless else _joined(text, sentence, conclusion, doubtful):
            if glosses <= condition.facts:
                read = ReadRule(condition, conclusion.argues, conclusion.always, conclusion.orders)
                if conclusion.spares:
                    read = ReadRule(
                        spares=condition, not_understood=(" ".join(sentence.shown(conclusion.start, conclusion.end)),)
                    )
                readings.setdefault(condition, read)
    if not readings:
        doubtful += whole_doubtful
        readings = {condition: ReadRule(condition) for condition in whole if glosses <= condition.facts}
    if len(readings) == 1:
        return next(iter(readings.values()))
    if readings or len(doubtful) > 1:
        return replace(said, readings=tuple(readings or dict.fromkeys(doubtful)))
    odd = _not_understood(text, sentence)
    return replace(said, not_understood=odd, did_you_mean=nearest_facts(odd, vocabulary))


def _is_question(sentence: Sentence) -> bool:
    """Whether a sentence asks for an answer: "should we block transfers above 5,000?" """
    said = sentence.said(0, len(sentence.tokens))
    if not said or said[-1] != "?" or "please" in said:
        return False
    return said[0] in _ASKS or (
        said[0] in ("when", "why", "how") and sentence.is_word(1, "do", "should", "can", "would")
    )


def _joined(text: str, sentence: Sentence, conclusion: Conclusion, doubtful: list[Condition]) -> list[Condition]:
    """The conditions before and after a conclusion, taken together."""
    tokens = sentence.tokens
    before, after = outside(tokens, conclusion)
    left, right = _without_last_filler(sentence.part(0, before)), sentence.part(after)
    befores: list[Condition | None] = [None]
    if _has_words(left):
        predicate = tokens[conclusion.start - 1].kind is not Kind.SIGN  # "payments at night are fraud"
        if predicate and left.is_one_of(left.skipped(0, STOPS), _NEGATIVE):
            return []  # "no VPN user is safe"
        excepted, first = _after_exception(left)
        found, unclear = _readings(text, first, as_object=predicate)
        doubtful += unclear if not excepted and not _has_words(right) else []
        befores = [condition.negated() if excepted else condition for condition in found]
    if not befores or not _has_words(right):
        # "if the customer is there", which no fact says
        is_lost = right.is_one_of(0, _LINKING) and len(right.tokens) > 1
        return [] if is_lost else [condition for condition in befores if condition is not None]
    negated, rest = _after_link(right)
    linked = negated or len(rest.tokens) < len(right.tokens)
    # "decline, unless A, B": where does it end? "decline except VIP and verified": both, or whoever is either?
    breaks = (",", ";", "if", "when", "where", *(() if right.is_word(0, "unless") else ("and",)))
    if negated and rest.has_word(0, len(rest.tokens), *breaks):
        return []
    if not linked and right.is_one_of(0, _NEGATIVE):
        return []  # "let through no VPN user"
    if not linked and befores != [None] and not _goes_on(left, right):
        return []  # "payments over 900 are fraud. Payments at night"
    has_object = not linked and tokens[conclusion.end].kind is not Kind.SIGN  # "decline payments at night"
    afters, unclear = _readings(text, rest, as_object=has_object, opened=right.is_one_of(0, _LINKING))
    doubtful += unclear if not negated and befores == [None] else []
    joined = []
    for condition in afters:
        second = condition.negated() if negated else condition
        joined += [second if first is None else Condition.all_of([first, second]) for first in befores]
    return joined


def _goes_on(left: Sentence, right: Sentence) -> bool:
    """Whether what follows a conclusion narrows what stands before it: "if A, decline all B", "A: ok up to 9"."""
    if any(comparators(right, 0)):
        return True
    opening = left.is_one_of(0, (*_LINKING, *_OF_A_SETTING)) or any(left.after_one_of(0, EXCEPTIONS))
    return opening or right.is_one_of(0, EVERYTHING)


def _without_last_filler(sentence: Sentence) -> Sentence:
    """The sentence without the subject of a conclusion: "..., the claim" before "ought to be denied"."""
    tokens = sentence.tokens
    end = len(tokens)
    while end and tokens[end - 1].kind is Kind.WORD and tokens[end - 1].text in FILLERS:
        end -= 1
    return sentence.part(0, end) if end and tokens[end - 1].kind is Kind.SIGN else sentence


def _after_exception(sentence: Sentence) -> tuple[bool, Sentence]:
    """What follows "unless" or "except for" at the beginning, if all before the conclusion is one exception.

    "Unless A, B" before a conclusion is cut by `Grammar`, which knows where the exception ends.
    """
    after = next(iter(sentence.after_one_of(0, EXCEPTIONS)), None)
    if after is None or any(token.kind is Kind.SIGN for token in sentence.tokens[after:]):
        return False, sentence
    return True, sentence.part(after)


def _after_link(sentence: Sentence) -> tuple[bool, Sentence]:
    """What follows "if", "when" or "unless" after a conclusion, and whether it is an exception."""
    for after in sentence.after_one_of(0, EXCEPTIONS):
        return True, sentence.part(after)
    return False, sentence.part(next(iter(sentence.after_one_of(0, LINKS)), sentence.past(0, "and")))


def _has_words(sentence: Sentence) -> bool:
    """Whether there is more than words that say nothing, such as "A claim" before "is suspicious if"."""
    says_more = any(token.kind is not Kind.SIGN and token.text not in FILLERS for token in sentence.tokens)
    return says_more or any(tests_at(sentence, at) for at in range(len(sentence.tokens)))  # "the customer is there"


def _readings(
    text: str, sentence: Sentence, *, as_object: bool = False, opened: bool = False
) -> tuple[list[Condition], list[Condition]]:
    """The conditions that a sentence means, and what it may mean if that is not clear."""
    start, end = _without_signs(sentence)
    if start == end:
        return [], []
    if (exact := _exact_reading(text, sentence, start, end)) is not None:
        return [exact], []
    if not sentence.vocabulary.only_in_verdicts.isdisjoint(sentence.words[start:end]):
        return [], []  # no test has such a word
    grammar = Grammar(sentence.part(start, end), as_object=as_object, opened=opened)
    return grammar.readings(), grammar.doubtful


def _exact_reading(text: str, sentence: Sentence, start: int, end: int) -> Condition | None:
    return read_exactly(text[sentence.tokens[start].start : sentence.tokens[end - 1].end], sentence.vocabulary)


def _without_signs(sentence: Sentence) -> tuple[int, int]:
    """Where a sentence begins and ends without the signs around it."""
    tokens, end = sentence.tokens, len(sentence.tokens)
    while end and tokens[end - 1].kind is Kind.SIGN and tokens[end - 1].text != ")":
        end -= 1
    return min(sentence.skipped(0, STOPS), end), end


def _not_understood(text: str, sentence: Sentence) -> tuple[str, ...]:
    """The words that mean nothing here. If each means something, the part of the sentence that could not be joined."""
    try:
        named = unknown_facts(Condition.parse(text), sentence.vocabulary)
    except ValueError:
        named = []
    if named and not sentence.vocabulary.is_open:
        return tuple(named)
    odd = _odd_words(sentence)
    if not odd and (furthest := _furthest(text, sentence)) < len(sentence.tokens):
        odd = [text[sentence.tokens[furthest].start :].strip()]
    return tuple(dict.fromkeys(odd)) or (text.strip(),)


def _furthest(text: str, sentence: Sentence) -> int:
    """How far the best reading of a sentence came."""
    start, end = _without_signs(sentence)
    if start == end or _is_question(sentence):
        return 0
    if _exact_reading(text, sentence, start, end) is not None:
        return len(sentence.tokens)
    grammar = Grammar(sentence.part(start, end))
    grammar.readings()
    return start + grammar.furthest


def _odd_words(sentence: Sentence) -> list[str]:
    """The words that mean nothing here, and the names in backticks that no fact and no list has."""
    tokens, vocabulary = sentence.tokens, sentence.vocabulary
    if len(codes := currencies_of(tokens)) > 1:
        return [f"amounts in {' and '.join(codes)}"]
    for index in range(len(tokens)):
        for end in sentence.after_one_of(index, phrases("not_honoured")):
            if sentence.matches(end - 1, vocabulary.values, exact=True) and sentence.is_word(end - 1, "all"):
                continue  # "not all perils"
            return [" ".join(sentence.shown(index, end))]
        for end in near_limits(sentence, index):
            return [" ".join(sentence.shown(index, end))]
    odd = [place for place, token in enumerate(tokens) if not _is_known(token, vocabulary)]
    names = {end - 1 for place in range(len(tokens)) for end in _after_names(sentence, place)} if odd else set()
    return [tokens[place].shown for place in odd if tokens[place].kind is Kind.FACT or place not in names]


def _after_names(sentence: Sentence, at: int) -> Iterator[int]:
    """The places after the names of entities that stand after "merchant" and the like here."""
    for entity, after in sentence.entity(at):
        yield from (end for _, end in named_tests(sentence, entity, after))


def _is_known(token: Token, vocabulary: Vocabulary) -> bool:
    if token.kind is Kind.FACT:
        return vocabulary.is_open or token.text in vocabulary.facts or token.text in vocabulary.lists
    if token.kind is not Kind.WORD:
        return True
    if token.text in vocabulary.word_list or token.text in GRAMMAR_WORDS or token.shown in vocabulary.lists:
        return True
    if token.text.lower() in vocabulary.lower_names:  # the name of a fact, in formal syntax
        return True
    return vocabulary.is_open and not token.shown.isalpha()


# --- the formal syntax and the engine's own English, which have one meaning only ---


def read_exactly(written: str, vocabulary: Vocabulary) -> Condition | None:
    """The condition that a text states in so many words, if it is about facts at hand.

    >>> str(read_exactly("AMOUNT > 500 and vpn is true", Vocabulary.general()))
    'amount > 500 and vpn is true'
    """
    condition = read_condition(written) or _formal(written, vocabulary)
    if condition is None or (not vocabulary.is_open and unknown_facts(condition, vocabulary)):
        return None
    return condition if all(_has_type(leaf, vocabulary) for leaf in condition.leaves) else None


def _has_type(leaf: Leaf, vocabulary: Vocabulary) -> bool:
    """Whether a test compares its fact with a value of the fact's own type."""
    fact = vocabulary.facts.get(leaf.fact)
    if fact is None or not isinstance(leaf, Test) or leaf.value is None:
        return True
    kind = "flag" if isinstance(leaf.value, bool) else "number" if isinstance(leaf.value, float) else "category"
    return kind == fact.kind


def _formal(written: str, vocabulary: Vocabulary) -> Condition | None:
    """The formal syntax; names may differ in letter case from those of facts."""
    try:
        condition = Condition.parse(written)
    except ValueError:
        return None
    if any(int(hours[1]) > int(hours[2]) for hours in _HOURS_BETWEEN.finditer(written)):
        return None  # over midnight, which is how hours are read in words
    lower = vocabulary.lower_names
    renamed = {name: lower.get(name.lower(), name) for name in condition.facts if name not in vocabulary.facts}

    def with_names(leaf: Leaf) -> Leaf:
        if isinstance(leaf, PairTest):
            leaf = replace(leaf, other=renamed.get(leaf.other, leaf.other))
        return replace(leaf, fact=renamed.get(leaf.fact, leaf.fact))

    condition = condition.mapped(with_names)
    unknown = unknown_facts(condition, vocabulary) if vocabulary.is_open else []
    return condition if all(_looks_like_a_name(name, written) for name in unknown) else None


def unknown_facts(condition: Condition, vocabulary: Vocabulary) -> list[str]:
    """The facts of a condition that are not at hand."""

    def is_known(name: str) -> bool:
        if (sought := LookUp.of(name)) is None:
            return name in vocabulary.facts
        is_there = sought.how != IN_LIST or sought.what in vocabulary.lists
        return is_there and (sought.key in vocabulary.facts or (sought.key,) in vocabulary.entities)

    return [name for name in sorted(condition.facts) if not is_known(name)]


def _looks_like_a_name(name: str, written: str) -> bool:
    """Whether a word is certainly the name of a fact: it has an underscore or a digit, or stands in backticks."""
    return (
        words_for(name) is not None
        or LookUp.of(name) is not None
        or f"`{name}`" in written
        or not name.isalpha()
        or name != name.lower()
    )
