"""The figures as tables: for the screen and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.speed.figures import WANTED, Figures, as_wanted
from benchmarks.speed.timing import label

TIMES = {
    "selection": "selection",
    "matvec": "bare matrix product",
    "plain_loop": "plain loop",
    "selection_spread": "selection (spread)",
    "matvec_spread": "bare matrix product (spread)",
    "plain_loop_spread": "plain loop (spread)",
    "dedupe": "merge a bullet that is there already",
    "difflib": "difflib over all",
    "insert": "add a bullet with a condition",
    "merge": "merge a bullet with a condition",
    "insert_prose": "add a bullet in prose",
    "merge_prose": "merge a bullet in prose",
}
"""What is shown by the number of bullets, in the words of the tables."""
RATES = {
    "decision": "acefraud, one by one, recorded in memory",
    "decision_batch": "acefraud, in batches, recorded in memory",
    "score_batch": "acefraud, scores of all rows at once, nothing recorded",
    "decision_with_ledger": "acefraud, one by one, recorded in a file",
    "decision_with_ledger_batch": "acefraud, in batches, recorded in a file",
    "bare_insert": "a bare insert and commit of the same bytes",
    "bare_insert_batch": "a bare insert of 256 times the same bytes with one commit",
    "lightgbm": "LightGBM, one row at a time",
    "lightgbm_booster": "LightGBM's bare Booster, one row at a time",
    "lightgbm_batch": "LightGBM, all rows at once",
    "river_arf": "river's adaptive forest, one row at a time",
}
"""What is shown as decisions in a second."""

Rows = list[list[str]]


def times(figures: Figures) -> Rows:
    """Seconds by the number of bullets, and how they grow; the first row has the headings."""
    rows = [["time", *(label(size) for size in figures.sizes), "growth"]]
    for name, words in TIMES.items():
        if name in figures.seconds:
            by_size = figures.seconds[name]
            cells = [duration(by_size[size]) if size in by_size else "" for size in figures.sizes]
            exponent = figures.growth.get(name)
            rows.append([words, *cells, "" if exponent is None else f"{exponent:.2f}"])
    return rows


def rates(figures: Figures) -> Rows:
    """Decisions in a second."""
    got = [[words, f"{1 / figures.seconds[name][0]:,.0f}"] for name, words in RATES.items() if name in figures.seconds]
    return [["decisions", "in a second"], *got]


def ratios(figures: Figures) -> Rows:
    """Each ratio with what is wanted of it and what it means."""
    rows = [["ratio", "value", "wanted", "meaning"]]
    for name, value in figures.ratios.items():
        wanted = f"{WANTED[name][0]} {WANTED[name][1]:g}" if name in WANTED else ""
        mark = "" if as_wanted(name, value) else " (missed)"
        rows.append([name, number(value), wanted + mark, figures.meaning[name]])
    return rows


def shares(figures: Figures) -> list[str]:
    """What each stage leaves of the book, a line for each workload."""
    return [
        f"{name}: " + ", ".join(f"{stage} {100 * share:.3g} %" for stage, share in left.items())
        for name, left in figures.shares.items()
    ]


def remarks(figures: Figures) -> list[str]:
    """What the decisions are about."""
    about = figures.about.get("decisions")
    if not about:
        return []
    return [
        f"Decisions: {about['bullets']:,} bullets with conditions, of which {about['firing']:.0f} fire on average; "
        f"{about['facts']} facts; everyone was trained on {about['trained_on']:,} rows."
    ]


def as_markdown(figures: Figures) -> str:
    """All tables."""
    machine = figures.as_json()["about"]
    parts = [
        f"Measured with `python -m benchmarks speed --sizes {','.join(label(size) for size in figures.sizes)} "
        f"--seed {figures.seed}` on {machine['cores']} cores ({machine['processor']}), Python {machine['python']}, "
        f"numpy {machine['numpy']}.",
        *(_table(rows) for rows in (times(figures), rates(figures), ratios(figures))),
        "Share of the book that each stage leaves:",
        "\n".join(f"- {line}" for line in shares(figures)),
        "\n".join(f"- {line}" for line in remarks(figures)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(rows: Rows) -> str:
    heading = rows[0]
    rule = ["---", *("---" if cell == "meaning" else "---:" for cell in heading[1:])]
    return "\n".join(_line(row) for row in [heading, rule, *rows[1:]])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def duration(seconds: float) -> str:
    """A time in three digits.

    >>> duration(0.0000123), duration(0.0123), duration(12.3)
    ('12.3 µs', '12.3 ms', '12.3 s')
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{three_digits(seconds / unit)} {name}"
    return f"{seconds * 1e9:.0f} ns"


def number(value: float) -> str:
    """A ratio in three digits, or a whole number.

    >>> number(0.0), number(1234.5), number(0.0567)
    ('0', '1,234', '0.0567')
    """
    return f"{value:,.0f}" if value >= 1_000 or value == int(value) else three_digits(value)


def three_digits(value: float) -> str:
    """A number with as many decimals as make three digits.

    >>> three_digits(1.234), three_digits(123.4)
    ('1.23', '123')
    """
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
