"""Random conditions of the whole language, over facts of known types, and rows to try them on."""

from __future__ import annotations

from hypothesis import strategies as st

from acefraud.core.comparison import MEMBERSHIP, ORDERED, PRESENCE, Op, PairTest, Test
from acefraud.core.condition import Condition, Leaf
from acefraud.core.context_facts import IN_LIST, LookUp
from acefraud.core.transaction import FactValue

COLUMNS = {
    "amount": "REAL",
    "usual_amount": "REAL",
    "card_count_24h": "REAL",
    "vpn": "INTEGER",
    "and": "INTEGER",
    "merchant": "TEXT",
    "home country": "TEXT",
    "country": "TEXT",
}
LISTS = {"watched": ("ACME", "it's"), "no one": ()}
WORDS = ("FR", "it's", 'a "b"', "", "ACME", "é")
# Six decimals: what SQLite and Python read from a literal agrees to the last bit there.
figures = st.integers(-5_000_000, 5_000_000).map(lambda n: n / 1_000_000) | st.sampled_from([-2.0, 0.0, 1.0, 1e6])
_OF_TYPE: dict[str, st.SearchStrategy[FactValue]] = {
    "REAL": figures,
    "INTEGER": st.booleans(),
    "TEXT": st.sampled_from(WORDS),
}
_ALIKE = {kind: [name for name, of in COLUMNS.items() if of == kind] for kind in _OF_TYPE}


@st.composite
def leaves(draw: st.DrawFn) -> Leaf:
    """A test of one fact, of a list, or of two facts."""
    name = draw(st.sampled_from(list(COLUMNS)))
    kind = COLUMNS[name]
    equality = [Op.IS, Op.IS_NOT]
    if draw(st.integers(0, 3)) == 0:
        other = draw(st.sampled_from([each for each in _ALIKE[kind] if each != name]))
        ops = sorted([*ORDERED, *equality]) if kind == "REAL" else equality
        times = draw(st.sampled_from([1.0, 2.0, 0.5, 1.25])) if kind == "REAL" else 1.0
        return PairTest(name, draw(st.sampled_from(ops)), other, times)
    if kind == "TEXT" and draw(st.integers(0, 3)) == 0:
        return Test(LookUp(name, IN_LIST, draw(st.sampled_from(sorted(LISTS)))).flag, Op.IS, draw(st.booleans()))
    more = {"REAL": ORDERED, "TEXT": MEMBERSHIP}.get(kind, frozenset())
    op = draw(st.sampled_from(sorted([*equality, *PRESENCE, *more])))
    if op in PRESENCE:
        return Test(name, op)
    if op in MEMBERSHIP:
        return Test(name, op, tuple(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))))
    return Test(name, op, draw(_OF_TYPE[kind]))


conditions = st.recursive(
    leaves().map(Condition.of),
    lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
        lambda some: st.sampled_from([Condition.all_of(some), Condition.any_of(some)])
    ),
    max_leaves=8,
)
_given = st.fixed_dictionaries({}, optional={name: _OF_TYPE[kind] for name, kind in COLUMNS.items()})


def with_lists(row: dict[str, FactValue]) -> dict[str, FactValue]:
    """A row with the flags that say which of its values are in which list."""
    found: dict[str, FactValue] = dict(row)
    for name in _ALIKE["TEXT"]:
        for listed, values in LISTS.items():
            if name in row:
                found[LookUp(name, IN_LIST, listed).flag] = row[name] in values
    return found


rows = _given.map(with_lists)
