"""Decisions that know what they know: odd inputs from a real desk are pointed out, and never blind anybody."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.cli.conftest import SETTINGS, Shell

from acefraud import (
    BulletPlaybook,
    Case,
    InputWarning,
    Learner,
    LearnerOptions,
    Outcome,
    Policy,
    SchemaMapping,
    Transaction,
    Verdict,
)
from acefraud.cli import console
from acefraud.core.events import ThresholdSet
from acefraud.core.review_rule import ReviewRule
from acefraud.errors import InputError
from acefraud.facts.history import HistoryPlan
from acefraud.learning.rule_admission import admit_rule
from acefraud.service.app import build_app
from acefraud.service.options import ServiceOptions
from acefraud.service.runtime import Runtime
from acefraud.storage import open_playbook

pytestmark = pytest.mark.wide

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MAPPING = SchemaMapping(
    id="id",
    time="time",
    label="label",
    amount="TX_AMOUNT",
    categories=("channel", "country"),
    ignore=(),
    time_facts=(),
    history=HistoryPlan(entities=("CUSTOMER_ID", "TERMINAL_ID"), windows=("24h", "7d")),
)
ORDINARY = {"amount": 40.0, "channel": "web", "country": "FR"}


def payments(count: int = 600) -> list[Case]:
    """Large ones through the app are fraud; a customer and a terminal take part in each."""
    chance = random.Random(3)
    made = []
    for number in range(count):
        amount, channel = chance.choice((20.0, 60.0, 700.0)), chance.choice(("web", "app"))
        transaction = Transaction(
            id=f"h{number}",
            time=NOW - timedelta(days=30) + timedelta(hours=number),
            facts={"amount": amount + chance.random(), "channel": channel, "country": chance.choice(("FR", "DE"))},
            entities={"CUSTOMER_ID": f"c{number % 9}", "TERMINAL_ID": f"t{number % 5}"},
        )
        fraud = (amount > 500 and channel == "app") != (chance.random() < 0.03)
        made.append(Case(transaction=transaction, is_fraud=fraud))
    return made


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a playbook that learnt from payments and keeps a history of customers and terminals."""
    path = tmp_path_factory.mktemp("desk") / "book.db"
    with open_playbook(path) as playbook:
        Learner(playbook).study(payments(), mapping=MAPPING)
    return path


@pytest.fixture
def learner(book: Path, tmp_path: Path) -> Iterator[Learner]:
    yield from learner_on(book, tmp_path)


def learner_on(book: Path, folder: Path, **options: Any) -> Iterator[Learner]:
    copied = folder / "book.db"
    copied.write_bytes(book.read_bytes())
    with open_playbook(copied) as playbook:
        playbook.clock = lambda: NOW
        yield Learner(playbook, options=LearnerOptions(**options))


