"""What each role is asked: prompts from their files, filled with what may be seen.

Nothing from outside can leave its place in a prompt, and nothing that is masked can enter it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from string import Template
from typing import Any

from acefraud.core.bullet import Bullet
from acefraud.core.roles import Example, FactSummary
from acefraud.core.transaction import FactValue
from acefraud.llm.bullet_lines import bullet_line
from acefraud.llm.masking import Mask
from acefraud.llm.outside_text import MAX_SHOWN, as_data, cut, on_one_line

__all__ = [
    "MAX_FACTS", "MAX_SHOWN", "Rendered", "Style", "agent_prompt", "as_data", "bullet_line", "judge_prompt",
    "reflector_prompt", "repair_prompt",
]  # fmt: skip

_PLAIN_TEST = re.compile(r'\w+ (?:[<>]=? -?[\d.e+-]+|is true|in \("[^<>"]+"(?:, "[^<>"]+")*\))')
"""A test that holds nothing but what it should: words of a category come from outside."""
ENOUGH_FACTS = 8
"""Facts of a case from which on a reflector is not shown its text as well."""
MAX_FACTS = 40
"""Facts of one transaction that a model is shown."""
MAX_VALUE = 200
"""Characters of the name or the value of one fact."""
_NONE = "(none)"
_VERSION = re.compile(r"\.v(\d+)\.md$")


class Style(StrEnum):
    """How an agent answers: with a sentence first, or with the verdict alone."""

    REASONED = "reasoned"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt that is ready to be sent, under the name and version of its file."""

    name: str
    system: str
    user: str


def agent_prompt(
    style: Style,
    text: str,
    facts: Mapping[str, FactValue],
    bullets: Sequence[Bullet],
    *,
    mask: Mask,
) -> Rendered:
    """Decide one transaction with these bullets. Where there are none, nothing is said of them.

    How common fraud is stands in each measured bullet; said on its own, it only led a small model astray.

    >>> print(agent_prompt(Style.DIRECT, "A note", {"amount": 2500.0}, [], mask=Mask()).user)
    <transaction>
    text: A note
    facts: {"amount": 2500}
    </transaction>
    """
    used = {name for bullet in bullets if bullet.condition for name in bullet.condition.facts}
    return _render(
        f"agent_{style}",
        known=f"Bullets:\n{_lines(bullets, mask)}\n\n" if bullets else "",
        transaction=_transaction(text, facts, used, mask),
    )


def judge_prompt(input_text: str, output: str, *, mask: Mask) -> Rendered:
    """Say whether a decision was right, where no truth is known."""
    shown = cut(mask.masked_text(on_one_line(output)))
    return _render("judge", transaction=_transaction(input_text, {}, (), mask), output=shown)


def reflector_prompt(
    examples: Sequence[Example], facts: Sequence[FactSummary], known: Sequence[Bullet], *, mask: Mask
) -> Rendered:
    """Put into words what these cases teach. Facts that no model may see are not offered for a condition."""
    seen = {name for example in examples for name in example.facts}
    offered = [one for one in facts if not mask.hides(one.name, "" if one.kind == "category" else 0.0)]
    offered = [one for one in offered if one.name in seen] or offered
    summaries = (
        f"- {_name(one.name)} ({as_data(one.kind)}): {cut(mask.masked_text(on_one_line(one.values)))}"
        for one in offered
    )
    names = {one.name for one in offered}
    return _render(
        "reflector",
        facts="\n".join(summaries) or _NONE,
        example=" and ".join(one.example for one in _told(offered, examples, mask)) or _NONE,
        known=_lines(known, mask),
        cases="\n".join(_case(example, names, mask) for example in examples) or _NONE,
    )


