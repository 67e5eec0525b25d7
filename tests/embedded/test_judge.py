"""Judges: the truth decides where it is known, and a failed call is never a wrong decision."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from acefraud.core.outcome import Ruling
from acefraud.core.transaction import FactValue
from acefraud.embedded.judge import SimpleJudge
from acefraud.errors import ModelError
from acefraud.roles.judge import LLMJudge


class Answers:
    """A model that gives one answer, or fails with one error, and counts how often it was asked."""

    model = "scripted:judge"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:  # noqa: ARG002
        return text

    async def assess_output(self, input_text: str, output: str) -> Mapping[str, Any]:
        assert (input_text, output) == ("a transaction", "DECLINE")
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: Mapping[str, Any] = self.answer
        return answer


JUDGES = [SimpleJudge(), LLMJudge(), LLMJudge.played_by(Answers({"is_correct": False, "confidence": 0.1}))]


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    ("output", "truth", "correct"),
    [
        ("DECLINE", "DECLINE", True),
        ("  decline\n", "DECLINE", True),
        ("Decline", " dEcLiNe ", True),
        ("DECLINE", "APPROVE", False),
        ("", "APPROVE", False),
        ("DECLINE it", "DECLINE", False),
    ],
)
def test_with_the_truth_the_words_decide_letter_case_and_spaces_aside(
    judge: SimpleJudge, output: str, truth: str, correct: bool
) -> None:
    assert asyncio.run(judge.judge("a transaction", output, truth)) == (correct, 1.0)


@pytest.mark.parametrize("judge", [SimpleJudge(), LLMJudge()])
@pytest.mark.parametrize("truth", [None, "", "  "])
def test_without_truth_and_without_a_model_it_is_unjudged(judge: SimpleJudge, truth: str | None) -> None:
    ruled = asyncio.run(judge.rule("a transaction", "DECLINE", truth))
    assert (ruled.ruling, ruled.confidence, ruled.is_correct) == (Ruling.UNJUDGED, 0.0, None)
    assert ruled.reason


@pytest.mark.parametrize("correct", [True, False])
def test_a_model_judges_where_no_truth_is_known(correct: bool) -> None:
    model = Answers({"is_correct": correct, "confidence": 0.8, "reasoning": "because"})
    ruled = asyncio.run(LLMJudge.played_by(model).rule("a transaction", "DECLINE"))
    assert (ruled.is_correct, ruled.confidence, ruled.reason) == (correct, 0.8, "because")


def test_a_model_is_not_asked_where_the_truth_is_known() -> None:
    model = Answers({"is_correct": False, "confidence": 1.0})
    assert asyncio.run(LLMJudge.played_by(model).judge("a transaction", "DECLINE", "DECLINE")) == (True, 1.0)
    assert model.asked == 0


@pytest.mark.parametrize(
    "answer",
    [
        ModelError("timed out"),
        {},
        {"is_correct": True},
        {"is_correct": True, "confidence": "high"},
        {"is_correct": True, "confidence": 7},
        {"confidence": 0.9},
        {"is_correct": None, "confidence": 0.9},
        {"is_correct": "false", "confidence": 0.9},
        None,
        [],
        "yes",
    ],
    ids=repr,
)
def test_a_judge_that_fails_or_answers_nonsense_leaves_the_case_unjudged(answer: Any) -> None:
    ruled = asyncio.run(LLMJudge.played_by(Answers(answer)).rule("a transaction", "DECLINE"))
    assert (ruled.ruling, ruled.confidence) == (Ruling.UNJUDGED, 0.0)
    assert "failed" in ruled.reason
