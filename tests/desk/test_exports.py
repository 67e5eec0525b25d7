"""Exports of payment companies, shops and banks, read as they come."""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Shell

from acefraud import AceFraudClassifier, Dataset, InputWarning, load_dataset, load_transactions
from acefraud.errors import InputError

pytestmark = pytest.mark.wide

ROWS = 600


def is_fraud(row: int) -> bool:
    return row % 11 == 3


def time_of(row: int) -> datetime:
    return datetime(2024, 1, 1, 8, 5) + timedelta(hours=7 * row)


def amount_of(row: int) -> float:
    return round(random.Random(row).lognormvariate(5, 1.5) * (3 if is_fraud(row) else 1), 2)


def with_commas(amount: float, thousands: str = ".") -> str:
    return f"{amount:,.2f}".replace(",", "_").replace(".", ",").replace("_", thousands)


def joined(header: Sequence[str], row: Callable[[int], Sequence[str]], separator: str = ";") -> str:
    return "\n".join(separator.join(cells) for cells in (header, *map(row, range(ROWS)))) + "\n"


GERMAN = (
    *("Transaktionsnr.", "Buchungsdatum", "Kunde", "Karte", "Gerät", "Betrag", "VIP", "Land", "Betrug"),
    *("Rückbuchungsgrund", "Schadenshöhe", "Bearbeitungsstatus"),
)


def german(row: int) -> list[str]:
    fraud, dice = is_fraud(row), random.Random(row)
    return [
        *(
            f"T{row:05}",
            f"{time_of(row):%d.%m.%Y %H:%M}",
            f"K{dice.randrange(90)}",
            f"4711****{dice.randrange(120):04}",
        ),
        *(
            f"D-{dice.randrange(150)}",
            f"{with_commas(amount_of(row))} €",
            "nein" if row % 5 else "ja",
            ["DE", "AT", "CH"][row % 3],
        ),
        *("Betrug" if fraud else "legitim", ["Karte nicht anwesend", "4837"][row % 2] if fraud and row % 4 else ""),
        *(with_commas(amount_of(row)) if fraud else "0,00", "Rückbuchung" if fraud else "abgeschlossen"),
    ]


SPANISH = (
    "ID operación",
    "Fecha",
    "Cliente",
    "Tarjeta",
    "Dispositivo",
    "Comercio",
    "Importe",
    "Nuevo",
    "Fraude",
    "motivo",
)


def spanish(row: int) -> list[str]:
    fraud, dice = is_fraud(row), random.Random(row)
    month = ["enero", "febrero", "marzo", "abril", "mayo", "junio"][time_of(row).month - 1]
    return [
        *(
            f"OP{row}",
            f"{time_of(row).day} de {month} de 2024",
            f"c{dice.randrange(90)}@correo.es",
            f"{dice.randrange(200):04}",
        ),
        *(
            f"{dice.randrange(150)}",
            ["Zara", "Mercadona"][row % 2],
            f"€ {with_commas(amount_of(row))}",
            "sí" if row % 3 else "no",
        ),
        *("sí" if fraud else "no", ["No reconocido", "Duplicado"][row % 2] if fraud else ""),
    ]


@pytest.fixture(autouse=True)
def _leaks_are_no_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        yield


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Dataset]:
    def load(content: str | bytes, name: str = "export.csv", **options: object) -> Dataset:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load_dataset(path, **options)  # type: ignore[arg-type]

    return load


Load = Callable[..., Dataset]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_a_german_export_is_read_in_every_encoding(load: Load, encoding: str) -> None:
    data = load(joined(GERMAN, german).encode(encoding))
    assert (len(data), data.frauds, data.bad_rows) == (ROWS, sum(map(is_fraud, range(ROWS))), ())
    for row, case in enumerate(data):
        assert case.transaction.facts["amount"] == amount_of(row)
        assert case.transaction.facts["vip"] is (row % 5 == 0)
        assert case.is_fraud is is_fraud(row)
        assert case.transaction.time is not None
        assert case.transaction.time.replace(tzinfo=None) == time_of(row)
    said = "\n".join(data.remarks)
    assert ("not UTF-8" in said) is not encoding.startswith("utf-8")
    assert "`Betrag` is read as a number: '" in said
    assert "`VIP` is read as yes or no: 'nein' is no, 'ja' is yes" in said
    assert "`Betrug` is read as the label: 'Betrug' is fraud, 'legitim' is legitimate" in said
    assert "`Buchungsdatum` is read as a time: '01.01.2024 08:05' is 2024-01-01 08:05" in said


