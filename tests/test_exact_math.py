"""Exponentials, logarithms and distances: right, and the same bits whichever paths of the processor are on."""

from __future__ import annotations

import ast
import math
import os
import platform
import subprocess
import sys
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.support import exact_math
from acefraud.support.great_circle import great_circle_km

ARM = platform.machine() in ("aarch64", "arm64")
SLOW_PATHS = {
    "older processor": {
        "NPY_DISABLE_CPU_FEATURES": "ASIMDHP ASIMDDP" if ARM else "X86_V4 X86_V3",
        "OPENBLAS_CORETYPE": "ARMV8" if ARM else "Nehalem",
    },
    "older C library": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"},  # does nothing on ARM
}
DIGEST = """
import hashlib
import numpy as np
from acefraud.support import exact_math
from acefraud.support.great_circle import great_circle_km
numbers = np.random.default_rng(0).uniform(-40, 40, 20_000)
powers = exact_math.exp_of(numbers)
distances = np.array([great_circle_km((a, b), (c, d)) for a, b, c, d in numbers.reshape(-1, 4).tolist()])
parts = [distances, powers, exact_math.log_of(powers), exact_math.sigmoid_of(numbers), exact_math.softplus_of(numbers)]
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


ON_ARM_AND_X86 = "d95a257021fd15cade1f569dcc1717815778700f8be3c12e13ecae000109bc21"


@pytest.fixture
def numbers() -> list[float]:
    wide = np.random.default_rng(1).uniform(-30, 30, 500)
    return [*wide.tolist(), *(wide * 1e-3).tolist(), *(wide * 1e-9).tolist(), 0.0, -0.0]


def test_powers_are_right_to_the_last_bits(numbers: list[float]) -> None:
    with localcontext(prec=40):
        errors = [abs(Decimal(exact_math.exp(x)) / Decimal(x).exp() - 1) for x in numbers]
    assert max(errors) < 2.5e-16


def test_logarithms_are_right_to_the_last_bits(numbers: list[float]) -> None:
    powers = [power for power in np.exp(numbers).tolist() if power != 1]
    with localcontext(prec=40):
        errors = [abs(Decimal(exact_math.log(power)) / Decimal(power).ln() - 1) for power in powers]
    assert max(errors) < 5e-16


def test_numbers_and_arrays_give_the_same_bits(numbers: list[float]) -> None:
    powers = exact_math.exp_of(numbers)
    assert powers.tolist() == [exact_math.exp(x) for x in numbers]
    assert exact_math.log_of(powers).tolist() == [exact_math.log(x) for x in powers.tolist()]
    assert exact_math.sigmoid_of(numbers).tolist() == [exact_math.sigmoid(x) for x in numbers]


def test_long_arrays_give_the_same_bits_as_short_ones() -> None:
    numbers = np.random.default_rng(2).normal(0, 5, (3, 10_000))
    assert (exact_math.sigmoid_of(numbers)[1, 5:9] == exact_math.sigmoid_of(numbers[1, 5:9])).all()


def test_what_is_too_large_stays_finite() -> None:
    assert 0 < exact_math.exp(-1e9) < 1e-300
    assert exact_math.sigmoid_of([1e9, -1e9]).tolist() == [1.0, exact_math.exp(-1e9)]
    assert exact_math.softplus_of([1e9])[0] == 1e9


@given(
    st.floats(-90, 90), st.floats(-180, 180), st.floats(-90, 90), st.floats(-180, 180), st.sampled_from([1, 1e-3, 0])
)
def test_distances_are_right(a: float, b: float, c: float, d: float, part: float) -> None:
    """Of places anywhere, of neighbours, of a place and itself, and nearly of antipodes."""
    for one, other in (((a, b), (a + part * (c - a), b + part * (d - b))), ((a, b), (-a - part * c / 2, b + 180))):
        phi, psi, turn = math.radians(one[0]), math.radians(other[0]), math.radians(other[1] - one[1])
        across = math.cos(psi) * math.sin(turn)
        along = math.cos(phi) * math.sin(psi) - math.sin(phi) * math.cos(psi) * math.cos(turn)
        onward = math.sin(phi) * math.sin(psi) + math.cos(phi) * math.cos(psi) * math.cos(turn)
        expected = 6371.0088 * math.atan2(math.hypot(across, along), onward)
        assert great_circle_km(one, other) == pytest.approx(expected, rel=1e-9, abs=1e-8)
        assert great_circle_km(one, other) == great_circle_km(other, one)


@pytest.mark.parametrize("paths", [{}, *SLOW_PATHS.values()], ids=["this processor", *SLOW_PATHS])
def test_all_processors_give_the_same_bits(paths: dict[str, str]) -> None:
    command = [sys.executable, "-W", "ignore", "-c", DIGEST]
    done = subprocess.run(command, env=os.environ | paths, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ON_ARM_AND_X86


def test_no_power_is_left_to_the_c_library() -> None:
    """Its `pow` rounds squares of numbers as each processor likes; products and `np.square` are exact."""
    found = {
        f"{path.name}: {ast.unparse(node)}"
        for path in Path(exact_math.__file__).parents[1].rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not isinstance(node.left, ast.Constant)
    }
    assert found == {"exact_math.py: Decimal(2) ** (Decimal(part) / _TABLE_SIZE)"}
