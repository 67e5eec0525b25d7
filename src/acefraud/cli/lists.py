"""`acefraud lists ...`: values that rules can refer to, such as watched merchants."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from acefraud.cli import SUMMARIES
from acefraud.cli.checks import later, unseen_key
from acefraud.cli.console import line, print_json, print_result, read_text
from acefraud.cli.options import JsonOption, PlaybookOption, WhoOption, WhyOption
from acefraud.cli.workspace import any_playbook, author, existing_playbook
from acefraud.core.context_facts import MAX_VALUE, Feed, ListItem, ValueList
from acefraud.errors import InputError

app = typer.Typer(help=SUMMARIES["lists"], no_args_is_help=True, add_completion=False)

ListArgument = Annotated[str, typer.Argument(metavar="LIST", help="Name of the list.")]
ValuesArgument = Annotated[list[str], typer.Argument(metavar="VALUE...", help="The values.")]
UntilOption = Annotated[
    datetime | None, typer.Option("--until", help="Until when they count, in UTC: 2026-01-31. Default: for good.")
]


@app.command()
def create(
    name: ListArgument,
    playbook: PlaybookOption = None,
    about: Annotated[str, typer.Option("--about", help="What it is for.")] = "",
    fed_by: Annotated[
        str | None,
        typer.Option("--frauds-of", metavar="KEY", help="List this entity or fact of every transaction that is fraud."),
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", min=0.001, help="For how many days, with --frauds-of.")
    ] = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Create a list, or change what it is for. Starts a playbook if there is none.

    Rules refer to it: "merchant in list watched_merchants". Outcomes can feed it.

        acefraud lists create watched_merchants --playbook book.db
        acefraud lists create burnt_cards --frauds-of card --days 90 --playbook book.db
    """
    if days is not None and fed_by is None:
        raise InputError("--days goes with --frauds-of", field="days")
    feed = None if fed_by is None else Feed(key=fed_by, days=days)
    with any_playbook(playbook) as book:
        made = book.create_list(name, about=about, feed=feed, who=author(who), why=why)
        remark = "" if fed_by is None else unseen_key(book, fed_by)
    print_result(_as_json(made), f"list {name}: {_described(made)}\n{remark}".strip(), json=json)


@app.command()
def add(
    name: ListArgument,
    values: ValuesArgument,
    playbook: PlaybookOption = None,
    until: UntilOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Put values on a list. A value that is there already gets the new reason and date.

    acefraud lists add watched_merchants ACME 'Corner Shop' --until 2026-06-30 --why "complaints"
    """
    _add_all(name, [_value(value.strip()) for value in values], playbook, until, who, why, json=json)


@app.command()
def remove(
    name: ListArgument,
    values: ValuesArgument,
    playbook: PlaybookOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Take values off a list. A value that is not there is an error, and nothing changes.

    acefraud lists remove watched_merchants ACME --why "settled"
    """
    with existing_playbook(playbook) as book:
        made = book.change_list(name, removed=values, who=author(who), why=why)
    print_result(_as_json(made), f"{len(values):,} off list {name}, which has {_values(made)}", json=json)


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(metavar="[LIST]", help="Name of the list. Default: all lists.")] = None,
    playbook: PlaybookOption = None,
    json: JsonOption = False,
) -> None:
    """Show the values of a list with reason, author and expiry; without a name, all lists.

    acefraud lists show watched_merchants --playbook book.db
    """
    with existing_playbook(playbook, read_only=True) as book:
        lists = book.snapshot().lists
        chosen = list(lists.values()) if name is None else [book.get_list(name)]
    if json:
        content = [_as_json(one) for one in chosen]
        print_json(content if name is None else content[0])
        return
    for one in chosen:
        line(f"{one.name}  {_described(one)}", "bold")
        for item in one.items.values() if name is not None else ():
            until = "" if item.until is None else f"  until {item.until:%Y-%m-%d %H:%M}"
            line(f"    {item.value}{until}  by {item.who or 'nobody'}  {item.reason}".rstrip())


@app.command("import")
def import_values(
    name: ListArgument,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="Text file with one value on each line.")],
    playbook: PlaybookOption = None,
    until: UntilOption = None,
    who: WhoOption = None,
    why: WhyOption = "",
    json: JsonOption = False,
) -> None:
    """Put every line of a file on a list, all of them or none. Empty lines are skipped.

    acefraud lists import watched_merchants merchants.txt --playbook book.db
    """
    why = why or f"imported from {source.name}"
    _add_all(name, list(_lines(source)), playbook, until, who, why, json=json)


def _add_all(
    name: str,
    values: list[str],
    playbook: Path | None,
    until: datetime | None,
    who: str | None,
    why: str,
    *,
    json: bool,
) -> None:
    """Put values on a list and print what it has then."""
    person, end = author(who), None if until is None else later(until)
    items = [ListItem(value=value, reason=why, who=person, until=end) for value in values]
    with existing_playbook(playbook) as book:
        made = book.change_list(name, added=items, who=person, why=why)
    print_result(_as_json(made), f"{len(items):,} on list {name}, which has {_values(made)}", json=json)


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


def _described(one: ValueList) -> str:
    fed = ""
    if one.feed is not None:
        fed = f", fed with the {one.feed.key} of every fraud" + (
            f" for {one.feed.days:g} days" if one.feed.days else ""
        )
    return f"{_values(one)}{fed}{f': {one.about}' if one.about else ''}"


def _values(one: ValueList) -> str:
    return f"{len(one.items):,} value{'' if len(one.items) == 1 else 's'}"


def _as_json(one: ValueList) -> dict[str, object]:
    content = one.model_dump(mode="json")
    return {**content, "items": list(content["items"].values())}
