"""Tables for notebooks: plain HTML that needs nothing else and is readable on light and dark backgrounds.

Every text is escaped here, and only here: callers hand over words, numbers and tables, never HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice

MOST_ROWS = 20
_CELL = "padding:2px 8px;border:1px solid rgba(128,128,128,.4);text-align:{};vertical-align:top"
_TABLE = "border-collapse:collapse;font-size:90%;margin:4px 0"


def block(title: str, *parts: str) -> str:
    """A title over tables and lines, as one piece of HTML.

    >>> block("A <b>", line("c & d"))
    '<div><strong>A &lt;b&gt;</strong><div>c &amp; d</div></div>'
    """
    return f"<div><strong>{escape(title)}</strong>{''.join(parts)}</div>"


def line(text: str) -> str:
    """One line of text; nothing if it is empty."""
    return f"<div>{escape(text)}</div>" if text else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, total: int = 0) -> str:
    """A table of at most 20 rows. If there are more, or `total` says so, a line under it tells how many are left out.

    Columns after the first whose cells are all figures are aligned to the right.

    >>> table(["id"], [["t1"]], total=3).endswith("<div>… and 2 more</div>")
    True
    """
    given = iter(rows)
    shown = list(islice(given, MOST_ROWS))
    left = max(total, len(shown) + sum(1 for _ in given)) - len(shown)
    sides = ["right" if index and _figures(row[index] for row in shown) else "left" for index in range(len(headings))]
    head = _row(_cell("th", heading) for heading in headings)
    body = "".join(_row(_cell("td", cell, side) for side, cell in zip(sides, row, strict=True)) for row in shown)
    return f'<table style="{_TABLE}">{head}{body}</table>{line(f"… and {left:,} more" if left else "")}'


def summary(entries: Mapping[str, str]) -> str:
    """A table of two columns: names, and what is said of each. Empty entries are left out."""
    rows = "".join(_row([_cell("th", name), _cell("td", said)]) for name, said in entries.items() if said)
    return f'<table style="{_TABLE}">{rows}</table>'


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _cell(tag: str, text: str, side: str = "left") -> str:
    return f'<{tag} style="{_CELL.format(side)}">{escape(text)}</{tag}>'


def _figures(cells: Iterable[str]) -> bool:
    return all(not cell or cell.lstrip("+-−")[:1].isdigit() for cell in cells)
