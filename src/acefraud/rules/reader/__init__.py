"""Reads rules: in the formal syntax, in the engine's own English, and in the words of people.

A rule is read only if every word that carries meaning was understood and all readings come to the same condition.
Otherwise the reader says which words it could not place. A text goes through these steps:

- `rewordings`: what people say in other words is said in those that the reader knows; greetings are dropped;
- `tokens` and `spelling`: words, numbers and signs; a word of a column's name may have one wrong letter;
- `verdict_words`: what the rule asks for, and where that stands;
- `exact`: the formal syntax and the engine's own English are read as they are;
- `connectives` and `joints`: how tests are joined; every way to cut a sentence into tests is followed, and what may be
  meant in two ways is refused;
- `atoms`: the tests, each kind read by a module of its own (`number_tests`, `flag_tests`, `history_tests`, ...) from
  `nouns`, `values` and the words of a `vocabulary`, and from `bounds`, `bands` and `quantities`;
- `suggestions`: the nearest facts, if words are left over.

The words themselves are data: `words.toml` has the reader's own, `rewordings.toml` other ways to say the same,
`concepts.toml` what people call facts, `related.toml` what facts are about, `column_words.toml` words of columns in
other languages, and `countries.toml` the names of countries.
"""

from acefraud.rules.reader.reading import RuleReading, read_rule
from acefraud.rules.reader.vocabulary import Vocabulary

__all__ = ["RuleReading", "Vocabulary", "read_rule"]
