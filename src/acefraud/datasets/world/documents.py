"""Whole texts: five kinds of document, each with several ways to open, to order and to join what it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from acefraud.core.transaction import FactValue
from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.facts import Scene
from acefraud.datasets.world.stories import Phrases, names, phrasebook, recording

_SMALL_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class Voice:
    """What stays the same within one text: how money is written, and what people and places are called."""

    scene: Scene
    facts: Mapping[str, FactValue]
    money_style: str
    person: str
    merchant: str
    customer: str
    spells_numbers: bool

    @classmethod
    def draw(cls, scene: Scene, facts: Mapping[str, FactValue], dice: Dice) -> Voice:
        """A writer for this scene."""
        style, person, merchant = _phrase("money", dice), _person(dice), _merchant(dice)
        return cls(scene, facts, style, person, merchant, _phrase("customer", dice), dice.chance(0.2))

    def money(self, amount: float) -> str:
        """An amount in the style of this text."""
        exact = f"{amount:,.2f}"
        short = exact.removesuffix(".00")
        return self.money_style.format(exact=exact, short=short, plain=short.replace(",", ""))


def _person(dice: Dice) -> str:
    """A customer's name, or the handle they go by."""
    first, last = dice.pick(names().people["first_names"]), dice.pick(names().people["last_names"])
    ways = (
        f"{first} {last}", f"{first} {last}", f"{first[0]}. {last}", f"'{first.lower()}_{last.lower()}'",
        f"'{first.lower()}{dice.whole(10, 99)}'", f"user {first.lower()}.{last.lower()}",
        f"customer #{dice.whole(10000, 99999)}",
    )  # fmt: skip
    return dice.pick(ways)


def _merchant(dice: Dice) -> str:
    """A merchant's name, which says nothing of its trade."""
    beginnings = names().merchants["beginnings"]
    name = dice.pick(beginnings) + dice.pick(names().merchants["endings"])
    partners = f"{dice.pick(beginnings)} & {dice.pick(names().people['last_names'])}"
    return dice.pick((name, f"'{name}'", f"{name} Ltd", f"{name} Group", f"{name}.com", partners))


def mentioned(facts: Mapping[str, FactValue], dice: Dice) -> list[str]:
    """The facts that the text tells beside its opening: most of them, but any one may be left out."""
    told = [name for name, value in facts.items() if dice.chance(_mention_chance(name, value, facts))]
    if facts.get("purchases_at_merchant") == 0.0:
        told = [name for name in told if name != "purchases_at_merchant"]
    elsewhere = recording().in_opening.union(recording().windows.values())
    return [name for name in told if name not in elsewhere]


def _mention_chance(name: str, value: FactValue, facts: Mapping[str, FactValue]) -> float:
    if recording().implied.get(name) in facts:
        return 0.3 if value is not False else 0.08
    if name == "gift_cards" and facts.get("merchant_category") == "gift cards":
        return 0.2
    if name == "first_time_merchant":
        return 0.93 if value else 0.2
    if value is False:
        return 0.7
    return 0.85 if value == 0.0 else 0.93


def _told(name: str, voice: Voice, dice: Dice, form: Literal["clauses", "notes"]) -> str:
    """The fact as a clause that can stand as a sentence, or as a note: a fragment for a list or a log line."""
    phrases, figure, window = _words(name, voice, dice)
    customer, scene, template = voice.customer, voice.scene, dice.pick(getattr(phrases, form))
    words = {"who": customer, "whose": f"{customer}'s", "place": scene.place, "home": scene.home}
    return str(template.format(v=figure, w=window, **words))


def _words(name: str, voice: Voice, dice: Dice) -> tuple[Phrases, object, str]:
    """The phrases for a fact, its figure, and the time window of the figure."""
    book, value = phrasebook(), voice.facts[name]
    if isinstance(value, bool):
        return (book.true_flags if value else book.false_flags)[name], "", ""
    if isinstance(value, str):
        return book.categories[name], value, ""
    window = recording().windows.get(name, "")
    if window not in voice.facts:
        return book.numbers[name], _figure(name, value, voice, dice), ""
    length = float(voice.facts[window])
    spoken = minutes(length) if window == "recent_window_minutes" else age(length, dice)
    return book.numbers[f"{name}_within"], _figure(name, value, voice, dice), spoken


def _figure(name: str, value: float, voice: Voice, dice: Dice) -> object:
    match name:
        case "usual_amount" | "usual_amount_max":
            return voice.money(value)
        case "account_age_days" | "device_age_days" | "payment_method_age_days" | "days_since_last":
            return age(value, dice)
        case "amount_to_usual" | "amount_to_usual_max":
            return f"{value:g}"
        case "merchant_rating":
            return f"{value:.1f}"
        case "distance_km":
            return f"{value:,.0f} {dice.pick(('km', 'km', 'kilometres'))}"
    return (SpelledCount if voice.spells_numbers else Count)(value)


