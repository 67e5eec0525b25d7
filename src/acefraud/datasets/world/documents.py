"""Whole texts: five kinds of document, each with several ways to open, to order and to join what it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from acefraud.core.transaction import FactValue
from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.facts import Scene
from acefraud.datasets.world.tables import phrasebook
from acefraud.datasets.world.wording import Voice, clause, clock, mentioned, note


def write_document(scene: Scene, facts: Mapping[str, FactValue], dice: Dice) -> str:
    """A text that tells most of the known facts, contradicts none, and does not say how it ended."""
    voice = Voice.draw(scene, facts, dice)
    text = dice.pick(_STYLES)(voice, _ordered(mentioned(facts, dice), dice), dice)
    return f"{text} {_phrase('closings', dice)}" if dice.chance(0.5) else text


def _ordered(told: Sequence[str], dice: Dice) -> list[list[str]]:
    """The told facts by subject: subjects in any order, and facts in any order within a subject."""
    groups = [[name for name in names if name in told] for _, names in phrasebook().subjects.values()]
    return [dice.shuffled(group) for group in dice.shuffled(groups) if group]


def _payment(voice: Voice, dice: Dice) -> str:
    """The payment itself, as a noun with what is known of where, when and how."""
    book, facts = phrasebook(), voice.facts
    money = voice.money(float(facts["amount"]))
    kind = dice.pick(book.payment_kinds.get(str(facts.get("channel")), book.payment_kinds["default"]))
    ways = [f"a {kind} of {money}", f"a {kind} for {money}"]
    if not money.endswith("dollars"):
        ways.append(f"a {money} {kind}")
    what = dice.pick(ways)
    parts = []
    if "merchant_category" in facts:
        trade = dice.pick(book.trades[str(facts["merchant_category"])])
        named = (f"at {voice.merchant}, {trade},", f"at {voice.merchant} ({trade})")
        parts.append(dice.pick((*named, f"at {trade}", f"with {trade}")))
    if "channel" in facts and dice.chance(0.9):
        parts.append(dice.pick(book.channels[str(facts["channel"])]))
    if "hour" in facts and dice.chance(0.94):
        parts.append(clock(int(float(facts["hour"])), voice.scene.minute, dice))
    if dice.chance(0.6):
        parts.append(f"{dice.pick(('in', 'from'))} {voice.scene.place}")
    return " ".join([what, *dice.shuffled(parts)]).removesuffix(",")


def _phrase(kind: str, dice: Dice) -> str:
    return dice.pick(phrasebook().document[kind])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _opening(voice: Voice, dice: Dice) -> str:
    payment = _payment(voice, dice)
    return _sentence(_phrase("openings", dice).format(person=voice.person, a=payment))


def _prose(names: Sequence[str], voice: Voice, dice: Dice) -> str:
    """Clauses joined by twos, so that texts vary in rhythm without growing unreadable."""
    sentences, left = [], list(names)
    while left:
        text = clause(left.pop(0), voice, dice)
        if left and dice.chance(0.55):
            join = _phrase("joins", dice)
            second = clause(left.pop(0), voice, dice)
            text += join + (second[0].upper() + second[1:] if join == ". " else second)
        sentences.append(_sentence(text))
    return " ".join(sentences)


def _listed(names: Sequence[str], voice: Voice, dice: Dice) -> str:
    """A sentence that lists notes."""
    opening = _phrase("list_openings", dice)
    notes = [note(name, voice, dice) for name in names]
    listed = notes[0] if len(notes) == 1 else f"{', '.join(notes[:-1])} and {notes[-1]}"
    return _sentence(opening + listed)


def _analyst_note(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    title = _phrase("note_titles", dice)
    body = [_prose(group, voice, dice) if dice.chance(0.6) else _listed(group, voice, dice) for group in groups]
    return " ".join([title + _opening(voice, dice), *body])


def _log_line(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    separator = _phrase("separators", dice)
    start = f"{_phrase('log_titles', dice)}: {voice.person}{separator}{_payment(voice, dice)}"
    notes = [note(name, voice, dice) for group in groups for name in group]
    return f"{separator.join([start, *notes])}."


def _service_summary(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    start = _phrase("summary_titles", dice)
    names = [name for group in groups for name in group]
    half = len(names) // 2
    rest = f" {_listed(names[half:], voice, dice)}" if names[half:] else ""
    return f"{start}{_opening(voice, dice)} {_prose(names[:half], voice, dice)}{rest}".replace("  ", " ")


def _case_file(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    line = dice.pick(("\n", " "))
    sections = [f"{_phrase('case_file_titles', dice)}: {_opening(voice, dice)}"]
    for group in groups:
        titles = next(titles for titles, names in phrasebook().subjects.values() if group[0] in names)
        body = dice.pick(("; ", ", ")).join(note(name, voice, dice) for name in group) + "."
        sections.append(f"{dice.pick(titles)}: {body if dice.chance(0.7) else _prose(group, voice, dice)}")
    return line.join(sections)


def _narrative(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    """The payment may come last, after what led up to it."""
    paragraphs = [_prose(group, voice, dice) for group in groups]
    place = dice.pick((0, 0, len(paragraphs)))
    paragraphs.insert(place, _opening(voice, dice))
    return " ".join(paragraphs)


_STYLES: tuple[Callable[[Voice, list[list[str]], Dice], str], ...] = (
    _analyst_note, _log_line, _service_summary, _case_file, _narrative,
)  # fmt: skip
