"""The prompts of all roles: template files, filled with masked data.

Every word that the engine did not write itself stands between tags, as data: texts, facts and their names, the words of
bullets, and replies of a model. Data cannot close its tag, and nothing hidden gets into it.
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

from acefraud.core.bullet import Bullet
from acefraud.core.transaction import FactValue
from acefraud.display.visible_text import visible
from acefraud.roles.model.masking import Masker
from acefraud.roles.model.prompt_bullets import bullet_figures, bullet_words
from acefraud.roles.model.prompt_text import as_data, cut, on_one_line
from acefraud.roles.protocols import Example, FactSummary

_PLAIN_TEST = re.compile(r'\w+ (?:[<>]=? -?[\d.e+-]+|is true|in \("[\w &.,/-]+"(?:, "[\w &.,/-]+")*\))')
"""A test without anything unusual in it: the words of a category come from outside."""
ENOUGH_FACTS = 8
"""With this many facts, a reflector is not shown the text of a case as well."""
MAX_FACTS = 40
"""The most facts of one transaction that a model is shown."""
MAX_REPLY = 1_500
"""The most characters of a reply that is sent back."""
MAX_VALUE = 200
"""The most characters of the name or the value of one fact."""
_NONE = "(none)"


class Style(StrEnum):
    """How an agent answers: with a sentence before the verdict, or with the verdict alone."""

    REASONED = "reasoned"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that is ready to be sent, with the name and version of its template."""

    name: str
    system: str
    user: str


def agent_prompt(
    style: Style, text: str, facts: Mapping[str, FactValue], bullets: Sequence[Bullet], *, mask: Masker
) -> Prompt:
    """The prompt to decide one transaction with these bullets.

    Each measured bullet states the base rate. Stated on its own, it only misled a small model.

    >>> print(agent_prompt(Style.DIRECT, "A note", {"amount": 2500.0}, [], mask=Masker()).user)
    <transaction>
    text: A note
    facts: {"amount": 2500}
    </transaction>
    """
    used = {name for bullet in bullets if bullet.condition for name in bullet.condition.facts}
    return _render(f"agent_{style}", known=_known(bullets, mask), transaction=_transaction(text, facts, used, mask))


def context_prompt(bullets: Sequence[Bullet], *, mask: Masker) -> str:
    """These bullets as a text for the prompt of somebody else's agent; empty if there are none to show.

    >>> print(context_prompt([Bullet(id="b-1234abcd", content="VPN = 95% fraud", argues="DECLINE")], mask=Masker()))
    ... # doctest: +ELLIPSIS
    Bullets are lessons from past cases...
    <BLANKLINE>
    Bullets:
    [b-1234abcd] DECLINE, unverified
    <bullets>
    [b-1234abcd] VPN
    </bullets>
    """
    known = _known(bullets, mask)
    if not known:
        return ""
    prompt = _render("context", known=known.strip())
    return f"{prompt.system}\n\n{prompt.user}"


def judge_prompt(input_text: str, output: str, *, mask: Masker) -> Prompt:
    """The prompt to judge a decision whose truth is unknown."""
    shown = cut(mask.masked_text(on_one_line(output)))
    return _render("judge", transaction=_transaction(input_text, {}, (), mask), output=shown)


def reflector_prompt(
    examples: Sequence[Example], facts: Sequence[FactSummary], known: Sequence[Bullet], *, mask: Masker
) -> Prompt:
    """The prompt to propose a heuristic from these cases. Hidden facts are not offered for a condition."""
    seen = {name for example in examples for name in example.facts}
    offered = [one for one in facts if not mask.hides(one.name, "" if one.kind == "category" else 0.0)]
    offered = [one for one in offered if one.name in seen] or offered
    summaries = (
        f"- {_name(one.name)} ({as_data(one.kind)}): {cut(mask.masked_text(on_one_line(one.values)))}"
        for one in offered
    )
    names = {one.name for one in offered}
    example = " and ".join(one.example for one in _example_facts(offered, examples, mask))
    written = [f"A condition is written like this: {example}"] if example else []
    return _render(
        "reflector",
        facts="\n".join([*summaries, *written]) or _NONE,
        known="\n".join(bullet_words(bullet, mask) for bullet in _shown(known, mask)) or _NONE,
        cases="\n".join(_case(example, names, mask) for example in examples) or _NONE,
    )


