"""Sentences with a certain meaning, made from parts: what joins them, what says the verdict, what stands around."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from tests.rules import misreading_parts as parts
from tests.rules.misreading_parts import AMBIGUOUS, UNSAYABLE, Maker, Part, Words, flag, value

from acefraud.rules.english import read_condition

DECLINE, APPROVE, NEITHER = frozenset({"DECLINE"}), frozenset({"APPROVE"}), frozenset({None})
Verdicts = frozenset[str | None]

WORLDS: dict[str, list[Maker]] = {
    "texts": [
        parts.amount(),
        parts.amount(),
        flag(
            "vpn",
            ("the customer uses a VPN", "a VPN is used", "there is a VPN"),
            ("the customer does not use a VPN", "no VPN is used", "there is no VPN", "the customer isn't using a VPN"),
            bare=("VPN", "a VPN"),
            not_bare=("no VPN", "without a VPN", "not a VPN"),
            after=("with a VPN",),
            not_after=("without a VPN", "with no VPN"),
        ),
        flag(
            "emulator",
            ("an emulator is used", "the customer uses an emulator"),
            ("no emulator is used", "the customer doesn't use an emulator", "there is no emulator"),
            bare=("emulator", "an emulator"),
            not_bare=("no emulator", "without an emulator"),
            after=("with an emulator",),
            not_after=("without an emulator",),
        ),
        flag(
            "vip",
            ("the customer is a VIP",),
            ("the customer is not a VIP", "the customer isn't a VIP", "the customer is no VIP"),
            bare=("VIP", "a VIP"),
            not_bare=("not a VIP", "no VIP"),
            after=("of VIPs", "by VIPs"),
        ),
        flag(
            "verified",
            ("the customer is verified",),
            ("the customer is not verified", "the customer isn't verified"),
            bare=("verified",),
            not_bare=("not verified",),
        ),
        flag(
            "new_payee",
            ("the payee is new",),
            ("the payee is not new", "the payee isn't new"),
            bare=("new payee", "a new payee"),
            not_bare=("no new payee", "not a new payee"),
            after=("to a new payee",),
        ),
        flag(
            "new_device",
            ("the device is new", "it is a new device"),
            ("the device is not new", "the device isn't new"),
            bare=("new device",),
            not_bare=("no new device", "not a new device"),
            after=("from a new device",),
        ),
        flag(
            "password_reset",
            ("there was a recent password reset",),
            ("there was no recent password reset",),
            bare=("recent password reset",),
            not_bare=("no recent password reset",),
        ),
        parts.age("account", "account", "account_age_days", parts.DAYS),
        parts.age("device_age", "device", "device_age_days", parts.DAYS),
        parts.how_many("chargebacks", "chargebacks", "chargebacks", "the customer has", "the customer does not have"),
        parts.how_many("failed", "failed attempts", "failed_attempts", "there were", "there were not"),
        value("channel", "channel", ["online", "in store", "transfer"]),
        value(
            "merchant_category",
            "merchant category",
            ["electronics", "fashion", "gaming", "travel", "groceries", "fuel"],
        ),
        value("payment_method", "payment method", ["wallet", "bank transfer", "prepaid card"]),
        parts.time_of_day,
        parts.usual("amount", "amount_to_usual", ""),
    ],
    "ecommerce": [
        parts.amount(),
        parts.amount(),
        value("browser", "browser", ["Chrome", "IE", "FireFox", "Safari", "Opera"]),
        value("browser", "browser", ["Chrome", "IE", "FireFox", "Safari", "Opera"]),
        value("source", "source", ["SEO", "Ads", "Direct"]),
        parts.measure("age", "age", "age", {18: ("18",), 21: ("21",), 40: ("40", "forty"), 60: ("60", "sixty")}),
        parts.velocity("device"),
        parts.known_frauds("device"),
        parts.money_of("device"),
        parts.since_last("device"),
        parts.usual("amount", "device_amount_to_usual", " of the device"),
        parts.day,
        parts.time_of_day,
        parts.day_and_time,
    ],
    "vehicle": [
        *(bands.make for bands in parts.BANDS),
        parts.CLAIMS.make,
        parts.vehicle_price,
        flag(
            "WitnessPresent",
            ("there is a witness", "a witness is present"),
            ("there is no witness", "no witness is present", "there isn't a witness"),
            bare=("witness present", "a witness"),
            not_bare=("no witness", "without a witness"),
            after=("with a witness",),
            not_after=("without a witness", "with no witness"),
        ),
        flag(
            "PoliceReportFiled",
            ("a police report was filed", "there is a police report"),
            ("no police report was filed", "there is no police report", "a police report was not filed"),
            bare=("police report filed", "a police report"),
            not_bare=("no police report", "without a police report"),
            after=("with a police report",),
            not_after=("without a police report",),
        ),
        value("MaritalStatus", "marital status", ["Married", "Single", "Divorced"]),
        value("AccidentArea", "accident area", ["Urban", "Rural"]),
        value("BasePolicy", "base policy", ["Collision", "Liability", "All Perils"]),
        value("VehicleCategory", "vehicle category", ["Sedan", "Sport", "Utility"]),
        value("Make", "make", ["Honda", "Toyota", "Mazda", "Ford", "Pontiac"]),
        value("Fault", "fault", ["Policy Holder", "Third Party"]),
        parts.measure(
            "Deductible",
            "deductible",
            "Deductible",
            {300: ("300", "$300"), 400: ("400", "$400", "four hundred"), 500: ("500", "$500")},
        ),
        parts.measure("DriverRating", "driver rating", "DriverRating", {1: ("1", "one"), 2: ("2",), 3: ("3", "three")}),
    ],
    "evalml": [
        parts.amount(),
        parts.amount(),
        value("provider", "provider", ["Mastercard", "Maestro", "Discover", "American Express"]),
        value("country", "country", ["US", "DE", "FR", "BR"]),
        flag(
            "customer_present",
            ("the customer is present",),
            ("the customer is not present", "the customer isn't present"),
            bare=("customer present",),
            not_bare=("customer not present",),
        ),
        parts.velocity("card"),
        parts.velocity("card", "store"),
        parts.velocity("store"),
        parts.known_frauds("store"),
        parts.money_of("card"),
        parts.since_last("card"),
        parts.newness("card", "store"),
        parts.usual("amount", "card_amount_to_usual", " of the card"),
        parts.day,
        parts.time_of_day,
        parts.day_and_time,
    ],
    "cloudwalk": [
        parts.amount(),
        parts.amount(),
        parts.velocity("card"),
        parts.velocity("card", "merchant"),
        parts.velocity("user", "card"),
        parts.known_frauds("merchant"),
        parts.known_frauds("card"),
        parts.money_of("merchant"),
        parts.money_of("user"),
        parts.since_last("user"),
        parts.newness("card", "merchant"),
        parts.newness("device", "user"),
        parts.day,
        parts.time_of_day,
        parts.day_and_time,
        flag(
            "card in list vip",
            ("the card is in list vip", "the card is on the list vip"),
            ("the card is not in list vip", "the card is not on the list vip"),
            bare=("card in list vip",),
            not_bare=("card not in list vip",),
        ),
        flag(
            "merchant in list blocked",
            ("the merchant is in list blocked",),
            ("the merchant is not in list blocked", "the merchant isn't in list blocked"),
            bare=("merchant in list blocked",),
            not_bare=("merchant not in list blocked",),
        ),
    ],
    "bri_atm": [
        parts.amount(parts.MILLIONS),
        parts.velocity("account"),
        parts.velocity("account", "merchant"),
        parts.velocity("merchant", "account"),
        parts.known_frauds("merchant"),
        parts.money_of("account", parts.MILLIONS),
        parts.newness("account", "merchant"),
        parts.since_last("account"),
        parts.day,
        parts.time_of_day,
    ],
}


@dataclass(frozen=True)
class Sentence:
    """A sentence, and what it means in its world."""

    template: str
    world: str
    text: str
    means: str
    argues: Verdicts = NEITHER
    always: str | None = None


@dataclass(frozen=True)
class Said:
    """A condition in words with its meaning."""

    words: str
    means: str


Condition = Callable[[Random, str], Said]


def some(dice: Random, world: str, *fields: str) -> list[Part]:
    """Parts about different things, each with wordings of the kind asked for."""
    chosen: list[Part] = []
    for _ in range(200):
        if len(chosen) == len(fields):
            return chosen
        part = dice.choice(WORLDS[world])(dice)
        if getattr(part, fields[len(chosen)]) and part.about not in {each.about for each in chosen}:
            chosen.append(part)
    return some(dice, world, *fields)  # what was chosen first left nothing for the last


def joined(pattern: str, means: str) -> Condition:
    """A condition from a pattern such as ``"{a} and {b!}"``: lower-case names are parts, and ``!`` denies one.

    Parts are clauses. In a pattern that begins with ``~`` they are bare: "amount over 500".
    """
    style = {True: ("bare", "not_bare"), False: ("clause", "denied")}[pattern.startswith("~")]
    pattern = pattern.removeprefix("~")
    names = [each for each in "abcd" if f"{{{each}" in pattern]

    def make(dice: Random, world: str) -> Said:
        denied = {name: f"{{{name}!}}" in pattern for name in names}
        chosen = some(dice, world, *(style[denied[name]] for name in names))
        words = {
            name: dice.choice(getattr(part, style[denied[name]])) for name, part in zip(names, chosen, strict=True)
        }
        meant = {name: part.means for name, part in zip(names, chosen, strict=True)}
        if len(names) > 1 and any(words[name].startswith("no ") and not denied[name] for name in names):
            return make(dice, world)  # what follows "no chargebacks and" might be denied too
        text = pattern.replace("!}", "}").format(**words)
        return Said(text, means if means == AMBIGUOUS else means.format(**meant))

    return make


JOINS: dict[str, list[tuple[str, str]]] = {
    "one": [("{a}", "{a}"), ("~{a}", "{a}")],
    "denied": [("{a!}", "NOT({a})"), ("~{a!}", "NOT({a})")],
    "and": [
        ("{a} and {b}", "AND({a}, {b})"),
        ("~{a} and {b}", "AND({a}, {b})"),
        ("~{a}, {b}", "AND({a}, {b})"),
        ("{a} and {b} and {c}", "AND({a}, {b}, {c})"),
        ("{a}, {b} and {c}", "AND({a}, {b}, {c})"),
        ("{a}, {b}, and {c}", "AND({a}, {b}, {c})"),
        ("{a} and also {b}", "AND({a}, {b})"),
        ("~both {a} and {b}", "AND({a}, {b})"),
        ("~{a} plus {b}", "AND({a}, {b})"),
        ("{a}, and {b}", "AND({a}, {b})"),
        ("all of these hold: {a}, {b}", "AND({a}, {b})"),
        ("~{a} & {b}", "AND({a}, {b})"),
        ("{a} while {b}", "AND({a}, {b})"),
        ("{a} and at the same time {b}", "AND({a}, {b})"),
    ],
    "or": [
        ("{a} or {b}", "OR({a}, {b})"),
        ("~{a} or {b}", "OR({a}, {b})"),
        ("either {a} or {b}", "OR({a}, {b})"),
        ("~either {a} or {b}", "OR({a}, {b})"),
        ("{a}, {b} or {c}", "OR({a}, {b}, {c})"),
        ("{a} or {b} or {c}", "OR({a}, {b}, {c})"),
        ("{a}, or {b}", "OR({a}, {b})"),
        ("{a} or if {b}", "OR({a}, {b})"),
        ("{a} or when {b}", "OR({a}, {b})"),
        ("{a}, {b}, or {c}", "OR({a}, {b}, {c})"),
    ],
    "and not": [
        ("{a} and {b!}", "AND({a}, NOT({b}))"),
        ("{a!} and {b}", "AND(NOT({a}), {b})"),
        ("~{a} and {b!}", "AND({a}, NOT({b}))"),
        ("~{a} but {b!}", "AND({a}, NOT({b}))"),
        ("{a} but {b!}", "AND({a}, NOT({b}))"),
        ("~{a}, {b!}", "AND({a}, NOT({b}))"),
        ("{a!} and {b!}", "AND(NOT({a}), NOT({b}))"),
        ("{a!}, {b!} and {c}", "AND(NOT({a}), NOT({b}), {c})"),
        ("~{a}, {b} but {c!}", "AND({a}, {b}, NOT({c}))"),
        ("{a} although {b!}", "AND({a}, NOT({b}))"),
    ],
    "or not": [
        ("{a} or {b!}", "OR({a}, NOT({b}))"),
        ("{a!} or {b}", "OR(NOT({a}), {b})"),
        ("{a!} or {b!}", "OR(NOT({a}), NOT({b}))"),
        ("either {a!} or {b}", "OR(NOT({a}), {b})"),
        ("~{a} or {b!}", "OR({a}, NOT({b}))"),
    ],
    "neither nor": [
        ("~neither {a} nor {b}", "AND(NOT({a}), NOT({b}))"),
        ("~{a} and neither {b} nor {c}", "AND({a}, NOT({b}), NOT({c}))"),
    ],
    "unless": [
        ("{a} unless {b}", "AND({a}, NOT({b}))"),
        ("{a}, unless {b}", "AND({a}, NOT({b}))"),
        ("~{a} unless {b}", "AND({a}, NOT({b}))"),
        ("{a} and {b} unless {c}", "AND({a}, {b}, NOT({c}))"),
        ("{a} or {b}, unless {c}", "AND(OR({a}, {b}), NOT({c}))"),
        ("{a} unless {b!}", "AND({a}, {b})"),
        ("{a!} unless {b}", "AND(NOT({a}), NOT({b}))"),
        ("~{a}, {b}, unless {c}", "AND({a}, {b}, NOT({c}))"),
    ],
    "unless or": [
        ("{a} unless {b} or {c}", "AND({a}, NOT(OR({b}, {c})))"),
        ("{a}, unless {b} or {c}", "AND({a}, NOT(OR({b}, {c})))"),
        ("{a} unless {b} and {c}", "AND({a}, NOT(AND({b}, {c})))"),
        ("{a} unless either {b} or {c}", "AND({a}, NOT(OR({b}, {c})))"),
        ("{a} unless both {b} and {c}", "AND({a}, NOT(AND({b}, {c})))"),
        ("~{a} unless {b} or {c}", "AND({a}, NOT(OR({b}, {c})))"),
        ("{a} unless {b} and {c!}", "AND({a}, NOT(AND({b}, NOT({c}))))"),
        ("{a} unless {b} or {c!}", "AND({a}, NOT(OR({b}, NOT({c}))))"),
        ("{a} unless {b} but {c!}", "AND({a}, NOT(AND({b}, NOT({c}))))"),
        ("{a} and {b}, unless {c} or {d}", "AND({a}, {b}, NOT(OR({c}, {d})))"),
    ],
    "except": [
        ("{a} except when {b}", "AND({a}, NOT({b}))"),
        ("{a}, except if {b}", "AND({a}, NOT({b}))"),
        ("{a} but not if {b}", "AND({a}, NOT({b}))"),
        ("{a}, but not when {b}", "AND({a}, NOT({b}))"),
        ("{a} except if {b} or {c}", "AND({a}, NOT(OR({b}, {c})))"),
        ("{a} except when {b} and {c}", "AND({a}, NOT(AND({b}, {c})))"),
        ("{a} but only if {b}", "AND({a}, {b})"),
        ("{a}, provided that {b}", "AND({a}, {b})"),
        ("{a}, but not if {b} or {c}", "AND({a}, NOT(OR({b}, {c})))"),
        ("{a} or {b}, except when {c}", "AND(OR({a}, {b}), NOT({c}))"),
        ("{a}, but only when {b!}", "AND({a}, NOT({b}))"),
    ],
    "comma decides": [
        ("{a} or {b}, and {c}", "AND(OR({a}, {b}), {c})"),
        ("{a} and {b}, or {c}", "OR(AND({a}, {b}), {c})"),
        ("{a}, and {b} or {c}", "AND({a}, OR({b}, {c}))"),
        ("{a}, or {b} and {c}", "OR({a}, AND({b}, {c}))"),
        ("~{a} or {b}, and {c}", "AND(OR({a}, {b}), {c})"),
        ("~{a} and {b}, or {c}", "OR(AND({a}, {b}), {c})"),
        ("{a} or {b}, and {c!}", "AND(OR({a}, {b}), NOT({c}))"),
        ("{a} and {b!}, or {c}", "OR(AND({a}, NOT({b})), {c})"),
        ("{a} and {b}, or {c} and {d}", "OR(AND({a}, {b}), AND({c}, {d}))"),
    ],
    "both and either": [
        ("either {a} or {b}, and {c}", "AND(OR({a}, {b}), {c})"),
        ("{a} and either {b} or {c}", "AND({a}, OR({b}, {c}))"),
        ("({a} or {b}) and {c}", "AND(OR({a}, {b}), {c})"),
        ("{a} and ({b} or {c})", "AND({a}, OR({b}, {c}))"),
        ("{a}, and either {b} or {c}", "AND({a}, OR({b}, {c}))"),
        ("({a} and {b}) or {c}", "OR(AND({a}, {b}), {c})"),
        ("~({a} or {b}) and {c}", "AND(OR({a}, {b}), {c})"),
        ("~{a} and ({b} or {c!})", "AND({a}, OR({b}, NOT({c})))"),
        ("not ({a} or {b}) and {c}", "AND(NOT(OR({a}, {b})), {c})"),
        ("~({a} or {b}), but {c!}", "AND(OR({a}, {b}), NOT({c}))"),
    ],
    "ambiguous and or": [
        ("{a} and {b} or {c}", AMBIGUOUS),
        ("{a} or {b} and {c}", AMBIGUOUS),
        ("~{a} and {b} or {c}", AMBIGUOUS),
        ("~{a} or {b} and {c}", AMBIGUOUS),
        ("{a} unless {b} and {c} or {d}", AMBIGUOUS),
        ("{a} or {b} and {c!}", AMBIGUOUS),
        ("{a!} or {b} and {c}", AMBIGUOUS),
        ("{a}, {b} or {c} and {d}", AMBIGUOUS),
        ("{a} and {b!} or {c}", AMBIGUOUS),
        ("{a} or {b} but {c!}", AMBIGUOUS),
    ],
}

CLAUSE_VERDICTS: list[tuple[str, Verdicts, str | None]] = [
    ("Decline if {x}.", DECLINE, None),
    ("Block when {x}", DECLINE, None),
    ("Reject whenever {x}.", DECLINE, None),
    ("decline it if {x}", DECLINE, None),
    ("If {x}, decline.", DECLINE, None),
    ("If {x} then decline", DECLINE, None),
    ("When {x}, block it.", DECLINE, None),
    ("If {x}, the transaction should be declined.", DECLINE, None),
    ("It is fraud if {x}.", DECLINE, None),
    ("It looks fishy when {x}.", DECLINE, None),
    ("It is suspicious if {x}.", DECLINE, None),
    ("If {x}, it is suspicious.", DECLINE, None),
    ("If {x} it looks fishy", DECLINE, None),
    ("Always decline if {x}.", DECLINE, "DECLINE"),
    ("Never approve if {x}.", DECLINE, "DECLINE"),
    ("Do not approve if {x}.", DECLINE | NEITHER, None),
    ("Approve if {x}.", APPROVE, None),
    ("If {x}, let it through.", APPROVE, None),
    ("If {x}, it can be approved.", APPROVE, None),
    ("Always approve if {x}.", APPROVE, "APPROVE"),
    ("If {x}, there is nothing to worry about.", APPROVE, None),
    ("It is fine if {x}.", APPROVE, None),
    ("Do not decline if {x}.", APPROVE | NEITHER, None),
    ("If {x}, it is not fraud.", APPROVE | NEITHER, None),
    ("Send to review if {x}.", NEITHER, None),
    ("If {x}, send it to review.", NEITHER, None),
    ("{x}", NEITHER, None),
]
BARE_VERDICTS: list[tuple[str, Verdicts, str | None]] = [
    ("{x}: decline", DECLINE, None),
    ("{x} -> decline", DECLINE, None),
    ("{x} => DECLINE", DECLINE, None),
    ("{x} = fraud", DECLINE, None),
    ("{x}? Decline.", DECLINE, None),
    ("{x}, block it", DECLINE, None),
    ("Decline: {x}", DECLINE, None),
    ("Suspicious: {x}.", DECLINE, None),
    ("{x}: fraud", DECLINE, None),
    ("{x} - decline", DECLINE, None),
    ("{x}: approve", APPROVE, None),
    ("{x} -> approve", APPROVE, None),
    ("{x}? Fine, approve.", APPROVE, None),
    ("Approve: {x}", APPROVE, None),
    ("{x}: always decline", DECLINE, "DECLINE"),
    ("{x}: review", NEITHER, None),
    ("{x}", NEITHER, None),
]
NOUN_VERDICTS: list[tuple[str, Verdicts, str | None]] = [
    ("Decline {x}.", DECLINE, None),
    ("Block all {x}", DECLINE, None),
    ("Please reject {x}.", DECLINE, None),
    ("{x} are suspicious.", DECLINE, None),
    ("{x} should be declined", DECLINE, None),
    ("{x} must be blocked.", DECLINE, None),
    ("{x} look fishy", DECLINE, None),
    ("{x} are fraud", DECLINE, None),
    ("Never approve {x}.", DECLINE, "DECLINE"),
    ("Always decline {x}", DECLINE, "DECLINE"),
    ("Don't approve {x}", DECLINE | NEITHER, None),
    ("{x} should never be approved", DECLINE, "DECLINE"),
    ("{x} must not be approved", DECLINE | NEITHER, None),
    ("Approve {x}.", APPROVE, None),
    ("{x} can be approved", APPROVE, None),
    ("{x} are fine", APPROVE, None),
    ("{x} are nothing to worry about", APPROVE, None),
    ("Let {x} through.", APPROVE, None),
    ("Do not decline {x}", APPROVE | NEITHER, None),
    ("{x} are not suspicious", APPROVE | NEITHER, None),
    ("Send {x} to review", NEITHER, None),
    ("Review {x}.", NEITHER, None),
    ("{x} need a second look", NEITHER, None),
]
BEFORE = (
    "Hi team, ",
    "Hello, ",
    "Good morning, ",
    "Good evening all, ",
    "FYI: ",
    "As discussed, ",
    "In my experience, ",
    "Please note: ",
    "Dear colleagues, ",
    "New rule: ",
    "Quick one: ",
    "I think: ",
    "Rule 12: ",
    "To be clear, ",
    "Happy Monday! ",
    "Ticket 4711: ",
    "From Friday's meeting: ",
    "Honestly, ",
)
AFTER = (
    " Thanks!",
    " Thank you.",
    " No discussion.",
    " These are burners.",
    " Cheers, Tom",
    " Have a good weekend!",
    " Good night.",
    " Trust me.",
    " We lost 2k on this last month.",
    " That's all.",
    " See you on Monday.",
    " It is urgent.",
    " I saw 3 of these today.",
    " No questions asked.",
    " Not a joke.",
)


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def wrapped(dice: Random, said: Said, bare: bool) -> tuple[str, Verdicts, str | None]:
    pattern, argues, always = dice.choice(BARE_VERDICTS if bare else CLAUSE_VERDICTS)
    text = pattern.format(x=said.words)
    return (upper_first(text) if dice.random() < 0.6 else text), argues, always


def of_joins(name: str) -> Callable[[Random, str], Sentence]:
    def make(dice: Random, world: str) -> Sentence:
        pattern, means = dice.choice(JOINS[name])
        said = joined(pattern, means)(dice, world)
        text, argues, always = wrapped(dice, said, pattern.startswith("~"))
        return Sentence(name, world, text, said.means, argues, always)

    return make


def verdict_about_nouns(dice: Random, world: str) -> Sentence:
    """ "Decline payments over 500 without a VPN": a noun with up to three things after it."""
    noun = "claims" if world == "vehicle" else dice.choice(("payments", "transactions"))
    fields = ["after"] * dice.choice((1, 2, 2, 3 if world in ("texts", "vehicle") else 2))
    if dice.random() < 0.5:
        fields[-1] = "not_after"
    chosen = some(dice, world, *fields)
    words = [dice.choice(getattr(part, field)) for part, field in zip(chosen, fields, strict=True)]
    means = [
        part.means if field == "after" else f"NOT({part.means})" for part, field in zip(chosen, fields, strict=True)
    ]
    pattern, argues, always = dice.choice(NOUN_VERDICTS)
    text = upper_first(pattern.format(x=f"{noun} {' '.join(words)}"))
    return Sentence("nouns", world, text, f"AND({', '.join(means)})", argues, always)


def two_kinds_of_nouns(dice: Random, world: str) -> Sentence:
    """ "Decline payments over 900 and payments at night": either, or both at once?"""
    noun = "claims" if world == "vehicle" else "payments"
    a, b = some(dice, world, "after", "after")
    pattern, argues, always = dice.choice(NOUN_VERDICTS)
    text = pattern.format(x=f"{noun} {dice.choice(a.after)} and {noun} {dice.choice(b.after)}")
    return Sentence("ambiguous nouns", world, upper_first(text), AMBIGUOUS, argues, always)


def negation_over_and(dice: Random, world: str) -> Sentence:
    """ "not a VPN and an emulator": is the second denied too? The engine's own English is not: it has one meaning."""
    said = "no recent password reset or an emulator"
    while read_condition(said) is not None:
        a, b = some(dice, world, "not_bare", "bare")
        if a.means.startswith("flag") and b.means.startswith("flag"):
            said = f"{dice.choice(a.not_bare)} {dice.choice(('and', 'or'))} {dice.choice(b.bare)}"
    pattern, argues, always = dice.choice(BARE_VERDICTS)
    text = pattern.format(x=said)
    return Sentence("ambiguous negation", world, text, AMBIGUOUS, argues, always)


