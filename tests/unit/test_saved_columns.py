"""Every kind of column goes to disk and back, whatever the compression and wherever blocks are cut."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import forebay as fb
from forebay.block import flatten
from forebay.storage import writer
from unit.support import assert_same

Dataset = fb.Dataset


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Sample:
    image: Any
    label: Any


def rows(values: Any) -> Callable[[], fb.Dataset[Any]]:
    return lambda: Dataset.from_tensor_slices(values)


def made(function: Callable[[Any], Any], count: int = 40) -> Callable[[], fb.Dataset[Any]]:
    return lambda: Dataset.range(count).map(function)


def dates(unit: str, kind: str = "M") -> np.ndarray:
    values = np.arange(-20, 20).astype(f"{kind}8[{unit}]")
    values[7] = "NaT"
    return values


UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "as"]
DTYPES = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "e", "f", "d", "F", "D"]
TEXTS = ["", "a", "naïve", "日本語 🎏", "x" * 3000, "nul\0l", "\0"]

KINDS: dict[str, Callable[[], fb.Dataset[Any]]] = {
    **{f"scalar {char}": rows((np.arange(40) % 7).astype(char)) for char in DTYPES},
    **{f"tensor {char}": rows((np.arange(240) % 5).astype(char).reshape(40, 2, 3)) for char in DTYPES},
    **{
        f"datetime {unit}": rows(dates(unit))
        for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "as"]
    },
    **{f"timedelta {unit}": rows(dates(unit, "m")) for unit in ["Y", "W", "D", "h", "m", "s", "ms", "us", "ns", "fs"]},
    "datetime of 25 s": rows(dates("25s")),
    "datetime tensors": rows(dates("ms").reshape(10, 4)),
    "datetime lists": made(lambda x: dates("D")[: int(x) % 5 + 4]),
    "nan": rows(np.array([0.0, np.nan, np.inf, -np.inf, -0.0, 5e-324])),
    "big endian": rows(np.arange(40, dtype=">f4").reshape(20, 2)),
    "fortran": rows(np.asfortranarray(np.arange(48.0).reshape(12, 4))),
    "strided": rows(np.arange(96).reshape(12, 8)[::2, ::-1]),
    "no columns in a row": rows(np.zeros((5, 0), np.float32)),
    "no rows": rows(np.zeros((0, 3), np.float32)),
    "axes of no length": made(lambda x: np.zeros((int(x) % 3, 0, 2), np.int16)),
    "lists": made(lambda x: np.arange(x) * 2),
    "lists of one length": made(lambda x: [1, 2, 3]),
    "lists of bool": made(lambda x: np.arange(x) % 3 == 0),
    "lists of complex": made(lambda x: np.arange(x) * 1j),
    "lists that are empty": made(lambda x: np.zeros(0)),
    "ragged matrices": made(lambda x: np.full((int(x) % 4, int(x) % 3 + 1), x, np.float32)),
    "ragged of bool": made(lambda x: np.full((int(x) % 4, 2), x % 2 == 0)),
    "ragged of complex": made(lambda x: np.full((int(x) % 4, 2), x * 1j, np.complex64)),
    "ranks differ": made(lambda x: np.full((2,) * (int(x) % 4), x)),
    "ranks of complex differ": made(lambda x: np.full((2,) * (int(x) % 4), x * 1j)),
    "text": rows(TEXTS * 3),
    "bytes": rows([text.encode() for text in TEXTS] + [b"\xff\xfe\0"]),
    "empty text": rows([""] * 9),
    "text of one shape": rows(np.array(TEXTS[:6] * 4, object).reshape(6, 2, 2)),
    "bytes of one shape": rows(np.array([b"a", b"bc"] * 12, object).reshape(6, 4)),
    "text of many shapes": made(lambda x: np.array([f"{i}" for i in range(int(x) % 5)] * 2, object).reshape(2, -1)),
    "text lists": made(lambda x: ["t"] * (int(x) % 4 + 1)),
    "text of many ranks": made(lambda x: "s" if x % 2 else np.array(["t", "u"], object)),
    "none": rows({"x": np.arange(9), "n": None}),
    "numbers or none": made(lambda x: None if x % 3 == 1 else x),
    "bool or none": made(lambda x: None if x % 3 == 1 else x % 2 == 0),
    "none first": made(lambda x: None if x < 20 else float(x)),
    "arrays or none": made(lambda x: None if x % 5 == 0 else np.full((2, 2), x)),
    "lists or none": made(lambda x: None if x % 5 == 0 else np.arange(x)),
    "complex or none": made(lambda x: None if x % 5 == 0 else x * 1j),
    "dates or none": made(lambda x: None if x % 5 == 0 else dates("us")[int(x)]),
    "text or none": made(lambda x: None if x % 2 else f"row {x}"),
    "text lists or none": made(lambda x: None if x % 2 else ["a"] * int(x % 7 + 1)),
    "batches": lambda: Dataset.range(40).map(lambda x: {"x": x, "s": str(x)}).batch(7),
    "dict": rows({"b": np.arange(9), "a": np.arange(9.0)}),
    "dict of odd keys": made(lambda x: {1: x, None: x, 2.5: x, True and "t": x}),
    "names that meet": made(lambda x: {"a.b": x, "a": {"b": -x}, "a.b_2": 0}),
    "named tuple": rows(Point(np.arange(9), Point(np.zeros((9, 2)), ["s"] * 9))),
    "dataclass": rows(Sample(np.zeros((9, 2)), {"deep": (np.arange(9),)})),
}


@pytest.mark.parametrize("compression", [None, "lz4"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_comes_back_as_it_was(
    kind: str, compression: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = KINDS[kind]()
    expected = list(dataset)
    # A batch for every row, for every few rows, and one for all.
    for block_bytes, batch_bytes in ((1, 1), (1 << 20, 300), (1 << 20, 1 << 20)):
        monkeypatch.setattr(writer, "BATCH_BYTES", batch_bytes)
        path = tmp_path / str(batch_bytes)
        dataset.with_options(fb.Options(block_bytes=block_bytes)).save(path, compression)
        loaded = Dataset.load(path)
        assert_same(list(loaded), expected)
        assert len(loaded) == len(expected)
        assert_same(list(loaded.with_options(fb.Options(block_bytes=1))), expected)
        # In no order of theirs: read by number.
        order = [len(expected) - 1 - i for i in range(len(expected))]
        backwards = [next(iter(loaded.skip(i).take(1))) for i in order]
        assert_same(backwards, expected[::-1])
        shuffled = list(loaded.enumerate().shuffle(seed=3))
        assert_same([element for _, element in sorted(shuffled, key=lambda pair: pair[0])], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_what_elements_are_like_is_known_without_reading(kind: str, tmp_path: Path) -> None:
    dataset = KINDS[kind]()
    dataset.save(tmp_path / "d")
    for file in (tmp_path / "d").glob("*.arrow"):
        # As long as it was, so that only reading it shows that nothing is left of it.
        file.write_bytes(b"\0" * file.stat().st_size)
    loaded = Dataset.load(tmp_path / "d")
    assert len(loaded) == len(list(dataset))
    spec = loaded.element_spec
    for element in dataset:
        leaves, structure = flatten(element)
        specs, of_specs = flatten(spec, (fb.TensorSpec,))
        assert of_specs == structure
        for leaf, leaf_spec in zip(leaves, specs):
            if leaf_spec.dtype != object and not isinstance(leaf, (str, bytes)) and leaf.dtype != object:
                assert leaf_spec.accepts(leaf.shape, leaf.dtype)


def test_a_leaf_that_turns_out_to_differ_late_is_written_again(tmp_path: Path) -> None:
    big = np.zeros(1 << 16)

    def element(x: Any) -> Any:
        late = x >= 30
        return {
            "grows": big[: int(x) + 1] if late else big[:5],
            "none": None if late else x,
            "rank": np.zeros((2, 2)) if x == 39 else np.zeros(3),
            "big": big,
        }

    dataset = Dataset.range(40).map(element)
    dataset.save(tmp_path / "d")
    loaded = Dataset.load(tmp_path / "d")
    assert_same(list(loaded), list(dataset))
    assert loaded.element_spec["grows"] == fb.TensorSpec((None,), np.float64)
    assert loaded.element_spec["rank"] == fb.TensorSpec(None, np.float64)
    assert loaded.element_spec["big"] == fb.TensorSpec((1 << 16,), np.float64)


def test_rows_are_the_users_own(tmp_path: Path) -> None:
    Dataset.from_tensor_slices(np.zeros((10, 3))).save(tmp_path / "d")
    for compression in (None, "zstd"):
        Dataset.from_tensor_slices((np.zeros((10, 3)), np.zeros((10, 2), bool))).save(tmp_path / "d", compression)
        loaded = Dataset.load(tmp_path / "d")
        for _ in range(2):
            for x, y in loaded:
                assert not x.any()
                assert not y.any()
                x += 1
                y[:] = True
