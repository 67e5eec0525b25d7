"""Small statements about the facts of a world, each in several wordings and with its certain meaning.

The meanings are expressions of `phrasing_reference`. They come from plain English and from what docs/rules.md
defines (a night is 23:00 to 6:00, a month is 30 days), not from what the reader makes of the words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

AMBIGUOUS = "ambiguous"
"""English has two readings here, so reading it at all is a misreading."""
UNSAYABLE = "unsayable"
"""The facts of the world cannot express it, so reading it at all is a misreading."""

Words = tuple[str, ...]
Figures = dict[float, Words]


@dataclass(frozen=True)
class Part:
    """One statement: as a clause ("the amount is over 500"), bare ("amount over 500"), or after a noun ("over 500")."""

    about: str
    """What it speaks of. A sentence speaks of a thing once."""
    means: str
    clause: Words
    denied: Words = ()
    bare: Words = ()
    not_bare: Words = ()
    after: Words = ()
    """What stands after "payments"."""
    not_after: Words = ()


Maker = Callable[[Random], Part]

MONEY: Figures = {
    20: ("20", "$20", "20 dollars", "twenty"),
    100: ("100", "$100", "a hundred", "one hundred", "100 dollars"),
    300: ("300", "$300", "three hundred", "300 dollars"),
    500: ("500", "$500", "500 dollars", "five hundred", "0.5k"),
    900: ("900", "$900", "900 USD"),
    1250: ("1,250", "$1,250", "1250", "1.25k"),
    1500: ("1,500", "$1,500", "1500", "1.5k", "$1.5k"),
    2000: ("2k", "2,000", "2000", "two thousand", "$2k", "2 thousand"),
    10000: ("10k", "10,000", "ten thousand", "$10,000"),
}
MILLIONS: Figures = {
    500_000: ("500k", "half a million", "500,000", "500 thousand"),
    1_000_000: ("1 million", "a million", "one million", "1,000,000", "1m"),
    1_500_000: ("1.5 million", "1,500,000", "1500k", "1.5m"),
    3_000_000: ("3 million", "three million", "3,000,000"),
}
COUNTS: Figures = {
    1: ("1", "one"),
    2: ("2", "two"),
    3: ("3", "three"),
    4: ("4", "four"),
    5: ("5", "five"),
    10: ("10", "ten"),
    12: ("12", "a dozen", "twelve"),
}
DAYS: Figures = {
    2: ("2 days", "two days", "48 hours", "48h"),
    7: ("7 days", "a week", "one week", "seven days"),
    14: ("14 days", "two weeks", "2 weeks", "a fortnight"),
    30: ("30 days", "a month", "one month", "thirty days"),
    90: ("90 days", "three months", "3 months"),
    365: ("365 days", "a year", "one year"),
}
HOURS: Figures = {
    0.25: ("15 minutes", "a quarter of an hour", "fifteen minutes", "15 min"),
    0.5: ("half an hour", "30 minutes", "thirty minutes"),
    1.5: ("90 minutes", "an hour and a half", "1.5 hours"),
    2: ("2 hours", "two hours", "2h", "120 minutes"),
    48: ("two days", "48 hours", "2 days"),
    168: ("a week", "7 days"),
}
WINDOWS = {
    "1h": ("in an hour", "within an hour", "in the last hour", "in the past hour", "in 60 minutes", "in 1 hour"),
    "24h": ("in 24 hours", "within 24 hours", "in the last 24 hours", "in a day", "in one day", "over 24 hours"),
    "7d": ("in 7 days", "within a week", "in the last 7 days", "in the past week", "in seven days"),
    "30d": ("in 30 days", "within 30 days", "in the last 30 days", "in the past month", "in a month"),
}
NOT_KEPT = ("in 10 minutes", "in 3 hours", "in two days", "in 90 days", "in two weeks", "within 6 hours", "in 5 days")
MORE = ("over", "above", "more than", "greater than", "larger than", "higher than", "in excess of", "exceeding")
LEAST = ("at least", "no less than", "not less than", "not below", "not under")
MOST = ("at most", "no more than", "not more than", "up to", "not over", "not above", "no higher than")
LESS = ("under", "below", "less than", "smaller than", "lower than")
TIMES: dict[tuple[float, float], Words] = {
    (22, 4): ("between 10 pm and 4 am", "from 10 pm to 4 am", "between 22:00 and 4:00", "between 10pm and 4am"),
    (9, 17): ("between 9 am and 5 pm", "from 9 am to 5 pm", "between 9:00 and 17:00"),
    (0, 5): ("between midnight and 5 am", "from midnight to 5 am", "between 0:00 and 5:00", "between 12 am and 5 am"),
    (12, 14): ("between noon and 2 pm", "between 12 pm and 2 pm", "from noon to 2 pm"),
    (1, 3): ("between 1 and 3 am", "between 1 am and 3 am", "from 1 to 3 am"),
    (6, 12): ("in the morning", "in the mornings"),
    (12, 18): ("in the afternoon",),
    (18, 23): ("in the evening", "in the evenings"),
    (23, 6): ("at night",),
    (20, 24): ("after 8 pm", "after 20:00"),
    (0, 6): ("before 6 am", "before 6:00"),
}
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def pick(dice: Random, table: Figures) -> tuple[float, str]:
    value = dice.choice(list(table))
    return value, dice.choice(table[value])


def comparison(dice: Random, fact: str, table: Figures, more: Words = MORE, less: Words = LESS) -> tuple[str, str]:
    """A comparison of a fact in words, which "not" can stand before, and its meaning."""
    value, said = pick(dice, table)
    if dice.random() < 0.6:
        return f"{dice.choice(more)} {said}", f"gt('{fact}', {value})"
    return f"{dice.choice(less)} {said}", f"lt('{fact}', {value})"


def any_comparison(dice: Random, fact: str, table: Figures) -> tuple[str, str]:
    """A comparison of a fact in words of all kinds, and its meaning."""
    low, high = sorted(dice.sample(list(table), 2))
    a, b = dice.choice(table[low]), dice.choice(table[high])
    above, below = dice.choice(MORE[:3]), dice.choice(LESS[:3])
    return dice.choice(
        [
            (f"{dice.choice(MORE)} {a}", f"gt('{fact}', {low})"),
            (f"{dice.choice(LESS)} {b}", f"lt('{fact}', {high})"),
            (f"{dice.choice(LEAST)} {a}", f"ge('{fact}', {low})"),
            (f"{a} {dice.choice(('or more', 'and up', 'or above', 'or higher'))}", f"ge('{fact}', {low})"),
            (
                f"{dice.choice(MOST)} {b}",
                f"le('{fact}', {high})",
            ),
            (f"{b} {dice.choice(('or less', 'or below', 'or lower'))}", f"le('{fact}', {high})"),
            (f"between {a} and {b}", f"between('{fact}', {low}, {high})"),
            (f"from {a} to {b}", f"between('{fact}', {low}, {high})"),
            (f"{above} {a} but {below} {b}", f"AND(gt('{fact}', {low}), lt('{fact}', {high}))"),
            (f"{above} {a} and {below} {b}", f"AND(gt('{fact}', {low}), lt('{fact}', {high}))"),
            (f"at least {a} but no more than {b}", f"between('{fact}', {low}, {high})"),
            (f"{below} {a} or {above} {b}", f"OR(lt('{fact}', {low}), gt('{fact}', {high}))"),
            (f"not between {a} and {b}", f"NOT(between('{fact}', {low}, {high}))"),
        ]
    )


def measure(about: str, noun: str, fact: str, table: Figures, *, after: bool = False) -> Maker:
    """A number: "the amount is over 500"."""

    def make(dice: Random) -> Part:
        said, means = comparison(dice, fact, table)
        return Part(
            about,
            means,
            clause=(f"the {noun} is {said}",),
            denied=(f"the {noun} is not {said}", f"the {noun} isn't {said}"),
            bare=(f"{noun} {said}", f"{noun} is {said}"),
            not_bare=(f"{noun} not {said}", f"{noun} is not {said}"),
            after=(said,) if after and said.split()[0] in ("over", "above", "under", "below") else (),
            not_after=(f"not {said}",) if after and said.startswith(("over", "above")) else (),
        )

    return make


def amount(table: Figures = MONEY) -> Maker:
    return measure("amount", "amount", "amount", table, after=True)


def flag(
    fact: str,
    clause: Words,
    denied: Words,
    *,
    bare: Words = (),
    not_bare: Words = (),
    after: Words = (),
    not_after: Words = (),
) -> Maker:
    part = Part(fact, f"flag('{fact}')", clause, denied, bare, not_bare, after, not_after)
    return lambda _: part


def value(fact: str, noun: str, values: Sequence[str]) -> Maker:
    """A category: "the browser is Chrome or Opera"."""

    def make(dice: Random) -> Part:
        if dice.random() < 0.6 or len(values) < 3:
            one = dice.choice(values)
            said, means = one, f"is_('{fact}', {one!r})"
            neither: Words = ()
        else:
            two = dice.sample(values, dice.choice((2, 2, 3)))
            said, means = ", ".join(two[:-1]) + f" or {two[-1]}", f"isin('{fact}', {two!r})"
            neither = (f"the {noun} is neither {two[0]} nor {two[1]}",) if len(two) == 2 else ()
        return Part(
            fact,
            means,
            clause=(f"the {noun} is {said}",),
            denied=(f"the {noun} is not {said}", f"the {noun} isn't {said}", *neither),
            bare=(f"{noun} {said}", f"{noun} is {said}"),
            not_bare=(f"{noun} not {said}", f"{noun} is not {said}"),
        )

    return make


def time_of_day(dice: Random) -> Part:
    span = dice.choice(list(TIMES))
    said = dice.choice(TIMES[span])
    means = f"hours({span[0]:g}, {span[1]:g})"
    return Part(
        "time",
        means,
        clause=(f"it happens {said}", f"it is made {said}", f"the transaction is {said}"),
        denied=(f"it does not happen {said}", f"it is not made {said}", f"the transaction is not {said}"),
        bare=(said,),
        not_bare=(f"not {said}",),
        after=(said,),
        not_after=(f"not {said}",),
    )


def day(dice: Random) -> Part:
    if dice.random() < 0.2:
        said, means = dice.choice(("at the weekend", "on weekends", "on a weekend")), "flag('weekend')"
        return Part(
            "time",
            means,
            (f"it happens {said}",),
            (f"it does not happen {said}",),
            (said,),
            (f"not {said}",),
            (said,),
            (f"not {said}",),
        )
    on: Words
    days = dice.sample(WEEK, dice.choice((1, 1, 2)))
    means = f"isin('weekday', {days!r})"
    if len(days) == 1:
        on, clause, denied = (f"on {days[0]}s", f"on a {days[0]}"), f"it is a {days[0]}", f"it is not a {days[0]}"
    else:
        on = (f"on {days[0]}s and {days[1]}s", f"on {days[0]}s or {days[1]}s", f"on a {days[0]} or {days[1]}")
        clause, denied = f"it is a {days[0]} or {days[1]}", f"it is neither a {days[0]} nor a {days[1]}"
    certain = tuple(each for each in on if " and " not in each)
    return Part(
        "time",
        means,
        clause=(clause, *(f"it happens {each}" for each in certain)),
        denied=(denied, *(f"it does not happen {each}" for each in certain)),
        bare=on,
        not_bare=tuple(f"not {each}" for each in certain),
        after=on,
        not_after=tuple(f"not {each}" for each in certain),
    )


def night_of(days: Sequence[str]) -> str:
    """The nights that begin on these days, each until 6:00 of the next one."""
    nights = [
        f"OR(AND(is_('weekday', '{each}'), ge('hour', 23)), AND(is_('weekday', '{_after(each)}'), lt('hour', 6)))"
        for each in days
    ]
    return nights[0] if len(nights) == 1 else f"OR({', '.join(nights)})"


def _after(day_name: str) -> str:
    return WEEK[(WEEK.index(day_name) + 1) % 7]


def day_and_time(dice: Random) -> Part:
    one, other = dice.sample(WEEK, 2)
    span: tuple[float, float]
    said: Words
    kind = dice.randrange(4)
    if kind == 0:
        said = (
            f"on {one} nights",
            f"{one} night",
            f"on {one} night",
            f"at night on {one}s",
            f"{one}s at night",
            f"on {one}s at night",
        )
        means = night_of([one])
    elif kind == 1:
        said = (
            f"on {one} and {other} nights",
            f"{one} or {other} night",
            f"on {one} or {other} nights",
            f"at night on {one}s or {other}s",
        )
        means = night_of([one, other])
    elif kind == 2:
        span, name = dice.choice([((6, 12), "morning"), ((12, 18), "afternoon"), ((18, 23), "evening")])
        said = (f"on {one} {name}s", f"{one} {name}", f"on {one}s in the {name}", f"in the {name} on {one}s")
        means = f"AND(is_('weekday', '{one}'), hours{span})"
    else:
        span = dice.choice([(9, 17), (12, 14), (1, 3)])
        when = dice.choice(TIMES[span])
        said = (f"on {one}s {when}", f"{when} on {one}s", f"{one}s {when}")
        means = f"AND(is_('weekday', '{one}'), hours{span})"
    on = tuple(each for each in said if each.startswith(("on ", "at ", "in ", "between", "from")))
    return Part(
        "time",
        means,
        tuple(f"it happens {each}" for each in on),
        tuple(f"it does not happen {each}" for each in on),
        said,
        after=on,
    )


def age(about: str, noun: str, fact: str, table: Figures) -> Maker:
    """How old something is: "the account is younger than two weeks"."""

    def make(dice: Random) -> Part:
        number, said = pick(dice, table)
        means, words, after = dice.choice(
            [
                (f"lt('{fact}', {number})", (f"younger than {said}", f"less than {said} old"), "younger than"),
                (f"gt('{fact}', {number})", (f"older than {said}", f"more than {said} old"), "older than"),
                (f"ge('{fact}', {number})", (f"at least {said} old",), ""),
                (f"le('{fact}', {number})", (f"no more than {said} old", f"at most {said} old"), ""),
            ]
        )
        plain = tuple(each for each in words if not each.startswith("no "))
        return Part(
            about,
            means,
            clause=tuple(f"the {noun} is {each}" for each in words),
            denied=tuple(f"the {noun} is not {each}" for each in plain)
            + tuple(f"the {noun} isn't {each}" for each in plain),
            bare=tuple(f"{noun} {each}" for each in words),
            after=(f"from {'an' if noun[0] in 'aeiou' else 'a'} {noun} {after} {said}",)
            if after and noun == "account"
            else (),
        )

    return make


def how_many(about: str, noun: str, fact: str, subject: str, not_subject: str) -> Maker:
    """A count: "the customer has more than 2 chargebacks"."""

    def make(dice: Random) -> Part:
        number, said = pick(dice, {each: words for each, words in COUNTS.items() if each > 1})
        means, words = dice.choice(
            [
                (f"gt('{fact}', {number})", (f"more than {said} {noun}",)),
                (
                    f"ge('{fact}', {number})",
                    (f"at least {said} {noun}", f"{said} or more {noun}", f"no fewer than {said} {noun}"),
                ),
                (f"lt('{fact}', {number})", (f"fewer than {said} {noun}", f"less than {said} {noun}")),
                (
                    f"le('{fact}', {number})",
                    (f"at most {said} {noun}", f"no more than {said} {noun}", f"up to {said} {noun}"),
                ),
                (f"eq('{fact}', 0)", (f"no {noun}",)),
            ]
        )
        deniable = tuple(each for each in words if each.split()[0] in ("more", "at", "fewer", "less"))
        return Part(
            about,
            means,
            clause=tuple(f"{subject} {each}" for each in words),
            denied=tuple(f"{not_subject} {each}" for each in deniable),
            bare=words,
            after=tuple(f"with {each}" for each in words),
        )

    return make


def usual(about: str, fact: str, whose: str) -> Maker:
    def make(dice: Random) -> Part:
        factor, said = dice.choice(
            [(2, "twice"), (2, "double"), (3, "three times"), (3, "3 times"), (5, "five times"), (10, "10 times")]
        )
        more, means = dice.choice([("more than", "gt"), ("over", "gt"), ("at least", "ge"), ("less than", "lt")])
        words = f"{more} {said} the usual amount{whose}"
        return Part(
            about,
            f"{means}('{fact}', {factor})",
            clause=(f"the amount is {words}",),
            denied=(f"the amount is not {words}",),
            bare=(f"amount {words}",),
        )

    return make


def velocity(entity: str, other: str = "") -> Maker:
    """How often an entity was seen, and with how many others: "more than 3 transactions of the card in an hour"."""

    def make(dice: Random) -> Part:
        number, said = pick(dice, COUNTS)
        window = dice.choice(list(WINDOWS)[1::2] if other else list(WINDOWS))
        when = dice.choice(WINDOWS[window])
        noun, fact = "transactions", f"{entity}_count_{window}"
        if other:
            noun, fact = f"{dice.choice(('different', 'distinct'))} {other}s", f"{entity}_distinct_{other}_{window}"
        means, words = dice.choice(
            [
                ("gt", f"more than {said}"),
                ("ge", f"at least {said}"),
                ("ge", f"{said} or more"),
                ("lt", f"fewer than {said}"),
                ("le", f"no more than {said}"),
            ]
        )
        if number == 1 and not words.endswith("more"):
            noun = noun.removesuffix("s")
        deniable = not words.startswith("no ")
        return Part(
            f"{entity}_velocity",
            f"{means}('{fact}', {number})",
            clause=(f"there are {words} {noun} of the {entity} {when}", f"the {entity} has {words} {noun} {when}"),
            denied=(f"the {entity} does not have {words} {noun} {when}",) if deniable else (),
            bare=(f"{words} {noun} of the {entity} {when}",),
        )

    return make


def known_frauds(entity: str) -> Maker:
    def make(dice: Random) -> Part:
        window = dice.choice(list(WINDOWS))
        when = dice.choice(WINDOWS[window])
        fact = f"{entity}_known_frauds_{window}"
        means, words = dice.choice(
            [
                (f"eq('{fact}', 0)", "no known frauds"),
                (f"ge('{fact}', 1)", "at least one known fraud"),
                (f"ge('{fact}', 2)", "two or more known frauds"),
                (f"gt('{fact}', 3)", "more than 3 known frauds"),
            ]
        )
        clauses = (f"the {entity} has {words} {when}", f"the {entity} had {words} {when}")
        return Part(f"{entity}_frauds", means, clauses, bare=(f"{words} of the {entity} {when}",))

    return make


def money_of(entity: str, table: Figures = MONEY) -> Maker:
    """What an entity spent in a window, and the amount against what it spends."""

    def make(dice: Random) -> Part:
        window = dice.choice(list(WINDOWS))
        when, span = (
            dice.choice(WINDOWS[window]),
            {"1h": "1 hour", "24h": "24 hour", "7d": "7 day", "30d": "30 day"}[window],
        )
        kind, name = dice.choice([("sum", "total"), ("mean", "average"), ("max", "maximum")])
        fact = f"{entity}_{kind}_{window}"
        if dice.random() < 0.4:
            said = dice.choice(("above", "more than", "higher than"))
            words = f"{said} the {entity}'s {span} {name}"
            return Part(
                "amount",
                f"gt('amount', fact('{fact}'))",
                (f"the amount is {words}",),
                (f"the amount is not {words}",),
                (f"amount {words}",),
            )
        said, means = comparison(dice, fact, table)
        noun = f"{entity}'s {span} {name}"
        total = (
            (f"the {entity} spent {said} {when}",)
            if kind == "sum" and said.startswith(("more than", "less than", "over"))
            else ()
        )
        return Part(
            f"{entity}_money",
            means,
            (f"the {noun} is {said}", *total),
            (f"the {noun} is not {said}",),
            (f"{noun} {said}",),
        )

    return make


def since_last(entity: str) -> Maker:
    def make(dice: Random) -> Part:
        number, said = pick(dice, HOURS)
        fact = f"{entity}_hours_since_last"
        means, words = dice.choice(
            [("lt", "less than"), ("gt", "more than"), ("ge", "at least"), ("le", "no more than")]
        )
        clause = f"the last transaction of the {entity} was {words} {said} ago"
        denied = () if words.startswith("no") else (clause.replace(" was ", " was not "),)
        return Part(
            f"{entity}_last",
            f"{means}('{fact}', {number})",
            (clause, f"the {entity}'s last transaction was {words} {said} ago"),
            denied,
        )

    return make


def newness(entity: str, other: str) -> Maker:
    fact = f"{entity}_new_{other}"
    a = "an" if entity[0] in "aeiou" else "a"
    return flag(
        fact,
        (
            f"the {entity} is new to the {other}",
            f"the {other} has never seen the {entity}",
            f"the {entity} has never used the {other}",
        ),
        (
            f"the {entity} is not new to the {other}",
            f"the {entity} isn't new to the {other}",
            f"the {other} has seen the {entity} before",
        ),
        bare=(f"{a} {entity} that is new to the {other}", f"{a} {entity} new to the {other}"),
        not_bare=(f"{a} {entity} that is not new to the {other}",),
        after=(f"with {a} {entity} that is new to the {other}",),
    )


@dataclass(frozen=True)
class Bands:
    """A fact whose values are ranges of a whole number."""

    fact: str
    noun: str
    ranges: dict[str, tuple[float, float]]
    ask: tuple[int, ...]
    clause: str = "there are {}"
    denied: str = "there are not {}"
    after: str = "with {}"
    bare: str = "{}"
    more: Words = ("more than {n} {noun}",)
    least: Words = ("at least {n} {noun}", "{n} or more {noun}")
    fewer: Words = ("fewer than {n} {noun}", "less than {n} {noun}")
    most: Words = ("at most {n} {noun}", "no more than {n} {noun}", "up to {n} {noun}")
    span: Words = ("{low} to {n} {noun}", "between {low} and {n} {noun}")

    def said(self, dice: Random, sayable: bool) -> tuple[str, str]:
        """Words that do or do not end where a band ends, and their meaning."""
        while True:
            low, high = 0.0, float("inf")
            start, number = sorted(dice.sample(self.ask, 2))
            kind = dice.choice(("more", "least", "fewer", "most", "span"))
            words = dice.choice(getattr(self, kind))
            low = {"more": number + 1, "least": number, "span": start}.get(kind, low)
            high = {"fewer": number - 1, "most": number, "span": number}.get(kind, high)
            inside = [name for name, (a, b) in self.ranges.items() if low <= a and b <= high]
            cut = [name for name, (a, b) in self.ranges.items() if name not in inside and a <= high and low <= b]
            if bool(cut) is sayable or (not inside and sayable) or len(inside) == len(self.ranges):
                continue
            text = words.format(n=number, low=start, noun=self.noun)
            return text, f"isin('{self.fact}', {inside!r})" if sayable else UNSAYABLE

    def make(self, dice: Random) -> Part:
        text, means = self.said(dice, sayable=True)
        deniable = not text.startswith(("no ", "up to")) and " or " not in text
        return Part(
            self.fact,
            means,
            (self.clause.format(text),),
            (self.denied.format(text),) if deniable else (),
            bare=(self.bare.format(text),),
            not_bare=(self.bare.format(f"not {text}"),) if deniable else (),
            after=(self.after.format(text),) if self.after else (),
        )


INF = float("inf")
CLAIMS = Bands(
    "PastNumberOfClaims",
    "past claims",
    {"none": (0, 0), "1": (1, 1), "2 to 4": (2, 4), "more than 4": (5, INF)},
    (1, 2, 3, 4, 5),
)
CARS = Bands(
    "NumberOfCars",
    "cars",
    {"1 vehicle": (1, 1), "2 vehicles": (2, 2), "3 to 4": (3, 4), "5 to 8": (5, 8), "more than 8": (9, INF)},
    (1, 2, 3, 4, 5, 6, 8, 9),
)
VEHICLE_AGE = Bands(
    "AgeOfVehicle",
    "years",
    {"new": (0, 1), **{f"{each} years": (each, each) for each in range(2, 8)}, "more than 7": (8, INF)},
    (2, 3, 4, 5, 6, 7),
    clause="the vehicle is {} old",
    denied="the vehicle is not {} old",
    after="",
    bare="vehicle {} old",
)
PRICES = ("less than 20000", "20000 to 29000", "30000 to 39000", "40000 to 59000", "60000 to 69000", "more than 69000")


def vehicle_price(dice: Random) -> Part:
    """The price against a round figure: whether 39,500 is in "30000 to 39000" is not certain."""
    index = dice.choice((1, 2, 3, 4))
    figure = int(PRICES[index].split()[0])
    number = dice.choice((f"{figure:,}", f"{figure}", f"${figure:,}", f"{figure // 1000}k"))
    above, said = dice.choice(
        [
            (True, f"at least {number}"),
            (True, f"{number} or more"),
            (False, f"under {number}"),
            (False, f"below {number}"),
        ]
    )
    means = f"isin('VehiclePrice', {list(PRICES[index:] if above else PRICES[:index])!r})"
    denied = () if " or " in said else (f"the vehicle price is not {said}",)
    return Part("VehiclePrice", means, (f"the vehicle price is {said}",), denied, (f"vehicle price {said}",))


SUPPLEMENTS = Bands(
    "NumberOfSuppliments",
    "supplements",
    {"none": (0, 0), "1 to 2": (1, 2), "3 to 5": (3, 5), "more than 5": (6, INF)},
    (1, 2, 3, 4, 5, 6),
)
BANDS = (CLAIMS, CARS, VEHICLE_AGE, SUPPLEMENTS)
