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

    def large_first():
        yield from (bytes(8 << 20) for _ in range(50))
        yield from (b"0123456789" for _ in range(60_000))

    def large_among():
        for i in range(30_000):
            yield b"0123456789" if i % 750 else bytes(8 << 20)

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
        "shuffle of large ones first": lambda: Dataset.from_generator(large_first).shuffle(20_000, seed=1),
        "shuffle of large ones among others": lambda: Dataset.from_generator(large_among).shuffle(10_000, seed=1),
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
    [
        *("map", "threads", "text", "rng", "skip", "generator", "repeated cache", "shuffle", "interleave"),
        *("shuffle of large ones first", "shuffle of large ones among others"),
    ],
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


SCATTERED = textwrap.dedent(
    """
    import random, sys
    import forebay as fb

    folder, budget, threads, together = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) or None, sys.argv[4] == "True"
    chance = random.Random(1)
    names = [f"{folder}/{number}" for number in range(10)]
    for name in names:
        with fb.io.TFRecordWriter(name) as writer:
            for i in range(1000):
                writer.write(bytes(3 << 20 if (i % 50 == 0 if together else chance.random() < 0.02) else 100))

    def status(name):
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith(name)) >> 10

    dataset = fb.Dataset.from_tensor_slices(names).interleave(fb.TFRecordDataset, 10, num_parallel_calls=threads)
    dataset = dataset.shuffle(3000) if together else dataset
    open("/proc/self/clear_refs", "w").write("5")  # The highest mark begins anew.
    before, count = status("VmRSS"), 0
    for record in dataset.with_options(fb.Options(memory=budget << 20)):
        count += 1
        del record
    print(count, status("VmHWM") - before)
    """
)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [16, 32])
@pytest.mark.parametrize("threads", [0, 10])
@pytest.mark.parametrize("together", [False, True], ids=["here and there", "together"])
def test_the_budget_holds_for_large_records_among_small_ones(tmp_path, budget, threads, together):
    """What is freed of them goes back to the system where they need more than the budget. At the same places of all
    files they are handed on one after another, so that the step behind does not hold on to those of all."""
    arguments = [sys.executable, "-c", SCATTERED, str(tmp_path), str(budget), str(threads), str(together)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    count, grown = map(int, done.stdout.split())
    assert count == 10_000
    assert grown <= budget + 48


IN_TURNS = textwrap.dedent(
    """
    import sys
    import numpy as np
    import forebay as fb

    budget, cycle, threads = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) or None

    def status(name):
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith(name)) >> 10

    def rows():
        return (np.ones(10 if i < 2000 else 1 << 18) for i in range(2020))  # 80 bytes each, then 2 MiB.

    def read(i):
        return fb.Dataset.from_generator(rows)

    dataset = fb.Dataset.range(2 * cycle).interleave(read, cycle_length=cycle, num_parallel_calls=threads)
    if sys.argv[4] == "map":
        dataset = dataset.map(lambda x: x * 2, 3, executor="thread").prefetch(4)
    elif sys.argv[4] == "batch":
        dataset = dataset.map(lambda x: x * 2, 8, executor="thread").batch(4).prefetch(4)
    list(fb.Dataset.range(10).map(lambda x: x).batch(2))
    open("/proc/self/clear_refs", "w").write("5")  # The highest mark begins anew.
    before, count = status("VmRSS"), 0
    for element in dataset.with_options(fb.Options(memory=budget << 20)):
        count += 1
        del element
    print(count, status("VmHWM") - before)
    """
)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [8, 16])
@pytest.mark.parametrize(("cycle", "threads"), [(8, 0), (8, 4), (16, 16)])
@pytest.mark.parametrize("behind", ["nothing", "map", "batch"])
def test_the_budget_holds_for_generators_in_turns(budget, cycle, threads, behind):
    """All come to large rows at the same time: one of each is there, and no more of them are put in order together."""
    if behind == "batch" and cycle > 8 and budget == 8:
        pytest.skip("16 rows of 2 MiB and two batches of 8 leave 8 of 8 + 48 MiB for all else: 52 to 55 were measured")
    arguments = [sys.executable, "-c", IN_TURNS, str(budget), str(cycle), str(threads), behind]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    count, grown = map(int, done.stdout.split())
    assert count == 2 * cycle * 2020 // (4 if behind == "batch" else 1)
    assert grown <= budget + 48


class Counting:
    """A generator that can tell where it is."""

    def __init__(self, values):
        self.values, self.next = values, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.next == len(self.values):
            raise StopIteration
        self.next += 1
        return self.values[self.next - 1]

    def state_dict(self):
        return {"next": self.next}

    def load_state_dict(self, state):
        self.next = state["next"]


# Large ones alone, in pairs, at the start and at the end.
SIZES = [50_000, 2, 2, 50_000, 2, 2, 2, 50_000, 50_000, 2, 30_000, 50_000, 2, 2, 50_000]


@pytest.mark.parametrize("own_state", [True, False])
@pytest.mark.parametrize("interleaved", [True, False])
def test_a_generator_resumes_before_and_behind_large_rows(own_state, interleaved):
    values = [np.full(size, i) for i, size in enumerate(SIZES)]
    ds = fb.Dataset.from_generator(lambda: Counting(values) if own_state else iter(values))
    if interleaved:
        read = ds
        ds = fb.Dataset.range(3).interleave(lambda i: read, cycle_length=2, num_parallel_calls=2)
    ds = ds.with_options(fb.Options(block_bytes=1 << 16))
    expected = [(element.size, int(element[0])) for element in ds]
    if not interleaved:
        assert expected == list(zip(SIZES, range(len(SIZES))))
    with iter(ds) as iterator:
        for done in range(len(expected)):
            with iter(ds) as other:
                other.load_state_dict(iterator.state_dict())
                assert [(element.size, int(element[0])) for element in other] == expected[done:]
            next(iterator)


def test_a_large_row_of_a_generator_that_waits_is_counted_and_let_go_of():
    ledger = fb.Ledger("32MiB")
    values = [np.zeros(2), np.zeros(2), np.zeros(1 << 20), np.zeros(2)]
    ds = fb.Dataset.from_generator(lambda: iter(values)).with_options(fb.Options(memory=ledger, block_bytes=1 << 16))
    with iter(ds) as iterator:
        next(iterator)
        next(iterator)
        assert ledger.held >= 8 << 20
        assert next(iterator).size == 1 << 20
    assert ledger.held == 0
    with iter(ds) as iterator:
        next(iterator)
        next(iterator)
    assert ledger.held == 0


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
