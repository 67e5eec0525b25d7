"""A server on loopback that speaks the OpenAI protocol and plays a crude, deterministic language model.

It has four parts: the script (what it is told to do), the brain (what it answers), the wire (HTTP), and the server
around them. It needs nothing but the standard library, so it also runs by itself:

    python tests/llm/loopback.py --port 8100 --misbehave http_500=0.3 --log calls.jsonl
"""

from __future__ import annotations

import argparse
import array
import asyncio
import base64
import functools
import hashlib
import json
import math
import os
import re
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

# --- the script ---------------------------------------------------------------------------------------------------

EVERYWHERE = frozenset({"rate_limit", "http_500", "hang", "trickle", "cut", "broken_body"})
ANY_CHAT = frozenset({"sentence", "empty", "refusal"})
ONLY_JSON = frozenset({"invalid_json", "wrong_shape"})
MISBEHAVIOURS = EVERYWHERE | ANY_CHAT | ONLY_JSON | {"wrong_dimension", "lower_case", "unknown_bullets", "no_logprobs"}

When = float | Sequence[int]
"""A probability (1 for every call), or the numbers of the calls."""
Answer = Callable[[str, dict[str, Any]], str | None]


@dataclass(frozen=True, kw_only=True)
class Script:
    """What the server is told to do. A new one can be put in its place while the server runs."""

    misbehave: Mapping[str, When] = field(default_factory=dict)
    seed: int = 0
    delay: float = 0.0
    """Seconds before each answer."""
    retry_after: str = "0.05"
    """The header that goes with a rate limit; "" leaves it out."""
    trickle_seconds: float = 5.0
    """How long a trickled answer takes."""
    planted: Sequence[Mapping[str, Any]] = ()
    """What the reflector answers first, one after another."""
    answer: Answer | None = None
    """Given the role and the request, the content of the reply, or None for the brain's. It must not block."""
    direct_shift: float = -2.0
    """What is added to the log-odds of fraud where the answer is one word."""
    split_tokens: bool = False
    """Whether a verdict is two tokens, as in `DE` and `CLINE`."""
    logprobs: bool = True
    """False for a server that never gives them."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.misbehave) - MISBEHAVIOURS)
        if unknown:
            raise ValueError(f"unknown misbehaviour {', '.join(unknown)}; known: {', '.join(sorted(MISBEHAVIOURS))}")

    def misbehaviour(self, fitting: frozenset[str], n: int, content: str, times: int) -> str:
        """Which one befalls this call, or "". The same content asked again gets a new throw."""
        throw = int(hashlib.sha256(f"{self.seed}|{times}|{content}".encode()).hexdigest()[:12], 16) / 16**12
        for name, when in self.misbehave.items():
            if name not in fitting:
                continue
            if isinstance(when, int | float):
                throw -= when
                if throw < 0:
                    return name
            elif n in when:
                return name
        return ""


# --- what was asked -----------------------------------------------------------------------------------------------


def said(message: Mapping[str, Any]) -> str:
    """The text of a message, whether it is one string or parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


@dataclass(frozen=True)
class Asked:
    """A chat request, read as far as the brain needs it."""

    body: dict[str, Any]

    @functools.cached_property
    def system(self) -> str:
        """What holds for the whole conversation, the wanted shape of the reply included."""
        told = [said(m) for m in self.body["messages"] if m.get("role") in ("system", "developer")]
        return "\n".join([*told, json.dumps(self.body.get("response_format") or "")])

    @functools.cached_property
    def user(self) -> str:
        return "\n".join(said(m) for m in self.body["messages"] if m.get("role") == "user")

    @functools.cached_property
    def role(self) -> str:
        """agent, judge or reflector. The system prompt is asked first: a transaction may say anything."""
        for text in (self.system, self.user):
            for mark, role in (("is_correct", "judge"), ("new_bullet", "reflector"), ("verdict", "agent")):
                if f'"{mark}"' in text or (mark != "verdict" and mark in text):
                    return role
        return "agent"

    @property
    def direct(self) -> bool:
        """Whether one word is asked for."""
        return self.role == "agent" and '"verdict"' not in self.system

    @property
    def most_tokens(self) -> int:
        return int(self.body.get("max_completion_tokens") or self.body.get("max_tokens") or 1_000_000)

    @property
    def fitting(self) -> frozenset[str]:
        """The misbehaviours that make sense here."""
        fitting = EVERYWHERE | ANY_CHAT
        if self.role == "agent":
            fitting |= {"lower_case"}
        if not self.direct:
            fitting |= ONLY_JSON
            if self.role == "agent":
                fitting |= {"unknown_bullets"}
        return fitting | {"no_logprobs"} if self.body.get("logprobs") else fitting


