"""That odd versions of a set are noticed, and its ordinary rows are not."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app

pytestmark = pytest.mark.wide


def test_every_odd_version_is_noticed_and_no_ordinary_row_is(tmp_path: Path) -> None:
    chance = random.Random(1)
    lines = ["id,time,amount,channel,label"]
    for n in range(600):
        amount, channel = chance.randint(10, 900), chance.choice(("web", "app", "shop"))
        fraud = int(amount > 700 and channel == "app")
        lines.append(f"t{n},2025-01-{1 + n // 40:02d}T{n % 24:02d}:00:00Z,{amount},{channel},{fraud}")
    (tmp_path / "payments").mkdir()
    (tmp_path / "payments" / "data.csv").write_text("\n".join(lines))
    ran = CliRunner().invoke(app, ["odd-inputs", str(tmp_path), "--train", "400", "--test", "100", "--json"])
    (found,) = json.loads(ran.stdout)
    assert found["ordinary_unfamiliar"] == 0
    assert found["usual"]["by_name"] == 0
    assert all(each["by_name"] or each["unfamiliar"] or each["by_doctor"] for each in found["odd"])
