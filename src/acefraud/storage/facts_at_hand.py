"""The facts that a playbook has seen, and the words for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from acefraud.core.fact_catalog import FactCatalog
from acefraud.core.fact_names import NAMED_FACTS
from acefraud.core.table import FactTable
from acefraud.core.timestamps import UNKNOWN
from acefraud.facts.time_facts import CLOCK_FACTS, DAY_FACTS, time_facts
from acefraud.rules.reader import Vocabulary

if TYPE_CHECKING:
    from acefraud.storage.playbook import BulletPlaybook

SAMPLE = 5_000
"""Remembered cases that are looked at, the latest."""


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
    return FactCatalog.of(table)


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
