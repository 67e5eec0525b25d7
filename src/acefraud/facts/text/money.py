"""The amount of this transaction.

The usual amounts are read first and take their sums. The amount is then looked for among the sums that remain, from the
most explicit wording to a sum on its own. Sums are not converted between currencies.
"""

from __future__ import annotations

from .document import Document
from .fact_patterns import part, read_theme
from .patterns import search_pattern

_LONE_STOP = search_pattern(part("not_now"))


def read_amount(document: Document) -> None:
    """The amount of this transaction. A single sum that is left over counts if its clause speaks of nothing else."""
    read_theme("amount", document)
    if any(statement.fact == "amount" for statement in document.statements):
        return
    left = [
        index for index, figure in enumerate(document.figures) if figure.kind == "money" and not document.taken[index]
    ]
    if len(left) != 1:
        return
    place = document.places[left[0]]
    if _LONE_STOP.regex.search(document.clause_text(place)) is None:
        figure = document.figures[left[0]]
        document.add("amount", figure.middle, place, place + 1, tier=2, currency=figure.currency)
