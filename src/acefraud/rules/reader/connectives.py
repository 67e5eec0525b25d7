"""How the tests of a sentence are joined: and, or, unless, commas, parentheses.

A sentence may often be cut into tests in several ways. All of them are followed; if they come to different conditions,
the sentence is ambiguous and is not read. "A and B or C" without a comma is such a sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from acefraud.core.comparison import NEGATED, ORDERED, Op, Test
from acefraud.core.condition import AnyOf, Condition
from acefraud.rules.reader.atoms import Atoms
from acefraud.rules.reader.joints import TIME_FACTS, JoinedTest, Joint, folded, may_be_a_choice, ways_to_take
from acefraud.rules.reader.measures import HISTORY_NAME
from acefraud.rules.reader.phrases import Tokens, after_any, is_one_of, is_word, skipped
from acefraud.rules.reader.tokens import Kind
from acefraud.rules.reader.word_lists import phrases, words

_MOST = 40
"""Ways to cut a sentence up to one place that are followed further."""
_DEEPEST = 6
"""Parentheses and negations inside each other."""
_AND, _OR = phrases("and"), phrases("or")
EXCEPTIONS = phrases("exceptions")
"""What opens an exception."""
_LINK_WORDS = frozenset(word for one in phrases("links") for word in one.split())
_UNLESS = tuple(one for one in EXCEPTIONS if one.startswith("unless"))
_EXCEPT = tuple(one for one in EXCEPTIONS if not one.startswith("unless"))
LINKS = phrases("links")
"""What links a test to what was said before, as "and" does."""
FILLERS = words("fillers") | words("transactions")
"""Words that may be passed over before a test: they say nothing that a test could miss."""
_FILLERS_AFTER = words("fillers_after") | words("transactions")
_FILLER_PHRASES = phrases("filler_phrases")
_ADJECTIVES = ("present", "filed", "known", "used", "seen", "given")
"""After "not" they end what is denied: "the customer is not present and ..."."""
_GROUPS = words("heads") | words("transactions") | words("people") | {"man", "woman", "accident", "withdrawal"}
_PREPOSITIONS = frozenset({"to", "by", "at", "with", "in", "from", "on", "via", "using", "for", "during", "through"})
_ALL = ("everything", "anything", "all", "every", "any")
_IFS = ("if", "when", "where", "whenever")
STOPS = (",", ";", ".", "-", "–", "—", ":")
"""Signs between two parts of a sentence."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A way to cut the tokens from one place to another into tests."""

    tests: tuple[JoinedTest, ...]
    end: int
    cost: int
    """Words that were passed over because they say nothing."""


