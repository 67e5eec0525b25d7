"""The synthetic world: reproducible, overlapping, and telling the same story in facts and in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.fact_names import NAMED_FACTS
from acefraud.core.transaction import Case
from acefraud.datasets.world import WorldOptions, generate
from acefraud.datasets.world.dice import Dice
from acefraud.datasets.world.documents import age
from acefraud.datasets.world.facts import round_age
from acefraud.datasets.world.stories import phrasebook, stories
from acefraud.errors import ConfigurationError

pytestmark = pytest.mark.wide

CATEGORICAL = {"merchant_category", "channel", "payment_method"}


@pytest.fixture(scope="module")
def world() -> list[Case]:
    return generate(WorldOptions(), seed=11)


def _dump(cases: list[Case]) -> bytes:
    return "\n".join(case.model_dump_json() for case in cases).encode()


def _told_fraud(case: Case) -> bool:
    return stories()[case.metadata["story"]].is_fraud


def test_the_same_seed_gives_the_same_bytes() -> None:
    options = WorldOptions(transactions=150)
    assert _dump(generate(options, 3)) == _dump(generate(options, 3))
    assert _dump(generate(options, 3)) != _dump(generate(options, 4))


@pytest.fixture
def wordless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds without texts, which take most of the time. They are written with dice of their own."""
    monkeypatch.setattr("acefraud.datasets.world.world.write_document", lambda *_: "Nothing to tell.")


@pytest.mark.usefixtures("wordless")
@pytest.mark.parametrize("prevalence", [0.1, 0.4, 0.7])
def test_prevalence_is_as_asked(prevalence: float) -> None:
    cases = generate(WorldOptions(prevalence=prevalence, label_noise=0.0), 5)
    # four standard errors of a share over 2,000 draws
    assert sum(case.is_fraud for case in cases) / len(cases) == pytest.approx(prevalence, abs=0.045)


@pytest.mark.parametrize("prevalence", [0.0, 1.0])
def test_a_world_may_have_one_side_only(prevalence: float) -> None:
    cases = generate(WorldOptions(transactions=60, prevalence=prevalence, label_noise=0.0), 5)
    assert {case.is_fraud for case in cases} == {bool(prevalence)}


def test_every_story_and_difficulty_occurs(world: list[Case]) -> None:
    assert {case.metadata["story"] for case in world} == set(stories())
    assert {case.difficulty for case in world} == {"easy", "medium", "hard", "very_hard"}


def test_twins_are_of_the_other_side() -> None:
    for story in stories().values():
        assert stories()[story.twin].is_fraud != story.is_fraud


def test_times_run_forward_and_labels_come_after(world: list[Case]) -> None:
    times = [case.transaction.time for case in world]
    assert all(time is not None for time in times)
    assert times == sorted(times, key=lambda time: time or datetime.max.replace(tzinfo=UTC))
    for case in world:
        assert case.transaction.time is not None
        assert case.known_at is not None
        assert case.known_at >= case.transaction.time
        assert WorldOptions().start <= case.transaction.time < WorldOptions().start + timedelta(days=120)


def test_the_start_may_be_any_moment() -> None:
    start = datetime(2024, 2, 28, 13, 45, 30, tzinfo=UTC)
    for case in generate(WorldOptions(transactions=200, days=3, start=start), 2):
        assert case.transaction.time is not None
        assert start <= case.transaction.time < start + timedelta(days=3)
        assert case.transaction.facts.get("hour", float(case.transaction.time.hour)) == case.transaction.time.hour


def test_ids_count_up_and_say_nothing_else(world: list[Case]) -> None:
    assert [case.transaction.id for case in world] == [f"tx-{number:06d}" for number in range(1, len(world) + 1)]


