"""What only comments on a rule: reasons, what was seen before, and what somebody thinks of it."""

from __future__ import annotations

import re

from pydantic import BaseModel

from acefraud.rules.reader.grammar import tests_at
from acefraud.rules.reader.sentence import Sentence
from acefraud.rules.reader.tokens import Kind, tokens_of, words
from acefraud.rules.reader.vocabulary import Vocabulary
from acefraud.support.package_data import read_package_toml


class _Remarks(BaseModel, extra="forbid"):
    """The entries of ``remarks.toml``, which explains them."""

    opening: tuple[str, ...]
    inside: tuple[str, ...]
    restricting: frozenset[str]


_REMARKS = read_package_toml("acefraud.rules.reader", "remarks.toml", _Remarks)
_INSIDE = "|".join(_REMARKS.inside)
_BOUNDARY = re.compile(rf"(\s*(?:[.,;:!?]+(?=\s|$)|[()–—]|\s-+\s|[-–—=]+>|→|⇒|=(?=\s))\s*|\s+(?=(?:{_INSIDE})))", re.I)
"""What stands between two clauses."""
_OPENING = re.compile(rf"(?:(?:and|so|well|also|plus) )?(?:{'|'.join(_REMARKS.opening)}|{_INSIDE})", re.I)
_VERDICT_WORDS = words("decline") | words("approve") | words("review")
_MILD = frozenset({"bad", "good", "look", "through", "down", "turn", "turned"})
"""Words of verdicts that remarks have as well."""


def without_remarks(text: str, vocabulary: Vocabulary) -> tuple[str, tuple[str, ...]]:
    """The text without the clauses that only comment, and these clauses.

    >>> without_remarks("Decline amounts over 500, we got burned on that", Vocabulary.general())
    ('Decline amounts over 500', ('we got burned on that',))
    """
    kept, passed = "", []
    clauses = _BOUNDARY.split(text)
    for clause, sign in zip(clauses[::2], [*clauses[1::2], ""], strict=True):
        if _is_remark(clause, vocabulary):
            passed.append(clause)
            kept = kept.rstrip(" ,;:–—-") + (sign if sign.strip() else " ") * (not kept.endswith("("))
        else:
            kept += clause + sign
    return re.sub(r"\(\s*\)?$|\(\s*\)", "", kept).strip(), tuple(passed)


def _is_remark(clause: str, vocabulary: Vocabulary) -> bool:
    """Whether a clause begins as remarks do, and has no test, figure, verdict or word that restricts."""
    match = _OPENING.match(clause)
    if match is None:
        return False
    sentence = Sentence(tokens_of(clause), vocabulary)
    rest = {token.text for token in tokens_of(clause[match.end() :])}
    return not (
        rest & _REMARKS.restricting
        or {token.text for token in sentence.tokens} & (_VERDICT_WORDS - _MILD)
        or any(token.kind is not Kind.WORD for token in sentence.tokens)
        or any(_says_something(sentence, at) for at in range(len(sentence.tokens)))
    )


def _says_something(sentence: Sentence, at: int) -> bool:
    """Whether a fact, a value or a test stands here."""
    names_fact = sentence.facts(at, "number", "category", "flag")
    return bool(names_fact) or sentence.is_value(at) or bool(tests_at(sentence, at))
