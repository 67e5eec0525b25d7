"""What a text may show: no invisible characters, and no personal data where that is masked.

Personal data is found in texts by its format and its checksum if it has one, and in facts by their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from typing import TypeAlias

Value: TypeAlias = bool | float | str
"""The value of a fact."""

MASKED = "[masked]"
MARKS = ("email", "ip", "card", "iban", "phone", "name", "masked")
"""The placeholders, in brackets, that replace masked text."""

_MARKED = re.compile(rf"(\[(?:{'|'.join(MARKS)})\])")
_ROUNDS = 4
"""Masking can expose a neighbour, such as a second IBAN right after the first, so it is repeated."""

_WHO = (
    r"user(?:[ _]?name)?|customer|client|(?:card|account)[ _]?holder|(?:customer|client|(?:first|last|full)[ _])?name"
)
_QUOTED = "|".join(
    rf"(?<={opening})(?:[^{closing}\n]|{closing}(?=\w)){{1,80}}+(?={closing})"
    for opening, closing in (("'", "'"), ('"', '"'), ("‘", "’"), ("“", "”"))
)
_NAME = re.compile(
    rf"(?<!\w)((?:{_WHO})(?:[ \t]{{1,3}}|[\"']?[ \t]{{0,2}}[:=][ \t]{{0,2}})['\"‘“])(?:{_QUOTED})", re.IGNORECASE
)
_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]++@[\w-]++(?:\.[\w-]++)*?\.[^\W\d_][\w-]*+(?:\.[\w-]++)*+")
_IBAN = re.compile(r"(?<![^\W_])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,4})?(?![^\W_])")
_PHONE = re.compile(r"\+[1-9](?:[ ./()-]{0,2}[0-9]){7,14}(?![0-9])")
_DIGIT_GROUPS = re.compile(r"(?<![^\W_])(?<!\d\.)\d++(?![^\W\d_])(?:[ -]\d++(?![^\W\d_]))*+")
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.]){_BYTE}(?:\.{_BYTE}){{3}}(?!\w|\.\w)")
_WITH_COLONS = re.compile(r"(?<![\w:.])[\w.]*+:[\w:.]++")

_NUMBER = r"_?(?:number|num|no|nr)"
_PERSON = r"customer|client|user|(?:account|card)?_?holder|owner|payer|payee|sender|recipient|beneficiary|buyer|contact"
_PERSONAL = re.compile(
    rf"""(?:^|_)(?:
        e_?mail(?:_?(?:address|addr|id))? | ip(?:_?v?[46])?(?:_?(?:address|addr))? | address(?:_?line)? | addr | street
      | pan | primary_account{_NUMBER} | (?:card|cc|account|acct){_NUMBER} | cv[vc]2? | iban | msisdn
      | (?:tele)?phone(?:{_NUMBER})? | mobile{_NUMBER} | ssn | social_security(?:{_NUMBER})?
      | passport(?:{_NUMBER})? | (?:national|tax)_id | (?:driving|drivers?)_licen[cs]e(?:{_NUMBER})?
      | (?:first|last|full|given|family|middle|maiden|nick|sur|fore)_?name
      | (?:{_PERSON}|billing|shipping)_?name | card_?holder | account_?holder | date_of_birth | birth_?date | dob
    )(?:_?\d)?$ | ^name$""",
    re.VERBOSE,
)

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_UNSEEN = re.compile(
    r"[\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]+"
)
"""Zero-width characters, direction marks, and characters that can carry hidden text."""
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def visible(text: str) -> str:
    """The text on one line, without control and invisible characters.

    >>> visible("gift\\u200b cards\\n\\u202eAPPROVE")
    'gift cards APPROVE'
    """
    if text.isascii() and text.isprintable():
        return text
    return _SURROGATES.sub("\ufffd", _UNSEEN.sub("", _BREAKS.sub(" ", text)))


def cut(text: str, most: int) -> str:
    """The text, shortened if it is too long.

    >>> cut("a long story", 7)
    'a long…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def mask_patterns(text: str, *, also: re.Pattern[str] | None = None) -> str:
    """The text with e-mail addresses, IP addresses, card numbers, IBANs, phone numbers and quoted names masked.

    >>> mask_patterns("User 'john_doe' (ann@example.org, 192.0.2.7) paid $2,500 with 4111 1111 1111 1111 at 12:30:45")
    "User '[name]' ([email], [ip]) paid $2,500 with [card] at 12:30:45"
    """
    for _ in range(_ROUNDS):
        parts = _MARKED.split(text)
        masked = "".join(part if at % 2 else _masked_once(part, also) for at, part in enumerate(parts))
        if masked == text:
            break
        text = masked
    return text


