"""Odd files: each gets a result or an error that names the file, the row, the field and what was expected.

docs/data.md has them as a table, which `python -m tests.datasets.test_odd_files` prints anew.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.cli.conftest import Shell

from acefraud.core.transaction import FactValue, Transaction
from acefraud.core.transactions import Transactions
from acefraud.datasets import Dataset, load_dataset
from acefraud.datasets.rows import Loaded, read_transactions
from acefraud.errors import InputError

pytestmark = pytest.mark.wide

DOCS = Path(__file__).parents[2] / "docs" / "data.md"
ROWS = 40
NO_VALUE = dict(enumerate(["NA", "n/a", "null", "None", "-", "?", ""]))


def csv(header: str, row: Callable[[int], str], *more: str, end: str = "\n") -> str:
    """A header, forty rows, and more rows."""
    return end.join([header, *map(row, range(ROWS)), *more]) + end


def lines(row: Callable[[int], dict[str, Any]], *more: str) -> str:
    """Forty JSON lines, and more lines."""
    return "\n".join([*(json.dumps(row(n)) for n in range(ROWS)), *more]) + "\n"


def fraud(n: int) -> int:
    return int(n % 4 == 0)


def plain(n: int) -> str:
    return f"t{n},{5 + n * 37 % 90},{fraud(n)}"


def dated(*days: str) -> Callable[[int], str]:
    return lambda n: f"t{n},{days[n % len(days)]},{n},{fraud(n)}"


def wide(columns: int) -> str:
    """An id, a label and numbers."""
    numbers = range(columns - 2)
    return csv(
        "id,label," + ",".join(f"c{k}" for k in numbers),
        lambda n: f"t{n},{fraud(n)}," + ",".join(str((n + k) % 7 / 2) for k in numbers),
    )


def coded(n: int) -> str:
    return f"t{n},{n % 5 * 3},{n},{fraud(n)}"


def nested(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "payment": {"amount": 5 + n},
        "customer": {"age_of_account_days": n * 9, "home": {"country": "DE"}},
        "device": {"is_new": n % 3 == 0},
        "tags": ["gift"] if n % 2 else ["gift", "express"],
        "items": [{"sku": n}],
        "label": fraud(n),
    }


@dataclass(frozen=True)
class Odd:
    """An odd file and what it gets."""

    what: str
    name: str
    content: str | bytes
    first: dict[str, FactValue] | None = None
    """The facts of the first row, if they are what is odd."""
    trained: str = ""
    """The file that a playbook was trained on which is to decide this one."""


FILES = [
    Odd(
        "nested records and lists",
        "nested.jsonl",
        lines(nested),
        {
            "amount": 5.0,
            "account_age_days": 0.0,
            "customer.home.country": "DE",
            "new_device": True,
            "tags.length": 2.0,
            "tags.gift": True,
            "tags.express": True,
            "items.length": 1.0,
        },
    ),
    Odd(
        "words for no value",
        "na.csv",
        csv("id,amount,score,label", lambda n: f"t{n},{NO_VALUE.get(n, n)},{n},{fraud(n)}"),
    ),
    Odd("semicolons", "semicolons.csv", csv("id;amount;label", lambda n: plain(n).replace(",", ";"))),
    Odd("tabs in a .csv", "tabs.csv", csv("id\tamount\tlabel", lambda n: plain(n).replace(",", "\t"))),
    Odd(
        "decimal commas",
        "commas.csv",
        csv("id;amount;label", lambda n: f"t{n};1.{n:03},50;{fraud(n)}"),
        {"amount": 1000.5},
    ),
    Odd(
        "decimal commas in quotes",
        "quoted.csv",
        csv("id,amount,label", lambda n: f't{n},"{n},25",{fraud(n)}'),
        {"amount": 0.25},
    ),
    Odd("a byte order mark", "bom.csv", b"\xef\xbb\xbf" + csv("id,amount,label", plain).encode()),
    Odd(
        "dates that are day first or month first",
        "unsure.csv",
        csv("id,date,amount,label", dated("01/02/2025", "03/04/2025")),
    ),
    Odd(
        "dates of both orders",
        "mixed.csv",
        csv("id,date,amount,label", dated("13/02/2025", "02/13/2025", "01/02/2025")),
    ),
    Odd(
        "one date that is none",
        "soon.csv",
        csv("id,date,amount,label", dated("2025-02-13", "2025-03-01"), "x,soon,5,0"),
    ),
    Odd("one class", "honest.csv", csv("id,amount,label", lambda n: f"t{n},{n},0")),
    Odd("constant columns", "constant.csv", csv("id,amount,shop,label", lambda n: f"t{n},5,web,{fraud(n)}")),
    Odd("2,000 columns", "wide.csv", wide(2000)),
    Odd("duplicate ids", "twice.csv", csv("id,amount,label", plain, "t3,5,0")),
    Odd(
        "categories never seen in training",
        "unseen.csv",
        csv("id,shop,amount", lambda n: f"t{n},new{n % 3},{n}"),
        {"shop": "new0", "amount": 0.0},
        csv("id,shop,amount,label", lambda n: f"t{n},{'ab'[n % 2]},{n},{fraud(n)}"),
    ),
    Odd("an empty file", "empty.csv", ""),
    Odd("only a header", "header.csv", "id,amount,label\n"),
    Odd("ragged rows", "ragged.csv", csv("id,amount,label", plain, "x,1", "y,1,0,7")),
    Odd("a last row that is cut off", "cut.csv", csv("id,amount,label", plain) + "x,1"),
    Odd(
        "a last line that is cut off",
        "cut.jsonl",
        lines(lambda n: {"id": n, "amount": n, "label": fraud(n)}, '{"id": 99, "amo'),
    ),
    Odd("Latin-1", "latin.csv", csv("id,shop,label", lambda n: f"t{n},Café,{fraud(n)}").encode("latin-1")),
    Odd("UTF-16", "utf16.csv", csv("id,amount,label", plain).encode("utf-16")),
    Odd("a compressed file", "packed.csv.gz", gzip.compress(csv("id,amount,label", plain).encode(), mtime=0)),
    Odd("a compressed file named .csv", "packed.csv", gzip.compress(csv("id,amount,label", plain).encode(), mtime=0)),
    Odd(
        "huge integers",
        "huge.csv",
        csv("id,amount,label", lambda n: f"{10**30 + n},{10**20 + n},{fraud(n)}", f"x,{10**400},0"),
    ),
    Odd(
        "quotes with line breaks",
        "quotes.csv",
        csv("id,note,amount,label", lambda n: f't{n},"said ""no""\nand left, {n % 3}",{n},{fraud(n)}'),
    ),
    Odd("a quote that never closes", "open.csv", csv("id,amount,label", plain, 'x,"1,0')),
    Odd("two columns of one name", "same.csv", csv("id,amount,amount,label", lambda n: f"t{n},1,2,{fraud(n)}")),
    Odd("label words", "words.csv", csv("id,amount,label", lambda n: f"t{n},{n},{['Legit', 'FRAUD'][fraud(n)]}")),
    Odd("labels nobody knows", "maybe.csv", csv("id,amount,label", lambda n: f"t{n},{n},{'AB'[fraud(n)]}")),
    Odd("no label", "unlabelled.csv", csv("id,amount", lambda n: f"t{n},{n}")),
    Odd("a column without values", "missing.csv", csv("id,amount,score,label", lambda n: f"t{n},{n},,{fraud(n)}")),
    Odd("infinity", "infinity.csv", csv("id,amount,label", plain, "x,inf,0", "y,1e999,0")),
    Odd("negative zero", "zero.csv", csv("id,amount,label", lambda n: f"t{n},-0.0,{fraud(n)}"), {"amount": 0.0}),
    Odd(
        "yes and no",
        "flags.csv",
        csv("id,new,label", lambda n: f"t{n},{['Yes', 'no'][n % 2]},{['N', 'Y'][fraud(n)]}"),
        {"new": True},
    ),
    Odd(
        "spaces everywhere",
        "spaces.csv",
        csv(" id , amount , label ", lambda n: f" t{n} , {n} , {fraud(n)} "),
        {"amount": 0.0},
    ),
    Odd(
        "lines with different keys",
        "keys.jsonl",
        lines(lambda n: {"id": n, "label": fraud(n), ["amount", "score"][n % 2]: n}),
        {"amount": 0.0},
    ),
    Odd(
        "a field of several types",
        "types.jsonl",
        lines(lambda n: {"id": n, "x": [n, "a", True, {"y": 1}][n % 4], "label": fraud(n)}),
    ),
    Odd("line ends of old Macs", "mac.csv", csv("id,amount,label", plain, end="\r")),
    Odd("zero bytes", "nul.csv", csv("id,amount,label", lambda n: f"t{n},{n}\0,{fraud(n)}")),
    Odd(
        "codes that look like numbers",
        "codes.csv",
        csv("id,card_type,amount,label", coded, *map(coded, range(ROWS, 240))),
        {"card_type": "0", "amount": 0.0},
    ),
]


def told(odd: Odd, folder: Path) -> tuple[str, Sequence[Transaction]]:
    """What a file gets, in words, and its transactions."""
    path = folder / odd.name
    path.write_bytes(odd.content.encode() if isinstance(odd.content, str) else odd.content)
    try:
        rows, loaded = read(path, odd)
    except InputError as problem:
        return f"error: {str(problem).replace(str(path), odd.name)}", []
    said = [f"{len(rows)} rows{' to decide' if odd.trained else ''}", *loaded.report.remarks]
    said += [f"skipped {str(bad).replace(f'{path}, ', '')}" for bad in loaded.bad_rows[:2]]
    if isinstance(loaded, Dataset) and loaded.frauds in (0, len(loaded)):
        said.append("`train` refuses it: all rows have the same label")
    return "; ".join(said), rows


def read(path: Path, odd: Odd) -> tuple[Sequence[Transaction], Dataset | Loaded[Transactions]]:
    if not odd.trained:
        data = load_dataset(path)
        return data.train.transactions, data
    earlier = path.with_name("trained.csv")
    earlier.write_text(odd.trained)
    loaded = read_transactions(path, remembered=load_dataset(earlier).mapping)
    return loaded.rows, loaded


def table() -> Iterator[str]:
    """The table in the documentation."""
    yield "| file | what it gets |"
    yield "| --- | --- |"
    with TemporaryDirectory() as folder:
        for odd in FILES:
            yield f"| {odd.what} (`{odd.name}`) | {told(odd, Path(folder))[0]} |"


def long_if_wide(odd: Odd) -> Any:
    return pytest.param(odd, id=odd.name, marks=[pytest.mark.long] if odd.name == "wide.csv" else [])


@pytest.mark.parametrize("odd", [long_if_wide(each) for each in FILES])
def test_an_odd_file_gets_what_the_documentation_says(tmp_path: Path, odd: Odd) -> None:
    said, rows = told(odd, tmp_path)
    assert f"| {odd.what} (`{odd.name}`) | {said} |" in DOCS.read_text("utf-8")
    if odd.first is not None:
        assert rows[0].facts == odd.first


def test_the_documentation_has_no_other_row() -> None:
    whole = DOCS.read_text("utf-8").split("| file | what it gets |")[1].split("\n\n")[0]
    assert len(whole.strip().splitlines()) == len(FILES) + 1


def test_a_hundred_columns_are_a_hundred_facts(tmp_path: Path) -> None:
    said, rows = told(Odd("100 columns", "less_wide.csv", wide(102)), tmp_path)
    assert said == "40 rows"
    assert rows[1].facts == {f"c{k}": (1 + k) % 7 / 2 for k in range(100)}


@pytest.mark.parametrize("odd", [long_if_wide(each) for each in FILES if not each.trained])
def test_training_works_or_leaves_nothing_behind(tmp_path: Path, odd: Odd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACEFRAUD_CACHE", str(tmp_path / "replies.db"))
    shell = Shell(tmp_path)
    path = shell.write(odd.name, odd.content)
    ran = shell.attempt("train", path, "--playbook", shell.book, "--json")
    if ran.code == 0:
        assert ran.json["rows"] + ran.json["bad_rows"] >= ROWS
        return
    assert ran.code == 2
    assert f"acefraud: {path}" in ran.err
    assert [each.name for each in tmp_path.iterdir()] == [odd.name]


def test_what_a_mapping_says_of_an_odd_file(tmp_path: Path) -> None:
    by_name = {odd.name: odd for odd in FILES}
    mappings = {}
    for name in ("nested.jsonl", "commas.csv", "codes.csv"):
        told(by_name[name], tmp_path)
        mappings[name] = load_dataset(tmp_path / name).mapping
    assert '"customer.age_of_account_days" = "account_age_days"' in mappings["nested.jsonl"].describe()
    assert 'decimal = ","' in mappings["commas.csv"].describe()
    assert mappings["codes.csv"].categories == ("card_type",)
    later = '{"id": 1, "payment": {"amount": 5}, "tags": ["other"]}'
    (row,) = read_transactions(StringIO(later), remembered=mappings["nested.jsonl"]).rows
    assert row.facts == {"amount": 5.0, "tags.length": 1.0, "tags.gift": False, "tags.express": False}


if __name__ == "__main__":
    print("\n".join(table()))
