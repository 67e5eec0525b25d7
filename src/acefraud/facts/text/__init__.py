"""Facts from free text: `read_facts` turns what an analyst wrote about a transaction into named and typed facts.

Where to add what a text can say:

- a fact with a new name: first a table in ``core/fact_names.toml``, then its phrases in one of the files below;
- a phrase for a flag that exists: ``vocabulary/flags.toml``;
- a merchant category, a channel or a payment method: ``vocabulary/categories.toml``;
- a key of log lines (``amt=1250.00``): ``vocabulary/log_keys.toml``; a place: ``vocabulary/places.toml``;
- a number: an entry of its theme in ``vocabulary/statements.toml``. ``{money}``, ``{duration}`` and the like stand for
  a figure; `figures` finds them, and `statements` turns them into the value of a fact.

Then add an example to ``tests/facts/text/test_text_facts.py`` and raise `READER` in ``facts/extraction.py``, because
stored facts carry the version of the reader that made them. `acefraud reread` renews those of existing playbooks.

How it works: `document` replaces the figures of a text by markers, `patterns` says which patterns to try where, the
numbers (`statements`) and the other `themes` add statements to the document, and `reader` settles them.
May import core.
"""

from .reader import TextFacts, read_facts

__all__ = ["TextFacts", "read_facts"]