def number(dice: Random, world: str) -> Sentence:
    """Every way to compare the amount."""
    table = parts.MILLIONS if world == "bri_atm" else parts.MONEY
    words, means = parts.any_comparison(dice, "amount", table)
    bare = dice.random() < 0.5
    text, argues, always = wrapped(dice, Said(f"amount {words}" if bare else f"the amount is {words}", means), bare)
    return Sentence("numbers", world, text, means, argues, always)


def number_and(dice: Random, world: str) -> Sentence:
    """A comparison with two figures beside another part."""
    table = parts.MILLIONS if world == "bri_atm" else parts.MONEY
    words, means = parts.any_comparison(dice, "amount", table)
    field = dice.choice(("clause", "clause", "denied"))
    part = some(dice, world, field)[0]
    if part.about == "amount" or (means.startswith("OR") and part.about != "amount"):
        return number(dice, world)
    other, meant = dice.choice(getattr(part, field)), part.means if field == "clause" else f"NOT({part.means})"
    said = f"the amount is {words} and {other}" if dice.random() < 0.5 else f"{other} and the amount is {words}"
    text, argues, always = wrapped(dice, Said(said, ""), bare=False)
    return Sentence("numbers beside others", world, text, f"AND({means}, {meant})", argues, always)


def band(dice: Random, world: str) -> Sentence:
    bands = dice.choice(parts.BANDS)
    text, means = bands.said(dice, sayable=bands is parts.VEHICLE_AGE or dice.random() < 0.6)
    said = bands.clause.format(text)
    name = "bands"
    if means == UNSAYABLE:
        name = "inside a band"
    elif dice.random() < 0.4 and bands is not parts.VEHICLE_AGE:
        first, second = dice.sample(list(bands.ranges), 2)
        if "none" not in (first, second):
            said = bands.clause.format(f"{first.split(' veh')[0]} or {second.split(' veh')[0]} {bands.noun}")
            means, name = f"isin('{bands.fact}', {[first, second]!r})", "two bands"
    sentence, argues, always = wrapped(dice, Said(said, means), bare=False)
    return Sentence(name, world, sentence, means, argues, always)


