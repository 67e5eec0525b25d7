"""What was guessed of a file without a word in its mapping, as remarks for a person."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import polars as pl

from acefraud.datasets import guess
from acefraud.datasets.cells import suits
from acefraud.datasets.columns import plain_text
from acefraud.datasets.leaks import LEAK
from acefraud.datasets.mapping import SchemaMapping, fact_names
from acefraud.datasets.reading_report import Remark, Weight
from acefraud.datasets.table import Column, Purpose, Table

_COSTLY = (LEAK, guess.ANOTHER_LABEL, guess.ANOTHER_TIME, guess.SENTENCES)
_ROLES = {role: re.split(r"[;:,.]", field.description or "")[0] for role, field in SchemaMapping.model_fields.items()}


def guess_remarks(found: SchemaMapping, given: SchemaMapping, table: Table, purpose: Purpose) -> Iterator[Remark]:
    """What was guessed, left out or read in a special way, each with the line of a mapping that changes it."""
    columns = table.columns
    if given.id is None and not found.id and not table.labels_apart:
        yield Remark("", "no column with ids was found", guess.NO_IDS, 'id = "..."')
    if purpose == "train":
        yield from _roles(found, given, columns)
    for column, cells in columns.items():
        if why := found.why.get(column):
            yield _with_reason(column, why, found, given, cells)
        elif isinstance(cells, pl.Series) and cells.n_unique() < 2 < len(cells) and fact_names(found, [column]):
            yield Remark(column, "teaches nothing", guess.ONE_VALUE, weight="usual")
    if given.history is None and found.entities:
        listed = ", ".join(found.entities)
        yield Remark("", "taken as entities, whose history becomes facts", listed, "history = {entities = []}")
    named = [column for column, why in found.why.items() if why == guess.AN_ID and column in columns]
    if named and not found.has_time:
        yield Remark("", f"no history of {', '.join(named)}", "no column with the time of a transaction was found")
    yield from _facts(found, given)


def _roles(found: SchemaMapping, given: SchemaMapping, columns: Mapping[str, Column]) -> Iterator[Remark]:
    for role, column in found.roles():
        if column not in columns or getattr(given, role) is not None:
            continue
        others = [name for name, why in found.why.items() if why == guess.ANOTHER_TIME] if role == "time" else []
        why = f"times are in {', '.join(others)} too" if others else ""
        change = f"{role} = {json.dumps(others[0] if others else '...')}"
        weight: Weight = "note" if others or role in ("known_at", "text") else "usual"
        yield Remark(column, f"is read as the {_ROLES[role].lower()}", why, change, weight)


def _with_reason(column: str, why: str, found: SchemaMapping, given: SchemaMapping, cells: Column) -> Remark:
    """A column that is left out for a reason, or kept in spite of one."""
    ignored = found.ignore or ()
    if column not in ignored:
        change = f"ignore = {_listed(*ignored, column)}" if given.ignore is None else ""
        return Remark(column, "is kept", why, change, "warning" if why.startswith(LEAK) else "usual")
    measured = [fact for fact, pair in (*found.days_between.items(), *found.elapsed.items()) if column in pair]
    if measured:
        return Remark(column, f"is read as {measured[0]}", why, f"time = {json.dumps(column)}", "usual")
    change = f"{'numbers' if suits(cells, 'number') else 'categories'} = {_listed(column)}"
    if why == guess.ANOTHER_TIME and found.time:
        gap = f"days_between = {{{json.dumps(f'days_to_{column}')} = {_listed(found.time, column)}}}"
        why = f"another time than that of `{found.time}`, and not before it; if known by then, `{gap}` makes it a fact"
        change = f"time = {json.dumps(column)}"
    elif why == guess.SENTENCES:
        other = f"beside that of `{found.text}`" if found.text else "that states no fact the engine knows"
        why, change = f"{why} {other}", f"text = {json.dumps(column)}"
    weight: Weight = "usual" if why == guess.ANOTHER_TIME and given.time == "" else _weight(why, cells)
    return Remark(column, "is left out", why, change, weight)


def _weight(why: str, cells: Column) -> Weight:
    """Whether leaving a column out may cost something. One that numbers the rows, or names them by codes, does not."""
    if why.startswith(_COSTLY):
        return "warning"
    texts = plain_text(guess.thinned(cells)).drop_nulls()
    steps = texts.cast(pl.Float64, strict=False).diff().drop_nulls()
    telling = steps.n_unique() > 1 or 2 * int(texts.str.contains(r"\pL \pL").sum()) > len(texts)
    return "warning" if why in (guess.ONE_EACH, guess.HARDLY_REPEATS) and telling else "usual"


def _facts(found: SchemaMapping, given: SchemaMapping) -> Iterator[Remark]:
    for column in (*found.categories, *found.flags):
        if column not in {*given.categories, *given.flags, *found.entities}:
            what = "yes or no" if column in found.flags else "codes"
            yield Remark(column, f"is read as {what}, not as numbers", "", f"numbers = {_listed(column)}", "usual")
    for column, fact in found.rename.items():
        if column not in given.rename:
            change = f'rename = {{{json.dumps(column)} = "..."}}'
            yield Remark(column, f"is read as the fact `{fact}`", "", change, "usual")
    if given.time_facts is None and found.time_facts:
        yield Remark("", "facts made from the time", ", ".join(found.time_facts), "time_facts = []", "usual")


def _listed(*names: str) -> str:
    return json.dumps(names, ensure_ascii=False)
