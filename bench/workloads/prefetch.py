"""What a prefetch stage costs for each block, and whether it keeps a consumer from waiting."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.pipeline import WrongData
from bench.spec import Contender, Sample, Task, Unit, ValueBelow, Workload

MICROSECONDS = Unit("µs a block", higher_is_better=False)
WAITING = Unit("% waiting", higher_is_better=False)

COST_LIMIT_US = 50
BLOCK_ROWS = 1_000
AHEAD = 4
REPEATS = 7

WAIT_LIMIT = 5
STEP_SECONDS = 0.005
BATCH_SECONDS = 0.004
UNCOUNTED = 20
"""Steps before the count begins: the first batch cannot be there before it is asked for."""


def pipeline(rows: int, ahead: bool) -> Any:
    import forebay as fb

    # An element is a block of its own, so that what the consumer does for each is the same with and without.
    dataset = fb.Dataset.range(rows).batch(BLOCK_ROWS).with_options(fb.Options(block_bytes=8 * BLOCK_ROWS))
    # A number: AUTOTUNE would find that nothing is gained here and do without a thread.
    return dataset.prefetch(AHEAD) if ahead else dataset


def epoch(rows: int, ahead: bool) -> tuple[float, float, int]:
    """Seconds by the clock, seconds of this process's CPU, and how many blocks went through."""
    dataset = pipeline(rows, ahead)
    with iter(dataset) as iterator:
        next(iterator)
        began, computed = time.perf_counter(), time.process_time()
        count = sum(1 for _ in iterator)
        seconds, cpu = time.perf_counter() - began, time.process_time() - computed
        blocks: int = iterator.stats()[0].blocks
    if count + 1 != rows // BLOCK_ROWS:
        raise WrongData(f"{count + 1} batches, expected {rows // BLOCK_ROWS}")
    return seconds, cpu, blocks


def cost(task: Task) -> Sample:
    """The difference between with and without, taken in turns so that both meet the same disturbance."""
    without, ahead = [], []
    for _ in range(REPEATS):
        without.append(epoch(task.rows, ahead=False))
        ahead.append(epoch(task.rows, ahead=True))
    blocks = ahead[0][2]
    clock, cpu = (
        (statistics.median(each[which] for each in ahead) - statistics.median(each[which] for each in without))
        / blocks
        * 1e6
        for which in (0, 1)
    )
    return {
        "value": clock,
        "cpu_us": cpu,
        "blocks": blocks,
        "with_seconds": [each[0] for each in ahead],
        "without_seconds": [each[0] for each in without],
    }


def sleeping(batch: Any) -> Any:
    time.sleep(BATCH_SECONDS)
    return batch


def computing(batch: Any) -> Any:
    """Holds the interpreter lock for as long as its own computation takes, whoever else has the machine."""
    until = time.thread_time() + BATCH_SECONDS
    while time.thread_time() < until:
        pass
    return batch


def waits(task: Task, open_epoch: Callable[[int], Iterator[Any]]) -> Sample:
    """The share of the consumer's time that it spends in ``next``."""
    iterator = open_epoch(task.rows + UNCOUNTED)
    for _ in range(UNCOUNTED):
        next(iterator)
        time.sleep(STEP_SECONDS)
    waited = []
    before = stage_wait(iterator)
    began = time.perf_counter()
    for _ in range(task.rows):
        asked = time.perf_counter()
        next(iterator)
        waited.append(time.perf_counter() - asked)
        time.sleep(STEP_SECONDS)
    elapsed = time.perf_counter() - began
    sample = {
        "value": sum(waited) / elapsed * 100,
        "longest_ms": max(waited) * 1000,
        "median_ms": statistics.median(waited) * 1000,
        # Whatever the step took beyond its 5 ms: also what a producer that holds the interpreter lock took from it.
        "late_percent": (1 - task.rows * STEP_SECONDS / elapsed) * 100,
    }
    if before is not None:
        after = stage_wait(iterator)
        assert after is not None
        sample["stats_percent"] = (after - before) / elapsed * 100
    return sample


