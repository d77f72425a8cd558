"""Rows that are much larger than those before them: blocks are cut by what they take up, whatever was expected."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import forebay as fb

SMALL, LARGE = 3000, 40
PROGRAM = textwrap.dedent(
    """
    import sys, resource
    import numpy as np
    import forebay as fb

    def row(i):
        return np.ones(10 if i < 20000 else 1 << 18)  # 80 bytes each, then 2 MiB.

    def rows():
        return (row(i) for i in range(20100))

    Dataset = fb.Dataset
    made = Dataset.range(20100).map(row)
    pipelines = {
        "map": lambda: made,
        "threads": lambda: Dataset.range(20100).map(row, 3, executor="thread"),
        "text": lambda: Dataset.range(20100).map(lambda i: "x" * (80 if i < 20000 else 1 << 21)),
        "rng": lambda: Dataset.range(20100).map(lambda i, rng: row(i), rng=True),
        "skip": lambda: Dataset.range(20100).map(row, on_error="skip"),
        "generator": lambda: Dataset.from_generator(rows),
        "repeated cache": lambda: made.cache().repeat(2),
        "shuffle": lambda: Dataset.from_generator(rows).shuffle(1000),
        "interleave": lambda: Dataset.range(3).interleave(lambda i: made, 3, 1),
    }
    most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    list(Dataset.range(10).map(lambda x: x).batch(2))
    before = most()
    for element in pipelines[sys.argv[1]]().with_options(fb.Options(memory="32MiB")):
        del element
    print(most() - before)
    """
)


def value(i):
    return np.full(2 if i < SMALL else 50_000, i)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["map", "threads", "text", "rng", "skip", "generator", "repeated cache", "shuffle", "interleave"],
)
def test_the_budget_holds(name):
    done = subprocess.run([sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 32 + 48


FILES = textwrap.dedent(
    """
    import resource, sys
    import forebay as fb

    folder, threads, compression = sys.argv[1], int(sys.argv[2]) or None, sys.argv[3]
    most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    names = [f"{folder}/{number}" for number in range(20)]
    for name in names:
        with fb.io.TFRecordWriter(name, compression) as writer:
            for count, size in ((3000, 20), (5, 300_000), (4, 2 << 20)):
                for _ in range(count):
                    writer.write(bytes(size))
    read = lambda name: fb.TFRecordDataset(name, compression)
    dataset = fb.Dataset.from_tensor_slices(names).interleave(read, cycle_length=20, num_parallel_calls=threads)
    before, count = most(), 0
    for record in dataset.with_options(fb.Options(memory="32MiB")):
        count += 1
        del record
    print(count, most() - before)
    """
)


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "compression"), [(0, ""), (4, ""), (0, "GZIP"), (4, "GZIP")])
def test_the_budget_holds_for_many_files_in_turns(tmp_path, threads, compression):
    """Each of them comes to large records at the same time, and the window of each grows."""
    arguments = [sys.executable, "-c", FILES, str(tmp_path), str(threads), compression]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    count, grown = map(int, done.stdout.split())
    assert count == 20 * 3009
    assert grown <= 32 + 48


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_no_row_is_lost_and_none_comes_twice(executor):
    def count(i):
        return value(i)

    ds = fb.Dataset.range(SMALL + LARGE).map(count, 3, executor=executor).with_options(fb.Options(block_bytes=1 << 16))
    for i, element in enumerate(ds):
        np.testing.assert_array_equal(element, value(i))
    assert i == SMALL + LARGE - 1


@pytest.mark.parametrize("deterministic", [True, False])
def test_it_resumes_in_the_middle_of_what_was_cut(deterministic):
    ds = fb.Dataset.range(SMALL + LARGE).map(value, 3, executor="thread", deterministic=deterministic)
    ds = ds.with_options(fb.Options(block_bytes=1 << 16))
    with iter(ds) as iterator:
        for _ in range(SMALL):
            next(iterator)
        for _ in range(LARGE - 1):
            next(iterator)
            state = iterator.state_dict()
            with iter(ds) as other:
                other.load_state_dict(state)
                rest = [int(element[0]) for element in other]
            assert len(rest) == len(set(rest))
            states = (state, rest)
        assert [int(element[0]) for element in iterator] == states[1]


def test_each_row_is_made_once():
    calls = []
    ds = fb.Dataset.range(SMALL + LARGE).map(lambda i: (calls.append(int(i)), value(i))[1])
    for _ in ds.with_options(fb.Options(block_bytes=1 << 16)):
        pass
    assert calls == list(range(SMALL + LARGE))


def test_rows_that_fail_are_left_out_of_what_was_cut():
    def fails(i):
        if i % 7 == 3:
            raise ValueError
        return value(i)

    ds = fb.Dataset.range(SMALL + LARGE).map(fails, on_error="skip", max_errors=None)
    ds = ds.with_options(fb.Options(block_bytes=1 << 16))
    assert [int(element[0]) for element in ds] == [i for i in range(SMALL + LARGE) if i % 7 != 3]
