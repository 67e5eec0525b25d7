"""Reads rules: in the formal syntax, in the engine's own English, and in the words of people.

A rule is read only if every word that carries meaning was understood and all readings come to the same condition.
Otherwise the reader says which words it could not place. A text goes through these steps:

- `tokens`: words, numbers and signs;
- `verdict_words`: what the rule asks for, and where that stands;
- `connectives` and `joints`: how tests are joined; every way to cut a sentence into tests is followed;
- `atoms`: the tests, each kind read by a module of its own (`number_tests`, `flag_tests`, `history_tests`, ...) from
  `nouns`, `values` and the words of a `vocabulary`, and from `bounds` and `quantities`;
- `suggestions`: the nearest facts, if words are left over.

The words themselves are data: `words.toml` has the reader's own, `concepts.toml` what people call facts, and
`countries.toml` the names of countries.
"""

from acefraud.rules.reader.reading import RuleReading, read_rule
from acefraud.rules.reader.vocabulary import Vocabulary

__all__ = ["RuleReading", "Vocabulary", "read_rule"]
