"""Datasets that cannot be built as written fail on the line that writes them, with a PlanError that says why."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, PlanError, TensorSpec

ds = Dataset.range(10)
pairs = Dataset.zip(ds, ds)


def stream() -> Dataset[Any]:
    return Dataset.from_generator(lambda: iter([1, 2, 3]))


CASES: list[tuple[Callable[[], Any], str]] = [
    # Sizes and counts
    (lambda: ds.batch(0), r"batch\(batch_size=0\): batch_size must be at least 1"),
    (lambda: ds.batch(-1), r"batch\(batch_size=-1\): batch_size must be at least 1"),
    (lambda: ds.batch(2.0), r"batch\(batch_size=2.0\): batch_size must be a whole number"),
    (lambda: ds.batch("2"), r"batch\(batch_size='2'\)"),
    (lambda: ds.batch(None), r"batch\(batch_size=None\)"),
    (lambda: ds.batch(True), r"batch\(batch_size=True\)"),
    (lambda: ds.batch(2, 1), r"batch\(drop_remainder=1\): drop_remainder must be True or False"),
    (lambda: ds.take(-2), r"take\(count=-2\): count must be at least 0 or -1"),
    (lambda: ds.skip(-2), r"skip\(count=-2\): count must be at least 0 or -1"),
    (lambda: ds.repeat(-2), r"repeat\(count=-2\): count must be at least 0 or -1"),
    (lambda: ds.repeat(1.5), r"repeat\(count=1.5\)"),
    (lambda: ds.shuffle(0), r"shuffle\(buffer_size=0\): buffer_size must be at least 1"),
    (lambda: ds.shuffle(-5), r"shuffle\(buffer_size=-5\)"),
    (lambda: ds.shuffle(3, seed="x"), r"shuffle\(seed='x'\)"),
    (lambda: ds.shuffle(3, seed=1.5), r"shuffle\(seed=1.5\)"),
    (lambda: ds.shuffle(3, 1, "yes"), r"reshuffle_each_iteration"),
    (lambda: ds.shard(0, 0), r"shard\(num_shards=0\): num_shards must be at least 1"),
    (lambda: ds.shard(2, -1), r"shard\(index=-1\): index must be at least 0"),
    (lambda: ds.shard(2, 2), r"shard\(num_shards=2, index=2\): index must be below num_shards"),
    (lambda: ds.prefetch(-2), r"prefetch\(buffer_size=-2\)"),
    (lambda: ds.enumerate("a"), r"enumerate\(start='a'\)"),
    # Numbers
    (lambda: Dataset.range(), r"range\(\) takes one to three numbers, got 0"),
    (lambda: Dataset.range(1, 2, 3, 4), r"got 4"),
    (lambda: Dataset.range(0, 5, 0), r"range\(step=0\): step must not be zero"),
    (lambda: Dataset.range(1.5), r"range\(stop=1.5\): stop must be a whole number"),
    (lambda: Dataset.range(5, output_type=np.bool_), r"range\(output_type=bool\)"),
    (lambda: Dataset.range(5, output_type="nonsense"), r"range\(output_type='nonsense'\)"),
    (lambda: Dataset.range(2**64), r"range\("),
    (lambda: Dataset.range(-(2**63) - 1, 0), r"range\("),
    (lambda: Dataset.range(0, 10**30, 10**29), r"range\("),
    (lambda: Dataset.counter(2**64), r"counter\("),
    (lambda: Dataset.counter("a"), r"counter\(start='a'\)"),
    (lambda: Dataset.counter(dtype=str), r"counter\(dtype="),
    (lambda: Dataset.random(seed="a"), r"random\(seed='a'\)"),
    (lambda: Dataset.random(1, rerandomize_each_iteration=3), r"rerandomize_each_iteration"),
    # Data
    (
        lambda: Dataset.from_tensor_slices((np.zeros(3), {"x": np.zeros(4)})),
        r"from_tensor_slices\(\): all leaves must have the same length, got leaf \[0\]: 3, leaf \[1\]\['x'\]: 4",
    ),
    (lambda: Dataset.from_tensor_slices(5), r"from_tensor_slices\(\): the value is a scalar"),
    (lambda: Dataset.from_tensor_slices({"a": [1], "b": 2}), r"leaf \['b'\] is a scalar"),
    (lambda: Dataset.from_tensor_slices("text"), r"the value is a scalar"),
    (lambda: Dataset.from_tensor_slices(None), r"no data"),
    (lambda: Dataset.from_tensor_slices({}), r"no data"),
    (lambda: Dataset.from_tensor_slices(()), r"no data"),
    (lambda: Dataset.from_tensor_slices([1, "a"]), r"the value is str, earlier int64"),
    (lambda: Dataset.from_tensor_slices([2**70]), r"does not fit into int64"),
    (lambda: Dataset.from_tensors(2**70), r"from_tensors\(\): the value is 1180591620717411303424"),
    (lambda: Dataset.from_tensors([[1], [1, 2]]), r"from_tensors\(\): the value is a list that does not form"),
    (lambda: Dataset.from_generator(5), r"from_generator\(generator=5\): generator must be a function"),
    (lambda: Dataset.from_generator(iter, output_signature=(int,)), r"is not a TensorSpec"),
    (
        lambda: Dataset.from_generator(iter, output_types=np.int64, output_signature=TensorSpec()),
        r"output_signature or output_types, not both",
    ),
    (lambda: Dataset.from_generator(iter, output_types=(int, int), output_shapes=((),)), r"from_generator\("),
    (lambda: Dataset.from_generator(iter, output_types={"a": int}, output_shapes={}), r"from_generator\("),
    (lambda: Dataset.from_generator(iter, args=5), r"from_generator\("),
    (lambda: TensorSpec(5), r"TensorSpec\(shape=5\)"),
    (lambda: TensorSpec((-1,)), r"sizes cannot be negative"),
    (lambda: TensorSpec(("a",)), r"TensorSpec\(shape=\('a',\)\)"),
    (lambda: TensorSpec((), "nonsense"), r"TensorSpec\(dtype='nonsense'\)"),
    # Functions
    (lambda: ds.map(5), r"map\(map_func=5\): map_func must be a function"),
    (lambda: ds.filter("f"), r"filter\(predicate='f'\)"),
    (lambda: ds.take_while(None), r"take_while\(predicate=None\)"),
    (lambda: ds.flat_map(1), r"flat_map\(map_func=1\)"),
    (lambda: ds.reduce(0, 1), r"reduce\(reduce_func=1\)"),
    (lambda: ds.apply(1), r"apply\(transformation_func=1\)"),
    (lambda: ds.apply(lambda d: 5), r"must return a Dataset, got 5"),
    (lambda: ds.map(abs, batched=1), r"map\(batched=1\): batched must be True or False"),
    (lambda: ds.map(abs, rng="x"), r"map\(rng='x'\)"),
    (lambda: ds.map(abs, seed="x"), r"map\(seed='x'\)"),
    (lambda: ds.map(lambda x, g: x, rng=True, batched=True), r"batched=True, rng=True"),
    (lambda: ds.filter(bool, batched=2), r"filter\(batched=2\)"),
    (lambda: ds.map(lambda a, b: a), r"map\(<lambda>\): it is called with 1 argument, but takes \(a, b\)"),
    (lambda: pairs.map(lambda a: a), r"map\(<lambda>\): it is called with 2 arguments, but takes \(a\)"),
    (lambda: pairs.filter(lambda a: True), r"filter\(<lambda>\): it is called with 2 arguments"),
    (lambda: ds.map(lambda x: x, rng=True), r"called with 2 arguments"),
    # Datasets together
    (lambda: Dataset.zip(), r"zip\(\): give datasets"),
    (lambda: Dataset.zip(ds, 5), r"zip\(\): 5 is not a Dataset"),
    (lambda: Dataset.zip({}), r"zip\(\): there are no datasets"),
    (lambda: Dataset.zip({"a": [ds]}), r"is not a Dataset"),
    (lambda: ds.concatenate([1]), r"concatenate\(\[1\]\): the argument must be a Dataset"),
    (lambda: ds.concatenate(pairs), r"concatenate\(\): the datasets differ in structure or dtype"),
    (lambda: ds.concatenate(Dataset.range(3, output_type=np.int32)), r"int64.*int32"),
    (lambda: ds.unbatch(), r"unbatch\(\): every leaf must have an axis"),
    (
        lambda: Dataset.from_tensor_slices((np.zeros((3, 2)), np.zeros((3, 3)))).unbatch(),
        r"unbatch\(\): all leaves must have the same first size",
    ),
    (lambda: stream().shuffle(), r"shuffle\(\) without buffer_size needs rows that can be read by number, and from_"),
    (lambda: Dataset.counter().shuffle(), r"shuffle\(\) without buffer_size"),
    # Options
    (lambda: ds.with_options({"optimize": True}), r"options must be a forebay.Options"),
    (lambda: fb.Options(optimize=1), r"Options.optimize must be True, False or None, got 1"),
    (lambda: fb.Options(block_bytes=0), r"Options.block_bytes must be a whole number of at least 1, got 0"),
    (lambda: fb.Options(block_bytes=1.5), r"got 1.5"),
    (lambda: fb.Options(block_bytes=True), r"got True"),
]


@pytest.mark.parametrize(("build", "message"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_the_line_that_is_wrong_raises(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        build()


def test_options_spoilt_after_they_were_made_are_refused_too() -> None:
    options = fb.Options()
    options.block_bytes = -1
    with pytest.raises(PlanError, match="block_bytes"):
        ds.with_options(options)


def test_a_plan_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="batch_size"):
        ds.batch(0)


@pytest.mark.parametrize(
    "build",
    [
        lambda n: ds.batch(n(3)),
        lambda n: ds.take(n(3)),
        lambda n: ds.skip(n(3)).repeat(n(2)),
        lambda n: ds.shard(n(3), n(1)),
        lambda n: ds.enumerate(n(3)),
        lambda n: ds.shuffle(n(3), seed=n(1)),
        lambda n: ds.shuffle(seed=n(1)),
        lambda n: ds.prefetch(n(2)),
        lambda n: Dataset.range(n(1), n(9), n(2)),
        lambda n: Dataset.counter(n(1), n(2)).take(n(5)),
        lambda n: Dataset.random(n(5)).take(n(5)),
        lambda n: ds.map(lambda x, rng: x + rng.integers(9), rng=True, seed=n(5)),
    ],
)
@pytest.mark.parametrize("optimize", [True, False])
def test_numpy_integers_are_as_good_as_pythons(build: Callable[[type[Any]], Dataset[Any]], optimize: bool) -> None:
    ours, theirs = (build(kind).with_options(fb.Options(optimize=optimize)) for kind in (int, np.int64))
    expected = list(ours)
    it = iter(theirs)
    first = next(it)
    state = json.loads(json.dumps(it.state_dict()))
    assert [np.asarray(x).tolist() for x in [first, *it]] == [np.asarray(x).tolist() for x in expected]
    # The two are the same dataset, so a state of one is a state of the other.
    resumed = iter(ours)
    resumed.load_state_dict(state)
    assert len(list(resumed)) == len(expected) - 1
    assert repr(ours) == repr(theirs)
