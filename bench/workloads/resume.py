"""Taking an iterator's state, and going on from one in a fresh process.

The 900,000,000 rows before the restore are really read, by the process whose state the other one restores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.checks import BATCH
from bench.pipeline import WrongData
from bench.spec import MILLISECONDS, Contender, Sample, Task, ValueBelow, Workload

STATE_LIMIT_MS = 1
RESTORE_LIMIT_MS = 100
ROWS = 1_000_000_000
FAR_BATCH = 1_000
REPEATS = 3


def far(rows: int) -> int:
    """The number of the batch that is restored: nine tenths into the dataset."""
    return rows * 9 // 10 // FAR_BATCH


def mapped() -> Any:
    import forebay as fb

    return fb.Dataset.range(10**6).map(lambda x: x * 2).batch(BATCH)


def permuted(buffer: int | None) -> Any:
    import forebay as fb

    return fb.Dataset.range(10**6).shuffle(buffer, seed=1).batch(BATCH)


def filtered() -> Any:
    import forebay as fb

    return fb.Dataset.range(10**6).filter(lambda x: x % 3 > 0).shuffle(10_000, seed=1).batch(BATCH)


def slices() -> Any:
    import forebay as fb

    arrays = (np.random.default_rng(0).random((100_000, 100)), np.arange(100_000))
    return fb.Dataset.from_tensor_slices(arrays).shuffle(10_000, seed=1).batch(BATCH).prefetch(fb.AUTOTUNE)


def nested() -> Any:
    import forebay as fb

    groups = fb.Dataset.range(10**6).flat_map(lambda n: fb.Dataset.range(10).map(lambda x: x + n))
    pairs = fb.Dataset.zip(groups, fb.Dataset.counter())
    return pairs.take(100_000).repeat(3).enumerate().batch(BATCH)


def generated() -> Any:
    import forebay as fb

    return fb.Dataset.from_generator(lambda: iter(range(10**5)), output_types=np.int64).batch(BATCH)


def take_states(task: Task, make: Callable[[], Any]) -> Sample:
    """The slowest ``state_dict()`` of all positions; each position's time is the best of several iterators.

    A noisy machine now and then stops a process for milliseconds. A position that is slow for every one of
    several independent iterators is slow because of what the pipeline does there.
    """
    iterators = [iter(make()) for _ in range(REPEATS)]
    times, size = [], 0
    for position in range(task.rows // BATCH):
        here = []
        for iterator in iterators:
            started = time.perf_counter()
            state = iterator.state_dict()
            here.append(time.perf_counter() - started)
        times.append(here)
        if position % 100 == 0:
            size = max(size, len(json.dumps(state)))
        for iterator in iterators:
            next(iterator)
    for iterator in iterators:
        iterator.close()
    best = np.min(times, axis=1) * 1000
    return {
        "value": float(best.max()),
        "median_ms": float(np.median(best)),
        "max_with_noise_ms": float(np.max(times) * 1000),
        "positions": len(best),
        "state_bytes": size,
    }


def tf_shuffled(rows: int) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.range(rows).shuffle(10_000, seed=1).batch(BATCH)


def tf_take_states(task: Task) -> Sample:
    import tensorflow as tf

    iterator = iter(tf_shuffled(10**6))
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for position in range(20):
            for _ in range(10):
                next(iterator)
            started = time.perf_counter()
            path = checkpoint.write(f"{folder}/{position}")
            times.append(time.perf_counter() - started)
        size = sum(file.stat().st_size for file in Path(folder).glob(f"{Path(path).name}.*"))
    return {"value": max(times) * 1000, "median_ms": float(np.median(times)) * 1000, "state_bytes": size}


def grain_shuffled(rows: int, batch: int) -> tuple[Any, Any]:
    """The batches by number, and in sequence."""
    import grain

    batches = grain.MapDataset.range(rows).shuffle(seed=1).batch(batch)
    return batches, batches.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))


def grain_take_states(task: Task) -> Sample:
    iterator = iter(grain_shuffled(ROWS, BATCH)[1])
    times = []
    for _ in range(task.rows // BATCH):
        next(iterator)
        started = time.perf_counter()
        state = iterator.get_state()
        times.append(time.perf_counter() - started)
    return {
        "value": max(times) * 1000,
        "median_ms": float(np.median(times)) * 1000,
        "state_bytes": len(str(state)),
    }


def long_shuffle(rows: int, buffer: int | None) -> Any:
    import forebay as fb

    return fb.Dataset.range(rows).shuffle(buffer, seed=1).batch(FAR_BATCH)


def print_far_state(rows: int, buffer: int | None) -> None:
    """The state nine tenths into the dataset, and the batch that follows it."""
    iterator = iter(long_shuffle(rows, buffer))
    for _ in range(far(rows)):
        next(iterator)
    state = iterator.state_dict()
    print(json.dumps([state, next(iterator).tolist()]))


def restore(task: Task, buffer: int | None) -> Sample:
    """Time from ``iter()`` to the first batch behind a state that another process took."""
    code = f"from bench.workloads import resume; resume.print_far_state({task.rows}, {buffer})"
    taken = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    state, expected = json.loads(taken.stdout)
    dataset = long_shuffle(task.rows, buffer)
    started = time.perf_counter()
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    batch = next(iterator)
    ended = time.perf_counter()
    if batch.tolist() != expected:
        raise WrongData(f"after the restore came {batch[:4]} ..., expected {expected[:4]} ...")
    return {"value": (ended - started) * 1000, "state_bytes": len(json.dumps(state))}


def grain_restore(task: Task) -> Sample:
    batches, dataset = grain_shuffled(task.rows, FAR_BATCH)
    position = far(task.rows)
    expected = batches[position]
    state = iter(dataset).get_state() | {"next_index": position}
    started = time.perf_counter()
    iterator = iter(dataset)
    iterator.set_state(state)
    batch = next(iterator)
    ended = time.perf_counter()
    if not np.array_equal(batch, expected):
        raise WrongData("grain's restored batch is not the one at that position")
    return {"value": (ended - started) * 1000, "state_bytes": len(str(state))}


def tf_restore(_: Task) -> Sample:
    import tensorflow as tf

    dataset = tf_shuffled(10**6)
    iterator = iter(dataset)
    for _batch in range(1_000):
        next(iterator)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(iterator=iterator).write(f"{folder}/state")
        expected = next(iterator).numpy()
        started = time.perf_counter()
        again = iter(dataset)
        tf.train.Checkpoint(iterator=again).read(path)
        batch = next(again).numpy()
        ended = time.perf_counter()
    if not np.array_equal(batch, expected):
        raise WrongData("tf.data's restored batch is not the one that followed its checkpoint")
    return {"value": (ended - started) * 1000}


def states(name: str, make: Callable[[], Any], note: str) -> Contender:
    return Contender(f"forebay {name}", "forebay", partial(take_states, make=make), note=note)


PIPELINES = (
    states("map", mapped, "range.map.batch"),
    states("shuffle()", partial(permuted, None), "range.shuffle().batch"),
    states("shuffle(10_000)", partial(permuted, 10_000), "range.shuffle(10_000).batch"),
    states("shuffle(100_000)", partial(permuted, 100_000), "range.shuffle(100_000).batch"),
    states("filtered", filtered, "range.filter.shuffle(10_000).batch: a buffer of rows"),
    states("slices", slices, "from_tensor_slices.shuffle(10_000).batch.prefetch"),
    states("nested", nested, "zip(flat_map, counter).take.repeat.enumerate.batch"),
    states("generator", generated, "from_generator.batch"),
)

WORKLOADS = (
    Workload(
        name="state",
        title="state_dict(), the slowest of all positions",
        unit=MILLISECONDS,
        rows=64_000,
        quick_rows=6_400,
        ratios_of=(),
        contenders=(
            *PIPELINES,
            Contender("tf.data", "tensorflow", tf_take_states, "tf.train.Checkpoint, W1's pipeline", reference=True),
            Contender("grain", "grain", grain_take_states, "get_state(), whole shuffle", reference=True),
        ),
        targets=tuple(ValueBelow(each.name, STATE_LIMIT_MS, "ms", "slowest state_dict()") for each in PIPELINES),
    ),
    Workload(
        name="restore",
        title="restore at row 900,000,000 of a shuffled range(1_000_000_000), to the first batch",
        unit=MILLISECONDS,
        rows=ROWS,
        quick_rows=10_000_000,
        ratios_of=(),
        contenders=(
            Contender("forebay shuffle()", "forebay", partial(restore, buffer=None), "uniform over everything"),
            Contender("forebay shuffle(10_000)", "forebay", partial(restore, buffer=10_000), "buffer of 10,000"),
            Contender(
                "grain",
                "grain",
                grain_restore,
                "whole shuffle; not walked: its state is the batch number",
                reference=True,
            ),
            Contender(
                "tf.data",
                "tensorflow",
                tf_restore,
                "shuffle(10_000), at row 32,000: to row 900,000,000 it would walk for most of an hour",
                reference=True,
            ),
        ),
        targets=(
            ValueBelow("forebay shuffle()", RESTORE_LIMIT_MS, "ms", "restore"),
            ValueBelow("forebay shuffle(10_000)", RESTORE_LIMIT_MS, "ms", "restore"),
        ),
    ),
)
