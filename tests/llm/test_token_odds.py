"""The odds of the two verdicts, from the tokens that may begin them."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.growth import assert_linear

from acefraud.core.transaction import Verdict
from acefraud.llm.call import TokenLogprobs
from acefraud.roles.model.replies import odds_of, verdict_in

DECLINES = ("DECLINE", "decline", " Decline", "DE", "Dec", "D", '"DECLINE', "**DECLINE**", "DECLINE.")
APPROVES = ("APPROVE", "approve", " Approve", "APP", "Ap", "A", '"APPROVE', "**APPROVE**", "APPROVE.")
STRAY = ("The", "I", "Based", "\n", " ", '"', "**", "DENY", "APPROVED", "DECLINED", "declines", "", "1", "de cline")

chances = st.floats(min_value=1e-6, max_value=1.0)
spelled = st.tuples(
    st.dictionaries(st.sampled_from(DECLINES), chances),
    st.dictionaries(st.sampled_from(APPROVES), chances),
    st.dictionaries(st.sampled_from(STRAY), chances),
)


def at(token: str, listed: dict[str, float]) -> TokenLogprobs:
    """The token that was written, among others with these probabilities."""
    logs = {each: math.log(chance) for each, chance in listed.items()}
    return TokenLogprobs(token=token, logprob=logs.pop(token), others=logs)


@pytest.mark.parametrize(
    "text", ["DECLINE", "decline", " Decline.\n", '"DECLINE"', "**Decline**", "_decline_", "→ DECLINE!"]
)
def test_one_word_is_a_verdict(text: str) -> None:
    assert verdict_in(text) is Verdict.DECLINE
    assert verdict_in(text.lower().replace("decline", "approve")) is Verdict.APPROVE


@pytest.mark.parametrize(
    "text",
    ["", " ", "I would decline this", "APPROVE or DECLINE", "Decline? No, approve.", "DECLINE would be wrong",
     "не DECLINE", "DECLINED", "DECL", "REVIEW", "DECLINE 0.9", "APPROVE/DECLINE", "D E C L I N E", "decline1"],
)  # fmt: skip
def test_anything_more_is_none(text: str) -> None:
    assert verdict_in(text) is None


@given(st.text())
def test_only_the_words_themselves_are_verdicts(text: str) -> None:
    said = verdict_in(text)
    assert (said is not None) == (verdict_in(f" {text}.") is not None)
    if said is not None:
        assert said.value in text.upper()


def test_a_long_reply_is_read_in_time_proportional_to_its_length() -> None:
    def read(dots: int) -> None:
        assert verdict_in("." * dots + "decline" + "." * dots + " no") is None

    assert_linear(read, 200_000, 1_000_000)


@given(spelled, st.data())
def test_all_spellings_of_a_verdict_count_together(listed: tuple[dict[str, float], ...], data: st.DataObject) -> None:
    declines, approves, stray = listed
    assume(declines and approves)
    token = data.draw(st.sampled_from([*declines, *approves]))
    odds = odds_of([at(token, {**stray, **declines, **approves})])
    assert odds == pytest.approx(math.log(sum(declines.values()) / sum(approves.values())), abs=1e-9)


@given(spelled, st.data())
def test_a_verdict_that_is_not_listed_is_no_likelier_than_what_is(
    listed: tuple[dict[str, float], ...], data: st.DataObject
) -> None:
    declines, approves, stray = listed
    assume(declines or approves)
    one, sign = (declines, 1) if declines else (approves, -1)
    assume(len({**one, **stray}) > 1)
    token = data.draw(st.sampled_from(list(one)))
    odds = odds_of([at(token, {**stray, **one})])
    assert odds is not None
    least = min({**stray, **one}.values())
    assert sign * odds == pytest.approx(math.log(sum(one.values()) / least), abs=1e-9)
    assert sign * odds >= -1e-9


@given(st.sampled_from([*DECLINES, *APPROVES]), st.floats(max_value=0.0))
def test_without_alternatives_there_are_no_odds(token: str, logprob: float) -> None:
    assert odds_of([TokenLogprobs(token=token, logprob=logprob)]) is None
    assert odds_of([]) is None


@given(st.dictionaries(st.sampled_from(STRAY), chances, min_size=2))
def test_without_a_verdict_there_are_no_odds(stray: dict[str, float]) -> None:
    assert odds_of([at(next(iter(stray)), stray)]) is None


def test_the_odds_are_those_where_the_verdict_begins() -> None:
    quote = at('"', {'"': 0.9, "APPROVE": 0.09, "DECLINE": 0.01})
    verdict = at("DE", {"DE": 0.8, "APP": 0.2})
    rest = at("CLINE", {"CLINE": 0.99, "D": 0.01})
    assert odds_of([quote, verdict, rest]) == pytest.approx(math.log(4))


@pytest.mark.parametrize("logprob", [0.5, 1000.0, math.inf])
def test_a_probability_above_one_counts_as_one(logprob: float) -> None:
    odds = odds_of([TokenLogprobs(token="DECLINE", logprob=logprob, others={"APPROVE": -2.0})])
    assert odds == pytest.approx(2.0)
    odds = odds_of([TokenLogprobs(token="DECLINE", logprob=-2.0, others={"APPROVE": logprob})])
    assert odds == pytest.approx(-2.0)


def test_what_cannot_be_is_very_unlikely() -> None:
    odds = odds_of([TokenLogprobs(token="APPROVE", logprob=0.0, others={"DECLINE": -9999.0, "The": -9999.0})])
    assert odds == pytest.approx(-9999.0)