def time(dice: Random, world: str) -> Sentence:
    """When it happens, affirmed or denied."""
    part = dice.choice((parts.day, parts.time_of_day, parts.day_and_time, parts.day_and_time))(dice)
    denied = dice.random() < 0.35
    bare = dice.random() < 0.5 and (not denied or bool(part.not_bare))
    words = dice.choice(
        {
            (True, True): part.not_bare,
            (True, False): part.bare,
            (False, True): part.denied,
            (False, False): part.clause,
        }[bare, denied]
    )
    means = f"NOT({part.means})" if denied else part.means
    text, argues, always = wrapped(dice, Said(words, means), bare)
    return Sentence("times, denied" if denied else "times", world, text, means, argues, always)


def time_exception(dice: Random, world: str) -> Sentence:
    """ "at night except on Sundays", "on Mondays but not in the morning"."""
    first, other = dice.sample((parts.day, parts.time_of_day), 2)
    a, b = first(dice), other(dice)
    # which day a night belongs to that is cut by midnight is not certain here
    while any(f"hours({each}" in a.means + b.means for each in ("22", "23")):
        a, b = first(dice), other(dice)
    link = dice.choice(("except", "but not", "unless it is"))
    b_words = dice.choice([each for each in b.bare if "s and " not in each])
    said = f"{dice.choice(a.bare)} {link} {b_words}"
    means = f"AND({a.means}, NOT({b.means}))"
    text, argues, always = wrapped(dice, Said(said, means), bare=True)
    return Sentence("times with exceptions", world, text, means, argues, always)


