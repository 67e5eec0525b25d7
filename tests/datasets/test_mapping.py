"""Mappings are guessed, written down, corrected and checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.datasets import SchemaMapping, guess_mapping, load_dataset, parse_mapping
from acefraud.datasets.assembly import fact_names
from acefraud.errors import ConfigurationError

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.lists(names, min_size=9, max_size=9, unique=True), st.lists(names, max_size=3), st.dictionaries(names, names))
def test_a_mapping_survives_being_written_as_toml(columns: list[str], values: list[str], why: dict[str, str]) -> None:
    a, b, c, d, e, f, g, h, i = columns
    mapping = SchemaMapping(
        id=a, time="", label=b, fraud_values=tuple(values), known=(c, d), ignore=(e,), numbers=(c,), flags=(f,),
        categories=(g, h), rename={i: "fact"}, why=why,
    )  # fmt: skip
    assert parse_mapping(mapping.describe()) == mapping


HANDBOOK = "TRANSACTION_ID TX_DATETIME CUSTOMER_ID TERMINAL_ID TX_AMOUNT TX_TIME_DAYS TX_FRAUD TX_FRAUD_SCENARIO"
SHOP = "user_id signup_time purchase_time purchase_value device_id source browser sex age class"
CLAIMS = "Month Make Sex Age Fault FraudFound_P PolicyNumber RepNumber Deductible Year"
STORES = "id card_id store_id datetime amount currency customer_present fraud provider lat lng country"
PAYMENTS = "transaction_id merchant_id user_id card_number transaction_date transaction_amount device_id has_cbk"


@pytest.mark.parametrize(
    ("columns", "roles", "facts"),
    [
        (HANDBOOK, ("TRANSACTION_ID", "TX_DATETIME", "TX_FRAUD", "TX_AMOUNT", ""), "amount TX_TIME_DAYS"),
        (SHOP, ("", "purchase_time", "class", "purchase_value", ""), "signup_time amount source browser sex age"),
        (CLAIMS, ("", "", "FraudFound_P", "", ""), "Month Make Sex Age Fault RepNumber Deductible Year"),
        (
            STORES,
            ("id", "datetime", "fraud", "amount", ""),
            "amount currency customer_present provider lat lng country",
        ),
        (PAYMENTS, ("transaction_id", "transaction_date", "has_cbk", "transaction_amount", ""), "amount"),
        ("query answer difficulty", ("", "", "answer", "", "query"), ""),
        (
            "TransactionID isFraud TransactionAmt isFlaggedFraud VPN",
            ("TransactionID", "", "isFraud", "TransactionAmt", ""),
            "amount vpn",
        ),
        ("id label fraud_reports chargebacks", ("id", "", "label", "", ""), "fraud_reports chargebacks"),
    ],
)
def test_guesses_by_name(columns: str, roles: tuple[str, ...], facts: str) -> None:
    guessed = guess_mapping(columns.split())
    assert (guessed.id, guessed.time, guessed.label, guessed.amount, guessed.text) == roles
    assert list(fact_names(guessed, columns.split()).values()) == facts.split()


def test_a_leak_is_ignored_and_said_so() -> None:
    guessed = guess_mapping(HANDBOOK.split())
    assert "TX_FRAUD_SCENARIO" in (guessed.ignore or ())
    assert (
        '"TX_FRAUD_SCENARIO" = "sounds like the label in other words: it would leak the answer"' in guessed.describe()
    )


def test_what_is_listed_is_kept_though_it_looks_like_an_id() -> None:
    guessed = guess_mapping(PAYMENTS.split(), given=SchemaMapping(categories=("device_id",)))
    assert guessed.ignore == ("merchant_id", "user_id", "card_number")


def test_contents_correct_the_names(tmp_path: Path) -> None:
    """Seconds since the first row are no time, counters and unique texts are no facts, measurements are."""
    rows = "".join(
        f"{n * 60},2025-01-{1 + n // 24:02} {n % 24:02}:00,"
        f"{n // 24},{n * 7919 % 1009},hash{n},{n * 0.37 % 5:.4f},{n % 2}\n"
        for n in range(200)
    )
    path = tmp_path / "tx.csv"
    path.write_text(f"Time,date,day,serial,token,V1,Class\n{rows}")
    mapping = load_dataset(path).mapping
    assert (mapping.time, mapping.label) == ("date", "Class")
    assert {column: reason.split(":")[0] for column, reason in mapping.why.items()} == {
        "Time": "a different value in nearly every row",
        "day": "counts on with the time",
        "serial": "a different value in nearly every row",
        "token": "a different value in nearly every row",
    }


def test_the_mapping_of_a_file_reads_it_again_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tx.csv"
    path.write_text("id,when,sum,kind,ok,y\n1,03/01/2025,5,007,yes,bad\n2,28/01/2025,6,8,no,good\n")
    given = SchemaMapping(
        time="when", amount="sum", label="y", fraud_values=("bad",), legit_values=("good",), categories=("kind",)
    )
    first = load_dataset(path, mapping=given)
    saved = tmp_path / "mapping.toml"
    saved.write_text(first.mapping.describe())
    again = load_dataset(path, mapping=saved)
    assert again.train == first.train
    assert again.mapping == first.mapping
    assert first.mapping.time_format == "%d/%m/%Y"
    assert first[0].transaction.facts == {"amount": 5.0, "kind": "007", "ok": True}
    assert [case.is_fraud for case in first] == [True, False]


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        (
            'label = "nope"',
            "'label' names the column 'nope', which {file} does not have; its columns are: id, amount, label",
        ),
        (
            'ignore = ["x"]',
            "'ignore' names the column 'x', which {file} does not have; its columns are: id, amount, label",
        ),
        (
            "[rename]\nq = 'z'",
            "'rename' names the column 'q', which {file} does not have; its columns are: id, amount, label",
        ),
        ('label = "label"\ntext = "label"', "'label' and 'text' both name the column 'label'"),
        ('label = "label"\nknown = ["label"]', "'label' and 'known' both name the column 'label'"),
        ('known = ["id"]\nignore = ["id"]', "'known' and 'ignore' both name the column 'id'"),
        ('fraud_values = [1]\nlegit_values = ["1"]', "'fraud_values' and 'legit_values' both name the value '1'"),
        ('amount = "amount"\nrename = {amount = "x"}', "'amount' and 'rename' give the column 'amount' two names"),
        ("label = 3", "key 'label': Input should be a valid string"),
        ("label = ", "not valid TOML: Invalid value (at end of document)"),
    ],
)
def test_what_is_wrong_with_a_mapping(tmp_path: Path, toml: str, message: str) -> None:
    data, saved = tmp_path / "tx.csv", tmp_path / "mapping.toml"
    data.write_text("id,amount,label\n1,2,0\n")
    saved.write_text(toml)
    with pytest.raises(ConfigurationError) as raised:
        load_dataset(data, mapping=saved)
    assert str(raised.value) == f"{saved}: {message.format(file=data)}"


def test_an_unknown_key_and_a_missing_mapping(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^mapping: unknown key 'lable'; the keys are: id, time, "):
        parse_mapping('lable = "x"')
    data = tmp_path / "tx.csv"
    data.write_text("id,amount,label\n1,2,0\n")
    with pytest.raises(ConfigurationError, match=r"nope\.toml: the mapping cannot be read: No such file"):
        load_dataset(data, mapping=tmp_path / "nope.toml")


def test_two_columns_cannot_be_one_fact(tmp_path: Path) -> None:
    data = tmp_path / "tx.csv"
    data.write_text("id,a,b,label\n1,2,3,0\n")
    with pytest.raises(
        ConfigurationError, match="the columns 'a' and 'b' both become the fact 'b'; rename or ignore one"
    ):
        load_dataset(data, mapping=SchemaMapping(rename={"a": "b"}))