# --- the brain: agent and judge -----------------------------------------------------------------------------------

_TRANSACTION = re.compile(r"<transaction>\n(.*?)\n?</transaction>", re.DOTALL)
_DATA = re.compile(r"<(\w+)>.*?</\1>", re.DOTALL)
_BULLET = re.compile(r"^\[(?P<id>[^\]\s]+)\] (?P<side>DECLINE|APPROVE|note)(?:, unverified|: (?P<words>.*))$", re.M)
_MEASURED = re.compile(r"\((\d+(?:\.\d+)?)%[^)]*\), against (\d+(?:\.\d+)?)% of all")
_RISKY_WORDS = re.compile(r"(?<!no )\b(vpn|emulator|new|gift|crypto|changed|weeks|hours old)\b")
_CALM_WORDS = re.compile(r"\b(years|passed|biometric|in store|in person)\b")


def log_odds(probability: float) -> float:
    probability = min(max(probability, 0.001), 0.999)
    return math.log(probability / (1 - probability))


def sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def hashed(text: str) -> float:
    """A number from 0 to 1 that looks random and is not."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48


def read_transaction(text: str) -> tuple[str, dict[str, Any]]:
    """Text and facts of the first transaction shown."""
    block = _TRANSACTION.search(text)
    words, facts = "", {}
    for line in block[1].splitlines() if block else ():
        if line.startswith("text: "):
            words = line.removeprefix("text: ")
        elif line.startswith("facts: "):
            facts = json.loads(line.removeprefix("facts: "))
    return words, facts


def own_view(words: str, facts: Mapping[str, Any]) -> float:
    """Log-odds of fraud from what the model knows by itself, which is not much, and some noise."""

    def number(name: str, otherwise: float) -> float:
        value = facts.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise

    odds = -0.2 + 1.2 * (hashed(json.dumps([words, facts], sort_keys=True)) - 0.5)
    odds += 0.8 * (facts.get("vpn") is True) + 1.0 * (facts.get("emulator") is True)
    odds += 0.7 * (facts.get("new_device") is True) + 0.7 * (number("failed_attempts", 0) > 2)
    odds += 0.9 * (number("amount_to_usual", 1) > 5) + 0.8 * (number("account_age_days", 99) < 7)
    odds -= 0.9 * (facts.get("strong_authentication") is True)
    odds -= 0.4 * (facts.get("new_device") is False or number("device_age_days", 0) > 90)
    odds += 0.3 * len(set(_RISKY_WORDS.findall(words.lower())))
    return odds - 0.4 * len(set(_CALM_WORDS.findall(words.lower())))


def bullets_view(text: str) -> dict[str, float]:
    """What each bullet that is shown adds to the log-odds of fraud, whatever its words say."""
    adds: dict[str, float] = {}
    for line in _BULLET.finditer(_DATA.sub("", text)):
        measured = _MEASURED.search(line["words"] or "")
        if measured:
            gain = (log_odds(float(measured[1]) / 100) - log_odds(float(measured[2]) / 100)) / 2
            honest = "legitimate" in line["words"][: measured.start()].rsplit(":", 1)[-1]
            adds[line["id"]] = min(max(-gain if honest else gain, -2.5), 2.5)
        else:
            adds[line["id"]] = {"DECLINE": 0.2, "APPROVE": -0.2, "note": 0.0}[line["side"]]
    return adds


def agent_odds(asked: Asked) -> tuple[float, dict[str, float]]:
    adds = bullets_view(asked.system + "\n" + asked.user)
    return own_view(*read_transaction(asked.user)) + sum(adds.values()), adds


def agent(asked: Asked, shift: float) -> str:
    """A reasoned answer, or one word, which leans to one side by `shift`."""
    odds, adds = agent_odds(asked)
    if asked.direct:
        return "DECLINE" if odds + shift >= 0 else "APPROVE"
    probability = round(sigmoid(odds), 3)
    declines = probability >= 0.5
    cited = [name for name, gain in adds.items() if abs(gain) > 0.1 and (gain > 0) == declines]
    leaning = "more like fraud" if declines else "more like an ordinary payment"
    reply = {
        "reasoning": f"With {len(cited)} bullets in favour this looks {leaning} than not.",
        "bullets": cited,
        "probability": probability,
        "verdict": "DECLINE" if declines else "APPROVE",
    }
    return json.dumps(reply)


def judge(asked: Asked) -> str:
    """Whether the output is what the agent would have said."""
    view = "DECLINE" if agent_odds(asked)[0] >= 0 else "APPROVE"
    output = re.search(r"<output>\s*(.*?)\s*</output>", asked.user, re.DOTALL)
    agrees = output is not None and output[1].upper() == view
    reasoning = f"I would have said {view}."
    return json.dumps({"is_correct": agrees, "confidence": 0.8, "reasoning": reasoning})


# --- the brain: reflector -----------------------------------------------------------------------------------------

_TELLING = (
    "amount_to_usual",
    "earlier_chargebacks",
    "chargebacks",
    "failed_attempts",
    "account_age_days",
    "vpn",
    "emulator",
    "new_device",
    "device_age_days",
    "amount",
    "merchant_rating",
)
_LOW_IS_FRAUD = frozenset({"account_age_days", "device_age_days", "merchant_rating"})
_RISKY_FLAGS = frozenset({"vpn", "emulator", "new_device"})
_KNOWN_FACT = re.compile(r"^- (\S+) \(number\):.*half of them below ([\d,.]*\d)", re.M)
_PLAIN_NAME = re.compile(r"(?!(?:and|is|in|not|true|false|missing|known)\b)[A-Za-z_][A-Za-z0-9_]*")


def read_cases(text: str) -> list[dict[str, Any]]:
    block = re.search(r"<cases>\n(.*?)\n?</cases>", text, re.DOTALL)
    cases: list[dict[str, Any]] = []
    for line in block[1].splitlines() if block else ():
        with suppress(ValueError):
            case = json.loads(line)
            if isinstance(case, dict):
                cases.append(case)
    return cases


def two_digits(value: float, up: bool) -> float:
    """Rounded to two significant digits, to the side given."""
    if value == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return round((math.ceil if up else math.floor)(round(value / step, 9)) * step, 9)


@dataclass(frozen=True)
class Found:
    """A test that all the cases of one truth pass: as a condition, in English, and whether the middle case fails it."""

    condition: str
    words: str
    telling: bool = True


def _flag_found(name: str, values: Sequence[Any], fraud: bool) -> Found | None:
    wanted = fraud or name not in _RISKY_FLAGS
    if any(value is not wanted for value in values):
        return None
    spoken = "a VPN" if name == "vpn" else name.replace("_", " ")
    plain = name if _PLAIN_NAME.fullmatch(name) else f"`{name}`"
    return Found(f"{plain} is {str(wanted).lower()}", spoken if wanted else f"no {spoken.removeprefix('a ')}")


def _number_found(name: str, values: Sequence[float], fraud: bool, middle: float | None) -> Found | None:
    above = fraud != (name in _LOW_IS_FRAUD)
    edge = min(values) if above else max(values)
    if not math.isfinite(edge) or (above and edge <= 0):
        return None
    bound = two_digits(edge, up=not above)
    strict = bound != edge
    sign, spoken = {
        (True, True): (">", "above"),
        (True, False): (">=", "at least"),
        (False, True): ("<", "below"),
        (False, False): ("<=", "at most"),
    }[above, strict]
    plain = name if _PLAIN_NAME.fullmatch(name) else f"`{name}`"
    figure = f"{bound:.10g}" if abs(bound) < 1e9 else repr(bound)
    words = f"{name.replace('_', ' ')} {spoken} {figure}"
    if name == "amount_to_usual":
        words = f"amount {spoken} {figure} times the usual"
    telling = middle is None or (bound >= middle if above else bound <= middle)
    return Found(f"{plain} {sign} {figure}", words, telling)


def found_tests(cases: Sequence[Mapping[str, Any]], fraud: bool, middles: Mapping[str, float]) -> Iterator[Found]:
    """Tests that every one of these cases passes, the best ones by reputation first."""
    facts = [case.get("facts") or {} for case in cases]
    shared = set.intersection(*(set(fact) for fact in facts)) if facts else set()
    values = {name: [fact[name] for fact in facts] for name in shared}
    flags = {name for name in shared if all(isinstance(v, bool) for v in values[name])}
    numbers = {n for n in shared - flags if all(type(v) in (int, float) for v in values[n])}
    others = sorted(flags - set(_TELLING)) + sorted(numbers - set(_TELLING))
    for name in (*_TELLING, *others):
        found = None
        if name in flags:
            found = _flag_found(name, values[name], fraud)
        elif name in numbers:
            found = _number_found(name, values[name], fraud, middles.get(name))
        if found:
            yield found


def shared_word(cases: Sequence[Mapping[str, Any]]) -> str:
    """The longest word that all their texts have, or ""."""
    texts = [set(re.findall(r"[a-z]{4,}", str(case.get("text") or "").lower())) for case in cases]
    return max(sorted(set.intersection(*texts)), key=len, default="") if texts else ""


def reflector(asked: Asked) -> str:
    """A bullet on what the cases of the commoner truth have in common, with a figure that nobody measured."""
    cases = read_cases(asked.user)
    frauds = [case for case in cases if case.get("truth") == "DECLINE"]
    fraud = 2 * len(frauds) >= len(cases)
    chosen = frauds if fraud else [case for case in cases if case.get("truth") == "APPROVE"]
    middles = {name: float(figure.replace(",", "")) for name, figure in _KNOWN_FACT.findall(asked.user)}
    found = list(found_tests(chosen, fraud, middles))
    best = ([each for each in found if each.telling] or found)[:2]
    word = shared_word(chosen)
    words = " and ".join(each.words for each in best) or (f"the word {word}" if word else "transactions like these")
    reply = {
        "new_bullet": f"{words[0].upper()}{words[1:]} = 95% {'fraud' if fraud else 'legitimate'}",
        "condition": " and ".join(each.condition for each in best) or None,
        "argues": "DECLINE" if fraud else "APPROVE",
        "problem_types": ["spending_anomaly" if "amount" in words.lower() else "device_risk"],
        "confidence": 0.9,
    }
    return json.dumps(reply)


# --- the brain: embeddings ----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=50_000)
def _place(word: str, dimensions: int) -> tuple[int, float]:
    number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return (number >> 1) % dimensions, 1.0 if number & 1 else -1.0


def embed(text: str, dimensions: int) -> list[float]:
    """A bag of words, each hashed to a place and a sign, of length one."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or [text]:
        place, sign = _place(word, dimensions)
        vector[place] += sign
    length = math.sqrt(sum(x * x for x in vector))
    if length == 0:  # two words that cancel each other out
        vector[0] = length = 1.0
    return [x / length for x in vector]