@pytest.fixture
def shell(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(f"ACEFRAUD_{name}", raising=False)
    monkeypatch.setattr(console.out, "width", 200)
    (tmp_path / "book.db").write_bytes(book.read_bytes())
    return Shell(tmp_path)


@pytest.fixture
def client(book: Path, tmp_path: Path) -> Iterator[TestClient]:
    yield from client_on(book, tmp_path)


def client_on(book: Path, folder: Path, **options: Any) -> Iterator[TestClient]:
    copied = folder / "served.db"
    copied.write_bytes(book.read_bytes())
    runtime = Runtime(ServiceOptions(store=copied, insecure_local=True, **options))
    with TestClient(build_app(runtime), base_url="http://localhost", client=("127.0.0.1", 5000)) as client:
        yield client


def export(rows: int = 30, **renamed: str) -> str:
    """Payments to decide as CSV, some columns renamed or, with an empty name, left out."""
    columns = ["id", "time", "TX_AMOUNT", "channel", "country", "CUSTOMER_ID", "TERMINAL_ID"]
    kept = [renamed.get(column, column) for column in columns]
    lines = [",".join(name for name in kept if name)]
    for number in range(rows):
        cells = [f"n{number}", f"2026-02-27T{number % 24:02d}:00:00Z", f"{40 + number}", "app", "FR", "c1", "t1"]
        lines.append(",".join(cell for cell, name in zip(cells, kept, strict=True) if name))
    return "\n".join(lines) + "\n"


# --- files ---


def test_renamed_and_missing_columns_are_pointed_out_once_with_counts(shell: Shell) -> None:
    file = shell.write("today.csv", export(TX_AMOUNT="amout", channel="chanel", country=""))
    told = shell.on_book("decide", file, "--json").err.splitlines()
    assert "`amout` is not a fact this playbook knows; did you mean `amount`? (30 of 30 rows)" in told
    assert "`chanel` is not a fact this playbook knows; did you mean `channel`? (30 of 30 rows)" in told
    assert "`amount`, which this playbook relies on, is missing (30 of 30 rows)" in told
    assert len(told) == len(set(told))


def test_an_ordinary_file_gets_no_remark_and_is_familiar(shell: Shell) -> None:
    ran = shell.on_book("decide", shell.write("today.csv", export()), "--json")
    assert not ran.err
    assert all(line["familiarity"] > 0.5 and line["unfamiliar"] is False for line in ran.lines)


def test_a_strict_decide_refuses_the_whole_file_and_records_nothing(shell: Shell) -> None:
    before = shell.state()
    told = shell.on_book("decide", shell.write("today.csv", export(TX_AMOUNT="amout")), "--strict", code=2).err
    assert "amout" in told
    assert shell.state() == before


def test_a_stream_points_out_each_name_once(shell: Shell) -> None:
    lines = "".join(f'{{"id": "s{n}", "time": "2026-02-27T10:00:00Z", "chanel": "app"}}\n' for n in range(40))
    told = shell.on_book("decide", "-", "--json", stdin=lines).err
    assert told.count("`chanel` is not a fact this playbook knows; did you mean `channel`?") == 1


@pytest.mark.parametrize("given", ["todays_fiel", "todays_fiel.csv", "my todays file.csv"])
def test_a_word_like_the_name_of_a_file_is_not_decided_as_a_text(shell: Shell, given: str) -> None:
    shell.write("todays_file.csv", export())
    shell.write("my todays file.csv.bak" if " " in given else "other.csv", export())
    before = shell.state()
    told = shell.on_book("decide", given, code=2).err
    assert "there is no such file; did you mean" in told
    assert shell.state() == before


def test_a_text_of_several_words_is_still_decided(shell: Shell) -> None:
    assert shell.on_book("decide", "a payment of $700 in the app").out


# --- nothing relevant is known ---


NESTED = [{"id": f"r{n}", "zahlung": {"betrag": 12.5 * n, "kanal": "filiale"}, "ort": "Kiel"} for n in range(19)]


@contextmanager
def told() -> Iterator[list[str]]:
    """What is warned of."""
    words: list[str] = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield words
    words += [str(each.message) for each in found]


def test_records_with_words_of_their_own_are_unfamiliar(learner: Learner) -> None:
    with told() as words:
        decisions = learner.decide_all_sync(NESTED)
    assert words[-1] == (
        "unfamiliar: none of the facts that this playbook relies on is known; decided all the same, since nothing "
        "sends it to a person (19 of 19 rows)"
    )
    assert all(decision.unfamiliar and decision.familiarity == 0 for decision in decisions)


def test_unfamiliar_transactions_go_to_a_person_where_there_is_a_review_rule(learner: Learner) -> None:
    with_review(learner)
    with told() as words:
        decision = learner.decide_sync(NESTED[1])
    assert decision.verdict == "REVIEW"
    assert learner.ruling(decision).rule == "unfamiliar"
    assert words[-1].endswith("left to a person")
    assert learner.replay_sync(decision).same_as(decision)
    recorded = learner.playbook.ledger.decisions([decision.id])[decision.id]
    assert recorded.unfamiliar
    assert learner.explain_sync(recorded).familiarity == 0


def with_review(learner: Learner) -> None:
    rule = ReviewRule(between=(0.97, 0.98))
    learner.playbook.record([ThresholdSet(node=learner.options.node, threshold=None, review=rule)])


def test_the_setting_leaves_unfamiliar_transactions_to_the_threshold(book: Path, tmp_path: Path) -> None:
    for learner in learner_on(book, tmp_path, review_unfamiliar=False):
        with_review(learner)
        with told() as words:
            assert learner.decide_sync(NESTED[1]).verdict != "REVIEW"
        assert "decided all the same" in words[-1]


def test_a_policy_decides_an_unfamiliar_transaction_first(learner: Learner) -> None:
    with_review(learner)
    learner.playbook.add_bullet("night: decline", policy=Policy(verdict=Verdict.DECLINE))
    with told():
        decision = learner.decide_sync({"ort": "Kiel", "hour": 2})
    assert decision.unfamiliar
    assert decision.verdict is Verdict.DECLINE


def test_explain_says_how_much_was_known(shell: Shell) -> None:
    made = shell.on_book("decide", '{"id": "x1", "ort": "Kiel", "time": "2026-02-27T10:00:00Z"}', "--json").json
    assert made["unfamiliar"] is True
    told = shell.on_book("explain", made["decision_id"]).out
    assert "Known of what the playbook relies on: 0%" in told
    assert "unfamiliar: none of the facts" in told
    assert shell.on_book("explain", made["decision_id"], "--json").json["unfamiliar"] is True


# --- times ---


def paid(name: str, days: float = 0.0, **more: Any) -> Transaction:
    return Transaction(
        **{
            "id": name,
            "time": NOW - timedelta(days=1) + timedelta(days=days),
            "facts": dict(ORDINARY),
            "entities": {"CUSTOMER_ID": "new", "TERMINAL_ID": "fresh"},
            **more,
        }
    )


def test_one_bad_clock_does_not_blind_its_customer_and_terminal(learner: Learner) -> None:
    learner.decide_sync(paid("a"))
    with pytest.warns(InputWarning, match=r"the time 2099-01-01.* is more than 1.0 days after now"):
        learner.decide_sync(paid("b", time=datetime(2099, 1, 1, tzinfo=UTC)))
    after = learner.decide_sync(paid("c", 0.1))
    assert after.facts["customer_count_24h"] == after.facts["terminal_count_24h"] == 1.0


def test_an_outcome_without_a_time_counts_for_others_whatever_their_clocks_say(learner: Learner) -> None:
    learner.decide_sync(paid("a"))
    with pytest.warns(InputWarning):
        learner.decide_sync(paid("b", time=datetime(2099, 1, 1, tzinfo=UTC)))
    learner.hear_sync(Outcome(transaction_id="a", is_fraud=True))
    assert learner.decide_sync(paid("c", 0.2)).facts["customer_known_frauds_7d"] == 1.0


def test_in_a_batch_of_the_past_a_lonely_later_time_counts_in_no_history(learner: Learner) -> None:
    past = [paid(f"p{n}", n / 100 - 900) for n in range(50)]
    wrong = paid("w", -100)
    with pytest.warns(InputWarning, match="far later than all others"):
        decisions = learner.decide_all_sync([*past, wrong, paid("q", -899.4)])
    assert decisions[-1].facts["customer_count_7d"] == 50.0


def test_a_lonely_later_time_in_a_training_history_counts_in_no_history() -> None:
    cases = payments()
    first = cases[0]
    late = first.transaction.model_copy(update={"id": "late", "time": datetime(2099, 1, 1, tzinfo=UTC)})
    with BulletPlaybook() as playbook:
        learner = Learner(playbook)
        with pytest.warns(InputWarning, match="1 of 601 times are far later than all others"):
            learner.study([*cases, first.model_copy(update={"transaction": late})], mapping=MAPPING)
        decision = learner.decide_sync(paid("d", -4.9, entities={"CUSTOMER_ID": "c0", "TERMINAL_ID": "t0"}))
    assert float(decision.facts["customer_count_7d"]) > 10


def test_training_on_the_command_line_says_that_times_are_far_later(shell: Shell) -> None:
    lines = ["id,time,amount,card_id,label"]
    lines += [f"h{n},2025-01-{1 + n // 24:02d}T{n % 24:02d}:00:00Z,{20 + n % 7},c1,{n % 9 == 0:d}" for n in range(300)]
    file = shell.write("history.csv", "\n".join([*lines, "late,2099-01-01T00:00:00Z,20,c1,0"]))
    told = shell("train", file, "--playbook", "other.db").err
    assert "1 of 301 times are far later than all others: they count in no history" in told


def test_a_missing_time_is_pointed_out_where_a_history_is_kept(learner: Learner) -> None:
    with pytest.warns(InputWarning, match="there is no `time`"):
        learner.decide_sync(paid("a", time=None))


# --- names ---


def test_python_warns_of_a_misspelt_fact(learner: Learner) -> None:
    with pytest.warns(InputWarning, match="`amout` is not a fact this playbook knows; did you mean `amount`"):
        learner.decide_sync(paid("a", facts={**ORDINARY, "amout": 5000}))


def test_a_strict_learner_refuses_a_misspelt_fact(book: Path, tmp_path: Path) -> None:
    for learner in learner_on(book, tmp_path, strict=True):
        before = learner.playbook.seq
        with pytest.raises(InputError, match="did you mean `amount`"):
            learner.decide_sync(paid("a", facts={**ORDINARY, "amout": 5000}))
        assert learner.playbook.seq == before


@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")
def test_a_few_labelled_cases_do_not_make_a_slip_a_fact(learner: Learner) -> None:
    for name in ("a", "b", "c"):
        slips = paid(name, facts={**ORDINARY, "amout": 5000, "Country": "FR", "basket_size": 3})
        learner.hear_sync(Outcome(transaction_id=name, is_fraud=False), slips)
    learner.review()
    told = learner.check([paid("d", facts={**ORDINARY, "amout": 5000, "Country": "FR", "basket_size": 3})])
    assert [fact.name for fact in told.unfamiliar_facts] == ["amout", "Country"], "a new fact is known once it was seen"
    assert str(admit_rule(learner, "amount above 300 and country is FR: decline", who="ana").bullet.condition)


def test_a_value_in_another_case_is_pointed_out(learner: Learner) -> None:
    with pytest.warns(InputWarning, match="`channel` was never `APP`; did you mean `app`"):
        learner.decide_sync(paid("a", facts={**ORDINARY, "channel": "APP"}))


def test_an_entity_among_the_facts_is_an_entity(learner: Learner) -> None:
    learner.decide_sync(paid("a"))
    decision = learner.decide_sync(
        paid("b", 0.1, facts={**ORDINARY, "CUSTOMER_ID": "new"}, entities={"TERMINAL_ID": "t"})
    )
    assert decision.facts["customer_count_24h"] == 1.0


def test_a_clock_that_was_not_set_counts_in_no_history_and_is_refused_by_a_strict_learner(
    learner: Learner, book: Path, tmp_path: Path
) -> None:
    unset = paid("a", time=datetime(1970, 1, 1, tzinfo=UTC))
    with pytest.warns(InputWarning, match="before 1980.*taken as unknown"):
        assert learner.decide_sync(unset).transaction.time is None
    (tmp_path / "strict").mkdir()
    for strict in learner_on(book, tmp_path / "strict", strict=True):
        with pytest.raises(InputError, match="a clock that was not set") as refused:
            strict.decide_sync(unset)
        assert "taken as unknown" not in str(refused.value)


def test_times_that_count_from_the_start_of_a_history_are_no_unset_clocks() -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    moved = [
        case.model_copy(
            update={"transaction": case.transaction.model_copy(update={"time": start + timedelta(hours=n)})}
        )
        for n, case in enumerate(payments())
    ]
    learner = Learner(BulletPlaybook())
    learner.study(moved, mapping=MAPPING)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert learner.decide_sync(paid("a", time=start + timedelta(days=40))).transaction.time is not None


@pytest.mark.parametrize("name", ["customer", "customerId", "Customer ID"])
def test_names_of_entities_are_matched(learner: Learner, name: str) -> None:
    learner.decide_sync(paid("a"))
    decision = learner.decide_sync(paid("b", 0.1, entities={name: "new", "terminal": "fresh"}))
    assert decision.facts["customer_count_24h"] == decision.facts["terminal_count_24h"] == 1.0


def test_names_of_entities_that_are_not_clear_are_pointed_out(learner: Learner) -> None:
    entities = {"customer": "other", "CUSTOMER_ID": "new", "shop": "s"}
    with pytest.warns(InputWarning) as told:
        decision = learner.decide_sync(paid("a", entities=entities))
    assert decision.transaction.entities == entities
    words = " ".join(str(each.message) for each in told)
    assert "`customer`" in words
    assert "`shop`" in words


def test_a_rule_for_a_node_that_nothing_decides_is_remarked(learner: Learner, shell: Shell) -> None:
    admitted = admit_rule(learner, "amount above 900: always decline", node="fraud_detecton", who="ana")
    assert any("Nothing here decides at the node 'fraud_detecton'" in remark for remark in admitted.remarks)
    ran = shell.on_book("playbook", "add", "amount above 900: always decline", "--node", "other", "--why", "x")
    assert "Nothing here decides at the node 'other'" in ran.out + ran.err


def test_known_facts_are_decided_without_a_word(learner: Learner) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decision = learner.decide_sync(paid("a"))
    assert decision.familiarity is not None
    assert decision.familiarity > 0.4
    assert not decision.unfamiliar


def test_a_playbook_that_has_learnt_nothing_has_no_familiarity() -> None:
    assert Learner(BulletPlaybook()).decide_sync({"country": "FR"}).familiarity is None


# --- the service ---


def ask(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/decisions", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_service_names_unfamiliar_facts_and_counts_unfamiliar_transactions(client: TestClient) -> None:
    answer = ask(client, id="u1", facts={"amout": 5000, "chanell": "app"})
    assert answer["unfamiliar_facts"] == [
        {"name": "amout", "nearest": "amount"},
        {"name": "chanell", "nearest": "channel"},
    ]
    assert answer["unfamiliar"] is True
    assert any("did you mean `amount`?" in each for each in answer["warnings"])
    assert any("unfamiliar" in each for each in answer["warnings"])
    assert (
        ask(client, id="u1", facts={"amout": 5000, "chanell": "app"})["unfamiliar_facts"] == answer["unfamiliar_facts"]
    )
    assert "acefraud_decisions_unfamiliar_total" in client.get("/metrics").text
    explained = client.get(f"/v1/decisions/{answer['decision_id']}").json()
    assert [explained[name] for name in ("unfamiliar_facts", "warnings")] == [
        answer[name] for name in ("unfamiliar_facts", "warnings")
    ]


def test_the_service_says_that_frauds_alone_teach_nothing(client: TestClient) -> None:
    client.put("/v1/feed", json={"kind": "fraud_only", "reason": "chargebacks only"}).raise_for_status()
    told = client.post("/v1/outcomes", json={"id": "o1", "transaction_id": "u1", "label": "fraud"}).json()["warnings"]
    assert any("nothing is learnt from reports" in each for each in told)
    refused = client.put("/v1/feed", json={"kind": "complete", "silence_days": 30, "reason": "x"})
    assert refused.status_code == 422
    assert "silence_days" in refused.text


def test_a_missing_time_is_the_time_of_arrival_and_a_repeat_is_the_same_request(client: TestClient) -> None:
    body = {"facts": ORDINARY, "entities": {"customer": "nina", "TERMINAL_ID": "t9"}}
    first = ask(client, id="a1", **body)
    assert first["warnings"] == []
    assert ask(client, id="a1", **body)["decision_id"] == first["decision_id"]
    second = ask(client, id="a2", **body)
    facts = client.get(f"/v1/decisions/{second['decision_id']}").json()["facts"]
    assert facts["customer_count_24h"] == facts["terminal_count_24h"] == 1.0


def test_over_http_a_time_far_ahead_is_told_and_blinds_nobody(client: TestClient) -> None:
    body = {"facts": ORDINARY, "entities": {"CUSTOMER_ID": "olaf", "TERMINAL_ID": "t8"}}
    ask(client, id="a1", **body)
    assert any("2099" in each for each in ask(client, id="a2", time="2099-01-01T00:00:00Z", **body)["warnings"])
    decided = ask(client, id="a3", **body)
    assert client.get(f"/v1/decisions/{decided['decision_id']}").json()["facts"]["customer_count_24h"] == 1.0


def test_a_strict_service_refuses_unknown_facts_and_times(book: Path, tmp_path: Path) -> None:
    for client in client_on(book, tmp_path, strict=True):
        refused = client.post("/v1/decisions", json={"id": "a", "facts": {**ORDINARY, "vpnn": True}})
        assert refused.status_code == 422
        assert "vpnn" in refused.text
        late = {"id": "b", "time": "2099-01-01T00:00:00Z", "facts": ORDINARY}
        assert client.post("/v1/decisions", json=late).status_code == 422
        both = [{"id": "c", "facts": ORDINARY}, {"id": "d", "facts": {**ORDINARY, "vpnn": True}}]
        batch = client.post("/v1/decisions:batch", json={"transactions": both})
        assert batch.status_code == 422
        assert "transactions.1.facts.vpnn" in batch.text
        assert client.get("/v1/decisions").json()["items"] == [], "none of a refused batch is recorded"


def test_a_strict_service_explains_what_was_decided_before_it_was_strict(book: Path, tmp_path: Path) -> None:
    for learner in learner_on(book, tmp_path):
        with pytest.warns(InputWarning, match="vpnn"):
            decision = learner.decide_sync(paid("a", facts={**ORDINARY, "vpnn": True}))
    for client in client_on(tmp_path / "book.db", tmp_path, strict=True):
        explained = client.get(f"/v1/decisions/{decision.id}")
        assert explained.status_code == 200
        assert [each["name"] for each in explained.json()["unfamiliar_facts"]] == ["vpnn"]


def test_over_http_a_rule_for_another_node_is_remarked(client: TestClient) -> None:
    rule = {"content": "amount above 900: always decline", "node": "elsewhere", "reason": "x"}
    assert any("elsewhere" in each for each in client.post("/v1/bullets", json=rule).json()["remarks"])


# --- doctor ---


def test_doctor_tells_what_the_latest_day_has_that_the_cases_had_not(shell: Shell) -> None:
    rows = [
        {"id": f"d{n}", "time": "2026-02-27T10:00:00Z", "TX_AMOUNT": 4000 + 100 * n, "channel": "Netz", "betrag": 5}
        for n in range(30)
    ]
    shell.on_book("decide", shell.rows("today.jsonl", rows), "--json")
    facts = shell.on_book("doctor", "--offline", "--json").json["facts"]
    changes = {fact["name"]: fact["change"] for fact in facts["changes"]}
    assert facts["decisions"] == 30
    assert changes["amount"] == "shifted"
    assert changes["channel"] == "shifted"
    assert changes["country"] == "missing"
    assert changes["betrag"] == "new"
    assert "missing: country" in shell.on_book("doctor", "--offline").out


def test_doctor_finds_nothing_about_ordinary_decisions(shell: Shell) -> None:
    header, *lines = shell.write("all.csv", export(60)).read_text().splitlines()
    mixed = [line.replace(",app,", ",web,") if n % 2 else line for n, line in enumerate(lines)]
    shell.on_book("decide", shell.write("today.csv", "\n".join([header, *mixed])), "--json")
    changes = shell.on_book("doctor", "--offline", "--json").json["facts"]["changes"]
    assert [change for change in changes if change["name"] in ORDINARY] == []