def uncertain_night(dice: Random, world: str) -> Sentence:
    """Nights whose days English leaves open."""
    words = dice.choice(
        (
            "weekend nights",
            "on weekend nights",
            "at night on weekends",
            "on weekends at night",
        )
    )
    part = some(dice, world, "bare")[0]
    while part.about == "time":
        part = some(dice, world, "bare")[0]
    text, argues, always = wrapped(dice, Said(f"{dice.choice(part.bare)} {words}", AMBIGUOUS), bare=True)
    return Sentence("weekend nights", world, text, AMBIGUOUS, argues, always)


def window_not_kept(dice: Random, world: str) -> Sentence:
    part = some(dice, world, "clause")[0]
    while not part.about.endswith("_velocity"):
        part = some(dice, world, "clause")[0]
    words = dice.choice(part.clause)
    for whens in parts.WINDOWS.values():
        for when in sorted(whens, key=len, reverse=True):
            words = words.replace(when, dice.choice(parts.NOT_KEPT)) if words.endswith(when) else words
    text, argues, always = wrapped(dice, Said(words, UNSAYABLE), bare=False)
    return Sentence("windows not kept", world, text, UNSAYABLE, argues, always)


def night_or_window(dice: Random, world: str) -> Sentence:
    return dice.choice((uncertain_night, window_not_kept))(dice, world)


