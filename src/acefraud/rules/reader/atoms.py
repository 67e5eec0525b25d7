"""The tests that a sentence may state of single facts."""

from __future__ import annotations

from acefraud.core.condition import Condition
from acefraud.rules.reader.age_tests import AgeTests
from acefraud.rules.reader.amount_tests import AmountTests
from acefraud.rules.reader.band_tests import BandTests
from acefraud.rules.reader.category_tests import CategoryTests
from acefraud.rules.reader.count_tests import CountTests
from acefraud.rules.reader.event_tests import EventTests
from acefraud.rules.reader.flag_tests import FlagTests
from acefraud.rules.reader.history_figures import HistoryFigures
from acefraud.rules.reader.history_tests import HistoryTests
from acefraud.rules.reader.last_event_tests import LastEventTests
from acefraud.rules.reader.new_pair_tests import NewPairTests
from acefraud.rules.reader.nouns import Nouns
from acefraud.rules.reader.number_tests import NumberTests
from acefraud.rules.reader.phrases import Tokens
from acefraud.rules.reader.time_tests import TimeTests
from acefraud.rules.reader.value_tests import ValueTests
from acefraud.rules.reader.values import Values
from acefraud.rules.reader.vocabulary import Vocabulary


class Atoms:
    """Reads the tests that begin at a place of a sentence."""

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        nouns, values = Nouns(tokens, vocabulary), Values(tokens, vocabulary)
        self._nouns = nouns
        self._values = values
        figures = HistoryFigures(tokens, vocabulary, nouns)
        numbers = NumberTests(tokens, vocabulary, nouns, figures)
        counts = CountTests(tokens, vocabulary, nouns)
        flags = FlagTests(tokens, vocabulary, nouns)
        ages = AgeTests(tokens, vocabulary)
        # The order counts where a sentence can be read in more ways than are followed.
        self._readers = (
            HistoryTests(tokens, nouns, figures).tests,
            LastEventTests(tokens, vocabulary, nouns).tests,
            NewPairTests(tokens, vocabulary, nouns).tests,
            numbers.tests,
            counts.tests,
            CategoryTests(tokens, vocabulary, nouns, values).tests,
            EventTests(tokens, vocabulary, values).tests,
            BandTests(tokens, vocabulary, nouns, values).tests,
            flags.tests,
            ValueTests(tokens, vocabulary, nouns, values).tests,
            AmountTests(tokens, vocabulary, numbers).tests,
            TimeTests(tokens, vocabulary).tests,
            ages.tests,
            ages.people_tests,
            flags.presence_tests,
            counts.burst_tests,
        )
        self._tests_at: dict[int, list[tuple[Condition, int]]] = {}

    def entities(self, at: int) -> list[str]:
        """The entities that are named here."""
        return [name for name, _ in self._nouns.entity(at)]

    def is_value(self, at: int) -> bool:
        """Whether the word that stands here is a value of a category by itself."""
        return (self._tokens[at].text,) in self._vocabulary.values and not self._values.is_ordinary(at, at + 1)

    def tests(self, at: int) -> list[tuple[Condition, int]]:
        """Every test that begins here, with the place after it."""
        if at not in self._tests_at:
            self._tests_at[at] = list(dict.fromkeys(found for tests in self._readers for found in tests(at)))
        return self._tests_at[at]
