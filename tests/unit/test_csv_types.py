"""The types that ``from_csv`` takes columns for."""

from pathlib import Path

import numpy as np
import pytest

import forebay as fb


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (["1", "-7"], np.int32),
        (["1", "3000000000"], np.int64),
        (["0.1", "-2.50", "1.5e3", ".5", "0.000", "nan", "inf"], np.float32),
        (["3.14159", "16777216.0"], np.float32),
        (["16777217.0"], np.float64),
        (["0.1", "123456789.12"], np.float64),
        (["3.14159265"], np.float64),
        (["1e39"], np.float64),
        (["1e-50"], np.float64),
    ],
)
def test_numbers_keep_the_digits_that_are_written(tmp_path: Path, texts: list[str], dtype: type) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(["x", *texts]) + "\n")
    found = [row["x"] for row in fb.Dataset.from_csv(path)]
    assert {value.dtype for value in found} == {np.dtype(dtype)}
    digits = 9 if dtype is np.float32 else 17
    for value, text in zip(found, texts, strict=True):
        assert (
            np.isnan(value) if text == "nan" else float(f"{value:.{digits}g}") == pytest.approx(float(text), rel=1e-7)
        )
        assert dtype is np.float32 or value == float(text)
