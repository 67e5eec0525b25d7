"""How many times the usual amount this transaction is, where the text says so itself."""

from __future__ import annotations

from acefraud.core.transaction import FactValue

from .page import Page
from .rules import Found, Rule, read_all, rule

_WHOSE = (
    r"(?:the |his |her |their |its |this |what is )?(?:(?:customer|client|user|cardholder|buyer|member|account"
    r" holder)'s )?"
)
_SPEND = r"(?:amounts?|spend(?:ing)?|payments?|purchases?|transactions?|orders?|tickets?|baskets?|ranges?|level|sum)"
_TOP = (
    rf"{_WHOSE}(?:(?:usual|normal|typical|customary|previous|historic(?:al)?) (?:{_SPEND} )?(?:max(?:imum)?|top"
    rf"|ceiling|peak)\b"
    rf"|(?:largest|highest|biggest|max(?:imum)?|top) (?:usual|normal|typical|previous|earlier|past|ordinary) {_SPEND}\b"
    rf"|(?:top|upper end|high end|upper bound|ceiling) of {_WHOSE}(?:usual|normal|typical|customary) {_SPEND}\b)"
)
_NOT_SUMS = r"number|count|volume|pace|frequency|velocity|rate|daily|weekly|monthly|distance|hours?|limit|balance"
_USUAL = (
    rf"(?!{_TOP}){_WHOSE}(?:(?:usual|normal|typical|customary|average|avg|mean|median|ordinary)(?: {_SPEND})?\b(?!"
    rf" (?:{_NOT_SUMS}))"
    r"|what (?:[a-z']+ ){1,3}(?:usually|normally|typically) (?:spends?|pays?)\b)"
)
_TIMES = r"(?:{multiple}|{count} times)(?: as (?:much|high|large) as)?(?: of)?"
_THIS = (
    r"(?:,? (?:this|it|that|the (?:amount|payment|purchase|transaction)) (?:is|was|comes to|stands at|makes|means))?"
)
_FACTOR = (
    r"(?:(?:a )?(?:factor|multiple) of {about}{count}|{about}(?:{multiple}|{count} times)(?: as (?:much|high|large))?)"
)
# Who else's habits, or which other event, is spoken of.
_OTHERS = (
    r"\b(?:merchant's|store's|shop's|peers?|peer group|last (?:week|month|year)|yesterday|bought|visited|income"
    r"|salary|never|not|no more than|at most|below|under|less than|limit|threshold|if)\b(?!.* and )"
)


def _multiple(found: Found) -> FactValue | None:
    figures = found.figures("multiple", "count")
    return figures[0].middle if len(figures) == 1 else None


def _said(base: str) -> tuple[str, ...]:
    """The ways of setting this transaction against a base: "3x the usual", "against the usual, 3 times as much"."""
    return (
        rf"{_TIMES} {base}",
        rf"(?:measured |compared |set )?(?:against|with|to|relative to) {base}{_THIS}:? {_FACTOR}",
        rf"(?:ratio|multiple|factor) (?:to|of|over|against) {base}(?: is|:| of|=)? ?"
        rf"{{about}}(?:{{count}}|{{multiple}})(?! ?%)",
    )


_RULES: tuple[Rule, ...] = (
    *(rule(one, unless=_OTHERS, amount_to_usual_max=_multiple) for one in _said(_TOP)),
    *(rule(one, unless=_OTHERS, amount_to_usual=_multiple) for one in _said(_USUAL)),
)


def read_multiples(page: Page) -> None:
    """The amount of this transaction against the usual ones, as a stated multiple."""
    read_all(_RULES, page)