def remark(dice: Random, world: str) -> Sentence:
    """A sentence of another template with words around it that say nothing."""
    inner = of_joins(dice.choice(("one", "and", "or", "and not", "unless", "denied")))(dice, world)
    if inner.argues == NEITHER:
        return inner
    text = inner.text if inner.text.endswith((".", "!")) else inner.text + "."
    before = dice.choice(BEFORE) if dice.random() < 0.6 else ""
    after = dice.choice(AFTER) if not before or dice.random() < 0.5 else ""
    return replace(inner, template="remarks", text=before + text + after)


def history(dice: Random, world: str) -> Sentence:
    """One thing from history, in all wordings, affirmed or denied."""
    while True:
        part = some(dice, world, "clause")[0]
        if "_" in part.about:
            break
    styles: list[tuple[Words, bool, bool]] = [
        (part.clause, False, False),
        (part.denied, True, False),
        (part.bare, False, True),
        (part.not_bare, True, True),
    ]
    words, denied, bare = dice.choice([style for style in styles if style[0]])
    means = f"NOT({part.means})" if denied else part.means
    text, argues, always = wrapped(dice, Said(dice.choice(words), means), bare)
    return Sentence("history, denied" if denied else "history", world, text, means, argues, always)


ORDERS: list[tuple[str, str, Verdicts]] = [
    ("Unless {b}, decline if {a}.", "AND({a}, NOT({b}))", DECLINE),
    ("Except when {b}, block it if {a}.", "AND({a}, NOT({b}))", DECLINE),
    ("If {a}, decline unless {b}.", "AND({a}, NOT({b}))", DECLINE),
    ("If {a}, decline, unless {b} or {c}.", "AND({a}, NOT(OR({b}, {c})))", DECLINE),
    ("If {a}, approve, but not if {b}.", "AND({a}, NOT({b}))", APPROVE),
    ("When {a}, decline if {b}.", "AND({a}, {b})", DECLINE),
    ("If {a} and {b}, then unless {c} it should be declined.", "AND({a}, {b}, NOT({c}))", DECLINE),
    ("Decline unless {a}.", "NOT({a})", DECLINE),
    ("Decline unless {a} or {b}.", "NOT(OR({a}, {b}))", DECLINE),
    ("Decline unless {a} and {b}.", "NOT(AND({a}, {b}))", DECLINE),
    ("Unless {a}, it is suspicious.", "NOT({a})", DECLINE),
    ("Decline if {a}. Also if {b}.", "OR({a}, {b})", DECLINE),
    ("{a}? Decline, unless {b}.", "AND({a}, NOT({b}))", DECLINE),
    ("Decline if {a}, but approve if {b}.", AMBIGUOUS, DECLINE),
    ("If {a}, decline, otherwise approve.", AMBIGUOUS, DECLINE),
]


