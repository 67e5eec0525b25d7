"""Mappings are guessed, written down, corrected and checked."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.datasets import SchemaMapping, load_dataset, parse_mapping
from acefraud.datasets.guess import guess_label_delay, guess_mapping
from acefraud.datasets.mapping import TimeParts
from acefraud.errors import ConfigurationError, InputWarning
from acefraud.facts.history import HistoryPlan
from acefraud.facts.history.plan import DAY, HOUR

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.lists(names, min_size=9, max_size=9, unique=True), st.lists(names, max_size=3), st.dictionaries(names, names))
def test_a_mapping_survives_being_written_as_toml(columns: list[str], values: list[str], why: dict[str, str]) -> None:
    a, b, c, d, e, f, g, h, i = columns
    mapping = SchemaMapping(
        id=a, time="", label=b, fraud_values=tuple(values), known=(c, d), ignore=(e,), numbers=(c,), flags=(f,),
        categories=(g, h), rename={i: "fact"}, why=why,
    )  # fmt: skip
    assert parse_mapping(mapping.describe()) == mapping


@given(
    st.lists(names, min_size=5, max_size=5, unique=True),
    st.lists(st.integers(1, 99_999), min_size=1, max_size=4, unique=True),
    st.integers(1, 10**6),
)
def test_a_history_survives_being_written_as_toml(columns: list[str], hours: list[int], pairs: int) -> None:
    a, b, c, d, e = columns
    plan = HistoryPlan(
        entities=(a, b), windows=tuple(f"{number}h" for number in hours), label_delay="7d", category=c, latitude=d,
        longitude=e, pair_memory=pairs, names={a: "payer", b: "payee"},
    )  # fmt: skip
    mapping = SchemaMapping(label="is it fraud?", history=plan, rename={c: "kind"}, why={a: "an id"})
    assert parse_mapping(mapping.describe()) == mapping
    assert parse_mapping(SchemaMapping(history=HistoryPlan()).describe()).history == HistoryPlan()


@given(st.lists(names, min_size=6, max_size=6, unique=True), st.lists(names, min_size=4, max_size=4, unique=True))
def test_derived_times_and_directions_survive_being_written_as_toml(columns: list[str], facts: list[str]) -> None:
    a, b, c, d, e, f = columns
    mapping = SchemaMapping(
        elapsed={facts[0]: (a, b), facts[1]: (b, a)}, time_parts=TimeParts(year=c, month=d, week=e), ignore=(a, f),
        rising=(facts[0], facts[2]), falling=(facts[3],), sensitive=(a, facts[1]),
    )  # fmt: skip
    assert parse_mapping(mapping.describe()) == mapping
    assert parse_mapping(SchemaMapping(time_parts=TimeParts(year=a, month=b, day=c)).describe()).time_parts is not None


HANDBOOK = "TRANSACTION_ID TX_DATETIME CUSTOMER_ID TERMINAL_ID TX_AMOUNT TX_TIME_DAYS TX_FRAUD TX_FRAUD_SCENARIO"
SHOP = "user_id signup_time purchase_time purchase_value device_id source browser sex age class"
CLAIMS = "Month Make Sex Age Fault FraudFound_P PolicyNumber RepNumber Deductible Year"
STORES = "id card_id store_id datetime amount currency customer_present fraud provider lat lng country"
PAYMENTS = "transaction_id merchant_id user_id card_number transaction_date transaction_amount device_id has_cbk"


def named(columns: str, time: str = "") -> dict[str, pl.Series]:
    """Columns whose cells tell nothing but times."""
    times, others = pl.Series(["2025-01-01", "2025-01-02"]), pl.Series(["0", "1"])
    return {name: times if name == time else others for name in columns.split()}


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
    guessed = guess_mapping(named(columns, time=roles[1]), SchemaMapping())
    assert (guessed.id, guessed.time, guessed.label, guessed.amount, guessed.text) == roles
    assert list(guessed.facts_by_column(columns.split()).values()) == facts.split()


def test_a_leak_is_ignored_with_its_reason() -> None:
    guessed = guess_mapping(named(HANDBOOK), SchemaMapping())
    assert "TX_FRAUD_SCENARIO" in (guessed.ignore or ())
    assert (
        '"TX_FRAUD_SCENARIO" = "looks like another name for the label: it would leak the answer"' in guessed.describe()
    )


def test_listed_columns_are_kept_even_if_they_look_like_ids() -> None:
    guessed = guess_mapping(named(PAYMENTS), SchemaMapping(categories=("device_id",)))
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
    with pytest.warns(InputWarning, match="`serial` is left out"):
        mapping = load_dataset(path).mapping
    assert (mapping.time, mapping.label) == ("date", "Class")
    assert {column: reason.split(":")[0] for column, reason in mapping.why.items()} == {
        "Time": "a different value in nearly every row",
        "day": "grows with time",
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
    told = {"amount": 5.0, "kind": "007", "ok": True}
    assert first[0].transaction.facts == {**told, "weekday": "Friday", "weekend": False}
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
        (
            '[history]\nentities = ["card"]',
            "'history.entities' names the column 'card', which {file} does not have; "
            "its columns are: id, amount, label",
        ),
        (
            '[history]\ncategory = "kind"',
            "'history.category' names the column 'kind', which {file} does not have; "
            "its columns are: id, amount, label",
        ),
        ('id = "id"\n[history]\nentities = ["id"]', "'id' and 'history.entities' both name the column 'id'"),
        (
            'numbers = ["id"]\n[history]\nentities = ["id"]',
            "'numbers' and 'history.entities' both name the column 'id'",
        ),
        (
            "[rename]\nid = 'z'\n[history]\nentities = ['id']",
            "'rename' and 'history.entities' both name the column 'id'",
        ),
        (
            '[history]\nwindows = ["5m"]',
            "'history.windows': expected a number of hours or days such as \"24h\" or \"7d\", got '5m'",
        ),
        (
            '[history]\nwindows = ["24h", "1d"]',
            "'history.windows': expected windows of different lengths, none of them empty",
        ),
        (
            '[history]\nlabel_delay = "soon"',
            "'history.label_delay': expected a number of hours or days such as \"24h\" or \"7d\", got 'soon'",
        ),
        (
            '[history]\nlatitude = "lat"',
            "'history.latitude' and 'history.longitude' go together; one of them is missing",
        ),
        ("[history.names]\nx = 'y'", "'history.names' names 'x', which is none of 'history.entities'"),
        (
            '[history]\nentities = ["user_id", "userNo"]',
            "'history.names': two entities are called 'user'",
        ),
        (
            '[history]\nentities = ["id"]\nnames = {id = "the id"}',
            "'history.names': expected letters, digits and '_', got 'the id'",
        ),
        (
            "[history]\nentity = 'id'",
            "unknown key 'history.entity'; the keys are: entities, windows, label_delay, label_patience, category, "
            "latitude, longitude, pair_memory, names",
        ),
        ("[history]\nentities = 'id'", "key 'history.entities': Input should be a valid tuple"),
        ('rising = ["x"]\nfalling = ["y", "x"]', "'rising' and 'falling' both name the fact 'x'"),
        (
            '[elapsed]\nwait = ["amount", "then"]',
            "'elapsed.wait' names the column 'then', which {file} does not have; its columns are: id, amount, label",
        ),
        (
            'known_at = "id"\n[elapsed]\nwait = ["amount", "id"]',
            "'known_at' and 'elapsed.wait' both name the column 'id'",
        ),
        ('[elapsed]\nwait = ["amount"]', "key 'elapsed.wait.1': Field required"),
        (
            '[time_parts]\nyear = "id"\nmonth = "amount"\nday = "when"',
            "'time_parts.day' names the column 'when', which {file} does not have; its columns are: id, amount, label",
        ),
        (
            'time = "id"\n[time_parts]\nyear = "a"\nmonth = "b"',
            "'time' names the column 'id', and 'time_parts' says the time too",
        ),
        ('id = "a"\n[time_parts]\nyear = "a"\nmonth = "b"', "'id' and 'time_parts.year' both name the column 'a'"),
        (
            '[time_parts]\nyear = "a"\nmonth = "a"',
            "'time_parts.year' and 'time_parts.month' both name the column 'a'",
        ),
        ('[time_parts]\nyear = "a"\nmonth = ""', "'time_parts.month': expected the name of a column"),
        ('[time_parts]\nyear = "a"', "key 'time_parts.month': Field required"),
        (
            '[time_parts]\nyear = "a"\nmonth = "b"\nhour = "c"',
            "unknown key 'time_parts.hour'; the keys are: year, month, week, day",
        ),
        ("label = ", "not valid TOML: Invalid value (at end of document)"),
    ],
)
def test_invalid_mappings_are_refused(tmp_path: Path, toml: str, message: str) -> None:
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


def test_a_column_cannot_be_the_fact_of_an_elapsed_time(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,wait,label\n2025-01-01,2025-01-02,1,1\n")
    with pytest.raises(ConfigurationError, match="the column 'wait' and 'elapsed' both become the fact 'wait'"):
        load_dataset(path, mapping=SchemaMapping(elapsed={"wait": ("a", "b")}))


def test_a_remembered_mapping_is_reduced_to_the_columns_of_a_file() -> None:
    parts = TimeParts(year="y", month="m", day="d")
    mapping = SchemaMapping(elapsed={"wait": ("a", "b")}, time_parts=parts, rising=("wait",), ignore=())
    assert mapping.only(["a", "b", "d", "m", "y"]) == mapping
    assert mapping.only(["a", "y", "m"]) == SchemaMapping(rising=("wait",), ignore=())


def test_what_is_sensitive_goes_by_columns_and_facts(tmp_path: Path) -> None:
    assert SchemaMapping().sensitive == ()
    path = tmp_path / "t.csv"
    path.write_text("mail,sum,facts.phone,label\na@example.org,5,1,1\nb@example.org,6,2,0\n")
    given = SchemaMapping(sensitive=("mail", "facts.phone", "score"), rename={"mail": "contact"}, known=("mail",))
    mapping = load_dataset(path, mapping=given).mapping
    assert mapping.sensitive == ("mail", "facts.phone", "score")
    assert mapping.sensitive_facts == ("mail", "facts.phone", "score", "contact", "phone")
    assert mapping.only(["label"]).sensitive == mapping.sensitive
    assert "# Columns or facts that no language model may see; they are masked before any call.\nsensitive = [" in (
        mapping.describe()
    )


def test_a_text_cannot_be_sensitive_as_a_whole() -> None:
    with pytest.raises(ConfigurationError, match="'text' and 'sensitive' both name the column 'note'"):
        SchemaMapping(text="note", sensitive=("note",))


def test_with_time_parts_no_time_column_is_guessed() -> None:
    days = [(1994 + at // 24, 1 + at // 2 % 12, 1 + at % 2) for at in range(60)]
    sample = {
        "Year": pl.Series([year for year, _, _ in days]),
        "Month": pl.Series([month for _, month, _ in days]),
        "Week": pl.Series([week for _, _, week in days]),
        "date": pl.Series(["2025-01-01", "2025-01-02"] * 30),
        "shop_id": pl.Series([1, 2, 3] * 20),
        "label": pl.Series([0, 1] * 30),
    }
    given = SchemaMapping(time_parts=TimeParts(year="Year", month="Month", week="Week"))
    guessed = guess_mapping(sample, given)
    assert guessed.time == ""
    assert guessed.entities == ("shop_id",)
    assert guessed.ignore == ("Year", "date", "shop_id")
    assert guessed.why["Year"].startswith("grows with time")


def test_two_columns_cannot_be_one_fact(tmp_path: Path) -> None:
    data = tmp_path / "tx.csv"
    data.write_text("id,a,b,label\n1,2,3,0\n")
    with pytest.raises(
        ConfigurationError, match="the columns 'a' and 'b' both become the fact 'b'; rename or ignore one"
    ):
        load_dataset(data, mapping=SchemaMapping(rename={"a": "b"}))


def payments(tmp_path: Path) -> Path:
    """Two hundred payments: cards and shops come again, tokens do not, and there is only one of the last."""
    rows = "".join(
        f"{n},2025-01-{1 + n // 24:02} {n % 24:02}:00,"
        f"c{n % 40},s{n % 7},k{n},x,town {n % 60},{n % 90},{n % 180},{n % 2}\n"
        for n in range(200)
    )
    path = tmp_path / "tx.csv"
    path.write_text(f"id,when,card_id,shop_id,token_id,one_id,town,lat,long,fraud\n{rows}")
    return path


def test_ids_that_repeat_have_a_history(tmp_path: Path) -> None:
    mapping = load_dataset(payments(tmp_path)).mapping
    assert mapping.history == HistoryPlan(
        entities=("card_id", "shop_id"), label_delay="19h", latitude="lat", longitude="long"
    )
    assert mapping.ignore is not None
    assert {"card_id", "shop_id", "token_id", "one_id"} <= set(mapping.ignore)
    assert mapping.why["shop_id"] == "an id that repeats: the history of each shop becomes facts"
    assert mapping.why["token_id"] == "an id: a rule about it would not generalise"
    assert set(mapping.facts_by_column(["card_id", "shop_id", "town", "lat"])) == {"town", "lat"}


@pytest.mark.parametrize(
    ("label", "values", "delay"),
    [
        ("has_cbk", "FALSE TRUE", "28d"),
        ("Charge-Back", "0 1", "28d"),
        ("is_disputed", "no yes", "28d"),
        ("status", "ok charged-back", "28d"),
        ("fraud_reported", "N Y", "14d"),
        ("answer", "APPROVE DECLINE", "3d"),
        ("status", "approved declined", "3d"),
        ("is_fraud", "0 1", "7d"),
        ("class", "0 1", "7d"),
    ],
)
def test_the_delay_of_labels_is_guessed_by_their_name_and_values(label: str, values: str, delay: str) -> None:
    cells = pl.Series(values.split())
    assert guess_label_delay(label, cells, 400 * DAY) == delay
    assert guess_label_delay(label, cells, 20 * DAY) == "48h", "at most a tenth of the time that the file spans"
    assert guess_label_delay(label, cells, 9 * HOUR) == "0h"


def test_a_stated_delay_of_labels_is_never_overridden(tmp_path: Path) -> None:
    path = payments(tmp_path)
    for delay in ("0h", "90d"):
        given = SchemaMapping(history=HistoryPlan(entities=("card_id",), label_delay=delay))
        assert load_dataset(path, mapping=given).mapping.history == given.history
    guessed = load_dataset(path).mapping
    again = parse_mapping(guessed.describe().replace('label_delay = "19h"', 'label_delay = "0h"'))
    assert load_dataset(path, mapping=again).mapping.history == again.history


def test_without_a_time_there_is_no_history(tmp_path: Path) -> None:
    mapping = load_dataset(payments(tmp_path), mapping=SchemaMapping(time="")).mapping
    assert mapping.history is None


def test_at_most_four_entities_are_guessed_and_one_of_each_name(tmp_path: Path) -> None:
    columns = ["card_id", "card_number", "shop_id", "user_id", "device_id", "ip"]
    cells = pl.Series([str(n % 5) for n in range(50)])
    times = pl.Series([f"2025-01-{1 + n % 28:02}" for n in range(50)])
    guessed = guess_mapping({"time": times, **dict.fromkeys(columns, cells)}, SchemaMapping(time="time"))
    assert guessed.entities == ("card_id", "shop_id", "user_id", "device_id")
    assert set(guessed.ignore or ()) == set(columns)


def test_a_given_history_stays_and_entities_are_never_facts(tmp_path: Path) -> None:
    path = payments(tmp_path)
    given = SchemaMapping(ignore=("token_id", "one_id"), history=HistoryPlan(entities=("town",), windows=("7d",)))
    mapping = load_dataset(path, mapping=given).mapping
    assert mapping.history == given.history
    assert mapping.ignore == ("token_id", "one_id", "town")
    assert load_dataset(path, mapping=SchemaMapping(history=HistoryPlan())).mapping.entities == ()


def test_a_mapping_with_a_history_reads_its_file_again_the_same(tmp_path: Path) -> None:
    path, saved = payments(tmp_path), tmp_path / "mapping.toml"
    first = load_dataset(path)
    saved.write_text(first.mapping.describe())
    assert load_dataset(path, mapping=saved).mapping == first.mapping
    assert load_dataset(path, remembered=first.mapping).mapping.history == first.mapping.history
