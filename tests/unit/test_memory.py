"""Memory that does not grow with the data, and is given back when an iterator stops."""

import gc
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay import Dataset
from unit.support import python

MB = 1 << 20

# Prints by how many MB resident memory rose above where it stood before the first element, at its highest.
MEASURE = """
import os, sys
import numpy as np
import forebay as fb

def resident():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def growth(dataset, every=16):
    before = highest = resident()
    rows = 0
    for i, batch in enumerate(dataset):
        rows += len(batch[0] if isinstance(batch, tuple) else batch)
        if i % every == 0:
            highest = max(highest, resident())
    return rows, max(highest, resident()) - before
"""


def measured(code: str, *arguments: str) -> tuple[int, float]:
    rows, grown = python(MEASURE + code, 300, *arguments).split()
    return int(rows), int(grown) / MB


@pytest.fixture(scope="module")
def big_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 MB of float32 rows; a hole in the file reads as zeros and costs no disk."""
    path = tmp_path_factory.mktemp("memory") / "rows.npy"
    mapped = np.lib.format.open_memmap(path, "w+", np.float32, (65536, 1024))
    mapped[::4096] = 1
    del mapped
    return path


@pytest.mark.parametrize(
    "steps",
    [
        "batch(64)",
        "shuffle(seed=1).batch(64)",
        "shuffle(5_000, seed=1).batch(64)",
        "skip(1000).shard(2, 0).batch(64).prefetch(fb.AUTOTUNE)",
        "map(lambda x: x).batch(64)",
    ],
    ids=["in order", "shuffled", "buffered shuffle", "sharded and prefetched", "mapped"],
)
def test_a_mapped_file_is_not_loaded(big_file: Path, steps: str) -> None:
    rows, grown = measured(
        f"array = np.load(sys.argv[1], mmap_mode='r')\nprint(*growth(fb.Dataset.from_tensor_slices(array).{steps}))",
        str(big_file),
    )
    assert rows in (65536, 32268)
    assert grown < 40


@pytest.mark.parametrize(
    ("view", "rows"),
    [
        ("array.view('>f4')", 65536),
        ("array[:4096].reshape(-1).view('S64')", 262_144),
        ("array[1:4096].reshape(-1).view('U16')", 262_080),
        ("array.reshape(-1).view([('x', '>f4', 256), ('y', '>i4', 256)])", 131_072),
        ("array[::-1]", 65536),
        ("array[:, ::2]", 65536),
        ("array.reshape(256, -1).T", 262_144),
    ],
    ids=["big-endian", "bytes", "text", "structured", "backwards", "every other column", "by columns"],
)
def test_no_view_of_a_mapped_file_is_loaded(big_file: Path, view: str, rows: int) -> None:
    code = f"""
array = np.load(sys.argv[1], mmap_mode='r')
fb.Dataset.from_tensor_slices(array[:32]).batch(8).take(1).get_single_element()
before = resident()
dataset = fb.Dataset.from_tensor_slices({view})
made = resident() - before
rows, grown = growth(dataset.batch(256), 4)
print(rows, made + grown)
"""
    found, grown = measured(code, str(big_file))
    assert found == rows
    assert grown < 24


def test_making_a_dataset_of_a_mapped_file_reads_next_to_nothing(big_file: Path) -> None:
    code = """
array = np.load(sys.argv[1], mmap_mode="r")
before = resident()
dataset = fb.Dataset.from_tensor_slices({"x": array}).shuffle(1000).batch(32)
dataset.element_spec, dataset.cardinality(), repr(dataset)
it = iter(dataset)
it.load_state_dict(it.state_dict())
print(len(dataset), resident() - before)
"""
    rows, grown = measured(code, str(big_file))
    assert rows == 2048
    assert grown < 16


def test_a_shuffle_over_arrays_costs_the_same_with_any_buffer() -> None:
    code = """
