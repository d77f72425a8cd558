"""``forebay.formats.convert`` of CSV and lines: what is missing stays missing, and text stays text."""

import os
from pathlib import Path

import numpy as np
import pytest

from forebay.formats import convert
from unit.support import assert_same
from unit.test_convert import TARGETS, read


@pytest.mark.parametrize("target", TARGETS)
def test_missing_values_and_text_of_csv(target: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("i,f,s\n1,0.5,a\n,,ü\n3,1.5,\n")
    done = convert(tmp_path / "a.csv", tmp_path / target)
    if TARGETS[target] in ("tfrecord", "webdataset"):
        assert done.notes == ["i: empty fields are written as 0, the format has no other way"]
        return
    assert done.notes == []
    found = read(tmp_path / target)
    assert [row["i"] for row in found] == [1, None, 3]
    assert [row["s"] for row in found] == ["a", "ü", ""]
    assert np.isnan(found[1]["f"])
    assert_same(found[0], {"i": np.int32(1), "f": np.float32(0.5), "s": "a"})


def test_text_that_is_none_after_all(tmp_path: Path) -> None:
    """What says so may be anywhere; nothing is left then of what had been written as text."""
    lines = b"".join(b"%d,name %d\n" % (i, i) for i in range(20_000))
    (tmp_path / "a.csv").write_bytes(b"i,s\n" + lines + b"7,\xff\n8,\xc3\n9,\xbc\n")
    done = convert(tmp_path / "a.csv", tmp_path / "out.parquet")
    assert done.notes == ["s: not UTF-8 everywhere, so that all text is written as bytes"]
    assert [row["s"] for row in read(tmp_path / "out.parquet")][-4:] == [b"name 19999", b"\xff", b"\xc3", b"\xbc"]
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "out.parquet"]


def test_a_character_in_two_fields_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"line\n" * 20_000 + b"\xc3\n\xbc\n")
    done = convert(tmp_path / "a.txt", tmp_path / "out.parquet")
    assert done.notes == ["value: not UTF-8 everywhere, so that all text is written as bytes"]
    assert done.rows == 20_002
