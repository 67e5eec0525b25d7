"""The columns of a report that are about the outcome, not the transaction: who said it, when, and in which words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from acefraud.core.outcome import MAX_AUTHOR, MAX_DETAIL, MAX_DETAILS, MAX_NOTE, Outcome, OutcomeSource
from acefraud.datasets.labels import USUAL_WORDS
from acefraud.datasets.mapping import SchemaMapping
from acefraud.datasets.names import plain_name
from acefraud.datasets.table import FACTS

_NAMES = {role: tuple(map(plain_name, names)) for role, names in USUAL_WORDS["outcomes"].items()}
_ROLES = ("source", "author", "note", "id")
_REMARKS = {*_NAMES["author"], *_NAMES["note"]}
_NO_FACTS = frozenset({"id", "time", "clock", "label", "known_at", "difficulty", "ignore", "history.entities"})
_OF_TRANSACTIONS = ("text", "time")
"""Fields of a transaction under their own names, which no mapping has to know."""
_SOURCES = {source.value: source for source in OutcomeSource if source is not OutcomeSource.SILENCE}


@dataclass(frozen=True, slots=True)
class OutcomeColumns:
    """Which columns of a report say what of the outcome itself."""

    roles: Mapping[str, str]
    """The columns of source, author, note and id, by these names."""
    details: tuple[str, ...] = ()
    """Columns that are kept as they are: the history does not know them as facts."""

    @classmethod
    def of(cls, history: SchemaMapping | None, columns: Sequence[str]) -> OutcomeColumns:
        """The columns with a role by their names, except those that the mapping of the history knows.

        If those that it knows as facts are notes and authors by name, they are about the outcome: a note alone
        describes no transaction, unless the history has nothing else.
        """
        named = [] if history is None else [pair for pair in history.named_columns() if pair[0] != "ignore"]
        facts = {column for key, column in named if key not in _NO_FACTS}
        there = {column for column in columns if column in facts or column.startswith(FACTS) or column == "text"}
        lone = all(plain_name(column) in _REMARKS for column in there) and facts > there
        known = {column for _, column in named} - (there if lone else set())
        free = {plain_name(column): column for column in reversed(columns) if column not in known}
        found = {role: next((free[name] for name in _NAMES[role] if name in free), None) for role in _ROLES}
        return cls({role: column for role, column in found.items() if column is not None})

    @property
    def all(self) -> set[str]:
        """All of them."""
        return {*self.roles.values(), *self.details}

    def completed(
        self, history: SchemaMapping | None, mapping: SchemaMapping, columns: Sequence[str]
    ) -> tuple[OutcomeColumns, SchemaMapping]:
        """The same with details, and the mapping that was completed for a report without what became one.

        A column is a fact only if the history knows it as one. Without a history that names facts, every column is,
        unless it has another role or is ignored.
        """
        at = next((one for one in columns if plain_name(one) in _NAMES["at"] and one not in mapping.numbers), None)
        if at is not None and not mapping.known_at:
            mapping = mapping.model_copy(update={"known_at": at})
        roles = (
            self.roles
            if "id" in self.roles or mapping.id == "id" or "id" not in columns
            else {**self.roles, "id": "id"}
        )
        kept = {mapping.id, mapping.label, mapping.known_at, *roles.values(), *_OF_TRANSACTIONS}
        if history is not None and history.names_facts:
            kept |= {column for key, column in history.named_columns() if key != "ignore"}
            kept |= {column for column in columns if column.startswith(FACTS)}
        else:
            kept |= set(columns).difference(mapping.ignore or ())
        details = tuple(column for column in columns if column not in kept)
        lost = {role: None for role, column in mapping.roles() if column in details}
        return OutcomeColumns(roles, details), mapping.model_copy(update=lost)

    def outcome(
        self,
        transaction_id: str,
        *,
        is_fraud: bool,
        at: datetime | None,
        texts: Mapping[str, str | None],
    ) -> tuple[Outcome, list[str]]:
        """The outcome that the texts of these columns describe, and what a person should know about it."""
        said = {role: (texts[column] or "").strip() for role, column in self.roles.items()}
        details = {column: text for column in self.details if (text := (texts[column] or "").strip())}
        remarks = []
        word, author = said.get("source", ""), said.get("author", "")
        source = _SOURCES.get(word.lower() or OutcomeSource.LABEL)
        if source is None:
            source, unknown = OutcomeSource.ANALYST, f"{word[:60]!r} is none of {', '.join(_SOURCES)}"
            remarks.append(f"field '{self.roles['source']}': {unknown}; it is taken as the author, an analyst")
            if author:
                details[self.roles["source"]] = word
            author = author or word
        limits = {"author": (author, MAX_AUTHOR), "note": (said.get("note", ""), MAX_NOTE)}
        limits |= {column: (text, MAX_DETAIL) for column, text in details.items()}
        remarks += [
            f"field '{name}': the text is cut to {most:,} characters"
            for name, (text, most) in limits.items()
            if len(text) > most
        ]
        if len(details) > MAX_DETAILS:
            remarks.append(f"only the first {MAX_DETAILS} of {len(details):,} columns that are no facts are kept")
        cut = {column[:MAX_DETAIL]: text[:MAX_DETAIL] for column, text in list(details.items())[:MAX_DETAILS]}
        outcome = Outcome(
            transaction_id=transaction_id,
            is_fraud=is_fraud,
            source=source,
            id=said.get("id", ""),
            at=at,
            note=said.get("note", "")[:MAX_NOTE],
            author=author[:MAX_AUTHOR],
            details=cut,
        )
        return outcome, remarks