def test_a_spanish_export_is_read(load: Load) -> None:
    data = load(joined(SPANISH, spanish, "\t"))
    assert [case.transaction.facts["amount"] for case in data] == [amount_of(row) for row in range(ROWS)]
    assert [case.transaction.facts["Nuevo"] for case in data] == [row % 3 > 0 for row in range(ROWS)]
    assert [case.is_fraud for case in data] == [is_fraud(row) for row in range(ROWS)]
    assert data[40].transaction.time is not None
    assert data[40].transaction.time.date() == time_of(40).date()


@pytest.mark.parametrize("mapping", [None, {"label": "Betrug"}, {"label": "Betrug", "ignore": []}])
def test_the_reason_of_a_chargeback_is_named_as_a_leak_and_left_out(load: Load, mapping: object) -> None:
    data = load(joined(GERMAN, german), mapping=mapping)
    for column in ("Rückbuchungsgrund", "Schadenshöhe", "Bearbeitungsstatus"):
        assert column not in data.train.facts.names
        assert any(remark.startswith(f"`{column}` is left out: a likely leak") for remark in data.remarks)


def test_a_spanish_reason_is_named_as_a_leak_and_left_out(load: Load) -> None:
    data = load(joined(SPANISH, spanish), mapping={"label": "Fraude"})
    assert "motivo" not in data.train.facts.names
    assert [remark.split("`")[1] for remark in data.remarks if "leak" in remark] == ["motivo"]


def test_a_leak_that_the_mapping_names_is_kept_and_doubted(load: Load) -> None:
    data = load(joined(SPANISH, spanish), mapping={"label": "Fraude", "categories": ("motivo",)})
    assert "motivo" in data.train.facts.names
    assert any("`motivo` is kept: a likely leak" in remark for remark in data.remarks)