array = np.zeros((200_000, 100))
np.add(array, 1, out=array)
size = int(sys.argv[1])
print(*growth(fb.Dataset.from_tensor_slices((array, np.arange(200_000))).shuffle(size, seed=1).batch(32).prefetch(-1)))
"""
    grown = {}
    for size in ("10", "100000"):
        rows, grown[size] = measured(code, size)
        assert rows == 200_000
    # The buffer as rows would be 80 MB; as numbers it is less than one.
    assert grown["10"] < 40
    assert grown["100000"] < grown["10"] + 24


def test_batches_of_a_long_stream_leave_nothing_behind() -> None:
    code = """
def stream():
    for i in range(4000):
        yield np.full(10_000, i, np.float64)

print(*growth(fb.Dataset.from_generator(stream).shuffle(50, seed=1).map(lambda x: x + 1).batch(4).prefetch(2)))
"""
    rows, grown = measured(code)
    assert rows == 4000
    # 320 MB went by.
    assert grown < 64


def test_many_epochs_and_many_iterators_do_not_add_up() -> None:
    code = """
dataset = fb.Dataset.from_tensor_slices(np.zeros((2000, 200))).shuffle(500, seed=1).map(lambda x: x * 2).batch(8)
for _ in dataset: pass
def runs():
    for _ in range(60):
        with iter(dataset.prefetch(4)) as it:
            for _ in range(100):
                yield next(it)
print(*growth(runs(), every=100))
"""
    rows, grown = measured(code)
    assert rows == 48_000
    assert grown < 32


# What an iterator holds is gone when it is.


class Thing:
    """An object that can be watched."""


class Things:
    """A generator of things that remembers them weakly."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[Thing]] = []

    def __call__(self) -> Iterator[Any]:
        for _ in range(5000):
            thing = Thing()
            self.made.append(weakref.ref(thing))
            yield thing
            del thing

    def alive(self) -> int:
        gc.collect()
        return sum(ref() is not None for ref in self.made)


CHAINS: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "alone": lambda ds: ds,
    "map": lambda ds: ds.map(lambda x: x),
    "filter": lambda ds: ds.filter(lambda x: True),
    "batch": lambda ds: ds.batch(7),
    "shuffle": lambda ds: ds.shuffle(300, seed=1),
    "unbatch": lambda ds: ds.batch(5).unbatch(),
    "zip": lambda ds: Dataset.zip(ds, Dataset.counter()),
    "flat_map": lambda ds: Dataset.range(3).flat_map(lambda i: ds),
    "repeat": lambda ds: ds.take(50).repeat(),
    "prefetch": lambda ds: ds.prefetch(100),
    "all together": lambda ds: ds.shuffle(50).map(lambda x: x).batch(3).prefetch(4).unbatch().enumerate(),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_closed_iterator_holds_nothing(name: str) -> None:
    things = Things()
    it = iter(CHAINS[name](Dataset.from_generator(things)))
    for _ in range(60):
        next(it)
    assert things.alive() > 0 or name == "alone"
    it.close()
    assert things.alive() == 0


@pytest.mark.parametrize("name", CHAINS)
def test_a_dropped_iterator_holds_nothing(name: str) -> None:
    things = Things()
    it = iter(CHAINS[name](Dataset.from_generator(things)))
    for _ in range(60):
        next(it)
    del it
    assert things.alive() == 0
    assert len(things.made) > 50


def test_a_finished_iterator_holds_nothing() -> None:
    things = Things()
    it = iter(Dataset.from_generator(things).shuffle(300, seed=1).batch(7))
    assert sum(len(batch) for batch in it) == 5000
    assert things.alive() == 0


def test_a_dataset_that_was_iterated_holds_no_elements() -> None:
    things = Things()
    dataset = Dataset.from_generator(things).shuffle(300, seed=1)
    assert len(list(islice(dataset, 20))) == 20
    assert things.alive() == 0
    _ = dataset.element_spec
    assert things.alive() == 0


def test_an_array_is_not_kept_longer_than_its_dataset() -> None:
    array = np.zeros((1000, 10))
    gone = weakref.ref(array)
    it = iter(Dataset.from_tensor_slices(array).shuffle(10).batch(4))
    next(it)
    del array
    assert gone() is not None
    del it
    gc.collect()
    assert gone() is None
