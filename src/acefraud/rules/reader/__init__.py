"""Reads rules: in the formal syntax, in the engine's own English, and in the words of people.

A rule is read only if every word that carries meaning was understood and all readings come to the same condition.
Otherwise the reader says which words it could not place. `reading` finds what a rule asks for, and takes its text
through these steps:

- `wording`: what people say in other words is said in those that the reader knows; greetings are dropped; a word of a
  column's name may have one wrong letter. If words are left over in the end, it finds the nearest facts;
- `remarks`: if a rule cannot be read, it is tried without the clauses that only comment, which are then shown;
- `tokens`: words, numbers and signs;
- `grammar` and `joints`: how tests are joined; every way to cut a sentence into tests is followed, and what may be
  meant in two ways is refused;
- `number_phrases`, `value_phrases`, `history_phrases` and `time_phrases`: the tests themselves. Each is a function that
  gets a `Sentence` and a place and yields the conditions that begin there, each with the place after it.

They read numbers with `quantities`, and facts, entities and values with `sentence`, which looks them up in a
`vocabulary`. That is made of the `facts` at hand and their names.

The words themselves are data: `words.toml` has the reader's own, `forms.toml` contractions and irregular plurals,
`rewordings.toml` other ways to say the same, `opinions.toml` what is said instead of a verdict, `remarks.toml` how
remarks begin, `concepts.toml` what people call facts, `related.toml` what facts are
about, `column_words.toml` words of columns in other languages, and `countries.toml` the names of countries.
"""

from acefraud.rules.reader.reading import ReadRule, read_rule
from acefraud.rules.reader.vocabulary import Vocabulary

__all__ = ["ReadRule", "Vocabulary", "read_rule"]
