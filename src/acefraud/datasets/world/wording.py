"""Whole texts: five kinds of document, each with several ways to open, to order and to join what it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from acefraud.core.transaction import FactValue
from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.facts import Scene
from acefraud.datasets.world.figures import clock
from acefraud.datasets.world.names import KINDS
from acefraud.datasets.world.telling import Voice, clause, mentioned, note, voice_for

_HEADINGS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "account": (("Account", "Customer", "Profile"), (
        "account_age_days", "account_transactions", "transactions_per_month", "days_since_last", "chargebacks",
        "disputes_before", "vip", "business_account", "verified", "kyc_missing", "contact_changed")),
    "spending": (("Spending", "Habits", "Payment details"), (
        "usual_amount", "usual_amount_max", "amount_to_usual", "amount_to_usual_max", "larger_purchases",
        "payment_method", "payment_method_age_days", "prepaid_card", "night")),
    "merchant": (("Merchant", "Counterparty", "Recipient and goods"), (
        "merchant_rating", "fraud_reports", "purchases_at_merchant", "first_time_merchant", "new_payee",
        "funds_forwarded", "crypto", "gift_cards", "address_mismatch")),
    "activity": (("Activity", "Recent activity", "Pace"), (
        "failed_attempts", "declined_before", "velocity", "recent_transactions", "escalating_amounts")),
    "access": (("Access", "Session", "Device and login"), (
        "new_device", "device_age_days", "vpn", "emulator", "remote_access", "password_reset",
        "strong_authentication")),
    "place": (("Location", "Geography", "Place"), (
        "location_change", "distance_km", "high_risk_country", "sanctioned", "impossible_travel", "travel")),
}  # fmt: skip
_CHANNELS: dict[str, tuple[str, ...]] = {
    "online": ("online", "over the internet", "on the website (online)"),
    "in store": ("in store", "at the till in store", "in person in store"),
    "phone order": ("by phone order", "as a phone order", "over the telephone (phone order)"),
    "transfer": ("by transfer", "as a transfer", "by account transfer"),
    "cash machine": ("from a cash machine", "at a cash machine"),
}
_KINDS_BY_CHANNEL = {"cash machine": ("withdrawal", "cash withdrawal"), "transfer": ("transfer", "payment")}
_OPENINGS = (
    "{person} attempts {a}", "{person} is trying to put through {a}", "{person} requested {a}",
    "{person} initiated {a}",
    "{person} submitted {a}", "{a} was requested by {person}", "{a} was started by {person}",
    "there is {a} by {person}",
    "we received {a} from {person}", "the queue holds {a} by {person}",
)  # fmt: skip
_CLOSINGS = (
    "What should we do?", "Please advise.", "Decision needed.", "How should this be handled?", "Awaiting a decision.",
    "Approve or decline?", "Recommended action?", "Please assess the risk.", "Pending review.", "Your call.",
)  # fmt: skip
_JOINS = (" and ", "; ", ", and ", ", while ", ". ")
_SEPARATORS = (" | ", "; ", ", ", " / ", " - ")


def tell(scene: Scene, facts: Mapping[str, FactValue], dice: Dice) -> str:
    """A text that tells most of the known facts, contradicts none, and does not say how it ended."""
    voice = voice_for(scene, facts, dice)
    text = dice.pick(_STYLES)(voice, _ordered(mentioned(facts, dice), dice), dice)
    return f"{text} {dice.pick(_CLOSINGS)}" if dice.chance(0.5) else text


def _ordered(told: Sequence[str], dice: Dice) -> list[list[str]]:
    """The told facts by subject: subjects in any order, and facts in any order within a subject."""
    groups = [[name for name in names if name in told] for _, names in _HEADINGS.values()]
    return [dice.shuffled(group) for group in dice.shuffled(groups) if group]


def _payment(voice: Voice, dice: Dice) -> str:
    """The payment itself, as a noun with what is known of where, when and how."""
    facts = voice.facts
    money = voice.money(float(facts["amount"]))
    kind = dice.pick(_KINDS_BY_CHANNEL.get(str(facts.get("channel")), ("purchase", "payment", "transaction", "charge")))
    ways = [f"a {kind} of {money}", f"a {kind} for {money}"]
    if not money.endswith("dollars"):
        ways.append(f"a {money} {kind}")
    what = dice.pick(ways)
    parts = []
    if "merchant_category" in facts:
        trade = dice.pick(KINDS[str(facts["merchant_category"])])
        named = (f"at {voice.merchant}, {trade},", f"at {voice.merchant} ({trade})")
        parts.append(dice.pick((*named, f"at {trade}", f"with {trade}")))
    if "channel" in facts and dice.chance(0.9):
        parts.append(dice.pick(_CHANNELS[str(facts["channel"])]))
    if "hour" in facts and dice.chance(0.94):
        parts.append(clock(int(float(facts["hour"])), voice.scene.minute, dice))
    if dice.chance(0.6):
        parts.append(f"{dice.pick(('in', 'from'))} {voice.scene.place}")
    return " ".join([what, *dice.shuffled(parts)]).removesuffix(",")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _opening(voice: Voice, dice: Dice) -> str:
    payment = _payment(voice, dice)
    return _sentence(dice.pick(_OPENINGS).format(person=voice.person, a=payment))


def _prose(names: Sequence[str], voice: Voice, dice: Dice) -> str:
    """Clauses joined by twos, so that texts vary in rhythm without growing unreadable."""
    sentences, left = [], list(names)
    while left:
        text = clause(left.pop(0), voice, dice)
        if left and dice.chance(0.55):
            join = dice.pick(_JOINS)
            second = clause(left.pop(0), voice, dice)
            text += join + (second[0].upper() + second[1:] if join == ". " else second)
        sentences.append(_sentence(text))
    return " ".join(sentences)


def _listed(names: Sequence[str], voice: Voice, dice: Dice) -> str:
    notes = [note(name, voice, dice) for name in names]
    return notes[0] if len(notes) == 1 else f"{', '.join(notes[:-1])} and {notes[-1]}"


def _analyst_note(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    title = dice.pick(("", "", "Analyst note: ", "Review note - ", "Transaction review: ", "Alert review: "))
    body = [
        _prose(group, voice, dice) if dice.chance(0.6) else _sentence(dice.pick(_NOTED) + _listed(group, voice, dice))
        for group in groups
    ]
    return " ".join([title + _opening(voice, dice), *body])


_NOTED = ("on file: ", "noted: ", "we see ", "also relevant: ", "further points: ", "background: ", "the file says: ")


def _log_line(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    separator = dice.pick(_SEPARATORS)
    start = f"{dice.pick(('TXN', 'ALERT', 'EVT', 'Payment', 'Tx'))}: {voice.person}{separator}{_payment(voice, dice)}"
    notes = [note(name, voice, dice) for group in groups for name in group]
    return f"{separator.join([start, *notes])}."


def _service_summary(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    start = dice.pick(
        ("Summary for the desk: ", "Service summary. ", "Handover: ", "Ticket summary: ", "Support case. ")
    )
    names = [name for group in groups for name in group]
    half = len(names) // 2
    rest = f" {_sentence(dice.pick(_NOTED) + _listed(names[half:], voice, dice))}" if names[half:] else ""
    return f"{start}{_opening(voice, dice)} {_prose(names[:half], voice, dice)}{rest}".replace("  ", " ")


def _case_file(voice: Voice, groups: list[list[str]], dice: Dice) -> str:
    line = dice.pick(("\n", " "))
    sections = [f"{dice.pick(('Payment', 'Transaction', 'Event'))}: {_opening(voice, dice)}"]
    for group in groups:
        titles = next(titles for titles, names in _HEADINGS.values() if group[0] in names)
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
