"""Forty exports in four languages, written without knowledge of the readers, compared with what they mean."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from acefraud import Dataset, InputWarning, SchemaMapping, load_dataset, load_transactions
from acefraud.core.transaction import Case
from acefraud.datasets.contents import LEAK
from acefraud.datasets.files import read_table
from acefraud.datasets.records import RecordReader
from acefraud.errors import InputError

pytestmark = pytest.mark.wide

EXPORTS = Path(__file__).parent / "exports"
NAMES = sorted(path.stem for path in (EXPORTS / "truth").iterdir())
LANGUAGES = ("en", "de", "es", "fr")
KINDS = ("label", "amount", "number", "flag", "date", "time", "datetime")
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"
NOT_UNDERSTOOD = ("a different value in nearly every row", "its many values hardly repeat")
"""Reasons for leaving out a column of words. A column of amounts that gets one was not recognised."""


@dataclass
class Score:
    """What became of the cells, broken rows and leaks of an export."""

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind and outcome."""
    rows: Counter[str] = field(default_factory=Counter)
    """Broken rows that were refused rightly, broken rows that were read, and good rows that were lost."""
    leaks: Counter[str] = field(default_factory=Counter)
    """Leaks that were named, left out for another reason, or kept; and honest columns that were called leaks."""
    hints: Counter[str] = field(default_factory=Counter)
    """Files whose label had to be named: as expected, or although its name and values say enough."""
    wrong: Counter[str] = field(default_factory=Counter)
    """What is wrong, as a line for people, and how often."""

    def note(self, kind: str, outcome: str, what: str) -> None:
        self.cells[kind, outcome] += 1
        if outcome == WRONG:
            self.wrong[what] += 1

    def __add__(self, other: Score) -> Score:
        return Score(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def outcomes(self, *kinds: str) -> dict[str, int]:
        """How many cells of some kinds are right, refused and wrong."""
        counts: Counter[str] = Counter()
        for (kind, outcome), count in self.cells.items():
            counts[outcome] += count if kind in kinds else 0
        return {outcome: counts[outcome] for outcome in (RIGHT, REFUSED, WRONG)}


@cache
def score_of(name: str) -> Score:
    """Read an export as a user would, first with no mapping, and compare it with the truth."""
    truth = json.loads((EXPORTS / "truth" / f"{name}.json").read_text("utf-8"))
    score = Score()
    path = EXPORTS / Path(truth["file"]).name
    data = _load(path)
    if data is None or not _labels_are_right(data, truth, score):
        hint = {key: truth[key] for key in ("fraud_values", "legit_values")}
        score.hints["expected" if truth["hint_needed"] else "not expected"] += 1
        data = _load(path, SchemaMapping(label=truth["label_column"], **hint))
    if data is None:
        broken = {bad["row"] for bad in truth["bad_rows"]}
        cells = sum(row["row"] not in broken for row in truth["rows"])
        score.cells.update({(kind, REFUSED): cells * n for kind, n in Counter(dict(_checked(truth)).values()).items()})
        score.rows["in files refused"] += len(broken)
        score.leaks["in files refused"] += len(truth["leaks"])
        score.wrong[f"{path.name}: the file is refused"] += 1
        return score
    cases = _by_row(data, truth)
    _compare_rows(data, truth, cases, score)
    _compare_cells(data, truth, cases, score)
    _compare_leaks(data, truth, score)
    return score


def _load(path: Path, mapping: SchemaMapping | None = None) -> Dataset | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        try:
            return load_dataset(path, mapping=mapping)
        except InputError:
            return None


def _checked(truth: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for column, about in truth["columns"].items():
        if about["kind"] in KINDS:
            yield column, about["kind"]


def _by_row(data: Dataset, truth: Mapping[str, Any]) -> dict[int, Case]:
    """The cases by the row of the file that they come from; a row that is neither a case nor bad spoils the count."""
    refused = {bad.row for bad in data.bad_rows}
    rows = [row for row in range(1, truth["n_rows"] + 1) if row not in refused]
    return dict(zip(rows, data, strict=True)) if len(rows) == len(data) else {}


def _labels_are_right(data: Dataset, truth: Mapping[str, Any], score: Score) -> bool:
    """Whether no hint is needed. A label that is misread without a word is wrong, even if a hint would mend it."""
    column = truth["label_column"]
    said = {bad.row for bad in data.bad_rows if bad.field == column}
    broken = {bad["row"] for bad in truth["bad_rows"]}
    if data.mapping.label != column:
        score.note("label", WRONG, f"{truth['file'][8:]}: takes `{data.mapping.label}` for the label")
        return False
    if data.unlabelled or said - broken:
        frauds = data.frauds + (0 if data.unlabelled else len(said))
        if not said and frauds != truth["n_fraud"]:
            told = f"takes {data.frauds} rows for fraud and {data.unlabelled} for unlabelled, without a hint"
            score.note("label", WRONG, f"{truth['file'][8:]}: {told}")
        return False
    return True


def _compare_rows(data: Dataset, truth: Mapping[str, Any], cases: Mapping[int, Case], score: Score) -> None:
    refused = {bad.row: bad for bad in data.bad_rows}
    values = {row["row"]: row["values"] for row in truth["rows"]}
    for bad in truth["bad_rows"]:
        cut = values[bad["row"]][truth["label_column"]] is None
        found = refused.pop(bad["row"], None)
        outcome = "refused" if found and (cut or found.field == bad["column"]) else "not refused"
        score.rows[outcome] += 1
        if outcome != "refused":
            score.wrong[f"{truth['file'][8:]}: row {bad['row']}, `{bad['column']}` is not refused"] += 1
    for lost in refused.values():
        score.rows["lost"] += 1
        score.wrong[f"{truth['file'][8:]}: good rows are lost by `{lost.field}`"] += 1
    broken = {bad["row"] for bad in truth["bad_rows"]}
    frauds = truth["n_fraud"] - sum(bool(values[row][truth["label_column"]]) for row in broken)
    if not refused and (len(data), data.frauds) != (truth["n_rows"] - len(broken), frauds):
        score.wrong[f"{truth['file'][8:]}: {len(data)} rows and {data.frauds} frauds"] += 1


def _compare_cells(data: Dataset, truth: Mapping[str, Any], cases: Mapping[int, Case], score: Score) -> None:
    broken = {bad["row"] for bad in truth["bad_rows"]}
    facts = data.mapping.facts_by_column(list(truth["columns"]))
    for row in truth["rows"]:
        if row["row"] in broken:
            continue
        case = cases.get(row["row"])
        for column, kind in _checked(truth):
            value = row["values"][column]
            if case is None:
                outcome = REFUSED if cases else WRONG
            elif kind == "label":
                outcome = RIGHT if case.is_fraud is bool(value) else WRONG
            else:
                outcome = _outcome(
                    column, kind, value, case=case, data=data, facts=facts, ambiguous=truth["ambiguous_dates"]
                )
            score.note(kind, outcome, f"{truth['file'][8:]}: `{column}` ({kind}) is {_became(column, data, facts)}")


def _became(column: str, data: Dataset, facts: Mapping[str, str]) -> str:
    """What a column became, for people."""
    if column in (data.mapping.time, getattr(data.mapping, "clock", None)):
        return "misread as the time"
    if column not in facts:
        return f"left out: {data.mapping.why.get(column, 'without a word')}"
    kinds = {key: getattr(data.mapping, key) for key in ("numbers", "flags", "categories")}
    return f"among the {', '.join(key for key, columns in kinds.items() if column in columns) or 'texts'}"


def _outcome(
    column: str, kind: str, value: Any, *, case: Case, data: Dataset, facts: Mapping[str, str], ambiguous: bool
) -> str:
    mapping, when = data.mapping, case.transaction.time
    if column == mapping.time:
        said = ambiguous and any(remark.startswith(f"`{column}` is read as a time: ") for remark in data.remarks)
        return RIGHT if _same_time(when, value, kind, either_order=said) else WRONG
    if column == getattr(mapping, "clock", None):
        return RIGHT if when and value and when.time() == time.fromisoformat(value) else WRONG
    between = next((fact for fact, pair in mapping.days_between.items() if pair[0] == column), None)
    if between is not None:
        days = case.transaction.facts.get(between)
        expected = None if value is None or when is None else (when - _parsed(value)).total_seconds() / 86400
        return RIGHT if days == expected or (expected and math.isclose(float(days or 0), expected)) else WRONG
    if column not in facts:
        why = mapping.why.get(column, "")
        return REFUSED if column == mapping.known_at or (why and not why.startswith(NOT_UNDERSTOOD)) else WRONG
    found = case.transaction.facts.get(facts[column])
    if value is None or found is None or isinstance(found, str):
        return RIGHT if found is value else WRONG
    return RIGHT if kind not in ("date", "time", "datetime") and math.isclose(found, value, abs_tol=1e-9) else WRONG


def _parsed(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def _same_time(when: datetime | None, value: str | None, kind: str, *, either_order: bool) -> bool:
    if when is None or value is None:
        return when is None and value is None
    expected = _parsed(value)
    accepted = {expected, expected.replace(day=expected.month, month=expected.day)} if either_order else {expected}
    return when.date() in {each.date() for each in accepted} if kind == "date" else when in accepted


def _compare_leaks(data: Dataset, truth: Mapping[str, Any], score: Score) -> None:
    called = {remark.split("`")[1] for remark in data.remarks if LEAK in remark or "the label became known" in remark}
    facts = data.mapping.facts_by_column(list(truth["columns"]))
    for column in truth["leaks"]:
        outcome = "kept" if column in facts else "named" if column in called else "left out"
        score.leaks[outcome] += 1
        if outcome != "named":
            score.wrong[f"{truth['file'][8:]}: the leak `{column}` is {outcome}, {_became(column, data, facts)}"] += 1
    for column in called - set(truth["leaks"]):
        score.leaks["false"] += 1
        score.wrong[f"{truth['file'][8:]}: the honest `{column}` is called a leak"] += 1


def total(*languages: str) -> Score:
    return sum((score_of(name) for name in NAMES if name.startswith(languages)), Score())


def table() -> str:
    """The figures by language."""
    lines = []
    for languages in (*((language,) for language in LANGUAGES), LANGUAGES):
        score = total(*languages)
        perfect = sum(not score_of(name).wrong for name in NAMES if name.startswith(languages))
        kinds = {kind: score.outcomes(kind) for kind in KINDS[:4]} | {"dates": score.outcomes(*KINDS[4:])}
        cells = " | ".join(f"{kind} {' / '.join(map(str, counts.values()))}" for kind, counts in kinds.items())
        all_cells = " / ".join(map(str, score.outcomes(*KINDS).values()))
        files = sum(name.startswith(languages) for name in NAMES)
        lines.append(
            f"{'+'.join(languages)}: {perfect} of {files} files without a fault; cells {all_cells} ({cells}); rows "
            f"{dict(score.rows)}; leaks {dict(score.leaks)}; hints {dict(score.hints)}"
        )
    return "\n".join(lines)


KNOWN = {"de09_tankkarten.csv: `km-Stand` (number) is left out: a different value in nearly every row": 30}
"""What is still wrong. Whole numbers that differ in every row are taken for ids, so mileage is too."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_cell_is_right_or_refused_and_every_leak_is_named(language: str) -> None:
    score = total(language)
    assert dict(score.wrong) == {what: count for what, count in KNOWN.items() if what.startswith(language)}
    assert set(score.leaks) == {"named"}
    assert set(score.rows) == {"refused"}
    assert set(score.hints) <= {"expected"}


def test_the_figures_of_the_documentation() -> None:
    score = total(*LANGUAGES)
    assert score.outcomes(*KINDS) == {RIGHT: 6831, REFUSED: 300, WRONG: 30}
    assert (score.leaks["named"], score.rows["refused"], score.hints["expected"]) == (31, 15, 11)


@pytest.mark.parametrize("name", ["es01_tienda", "fr08_occasion", "en06_bank_wires"])
def test_a_single_row_later_is_read_like_the_file(name: str) -> None:
    truth = json.loads((EXPORTS / "truth" / f"{name}.json").read_text("utf-8"))
    path = EXPORTS / f"{name}.csv"
    hint = {key: truth[key] for key in ("fraud_values", "legit_values")}
    data = _load(path, SchemaMapping(label=truth["label_column"], **hint))
    assert data is not None
    assert data.mapping.clock or data.mapping.marked
    again = _load(path, data.mapping)
    assert again is not None
    assert again.train.facts.rows() == data.train.facts.rows()
    table = read_table(path)
    reader = RecordReader(remembered=data.mapping)
    for row in range(5):
        fields = {column: cells[row] for column, cells in table.columns.items()}
        for read in (load_transactions(pl.DataFrame([fields]), remembered=data.mapping)[0], reader.transaction(fields)):
            assert (read.time, read.facts) == (data[row].transaction.time, data[row].transaction.facts)


if __name__ == "__main__":  # the figures of docs/data.md: right / refused with a reason / wrong
    print(table())
    for what, count in total(*LANGUAGES).wrong.items():
        print(f"  {count:4} {what}")