def test_labels_of_fraud_come_later_and_with_a_tail(world: list[Case]) -> None:
    waits: dict[bool, list[float]] = {True: [], False: []}
    for case in world:
        assert case.known_at is not None
        assert case.transaction.time is not None
        waits[case.is_fraud].append((case.known_at - case.transaction.time) / timedelta(days=1))
    assert len(set(waits[False])) == 1
    assert max(waits[True]) > 4 * sorted(waits[True])[len(waits[True]) // 2]
    assert sum(waits[True] + waits[False]) / len(world) == pytest.approx(7, abs=1)


def test_without_delay_labels_are_known_at_once() -> None:
    for case in generate(WorldOptions(transactions=80, label_delay_days=0), 1):
        assert case.known_at == case.transaction.time


@pytest.mark.usefixtures("wordless")
def test_label_noise_is_the_share_of_wrong_labels() -> None:
    cases = generate(WorldOptions(transactions=2000, label_noise=0.1), 8)
    wrong = sum(case.is_fraud != _told_fraud(case) for case in cases) / len(cases)
    assert wrong == pytest.approx(0.1, abs=0.02)
    exact = generate(WorldOptions(transactions=500, label_noise=0.0), 8)
    assert all(case.is_fraud == _told_fraud(case) for case in exact)


def test_facts_have_known_names_and_kinds(world: list[Case]) -> None:
    kinds = {"flag": bool, "number": float, "category": str}
    for case in world:
        for name, value in case.transaction.facts.items():
            assert type(value) is kinds[NAMED_FACTS[name].kind], name


def test_facts_agree_with_each_other(world: list[Case]) -> None:
    for case in world:
        facts: dict[str, Any] = dict(case.transaction.facts)
        if "hour" in facts:
            assert facts["night"] == (facts["hour"] >= 23 or facts["hour"] < 6)
        for usual, ratio in (("usual_amount", "amount_to_usual"), ("usual_amount_max", "amount_to_usual_max")):
            assert (usual in facts) == (ratio in facts)
            if usual in facts:
                assert facts[ratio] == pytest.approx(facts["amount"] / facts[usual], abs=0.006)
        if "purchases_at_merchant" in facts:
            assert facts["first_time_merchant"] == (facts["purchases_at_merchant"] == 0)
        for part in ("device_age_days", "payment_method_age_days"):
            assert facts.get(part, 0.0) <= facts.get("account_age_days", 1e9)
        assert not (facts.get("travel") and facts.get("location_change") is False)


def test_the_text_gives_the_amount_of_the_facts(world: list[Case]) -> None:
    for case in world:
        amount = float(case.transaction.facts["amount"])
        figures = {float(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*(?:\.\d+)?", _plain(case))}
        assert amount in figures, case.transaction.text


def _plain(case: Case) -> str:
    """The text with commas kept only inside figures."""
    return re.sub(r",(?!\d{3})", " ", case.transaction.text)


def test_the_text_gives_the_hour_of_the_facts(world: list[Case]) -> None:
    seen = 0
    for case in world:
        found = re.search(r"at (\d{1,2}):\d\d(?: ([AP])M| ([ap])\.m\.)?", case.transaction.text)
        if not found:
            continue
        half = (found[2] or found[3] or "").lower()
        hour = int(found[1]) % 12 + (12 if half == "p" else 0) if half else int(found[1])
        assert hour == case.transaction.facts["hour"], case.transaction.text
        seen += 1
    assert seen > 0.7 * len(world)


def test_flags_in_the_text_are_those_of_the_facts(world: list[Case]) -> None:
    """Sentences that exist for one side of a flag appear only where the facts say so."""
    for sides, value in ((phrasebook().true_flags, True), (phrasebook().false_flags, False)):
        for name, phrases in sides.items():
            for clause in phrases.clauses:
                if "{" in clause:
                    continue
                sentence = f"{clause[0].upper()}{clause[1:]}."
                for case in world:
                    if sentence in case.transaction.text:
                        assert case.transaction.facts[name] is value, (sentence, case.transaction.text)


def test_the_text_does_not_reveal_the_label(world: list[Case]) -> None:
    giveaway = re.compile(r"fraudulent|legitimate|genuine|scam|stolen|takeover|\bmule|synthetic|collu|innocent", re.I)
    for case in world:
        assert not giveaway.search(case.transaction.text), case.transaction.text
        assert not re.search(r"fraud(?! reports?)", case.transaction.text, re.I), case.transaction.text
        assert "{" not in case.transaction.text


def test_wording_is_varied(world: list[Case]) -> None:
    texts = [case.transaction.text for case in world]
    assert len(set(texts)) == len(texts)
    shapes: Counter[str] = Counter()
    for text in texts:
        for sentence in re.split(r"[.;|\n]\s|, ", text):
            shapes[re.sub(r"'[a-z_0-9]+'|[A-Z]\w+|\d[\d,.]*", "_", sentence)] += 1
    assert sum(count >= 2 for count in shapes.values()) > 600
    assert max(shapes.values()) < 0.5 * len(texts)


def test_every_fact_of_the_world_has_several_phrasings(world: list[Case]) -> None:
    book = phrasebook()
    tables = (book.numbers, book.categories, book.true_flags, book.false_flags)
    for phrases in [phrases for table in tables for phrases in table.values()]:
        assert len(set(phrases.clauses + phrases.notes)) >= 4
    names = {name for case in world for name in case.transaction.facts}
    flags = {name for name in names if NAMED_FACTS[name].kind == "flag"}
    assert flags <= set(book.true_flags)
    assert flags <= set(book.false_flags)


def test_no_single_fact_decides(world: list[Case]) -> None:
    names = {name for case in world for name in case.transaction.facts} - CATEGORICAL
    best = {name: _best_threshold(world, name) for name in names}
    assert max(best.values()) < 0.75, max(best, key=lambda name: best[name])


def _best_threshold(cases: list[Case], name: str) -> float:
    """Accuracy of the best rule over one number or flag, with the unknown on either side."""
    known = sorted(
        (float(value), case.is_fraud) for case in cases if (value := case.transaction.facts.get(name)) is not None
    )
    fraud = sum(label for _, label in known)
    unknown = [case.is_fraud for case in cases if name not in case.transaction.facts]
    rest = max(sum(unknown), len(unknown) - sum(unknown))
    best, below = 0, 0
    for index, (value, label) in enumerate(known):
        if index == 0 or value != known[index - 1][0]:
            right = (index - below) + (fraud - below)
            best = max(best, right, len(known) - right)
        below += label
    return (best + rest) / len(cases)


def _mixes(drift: float) -> tuple[Counter[str], Counter[str]]:
    cases = generate(WorldOptions(transactions=4000, drift=drift, prevalence=0.6), 21)
    half = len(cases) // 2
    first, second = (Counter(case.metadata["story"] for case in part) for part in (cases[:half], cases[half:]))
    return first, second


def _moved(first: Counter[str], second: Counter[str]) -> float:
    """Half the summed difference of two mixes: the share of stories that changed hands."""
    return sum(abs(first[name] - second[name]) for name in stories()) / (2 * first.total())


@pytest.mark.usefixtures("wordless")
def test_drift_changes_the_mix_and_no_drift_does_not() -> None:
    # sampling alone moves about 0.05 between halves of 2,000
    assert _moved(*_mixes(0.0)) < 0.07
    assert _moved(*_mixes(1.0)) > 0.09


@pytest.mark.long
@pytest.mark.usefixtures("wordless")
def test_drift_brings_a_new_variant_after_the_middle() -> None:
    def guided(drift: float, late: bool) -> float:
        cases = generate(WorldOptions(transactions=4000, drift=drift, prevalence=1.0, ambiguous=0.0), 22)
        part = cases[2600:] if late else cases[:1600]
        takeovers = [case.transaction.facts for case in part if case.metadata["story"] == "account takeover"]
        return sum(facts.get("remote_access") is True for facts in takeovers) / len(takeovers)

    assert guided(1.0, late=False) < 0.05
    assert guided(1.0, late=True) > 0.15
    assert guided(0.0, late=True) < 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        {"transactions": 0}, {"transactions": 2.5}, {"transactions": True}, {"days": 0}, {"prevalence": -0.1},
        {"prevalence": 1.1}, {"label_noise": 2.0}, {"ambiguous": float("nan")}, {"drift": -1.0}, {"drift": "much"},
        {"label_delay_days": -1.0}, {"label_delay_days": float("inf")}, {"start": datetime(2025, 1, 6)},
    ],
)  # fmt: skip
def test_impossible_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        WorldOptions(**wrong)


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_impossible_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(ConfigurationError, match="seed"):
        generate(WorldOptions(transactions=1), seed)


@given(days=st.floats(min_value=0.0, max_value=6000.0), seed=st.integers(0, 1000))
def test_an_age_in_words_is_the_age_of_the_facts(days: float, seed: int) -> None:
    rounded = round_age(days)
    figure, unit = age(rounded, Dice(seed, 0)).split(" ")
    lengths = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}
    assert float(figure) * lengths[unit.removesuffix("s")] == pytest.approx(rounded, abs=1e-3)
    assert round_age(rounded) == rounded


@pytest.mark.usefixtures("wordless")
def test_what_an_analyst_would_suspect_is_riskier_than_the_rest() -> None:
    cases = generate(WorldOptions(transactions=6000), 31)

    def share(holds: Callable[[dict[str, Any]], bool]) -> float:
        labels = [case.is_fraud for case in cases if holds(dict(case.transaction.facts))]
        return sum(labels) / len(labels)

    def flagged(flag: str, value: bool) -> float:
        return share(lambda facts: facts.get(flag) is value)

    for flag in ("night", "vpn", "new_device", "kyc_missing", "high_risk_country", "velocity"):
        assert flagged(flag, True) > flagged(flag, False) + 0.03, flag
    base = share(lambda _: True)
    assert share(lambda facts: facts.get("account_age_days", 365.0) < 7) > base + 0.3
    assert share(lambda facts: facts.get("account_age_days", 365.0) < 30) > base + 0.15