def stage_wait(iterator: Any) -> float | None:
    """What Forebay's own statistics say of the last step's waiting."""
    return float(iterator.stats()[0].wait) if hasattr(iterator, "stats") else None


def forebay(batches: int, work: Callable[[Any], Any], **settings: Any) -> Iterator[Any]:
    import forebay as fb

    return iter(fb.Dataset.range(batches * 32).batch(32).map(work, **settings).prefetch(fb.AUTOTUNE))


class Batches:
    """An iterable that works for each batch, as torch's DataLoader reads one."""

    def __init__(self, batches: int, work: Callable[[Any], Any]) -> None:
        self.batches = batches
        self.work = work

    def __len__(self) -> int:
        return self.batches

    def __getitem__(self, index: int) -> Any:
        return self.work(np.arange(index * 32, index * 32 + 32))


def torch_loader(batches: int, work: Callable[[Any], Any]) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    return iter(DataLoader(Batches(batches, work), batch_size=None, num_workers=1, collate_fn=lambda each: each))


def tf_data(batches: int, work: Callable[[Any], Any]) -> Iterator[Any]:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(batches * 32).batch(32)
    dataset = dataset.map(lambda batch: tf.numpy_function(work, [batch], tf.int64))
    return iter(dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator())


def waiting(name: str, library: str, build: Any, work: Callable[[Any], Any], note: str) -> Contender:
    measure = partial(waits, open_epoch=partial(build, work=work))
    return Contender(name, library, measure, note=note, reference=library != "forebay")


WORKLOADS = (
    Workload(
        name="prefetch",
        title="what prefetch(4) adds to range.batch(1_000), for each block",
        unit=MICROSECONDS,
        rows=2_000_000,
        quick_rows=200_000,
        parameters={"block_rows": BLOCK_ROWS},
        ratios_of=(),
        contenders=(Contender("forebay", "forebay", cost, note="with it minus without it, in turns"),),
        targets=(
            ValueBelow("forebay", COST_LIMIT_US, "µs", "cost of a block by the clock"),
            ValueBelow("forebay", COST_LIMIT_US, "µs", "cost of a block in CPU time", fact="cpu_us"),
        ),
    ),
    Workload(
        name="stall",
        title="a consumer of 5 ms a step behind 4 ms a batch and prefetch(AUTOTUNE): its time spent waiting",
        unit=WAITING,
        rows=400,
        quick_rows=60,
        parameters={"step_ms": STEP_SECONDS * 1000, "batch_ms": BATCH_SECONDS * 1000},
        ratios_of=(),
        contenders=(
            waiting("forebay sleeping", "forebay", forebay, sleeping, "the 4 ms are spent waiting"),
            waiting("forebay computing", "forebay", forebay, computing, "the 4 ms keep the interpreter busy"),
            waiting(
                "forebay computing, process",
                "forebay",
                partial(forebay, num_parallel_calls=1, executor="process"),
                computing,
                "the same in a worker process",
            ),
            waiting("torch sleeping", "torch", torch_loader, sleeping, "1 worker process"),
            waiting("torch computing", "torch", torch_loader, computing, "1 worker process"),
            waiting("tf.data sleeping", "tensorflow", tf_data, sleeping, "numpy_function, prefetch(AUTOTUNE)"),
            waiting("tf.data computing", "tensorflow", tf_data, computing, "numpy_function, prefetch(AUTOTUNE)"),
        ),
        targets=(
            ValueBelow("forebay sleeping", WAIT_LIMIT, "%", "waiting by the clock"),
            ValueBelow("forebay computing", WAIT_LIMIT, "%", "waiting by the clock"),
            ValueBelow("forebay sleeping", WAIT_LIMIT, "%", "waiting by it.stats()", fact="stats_percent"),
        ),
        notes="The consumer sleeps for its 5 ms, as one that feeds an accelerator does.",
    ),
)
