"""A hunt for misreadings: thousands of sentences whose meaning is certain, read and compared with it on rows.

``python -m tests.rules.test_misreadings`` prints how many sentences of each template are read, refused and misread, and
each misread sentence with what was read. Another seed as its argument hunts with other sentences.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import pytest
from tests.rules.misreading_parts import AMBIGUOUS, UNSAYABLE
from tests.rules.misreading_templates import Sentence, sentences
from tests.rules.phrasing_reference import truth_of
from tests.rules.test_phrasings import needs_data, vocabulary, world

from acefraud.core.comparison import Test
from acefraud.core.fact_names import FactCatalog
from acefraud.core.transaction import FactValue
from acefraud.rules.reader import ReadRule, Vocabulary, read_rule

COUNT = 5_000
LEAST_READ = 0.6
"""The share that must be read, of the sentences that can be. A hunt where everything is refused finds nothing."""
ROWS = 60
READ, REFUSED, REFUSED_RIGHTLY, MISREAD = "read", "refused", "refused rightly", "misread"
Row = dict[str, FactValue]
Edges = dict[str, list[float | str]]


@dataclass(frozen=True)
class Finding:
    """What became of a sentence."""

    sentence: Sentence
    outcome: str
    reading: ReadRule
    why: str = ""


@cache
def with_lists(name: str) -> Vocabulary:
    return replace(vocabulary(name), lists=frozenset({"vip", "blocked"}))


def finding_of(sentence: Sentence) -> Finding:
    reading = read_rule(sentence.text, with_lists(sentence.world))
    refusable = sentence.means in (AMBIGUOUS, UNSAYABLE)
    if reading.condition is None:
        return Finding(sentence, REFUSED_RIGHTLY if refusable else REFUSED, reading)
    if refusable:
        return Finding(sentence, MISREAD, reading, f"it is {sentence.means}")
    for row in _rows(sentence, reading):
        if (truth_of(sentence.means, row) is True) != reading.condition.holds(row):
            told = {name: row.get(name) for name in _edges(sentence, reading)}
            return Finding(sentence, MISREAD, reading, f"it means {sentence.means}; they differ on {told}")
    argues = None if reading.argues is None else str(reading.argues)
    if argues not in sentence.argues:
        return Finding(sentence, MISREAD, reading, f"argues {argues}, not {sorted(map(str, sentence.argues))}")
    always = None if reading.always is None else str(reading.always)
    if always != sentence.always:
        return Finding(sentence, MISREAD, reading, f"always {always}, not {sentence.always}")
    return Finding(sentence, READ, reading)


def _edges(sentence: Sentence, reading: ReadRule) -> Edges:
    """The facts of the meaning and of what was read, with the values they are compared with."""
    edges: Edges = defaultdict(list)
    for call in ast.walk(ast.parse(sentence.means)):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        values = [each.value for each in ast.walk(call) if isinstance(each, ast.Constant)]
        if call.func.id == "hours":
            edges["hour"] += [float(each) for each in values if isinstance(each, int | float)]
        elif values and call.func.id not in ("AND", "OR", "NOT"):
            edges[str(values[0])] += [
                each if isinstance(each, str) else float(each)
                for each in values[1:]
                if isinstance(each, int | float | str)
            ]
    assert reading.condition is not None
    for leaf in reading.condition.leaves:
        value = leaf.value if isinstance(leaf, Test) else None
        listed = value if isinstance(value, tuple) else (value,)
        for name in sorted(leaf.facts):
            edges[name] += [each for each in listed if isinstance(each, float | str) and not isinstance(each, bool)]
    return edges


def _rows(sentence: Sentence, reading: ReadRule) -> list[Row]:
    """Rows with the facts that matter, at the edges of what they are compared with."""
    dice = Random(sentence.text)
    edges = _edges(sentence, reading)
    return [_row(edges, world(sentence.world)[0], dice) for _ in range(ROWS)]


def _row(edges: Edges, catalog: FactCatalog, dice: Random) -> Row:
    row: Row = {}
    implied = [fact for fact, by in (("hour", "night"), ("weekday", "weekend")) if by in edges]
    for fact in sorted({*edges, *implied}):
        profile, compared = catalog.get(fact), edges.get(fact, [])
        if profile is None or profile.kind == "flag":  # beside the catalog: whether an entity is in a list
            row[fact] = dice.random() < 0.5
        elif profile.kind == "category":
            row[fact] = dice.choice([*(each for each in compared if isinstance(each, str)), *profile.values[:9]])
        else:
            row[fact] = _near(dice, [each for each in compared if isinstance(each, float)], fact, profile.is_whole)
        if dice.random() < 0.03:
            del row[fact]
    _agree(row, edges, dice)
    return row


def _agree(row: Row, edges: Edges, dice: Random) -> None:
    """Make facts agree that say the same, as the night and the hour, or a ratio and its parts."""
    row.pop("night", None)
    if isinstance(hour := row.get("hour"), float):
        row["night"] = hour >= 23 or hour < 6
    row.pop("weekend", None)
    if "weekday" in row:
        row["weekend"] = row["weekday"] in ("Saturday", "Sunday")
    for name in list(row):
        one, new, other = name.partition("_new_")
        if new and one:
            row[f"{other}_new_{one}"] = row[name]
    ratios = [each for each in edges.get("amount_to_usual", []) if isinstance(each, float)]
    if ratios:
        ratio = dice.choice(ratios) + dice.choice([0.0, 0.5, -0.5, 1.0, -1.0])
        row |= {"usual_amount": 100.0, "amount_to_usual": ratio, "amount": 100.0 * ratio}


def _near(dice: Random, compared: list[float], fact: str, is_whole: bool) -> float:
    if fact == "hour":
        edge = dice.choice([*compared, *compared, 0.0, 3.0, 6.0, 12.0, 18.0, 23.0])
        return (
            (edge + dice.choice([0.0, 0.5, -0.5, 1.0, -1.0])) % 24
            if not is_whole
            else (edge + dice.choice([0.0, 1.0, -1.0])) % 24
        )
    edge = dice.choice(compared or [0.0, 1.0, 100.0])
    tiny = 1.0 if is_whole else 0.01
    near = abs(dice.choice([edge, edge + tiny, edge - tiny, 2 * edge, edge / 2, 0.0]))
    return float(round(near)) if is_whole else near


def hunt(count: int, seed: int = 1) -> list[Finding]:
    return [finding_of(sentence) for sentence in sentences(count, seed)]


def share_read(findings: list[Finding]) -> float:
    counts = Counter(each.outcome for each in findings)
    return counts[READ] / (counts[READ] + counts[REFUSED])


@needs_data
@pytest.mark.long
def test_no_sentence_of_the_hunt_is_misread() -> None:
    findings = hunt(COUNT)
    print(f"{share_read(findings):.0%} read")
    assert [
        (each.sentence.text, str(each.reading.condition), each.why) for each in findings if each.outcome == MISREAD
    ] == []
    assert share_read(findings) >= LEAST_READ


def test_the_hunt_has_so_many_different_sentences() -> None:
    assert len({(each.world, each.text) for each in sentences(COUNT)}) == COUNT


def _report(findings: list[Finding]) -> None:
    by_template: dict[str, Counter[str]] = defaultdict(Counter)
    for each in findings:
        by_template[each.sentence.template][each.outcome] += 1
    outcomes = (READ, REFUSED, REFUSED_RIGHTLY, MISREAD)
    print(f"{'template':24}" + "".join(f"{outcome:>17}" for outcome in outcomes))
    for template, counts in [*by_template.items(), ("all", Counter(each.outcome for each in findings))]:
        print(f"{template:24}" + "".join(f"{counts[outcome]:17}" for outcome in outcomes))
    print(f"{share_read(findings):.0%} of what can be read is read")
    print("\nrefused, with one example of each template:")
    for template, counts in sorted(by_template.items(), key=lambda item: -item[1][REFUSED]):
        if counts[REFUSED]:
            example = next(each for each in findings if (each.sentence.template, each.outcome) == (template, REFUSED))
            print(f"{counts[REFUSED]:5} {template}: {example.sentence.text}\n      {example.reading.problem}")
    for each in findings:
        if each.outcome == MISREAD:
            reading = each.reading
            print(f"\n{each.sentence.template} ({each.sentence.world}): {each.sentence.text}")
            print(f"  read: {reading.condition}; argues {reading.argues}, always {reading.always}\n  but {each.why}")


if __name__ == "__main__":
    _report(hunt(COUNT, seed=int(sys.argv[1]) if len(sys.argv) > 1 else 1))
