"""A history in parts teaches what it teaches in one piece, to the last bit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from acefraud import BulletPlaybook, InputWarning, Learner, SchemaMapping, load_dataset
from acefraud.datasets import parse_mapping
from acefraud.engine import entity_memory
from acefraud.engine import parts as parts_module
from acefraud.engine.entity_memory import KeptTimes
from acefraud.engine.parts import PartedHistory, first_labelled, sources_of
from acefraud.errors import AcefraudError, InputError
from acefraud.support.runners import DaskRunner, LocalRunner, Runner

pytestmark = pytest.mark.one_search

ROWS = 900
START = datetime(2025, 3, 1, tzinfo=UTC)
HISTORY = {"entities": ("card", "shop"), "windows": ("24h", "7d")}
COLUMNS: dict[str, Any] = {"time": "time", "label": "fraud", "amount": "amount", "known_at": "", "history": HISTORY}


def orders(*, timed: bool = True, ids: bool = True) -> pl.DataFrame:
    """Cards that are used often in a short time are often stolen. Some rows are at the same time, some are equal."""
    generator = np.random.default_rng(5)
    cards, shops = generator.integers(0, 60, ROWS), generator.integers(0, 12, ROWS)
    seconds = np.sort(generator.integers(0, 40 * 24, ROWS)) * 3600  # many at the same hour
    stolen = (cards % 7 == 0) & (seconds > 5 * 86_400)
    amounts = np.round(generator.gamma(2.0, 40.0, ROWS) + 150 * stolen, 2)
    frauds = np.where(generator.random(ROWS) < np.where(stolen, 0.7, 0.05), "1", "0")
    frauds[-30:-25] = ""  # labels that have not arrived
    columns = {
        "id": [f"order-{number}" for number in range(ROWS)],
        "time": [(START + timedelta(seconds=int(each))).isoformat() for each in seconds],
        "card": [f"c{card}" for card in cards],
        "shop": [f"s{shop}" for shop in shops],
        "amount": amounts,
        "channel": generator.choice(["web", "app", "till"], ROWS),
        "fraud": frauds,
    }
    if not ids:
        del columns["id"]
    if not timed:
        del columns["time"]
    rows = pl.DataFrame(columns)
    return rows if ids else pl.concat([rows, rows[100:110]])  # rows with the same content, apart from each other


def dealt(rows: pl.DataFrame, folder: Path, count: int) -> list[str]:
    """The rows in any order, in so many files."""
    order = np.random.default_rng(count).permutation(rows.height)
    for number, some in enumerate(np.array_split(order, count)):
        rows[some.tolist()].write_csv(folder / f"part-{number}.csv")
    return sources_of(str(folder))


def learnt(playbook: BulletPlaybook) -> tuple[Any, ...]:
    """Everything that a training leaves in a playbook, but times of writing."""
    snapshot, bullets = playbook.snapshot(), playbook.snapshot().bullets.values()
    figures = [(b.id, b.content, b.weight, b.evidence) for b in bullets]
    return figures, snapshot.calibrations, snapshot.mapping


def remembered(playbook: BulletPlaybook) -> list[Any]:
    """The cases that a training leaves in a playbook, with their facts."""
    cases = Learner(playbook).remembered()
    told = zip(cases.ids.tolist(), cases.labels.tolist(), cases.facts.rows(), strict=True)
    return sorted((name, label, sorted(facts.items())) for name, label, facts in told)


def study(history: Any, **options: Any) -> BulletPlaybook:
    playbook = BulletPlaybook()
    with warnings.catch_warnings(action="ignore"):
        Learner(playbook).study(history, **options)
    return playbook


def whole_and_in_parts(
    rows: pl.DataFrame, mapping: SchemaMapping, folder: Path, runner: Runner, count: int, **options: Any
) -> Sequence[BulletPlaybook]:
    rows.write_csv(folder / "whole.csv")
    data = load_dataset(folder / "whole.csv", mapping=mapping)
    (folder / "parts").mkdir()
    sources = dealt(rows, folder / "parts", count)
    return study(data, **options), study(PartedHistory.read(sources, data.mapping, runner), **options)


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.wide), 2, pytest.param(7, marks=pytest.mark.wide)])
def test_any_number_of_parts_in_any_order_teaches_the_same(tmp_path: Path, count: int) -> None:
    with LocalRunner() as runner:
        whole, parted = whole_and_in_parts(orders(), SchemaMapping(**COLUMNS, id="id"), tmp_path, runner, count)
    assert learnt(whole) == learnt(parted)
    assert len(whole.snapshot().bullets) > 3


def test_rows_without_an_id_are_told_apart_as_in_one_piece(tmp_path: Path) -> None:
    with LocalRunner() as runner:
        whole, parted = whole_and_in_parts(orders(ids=False), SchemaMapping(**COLUMNS), tmp_path, runner, 3)
    assert learnt(whole) == learnt(parted)


def test_ids_made_from_the_content_are_those_of_one_piece(tmp_path: Path) -> None:
    """Also where rows with the same content have other labels, or none yet."""
    rows = orders(ids=False)
    others = [pl.lit("1").alias("fraud"), pl.lit("0").alias("fraud"), pl.lit("").alias("fraud")]
    rows = pl.concat([rows, *(rows[100:110].with_columns(label) for label in others)])
    data = load_dataset(rows, mapping=SchemaMapping(**COLUMNS))
    with LocalRunner() as runner:
        history = PartedHistory.read(dealt(rows, tmp_path, 3), data.mapping, runner)
        cases, waiting = history.recent(KeptTimes(None, history.last))
    labelled = zip(cases.transactions.ids, cases.labels.tolist(), strict=True)
    assert sorted(labelled) == sorted(zip(data.train.transactions.ids, data.train.labels.tolist(), strict=True))
    assert sorted(waiting.ids) == sorted(data.waiting.ids)
    assert any(name.endswith("-5") for name in waiting.ids)


@pytest.mark.wide
def test_without_times_the_order_is_drawn_by_ids(tmp_path: Path) -> None:
    mapping = SchemaMapping(**{**COLUMNS, "time": "", "history": None}, id="id")
    with LocalRunner() as runner:
        whole, parted = whole_and_in_parts(orders(timed=False), mapping, tmp_path, runner, 4, threshold="f1")
    assert learnt(whole) == learnt(parted)
    assert remembered(whole) == remembered(parted)


def test_rows_without_a_time_come_first_in_the_history_of_their_entities(tmp_path: Path) -> None:
    rows = orders().with_columns(time=pl.when(pl.int_range(pl.len()) % 9 == 4).then(None).otherwise(pl.col("time")))
    with LocalRunner() as runner:
        whole, parted = whole_and_in_parts(rows, SchemaMapping(**COLUMNS, id="id"), tmp_path, runner, 3)
    assert learnt(whole) == learnt(parted)
    assert remembered(whole) == remembered(parted)


def test_parts_without_rows_or_without_labels_are_read_like_others(tmp_path: Path) -> None:
    rows, mapping = orders(), SchemaMapping(**COLUMNS, id="id")
    data = load_dataset(rows, mapping=mapping)
    rows[:0].write_csv(tmp_path / "a.csv")
    rows.filter(pl.col("fraud") == "").write_csv(tmp_path / "b.csv")
    rows.filter(pl.col("fraud") != "").write_csv(tmp_path / "c.csv")
    sources = sources_of(str(tmp_path))
    assert first_labelled(sources, mapping).mapping == data.mapping
    with LocalRunner() as runner:
        history = PartedHistory.read(sources, data.mapping, runner)
        assert (len(history), history.unlabelled) == (len(data.train), 5)
        assert learnt(study(history)) == learnt(study(data))
        with pytest.raises(InputError, match="no part has a row with a label"):
            first_labelled(sources[:2], mapping)


@pytest.mark.wide
def test_any_number_of_buckets_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "ROWS_IN_BUCKET", 10)  # more buckets than there are cards
    with LocalRunner() as runner:
        whole, parted = whole_and_in_parts(orders(), SchemaMapping(**COLUMNS, id="id"), tmp_path, runner, 3)
    assert learnt(whole) == learnt(parted)


def test_the_next_decision_is_the_same(tmp_path: Path) -> None:
    """What was remembered of cards and shops is the same, too, and so is the threshold."""
    with LocalRunner() as runner:
        books = whole_and_in_parts(
            orders(), SchemaMapping(**COLUMNS, id="id"), tmp_path, runner, 3, threshold="f1", dataset="orders"
        )
    card = {"id": "next", "time": START + timedelta(days=40, minutes=5), "card": "c7", "shop": "s3", "amount": 260.0}
    first, second = (Learner(book).decide_sync(card) for book in books)
    assert first.transaction.facts == second.transaction.facts
    assert (first.probability, first.verdict, first.cited) == (second.probability, second.verdict, second.cited)


def test_of_a_long_history_the_same_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest rows wait for their labels, so they say up to when the windows reach."""
    monkeypatch.setattr(entity_memory, "MOST_ROWS", 500)
    with LocalRunner() as runner:
        books = whole_and_in_parts(orders(), SchemaMapping(**COLUMNS, id="id"), tmp_path, runner, 3)
    kept = []
    for book in books:
        with book.ledger.rows() as rows:
            kept.append(rows.get_all())
    assert kept[0] == kept[1]