# --- replies ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A reply before it goes out, and what it counts as."""

    body: bytes
    status: int = 200
    input_tokens: int = 0
    output_tokens: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


def tokens_of(text: str) -> int:
    return max(1, len(text) // 4)


def failure(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Made:
    error = {"message": message, "type": kind, "param": None, "code": kind}
    return Made(json.dumps({"error": error}).encode(), status, headers=headers or {})


def without_brain(misbehaviour: str, script: Script) -> Made | None:
    """The reply where the misbehaviour leaves nothing to think about, or None."""
    if misbehaviour == "rate_limit":
        headers = {"Retry-After": script.retry_after} if script.retry_after else {}
        return failure(429, "rate_limit_exceeded", "Rate limit reached, try again later.", headers)
    if misbehaviour == "http_500":
        return failure(500, "server_error", "The server had an error while processing your request.")
    if misbehaviour == "broken_body":
        return Made(b"<html><body>Bad gateway</body></html>")
    return Made(b"") if misbehaviour == "hang" else None


_SPLIT = {"DECLINE": ["DE", "CLINE"], "APPROVE": ["APP", "ROVE"]}
_OTHER = {"DECLINE": "APPROVE", "APPROVE": "DECLINE"}
_STRAY = {"The": 0.012, "Dec": 0.005, "I": 0.002, "Based": 0.0007, "\n": 0.0003}
"""What stands beside the two verdicts, and has two per cent between them."""


def tokenise(content: str, split: bool) -> list[str]:
    upper = content.upper()
    if upper not in _SPLIT:
        return [content[i : i + 4] for i in range(0, len(content), 4)]
    parts = _SPLIT[upper] if split else [upper]
    return [part.lower() for part in parts] if content.islower() else list(parts)


def _entry(token: str, chance: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(chance), "bytes": list(token.encode())}


def token_chances(tokens: Sequence[str], content: str, odds: float, top: int, split: bool) -> dict[str, Any]:
    """The logprobs of a reply. Where it is a verdict, the first token's follow from the log-odds of fraud."""
    entries = []
    for n, token in enumerate(tokens):
        rivals = {token: 0.99}
        if n == 0 and content.upper() in _OTHER:
            other = _OTHER[content.upper()]
            rival = tokenise(other.lower() if content.islower() else other, split)[0]
            fraud = min(max(sigmoid(odds), 1e-6), 1 - 1e-6)
            mine = fraud if content.upper() == "DECLINE" else 1 - fraud
            rivals = {token: 0.98 * mine, rival: 0.98 * (1 - mine), **_STRAY}
        ranked = sorted(rivals.items(), key=lambda one: -one[1])[:top]
        entries.append({**_entry(token, rivals[token]), "top_logprobs": [_entry(*each) for each in ranked]})
    return {"content": entries, "refusal": None}


_INSTEAD = {
    "invalid_json": 'Sure! Here is the answer: {"verdict": ',
    "wrong_shape": '{"answer": 42}',
    "sentence": "I would decline this transaction because it does not look right to me.",
    "empty": "",
    "refusal": "",
}


def spoil(name: str, content: str) -> str:
    """The content as a model that misbehaves in this way would have written it."""
    if name == "lower_case":
        return re.sub(r"\b(APPROVE|DECLINE)\b", lambda match: match[0].lower(), content)
    if name == "unknown_bullets":
        with suppress(ValueError):  # where it was supplied, it may be anything
            reply = json.loads(content)
            return json.dumps({**reply, "bullets": [*reply.get("bullets", []), "b-00000000"]})
    return _INSTEAD.get(name, content)


def chat_reply(asked: Asked, content: str, misbehaviour: str, script: Script, n: int) -> Made:
    """A chat completion around the content."""
    content = spoil(misbehaviour, content)
    refusal = "I'm sorry, but I can't help with that." if misbehaviour == "refusal" else None
    tokens = tokenise(content, script.split_tokens)
    verdict = content.upper() in _OTHER
    cut = (len(tokens) if verdict else tokens_of(content)) > asked.most_tokens
    if cut:
        tokens = tokens[: asked.most_tokens]
    sent = "".join(tokens)
    output_tokens = len(tokens) if verdict else min(tokens_of(refusal or sent), asked.most_tokens)
    logprobs = None
    if asked.body.get("logprobs") and script.logprobs and misbehaviour != "no_logprobs":
        odds = agent_odds(asked)[0] + script.direct_shift
        if verdict and (odds >= 0) != (content.upper() == "DECLINE"):
            odds = -odds  # the content was supplied, and says the opposite
        top = int(asked.body.get("top_logprobs") or 0)
        logprobs = token_chances(tokens, content, odds, top, script.split_tokens)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": None if refusal else sent, "refusal": refusal},
        "logprobs": logprobs,
        "finish_reason": "length" if cut else "stop",
    }
    texts = [said(message) for message in asked.body["messages"]]
    input_tokens = tokens_of("".join(texts)) + 4 * len(texts)
    usage = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
    body = {
        "id": f"chatcmpl-{n:08d}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.body.get("model", ""),
        "choices": [choice],
        "usage": {**usage, "total_tokens": input_tokens + output_tokens},
    }
    return Made(json.dumps(body).encode(), input_tokens=input_tokens, output_tokens=output_tokens)


def embedding_texts(value: Any) -> list[str]:
    """The inputs, of which token numbers count as words."""
    if isinstance(value, str):
        return [value]
    if all(isinstance(item, int) for item in value):
        return [" ".join(map(str, value))]
    return [item if isinstance(item, str) else " ".join(map(str, item)) for item in value]


def embedding_reply(body: Mapping[str, Any], misbehaviour: str) -> Made:
    texts = embedding_texts(body["input"])
    dimensions = 3 if misbehaviour == "wrong_dimension" else int(body.get("dimensions") or 1536)
    data = []
    for index, text in enumerate(texts):
        vector: Any = embed(text, dimensions)
        if body.get("encoding_format") == "base64":
            floats = array.array("f", vector)
            if sys.byteorder == "big":
                floats.byteswap()
            vector = base64.b64encode(floats.tobytes()).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    count = sum(map(tokens_of, texts))
    usage = {"prompt_tokens": count, "total_tokens": count}
    reply = {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}
    return Made(json.dumps(reply).encode(), input_tokens=count)


# --- the log ------------------------------------------------------------------------------------------------------


@dataclass
class LoggedCall:
    """One POST as it arrived, and what became of it. It is in the log from its arrival on."""

    n: int
    path: str
    model: str
    role: str
    """agent, judge, reflector or embedding; "" where the path is unknown or the body cannot be read."""
    body: bytes
    """As it was on the wire."""
    headers: dict[str, str]
    """Names in lower case."""
    misbehaviour: str = ""
    status: int = 0
    """0 while there is no answer."""
    input_tokens: int = 0
    """What the reply counts, from the moment it is made, whether or not it arrives."""
    output_tokens: int = 0
    delivered: bool = False
    """Whether a whole reply was handed to the network while the client was there."""
    killed: bool = False
    """Whether its arrival was the moment to kill."""
    started: float = 0.0
    ended: float | None = None

    def as_json(self) -> str:
        """One line for the log file, without the key."""
        headers = {name: value for name, value in self.headers.items() if name != "authorization"}
        return json.dumps({**vars(self), "body": self.body.decode(errors="replace"), "headers": headers})


def unanswerable(call: LoggedCall, body: Mapping[str, Any]) -> Made | None:
    """The reply to what nobody should ask, or None where it can be answered."""
    if call.path not in ("/v1/chat/completions", "/v1/embeddings"):
        return failure(404, "not_found", f"no {call.path} here")
    needed = "input" if call.role == "embedding" else "messages"
    if not call.role or needed not in body:
        return failure(400, "invalid_request_error", f"the body must be a JSON object with {needed}")
    if body.get("stream"):
        return failure(400, "invalid_request_error", "streaming is not spoken here")
    return None


@dataclass(frozen=True)
class Totals:
    """How much was asked of the server: overall, and by model."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    by_model: Mapping[str, Totals] = field(default_factory=dict)


def total(calls: Iterable[LoggedCall], by_model: bool = True) -> Totals:
    calls = list(calls)
    models: dict[str, list[LoggedCall]] = {}
    for call in calls if by_model else ():
        models.setdefault(call.model, []).append(call)
    return Totals(
        calls=len(calls),
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        by_model={model: total(theirs, by_model=False) for model, theirs in models.items()},
    )


# --- the wire -----------------------------------------------------------------------------------------------------


_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass(frozen=True)
class Request:
    """One request off the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Connection(asyncio.Protocol):
    """One client's connection: requests one after another, and an answer to each before the next."""

    def __init__(self, server: LoopbackServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._continued = False
        self.transport: asyncio.Transport
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server.connections.add(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def _next(self) -> None:
        if self.task is None and not self.transport.is_closing():
            request = self._take()
            if request is not None:
                self.task = asyncio.get_running_loop().create_task(self._server.handle(self, request))
                self.task.add_done_callback(functools.partial(self._done, request))

    def _take(self) -> Request | None:
        """The next whole request, or None while parts are still on their way."""
        head, found, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not found:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            if headers.get("expect", "").lower() == "100-continue" and not self._continued:
                self._continued = True
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        del self._buffer[: len(head) + 4 + length]
        self._continued = False
        method, path, _ = [*first.split(" "), "", ""][:3]
        return Request(method, path.partition("?")[0], headers, rest[:length])

    def _done(self, request: Request, task: asyncio.Task[None]) -> None:
        self.task = None
        if task.cancelled() or task.exception() is not None:
            self.transport.abort()
            if not task.cancelled():
                self._server.failure = self._server.failure or task.exception()
        elif request.headers.get("connection", "").lower() == "close":
            self.transport.close()
        else:
            self._next()

    async def send(self, made: Made, misbehaviour: str, script: Script) -> bool:
        """Send the reply, or as much of it as the misbehaviour lets through. True where all of it went out."""
        lines = [f"HTTP/1.1 {made.status} {_REASONS[made.status]}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in made.headers.items()]
        head = "\r\n".join([*lines, f"Content-Length: {len(made.body)}", "", ""]).encode()
        if misbehaviour == "cut":
            self.transport.write(head + made.body[: len(made.body) // 2])
            self.transport.close()
            return False
        if misbehaviour != "trickle":
            self.transport.write(head + made.body)
            return not self.transport.is_closing()
        self.transport.write(head)
        steps = min(len(made.body), max(2, int(script.trickle_seconds / 0.05)))
        for at in range(steps - 1):
            self.transport.write(made.body[at : at + 1])
            await asyncio.sleep(script.trickle_seconds / (steps - 1))
        self.transport.write(made.body[steps - 1 :])
        return not self.transport.is_closing()


# --- the server ---------------------------------------------------------------------------------------------------


class LoopbackServer:
    """The server, in a thread of its own.

    with LoopbackServer(script=Script(delay=0.1)) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="any")
    """

    def __init__(
        self,
        *,
        script: Script | None = None,
        port: int = 0,
        log_file: Path | None = None,
        kill_at: int = 0,
        kill_pid_file: Path | None = None,
    ) -> None:
        self.log: list[LoggedCall] = []
        self.in_flight = 0
        self.in_flight_peak = 0
        self.port = port
        self.connections: set[Connection] = set()
        self.failure: BaseException | None = None
        """What went wrong inside the script's answer or the brain; raised when the server is closed."""
        self._log_path = log_file
        self._log_file: TextIO | None = None
        self._kill_at = kill_at
        self._kill_pid_file = kill_pid_file
        self._times: Counter[str] = Counter()
        self._heard = threading.Condition()
        self._started = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._released: asyncio.Event
        self.script = script or Script()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def script(self) -> Script:
        """What it is told to do. Planted replies start from the first with each new script."""
        return self._script

    @script.setter
    def script(self, script: Script) -> None:
        self._script, self._planted = script, list(script.planted)

    def totals(self, *, delivered: bool = False) -> Totals:
        """Calls and tokens; with `delivered`, only of the replies that went out whole."""
        return total(call for call in list(self.log) if call.delivered or not delivered)

    def wait_for_calls(self, count: int, timeout: float = 60.0) -> bool:
        """Wait until so many calls have arrived. False where the time ran out."""
        with self._heard:
            return self._heard.wait_for(lambda: len(self.log) >= count, timeout)

    def hold(self) -> None:
        """Answer nothing until `release`, so that calls gather."""
        self._loop.call_soon_threadsafe(self._released.clear)

    def release(self) -> None:
        """Answer the calls that were held, and those to come."""
        self._loop.call_soon_threadsafe(self._released.set)

    # starting and stopping

    def start(self) -> Self:
        bound = socket.create_server(("127.0.0.1", self.port), backlog=512)  # here, so that a failure is raised here
        self.port = bound.getsockname()[1]
        if self._log_path is not None:
            self._log_file = self._log_path.open("a", encoding="utf-8")
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(bound)), name="loopback", daemon=True)
        self._thread.start()
        self._started.wait()
        return self

    def close(self) -> None:
        """End what is under way and let go of the port. Closing twice is harmless."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._thread = None
        if self._log_file is not None:
            self._log_file.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self.failure is not None and error is None:
            raise self.failure

    async def _serve(self, bound: socket.socket) -> None:
        self._loop, self._stop, self._released = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._released.set()
        listener = await self._loop.create_server(lambda: Connection(self), sock=bound, backlog=512)
        self._started.set()
        await self._stop.wait()
        listener.close()
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        for connection in list(self.connections):
            connection.transport.abort()
        while self.connections:  # an aborted transport lets go of its socket one round of the loop later
            await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()

    # answering

    async def handle(self, connection: Connection, request: Request) -> None:
        """Answer one request."""
        script = self.script
        if request.method != "POST":
            await connection.send(self._look_up(request), "", script)
            return
        call, asked = self._arrival(request)
        try:
            made = self._answer(call, asked, script)
            if call.misbehaviour == "hang":
                await asyncio.Event().wait()
            await self._released.wait()
            if script.delay:
                await asyncio.sleep(script.delay)
            call.status = made.status
            call.delivered = await connection.send(made, call.misbehaviour, script)
        finally:
            call.ended = time.time()
            self.in_flight -= 1
            if not call.killed:
                self._write(call)

    def _look_up(self, request: Request) -> Made:
        if request.method == "GET" and request.path == "/v1/models":
            model = {"id": "loopback", "object": "model", "created": 0, "owned_by": "loopback"}
            return Made(json.dumps({"object": "list", "data": [model]}).encode())
        return failure(404, "not_found", f"no {request.method} {request.path} here")

    def _arrival(self, request: Request) -> tuple[LoggedCall, dict[str, Any]]:
        """Log the call, and kill whom it is the moment to kill."""
        try:
            body = json.loads(request.body)
        except ValueError:
            body = {}
        body = body if isinstance(body, dict) else {}
        role = ""
        if request.path == "/v1/embeddings":
            role = "embedding"
        elif request.path == "/v1/chat/completions" and isinstance(body.get("messages"), list):
            role = Asked(body).role
        n = len(self.log) + 1
        model = str(body.get("model", ""))
        call = LoggedCall(n, request.path, model, role, request.body, request.headers, started=time.time())
        self.in_flight += 1
        self.in_flight_peak = max(self.in_flight_peak, self.in_flight)
        with self._heard:
            self.log.append(call)
            self._heard.notify_all()
        if n == self._kill_at and self._kill_pid_file is not None:
            call.killed = True
            self._write(call)
            self._kill(self._kill_pid_file)
        return call, body

    def _kill(self, pid_file: Path) -> None:
        try:
            pid = int(pid_file.read_text())
            if pid <= 1:
                raise ValueError(f"{pid} is not one process")
            os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError) as error:
            print(f"nothing was killed: {error}", file=sys.stderr, flush=True)

    def _write(self, call: LoggedCall) -> None:
        if self._log_file is not None:
            self._log_file.write(call.as_json() + "\n")
            self._log_file.flush()

    def _answer(self, call: LoggedCall, body: dict[str, Any], script: Script) -> Made:
        """The reply to a call, with its misbehaviour and tokens noted."""
        wrong = unanswerable(call, body)
        if wrong is not None:
            return wrong
        asked = Asked(body)
        embedding = call.role == "embedding"
        content = hashlib.sha256((call.path + json.dumps(body, sort_keys=True)).encode()).hexdigest()
        self._times[content] += 1
        fitting = EVERYWHERE | {"wrong_dimension"} if embedding else asked.fitting
        name = call.misbehaviour = script.misbehaviour(fitting, call.n, content, self._times[content])
        made = without_brain(name, script)
        if made is None and embedding:
            made = embedding_reply(body, name)
        elif made is None:
            made = chat_reply(asked, self._content(asked, name, script), name, script, call.n)
        call.input_tokens, call.output_tokens = made.input_tokens, made.output_tokens
        return made

    def _content(self, asked: Asked, misbehaviour: str, script: Script) -> str:
        supplied = script.answer(asked.role, asked.body) if script.answer else None
        if supplied is not None:
            return supplied
        if asked.role == "judge":
            return judge(asked)
        if asked.role == "reflector":
            if self._planted and script is self.script:
                # a planted reply that is not going to arrive is kept for the next call
                return json.dumps(self._planted[0] if misbehaviour else self._planted.pop(0))
            return reflector(asked)
        return agent(asked, script.direct_shift)


# --- by itself ----------------------------------------------------------------------------------------------------


def read_when(text: str) -> tuple[str, When]:
    """`http_500=0.3`, `hang=every`, or `cut=#3,7` for the third and the seventh call.

    >>> read_when("http_500=0.3"), read_when("hang=every"), read_when("cut=#3,7")
    (('http_500', 0.3), ('hang', 1.0), ('cut', [3, 7]))
    """
    name, _, when = text.partition("=")
    if name not in MISBEHAVIOURS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(sorted(MISBEHAVIOURS))}")
    if when in ("", "every"):
        return name, 1.0
    try:
        return name, [int(n) for n in when[1:].split(",")] if when.startswith("#") else float(when)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{when!r} is neither a probability, nor every, nor #1,2,3") from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="0 for any that is free")
    parser.add_argument("--misbehave", type=read_when, action="append", default=[], metavar="NAME=WHEN")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--retry-after", default="0.05")
    parser.add_argument("--trickle-seconds", type=float, default=5.0)
    parser.add_argument("--split-tokens", action="store_true")
    parser.add_argument("--no-logprobs", action="store_true")
    parser.add_argument("--log", type=Path, help="a JSON line is added here as each call ends")
    parser.add_argument("--kill-at", type=int, default=0, metavar="N", help="at the arrival of this call ...")
    parser.add_argument("--kill-pid-file", type=Path, help="... kill the process whose number is in this file")
    given = parser.parse_args(arguments)
    script = Script(
        misbehave=dict(given.misbehave),
        seed=given.seed,
        delay=given.delay,
        retry_after=given.retry_after,
        trickle_seconds=given.trickle_seconds,
        split_tokens=given.split_tokens,
        logprobs=not given.no_logprobs,
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with LoopbackServer(
        script=script,
        port=given.port,
        log_file=given.log,
        kill_at=given.kill_at,
        kill_pid_file=given.kill_pid_file,
    ) as server:
        print(server.base_url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