def test_a_leak_is_a_warning_in_python(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(joined(SPANISH, spanish), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputWarning, match="`motivo` is left out: a likely leak"):
            load_dataset(path)


def test_train_prints_what_it_read_how_and_what_it_guessed_beside_a_mapping(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    export = shell.write("export.csv", joined(GERMAN, german).encode("cp1252"))
    mapping = shell.write("mapping.toml", 'label = "Betrug"\n')
    ran = shell.attempt("train", export, "--playbook", shell.book, "--mapping", mapping)
    assert ran.code == 0, ran.err
    assert "read as Windows-1252" in ran.err
    assert "`Rückbuchungsgrund` is left out: a likely leak of the label: it has values in" in ran.err
    assert 'amount = "Betrag"' in ran.err
    assert 'label = "Betrug"' not in ran.err
    assert "Rückbuchungsgrund" not in ran.out


def test_customers_cards_and_devices_get_a_history(load: Load) -> None:
    english = ("Customer", "Card", "Device")
    text = joined(GERMAN, german).replace("Kunde;Karte;Gerät", ";".join(english))
    data = load(text)
    assert data.mapping.entities == english
    assert "taken as entities, whose history becomes facts: Customer, Card, Device;" in str(data.report)
    assert not set(english) & set(data.train.facts.names)
    assert "customer_count_24h" in data.with_history().train.facts.names
    assert load(joined(SPANISH, spanish)).mapping.entities == ("Cliente", "Tarjeta", "Dispositivo")


@pytest.mark.parametrize(
    ("name", "cell", "is_id"),
    [
        ("Zahlungs-Nr", lambda n: f"ZA-{n:05}", True),
        ("Auftragsnummer", lambda n: f"{7000 + n}", True),
        ("Clave de pago", lambda n: f"P{n}", True),
        ("Riferimento", lambda n: f"R{n}", True),
        ("Zahlungs-Nr", lambda n: "" if n == 7 else f"ZA-{n:05}", False),
        ("Zahlungs-Nr", lambda n: f"ZA-{max(n, 1):05}", False),
        ("Kundennummer", lambda n: f"K{n}", False),
        ("Ref Datum", lambda n: f"{time_of(n):%Y-%m-%d %H:%M}", False),
        ("Fall-Nr", lambda n: f"F{n}", False),
        ("Bezeichnung", lambda n: f"B{n}", False),
    ],
)
def test_a_number_that_differs_in_every_row_is_the_id(
    load: Load, name: str, cell: Callable[[int], str], is_id: bool
) -> None:
    data = load(joined([name, "Betrag", "Betrug"], lambda n: [cell(n), f"{amount_of(n)}", str(int(is_fraud(n)))]))
    assert (data.mapping.id == name) is is_id
    assert name not in data.train.facts.names
    said = [remark for remark in data.remarks if remark.startswith("no column with ids was found")]
    assert len(said) == (not is_id)
    assert all('`id = "..."` in a mapping changes that' in remark for remark in said)


def test_entities_without_a_time_have_no_history_and_it_is_said(load: Load) -> None:
    def row(number: int) -> list[str]:
        return [f"C{number % 40}", f"{amount_of(number)}", str(int(is_fraud(number)))]

    data = load(joined(["Customer", "Amount", "fraud"], row))
    assert data.train.facts.names == ["amount"]
    assert "no history of Customer: no column with the time of a transaction was found" in data.remarks


def test_kinds_of_cards_are_no_entities(load: Load) -> None:
    data = load(
        joined(["Date", "Card", "fraud"], lambda n: [f"{time_of(n)}", ["Visa", "Amex"][n % 2], str(int(is_fraud(n)))])
    )
    assert data.mapping.entities == ()


def test_an_empty_label_is_legitimate_where_the_mapping_says_so(load: Load) -> None:
    text = joined(["id", "amount", "cb"], lambda n: [f"{n}", f"{amount_of(n)}", "Rückbuchung" if is_fraud(n) else ""])
    data = load(text, mapping={"label": "cb", "fraud_values": ["Rückbuchung"], "legit_values": [""]})
    assert (len(data), data.frauds, data.unlabelled) == (ROWS, sum(map(is_fraud, range(ROWS))), 0)
    pending = load(text, mapping={"label": "cb", "fraud_values": ["Rückbuchung"]})
    assert (len(pending), pending.unlabelled) == (pending.frauds, ROWS - pending.frauds)


def workbook() -> bytes:
    content = io.BytesIO()
    rows = [
        dict(zip(GERMAN, german(row), strict=True)) | {"Betrag": amount_of(row), "Buchungsdatum": time_of(row)}
        for row in range(ROWS)
    ]
    pl.DataFrame(rows).write_excel(content)
    return content.getvalue()


@pytest.mark.parametrize("name", ["export.xlsx", "export.csv"])
def test_a_workbook_is_read(load: Load, name: str) -> None:
    pytest.importorskip("xlsxwriter", reason="xlsxwriter writes the workbook")
    data = load(workbook(), name)
    assert [case.transaction.facts["amount"] for case in data] == [amount_of(row) for row in range(ROWS)]
    assert data[7].transaction.time is not None
    assert data[7].transaction.time.replace(tzinfo=None) == time_of(7)
    assert data[7].transaction.facts["vip"] is False


def test_without_the_extra_a_workbook_is_refused_with_what_to_do(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fastexcel", None)
    with pytest.raises(InputError, match=r"pip install 'acefraud\[xlsx\]', or save it as CSV"):
        load(b"PK\x03\x04", "export.xlsx")


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda a: with_commas(a, " ") + " EUR", None),
        (lambda a: with_commas(a, " ") + " €", None),
        (lambda a: f"CHF {a:,.2f}".replace(",", "'"), None),
        (lambda a: f"${a:,.2f}", None),
        (lambda a: f"USD {a:,.2f}", None),
        (lambda a: f"({a:,.2f})", -1),
        (lambda a: f"({with_commas(a)} €)", -1),
        (lambda a: f"{with_commas(a)}-", -1),
        (lambda a: f"−{with_commas(a)} €", -1),
        (lambda a: f"£-{a:,.2f}", -1),
        (lambda a: f"{with_commas(a)}%", None),
        (lambda a: f"R$ {with_commas(a)}", None),
        (lambda a: f"{a:.2f}".replace(".", ",") + " zł", None),
    ],
)
def test_amounts_as_people_write_them(load: Load, write: Callable[[float], str], expected: int | None) -> None:
    data = load(joined(["id", "amount", "fraud"], lambda n: [f"{n}", write(amount_of(n)), str(int(is_fraud(n)))]))
    assert [case.transaction.facts["amount"] for case in data] == [amount_of(n) * (expected or 1) for n in range(ROWS)]


