"""`acefraud facts`, `reread` and `lists ...`: what rules can be about, and values that they can refer to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from rich.box import SIMPLE
from rich.table import Column, Table
from typer import Argument, Option

from acefraud.cli import group
from acefraud.cli.console import Said, Shown, read_text
from acefraud.cli.options import PlaybookOption
from acefraud.cli.rules import later, unseen_key
from acefraud.cli.workspace import Changing, Reading, any_playbook, embedded_learner
from acefraud.core.context_facts import MAX_VALUE, Feed, ListItem, ValueList
from acefraud.core.fact_names import FactProfile
from acefraud.core.scope import Author
from acefraud.errors import InputError
from acefraud.rules.english import spoken_number
from acefraud.storage import BulletPlaybook
from acefraud.storage.playbook_reading import facts_at_hand

lists_app = group("lists")

ListArgument = Annotated[str, Argument(metavar="LIST", help="Name of the list.")]
ValuesArgument = Annotated[list[str], Argument(metavar="VALUE...", help="The values.")]
UntilOption = Annotated[datetime | None, Option(help="Until when they count, in UTC: 2026-01-31. Default: for good.")]


def facts(book: Reading) -> Said:
    """List the facts that rules can be about.

    They are those of the latest cases that a playbook remembers, with type, range, examples and coverage: the share of
    the cases that know the fact. Where a fact is missing, a rule about it neither fires nor counts as false.

        acefraud facts --playbook book.db
    """
    catalog, lists = facts_at_hand(book.ledger), book.snapshot().lists
    content = {"rows": catalog.rows, "facts": [fact.as_json() for fact in catalog.values()], "lists": list(lists)}
    if not catalog:
        return content, "The playbook remembers no cases yet: train it, or tell it outcomes with `acefraud learn`"
    table = Table(
        Column("fact", no_wrap=True), Column("in English", overflow="fold"), "type", "values", "known", box=SIMPLE
    )
    for fact in catalog.values():
        table.add_row(fact.name, fact.noun, fact.kind, _range(fact), f"{100 * fact.coverage:.0f}%")
    counts = [f"{len(catalog)} facts of the latest {catalog.rows:,} cases"]
    counts += [f"list {listed.name}: {len(listed.items):,} values" for listed in lists.values()]
    shown: Shown = [table, *((count, "dim") for count in counts)]
    return content, shown


def _range(fact: FactProfile) -> str:
    if fact.kind == "category":
        more = len(fact.values) - len(fact.examples)
        return ", ".join(fact.examples) + (f" and {more:,} more" if more > 0 else "")
    if fact.kind == "flag":
        return f"true in {100 * (fact.true_share or 0):.0f}%"
    assert fact.low is not None
    assert fact.middle is not None
    assert fact.high is not None
    low, middle, high = (spoken_number(round(end, 2)) for end in (fact.low, fact.middle, fact.high))
    return f"{low} to {high}, usually about {middle}"


def reread(
    book: Changing,
    everything: Annotated[bool, Option("--all", help="Include texts that this version has already read.")] = False,
) -> Said:
    """Read the texts of remembered cases again, with the reader of this version.

    A case is remembered with the facts that were read from its text at the time, and with the version of the reader.
    A newer version of acefraud never changes them by itself. This command does, and then reviews the playbook on the
    new facts.

        acefraud reread --playbook book.db
    """
    done = embedded_learner(book).reread(everything=everything)
    content = {"read": done.cases, "changed": done.changed, "reader": done.reader}
    return content, f"{done.cases:,} texts read again by reader {done.reader}: the facts of {done.changed:,} changed"


@lists_app.command()
def create(
    by: Author,
    name: ListArgument,
    playbook: PlaybookOption = None,
    about: Annotated[str, Option(help="What it is for.")] = "",
    fed_by: Annotated[
        str | None,
        Option("--frauds-of", metavar="KEY", help="List this entity or fact of every transaction that is fraud."),
    ] = None,
    days: Annotated[float | None, Option(min=0.001, help="For how many days, with --frauds-of.")] = None,
) -> Said:
    """Create a list, or change what it is for. Starts a playbook if there is none.

    Rules refer to it: "merchant in list watched_merchants". Outcomes can feed it.

        acefraud lists create watched_merchants --playbook book.db
        acefraud lists create burnt_cards --frauds-of card --days 90 --playbook book.db
    """
    if days is not None and fed_by is None:
        raise InputError("--days goes with --frauds-of", field="days")
    feed = None if fed_by is None else Feed(key=fed_by, days=days)
    with any_playbook(playbook) as book:
        made = book.create_list(name, about=about, feed=feed, **by)
        remark = "" if fed_by is None else unseen_key(book, fed_by)
    return _as_json(made), f"list {name}: {_described(made)}\n{remark}".strip()


@lists_app.command()
def add(book: Changing, by: Author, name: ListArgument, values: ValuesArgument, until: UntilOption = None) -> Said:
    """Put values on a list. A value that is there already gets the new reason and date.

    acefraud lists add watched_merchants ACME 'Corner Shop' --until 2026-06-30 --why "complaints"
    """
    return _add_all(book, by, name, [_value(value.strip()) for value in values], until)


@lists_app.command()
def remove(book: Changing, by: Author, name: ListArgument, values: ValuesArgument) -> Said:
    """Take values off a list. A value that is not there is an error, and nothing changes.

    acefraud lists remove watched_merchants ACME --why "settled"
    """
    made = book.change_list(name, removed=values, **by)
    return _as_json(made), f"{len(values):,} off list {name}, which has {_values(made)}"


@lists_app.command()
def show(
    book: Reading,
    name: Annotated[str | None, Argument(metavar="[LIST]", help="Name of the list. Default: all lists.")] = None,
) -> Said:
    """Show the values of a list with reason, author and expiry; without a name, all lists.

    acefraud lists show watched_merchants --playbook book.db
    """
    if name is None:
        lists = book.snapshot().lists.values()
        return [_as_json(values) for values in lists], [_heading(values) for values in lists]
    chosen = book.get_list(name)
    shown: Shown = [_heading(chosen), *(_item(item) for item in chosen.items.values())]
    return _as_json(chosen), shown


def _heading(values: ValueList) -> tuple[str, str]:
    return f"{values.name}  {_described(values)}", "bold"


def _item(item: ListItem) -> str:
    until = "" if item.until is None else f"  until {item.until:%Y-%m-%d %H:%M}"
    return f"    {item.value}{until}  by {item.who or 'nobody'}  {item.reason}".rstrip()


@lists_app.command("import")
def import_values(
    book: Changing,
    by: Author,
    name: ListArgument,
    source: Annotated[Path, Argument(metavar="FILE", help="Text file with one value on each line.")],
    until: UntilOption = None,
) -> Said:
    """Put every line of a file on a list, all of them or none. Empty lines are skipped.

    acefraud lists import watched_merchants merchants.txt --playbook book.db
    """
    by["why"] = by["why"] or f"imported from {source.name}"
    return _add_all(book, by, name, list(_lines(source)), until)


def _add_all(book: BulletPlaybook, by: Author, name: str, values: list[str], until: datetime | None) -> Said:
    """Put values on a list and say what it has then."""
    end = None if until is None else later(until)
    items = [ListItem(value=value, reason=by["why"], who=by["who"], until=end) for value in values]
    made = book.change_list(name, added=items, **by)
    return _as_json(made), f"{len(items):,} on list {name}, which has {_values(made)}"


def _lines(source: Path) -> Iterator[str]:
    for row, written in enumerate(read_text(source).splitlines(), 1):
        if written.strip():
            yield _value(written.strip(), file=str(source), row=row)


def _value(value: str, *, file: str | None = None, row: int | None = None) -> str:
    if not value:
        raise InputError("expected a value, got an empty text", field="value")
    if len(value) > MAX_VALUE:
        expected = f"expected at most {MAX_VALUE:,} characters, got {len(value):,}"
        raise InputError(expected, file=file, row=row, field="value")
    return value


def _described(values: ValueList) -> str:
    feed, fed = values.feed, ""
    if feed is not None:
        fed = f", fed with the {feed.key} of every fraud" + (f" for {feed.days:g} days" if feed.days else "")
    return f"{_values(values)}{fed}{f': {values.about}' if values.about else ''}"


def _values(values: ValueList) -> str:
    return f"{len(values.items):,} value{'' if len(values.items) == 1 else 's'}"


def _as_json(values: ValueList) -> dict[str, Any]:
    content = values.model_dump(mode="json")
    return {**content, "items": list(content["items"].values())}
