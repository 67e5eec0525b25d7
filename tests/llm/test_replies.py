"""A reply has the requested shape, or it is an error with a message; nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.growth import assert_linear

from acefraud.core.transaction import Verdict
from acefraud.roles.model.replies import MAX_TEXT, AgentReply, JudgeReply, ReflectorReply, read_reply

SHAPES = (AgentReply, JudgeReply, ReflectorReply)
AGENT = {"reasoning": "A new device.", "bullets": ["b-1"], "probability": 0.9, "verdict": "DECLINE"}
JUDGE = {"is_correct": True, "confidence": 0.7, "reasoning": "It fits."}
REFLECTOR = {
    "new_bullet": "VPN and a new device",
    "condition": "vpn is true",
    "argues": "DECLINE",
    "problem_types": ["device_risk"],
    "confidence": 0.6,
}
WHOLE: dict[type[BaseModel], dict[str, Any]] = {AgentReply: AGENT, JudgeReply: JUDGE, ReflectorReply: REFLECTOR}


def reply(shape: type[BaseModel] = AgentReply, **changed: Any) -> str:
    return json.dumps({**WHOLE[shape], **changed})


def error(text: str, shape: type[BaseModel] = AgentReply) -> str:
    with pytest.raises(ValueError, match=r".") as raised:
        read_reply(text, shape)
    assert type(raised.value) is ValueError
    return str(raised.value)


def test_a_whole_reply() -> None:
    agent = read_reply(reply(), AgentReply)
    assert (agent.reasoning, agent.bullets, agent.probability) == ("A new device.", ("b-1",), 0.9)
    assert agent.verdict is Verdict.DECLINE
    assert read_reply(reply(JudgeReply), JudgeReply).model_dump() == JUDGE
    assert read_reply(reply(ReflectorReply), ReflectorReply).model_dump(mode="json") == REFLECTOR


@pytest.mark.parametrize(
    "around",
    ["```json\n{}\n```", "```\n{}\n```", "  ```JSON {} ```  ", "Sure, here it is:\n{}\nAnything else?", "\ufeff\n{}\n",
     "```json\n{}", "Here:\n```json\n{}\n```\nDone."],
)  # fmt: skip
def test_fences_and_words_around_it(around: str) -> None:
    assert read_reply(around.replace("{}", reply()), AgentReply) == read_reply(reply(), AgentReply)


@pytest.mark.parametrize("verdict", ["decline", " Decline ", "DECLINE.", "dEcLiNe"])
def test_a_verdict_in_any_letter_case(verdict: str) -> None:
    assert read_reply(reply(verdict=verdict), AgentReply).verdict is Verdict.DECLINE


@pytest.mark.parametrize(
    "verdict",
    ["I would decline this", "DECLINE or APPROVE", "not DECLINE", "DECLINED", "", "REVIEW", "review", None, True, 1,
     ["DECLINE"], {"DECLINE": 1}],
)  # fmt: skip
def test_anything_else_is_no_verdict(verdict: Any) -> None:
    assert "verdict: expected APPROVE or DECLINE, got" in error(reply(verdict=verdict))


@pytest.mark.parametrize(
    ("said", "share"), [(0, 0.0), (1, 1.0), (0.25, 0.25), ("85%", 0.85), (" 7.5 % ", 0.075), ("100%", 1.0)]
)
def test_shares(said: Any, share: float) -> None:
    assert read_reply(reply(probability=said), AgentReply).probability == pytest.approx(share)
    assert read_reply(reply(JudgeReply, confidence=said), JudgeReply).confidence == pytest.approx(share)


@pytest.mark.parametrize(
    "said",
    [85, -0.1, 1.01, True, False, "85", "150%", "-5%", "high", "", None, [0.5], {}, float("nan"), float("inf"),
     -float("inf"), 10**400],
)  # fmt: skip
def test_no_shares(said: Any) -> None:
    assert "probability: " in error(reply(probability=said))
    assert "confidence: " in error(reply(JudgeReply, confidence=said), JudgeReply)


@pytest.mark.parametrize("said", ["true", 1, 0, None, "yes"])
def test_a_judge_answers_yes_or_no(said: Any) -> None:
    assert "is_correct: " in error(reply(JudgeReply, is_correct=said), JudgeReply)


@pytest.mark.parametrize(
    ("shape", "changed", "place"),
    [
        (AgentReply, {"reasoning": None}, "reasoning: "),
        (AgentReply, {"reasoning": ["words"]}, "reasoning: "),
        (AgentReply, {"bullets": "b-1"}, "bullets: "),
        (AgentReply, {"bullets": None}, "bullets: "),
        (AgentReply, {"bullets": ["b-1", 2]}, "bullets.1: "),
        (JudgeReply, {"reasoning": 7}, "reasoning: "),
        (ReflectorReply, {"new_bullet": 5}, "new_bullet: "),
        (ReflectorReply, {"condition": ["vpn"]}, "condition: "),
        (ReflectorReply, {"condition": True}, "condition: "),
        (ReflectorReply, {"argues": "maybe"}, "argues: expected APPROVE or DECLINE"),
        (ReflectorReply, {"problem_types": "x"}, "problem_types: "),
    ],
)
def test_what_is_wrong_is_named(shape: type[BaseModel], changed: dict[str, Any], place: str) -> None:
    assert error(reply(shape, **changed), shape).startswith(place)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_missing_is_named(shape: type[BaseModel]) -> None:
    required = [name for name, field in shape.model_fields.items() if field.is_required()]
    assert error("{}", shape) == "; ".join(f"{name}: Field required" for name in required)


def test_nothing_new_was_learnt() -> None:
    assert read_reply('{"new_bullet": null}', ReflectorReply).new_bullet is None
    assert read_reply('{"new_bullet": "A heuristic"}', ReflectorReply).argues is None


@pytest.mark.parametrize("text", ["", "null", "42", "[]", "[1, 2]", '"DECLINE"', "DECLINE", "{", "}{", "{'a': 1}"])
def test_no_object(text: str) -> None:
    assert error(text) == "the reply is not a JSON object"


def test_two_objects_are_not_one() -> None:
    assert error(f"{reply()} or rather {reply(verdict='APPROVE')}") == "the reply is not a JSON object"


def test_words_are_kept_short_and_can_be_written_to_a_file() -> None:
    said = read_reply(reply(reasoning="x" * 10_000), AgentReply).reasoning
    assert said == "x" * MAX_TEXT
    odd = "a\ud800b\x00c\x1b[2Jd\ne"
    read = read_reply(reply(reasoning=odd, bullets=[odd]), AgentReply)
    assert read.reasoning == read.bullets[0] == "a\ufffdb c [2Jd e"
    taught = read_reply(reply(ReflectorReply, new_bullet=odd, problem_types=[odd], condition=odd), ReflectorReply)
    assert taught.model_dump_json().encode()
    assert "'\\ud800'" in error(reply(verdict="\ud800"))


@pytest.mark.parametrize(
    "huge",
    [
        lambda n: "```" + " " * (2 * n),
        lambda n: "```json" + "\n" * (2 * n) + "x",
        lambda n: "{" * (2 * n),
        lambda n: '{"a":' * n,
        lambda n: '{"verdict": ' + "[" * n + "]" * n + "}",
        lambda n: '{"probability": ' + "1" * n + "}",
        lambda n: reply(probability="1" * n + "%"),
        lambda n: reply(probability=" " * n),
        lambda n: reply(verdict="." * n),
        lambda n: "x" * (20 * n),
    ],
)
def test_a_huge_reply_is_refused_in_time_proportional_to_its_length(huge: Callable[[int], str]) -> None:
    assert_linear(error, huge(20_000), huge(100_000))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["APPROVE", "85%", "b-1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
names = st.sampled_from([*AGENT, *JUDGE, *REFLECTOR])
replies = st.builds(
    lambda shape, changed: json.dumps({**WHOLE[shape], **changed}),
    st.sampled_from(SHAPES),
    st.dictionaries(names, json_values, max_size=3),
)


@given(st.text() | replies | st.tuples(st.text(), replies, st.text()).map("".join), st.sampled_from(SHAPES))
def test_any_text_is_read_or_is_an_error_in_words(text: str, shape: type[BaseModel]) -> None:
    try:
        read = read_reply(text, shape)
    except ValueError:
        assert error(text, shape)
        return
    assert isinstance(read, shape)
    assert read.model_dump_json().encode()
    for share in ("probability", "confidence"):
        assert 0 <= getattr(read, share, 0.0) <= 1
    assert getattr(read, "verdict", Verdict.APPROVE) in (Verdict.APPROVE, Verdict.DECLINE)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_schema_offers_what_is_read(shape: type[BaseModel]) -> None:
    schema = shape.model_json_schema(mode="serialization")
    assert "$defs" not in schema
    assert list(schema["properties"]) == list(WHOLE[shape])
    assert "REVIEW" not in json.dumps(schema)
    share = schema["properties"]["probability" if shape is AgentReply else "confidence"]
    assert (share["minimum"], share["maximum"]) == (0, 1)


def test_the_verdict_stands_after_the_sentence() -> None:
    assert list(AgentReply.model_json_schema()["properties"]) == ["reasoning", "bullets", "probability", "verdict"]
