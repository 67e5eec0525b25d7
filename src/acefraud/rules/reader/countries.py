"""Countries by name and by code. The names are in ``countries.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from acefraud.core.package_data import read_package_toml

_LEAST_SHARE = 0.8
_BY_CODE = read_package_toml("acefraud.rules.reader", "countries.toml", dict[str, tuple[str, ...]])
COUNTRY_NAMES: dict[str, tuple[str, ...]] = {}
"""Each code, of two or three letters, with the names and the other code of its country."""
for _two, (_three, *_names) in _BY_CODE.items():
    COUNTRY_NAMES[_two] = (*_names, _three)
    COUNTRY_NAMES[_three] = (*_names, _two)


@lru_cache(maxsize=256)
def codes_for(values: Sequence[str]) -> bool:
    """Whether the values of a fact are codes of countries.

    >>> codes_for(("US", "GB", "FR")), codes_for(("web", "app"))
    (True, False)
    """
    known = [value for value in values if value.upper() in COUNTRY_NAMES]
    return len(known) > 1 and len(known) >= _LEAST_SHARE * len(values)
