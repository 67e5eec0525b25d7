"""Facts from free text: what an analyst wrote about a transaction, as named and typed facts."""

from .reader import TextFacts, read_facts

__all__ = ["TextFacts", "read_facts"]