def test_one_column_has_one_reading(load: Load) -> None:
    def row(number: int) -> list[str]:
        amount = "12.50 €" if number == 5 else f"{with_commas(amount_of(number))} €"
        return [f"{number}", amount, f"{50 + number / 1000:.4f}", str(int(is_fraud(number)))]

    data = load(joined(["id", "amount", "breite", "fraud"], row))
    (bad,) = data.bad_rows
    assert (bad.row, bad.field, bad.message[-13:]) == (6, "amount", "got '12.50 €'")
    assert data[0].transaction.facts == {"amount": amount_of(0), "breite": 50.0}
    assert data.mapping.decimal_commas == ("amount",)
    later = pl.DataFrame({"id": ["x"], "amount": ["1.250"], "breite": ["51.123"]})
    (decided,) = load_transactions(later, remembered=data.mapping)
    assert decided.facts == {"amount": 1250.0, "breite": 51.123}


def test_a_column_that_can_be_read_both_ways_is_pointed_out(load: Load) -> None:
    text = joined(["id", "amount", "fraud"], lambda n: [f"{n}", f"{1 + n % 9}.{n % 1000:03}", str(int(is_fraud(n)))])
    data = load(text)
    assert any("could be read both ways; '.' is taken as its decimal sign" in remark for remark in data.remarks)
    assert load(text, mapping={"decimal": ","})[0].transaction.facts["amount"] == 1000.0


def test_thousands_are_told_by_the_numbers_below_a_thousand(load: Load) -> None:
    def row(number: int) -> list[str]:
        return [f"{number}", f"{int(20 * amount_of(number)):,}".replace(",", "."), str(int(is_fraud(number)))]

    data = load(joined(["id", "Betrag", "fraud"], row))
    assert [case.transaction.facts["amount"] for case in data] == [int(20 * amount_of(n)) for n in range(ROWS)]


def test_accounts_and_phones_are_no_numbers(load: Load) -> None:
    def row(number: int) -> list[str]:
        account = f"FR76{number % 40:020}" if number % 2 else f"DE89{number % 40:018}"
        return [f"{time_of(number)}", account, f"0170 {1234567 + number % 50}", "12,50", str(int(is_fraud(number)))]

    data = load(joined(["Datum", "IBAN", "Telefon", "Betrag", "fraud"], row))
    assert data.mapping.entities == ("IBAN", "Telefon")
    assert data[1].transaction.entities == {"IBAN": f"FR76{1:020}", "Telefon": "0170 1234568"}


def test_several_currencies_in_one_column_are_pointed_out(load: Load) -> None:
    text = joined(["id", "amount", "fraud"], lambda n: [f"{n}", f"{n},50 {['EUR', '$'][n % 2]}", str(int(is_fraud(n)))])
    assert "`amount` is read as a number: the currencies are several: EUR, USD" in load(text).remarks