def order(dice: Random, world: str) -> Sentence:
    """The verdict between the parts, or the exception before them."""
    pattern, means, argues = dice.choice(ORDERS)
    said = joined(pattern, means)(dice, world)
    name = "two verdicts" if means == AMBIGUOUS else "order of parts"
    return Sentence(name, world, upper_first(said.words), said.means, argues)


EVERYWHERE = tuple(WORLDS)
HISTORY = ("ecommerce", "evalml", "cloudwalk", "bri_atm")
WITH_AMOUNT = ("texts", *HISTORY)
TEMPLATES: list[tuple[Callable[[Random, str], Sentence], tuple[str, ...]]] = [
    *2 * [(of_joins(name), EVERYWHERE) for name in JOINS if not name.startswith("ambiguous")],
    (of_joins("ambiguous and or"), EVERYWHERE),
    *3 * [(verdict_about_nouns, EVERYWHERE)],
    (two_kinds_of_nouns, EVERYWHERE),
    (negation_over_and, ("texts", "vehicle")),
    *2 * [(number, WITH_AMOUNT), (number_and, WITH_AMOUNT), (band, ("vehicle",)), (time, HISTORY), (history, HISTORY)],
    (time_exception, HISTORY),
    (night_or_window, HISTORY),
    *3 * [(remark, EVERYWHERE), (order, EVERYWHERE)],
]


def sentences(count: int, seed: int = 1) -> Iterator[Sentence]:
    """So many different sentences, each template in turn."""
    dice = Random(seed)
    made: set[tuple[str, str]] = set()
    while len(made) < count:
        make, worlds = TEMPLATES[len(made) % len(TEMPLATES)]
        sentence = make(dice, dice.choice(worlds))
        while (sentence.world, sentence.text) in made:
            sentence = make(dice, dice.choice(worlds))
        made.add((sentence.world, sentence.text))
        yield sentence
