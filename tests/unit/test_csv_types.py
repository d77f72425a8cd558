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


BROKEN = {
    "a field too many": "1,2,3\n",
    "a field too few": "1\n",
    "a quote that is never closed": '"1,2\n',
    "a quote inside": '1"1,2\n',
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("before", ["", "1,2\n"])
def test_types_are_those_of_the_records_that_are_read(tmp_path: Path, broken: str, before: str) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("a,b\n" + before + broken + "1.5,3\n" * 50)
    rows = list(fb.Dataset.from_csv(path, on_error="skip"))
    assert [(row["a"], row["b"]) for row in rows] == [(1.0, 2)] * bool(before) + [(1.5, 3)] * 50
    assert {(row["a"].dtype, row["b"].dtype) for row in rows} == {(np.dtype(np.float32), np.dtype(np.int32))}
    with pytest.raises(fb.FileError, match=r"broken\.csv"):
        list(fb.Dataset.from_csv(path))


def test_a_record_that_a_declared_column_refuses_says_nothing_about_others(tmp_path: Path) -> None:
    path = tmp_path / "declared.csv"
    path.write_text("a,b\n?,what\n" + "1,2\n" * 3)
    rows = list(fb.Dataset.from_csv(path, column_defaults={"a": np.int64}, on_error="skip"))
    assert rows == [{"a": 1, "b": 2}] * 3


def test_columns_that_are_not_wanted_may_be_missing_where_types_are_found_out(tmp_path: Path) -> None:
    path = tmp_path / "uneven.csv"
    path.write_text("a,b,c\n1,2,3\n1,2\n1.5,2,3,4\n")
    assert [row["a"] for row in fb.Dataset.from_csv(path, select_columns=["a"])] == [1.0, 1.0, 1.5]


def test_no_more_faults_are_passed_over_to_find_out_types_than_to_read(tmp_path: Path) -> None:
    path = tmp_path / "faults.csv"
    path.write_text("a,b\n" + "1\n" * 3 + "1,2\n")
    specs = [fb.Dataset.from_csv(path, on_error="skip", max_errors=most).element_spec for most in (2, 3, None)]
    assert [spec["a"].dtype.kind for spec in specs] == ["S", "i", "i"]
    with pytest.raises(fb.PlanError, match="max_errors"):
        fb.Dataset.from_csv(path, on_error="skip", max_errors="x")  # type: ignore[arg-type]


def test_a_header_without_end(tmp_path: Path) -> None:
    """A name takes seventy times as much memory as the comma before it."""
    path = tmp_path / "wide.csv"
    path.write_bytes(b"," * (3 << 20))
    with pytest.raises(fb.FileError, match="has no end of a header within 1,048,576 bytes"):
        fb.Dataset.from_csv(str(path))
    names = [f"column {i}" for i in range(20_000)]
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    assert list(next(iter(fb.Dataset.from_csv(str(path))))) == names