def _told(facts: Sequence[FactSummary], examples: Sequence[Example], mask: Mask) -> list[FactSummary]:
    """Two facts to show how a condition is written, best of different kinds and told by most of the cases."""
    open_ones = [one for one in facts if mask.masked_text(one.example) == one.example]
    plain = [one for one in open_ones if _PLAIN_TEST.fullmatch(one.example)]
    often = sorted(plain, key=lambda one: -sum(one.name in example.facts for example in examples))
    first = often[:1]
    other = [one for one in often if one.kind != first[0].kind] if first else []
    return [*first, *(other or often[1:])[:1]]


def repair_prompt(problem: str) -> str:
    """Ask again after a reply that could not be used."""
    return _render("repair", problem=as_data(problem)).user


def _lines(bullets: Iterable[Bullet], mask: Mask) -> str:
    """The bullets but for those whose condition would tell the value of a fact that may not be seen."""
    seen = (bullet for bullet in bullets if not mask.hides_bullet(bullet))
    return "\n".join(mask.masked_text(bullet_line(bullet)) for bullet in seen) or _NONE


def _transaction(text: str, facts: Mapping[str, FactValue], used: Collection[str], mask: Mask) -> str:
    words, known = _seen(text, facts, used, mask)
    return "\n".join([f"text: {words}"] * bool(words) + [f"facts: {_json(known)}"] * bool(known))


def _case(example: Example, used: Collection[str], mask: Mask) -> str:
    words, known = _seen(example.text, example.facts, used, mask)
    if len(known) >= ENOUGH_FACTS:  # a condition can only speak of facts, and the text says them once more
        words = ""
    verdicts = {"decided": str(example.predicted), "truth": str(example.correct)}
    reasoning = _masked(example.reasoning, example.facts, mask)
    told = {"text": words, "facts": known, **verdicts, "reasoning": reasoning}
    return _json({key: value for key, value in told.items() if value})


def _seen(
    text: str, facts: Mapping[str, FactValue], used: Collection[str], mask: Mask
) -> tuple[str, dict[str, FactValue]]:
    """The text and the facts as they may be seen, first the facts that are spoken of."""
    masked = mask.masked_facts(_plain(facts))
    order = sorted(masked, key=lambda name: (name not in used, name))[:MAX_FACTS]
    return _masked(text, facts, mask), {_name(name): _value(masked[name]) for name in order}


def _masked(text: str, facts: Mapping[str, FactValue], mask: Mask) -> str:
    """Cut only after masking: half a card number is not recognised as one."""
    return cut(mask.masked_text(on_one_line(text), _plain(facts)))


def _plain(facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
    """The names stay as they are: what is masked goes by them."""
    return {name: on_one_line(value) if isinstance(value, str) else value for name, value in facts.items()}


def _name(name: str) -> str:
    return cut(on_one_line(name), MAX_VALUE)


def _value(value: FactValue) -> FactValue:
    if isinstance(value, str):
        return cut(value, MAX_VALUE)
    if isinstance(value, bool) or not math.isfinite(value):
        return value
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else value


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False)


def _render(prompt: str, **parts: str) -> Rendered:
    name, system, user = _templates()[prompt]
    if set(user.get_identifiers()) != set(parts):
        raise ValueError(f"{name} has places for {sorted(user.get_identifiers())}, got {sorted(parts)}")
    return Rendered(name, system, user.substitute(parts))


@cache
def _templates() -> dict[str, tuple[str, str, Template]]:
    """For each prompt the newest version: its name, what it tells the system, and its user part to be filled."""
    newest: dict[str, tuple[int, str]] = {}
    folder = resources.files("acefraud.llm") / "prompts"
    for file in folder.iterdir():
        if found := _VERSION.search(file.name):
            prompt, version = file.name[: found.start()], int(found[1])
            newest[prompt] = max(newest.get(prompt, (0, "")), (version, file.read_text("utf-8")))
    return {prompt: (f"{prompt}.v{version}", *_parts(text)) for prompt, (version, text) in newest.items()}


def _parts(text: str) -> tuple[str, Template]:
    system, _, user = text.partition("## user\n")
    return system.removeprefix("## system\n").strip(), Template(user.strip())
