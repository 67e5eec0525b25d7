"""What a rule asks for: decline, approve or review, and whether it leaves no choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acefraud.core.transaction import Verdict
from acefraud.rules.reader.tokens import Kind, Tokens, words

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
_SIGNS = frozenset("->=>→⇒=:,.;-–—!?+") | {"->", "=>", "–>", "—>"}


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the words ask for, and where they stand."""

    start: int
    end: int
    argues: Verdict | None
    always: Verdict | None

    def is_predicate(self, tokens: Tokens) -> bool:
        """Whether it is said of the words before it directly: "payments at night are fraud"."""
        return self.start > 0 and tokens[self.start - 1].kind is not Kind.SIGN

    def has_object(self, tokens: Tokens) -> bool:
        """Whether the words after it are what it is said of: "decline payments at night"."""
        return self.end < len(tokens) and tokens[self.end].kind is not Kind.SIGN


def conclusions(tokens: Tokens) -> Iterator[Conclusion]:
    """Every run of words that may be the conclusion of a rule."""
    cores = [place for place, token in enumerate(tokens) if token.kind is Kind.WORD and token.text in _CORE]
    is_question = not any(token.text == "please" for token in tokens)
    while cores:
        first = last = cores.pop(0)
        while cores and all(_between(tokens, place) for place in range(last + 1, cores[0])):
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
        if (start, end) != (first, last + 1):
            shorter = _conclusion(first, last + 1, [token.text for token in tokens[start : last + 1]])
            if shorter is not None:
                yield shorter


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
        return token.text in ",.:;"
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
    denied = any(word in _DENIALS for word in words)
    if Verdict.REVIEW in verdicts and denied:
        return None  # "to be reviewed, not declined"
    argues = next(iter(verdicts - {Verdict.REVIEW}), None)
    ordered = "always" in words or "never" in words
    return Conclusion(start, end, argues, (argues or Verdict.REVIEW) if ordered else None)


def _verdict(words: list[str]) -> Verdict | None:
    """What one clause asks for: "must not be approved" is a decline. None if it says one thing and another."""
    declines, approves = any(word in _DECLINE for word in words), any(word in _APPROVE for word in words)
    if any(word in _DECLINE and words[place + 1 : place + 2] == ["to"] for place, word in enumerate(words)):
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
