"""`acefraud facts`: what rules can be about."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.table import Column, Table

from acefraud.cli.console import line, out, print_json
from acefraud.cli.options import JsonOption, PlaybookOption
from acefraud.cli.workspace import existing_playbook
from acefraud.core.fact_names import FactProfile
from acefraud.rules.english import spoken_number
from acefraud.storage.facts_at_hand import facts_at_hand


def facts(playbook: PlaybookOption = None, json: JsonOption = False) -> None:
    """List the facts that rules can be about.

    They are those of the latest cases that a playbook remembers, with type, range, examples and coverage: the share of
    the cases that know the fact. Where a fact is missing, a rule about it neither fires nor counts as false.

        acefraud facts --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        catalog, lists = facts_at_hand(book), book.snapshot().lists
    if json:
        print_json({"rows": catalog.rows, "facts": [one.as_json() for one in catalog.values()], "lists": list(lists)})
        return
    if not catalog:
        line("The playbook remembers no cases yet: train it, or tell it outcomes with `acefraud learn`")
        return
    table = Table(
        Column("fact", no_wrap=True), Column("in English", overflow="fold"), "type", "values", "known", box=SIMPLE
    )
    for one in catalog.values():
        table.add_row(one.name, one.noun, one.kind, _values(one), f"{100 * one.coverage:.0f}%")
    out.print(table)
    line(f"{len(catalog)} facts of the latest {catalog.rows:,} cases", "dim")
    for listed in lists.values():
        line(f"list {listed.name}: {len(listed.items):,} values", "dim")


def _values(fact: FactProfile) -> str:
    if fact.kind == "category":
        more = len(fact.values) - len(fact.examples)
        return ", ".join(fact.examples) + (f" and {more:,} more" if more > 0 else "")
    if fact.kind == "flag":
        return f"true in {100 * (fact.true_share or 0):.0f}%"
    assert fact.low is not None
    assert fact.middle is not None
    assert fact.high is not None
    low, middle, high = (spoken_number(round(one, 2)) for one in (fact.low, fact.middle, fact.high))
    return f"{low} to {high}, usually about {middle}"
