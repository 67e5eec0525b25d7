"""Nothing that a person gets back shows personal data or fills the screen, in a prompt or in a notebook."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import acefraud
import acefraud.errors
from acefraud import (
    Bullet,
    BulletPlaybook,
    BulletScore,
    Case,
    Cases,
    Columns,
    Condition,
    Curator,
    Dataset,
    Evidence,
    FactTable,
    HybridSelector,
    Judgement,
    Learner,
    LearnerOptions,
    LLMJudge,
    Mode,
    ModelSettings,
    ModeRun,
    Outcome,
    Reason,
    Record,
    ReflectionPolicy,
    Reflector,
    Roles,
    SchemaMapping,
    SimpleFraudAgent,
    SimpleJudge,
    TrainingPipeline,
    Transaction,
    Transactions,
    Verdict,
    build_roles,
)
from acefraud.core.bullet import Claim, Snooze
from acefraud.core.context_facts import ListItem
from acefraud.core.decision import DecisionRecord, ReasonKind
from acefraud.core.transactions import Transactions as Rows
from acefraud.datasets import BadRow
from acefraud.evaluation.backtest import Backtest, MeasuredBullet
from acefraud.evaluation.comparison import LIGHTGBM, Comparison, ModeFigures
from acefraud.evaluation.metrics import METRICS, Interval

CARD, MAIL, IBAN, PHONE, NAME, IP = (
    "4111111111111111",
    "ann@example.org",
    "DE89370400440532013000",
    "+4915112345678",
    "john_doe",
    "192.0.2.77",
)
PERSONAL = (CARD, MAIL, IBAN, PHONE, NAME, IP, "Ann Lee", "cust-991")
SCRIPT = "<script>alert(1)</script>"
TEXT = f"{SCRIPT} User '{NAME}' ({MAIL}, {IP}) paid with {CARD} from {IBAN}, call {PHONE}. " * 40
START = datetime(2025, 1, 1, tzinfo=UTC)


def transaction(place: int = 0) -> Transaction:
    return Transaction(
        id=f"{CARD}" if place == 0 else MAIL if place == 1 else f"t{place}",
        time=START + timedelta(hours=place),
        facts={
            "card_number": float(CARD),
            "amount": 5.0 + place,
            "contact": float(CARD),
            "full_name": "Ann Lee",
            "mail": MAIL,
            f"{SCRIPT} {MAIL}": 1.0,
            "note": f"'{NAME}' {IBAN} {PHONE} {IP}",
            **{f"fact_{number}": float(number) for number in range(300)},
        },
        text=f"Ann Lee, cust-991: {TEXT}",
        entities={"customer": "cust-991", "card": CARD},
    )


def case(place: int = 0) -> Case:
    return Case(
        transaction=transaction(place),
        is_fraud=place % 2 == 0,
        difficulty=MAIL,
        metadata={"customer": "Ann Lee", MAIL: CARD},
    )


CASES = [case(index) for index in range(40)]
CONDITION = Condition.parse(
    f'(email is "{MAIL}" or full_name is "Ann Lee" or card_number is {CARD}) and note in ("{CARD}", "{IBAN}")'
)
BULLET = Bullet(
    id=MAIL,
    content=f"{SCRIPT} full name Ann Lee: decline. {TEXT}"[:1_900],
    condition=CONDITION,
    claim=Claim(fraud_share=0.95, words=TEXT),
    evidence=Evidence(learnt=Record(support=50, frauds=47), base_rate=0.2, first_seen=START, last_seen=START),
    snoozes=(Snooze(key="customer", value="cust-991", until=START),),
    status_by=MAIL,
    weight=1.25,
    times_selected=5,
    contradicts=(MAIL,),
)


def playbook() -> BulletPlaybook:
    made = BulletPlaybook()
    for index in range(60):
        made.add_bullet(f"{SCRIPT} rule {index}: User '{NAME}' with {CARD} or {MAIL}: 95% fraud", who=MAIL)
    made.add_bullet("Ann Lee is watched", condition=CONDITION, argues=Verdict.DECLINE)
    made.create_list("watched", about=MAIL)
    made.change_list("watched", added=[ListItem(value="cust-991", reason=MAIL, who=MAIL)])
    return made


def comparison() -> Comparison:
    figures = {metric: Interval(0.861, 0.85, 0.872) for metric in METRICS}
    one = ModeFigures(figures, bullets=3.0, cited=1.0, seconds=2.0, curve=(0.5,) * 1000, without_label_facts=figures)
    modes: dict[str, ModeFigures] = dict.fromkeys([*Mode, LIGHTGBM], one)
    pair = (Mode.ONLINE_ONLY, Mode.VANILLA)
    return Comparison(f"{SCRIPT} {MAIL}", 100, 30, 1, "bootstrap", modes, {pair: figures}, sample=(TEXT,) * 5)


def backtest_of(measured: MeasuredBullet) -> Backtest:
    figures = {metric: Interval(0.861, 0.85, 0.872) for metric in METRICS}
    return Backtest(1_000, figures, (measured,) * 200, without_label_facts=figures, label_delay="7d")


def things() -> Iterator[Any]:
    """What the exported names give back, made of personal data wherever that fits."""
    book = playbook()
    learner = Learner(book)
    learner.study(CASES)
    decisions = asyncio.run(learner.decide_all([each.transaction for each in CASES[:30]]))
    heard = asyncio.run(learner.hear(Outcome(transaction_id=CARD, is_fraud=True, id=MAIL)))
    reason = Reason(kind=ReasonKind.BULLET, text=TEXT, contribution=0.5, bullet_id=MAIL)
    whole = decisions[0].model_copy(
        update={"reasons": (reason,) * 50, "fallback": f"Ann Lee: {TEXT}", "model": f"openai:{MAIL}", "unread": (TEXT,)}
    )
    mapping = SchemaMapping(label="y", sensitive=("amount",), numbers=tuple(f"{MAIL} {n}" for n in range(500)))
    data = Dataset(
        f"{MAIL} {SCRIPT}",
        CASES,
        CASES[:3],
        mapping=mapping,
        bad_rows=(BadRow(MAIL, 1, "amount", f"expected a number, got '{CARD}'"),),
        report=(TEXT,),
        unlabelled=2,
    )
    yield from (book, *book, book.snapshot(), book.get_list("watched"), *list(book.ledger.read(0, book.seq))[:90])
    yield from (learner, learner.remembered(), learner.review(), learner.preview(f"VPN and {MAIL}: decline"))
    yield from (decisions, decisions[0], decisions[:5], whole, whole.selection, heard, [heard], reason)
    yield from (DecisionRecord.whole(whole), learner.score_all([each.transaction for each in CASES]))
    yield from (transaction(), [transaction()], case(), CASES[:2], Cases.of(CASES), Transactions.of([transaction()]))
    yield from (data, data[:5], data[0], data.train.facts, data.train.facts.columns, Columns(), FactTable([]))
    yield from (data.bad_rows[0], mapping, Evidence(learnt=Record(support=1, frauds=0), base_rate=0.1))
    yield from (BULLET, BULLET.condition, BULLET.claim, BULLET.snoozes[0], *CONDITION.parts, *CONDITION.leaves)
    yield from (ListItem(value="cust-991"), Judgement(ruling="correct", reason=TEXT))
    yield BulletScore(bullet_id=MAIL, quality=0.1, semantic=0.1, thompson=1 / 3, combined=1 / 3, diversity=0, total=1)
    found = HybridSelector().select_bullets(TEXT, "fraud_detection", book)
    yield from (HybridSelector(), found, Curator(), Reflector(), SimpleFraudAgent([BULLET]), SimpleJudge(), LLMJudge())
    yield SimpleFraudAgent([BULLET]).explain(TEXT)
    yield from (LearnerOptions(node=MAIL), ReflectionPolicy(), Roles(), build_roles(ModelSettings()))
    settings = ModelSettings(agent="openai:gpt-4o-mini", base_url=f"http://{NAME}:{CARD}@localhost/v1")
    yield from (TrainingPipeline(agent=SimpleFraudAgent([BULLET])), settings)
    result = comparison()
    yield from (result, result["vanilla"])
    measured = MeasuredBullet(MAIL, TEXT, "DECLINE", Evidence(learnt=Record(support=9, frauds=3), base_rate=0.1), None)
    yield from (measured, backtest_of(measured))
    flags = np.zeros(1000, dtype=np.bool_)
    yield ModeRun(
        mode=Mode.VANILLA,
        declined=flags,
        decided=flags,
        probabilities=np.zeros(1000),
        labels=flags,
        bullets=3,
        cited=1.0,
        seconds=1.0,
        playbook=book,
    )


def test_no_repr_str_or_html_shows_personal_data_or_runs_over() -> None:
    for thing in things():
        plain = isinstance(thing, list | tuple) and not isinstance(thing, DecisionRecord)
        texts = (
            [repr(thing)]
            if isinstance(thing, Condition | BadRow) or hasattr(thing, "to_sql")
            else [
                repr(thing),
                str(thing),
                f"{thing}",
            ]
        )
        for text in texts:
            assert len(text) <= (2_500 if plain else 205), (type(thing), len(text), text)
            assert "\n" not in text
        if hasattr(thing, "_repr_html_"):
            html = thing._repr_html_()
            assert len(html) < 40_000, type(thing)
            assert "<script" not in html
            texts.append(html)
        for text in texts:
            assert not [each for each in PERSONAL if each in text], (type(thing), text)


def test_pydantic_and_rich_get_the_same_safe_values() -> None:
    for model in (transaction(), case(), BULLET, Outcome(transaction_id=CARD, is_fraud=True)):
        shown = repr(list(model.__repr_args__())) + repr(list(model.__rich_repr__()))
        assert not [each for each in PERSONAL if each in shown]


def test_reprs_say_what_a_thing_is() -> None:
    plain = Transaction(id="t1", time=START, facts={"amount": 250, "vpn": True, "country": "FR"}, text="$250 purchase")
    shown = "id='t1', time=2025-01-01, facts={amount: 250, vpn: True, country}, text='$250 purchase'"
    assert repr(plain) == f"Transaction({shown})"
    assert repr(Case(transaction=plain, is_fraud=True)) == f"Case(is_fraud=True, transaction={plain!r})"
    assert repr(Outcome(transaction_id="t1", is_fraud=True)) == "Outcome(transaction_id='t1', is_fraud=True)"
    assert repr(Cases.of([Case(transaction=plain, is_fraud=True)])) == (
        "Cases(1 row, 1 fraud, 2025-01-01 to 2025-01-01, 3 facts: amount, country, vpn, with texts)"
    )
    assert repr(Bullet(id="b-1", content="VPN: decline")) == "Bullet(id='b-1', content='VPN: decline', status=active)"
    assert repr(Condition.parse("amount > 5")) == "Condition('amount > 5')"
    assert repr(comparison()).startswith("Comparison('<script>alert(1)</script> [email]', 30 test rows, 1 seed, ")
    assert repr(SchemaMapping(label="class")) == "SchemaMapping(label='class')"


def test_the_repr_of_a_large_dataset_builds_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 200_000
    facts = FactTable.of_columns(Columns({"amount": np.zeros(count)}), count)
    ids = np.array([f"t{index}" for index in range(count)], dtype=object)
    data: Any = Dataset("large", Cases(Rows(ids, facts), np.zeros(count, dtype=np.bool_)))

    def refuse(*_: object) -> None:
        raise AssertionError("a row was built")

    monkeypatch.setattr(Rows, "_row", refuse)
    assert repr(data) == "Dataset('large', train=200,000, test=0, frauds=0)"
    assert repr(data.train) == "Cases(200,000 rows, 0 frauds, 1 fact: amount)"
    assert repr(data[:5]) == "Cases(5 rows, 0 frauds, 1 fact: amount)"
    assert "t7" in data
    assert "u7" not in data


# --- tables for notebooks -----------------------------------------------------------------------------------------


def words(html: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html).split())


def test_a_playbook_shows_the_strongest_bullets_in_use_first_and_a_claim_as_a_claim() -> None:
    book = BulletPlaybook()
    weak = book.add_bullet("VPN: decline", weight=0.1)
    strong = book.add_bullet("Emulator = 95% fraud", weight=2.0)
    gone = book.add_bullet("Night: decline", weight=3.0)
    book.set_status(gone, acefraud.Status.RETIRED)
    shown = words(book._repr_html_())
    assert shown.startswith("Playbook of 3 bullets at revision 4 1 of them are retired.")
    assert shown.index(strong) < shown.index(weak) < shown.index(gone)
    assert "Emulator = 95% fraud [claim, not measured] active +2.00" in shown
    assert words(playbook()._repr_html_()).endswith("… and 41 more")


def test_a_decision_shows_its_verdict_threshold_and_reasons() -> None:
    learner = Learner(BulletPlaybook())
    made = asyncio.run(learner.decide_all([Transaction(id=f"t{n}", facts={"vpn": True}) for n in range(25)]))
    shown = words(made[0]._repr_html_())
    assert shown.startswith("Decision on t0: ")
    assert "declined from 0.500 on" in shown
    assert "general knowledge" in shown
    many = words(made._repr_html_())
    assert many.startswith("25 decisions on revision 0")
    assert many.endswith("… and 5 more")


def test_a_dataset_shows_what_is_in_it_and_hides_sensitive_facts_and_words_that_do_not_repeat() -> None:
    rows = [
        Transaction(
            id=f"t{n}",
            time=START,
            facts={
                "income": 4321.0,
                "vpn": n > 1,
                "country": "FR",
                "shop": f"Ann's {n}",
                **({"hour": 3.0} if n else {}),
            },
        )
        for n in range(4)
    ]
    cases = [Case(transaction=row, is_fraud=n == 0) for n, row in enumerate(rows)]
    data = Dataset("cards", cases, mapping=SchemaMapping(sensitive=("income",)), unlabelled=3, report=("by hand",))
    shown = words(data._repr_html_())
    for part in ("rows to learn from 4", "1 (25%)", "2025-01-01 to 2025-01-01", "rows without a label 3", "by hand"):
        assert part in shown
    assert "t0 fraud FR [masked] [masked] False" in shown
    assert "4321" not in shown
    assert "Ann" not in shown
    assert "Dataset none" in words(Dataset("none", [])._repr_html_())


def test_a_comparison_shows_the_figures_of_the_console() -> None:
    shown = words(comparison()._repr_html_())
    assert "Vanilla 86.1% (85.0 to 87.2)" in shown
    assert "LightGBM (no reasons, no online learning)" in shown
    assert "Online only less Vanilla +86.1 (+85.0 to +87.2)" in shown
    assert "no label facts" in shown


def test_a_backtest_shows_its_figures() -> None:
    evidence = Evidence(learnt=Record(support=9, frauds=3), base_rate=0.1)
    found = backtest_of(MeasuredBullet("b-1", "VPN: decline", "DECLINE", evidence, None))
    assert repr(found).startswith("Backtest(1,000 rows, accuracy=86.1% (85.0 to 87.2), ")
    assert repr(found.bullets[0]) == "MeasuredBullet(id='b-1', evidence=3 of 9 past cases were fraud (33%, 12-65%))"
    shown = words(found._repr_html_())
    assert shown.startswith(
        "Backtest on 1,000 rows accuracy fraud caught false declines PR-AUC playbook 86.1% (85.0 to"
    )
    assert "without facts from labels" in shown
    assert "200 bullets were measured; to_frame() has them." in shown
    assert shown.endswith("Here what the selector picks counts for a case.")


# --- iteration, `in` and slicing ------------------------------------------------------------------------------------


def test_a_playbook_is_a_collection_of_its_bullets() -> None:
    book = BulletPlaybook()
    ids = [book.add_bullet(f"amount above {n}000: decline") for n in range(1, 8)]
    assert [each.id for each in book] == ids
    assert [each.id for each in book[:5]] == ids[:5]
    assert book[-1].id == ids[-1]
    assert ids[0] in book
    assert book[ids[0]] in book
    assert "b-1" not in book
    assert 5 not in book
    assert book[ids[0]].model_copy(update={"weight": 3.0}) not in book
    with pytest.raises(acefraud.errors.InputError, match=f"there is no bullet .* did you mean {ids[0]}"):
        book[ids[0][:-1]]
    with pytest.raises(acefraud.errors.InputError, match="expected the id of a bullet, its place or a slice, got None"):
        book[None]  # type: ignore[call-overload]


def test_rows_are_found_by_their_id_and_by_their_value() -> None:
    cases = [Case(transaction=Transaction(id=f"t{n}", facts={"amount": n}), is_fraud=n == 0) for n in range(3)]
    data: Any = Dataset("cards", cases)
    assert "t1" in data
    assert cases[1] in data
    assert data[-1] == cases[-1]
    assert cases[1].transaction in data.train.transactions
    assert cases[1].model_copy(update={"is_fraud": True}) not in data
    assert 5 not in data
    assert "t9" not in data.train.transactions


def test_a_table_gives_facts_by_name_and_rows_by_place() -> None:
    facts = FactTable([{"amount": 5.0, "vpn": True}, {"amount": 7.0, "country": "FR"}, {"vpn": 2.0}])
    assert facts["amount"][:2].tolist() == [5.0, 7.0]
    assert facts["vpn"].tolist() == [True, None, 2.0]
    assert facts["country"].tolist() == [None, "FR", None]
    assert facts[-1] == {"vpn": 2.0}
    assert facts[1:].rows() == [{"amount": 7.0, "country": "FR"}, {"vpn": 2.0}]
    assert list(facts) == facts.rows()
    assert "amount" in facts
    assert "amounts" not in facts
    with pytest.raises(acefraud.errors.InputError, match=r"no fact 'amounts' in this table; did you mean amount\?"):
        facts["amounts"]


def test_a_comparison_reads_like_a_dict_of_its_modes() -> None:
    result = comparison()
    assert list(result) == ["vanilla", "online_only", "offline_online", "lightgbm"]
    assert result["vanilla"] is result.modes[Mode.VANILLA]
    assert "vanilla" in result
    assert len(result) == 4
    with pytest.raises(acefraud.errors.InputError, match=r"mode: expected one of vanilla, .*, got the str 'x'"):
        result["x"]


# --- errors ---------------------------------------------------------------------------------------------------------


def test_errors_of_the_public_models_do_not_repeat_what_they_were_given() -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (Transaction, {"id": [CARD], "facts": {MAIL: [CARD] * 1000}, "text": [MAIL], "extra": CARD}),
        (Outcome, {"transaction_id": [CARD], "is_fraud": MAIL, "at": MAIL}),
        (Case, {"transaction": {"id": "t", "facts": {"a": [CARD]}}, "is_fraud": MAIL}),
        (SchemaMapping, {"label": [CARD], "sensitive": MAIL}),
        (Bullet, {"id": [CARD], "content": MAIL * 1000}),
    ]
    for model, content in wrong:
        with pytest.raises(ValidationError) as raised:
            model(**content)
        assert not [each for each in PERSONAL if each in str(raised.value)]
        assert len(str(raised.value)) < 1_500
    with pytest.raises(ValidationError, match="fact 'a': expected a number, a flag or text, got a list of 1"):
        Transaction(id="t", facts={"a": [1]})
    with pytest.raises(ValidationError, match="expected facts by name, got the int 5 as a name"):
        Transaction(id="t", facts={5: 1})
    with pytest.raises(KeyError, match="a case has the keys query, answer, difficulty and metadata, not 'foo'"):
        case()["foo"]