@pytest.mark.wide
@pytest.mark.enable_socket
def test_processes_and_a_cluster_teach_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    mapping = SchemaMapping(**COLUMNS, id="id")
    with LocalRunner(2) as runner:
        whole, by_processes = whole_and_in_parts(orders(), mapping, tmp_path, runner, 5)
    sources = sources_of(str(tmp_path / "parts"))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        DaskRunner.at(cluster.scheduler_address) as remote,
    ):
        on_dask = study(PartedHistory.read(sources, parse_mapping(whole.mapping), remote))
    assert learnt(whole) == learnt(by_processes) == learnt(on_dask)


# --- what goes wrong is said before anything is written ---


def test_an_id_in_two_parts_is_an_error(tmp_path: Path) -> None:
    rows = orders()
    rows.write_csv(tmp_path / "a.csv")
    rows[:3].write_csv(tmp_path / "b.csv")
    said = "3 rows have an id that another row has.*'order-[012]' is one of them"
    with LocalRunner() as runner, pytest.raises(InputError, match=said):
        PartedHistory.read(sources_of(str(tmp_path)), SchemaMapping(**COLUMNS, id="id"), runner)


def test_a_part_with_other_columns_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    rows = orders()
    rows[:400].write_csv(tmp_path / "a.csv")
    rows[400:].rename({"card": "card_number"}).write_csv(tmp_path / "b.csv")
    with LocalRunner() as runner, pytest.raises(AcefraudError, match=r"b\.csv.*card"):
        PartedHistory.read(sources_of(str(tmp_path)), SchemaMapping(**COLUMNS, id="id"), runner)


