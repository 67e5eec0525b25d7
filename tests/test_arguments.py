"""What a newcomer may pass by mistake is refused with the argument, what was given and what is accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import acefraud as af
from acefraud.errors import AcefraudError, ConfigurationError, InputError

ANY: Any = af
BOOK: Any = af.BulletPlaybook()
CASE: Any = af.Case(transaction=af.Transaction(id="t1", facts={"amount": 5.0}), is_fraud=True)
DATA: Any = af.Dataset("cards", [CASE])
LEARNER: Any = af.Learner(BOOK)
RULE = BOOK.add_bullet("VPN: decline")

WRONG: list[tuple[Callable[[], Any], type[AcefraudError], str]] = [
    (lambda: BOOK.add_bullet(5), InputError, "content: expected a rule in words, got the int 5"),
    (lambda: BOOK.add_bullet(" "), InputError, "content: expected a rule in words, got an empty one"),
    (lambda: BOOK.add_bullet("x" * 3000), InputError, "content: expected at most 2,000 characters, got 3,000"),
    (lambda: BOOK.edit_bullet(RULE, "x" * 3000), InputError, "content: expected at most 2,000 characters, got 3,000"),
    (lambda: BOOK.add_bullet("VPN", 5), InputError, "node: expected the name of a node, got the int 5"),
    (lambda: BOOK.add_bullet("VPN", source="web"), InputError, "source: expected offline, online or manual"),
    (lambda: BOOK.add_bullet("VPN", argues="NO"), InputError, "argues: expected APPROVE, DECLINE or REVIEW"),
    (lambda: BOOK.add_bullet("VPN", status="on"), InputError, "status: expected candidate, active, pinned or retired"),
    (lambda: BOOK.add_bullet("VPN", condition=5), InputError, "condition: expected a Condition, or its text form"),
    (lambda: BOOK.add_bullet("VPN", condition="amount >"), InputError, "condition: expected a number"),
    (lambda: BOOK.add_bullet("VPN", weight="much"), InputError, "weight: expected a number, got the str 'much'"),
    (lambda: BOOK.get_bullet(5), InputError, "bullet_id: expected the id of a bullet, got the int 5"),
    (lambda: BOOK.get_bullets_for_node(5), InputError, "node: expected the name of a node"),
    (lambda: BOOK.get_bullets_for_node("n", "web"), InputError, "source: expected offline"),
    (lambda: BOOK.update_stats(RULE[:-1], True), InputError, f"no bullet '{RULE[:-1]}' .* did you mean {RULE}"),
    (lambda: BOOK.update_stats(RULE, "yes"), InputError, "is_helpful: expected True or False, got the str 'yes'"),
    (lambda: BOOK.set_status(RULE, "on"), InputError, "status: expected candidate"),
    (lambda: BOOK.set_threshold("x"), InputError, "threshold: expected a fraud probability between 0 and 1"),
    (lambda: ANY.BulletPlaybook("book.db"), ConfigurationError, "ledger: .*open_playbook.* got the str 'book.db'"),
    (
        lambda: ANY.open_playbook(5),
        InputError,
        "path: expected the path of a playbook file, or the address of a database",
    ),
    (lambda: ANY.load_dataset(5), InputError, "source: expected the path of a file, the name of a shipped dataset"),
    (
        lambda: ANY.load_dataset("complex_fraud_detection", options=5),
        ConfigurationError,
        "options: expected WorldOptions, got the int 5",
    ),
    (lambda: ANY.HybridSelector("a"), ConfigurationError, "quality_threshold: expected a number from 0 to 1"),
    (lambda: ANY.HybridSelector(embedding_model=5), ConfigurationError, "embedding_model: expected the name of"),
    (lambda: ANY.HybridSelector(weights=5), ConfigurationError, "weights: expected a weight for each of quality"),
    (lambda: ANY.HybridSelector(seed="x"), ConfigurationError, "seed: expected a whole number, got the str 'x'"),
    (
        lambda: ANY.HybridSelector().select_bullets(5, "n", BOOK),
        InputError,
        "query: expected the text of a transaction",
    ),
    (lambda: ANY.HybridSelector().select_bullets("x", "n", 5), InputError, "playbook: expected a BulletPlaybook"),
    (
        lambda: ANY.HybridSelector().select_bullets("x", "n", BOOK, "y"),
        ConfigurationError,
        "n_bullets: expected a whole",
    ),
    (lambda: ANY.Curator("a"), ConfigurationError, "similarity_threshold: expected a number above 0 and up to 1"),
    (lambda: ANY.Curator().merge_bullet(5, "n", BOOK), InputError, "content: expected a rule in words"),
    (lambda: ANY.Curator().merge_bullet("VPN", "n", 5), InputError, "playbook: expected a BulletPlaybook"),
    (lambda: ANY.Reflector(5), ConfigurationError, "options: expected ReflectorOptions, got the int 5"),
    (lambda: ANY.Reflector(model=5), ConfigurationError, "model: expected the name of a model, or an object that"),
    (lambda: asyncio.run(ANY.Reflector().reflect(5, "A", "B")), InputError, "query: expected the text of"),
    (
        lambda: ANY.Reflector().remember([5]),
        InputError,
        "cases: expected a sequence of Case.* got the int 5 at position 0",
    ),
    (lambda: ANY.Learner("book.db"), InputError, "playbook: expected a BulletPlaybook, .* got the str 'book.db'"),
    (
        lambda: ANY.Learner(BOOK, options={"node": "x"}),
        ConfigurationError,
        "options: .*LearnerOptions, got a dict of 1",
    ),
    (lambda: ANY.Learner(BOOK, agent="openai:x"), ConfigurationError, "agent: expected an object that plays the agent"),
    (lambda: LEARNER.study(5), InputError, "cases: expected a sequence of Case, .* got the int 5"),
    (lambda: LEARNER.study("file.csv"), InputError, "cases: expected a sequence of Case, .* got the str 'file.csv'"),
    (lambda: LEARNER.study([CASE.transaction]), InputError, "cases: .* got a Transaction at position 0"),
    (
        lambda: LEARNER.study([CASE], mapping=5),
        InputError,
        "mapping: expected a SchemaMapping, the path of one",
    ),
    (lambda: LEARNER.measure("vpn is true"), InputError, "condition: expected a Condition"),
    (lambda: LEARNER.remarks_on("b-1"), InputError, "bullet: expected a Bullet, got the str 'b-1'"),
    (lambda: asyncio.run(LEARNER.explain(5)), InputError, "decision: expected a Decision"),
    (
        lambda: asyncio.run(ANY.TrainingPipeline().run("x", [], [])),
        ConfigurationError,
        "mode: expected vanilla, online",
    ),
    (lambda: asyncio.run(ANY.TrainingPipeline().run("vanilla", [5], [])), InputError, "cases: expected a sequence of"),
    (lambda: DATA.split("a"), ConfigurationError, "test_share: expected a share between 0 and 1, got the str 'a'"),
    (lambda: DATA.folds("a"), ConfigurationError, "k: expected a whole number, got the str 'a'"),
    (lambda: ANY.Dataset("x", 5), InputError, "cases: expected a sequence of Case"),
    (lambda: ANY.Transactions.of([CASE]), InputError, "transactions: expected a sequence of Transaction, got a Case"),
    (lambda: ANY.LearnerOptions(review_least="a"), ConfigurationError, "review_least: expected a whole number of at"),
    (lambda: ANY.LearnerOptions(n_bullets=-1), ConfigurationError, "n_bullets: expected a whole number of at least 0"),
    (lambda: ANY.LearnerOptions(threshold=5), ConfigurationError, "threshold: expected a number from 0 to 1"),
    (lambda: ANY.LearnerOptions(fallback="x"), ConfigurationError, "fallback: expected error, review or embedded"),
    (lambda: ANY.ReflectionPolicy(together="x"), ConfigurationError, "together: expected a whole number of at least 1"),
    (lambda: ANY.ReflectionPolicy(most_share=0), ConfigurationError, "most_share: expected a number above 0"),
    (lambda: ANY.SimpleFraudAgent("VPN: decline"), ConfigurationError, "bullets: expected a list of rules in words"),
    (lambda: ANY.SimpleFraudAgent([5]), ConfigurationError, "bullets: expected rules in words or bullets"),
    (lambda: ANY.SimpleFraudAgent().analyze(5), InputError, "transaction: expected the text of a transaction"),
    (lambda: ANY.SimpleFraudAgent().analyze(" "), InputError, "transaction: .* got an empty one"),
    (lambda: asyncio.run(ANY.SimpleJudge().judge("x", 5, "y")), InputError, "output: expected a verdict in words"),
    (
        lambda: asyncio.run(ANY.SimpleJudge().judge("x", "y", 5)),
        InputError,
        "ground_truth: expected a verdict in words",
    ),
    (lambda: ANY.LLMJudge(5), ConfigurationError, "model: expected the name of a model, or an object that judges"),
    (lambda: ANY.build_roles(5), ConfigurationError, "chosen: expected ModelSettings"),
    (lambda: ANY.ModelSettings(timeout="x"), ConfigurationError, "timeout: expected a number of seconds above 0"),
    (lambda: ANY.ModelSettings(agent=5), ConfigurationError, "agent: expected embedded or provider:name"),
]


@pytest.mark.parametrize(("attempt", "error", "says"), WRONG, ids=[says for _, _, says in WRONG])
def test_a_wrong_argument_is_named_with_what_was_given_and_what_is_accepted(
    attempt: Callable[[], Any], error: type[AcefraudError], says: str
) -> None:
    with pytest.raises(error, match=says):
        attempt()


def test_a_condition_is_parsed_from_text_only() -> None:
    with pytest.raises(ValueError, match="a condition is written as text, got the int 5"):
        ANY.Condition.parse(5)
    with pytest.raises(ValueError, match=r"use Condition.parse\(text\)"):
        ANY.Condition("amount > 5")


def test_numbers_of_numpy_are_numbers() -> None:
    assert ANY.LearnerOptions(n_bullets=np.int64(3), threshold=np.float32(0.5)).n_bullets == 3
    assert len(DATA.split(np.float64(0.5), seed=np.int64(1))) in (0, 1)


def test_cases_may_come_as_a_list_where_columns_are_used() -> None:
    known, pending = ANY.known_by([CASE], [CASE])
    assert (len(known), len(pending)) == (1, 0)
    assert [what for what, _ in ANY.label_stream([CASE], decide=[0])] == ["decide", "hear"]


# --- a history without both labels ----------------------------------------------------------------------------------


def history(labels: str) -> list[af.Case]:
    rows = [af.Transaction(id=f"t{index}", facts={"amount": float(index)}) for index in range(len(labels))]
    return [af.Case(transaction=row, is_fraud=label == "1") for row, label in zip(rows, labels, strict=True)]


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ("", "there are no cases: expected a history with both labels"),
        ("0" * 120, "all 120 cases are honest: expected both labels, so frauds are missing"),
        ("111", "all 3 cases are fraud: expected both labels, so honest ones are missing"),
        ("1", "the only case is fraud"),
    ],
)
def test_a_history_without_both_labels_is_refused_and_nothing_is_written(labels: str, says: str) -> None:
    learner = af.Learner(af.BulletPlaybook())
    with pytest.raises(InputError, match=says):
        learner.study(history(labels))
    with pytest.raises(InputError, match=says):
        asyncio.run(learner.train(history(labels)))
    assert learner.playbook.seq == 0
    assert learner.study(history(labels), both_labels=False) == []
    assert len(learner.remembered()) == len(labels)


def test_both_labels_but_too_few_cases_teach_nothing() -> None:
    assert af.Learner(af.BulletPlaybook()).study(history("01")) == []


@pytest.mark.parametrize("labels", ["", "0000"])
def test_a_pipeline_goes_on_without_both_labels_in_the_training_part(labels: str) -> None:
    run = asyncio.run(af.TrainingPipeline().run(af.Mode.OFFLINE_ONLINE, history(labels), history("0101")))
    assert (len(run.declined), run.bullets) == (4, 0)


def test_a_mode_may_be_named() -> None:
    run = asyncio.run(ANY.TrainingPipeline().run("vanilla", history("01"), history("01")))
    assert run.mode is af.Mode.VANILLA
    assert run.playbook.outcomes == 0
