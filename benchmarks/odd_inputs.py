"""`python -m benchmarks odd-inputs`: whether a playbook notices that what it decides is not what it has learnt from."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from acefraud import Cases, InputWarning, Learner, Transaction, load_dataset, open_playbook
from benchmarks.console import JsonOption, line, print_json
from benchmarks.quality.dataset_folder import Source, sources

MAPPINGS = Path(__file__).parent / "mappings"
TIMES = 100.0
"""What amounts are multiplied by: cents in place of euros."""

Facts = Mapping[str, Any]


def renamed(facts: Facts, _: int) -> dict[str, Any]:
    """The same under the names of another system."""
    return {f"TXN_{name.upper()}_V2": value for name, value in facts.items()}


def half_missing(facts: Facts, _: int) -> dict[str, Any]:
    """Every second fact."""
    return {name: facts[name] for name in sorted(facts)[1::2]}


def another_unit(facts: Facts, _: int) -> dict[str, Any]:
    """All numbers times 100."""
    return {name: value * TIMES if type(value) is float else value for name, value in facts.items()}


def another_language(facts: Facts, _: int) -> dict[str, Any]:
    """All words replaced by others."""
    return {name: f"wort {value[::-1]}" if isinstance(value, str) else value for name, value in facts.items()}


def nested(facts: Facts, _: int) -> dict[str, Any]:
    """Fields in fields, in words of their own."""
    return {f"zahlung.angaben.feld{index}": value for index, value in enumerate(facts.values())}


def something_else(_: Facts, row: int) -> dict[str, Any]:
    """Measurements of weather stations."""
    return {"station": f"s{row % 7}", "temperature": 10.0 + row % 20, "humidity": 0.5, "wind_from": "NW"}


ODD: Mapping[str, Callable[[Facts, int], dict[str, Any]]] = {
    "columns renamed": renamed,
    "half of them missing": half_missing,
    "amounts in another unit": another_unit,
    "words in another language": another_language,
    "nested": nested,
    "a table of something else": something_else,
}
NONE = slice(0)
WITH_ENTITIES = {
    "half of them missing": slice(1, None, 2),
    "amounts in another unit": slice(None),
    "words in another language": slice(None),
}
"""The entities that an odd version still names: in the others they have other names too."""


def odd_inputs(
    data: Annotated[Path, typer.Argument(help="The folder with the public sets.")],
    train: Annotated[int, typer.Option(min=100, help="The latest cases before the test part to learn from.")] = 20_000,
    test: Annotated[int, typer.Option(min=20, help="The first cases of the test part to decide.")] = 2_000,
    json: JsonOption = False,
) -> None:
    """Decide **six odd versions** of the test part of each public set, and say by what each is noticed.

    That is by name (unknown or missing facts are pointed out), by the share of transactions that are called unfamiliar,
    or by what `acefraud doctor` says of the batch. Of the ordinary test part, at most 1 % may be called unfamiliar.

        python -m benchmarks odd-inputs ../shared/data
    """
    found = [measure(source, train, test) for source in sources(data, mappings=MAPPINGS)]
    if json:
        print_json(found)
        return
    for each in found:
        usual = each["usual"]
        line(
            f"{each['set']}: {100 * each['ordinary_unfamiliar']:.2f}% of {each['rows']:,} ordinary rows are unfamiliar"
        )
        line(f"  {'(as it is)':<26} by name: {usual['by_name']} names   doctor: {usual['by_doctor']} facts", "dim")
        for told in each["odd"]:
            names = f"{told['by_name']} names" if told["by_name"] else "-"
            line(
                f"  {told['odd']:<26} by name: {names:<9} unfamiliar: {100 * told['unfamiliar']:5.1f}%   "
                f"doctor: {told['by_doctor']} facts"
            )


def measure(source: Source, train: int, test: int) -> dict[str, Any]:
    """What is noticed about the odd versions of one set."""
    history = load_dataset(source.file, mapping=source.mapping)
    split = history.split(0.3, seed=0)
    ordinary = list(split.test.transactions[:test])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore", category=InputWarning):
        book = Path(folder) / "book.db"
        with open_playbook(book) as playbook:
            latest = Cases.of(split.train)[-train:]
            Learner(playbook).study(latest, mapping=history.mapping or "")
        usual = decided(book, Path(folder) / "usual.db", ordinary)
        odd = []
        for kind, make in ODD.items():
            changed = [
                Transaction(
                    id=each.id,
                    time=each.time,
                    facts=make(each.facts, row) or {"nothing": True},
                    entities=dict(sorted(each.entities.items())[WITH_ENTITIES.get(kind, NONE)]),
                )
                for row, each in enumerate(ordinary)
            ]
            odd.append({"odd": kind, **decided(book, Path(folder) / "odd.db", changed)})
    return {
        "set": source.name,
        "rows": len(ordinary),
        "ordinary_unfamiliar": usual["unfamiliar"],
        "usual": usual,
        "odd": odd,
    }


def decided(book: Path, copied: Path, transactions: list[Transaction]) -> dict[str, Any]:
    """What is said about transactions that are decided on a copy of a playbook."""
    shutil.copy(book, copied)
    with open_playbook(copied) as playbook:
        learner = Learner(playbook)
        checked = learner.check(transactions)
        decisions = learner.decide_all_sync(transactions)
        changes = learner.fact_changes().changes
        told = [remark for remark in checked.remarks if remark.name or "is missing" in remark.words]
        return {
            "by_name": len(told),
            "unfamiliar": sum(decision.unfamiliar for decision in decisions) / len(decisions),
            "by_doctor": len(changes),
            "doctor": [f"{change.change}: {change.name}: {change.words}" for change in changes[:10]],
        }
