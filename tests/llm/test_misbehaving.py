"""A server that misbehaves in three calls of ten: no verdict and no judgement comes from a call that failed."""

from __future__ import annotations

import asyncio
import gc
import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli import conftest as commands
from tests.effort import rounds
from tests.llm import on_server

from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, OutcomeHeard
from acefraud.core.outcome import Ruling
from acefraud.core.transaction import Case, Verdict
from acefraud.learning.build_roles import build_roles

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Shell
    from tests.llm.conftest import Loopback
    from tests.llm.loopback import LoggedCall, LoopbackServer

pytestmark = [pytest.mark.wide, pytest.mark.enable_socket]

MISBEHAVIOURS = (
    *("rate_limit", "http_500", "hang", "trickle", "cut", "invalid_json", "wrong_shape", "lower_case", "sentence"),
    *("empty", "refusal", "wrong_dimension", "unknown_bullets", "broken_body"),
)
HARMLESS = ("", "lower_case")
"""What can be read without asking again."""
FALLBACKS = ("review", "embedded", "error")
SHARE = 0.3
shell = commands.shell


@pytest.fixture(autouse=True)
def surroundings(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("ACEFRAUD_CACHE", "")
    on_server.without_waits(monkeypatch)
    shell.write("acefraud.toml", "[llm]\nattempts = 2\n")  # so that some calls fail for good


@dataclass(frozen=True)
class Stretch:
    """Transactions that were handed over with one fallback, and what the commands said."""

    fallback: str
    cases: Sequence[Case]
    decided: Ran
    learnt: Ran


class Runs:
    """Trains, decides and learns with commands, on a server that misbehaves."""

    def __init__(self, shell: Shell, server: LoopbackServer, timeout: float) -> None:
        self._shell = shell
        self._options = (
            *("--models", "openai", "--base-url", server.base_url),
            *("--timeout", str(timeout), "--concurrency", "16"),
        )

    def run(self, *arguments: Any) -> Ran:
        """A command that may stop because a model failed: then with one line on standard error."""
        ran = self._shell.attempt(*arguments, *self._options, "--playbook", self._shell.book)
        if ran.code:
            assert ran.code == 2, ran.err
            assert [line.startswith("acefraud: ") for line in ran.err.splitlines()].count(True) == 1
            assert "Traceback" not in ran.err
        return ran

    def train(self, cases: Sequence[Case]) -> Ran:
        path = on_server.write_cases(self._shell.folder / "train.jsonl", cases)
        return self.run("train", path, "--json", "--fallback", "review")

    def stretch(self, fallback: str, cases: Sequence[Case]) -> Stretch:
        path = on_server.write_cases(self._shell.folder / "some.jsonl", cases)
        decided = self.run("decide", path, "--json", "--fallback", fallback)
        return Stretch(fallback, cases, decided, self.run("learn", path, "--json", "--fallback", fallback))


def good_replies(server: LoopbackServer, loopback: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The facts that the agent was asked about in each call that went well, and what it answered."""
    found = []
    for call in server.log:
        if call.role != "agent" or not call.delivered:
            continue
        asked = loopback.Asked(json.loads(call.body))
        cites_of_none = call.misbehaviour == "unknown_bullets" and not loopback.bullets_view(asked.user)
        if call.misbehaviour in HARMLESS or cites_of_none:  # where no bullet was shown, none can be credited
            facts = loopback.read_transaction(asked.user)[1]
            found.append((facts, json.loads(loopback.agent(asked, 0.0))))
    return found


def answered(decision: Decision, good: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> bool:
    """Whether a call about this transaction went well and said just this."""
    return any(
        (reply["verdict"], reply["probability"]) == (decision.verdict, decision.probability)
        and facts
        and facts.items() <= decision.facts.items()
        for facts, reply in good
    )


def check(shell: Shell, server: LoopbackServer, stretches: Sequence[Stretch], loopback: Any) -> dict[str, int]:
    """What stands in the ledger, held against the server's log."""
    with shell.open() as book:
        events = [event.payload for event in book.ledger.read()]
    made = {e.decision.transaction.id: e.decision for e in events if isinstance(e, DecisionMade)}
    heard = {e.outcome.transaction_id: e for e in events if isinstance(e, OutcomeHeard)}
    good = good_replies(server, loopback)
    counts: Counter[str] = Counter()
    for stretch in stretches:
        if stretch.fallback != "error":
            assert (stretch.decided.code, stretch.learnt.code) == (0, 0), stretch.decided.err + stretch.learnt.err
        assert stretch.learnt.code == 0, stretch.learnt.err
        printed = {line["transaction_id"] for line in stretch.decided.lines}
        left = [case.transaction.id for case in stretch.cases if case.transaction.id not in made]
        if left:
            told = f"not decided: '{left[0]}' and all after it, {len(left)} of {len(stretch.cases)}"
            assert told in stretch.decided.err
            assert left == [case.transaction.id for case in stretch.cases][-len(left) :]
        for case in stretch.cases:
            name = case.transaction.id
            decision = made.get(name)
            if decision is None:
                assert stretch.fallback == "error"
                counts["named"] += 1
            else:
                assert name in printed
                counts["decided"] += 1
                check_decision(decision, stretch.fallback, good, counts)
            counts["heard"] += name in heard
            check_judgement(heard[name], case, counts)
    return counts


def check_decision(
    decision: Decision, fallback: str, good: Sequence[tuple[dict[str, Any], dict[str, Any]]], counts: Counter[str]
) -> None:
    if decision.fallback:
        counts["fallbacks"] += 1
        assert fallback != "error"
        assert (decision.verdict is Verdict.REVIEW) == (fallback == "review")
        assert decision.model == "embedded"
        assert decision.reasons[0].kind == "fallback"
    else:
        assert decision.model == on_server.MODELS["agent"]
        assert decision.verdict in (Verdict.APPROVE, Verdict.DECLINE)
        assert answered(decision, good), f"{decision.verdict} on {decision.transaction.id} came from a failed call"


def check_judgement(heard: OutcomeHeard, case: Case, counts: Counter[str]) -> None:
    ruling = heard.judgement.ruling
    counts["unjudged"] += ruling is Ruling.UNJUDGED
    assert "failed" not in heard.judgement.reason
    assert heard.outcome.is_fraud == case.is_fraud


def tell(name: str, calls: Sequence[LoggedCall], counts: dict[str, int]) -> None:
    bad = sum(call.misbehaviour not in HARMLESS for call in calls)
    shown = " ".join(f"{what} {counts.get(what, 0):>4}" for what in ("decided", "fallbacks", "named", "heard"))
    print(f"{name:<16} calls {len(calls):>5} failed {bad:>4} {shown} unjudged {counts.get('unjudged', 0):>4}")


@contextmanager
def connections_given_up() -> Iterator[None]:
    """A connection whose call times out just as it opens is lost to the HTTP library; garbage collection closes it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed", ResourceWarning)
        yield
        gc.collect()


def train_decide_and_learn(
    misbehaviour: str, shell: Shell, server: LoopbackServer, loopback: Any, *, train: int, stretch: int
) -> None:
    slow = misbehaviour in ("hang", "trickle")
    runs = Runs(shell, server, 0.4 if slow else 20.0)
    before, later = on_server.cases(train, 3 * stretch)
    with connections_given_up() if slow else nullcontext():
        trained = runs.train(before)
        assert trained.code == 0, trained.err
        stretches = [
            runs.stretch(fallback, later[n * stretch : (n + 1) * stretch]) for n, fallback in enumerate(FALLBACKS)
        ]
    counts = check(shell, server, stretches, loopback)
    tell(misbehaviour, server.log, counts)
    assert counts["heard"] == 3 * stretch
    assert counts["decided"] + counts["named"] == 3 * stretch
    assert any(call.misbehaviour == misbehaviour for call in server.log)


@pytest.mark.parametrize("misbehaviour", ["http_500", "hang", "invalid_json", "refusal"])
def test_nothing_is_decided_by_a_failed_call_and_nothing_is_lost(
    misbehaviour: str, shell: Shell, loopback: Loopback, loopback_module: Any
) -> None:
    server = loopback(misbehave={misbehaviour: SHARE}, retry_after="0.01")
    train_decide_and_learn(misbehaviour, shell, server, loopback_module, train=40, stretch=14)


@pytest.mark.long
@pytest.mark.parametrize("misbehaviour", MISBEHAVIOURS)
def test_the_same_with_every_misbehaviour(
    misbehaviour: str, shell: Shell, loopback: Loopback, loopback_module: Any
) -> None:
    share = 0.5 if misbehaviour == "wrong_dimension" else SHARE  # only embeddings, of which there are few
    server = loopback(misbehave={misbehaviour: share}, retry_after="0.01")
    train_decide_and_learn(
        misbehaviour, shell, server, loopback_module, train=max(40, rounds(150)), stretch=max(14, rounds(50))
    )


@pytest.mark.parametrize("misbehaviour", ["http_500", "sentence", "wrong_shape", "empty", "refusal", "cut"])
def test_a_judge_that_fails_leaves_a_decision_unjudged(
    misbehaviour: str, loopback: Loopback, loopback_module: Any
) -> None:
    server = loopback(misbehave={misbehaviour: SHARE})
    texts = [f"{case.transaction.text} Case {n}." for n, case in enumerate(on_server.cases(40, 0)[0])]

    async def judge_all() -> list[Any]:
        roles = build_roles(on_server.chosen(server, attempts=2))
        assert roles.judge is not None
        try:
            return list(await asyncio.gather(*(roles.judge.rule(text, "DECLINE") for text in texts)))
        finally:
            await roles.close()

    judgements = asyncio.run(judge_all())
    asked = [(loopback_module.Asked(json.loads(call.body)), call) for call in server.log]
    for n, judgement in enumerate(judgements):
        mine = [(each, call) for each, call in asked if f"Case {n}." in each.user]
        good = [each for each, call in mine if call.delivered and call.misbehaviour in HARMLESS]
        assert (judgement.ruling is Ruling.UNJUDGED) == (not good)
        if good:
            agreed = json.loads(loopback_module.judge(good[0]))["is_correct"]
            assert (judgement.ruling is Ruling.CORRECT) == agreed
        else:
            assert (judgement.confidence, "failed" in judgement.reason) == (0.0, True)
    unjudged = sum(each.ruling is Ruling.UNJUDGED for each in judgements)
    print(f"\njudge, {misbehaviour}: {len(server.log)} calls, {len(judgements) - unjudged} judged, {unjudged} not")
    assert 0 < unjudged < len(texts)


@pytest.mark.parametrize("fallback", ["review", "embedded"])
def test_an_embedder_that_always_fails_stops_neither_training_nor_deciding(
    fallback: str, shell: Shell, loopback: Loopback, loopback_module: Any
) -> None:
    before, later = on_server.cases(60, 14)
    runs = Runs(shell, loopback(), 20.0)
    assert runs.train(before).code == 0
    server = loopback(misbehave={"wrong_dimension": 1.0})
    runs = Runs(shell, server, 20.0)
    trained = runs.train(before[:40])
    assert trained.code == 0, trained.err
    counts = check(shell, server, [runs.stretch(fallback, later)], loopback_module)
    assert counts["decided"] == counts["heard"] == 14
    assert any(call.role == "embedding" for call in server.log)
