"""What each role is asked: prompts from their files, filled with what may be seen.

Every word that this engine did not write itself stands between tags, as data: texts, facts and their names, the words
of bullets, and what a model replied. It cannot leave that place, and nothing that is masked can enter it.
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
from acefraud.core.visible_text import visible
from acefraud.llm.bullet_lines import bullet_figures, bullet_words
from acefraud.llm.masking import Mask
from acefraud.llm.outside_text import MAX_SHOWN, as_data, cut, on_one_line

__all__ = [
    "MAX_FACTS", "MAX_SHOWN", "Rendered", "Style", "agent_prompt", "as_data", "judge_prompt", "reflector_prompt",
    "repair_prompt",
]  # fmt: skip

_PLAIN_TEST = re.compile(r'\w+ (?:[<>]=? -?[\d.e+-]+|is true|in \("[\w &.,/-]+"(?:, "[\w &.,/-]+")*\))')
"""A test that holds nothing but what it should: words of a category come from outside."""
ENOUGH_FACTS = 8
"""Facts of a case from which on a reflector is not shown its text as well."""
MAX_FACTS = 40
"""Facts of one transaction that a model is shown."""
MAX_REPLY = 1_500
"""Characters of a reply that is sent back."""
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
        known=_known(bullets, mask),
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
    example = " and ".join(one.example for one in _told(offered, examples, mask))
    written = [f"A condition is written like this: {example}"] if example else []
    return _render(
        "reflector",
        facts="\n".join([*summaries, *written]) or _NONE,
        known="\n".join(bullet_words(bullet, mask) for bullet in _shown(known, mask)) or _NONE,
        cases="\n".join(_case(example, names, mask) for example in examples) or _NONE,
    )


def _told(facts: Sequence[FactSummary], examples: Sequence[Example], mask: Mask) -> list[FactSummary]:
    """Two facts to show how a condition is written, best of different kinds and told by most of the cases."""
    open_ones = [one for one in facts if cut(mask.masked_text(visible(one.example)), MAX_VALUE) == one.example]
    plain = [one for one in open_ones if _PLAIN_TEST.fullmatch(one.example)]
    often = sorted(plain, key=lambda one: -sum(one.name in example.facts for example in examples))
    first = often[:1]
    other = [one for one in often if one.kind != first[0].kind] if first else []
    return [*first, *(other or often[1:])[:1]]


def repair_prompt(reply: str, problem: str) -> str:
    """Ask again after a reply that could not be used. What is wrong with it is said in words of the reply."""
    return _render("repair", reply=cut(as_data(reply), MAX_REPLY), problem=as_data(problem)).user


def _known(bullets: Sequence[Bullet], mask: Mask) -> str:
    """What this engine says of the bullets, and then their words as data."""
    shown = _shown(bullets, mask)
    if not shown:
        return ""
    figures = "\n".join(map(bullet_figures, shown))
    words = "\n".join(bullet_words(bullet, mask) for bullet in shown)
    return f"Bullets:\n{figures}\n<bullets>\n{words}\n</bullets>\n\n"


def _shown(bullets: Iterable[Bullet], mask: Mask) -> list[Bullet]:
    """The bullets but for those whose condition would tell the value of a fact that may not be seen."""
    return [bullet for bullet in bullets if not mask.hides_bullet(bullet)]


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
