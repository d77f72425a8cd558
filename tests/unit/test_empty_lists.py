"""Empty lists, which have no dtype: beside rows of any, and the same whichever rows they are cut together with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from unit.support import assert_same

EMPTY = np.empty(0)
LINES = ["", "a b", "", "", "c", "d e f", ""]
IDS = {word: number for number, word in enumerate("abcdef")}


def ids(line: str) -> list[int]:
    return [IDS[word] for word in line.split()]


def words(line: str) -> list[str]:
    return line.split()


def lines(count: int = 40) -> Dataset[Any]:
    return Dataset.from_tensor_slices((LINES * count)[:count])


def expected(function: Callable[[str], list[Any]], count: int = 40) -> list[Any]:
    made = [function(line) for line in (LINES * count)[:count]]
    return [np.array(row, object if isinstance(row[0], str) else np.int64) if row else EMPTY for row in made]


@pytest.mark.parametrize("function", [ids, words])
@pytest.mark.parametrize("executor", [None, "thread", "process"])
def test_an_empty_list_stands_beside_rows_of_any_dtype(function: Any, executor: str | None) -> None:
    how: dict[str, Any] = {} if executor is None else {"num_parallel_calls": 2, "executor": executor}
    assert_same(list(lines().map(function, **how)), expected(function))


@pytest.mark.parametrize("block_bytes", [1, 64, 1 << 20])
def test_it_is_the_same_however_rows_are_cut_into_blocks(block_bytes: int) -> None:
    made = lines().map(ids).with_options(fb.Options(block_bytes=block_bytes))
    assert_same(list(made), expected(ids))
    assert_same(list(made.skip(2).take(1)), [EMPTY])
    assert_same(sorted(map(len, made.shuffle(seed=1))), sorted(map(len, expected(ids))))


def test_it_is_the_same_after_a_resume() -> None:
    made = lines().map(ids)
    for position in range(8):
        first, second = iter(made), iter(made)
        for _ in range(position):
            next(first)
        second.load_state_dict(first.state_dict())
        assert_same(list(second), expected(ids)[position:])


def test_the_next_function_sees_the_same_fused_or_not() -> None:
    made = lines().map(ids).map(lambda row: row[:2]).map(lambda row: (row, str(row.dtype)))
    rows = [row[:2] for row in expected(ids)]
    for rules in (True, False):
        found = list(made.with_options(fb.Options(optimize=rules)))
        assert_same([row for row, _ in found], rows)
        assert [name for _, name in found] == [row.dtype.name for row in rows]


def test_slices_take_the_dtype_of_the_whole_column() -> None:
    assert_same(list(Dataset.from_tensor_slices([[], [1, 2]])), [np.empty(0, np.int64), np.array([1, 2])])
    assert_same(list(Dataset.from_tensor_slices([["a"], []])), [np.array(["a"], object), np.empty(0, object)])
    assert Dataset.from_tensor_slices([]).element_spec == fb.TensorSpec((), np.float64)
    assert Dataset.from_tensor_slices([[], []]).element_spec == fb.TensorSpec((0,), np.float64)
    assert Dataset.from_tensor_slices([[], [1, 2]]).element_spec == fb.TensorSpec((None,), np.int64)


def test_a_generator_may_give_empty_lists_first() -> None:
    rows: list[Any] = [[], [], [1], [], [[], []], [2, 3]]
    made = Dataset.from_generator(lambda: iter(rows))
    assert_same(list(made), [EMPTY, EMPTY, np.array([1]), EMPTY, np.empty((2, 0)), np.array([2, 3])])


def test_rows_that_become_one_thing_take_the_dtype_of_those_that_have_one() -> None:
    tokens = lines().map(ids)
    packed = list(tokens.apply(fb.text.pack(4, end=9)))
    flat = [number for row in expected(ids) for number in (*row.astype(int), 9)]
    assert_same(packed, [np.array(flat[i : i + 4]) for i in range(0, len(flat) - 3, 4)])
    fitted = list(tokens.apply(fb.text.pack(4, end=9, fit=True, segments=True, window=2)))
    assert {row["tokens"].dtype.name for row in fitted} == {"int64"}
    rows: list[Any] = [[], np.empty(0, np.int32), [], []]
    batches = list(Dataset.from_generator(lambda: iter(rows)).batch(2))
    assert_same(batches, [np.empty((2, 0), np.int32), np.empty((2, 0))])


def test_saved_columns_have_one_dtype(tmp_path: Path) -> None:
    lines().map(ids).save(str(tmp_path / "saved"))
    back = list(Dataset.load(str(tmp_path / "saved")))
    assert_same(back, [row.astype(np.int64) for row in expected(ids)])


@pytest.mark.parametrize("memory", [None, "64KiB"])
def test_they_go_through_shuffle_buffers(memory: str | None, tmp_path: Path) -> None:
    options = (
        fb.Options(spill_dir=str(tmp_path)) if memory is None else fb.Options(memory=memory, spill_dir=str(tmp_path))
    )
    made = Dataset.from_generator(lambda: (ids(line) for line in LINES * 600)).shuffle(2000, seed=1)
    found = list(made.with_options(options))
    assert len(found) == 4200
    assert {(len(row) > 0, row.dtype.name) for row in found} == {(True, "int64"), (False, "float64")}


def test_what_holds_values_is_still_held_to_one_dtype() -> None:
    rows: list[Any] = [[], [1], [], [1.5]]
    with pytest.raises(fb.DataError, match="element 3: the value is float64, earlier int64"):
        list(Dataset.from_generator(lambda: iter(rows)))
    with pytest.raises(fb.DataError, match="element 3: the value is float64, earlier int64"):
        list(Dataset.range(4).map(lambda i: rows[i]).map(lambda row: row))
    with pytest.raises(fb.DataError, match="element 1: the value is int64, earlier float64"):
        list(Dataset.range(2).map(lambda i: [1.5, 1][i]).map(lambda row: row * 1.0))
