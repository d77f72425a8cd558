"""Datasets that cannot be built as written fail on the line that writes them, with a PlanError that says why."""

import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import forebay as fb
from forebay import Dataset, PlanError, TensorSpec

ds = Dataset.range(10)
pairs = Dataset.zip(ds, ds)


@dataclass
class Point:
    x: int
    y: int


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
    (lambda: ds.shard(2**63, 1), r"shard\(num_shards=9223372036854775808\): num_shards must be at most"),
    (lambda: ds.enumerate(2**63), r"enumerate\(start=9223372036854775808\): start must be at most"),
    (lambda: ds.interleave(lambda x: ds, 2**63), r"interleave\(cycle_length=9223372036854775808\)"),
    (lambda: ds.shuffle(np.array([])), r"shuffle\(buffer_size=array"),
    (lambda: ds.map(abs, 2, executor=np.array([])), r"map\(executor=array"),
    (lambda: ds.map(abs, executor="process"), r"map\(executor='process'\): .* without num_parallel_calls; give it"),
    (lambda: ds.filter(bool, executor="thread"), r"filter\(executor='thread'\): .* without num_parallel_calls"),
    (lambda: ds.interleave(lambda x: ds, executor="thread"), r"interleave\(executor='thread'\): nothing would run"),
    (lambda: ds.flat_map(lambda x: ds, num_parallel_calls=2, executor=np.array([])), r"flat_map\(executor=array"),
    (
        lambda: ds.cache("x", compression=["zstd"]),
        r"cache\(compression=\['zstd'\]\): compression must be \"zstd\", \"lz4\"",
    ),
    (lambda: ds.cache("x", compression=np.array(["zstd"])), r"cache\(compression=array.*: compression must be"),
    (lambda: ds.save("x", np.array(["zstd", "lz4"])), r"save\(compression=array.*: compression must be None, 'zstd'"),
    (lambda: ds.snapshot("x", np.array(["zstd", "lz4"])), r"snapshot\(compression=array.*: compression must be None"),
    (lambda: ds.snapshot(__file__), r"snapshot\(path='.*'\): there is a file of that name; it must be a folder"),
    (lambda: ds.memory_report(5), r"memory_report\(scales=5\): scales must be a list of whole numbers"),
    (lambda: ds.memory_report(None), r"memory_report\(scales=None\): scales must be a list of whole numbers"),
    (lambda: ds.memory_report([]), r"memory_report\(scales=\[\]\): scales must be a list of whole numbers"),
    (lambda: ds.memory_report([1, None]), r"memory_report\(scales\[1\]=None\): scales\[1\] must be a whole number"),
    (lambda: ds.memory_report([0]), r"memory_report\(scales\[0\]=0\): scales\[0\] must be at least 1"),
    (lambda: Dataset.range(2**63), r"do not fit into int64"),
    (lambda: Dataset.from_tensor_slices(np.array(3)), r"from_tensor_slices\(\)"),
    (lambda: Dataset.from_tensor_slices(Point), r"from_tensor_slices\("),
    (lambda: Dataset.from_images(3), r"from_images\(3\): the folder must be a path"),
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
    # Data that is not in columns
    (lambda: Dataset.from_tensor_slices([{"a": 1}, {"a": 2}]), r"the value is a list of dicts: pass a dict of columns"),
    (lambda: Dataset.from_tensor_slices({"x": [Point(1, 2)]}), r"leaf \['x'\] is a list of Point objects: use"),
    (lambda: Dataset.from_tensor_slices([("a", 1), ("b", 2)]), r"mix text and numbers, as \('a', 1\) in row 0: pass"),
    (lambda: Dataset.from_tensor_slices([["a", "b"], ["c", 1]]), r"mix text and numbers, as \['c', 1\] in row 1"),
    (lambda: Dataset.from_tensor_slices(iter([1])), r"is an iterator, which gives its items only once: pass list"),
    (lambda: Dataset.from_tensor_slices(x for x in [1, 2]), r"is an iterator.* or use from_generator"),
    (lambda: Dataset.from_tensor_slices({1, 2}), r"is a set, whose items have no order: pass sorted"),
    (lambda: Dataset.from_tensor_slices({"x": ds}), r"leaf \['x'\] is a Dataset already"),
    (
        lambda: Dataset.from_tensor_slices(pd.DataFrame({"n": [1, 2, 3], "city": ["a", "b", None]}).fillna(np.nan)),
        r"leaf \['city'\] is float64, earlier str \(row 2 is nan, a missing value: fill it first, e.g. with .*fillna",
    ),
    (
        lambda: Dataset.from_tensor_slices({"city": [float("nan"), "b"]}),
        r"leaf \['city'\] is str, earlier float64 \(row 0 is nan, a missing value",
    ),
    (lambda: Dataset.from_tensor_slices([1, 2, "a"]), r"the value is str, earlier int64 \(row 2\)"),
    # Names
    (
        lambda: Dataset.from_tensor_slices(np.zeros(3), np.ones(3)),
        r"from_tensor_slices\(name=array\(\[1., 1., 1.\]\)\): name must be a str; .* pass a tuple: from_",
    ),
    (lambda: Dataset.from_tensors(1, 2), r"from_tensors\(name=2\): name must be a str; .* from_tensors\(\(x, y\)\)"),
    (lambda: ds.concatenate(ds, ds), r"concatenate\(name=<Dataset .*: name must be a str; .* once for each"),
    (lambda: ds.take(3, 4), r"take\(name=4\): name must be a str$"),
    (lambda: ds.filter(bool, True), r"filter\(name=True\)"),
    (lambda: Dataset.random(1, False, 3), r"random\(name=3\)"),
    (lambda: Dataset.range(3, name=b"x"), r"range\(name=b'x'\)"),
    (lambda: Dataset.zip(ds, ds, name=5), r"zip\(name=5\)"),
    (lambda: ds.get_single_element(5), r"get_single_element\(name=5\)"),
    (lambda: Dataset(np.arange(3)), r"Dataset\(ndarray\): datasets are made by from_tensor_slices\(\) of arrays"),
    (lambda: Dataset([1, 2]), r"Dataset\(list\): .* from_generator\(\)"),
    (lambda: Dataset.from_tensor_slices([2**70]), r"does not fit into int64"),
    (lambda: Dataset.from_tensors(2**70), r"from_tensors\(\): the value is 1180591620717411303424"),
    (lambda: Dataset.from_tensors([[1], [1, 2]]), r"from_tensors\(\): the value is a list that does not form"),
    (
        lambda: Dataset.from_generator(iter(range(3))),
        r"generator must be a function that returns an iterator, .*: from_generator\(lambda: \.\.\.\)",
    ),
    (lambda: Dataset.from_generator(5), r"from_generator\(generator=5\): generator must be a function"),
    (lambda: Dataset.from_generator(iter, output_signature=(int,)), r"is not a forebay.TensorSpec"),
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
    (lambda: ds.map(lambda x: x, rng=True), r"called with 2 arguments, the last of them the generator"),
    # Datasets together
    (lambda: Dataset.zip(), r"zip\(\): give datasets"),
    (lambda: Dataset.zip(ds, 5), r"zip\(\): 5 is not a Dataset"),
    (lambda: Dataset.zip({}), r"zip\(\): there are no datasets"),
    (lambda: Dataset.zip({"a": [ds]}), r"is not a Dataset"),
    (lambda: Dataset.zip([ds, ds]), r"is not a Dataset; put datasets into a tuple or a dict"),
    (lambda: ds.zip(datasets=(ds, ds)), r"zip\(\): give datasets, either one by one or in one structure"),
    (lambda: ds.concatenate([1]), r"concatenate\(\[1\]\): the argument must be a Dataset"),
    (lambda: ds.concatenate(pairs), r"concatenate\(\): the datasets differ in structure or dtype"),
    (lambda: ds.concatenate(Dataset.range(3, output_type=np.int32)), r"int64.*int32"),
    (lambda: ds.unbatch(), r"unbatch\(\): every leaf must have an axis"),
    (
        lambda: Dataset.from_tensor_slices((np.zeros((3, 2)), np.zeros((3, 3)))).unbatch(),
        r"unbatch\(\): all leaves must have the same first size",
    ),
    (lambda: Dataset.counter().shuffle(), r"shuffle\(\) of everything never begins after an endless counter"),
    (lambda: stream().repeat().shuffle(), r"shuffle\(\) of everything never begins after an endless repeat"),
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


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda ds: ds.map(abs, num_workers=2),
            r"Dataset\.map\(\) got an .* 'num_workers': here that is num_parallel_calls",
        ),
        (
            lambda ds: ds.batch(4, drop_last=True),
            r"Dataset\.batch\(\) got an .* 'drop_last': here that is drop_remainder$",
        ),
        (
            lambda ds: ds.shuffle(bufersize=1),
            r"Dataset\.shuffle\(\) got an .* 'bufersize'. Did you mean: 'buffer_size'\?$",
        ),
        (lambda ds: ds.cache(path="a"), r"Dataset\.cache\(\) got an .* 'path': here that is filename$"),
        (
            lambda ds: ds.with_options(memory="1GiB"),
            r"Dataset\.with_options\(\) got an .* 'memory': write with_options\(fb\.Options\(memory=\.\.\.\)\)$",
        ),
        (lambda ds: ds.take(n=3), r"Dataset\.take\(\) got an unexpected keyword argument 'n'$"),
        (
            lambda ds: ds.from_csv("a.csv", num_proc=2),
            r"Dataset\.from_csv\(\) .* 'num_proc': here that is num_parallel_reads",
        ),
        (lambda ds: ds.map(abs, no_such=2), r"Dataset\.map\(\) got an unexpected keyword argument 'no_such'$"),
        (lambda ds: ds.shuffle(1, 2, 3, 4, 5), r"Dataset\.shuffle\(\) takes from 1 to 5 positional arguments but 6 "),
        (lambda ds: ds.save(), r"Dataset\.save\(\) missing 1 required positional argument: 'path'"),
        (
            lambda ds: fb.TFRecordDataset("a", num_workers=2),
            r"^TFRecordDataset\(\) got an .* 'num_workers': here that is num_parallel_reads$",
        ),
        (lambda ds: fb.TextLineDataset("a", no=2), r"^TextLineDataset\(\) got an unexpected keyword argument 'no'$"),
        (lambda ds: fb.SqlDataset("a"), r"^SqlDataset\(\) missing 3 required positional arguments: 'data_source_name'"),
        (lambda ds: ds.zip(sets=ds), r"Dataset\.zip\(\) got an unexpected keyword argument 'sets'"),
    ],
)
def test_wrong_arguments_are_those_of_dataset(build: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build(Dataset.range(3))


def test_methods_are_pickled_as_those_of_dataset() -> None:
    for method in (Dataset.map, Dataset.shuffle, Dataset.from_csv):
        assert pickle.loads(pickle.dumps(method)) is method


def test_options_spoilt_after_they_were_made_are_refused_too() -> None:
    options = fb.Options()
    options.block_bytes = -1
    with pytest.raises(PlanError, match="block_bytes"):
        ds.with_options(options)


def test_what_tf_data_takes_for_columns_is_taken() -> None:
    assert list(Dataset.from_tensor_slices({"a": 1, "b": 2}.values())) == [1, 2]
    assert list(Dataset.from_tensor_slices({"a": 1, "b": 2}.keys())) == ["a", "b"]
    assert [row.tolist() for row in Dataset.from_tensor_slices([(1, 2.5), (3, 4)])] == [[1, 2.5], [3, 4]]
    assert [row.tolist() for row in Dataset.from_tensor_slices([["a", None], ["b", "c"]])] == [["a", None], ["b", "c"]]


def test_zip_on_a_dataset_has_it_in_front() -> None:
    other = Dataset.range(20, 23)
    assert list(ds.zip(other)) == list(Dataset.zip(ds, other)) == [(0, 20), (1, 21), (2, 22)]
    assert list(ds.zip(other, other).take(1)) == [(0, 20, 20)]
    assert list(ds.zip({"a": other}, name="pairs").take(1)) == [(0, {"a": 20})]


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


@pytest.mark.parametrize("size", [2**63, 10**30, 10**400])
def test_a_shuffle_larger_than_any_input_is_one_of_all(size: int) -> None:
    expected = [int(x) for x in stream().shuffle(3, seed=1)]
    assert [int(x) for x in stream().shuffle(size, seed=1)] == expected
    assert sorted(int(x) for x in Dataset.range(3).shuffle(size)) == [0, 1, 2]
    assert "the buffer is on disk" in str(stream().shuffle(size).memory_report())
    assert list(stream().skip(size)) == []


def test_more_steps_than_python_has_frames_for() -> None:
    dataset = Dataset.range(3)
    for _ in range(sys.getrecursionlimit() // 4 - 1):
        dataset = dataset.skip(0)
    assert [int(x) for x in dataset] == [0, 1, 2]
    with pytest.raises(PlanError, match=r"skip at test_errors_build.py:\d+: \d+ steps one on another are more than"):
        dataset.skip(0)
