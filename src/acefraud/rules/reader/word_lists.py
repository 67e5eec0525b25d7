"""The word lists of the reader, from ``words.toml``."""

from __future__ import annotations

from functools import cache

from acefraud.core.package_data import read_package_toml

_TABLES = read_package_toml("acefraud.rules.reader", "words.toml", dict[str, dict[str, tuple[str, ...]]])
_LISTS = {name: said for table in _TABLES.values() for name, said in table.items()}


def words(name: str) -> frozenset[str]:
    """The words of a list, to ask whether a word is one of them.

    >>> sorted(words("plain_currencies"))
    ['buck', 'dollar', 'eur', 'euro', 'pound', 'usd']
    """
    return frozenset(_LISTS[name])


def phrases(name: str) -> tuple[str, ...]:
    """The phrases of a list in the order of the file, which is the order in which they are tried.

    >>> phrases("last_place")
    ('last place', 'last location', 'last position')
    """
    return _LISTS[name]


@cache
def grammar_words() -> frozenset[str]:
    """Every single word that the reader knows whatever the facts are.

    >>> "exceed" in grammar_words(), "nervous" in grammar_words()
    (True, False)
    """
    return frozenset(word for said in _LISTS.values() for one in said for word in one.split())