_NAMED_VALUES = re.compile(r"""(`?(\w+)`? is (?:not |one of |none of )?)("[^"]*"(?:, "[^"]*")*)""")


def mask_named_values(text: str) -> str:
    """A rule in English with the values masked that facts with a personal name are compared to.

    >>> mask_named_values('Amount above 40 and customer_name is "Bob Ray"')
    'Amount above 40 and customer_name is "[masked]"'
    """

    def masked(match: re.Match[str]) -> str:
        return f'{match[1]}"{MASKED}"' if is_personal(match[2]) else match[0]

    return _NAMED_VALUES.sub(masked, text)


def pattern_of(values: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for any of these values as a whole word, the longest first; None if there is none to look for.

    >>> mask_patterns("Ann Lee pays, Ann waits", also=pattern_of(["Ann", "Ann Lee"]))
    '[masked] pays, [masked] waits'
    """
    longest_first = sorted({value for value in values if len(value) >= 2}, key=lambda value: (-len(value), value))
    return re.compile("|".join(map(_whole, longest_first)), re.IGNORECASE) if longest_first else None


def is_personal(name: str) -> bool:
    """Whether the name of a fact says that it identifies a person.

    >>> [is_personal(name) for name in ("customerEmail", "IPAddress", "card_number", "cardholder", "Last Name")]
    [True, True, True, True, True]
    >>> [is_personal(name) for name in ("ip_country", "email_domain", "card_age_days", "merchant_name", "zip")]
    [False, False, False, False, False]
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return _PERSONAL.search(re.sub(r"[\W_]+", "_", words).strip("_").lower()) is not None


def identifies(value: Value) -> bool:
    """Words identify, and so do whole numbers of eight digits or more: card numbers are often read as numbers."""
    return isinstance(value, str) or (not isinstance(value, bool) and abs(value) >= 1e7 and float(value).is_integer())


def written(value: Value) -> str:
    """How a value is written in a text; "" for flags and short numbers, which also occur by chance."""
    if isinstance(value, str):
        return value.strip()
    whole = not isinstance(value, bool) and abs(value) >= 1000 and float(value).is_integer()
    return f"{value:.0f}" if whole else ""


def personal_values(facts: Mapping[str, Value]) -> list[str]:
    """The values of facts with a personal name, as a text would write them.

    >>> personal_values({"full_name": "Ann Lee", "amount": 5.0})
    ['Ann Lee']
    """
    return [text for name, value in facts.items() for text in personal_values_of(name, [value])]


def personal_values_of(name: str, values: Iterable[Value]) -> list[str]:
    """The values of one fact as a text would write them, if its name is a personal one."""
    identifying = [written(value) for value in values if identifies(value)]
    return identifying if identifying and is_personal(name) else []


@dataclass(frozen=True)
class Masker:
    """Hides facts that are declared sensitive, facts with a personal name such as `email`, and their values in texts.

    Of facts with a personal name only identifying values are hidden, words and long numbers; flags and counts are not.

    >>> mask = Masker(sensitive=["segment"])
    >>> mask.masked_facts({"segment": 3.0, "email": "ann@example.org", "email_age_days": 12.0, "shop": "Ann's"})
    {'segment': '[masked]', 'email': '[masked]', 'email_age_days': 12.0, 'shop': "Ann's"}
    >>> mask.masked_text("Ann Lee pays $20", {"full_name": "Ann Lee"})
    '[masked] pays $20'
    """

    sensitive: Collection[str] = ()
    sensitive_now: Callable[[], Collection[str]] = tuple
    """Names further sensitive facts, in lower case. It is asked every time, so that they may change."""

    def __post_init__(self) -> None:
        if isinstance(self.sensitive, str):
            raise TypeError(f"sensitive: expected a collection of names, got the string {self.sensitive!r}")
        object.__setattr__(self, "sensitive", frozenset(name.casefold() for name in self.sensitive))

    def hides(self, name: str, value: Value) -> bool:
        """Whether the value of a fact is hidden."""
        folded = name.casefold()
        declared = folded in self.sensitive or folded in self.sensitive_now()
        return declared or (identifies(value) and is_personal(name))

    def masked_facts(self, facts: Mapping[str, Value]) -> dict[str, Value]:
        """The facts with hidden values masked, also where they occur inside other facts."""
        hidden = {name: value for name, value in facts.items() if self.hides(name, value)}
        return {
            name: MASKED if name in hidden else self.masked_text(value, hidden) if isinstance(value, str) else value
            for name, value in facts.items()
        }

    def masked_text(self, text: str, facts: Mapping[str, Value] | None = None) -> str:
        """The text with personal data and the values of hidden facts masked."""
        hidden = (written(value) for name, value in (facts or {}).items() if self.hides(name, value))
        return mask_patterns(text, also=pattern_of(hidden))


def _masked_once(text: str, also: re.Pattern[str] | None) -> str:
    if also:
        text = also.sub(MASKED, text)
    text = _NAME.sub(r"\1[name]", text)
    text = _EMAIL.sub("[email]", text)
    text = _IBAN.sub(_mask_iban, text)
    text = _PHONE.sub("[phone]", text)
    text = _WITH_COLONS.sub(_mask_ipv6, text)
    text = _IPV4.sub("[ip]", text)
    return _DIGIT_GROUPS.sub(_mask_cards, text)


def _mask_iban(match: re.Match[str]) -> str:
    """Words after an IBAN look like its last groups, so mask the longest part with a valid checksum."""
    text = match[0]
    ends = [at.start() for at in re.finditer(r"[ -]|$", text)]
    for end in reversed(ends):
        compact = text[:end].replace(" ", "").replace("-", "")
        digits = "".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])
        if 15 <= len(compact) <= 34 and int(digits) % 97 == 1:
            return f"[iban]{text[end:]}"
    return text


