"""Bullets in prose, as many as wanted: distinct sentences, each a function of its number and a seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from string import Formatter
from zlib import crc32

from benchmarks.speed.words import WORDS

_GOLDEN = 0.6180339887
_OF_SEED = 104_729


class Form:
    """A sentence with gaps.

    Each number below its size stands for one filling. Neighbouring numbers are sent far apart first, by a factor that
    shares no divisor with the size, so that no two of them ever meet.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._gaps = [WORDS[gap.rstrip("2")] for _, gap, _, _ in Formatter().parse(text) if gap]
        self._names = [gap for _, gap, _, _ in Formatter().parse(text) if gap]

    @cached_property
    def size(self) -> int:
        """How many different sentences it makes."""
        return math.prod(len(words) for words in self._gaps)

    @cached_property
    def _step(self) -> int:
        step = int(_GOLDEN * self.size)
        while math.gcd(step, self.size) > 1:
            step += 1
        return step

    @cached_property
    def _start(self) -> int:
        return crc32(self.text.encode()) * (self.size // 97 + 1)

    def filled(self, number: int, seed: int) -> str:
        """The sentence of a number."""
        left = (number * self._step + self._start + seed * _OF_SEED) % self.size
        parts = {}
        for name, words in zip(self._names, self._gaps, strict=True):
            left, place = divmod(left, len(words))
            parts[name] = words[place]
        text = self.text.format(**parts)
        return text[0].upper() + text[1:]


FORMS = tuple(
    Form(text)
    for text in (
        "when {sign} and {act}, {advice}, {reason}.",
        "{scheme}: a payment above {sum} at a {shop} {way} where {sign} is a warning; {advice}.",
        "for {people}, {sign} means little if {calm}; {advice}, {reason}.",
        "purchases at a {shop} in {place} {way} turned out to be {scheme} when {act}.",
        "if {calm}, {advice} even though {sign} and {act}.",
        "watch for {scheme} in {place}: {act}, then {sign} within {hours}; {advice}.",
        "{count} or more attempts {way} within {hours} point to {scheme}, above all if {sign}.",
        "do not mistake {people} buying from a {shop} {way} for {scheme}: {calm}.",
        "a transfer of {sum} to a payee in {place}, {hours} after opening, suggests {scheme}; {advice}.",
        "a {shop} and a {shop2} on one day {way} are typical of {scheme} in {place}.",
        "{sign}; {act}. Taken together this is {scheme}, so {advice}.",
        "at a {shop} in {place} amounts up to {sum} are fine where {calm}; {advice} above that.",
        "ask first whether {sign}. If so and {act}, {advice}. If not, and {calm}, let it pass.",
        "{people} in {place} pay a {shop} {way} about {count} times a month; {advice} unless {act}.",
        "lesson from a missed {scheme}: {sign} at {sum} was dismissed because {calm}.",
        "lesson from a false alarm at a {shop}: {act}, yet {calm}; {advice} next time.",
    )
)


def sentence(number: int, seed: int = 0) -> str:
    """The sentence of a number; different numbers give different sentences, up to some millions.

    >>> sentence(0) == sentence(0), sentence(0) == sentence(16), sentence(0) == sentence(0, seed=1)
    (True, False, False)
    """
    return FORMS[number % len(FORMS)].filled(number // len(FORMS), seed)


def sentences(count: int, seed: int = 0, first: int = 0) -> Iterator[str]:
    """So many of them, from one number on."""
    return (sentence(number, seed) for number in range(first, first + count))


def said_otherwise(text: str, others: Sequence[str], change: int) -> str:
    """Nearly the same sentence: with some of its words replaced by words of others, the more the larger ``change``.

    >>> said_otherwise("a b c d", ["x y z w"], 1)
    'a b y d'
    """
    words = text.split()
    for turn in range(change):
        source = others[turn % len(others)].split()
        place = (2 + 5 * turn) % len(words)
        words[place] = source[(1 + 3 * turn) % len(source)]
    return " ".join(words)