def test_a_separator_line_and_a_title_are_passed_over(load: Load) -> None:
    rows = joined(["id", "amount", "fraud"], lambda n: [f"{n}", f"{n},50", str(int(is_fraud(n)))])
    assert len(load(f"sep=;\n{rows}")) == ROWS
    titled = load(f"Kontoauszug\nZeitraum: 2024\n\n{rows}")
    assert (len(titled), titled.mapping.label) == (ROWS, "fraud")
    assert "lines above the header that are passed over: 3" in titled.remarks
    quoted = joined(["id", "place", "fraud"], lambda n: [f"x{n}", '"Bonn, Rhein"', ["no", "yes"][is_fraud(n)]], ",")
    assert (len(load(quoted)), load(quoted).mapping.label) == (ROWS, "fraud")


def with_column(name: str, cell: Callable[[int], str]) -> str:
    header = ["id", "amount", name, "fraud"]
    return joined(header, lambda n: [f"{n}", f"{amount_of(n)}", cell(n), str(int(is_fraud(n)))])


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("rare_flag", lambda n: "X" if n in (3, 14, 25) else ""),
        ("rare_flag", lambda n: "yes" if n in (3, 14, 25) else "no"),
        ("basket", lambda n: "" if n % 3 == 0 and not is_fraud(n) else f"{n % 50}.5"),
        ("vpn", lambda n: "yes" if is_fraud(n) else "no"),
        ("channel", lambda n: "phone" if is_fraud(n) and n % 3 else "web"),
        ("previous_disputes", lambda n: str(int(is_fraud(n) and n % 2))),
        ("reason", lambda n: ["rent", "food", "gift"][n % 3]),
        ("refund_policy", lambda n: "strict" if is_fraud(n) and n % 2 else "soft"),
    ],
)
def test_an_honest_column_is_no_leak(load: Load, name: str, cell: Callable[[int], str]) -> None:
    data = load(with_column(name, cell))
    assert not any("leak" in remark for remark in data.remarks)
    assert name in data.train.facts.names


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("dispute_reason", lambda n: ["10.4", "13.1"][n % 2] if is_fraud(n) and n % 3 else ""),
        ("blob", lambda n: f"case {n}" if is_fraud(n) else ""),
        ("loss_amount", lambda n: "12.5" if is_fraud(n) else "0"),
        ("investigation_status", lambda n: "confirmed" if is_fraud(n) else ["none", "cleared"][n % 2]),
        ("remboursé", lambda n: "oui" if is_fraud(n) and n % 2 else "non"),
        ("kategorie_2", lambda n: str(1 + n % 3) if is_fraud(n) else "0"),
        ("Reklamation am", lambda n: f"{time_of(n):%d.%m.%Y}" if is_fraud(n) else ""),
    ],
)
def test_a_column_filled_after_the_fact_is_a_leak(load: Load, name: str, cell: Callable[[int], str]) -> None:
    data = load(with_column(name, cell))
    assert [remark.split("`")[1] for remark in data.remarks if "leak" in remark] == [name]
    assert name not in data.train.facts.names


@pytest.mark.filterwarnings("ignore:no bullet was learnt")
def test_where_labels_come_apart_a_name_alone_makes_no_leak() -> None:
    rows = pl.DataFrame(
        {"fraud_reports_here": [n % 7 for n in range(ROWS)], "amount": [amount_of(n) for n in range(ROWS)]}
    )
    fitted = AceFraudClassifier().fit(rows, [is_fraud(n) for n in range(ROWS)])
    assert {"fraud_reports_here", "amount"} <= set(fitted.facts_)


def test_dates_of_outcomes_follow_the_order_of_the_history(load: Load) -> None:
    header = ["id", "date", "amount", "known_at", "fraud"]
    text = joined(
        header, lambda n: [f"{n}", f"{time_of(n):%d/%m/%Y %H:%M}", "5,50", "03/04/2024", str(int(is_fraud(n)))]
    )
    data = load(text)
    assert data.train[0].known_at is not None
    assert (data.train[0].known_at.day, data.train[0].known_at.month) == (3, 4)


def test_many_words_that_hardly_repeat_are_no_categories(load: Load) -> None:
    data = load(with_column("full name", lambda n: f"person {n % 290}"))
    assert data.train.facts.names == ["amount"]
    assert "hardly repeat" in data.mapping.why["full name"]