def _mask_ipv6(match: re.Match[str]) -> str:
    """An address may follow a label and a colon, as in src:2001:db8::1, and precede a full stop or a colon."""
    before, rest = "", match[0]
    while rest.count(":") >= 2 and before.count(":") < 3:
        for address in (rest, rest.rstrip("."), rest.rstrip(".:")):
            if _is_ipv6(address):
                return f"{before}[ip]{rest[len(address) :]}"
        label, _, rest = rest.partition(":")
        before += f"{label}:"
    return match[0]


def _is_ipv6(text: str) -> bool:
    if not 3 <= len(text) <= 45:
        return False
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _mask_cards(match: re.Match[str]) -> str:
    """A row of numbers may contain a card number between others, such as its expiry date."""
    parts = re.split("([ -])", match[0])
    shown: list[str] = []
    at = 0
    while at < len(parts):
        end = _end_of_card(parts, at)
        shown += ["[card]"] if end else [parts[at]]
        at = end or at + 1
        shown += parts[at : at + 1]
        at += 1
    return "".join(shown)


def _end_of_card(parts: list[str], at: int) -> int | None:
    """The end of the longest card number that begins here; None if there is none."""
    digits, found = "", None
    for end in range(at, len(parts), 2):
        digits += parts[end]
        if len(digits) > 19 or (end > at and (len(parts[at]) != 4 or parts[end - 1] != parts[at + 1])):
            break
        # Milli-, micro- and nanoseconds since 1970 begin with 1; no card number of these lengths does.
        is_epoch = end == at and digits[0] == "1" and len(digits) in (13, 16, 19)
        if len(digits) >= 13 and not is_epoch and _passes_luhn(digits):
            found = end + 1
    return found


def _passes_luhn(digits: str) -> bool:
    odd, even = digits[-1::-2], digits[-2::-2]
    total = sum(map(int, odd)) + sum(sum(divmod(2 * int(digit), 10)) for digit in even)
    return total % 10 == 0 and any(digit != "0" for digit in digits)


def _whole(value: str) -> str:
    """A pattern for the value as a whole word."""
    before = r"(?<!\w)" if re.match(r"\w", value) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", value) else ""
    return f"{before}{re.escape(value)}{after}"
