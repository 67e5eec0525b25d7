"""Personal data in texts, found by its format and, if it has one, by its checksum."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

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
        if _is_iban(text[:end].replace(" ", "").replace("-", "")):
            return f"[iban]{text[end:]}"
    return text


def _is_iban(compact: str) -> bool:
    if not 15 <= len(compact) <= 34:
        return False
    return int("".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])) % 97 == 1


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
        if len(digits) >= 13 and (end > at or not _is_epoch(digits)) and _passes_luhn(digits):
            found = end + 1
    return found


def _is_epoch(digits: str) -> bool:
    """Milli-, micro- and nanoseconds since 1970; no card number of these lengths begins with 1."""
    return digits[0] == "1" and len(digits) in (13, 16, 19)


def _passes_luhn(digits: str) -> bool:
    odd, even = digits[-1::-2], digits[-2::-2]
    total = sum(map(int, odd)) + sum(sum(divmod(2 * int(digit), 10)) for digit in even)
    return total % 10 == 0 and any(digit != "0" for digit in digits)
