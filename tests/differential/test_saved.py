"""save and load against tf.data's own: the same elements in the same order, the same meaning of shards."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from differential.sides import tensorflow

SHARDS: dict[str, Any] = {
    "one": lambda x: x * 0,
    "two": lambda x: x % 2,
    "uneven": lambda x: (x % 7) // 4,
    "gaps": lambda x: x % 3 * 5,
    "late": lambda x: x // 20,
    "many": lambda x: x % 23,
}


def values(dataset: Any) -> list[Any]:
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


def test_elements_come_back_in_order(tmp_path: Path) -> None:
    tf = tensorflow()
    data = {"x": np.arange(60).reshape(20, 3), "s": [b"%d" % i for i in range(20)]}
    found = []
    for name, kind in (("tf", tf.data.Dataset), ("fb", fb.Dataset)):
        kind.from_tensor_slices(data).save(str(tmp_path / name))
        loaded = kind.load(str(tmp_path / name))
        assert int(loaded.cardinality()) == 20
        found.append([(row["x"].tolist(), row["s"]) for row in loaded.as_numpy_iterator()])
    assert found[0] == found[1]


@pytest.mark.parametrize("shards", SHARDS)
def test_shards_hold_the_same_and_come_in_the_same_order(shards: str, tmp_path: Path) -> None:
    tf = tensorflow()
    function = SHARDS[shards]
    no_graph = tf.autograph.experimental.do_not_convert
    tf.data.Dataset.range(60).save(str(tmp_path / "tf"), shard_func=no_graph(lambda x: function(x)))
    fb.Dataset.range(60).save(tmp_path / "fb", shard_func=function)

    def in_row(datasets: Any) -> Any:
        return datasets.flat_map(lambda shard: shard)

    def in_turns(datasets: Any) -> Any:
        return datasets.interleave(lambda shard: shard, cycle_length=16)

    for reader in (in_row, in_turns):
        theirs = tf.data.Dataset.load(str(tmp_path / "tf"), reader_func=no_graph(reader))
        ours = fb.Dataset.load(tmp_path / "fb", reader_func=reader)
        assert values(ours) == values(theirs)
    # tf.data's own order has as many turns as there are processors; ours always sixteen.
    assert values(fb.Dataset.load(tmp_path / "fb")) == values(ours)
    default = values(tf.data.Dataset.load(str(tmp_path / "tf")))
    assert sorted(default) == list(range(60))


def test_saving_again_replaces_in_both(tmp_path: Path) -> None:
    for name, kind in (("tf", tensorflow().data.Dataset), ("fb", fb.Dataset)):
        kind.range(10).save(str(tmp_path / name))
        kind.range(4).save(str(tmp_path / name))
        assert values(kind.load(str(tmp_path / name))) == [0, 1, 2, 3]


def test_snapshot_runs_what_is_before_it_once(tmp_path: Path) -> None:
    tf = tensorflow()
    for name, kind, spec in (
        ("tf", tf.data.Dataset, tf.TensorSpec((), tf.int64)),
        ("fb", fb.Dataset, fb.TensorSpec((), np.int64)),
    ):
        calls = []

        def numbers(calls: list[int] = calls) -> Any:
            calls.append(1)
            yield from range(5)

        dataset = kind.from_generator(numbers, output_signature=spec).snapshot(str(tmp_path / name))
        assert values(dataset.take(2)) == [0, 1]
        before = len(calls)
        assert values(dataset) == values(dataset) == [0, 1, 2, 3, 4]
        assert len(calls) == before + 1, name
