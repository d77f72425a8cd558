"""A snapshot is written by the first whole iteration and read by later ones, if nothing before it has changed."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from unit.support import assert_same, plain, python, resumed, saved

Dataset = fb.Dataset


class Counted:
    """A function that counts its calls without being another function for it."""

    def __init__(self) -> None:
        self.calls = 0

    def __reduce__(self) -> Any:
        return Counted, ()

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return {"x": x * 10, "row": np.full(3, x)}


def snapshots(path: Path) -> list[str]:
    return sorted(os.listdir(path)) if path.exists() else []


def test_the_second_iteration_reads(tmp_path: Path) -> None:
    function = Counted()
    ds = Dataset.range(100).map(function).snapshot(tmp_path / "s")
    first = list(ds)
    assert function.calls == 100
    assert_same(list(ds), first)
    assert_same(list(Dataset.range(100).map(function).snapshot(tmp_path / "s")), first)
    assert function.calls == 100
    assert len(snapshots(tmp_path / "s")) == 1


def test_rounds_of_repeat_read_too(tmp_path: Path) -> None:
    function = Counted()
    elements = list(Dataset.range(50).map(function).snapshot(tmp_path / "s").repeat(3))
    assert function.calls == 50
    assert_same(elements, elements[:50] * 3)


def test_an_iteration_that_stops_early_leaves_nothing(tmp_path: Path) -> None:
    function = Counted()
    ds = Dataset.range(100).map(function).snapshot(tmp_path / "s")
    with iter(ds.with_options(fb.Options(block_bytes=1))) as it:
        next(it)
    assert snapshots(tmp_path / "s") == []
    list(ds.take(5))
    assert snapshots(tmp_path / "s") == []
    before = function.calls
    assert len(list(ds)) == 100
    assert function.calls == before + 100
    assert len(snapshots(tmp_path / "s")) == 1


def test_what_is_received_may_be_written_into(tmp_path: Path) -> None:
    ds = Dataset.from_tensor_slices(np.zeros((100, 4))).map(lambda row: row + 1).snapshot(tmp_path / "s")
    for _ in range(3):
        for row in ds:
            assert row.tolist() == [1] * 4
            row[:] = -1


def test_another_plan_has_another_snapshot(tmp_path: Path) -> None:
    def run(factor: int, **how: Any) -> list[Any]:
        return plain(list(Dataset.range(5).map(lambda x: x * factor).snapshot(tmp_path / "s", **how)))

    assert run(2) == [0, 2, 4, 6, 8]
    assert run(3) == [0, 3, 6, 9, 12]
    assert run(2) == [0, 2, 4, 6, 8]
    assert len(snapshots(tmp_path / "s")) == 2
    assert run(2, compression="zstd") == [0, 2, 4, 6, 8]
    assert len(snapshots(tmp_path / "s")) == 3


def test_what_functions_refer_to_counts_with_its_contents(tmp_path: Path) -> None:
    table = [2]
    for expected in ([0, 2, 4], [0, 3, 6]):
        assert plain(list(Dataset.range(3).map(lambda x: x * table[0]).snapshot(tmp_path / "s"))) == expected
        table[0] += 1
    rows = np.zeros(200_000)
    for place in (0, 123_457):
        rows[place] = place
        assert list(Dataset.from_tensor_slices(rows).snapshot(tmp_path / "s")) == rows.tolist()


def test_random_steps_are_frozen(tmp_path: Path) -> None:
    ds = Dataset.range(100).shuffle(20).snapshot(tmp_path / "s")
    first = list(ds)
    assert_same(list(ds), first)
    assert_same(list(Dataset.range(100).shuffle(20).snapshot(tmp_path / "s")), first)


def test_another_process_reads_it(tmp_path: Path) -> None:
    code = """
import sys, forebay as fb
def function(x):
    print("called")
    return x * 2