class Count(int):
    """A number of things that agrees with its noun.

    >>> f"{Count(1):earlier dispute} and {Count(3):chargeback}, {Count(0):complaint}"
    '1 earlier dispute and 3 chargebacks, no complaints'
    """

    spelled = False

    def __format__(self, noun: str) -> str:
        written_out = self == 0 or (self.spelled and self <= 10)
        figure = _SMALL_NUMBERS[self] if written_out else f"{int(self):,}"
        return f"{figure} {noun if self == 1 else _plural(noun)}"


class SpelledCount(Count):
    """A count whose small numbers are written out.

    >>> f"{SpelledCount(3):failed login}"
    'three failed logins'
    """

    spelled = True


def _plural(noun: str) -> str:
    """The plural of the head noun, which stands last or before ' at', ' on', ' of' or ' by'."""
    for link in (" at ", " on ", " of ", " by "):
        head, found, rest = noun.partition(link)
        if found:
            return f"{_plural(head)}{link}{rest}"
    return noun[:-1] + "ies" if noun.endswith("y") and not noun.endswith("ay") else noun + "s"


class Age(str):
    """A span of time; as an adjective with the format ``adj``.

    >>> f"{Age('8 months')} / {Age('8 months'):adj} / {Age('1 day'):adj}"
    '8 months / 8-month-old / 1-day-old'
    """

    __slots__ = ()

    def __format__(self, form: str) -> str:
        if form != "adj":
            return str(self)
        figure, _, unit = self.partition(" ")
        return f"{figure}-{unit.removesuffix('s')}-old"


def age(days: float, dice: Dice) -> Age:
    """One of the ways to say an age, all of them exact."""
    if days < 1 / 24 - 1e-4:
        return _span(days * 1440, "minute")
    if days < 2 and days != int(days):
        return _span(days * 24, "hour")
    ways = [_span(days, "day")] if days == int(days) else []
    if days >= 14 and days % 7 == 0 and days < 100:
        ways += [_span(days / 7, "week")] * 2
    if days >= 60 and days % 30 == 0:
        ways += [_span(days / 30, "month")] * 4
    if days >= 365 and days % 182.5 == 0:
        ways += [_span(days / 365, "year")] * 6
    return dice.pick(ways)


def _span(number: float, unit: str) -> Age:
    figure = f"{round(number, 1):g}"
    return Age(f"{figure} {unit if figure == '1' else unit + 's'}")


def minutes(number: float) -> str:
    """The length of a short time window.

    >>> minutes(45), minutes(120)
    ('45 minutes', '2 hours')
    """
    return str(_span(number / 60, "hour") if number >= 60 and number % 60 == 0 else _span(number, "minute"))


def clock(hour: int, minute: int, dice: Dice) -> str:
    """A time of day with its preposition."""
    if minute < 10 and hour in (0, 12) and dice.chance(0.4):
        return "just after midnight" if hour == 0 else "just after noon"
    half = "AM" if hour < 12 else "PM"
    twelve = hour % 12 or 12
    return _phrase("clock", dice).format(hour=hour, twelve=twelve, minute=minute, half=half, letter=half.lower()[0])


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


def _prose(told: Sequence[str], voice: Voice, dice: Dice) -> str:
    """Clauses joined by twos, so that texts vary in rhythm without growing unreadable."""
    sentences, left = [], list(told)
    while left:
        text = _told(left.pop(0), voice, dice, "clauses")
        if left and dice.chance(0.55):
            join = _phrase("joins", dice)
            second = _told(left.pop(0), voice, dice, "clauses")
            text += join + (second[0].upper() + second[1:] if join == ". " else second)
        sentences.append(_sentence(text))
    return " ".join(sentences)


def _listed(told: Sequence[str], voice: Voice, dice: Dice) -> str:
    """A sentence that lists notes."""
    opening = _phrase("list_openings", dice)
    notes = [_told(name, voice, dice, "notes") for name in told]
    listed = notes[0] if len(notes) == 1 else f"{', '.join(notes[:-1])} and {notes[-1]}"
    return _sentence(opening + listed)


def _analyst_note(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    title = _phrase("note_titles", dice)
    body = [_prose(group, voice, dice) if dice.chance(0.6) else _listed(group, voice, dice) for group in groups]
    return " ".join([title + _opening(voice, dice), *body])


def _log_line(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    separator = _phrase("separators", dice)
    start = f"{_phrase('log_titles', dice)}: {voice.person}{separator}{_payment(voice, dice)}"
    notes = [_told(name, voice, dice, "notes") for group in groups for name in group]
    return f"{separator.join([start, *notes])}."


def _service_summary(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    start = _phrase("summary_titles", dice)
    told = [name for group in groups for name in group]
    half = len(told) // 2
    rest = f" {_listed(told[half:], voice, dice)}" if told[half:] else ""
    return f"{start}{_opening(voice, dice)} {_prose(told[:half], voice, dice)}{rest}".replace("  ", " ")


def _case_file(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    line = dice.pick(("\n", " "))
    sections = [f"{_phrase('case_file_titles', dice)}: {_opening(voice, dice)}"]
    for group in groups:
        titles = next(titles for titles, names in phrasebook().subjects.values() if group[0] in names)
        body = dice.pick(("; ", ", ")).join(_told(name, voice, dice, "notes") for name in group) + "."
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