def _example_facts(facts: Sequence[FactSummary], examples: Sequence[Example], mask: Masker) -> list[FactSummary]:
    """Two facts to show how a condition is written: if possible of different kinds, and common among the cases."""
    open_ones = [one for one in facts if cut(mask.masked_text(visible(one.example)), MAX_VALUE) == one.example]
    plain = [one for one in open_ones if _PLAIN_TEST.fullmatch(one.example)]
    often = sorted(plain, key=lambda one: -sum(one.name in example.facts for example in examples))
    first = often[:1]
    other = [one for one in often if one.kind != first[0].kind] if first else []
    return [*first, *(other or often[1:])[:1]]


def repair_prompt(reply: str, problem: str) -> str:
    """The prompt to repair an unusable reply. The problem may quote the reply, so it is data too."""
    return _render("repair", reply=cut(as_data(reply), MAX_REPLY), problem=as_data(problem)).user


def _known(bullets: Sequence[Bullet], mask: Masker) -> str:
    """What the engine states about the bullets, and then their words as data."""
    shown = _shown(bullets, mask)
    if not shown:
        return ""
    figures = "\n".join(map(bullet_figures, shown))
    words = "\n".join(bullet_words(bullet, mask) for bullet in shown)
    return f"Bullets:\n{figures}\n<bullets>\n{words}\n</bullets>\n\n"


def _shown(bullets: Iterable[Bullet], mask: Masker) -> list[Bullet]:
    """The bullets whose condition does not reveal the value of a hidden fact."""
    return [bullet for bullet in bullets if not mask.hides_bullet(bullet)]


def _transaction(text: str, facts: Mapping[str, FactValue], used: Collection[str], mask: Masker) -> str:
    words, known = _seen(text, facts, used, mask)
    lines = [f"text: {words}"] if words else []
    if known:
        lines.append(f"facts: {json.dumps(known, ensure_ascii=False)}")
    return "\n".join(lines)


def _case(example: Example, used: Collection[str], mask: Masker) -> str:
    words, known = _seen(example.text, example.facts, used, mask)
    if len(known) >= ENOUGH_FACTS:  # a condition can only test facts, and the text repeats them
        words = ""
    verdicts = {"decided": str(example.predicted), "truth": str(example.correct)}
    reasoning = _masked(example.reasoning, example.facts, mask)
    shown = {"text": words, "facts": known, **verdicts, "reasoning": reasoning}
    return json.dumps({key: value for key, value in shown.items() if value}, ensure_ascii=False)


def _seen(
    text: str, facts: Mapping[str, FactValue], used: Collection[str], mask: Masker
) -> tuple[str, dict[str, FactValue]]:
    """The masked text and facts, starting with the facts that bullets or conditions use."""
    masked = mask.masked_facts(_plain(facts))
    order = sorted(masked, key=lambda name: (name not in used, name))[:MAX_FACTS]
    return _masked(text, facts, mask), {_name(name): _value(masked[name]) for name in order}


def _masked(text: str, facts: Mapping[str, FactValue], mask: Masker) -> str:
    """The masked text. It is cut only after masking: half a card number is not recognised as one."""
    return cut(mask.masked_text(on_one_line(text), _plain(facts)))


def _plain(facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
    """The facts with their words on one line. Names stay unchanged: masking goes by them."""
    return {name: on_one_line(value) if isinstance(value, str) else value for name, value in facts.items()}


def _name(name: str) -> str:
    return cut(on_one_line(name), MAX_VALUE)


def _value(value: FactValue) -> FactValue:
    if isinstance(value, str):
        return cut(value, MAX_VALUE)
    if isinstance(value, bool) or not math.isfinite(value):
        return value
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else value


def _render(prompt: str, **parts: str) -> Prompt:
    name, system, user = _template(prompt)
    if set(user.get_identifiers()) != set(parts):
        raise ValueError(f"{name}: expected {sorted(user.get_identifiers())}, got {sorted(parts)}")
    return Prompt(name, system, user.substitute(parts))


@cache
def _template(prompt: str) -> tuple[str, str, Template]:
    """The name of a template with its version, its system part, and its user part."""
    folder = resources.files("acefraud.roles.model") / "templates"
    (file,) = (file for file in folder.iterdir() if file.name.startswith(f"{prompt}.v"))
    system, _, user = file.read_text("utf-8").partition("## user\n")
    return file.name.removesuffix(".md"), system.removeprefix("## system\n").strip(), Template(user.strip())
