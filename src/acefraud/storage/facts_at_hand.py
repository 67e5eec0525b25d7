"""The facts that a playbook has seen, and the words for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from rapidfuzz import fuzz, process

from acefraud.core.fact_names import NAMED_FACTS, FactCatalog
from acefraud.core.table import FactTable
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS, time_facts
from acefraud.rules.reader import Vocabulary
from acefraud.support.timestamps import UNKNOWN

if TYPE_CHECKING:
    from acefraud.storage.playbook import BulletPlaybook

SAMPLE = 5_000
"""Remembered cases that are looked at, the latest."""
MANY_TIMES = 50
"""A name that another one outnumbers by so much..."""
MISWRITTEN = 85.0
"""...and that is so much like it, of 100, is a slip in a few cases, and no fact of its own."""


def facts_at_hand(playbook: BulletPlaybook, sample: int = SAMPLE) -> FactCatalog:
    """The facts of the latest `sample` of remembered cases, with those that follow from their times.

    Empty if there are none.
    """
    cases = playbook.ledger.remembered(sample)
    table = FactTable([case.facts for case in cases])
    times = np.array([case.time for case in cases], dtype=np.int64)
    if len(cases) and (times != UNKNOWN).any():
        wanted = DAY_FACTS if any(case.has_text for case in cases) else (*CLOCK_FACTS, *DAY_FACTS)
        missing = [name for name in wanted if name not in table.names]
        table = table.beside(time_facts(times, missing))
    catalog = FactCatalog.of(table)
    return FactCatalog({name: catalog[name] for name in catalog if not _is_slip(name, catalog)}, catalog.rows)


def plain_name(name: str) -> str:
    """A name without what people write differently.

    >>> plain_name("CUSTOMER_ID"), plain_name("customerId"), plain_name("Customer Id")
    ('customerid', 'customerid', 'customerid')
    """
    return re.sub(r"[\W_]+", "", name).casefold()


def _is_slip(name: str, catalog: FactCatalog) -> bool:
    least = MANY_TIMES * catalog[name].coverage
    if least > 1 or name in NAMED_FACTS:
        return False
    digits, others = re.sub(r"\D", "", name), (one for one in catalog if catalog[one].coverage >= least and one != name)
    usual = [plain_name(one) for one in others if re.sub(r"\D", "", one) == digits]
    return process.extractOne(plain_name(name), usual, scorer=fuzz.ratio, score_cutoff=MISWRITTEN) is not None


def vocabulary_of(playbook: BulletPlaybook) -> Vocabulary:
    """The words that rules for this playbook may use.

    If it remembers texts, they may also use the facts that texts are read for. Before the first case, they may use
    every fact that the engine knows by name, and any other by its name in backticks or with an underscore.
    """
    catalog, lists = facts_at_hand(playbook), playbook.snapshot().lists
    if not catalog:
        return Vocabulary.general(lists=lists)
    from_texts = any(case.has_text for case in playbook.ledger.remembered(1))
    return Vocabulary.of(catalog, lists=lists, named=NAMED_FACTS if from_texts else ())
