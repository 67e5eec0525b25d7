"""Judges: the truth decides where it is known, and a failed call is never a wrong decision."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from acefraud.core.outcome import Judgement, Ruling
from acefraud.core.transaction import FactValue
from acefraud.errors import ModelError, ModelMalformed, ModelTimeout
from acefraud.roles.judge import LLMJudge, SimpleJudge


class Answers:
    """A model that gives one answer, or fails with one error, and counts how often it was asked."""

    model = "scripted:judge"

    def __init__(self, answer: Judgement | ModelError) -> None:
        self.answer = answer
        self.asked = 0

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:  # noqa: ARG002
        return text

    async def assess_output(self, input_text: str, output: str) -> Judgement:
        assert (input_text, output) == ("a transaction", "DECLINE")
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


JUDGES = [SimpleJudge(), LLMJudge(), LLMJudge(Answers(Judgement(ruling=Ruling.INCORRECT, confidence=0.1)))]


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
    ruling = Ruling.CORRECT if correct else Ruling.INCORRECT
    model = Answers(Judgement(ruling=ruling, confidence=0.8, reason="because"))
    ruled = asyncio.run(LLMJudge(model).rule("a transaction", "DECLINE"))
    assert (ruled.is_correct, ruled.confidence, ruled.reason) == (correct, 0.8, "because")


def test_a_model_is_not_asked_where_the_truth_is_known() -> None:
    model = Answers(Judgement(ruling=Ruling.INCORRECT))
    assert asyncio.run(LLMJudge(model).judge("a transaction", "DECLINE", "DECLINE")) == (True, 1.0)
    assert model.asked == 0


@pytest.mark.parametrize("failure", [ModelTimeout("too slow"), ModelMalformed("not JSON"), ModelError("other")])
def test_a_judge_that_fails_leaves_the_case_unjudged(failure: ModelError) -> None:
    ruled = asyncio.run(LLMJudge(Answers(failure)).rule("a transaction", "DECLINE"))
    assert (ruled.ruling, ruled.confidence) == (Ruling.UNJUDGED, 0.0)
    assert ruled.reason == f"the judge failed: {failure}"