class Sentence:
    """Reads conditions from tokens."""

    def __init__(self, tokens: Tokens, atoms: Atoms, *, as_object: bool = False, opened: bool = False) -> None:
        """`as_object`: a verdict is said of these words directly; `opened`: "if" or "when" stood before them."""
        self._tokens = tokens
        self._atoms = atoms
        self._as_object = as_object
        self._opened = opened
        self._tests_at: dict[tuple[int, int], list[tuple[Condition, int, int]]] = {}
        self.furthest = 0
        """How far the best reading came."""
        self.doubtful: list[Condition] = []
        """What the whole may mean, if it can be taken in several ways."""

    def readings(self) -> list[Condition]:
        """The conditions that the whole may mean, of those readings that pass over the fewest words.

        Of these, the ones with the fewest tests: "Chrome or Opera at night" is one choice of a browser, at night.
        """
        whole: list[tuple[tuple[int, int], Condition]] = []
        unclear: list[tuple[tuple[int, int], tuple[JoinedTest, ...]]] = []
        for cut in self._cuts(0, 0):
            if _end_of(self._tokens, cut.end) < len(self._tokens):
                continue
            cost = cut.cost, len(cut.tests)
            made = None if may_be_a_choice(cut.tests, as_object=self._as_object) else folded(cut.tests)
            if made is None:
                unclear.append((cost, cut.tests))
            elif not _is_impossible(made):
                whole.append((cost, made))
        if unclear and not whole:
            self.doubtful = ways_to_take(min(unclear, key=lambda one: one[0])[1])
        least = min((cost for cost, _ in whole), default=(0, 0))
        return list(dict.fromkeys(one for cost, one in whole if cost == least))

    def _cuts(self, start: int, depth: int) -> list[_Cut]:
        """Every way to read tests from here on, up to a place where no further one can be read."""
        done: list[_Cut] = []
        waiting: dict[int, list[_Cut]] = {start: [_Cut((), start, 0)]}
        while waiting:
            place = min(waiting)
            for cut in sorted(waiting.pop(place), key=lambda cut: cut.cost)[:_MOST]:
                for joint, after in self._joints(place, first=not cut.tests):
                    for condition, end, cost in self._tests(after, depth):
                        if self._forgets_entity(after, end, condition):
                            continue
                        negated = self._is_negated(after, end, condition)
                        test = JoinedTest(
                            self._loosened(joint, after, cost),
                            condition,
                            is_negated=negated,
                            denies_noun=negated and self._denies_noun(after),
                            is_group=self._is_group(after, end, condition),
                            is_modifier=is_one_of(self._tokens, after, _PREPOSITIONS),
                            is_past=self._is_past(condition),
                            is_clause=any(is_word(self._tokens, one, *_IFS) for one in range(place, after + 1)),
                            is_restart=self._is_restart(place, after),
                            is_exempt=self._is_exempt(place, after, end),
                        )
                        further = _Cut((*cut.tests, test), end, cut.cost + cost)
                        self.furthest = max(self.furthest, end)
                        waiting.setdefault(end, []).append(further)
                        done.append(further)
        return done

    def _loosened(self, joint: Joint, at: int, cost: int) -> Joint:
        """Tests that follow each other belong together closely only if no word stands between them."""
        return Joint.WITH if joint is Joint.NEXT and (cost or is_one_of(self._tokens, at, _LINK_WORDS)) else joint

    def _is_negated(self, start: int, end: int, condition: Condition) -> bool:
        """Whether a test says "no" or "not" of a flag, a value or a count."""
        if not any(is_word(self._tokens, place, "no", "not", "without", "non", "never") for place in range(start, end)):
            return False
        return any(
            isinstance(leaf, Test) and (leaf.value is False or leaf.op in NEGATED or leaf.value == 0.0)
            for leaf in condition.leaves
        )

    def _denies_noun(self, start: int) -> bool:
        """Whether "no" or "not" stands before a noun, which may go on after it: "not a transfer to a new payee"."""
        first = skipped(self._tokens, start, FILLERS - {"with", "by", "from"})
        if is_word(self._tokens, first, "no", "without", "non"):
            return True
        return is_word(self._tokens, first, "not") and not is_word(self._tokens, first + 1, *_ADJECTIVES)

    def _is_group(self, start: int, end: int, condition: Condition) -> bool:
        """Whether a test names a group: it begins with "payments" or ends with "VIPs"."""
        if any(is_word(self._tokens, place, "no", "not", "without", "never") for place in range(start, end)):
            return False
        first = skipped(self._tokens, start)
        if self._is_plural(first, _GROUPS):
            return True
        if any(is_word(self._tokens, place, "is", "has", "be") for place in range(first, end)):
            return False
        if any(token.kind is Kind.NUMBER for token in self._tokens[first:end]):
            return False
        last = end - 1
        while last > first and self._tokens[last].kind is not Kind.WORD:
            last -= 1
        plain = all(isinstance(leaf, Test) and not isinstance(leaf.value, float) for leaf in condition.leaves)
        return plain and self._is_plural(last)

    def _is_past(self, condition: Condition) -> bool:
        """Whether a test is about the past of an entity, so that words after it may narrow that past."""
        return any(
            (named := HISTORY_NAME.fullmatch(leaf.fact)) is not None
            and (not named["new"] or (isinstance(leaf, Test) and leaf.value is False))
            for leaf in condition.leaves
        )

    def _forgets_entity(self, start: int, end: int, condition: Condition) -> bool:
        """Whether an entity is named that a test of the past of another one leaves out: "the user's 3 orders at it"."""
        matches = [named for fact in condition.facts if (named := HISTORY_NAME.fullmatch(fact)) is not None]
        about = {name for named in matches for name in (named["entity"], named["other"], named["new"]) if name}
        named_here = {name for place in range(start, end) for name in self._atoms.entities(place)}
        counts = any(named["figure"] or named["other"] for named in matches)
        return counts and bool(named_here) and not named_here <= about

    def _is_plural(self, at: int, nouns: Collection[str] | None = None) -> bool:
        token = self._tokens[at] if at < len(self._tokens) else None
        if token is None or token.kind is not Kind.WORD or (nouns is not None and token.text not in nouns):
            return False
        shown = token.shown.lower()
        return shown in ("men", "women", "people") or (shown.endswith("s") and shown != token.text)

    def _is_exempt(self, place: int, after: int, end: int) -> bool:
        """Whether a test after "but" may be an exception: "everything over 500 but groceries"."""
        if not any(is_word(self._tokens, one, "but") for one in range(place, after)):
            return False
        has_verb = any(is_word(self._tokens, one, "is", "has", "only") for one in range(after - 1, end))
        return not has_verb and any(is_word(self._tokens, one, *_ALL) for one in range(place))

    def _is_restart(self, place: int, after: int) -> bool:
        """Whether "if" or "when" stands between two tests and nowhere before."""
        between = any(is_word(self._tokens, one, *_IFS) for one in range(place, after + 2))
        return between and not self._opened and not any(is_word(self._tokens, one, *_IFS) for one in range(place))

    def _joints(self, at: int, *, first: bool) -> Iterator[tuple[Joint, int]]:
        """What may stand before a test here, with the place where the test begins."""
        tokens = self._tokens
        if first:
            yield Joint.FIRST, at
            yield from ((Joint.UNLESS, after) for after in after_any(tokens, at, EXCEPTIONS))
            return
        yield Joint.NEXT, at
        comma = skipped(tokens, at, STOPS)
        has_comma = comma > at
        if has_comma:
            yield Joint.COMMA, comma
        for some, joint in (
            (_AND, Joint.COMMA_AND if has_comma else Joint.AND),
            (_OR, Joint.COMMA_OR if has_comma else Joint.OR),
            (_UNLESS, Joint.UNLESS),
            (_EXCEPT, Joint.EXCEPT),
            (LINKS, Joint.COMMA_AND if has_comma else Joint.WITH),
        ):
            yield from ((joint, after) for after in after_any(tokens, comma, some))

    def _tests(self, at: int, depth: int) -> list[tuple[Condition, int, int]]:
        """The tests that begin here, each with the place after it and the words that were passed over."""
        key = at, depth
        if key not in self._tests_at:
            found: dict[tuple[Condition, int], int] = {}
            for start, cost in self._starts(at):
                for condition, end in self._cores(start, depth):
                    for place, extra in {(end, 0), self._after_fillers(end)}:
                        known = found.get((condition, place), cost + extra)
                        found[condition, place] = min(known, cost + extra)
            self._tests_at[key] = [(condition, end, cost) for (condition, end), cost in found.items()]
        return self._tests_at[key]

    def _starts(self, at: int) -> Iterator[tuple[int, int]]:
        """The places where a test may begin: here, or after words that say nothing."""
        cost = 0
        yield at, cost
        while (step := self._after_filler(at)) > at and not self._names_age(at):
            at, cost = step, cost + 1
            yield at, cost

    def _names_age(self, at: int) -> bool:
        """Whether the age of a thing is named here, which is not that of a person: "the vehicle's age"."""
        next_word = at + 1 + is_word(self._tokens, at + 1, "'s")
        return is_word(self._tokens, at, "vehicle", "car") and is_word(self._tokens, next_word, "age")

    def _after_filler(self, at: int) -> int:
        after = next(after_any(self._tokens, at, _FILLER_PHRASES), None)
        return at + self._says_nothing(at, FILLERS) if after is None else after

    def _says_nothing(self, at: int, some: Collection[str]) -> bool:
        """Whether a word of a list may be passed over: it is no value here, as "transfer" may be."""
        return is_one_of(self._tokens, at, some) and not self._atoms.is_value(at)

    def _after_fillers(self, at: int) -> tuple[int, int]:
        """The place after words behind a test that say nothing, and how many of them there are."""
        cost = 0
        while True:
            comma = at + is_word(self._tokens, at, ",")
            step = next(after_any(self._tokens, comma, _FILLER_PHRASES), None)
            if step is None and self._says_nothing(at, _FILLERS_AFTER):
                step = at + 1
            if step is None:
                return at, cost
            at, cost = step, cost + 1

    def _cores(self, at: int, depth: int) -> Iterator[tuple[Condition, int]]:
        """The tests that begin exactly here, also in parentheses and after "not"."""
        tokens = self._tokens
        yield from self._atoms.tests(at)
        if depth >= _DEEPEST:
            return
        if is_word(tokens, at, "("):
            for cut in self._cuts(at + 1, depth + 1):
                if is_word(tokens, cut.end, ")") and (made := folded(cut.tests)) is not None:
                    yield made, cut.end + 1
        # Elsewhere "not" belongs to the words of a test, which reads it itself.
        if is_word(tokens, at, "not") and is_word(tokens, at + 1, "(", "when", "if", "where"):
            for condition, end, _ in self._tests(at + 1, depth + 1):
                yield condition.negated(), end
        yield from self._correlated(at, depth)

    def _correlated(self, at: int, depth: int) -> Iterator[tuple[Condition, int]]:
        """ "either A or B", "both A and B", "neither A nor B" """
        for opening, joint in (("either", "or"), ("both", "and"), ("neither", "nor")):
            for parts, end in self._parts(at + 1, joint, depth + 1) if is_word(self._tokens, at, opening) else ():
                if opening == "either":
                    yield Condition.any_of(parts), end
                elif opening == "both":
                    if is_word(self._tokens, end, "or"):
                        continue
                    if not all(part.facts <= TIME_FACTS for part in parts):  # "both at night and on weekends"
                        yield Condition.all_of(parts), end
                else:
                    yield Condition.all_of(part.negated() for part in parts), end

    def _parts(self, at: int, joint: str, depth: int) -> Iterator[tuple[list[Condition], int]]:
        """Two tests or more between which a joint stands."""
        for first, end, _ in self._tests(at, depth):
            comma = end + is_word(self._tokens, end, ",")
            if not is_word(self._tokens, comma, joint):
                continue
            after = skipped(self._tokens, comma + 1, ("if", "when"))
            for second, final, _ in self._tests(after, depth):
                yield [first, second], final
            for more, final in self._parts(after, joint, depth) if depth < _DEEPEST else ():
                yield [first, *more], final