print(sum(map(int, fb.Dataset.range(4).map(function).snapshot(sys.argv[1]))))
"""
    assert python(code, 300, str(tmp_path / "s")) == "called\n" * 4 + "12\n"
    assert python(code, 300, str(tmp_path / "s")) == "12\n"


def test_shards_and_a_reader(tmp_path: Path) -> None:
    def build() -> fb.Dataset[Any]:
        return Dataset.range(12).snapshot(
            tmp_path / "s",
            shard_func=lambda x: x % 3,
            reader_func=lambda shards: shards.flat_map(lambda shard: shard),
        )

    assert plain(list(build())) == list(range(12))
    assert plain(list(build())) == [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]
    state = saved(build(), 5)
    assert plain(list(resumed(build(), state))) == [4, 7, 10, 2, 5, 8, 11]


def test_a_reader_that_gives_no_dataset_is_told_of_where_it_was_given(tmp_path: Path) -> None:
    ds = Dataset.range(5).snapshot(tmp_path / "s", reader_func=lambda shards: 1)  # type: ignore[arg-type,return-value]
    assert plain(list(ds)) == list(range(5))
    with pytest.raises(
        fb.PlanError, match=r"^snapshot at test_snapshot\.py:\d+: <lambda> must return a Dataset, got 1"
    ):
        list(ds)


def test_a_stream_goes_on_as_it_began(tmp_path: Path) -> None:
    ds = Dataset.range(50).shuffle(seed=1).snapshot(tmp_path / "s", reader_func=lambda shards: shards.flat_map(_whole))
    whole = list(Dataset.range(50).shuffle(seed=1))
    while_writing = saved(ds, 20)
    assert_same(list(ds), whole)
    # What has been written since is read in another order; the stream that was saved before goes on in its own.
    assert_same(list(ds), whole[::-1])
    assert_same(list(resumed(ds, while_writing)), whole[20:])
    while_reading = saved(ds, 20)
    assert_same(list(resumed(ds, while_reading)), whole[::-1][20:])
    for folder in (tmp_path / "s").iterdir():
        folder.rename(tmp_path / "gone")
    with pytest.raises(fb.CursorError, match="is gone"):
        list(resumed(ds, while_reading))


def _whole(shard: Any) -> Any:
    return Dataset.from_tensor_slices(np.array(list(shard))[::-1])


def test_what_is_kept_does_not_depend_on_which_iteration_was_the_first_to_end(tmp_path: Path) -> None:
    def build(name: str) -> Any:
        return Dataset.range(6).shuffle(seed=1).snapshot(tmp_path / name)

    through = build("a")
    expected = [list(through) for _ in range(3)]
    resuming = build("b")
    state = saved(build("b"), 2)
    assert_same([list(resumed(resuming, state)), list(resuming), list(resuming)], [expected[0][2:], *expected[1:]])


def test_two_iterators_write_the_same_and_one_stays(tmp_path: Path) -> None:
    ds = Dataset.range(100).map(lambda x: x + 1).snapshot(tmp_path / "s").with_options(fb.Options(block_bytes=1))
    one, other = iter(ds), iter(ds)
    pairs = list(zip(one, other, strict=True))
    assert_same([a for a, _ in pairs], [b for _, b in pairs])
    assert len(snapshots(tmp_path / "s")) == 1
    assert len(list(ds)) == 100


def test_misuse(tmp_path: Path) -> None:
    with pytest.raises(fb.PlanError, match="infinite"):
        Dataset.range(5).repeat().snapshot(tmp_path / "s")
    with pytest.raises(fb.PlanError, match="must be a function"):
        Dataset.range(5).snapshot(tmp_path / "s", shard_func=3)  # type: ignore[arg-type]
    with pytest.raises(fb.PlanError, match="compression"):
        Dataset.range(5).snapshot(tmp_path / "s", compression="SNAPPY")
    with pytest.raises(fb.DataError, match="cannot be saved"):
        list(Dataset.range(5).map(lambda x: object()).snapshot(tmp_path / "s"))
    assert snapshots(tmp_path / "s") == []