def test_a_part_that_is_no_table_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    orders().write_csv(tmp_path / "a.csv")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and nothing else")
    with LocalRunner() as runner, pytest.raises(InputError, match=r"b\.parquet"):
        PartedHistory.read(sources_of(str(tmp_path)), SchemaMapping(**COLUMNS, id="id"), runner)


def test_a_pattern_or_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", ".hidden", "_SUCCESS"):
        (tmp_path / name).touch()
    both = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert sources_of(str(tmp_path)) == sources_of(f"{tmp_path}/*.csv") == both
    assert sources_of(str(tmp_path / "a.csv")) == []


# --- data frames of Dask ---


@pytest.mark.parametrize("ids", [True, pytest.param(False, marks=pytest.mark.wide)])
def test_a_dask_frame_teaches_what_the_same_rows_of_pandas_teach(ids: bool) -> None:
    dask = pytest.importorskip("dask.dataframe")
    rows = orders(ids=ids).to_pandas()
    mapping = load_dataset(rows, mapping=SchemaMapping(**COLUMNS, id="id" if ids else "")).mapping
    frame = dask.from_pandas(rows, npartitions=4)
    frame = dask.concat([frame[frame["amount"] < 0], frame])  # the first partitions are empty
    assert learnt(study(rows, mapping=mapping)) == learnt(study(frame, mapping=mapping))


def test_a_dask_frame_without_rows_is_an_error() -> None:
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(orders().to_pandas(), npartitions=2)
    with pytest.raises(InputError, match="no part has a row with a label"):
        Learner(BulletPlaybook()).study(frame[frame["amount"] < 0])


@pytest.mark.wide
@pytest.mark.enable_socket
def test_a_dask_frame_is_learnt_from_on_the_client_in_use() -> None:
    dask, distributed = pytest.importorskip("dask.dataframe"), pytest.importorskip("distributed")
    rows = orders(ids=False).to_pandas()
    mapping = load_dataset(rows, mapping=SchemaMapping(**COLUMNS)).mapping
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        on_dask = study(dask.from_pandas(rows, npartitions=3), mapping=mapping)
        assert client.status == "running"
    assert learnt(study(rows, mapping=mapping)) == learnt(on_dask)


def test_rows_of_a_dask_frame_that_cannot_be_read_are_pointed_out() -> None:
    dask = pytest.importorskip("dask.dataframe")
    rows = orders().to_pandas()
    rows.loc[800, "time"] = "some day"
    mapping = SchemaMapping(**{**COLUMNS, "history": {**HISTORY, "label_delay": "1d"}}, id="id")
    with pytest.warns(InputWarning, match="^1 rows could not be read and were left out$"):
        Learner(BulletPlaybook()).study(dask.from_pandas(rows, npartitions=2), mapping=mapping)