def _is_impossible(condition: Condition) -> bool:
    """Whether a conjunction asks for what nobody means.

    That is two different values of one category, bounds of one number that exclude each other, as in "after 10 pm and
    before 4 am", or two bounds on the same side, as in "crypto over $500 and gift cards over $300".
    """
    checks = (_has_two_values, _has_odd_bounds, _has_both_ways, _excludes_every_option)
    return any(is_odd(condition) for is_odd in checks)


def _excludes_every_option(condition: Condition) -> bool:
    """Whether a choice leaves nothing: "Opera, and Chrome or Safari" of one browser."""
    direct = [part for part in condition.parts if not isinstance(part, AnyOf)]
    return bool(direct) and any(
        all(_has_two_values(Condition.of(*direct, *option.parts)) for option in part.options)
        for part in condition.parts
        if isinstance(part, AnyOf)
    )


def _has_both_ways(condition: Condition) -> bool:
    flags = {(part.fact, part.value) for part in condition.parts if isinstance(part, Test) and part.op is Op.IS}
    return any((fact, not value) in flags for fact, value in flags if isinstance(value, bool))


def _has_odd_bounds(condition: Condition) -> bool:
    lower: dict[str, float] = {}
    upper: dict[str, float] = {}
    for part in condition.parts:
        if isinstance(part, Test) and part.op in ORDERED and isinstance(part.value, float):
            side = lower if part.op in (Op.ABOVE, Op.AT_LEAST) else upper
            if part.fact in side:
                return True
            side[part.fact] = part.value
    return any(upper.get(fact, value) < value for fact, value in lower.items())


def _has_two_values(condition: Condition) -> bool:
    allowed: dict[str, set[str]] = {}
    for part in condition.parts:
        if isinstance(part, Test) and part.op in (Op.IS, Op.IN) and isinstance(part.value, str | tuple):
            values = {part.value} if isinstance(part.value, str) else set(part.value)
            allowed[part.fact] = allowed.get(part.fact, values) & values
    return any(not values for values in allowed.values())


def _end_of(tokens: Tokens, at: int) -> int:
    """The end of the sentence, if only stops follow."""
    while at < len(tokens) and tokens[at].kind is Kind.SIGN and tokens[at].text in ".!?;,:-–—":
        at += 1
    return at
