"""An export, imported into a new playbook, exports to the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, Claim, Evidence, Record, Source, Status
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.transaction import Verdict
from acefraud.storage.playbook_text import Exported, from_json, from_markdown, to_json, to_markdown

FORMATS = ["md", "json"]
# Half of a two-part character is no text; the separators have a test of their own below.
SEPARATORS = ["\x85", "\u2028", "\u2029"]
line = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=SEPARATORS), min_size=1, max_size=30)
records = st.integers(0, 500).flatmap(lambda n: st.builds(Record, support=st.just(n), frauds=st.integers(0, n)))
conditions = st.sampled_from(["amount > 5000", "vpn is true and amount < 0.1", 'country is "a: b" and night is false'])
bullets = st.builds(
    Bullet,
    id=st.from_regex(r"\Ab-[0-9a-f]{8}\Z"),
    content=line,
    node=line,
    source=st.sampled_from(Source),
    status=st.sampled_from(Status),
    status_by=line | st.just(""),
    argues=st.none() | st.sampled_from(Verdict),
    condition=st.none() | conditions.map(Condition.parse),
    evidence=st.none() | st.builds(Evidence, learnt=records, base_rate=st.floats(0, 1), later=st.none() | records),
    claim=st.none() | st.builds(Claim, fraud_share=st.floats(0, 1), words=line),
    weight=st.none() | st.floats(-9, 9),
    contradicts=st.lists(line, max_size=2).map(tuple),
    added_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    helpful_count=st.integers(0, 10**9),
    record=records,
)
exports = st.builds(
    Exported,
    bullets=st.lists(bullets, max_size=3, unique_by=lambda bullet: bullet.id).map(tuple),
    frames=st.dictionaries(
        st.from_regex(r"\A[a-z :]{1,12}\Z"),
        st.builds(Calibration, intercept=st.floats(-9, 9), cases=st.integers(0, 9999)),
        max_size=2,
    ),
    mapping=line | st.just('label = "is_fraud"\n# a comment\n'),
)


@settings(max_examples=settings().max_examples // 4)
@given(exports)
@pytest.mark.parametrize(("write", "read"), [(to_json, from_json), (to_markdown, from_markdown)])
def test_what_was_written_reads_back(
    write: Callable[[Exported], str], read: Callable[..., Exported], exported: Exported
) -> None:
    text = write(exported)
    assert read(text, file="x") == exported
    assert write(read(text, file="x")) == text


@pytest.mark.parametrize("separator", SEPARATORS)
def test_every_line_separator_survives_markdown(separator: str) -> None:
    exported = Exported(bullets=(Bullet(id="b-1", content=f"one{separator}two"),), calibrations={})
    assert from_markdown(to_markdown(exported), file="x") == exported


@pytest.mark.parametrize("format", FORMATS)
def test_import_of_an_export_is_identity(trained: Any, format: str) -> None:
    trained.on_book("decide", "history.csv", "--json")
    trained.on_book("learn", "history.csv", "--json")
    trained.on_book("playbook", "add", 'Says "quote", > and #: decline', "--as-note", "--who", "ana")
    with trained.open() as book:
        first, second, *_ = book.snapshot().bullets
    trained.on_book("playbook", "pin", first, "--who", "ben")
    trained.on_book("playbook", "retire", second, "--why", "old")
    exported = trained.on_book("playbook", "export", "--format", format).out
    path = trained.write(f"book.{format}", exported)
    copy = trained.folder / "copy.db"
    trained("playbook", "import", path, "--playbook", copy)
    assert trained("playbook", "export", "--format", format, "--playbook", copy).out == exported
    trained("playbook", "import", path, "--playbook", copy)  # once more: all of it is there already
    assert trained("playbook", "export", "--format", format, "--playbook", copy).out == exported


def test_an_imported_playbook_decides_the_same(trained: Any) -> None:
    path = trained.folder / "book.md"
    trained.on_book("playbook", "export", "--to", path)
    trained("playbook", "import", path, "--playbook", "copy.db")

    def decided(book: Any) -> list[tuple[str, str]]:
        lines = trained("decide", "history.csv", "--playbook", book, "--json").lines
        return [(line["transaction_id"], line["verdict"]) for line in lines]

    # Draws depend on the revision, which is the copy's own; what is certain either way stays the same.
    same = [each == other for each, other in zip(decided(trained.book), decided("copy.db"), strict=True)]
    assert sum(same) >= 0.95 * len(same)


def test_export_to_a_file_writes_what_it_would_print(trained: Any) -> None:
    path = trained.folder / "book.md"
    assert trained.on_book("playbook", "export", "--to", path).out == ""
    assert path.read_text() == trained.on_book("playbook", "export").out
    assert sorted(each.name for each in trained.folder.iterdir() if "book.md" in each.name) == ["book.md"]


def test_an_export_says_what_it_leaves_out(trained: Any) -> None:
    trained.on_book("decide", '{"id": "t1", "amount": 2500, "vpn": true}')
    said = "not exported: 80 remembered cases, 1 decisions; `acefraud backup` keeps everything\n"
    assert trained.on_book("playbook", "export", "--to", "book.md").err == said
    assert trained.on_book("playbook", "export", "--format", "json").err == said
    trained("playbook", "import", "book.md", "--playbook", "copy.db")
    assert trained("playbook", "export", "--playbook", "copy.db").err == ""


def test_export_to_a_place_that_is_none(trained: Any) -> None:
    place = trained.folder / "nowhere" / "book.md"
    assert f"{place}: cannot be written" in trained.on_book("playbook", "export", "--to", place, code=2).err


def test_an_import_that_differs_from_what_is_there_is_refused_whole(trained: Any) -> None:
    exported = trained.on_book("playbook", "export").out
    changed = re.sub(r"> Amount above 1", "> Amount over 1", exported, count=1)
    assert changed != exported
    new = '\n## b-00000001\n\n> Something else\n\n- status_by: "x"\n'
    state = trained.state()
    refused = trained.on_book("playbook", "import", trained.write("changed.md", changed + new), code=2)
    assert "is already in this playbook and differs" in refused.err
    assert trained.state() == state


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.md", "# My notes\n", "row 1: expected an export of a playbook"),
        ("x.md", "# acefraud playbook 1\n\nhello\n", "row 3: expected a heading, a quotation or a field"),
        ("x.md", "# acefraud playbook 1\n\n## b-1\n\n> VPN\n\n- weight: heavy\n", "row 7, field 'weight'"),
        ("x.md", '# acefraud playbook 1\n\n## b-1\n\n> VPN\n\n- status: "asleep"\n', "row 3, field 'b-1.status'"),
        ("x.json", '{"format": "acefraud playbook 2"}', "expected an export of a playbook"),
        ("x.json", '{"format"', "not valid JSON"),
        ("x.md", b"# acefraud \xff", "not valid UTF-8 at byte 11"),
        ("x.md", "", "expected an export of a playbook"),
    ],
)
def test_what_is_no_export_is_refused_and_makes_no_playbook(shell: Any, name: str, content: Any, message: str) -> None:
    path = shell.write(name, content)
    refused = shell.on_book("playbook", "import", path, code=2)
    assert str(path) in refused.err
    assert message in refused.err
    assert not shell.book.exists()


@pytest.mark.parametrize(
    "content",
    ['{"format": "acefraud playbook 1"}', '{"format": "acefraud playbook 1", "frames": [], "bullets": []}'],
)
def test_a_json_export_without_its_parts(shell: Any, content: str) -> None:
    assert "x.json" in shell.on_book("playbook", "import", shell.write("x.json", content), code=2).err
