"""Text from outside, without invisible characters."""

from __future__ import annotations

import re

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
